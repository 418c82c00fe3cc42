"""The painted rows of one pane, cached until something that they show changes.

Decides what lies on a row (changed words, notes of a hunk) and when its strips can be used again;
knows no widget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from textual.strip import Strip

from midstream.edits.hunks import Hunk, HunkState
from midstream.edits.intraline import pair_lines, word_difference
from midstream.edits.lcs import line_edits
from midstream.edits.rows import Row, RowKind
from midstream.edits.structure import token_difference
from midstream.pairing.status import CUT, UNSURE
from midstream.tui.diff.painter import Marks, RowPainter, SplitPainter
from midstream.tui.diff.syntax import FileSyntax
from midstream.tui.diff.view import FileView, Look, Range, ViewRow

if TYPE_CHECKING:
    from midstream.code.lexing import Span
    from midstream.edits.structure import LexedLine
    from midstream.pairing.files.moves import FileMove
    from midstream.pairing.guard import FoundLine


def compare_rows(rows: Sequence[Row]) -> dict[int, tuple[Range, ...]]:
    """The changed words of a hunk's rows, by their position among them."""
    gone = [(at, row.text) for at, row in enumerate(rows) if row.kind is RowKind.DELETED]
    come = [(at, row.text) for at, row in enumerate(rows) if row.kind is not RowKind.DELETED]
    ranges: dict[int, tuple[Range, ...]] = {}
    for old, new in pair_lines([text for _, text in gone], [text for _, text in come]):
        if difference := word_difference(gone[old][1], come[new][1]):
            ranges[gone[old][0]] = tuple((span.start, span.stop) for span in difference[0])
            ranges[come[new][0]] = tuple((span.start, span.stop) for span in difference[1])
    return ranges


def compare_tokens(
    path: str, rows: Sequence[Row], lines: Sequence[LexedLine]
) -> dict[int, tuple[Range, ...]] | None:
    """The changed tokens of a hunk's rows, by their position; ``None`` in doubt."""
    gone = [at for at, row in enumerate(rows) if row.kind is RowKind.DELETED]
    come = [at for at, row in enumerate(rows) if row.kind is not RowKind.DELETED]
    marks = token_difference(path, [lines[at] for at in gone], [lines[at] for at in come])
    if marks is None:
        return None
    places, sides = (*gone, *come), (*marks.old, *marks.new)
    return {
        at: tuple((span.start, span.stop) for span in spans)
        for at, spans in zip(places, sides, strict=True)
        if spans
    }


def compare_halves(
    old: Sequence[str], new: Sequence[str]
) -> tuple[dict[int, tuple[Range, ...]], dict[int, tuple[Range, ...]]]:
    """What differs between the two texts of a moved file, by line of each.

    A line that the other text has not, nor one like it, differs as a whole.
    """
    olds: dict[int, tuple[Range, ...]] = {}
    news: dict[int, tuple[Range, ...]] = {}
    at = 0  # how many lines the new text is ahead
    for edit in line_edits(old, new):
        first = edit.start + at
        at += len(edit.lines) - (edit.stop - edit.start)
        olds |= {n: ((0, len(old[n])),) for n in range(edit.start, edit.stop)}
        news |= {first + n: ((0, len(line)),) for n, line in enumerate(edit.lines)}
        for i, j in pair_lines(old[edit.start : edit.stop], edit.lines):
            if difference := word_difference(old[edit.start + i], edit.lines[j]):
                olds[edit.start + i] = tuple((span.start, span.stop) for span in difference[0])
                news[first + j] = tuple((span.start, span.stop) for span in difference[1])
    return olds, news


def _neighbours(hunk: Hunk, view: FileView) -> list[Hunk]:
    """The hunks around one that only blank lines divide from it, as those of a wrapped block."""
    of_file = view.hunks.for_path(hunk.path)
    hunks = [h for h in of_file if h is hunk or (h.decidable and h.state is not HunkState.REJECTED)]
    base = view.proposal.base.lines
    first = last = hunks.index(hunk)
    left = MAX_COMPARED_LINES - hunk.deleted - hunk.added

    def joins(above: Hunk, below: Hunk, other: Hunk) -> bool:
        nonlocal left
        left -= other.deleted + other.added
        return left >= 0 and not any(map(str.strip, base[above.stop : below.start]))

    while first and joins(hunks[first - 1], hunks[first], hunks[first - 1]):
        first -= 1
    while last + 1 < len(hunks) and joins(hunks[last], hunks[last + 1], hunks[last + 1]):
        last += 1
    return hunks[first : last + 1]


MAX_COMPARED_LINES: Final = 200
"""Hunks with more rows get no intra-line marks."""
_CHANGED: Final = frozenset({Look.ADDED, Look.DELETED})
_UNMARKED: Final = Marks()
_NOTHING_SAID: Final = ("", False, None)


