"""The line that asks why a hunk is rejected."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static


class ReasonBar(Horizontal):
    """One row with a text field; hidden while nobody rejects."""

    DEFAULT_CSS = """
    ReasonBar { height: 1; display: none; background: $ms-panel; }
    ReasonBar.-shown { display: block; }
    ReasonBar Static { width: 13; padding: 0 0 0 1; color: $ms-accent; }
    ReasonBar Input {
        border: none; height: 1; padding: 0; background: $ms-panel; color: $ms-foreground;
    }
    ReasonBar Input:focus { border: none; background-tint: $ms-panel 0%; }
    """

    @dataclass
    class Given(Message):
        """The reason was written; ``again`` asks for the same lines once more."""

        hunk_id: int
        text: str
        again: bool

    @dataclass
    class Left(Message):
        """The field was left."""

    def __init__(self) -> None:
        super().__init__()
        self._hunk_id = 0
        self._drafts: dict[int, str] = {}

    def compose(self) -> ComposeResult:
        """The widgets."""
        yield Static("Reject, why", markup=False)
        yield Input(
            compact=True,
            select_on_focus=False,
            placeholder="enter rejects; alt+enter rejects and asks again; esc leaves",
        )

    def open(self, hunk_id: int) -> None:
        """Ask about a hunk."""
        self._hunk_id = hunk_id
        self.add_class("-shown")
        field = self.query_one(Input)
        field.value = self._drafts.pop(hunk_id, "")
        field.cursor_position = len(field.value)
        self.screen.set_focus(field)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._give(again=False)

    def on_key(self, event: events.Key) -> None:
        """Escape leaves and keeps the text; Alt+Enter asks again."""
        if event.key == "escape":
            event.stop()
            if text := self.query_one(Input).value.strip():
                self._drafts[self._hunk_id] = text
            self.remove_class("-shown")
            self.post_message(self.Left())
        elif event.key == "alt+enter":
            event.stop()
            event.prevent_default()
            self._give(again=True)

    def _give(self, *, again: bool) -> None:
        text = " ".join(self.query_one(Input).value.split())
        self.remove_class("-shown")
        self.post_message(self.Given(self._hunk_id, text, again))
