"""Sheets: framed text to read over a screen, and help, from the same table as the bindings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from midstream.actions import ACTIONS, Action, Group, Place
from midstream.tui.eager import EagerScreen
from midstream.tui.keymap import all_keys
from midstream.tui.themes import Palette
from midstream.tui.visible import visible


class KeySheet(VerticalScroll, can_focus=True):
    """A list of keys to read; the border around it says how to read on and how to close."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", show=False),
        Binding("k", "scroll_up", show=False),
        Binding("space,ctrl+d", "page_down", show=False),
        Binding("b,ctrl+u", "page_up", show=False),
        Binding("g", "scroll_home", show=False),
        Binding("G", "scroll_end", show=False),
    ]

    def on_resize(self) -> None:
        self.call_after_refresh(self._say_how_to_go_on)

    def _say_how_to_go_on(self) -> None:
        if isinstance(box := self.parent, Widget):
            more = self.max_scroll_y > 0
            box.border_subtitle = "j and k scroll, esc closes" if more else "esc closes"


class SheetScreen(EagerScreen, ModalScreen[None]):
    """A sheet; subclasses say what stands on it."""

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
        box = Vertical()
        box.border_title = self._title
        with box, KeySheet():
            yield from self.compose_sheet()

    @abstractmethod
    def compose_sheet(self) -> ComposeResult:
        """What stands on the sheet, made with ``written``."""

    def written(self, write: Callable[[], RenderableType], classes: str = "") -> Static:
        """A text that is written again when the colours change."""
        text = Static(write(), classes=classes, markup=False)
        self._written.append((text, write))
        return text

    def set_palette(self, palette: Palette) -> None:
        self._palette = palette
        for text, write in self._written:
            text.update(write())

    def on_key(self, event: events.Key) -> None:
        """Any closing key closes."""
        if event.key in self.CLOSING:
            event.stop()
            event.prevent_default()
            self.dismiss(None)


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
    """Shows paragraphs."""

    CLOSING = (*SheetScreen.CLOSING, "f3", "exclamation_mark")
    DEFAULT_CSS = """
    ReadingScreen > Vertical { width: 108; max-height: 90%; }
    """

    def __init__(self, palette: Palette, title: str, paragraphs: Sequence[Paragraph]) -> None:
        super().__init__(palette, title)
        self.paragraphs = tuple(paragraphs)

    def compose_sheet(self) -> ComposeResult:
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
