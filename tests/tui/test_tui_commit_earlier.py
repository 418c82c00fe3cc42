"""The commit page after a restart: what an earlier session accepted is not lost from sight."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from midstream.pairing.files.commit import EarlierChanges
from midstream.settings import Settings
from tests.helpers.pages import (
    accepted,
    answered,
    at_the_files,
    git,
    hints,
    rows,
    shown,
)
from tests.helpers.stage import on_stage

KEPT = Settings(attention=False)
PATH = "pkg/things.py"


async def a_session(repo: Path, count: int) -> None:
    async with on_stage(repo, settings=KEPT) as stage:
        await answered(stage)
        await accepted(stage, count)


@pytest.mark.system
async def test_what_an_earlier_session_accepted_is_staged_and_committed_here(
    repo: Path, state: Path
) -> None:
    await a_session(repo, 1)
    file = repo / PATH
    file.write_text(file.read_text() + "\n# mine\n")
    (repo / "notes.md").write_text("# Mine, too\n")
    before = file.read_bytes()
    async with on_stage(repo, settings=KEPT) as stage:
        screen = await at_the_files(stage)
        assert len([row for row in rows(screen) if "[" in row]) == 1
        assert rows(screen)[0].strip() == "Accepted in an earlier session"
        assert rows(screen)[1].split() == ["▸", "[", "]", PATH, "+1", "-1", "not", "staged"]
        assert "accepted in an earlier session" in shown(screen, "change")
        assert "2 other changed lines stay out" in shown(screen, "change")
        assert screen.message.text == ""
        for wanted in ("staged", "unstaged", "staged"):
            await stage.press("space")
            await stage.until(lambda: screen.changes.files[0].state == wanted, wanted)  # noqa: B023
        staged = git(repo, "diff", "--cached")
        assert "+    found = 0" in staged
        assert "found += 1" not in staged
        assert "ine" not in "".join(line for line in staged.splitlines() if line[:1] in "+-")
        await stage.press("i", "x", "ctrl+s")
        await stage.until(lambda: stage.app.screen is stage.screen, "back")
        assert file.read_bytes() == before
        screen = await at_the_files(stage)
        assert screen.changes is not None
        assert screen.changes.files == ()
        assert hints(screen)[0] == "i message"


async def test_two_sessions_of_one_file_and_what_is_committed(repo: Path, state: Path) -> None:
    await a_session(repo, 1)
    async with on_stage(repo, settings=KEPT) as stage:
        await answered(stage)  # the other half of the same change
        await accepted(stage, 9)
    (first, after), *rest = await found(repo)
    assert not rest
    assert "\n".join(first).count("found") == 0
    assert "\n".join(after).count("found") == 4
    git(repo, "commit", "-q", "-am", "x")
    assert await found(repo) == []
    # Beside the committed lines, the person adds one: nothing was accepted there.
    file = repo / PATH
    file.write_text(file.read_text().replace("found = 0\n", "found = 0\n    mine = 1\n"))
    assert await found(repo) == []


async def test_a_file_that_git_does_not_have_is_the_persons(repo: Path, state: Path) -> None:
    git(repo, "rm", "-q", "--cached", PATH)
    git(repo, "commit", "-q", "-m", "without")
    await a_session(repo, 2)
    assert await found(repo) == []


async def test_what_was_taken_back_or_made_by_hand_does_not_count(repo: Path, state: Path) -> None:
    file = repo / PATH
    original = file.read_text()
    await a_session(repo, 1)
    file.write_text(original)
    assert await found(repo) == []
    async with on_stage(repo, settings=KEPT) as stage:
        await answered(stage)
        waiting = stage.session.hunks.undecided(PATH)
        assert waiting
    file.write_text(original.replace("total += 1", "found += 1"))
    assert await found(repo) == []


async def found(repo: Path) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    changes = EarlierChanges(repo)
    await asyncio.to_thread(changes.look, ())
    texts = [changes.texts(path) for path in changes.paths]
    return [(text[0].lines, text[1].lines) for text in texts if text is not None]
