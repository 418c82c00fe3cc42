"""The project's own check: its test command, run on request, and the places that failed.

The command is the user's setting, or one that the folder's files suggest. A folder may come from
anywhere, so what it suggests runs only after it was confirmed, once per folder and command. It runs
on the files on disk, which have the accepted hunks and what other programs wrote, or in a
throw-away copy of the folder that has the undecided hunks as well.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import os
import re
import shlex
import signal
import time
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from midstream import processes
from midstream.counting import counted
from midstream.edits.documents import UnencodableError
from midstream.edits.proposal import Overlay
from midstream.errors import UserError
from midstream.pairing.checks.findings import FailedPlace, FindingReader, plain
from midstream.pairing.checks.permissions import is_permitted, permit
from midstream.pairing.status import HunkDecided, SessionEvent, SessionStatus, Spawn
from midstream.resources import open_regular
from midstream.workspace.copies import make_copy
from midstream.workspace.paths import shown

if TYPE_CHECKING:
    from midstream.edits.hunk_store import HunkStore
    from midstream.pairing.files.open import OpenFiles
    from midstream.workspace.copies import FolderCopy
    from midstream.workspace.files import Workspace

Proposed = Callable[[], Mapping[str, bytes | None]]
"""What files would have if all hunks were accepted that wait; ``None``: no such file."""

MAX_LINES: Final = 5_000
"""Lines of output that are kept, the last ones."""
END_S: Final = 2.0
"""How long a stopped command may take before it is killed."""
QUIET_S: Final = 1.0
"""How long no hunk may be decided before the command runs by itself."""
AROUND: Final = 30
"""Lines of output that go to the model with a finding."""
MAX_REPORTED: Final = 50
"""Most places in one prompt."""
_MAX_READ_BYTES: Final = 1_000_000
"""Bytes of a file that may suggest a command."""
_MAX_TESTS: Final = 50
"""Tests that are looked into for the framework they use."""


@dataclass(frozen=True, slots=True)
class CheckCommand:
    """A command.

    Attributes:
        text: As it is typed in a shell; it runs without one.
        source: Where it comes from, for people.
        own: Whether the user's settings name it, so that it needs no confirmation.
    """

    text: str
    source: str
    own: bool = False


class CheckState(Enum):
    """How a command has ended, or that it has not."""

    NEVER = "not run yet"
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    STOPPED = "stopped"
    BROKEN = "did not start"


class UnconfirmedCommandError(UserError):
    """A command that the folder suggests was not confirmed yet."""

    code = "unconfirmed"

    def __init__(self, command: CheckCommand) -> None:
        source = re.sub(r"^the ", "The ", command.source)
        super().__init__(f"{source} suggests {shown(command.text)}", "confirm that it may run here")
        self.command = command


class NoCommandError(UserError):
    """The settings name no command, and the folder suggests none."""

    code = "no-check-command"

    def __init__(self) -> None:
        super().__init__(
            "No test command was found for this folder",
            'set check_command in the settings, such as check_command = "pytest -q"',
        )


class ProjectCheck:
    """Runs the command of one session.

    Attributes:
        state: How the last run has ended.
        command: What was run last, or is running.
        exit_code: Its exit code; None before it has ended, negative for a signal.
        output: The last lines of its output, without escape sequences.
        dropped: How many lines before these were dropped.
        seconds: How long the last run took, or has taken so far.
        waiting: How many hunks that wait for a decision the last run had; 0: it ran on the disk.
        configured: The command that the user's settings name, if they do.
        after_accepts: Whether it runs by itself whenever all hunks are decided.
    """

    def __init__(
        self,
        workspace: Workspace,
        hunks: HunkStore,
        status: SessionStatus,
        spawn: Spawn,
        proposed: Proposed,
        *,
        configured: str | None,
        after_accepts: bool,
    ) -> None:
        self.state = CheckState.NEVER
        self.command: CheckCommand | None = None
        self.exit_code: int | None = None
        self.output: deque[str] = deque(maxlen=MAX_LINES)
        self.dropped = self.waiting = 0
        self.columns = 0
        """Width of the terminal where the output is shown, for commands that fill lines; 0: not
        known."""
        self._workspace = workspace
        self._folder = workspace.root
        self._proposed = proposed
        self._hunks = hunks
        self._status = status
        self._spawn = spawn
        self.configured = configured
        self._reader = FindingReader(self._inside)
        self._process: Process | None = None
        self._stopped = False
        self._begun = self._ended = 0.0
        self._done = asyncio.Event()
        self._done.set()
        self._timer: asyncio.TimerHandle | None = None
        self.after_accepts = after_accepts
        status.subscribe(self._heard)

    @property
    def running(self) -> bool:
        return self.state is CheckState.RUNNING

    @property
    def findings(self) -> list[FailedPlace]:
        """Places that failed, in the order of the output."""
        return self._reader.findings

    @property
    def seconds(self) -> float:
        return (time.monotonic() if self.running else self._ended) - self._begun

    @property
    def tests_undecided(self) -> bool:
        """Whether the files on disk include undecided hunks, which another program has written."""
        return any(hunk.external for hunk in self._hunks.waiting())

    @property
    def on_top(self) -> str:
        """What the last run included besides the files on disk, for people; "" for nothing."""
        return f"with {counted(self.waiting, 'undecided hunk')}" if self.waiting else ""

    @property
    def title(self) -> str:
        """The command and what it runs on, for people; "" before the first run."""
        command = shown(self.command.text) if self.command else ""
        return " ".join(filter(None, (command, self.on_top)))

    @property
    def summary(self) -> str:
        """The state, in a few words."""
        found = counted(len(self.findings), "place") if self.findings else ""
        if self.state is CheckState.FAILED:
            return (
                "failed" + (f" in {found}" if found else "") + f" with exit code {self.exit_code}"
            )
        if self.running:
            return f"running for {self.seconds:.0f} s" + (f", {found} so far" if found else "")
        if self.state is CheckState.PASSED:
            return f"passed in {self.seconds:.1f} s"
        return self.state.value

    async def suggested(self) -> CheckCommand | None:
        """The command that would run: the configured one, else what the folder suggests."""
        if self.configured:
            return CheckCommand(self.configured, "your settings", own=True)
        return await asyncio.to_thread(suggested_command, self._workspace.root)

    async def start_command(self, *, confirmed: bool = False, proposed: bool = False) -> None:
        """Run the command; returns when it is running, or its copy is being made.

        Args:
            confirmed: The user has just confirmed it for this folder.
            proposed: Whether to run it in a copy of the folder that has the hunks that wait for a
                decision. What is wrong with the copy is told by a notice.

        Raises:
            UnconfirmedCommandError: It has to be confirmed first.
            NoCommandError: There is no command.
            UserError: It runs already, no hunk would be added, or it cannot be started.
        """
        if self.running:
            raise UserError(
                f"{shown(self.command.text if self.command else '')} is running",
                "wait until it ends, or stop it",
            )
        command = await self.suggested()
        if command is None:
            raise NoCommandError
        changes = self._proposed() if proposed else None
        if changes is not None and not changes:
            raise UserError(
                "The files on disk include the undecided hunks"
                if self.tests_undecided
                else "No hunk waits for a decision",
                "run the tests on the files as they are",
            )
        if not command.own:
            if confirmed:
                await asyncio.to_thread(permit, self._workspace.root, command.text)
            elif not await asyncio.to_thread(is_permitted, self._workspace.root, command.text):
                raise UnconfirmedCommandError(command)
        await self._start(command, changes)

    async def stop_command(self) -> None:
        """End the command and everything that it has started in its process group."""
        process = self._process
        if not self.running:
            return
        self._stopped = True
        if process is None:  # Its copy is being made.
            return
        processes.signal_group(process.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(END_S):
                await process.wait()
        except TimeoutError:
            processes.signal_group(process.pid, processes.SIGKILL)

    async def finished(self) -> None:
        """Wait until nothing runs."""
        await self._done.wait()

    def around(self, finding: FailedPlace) -> list[str]:
        """The lines of output up to where a finding was known, at most ``AROUND``."""
        stop = finding.seen - self.dropped
        return list(self.output)[max(0, stop - AROUND) : max(0, stop)]

    def failure(self) -> str:
        """What failed, for a model: the places and the end of the output; "" if nothing has."""
        if self.state is not CheckState.FAILED or self.command is None:
            return ""
        places = [f"{each.place}: {each.message}" for each in self.findings[:MAX_REPORTED]]
        end = list(self.output)[-2 * AROUND :]
        command = " ".join(filter(None, (f"`{self.command.text}`", self.on_top)))
        head = f"{command} {self.summary}"
        return "".join(f"{line}\n" for line in (head, *places, "", "Its output ends with:", *end))

    def instruction(self, finding: FailedPlace, *, with_output: bool) -> str:
        """The instruction that asks a model to fix a finding.

        Args:
            finding: One of ``findings``.
            with_output: Whether to quote the output; models that only edit cannot use it.
        """
        test = f" in {finding.test}" if finding.test and with_output else ""
        asked = f"fix this{test}: {finding.message}"
        if not with_output or self.command is None:
            return asked
        if "@" in finding.message:  # It is quoted below, where it names no file to send.
            asked = f"fix this{test}"
        quoted = "\n".join(self.around(finding))
        longest = max((len(run) for run in re.findall("`+", quoted)), default=0)
        fence = "`" * max(3, longest + 1)  # What is printed does not end the quotation.
        return f"{asked}\n\n`{self.command.text}` says:\n{fence}\n{quoted}\n{fence}"

    # running

    async def _start(
        self, command: CheckCommand, changes: Mapping[str, bytes | None] | None
    ) -> None:
        self.command, self.exit_code, self._stopped = command, None, False
        self.output.clear()
        self.dropped = self.waiting = 0
        self._folder = self._workspace.root
        self._reader = FindingReader(self._inside)
        # Set before anything is awaited: a second key must not start a second run.
        self.state, self._begun = CheckState.RUNNING, time.monotonic()
        self._done.clear()
        if changes is not None:
            self.waiting = sum(hunk.path in changes for hunk in self._hunks.undecided())
            self._spawn(self._run_in_copy(command, changes))
            self._status.touch()
            return
        try:
            process = await self._launch(command)
        except BaseException as error:
            self._end(CheckState.BROKEN if isinstance(error, UserError) else CheckState.STOPPED)
            raise
        self._spawn(self._run(process))
        self._status.touch()

    async def _run(self, process: Process) -> None:
        state = CheckState.STOPPED
        try:
            state = await self._follow(process)
        finally:
            self._end(state)
        self._tell()

    async def _run_in_copy(
        self, command: CheckCommand, changes: Mapping[str, bytes | None]
    ) -> None:
        copy, state = None, CheckState.STOPPED
        try:
            copy = await self._copied(changes)
            if not self._stopped:
                self._folder = copy.root
                state = await self._follow(await self._launch(command, copy.environment()))
        except UserError as error:
            if not self._stopped:
                state = CheckState.BROKEN
                self._status.warn(str(error))
        finally:
            if copy is not None:
                await asyncio.to_thread(copy.remove)
            self._end(state)
        self._tell()

    async def _copied(self, changes: Mapping[str, bytes | None]) -> FolderCopy:
        """The copy; if it is stopped or cancelled meanwhile, none is left."""
        root, unwanted = self._workspace.root, lambda: self._stopped
        making = asyncio.create_task(asyncio.to_thread(make_copy, root, changes, unwanted))
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            self._stopped = True
            await asyncio.wait({making})
            if making.exception() is None:
                await asyncio.to_thread(making.result().remove)
            raise

    async def _launch(
        self, command: CheckCommand, environ: Mapping[str, str] = os.environ
    ) -> Process:
        """Start the command in the folder of this run."""
        # Colours are for terminals, and output is wanted as it comes.
        environment = {**environ, "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
        if self.columns:
            environment["COLUMNS"] = str(self.columns)
        try:
            self._process = await processes.start(
                *shlex.split(command.text),
                cwd=self._folder,
                env=environment,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise UserError(
                f"{shown(command.text)} cannot be started ({why})",
                "set another one as check_command in the settings",
            ) from error
        return self._process

    async def _follow(self, process: Process) -> CheckState:
        """Read the output to its end; returns how it ended."""
        pipe_open = True
        try:
            pipe_open = await self._read_all(process)
        finally:
            # Processes that it left running belong to it.
            if pipe_open:
                processes.signal_group(process.pid, processes.SIGKILL)
            await processes.end(process, kill=pipe_open)
        self.exit_code = process.returncode
        if self._stopped:
            return CheckState.STOPPED
        return CheckState.PASSED if self.exit_code == 0 else CheckState.FAILED

    async def _read_all(self, process: Process) -> bool:
        """Take the output; returns whether something holds it open beyond the command's end."""
        assert process.stdout is not None
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        rest, data, pipe_open = "", b" ", False
        while data:
            try:
                async with asyncio.timeout(processes.HELD_S):
                    data = await process.stdout.read(65_536)
            except TimeoutError:
                pipe_open = process.returncode is not None
                if pipe_open:
                    break
                continue
            *lines, rest = (rest + decode(data)).split("\n")
            for line in lines:
                self._take(line)
            if len(rest) > 4_000:
                self._take(rest)
                rest = ""
            self._status.touch()
        if rest:
            self._take(rest)
        self._reader.finish()
        return pipe_open

    def _take(self, line: str) -> None:
        if len(self.output) == MAX_LINES:
            self.dropped += 1
        # A progress line is overwritten in place; its last state counts.
        line = line.rstrip("\r").rpartition("\r")[2]
        line = line.replace(str(self._folder), str(self._workspace.root))
        self.output.append(plain(line))
        self._reader.read(line)

    def _end(self, state: CheckState) -> None:
        self.state, self._ended, self._process = state, time.monotonic(), None
        self._done.set()
        self._status.touch()

    def _tell(self) -> None:
        if self.state not in (CheckState.PASSED, CheckState.FAILED):
            return
        words = f"{self.title}: {self.summary}"
        if self.state is CheckState.FAILED:
            self._status.warn(f"{words}; its output says why.", "checks")
        else:
            self._status.inform(f"{words}.")

    def _inside(self, path: str) -> str | None:
        """The name of a file in the folder, as ``Workspace.relative`` spells it."""
        try:
            name = self._workspace.relative(path)
            return name if (self._folder / name).is_file() else None
        except (UserError, OSError, ValueError):
            return None

    # by itself

    def _heard(self, event: SessionEvent) -> None:
        """Run it once no hunk has been decided for a moment."""
        if self.after_accepts and isinstance(event, HunkDecided):
            self.cancel()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(QUIET_S, lambda: self._spawn(self._run_by_itself()))

    def close(self) -> None:
        """Kill the command if it is running, and start no further automatic runs."""
        self.cancel()
        if self._process is not None:
            processes.signal_group(self._process.pid, processes.SIGKILL)

    def cancel(self) -> None:
        """Do not run by itself for the decisions so far."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _run_by_itself(self) -> None:
        if self.running or self._hunks.undecided():
            return
        try:
            await self.start_command()
        except UnconfirmedCommandError as error:
            self._status.inform(f"{error.problem}, which was not confirmed yet.", "checks")
        except UserError as error:
            self._status.warn(str(error))


def proposed_bytes(files: OpenFiles) -> dict[str, bytes | None]:
    """What files would have if all hunks were accepted that wait; ``None``: no such file.

    Only of files with such hunks. Hunks that stream, conflict or are held back are left out, as
    are files whose encoding lacks a character of theirs.
    """
    found: dict[str, bytes | None] = {}
    for path, proposal in files.items():
        overlay = Overlay(proposal)
        if not overlay.undecided:
            continue
        if overlay.source.missing:
            found[path] = None
        else:
            with contextlib.suppress(UnencodableError):
                found[path] = overlay.source.to_bytes()
    return found


def suggested_command(root: Path) -> CheckCommand | None:
    """The command that a folder's files suggest (blocking); None if they suggest none."""
    for suggest in (_pytest, _npm, _cargo, _go, _make):
        if (command := suggest(root)) is not None:
            return command
    return None


