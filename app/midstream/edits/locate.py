"""Where one hunk of a reply belongs in a text, and the line edits that it becomes there.

Handles contexts (``@@``), elisions, superfluous blank lines, insertions and runs of characters, and
reports a structured error where nothing fits.  ``matching`` compares the lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from midstream.edits.documents import LineEdit, SourceText
from midstream.edits.elision import elided, merge, placeholder
from midstream.edits.lcs import line_edits
from midstream.edits.matching import Ambiguous, Match, Matcher, MatchLevel
from midstream.edits.outcome import FailureReason, HunkError, Nearby
from midstream.edits.reply import HunkLine, ReplyHunk, Side, parts_between

_ELISION = re.compile(r"\s*(?:#|//)?\s*\.\.\.\s*$")
_AROUND = 3
"""Lines that are shown before and after a similar place."""


@dataclass(frozen=True, slots=True)
class Located:
    """A hunk with its place.

    Attributes:
        edits: What it does to the lines, ascending.
        start: First line of the place.
        stop: Line after the last.
        level: How leniently it matched, or None where nothing had to be found.
        final_newline: Whether the text then ends with a newline; None leaves it as it is.
    """

    edits: tuple[LineEdit, ...]
    start: int
    stop: int
    level: MatchLevel | None
    final_newline: bool | None = None


class Locator:
    """Locates hunks one after another.

    A hunk is looked up in the text that it was written for and, failing that, in the text with the
    hunks before it applied, which models quote as well.
    """

    def __init__(
        self, source: SourceText, path: str, *, newline: str | None = None, sequential: bool = False
    ) -> None:
        """Start at the top of a file.

        Args:
            source: The file's text.
            path: Its name.
            newline: Terminator of new lines; None takes their neighbours'.
            sequential: Whether each hunk is written for the text with those before it applied.
        """
        self.source = source
        self.path = path
        self._newline = newline
        self._sequential = sequential
        self._cursor = 0
        self._drift = 0  # by how many lines the applied hunks have grown the text
        self._taken: list[LineEdit] = []  # edits of ``source`` that are not applied yet, ascending
        self._matcher = Matcher(source.lines, path)

    def locate(self, hunk: ReplyHunk, later: Sequence[ReplyHunk] = ()) -> Located | HunkError:
        """The place of a hunk; ``later`` are the hunks after it, which may resolve ambiguity."""
        if self._sequential or hunk.characters:
            self._apply_taken()
        located = self._located(hunk, later)
        if self._taken and (isinstance(located, HunkError) or self._collides(located)):
            self._apply_taken()
            located = self._located(hunk, later)
        return located if isinstance(located, HunkError) else self._complete(located)

    def _complete(self, located: Located) -> Located | HunkError:
        """The place of a hunk, without lines that stand for code which was left out."""
        new = [line for edit in located.edits for line in edit.lines]
        if placeholder(self.source.lines, new) is None:
            return located
        start, stop = located.edits[0].start, located.edits[-1].stop
        start, stop = min(start, located.start), max(stop, located.stop)
        after = SourceText.from_text(self.source.text()).replace(located.edits)
        stop_after = stop + len(after.lines) - len(self.source.lines)
        edits = merge(self.source.lines[start:stop], after.lines[start:stop_after], self.path)
        if edits is None:
            return HunkError(FailureReason.ELIDED, elided(self.path))
        moved = tuple(LineEdit(e.start + start, e.stop + start, e.lines) for e in edits)
        return replace(located, edits=moved)

    def take(self, located: Located) -> None:
        """Make a hunk's edits; the next one is looked for after it."""
        self._taken += located.edits
        self._taken.sort(key=lambda edit: (edit.start, edit.stop))
        self._cursor = located.stop
        if located.final_newline is not None:
            self._apply_taken()
            self.source = self.source.with_final_newline(located.final_newline)

    def result(self) -> SourceText:
        """The text with all edits made."""
        self._apply_taken()
        return self.source

    def _collides(self, located: Located) -> bool:
        return any(
            edit.start < taken.stop and edit.stop > taken.start
            for edit in located.edits
            for taken in self._taken
        )

    def _apply_taken(self) -> None:
        if not self._taken:
            return
        growth = [len(edit.lines) - (edit.stop - edit.start) for edit in self._taken]
        moved = sum(g for e, g in zip(self._taken, growth, strict=True) if e.stop <= self._cursor)
        self.source = self.source.replace(self._taken, self._newline)
        self._taken = []
        self._cursor += moved
        self._drift += sum(growth)
        self._matcher = Matcher(self.source.lines, self.path)

    def _located(self, hunk: ReplyHunk, later: Sequence[ReplyHunk]) -> Located | HunkError:
        if hunk.characters:
            return self._characters(hunk)
        if not hunk.old:
            return self._insertion(hunk)
        found = self._search(hunk, later)
        if isinstance(found, Match):
            return self._placed(hunk, found)
        versions = hunk.trimmed() if found is None else []
        for version in versions:
            match = self._search(version, later)
            if isinstance(match, Match):
                return self._placed(version, match)
        for version in (hunk.renumbered(), hunk.respaced()) if found is None else ():
            match = None if version is None else self._search(version, later)
            if (
                version is not None
                and isinstance(match, Match)
                and match.level <= MatchLevel.TRAILING
            ):
                return self._placed(version, match)
        if found is None:
            elided = self._elided(hunk)
            if elided is not None:
                return elided
        return self._error(hunk, found)

    def skip(self, line: int) -> None:
        """Look for the next hunk from ``line`` on."""
        self._cursor = line

    def quoted_place(self, hunk: ReplyHunk) -> Match | Ambiguous | None:
        """The place of a hunk's old lines, before its new ones are known."""
        return self._search(hunk, ())

    def characters_place(self, hunk: ReplyHunk) -> tuple[int, int, str, str] | None:
        """The lines of a run of characters that occurs once, and the text around it in them."""
        text, old = self._text(), "\n".join(hunk.old)
        if text.count(old) != 1:
            return None
        first = text.index(old)
        last = first + len(old)
        begin = text.rfind("\n", 0, first) + 1
        end = text.find("\n", last)
        end = len(text) if end < 0 else end
        start, stop = text.count("\n", 0, first), text.count("\n", 0, last) + 1
        return start, min(stop, len(self.source.lines)), text[begin:first], text[last:end]

    def _text(self) -> str:
        """The text with line feeds, terminated if the file is."""
        if not self.source.lines:
            return ""
        return "\n".join(self.source.lines) + ("\n" if self.source.final_newline else "")

    def _search(self, hunk: ReplyHunk, later: Sequence[ReplyHunk]) -> Match | Ambiguous | None:
        old, new = hunk.old, hunk.new
        near = None if hunk.line is None else hunk.line + self._drift
        if near is not None:
            return self._matcher.find(old, new=new, near=near)
        ranges: list[tuple[int, int | None]] = []
        at = self._cursor
        for context in hunk.context:
            line = self._matcher.find_line(context, at)
            if line is None:
                # A repeated parent, or a hint that is not in the file: the quoted lines decide, but
                # of several stacked contexts each must be found.
                if len(hunk.context) > 1 and self._matcher.find_line(context) is None:
                    return None
                continue
            at = line + 1
            ranges = [(at, self._matcher.block_end(line)), (at, None)]
        ranges += [(self._cursor, None)]
        if len(hunk.context) < 2 and self._cursor:
            ranges += [(0, None)]
        ambiguous: Ambiguous | None = None
        for start, stop in ranges:
            if ambiguous is not None and start == 0:
                break  # several places follow; one before them would be a guess
            found = self._matcher.find(old, new=new, start=start, stop=stop, at_end=hunk.at_end)
            if isinstance(found, Match):
                return found
            if found is not None:
                ambiguous = ambiguous or found
                told_apart = self._told_apart(hunk, found, later)
                if told_apart is not None:
                    return told_apart
        return ambiguous

    def _told_apart(
        self, hunk: ReplyHunk, found: Ambiguous, later: Sequence[ReplyHunk]
    ) -> Match | None:
        """The only one of several places that leaves room for the hunks that follow."""
        old, new = hunk.old, hunk.new
        twins = 1 + sum(other.parts == hunk.parts for other in later)
        first = found.starts[0]
        if twins == len(found.starts):
            return self._at(old, new, first)
        for other in later:
            if other.line is None and other.old and not other.characters:
                bound = self._matcher.find(other.old, start=first)
                if isinstance(bound, Match):
                    before = [s for s in found.starts if s + len(old) <= bound.start]
                    return self._at(old, new, before[0]) if len(before) == 1 else None
        return None

    def _at(self, old: list[str], new: list[str], start: int) -> Match | None:
        match = self._matcher.find(old, new=new, start=start, stop=start + len(old))
        return match if isinstance(match, Match) else None

    def _placed(self, hunk: ReplyHunk, match: Match) -> Located:
        lines = hunk.new if match.shift is None else match.shift.apply(hunk.new)
        edits: list[LineEdit] = []
        at, number = match.start, 0
        begin, added = at, list[str]()
        for part in hunk.parts:
            if part.side is Side.CONTEXT:
                if begin < at or added:
                    edits.append(LineEdit(begin, at, tuple(added)))
                at, number = at + 1, number + 1
                begin, added = at, []
            elif part.side is Side.OLD:
                at += 1
            else:
                added.append(lines[number])
                number += 1
        if begin < at or added:
            edits.append(LineEdit(begin, at, tuple(added)))
        return Located(tuple(edits), match.start, match.stop, match.level)

    def _insertion(self, hunk: ReplyHunk) -> Located | HunkError:
        total = len(self.source.lines)
        if hunk.line is not None:
            at = hunk.line + (0 if self._sequential else self._drift)
            if not 0 <= at <= total:
                return HunkError(
                    FailureReason.NOT_FOUND, f"{self.path} has {total} lines, not {hunk.line}."
                )
        elif hunk.create_only and total:
            return HunkError(
                FailureReason.NOT_EMPTY,
                f"The block has no old lines and {self.path} is not empty; quote what to replace.",
            )
        else:
            at = total
            for context in hunk.context:
                line = self._matcher.find_line(context, self._cursor)
                if line is None:
                    message = f"The context line {context!r} is not in {self.path}."
                    return HunkError(FailureReason.NOT_FOUND, message)
                at = line + 1
        return Located((LineEdit(at, at, tuple(hunk.new)),), at, at, None)

    def _elided(self, hunk: ReplyHunk) -> Located | None:
        """A hunk with ``...`` lines on both sides, each standing for lines to keep."""
        old, new = _pieces(hunk.old), _pieces(hunk.new)
        if len(old) != len(new) or len(old) < 2:
            return None
        edits: list[LineEdit] = []
        cursor, level = 0, MatchLevel.EXACT
        first: int | None = None
        for before, after in zip(old, new, strict=True):
            if not before:
                if after:
                    return None
                continue
            match = self._matcher.find(before, new=after, start=cursor)
            if not isinstance(match, Match):
                return None
            piece = ReplyHunk(hunk.id, parts=parts_between(before, after))
            edits += self._placed(piece, match).edits
            cursor, level = match.stop, max(level, match.level)
            first = match.start if first is None else first
        return None if first is None else Located(tuple(edits), first, cursor, level)

    def _characters(self, hunk: ReplyHunk) -> Located | HunkError:
        """Replace a run of characters, which must occur exactly once."""
        old, new = "\n".join(hunk.old), hunk.new_text
        text = self._text()
        if not old:
            if text:
                message = f"The old text is empty and {self.path} is not; quote what to replace."
                return HunkError(FailureReason.NOT_EMPTY, message)
            return self._whole(new)
        count = text.count(old)
        if count == 1 or (count > 1 and hunk.everywhere):
            located = self._whole(text.replace(old, new))
            start = text.count("\n", 0, text.index(old))
            stop = min(len(self.source.lines), start + old.count("\n") + 1)
            return replace(located, start=start, stop=stop, level=MatchLevel.EXACT)
        if count:
            starts: list[int] = []
            offset = text.find(old)
            while offset >= 0:
                starts.append(text.count("\n", 0, offset))
                offset = text.find(old, offset + 1)
            return self._error(hunk, Ambiguous(tuple(starts), MatchLevel.EXACT))
        # Not found as characters: whole lines may match up to white space.
        block = _line_hunk(hunk)
        if block is None:
            return self._error(hunk, None)
        found = self._matcher.find(block.old, new=block.new)
        if isinstance(found, Match):
            return self._placed(block, found)
        return self._error(block, found)

    def _whole(self, text: str) -> Located:
        """The edits that make the whole text ``text``."""
        lines = text.split("\n")
        final_newline = lines[-1] == ""
        if final_newline:
            lines.pop()
        edits, total = line_edits(self.source.lines, lines), len(self.source.lines)
        return Located(tuple(edits), 0, total, None, final_newline if lines else None)

    def _error(self, hunk: ReplyHunk, found: Ambiguous | None) -> HunkError:
        scope = self._matcher.scope
        if found is not None:
            places = tuple(
                Nearby(
                    start,
                    self._excerpt(start, start + len(hunk.old)),
                    1.0,
                    scope(start),
                )
                for start in found.starts[:10]
            )
            where = "; ".join(
                f"line {start + 1}" + (f" in {inside}" if (inside := scope(start)) else "")
                for start in found.starts[:10]
            )
            message = (
                f"The quoted lines fit {len(found.starts)} places in {self.path} ({where}); "
                "quote more lines around the one that is meant."
            )
            return HunkError(FailureReason.AMBIGUOUS, message, places=places)
        if self._is_applied(hunk):
            message = f"The new lines are in {self.path} already; drop this hunk."
            return HunkError(FailureReason.ALREADY_APPLIED, message)
        lost = [line for line in hunk.context if self._matcher.find_line(line) is None]
        if lost and len(hunk.context) > 1:
            message = f"The context line {lost[0]!r} is not in {self.path}."
            return HunkError(FailureReason.NOT_FOUND, message)
        nearest = self._matcher.nearest(hunk.old)
        places = tuple(
            Nearby(
                max(0, place.start - _AROUND),
                self._excerpt(place.start, place.stop),
                place.similarity,
                scope(place.start),
            )
            for place in nearest
        )
        message = f"The quoted lines are not in {self.path}."
        if not nearest:
            return HunkError(FailureReason.NOT_FOUND, message)
        line, expected, actual = self._first_difference(hunk.old, nearest[0].start)
        fuzzy = self._matcher.find_fuzzy(hunk.old)
        reason = FailureReason.NOT_FOUND
        if fuzzy is not None:
            reason = FailureReason.FUZZY
            message = (
                f"The quoted lines are not in {self.path}; lines {fuzzy.start + 1}-{fuzzy.stop} "
                f"are {fuzzy.similarity:.0%} similar, so a person has to decide."
            )
        return HunkError(reason, message, line, expected, actual, places)

    def _first_difference(self, old: list[str], start: int) -> tuple[int, str, str | None]:
        lines = self.source.lines
        for offset, expected in enumerate(old):
            number = start + offset
            if number >= len(lines):
                return number, expected, None
            if lines[number] != expected:
                return number, expected, lines[number]
        return start, old[0], lines[start]

    def _is_applied(self, hunk: ReplyHunk) -> bool:
        new = hunk.new_text.split("\n") if hunk.characters else hunk.new
        if not any(line.strip() for line in new):
            return False
        if hunk.characters and len(new) == 1:
            return any(new[0] in line for line in self.source.lines)
        found = self._matcher.find([line for line in new if line or not hunk.characters])
        level = None if found is None else found.level
        return level is not None and level <= MatchLevel.TRAILING

    def _excerpt(self, start: int, stop: int) -> str:
        return self.source.text(max(0, start - _AROUND), stop + _AROUND)


def _pieces(lines: list[str]) -> list[list[str]]:
    pieces: list[list[str]] = [[]]
    for line in lines:
        if _ELISION.match(line):
            pieces.append([])
        else:
            pieces[-1].append(line)
    return pieces


def _line_hunk(hunk: ReplyHunk) -> ReplyHunk | None:
    old = list(hunk.old)
    new = hunk.new_text.split("\n")
    if old and old[-1] == "":
        old.pop()
    if new and new[-1] == "":
        new.pop()
    if not any(line.strip() for line in old):
        return None
    parts: list[HunkLine] = parts_between(old, new)
    return ReplyHunk(hunk.id, parts=parts)
