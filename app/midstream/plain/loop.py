"""Plain mode: reads lines, carries out commands, prints what the session reports.

At a terminal a line acts at once: while the model writes, an instruction redirects it.  From a pipe
a line waits until the answer before it has ended, except those that are for a running answer
(``stop``, ``redirect``, ``queue``), so that a script reads as what will happen.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from midstream import processes
from midstream.commands.common import printable, wrapped
from midstream.errors import UsageError, UserError
from midstream.pairing.activity import Activity, activity_of, told
from midstream.pairing.leaving import behind, left_behind, resuming, summary
from midstream.pairing.models.disclosures import about_built_in
from midstream.pairing.status import (
    RUNNING,
    ExternalHunksAdded,
    FileChangedOnDisk,
    FileWritten,
    HunkSettled,
    Notice,
    NoticeLevel,
    NoticePosted,
    SessionEvent,
    SessionState,
    StateChanged,
    TurnFinished,
    TurnStarted,
)
from midstream.plain import lines
from midstream.plain.commands import PlainCommands
from midstream.plain.words import BY_NAME, INSTRUCT, Said, understand
from midstream.project import opened_by
from midstream.workspace.paths import shown

if TYPE_CHECKING:
    from midstream.pairing.session import PairingSession
    from midstream.settings import Settings
    from midstream.workspace.snapshot import Snapshot

_RUNNING: Final = RUNNING | {SessionState.STOPPING}
_BEFORE: Final = (Activity.CONNECTING, Activity.LOADING, Activity.HOOKS)
"""The notice that a running command waits for something: told at once, not after it."""
_LEVELS: Final = {NoticeLevel.WARNING: "Warning: ", NoticeLevel.ERROR: "Error: "}


class Ended:
    """No more lines will come."""


class Interrupted:
    """Ctrl+C was pressed."""


class Stirred:
    """The session has told something, or has become idle."""


Item = str | Ended | Interrupted | Stirred


class PlainLoop:
    """One session in the linear mode.

    Args:
        session: The session.
        source: Where lines come from.
        put: Prints text.
        terminal: Whether a user types the lines.
        resuming: The command that goes on with the session, ``""`` where no journal keeps it.
    """

    def __init__(
        self,
        session: PairingSession,
        source: TextIO,
        put: Callable[[str], None],
        *,
        terminal: bool,
        resuming: str = "",
    ) -> None:
        self.failed = False
        """Whether a line could not be done."""
        self.ended_by = 0
        """The signal that has cancelled ``run``."""
        self._session = session
        self._source = source
        self._put = put
        self._terminal = terminal
        self._resuming = resuming
        self._inbox: asyncio.Queue[Item] = asyncio.Queue()
        self._news: deque[SessionEvent | Activity] = deque()
        self._doing = Activity.READY
        self._later: deque[str] = deque()
        self._prompted = False
        """Whether the last thing printed was the prompt."""
        self._ended = False
        self._asked_to_leave = False
        self._interrupts = 0
        """Presses of Ctrl+C that have not been looked at."""
        self._left = False
        self._watching: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._commands = PlainCommands(session, self._say, terminal=terminal)
        self._may_read = threading.Event()
        """Set while lines are read; an editor has the terminal for itself."""

    async def open(self, name: str) -> None:
        """Begin with a file."""
        await self._commands.carry_out(Said(BY_NAME["open"], name))

    async def run(self) -> None:
        """Read and do lines until they end or one says so."""
        session = self._session
        session.status.subscribe(self._hear)
        self._read_in_background()
        if session.introduction.due:
            self._say(about_built_in("M in the full screen sets up"))
        with self._signals():
            self._note_activity()
            for notice in session.status.notices:
                self._notice(notice)
            while not self._left:
                item = await self._inbox.get()
                if isinstance(item, str):
                    self._prompted = False
                    await self._line(item)
                    self._may_read.set()
                elif isinstance(item, Ended):
                    self._ended = True
                    self._left |= self._terminal
                elif isinstance(item, Interrupted):
                    self._interrupts -= 1
                    self._interrupted()
                self._tell_news()
                await self._go_on()
        if self._watching is not None:
            self._watching.cancel()

    @property
    def _busy(self) -> bool:
        watching = self._watching is not None and not self._watching.done()
        waiting = self._session.background.waiting > 0
        session = self._session
        working = session.status.state in _RUNNING or session.check.running or session.chat.busy
        return watching or waiting or working

    async def _line(self, line: str) -> None:
        if self._commands.hunks.takes_text and not self._later:
            await self._take_text(line)
            return
        if not line.strip() and not self._later:
            if not self._busy:
                self._prompt()
            return
        if not self._terminal and self._later:
            self._later.append(line)
            return
        said = understand(line, self._commands.is_file)
        if self._waits(said) and self._busy:
            self._later.append(line)
        else:
            await self._do(said)

    def _waits(self, said: Said) -> bool:
        return not self._terminal and not said.word.now

    async def _go_on(self) -> None:
        """Carry out the lines that are due; leave when no more will come."""
        while self._later and not self._left:
            if self._commands.hunks.takes_text:
                await self._take_text(self._later.popleft())
                continue
            if not self._later[0].strip():
                self._later.popleft()
                continue
            said = understand(self._later[0], self._commands.is_file)
            if self._waits(said) and self._busy:
                return
            self._later.popleft()
            await self._do(said)
        if self._ended and not self._later and not self._busy and self._inbox.empty():
            self._left = True

    async def _take_text(self, line: str) -> None:
        try:
            await self._commands.hunks.take_text(line)
        except UserError as error:
            self.failed = True
            self._say(str(error))
        if self._terminal and not self._commands.hunks.takes_text:
            self._prompt()

    def _may_leave(self) -> bool:
        """Whether nothing is left behind unsaid; the second time in a row, yes.

        At a terminal, undecided hunks are listed first.  Piped commands are held back only by
        flagged changes of other programs, which are on disk.
        """
        if self._asked_to_leave:
            return True
        left = ""
        if self._terminal or self._session.flagged_on_disk():
            left = left_behind(self._session, self._resuming)
        self._asked_to_leave = bool(left)
        if left:
            self._say(f"{left} quit again leaves.")
        return not left

    async def _do(self, said: Said) -> None:
        # Print pending events before what the line does.
        self._tell_news()
        try:
            if said.word.name == "quit":
                self._left = self._may_leave()
            else:
                self._asked_to_leave = False
                await self._commands.carry_out(said)
                if said.word.name == INSTRUCT:
                    await self._session.introduction.done()
        except UserError as error:
            self.failed = True
            self._say(str(error))
            for number, choice in enumerate(self._commands.wonder(error, said), 1):
                self._say(f"{number}  {choice}")
        self._tell_news()
        session = self._session
        if self._busy or session.turns.queued:
            self._watch()
        elif self._terminal and not self._left and not self._commands.hunks.takes_text:
            self._prompt()

    def _watch(self) -> None:
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._until_idle())

    async def _until_idle(self) -> None:
        await self._session.turns.finished()
        await self._session.background.finished()
        await self._session.check.finished()
        await self._session.chat.finished()
        self._inbox.put_nowait(Stirred())

    def _interrupted(self) -> None:
        if self._session.status.state in _RUNNING:
            self._watch()
            self._stopping = asyncio.create_task(self._session.turns.stop_turn())
            return
        if self._session.chat.busy:
            self._stopping = asyncio.create_task(self._session.chat.stop_answer())
            return
        if self._session.check.running:
            self._stopping = asyncio.create_task(self._session.check.stop_command())
            return
        if self._asked_to_leave:
            self._left = True
            return
        self._asked_to_leave = True
        self._say(f"Nothing is running. Ctrl+C again quits{behind(self._session, self._resuming)}.")
        self._prompt()

    # telling

    def _hear(self, event: SessionEvent) -> None:
        if not self._news:
            self._inbox.put_nowait(Stirred())
        self._news.append(event)
        self._note_activity()

    def _note_activity(self) -> None:
        doing = activity_of(self._session)
        if doing is self._doing:
            return
        self._doing = doing
        self._news.append(doing)
        if doing in _BEFORE:
            self._tell_news()

    def _tell_news(self) -> None:
        while self._news:
            self._tell(self._news.popleft())
        # Not for an event only: the last words are there a moment before it comes.
        if said := list(self._commands.conversing.news()):
            self._say_all(said)
            if not self._session.chat.busy:
                self._prompt()

    def _tell(self, event: SessionEvent | Activity) -> None:
        if isinstance(event, Activity):
            if line := told(self._session, event):
                self._say(line)
        elif isinstance(event, TurnStarted):
            self._say(lines.started(event.turn))
        elif isinstance(event, HunkSettled):
            self._say_all(self._commands.hunks.settled(event.hunk_id))
        elif isinstance(event, ExternalHunksAdded):
            for hunk_id in event.hunk_ids:
                self._say_all(self._commands.hunks.settled(hunk_id))
        elif isinstance(event, TurnFinished):
            self._say_all(self._commands.hunks.left_over(event.turn.path))
            self._say(lines.ended(event.turn, len(self._session.hunks.undecided(event.turn.path))))
            self._prompt()
        elif isinstance(event, NoticePosted):
            self._notice(event.notice)
        elif isinstance(event, FileWritten):
            self._say(f"{shown(event.path)} is written.")
        elif isinstance(event, FileChangedOnDisk):
            self._say(self._session.files.change_message((event.path,)))
        elif event == StateChanged(SessionState.READY) and not self._session.turns:
            self._say(f"Ready: {self._session.server.model_name}.")
            self._prompt()

    def _notice(self, notice: Notice) -> None:
        self.failed |= notice.level is NoticeLevel.ERROR
        self._say(_LEVELS.get(notice.level, "") + notice.text)

    def _say(self, line: str) -> None:
        # Output below a waiting prompt starts on a new line.
        self._put("\n" * self._prompted + printable(line) + "\n")
        self._prompted = False

    def _say_all(self, said: Iterable[str]) -> None:
        for line in said:
            self._say(line)

    def _prompt(self) -> None:
        if self._terminal and not self._prompted:
            self._put("> ")
            self._prompted = True

    # lines and signals

    def _read_in_background(self) -> None:
        loop, inbox, may_read = asyncio.get_running_loop(), self._inbox, self._may_read

        def read() -> None:
            # A closed loop means that the session has ended; the line is not needed.
            with contextlib.suppress(RuntimeError):
                with contextlib.suppress(ValueError, OSError):  # It is closed, or gone.
                    for line in self._source:
                        may_read.clear()
                        loop.call_soon_threadsafe(inbox.put_nowait, line.rstrip("\r\n"))
                        may_read.wait()
                loop.call_soon_threadsafe(inbox.put_nowait, Ended())

        threading.Thread(target=read, name="lines", daemon=True).start()

    @contextlib.contextmanager
    def _signals(self) -> Generator[None]:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def leave(number: int) -> None:
            self.ended_by = number
            task.cancel()
            processes.end_soon(processes.CLOSE_S)  # a hook of git may not end

        def interrupt() -> None:
            if self._session.commit.committing:
                self._session.commit.stop_git()
                return
            if self._interrupts:  # a line is done, and takes long
                leave(signal.SIGINT)
            self._interrupts += 1
            self._inbox.put_nowait(Interrupted())

        try:
            loop.add_signal_handler(signal.SIGINT, interrupt)
            for number in processes.ending_signals():
                loop.add_signal_handler(number, leave, number)
        except (NotImplementedError, RuntimeError, ValueError):
            yield  # Not on this platform, or not in the main thread.
            return
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            for number in processes.ending_signals():
                loop.remove_signal_handler(number)


def run_plain(
    path: Path,
    settings: Settings,
    *,
    resume: Path | None = None,
    review: bool = False,
    snapshot: Snapshot | None = None,
    replay: Path | None = None,
) -> int:
    """Run the linear mode on a folder, or on a file of a project.

    Returns:
        The exit code: 1 if lines came from a pipe and one of them could not be done.

    Raises:
        UserError: The folder or the session cannot be used.
    """
    if not path.exists():
        raise UsageError(f"{path} is not a file or a folder; name one that exists.")
    root, file = opened_by(path)
    where = root.resolve() if snapshot is None else f"{snapshot.label}, read-only"
    put(f"Midstream on {where}. Say what should change; help lists the words.\n")
    processes.end_by_signals()
    try:
        running = _run(
            root, file, settings, resume=resume, review=review, snapshot=snapshot, replay=replay
        )
        return asyncio.run(running)
    except (UserError, OSError):
        raise
    except Exception as error:
        from midstream.defects import DefectError, keep_report, sentence

        kept = "your decisions are kept" if settings.journal else "accepted hunks are on disk"
        raise DefectError(sentence(error, keep_report(error), kept=kept)) from None


def put(text: str) -> None:
    """Print at once."""
    print(text, end="", flush=True)


async def _run(
    root: Path,
    file: str | None,
    settings: Settings,
    *,
    resume: Path | None,
    review: bool,
    snapshot: Snapshot | None,
    replay: Path | None,
) -> int:
    from midstream.pairing.session import PairingSession

    terminal = sys.stdin.isatty()
    typed: object = sys.stdin
    if isinstance(typed, io.TextIOWrapper):
        typed.reconfigure(errors="surrogateescape")  # for names of files that are not UTF-8
    # Plain mode does not know which hunks were on screen long enough to be read.
    settings = replace(settings, attention=False)
    session = await PairingSession.open(
        root,
        settings=settings,
        replay=replay,
        resume=resume,
        review=review,
        snapshot=snapshot,
        introduce=terminal,  # The output of a script is for a program.
    )
    command = resuming(root, snapshot) if settings.journal else ""
    loop = PlainLoop(session, sys.stdin, put, terminal=terminal, resuming=command)
    try:
        if file is not None:
            await loop.open(file)
        await session.review.begun()  # A script asks for its hunks at once.
        await loop.run()
    except asyncio.CancelledError:
        put("\n")
        return 128 + loop.ended_by
    finally:
        await session.close()
        if session.hangs:
            processes.end_soon()
    for line in summary(session, command, placed=snapshot is None):
        put(f"{wrapped(line)}\n")
    return int(loop.failed and not terminal)
