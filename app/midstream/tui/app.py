"""The Textual application: themes, keys, one review screen, and the session behind it.

The first paint comes before the session is opened, because opening it imports the wire and the file
watcher.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import events
from textual.app import App, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.screen import Screen, ScreenResultCallbackType

from midstream import processes
from midstream.defects import DefectError, brief, keep_report, sentence
from midstream.errors import UsageError, UserError
from midstream.project import opened_by
from midstream.resources import themes_dir, tilde
from midstream.theme_files import DEFAULT_THEME, find_theme, theme_folders, theme_trouble
from midstream.tui import garbage
from midstream.tui.eager import EAGER, EagerScreen
from midstream.tui.glyphs import ASCII, UNICODE
from midstream.tui.keymap import (
    all_keys,
    first_key,
    key_troubles,
    keys_of,
    own_keys,
    teach_sequences,
)
from midstream.tui.notices import Notices
from midstream.tui.output import prompt
from midstream.tui.pages.sheet import SheetScreen
from midstream.tui.review.screen import ReviewScreen
from midstream.tui.services import Result, Themed
from midstream.tui.themes import (
    LOOK_EVERY_S,
    Palette,
    ThemeFolder,
    for_terminal,
    load_theme,
    load_themes,
)
from midstream.tui.widgets.line_api import use_no_color

if TYPE_CHECKING:
    from textual.driver import Driver

    from midstream.agents.catalogue import KnownAgent
    from midstream.demo import DemoInfo
    from midstream.pairing.session import PairingSession
    from midstream.responses.endpoint import Endpoint
    from midstream.settings import Settings
    from midstream.tui.telemetry.page import WaferPane
    from midstream.tui.widgets.welcome import TourWords
    from midstream.workspace.snapshot import Snapshot

QUIET_S = 2.0
"""Seconds without a key after which work may run that would delay one."""
NO_KEY = "unbound"
"""The name of a key that no keyboard has."""


class MidstreamApp(App[None]):
    """The program on one folder.

    Args:
        resume: The journal of an earlier session to take up again.
        review: Whether what other programs write waits for decisions.
        snapshot: The range of commits to review, whose files the folder has.
        open_file: A file to show at once, relative to the folder.
        endpoint: A model server to use instead of the configured one.
        replay: A script for the built-in server to play instead of running a model.
        flags: Settings that the command line gave, by field.
    """

    TITLE = "Midstream"
    # A page that brought its own would have all that is on screen parsed and styled anew.
    CSS_PATH: ClassVar = [
        Path(__file__).with_name("review") / "review.tcss",
        Path(__file__).with_name("pages") / "page.tcss",
    ]
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "Quit", show=False, priority=True, id="quit.app")
    ]

    def __init__(
        self,
        root: Path,
        settings: Settings,
        *,
        demo: DemoInfo | None = None,
        resume: Path | None = None,
        review: bool = False,
        agent: KnownAgent | None = None,
        snapshot: Snapshot | None = None,
        open_file: str | None = None,
        endpoint: Endpoint | None = None,
        replay: Path | None = None,
        flags: Mapping[str, object] | None = None,
    ) -> None:
        self.root = root.resolve()
        self.settings = settings
        self.flags: Mapping[str, object] = flags or {}
        self.demo = demo
        self.glyphs = ASCII if settings.ascii else UNICODE
        self.keys = self._keys_of(settings)
        shipped, own_themes = theme_folders()
        self._theme_folder = ThemeFolder(own_themes)
        self.palettes, self._theme_errors = load_themes(shipped, own_themes)
        self.palette: Palette = self._first_palette(None)
        self.session: PairingSession | None = None
        self._opened: list[asyncio.Task[PairingSession]] = []  # All that may not be closed yet.
        self.commit_message = ""
        self.wafer: WaferPane | None = None
        self.failure: UserError | None = None
        self.defect: tuple[Exception, Path | None] | None = None
        """The error that ended the program, and its report."""
        self._early: list[events.Event] = []
        self._quits_later = False
        """Whether it quits once git has made a commit."""
        self.has_process = False
        """Whether the process is this program's own: it ends with it, and by a signal."""
        self._input_at = 0.0
        self._terminal = asyncio.Lock()
        self._ending: asyncio.Task[None] | None = None
        """Held while an editor has the terminal."""
        self._resume = resume
        self.begins_review = review
        self._agent = agent
        self._snapshot = snapshot
        self._open_file = open_file
        self._endpoint = endpoint
        self._replay = replay
        super().__init__()
        if self.no_color:
            use_no_color(self)
        depth = self.console.color_system
        self.palettes = {n: for_terminal(p, depth) for n, p in self.palettes.items()}
        self.palette = self._first_palette(depth, coloured=not self.no_color)
        self.register_theme(self.palette.to_textual())
        self.theme = f"midstream-{self.palette.name}"
        self._use_keys()
        self.set_class(settings.ascii, "-ascii")
        self.review = ReviewScreen(self)

    @staticmethod
    def _keys_of(settings: Settings) -> dict[str, str]:
        own, _ = own_keys(settings.key_binds)
        return keys_of(settings.keys, own)

    def _use_keys(self) -> None:
        # An empty entry would leave an action its default keys.
        self.set_keymap({action: keys or NO_KEY for action, keys in self.keys.items()})

    def _first_palette(self, depth: str | None, *, coloured: bool = True) -> Palette:
        if not self.palettes:
            raise UsageError(f"No theme could be loaded from {themes_dir()}; reinstall Midstream.")
        wanted = self.settings.theme
        found = find_theme(wanted, self._theme_labels) if wanted else None
        if not coloured:
            found = "ansi"  # The one that needs no colour to tell rows apart.
        elif found is None:
            # Sixteen colours are the terminal's own; ours would only be rounded to them.
            found = "ansi" if depth == "standard" else DEFAULT_THEME
        return self.palettes.get(found) or next(iter(self.palettes.values()))

    @property
    def _theme_labels(self) -> dict[str, str]:
        return {name: palette.label for name, palette in self.palettes.items()}

    def _theme_troubles(self) -> list[str]:
        """Problems with theme files and with the requested theme."""
        told = list(map(str, self._theme_errors.values()))
        wanted = self.settings.theme
        if wanted and (why := theme_trouble(wanted, self._theme_labels, self._theme_errors)):
            told = [*(t for t in told if t != why), f"{why} {self.palette.label} is shown instead."]
        return told

    def get_driver_class(self) -> type[Driver]:
        """The driver for this platform; ours writes without a detour where it can."""
        driver = super().get_driver_class()
        if not EAGER or sys.platform == "win32":
            return driver

        return prompt(driver)

    def get_default_screen(self) -> ReviewScreen:
        return self.review

    async def on_event(self, event: events.Event) -> None:
        """Hold keys until the review screen is mounted, and while the screen keeps them.

        While the question before quitting is open, all of them go to it.
        """
        if isinstance(event, events.InputEvent):
            self._input_at = time.monotonic()
        if isinstance(event, (events.Key, events.Paste)):
            if not self.review.is_ready:
                self._early.append(event)
                return
            screen = self.screen
            if not event.is_forwarded and self._answers(event):
                return
            if not event.is_forwarded and isinstance(screen, EagerScreen) and screen.keeps(event):
                return
        await super().on_event(event)

    def _answers(self, event: events.Key | events.Paste) -> bool:
        """Give a key to a question that has to be answered first; whether there is one."""
        notices: Notices | None = getattr(self.screen, "notices", None)
        if notices is None or not notices.is_alone:
            return False
        if not isinstance(event, events.Key):
            return True
        if event.key in self.keys["quit"].split(","):  # which answers it as well
            return False
        notices.hear(event.key)
        return True

    def refresh_css(self, animate: bool = True) -> None:
        """Style everything anew; at the start, nothing is parsed before the colours are set."""
        if self.review.is_mounted:
            super().refresh_css(animate)
        else:
            self.stylesheet.set_variables(self.get_css_variables())

    def screen_ready(self) -> None:
        early, self._early = self._early, []
        for event in early:
            self.post_message(event)

    async def on_mount(self) -> None:
        """Open the session once the first frame is on screen; look at themes from then on."""
        self.call_after_refresh(self._start)
        if self.has_process:
            with contextlib.suppress(NotImplementedError):  # on Windows
                loop = asyncio.get_running_loop()
                for number in processes.ending_signals():
                    loop.add_signal_handler(number, self._terminated, number)
        # The shell has written over the screen meanwhile.
        self.app_resume_signal.subscribe(  # pyright: ignore[reportUnknownMemberType]
            self, self._resumed
        )
        self.set_interval(LOOK_EVERY_S, self._look_around)

    def _terminated(self, number: int) -> None:
        processes.take_terminal_back()
        self._ending = asyncio.create_task(self._end_by_signal(number))

    def open_url(self, url: str, *, new_tab: bool = True) -> None:
        """Open a page of the web in the user's browser."""
        if self.is_web:
            super().open_url(url, new_tab=new_tab)
        else:
            self.run_worker(processes.browse(url), group="browser", exit_on_error=False)

    async def _end_by_signal(self, number: int) -> None:
        async with self._terminal:  # A screen that ends while it is lent would be back after that.
            self.exit(return_code=128 + number)

    def _resumed(self, _: object) -> None:
        self.repaint()

    def _start(self) -> None:
        self.run_worker(self._open_session, group="open", exit_on_error=True)

    async def _new_session(self, journal: Path | None) -> PairingSession:
        opening = asyncio.create_task(self._made_session(journal))
        self._opened.append(opening)
        # Quitting cancels the worker that waits here; what it opens is closed in `on_unmount`.
        return await asyncio.shield(opening)

    async def _made_session(self, journal: Path | None) -> PairingSession:
        from midstream.pairing.models.server import ServerLink

        server = ServerLink(self.settings, endpoint=self._endpoint, replay=self._replay)
        try:
            if not (journal or self._agent or self._snapshot or self.begins_review):
                await server.launch()  # Its model loads while the rest is imported.
            await asyncio.to_thread(import_module, "midstream.pairing.session")
            from midstream.pairing.session import PairingSession

            return await PairingSession.open(
                self.root,
                settings=self.settings,
                server=server,
                resume=journal,
                review=self.begins_review,
                agent=self._agent,
                snapshot=self._snapshot,
                introduce=self.demo is None and self._agent is None,
            )
        except BaseException:
            await server.close()
            raise

    async def _open_session(self) -> None:
        try:
            session = await self._new_session(self._resume)
        except UserError as error:
            self.failure = error
            self.exit(return_code=error.exit_code)
            return
        if not self.is_running:
            return
        self.session = session
        self.review.attach(session)
        if self._open_file is not None:
            self.review.navigate.show_path(self._open_file, focus=False)
        self.review.steer.send_held()
        if self.begins_review and self._resume is None and self._agent is None:
            self.review.start.offer_earlier()
        wrong = [
            *self._theme_troubles(),
            *key_troubles(self.settings.keys, self.settings.key_binds),
        ]
        if wrong:
            self.say("warning", " ".join(wrong))
        garbage.begin()

    async def take_up(self, journal: Path) -> None:
        """Replace the current session by an earlier one.

        Raises:
            UserError: It cannot be opened; the current session goes on.
        """
        former, session = self.session, await self._new_session(journal)
        if former is not None:
            await session.take_drafts(former)
        self.review.detach()
        self.session = session
        self.review.attach(session)
        if former is not None:
            await former.close()
        del self._opened[:-1]

    def _fatal_error(self) -> None:
        """Leave a report in place of Textual's traceback, which shows what variables hold."""
        if self.defect is None and self._exception is not None:
            self.defect = self._exception, keep_report(self._exception)
        self._close_messages_no_wait()

    def report_defect(self, error: Exception) -> str:
        path = keep_report(error)
        where = "" if path is None else f"; the report is in {tilde(path)}"
        return f"Midstream itself failed ({brief(error)}){where}. Nothing was lost."

    async def on_unmount(self) -> None:
        garbage.end()
        if self.has_process:
            processes.end_soon(processes.CLOSE_S)  # The thread of a commit waits for a hook of git.
        async with contextlib.AsyncExitStack() as closing:
            for opening in self._opened:
                await asyncio.wait({opening})
                if not opening.cancelled() and opening.exception() is None:
                    closing.push_async_callback(opening.result().close)

    def use_theme(self, name: str) -> None:
        palette = self.palettes.get(name)
        if palette is None or palette is self.palette:
            return
        self.palette = palette
        self.register_theme(palette.to_textual())
        if self.theme == f"midstream-{name}":
            self.mutate_reactive(MidstreamApp.theme)  # Its file has changed.
        else:
            self.theme = f"midstream-{name}"
        self.review.panes.set_palette(palette)
        for screen in self.screen_stack:
            if isinstance(screen, Themed):
                screen.set_palette(palette)
        if self.wafer is not None:
            self.wafer.set_palette(palette)

    def _look_around(self) -> None:
        self._look_at_themes()
        if time.monotonic() - self._input_at > QUIET_S:
            garbage.tidy()

    def _look_at_themes(self) -> None:
        """Apply changes in the user's own theme files."""
        news = self._theme_folder.look()
        for name in news.gone:
            shipped = themes_dir() / f"{name}.toml"
            if shipped.exists():
                news.palettes[name] = load_theme(shipped)
            elif name != self.palette.name:
                self.palettes.pop(name, None)
        for name, palette in news.palettes.items():
            self.palettes[name] = for_terminal(palette, self.console.color_system)
        if self.palette.name in news.palettes:
            self.use_theme(self.palette.name)
        if news.errors:
            self.say("error", f"{news.errors[0]} The colours stay as they were.")
        elif news.palettes:
            labels = ", ".join(palette.label for palette in news.palettes.values())
            self.say("info", f"Theme {labels} was read again.")

    def apply(self, settings: Settings) -> None:
        former, self.settings = self.settings, replace(settings, **cast("Any", self.flags))
        now = self.settings
        if now.theme != former.theme:
            self.use_theme(self._first_palette(self.console.color_system).name)
        if now.layout != former.layout:
            self.review.panes.pane.set_layout(now.layout)
        if (now.keys, now.key_binds) != (former.keys, former.key_binds):
            self.keys = self._keys_of(now)
            self._use_keys()
        if self.session is not None:
            self.session.apply_settings(now)
        self.review.refresh_facts()

    # what screens use, see tui.services

    @property
    def shows_wafer(self) -> bool:
        return self.wafer is not None

    @property
    def running(self) -> bool:
        return self.review.state.running

    @property
    def shown_path(self) -> str:
        return self.review.state.path

    @property
    def tour_of_commit(self) -> TourWords:
        return self.review.tour.words_of_commit

    @property
    def has_terminal_focus(self) -> bool:
        return self.app_focus

    def say(self, level: str, text: str) -> None:
        self.review.notices.say(level, text)

    def open_screen(
        self,
        screen: Screen[Result],
        closed: ScreenResultCallbackType[Result] | None = None,
    ) -> None:
        self.push_screen(screen, closed)

    def show_wafer(self, model: str | None) -> None:
        if self.wafer is not None:
            self.wafer.remove()
            self.wafer = None
        if model is not None:
            from midstream.tui.telemetry.page import WaferPane

            self.wafer = WaferPane(self, model)
            self.review.panes.body.mount(self.wafer)

    def stop_model(self) -> None:
        self.review.steer.stop()

    def repaint(self) -> None:
        self.refresh(layout=True)

    async def edit_outside(self, text: str, name: str) -> str:
        from midstream.editor import editor_command

        command = editor_command()
        if command is None:
            raise UserError(
                "There is no editor to open", "set EDITOR (or VISUAL), such as EDITOR=vim"
            )
        try:
            # Only a terminal that was lent can be taken back: a screen that closes cancels nothing.
            edited = await asyncio.shield(self._lend_terminal(command, text, name))
        except SuspendNotSupported as error:
            raise UserError("An editor cannot have this terminal", "edit the text here") from error
        if edited is None:
            raise UserError(f"{command[0]} failed, so the text stays as it is", "check EDITOR")
        return edited

    async def _lend_terminal(self, command: Sequence[str], text: str, name: str) -> str | None:
        """Let an editor have the terminal; everything but painting goes on meanwhile."""
        from midstream.editor import edit_text, interrupts_ignored

        async with self._terminal:
            with self.suspend(), self.batch_update(), interrupts_ignored():
                edited = await asyncio.to_thread(edit_text, command, text, name)
            self.repaint()
        return edited

    def suspend_to_shell(self) -> None:
        self.action_suspend_process()

    async def action_quit(self) -> None:
        """Quit, whatever screen is open."""
        self.quit()

    def quit(self, *, sure: bool = False) -> None:
        """Quit; flagged changes, undecided hunks and an agent's question are asked about first.

        Args:
            sure: Whether the user was told what is undecided, and has said so again.
        """
        session = self.session
        if session is not None and session.commit.committing:
            if self._quits_later:
                session.commit.stop_git()
            else:
                self._quit_after_commit(session, sure=sure)
            return
        from midstream.pairing.leaving import asking, left_behind

        what = ""
        if session is not None and (not sure or session.flagged_on_disk()):
            asks = asking(session)
            what = " ".join(
                filter(None, (f"{asks}." if asks else "", left_behind(session, self._resuming())))
            )
        if self._notices.is_alone or not what:
            self.exit()
            return
        self._uncovered_notices().ask(
            f"{what} Quit anyway?",
            ("stay", lambda: None),
            ("quit", self.exit),
            alone=True,
        )

    def quit_if_repeated(self, key: str, before: str = "") -> None:
        """Say what a second press of ``key`` does, after the words ``before``, or do it."""
        from midstream.pairing.leaving import behind

        session = self.session
        if session is not None and session.flagged_on_disk():
            self.quit()
        elif self._notices.insist(f"{before}{key} again quits{behind(session, self._resuming())}."):
            self.quit(sure=True)

    @property
    def users_folder(self) -> Path:
        """The root, or the folder of the user that it has the files of."""
        return self.root if self._snapshot is None else self._snapshot.folder

    def _resuming(self) -> str:
        """The command that goes on with the session, ``""`` where no journal keeps it."""
        from midstream.pairing.leaving import resuming

        return resuming(self.root, self._snapshot) if self.settings.journal else ""

    def _uncovered_notices(self) -> Notices:
        """Close sheets, which cover the line of notices, and return those of the screen below."""
        while isinstance(self.screen, SheetScreen):
            self.screen.dismiss(None)
        return self._notices

    @property
    def _notices(self) -> Notices:
        """Those of the open screen, or of the main one below it."""
        return getattr(self.screen, "notices", self.review.notices)

    def _quit_after_commit(self, session: PairingSession, *, sure: bool) -> None:
        """Quit once git has made the commit, or was stopped; stay where its hooks refuse."""
        self._quits_later = True
        notices = self._uncovered_notices()
        key = self.key_for("quit")
        words = f"Quitting once git and its hooks are done; {key} again stops them."
        notices.say("info", words, lasting=True)

        async def quit_then() -> None:
            made = await session.commit.finished()
            self._quits_later = False
            # The answer to an open question is the user's.
            if (made or session.commit.cut_off) and not self._notices.is_alone:
                self.quit(sure=sure)

        self.run_worker(quit_then, group="quit")

    @property
    def given_endpoint(self) -> str:
        return "" if self._endpoint is None else self._endpoint.host

    def use_model(self, settings: Settings) -> None:
        self.settings = settings
        self._endpoint = None
        # A model that was chosen on screen is not the command line's any more.
        self.flags = {
            name: value
            for name, value in self.flags.items()
            if name != "model" and not name.startswith("endpoint")
        }
        if self.session is not None:
            self.session.use_model(settings)
        self.review.refresh_facts()

    def use_pace(self, pace: float | None) -> None:
        self.flags = {**self.flags, "pace": pace}
        self.settings = replace(self.settings, pace=pace)
        if self.session is not None:
            self.session.use_model(self.settings)
        self.review.refresh_facts()

    def key_for(self, action_id: str) -> str:
        return first_key(self.keys, action_id)

    def all_keys_for(self, action_id: str) -> str:
        return all_keys(self.keys, action_id)


