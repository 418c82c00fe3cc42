"""Sheets: framed text shown over a screen."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from msgspec import Struct
from rich.console import RenderableType
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from midstream.tui.eager import EagerScreen
from midstream.tui.glyphs import Glyphs
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.close_mark import CloseMark
from midstream.tui.widgets.line_api import Painted


class KeySheet(VerticalScroll, can_focus=True):
    """The content of a sheet."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", show=False),
        Binding("k", "scroll_up", show=False),
        Binding("space,ctrl+d", "page_down", show=False),
        Binding("b,ctrl+u", "page_up", show=False),
        Binding("g", "scroll_home", show=False),
        Binding("G", "scroll_end", show=False),
    ]


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
        border-subtitle-color: $ms-muted; layers: base corner;
    }
    SheetScreen KeySheet {
        height: auto; max-height: 100%; scrollbar-size-vertical: 1; padding: 0 1;
        background: $ms-panel;
    }
    SheetScreen Static { height: auto; padding: 0 1; }
    SheetScreen:ansi { background: transparent; }
    MidstreamApp.-ascii SheetScreen > Vertical { border: ascii $ms-border; }
    """

    def __init__(self, palette: Palette, glyphs: Glyphs, title: str) -> None:
        super().__init__()
        self._palette = palette
        self._title = title
        self.box = Vertical()
        self._cross = CloseMark(palette, glyphs)
        self._written: list[tuple[Static, Callable[[], RenderableType]]] = []

    def compose(self) -> ComposeResult:
        self.box.border_title = self._title
        with self.box:
            yield self._cross
            yield from self.compose_head()
            with KeySheet():
                yield from self.compose_sheet()

    def compose_head(self) -> ComposeResult:
        """The header, which does not scroll."""
        return ()

    def on_resize(self) -> None:
        self.call_after_refresh(self.tell)

    def tell(self) -> None:
        """Say on the border how to read on and how to close."""
        self.box.border_subtitle = "j and k scroll, esc closes" if self.scrolls else "esc closes"

    @property
    def scrolls(self) -> bool:
        """Whether there is more than is shown."""
        return self.query_one(KeySheet).max_scroll_y > 0

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
        self._cross.set_palette(palette)
        self.write_again()

    def write_again(self) -> None:
        """Write all texts again, in today's colours."""
        for text, write in self._written:
            text.update(write())

    @on(Painted.Pressed)
    def _crossed_out(self, event: Painted.Pressed) -> None:
        event.stop()
        self.dismiss(None)

    def on_click(self, event: events.Click) -> None:
        """A click beside the sheet closes it."""
        if not self.box.region.contains(event.screen_x, event.screen_y):
            self.dismiss(None)

    def on_key(self, event: events.Key) -> None:
        """Any closing key closes."""
        if event.key in self.CLOSING:
            event.stop()
            event.prevent_default()
            self.dismiss(None)


class Paragraph(Struct, frozen=True):
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

    def __init__(
        self, palette: Palette, glyphs: Glyphs, title: str, paragraphs: Sequence[Paragraph]
    ) -> None:
        super().__init__(palette, glyphs, title)
        self.paragraphs = tuple(paragraphs)

    def show(self, paragraphs: Sequence[Paragraph]) -> None:
        """Show other paragraphs from now on."""
        self.paragraphs = tuple(paragraphs)
        self.write_again()
        self.call_after_refresh(self.tell)

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


class HalfReadingScreen(ReadingScreen):
    """Shows paragraphs at the lower edge, or the upper one, and leaves the rest to be read."""

    FREE: ClassVar[int] = 50
    """Per cent of the height that stay free at least."""
    DEFAULT_CSS = f"""
    HalfReadingScreen {{ align: center bottom; background: transparent; }}
    HalfReadingScreen.-high {{ align: center top; }}
    HalfReadingScreen > Vertical {{ width: 100%; max-width: 100%; max-height: {100 - FREE}%; }}
    """
