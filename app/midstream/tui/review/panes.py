"""The widgets of the review screen and how they are laid out."""

from __future__ import annotations

from typing import Any, TypeVar

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, TextArea

from midstream.tui.glyphs import Glyphs
from midstream.tui.review.reason import ReasonBar, ReleaseBar
from midstream.tui.review.search import SearchBar
from midstream.tui.themes import Palette
from midstream.tui.widgets.composer import Composer
from midstream.tui.widgets.diff_pane import DiffPane
from midstream.tui.widgets.file_bar import FileBar
from midstream.tui.widgets.key_bar import KeyBar
from midstream.tui.widgets.notice import NoticeLine
from midstream.tui.widgets.rail import Rail
from midstream.tui.widgets.ruler import Ruler
from midstream.tui.widgets.status_row import StatusRow
from midstream.tui.widgets.suggestions import Suggestions
from midstream.tui.widgets.welcome import Welcome

W = TypeVar("W", bound=Widget)

WIDE = 140
MEDIUM = 80
TALL = 24


class ReviewPanes:
    """All widgets by name; created before the screen is composed."""

    def __init__(self, screen: Screen[Any], palette: Palette, glyphs: Glyphs) -> None:
        self.screen = screen
        self.status = named(StatusRow(palette, glyphs), "status")
        self.rail = named(Rail(palette, glyphs), "rail")
        self.welcome = named(Welcome(palette), "welcome")
        self.file = named(FileBar(palette, glyphs), "file")
        self.pane = named(DiffPane(palette, glyphs), "pane")
        self.ruler = named(Ruler(palette, glyphs), "ruler")
        self.code = Vertical(self.file, Horizontal(self.pane, self.ruler, id="panes"), id="code")
        self.body = Horizontal(self.rail, Vertical(self.welcome, self.code, id="centre"), id="body")
        self.search = SearchBar(id="search")
        self.release = ReleaseBar()
        self.reason = ReasonBar()
        self.suggestions = named(Suggestions(palette), "suggestions")
        self.notice = named(NoticeLine(palette), "notice")
        self.composer = named(Composer(palette, glyphs), "composer")
        self.keys = named(KeyBar(palette), "keys")
        self.code.display = False

    def compose(self) -> ComposeResult:
        """The widgets from top to bottom."""
        yield self.status
        yield self.body
        yield self.search
        yield self.release
        yield self.reason
        yield self.suggestions
        yield self.notice
        yield self.composer
        yield self.keys

    def set_palette(self, palette: Palette, glyphs: Glyphs) -> None:
        """Draw everything with other colours."""
        for widget in (self.pane, self.rail, self.composer, self.status, self.file, self.ruler):
            widget.set_palette(palette, glyphs)
        for widget in (self.keys, self.notice, self.suggestions, self.welcome):
            widget.set_palette(palette)

    def lay_out(self, width: int, height: int) -> None:
        """Choose the layout by size."""
        small = width < MEDIUM or height < TALL
        wide = width >= WIDE and not small
        self.screen.set_class(small, "-small")
        self.screen.set_class(wide, "-wide")
        self.rail.display = wide
        self.screen.remove_class("-rail-open")

    def show_code(self, shown: bool) -> None:
        """Show the code, or the welcome in its place."""
        self.code.display, self.welcome.display = shown, not shown

    def focus(self, widget: Widget | None) -> None:
        """Send the keys to a widget."""
        self.screen.set_focus(widget)

    def focus_composer(self) -> None:
        """Send the keys to the composer's text."""
        self.screen.set_focus(self.composer.field)

    @property
    def typing(self) -> bool:
        """Whether keys are text at the moment."""
        return isinstance(self.screen.focused, (TextArea, Input))

    @property
    def composing(self) -> bool:
        """Whether the composer has the focus."""
        return self.composer.has_focus_within

    @property
    def rail_over_code(self) -> bool:
        """Whether the rail lies over the code, as on narrow screens."""
        return self.screen.has_class("-rail-open")


def named(widget: W, name: str) -> W:
    """The widget, with the id its stylesheet and queries know it by."""
    widget.id = name
    return widget
