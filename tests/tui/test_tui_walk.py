"""Walking through a change by keys: its page, its order, and groups that are decided at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.edits.hunks import HunkState
from midstream.pairing.files import put_backs
from midstream.settings import Settings
from midstream.tui.pages.walk import WalkScreen
from midstream.workspace.journal import Journal
from tests.helpers.pages import hints, page, rows, shown
from tests.helpers.stage import Stage, on_stage

FILES = {
    "a.py": "def total(x):\n    return x\n",
    **{f"use{n}.py": f"import a\n\nprint({n}, a.total({n}) > 0)\n" for n in range(4)},
    "z.py": "def check(user):\n    if not user:\n        raise ValueError\n    return user\n",
}
AFTER = {path: text.replace("total", "amount") for path, text in FILES.items()} | {
    "use2.py": FILES["use2.py"].replace("total", "amount").replace(">", ">="),
    "z.py": "def check(user):\n    return user\n",
}


async def changed(stage: Stage, project: Path) -> None:
    """Start a review, let another program rename a function, and wait for the walk."""
    await stage.until(lambda: stage.session.external.watching == "native", "watching")
    await stage.open("notes.md")
    await stage.press("V")
    await stage.until(lambda: stage.session.review.begun, "a review")
    for path, text in AFTER.items():
        (project / path).write_text(text)
    walk = stage.session.walk
    await stage.until(lambda: len(walk.walk.evidence) == 6 and not walk.busy, "the walk")


@pytest.fixture
def folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(put_backs, "QUIET_S", 0.0)
    for path, text in FILES.items():
        (project / path).write_text(text)
    return project


async def test_without_hunks_the_page_says_what_it_is_for(folder: Path) -> None:
    async with on_stage(folder) as stage:
        screen = await page(stage, "equals_sign", WalkScreen)
        assert rows(screen) == []
        assert screen.detail.region.x == 0, "the words take the place of the rows"
        assert "Nothing to walk through yet." in shown(screen, "about")
        assert "decided at once" in shown(screen, "about")
        assert "(V on the main screen)" in " ".join(shown(screen, "about").split())
        assert hints(screen) == ["esc back", "? keys"]


async def test_the_page_lists_what_is_decided_one_by_one_and_at_once(folder: Path) -> None:
    async with on_stage(folder, settings=Settings(journal=False)) as stage:
        await changed(stage, folder)
        screen = await page(stage, "equals_sign", WalkScreen)
        assert [" ".join(row.split()) for row in rows(screen)] == [
            "one by one",
            "▸ differs from its group 1 hunk, 1 file 1 left",
            "takes behaviour away 1 hunk, 1 file 1 left",
            "at once, after one was read",
            "renamed: `total` → `amount` 4 hunks, 4 files 4 left",
        ]
        assert "use2.py:3" in shown(screen, "about")
        assert "and also adds `=`" in shown(screen, "about")
        assert "keep group" not in hints(screen)
        await stage.press("j", "j")
        assert "a keep group" in hints(screen)
        assert "- def total(x):" in shown(screen, "about")
        await stage.press("a")
        await stage.until(
            lambda: "Read one of them first" in str(screen.notice.render()), "a refusal"
        )
        assert len(stage.session.hunks.undecided()) == 6
        await stage.press("enter")
        await stage.until(lambda: stage.pane.hunk is not None, "the example")
        assert stage.pane.hunk.path == "a.py"


async def test_the_walk_goes_from_risk_to_routine_and_a_key_decides_a_group(
    folder: Path,
) -> None:
    async with on_stage(folder) as stage:
        await changed(stage, folder)
        await stage.press("backslash")
        assert "follows the walk" in stage.notice
        seen: list[str] = []
        for _ in range(3):
            await stage.press("]")
            path = stage.screen.state.path
            seen.append(path)
        assert seen == ["use2.py", "z.py", "a.py"]
        await stage.press("plus")
        hunks = stage.session.hunks
        await stage.until(lambda: len(hunks.undecided()) == 2, "a decided group")
        await stage.until(lambda: "4 hunks kept" in stage.notice, "what was done")
        await stage.press("u")
        await stage.until(lambda: len(hunks.undecided()) == 6, "undone as one")
        await stage.until(lambda: stage.screen.state.path != "z.py", "a place")
        await stage.press("minus")
        await stage.until(lambda: len(hunks.undecided()) == 2, "put back")
        await stage.until(lambda: (folder / "a.py").read_text() == FILES["a.py"], "the file")
        await stage.press("backslash")
        await stage.until(lambda: "follows the files" in stage.notice, "the order")


async def test_a_group_that_is_put_back_later_is_not_called_put_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put_backs, "QUIET_S", 600.0)
    async with on_stage(folder) as stage:
        await changed(stage, folder)
        stage.session.attention.on = False  # as if all were read
        await stage.open("a.py")
        await stage.press("]", "minus")
        await stage.until(lambda: len(stage.session.hunks.postponed()) == 4, "marks")
        await stage.until(lambda: "4 hunks will be put back when" in stage.notice, "when")
        assert (folder / "a.py").read_text() == AFTER["a.py"]


async def test_what_was_kept_unread_stands_out_on_the_page(folder: Path) -> None:
    async with on_stage(folder, settings=Settings(journal=False)) as stage:
        await changed(stage, folder)
        (hunk,) = (hunk for hunk in stage.session.hunks if hunk.path == "z.py")
        await stage.session.decisions.accept_all([hunk.id])
        screen = await page(stage, "equals_sign", WalkScreen)
        (row,) = (row for row in rows(screen) if "kept unread" in row)
        assert row.split() == ["kept", "unread", "1", "hunk,", "1", "file"]


async def test_a_hunk_without_a_group_has_nothing_to_decide_at_once(folder: Path) -> None:
    async with on_stage(folder) as stage:
        await changed(stage, folder)
        await stage.open("z.py")
        await stage.press("]", "plus")
        assert "No other hunk is proven to be the same" in stage.notice


async def test_a_resumed_review_goes_on_at_the_hunk_it_stopped_at(
    folder: Path, state: Path
) -> None:
    async with on_stage(folder, settings=Settings()) as stage:
        await changed(stage, folder)
        walk = stage.session.walk
        walk.on = True
        for _ in range(3):
            before = stage.pane.hunk
            await stage.press("]")
            await stage.until(lambda before=before: stage.pane.hunk is not before, "the next")
        hunk = stage.pane.hunk
        assert hunk is not None
        assert hunk.id == walk.order[2]
        stage.app.review._on_screen.sample()
    journal = Journal.latest(state, folder)
    async with on_stage(folder, settings=Settings(), resume=journal) as stage:
        await stage.until(lambda: stage.pane.hunk is not None, "the hunk")
        assert stage.pane.hunk is stage.session.hunks.get(hunk.id)
        assert stage.session.walk.on


async def test_a_resumed_review_goes_on_at_a_held_back_hunk(folder: Path, state: Path) -> None:
    async with on_stage(folder, settings=Settings()) as stage:
        await changed(stage, folder)
        (folder / "z.py").write_text("import os\n\n\ndef run(words):\n    os.system(words)\n")
        waiting = stage.session.hunks.waiting
        await stage.until(lambda: any(h.state is HunkState.HELD for h in waiting()), "held back")
        for hunk in stage.session.hunks.undecided():
            assert await stage.session.decisions.accept(hunk.id)
        [held] = waiting()
        stage.app.review.navigate.go_to_hunk(held)
        await stage.until(lambda: stage.pane.hunk is held, "the hunk")
        stage.app.review._on_screen.resume()
        stage.app.review._on_screen.sample()
    journal = Journal.latest(state, folder)
    async with on_stage(folder, settings=Settings(), resume=journal) as stage:
        await stage.until(lambda: stage.pane.hunk is not None, "the hunk")
        assert stage.pane.hunk is stage.session.hunks.get(held.id)


async def test_a_model_titles_groups_when_asked_and_decides_nothing(folder: Path) -> None:
    chat = {"prompt": "chat", "languages": ""}
    async with on_stage(folder, settings=Settings(journal=False), facts=chat) as stage:
        await changed(stage, folder)
        screen = await page(stage, "equals_sign", WalkScreen)
        before, asked = rows(screen), len(stage.model.requests)
        stage.model.give("1: Call the **total** an amount\n7: No such group\n")
        stage.model.end()
        await stage.press("t")
        await stage.until(lambda: len(rows(screen)) > len(before), "a title")
        assert len(stage.model.requests) == asked + 1
        assert "def amount(x):" in stage.model.request.messages[-1].text
        added = [row for row in rows(screen) if row not in before]
        assert [" ".join(row.split()) for row in added] == [
            "the model: “Call the **total** an amount”"
        ]
        assert [row for row in rows(screen) if row not in added] == before
        assert len(stage.session.hunks.undecided()) == 6
        await stage.press("t")
        await stage.until(lambda: "Every group" in str(screen.notice.render()), "a sentence")
        assert len(stage.model.requests) == asked + 1


async def test_a_model_that_rewrites_code_is_not_asked_for_titles(folder: Path) -> None:
    async with on_stage(folder, settings=Settings(journal=False)) as stage:
        await changed(stage, folder)
        screen = await page(stage, "equals_sign", WalkScreen)
        await stage.press("t")
        await stage.until(
            lambda: "answers no questions" in str(screen.notice.render()), "a refusal"
        )
        assert not stage.model.requests
