"""The widgets of the review screen and their layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, TextArea

from midstream.tui.glyphs import Glyphs
from midstream.tui.notices import NoticeLine
from midstream.tui.services import Themed
from midstream.tui.themes import Palette
from midstream.tui.widgets.composer import Composer
from midstream.tui.widgets.diff_pane import DiffPane
from midstream.tui.widgets.fields import EntryRow
from midstream.tui.widgets.file_bar import FileBar
from midstream.tui.widgets.key_bar import KeyBar, KeyHint
from midstream.tui.widgets.rail import Rail
from midstream.tui.widgets.ruler import Ruler
from midstream.tui.widgets.status_row import StatusRow
from midstream.tui.widgets.welcome import IntroductionLine, Suggestions, TourLine, Welcome

if TYPE_CHECKING:
    from midstream.tui.conversation.pane import ConversationPane

WIDE = 140
"""Columns from which the list of files stands beside the code."""
MEDIUM = 80
TALL = 24
"""Columns and rows below which the layout is the small one."""
RAIL_WIDTH = 37
"""Cells of the file list at most, and where it lies over the code."""


class ReviewPanes:
    """All widgets by name; created before the screen is composed."""

    def __init__(self, screen: Screen[Any], palette: Palette, glyphs: Glyphs) -> None:
        self.screen = screen
        self.status = StatusRow(palette, glyphs, widget_id="status")
        self.rail = Rail(palette, glyphs, widget_id="rail")
        self.rail.styles.max_width = RAIL_WIDTH
        self.welcome = Welcome(palette, glyphs, widget_id="welcome")
        self.file = FileBar(palette, glyphs, widget_id="file")
        self.pane = DiffPane(palette, glyphs, widget_id="pane")
        self.ruler = Ruler(palette, glyphs, widget_id="ruler")
        self.code = Vertical(self.file, Horizontal(self.pane, self.ruler, id="panes"), id="code")
        self.body = Horizontal(self.rail, Vertical(self.welcome, self.code, id="centre"), id="body")
        self.search = EntryRow(
            "search",
            "Search",
            hints=(KeyHint("enter", "keep the matches"), KeyHint("esc", "forget them")),
            selects=True,
        )
        self.release = EntryRow(
            "release",
            "Why release it?",
            hints=(KeyHint("enter", "release"), KeyHint("esc", "leave it held back")),
        )
        self.reason = EntryRow("reason", again=True)
        self.suggestions = Suggestions(palette, widget_id="suggestions")
        self.introduction = IntroductionLine(palette, widget_id="introduction")
        self.tour = TourLine(palette, widget_id="tour")
        self.notice = NoticeLine(palette, widget_id="notice")
        self.composer = Composer(palette, glyphs, widget_id="composer")
        self.keys = KeyBar(palette, widget_id="keys")
        self.conversation: ConversationPane | None = None
        """Mounted when there is a conversation to show."""
        self.code.display = False

    def compose(self) -> ComposeResult:
        """The widgets from top to bottom."""
        yield self.status
        yield self.body
        yield self.search
        yield self.release
        yield self.reason
        yield self.suggestions
        yield self.introduction
        yield self.notice
        yield self.tour
        yield self.composer
        yield self.keys

    def set_palette(self, palette: Palette) -> None:
        for widget in vars(self).values():
            if isinstance(widget, Themed):
                widget.set_palette(palette)

    def way_to(self, key: str) -> str:
        """How a key is reached from here: while a text is written, a letter is part of it."""
        return f"Esc, then {key}" if self.composing and len(key) == 1 else key

    def with_way(self, sentence: str, key: str) -> str:
        """A sentence that ends with the way to a key."""
        return f"{sentence.rstrip('.')} (press {self.way_to(key)})."

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
        if self.conversation is not None:  # not the screen, all of whose parts would be styled anew
            self.conversation.set_class(shown, "-with-code")

    def focus(self, widget: Widget | None) -> None:
        """Send the keys to a widget."""
        self.screen.set_focus(widget)

    def focus_composer(self) -> None:
        """Send the keys to the composer's text."""
        self.screen.set_focus(self.composer.field)

    @property
    def entry(self) -> EntryRow | None:
        """The row that is asking for a text."""
        rows = (self.search, self.release, self.reason)
        return next((row for row in rows if row.has_focus_within), None)

    @property
    def typing(self) -> bool:
        """Whether keys are text at the moment."""
        return isinstance(self.screen.focused, (TextArea, Input))

    @property
    def composing(self) -> bool:
        """Whether the composer has the focus."""
        return self.composer.has_focus_within

    @property
    def conversing(self) -> bool:
        """Whether the conversation has the focus."""
        return self.conversation is not None and self.conversation.has_focus

    @property
    def rail_over_code(self) -> bool:
        """Whether the rail lies over the code, as on narrow screens."""
        return self.screen.has_class("-rail-open")
