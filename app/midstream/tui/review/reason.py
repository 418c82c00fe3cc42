"""Rows that ask for a reason: why a hunk is rejected, why a quarantined one may be decided.

Both keep what was typed when they are left, per hunk, and know the same keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from midstream.tui.widgets.fields import LineField
from midstream.tui.widgets.key_bar import KeyHint


class HunkQuestion(Horizontal):
    """One row with a text field about one hunk; hidden while nobody asks.

    Enter gives the answer, Escape leaves and keeps it as a draft for the next time.
    """

    DEFAULT_CSS = """
    HunkQuestion { height: 1; display: none; background: $ms-panel; }
    HunkQuestion.-shown { display: block; }
    HunkQuestion Static { width: auto; padding: 0 1; color: $ms-accent; }
    HunkQuestion Input {
        border: none; height: 1; padding: 0; background: $ms-panel; color: $ms-foreground;
    }
    HunkQuestion Input:focus { border: none; background-tint: $ms-panel 0%; }
    """
    QUESTION: ClassVar[str] = ""
    ABOUT: ClassVar[str] = ""
    HINTS: ClassVar[tuple[KeyHint, ...]] = ()
    """The keys that do something in the field."""

    def __init__(self) -> None:
        super().__init__()
        self._hunk_id = 0
        self._drafts: dict[int, str] = {}

    def compose(self) -> ComposeResult:
        """The widgets."""
        yield Static(self.QUESTION, markup=False)
        yield LineField(compact=True, select_on_focus=False, placeholder=self.ABOUT)

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
        self.give()

    def on_key(self, event: events.Key) -> None:
        """Escape leaves and keeps the text."""
        if event.key == "escape":
            event.stop()
            self._keep()
            self.remove_class("-shown")
            self.leave()

    def _keep(self) -> None:
        if text := self.query_one(Input).value.strip():
            self._drafts[self._hunk_id] = text

    def give(self, *, again: bool = False) -> None:
        """Hide, and answer with what stands in the field."""
        text = " ".join(self.query_one(Input).value.split())
        self.remove_class("-shown")
        self.answer(self._hunk_id, text, again=again)

    def answer(self, hunk_id: int, text: str, *, again: bool) -> None:
        """Tell the screen the answer."""
        raise NotImplementedError

    def leave(self) -> None:
        """Tell the screen that the field was left."""
        raise NotImplementedError


class ReasonBar(HunkQuestion):
    """Asks why a hunk is rejected; Alt+Enter asks the model for the same lines again."""

    QUESTION = "Reject, why"
    ABOUT = "the model hears it with its next instruction"
    HINTS = (
        KeyHint("enter", "reject"),
        KeyHint("alt+enter", "reject and ask again"),
        KeyHint("esc", "leave it undecided"),
    )

    @dataclass
    class Given(Message):
        """The reason was written; ``again`` asks for the same lines once more."""

        hunk_id: int
        text: str
        again: bool

    @dataclass
    class Left(Message):
        """The field was left."""

    def on_key(self, event: events.Key) -> None:
        """Alt+Enter asks again; the rest is the base's."""
        if event.key == "alt+enter":
            event.stop()
            event.prevent_default()
            self.give(again=True)

    def answer(self, hunk_id: int, text: str, *, again: bool) -> None:
        """Tell the screen the answer."""
        self.post_message(self.Given(hunk_id, text, again))

    def leave(self) -> None:
        """Tell the screen that the field was left."""
        self.post_message(self.Left())


class ReleaseBar(HunkQuestion):
    """Asks why a quarantined hunk may be decided; without a reason it stays open."""

    DEFAULT_CSS = """
    ReleaseBar Static { color: $ms-warning; }
    """
    QUESTION = "Release, why"
    ABOUT = "the reason is kept in the journal"
    HINTS = (KeyHint("enter", "release"), KeyHint("esc", "leave it held"))

    @dataclass
    class Given(Message):
        """The reason was written."""

        hunk_id: int
        text: str

    @dataclass
    class Left(Message):
        """The field was left."""

    def give(self, *, again: bool = False) -> None:
        """Answer, but not with nothing."""
        if self.query_one(Input).value.strip():
            super().give(again=again)

    def answer(self, hunk_id: int, text: str, *, again: bool) -> None:
        """Tell the screen the answer."""
        self.post_message(self.Given(hunk_id, text))

    def leave(self) -> None:
        """Tell the screen that the field was left."""
        self.post_message(self.Left())
