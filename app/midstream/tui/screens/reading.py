"""A page that is only read: paragraphs with headings, over the screen it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from midstream.tui.screens.eager import EagerScreen
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.key_sheet import KeySheet


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A heading and the lines below it.

    Attributes:
        heading: What the lines are about.
        lines: Text and palette role of each; they wrap.
    """

    heading: str
    lines: tuple[tuple[str, str], ...]


class ReadingScreen(EagerScreen, ModalScreen[None]):
    """Shows paragraphs; any closing key closes, the others scroll.

    Args:
        palette: The theme.
        title: What is read here.
        paragraphs: In this order.
    """

    AUTO_FOCUS = "KeySheet"
    DEFAULT_CSS = """
    ReadingScreen { align: center middle; background: $ms-background 60%; }
    ReadingScreen > Vertical {
        width: 108; max-width: 96%; height: auto; max-height: 90%; background: $ms-panel;
        border: round $ms-border; border-title-color: $ms-accent;
        border-subtitle-color: $ms-muted;
    }
    ReadingScreen KeySheet {
        height: auto; max-height: 100%; scrollbar-size-vertical: 1; padding: 0 1;
        background: $ms-panel;
    }
    ReadingScreen Static { height: auto; padding: 0 1; }
    ReadingScreen:ansi { background: transparent; }
    MidstreamApp.-ascii ReadingScreen > Vertical { border: ascii $ms-border; }
    """

    def __init__(self, palette: Palette, title: str, paragraphs: Sequence[Paragraph]) -> None:
        super().__init__()
        self._palette = palette
        self._title = title
        self.paragraphs = tuple(paragraphs)

    def compose(self) -> ComposeResult:
        """The widgets."""
        box = Vertical()
        box.border_title = self._title
        with box, KeySheet():
            yield Static(self._text(), markup=False)

    def _text(self) -> Text:
        palette, text = self._palette, Text(overflow="fold")
        for number, paragraph in enumerate(self.paragraphs):
            text.append("\n\n" if number else "")
            text.append(visible(paragraph.heading), palette.style("accent", bold=True))
            for line, role in paragraph.lines:
                shown = "\n".join(visible(part) for part in line.split("\n"))
                text.append(f"\n{shown}", palette.style(role))
        return text

    def on_key(self, event: events.Key) -> None:
        """Any closing key closes."""
        if event.key in ("escape", "q", "f3", "exclamation_mark", "ctrl+c", "enter"):
            event.stop()
            event.prevent_default()
            self.dismiss(None)