def run_app(
    root: Path,
    settings: Settings,
    *,
    demo: DemoInfo | None = None,
    resume: Path | None = None,
    review: bool = False,
    agent: KnownAgent | None = None,
    snapshot: Snapshot | None = None,
    replay: Path | None = None,
    flags: Mapping[str, object] | None = None,
) -> int:
    """Run the program on a folder, or on the project of a file which is then shown.

    Returns:
        The exit code.

    Raises:
        UserError: The folder or the session cannot be used.
    """
    root, open_file = opened_by(root)
    if not root.is_dir():
        raise UsageError(f"{root} is not a file or a folder; name one that exists.")
    app = MidstreamApp(
        root,
        settings,
        demo=demo,
        resume=resume,
        review=review,
        agent=agent,
        snapshot=snapshot,
        open_file=open_file,
        replay=replay,
        flags=flags,
    )
    teach_sequences(key for keys in app.keys.values() for key in keys.split(","))
    app.has_process = True
    processes.end_by_signals()
    processes.favour_event_loop()
    processes.share_heap()
    try:
        app.run()
    except Exception as error:
        app.defect = app.defect or (error, keep_report(error))
    if app.failure is not None:
        raise app.failure
    if app.defect is not None:
        raise DefectError(sentence(*app.defect, kept=_what_is_kept(app, root, snapshot))) from None
    if app.session is not None and demo is None:  # nothing of a demo stays
        from midstream.commands.common import wrapped
        from midstream.pairing.leaving import resuming, summary

        command = resuming(root, snapshot) if app.settings.journal else ""
        placed = snapshot is None
        for line in summary(app.session, command, placed=placed):
            print(wrapped(line))
    return app.return_code or 0


def _what_is_kept(app: MidstreamApp, root: Path, snapshot: Snapshot | None) -> str:
    """What became of the user's work when the program had to stop."""
    session = app.session
    if session is None or app.demo is not None or not session.turns:
        return "your files are as they were"
    if app.settings.journal:
        from midstream.pairing.leaving import resuming

        return f"your decisions are kept: {resuming(root, snapshot)}"
    return "accepted hunks are on disk"
