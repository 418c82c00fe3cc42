"""Indentation that a model got wrong uniformly: finding the shift and applying it to new lines.

Models quote a block without its indentation, with part of it, without that of the first line, or
with spaces for tabs.  A shift turns the quoted indentation into the file's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


def indent_of(line: str) -> str:
    """The white space that a line starts with."""
    return line[: len(line) - len(line.lstrip())]


@dataclass(frozen=True, slots=True)
class Shift:
    """How one indentation becomes another.

    Attributes:
        cut: White space to remove at the start.
        add: White space to put there.
        spaces_per_tab: If positive, that many spaces become one tab; if negative, a tab becomes
            that many spaces.
    """

    cut: str = ""
    add: str = ""
    spaces_per_tab: int = 0

    def apply(self, line: str) -> str:
        """The line with its indentation shifted; a blank line stays as it is."""
        if not line.strip():
            return line
        indent = indent_of(line)
        rest = line[len(indent) :]
        unit = self.spaces_per_tab
        if unit > 0:
            width = len(indent.expandtabs(unit))
            return "\t" * (width // unit) + " " * (width % unit) + rest
        if unit < 0:
            return indent.expandtabs(-unit) + rest
        kept = indent.removeprefix(self.cut) if indent.startswith(self.cut) else ""
        return self.add + kept + rest


@dataclass(frozen=True, slots=True)
class BlockShift:
    """The shift of a block: its first line's and that of the rest."""

    first: Shift
    rest: Shift

    def fits(self, lines: Sequence[str]) -> bool:
        """Whether every line has the white space that is to be cut."""
        cuts = [self.first.cut]
        for line in lines:
            if line.strip():
                if not line.startswith(cuts[-1]):
                    return False
                cuts.append(self.rest.cut)
        return True

    def apply(self, lines: Sequence[str]) -> list[str]:
        """The lines of a block with their indentation shifted."""
        start = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
        shifted = list(lines)
        for number in range(start, len(lines)):
            shift = self.first if number == start else self.rest
            shifted[number] = shift.apply(lines[number])
        return shifted


def find_shift(
    quoted: Sequence[str], found: Sequence[str], new: Sequence[str] = ()
) -> BlockShift | None:
    """The uniform shift that turns quoted lines into those found, or None.

    Args:
        quoted: Lines as the model wrote them.
        found: Lines of the file, equal to them up to white space at both ends.
        new: The lines to shift; they decide what a single quoted line leaves open.
    """
    pairs = [(indent_of(q), indent_of(f)) for q, f in zip(quoted, found, strict=True) if q.strip()]
    if not pairs:
        return None
    tabs = _tab_shift(pairs)
    if tabs is not None:
        return BlockShift(tabs, tabs)
    shift = _uniform(pairs, new)
    return shift if shift is not None and shift.fits(new) else None


def _uniform(pairs: Sequence[tuple[str, str]], new: Sequence[str]) -> BlockShift | None:
    """The shift of the first line and that of all others, if each is uniform."""
    shifts = [_shift(q, f) for q, f in pairs]
    first = shifts[0]
    if first is None:
        return None
    rest = shifts[1:]
    if not rest:
        return BlockShift(first, Shift() if _only_first(pairs[0], new) else first)
    if any(a != b or a is None for a, b in pairwise([*rest, rest[-1]])):
        return None
    other = rest[0]
    return None if other is None else BlockShift(first, other)


def _shift(quoted: str, found: str) -> Shift | None:
    if found.endswith(quoted):
        return Shift(add=found[: len(found) - len(quoted)])
    if quoted.endswith(found):
        return Shift(cut=quoted[: len(quoted) - len(found)])
    return None


def _tab_shift(pairs: Sequence[tuple[str, str]]) -> Shift | None:
    """A conversion between spaces and tabs that explains every pair."""
    if all(q == f for q, f in pairs):
        return None
    for unit in (4, 2, 8, 3):
        if all(" " not in f and q == f.expandtabs(unit) for q, f in pairs):
            return Shift(spaces_per_tab=unit)
        if all(" " not in q and f == q.expandtabs(unit) for q, f in pairs):
            return Shift(spaces_per_tab=-unit)
    return None


def _only_first(pair: tuple[str, str], new: Sequence[str]) -> bool:
    """Whether only the first line lost its indentation, since the other new lines have it."""
    others = [line for line in new if line.strip()][1:]
    return bool(others) and all(line.startswith(pair[1]) for line in others) and pair[0] == ""


