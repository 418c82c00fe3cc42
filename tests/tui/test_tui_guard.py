"""The guard and attention on screen, driven by keys."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from midstream.edits.hunks import HoldReason, HunkState
from midstream.pairing.files.attention import Reading, Sighting
from midstream.settings import Settings
from midstream.tui.pages.sheet import HalfReadingScreen
from midstream.tui.widgets.file_bar import FileBar
from midstream.tui.widgets.status_row import StatusRow
from tests.helpers.stage import CODE, Stage, on_stage

HEAD = ("def count(items):\n", '    """Count the items that are true."""\n')
KEY = "AKIA" + "QX7ZL2MWPNV4RT6B"
BAD = f'    total = fetch("{KEY}", eval(items))\n'
REST = (
    "    for item in items:\n",
    "        if item:\n",
    "            total += 1\n",
    "    print(total, file=sys.stderr)\n",
    "    return total\n",
)


def light(stage: Stage) -> str:
    return stage.screen.query_one(StatusRow).facts.guard


async def test_halted_corrected_then_held_back_and_released(stage: Stage, project: Path) -> None:
    await stage.open("pkg/things.py")
    assert light(stage) == "scanning nothing"
    await stage.instruct("fetch the total in count")
    for asked in (1, 2, 3):
        await stage.until(lambda asked=asked: len(stage.model.requests) == asked, "request")
        for line in (*(HEAD if asked == 1 else ()), BAD):
            stage.model.give(line)
    await stage.until(lambda: "held back" in stage.notice, "halt")
    assert light(stage) == "guarded"
    [held] = [h for h in stage.session.hunks if h.state is HunkState.HELD]
    rows = "\n".join(stage.rows)
    [said] = [row for row in stage.rows if "held back" in row]
    assert "eval(items)" in said  # beside the line that is meant
    assert held.hold is not None
    assert said.endswith(f"held back: Use of possibly insecure function ({held.hold.rule})")
    assert KEY not in rows
    assert KEY not in stage.notice
    assert "AKIA****" in rows
    view = stage.view
    assert view is not None
    place = view.rows_of(held.id)
    assert place is not None
    await stage.press("escape")
    assert stage.screen.query_one(FileBar).facts.held == 1
    for key in ("]", "L"):  # both lead there and say what to do
        stage.pane.go_to(0)
        await stage.press(key)
        assert stage.pane.hunk is held
        assert "L releases it" in stage.notice
    await stage.press("a")
    assert "Held back" in stage.notice
    assert (project / "pkg" / "things.py").read_text() == CODE
    assert {"L release", "alt+g guard off", "! why"} <= set(stage.keys)
    await stage.press("exclamation_mark")
    sheet = stage.app.screen
    assert isinstance(sheet, HalfReadingScreen)
    (written,) = (paragraph for paragraph in sheet.paragraphs if paragraph.heading == "Written by")
    told = [words for words, _ in written.lines]
    assert told[1:] == ["asked: fetch the total in count", "corrected, 2 times"]
    await stage.press("escape")
    await stage.press("L", "enter")
    assert stage.notice == "Type why the lines are safe, then enter; esc leaves the hunk held back."
    await stage.type("a test key")
    await stage.press("enter")
    await stage.until(lambda: held.state is HunkState.SETTLED, "release")
    assert held.note == "a test key"
    assert stage.pane.has_focus
    await stage.press("u")
    await stage.until(lambda: held.state is HunkState.HELD, "undo of the release")
    assert stage.notice == "Undone: 1 hunk of pkg/things.py held back again."
    assert stage.pane.hunk is held
    await stage.press("U")
    await stage.until(lambda: held.state is HunkState.SETTLED, "redo of the release")
    assert stage.notice == "Redone: 1 hunk of pkg/things.py released again."
    stage.pane.go_to(place[0])
    await stage.press("a")
    await stage.until(lambda: held.state is HunkState.ACCEPTED, "accept")
    assert KEY in (project / "pkg" / "things.py").read_text()


async def test_the_file_list_says_what_is_held_back(project: Path) -> None:
    async with on_stage(project, size=(160, 40)) as stage:
        await stage.propose_more()
        (hunk,) = stage.session.hunks.undecided()
        stage.session.hunks.hold_back(hunk.id, HoldReason("", "made up"))
        stage.screen.refresh_facts()
        await stage.until(lambda: "1 held back" in stage.rail._strip(1).text, "in its row")


async def test_a_warning_is_shown_beside_the_hunk(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.instruct("hash it in count")
    for line in (*HEAD, "    import hashlib\n", "    total = hashlib.md5(items)\n", *REST):
        stage.model.give(line)
    stage.model.give(None)
    await stage.until(lambda: any("(S324)" in row for row in stage.rows), "mark")


@pytest.mark.system
async def test_the_rest_is_accepted_when_read_or_at_the_second_press(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr("midstream.tui.review.attention.time", stopped)
    path = project / "pkg" / "things.py"
    async with on_stage(project, settings=Settings(journal=False)) as stage:
        await stage.open("pkg/things.py")
        await stage.instruct("start at one in count")
        for line in (*HEAD, "    total = 1\n", *REST[:2], "            total += 2\n", *REST[3:]):
            stage.model.give(line)
        stage.model.give(None)
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 2, "hunks")
        await stage.press("escape")
        first, second = stage.session.hunks.undecided()
        stage.session.attention.look([Sighting(first)], 1.0)
        await stage.press("A")
        await stage.until(lambda: first.state is HunkState.ACCEPTED, "first")
        assert "1 hunk accepted and written" in stage.notice
        assert "1 hunk was not fully on screen yet; A again accepts it" in stage.notice
        assert second.state is HunkState.SETTLED
        await stage.press("A")
        await stage.until(lambda: second.state is HunkState.ACCEPTED, "second")
        assert "1 hunk accepted and written, unread" in stage.notice
        assert "total += 2" in path.read_text()
        assert "1 of 2 hunks (2 lines) accepted without" in stage.session.attention.summary(
            stage.session.hunks
        )


async def test_large_hunks_in_full_view_are_accepted_at_the_first_press(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr("midstream.tui.review.attention.time", clock)
    async with on_stage(project, settings=Settings(journal=False)) as stage:
        await stage.open("pkg/things.py")
        await stage.instruct("start at one in count")
        added = "".join(f"    total += {n}\n" for n in range(14))
        for line in (*HEAD, "    total = 1\n", *REST[:4], added, *REST[4:]):
            stage.model.give(line)
        stage.model.give(None)
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 2, "hunks")
        await stage.press("escape")
        stage.screen.refresh_facts()
        seen = stage.session.attention.reading
        last = stage.session.hunks.undecided()[-1]
        clock.now += 1.0
        await stage.until(lambda: seen(last) is Reading.GLIMPSED, "sample")
        clock.now += 1.0
        await stage.press("A")
        await stage.until(lambda: not stage.session.hunks.undecided(), "accepted at once")
        assert "2 hunks accepted and written" in stage.notice
        assert "again" not in stage.notice


async def test_looking_at_a_hunk_makes_it_read(project: Path) -> None:
    async with on_stage(project, settings=Settings(journal=False)) as stage:
        await stage.open("pkg/things.py")
        await stage.instruct("start at one in count")
        for line in (*HEAD, "    total = 1\n", *REST):
            stage.model.give(line)
        stage.model.give(None)
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 1, "hunk")
        [hunk] = stage.session.hunks.undecided()
        attention = stage.session.attention
        await stage.until(lambda: attention.reading(hunk) == "read", "reading")


async def test_risky_hunks_are_left_to_be_decided_one_by_one(project: Path) -> None:
    async with on_stage(project, settings=Settings(journal=False)) as stage:
        await stage.open("pkg/things.py")
        await stage.instruct("log in, in count")
        for line in (*HEAD, "    total = 1  # for each login\n", *REST):
            stage.model.give(line)
        stage.model.give(None)
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 1, "hunk")
        await stage.press("escape", "A", "A")
        await stage.until(lambda: "one by one" in stage.notice, "notice")
        assert "authentication" in stage.notice
        assert len(stage.session.hunks.undecided()) == 1
        await stage.press("a")
        await stage.until(lambda: not stage.session.hunks.undecided(), "accept")


async def test_a_held_back_hunk_is_rejected_with_a_reason_that_survives_leaving(
    stage: Stage, project: Path
) -> None:
    await stage.open("pkg/things.py")
    await stage.instruct("fetch the total in count")
    for asked in (1, 2, 3):
        await stage.until(lambda asked=asked: len(stage.model.requests) == asked, "request")
        for line in (*(HEAD if asked == 1 else ()), BAD):
            stage.model.give(line)
    await stage.until(lambda: "held back" in stage.notice, "halt")
    [held] = [h for h in stage.session.hunks if h.state is HunkState.HELD]
    view = stage.view
    assert view is not None
    place = view.rows_of(held.id)
    assert place is not None
    await stage.press("escape")
    stage.pane.go_to(place[0])
    for key, state in (("L", HunkState.HELD), ("X", HunkState.REJECTED)):
        await stage.press(key)
        await stage.type("no keys")
        await stage.press("escape")
        assert held.state is HunkState.HELD
        assert stage.pane.has_focus
        await stage.press(key)
        await stage.press("escape" if state is HunkState.HELD else "enter")
        await stage.until(lambda state=state: held.state is state, key)
    assert held.note == "no keys"
    assert (project / "pkg" / "things.py").read_text() == CODE


@pytest.mark.parametrize(
    ("bad", "good", "rule"),
    [
        (
            "    total = db.execute(\"select n from t where a = '%s'\" % items)\n",
            '    total = db.execute("select n from t where a = ?", (items,))\n',
            "S608",
        ),
        (
            f'    total = fetch("{KEY}")\n',
            '    total = fetch(os.environ["KEY"])\n',
            "secret-aws-key",
        ),
        (
            "    total = subprocess.check_output(input(), shell=True)\n",
            '    total = subprocess.check_output(["wc", "-l"])\n',
            "S602",
        ),
    ],
)
async def test_a_dangerous_line_is_corrected_before_the_eyes(
    stage: Stage, project: Path, bad: str, good: str, rule: str
) -> None:
    await stage.open("pkg/things.py")
    await stage.instruct("get the total in count")
    for line in (*HEAD, bad):
        stage.model.give(line)
    begun = time.process_time()
    await stage.until(lambda: len(stage.model.requests) == 2, "correction")
    assert rule in stage.notice
    for line in (good, *REST):
        stage.model.give(line)
    stage.model.give(None)
    await stage.until(lambda: good.strip() in "\n".join(stage.rows), "corrected line on screen")
    assert time.process_time() - begun < 5.0, "a second on an idle machine"
    await stage.until(lambda: len(stage.session.hunks.undecided()) > 0, "hunks")
    rows = "\n".join(stage.rows)
    assert KEY not in rows
    assert bad.strip() not in "".join(
        line for hunk in stage.session.hunks.undecided() for line in hunk.new
    )
    assert (project / "pkg" / "things.py").read_text() == CODE
