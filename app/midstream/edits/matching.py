"""Finding the lines that an edit quotes: from exact to fuzzy, each level requiring a unique match.

Levels: 1 exact; 2 trailing white space ignored; 3 indentation shifted uniformly; 4 white space at
both ends ignored (not where indentation has meaning); 5 typographic punctuation folded; 6 similar
lines, which is a proposal to look at and never applied without asking.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from rapidfuzz import fuzz

from midstream.edits.indent import BlockShift, find_shift, indent_of

_FUZZY: Final = 0.8
"""Least similarity of a place that is proposed."""
_NEARBY: Final = 0.6
"""Least similarity of a place that an error names."""
_CANDIDATES: Final = 48
"""Places that are scored; a line that occurs more often chooses none."""
_UNEVEN: Final = (1, -1, 2, -2)
"""By how many lines a block may be longer or shorter than what was quoted."""
_PUNCTUATION: Final = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a", " "),
        **dict.fromkeys("\u202f\u205f\u3000", " "),
    }
)
_INDENTED_LANGUAGES = re.compile(
    r"(?:\.(?:pyi?|pyx|ya?ml|coffee|haml|pug|jade|sass|styl|nim|fs[xi]?|hs|elm|cr|gd|mk)|Makefile)$"
)
_OPENER = re.compile(
    r"\s*(?:async |export |public |private |protected |static |pub )*"
    r"(?:def|class|func|fn|function|impl|struct|interface|module|trait|enum)\b"
)


class MatchLevel(IntEnum):
    """How leniently a place was found."""

    EXACT = 1
    TRAILING = 2
    INDENTATION = 3
    WHITESPACE = 4
    PUNCTUATION = 5
    FUZZY = 6


@dataclass(frozen=True, slots=True)
class Match:
    """The one place that fits.

    Attributes:
        start: First line.
        stop: Line after the last.
        level: How leniently it matched.
        shift: How new lines must be indented, or None if they fit as they are.
        similarity: 1.0, or less for a fuzzy match.
    """

    start: int
    stop: int
    level: MatchLevel
    shift: BlockShift | None = None
    similarity: float = 1.0


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Several places fit equally well: the first line of each."""

    starts: tuple[int, ...]
    level: MatchLevel


@dataclass(frozen=True, slots=True)
class SimilarPlace:
    """A place that almost fits; ``similarity`` is the mean over its lines, in [0, 1]."""

    start: int
    stop: int
    similarity: float


