"""Marks within a hunk: by token or by line, on rows that stay the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual.geometry import Region

from tests.helpers.stage import Stage, on_stage

ROWS = 22
"""Lines of the file, with the hunk."""
WRAPPED = "    print(\n        total,\n        file=sys.stderr,\n    )\n"


def painted(stage: Stage) -> tuple[list[str], list[list[tuple[str, str]]]]:
    """The rows' texts, and their parts with their styles."""
    # A notice takes a row below.
    strips = stage.pane.render_lines(Region(0, 0, stage.pane.size.width, ROWS))
    parts = [[(part.text, str(part.style)) for part in strip] for strip in strips]
    return [strip.text for strip in strips], parts


def test_a_key_changes_the_marks_and_nothing_else(project: Path) -> None:
    async def scene() -> None:
        async with on_stage(project) as stage:
            await stage.open("pkg/things.py")
            for _ in range(11):
                await stage.press("j")
            await stage.press("v")
            await stage.instruct("wrap it")
            assert "print(" in stage.model.region
            stage.model.give(WRAPPED)
            stage.model.end()
            await stage.until(
                lambda: stage.session.hunks.undecided() and not stage.session.turns.busy
            )
            await stage.press("G")
            await stage.until(lambda: not stage.pane.strips.unlexed)
            texts, plain = painted(stage)
            (hunk,) = stage.session.hunks.undecided()
            lines = hunk.old, hunk.new
            await stage.press("Z")
            assert "tokens" in stage.notice
            again, tokens = painted(stage)
            assert again == texts
            assert tokens != plain
            assert (hunk.old, hunk.new) == lines
            await stage.press("Z")
            assert painted(stage) == (texts, plain)

    asyncio.run(scene())
