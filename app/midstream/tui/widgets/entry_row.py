"""One row with a label and a text field, hidden until something has to be typed."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from midstream.tui.widgets.fields import LineField
from midstream.tui.widgets.key_bar import KeyHint


class EntryRow(Horizontal):
    """Asks for one line of text.

    Args:
        row_id: The widget's id.
        label: What is asked for; ``open`` may change it.
        placeholder: What an empty field shows; ``open`` may change it.
        hints: The keys of the field, for the key bar.
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
            """The row, for selectors."""
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
        """Whether it is asking."""
        return self.has_class("-shown")

    def open(self, text: str, *, label: str | None = None, placeholder: str | None = None) -> None:
        """Show the row with a text to begin with, and focus it."""
        if label is not None:
            self._label.update(label)
        if placeholder is not None:
            self.field.placeholder = placeholder
        with self.field.prevent(Input.Changed):
            self.field.value = text
        self.field.cursor_position = len(text)
        self.add_class("-shown")
        self.screen.set_focus(self.field)

    def shut(self) -> None:
        """Hide the row."""
        self.remove_class("-shown")

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