class Matcher:
    """Looks up quoted lines in one version of a file; every level is indexed on first use."""

    def __init__(self, lines: Sequence[str], path: str = "") -> None:
        """Index the lines of a file; ``path`` tells whether indentation has meaning."""
        self.lines = lines
        self._indented = _INDENTED_LANGUAGES.search(path) is not None
        self._indexes: dict[MatchLevel, tuple[list[str], dict[str, list[int]]]] = {}

    def find(
        self,
        old: Sequence[str],
        *,
        new: Sequence[str] = (),
        start: int = 0,
        stop: int | None = None,
        near: int | None = None,
        at_end: bool = False,
    ) -> Match | Ambiguous | None:
        """The one place of the quoted lines in lines ``[start, stop)``.

        Args:
            old: The quoted lines, at least one.
            new: The lines that replace them.
            start: First line to look at.
            stop: Line after the last to look at.
            near: Line number given as a hint: the place there, or else the nearest, wins a tie.
            at_end: Whether the end of the file is preferred.
        """
        stop = len(self.lines) if stop is None else stop
        for level in _KEYS:
            starts = self._starts(old, level, start, stop)
            if at_end and len(self.lines) - len(old) in starts:
                starts = [len(self.lines) - len(old)]
            if near is not None and len(starts) > 1:
                starts = _nearest(starts, near)
            if len(starts) > 1 and starts[0] == start and start > 0:
                starts = starts[:1]  # right after what was found before
            if not starts:
                continue
            if len(starts) > 1:
                return Ambiguous(tuple(starts), level)
            match = self._match(old, new, starts[0], level)
            if match is not None:
                return match
        return None

    def find_fuzzy(self, old: Sequence[str]) -> Match | None:
        """The one place whose lines are at least 80 % similar, as a proposal."""
        places = [p for p in self.nearest(old, limit=2) if p.similarity >= _FUZZY]
        if not places or (len(places) > 1 and places[1].similarity == places[0].similarity):
            return None
        best = places[0]
        return Match(best.start, best.stop, MatchLevel.FUZZY, similarity=best.similarity)

    def nearest(self, old: Sequence[str], limit: int = 3) -> list[SimilarPlace]:
        """Up to ``limit`` places that are at least 60 % similar, best first, not overlapping."""
        size = len(old)
        places: list[SimilarPlace] = []
        block = "\n".join(line.strip() for line in old)
        for begin in self._candidates(old):
            window = self.lines[begin : begin + size]
            scores = [
                fuzz.ratio(a.strip(), b.strip()) / 100 if a.strip() or b.strip() else 1.0
                for a, b in zip(old, window, strict=False)
            ]
            best = SimilarPlace(begin, begin + len(window), sum(scores) / size)
            # A line too many or too few shifts the rest: then compare the block as one text.
            for more in _UNEVEN if best.similarity < _FUZZY else ():
                window = self.lines[begin : begin + size + more]
                if size + more > 0 and len(window) == size + more:
                    text = "\n".join(line.strip() for line in window)
                    similarity = fuzz.ratio(block, text, score_cutoff=100 * best.similarity) / 100
                    if similarity > best.similarity:
                        best = SimilarPlace(begin, begin + len(window), similarity)
            if best.similarity >= _NEARBY:
                places.append(best)
        places.sort(key=lambda place: (-place.similarity, place.start))
        chosen: list[SimilarPlace] = []
        for place in places:
            if all(place.stop <= c.start or place.start >= c.stop for c in chosen):
                chosen.append(place)
        return chosen[:limit]

    def find_line(self, line: str, start: int = 0) -> int | None:
        """The first line from ``start`` that equals ``line``, exactly or up to white space."""
        for level in _KEYS:
            starts = self._starts([line], level, start, len(self.lines))
            if starts:
                return starts[0]
        return None

    def block_end(self, line: int) -> int:
        """Line after the block that ``line`` opens, by indentation."""
        depth = len(indent_of(self.lines[line]).expandtabs(8))
        stop = line + 1
        for number in range(line + 1, len(self.lines)):
            text = self.lines[number]
            if text.strip():
                if len(indent_of(text).expandtabs(8)) <= depth:
                    break
                stop = number + 1
        return stop

    def scope(self, line: int) -> str:
        """The definitions that a line lies in, outermost first, ``""`` at top level."""
        names: list[str] = []
        depth = len(indent_of(self.lines[line]).expandtabs(8)) if line < len(self.lines) else 0
        for number in range(line - 1, -1, -1):
            text = self.lines[number]
            if text.strip() and _OPENER.match(text):
                indent = len(indent_of(text).expandtabs(8))
                if indent < depth:
                    names.append(text.strip().rstrip(":{ "))
                    depth = indent
        return ", ".join(reversed(names))

    def _starts(self, old: Sequence[str], level: MatchLevel, start: int, stop: int) -> list[int]:
        lines, positions = self._index(level)
        quoted = [_KEYS[level](line) for line in old]
        size = len(quoted)
        # The rarest line of the block gives the fewest places to look at.
        pivot = min(range(size), key=lambda k: len(positions.get(quoted[k], ())))
        at = positions.get(quoted[pivot], [])
        first = bisect_left(at, start + pivot)
        return [
            number - pivot
            for number in at[first:]
            if number - pivot + size <= stop
            and lines[number - pivot : number - pivot + size] == quoted
        ]

    def _match(
        self, old: Sequence[str], new: Sequence[str], start: int, level: MatchLevel
    ) -> Match | None:
        stop = start + len(old)
        if level <= MatchLevel.TRAILING:
            return Match(start, stop, level)
        found = self.lines[start:stop]
        shift = find_shift(old, found, new)
        if shift is None:
            same = all(indent_of(a) == indent_of(b) for a, b in zip(old, found, strict=True))
            if self._indented and not same:
                return None
            level = max(level, MatchLevel.WHITESPACE)
            first = next((k for k, line in enumerate(old) if line.strip()), 0)
            shift = find_shift(old[first : first + 1], found[first : first + 1], new)
        return Match(start, stop, level, shift)

    def _index(self, level: MatchLevel) -> tuple[list[str], dict[str, list[int]]]:
        if level not in self._indexes:
            key = _KEYS[level]
            lines = [key(line) for line in self.lines]
            positions: dict[str, list[int]] = {}
            for number, line in enumerate(lines):
                positions.setdefault(line, []).append(number)
            self._indexes[level] = lines, positions
        return self._indexes[level]

    def _candidates(self, old: Sequence[str]) -> list[int]:
        """Places worth scoring: where lines of the block occur, or lines like its longest one."""
        _, positions = self._index(MatchLevel.INDENTATION)
        votes: dict[int, float] = {}
        last = max(0, len(self.lines) - 1)
        for offset, line in enumerate(old):
            at = positions.get(line.strip(), ())
            if line.strip() and len(at) <= _CANDIDATES:
                for number in at:
                    begin = min(max(0, number - offset), last)
                    votes[begin] = votes.get(begin, 0.0) + 1 / len(at)
        if not votes and self.lines:
            offset = max(range(len(old)), key=lambda k: len(old[k].strip()))
            longest = old[offset].strip()
            for number, line in enumerate(self.lines):
                score = fuzz.ratio(longest, line.strip(), score_cutoff=100 * _NEARBY)
                if score:
                    votes[min(max(0, number - offset), last)] = score
        best = sorted(votes, key=lambda begin: (-votes[begin], begin))
        return best[:_CANDIDATES]


def _fold(line: str) -> str:
    return line.strip().translate(_PUNCTUATION)


_KEYS: Final[dict[MatchLevel, Callable[[str], str]]] = {
    MatchLevel.EXACT: str,
    MatchLevel.TRAILING: str.rstrip,
    MatchLevel.INDENTATION: str.strip,
    MatchLevel.PUNCTUATION: _fold,
}
"""The form in which lines are compared at each level, from strict to lenient."""


def _nearest(starts: list[int], near: int) -> list[int]:
    """The place at the hint, or the nearest one if only one is nearest."""
    distance = min(abs(start - near) for start in starts)
    return [start for start in starts if abs(start - near) == distance]