def _read(path: Path) -> str:
    """The beginning of a file; "" if there is no such file."""
    try:
        with open_regular(path) as file:
            return file.read(_MAX_READ_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _pytest(root: Path) -> CheckCommand | None:
    marks = (
        ("pyproject.toml", r"\[tool\.pytest|\bpytest\b"),
        ("pytest.ini", r""),
        ("tox.ini", r"\[pytest\]"),
        ("setup.cfg", r"\[tool:pytest\]"),
    )
    found = [
        name
        for name, mark in marks
        if (root / name).is_file() and re.search(mark, _read(root / name))
    ]
    tests = {"tests/": root / "tests", "the folder's test_*.py": root}
    found += [name for name, folder in tests.items() if any(folder.glob("test_*.py"))]
    if not found:
        return None
    source = found[0]
    runs, python, pytest = "", "python3", "pytest"
    if (root / ".venv" / "bin" / "python").exists():
        python, pytest = ".venv/bin/python", ".venv/bin/python -m pytest"
    elif (root / "uv.lock").is_file():
        runs, python = "uv run ", "python"
    if source in tests and _only_unittest(tests[source]):
        package = source != "tests/" or (root / "tests" / "__init__.py").exists()
        where = "" if package else " discover -s tests"
        return CheckCommand(f"{runs}{python} -m unittest{where}", source)
    return CheckCommand(f"{runs}{pytest} -q", source)


def _only_unittest(folder: Path) -> bool:
    """Whether the first tests of a folder are those of unittest, and none needs pytest."""
    texts = [_read(path) for path in sorted(folder.glob("test_*.py"))[:_MAX_TESTS]]
    return (
        not (folder / "conftest.py").exists()
        and any(re.search(r"^\s*(?:import|from) unittest\b", text, re.M) for text in texts)
        and not any(re.search(r"\bpytest\b|^(?:async )?def test", text, re.M) for text in texts)
    )


_LOCKS: Final = (
    ("pnpm-lock.yaml", "pnpm test"),
    ("yarn.lock", "yarn test"),
    ("bun.lock", "bun run test"),
    ("bun.lockb", "bun run test"),
)


def _npm(root: Path) -> CheckCommand | None:
    try:
        script = json.loads(_read(root / "package.json"))["scripts"]["test"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    # What npm init writes.
    if not isinstance(script, str) or "no test specified" in script:
        return None
    text = next((text for name, text in _LOCKS if (root / name).is_file()), "npm test")
    return CheckCommand(text, "package.json")


def _cargo(root: Path) -> CheckCommand | None:
    there = (root / "Cargo.toml").is_file()
    return CheckCommand("cargo test", "Cargo.toml") if there else None


def _go(root: Path) -> CheckCommand | None:
    there = (root / "go.mod").is_file()
    return CheckCommand("go test ./...", "go.mod") if there else None


def _make(root: Path) -> CheckCommand | None:
    for name in ("GNUmakefile", "makefile", "Makefile"):
        if found := re.search(r"^(test|check)\s*:(?!=)", _read(root / name), re.MULTILINE):
            return CheckCommand(f"make {found[1]}", name)
    return None
