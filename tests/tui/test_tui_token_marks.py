"""Marks within a hunk: by token or by line, on rows that stay the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.geometry import Region

from midstream.edits.documents import SourceText
from midstream.edits.hunk_store import HunkStore
from midstream.edits.proposal import FileProposal
from midstream.resources import themes_dir
from midstream.tui.diff import syntax as diff_syntax
from midstream.tui.diff.painter import RowPainter
from midstream.tui.diff.strips import RowStrips
from midstream.tui.diff.syntax import FileSyntax
from midstream.tui.diff.view import FileView
from midstream.tui.glyphs import UNICODE
from midstream.tui.themes import load_themes
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


def test_a_hunk_far_down_is_compared_by_token_once_the_lines_above_are_lexed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(diff_syntax, "PAINT_BUDGET_S", 0.0)
    above = "".join(f"line_{n} = {n}\n" for n in range(1_000))
    hunks = HunkStore()
    proposal = FileProposal("bill.py", SourceText.from_text(above + BEFORE), hunks)
    proposal.begin(1_000, 1_003)
    proposal.feed(AFTER)
    proposal.finish()
    view = FileView(proposal, hunks)
    view.refresh()
    syntax = FileSyntax(view)
    strips = RowStrips(view, syntax)
    syntax.sync()
    strips.by_tokens = True
    palette = load_themes(themes_dir(), Path("none"))[0]["midnight"]
    strips.painter = RowPainter(palette, UNICODE, 100, 4, focused=True)

    def marked() -> list[str]:
        syntax.begin_frame()
        found: list[str] = []
        strips.unlexed = False
        for y in range(1_000, view.size):
            strips.of(y, cursor=False, selected=False)
            row = view.row(y)
            assert row is not None
            found += [row.text[start:stop] for start, stop in strips.changed_words(row)]
        return found

    assert marked() == []
    assert strips.unlexed
    early = [strips.of(y, cursor=False, selected=False) for y in range(1_000, view.size)]
    while syntax.advance(len(proposal.base.lines)):
        pass
    assert marked() == ["first", "second,"]
    assert not strips.unlexed
    late = [strips.of(y, cursor=False, selected=False) for y in range(1_000, view.size)]
    assert [a != b for a, b in zip(early, late, strict=True)].count(True) >= 2


def test_hunks_that_a_blank_line_divides_are_compared_together() -> None:
    before = "def bill(row):\n    total = work(row)\n\n    return total\n"
    after = "def bill(row):\n    if row:\n        total = work(row)\n\n        return total\n"
    hunks = HunkStore()
    proposal = FileProposal("bill.py", SourceText.from_text(before), hunks)
    proposal.begin(0, 4)
    proposal.feed(after)
    proposal.finish()
    first, second = hunks.for_path("bill.py")
    view = FileView(proposal, hunks)
    view.refresh()
    syntax = FileSyntax(view)
    strips = RowStrips(view, syntax)
    syntax.sync()
    while syntax.advance(4):
        pass
    strips.by_tokens = True

    def marked() -> dict[int, list[str]]:
        syntax.begin_frame()
        found: dict[int, list[str]] = {first.id: [], second.id: []}
        for row in filter(None, map(view.row, range(view.size))):
            if row.hunk is not None:
                spans = strips.changed_words(row)
                found[row.hunk.id] += [row.text[start:stop] for start, stop in spans]
        return found

    assert marked() == {first.id: ["    if row:"], second.id: []}
    # Once the block around it is rejected, the change is one of indentation.
    hunks.reject(first.id)
    view.refresh()
    assert marked()[second.id] == ["    ", "        "]
