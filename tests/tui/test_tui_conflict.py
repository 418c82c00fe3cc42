"""A hunk whose lines were saved otherwise meanwhile: it is found, and said what it waits for."""

from __future__ import annotations

from pathlib import Path

from tui_support import CODE, on_stage

from midstream.edits.hunks import HunkState
from midstream.settings import Settings


async def test_a_hunk_in_conflict_says_so_at_every_key(project: Path) -> None:
    async with on_stage(project, settings=Settings(journal=False)) as stage:
        await stage.open("pkg/things.py")
        await stage.instruct("rename total in count")
        body = CODE[CODE.index("def count") : CODE.index("\n\n\ndef double") + 1]
        stage.model.give(body.replace("    total = 0\n", "    sum = 0\n"))
        stage.model.give(None)
        await stage.until(lambda: stage.session.state == "ready" and stage.session.turn, "end")
        (project / "pkg" / "things.py").write_text(CODE.replace("total = 0", "total = 0.0", 1))
        await stage.session.refresh()
        states = [hunk.state for hunk in stage.session.hunks if hunk.live]
        assert HunkState.CONFLICT in states
        await stage.press("escape")
        for key in ("]", "a", "r"):
            stage.screen.hush()
            await stage.press(key)
            assert stage.screen.hunk is not None
            assert stage.screen.hunk.state is HunkState.CONFLICT
            assert "ask for the edit again" in stage.notice, key
