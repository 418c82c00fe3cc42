"""Sentences for the user: facts that fade, questions answered by number keys, outcomes.

The review screen and every page have one of these over their notice line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from textual.timer import Timer

from midstream.tui.widgets.notice import NoticeLine

FACT_S: Final = 8.0
"""How long a fact stays on screen."""
COVER_S: Final = 3.0
"""How long a fact covers an open question."""

Choice = tuple[str, Callable[[], None]]
"""An answer to a question: its words, and what it does."""


class Notices:
    """Decides what the notice line shows, and for how long.

    Args:
        line: The widget.
        is_running: Whether the application is running.
        changed: Called when a question was opened or closed: number keys have other meanings now.
    """

    def __init__(
        self,
        line: NoticeLine,
        is_running: Callable[[], bool],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.line = line
        self._is_running = is_running
        self._changed = changed
        self._question = ""
        self._choices: tuple[Choice, ...] = ()
        self._fading: Timer | None = None
        self._fades_with_key = False

    @property
    def asking(self) -> bool:
        """Whether a question is open."""
        return bool(self._choices)

    @property
    def choices(self) -> tuple[str, ...]:
        """The answers of the open question."""
        return tuple(words for words, _ in self._choices)

    def say(self, level: str, text: str, *, outcome: bool = False) -> None:
        """Show one sentence.

        Args:
            level: ``info`` fades, and uncovers the question it hid; ``warning`` and ``error`` stay
                and close an open question.
            text: The sentence.
            outcome: Keep an ``info`` until the first key after its time: it was not caused by a
                key, so the user may be looking elsewhere.
        """
        if not self.line.is_mounted or not self._is_running():
            return
        if level != "info":
            self._choices = ()
        self.line.show(level, text)
        self._stop_fading()
        if level == "info":
            time = COVER_S if self.asking else FACT_S
            self._fading = self.line.set_timer(time, self._fade_with_key if outcome else self._fade)
        self._changed()

    def ask(self, text: str, *choices: Choice) -> None:
        """Show a question; the number keys choose an answer, Escape none."""
        self._stop_fading()
        self._question, self._choices = text, choices
        self.line.show("question", text, self.choices)
        self._changed()

    def answer(self, number: int) -> bool:
        """Answer the open question, counted from 1; returns whether one was open."""
        choices = self._choices
        if 1 <= number <= len(choices):
            self.clear()
            choices[number - 1][1]()
        return bool(choices)

    def clear(self) -> None:
        """Remove the sentence and the question."""
        self._choices = ()
        self.line.clear()
        self._changed()

    def key_pressed(self) -> None:
        """The user is there: an outcome whose time is over fades."""
        if self._fades_with_key:
            self._fades_with_key = False
            self._fade()

    def _stop_fading(self) -> None:
        self._fades_with_key = False
        if self._fading is not None:
            self._fading.stop()
            self._fading = None

    def _fade_with_key(self) -> None:
        self._fades_with_key = True

    def _fade(self) -> None:
        if not self.line.is_mounted or self.line.level != "info":
            return
        if self.asking:
            self.line.show("question", self._question, self.choices)
        else:
            self.line.clear()
