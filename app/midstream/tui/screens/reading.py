"""A page that is only read: paragraphs with headings, over the screen it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual.app import ComposeResult

from midstream.tui.screens.sheet import SheetScreen
from midstream.tui.themes import Palette
from midstream.tui.visible import visible


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A heading and the lines below it.

    Attributes:
        heading: What the lines are about.
        lines: Text and palette role of each; they wrap.
    """

    heading: str
    lines: tuple[tuple[str, str], ...]


class ReadingScreen(SheetScreen):
    """Shows paragraphs.

    Args:
        palette: The theme.
        title: What is read here.
        paragraphs: In this order.
    """

    CLOSING = (*SheetScreen.CLOSING, "f3", "exclamation_mark")
    DEFAULT_CSS = """
    ReadingScreen > Vertical { width: 108; max-height: 90%; }
    """

    def __init__(self, palette: Palette, title: str, paragraphs: Sequence[Paragraph]) -> None:
        super().__init__(palette, title)
        self.paragraphs = tuple(paragraphs)

    def compose_sheet(self) -> ComposeResult:
        """The paragraphs."""
        yield self.written(self._text)

    def _text(self) -> Text:
        palette, text = self._palette, Text(overflow="fold")
        for number, paragraph in enumerate(self.paragraphs):
            text.append("\n\n" if number else "")
            text.append(visible(paragraph.heading), palette.style("accent", bold=True))
            for line, role in paragraph.lines:
                shown = "\n".join(visible(part) for part in line.split("\n"))
                text.append(f"\n{shown}", palette.style(role))
        return text
