"""What the conversation's widgets tell the screen; apart from them, which are imported lazily."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message


@dataclass
class FilePicked(Message):
    """A tool that is about a file was clicked."""

    path: str
