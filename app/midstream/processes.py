"""Processes: how each one is started, what it uses, and how it ends.

This is the only place that starts programs, so that none of them comes from the folder that is
open:

- A program is named by its absolute path.  Relative entries of ``PATH`` are left out, since the
  folder that is open is often the working folder.
- Python of our own gets ``-P``, without which ``python -m`` imports from the working folder first,
  and no entry of ``PYTHONPATH`` that leads there.
- Nothing waits for a pipe that a process has left to others: a daemon may hold it for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

HELD_S: Final = 0.5
"""How long a pipe may stay open and silent after the end of the process that it was given to."""
CLOSE_S: Final = 8.0
"""How long what a program has begun takes to end at most; a stubborn agent needs half of that."""
END_S: Final = 1.0
"""How long a process that is ended may tidy up."""
LEAVE_S: Final = 2.0
"""How long a program that ends waits for threads that hang."""
SIGKILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)

_blocking: Final[set[int]] = set()
"""Processes that threads wait for."""
_borrowers: Final[set[subprocess.Popen[bytes]]] = set()
"""Programs of the user's that have the terminal."""
_MAX_OUTPUT: Final = 256 << 20
"""Bytes of standard output; a program that writes more is ended."""
_MAX_ERRORS: Final = 1 << 20
"""Bytes of standard error that are kept, the last ones."""
_LOOK_S: Final = 0.5
"""How often a process is looked at that may be stuck."""
_M_ARENA_MAX: Final = -8
"""``M_ARENA_MAX`` of glibc's ``malloc.h``."""
_SWITCH_S: Final = 0.0005
"""How long a thread keeps the interpreter from an event loop that waits for it.

With Python's 5 ms, 500 changed files of a review were open after 11.7 to 17.7 s while keys were
typed, with this after 8.9 to 11.8 s (three runs in turns).
"""


def resident_bytes(pid: int | str = "self") -> int:
    """Resident memory of a process; 0 where the system does not report it (Linux reports it)."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def return_freed() -> None:
    """Return memory to the system that the C library keeps for later (glibc)."""
    _call_c("malloc_trim", 0)


def share_heap() -> None:
    """Have the threads that begin from now on allocate from one heap (glibc).

    By default each gets one of its own, up to eight for each core, and gives little of it back.
    """
    _call_c("mallopt", _M_ARENA_MAX, 1)


def _call_c(function: str, *arguments: int) -> None:
    """Call a function of the C library, where it has it (Linux)."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            getattr(ctypes.CDLL(None), function)(*arguments)


def favour_event_loop() -> None:
    """Have threads give the interpreter back to an event loop soon."""
    sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_S))


def runs(pid: int) -> bool:
    """Whether a process runs, ours or another user's."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


# Which program


def find_program(name: str, folder: Path | None = None) -> str | None:
    """The absolute path of a program; ``None`` if there is none.

    Args:
        name: Its name, looked up on the ``PATH`` without the entries that are relative; or a path,
            which the user has named.
        folder: What a path is relative to; the working folder by default.
    """
    if os.sep in name:
        return shutil.which(os.path.abspath(Path(folder or os.curdir, name)))  # noqa: PTH100
    return shutil.which(name, path=_safe_path())


def _safe_path() -> str:
    """The ``PATH`` without the entries that are relative."""
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(filter(os.path.isabs, places))


def program(name: str, folder: Path | None = None) -> str:
    """As ``find_program``.

    Raises:
        FileNotFoundError: There is none.
    """
    found = find_program(name, folder)
    if found is None:
        raise FileNotFoundError(2, os.strerror(2), name)
    return found


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of our own; ``python_environment`` goes with it."""
    return [sys.executable, "-P", "-m", module, *arguments]


