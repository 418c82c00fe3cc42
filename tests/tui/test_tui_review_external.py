"""Keeping and putting back what other programs write, by keys."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.timer import Timer

from midstream.code.lexing import LineLexer
from midstream.pairing.files import put_backs
from midstream.pairing.status import ExternalHunksAdded, FileChangedOnDisk
from midstream.settings import Settings
from midstream.tui.diff.view import Look
from midstream.tui.pages.help import HelpScreen
from midstream.tui.pages.picker import PickerScreen
from midstream.tui.review import screen as review_screen
from midstream.tui.widgets.file_bar import FileBar
from midstream.tui.widgets.row_list import RowList
from midstream.tui.widgets.status_row import StatusRow
from midstream.tui.widgets.welcome import Welcome
from tests.helpers.pages import make_repo
from tests.helpers.stage import Stage, on_stage

BILL = "".join(f"def bill_{n}(row):\n    return row.cost + {n}\n\n\n" for n in range(12))
AFTER = BILL.replace("cost + 2", "price + 2").replace("cost + 9", "price + 9")
QUERY = '\n\ndef find(db, name):\n    return db.execute(f"SELECT {name} FROM bills")\n'
"""A function that the guard holds back."""


def status(stage: Stage) -> str:
    return stage.screen.query_one(StatusRow).render().plain


async def reviewing(stage: Stage) -> None:
    """Open the file that another program writes, and begin a review."""
    await stage.until(lambda: stage.session.external.watching == "native", "watching")
    await stage.open("pkg/bill.py")
    await stage.press("V")
    await stage.until(lambda: "reviewing" in status(stage), "a review")


async def test_what_another_program_writes_is_decided_by_keys(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put_backs, "QUIET_S", 0.0)
    bill = project / "pkg" / "bill.py"
    bill.write_text(BILL)
    async with on_stage(project) as stage:
        await reviewing(stage)
        assert "V ends the review" in stage.notice
        bill.write_text(AFTER)
        store = stage.session.hunks
        await stage.until(lambda: len(store.undecided()) == 2, "two hunks")
        await stage.press("]")
        await stage.until(lambda: "r put back" in stage.keys, "the words for such a hunk")
        await stage.press("a")
        await stage.until(lambda: len(store.undecided()) == 1, "one is kept")
        assert bill.read_text() == AFTER
        await stage.press("r")
        await stage.until(lambda: not store.undecided(), "the other is put back")
        await stage.until(
            lambda: bill.read_text() == AFTER.replace("price + 9", "cost + 9"), "on disk"
        )
        await stage.press("u")
        await stage.until(lambda: bill.read_text() == AFTER, "undone on disk")
        await stage.press("V")
        await stage.until(lambda: "watching" in status(stage), "no review any more")
        bill.write_text(AFTER.replace("cost + 5", "price + 5"))
        files = stage.session.files
        await stage.until(lambda: "price + 5" in files["pkg/bill.py"].base.text(), "followed")
        assert len(store.undecided()) == 1


async def test_keys_and_palette_keep_and_put_back_in_a_review(project: Path) -> None:
    bill = project / "pkg" / "bill.py"
    bill.write_text(BILL)
    async with on_stage(project) as stage:
        await stage.open("pkg/bill.py")
        await stage.press("question_mark")
        assert "Accept the hunk under the cursor and go to the next" in sentences(stage)
        await stage.press("escape")
        await reviewing(stage)
        bill.write_text(AFTER)
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 2, "two hunks")
        await stage.press("question_mark")
        told = sentences(stage)
        assert "Keep the hunk under the cursor and go to the next" in told
        assert "Put back the hunk and tell the model why" in told
        assert not [one for one in told if one.lower().startswith(("accept", "reject"))]
        await stage.press("escape", "colon")
        assert isinstance(stage.app.screen, PickerScreen)
        await stage.type("accept the hunk")  # the other word finds it as well
        rows = stage.app.screen.query_one(RowList)
        await stage.until(lambda: rows.value == "hunk.accept", "found")
        words = "".join(text for text, *_ in rows.rows[rows.cursor].left)
        assert words.strip().startswith("Keep the hunk")


def sentences(stage: Stage) -> list[str]:
    """The sentences of the keys page, topic by topic."""
    screen = stage.app.screen
    assert isinstance(screen, HelpScreen)
    return [sentence for topic in screen.topics for _, sentence, _ in topic.rows]


async def test_a_put_back_waits_for_the_writer_or_for_a_key(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put_backs, "QUIET_S", 600.0)
    bill = project / "pkg" / "bill.py"
    bill.write_text(BILL)
    async with on_stage(project) as stage:
        await reviewing(stage)
        bill.write_text(AFTER)
        store = stage.session.hunks
        await stage.until(lambda: len(store.undecided()) == 2, "two hunks")
        first, second = store.undecided()
        await stage.press("]", "r")
        await stage.until(lambda: first.postponed is not None, "a mark")
        await stage.until(lambda: "(press P)" in stage.notice, "the key that does it now")
        assert stage.screen.panes.pane.hunk is second, "the next one that needs a decision"
        await stage.press("K")
        await stage.until(lambda: "will be put back" in " ".join(stage.rows), "the mark")
        assert bill.read_text() == AFTER
        await stage.press("P")
        await stage.until(lambda: "1 hunk put back" in stage.notice, "said")
        assert bill.read_text() == AFTER.replace("price + 2", "cost + 2")


async def test_a_file_that_is_gone_is_called_deleted(project: Path) -> None:
    bill = project / "pkg" / "bill.py"
    bill.write_text("x = 1\n")
    async with on_stage(project) as stage:
        await reviewing(stage)
        bill.unlink()
        await stage.until(lambda: stage.session.hunks.undecided(), "a hunk")
        bar = stage.screen.query_one(FileBar)
        await stage.until(lambda: "Python · deleted" in bar.render().plain, "the row above it")
        await stage.until(lambda: "pkg/bill.py  the whole file" in stage.title, "no lines")
        await stage.press("a")
        await stage.until(lambda: not stage.session.hunks.undecided(), "kept")
        assert "Python · deleted" in bar.render().plain


@pytest.mark.parametrize("begun", ["", "why"])
async def test_a_review_that_was_begun_is_decided_at_once(project: Path, begun: str) -> None:
    bill = project / "pkg" / "bill.py"
    bill.write_text(BILL)
    async with on_stage(project, review=True) as stage:
        await stage.until(lambda: stage.session.external.watching == "native", "watching")
        await stage.until(lambda: stage.session.review.on, "a review")
        welcome = stage.screen.query_one(Welcome)
        await stage.until(lambda: "hunks, to keep" in welcome.render().plain, "what it is for")
        if begun:
            await stage.press(*begun)
        bill.write_text(AFTER)
        store = stage.session.hunks
        await stage.until(lambda: len(store.undecided()) == 2, "two hunks")
        await stage.until(lambda: stage.pane.undecided_hunk is not None, "the first is shown")
        if begun:
            await stage.press("a")
            assert stage.composer.text == "whya", "a text goes on"
            assert len(store.undecided()) == 2
        else:
            await stage.press("a")
            await stage.until(lambda: len(store.undecided()) == 1, "kept by a key")


@pytest.mark.system
async def test_a_new_review_offers_the_session_in_which_hunks_were_kept(project: Path) -> None:
    bill = project / "pkg" / "bill.py"
    bill.write_text(BILL)
    make_repo(project)
    bill.write_text(AFTER)
    settings = Settings(attention=False)
    async with on_stage(project, settings=settings, review=True) as stage:
        await stage.until(lambda: stage.pane.undecided_hunk is not None, "the first is shown")
        await stage.press("a")
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 1, "kept")
        assert stage.choices == ()
    async with on_stage(project, settings=settings, review=True) as stage:
        await stage.until(lambda: stage.choices, "the offer")
        assert "1 of these 2 hunks was kept in the session of today" in stage.notice
        assert len(stage.session.hunks.undecided()) == 2
        await stage.press("1")
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 1, "as it was left")
        await stage.press("a")
        await stage.until(lambda: not stage.session.hunks.undecided(), "it goes on there")


async def test_a_review_begins_at_a_change_of_the_first_line(project: Path) -> None:
    bill = project / "pkg" / "bill.py"
    bill.write_text("one\ntwo\nthree\n")
    async with on_stage(project, review=True) as stage:
        await stage.until(lambda: stage.session.external.watching == "native", "watching")
        await stage.until(lambda: stage.session.review.on, "a review")
        bill.write_text("ONE\ntwo\nTHREE\n")
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 2, "two hunks")
        await stage.until(lambda: stage.pane.undecided_hunk is not None, "a hunk")
        await stage.pilot.pause(0.2)
        hunk = stage.pane.undecided_hunk
        assert hunk is not None
        assert hunk.new == ("ONE",)


async def test_a_binary_file_is_not_edited_here(project: Path) -> None:
    logo = project / "logo.png"
    logo.write_bytes(b"\x89PNG\0one")
    (project / "pkg" / "bill.py").write_text(BILL)
    async with on_stage(project) as stage:
        await reviewing(stage)
        await stage.open("notes.md")
        logo.write_bytes(b"\x89PNG\0two")
        await stage.until(lambda: stage.session.hunks.undecided(), "a hunk")
        await stage.press("]", "e")
        await stage.until(lambda: stage.notice == "logo.png can only be decided as a whole.", "why")
        assert stage.app.screen is stage.screen


async def test_lines_that_were_put_back_have_their_own_colours(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put_backs, "QUIET_S", 0.0)
    bill = project / "pkg" / "bill.py"
    bill.write_text(BILL)
    async with on_stage(project) as stage:
        await reviewing(stage)
        bill.write_text(
            BILL.replace("def bill_0(row):\n    return row.cost", "def b(row, n=1):\n    pass")
        )
        await stage.until(lambda: stage.session.hunks.undecided(), "a hunk")
        await stage.press("g", "r")
        await stage.until(lambda: bill.read_text() == BILL, "put back")
        view, syntax = stage.view, stage.pane.strips._syntax
        assert view is not None
        assert syntax is not None
        kept = lambda: [r for y in range(9) if (r := view.row(y)) and r.look is Look.KEPT]  # noqa: E731
        await stage.until(kept, "the old lines")
        own = LineLexer("bill.py", BILL.splitlines())
        own.advance(2)
        assert [syntax.spans(row) for row in kept()] == [own.spans(0), own.spans(1)]


@pytest.mark.system
async def test_a_new_file_and_a_deleted_one_take_the_full_width(project: Path) -> None:
    bill = project / "pkg" / "bill.py"
    bill.write_text(BILL)
    async with on_stage(project, size=(200, 40)) as stage:
        await reviewing(stage)
        bill.unlink()
        (project / "pkg" / "fresh.py").write_text("x = 1\n")
        (project / "pkg" / "things.py").write_text("y = 2\n")
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 3, "three hunks")
        for path, split in (("bill", False), ("fresh", False), ("things", True)):
            await stage.open(f"pkg/{path}.py")
            assert stage.view.split is split, path
        await stage.open("pkg/fresh.py")
        await stage.press("t")
        assert not stage.view.split
        assert "side by side, until you quit; this file has one side only" in stage.notice


async def test_a_moved_file_is_shown_and_decided_as_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put_backs, "QUIET_S", 0.0)
    bill, invoice = project / "pkg" / "bill.py", project / "pkg" / "invoice.py"
    bill.write_text(BILL)
    async with on_stage(project) as stage:
        await reviewing(stage)
        bill.unlink()
        invoice.write_text(AFTER)
        moves, store = stage.session.files.moves, stage.session.hunks
        await stage.until(lambda: len(store.undecided()) == 2, "two hunks")
        (shown,) = moves.shown(store.undecided())
        assert shown.path == "pkg/invoice.py"
        await stage.until(lambda: "moved to pkg/invoice.py" in " ".join(stage.rows), "said")
        await stage.open("pkg/invoice.py")
        await stage.until(lambda: "moved from pkg/bill.py" in " ".join(stage.rows), "said here")
        await stage.pilot.resize_terminal(60, 24)
        await stage.until(lambda: stage.screen.size.width == 60, "a smaller screen")
        await stage.until(lambda: stage.rows[0].endswith("  moved from pkg/bill.py"), "in short")
        await stage.press("]", "r")
        await stage.until(lambda: not store.undecided(), "both are put back")
        await stage.until(lambda: bill.exists() and not invoice.exists(), "on disk")
        assert bill.read_text() == BILL
        await stage.press("u")
        await stage.until(lambda: invoice.exists() and not bill.exists(), "undone")


async def test_a_permission_is_decided_by_keys(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put_backs, "QUIET_S", 0.0)
    bill = project / "pkg" / "bill.py"
    bill.write_text(BILL)
    async with on_stage(project) as stage:
        await reviewing(stage)
        bill.chmod(0o755)
        store = stage.session.hunks
        await stage.until(lambda: store.undecided(), "a row")
        await stage.until(lambda: "executable, content" in " ".join(stage.rows), "shown")
        await stage.press("]", "r")
        await stage.until(lambda: not bill.stat().st_mode & 0o100, "put back")
        await stage.press("u")
        await stage.until(lambda: bill.stat().st_mode & 0o100, "undone")
        await stage.press("]", "a")
        await stage.until(lambda: not store.undecided(), "kept")


async def test_old_lines_have_the_colours_of_their_own_text(project: Path) -> None:
    bill = project / "pkg" / "bill.py"
    old = BILL.replace("    return", "\treturn")
    bill.write_text(old)
    lexer = LineLexer("bill.py", old.splitlines())
    lexer.advance(len(lexer))
    async with on_stage(project) as stage:
        await reviewing(stage)
        longer = "    text = 'a longer line of other tokens'; return text + 'behind'"
        lines = old.splitlines(keepends=True)
        for at in (1, 13):
            lines[at] = f"{longer}\n"
        bill.write_text("".join(lines))
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 2, "two hunks")
        syntax, view = stage.screen.state.syntaxes["pkg/bill.py"], stage.view
        assert view is not None
        gone = [row for y in range(view.size) if (row := view.row(y)).look is Look.DELETED]
        await stage.until(lambda: all(syntax.is_ready(row) for row in gone), "tokens")
        assert [row.text for row in gone] == ["\treturn row.cost + 0", "\treturn row.cost + 3"]
        assert [syntax.spans(row) for row in gone] == [lexer.spans(1), lexer.spans(13)]
        assert any("return row.cost + 3" in row for row in stage.rows)


@pytest.mark.parametrize("target", ["things.py", "/"])
async def test_a_file_that_became_a_link_is_shown_and_put_back(
    project: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.setattr(put_backs, "QUIET_S", 0.0)
    bill = project / "pkg" / "bill.py"
    bill.write_text(BILL)
    make_repo(project)
    async with on_stage(project, review=True) as stage:
        await stage.until(lambda: stage.session.external.watching == "native", "watching")
        await stage.until(lambda: stage.session.review.on, "a review")
        bill.unlink()
        bill.symlink_to(target)
        await stage.until(lambda: stage.path == "pkg/bill.py", "shown")
        assert any(f"link to {target}" in row for row in stage.rows)
        stage.screen.set_focus(stage.pane)
        await stage.press("r")
        await stage.until(lambda: not bill.is_symlink(), "put back")
        assert bill.read_text() == BILL


async def test_what_others_write_in_quick_succession_is_shown_together(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock and the timer are those of the test."""
    screen, set_timer = stage.screen, stage.screen.set_timer
    now = time.perf_counter() + 60
    shown: list[float] = []
    waits: list[tuple[float, Callable[[], None]]] = []

    def wait(delay: float, callback: Callable[[], None]) -> Timer:
        waits.append((delay, callback))
        return set_timer(3600, callback)

    async def written(*paths: str) -> None:
        for path in paths:
            stage.session.status.emit(ExternalHunksAdded(path, ()))
        await stage.pilot.pause()

    monkeypatch.setattr(review_screen, "perf_counter", lambda: now)
    monkeypatch.setattr(screen, "set_timer", wait)
    monkeypatch.setattr(stage.pane, "sync", lambda: shown.append(now))
    await written("a.py", "b.py")
    assert (len(shown), waits) == (1, [])
    now += review_screen.FACTS_S / 2
    await written("c.py")
    await written("d.py", "e.py")
    assert len(shown) == 1
    ((delay, show),) = waits
    assert delay == pytest.approx(review_screen.FACTS_S / 2)
    now += delay
    show()
    assert len(shown) == 2
    now += review_screen.FACTS_S / 2
    await written("f.py")
    assert len(waits) == 2
    stage.session.status.warn("Something else has happened.")
    await stage.pilot.pause()
    assert len(shown) == 3, "all that waits is shown along with anything else"
    await written("g.py")
    assert len(waits) == 3, "the wait before that has ended"
    for path in ("h.py", "i.py"):
        stage.session.status.emit(FileChangedOnDisk(path))
    await stage.pilot.pause()
    assert len(shown) == 3
    waits[2][1]()
    assert stage.notice.startswith("2 files changed on disk")


