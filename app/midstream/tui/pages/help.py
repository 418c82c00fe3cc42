"""Help: the keys of the review screen and of the pages, from the same table as the bindings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from rich.table import Table
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal

from midstream.actions import ACTIONS, Action, Group, Place
from midstream.tui.keymap import all_keys
from midstream.tui.pages.sheet import SheetScreen
from midstream.tui.themes import Palette

_ABOUT: Final = (
    "Say what you want below the code; the change streams in as a diff. Decide each block as soon "
    "as it is settled: only accepted blocks are written to disk."
)
_WRITING: Final = "While writing an instruction"
_MOUSE: Final = (
    "Mouse: a click moves the cursor, a drag marks lines, the wheel scrolls. Hold Shift (Option on "
    "a Mac) to select text as your terminal does."
)


class HelpScreen(SheetScreen):
    """Two columns of keys, or one where the screen is narrow."""

    CLOSING = (*SheetScreen.CLOSING, "question_mark", "f1")
    DEFAULT_CSS = """
    HelpScreen > Vertical { width: 132; }
    HelpScreen Horizontal { height: auto; }
    HelpScreen .column { width: 1fr; }
    HelpScreen .about { margin-bottom: 1; color: $ms-foreground; }
    HelpScreen.-narrow Horizontal { layout: vertical; }
    HelpScreen.-narrow .column { width: 100%; }
    """

    def __init__(self, palette: Palette, keys: Mapping[str, str], *, composing: bool) -> None:
        super().__init__(palette, "Keys while writing" if composing else "Keys")
        self._keys = keys
        self._composing = composing

    def compose_sheet(self) -> ComposeResult:
        groups: dict[str, list[Action]] = {group.value: [] for group in Group}
        groups[_WRITING] = []
        for action in ACTIONS:
            if not action.id.endswith(".anywhere"):
                writing = action.place is Place.COMPOSER
                groups[_WRITING if writing else str(action.group)].append(action)
        first = [Group.DECIDE.value, Group.STEER.value, _WRITING, Group.PROGRAM.value]
        if self._composing:
            first = [_WRITING, Group.STEER.value, Group.DECIDE.value, Group.PROGRAM.value]
        second = (Group.MOVE.value, Group.VIEW.value)
        yield self.written(lambda: f"{_ABOUT}\n{_MOUSE}", "about")
        with Horizontal():
            for column in (first, second):
                listed = [(group, groups[group]) for group in column]
                yield self.written(partial(self._column, listed), "column")

    def _column(self, groups: list[tuple[str, list[Action]]]) -> Table:
        palette = self._palette
        table = Table.grid(padding=(0, 1))
        table.add_column(justify="right", no_wrap=True, width=14)
        table.add_column(ratio=1)
        for number, (heading, actions) in enumerate(groups):
            if number:
                table.add_row("", "")
            table.add_row("", Text(heading, palette.style("accent", bold=True)))
            for action in actions:
                here = (
                    action.place is Place.COMPOSER
                ) == self._composing or action.place is Place.ANYWHERE
                role = "foreground" if here else "muted"
                keys = all_keys(self._keys, action.id)
                table.add_row(
                    Text(keys, palette.style(role, bold=here)),
                    Text(action.help, palette.style(role)),
                )
        return table

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < 124, "-narrow")


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
