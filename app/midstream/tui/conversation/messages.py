"""Messages from the conversation's widgets to the screen, and what both know.

They are kept apart because the widgets are imported lazily.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from textual.message import Message

if TYPE_CHECKING:
    from midstream.pairing.chat.entries import ToolUse

MAX_QUESTION_LENGTH: Final = 120
"""Characters of a call that the notice line quotes: two rows of 80 columns. The conversation has
all of it."""


@dataclass
class FilePicked(Message):
    """A link to a file was clicked.

    Attributes:
        path: The file.
        line: 0-based line of the file, ``None`` for no particular one.
    """

    path: str
    line: int | None = None


@dataclass
class ToolPicked(Message):
    """A use of a tool that is about a file was chosen, by a key or a click."""

    use: ToolUse
