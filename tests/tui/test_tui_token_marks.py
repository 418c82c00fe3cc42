"""Marks within a hunk: by token or by line, on rows that stay the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual.geometry import Region

from tests.helpers.stage import Stage, on_stage

ROWS = 22
"""Lines of the file, with the hunk."""
WRAPPED = "    print(\n        total,\n        file=sys.stderr,\n    )\n"


BEFORE = "def bill(row):\n    total = work(row, first)\n    return total\n"
AFTER = BEFORE.replace("(row, first)", "(\n        row,\n        second,\n    )")


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


def test_lines_that_are_on_disk_already_are_compared_by_token(project: Path) -> None:
    bill = project / "pkg" / "bill.py"
    bill.write_text(BEFORE)

    async def scene() -> None:
        async with on_stage(project) as stage:
            await stage.until(lambda: stage.session.external.watching == "native", "watching")
            await stage.open("pkg/bill.py")
            await stage.press("V")
            await stage.until(lambda: stage.session.review.on, "a review")
            bill.write_text(AFTER)
            await stage.until(stage.session.hunks.undecided, "a hunk")
            await stage.press("g", "Z")
            assert "tokens" in stage.notice
            view, pane = stage.view, stage.pane
            assert view is not None
            marked: list[str] = []
            for y in range(view.size):
                row = view.row(y)
                assert row is not None
                spans = pane.strips.changed_words(row)
                marked += [row.text[start:stop] for start, stop in spans]
            assert marked == ["first", "second,"]

    asyncio.run(scene())
