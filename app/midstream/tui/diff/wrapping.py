"""Where a long line of code is broken, and its segments cut there.

A line breaks behind a space or a separator where one is near, and anywhere otherwise.  What goes on
below is indented a little further than the line, so that it cannot be taken for the next one.
Widths are terminal cells: a wide character is never split.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

_BEHIND: Final = (frozenset(" ,;([{"), frozenset("._/-=:"))
"""Where a line may break, the better places first."""
_NEAR: Final = 0.35
"""Share of a line's room that may stay empty to break at a better place."""
_STEP: Final = 2


def hanging(text: str, room: int) -> int:
    """Cells that the lines after the first are indented by."""
    return min(len(text) - len(text.lstrip(" ")) + _STEP, room // 3)


@lru_cache(maxsize=1_024)
def breaks(text: str, room: int) -> tuple[int, ...]:
    """The offsets at which ``text`` goes on in the next line; none where it fits.

    Args:
        text: What is shown, without tabs and control characters.
        room: Cells of the first line; further ones have :func:`hanging` less.
    """
    if len(text) <= room and (text.isascii() or cell_len(text) <= room):
        return ()
    widths = [1] * len(text) if text.isascii() else _widths(text)
    places: list[int] = []
    start = used = 0
    limit = max(1, room)
    for at, width in enumerate(widths):
        while used + width > limit and at > start:
            place = _place(text, start, at, limit)
            places.append(place)
            start, limit = place, max(1, room - hanging(text, room))
            used = sum(widths[start:at])
        used += width
    return tuple(places)


def _widths(text: str) -> list[int]:
    """The cells of each character; one that joins the character before it has what it adds."""
    widths: list[int] = []
    for index, character in enumerate(text):
        width = cell_len(character)
        if not width and index:
            width = max(0, cell_len(text[index - 1 : index + 1]) - cell_len(text[index - 1]))
        widths.append(width)
    return widths


def _place(text: str, start: int, at: int, limit: int) -> int:
    """The best offset to break at, not behind ``at``."""
    nearest = max(start + 1, at - int(limit * _NEAR))
    for behind in _BEHIND:
        for place in range(at, nearest - 1, -1):
            if text[place - 1] in behind and text[start:place].strip():
                return place
    # A mark that joins the character before it stays with it.
    place = at
    while place > start + 1 and not cell_len(text[place]):
        place -= 1
    return place


def wrapped(segments: Sequence[Segment], room: int, ground: Style) -> list[list[Segment]]:
    """The segments of one line as those of as many lines as it takes."""
    text = "".join(segment.text for segment in segments)
    places = breaks(text, room)
    if not places:
        return [list(segments)]
    indent = Segment(" " * hanging(text, room), ground)
    lines: list[list[Segment]] = []
    for start, stop in pairwise((0, *places, len(text))):
        line = cut(segments, start, stop)
        lines.append([indent, *line] if lines else line)
    return lines


def cut(segments: Sequence[Segment], start: int, stop: int) -> list[Segment]:
    """The characters ``[start, stop)`` of some segments, as segments."""
    parts: list[Segment] = []
    at = 0
    for text, style, _ in segments:
        low, high = max(start - at, 0), min(stop - at, len(text))
        if low < high:
            parts.append(Segment(text[low:high], style))
        at += len(text)
    return parts