async def test_the_view_stays_where_nothing_is_left_below(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put_backs, "QUIET_S", 0.0)
    bill = project / "pkg" / "bill.py"
    bill.write_text(BILL)
    async with on_stage(project) as stage:
        await reviewing(stage)
        bill.write_text(BILL.replace("cost + 0", "cost + 10").replace("cost + 11", "cost + 12"))
        store = stage.session.hunks
        await stage.until(lambda: len(store.undecided()) == 2, "two hunks")
        await stage.open("pkg/bill.py")
        stage.screen.set_focus(stage.pane)
        above, below = store.undecided()
        stage.pane.go_to(0)
        await stage.press("]", "]")
        await stage.until(lambda: stage.pane.hunk is below, "the last hunk")
        top = stage.pane.top
        await stage.press("r")
        await stage.until(lambda: store.undecided() == [above], "put back")
        assert stage.pane.hunk is below
        assert stage.pane.top == top
        assert stage.notice == "Undecided hunks are left above; [ goes there."
        await stage.press("[")
        await stage.until(lambda: stage.pane.hunk is above, "above")


async def test_what_is_held_back_on_disk_is_said_to_be_there(project: Path) -> None:
    bill = project / "pkg" / "bill.py"
    bill.write_text(BILL)
    async with on_stage(project) as stage:
        await reviewing(stage)
        bill.write_text(BILL.rstrip() + QUERY)
        store = stage.session.hunks
        await stage.until(lambda: any(hunk.held_on_disk for hunk in store), "held back")
        await stage.open("pkg/bill.py")
        stage.screen.set_focus(stage.pane)
        stage.pane.go_to(0)
        await stage.press("]")
        await stage.until(lambda: "r puts it back, L lets you keep it." in stage.notice, "said")
        assert stage.notice.startswith("On disk already, but held back: ")
        assert "on disk, held back (S608)" in " ".join(stage.rows)
        assert "L let me keep it" in stage.keys
        await stage.press("L")
        await stage.until(lambda: stage.screen.panes.release.is_open, "the field")
        assert not stage.notice, "its keys are characters now"


