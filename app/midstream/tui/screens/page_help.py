"""The help of a page: its keys in one column, made from the same table as its bindings."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult

from midstream.tui.screens.sheet import SheetScreen
from midstream.tui.themes import Palette


class PageHelp(SheetScreen):
    """Keys and sentences.

    Args:
        palette: The theme.
        title: The page.
        own: Keys and sentence of each action of the page.
        anywhere: The same of those that every page has.
    """

    CLOSING = (*SheetScreen.CLOSING, "question_mark", "f1")

    def __init__(
        self,
        palette: Palette,
        title: str,
        own: Sequence[tuple[str, str]],
        anywhere: Sequence[tuple[str, str]],
    ) -> None:
        super().__init__(palette, f"Keys: {title.lower()}")
        self._own = own
        self._anywhere = anywhere

    def compose_sheet(self) -> ComposeResult:
        """The table."""
        yield self.written(self._table)

    def _table(self) -> Table:
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
        return table
