"""Makes text safe and honest to show: nothing from a file or a model reaches the terminal raw.

Control characters become their pictures, tabs become spaces, bidirectional overrides and invisible
characters (the tools of "trojan source") become marks of one cell.  Columns are mapped, so that
token spans still fit.
"""

from __future__ import annotations

import re
from typing import Final

from rich.cells import cell_len

TAB: Final = 4
"""Cells between two tab stops."""
MARK: Final = "\ufffd"
"""Shown for a character that is invisible or would reorder the line."""

_SUSPICIOUS: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_PLAIN: Final = re.compile(r"[\x20-\x7e]*\Z")


def is_plain(text: str) -> bool:
    """Whether ``text`` is printable ASCII, one cell per character, and can be shown as it is."""
    return _PLAIN.match(text) is not None


def _shown(character: str, ascii_only: bool) -> str:
    code = ord(character)
    if code < 0x20:
        return "?" if ascii_only else chr(0x2400 + code)
    if code == 0x7F:
        return "?" if ascii_only else "\u2421"
    return "?" if ascii_only else MARK


def visible(text: str, *, ascii_only: bool = False) -> str:
    """``text`` as it can be shown: no control characters, no tabs, nothing invisible."""
    shown, _ = visible_with_columns(text, ascii_only=ascii_only)
    return shown


def visible_with_columns(text: str, *, ascii_only: bool = False) -> tuple[str, list[int] | None]:
    """Like ``visible``, with where each character went.

    Returns:
        The text to show, and for every character of ``text`` (and its end) its index in it;
        ``None`` means that nothing moved.
    """
    if is_plain(text):
        return text, None
    if "\t" not in text:
        shown = _SUSPICIOUS.sub(lambda match: _shown(match.group(), ascii_only), text)
        if ascii_only:
            shown = "".join(c if c.isascii() else "?" * max(cell_len(c), 1) for c in shown)
            if len(shown) != len(text):
                return shown, _columns_by_width(text)
        return shown, None
    parts: list[str] = []
    columns: list[int] = []
    index = cells = 0
    for character in text:
        columns.append(index)
        if character == "\t":
            part = " " * (TAB - cells % TAB)
        elif _SUSPICIOUS.match(character):
            part = _shown(character, ascii_only)
        elif ascii_only and not character.isascii():
            part = "?" * max(cell_len(character), 1)
        else:
            part = character
        parts.append(part)
        index += len(part)
        cells += len(part) if part.isascii() else cell_len(part)
    columns.append(index)
    return "".join(parts), columns


def _columns_by_width(text: str) -> list[int]:
    columns = [0]
    for character in text:
        columns.append(columns[-1] + (1 if character.isascii() else max(cell_len(character), 1)))
    return columns
