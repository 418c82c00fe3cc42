"""What models do to a region beside rewriting it, and what they meant by it.

Asked for a region, some answer with the whole file or with the lines around it, which would stand
twice, and some number the lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_NUMBERED: Final = re.compile(r"\s*(\d{1,6})(?=\D|$)")
_SEPARATORS: Final = (" | ", "| ", "|", ": ", "\t", " ", ":")
_MIN_CHARACTERS: Final = 8
"""Letters and digits of lines beside a region, so that brackets alone are not taken for them."""


def unnumbered(old: Sequence[str], new: Sequence[str]) -> list[str] | None:
    """The lines without the numbers in front of them, which count up; ``None`` without numbers."""
    filled = [line for line in new if line.strip()]
    numbers = [_NUMBERED.match(line) for line in filled]
    if any(_NUMBERED.match(line) for line in old):
        return None
    found = [int(number[1]) for number in numbers if number is not None]
    if len(found) < len(filled) or found != sorted(set(found)) or len(filled) < 2:
        return None
    rests = [line[number.end() :] for line, number in zip(filled, numbers, strict=True) if number]
    separator = next((s for s in _SEPARATORS if all(_begins(rest, s) for rest in rests)), None)
    if separator is None:
        return None
    lines: list[str] = []
    for line in new:
        number = _NUMBERED.match(line)
        rest = "" if number is None else line[number.end() :]
        lines.append(rest[len(separator) :])
    return lines


def _begins(rest: str, separator: str) -> bool:
    """Whether the separator follows a line's number; a blank line may lack it, or its end."""
    return rest.startswith(separator) or rest in ("", separator.rstrip())


def without_surroundings(
    lines: Sequence[str], start: int, stop: int, new: Sequence[str]
) -> tuple[int, int, list[str]] | None:
    """What a rewrite of some lines of a file means that holds lines around them, too.

    Args:
        lines: The file.
        start: First line of the region.
        stop: Line after its last one.
        new: The region as rewritten.

    Returns:
        The lines that are rewritten, half-open, and by what: the region without what stands around
        it already, or all of the file if something was added there. ``None`` if it is the region.
    """
    ahead, behind = _filled(lines, 0, start), _filled(lines, stop, len(lines))
    old, written = _filled(lines, start, stop), _filled(new, 0, len(new))
    texts, before = [text for _, text in written], [text for _, text in old]
    head = next((n for n in range(len(ahead), 0, -1) if texts[:n] == _texts(ahead[-n:])), 0)
    rest = texts[head:]
    tail = next((n for n in range(len(behind), 0, -1) if rest[-n:] == _texts(behind[:n])), 0)
    again, below = _texts(ahead[len(ahead) - head :]), _texts(behind[:tail])
    if (head, tail) != (len(ahead), len(behind)):
        if _is_whole(_texts(ahead), _texts(behind), texts, before):
            return 0, len(lines), list(new)
        head, tail = head if _speaks(again) else 0, tail if _speaks(below) else 0
    elif not _speaks([*again, *below]):
        return None
    head = 0 if before[:head] == again[:head] else head
    tail = 0 if before[-tail:] == below else tail
    kept = written[head : len(written) - tail]
    if not (head or tail) or not kept or not old:
        return None
    above, under = old[0][0] - start, stop - 1 - old[-1][0]
    return start, stop, [*[""] * above, *new[kept[0][0] : kept[-1][0] + 1], *[""] * under]


def _filled(lines: Sequence[str], start: int, stop: int) -> list[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    return [(n, lines[n].rstrip()) for n in range(start, stop) if lines[n].strip()]


def _texts(lines: Sequence[tuple[int, str]]) -> list[str]:
    return [text for _, text in lines]


def _speaks(block: Sequence[str]) -> bool:
    return sum(map(str.isalnum, "".join(block))) >= _MIN_CHARACTERS


def _is_whole(
    before: Sequence[str], after: Sequence[str], written: Sequence[str], old: Sequence[str]
) -> bool:
    """Whether a rewrite has all lines of the file before the region, and all after it, in order."""
    if not _speaks([*before, *after]) or not {*before, *after} - {*old}:
        return False
    at, end = 0, len(written)
    for line in before:
        at = _next(written, line, at)
        if at > end:
            return False
    for line in reversed(after):
        end = _previous(written, line, end)
        if end < at:
            return False
    return True


def _next(lines: Sequence[str], line: str, at: int) -> int:
    """The number after the next line that is this one; more than there are if there is none."""
    return next((n + 1 for n in range(at, len(lines)) if lines[n] == line), len(lines) + 1)


def _previous(lines: Sequence[str], line: str, end: int) -> int:
    """The number of the last line before ``end`` that is this one; -1 if there is none."""
    return next((n for n in range(end - 1, -1, -1) if lines[n] == line), -1)