class RowStrips:
    """Strips by row, for one file at a time."""

    def __init__(self, view: FileView, syntax: FileSyntax) -> None:
        self.painter: RowPainter | None = None
        self.left = 0
        """Cells of code that are scrolled out to the left."""
        self.scope: tuple[int, int] | None = None
        """Lines of the base text that the next instruction would get."""
        self.found: Mapping[int, tuple[Range, ...]] = {}
        """Search matches by row."""
        self.note_of: Callable[[Hunk], str] = lambda hunk: ""
        """The note beside a hunk."""
        self.spot_of: Callable[[Hunk], FoundLine | None] = lambda hunk: None
        """The line of a hunk to mark for a finding of the guard."""
        self.line_of: Callable[[Hunk], int | None] = lambda hunk: None
        """The new line to mark for a finding of the checks; without any, the first row is."""
        self.on_disk = True
        """Whether what another program wrote is in the user's files; not in a range of commits."""
        self.author_of: Callable[[Hunk], str] = lambda hunk: ""
        """Who wrote a hunk that is on disk already."""
        self.move_of: Callable[[Hunk], FileMove | None] = lambda hunk: None
        """The moved file that a hunk is one half of."""
        self.by_tokens = False
        """Whether the tokens of a hunk are compared; otherwise the words of its lines."""
        self.unlexed = False
        """Whether a row that was asked for waits for its colours."""
        self._view, self._syntax = view, syntax
        self._kept: dict[object, tuple[list[Strip], bool]] = {}
        """The strips of what stands on a row, and whether they have all their colours."""
        self._changed: dict[object, dict[int, tuple[Range, ...]]] = {}
        self._nearby: tuple[int, dict[int, tuple[int, ...]]] = (-1, {})
        """The hunks around each, as of a version of all of them."""

    def show(self, view: FileView, syntax: FileSyntax) -> None:
        """Paint the rows of another file."""
        self._view, self._syntax = view, syntax
        self._nearby = -1, {}
        self._changed.clear()
        self.forget(None)

    def forget(self, painter: RowPainter | None) -> None:
        """Paint with another painter from now on."""
        self.painter = painter
        self._kept.clear()

    def of(self, y: int, *, cursor: bool, selected: bool) -> list[Strip]:
        """The strips of a row; several where it is wrapped."""
        syntax, painter = self._syntax, self.painter
        row = self._view.row(y)
        if painter is None or row is None:
            return [] if painter is None else [painter.blank]
        hunk, scope = row.hunk, self.scope
        line = row.old if row.old is not None or hunk is None else hunk.start
        scoped = scope is not None and line is not None and scope[0] <= line < scope[1]
        found = self.found.get(y, ())
        note, fact, brief = _NOTHING_SAID if hunk is None else self._note_at(hunk, row)
        standing = None
        if hunk is not None:
            standing = (hunk.id, hunk.state, row.offset, row.first)
            standing += (self._halves(hunk), self._near(hunk))
        marked = None
        if cursor or selected or scoped or found or note or self.left:
            marked = (cursor, selected, scoped, found, self.left, note)
        # The proposed number of an unread line, which is not shown, grows with every line above it.
        new = None if row.look is Look.UNREAD else row.new
        key = (row.look, row.old, new, row.text, standing, marked)
        known = self._kept.get(key)
        if known is not None and (known[1] or not self._is_ready(row, syntax)):
            strips, ready = known
        else:
            spans = syntax.spans(row)
            # Asked before the marks: anything lexed after them counts for the next frame.
            ready = self._is_ready(row, syntax)
            changed = self.changed_words(row)
            marks = _UNMARKED
            if marked is not None or changed:
                marks = Marks(cursor, selected, scoped, changed, found, note, fact, brief)
            strips = self._paint(painter, row, spans, syntax, marks)
            if len(self._kept) > 2_000:
                self._kept.clear()
            self._kept[key] = strips, ready
        self.unlexed |= not ready
        return strips

    def _near(self, hunk: Hunk) -> tuple[int, ...]:
        """The hunks together with which the tokens of one are compared, if they are."""
        view = self._view
        if not self.by_tokens or not hunk.decidable:
            return ()
        if self._nearby[0] != view.hunks.version:
            self._nearby = view.hunks.version, {}
        known = self._nearby[1]
        if hunk.id not in known:
            known[hunk.id] = tuple(each.id for each in _neighbours(hunk, view))
        return known[hunk.id]

    def _halves(self, hunk: Hunk) -> tuple[int, int] | None:
        """The hunks of the move that a hunk is part of, if it is."""
        move = self.move_of(hunk)
        return None if move is None else (move.gone.id, move.made.id)

    def _note_at(self, hunk: Hunk, row: ViewRow) -> tuple[str, bool, str | None]:
        """The note beside a row of a hunk: its text, whether it is a fact, its short form."""
        held = hunk.state is HunkState.HELD
        spot = self.spot_of(hunk) if held or hunk.state is HunkState.SETTLED else None
        line = self.line_of(hunk) if spot is None else spot.line
        at = row.offset - hunk.deleted
        if not row.first and at not in (0, line):
            return _NOTHING_SAID
        note, fact = self._note(hunk)
        if fact and hunk.added:
            line = 0  # The new text is on disk.
        if not (row.first if line is None else at == line):
            return _NOTHING_SAID
        if fact:
            if hunk.postponed is not None:
                return note, fact, None
            move = self.move_of(hunk)
            return note, fact, "" if move is None else move.said_of(hunk, brief=True)
        if held and hunk.hold is not None:
            rule = f" ({hunk.hold.rule})" if hunk.hold.rule else ""
            return note, fact, f"{self._on_disk(hunk)}held back{rule}"
        if spot is not None:
            return note, fact, f"flagged ({spot.finding.rule})"
        return note, fact, "" if note in (CUT, UNSURE) else None

    def _on_disk(self, hunk: Hunk) -> str:
        return "on disk, " if hunk.external and self.on_disk else ""

    def _note(self, hunk: Hunk) -> tuple[str, bool]:
        """The note on a hunk, and whether it is a fact rather than a doubt."""
        if hunk.state is HunkState.HELD:
            return f"{self._on_disk(hunk)}held back: {hunk.note}", False
        if hunk.state is HunkState.REJECTED:
            return f"{hunk.outcome}: {hunk.note}" if hunk.note else "", False
        if hunk.postponed is not None:
            why = f": {hunk.postponed}" if hunk.postponed else ""
            return f"will be put back{why}", True
        if note := self.note_of(hunk):
            return note, False
        if hunk.state is not HunkState.SETTLED:
            return "", False
        words: list[str] = []
        if hunk.external:
            author = self.author_of(hunk)
            facts = ("on disk" if self.on_disk else "", f"by {author}" if author else "")
            words += [", ".join(filter(None, facts))] if any(facts) else []
        elif hunk.call:
            words.append("not written yet")
        if (move := self.move_of(hunk)) is not None:
            words.append(move.said_of(hunk))
        return " · ".join(words), True

    def _is_ready(self, row: ViewRow, syntax: FileSyntax) -> bool:
        """Whether all that a row's colours and marks are made from is lexed."""
        if not syntax.is_ready(row):
            return False
        if not self.by_tokens or row.hunk is None or row.look not in _CHANGED:
            return True
        return syntax.is_near(row.hunk)

    def _paint(
        self,
        painter: RowPainter,
        row: ViewRow,
        spans: Sequence[Span],
        syntax: FileSyntax,
        marks: Marks,
    ) -> list[Strip]:
        if not isinstance(painter, SplitPainter):
            return painter.paint(row, spans, marks, left=self.left)
        beside = row.beside
        beside_spans = () if beside is None else syntax.spans(beside)
        beside_changed = () if beside is None else self.changed_words(beside)
        other = replace(marks, changed=beside_changed, found=(), note="")
        return painter.paint_both(row, spans, marks, beside_spans, other, left=self.left)

    def changed_words(self, row: ViewRow) -> tuple[Range, ...]:
        """The marks in a row."""
        hunk, view = row.hunk, self._view
        if hunk is None or not hunk.decidable:
            return ()
        if row.look not in _CHANGED:
            return ()
        if self.by_tokens and not self._is_ready(row, self._syntax):
            return ()  # painted again when it is
        key = (hunk.id, view.structure, self._halves(hunk), self._near(hunk))
        ranges = self._changed.get(key)
        if ranges is None:
            ranges = self._changed[key] = self._compared(hunk, view)
        return ranges.get(row.offset, ())

    def _compared(self, hunk: Hunk, view: FileView) -> dict[int, tuple[Range, ...]]:
        """What differs in the rows of a hunk, by their position."""
        if (move := self.move_of(hunk)) is not None:
            return compare_halves(move.gone.old, move.made.new)[move.made is hunk]
        if hunk.deleted + hunk.added > MAX_COMPARED_LINES:
            return {}
        found = self._compared_tokens(hunk, view) if self.by_tokens else None
        return compare_rows(view.hunk_rows(hunk.id)) if found is None else found

    def _compared_tokens(self, hunk: Hunk, view: FileView) -> dict[int, tuple[Range, ...]] | None:
        """The tokens of a hunk that differ; ``None`` in doubt."""
        rows: list[Row] = []
        lines: list[LexedLine] = []
        mine = range(0)
        for near in map(view.hunks.get, self._near(hunk)):
            its_rows = view.hunk_rows(near.id)
            lexed = self._syntax.of_hunk(near)
            if lexed is None:
                return None
            if near is hunk:
                mine = range(len(rows), len(rows) + len(its_rows))
            rows += its_rows
            lines += lexed
        found = compare_tokens(view.proposal.path, rows, lines)
        if found is None:
            return None
        return {at - mine.start: ranges for at, ranges in found.items() if at in mine}
