"""The help screen: every key, under headings, made from the same table as the bindings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.table import Table
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from midstream.tui.glyphs import Glyphs
from midstream.tui.keymap import ACTIONS, Action, Group, Place, all_keys
from midstream.tui.screens.eager import EagerScreen
from midstream.tui.themes import Palette
from midstream.tui.widgets.key_sheet import KeySheet

_ABOUT: Final = (
    "Say what you want below the code; the change streams in as a diff. Decide each block as soon "
    "as it is settled: only accepted blocks are written to disk."
)
_WRITING: Final = "While writing an instruction"
_MOUSE: Final = (
    "Mouse: click moves the cursor, the wheel scrolls. Hold Shift (Option on a Mac) to select "
    "text as your terminal does."
)


class HelpScreen(EagerScreen, ModalScreen[None]):
    """Two columns of keys, or one where the screen is narrow."""

    AUTO_FOCUS = "KeySheet"

    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: $ms-background 60%; }
    HelpScreen > Vertical {
        width: 132; max-width: 96%; height: auto; max-height: 94%; background: $ms-panel;
        border: round $ms-border; border-title-color: $ms-accent;
        border-subtitle-color: $ms-muted;
    }
    HelpScreen KeySheet {
        height: auto; max-height: 100%; scrollbar-size-vertical: 1; padding: 0 1;
        background: $ms-panel;
    }
    HelpScreen Horizontal { height: auto; }
    HelpScreen .column { width: 1fr; height: auto; padding: 0 1; }
    HelpScreen .about { padding: 0 1; margin-bottom: 1; color: $ms-foreground; height: auto; }
    HelpScreen.-narrow Horizontal { layout: vertical; }
    HelpScreen.-narrow .column { width: 100%; }
    HelpScreen:ansi { background: transparent; }
    """

    def __init__(
        self, palette: Palette, glyphs: Glyphs, keys: Mapping[str, str], *, composing: bool
    ) -> None:
        super().__init__()
        self._palette = palette
        self._glyphs = glyphs
        self._keys = keys
        self._composing = composing

    def compose(self) -> ComposeResult:
        """The widgets."""
        groups: dict[str, list[Action]] = {group.value: [] for group in Group}
        groups[_WRITING] = []
        for action in ACTIONS:
            if not action.id.endswith(".anywhere"):
                writing = action.place is Place.COMPOSER
                groups[_WRITING if writing else action.group.value].append(action)
        first = [Group.DECIDE.value, Group.STEER.value, _WRITING, Group.PROGRAM.value]
        if self._composing:
            first = [_WRITING, Group.STEER.value, Group.DECIDE.value, Group.PROGRAM.value]
        second = (Group.MOVE.value, Group.VIEW.value)
        box = Vertical()
        box.border_title = "Keys while writing" if self._composing else "Keys"
        with box, KeySheet():
            yield Static(f"{_ABOUT}\n{_MOUSE}", classes="about", markup=False)
            with Horizontal():
                for column in (first, second):
                    yield Static(
                        self._column([(group, groups[group]) for group in column]), classes="column"
                    )

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
        """One column where two would not fit."""
        self.set_class(event.size.width < 124, "-narrow")

    def on_key(self, event: events.Key) -> None:
        """Any closing key closes."""
        if event.key in ("escape", "question_mark", "q", "f1", "ctrl+c", "enter"):
            event.stop()
            event.prevent_default()
            self.dismiss(None)
