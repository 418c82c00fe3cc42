"""A block of prepared lines; telemetry is made of a few of them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.widget import Widget


class FactLines(Widget):
    """Shows lines that somebody else made; paints only when they differ."""

    DEFAULT_CSS = """
    FactLines { height: 1fr; width: 1fr; background: $ms-background; color: $ms-foreground; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: tuple[Text, ...] = ()

    def show(self, lines: Sequence[Text]) -> None:
        """Show these lines from now on."""
        if self.lines != (made := tuple(lines)):
            self.lines = made
            self.refresh()

    @property
    def plain(self) -> str:
        """The lines without style."""
        return "\n".join(line.plain.rstrip() for line in self.lines)

    def render(self) -> Text:
        """All lines."""
        text = Text("\n", no_wrap=True, overflow="crop").join(self.lines)
        text.no_wrap, text.overflow = True, "crop"
        return text
