"""What the conversation's widgets tell the screen; apart from them, which are imported lazily."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message


@dataclass
class FilePicked(Message):
    """A tool that is about a file, or a link to one, was clicked.

    Attributes:
        path: The file.
        line: 0-based line of it, ``None`` for wherever it is.
    """

    path: str
    line: int | None = None