@dataclass(frozen=True, slots=True)
class Dedented:
    """Text without the white space that all its lines start with.

    Attributes:
        text: The text; lines of white space only are empty.
        margin: What was removed.
    """

    text: str
    margin: str

    @classmethod
    def of(cls, text: str) -> Dedented:
        """Dedent a text; tabs and spaces are not equal."""
        lines = text.split("\n")
        indents = [indent_of(line) for line in lines if line.strip()]
        first, last = min(indents, default=""), max(indents, default="")  # of the alphabet
        pairs = enumerate(zip(first, last, strict=False))
        margin = first[: next((n for n, (a, b) in pairs if a != b), len(first))]
        shown = (line[len(margin) :] if line.strip() else "" for line in lines)
        return cls("\n".join(shown), margin)


class IndentRepair:
    """Repairs a region rewrite line by line as it streams.

    The first line decides its own shift if it matches the region's first line up to indentation;
    the next known line decides the shift of the rest.  If the first line does not match, the
    rewrite passes unchanged.  The first indented line tells whether spaces were written for tabs or
    the reverse.

    A model that was shown the region without its margin mostly writes it without, too; the first
    line tells.

    Attributes:
        margin: White space that was left out in front of every line that the model was shown.
    """

    def __init__(
        self, old: Sequence[str], written: Sequence[str] = (), *, margin: str = ""
    ) -> None:
        """Start a repair.

        Args:
            old: The lines of the region.
            written: Lines of the rewrite that have come already, as the model wrote them.
            margin: See the class.
        """
        self.margin = margin
        self._old = [line for line in old if line.strip()]
        self._inner: IndentRepair | None = None  # of the lines without the margin
        self._margin_known = not margin
        self._first: Shift | None = None
        self._rest: Shift | None = None
        self._decided = not self._old
        kinds = {indent_of(line)[:1] for line in self._old} - {""}
        self._kind = kinds.pop() if len(kinds) == 1 else ""  # "\t" or " ", if it is all one
        self._unit: int | None = None  # spaces to a tab, once the other kind was seen
        for line in written:
            self.line(line)

    def line(self, line: str) -> str:
        """The next complete line, repaired."""
        if not line.strip():
            return line
        if not self._margin_known:
            self._margin_known = True
            first = indent_of(self._old[0]) if self._old else self.margin
            if not indent_of(line).startswith(first):
                self._inner = IndentRepair([old.removeprefix(self.margin) for old in self._old])
        elif self._inner is not None and self._whole(line):
            self._inner, self._decided = None, True
        if self._inner is not None:
            return self.margin + self._inner.line(line)
        indent = indent_of(line)
        if self._kind and indent and self._kind not in indent:
            return self._other_kind(line, indent)
        if self._first is None and not self._decided:
            self._decided = True
            known = self._old[0]
            if line.strip() == known.strip() and line != known:
                self._first = _shift(indent_of(line), indent_of(known)) or Shift()
                return self._first.apply(line)
            return line
        if self._first is None:
            return line
        if self._rest is None:
            self._rest = self._learn(line)
        return self._rest.apply(line)

    def _whole(self, line: str) -> bool:
        """Whether a line has its margin although the first one had not."""
        return line in self._old and not any(
            old.removeprefix(self.margin) == line for old in self._old
        )

    def _other_kind(self, line: str, indent: str) -> str:
        self._decided = True
        if self._unit is None:
            text = line.strip()
            depths = [len(indent_of(old)) for old in self._old if old.strip() == text]
            depth = next((d for d in depths if d), 0)
            wide, deep = (len(indent), depth) if self._kind == "\t" else (depth, len(indent))
            if depth and wide % deep == 0 and wide // deep in (2, 3, 4, 8):
                self._unit = wide // deep
        unit = self._unit or 4
        return Shift(spaces_per_tab=unit if self._kind == "\t" else -unit).apply(line)

    def _learn(self, line: str) -> Shift:
        """The shift of every line but the first."""
        same = [old for old in self._old[1:] if old.strip() == line.strip()]
        if same:
            # Models mostly lose the indentation of the first line only.
            return (
                Shift() if line in same else _shift(indent_of(line), indent_of(same[0])) or Shift()
            )
        # An unknown line that is indented as deep as the region's others has not lost anything.
        others = [indent_of(old) for old in self._old[1:]] or [indent_of(self._old[0])]
        deep = min(len(indent.expandtabs(8)) for indent in others)
        lost = len(indent_of(line).expandtabs(8)) < deep
        return (self._first if lost else None) or Shift()
