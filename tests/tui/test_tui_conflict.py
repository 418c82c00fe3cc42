"""A hunk whose lines a save has changed: the screen finds it, and names the way out."""

from __future__ import annotations

from pathlib import Path

from midstream.edits.hunks import HunkState
from midstream.settings import Settings
from tests.helpers.stage import CODE, Stage, on_stage


async def in_conflict(stage: Stage, project: Path) -> str:
    """An answer whose line was saved otherwise; what the file has then."""
    await stage.open("pkg/things.py")
    await stage.instruct("rename total in count")
    body = CODE[CODE.index("def count") : CODE.index("\n\n\ndef double") + 1]
    stage.model.give(body.replace("    total = 0\n", "    sum = 0\n"))
    stage.model.give(None)
    await stage.until(
        lambda: stage.session.status.state == "ready" and stage.session.turns.last, "end"
    )
    users = CODE.replace("total = 0", "total = 0.0", 1)
    (project / "pkg" / "things.py").write_text(users)
    await stage.session.external.refresh()
    assert HunkState.CONFLICT in [hunk.state for hunk in stage.session.hunks if hunk.live]
    return users


async def test_a_hunk_in_conflict_says_so_at_every_key(project: Path) -> None:
    async with on_stage(project, settings=Settings(journal=False)) as stage:
        await in_conflict(stage, project)
        await stage.press("escape")
        for key in ("]", "a", "A", "e"):
            stage.screen.notices.clear()
            await stage.press(key)
            assert stage.pane.hunk is not None
            assert stage.pane.hunk.state is HunkState.CONFLICT
            if key != "A":
                assert "sk for the edit again" in stage.notice, key
                assert "dismiss" in stage.notice, key


async def test_a_hunk_in_conflict_is_put_away_and_brought_back(project: Path) -> None:
    async with on_stage(project, settings=Settings(journal=False)) as stage:
        users = await in_conflict(stage, project)
        await stage.press("escape", "]")
        shown = [row for row in stage.rows if row.strip()]
        assert any("sum = 0" in row for row in shown)
        await stage.press("r")
        await stage.until(lambda: "Dismissed" in stage.notice, "word")
        assert stage.notice == "Dismissed; the file is unchanged. u brings the hunk back."
        await stage.until(lambda: not any("sum = 0" in row for row in stage.rows), "gone")
        assert any("total = 0.0" in row for row in stage.rows)
        await stage.press("u")
        await stage.until(lambda: [row for row in stage.rows if row.strip()] == shown, "back")
        assert stage.pane.hunk is not None
        assert stage.pane.hunk.state is HunkState.CONFLICT
        assert (project / "pkg" / "things.py").read_text() == users
        assert {"r dismiss", "! why"} <= set(stage.keys)
