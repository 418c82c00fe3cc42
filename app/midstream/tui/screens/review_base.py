"""What all parts of the review screen share: the session, the open file, speaking to people."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import cached_property
from inspect import isawaitable
from typing import TYPE_CHECKING, cast

from textual.timer import Timer
from textual.widgets import Input, TextArea

from midstream.edits.hunks import HunkState
from midstream.errors import UserError
from midstream.pairing.turns import SessionState
from midstream.tui.diff.syntax import FileSyntax
from midstream.tui.diff.view import FileView
from midstream.tui.keymap import BY_ID, Place
from midstream.tui.screens.eager import EagerScreen
from midstream.tui.widgets.composer import Composer
from midstream.tui.widgets.diff_pane import DiffPane
from midstream.tui.widgets.notice import NoticeLine
from midstream.tui.widgets.rail import Rail

if TYPE_CHECKING:
    from midstream.demo import DemoInfo
    from midstream.edits.hunks import Hunk
    from midstream.pairing.session import PairingSession
    from midstream.tui.app import MidstreamApp

FACT_S = 8.0
"""How long a mere fact stays on screen."""
COVER_S = 3.0
"""How long it stays where it covers a question that is open."""
ARRIVAL_S = 0.4
"""After following into another file, decisions wait for so long: they were meant for the former."""
RUNNING = frozenset({SessionState.WAITING, SessionState.STREAMING})
"""States in which Enter redirects and Ctrl+C stops."""


class ReviewBase(EagerScreen):
    """State and small helpers; no keys, no layout."""

    def __init__(self, demo: DemoInfo | None) -> None:
        super().__init__(id="review")
        self.demo = demo
        self.session: PairingSession | None = None
        self.path = ""
        self.views: dict[str, FileView] = {}
        self.syntaxes: dict[str, FileSyntax] = {}
        self.places: dict[str, tuple[int, int]] = {}
        """Cursor and first visible row of files that were left."""
        self.answers: tuple[Callable[[], None], ...] = ()
        """What the number keys do while a question is open."""
        self._question: tuple[str, tuple[str, ...]] = ("", ())
        self._order = asyncio.Lock()
        self._arrived = 0.0
        self._fading: Timer | None = None
        self._waits_for_key = False

    @property
    def program(self) -> MidstreamApp:
        """The app, with its own type."""
        return cast("MidstreamApp", self.app)  # pyright: ignore[reportUnknownMemberType]

    @cached_property
    def pane(self) -> DiffPane:
        """The code pane."""
        return self.query_one("#pane", DiffPane)

    @cached_property
    def composer(self) -> Composer:
        """The composer."""
        return self.query_one("#composer", Composer)

    @cached_property
    def notice(self) -> NoticeLine:
        """The line for sentences."""
        return self.query_one("#notice", NoticeLine)

    @cached_property
    def rail(self) -> Rail:
        """The file rail."""
        return self.query_one("#rail", Rail)

    @property
    def view(self) -> FileView | None:
        """The rows of the open file."""
        return self.views.get(self.path)

    @property
    def running(self) -> bool:
        """Whether a turn runs."""
        return self.session is not None and self.session.state in RUNNING

    @property
    def written_path(self) -> str:
        """The file in which the model writes, ``""`` while it does not."""
        session = self.session
        if session is None or session.turn is None or not self.running:
            return ""
        writing = session.writing
        return session.turn.path if writing is None else writing[0]

    @property
    def just_arrived(self) -> bool:
        """Whether following has changed the file a moment ago; says so."""
        if time.monotonic() - self._arrived >= ARRIVAL_S:
            return False
        self.say("info", f"The writing has just gone on to {self.path}; decide here once more.")
        return True

    @property
    def typing(self) -> bool:
        """Whether keys are text now."""
        return isinstance(self.focused, (TextArea, Input))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the review act only where keys are not text."""
        if action == "key":
            return BY_ID[str(parameters[0])].place is not Place.REVIEW or not self.typing
        if action == "number":
            return not self.typing and self.has_number(cast("int", parameters[0]))
        return True

    async def action_key(self, action_id: str) -> None:
        """Do what a bound key stands for."""
        await self.perform(action_id)

    async def perform(self, action_id: str) -> None:
        """Do an action of the table."""
        self.key_pressed()
        handler: Callable[[], object] = getattr(self, f"action_{BY_ID[action_id].call}")
        result = handler()
        if isawaitable(result):
            await result

    def has_number(self, number: int) -> bool:
        """Whether a number key means something now; the screen overrides it."""
        raise NotImplementedError

    @property
    def hunk(self) -> Hunk | None:
        """The hunk under the cursor."""
        return self.pane.hunk

    @property
    def decidable_hunk(self) -> Hunk | None:
        """The hunk under the cursor if it waits for a decision."""
        hunk = self.hunk
        return hunk if hunk is not None and hunk.state is HunkState.SETTLED else None

    def say(self, level: str, text: str, *, outcome: bool = False) -> None:
        """Show one sentence; a mere fact goes away by itself, and an open question comes back.

        Args:
            level: ``info`` for a fact, ``warning`` or ``error``.
            text: The sentence.
            outcome: Whether it is told without a key being pressed, such as what became of a turn:
                nobody may be looking, so that it goes with the first key after its time.
        """
        if not self.is_mounted or not self.program.is_running:
            return
        if level != "info":
            self.answers = ()
        self.notice.show(level, text)
        if self._fading is not None:
            self._fading.stop()
        self._waits_for_key = False
        fade = self._fade_with_key if outcome else self._fade
        time = COVER_S if self.answers else FACT_S
        self._fading = self.set_timer(time, fade) if level == "info" else None

    def _fade(self) -> None:
        if self.notice.level == "info":
            if self.answers:
                self.notice.show("question", *self._question)
            else:
                self.notice.clear()

    def _fade_with_key(self) -> None:
        self._waits_for_key = True

    def key_pressed(self) -> None:
        """Somebody is there: what was told long enough goes."""
        if self._waits_for_key:
            self._waits_for_key = False
            self._fade()

    def ask(
        self, text: str, choices: tuple[str, ...], answers: tuple[Callable[[], None], ...]
    ) -> None:
        """Show a question whose answers the number keys choose."""
        self.answers, self._question = answers, (text, choices)
        self.notice.show("question", text, choices)

    def hush(self) -> None:
        """Take the sentence away."""
        self.answers = ()
        self.notice.clear()

    def in_order(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do something with the session after what was asked before; errors become a sentence."""

        async def run() -> None:
            async with self._order:
                try:
                    await work()
                except UserError as error:
                    self.say("error", str(error))
                except Exception as error:  # a defect must not take the screen down
                    self.log.error(error)
                    self.say("error", self.program.tell_defect(error))
                self.refresh_facts()

        self.run_worker(run(), group="session", exit_on_error=True)

    def refresh_facts(self) -> None:
        """Show what the session says now; the screen overrides it."""
        raise NotImplementedError

    async def open_path(
        self, path: str, *, line: int | None = None, focus: bool = True, following: bool = False
    ) -> bool:
        """Show a file; says whether that worked.

        Args:
            path: The file.
            line: 0-based line to show.
            focus: Whether the keys go to the code.
            following: Whether the writing has gone on to this file; nothing happens if the person
                does not follow it any more.
        """
        session = self.session
        if session is None:
            return False
        try:
            proposal = await session.open_file(path)
        except UserError as error:
            self.say("error", str(error))
            return False
        if following and not self.pane.following:
            return False
        path = proposal.path
        if self.path and self.path != path:
            self.places.pop(self.path, None)  # The one left last stands last.
            self.places[self.path] = (self.pane.cursor, self.pane.top)
        view = self.views.get(path)
        if view is None or view.proposal is not proposal:
            view = self.views[path] = FileView(proposal, session.hunks)
            self.syntaxes[path] = FileSyntax(view)
        if path != self.path:
            cursor, top = self.places.get(path, (0, 0))
            self.path = path
            self.pane.show(view, self.syntaxes[path], cursor=cursor, top=top)
            if following:
                self._arrived = time.monotonic()
            else:
                self.pane.detach()
        if line is not None:
            self.pane.go_to(view.row_of_line(line), centre=True)
        self.query_one("#welcome").display = False
        self.query_one("#code").display = True
        if focus:
            self.set_focus(self.pane)
        self.refresh_facts()
        return True

    def show_path(self, path: str, *, line: int | None = None, focus: bool = True) -> None:
        """Show a file, in order with everything else."""

        async def work() -> None:
            await self.open_path(path, line=line, focus=focus)

        self.in_order(work)
