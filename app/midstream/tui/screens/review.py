"""The review screen: layout, the tick that follows the session, and what its events change.

The session tells coarse events; everything shown is read from it at our own pace, sixty times a
second while text streams and not at all while nothing happens.  Keys and their meaning are in the
modules this one builds on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget

from midstream.errors import UserError
from midstream.pairing.events import (
    FileChangedOnDisk,
    FileOpened,
    FilesTouched,
    FileWritten,
    HunkSettled,
    Notice,
    NoticePosted,
    SessionEvent,
    StateChanged,
    TurnFinished,
    TurnStarted,
)
from midstream.pairing.turns import SessionState, Turn, TurnStatus
from midstream.tui import garbage
from midstream.tui.keymap import Place, bindings
from midstream.tui.mentions import MentionSource
from midstream.tui.screens.following import Following
from midstream.tui.screens.pace import FramePace
from midstream.tui.screens.reason import ReasonBar, ReleaseBar
from midstream.tui.screens.review_base import RUNNING
from midstream.tui.screens.search import SearchBar
from midstream.tui.widgets.composer import Composer, ComposerText
from midstream.tui.widgets.diff_pane import DiffPane
from midstream.tui.widgets.file_bar import FileBar
from midstream.tui.widgets.key_bar import KeyBar
from midstream.tui.widgets.notice import NoticeLine
from midstream.tui.widgets.rail import Rail
from midstream.tui.widgets.row_list import RowList
from midstream.tui.widgets.ruler import Ruler
from midstream.tui.widgets.status_row import StatusRow
from midstream.tui.widgets.suggestions import Suggestions
from midstream.tui.widgets.welcome import Welcome

if TYPE_CHECKING:
    from midstream.demo import DemoInfo
    from midstream.pairing.session import PairingSession
    from midstream.tui.themes import Palette

FRAME_S: Final = 1 / 60
FACTS_S: Final = 0.25
"""Seconds between two readings of the facts in status row, file bar and rail."""
WIDE: Final = 140
MEDIUM: Final = 80
TALL: Final = 24
UNKNOWN_KEYS: Final = 2
"""Letters without a meaning after which it is told, once, how to write to the model."""


class ReviewScreen(Following):
    """The one screen people work in."""

    BINDINGS: ClassVar = [
        *bindings(Place.REVIEW, Place.ANYWHERE),
        *(Binding(str(n), f"number({n})", show=False, priority=True) for n in range(1, 10)),
    ]
    AUTO_FOCUS = ""

    @dataclass
    class News(Message):
        """The session has told something; what, is in ``_news``."""

    def __init__(self, demo: DemoInfo | None) -> None:
        super().__init__(demo)
        self.is_ready = False
        """Whether keys find what they act on."""
        self._news: list[SessionEvent] = []
        self._unknown_keys = 0
        self.pace = FramePace()
        """Says when the next frame of a stream is due."""
        self._facts_at = 0.0
        self._ticker: Timer | None = None
        self._lexer: Timer | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    def compose(self) -> ComposeResult:
        """The widgets, from top to bottom."""
        palette, glyphs = self.program.palette, self.program.glyphs
        yield named(StatusRow(palette, glyphs), "status")
        with Horizontal(id="body"):
            yield named(Rail(palette, glyphs), "rail")
            with Vertical(id="centre"):
                yield named(Welcome(palette), "welcome")
                with Vertical(id="code"):
                    yield named(FileBar(palette, glyphs), "file")
                    with Horizontal(id="panes"):
                        yield named(DiffPane(palette, glyphs), "pane")
                        yield named(Ruler(palette, glyphs), "ruler")
        yield SearchBar(id="search")
        yield ReleaseBar()
        yield ReasonBar()
        yield named(Suggestions(palette), "suggestions")
        yield named(NoticeLine(palette), "notice")
        yield named(Composer(palette, glyphs), "composer")
        yield named(KeyBar(palette), "keys")

    def on_mount(self) -> None:
        """Timers, and the facts that are known without a session."""
        self._ticker = self.set_interval(FRAME_S, self._tick, pause=True)
        self._lexer = self.set_interval(FRAME_S, self._lex, pause=True)
        self.query_one("#code").display = False
        self.pane.set_layout(self.program.settings.layout)
        self.set_focus(self.composer.field)
        self.refresh_facts()
        self.is_ready = True
        self.program.take_early_keys()

    def attach(self, session: PairingSession) -> None:
        """The session is open: listen to it and show what it has."""
        self.session = session
        self._unsubscribe = session.subscribe(self._hear)
        self.list_files()
        self.start_looking()
        self.composer.mentions = MentionSource(
            lambda: self.files, self._recent, lambda path: _lines_of(session, path)
        )
        if (drafts := session.drafts) is not None:
            # The list is the session's, which writes it at the end.
            drafts.sent += self.composer.history
            self.composer.history = drafts.sent
            if drafts.draft and not self.composer.text.strip():
                self.composer.put_draft(drafts.draft, drafts.pasted)
            self._keep_draft()
            if drafts.wrap and not self.pane.wrap:
                self.pane.set_wrap(True)
        if session.notices:
            last = session.notices[-1]
            self.say(last.level.value, last.text)
        if session.files and not self.path:
            self._take_up(session)
        self.refresh_facts()

    def _recent(self) -> list[str]:
        """Files that were looked at, the open one first."""
        return list(dict.fromkeys(filter(None, (self.path, *reversed(self.places)))))

    def detach(self) -> None:
        """Let go of the session, before another one is attached."""
        self._unsubscribe()
        self._news.clear()
        self._set_pace(SessionState.READY)
        self.session = None
        self.path, self.finder = "", None
        self.views, self.syntaxes, self.places = {}, {}, {}
        self.composer.history = []
        self.composer.mentions = None
        self.hush()
        self.pane.clear()
        self.query_one("#code").display = False
        self.query_one("#welcome").display = True
        self.refresh_facts()

    def _take_up(self, session: PairingSession) -> None:
        """Show what a resumed session left to decide, or else the file it was in."""
        waiting = session.hunks.undecided()
        turn = session.turn
        path = turn.path if turn is not None else next(iter(session.files))
        if waiting:
            path = waiting[0].path

        async def work() -> None:
            if not await self.open_path(path, focus=bool(waiting)) or self.view is None:
                return
            # Not before the pane has its size: what is around the place is to be seen as well.
            if waiting:
                self.call_after_refresh(self.to_hunk, forward=True, undecided=True)
            elif turn is not None:
                row = self.view.row_of_base(turn.start)
                self.call_after_refresh(self.pane.go_to, row, centre=True)

        self.in_order(work)

    def set_palette(self, palette: Palette) -> None:
        """Draw everything with other colours."""
        glyphs = self.program.glyphs
        for widget in (self.pane, self.rail, self.composer):
            widget.set_palette(palette, glyphs)
        self.query_one(StatusRow).set_palette(palette, glyphs)
        self.query_one(FileBar).set_palette(palette, glyphs)
        self.query_one(Ruler).set_palette(palette, glyphs)
        for kind in (KeyBar, NoticeLine, Suggestions, Welcome):
            self.query_one(kind).set_palette(palette)

    # the session speaks

    def _hear(self, event: SessionEvent) -> None:
        self._news.append(event)
        if len(self._news) == 1:
            self.post_message(self.News())

    def on_review_screen_news(self) -> None:
        """React to what the session told since the last time."""
        news, self._news = self._news, []
        self.keep_looking()
        if self.running and all(isinstance(event, HunkSettled) for event in news):
            # The next frame shows it; in a fast stream there is one of these every few lines.
            self.settled = True
            return
        for event in news:
            self._react(event)
        self.pane.sync()
        self.refresh_facts()
        self.aim()

    def _react(self, event: SessionEvent) -> None:
        if isinstance(event, StateChanged):
            self._set_pace(event.state)
        elif isinstance(event, TurnStarted):
            self.begin_following(event.turn)
        elif isinstance(event, TurnFinished):
            self._turn_finished(event.turn)
        elif isinstance(event, NoticePosted):
            self.say(event.notice.level.value, self._with_key(event.notice), outcome=True)
        elif isinstance(event, HunkSettled):
            self.hunk_settled()
        elif isinstance(event, FileChangedOnDisk) and self.session is not None:
            self.say("info", self.session.told_change(event.path))
        elif isinstance(event, (FileOpened, FileWritten)) and event.path not in self.files:
            self.list_files()
        elif isinstance(event, FilesTouched):
            self.files_touched(event.paths)

    def _with_key(self, notice: Notice) -> str:
        """What a notice says, with the key of the way out that it ends with."""
        if not notice.action:
            return notice.text
        return f"{notice.text.rstrip('.')} ({self.program.key_for(notice.action)})."

    def _set_pace(self, state: SessionState) -> None:
        ticker = self._ticker
        if ticker is None:
            return
        if state in RUNNING:
            garbage.pause()
            ticker.resume()
        else:
            ticker.pause()
            garbage.resume()

    def _turn_finished(self, turn: Turn) -> None:
        pane, session = self.pane, self.session
        pane.sync()
        if session is None or session.turn is not turn:
            return  # It was redirected; the next turn goes on in its place.
        if turn.status is TurnStatus.DONE:
            self.answer_ended()
        following, pane.following = pane.following, False
        if turn.status is TurnStatus.FAILED:
            if not (turn.background or self.composer.text.strip()):
                self.composer.put(turn.instruction)
            if turn.again:
                own = self.composer.text == turn.instruction
                how = self.program.key_for("composer.send") if own else "the next instruction"
                self.say("error", f"{turn.error.rstrip('.')}; {how} {turn.again}.")
            elif turn.error:
                self.say("error", turn.error)
            return
        waiting = len(session.hunks.undecided(turn.path))
        if turn.status is TurnStatus.STOPPED:
            what = (
                f"{waiting} hunk{'s' * (waiting != 1)} to decide"
                if waiting
                else "nothing had settled yet"
            )
            if count := len(session.queued):
                key = self.program.key_for("composer.send")
                one = "it" if count == 1 else "one"
                what += f"; {count} queued, {key} in the empty line fetches {one}"
            self.say("info", f"Stopped after {turn.tokens:,} tokens; {what}.", outcome=True)
        if following and turn.status is TurnStatus.DONE:
            self.end_following()
        elif following:
            self.offer_hunk()  # who stops looks at the writing
        self.tell_failures()
        self.advise()

    # the tick

    async def _tick(self) -> None:
        now, pane = perf_counter(), self.pane
        if self.output_backlog > 2 or not self.pace.due(now, FRAME_S):
            pane.lex_along()
            return
        await self.let_keys_pass()
        began = thread_time()
        self.go_along()
        pane.sync()
        if self.settled:
            self.hunk_settled()
        if now - self._facts_at >= FACTS_S:
            self._facts_at = now
            self.refresh_facts()
        self._frame_made = True
        self.pace.took(thread_time() - began + self.paint_s)

    def _lex(self) -> None:
        if self.running:
            return
        if not self.pane.lex_ahead() and self._lexer is not None:
            self._lexer.pause()

    # what people do

    def on_key(self, event: events.Key) -> None:
        """A letter that means nothing: somebody may be writing to the model already."""
        if self.typing or not event.is_printable:
            return
        self.key_pressed()
        self._unknown_keys += 1
        if self._unknown_keys == UNKNOWN_KEYS:
            compose, keys = self.program.key_for("compose"), self.program.key_for("help")
            self.say(
                "info",
                f"{event.character} does nothing here; press {compose} to write to the model, "
                f"{keys} for the keys.",
            )

    def action_suggestions(self) -> None:
        """Show or hide the example instructions."""
        if self.demo is None:
            self.say("info", "Examples exist in the demo only: midstream demo.")
            return
        self._examples_hidden = not self._examples_hidden
        self.refresh_facts()

    def mark_tried(self, text: str) -> None:
        """An example that was sent is shown dimmed."""
        self._tried |= {text}

    def choose_number(self, number: int) -> bool:
        """Answer a question or take an example; says whether there was one."""
        if self.answers:
            if number <= len(self.answers):
                answer = self.answers[number - 1]
                self.hush()
                answer()
            return True
        widget = self.query_one(Suggestions)
        if number > len(widget.examples):
            return False
        example = widget.examples[number - 1]

        async def work() -> None:
            await self.open_path(example.path, focus=False)
            self.composer.put(example.instruction)
            self.set_focus(self.composer.field)
            self.aim()

        self.in_order(work)
        return True

    def has_number(self, number: int) -> bool:
        """Whether a question waits for this number, or an example has it."""
        if self.answers:
            return number <= len(self.answers)
        return number <= len(self.query_one(Suggestions).examples)

    def action_number(self, number: int) -> None:
        """Answer a question or take an example."""
        self.choose_number(number)

    @on(ComposerText.Typed)
    def _typed(self, event: ComposerText.Typed) -> None:
        event.stop()
        text = event.text
        self.key_pressed()
        if (
            len(text) == 1
            and text in "123456789"
            and (self.answers or self.query_one(Suggestions).examples)
        ):
            self.composer.put("")
            self.choose_number(int(text))
            return
        self._keep_draft()
        self.aim_soon()
        self.show_keys()

    def _keep_draft(self) -> None:
        if self.session is not None:
            self.session.keep_draft(self.composer.text, self.composer.pasted)

    @on(Composer.Listed)
    def _listed(self) -> None:
        self.show_keys()

    @on(DiffPane.Moved)
    def _moved(self) -> None:
        self.aim_soon()
        self.refresh_facts()
        self.resume_lexing()

    @on(DiffPane.Chosen)
    def _chosen_row(self) -> None:
        self.action_compose()

    @on(Ruler.Picked)
    def _picked_row(self, event: Ruler.Picked) -> None:
        self.pane.detach()
        self.pane.scroll_to_row(event.row - self.pane.height // 2)
        self.pane.go_to(event.row)

    @on(RowList.Chosen, "#rail")
    def _chosen_file(self, event: RowList.Chosen) -> None:
        if self.has_class("-rail-open"):
            self.remove_class("-rail-open")
            self.rail.display = False
        self.show_path(event.value)

    @on(KeyBar.Pressed)
    async def _pressed_hint(self, event: KeyBar.Pressed) -> None:
        await self.run_action(f"screen.{event.call}")

    @on(Suggestions.Chosen)
    def _chosen_example(self, event: Suggestions.Chosen) -> None:
        self.choose_number(event.number)

    @on(NoticeLine.Dismissed)
    def _dismissed(self) -> None:
        self.hush()

    def on_descendant_focus(self) -> None:
        """Keys, titles and hints depend on the focus."""
        self.refresh_facts()
        self.aim()

    def on_resize(self, event: events.Resize) -> None:
        """Choose the layout by size."""
        width, height = event.size
        small = width < MEDIUM or height < TALL
        wide = width >= WIDE and not small
        self.set_class(small, "-small")
        self.set_class(wide, "-wide")
        self.rail.display = wide
        self.remove_class("-rail-open")
        self.call_after_refresh(self.refresh_facts)

    def resume_lexing(self) -> None:
        """A file was opened: colour the rest of it while nothing else is to do."""
        if self._lexer is not None:
            self._lexer.resume()

    async def open_path(
        self, path: str, *, line: int | None = None, focus: bool = True, following: bool = False
    ) -> bool:
        """Show a file and colour it."""
        opened = await super().open_path(path, line=line, focus=focus, following=following)
        if opened:
            self.resume_lexing()
            self.aim()
        return opened


def _lines_of(session: PairingSession, path: str) -> list[str]:
    """The lines of a file on disk; none where it cannot be read."""
    try:
        return session.workspace.read(path).decode("utf-8", "replace").splitlines()
    except UserError:
        return []


W = TypeVar("W", bound=Widget)


def named(widget: W, name: str) -> W:
    """The widget, with the id that the stylesheet and the queries know it by."""
    widget.id = name
    return widget
