"""The tokens of the rows on screen: one lexer for the base, one for each text that streams in."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Final

from midstream.code.lexing import LineLexer, Span
from midstream.edits.hunks import Hunk
from midstream.edits.rows import Row, RowKind
from midstream.edits.structure import LexedLine
from midstream.tui.diff.view import FileView, Look, SegmentRuns, ViewRow

PAINT_BUDGET_S: Final = 0.006
"""How long one paint may lex ahead to colour the rows it shows."""
IDLE_BUDGET_S: Final = 0.002
"""How long one idle step lexes ahead."""
AHEAD: Final = 5_000
"""Lines below the window that are lexed while nothing else is to do."""
_NEAR: Final = 400
"""Lines that are lexed at once to compare the tokens of a hunk."""
_STEP: Final = 16
"""Lines between two looks at the clock."""


def advance_for(lexer: LineLexer, stop: int, seconds: float) -> bool:
    """Lex towards line ``stop`` for about some seconds; says whether it was reached."""
    deadline = perf_counter() + seconds
    while not lexer.advance(stop, limit=_STEP):
        if perf_counter() > deadline:
            return False
    return True


class FileSyntax:
    """Lexers of one file and its segments."""

    def __init__(self, view: FileView) -> None:
        self._view = view
        self._base_text = view.proposal.base
        self._base = LineLexer(view.proposal.path, self._base_text.lines)
        self._until = 0.0
        """When this frame has spent its time on lexing."""
        self._streams: dict[int, tuple[SegmentRuns, LineLexer, int]] = {}
        # The number counts base lines above the segment that its lexer had to begin with.
        self._gone: dict[int, tuple[tuple[str, ...], LineLexer, int]] = {}
        """Old lines of hunks that the base does not have, with lines above as in ``_streams``."""

    def begin_frame(self) -> None:
        """A frame is to be painted: its rows share one budget."""
        self._until = perf_counter() + PAINT_BUDGET_S

    def sync(self) -> None:
        """Take in what has streamed in since the last time."""
        view = self._view
        if view.proposal.base is not self._base_text:
            self._base_text = view.proposal.base
            self._base = LineLexer(view.proposal.path, self._base_text.lines)
            self._streams.clear()
            self._gone.clear()
        for number, runs in enumerate(view.segments):
            known = self._streams.get(number)
            if known is None or known[0] is not runs:
                known = self._streams[number] = self._begin(runs)
            _, lexer, above = known
            lines = runs.new_lines
            have = len(lexer) - above
            if have < len(lines):
                lexer.append(lines[have:])
            pending = runs.segment.pending
            missing = len(lines) + len(pending) - (len(lexer) - above)
            if missing > 0:
                lexer.append(pending[-missing:])
            advance_for(lexer, len(lexer), PAINT_BUDGET_S)

    def go_along(self) -> None:
        """Lex what has come since the last frame, which leaves less to do for the next one."""
        for runs, lexer, above in self._streams.values():
            segment = runs.segment
            if segment.finished or not runs.current:
                continue
            have = len(lexer) - above
            if have < len(segment.new_lines):
                lexer.append(segment.new_lines[have:])
            advance_for(lexer, len(lexer), IDLE_BUDGET_S)

    def _begin(self, runs: SegmentRuns) -> tuple[SegmentRuns, LineLexer, int]:
        start, path = runs.segment.start, self._view.proposal.path
        if not advance_for(self._base, start, PAINT_BUDGET_S):
            return runs, LineLexer(path), 0
        first, stack = self._base.resume_at(start)
        return runs, LineLexer(path, self._base_text.lines[first:start], stack=stack), start - first

    @property
    def ready(self) -> bool:
        """Whether the whole base text has been passed."""
        return self._base.ready >= len(self._base)

    def advance(self, upto: int) -> bool:
        """Lex a little towards a line while nothing else is to do; says whether there is more."""
        for _, lexer, _ in self._streams.values():
            if not advance_for(lexer, len(lexer), IDLE_BUDGET_S):
                return True
        return not advance_for(self._base, upto, IDLE_BUDGET_S)

    def is_ready(self, row: ViewRow) -> bool:
        """Whether a row's tokens are known."""
        if row.look is Look.WRITING:
            return True
        lexer, line = self._place(row)
        return lexer is None or line < lexer.ready

    def spans(self, row: ViewRow) -> tuple[Span, ...]:
        """The tokens of a row, ``()`` while they are not known."""
        lexer, line = self._place(row)
        if lexer is None:
            return ()
        if row.look is Look.WRITING:
            return lexer.preview(row.text)
        if line >= lexer.ready:
            advance_for(lexer, line + 1, self._until - perf_counter())
            after, line = self._place(row)
            if after is not None and after is not lexer:  # The lines above are known now.
                lexer = after
                advance_for(lexer, line + 1, self._until - perf_counter())
        return lexer.spans(line)

    def is_near(self, hunk: Hunk) -> bool:
        """Whether the lines above a hunk are lexed, or so few are missing that they can be."""
        return min(hunk.start, len(self._base)) <= self._base.ready + _NEAR

    def of_hunk(self, hunk: Hunk) -> list[LexedLine] | None:
        """The rows of a hunk with their tokens; ``None`` where there are none to be had.

        Nearby lines that are not lexed yet are lexed now.
        """
        if not self._base.advance(hunk.start, limit=_NEAR):
            return None
        for number, runs in enumerate(self._view.segments):
            for run in runs.runs:
                if run.hunk == hunk.id:
                    rows = runs.segment.settled[run.start : run.stop]
                    return self._lexed(hunk, rows, number)
        return None

    def _lexed(self, hunk: Hunk, rows: Sequence[Row], source: int) -> list[LexedLine] | None:
        # The base has the old lines, or the new ones if these are on disk.
        gone = tuple(row.text for row in rows if row.kind is RowKind.DELETED)
        olds, at = self._lexer_of_gone(hunk, gone)
        olds.advance(len(olds))
        begin = self._view.segments[source].segment.start
        lines: list[LexedLine] = []
        for row in rows:
            if row.kind is RowKind.DELETED:
                lines.append(LexedLine(row.text, olds.spans(at)))
                at += 1
                continue
            if row.new is None:
                return None
            shown = ViewRow(
                Look.ADDED, row.old, row.new, row.text, source=source, line=row.new - begin
            )
            news, line = self._place(shown)
            if news is None or not news.advance(line + 1, limit=_NEAR):
                return None
            lines.append(LexedLine(row.text, news.spans(line)))
        return lines

    def _lexer_of_gone(self, hunk: Hunk, gone: tuple[str, ...]) -> tuple[LineLexer, int]:
        """A lexer of a hunk's old lines, below lines of the base, and the number of these."""
        known = self._gone.get(hunk.id)
        if known is None or known[0] != gone:
            first, stack = self._base.resume_at(hunk.start)
            above = self._base_text.lines[first : hunk.start]
            lexer = LineLexer(self._view.proposal.path, (*above, *gone), stack=stack)
            known = self._gone[hunk.id] = gone, lexer, len(above)
        return known[1:]

    def _place(self, row: ViewRow) -> tuple[LineLexer | None, int]:
        """The lexer that knows a row, and the row's line in it."""
        if row.source >= 0 and row.look in (Look.DELETED, Look.KEPT):
            # The old lines of such a hunk were not in the base: the new ones were on disk.
            hunk = row.hunk
            is_old = hunk is not None and row.text in hunk.old[row.offset : row.offset + 1]
            if hunk is None or not is_old:
                return None, 0
            if self._base.ready < hunk.start:
                return self._base, hunk.start
            lexer, above = self._lexer_of_gone(hunk, hunk.old)
            return lexer, above + row.offset
        if row.source < 0:
            lines = self._base_text.lines
            # A hunk in conflict shows lines that the base does not have any more.
            same = row.line < len(lines) and lines[row.line] == row.text
            return (self._base, row.line) if same else (None, 0)
        known = self._streams.get(row.source)
        return (None, 0) if known is None else (known[1], row.line + known[2])
