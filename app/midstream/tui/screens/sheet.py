"""What the screens that are only read share: a framed sheet over the screen that they belong to.

A sheet scrolls, follows the theme, and any closing key closes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.console import RenderableType
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from midstream.tui.screens.eager import EagerScreen
from midstream.tui.themes import Palette
from midstream.tui.widgets.key_sheet import KeySheet


class SheetScreen(EagerScreen, ModalScreen[None]):
    """A sheet; subclasses say what stands on it.

    Args:
        palette: The theme.
        title: What is read here.
    """

    AUTO_FOCUS = "KeySheet"
    CLOSING: ClassVar[tuple[str, ...]] = ("escape", "q", "ctrl+c", "enter")
    """Keys that close it."""
    DEFAULT_CSS = """
    SheetScreen { align: center middle; background: $ms-background 60%; }
    SheetScreen > Vertical {
        width: 92; max-width: 96%; height: auto; max-height: 94%; background: $ms-panel;
        border: round $ms-border; border-title-color: $ms-accent;
        border-subtitle-color: $ms-muted;
    }
    SheetScreen KeySheet {
        height: auto; max-height: 100%; scrollbar-size-vertical: 1; padding: 0 1;
        background: $ms-panel;
    }
    SheetScreen Static { height: auto; padding: 0 1; }
    SheetScreen:ansi { background: transparent; }
    MidstreamApp.-ascii SheetScreen > Vertical { border: ascii $ms-border; }
    """

    def __init__(self, palette: Palette, title: str) -> None:
        super().__init__()
        self._palette = palette
        self._title = title
        self._written: list[tuple[Static, Callable[[], RenderableType]]] = []

    def compose(self) -> ComposeResult:
        """The frame."""
        box = Vertical()
        box.border_title = self._title
        with box, KeySheet():
            yield from self.compose_sheet()

    def compose_sheet(self) -> ComposeResult:
        """What stands on the sheet, made with ``written``."""
        raise NotImplementedError

    def written(self, write: Callable[[], RenderableType], classes: str = "") -> Static:
        """A text that is written again when the colours change."""
        text = Static(write(), classes=classes, markup=False)
        self._written.append((text, write))
        return text

    def set_palette(self, palette: Palette) -> None:
        """Draw with other colours."""
        self._palette = palette
        for text, write in self._written:
            text.update(write())

    def on_key(self, event: events.Key) -> None:
        """Any closing key closes."""
        if event.key in self.CLOSING:
            event.stop()
            event.prevent_default()
            self.dismiss(None)
