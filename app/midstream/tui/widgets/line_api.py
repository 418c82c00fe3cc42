"""Semi-internal hooks that widgets painted line by line need.

``Widget.virtual_size`` lays the whole screen out whenever it is assigned; a pane that grows sixty
times a second cannot pay for that, and its frame does not depend on its content.  And a widget that
overrides ``render_lines`` has to apply the app's line filters (``NO_COLOR`` and the like) itself;
the filter that gives the terminal's own colours fixed values is left out, because only themes
without it use such colours.  ``TextLine`` is a widget of one line, without the way from a text
to its cells that Textual has for all kinds of them: 0.5 ms where this takes 0.1.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self, cast

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import App
from textual.color import Color
from textual.filter import ANSIToTruecolor, Monochrome, NoColor
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from midstream.tui.eager import EAGER
from midstream.tui.glyphs import UNICODE, Glyphs
from midstream.tui.themes import Palette


def set_silently(widget: Widget, size: Size) -> None:
    """Set ``virtual_size`` without a layout."""
    widget.set_reactive(cast("Reactive[Size]", Widget.virtual_size), size)


def use_no_color(app: App[Any]) -> None:
    """Have an app emit no colour at all; Textual leaves greys where a theme has its own colours."""
    filters = app._filters  # pyright: ignore[reportPrivateUsage]
    filters[:] = [NoColor() if isinstance(each, Monochrome) else each for each in filters]


def filtered(widget: Widget, strips: list[Strip], background: Color) -> list[Strip]:
    """Strips after the app's line filters."""
    app = cast("App[object]", widget.app)  # pyright: ignore[reportUnknownMemberType]
    for line_filter in app.get_line_filters():
        if isinstance(line_filter, ANSIToTruecolor):
            continue
        strips = [strip.apply_filter(line_filter, background) for strip in strips]
    return strips


class Staying(Widget):
    """A widget that is never moved to another screen, and so need not look for its own.

    Textual goes up through all parents for it, whenever a size is asked for: several times a frame.
    """

    _own_screen: Screen[object] | None = None

    @property
    def screen(self) -> Screen[object]:
        screen = self._own_screen
        if screen is None:
            screen = self._own_screen = super().screen
        return screen


class Painted(Widget):
    """A widget that paints with a theme's colours itself."""

    @dataclass
    class Pressed(Message):
        """A part of the widget was clicked that stands for a screen action."""

        call: str

    def __init__(
        self, palette: Palette, glyphs: Glyphs = UNICODE, *, widget_id: str | None = None
    ) -> None:
        super().__init__(id=widget_id)
        self._palette = palette
        self._glyphs = glyphs

    def set_palette(self, palette: Palette) -> None:
        self._palette = palette
        self.refresh()


def calling(style: Style, call: str) -> Style:
    """A style of text in a ``TextLine`` that is a button for a screen action."""
    return style + Style.from_meta({"call": call})


class TextLine(Painted):
    """One line of text in the colours of a theme; kept until the widget is refreshed.

    Attributes:
        GROUND: The role whose colour is behind the text.
    """

    GROUND: ClassVar[str]

    def __init__(
        self, palette: Palette, glyphs: Glyphs = UNICODE, *, widget_id: str | None = None
    ) -> None:
        self._kept: tuple[int, list[Strip]] | None = None
        super().__init__(palette, glyphs, widget_id=widget_id)

    @abstractmethod
    def render(self) -> Text:
        """The line."""

    def on_click(self, event: events.Click) -> None:
        if call := event.style.meta.get("call"):
            self.post_message(self.Pressed(call))

    def render_lines(self, crop: Region) -> list[Strip]:
        if not EAGER or self.text_selection is not None:
            return super().render_lines(crop)
        width = self.size.width
        if self._kept is None or self._kept[0] != width:
            self._kept = (
                width,
                filtered(self, [self._strip(width)], self._palette.colors[self.GROUND]),
            )
        strips = self._kept[1][crop.y : crop.bottom]
        if crop.x or crop.width != width:
            return [strip.crop(crop.x, crop.right) for strip in strips]
        return strips

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        self._kept = None
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _strip(self, width: int) -> Strip:
        style = self._palette.style("foreground") + self._palette.ground(self.GROUND)
        return painted(self, self.render(), width, style)


def painted(widget: Widget, line: Text, width: int, base: Style, row: int = 0) -> Strip:
    """A line of text as it is painted, cut or filled up to ``width``.

    Args:
        widget: The widget that shows it.
        line: The line.
        width: Columns.
        base: The style of text without one.
        row: Which line of the widget's text it is, for selections.
    """
    app = cast("App[object]", widget.app)  # pyright: ignore[reportUnknownMemberType]
    segments: list[Segment] = []
    column = 0
    for text, style, _ in line.render(app.console, end=""):
        segments.append(Segment(text, _at(base if style is None else base + style, column, row)))
        column += len(text)
    return Strip(segments).adjust_cell_length(width, Style(bgcolor=base.bgcolor))


@lru_cache(maxsize=1_024)
def _at(style: Style, column: int, row: int) -> Style:
    """A style that says at which character of which line it begins, for selections."""
    return style + Style.from_meta({"offset": (column, row)})
