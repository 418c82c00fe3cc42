"""The help of a page: its keys in one column, made from the same table as its bindings."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from midstream.tui.screens.eager import EagerScreen
from midstream.tui.themes import Palette
from midstream.tui.widgets.key_sheet import KeySheet


class PageHelp(EagerScreen, ModalScreen[None]):
    """Keys and sentences; any closing key closes.

    Args:
        palette: The theme.
        title: The page.
        own: Keys and sentence of each action of the page.
        anywhere: The same of those that every page has.
    """

    AUTO_FOCUS = "KeySheet"

    DEFAULT_CSS = """
    PageHelp { align: center middle; background: $ms-background 60%; }
    PageHelp > Vertical {
        width: 92; max-width: 96%; height: auto; max-height: 94%; background: $ms-panel;
        border: round $ms-border; border-title-color: $ms-accent;
        border-subtitle-color: $ms-muted;
    }
    PageHelp KeySheet {
        height: auto; max-height: 100%; scrollbar-size-vertical: 1; padding: 0 1;
        background: $ms-panel;
    }
    PageHelp Static { height: auto; padding: 0 1; }
    PageHelp:ansi { background: transparent; }
    MidstreamApp.-ascii PageHelp > Vertical { border: ascii $ms-border; }
    """

    def __init__(
        self,
        palette: Palette,
        title: str,
        own: Sequence[tuple[str, str]],
        anywhere: Sequence[tuple[str, str]],
    ) -> None:
        super().__init__()
        self._palette = palette
        self._title = title
        self._own = own
        self._anywhere = anywhere

    def compose(self) -> ComposeResult:
        """The widgets."""
        box = Vertical()
        box.border_title = f"Keys: {self._title.lower()}"
        palette = self._palette
        table = Table.grid(padding=(0, 2))
        table.add_column(justify="right", no_wrap=True, width=16)
        table.add_column(ratio=1)
        for number, rows in enumerate((self._own, self._anywhere)):
            if number:
                table.add_row("", "")
            for keys, words in rows:
                table.add_row(
                    Text(keys, palette.style("foreground", bold=True)),
                    Text(words, palette.style("foreground")),
                )
        with box, KeySheet():
            yield Static(table)

    def on_key(self, event: events.Key) -> None:
        """Any closing key closes."""
        if event.key in ("escape", "question_mark", "q", "f1", "ctrl+c", "enter"):
            event.stop()
            event.prevent_default()
            self.dismiss(None)
