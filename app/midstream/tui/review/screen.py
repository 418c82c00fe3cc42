"""The review screen: composition, dispatch of actions to controllers, session events, the tick.

The session sends coarse events ("a hunk settled"); everything shown is read from it at the screen's
own pace, up to sixty times a second while text streams and not at all while nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from operator import attrgetter
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.timer import Timer

from midstream.actions import BY_ID, WRITING, Place
from midstream.errors import UserError
from midstream.pairing.activity import WORDLESS, at_work
from midstream.pairing.status import (
    RUNNING,
    ConversationHeard,
    ExternalHunksAdded,
    FileChangedOnDisk,
    FileOpened,
    FilesTouched,
    FileWritten,
    HunkSettled,
    Notice,
    NoticePosted,
    QuestionAnswered,
    SessionEvent,
    SessionState,
    StateChanged,
    Turn,
    TurnFinished,
    TurnStarted,
    TurnStatus,
)
from midstream.tui import garbage
from midstream.tui.conversation.messages import FilePicked, ToolPicked
from midstream.tui.eager import EagerScreen, FramePace
from midstream.tui.keymap import bindings
from midstream.tui.mentions import MentionSource
from midstream.tui.notices import NoticeLine, Notices, ScreenWork
from midstream.tui.review.aim import Aim
from midstream.tui.review.attention import OnScreenTimer
from midstream.tui.review.check import Check
from midstream.tui.review.controller import Shared
from midstream.tui.review.converse import Converse
from midstream.tui.review.decide import Decide
from midstream.tui.review.explain import Explain
from midstream.tui.review.follow import Follow
from midstream.tui.review.navigate import Navigate
from midstream.tui.review.panes import ReviewPanes
from midstream.tui.review.show import Show
from midstream.tui.review.start import StartFacts
from midstream.tui.review.state import FolderListing, ReviewState
from midstream.tui.review.status import Status
from midstream.tui.review.steer import Steer
from midstream.tui.review.tour import Tour
from midstream.tui.review.walk import Walk
from midstream.tui.services import AppServices, NotNowError
from midstream.tui.widgets.composer import Composer, ComposerText
from midstream.tui.widgets.diff_pane import DiffPane
from midstream.tui.widgets.fields import EntryRow
from midstream.tui.widgets.line_api import Painted
from midstream.tui.widgets.row_list import RowList
from midstream.tui.widgets.ruler import Ruler
from midstream.tui.widgets.welcome import IntroductionLine, Suggestions, Welcome

if TYPE_CHECKING:
    from midstream.pairing.session import PairingSession

FRAME_S: Final = 1 / 60
"""Seconds between two frames while something moves."""
CLOCK_S: Final = 1.0
"""Seconds between two readings while something is waited for."""
FACTS_S: Final = 0.25
"""Seconds between two readings of the facts around the code while text or hunks stream in."""
_ARRIVALS: Final = (FileOpened, FileChangedOnDisk, HunkSettled, ExternalHunksAdded)
"""Events that come by the hundred when many files were written: each is one more row somewhere."""
UNKNOWN_KEYS: Final = 2
"""Keys without a meaning after which a notice says, once, how to write to the model."""


class ReviewScreen(EagerScreen):
    """The main screen.

    Attributes:
        is_ready: Whether keys find what they act on.
    """

    BINDINGS: ClassVar = [
        *bindings(Place.REVIEW, Place.ANYWHERE),
        *(Binding(str(n), f"number({n})", show=False, priority=True) for n in range(1, 10)),
    ]
    AUTO_FOCUS = ""

    @dataclass
    class News(Message):
        """The session has sent events; they are in ``_news``."""

    def __init__(self, services: AppServices) -> None:
        super().__init__(id="review")
        self.is_ready = False
        self.pace = FramePace()
        self.panes = panes = ReviewPanes(self, services.palette, services.glyphs)
        self.state = state = ReviewState(self.refresh_facts)
        self.notices = notices = Notices(panes.notice, lambda: services.is_running, self._show_keys)
        work = ScreenWork(self, notices, services, self.refresh_facts)
        self._services = services
        self._work = work
        shared = Shared(state, panes, notices, work, services)
        self.navigate = Navigate(shared, self._opened)
        self.follow = Follow(shared, self.navigate)
        self.aim = Aim(shared)
        self.converse = Converse(shared, self.navigate, self.aim)
        self.steer = Steer(shared, self.navigate, self.aim, self.converse)
        self._on_screen = OnScreenTimer(shared)
        self.decide = Decide(shared, self.navigate, self.steer, self._on_screen)
        self.check = Check(shared, self.navigate, self.steer)
        self.explain = Explain(shared, self.aim)
        self.show = Show(shared, self.navigate, self.perform)
        self.walk = Walk(shared, self.navigate, self._on_screen)
        self.status = Status(shared)
        self.tour = Tour(shared, self.navigate, self.steer, self.perform)
        self._folder = FolderListing(
            state, services.root, partial(work.beside, group="files"), self._read_folder
        )
        self.start = StartFacts(shared)
        self._news: list[SessionEvent] = []
        self._changed: dict[str, None] = {}
        """Open files that have changed on disk and were not mentioned yet."""
        self._unknown_keys = 0
        self._facts_at = 0.0
        self._arrivals: Timer | None = None
        """Shows what others have written, once that is due."""
        self._shown_at = 0.0
        self._ticker: Timer | None = None
        self._lexer: Timer | None = None
        self._clock: Timer | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    def compose(self) -> ComposeResult:
        self.panes.lay_out(*self.terminal_size)  # before anything would be styled twice
        yield from self.panes.compose()

    def on_mount(self) -> None:
        self._ticker = self.set_interval(FRAME_S, self._tick, pause=True)
        self._lexer = self.set_interval(FRAME_S, self._lex, pause=True)
        self._clock = self.set_interval(CLOCK_S, self.refresh_facts)
        self.panes.pane.set_layout(self._services.settings.layout)
        self.panes.focus_composer()
        self.refresh_facts()
        self.is_ready = True
        self._services.screen_ready()

    def refresh_facts(self) -> None:
        """Show what the session and the files are like now."""
        self._on_screen.resume()
        self.tour.look()
        self.status.refresh()
        session = self.state.opened
        goes_on = self.state.doing in WORDLESS or (session is not None and at_work(session))
        if self._clock is not None and goes_on:
            self._clock.resume()
        elif self._clock is not None:
            self._clock.pause()

    def _show_keys(self) -> None:
        if self.is_mounted:
            self.status.show_keys()

    def on_screen_suspend(self) -> None:
        self.panes.keys.cover(True)

    def on_screen_resume(self) -> None:
        self.panes.keys.cover(False)

    # actions

    async def action_key(self, action_id: str) -> None:
        await self.perform(action_id)

    async def perform(self, action_id: str) -> None:
        """Carry out an action of the table."""
        self.notices.key_pressed()
        if self.state.read_only and action_id in WRITING:
            self.notices.say("warning", self.state.session.workspace.refusal)
        elif not await self.tour.takes(action_id):
            await self._call(BY_ID[action_id].call)

    async def _call(self, call: str) -> None:
        """Call a controller's method, such as ``decide.accept``."""
        try:
            result = self.method(call)()
            if isawaitable(result):
                await result
        except NotNowError as error:
            self.notices.explain(error)

    def method(self, call: str) -> Callable[[], object]:
        """The method an action calls."""
        return attrgetter(call)(self)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the review act only where keys are not text."""
        if action == "key":
            return BY_ID[str(parameters[0])].place is not Place.REVIEW or not self.panes.typing
        if action == "number":
            return not self.panes.typing and self._has_number(cast("int", parameters[0]))
        return True

    def action_number(self, number: int) -> None:
        if not (self.notices.answer(number) or self.converse.answer(number)):
            self._choose_example(number)

    def _has_number(self, number: int) -> bool:
        """Whether a question or an example has this number."""
        if self.notices.asking:
            return number <= len(self.notices.choices)
        return number <= (self.converse.choices or len(self.panes.suggestions.examples))

    def _choose_example(self, number: int) -> None:
        examples = self.panes.suggestions.examples
        if number > len(examples):
            return
        example = examples[number - 1]

        async def work() -> None:
            await self.navigate.open_path(example.path, focus=False)
            self.panes.composer.put(example.instruction)
            self.panes.focus_composer()
            self.aim.update()

        self._work.run(work)

    # the session

    def attach(self, session: PairingSession) -> None:
        """Listen to a session that was just opened, and show what it has."""
        composer = self.panes.composer
        self.state.opened = session
        self._unsubscribe = session.status.subscribe(self._hear)
        self._set_pace(session.status.state)
        self._folder.update()
        self._on_screen.start()
        strips = self.panes.pane.strips
        strips.note_of = session.reason
        strips.spot_of = session.guard.spot
        strips.line_of = session.flags.line
        strips.author_of = session.provenance.author_of
        strips.on_disk = not session.workspace.read_only
        strips.move_of = session.files.moves.of
        composer.mentions = MentionSource(
            lambda: self.state.files,
            lambda: self.state.recent_paths,
            lambda path: _lines_of(session, path),
            lambda: self.state.listed,
            lambda: session.server.model_info.is_chat,
        )
        composer.offer()
        if (drafts := session.drafts) is not None:
            # The list is the session's, which writes it at the end.
            drafts.sent += composer.history
            composer.history = drafts.sent
            if drafts.draft and not composer.text.strip():
                composer.put_draft(drafts.draft, drafts.pasted)
                self.notices.say("info", "Your unsent text of last time: typing takes its place.")
            self._keep_draft()
            if drafts.wrap and not self.panes.pane.wrap:
                self.panes.pane.set_wrap(True)
        if session.status.notices:
            last = session.status.notices[-1]
            self.notices.say(last.level.value, self._with_key(last))
        if session.files and not self.state.path:
            self._resume(session)
        self.converse.refresh()
        self.refresh_facts()

    def detach(self) -> None:
        """Let go of the session, before another one is attached."""
        self._unsubscribe()
        self._news.clear()
        self._changed.clear()
        if self._arrivals is not None:
            self._arrivals.stop()
            self._arrivals = None
        self._set_pace(SessionState.READY)
        self.state.reset()
        self.panes.composer.history = []
        self.panes.composer.mentions = None
        self.notices.clear()
        self.converse.refresh()
        self.panes.pane.clear()
        self.panes.show_code(False)
        self.refresh_facts()

    def _resume(self, session: PairingSession) -> None:
        """Show what a resumed session left to decide, or else the file it was in."""
        waiting, last = session.hunks.waiting(), session.place.hunk
        hunk = last if last in waiting else next(iter(waiting), None)
        turn = session.turns.last
        path = turn.path if turn is not None else next(iter(session.files))
        if hunk is not None:
            path = hunk.path

        async def work() -> None:
            if not await self.navigate.open_path(path, focus=bool(waiting)):
                return
            # Wait until the pane has its size, so that the lines around the place show too.
            if hunk is not None:
                self.call_after_refresh(self.navigate.go_to_hunk, hunk, quietly=True)
            elif turn is not None:
                row = self.state.view.row_of_base(turn.start)
                self.call_after_refresh(self.panes.pane.go_to, row, centre=True)

        self._work.run(work)

    def _hear(self, event: SessionEvent) -> None:
        self._news.append(event)
        if len(self._news) == 1:
            self.post_message(self.News())

    def on_review_screen_news(self) -> None:
        """React to the events since the last time."""
        news, self._news = self._news, []
        if self.state.running and all(isinstance(event, HunkSettled) for event in news):
            # The next frame shows it; in a fast stream there is one of these every few lines.
            self.follow.settled = True
            return
        if all(isinstance(event, ConversationHeard) for event in news):
            self.converse.refresh()
            return
        for event in news:
            self._react(event)
        if all(isinstance(event, _ARRIVALS) for event in news):
            if self._arrivals is not None:
                return
            if (early := self._shown_at + FACTS_S - perf_counter()) > 0:
                self._arrivals = self.set_timer(early, self._show_news)
                return
        self._show_news()

    def _show_news(self) -> None:
        """Show what has changed."""
        if self._arrivals is not None:
            self._arrivals.stop()
            self._arrivals = None
        self._shown_at = perf_counter()
        changed, self._changed = [*self._changed], {}
        if changed:
            self.notices.say("info", self.state.session.files.change_message(changed))
        self.panes.pane.sync()
        self.refresh_facts()
        self.aim.update()

    def _react(self, event: SessionEvent) -> None:
        if isinstance(event, StateChanged):
            self._set_pace(event.state)
            self.notices.pass_over()
        elif isinstance(event, TurnStarted):
            self.follow.begin(event.turn)
        elif isinstance(event, TurnFinished):
            self._turn_finished(event.turn)
        elif isinstance(event, NoticePosted):
            notice = event.notice
            text = self._with_key(notice)
            self.notices.say(notice.level.value, text, outcome=True, passing=notice.passing)
        elif isinstance(event, HunkSettled):
            self.follow.hunk_settled()
        elif isinstance(event, FileChangedOnDisk):
            self._changed[event.path] = None
        elif isinstance(event, ExternalHunksAdded):
            self.follow.external(event.path)
            self.follow.hunk_settled()
        elif isinstance(event, (FileOpened, FileWritten)) and event.path not in self.state.files:
            self._folder.update()
        elif isinstance(event, FilesTouched):
            self._folder.touched(event.paths)
        elif isinstance(event, QuestionAnswered):
            self.converse.offer_code()
        elif isinstance(event, ConversationHeard):
            self.converse.refresh()

    def _with_key(self, notice: Notice) -> str:
        """A notice's text, with the key of the action it suggests."""
        if not notice.action:
            return notice.text
        return self.panes.with_way(notice.text, self._services.key_for(notice.action))

    def _turn_finished(self, turn: Turn) -> None:
        pane = self.panes.pane
        pane.sync()
        if self.state.turn is not turn:
            return  # It was redirected; the next turn goes on in its place.
        following, pane.following = pane.following, False
        self.steer.turn_ended(turn)
        if turn.status is TurnStatus.FAILED:
            return
        if following and turn.status is TurnStatus.DONE:
            self.follow.end()
        elif following:
            self.follow.stopped()
        self.steer.say_failures()
        self.steer.advise()

    # the tick

    def _set_pace(self, state: SessionState) -> None:
        if self._ticker is None:
            return
        if state in RUNNING:
            garbage.pause()
            self._ticker.resume()
        else:
            self._ticker.pause()
            garbage.resume()

    async def _tick(self) -> None:
        now, pane = perf_counter(), self.panes.pane
        if self.output_backlog > 2 or not self.pace.due(now, FRAME_S):
            pane.lex_along()
            return
        await self.let_keys_pass()
        began = thread_time()
        self.follow.go_along()
        pane.sync()
        if self.follow.settled:
            self.follow.hunk_settled()
        if now - self._facts_at >= FACTS_S:
            self._facts_at = now
            self.refresh_facts()
        self._frame_made = True
        self.pace.took(thread_time() - began + self.paint_s)

    def _opened(self) -> None:
        """A file was shown: colour the rest of it while nothing else is to do."""
        self._resume_lexing()
        self.aim.update()
        self.call_after_refresh(self.status.show_keys)  # which lines are cut is known only then

    def _resume_lexing(self) -> None:
        if self._lexer is not None:
            self._lexer.resume()

    def _lex(self) -> None:
        if self.state.running:
            return
        if not self.panes.pane.lex_ahead() and self._lexer is not None:
            self._lexer.pause()

    # input

    def on_key(self, event: events.Key) -> None:
        """After some letters without a meaning, explain how to write to the model."""
        if self.panes.typing or not event.is_printable:
            return
        self.notices.key_pressed()
        self._unknown_keys += 1
        if self._unknown_keys == UNKNOWN_KEYS:
            key_for = self._services.key_for
            self.notices.say(
                "info",
                f"{event.character} does nothing here; press {key_for('compose')} to write to the "
                f"model, {key_for('help')} for the keys.",
            )

    @on(ComposerText.TextChanged)
    def _typed(self, event: ComposerText.TextChanged) -> None:
        event.stop()
        text = event.text
        self.notices.key_pressed()
        numbered = self.notices.asking or self.converse.choices or self.panes.suggestions.examples
        if numbered and len(text) == 1 and text in "123456789":
            self.panes.composer.put("")
            self.action_number(int(text))
            return
        self._keep_draft()
        self.aim.update_soon()
        self.status.show_keys()

    def _keep_draft(self) -> None:
        if (session := self.state.opened) is not None:
            composer = self.panes.composer
            session.keep_draft(composer.text, composer.pasted)

    def _read_folder(self) -> None:
        """Rebuild the file list after files were opened, created or moved."""
        self.panes.composer.offer()
        self.refresh_facts()
        self.start.read()

    @on(Composer.Listed)
    def _listed(self) -> None:
        self.status.show_keys()

    @on(DiffPane.Moved)
    def _moved(self) -> None:
        self.aim.update_soon()
        self.refresh_facts()
        self._resume_lexing()

    @on(DiffPane.DoubleClicked)
    def _chosen_row(self) -> None:
        self.steer.compose()

    @on(Ruler.Picked)
    def _picked_row(self, event: Ruler.Picked) -> None:
        pane = self.panes.pane
        pane.detach()
        pane.scroll_to_row(event.row - pane.height // 2)
        pane.go_to(event.row)

    @on(RowList.Chosen, "#rail")
    def _chosen_file(self, event: RowList.Chosen) -> None:
        if self.panes.rail_over_code:
            self.remove_class("-rail-open")
            self.panes.rail.display = False
        self.navigate.show_path(event.value)

    @on(RowList.Highlighted, "#rail")
    def _moved_in_rail(self, event: RowList.Highlighted) -> None:
        event.stop()
        self.status.show_keys()

    @on(Painted.Pressed)
    async def _pressed(self, event: Painted.Pressed) -> None:
        if self.notices.is_alone or event.call.isdecimal():
            self.notices.hear(event.call)
        else:
            await self._call(event.call)

    @on(Suggestions.ExampleChosen)
    def _chosen_example(self, event: Suggestions.ExampleChosen) -> None:
        self._choose_example(event.number)

    @on(Welcome.PathChosen)
    def _chosen_change(self, event: Welcome.PathChosen) -> None:
        self.navigate.show_path(event.path)

    @on(IntroductionLine.Clicked)
    def _clicked_introduction(self) -> None:
        self.show.models()

    @on(FilePicked)
    async def _picked_file(self, event: FilePicked) -> None:
        await self.converse.open_file(event.path, event.line)

    @on(ToolPicked)
    async def _picked_tool(self, event: ToolPicked) -> None:
        await self.converse.open_tool(event.use)

    @on(NoticeLine.Dismissed)
    def _dismissed(self) -> None:
        self.notices.clear()

    @on(EntryRow.Typed, "#search")
    def _search_typed(self, event: EntryRow.Typed) -> None:
        self.navigate.search_typed(event.text)

    @on(EntryRow.Given, "#search")
    def _search_kept(self, event: EntryRow.Given) -> None:
        self.navigate.end_search(keep=bool(event.text))

    @on(EntryRow.Left, "#search")
    def _search_left(self) -> None:
        self.navigate.end_search(keep=False)

    @on(EntryRow.Given, "#reason, #release")
    def _reason_given(self, event: EntryRow.Given) -> None:
        self.decide.reason_given(event.row, event.text, again=event.again)

    @on(EntryRow.Left, "#reason, #release")
    def _reason_left(self, event: EntryRow.Left) -> None:
        self.decide.reason_left(event.row, event.text)

    def on_descendant_focus(self) -> None:
        self.refresh_facts()
        self.aim.update()

    def on_resize(self, event: events.Resize) -> None:
        self.panes.lay_out(*event.size)
        self.converse.lay_out()
        self.call_after_refresh(self.refresh_facts)


def _lines_of(session: PairingSession, path: str) -> list[str]:
    """The lines of a file on disk; none where it cannot be read."""
    try:
        return session.workspace.read(path).decode("utf-8", "replace").splitlines()
    except UserError:
        return []