def python_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment in which Python of our own imports nothing from the working folder.

    Args:
        environ: The environment to start from; this process's by default.
    """
    environment = dict(os.environ if environ is None else environ)
    if "PYTHONPATH" in environment:
        environment["PYTHONPATH"] = _safe_python_path(environment["PYTHONPATH"])
    return environment


def shell_command(module: str, *arguments: str) -> str:
    """The command of ``python`` for a shell, for those who start it in another folder."""
    command = shlex.join(python(module, *arguments))
    if "PYTHONPATH" not in os.environ:
        return command
    return f"PYTHONPATH={shlex.quote(_safe_python_path(os.environ['PYTHONPATH']))} {command}"


def _safe_python_path(text: str) -> str:
    """The entries of ``PYTHONPATH`` that do not lead to the working folder; our own one stays."""
    here = os.path.realpath(os.curdir)
    ours = os.path.realpath(Path(__file__).parents[1])
    kept: list[str] = []
    for entry in text.split(os.pathsep):
        place = os.path.realpath(entry)
        inside = place == here or place.startswith(f"{here.rstrip(os.sep)}{os.sep}")
        if place == ours or (Path(entry).is_absolute() and not inside):
            kept.append(place if place == ours else entry)
    return os.pathsep.join(kept)


# Blocking


@dataclass(frozen=True, slots=True)
class EndedProcess:
    """A process that has ended.

    Attributes:
        code: Its exit code, negative for a signal.
        output: Its output, as far as it was read.
        errors: What it wrote to its error stream, at most its last part.
        cut: Whether it was ended because it wrote more than it may.
    """

    code: int
    output: bytes
    errors: bytes
    cut: bool = False


def run(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float,
    stuck_after: float | None = None,
    limit: int = _MAX_OUTPUT,
    stop: threading.Event | None = None,
) -> EndedProcess:
    """Run a program in a session of its own and collect its output (blocking).

    It cannot ask on the terminal.  What it leaves running is not waited for.  One that is ended may
    tidy up first, for ``END_S``: git removes its locks.

    Args:
        command: The program, as ``program`` finds it, and its arguments.
        cwd: Its working folder; this process's by default.
        environ: Its whole environment; this process's by default.
        stdin: Its input.
        timeout: Seconds after which it is ended, with all that it has started.
        stuck_after: Seconds of uninterrupted sleep after which it is ended: a process that waits
            for a writer of a pipe, for example; Linux only.
        limit: Bytes of output after which it is ended.
        stop: Ends it once it is set.

    Raises:
        OSError: It cannot be started.
        UnwantedError: ``stop`` was set before it had ended.
        StuckError: It was stuck.
        TimeoutError: It took longer.
    """
    process = subprocess.Popen(
        [program(command[0], cwd), *command[1:]],
        cwd=cwd,
        env=None if environ is None else dict(environ),
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    _blocking.add(process.pid)
    with _closed(process.stdin), _closed(process.stdout), _closed(process.stderr):
        try:
            watch = _Watchdog(process.pid, stuck_after, stop)
            output, errors, cut = _talk(process, stdin, time.monotonic() + timeout, limit, watch)
            if cut:
                signal_group(process.pid, SIGKILL)
            return EndedProcess(process.wait(), output, errors, cut)
        finally:
            if process.poll() is None:
                signal_group(process.pid, signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(END_S)
                signal_group(process.pid, SIGKILL)
                process.wait()
            _blocking.discard(process.pid)


class UnwantedError(Exception):
    """A process was ended because it was no longer wanted."""


class StuckError(TimeoutError):
    """A process sleeps and is not woken."""


class _Watchdog:
    """Tells whether a process still works, and whether it is still wanted."""

    def __init__(self, pid: int, stuck_after: float | None, stop: threading.Event | None) -> None:
        self._tasks = Path(f"/proc/{pid}/task")
        self._stuck_after = stuck_after
        self._stop = stop
        self._seen: list[str] | None = None
        self._since = self._looked = time.monotonic()

    def look(self, now: float) -> None:
        """Raise UnwantedError if it is not wanted, StuckError if it has slept for too long."""
        if self._stop is not None and self._stop.is_set():
            raise UnwantedError
        if self._stuck_after is None or now - self._looked < _LOOK_S:
            return
        self._looked = now
        if (state := self._state()) is None or state != self._seen:
            self._seen, self._since = state, now
        elif now - self._since > self._stuck_after:
            raise StuckError

    def _state(self) -> list[str] | None:
        """How often each thread went to sleep; ``None`` if one works or waits for a device."""
        counts: list[str] = []
        with contextlib.suppress(OSError):
            for task in sorted(self._tasks.iterdir()):
                status = (task / "status").read_text("utf-8", "replace")
                if "\nState:\tS" not in status:
                    return None
                counts += [one for one in status.split("\n") if "ctxt_switches" in one]
        return counts or None


@contextlib.contextmanager
def _closed(pipe: IO[bytes] | None) -> Generator[None]:
    try:
        yield
    finally:
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _talk(
    process: subprocess.Popen[bytes], stdin: bytes, deadline: float, limit: int, watch: _Watchdog
) -> tuple[bytes, bytes, bool]:
    """Write the input and read both outputs, until they end or their writers are gone."""
    assert process.stdout is not None
    assert process.stderr is not None
    output, errors = bytearray(), bytearray()
    rest = memoryview(stdin)
    ended = heard = 0.0
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ, output)
        waiting.register(process.stderr, selectors.EVENT_READ, errors)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            waiting.register(process.stdin, selectors.EVENT_WRITE)
        while waiting.get_map():
            now = time.monotonic()
            if now > deadline:
                raise TimeoutError
            watch.look(now)
            if process.poll() is not None:
                ended = ended or now
                if now - max(ended, heard) > HELD_S or now - ended > 4 * HELD_S:
                    break  # Others hold the pipes.
            for key, _ in waiting.select(min(0.05, max(0.0, deadline - now))):
                if key.data is None:
                    try:
                        rest = rest[os.write(key.fd, rest[: 1 << 16]) :]
                    except BlockingIOError:
                        continue
                    except BrokenPipeError:
                        rest = rest[len(rest) :]
                    if not rest:
                        waiting.unregister(key.fileobj)
                        process.stdin.close()  # pyright: ignore[reportOptionalMemberAccess]
                    continue
                data = os.read(key.fd, 1 << 16)
                if not data:
                    waiting.unregister(key.fileobj)
                    continue
                key.data.extend(data)
                heard = now
                if len(output) > limit:
                    return bytes(output[:limit]), bytes(errors), True
                del errors[:-_MAX_ERRORS]
    if process.poll() is None:  # It has closed its outputs and goes on.
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
    return bytes(output), bytes(errors), False


class AskedProcess:
    """A module of our own that answers each line it is asked with a line (blocking).

    One thread at a time may ask.  It has a session of its own, so that the terminal's keys do not
    end it.  It ends with this object, and otherwise with its input.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        """Start it, and wait until it says in a line that it is ready.

        Args:
            module: The module.
            arguments: Its arguments.

        Raises:
            OSError: It cannot be started.
        """
        self._process = subprocess.Popen(
            python(module, *arguments),
            env=python_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.end: Final = weakref.finalize(self, _end_asked, self._process)
        assert self._process.stdout is not None
        self._process.stdout.readline()

    @property
    def ended(self) -> bool:
        """Whether it has ended, by itself or by ``end``."""
        return self._process.poll() is not None

    def ask(self, question: bytes, timeout: float) -> bytes:
        """Return the answer to a question, both without the end of the line.

        Args:
            question: The question.
            timeout: Seconds after which the process is ended.

        Raises:
            TimeoutError: The answer took longer.
            EOFError: It ended without an answer.
        """
        process, late, answer = self._process, threading.Event(), b""
        assert process.stdin is not None
        assert process.stdout is not None

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(timeout, stop)  # A pipe of Windows cannot be waited for.
        timer.daemon = True
        timer.start()
        try:
            with contextlib.suppress(OSError):
                process.stdin.write(question + b"\n")
                process.stdin.flush()
                answer = process.stdout.readline()
        finally:
            timer.cancel()
            timer.join()
            if late.is_set() or not answer.endswith(b"\n"):
                self.end()
        if late.is_set():
            raise TimeoutError
        if not answer.endswith(b"\n"):
            raise EOFError
        return answer[:-1]


def _end_asked(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
    process.wait()


def hand_over(command: Sequence[str]) -> int:
    """Run a program of the user's, such as an editor, that gets the terminal (blocking).

    Returns:
        Its exit code.

    Raises:
        OSError: It cannot be started.
    """
    with subprocess.Popen([program(command[0]), *command[1:]]) as process:
        _borrowers.add(process)
        try:
            return process.wait()
        except BaseException:
            process.kill()
            raise
        finally:
            _borrowers.discard(process)


def take_terminal_back() -> None:
    """End the programs that have the terminal; one that stays is killed after ``END_S``."""
    for process in tuple(_borrowers):
        process.terminate()
        timer = threading.Timer(END_S, process.kill)
        timer.daemon = True
        timer.start()


def ending_signals() -> tuple[int, ...]:
    """The signals that end a program: SIGTERM, and SIGHUP, which tells that its terminal is gone.

    A program that was started to go on without its terminal, as by ``nohup``, ignores the latter.
    """
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is None or signal.getsignal(hangup) is signal.SIG_IGN:
        return (signal.SIGTERM,)
    return (signal.SIGTERM, hangup)


def end_by_signals() -> None:
    """Have ``ending_signals`` end this program as ``sys.exit`` does.

    Also as the first process of a container, to which the kernel passes only signals that
    something handles.
    """

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    for number in ending_signals():
        signal.signal(number, end)


def end_soon(after_s: float = 0.0) -> None:
    """End this process some time after it should have ended, as a thread that hangs keeps it.

    What such a thread waits for is ended as well.
    """

    def leave() -> None:
        for pid in tuple(_blocking):
            signal_group(pid, signal.SIGTERM)
        os._exit(1)

    timer = threading.Timer(after_s + LEAVE_S, leave)
    timer.daemon = True
    timer.start()


def signal_group(pid: int, number: int) -> None:
    """Send a signal to a process that leads a session, and to all that it has started there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


# In an event loop


async def uninterrupted(work: Callable[[], Awaitable[object]]) -> None:
    """Await something to its end; a cancellation begins it anew, and takes effect after that.

    For what must be closed: a process whose end is not seen, and pipes that are not read to their
    end, would outlive the event loop.  One cancellation may follow another, as it does where an
    app cancels its workers and the end of the event loop cancels every task.
    """
    cancelled: asyncio.CancelledError | None = None
    while True:
        try:
            await work()
            break
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def start(*command: str, **options: Any) -> asyncio.subprocess.Process:
    """Start a process as ``asyncio.create_subprocess_exec`` does; a cancellation ends it first.

    asyncio leaves its pipes open where the start is cancelled.  What the process has started in a
    session of its own ends with it.

    Args:
        command: The program, as ``program`` finds it, and its arguments.
        options: Those of ``asyncio.create_subprocess_exec``.

    Raises:
        OSError: It cannot be started.
    """
    found = program(command[0], options.get("cwd"))
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(found, *command[1:], **options))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:

        async def ended() -> None:
            if not starting.cancelled():
                with contextlib.suppress(OSError):
                    process = await asyncio.shield(starting)
                    if options.get("start_new_session"):
                        signal_group(process.pid, SIGKILL)
                    await end(process)

        await uninterrupted(ended)
        raise


async def start_python(
    module: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> asyncio.subprocess.Process:
    """Start a module of our own as ``start`` does.

    Args:
        module: The module.
        arguments: Its arguments.
        env: Its environment, which is made safe; this process's by default.
        options: Further ones of ``asyncio.create_subprocess_exec``.

    Raises:
        OSError: It cannot be started.
    """
    return await start(*python(module, *arguments), env=python_environment(env), **options)


async def browse(address: str) -> None:
    """Have the user's browser show a page.

    The browser is no program of the working folder either, and one for terminals gets none.

    Raises:
        OSError: Python cannot be started.
    """
    nowhere = asyncio.subprocess.DEVNULL
    process = await start_python(
        "webbrowser",
        address,
        env={**os.environ, "PATH": _safe_path()},
        stdin=nowhere,
        stdout=nowhere,
        stderr=nowhere,
        start_new_session=True,
    )
    await process.wait()


async def start_answering(
    module: str, *, limit: int, **options: Any
) -> tuple[asyncio.subprocess.Process, asyncio.StreamWriter, asyncio.StreamReader]:
    """Start a module of our own that is asked on its input and answers on its output.

    Args:
        module: The module.
        limit: Bytes of a line of its answer, at most.
        options: Further ones of ``asyncio.create_subprocess_exec``.

    Returns:
        The process, its input and its output.

    Raises:
        OSError: It cannot be started.
    """
    process = await start_python(
        module,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=limit,
        **options,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    return process, process.stdin, process.stdout


async def collect(
    *command: str,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    limit: int = _MAX_OUTPUT,
) -> EndedProcess:
    """As ``run``, without a time limit; a cancellation ends it with all that it has started.

    Raises:
        OSError: It cannot be started.
    """
    process = await start(
        *command,
        cwd=cwd,
        env=None if environ is None else dict(environ),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    output, errors = bytearray(), bytearray()
    whole = False

    async def read_output(stream: asyncio.StreamReader) -> None:
        while len(output) <= limit and (data := await stream.read(1 << 16)):
            output.extend(data)

    async def read_errors(stream: asyncio.StreamReader) -> None:
        while data := await stream.read(1 << 16):
            errors.extend(data)
            del errors[:-_MAX_ERRORS]

    assert process.stdout is not None
    assert process.stderr is not None
    reading = asyncio.gather(read_output(process.stdout), read_errors(process.stderr))
    try:
        while not reading.done() and len(output) <= limit:
            over = process.returncode is not None
            await asyncio.wait({reading}, timeout=HELD_S)
            if over:
                break
        whole = len(output) <= limit
    finally:
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading
        if not whole:
            signal_group(process.pid, SIGKILL)
        await end(process, kill=not whole)
    return EndedProcess(process.returncode or 0, bytes(output[:limit]), bytes(errors), not whole)


async def end(process: asyncio.subprocess.Process, *, kill: bool = True) -> None:
    """Wait for the end of a process, and close its pipes, also those that others hold.

    A cancellation waits for this (see ``uninterrupted``).

    Args:
        process: The process; it may have ended.
        kill: Whether to end it; otherwise it ends by itself, at the latest when its input does.
    """
    if kill and process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    if process.stdin is not None:
        process.stdin.close()
    await uninterrupted(lambda: _ended(process))


async def _ended(process: asyncio.subprocess.Process) -> None:
    # wait() leaves the pipes open, and before Python 3.13 it waits for their end.
    talk = asyncio.ensure_future(process.communicate())
    try:
        while not talk.done():
            over = process.returncode is not None
            await asyncio.wait({talk}, timeout=HELD_S)
            if over and not talk.done():
                # asyncio has no other way to let go of a pipe.
                process._transport.close()  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue]
                await asyncio.wait({talk})
    finally:
        talk.cancel()
        await asyncio.wait({talk})
