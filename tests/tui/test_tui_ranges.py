"""A range of commits on the screen: what can be done with it, and nothing else, is offered."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.actions import BY_ID, WRITING
from midstream.pairing.leaving import summary
from midstream.tui.pages.help import HelpScreen
from midstream.tui.pages.picker import PickerScreen
from midstream.tui.widgets.row_list import RowList
from midstream.words import in_review
from midstream.workspace.snapshot import Snapshot, find_range
from tests.helpers.pairing import git, make_repo
from tests.helpers.stage import on_stage


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_repo(tmp_path / "work", {"a.py": "one = 1\ntwo = 2\n"})
    git(root, "checkout", "-q", "-b", "topic")
    (root / "a.py").write_text("one = 1\ntwo = 22\n")
    git(root, "commit", "-qam", "x")
    git(root, "checkout", "-q", "-")
    return root


@pytest.mark.parametrize("prompt", ["edit-1", ""])
async def test_a_range_offers_questions_at_most(prompt: str, root: Path) -> None:
    with Snapshot(root, find_range(root, "main..topic")) as snapshot:
        async with on_stage(
            snapshot.root, snapshot=snapshot, review=True, facts={"prompt": prompt}
        ) as stage:
            await stage.until(lambda: stage.pane.undecided_hunk, "its hunk")
            await stage.until(lambda: "a keep" in stage.keys, "its keys")
            assert not [row for row in stage.rows if "on disk" in row], "main has none of it"
            assert "i instruct" not in stage.keys
            assert ("i ask" in stage.keys) == (not prompt)
            await stage.press("i")
            if prompt:
                await stage.until(lambda: "read-only" in stage.notice, "why not")
                assert not stage.composer.has_focus_within
            else:
                await stage.until(lambda: stage.composer.text == "? ", "a question")


async def test_what_a_range_refuses_is_refused_before_anything_is_typed(root: Path) -> None:
    with Snapshot(root, find_range(root, "main..topic")) as snapshot:
        async with on_stage(snapshot.root, snapshot=snapshot, review=True) as stage:
            await stage.until(lambda: "a keep" in stage.keys, "its keys")
            main = stage.app.screen
            for key in "reXcECS-":
                await stage.press("escape")
                await stage.until(lambda: "read-only" not in stage.notice, "no notice")
                await stage.press("minus" if key == "-" else key)
                await stage.until(lambda: "read-only" in stage.notice, key)
                assert stage.app.screen is main
                assert "a keep" in stage.keys


async def test_help_and_palette_leave_out_what_a_range_refuses(root: Path) -> None:
    with Snapshot(root, find_range(root, "main..topic")) as snapshot:
        async with on_stage(snapshot.root, snapshot=snapshot, review=True) as stage:
            await stage.until(lambda: "a keep" in stage.keys, "its keys")
            await stage.press("question_mark")
            await stage.until(lambda: isinstance(stage.app.screen, HelpScreen), "help")
            topics = stage.app.screen.topics  # type: ignore[attr-defined]
            helped = {words for topic in topics for _, words, _ in topic.rows}
            await stage.press("escape", "colon")
            await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "palette")
            found = {row.value for row in stage.app.screen.query_one(RowList).rows}
            assert in_review(BY_ID["hunk.accept"].help) in helped
            assert "hunk.accept" in found
            assert not {in_review(BY_ID[each].help) for each in WRITING} & helped
            assert not WRITING & found


async def test_the_users_folder_is_named_and_commits_of_the_old_side(root: Path) -> None:
    (root / "b.py").write_text("three = 3\n")
    git(root, "add", "b.py")
    git(root, "commit", "-qm", "y")
    with Snapshot(root, find_range(root, "main..topic")) as snapshot:
        async with on_stage(snapshot.root, snapshot=snapshot, review=True, size=(140, 30)) as stage:
            await stage.until(lambda: "main...topic leaves it out" in stage.notice, "the note")
            assert stage.app.users_folder == root
            assert snapshot.root not in [root, stage.app.users_folder]
            for hunk in list(stage.session.hunks.undecided()):
                assert await stage.session.decisions.accept(hunk.id)
            said = list(summary(stage.session, snapshot.command))
            assert not [line for line in said if "committed" in line]
