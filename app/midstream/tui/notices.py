"""The notice line: facts that fade, questions answered by number keys, outcomes, errors.

The review screen and every page have a line, what decides about it, and work done in order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from rich.cells import cell_len
from rich.text import Text
from textual.dom import DOMNode
from textual.message import Message
from textual.timer import Timer

from midstream.errors import UserError
from midstream.tui.services import AppServices, NotNowError
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.key_bar import KeyHint
from midstream.tui.widgets.line_api import Painted

if TYPE_CHECKING:
    from textual.worker import Worker

_ROLES = {"info": "muted", "warning": "warning", "error": "error", "question": "accent"}
_MARKS = {"info": " ", "warning": "!", "error": "!", "question": "?"}


class NoticeLine(Painted):
    """Shows a sentence, and answers below it when it is a question; takes no room when empty."""

    DEFAULT_CSS = """
    NoticeLine { height: auto; max-height: 6; display: none; background: $ms-panel; padding: 0 1; }
    NoticeLine.-shown { display: block; }
    """

    class Dismissed(Message):
        """The line was clicked away."""

    def __init__(self, palette: Palette, *, widget_id: str | None = None) -> None:
        super().__init__(palette, widget_id=widget_id)
        self.level = "info"
        self.text = ""
        self.choices: tuple[str, ...] = ()

    @property
    def is_shown(self) -> bool:
        """Whether there is something to read."""
        return bool(self.text)

    def show(self, level: str, text: str, choices: tuple[str, ...] = ()) -> None:
        """Show a sentence, with answers that number keys choose."""
        self.level, self.text, self.choices = level, text, choices[:9]
        self.set_class(bool(text), "-shown")
        self.refresh(layout=True)

    def clear(self) -> None:
        if self.text:
            self.show("info", "")

    def render(self) -> Text:
        style = self._palette.style(_ROLES[self.level])
        mark = _MARKS[self.level]
        line = Text(no_wrap=False, overflow="fold")
        if mark.strip():
            line.append(f"{mark} ", self._palette.style(_ROLES[self.level], bold=True))
        line.append(visible(self.text), style)
        used = 0
        for number, choice in enumerate(self.choices, 1):
            piece = f"{number} {visible(choice)}"
            if number == 1 or used + cell_len(piece) + 3 > self.size.width - 4:
                line.append("\n  ")
                used = 0
            else:
                line.append("   ")
            line.append(f"{number}", self._palette.style("accent", bold=True))
            line.append(f" {visible(choice)}", self._palette.style("foreground"))
            used += cell_len(piece) + 3
        return line

    def on_click(self) -> None:
        if not self.choices:
            self.post_message(self.Dismissed())


FACT_S: Final = 8.0
"""How long a fact stays on screen."""
COVER_S: Final = 3.0
"""How long a fact covers an open question."""
KEPT: Final = 8
"""Sentences that can be read again."""

Choice = tuple[str, Callable[[], None]]
"""An answer to a question: its words, and what it does."""


class _Question(Struct, frozen=True):
    text: str
    choices: tuple[Choice, ...]


class Notices:
    """Decides what the notice line shows, and for how long.

    Args:
        changed: Called when a question was opened or closed: number keys have other meanings now.
    """

    def __init__(
        self,
        line: NoticeLine,
        is_running: Callable[[], bool],
        changed: Callable[[], None],
    ) -> None:
        self.line = line
        self._is_running = is_running
        self._changed = changed
        self._question: _Question | None = None
        self._first: _Question | None = None
        """The question that has to be answered first; the other one waits for it."""
        self._fading: Timer | None = None
        self._fades_with_key = False
        self._passing = self._is_local = False
        self._shown_at = 0.0
        self._key_since = False
        """Whether a key was pressed since."""
        self.said: deque[str] = deque(maxlen=KEPT)
        """The last sentences that may have been missed, each once: warnings, errors, outcomes."""

    @property
    def asking(self) -> bool:
        """Whether a question is open."""
        return bool(self.choices)

    @property
    def is_alone(self) -> bool:
        """Whether an open question has to be answered before anything else."""
        return self._first is not None

    @property
    def hints(self) -> tuple[KeyHint, ...]:
        """The keys of a question that has to be answered first."""
        return tuple(KeyHint(str(n), words, str(n)) for n, words in enumerate(self.choices, 1))

    @property
    def choices(self) -> tuple[str, ...]:
        """The answers of the open question."""
        return () if self._asked is None else tuple(words for words, _ in self._asked.choices)

    @property
    def _asked(self) -> _Question | None:
        """The open question, or the one of two that has to be answered first."""
        return self._first or self._question

    def say(
        self,
        level: str,
        text: str,
        *,
        outcome: bool = False,
        passing: bool = False,
        lasting: bool = False,
        local: bool = False,
    ) -> None:
        """Show one sentence.

        A question that has to be answered first reappears after any sentence has covered it for a
        while.

        Args:
            level: ``info`` fades, and uncovers the question it hid; ``warning`` and ``error`` stay
                and close an open question.
            text: The sentence.
            outcome: Keep an ``info`` until the first key after its time, unless it covers a
                question: it was not caused by a key, so the user may be looking elsewhere.
            passing: Remove an ``info`` at the next ``pass_over``.  It covers no warning before a
                key was pressed, and nothing that was said a moment ago.
            lasting: Keep an ``info`` until something else is said: it tells of what goes on.
            local: It is about the place where the user is, and goes with ``leave_place``.
        """
        if not self.line.is_mounted or not self._is_running():
            return
        closes = level != "info" and self._question is not None
        if closes:
            self._question = None
        if level != "info" or outcome:
            if text in self.said:
                self.said.remove(text)
            self.said.append(text)
        if passing and self._is_unread:
            return
        self.line.show(level, text)
        self._stop_fading()
        self._passing, self._is_local = passing, local
        self._shown_at, self._key_since = monotonic(), False
        if self.is_alone or (level == "info" and not lasting):
            time = COVER_S if self.asking else FACT_S
            fade = self._fade_with_key if outcome and not self.asking else self._fade
            self._fading = self.line.set_timer(time, fade)
        if closes:
            self._changed()

    def explain(self, error: UserError) -> None:
        """Say why something was not done."""
        self.say("info" if isinstance(error, NotNowError) else "error", str(error))

    def insist(self, text: str) -> bool:
        """Say what doing this again does; returns whether that stood there already.

        Args:
            text: The sentence; one that says something else since has to be read first.
        """
        if self.line.text == text:
            return True
        self.say("info", text)
        return False

    def ask(self, text: str, *choices: Choice, alone: bool = False) -> None:
        """Show a question; the number keys choose an answer, Escape none.

        Args:
            text: The question.
            choices: The answers.
            alone: Whether it has to be answered before anything else: until then, all keys go to
                it (see ``hear``), Escape gives the first answer, and another question waits.
        """
        question = _Question(text, choices)
        if alone:
            self._first = question
        else:
            self._question = question
        self._show_asked()
        self._changed()

    def answer(self, number: int) -> bool:
        """Answer the open question, counted from 1; returns whether one was open."""
        asked = self._asked
        if asked is None or not 1 <= number <= len(asked.choices):
            return self.asking
        if asked is self._first:
            self._first = None
        else:
            self._question = None
        self._show_asked()
        self._changed()
        asked.choices[number - 1][1]()
        return True

    def hear(self, key: str) -> None:
        """Take a key, or a click on it, as the answer of the open question; others do nothing."""
        number = 1 if key == "escape" else int(key) if key in "123456789" else 0
        self.answer(number)

    def clear(self) -> None:
        """Remove the sentence and the question, unless that has to be answered first."""
        closed, self._question = self._question is not None, None
        self._show_asked()
        if closed:
            self._changed()

    def _show_asked(self) -> None:
        """Show the open question, or nothing."""
        if self._asked is None:
            self.line.clear()
        else:
            self._stop_fading()
            # If all keys go to the question, the key bar has the answers, even while a sentence
            # covers it.
            answers = () if self.is_alone else self.choices
            self.line.show("question", self._asked.text, answers)

    @property
    def _is_unread(self) -> bool:
        """Whether what is shown should stay for now."""
        if self._passing or not self.line.is_shown:
            return False
        is_new = monotonic() - self._shown_at < COVER_S
        return is_new or (self.line.level != "info" and not self._key_since)

    def key_pressed(self) -> None:
        """The user is there: an outcome whose time is over fades."""
        self._key_since = True
        if self._fades_with_key:
            self._fades_with_key = False
            self._fade()

    def pass_over(self) -> None:
        """Remove a passing notice that no longer applies."""
        if self._passing:
            self._stop_fading()
            self._fade()

    def leave_place(self) -> None:
        """The user goes to another hunk or file: remove notices about the one before."""
        if self._is_local:
            self._stop_fading()
            self._show_asked()

    def _stop_fading(self) -> None:
        self._fades_with_key = self._passing = self._is_local = False
        if self._fading is not None:
            self._fading.stop()
            self._fading = None

    def _fade_with_key(self) -> None:
        self._fades_with_key = True

    def _fade(self) -> None:
        if self.line.is_mounted and (self.is_alone or self.line.level == "info"):
            self._show_asked()


Work = Callable[[], Awaitable[object]]


class ScreenWork:
    """Runs coroutines of one screen, in order or beside; an error becomes a sentence."""

    def __init__(
        self,
        host: DOMNode,
        notices: Notices,
        services: AppServices,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        self._host = host
        self._notices = notices
        self._services = services
        self._done = done
        self._lock = asyncio.Lock()

    def run(self, work: Work) -> None:
        """Run this after everything that was asked for before."""
        self._host.run_worker(partial(self._run_in_order, work), group="serial")

    def beside(self, work: Work, group: str, *, exclusive: bool = False) -> Worker[None]:
        """Run this at once; keys do not wait for it.

        Args:
            work: Makes the coroutine.
            group: Name of the workers that belong together.
            exclusive: Whether it ends those that run in its group.
        """
        return self._host.run_worker(partial(self._run, work), group=group, exclusive=exclusive)

    async def _run_in_order(self, work: Work) -> None:
        async with self._lock:
            await self._run(work)
            self._done()

    async def _run(self, work: Work) -> None:
        try:
            await work()
        except UserError as error:
            self._notices.explain(error)
        except Exception as error:  # an internal error must not take the screen down
            self._host.log.error(error)
            self._notices.say("error", self._services.report_defect(error))
