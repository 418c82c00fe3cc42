"""The field for a commit message, with the two customary length limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import TextArea

from midstream.tui.themes import Palette
from midstream.tui.widgets.fields import TextField
from midstream.tui.widgets.line_api import Painted

SUBJECT: Final = 50
"""Characters of the first line that every tool shows whole."""
BODY: Final = 72
"""Characters of a line after which tools wrap or cut."""


class MessageTitle(Painted):
    """The row above the text: what it is, and how long the line under the cursor has become."""

    DEFAULT_CSS = """
    MessageTitle { height: 1; background: $ms-panel; }
    """

    def __init__(self, palette: Palette) -> None:
        super().__init__(palette)
        self.note = ""
        self.length = 0
        self.limit = SUBJECT
        self.active = False

    @property
    def role(self) -> str:
        """How the length looks: fine, long, too long."""
        if self.length > BODY:
            return "error"
        return "warning" if self.length > self.limit else "muted"

    def render(self) -> Text:
        palette = self._palette
        title = palette.style("accent" if self.active else "muted", bold=self.active)
        line = Text(" Message", title, no_wrap=True, overflow="ellipsis")
        counter = f"{self.length}/{self.limit}"
        if self.length > self.limit:
            counter += " too long" if self.length > BODY else " long"
        room = self.size.width - line.cell_len - len(counter) - 4
        if self.note and len(self.note) <= room:
            line.append(f"  {self.note}", palette.style("muted"))
        line.append(" " * max(1, self.size.width - line.cell_len - len(counter) - 1))
        line.append(counter, palette.style(self.role))
        return line


class MessageField(Vertical):
    """A few rows of text under a title that counts."""

    DEFAULT_CSS = """
    MessageField { height: auto; background: $ms-panel; }
    MessageField TextArea {
        height: 5; padding: 0 0 0 1; border: none; background: $ms-panel; color: $ms-foreground;
        scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0;
    }
    MessageField TextArea:focus { border: none; }
    MessageField TextArea .text-area--cursor-line { background: $ms-panel; }
    MessageField TextArea .text-area--cursor { background: $ms-accent; color: $ms-background; }
    MessageField TextArea .text-area--placeholder { color: $ms-muted; }
    MessageField TextArea .text-area--selection { background: $ms-selection; }
    """

    @dataclass
    class Edited(Message):
        """The text or the cursor has changed."""

        text: str

    def __init__(self, palette: Palette, text: str, placeholder: str) -> None:
        super().__init__()
        self.title = MessageTitle(palette)
        self.field = TextField(
            text, compact=True, highlight_cursor_line=False, placeholder=placeholder
        )
        self.field.cursor_blink = False

    def compose(self) -> ComposeResult:
        yield self.title
        yield self.field

    def on_mount(self) -> None:
        self.field.move_cursor(self.field.document.end)
        self.count()

    @property
    def text(self) -> str:
        """What is written."""
        return self.field.text

    def set_palette(self, palette: Palette) -> None:
        self.title.set_palette(palette)

    def show_note(self, note: str) -> None:
        """A few words behind the title."""
        self.title.note = note
        self.title.refresh()

    def count(self) -> None:
        """Show how long the line under the cursor is."""
        row, _ = self.field.cursor_location
        title = self.title
        title.length = len(self.field.document.get_line(row))
        title.limit = BODY if row else SUBJECT
        title.active = self.field.has_focus
        title.refresh()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self.count()
        self.post_message(self.Edited(self.text))

    def on_text_area_selection_changed(self, event: TextArea.SelectionChanged) -> None:
        event.stop()
        self.count()

    def on_descendant_focus(self) -> None:
        self.count()

    def on_descendant_blur(self) -> None:
        self.count()
