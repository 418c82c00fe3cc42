"""Text fields, and the two rows made of them: an entry row and the field for a commit message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

from rich.text import Text
from textual import events, on
from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from midstream.tui.eager import EagerScreen
from midstream.tui.themes import Palette
from midstream.tui.widgets.key_bar import KeyHint
from midstream.tui.widgets.line_api import Painted


class _InOrder:
    """Makes a key of the field act before the next one is read.

    Textual's own fields insert a character at once, but a key such as Backspace goes up through all
    widgets first: in a burst of keys (a macro, a slow line) the text behind it overtakes it.
    """

    async def _on_key(self, event: events.Key) -> None:
        field = cast("Widget", self)
        screen = field.screen
        if event.is_printable or not isinstance(screen, EagerScreen):
            return
        bound = screen.bound_to(field, event.key)
        if bound is not None:
            event.prevent_default()
            app = cast("App[object]", field.app)  # pyright: ignore[reportUnknownMemberType]
            if await app.run_action(bound.action, field):
                event.stop()


class TextField(_InOrder, TextArea):
    """A field of several lines."""

    DEFAULT_CSS = """
    TextField .text-area--placeholder { color: $ms-muted; }
    TextField .text-area--cursor, TextField:light .text-area--cursor {
        background: $ms-accent; color: $ms-background;
    }
    """


class LineField(_InOrder, Input):
    """A field of one line."""

    DEFAULT_CSS = """
    LineField > .input--placeholder, LineField > .input--suggestion { color: $ms-muted; }
    """

    def on_mount(self) -> None:
        self.cursor_blink = False  # nothing on screen moves by itself


class EntryRow(Horizontal):
    """Asks for one line of text.

    Args:
        row_id: The widget's id.
        label: What is asked for; ``open`` may change it.
        placeholder: What an empty field shows; ``open`` may change it.
        hints: The keys of the field, for the key bar; ``open`` may change them.
        selects: Whether opening it selects the text it begins with.
        again: Whether Alt+Enter confirms as well, with ``again`` set.
    """

    DEFAULT_CSS = """
    EntryRow { height: 1; display: none; background: $ms-panel; }
    EntryRow.-shown { display: block; }
    EntryRow Static { width: auto; padding: 0 1; color: $ms-accent; }
    EntryRow Input {
        width: 1fr; border: none; height: 1; padding: 0; background: $ms-panel;
        color: $ms-foreground;
    }
    EntryRow Input:focus { border: none; background-tint: $ms-panel 0%; }
    """

    @dataclass
    class Event(Message):
        """Something happened in a row."""

        row: EntryRow
        text: str

        @property
        def control(self) -> EntryRow:
            return self.row

    class Typed(Event):
        """The text has changed."""

    @dataclass
    class Given(Event):
        """The text was confirmed with Enter, or with Alt+Enter (``again``)."""

        again: bool = False

    class Left(Event):
        """The field was left with Escape."""

    def __init__(
        self,
        row_id: str | None = None,
        label: str = "",
        placeholder: str = "",
        *,
        hints: tuple[KeyHint, ...] = (),
        selects: bool = False,
        again: bool = False,
    ) -> None:
        super().__init__(id=row_id)
        self.hints = hints
        self._label = Static(label, markup=False)
        self.field = LineField(compact=True, select_on_focus=selects, placeholder=placeholder)
        self._again = again

    def compose(self) -> ComposeResult:
        yield self._label
        yield self.field

    @property
    def is_open(self) -> bool:
        return self.has_class("-shown")

    def open(
        self,
        text: str,
        *,
        label: str | None = None,
        placeholder: str | None = None,
        hints: tuple[KeyHint, ...] | None = None,
        secret: bool = False,
    ) -> None:
        """Show the row with a text to begin with, and focus it; a secret is not readable."""
        self.field.password = secret
        if label is not None:
            self._label.update(label)
        if placeholder is not None:
            self.field.placeholder = placeholder
        if hints is not None:
            self.hints = hints
        with self.field.prevent(Input.Changed):
            self.field.value = text
        self.field.cursor_position = len(text)
        self.add_class("-shown")
        self.screen.set_focus(self.field)

    def shut(self) -> None:
        self.remove_class("-shown")
        if self.field.password:
            with self.field.prevent(Input.Changed):
                self.field.value = ""

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.is_open:
            self.post_message(self.Typed(self, event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Given(self, event.value))

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            self.post_message(self.Left(self, self.field.value))
        elif event.key == "alt+enter" and self._again:
            event.stop()
            event.prevent_default()
            self.post_message(self.Given(self, self.field.value, again=True))


BODY: Final = 72
"""Characters of a line after which tools wrap or cut."""


class MessageTitle(Painted):
    """The row above the text: its name, and the length of the line under the cursor."""

    DEFAULT_CSS = """
    MessageTitle { height: 1; background: $ms-panel; }
    """

    def __init__(self, palette: Palette) -> None:
        super().__init__(palette)
        self.note = ""
        self.row = 0
        self.length = 0
        self.active = False

    @property
    def limit(self) -> int:
        """Characters that the line should not exceed."""
        from midstream.pairing.turn.subject import SUBJECT  # not needed before the first paint

        return BODY if self.row else SUBJECT

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
        if self.row:
            counter = f"line {self.row + 1}  {counter}"
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
        return self.field.text

    def put(self, text: str) -> None:
        """Replace the text."""
        self.field.text = text
        self.field.move_cursor(self.field.document.end)

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
        title.row = row
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
