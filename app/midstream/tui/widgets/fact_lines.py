"""A block of prepared lines; telemetry is made of a few of them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.widget import Widget


class FactLines(Widget):
    """Shows lines that somebody else made; paints only when they differ."""

    DEFAULT_CSS = """
    FactLines { height: 1fr; width: 1fr; background: $ms-background; color: $ms-foreground;
        text-wrap: nowrap; text-overflow: clip; }
    """

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self.lines: tuple[Text, ...] = ()

    def show(self, lines: Sequence[Text]) -> None:
        """Show these lines from now on."""
        if self.lines != (made := tuple(lines)):
            grown = len(made) != len(self.lines)
            self.lines = made
            self.refresh(layout=grown and self.styles.is_auto_height)

    @property
    def plain(self) -> str:
        """The lines without style."""
        return "\n".join(line.plain.rstrip() for line in self.lines)

    def render(self) -> Text:
        """All lines."""
        return Text("\n").join(self.lines)
