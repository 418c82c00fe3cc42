"""Whole files with elided code: a line "... existing code ..." stands for lines to keep.

The text between two such lines goes where its first and last line are found in order; otherwise
nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from midstream.edits.documents import LineEdit
from midstream.edits.indent import indent_of
from midstream.edits.matching import Matcher

_ELISION = re.compile(
    r"\s*(?:#|//|--|;|%|/\*|<!--|\{/\*)?\s*(?:\.\.\.|…)\s*"
    r"(?:(?:the )?(?:existing|rest|remaining|unchanged|same|other|previous|omitted|keep)\b.*|"
    r"\(?(?:existing|rest|remaining|unchanged|same|other|previous|omitted)\b.*)"
    r"|\s*(?:#|//|--|;|%|/\*|<!--|\{/\*)\s*(?:the )?(?:rest|remaining|remainder)"
    r" of (?:the|your|this) (?:\w+ )?(?:code|file|class|function|methods?|content)\b.*"
    # A comment that says nothing else: "// existing code", "# unchanged", "/* ... */".
    r"|\s*(?:#|//|--|;|%|/\*|<!--|\{/\*)\s*[\[(]?(?:(?:the )?"
    r"(?:existing|unchanged|remaining|omitted|previous|other|same)"
    r"(?: (?:code|lines?|file|functions?|methods?|content|implementation|logic))?"
    r"(?: (?:here|unchanged|omitted|remains?|stays?|is|are|the same|not shown|as before"
    r"|goes here))*|as before|no changes? (?:here|above|below|needed))"
    r"[\])]?[\s.…]*(?:\*/\}?|-->)?\s*"
    r"|\s*(?:#|//|--|;|%|/\*|<!--|\{/\*)\s*(?:\.\.\.|…)\s*(?:\*/\}?|-->)?\s*"
    # No comment at all: "[rest of the file unchanged]", "-- snip --", "<snip>".
    r"|\s*[\[(](?:the )?(?:rest|remaining|remainder) of (?:the |your |this )?\w+\b[\w ]*[\])]\s*"
    r"|\s*(?:#|//|--|[-<\[]+)\s*[-<\[]*snip(?:ped)?\s*[->\]]*\s*",
    re.IGNORECASE,
)

_NOTHING = re.compile(r"^\s*pass\s+(?=#)")


def is_elision(line: str) -> bool:
    """Whether a line stands for lines that were left out, or does nothing and says so."""
    return _ELISION.fullmatch(_NOTHING.sub("", line)) is not None


def elides(old: Sequence[str], new: Sequence[str], *, whole: bool) -> bool:
    """Whether new text leaves out lines of the old text, which has no such line itself.

    Args:
        old: The old lines.
        new: What takes their place.
        whole: Whether that is all of a region or file: three dots alone are then no statement.
    """
    if whole and len(old) > 1 and _is_dots(new):
        return True
    return bool(old) and any(is_elision(line) and line not in old for line in new)


def _is_dots(lines: Sequence[str]) -> bool:
    """Whether a text is three dots and nothing else."""
    return [line.strip() for line in lines if line.strip()] in (["..."], ["…"])


def placeholder(old: Collection[str], new: Iterable[str]) -> str | None:
    """The first new line that stands for code that was left out, if the old text lacks it."""
    return next((line for line in new if is_elision(line) and line not in old), None)


def elided(path: str) -> str:
    """The sentence about a text that ``merge`` cannot place."""
    return f"Code was left out, and it is unclear where the rest belongs in {path}."


def merge(old: Sequence[str], new: Sequence[str], path: str = "") -> list[LineEdit] | None:
    """The edits that new text with elisions makes to the old one; None where a place is unclear."""
    if _is_dots(new):
        return None
    pieces: list[list[str]] = [[]]
    for line in new:
        if is_elision(line) and line not in old:
            pieces.append([])
        else:
            pieces[-1].append(line)
    matcher = Matcher(old, path)
    edits: list[LineEdit] = []
    cursor = 0
    for number, piece in enumerate(pieces):
        lines = _stripped(piece, head=number > 0, tail=number < len(pieces) - 1)
        if not lines:
            continue
        start = 0 if number == 0 else _only(matcher, lines[0], cursor)
        if start is None:
            return None
        if number == len(pieces) - 1:
            stop = len(old)
        else:
            end = _end(matcher, old, lines, start)
            if end is None:
                return None
            stop = end + 1
        if start < cursor:
            return None
        edits.append(LineEdit(start, stop, tuple(lines)))
        cursor = stop
    return edits or None


def _stripped(piece: list[str], *, head: bool, tail: bool) -> list[str]:
    """The piece without blank lines next to an elision: those belong to what was left out."""
    lines = list(piece)
    while head and lines and not lines[0].strip():
        lines.pop(0)
    while tail and lines and not lines[-1].strip():
        lines.pop()
    return lines


def _only(matcher: Matcher, line: str, start: int) -> int | None:
    found = matcher.find_line(line, start)
    if found is None or matcher.find_line(line, found + 1) is not None:
        return None
    return found


def _end(matcher: Matcher, old: Sequence[str], lines: list[str], start: int) -> int | None:
    """The old line that the last line of a piece stands for."""
    if len(lines) == 1:
        return start
    block = matcher.block_end(start)
    last = lines[-1].strip()
    inside = [n for n in range(start + 1, block) if old[n].strip() == last]
    if inside:
        return inside[-1]
    # A closing bracket follows its block.
    if block < len(old) and old[block].strip() == last:
        return block
    found = _only(matcher, lines[-1], start + 1)
    if found is None and block > start + 1:
        # The last line is new: the whole block was given, so the whole block is replaced.
        depth = len(indent_of(lines[0]))
        if all(len(indent_of(line)) > depth for line in lines[1:] if line.strip()):
            return block - 1
    return found