async def test_what_is_said_of_a_hunk_comes_and_goes_with_it(project: Path) -> None:
    bill = project / "pkg" / "bill.py"
    bill.write_text(BILL)
    async with on_stage(project) as stage:
        await reviewing(stage)
        bill.write_text(AFTER.rstrip() + QUERY)
        store = stage.session.hunks
        await stage.until(lambda: any(hunk.held_on_disk for hunk in store), "held back")
        *_, held = store.waiting("pkg/bill.py")
        assert held.held_on_disk
        stage.screen.set_focus(stage.pane)
        stage.pane.go_to(0)
        await stage.press("]", "]", "]")
        await stage.until(lambda: "On disk already, but held back" in stage.notice, "said")
        await stage.press("[")
        await stage.until(lambda: stage.pane.hunk is not held, "the hunk above")
        assert not stage.notice
        await stage.press("a")
        await stage.until(lambda: stage.pane.hunk is held, "the decision leads there")
        assert "On disk already, but held back" in stage.notice


async def test_what_was_put_back_keeps_its_word_beside_an_own_change(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put_backs, "QUIET_S", 0.0)
    bill = project / "pkg" / "bill.py"
    bill.write_text(BILL)
    async with on_stage(project) as stage:
        await reviewing(stage)
        bill.write_text(BILL.replace("cost + 11", "cost + 12"))
        store = stage.session.hunks
        await stage.until(lambda: store.undecided(), "a hunk")
        await stage.open("pkg/bill.py")
        stage.screen.set_focus(stage.pane)
        assert await stage.session.decisions.reject(store.undecided()[0].id)
        stage.pane.go_to(0)
        await stage.instruct("rename row to entry")
        stage.model.give("def bill_0(entry):\n    return entry.cost + 0\n")
        stage.model.end()
        await stage.until(lambda: store.undecided(), "a hunk of the model")
        assert await stage.session.decisions.accept(store.undecided()[0].id)
        bar = stage.screen.query_one(FileBar)
        await stage.until(lambda: "1 put back · 1 accepted" in bar.render().plain, "the words")
