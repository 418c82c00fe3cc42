"""Check what works on this machine, and how to fix what does not.

Every line is the result of a test with the real components.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from midstream import processes
from midstream.commands.common import print_json, printable
from midstream.errors import UnavailableError, UserError
from midstream.resources import config_path
from midstream.scratch import scratch_folder
from midstream.settings import Settings, load_settings
from midstream.settings.declarations import BY_NAME
from midstream.workspace.paths import make_private, state_dir

_WATCH_SECONDS = 5.0
"""How long the watcher may take to start."""

KeyTroubles = Callable[[str, Iterable[tuple[str, str]]], list[str]]
"""Problems with the user's own keys under a preset, as sentences; known to the screen only."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one test.

    Attributes:
        name: What was tested.
        ok: Whether it works.
        detail: The result; if it does not work, what to do.
        needed: Whether Midstream is useless without it.
    """

    name: str
    ok: bool
    detail: str
    needed: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--json", action="store_true", help="one JSON object per finding")


def run(options: argparse.Namespace, key_troubles: KeyTroubles) -> int:
    """Test everything; 1 if something that is needed does not work."""
    usable, whole = True, True
    for finding in examine(Path.cwd(), key_troubles):
        usable = usable and (finding.ok or not finding.needed)
        whole = whole and finding.ok
        if options.json:
            print_json(asdict(finding))
        else:
            mark = "ok  " if finding.ok else "FAIL" if finding.needed else "note"
            print(printable(f"{mark}  {finding.name:<12} {finding.detail}"), flush=True)
    if not options.json:
        print(f"\n{_next_step(usable, whole)}")
    return 0 if usable else 1


def _next_step(usable: bool, whole: bool) -> str:
    if not usable:
        return "Next: fix what is marked FAIL, and run `midstream doctor` again."
    noted = "" if whole else " What is marked note works only partly."
    return (
        f"Next: `midstream demo` shows it on a small project, `midstream` opens this folder.{noted}"
    )


def examine(folder: Path, key_troubles: KeyTroubles) -> Iterator[CheckResult]:
    """Test one thing after the other."""
    version = sys.version.split()[0]
    yield CheckResult("python", sys.version_info >= (3, 11), f"{version} at {sys.executable}", True)
    settings = Settings()
    try:
        settings = load_settings(folder)
        where = config_path()
        yield CheckResult(
            "settings", True, f"{where}{'' if where.exists() else ' (not created yet)'}"
        )
    except UserError as error:
        yield CheckResult("settings", False, str(error), True)
    else:
        for _, reason in settings.broken_endpoints:
            yield CheckResult("settings", False, f"an endpoint is left out: {reason}")
        yield from _keys(settings, key_troubles)
    yield from _themes(settings)
    yield _terminal()
    yield _git()
    yield _state()
    yield _watch(folder)
    if settings.profile is not None:
        yield _endpoint(settings)
    else:
        yield from _model(settings)


def _keys(settings: Settings, key_troubles: KeyTroubles) -> Iterator[CheckResult]:
    troubles = key_troubles(settings.keys, settings.key_binds)
    for trouble in troubles:
        yield CheckResult("keys", False, trouble)
    if not troubles:
        own = len(settings.key_binds)
        counted = f", {own} action{'s' * (own != 1)} with your own keys" if own else ""
        yield CheckResult("keys", True, f"{settings.keys}{counted}")


def _themes(settings: Settings) -> Iterator[CheckResult]:
    """Problems with theme files and with the chosen theme."""
    from midstream.theme_files import theme_labels, theme_trouble

    labels, errors = theme_labels()
    wanted = settings.theme
    missing = theme_trouble(wanted, labels, errors) if wanted else ""
    troubles = [str(error) for error in errors.values()]
    if missing and missing not in troubles:
        troubles.append(missing)
    for trouble in troubles:
        yield CheckResult("theme", False, trouble)
    if not troubles:
        yield CheckResult("theme", True, wanted or BY_NAME["theme"].none)


def _terminal() -> CheckResult:
    size = shutil.get_terminal_size()
    term = os.environ.get("TERM", "")
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    what = f"{term or 'TERM is not set'}, {size.columns}x{size.lines}, {encoding or 'no encoding'}"
    if term in ("", "dumb"):
        return CheckResult(
            "terminal", False, f"{what}; the screen needs a terminal with cursor keys"
        )
    if encoding != "utf8":
        return CheckResult("terminal", False, f'{what}; set a UTF-8 locale, or "ascii = true"')
    if size.columns < 60 or size.lines < 16:
        return CheckResult("terminal", False, f"{what}; it should have at least 80x24")
    return CheckResult("terminal", True, what)


def _git() -> CheckResult:
    program = processes.find_program("git")
    if program is None:
        return CheckResult(
            "git",
            False,
            "not found; install it to see branches and to commit. Without it, checkpoints are "
            "copies",
        )
    done = processes.run([program, "--version"], timeout=10)
    said = (done.output.strip() or done.errors.strip()).decode("utf-8", "replace")
    return CheckResult("git", done.code == 0, said)


def _state() -> CheckResult:
    folder = state_dir()
    try:
        make_private(folder)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as error:
        detail = f"{folder}: {error.strerror}; set MIDSTREAM_STATE_DIR to a writable folder"
        return CheckResult("state", False, detail, True)
    return CheckResult("state", True, f"{folder} (journals, checkpoints, server logs)")


def _watch(folder: Path) -> CheckResult:
    from midstream.workspace.files import Workspace
    from midstream.workspace.watch import Watcher

    async def mode() -> str:
        watcher = Watcher(Workspace(folder))

        async def watch() -> None:
            async for _ in watcher.changes():
                pass

        watching = asyncio.create_task(watch())
        deadline = time.monotonic() + _WATCH_SECONDS
        while watcher.mode in ("off: not started", "off: starting"):
            await asyncio.wait({watching}, timeout=0.01)
            if watching.done() or time.monotonic() > deadline:
                break
        found = watcher.mode
        watching.cancel()
        await asyncio.wait({watching})
        return found

    try:
        found = asyncio.run(mode())
    except UserError as error:
        return CheckResult("watching", False, str(error))
    if found == "native":
        return CheckResult("watching", True, "changes by other programs are noticed at once")
    return CheckResult("watching", False, found)


def _endpoint(settings: Settings) -> CheckResult:
    from midstream.pairing.models.server import configured_endpoint

    async def reach() -> str:
        from midstream.responses.client import Client
        from midstream.responses.http import RefusedError, get

        endpoint = configured_endpoint(settings)
        assert endpoint is not None
        client = Client(endpoint)
        started = time.perf_counter()
        try:
            await client.connect()
            if not endpoint.tries_websocket:  # Nothing has been sent yet.
                with contextlib.suppress(RefusedError):  # That is an answer, too.
                    await asyncio.to_thread(get, endpoint, "/models", seconds=5.0, most_bytes=10**7)
        except OSError as error:
            raise UnavailableError(f"{endpoint.host} cannot be reached: {error}.") from error
        finally:
            await client.close()
        over = "" if client.transport == "websocket" else " over HTTP, without a WebSocket,"
        took = (time.perf_counter() - started) * 1000
        return f"{endpoint.url} answers{over} in {took:.0f} ms"

    try:
        return CheckResult("endpoint", True, asyncio.run(reach()), True)
    except UserError as error:
        return CheckResult("endpoint", False, str(error), True)


_SAMPLE = """\
def total(values):
    result = 0
    for v in values:
        result += v
    return result
"""


def _model(settings: Settings) -> Iterator[CheckResult]:
    """One real edit with the configured model, in a temporary folder."""
    from midstream.pairing.headless import Job, NothingToChangeError, run_job
    from midstream.pairing.request.question import Question

    sink = _Quiet()
    try:
        with scratch_folder() as folder:
            (folder / "sample.py").write_text(_SAMPLE, encoding="utf-8")
            job = Job(folder, Question("rename `result` to `amount` in total", "sample.py"))
            started = time.perf_counter()
            outcome = asyncio.run(run_job(job, sink, settings=settings))
            pace = f", {outcome.rate}" if outcome.rate else ""
            seconds = time.perf_counter() - started
            detail = f"{sink.model}: a sample edit in {seconds:.1f} s{pace}"
            yield CheckResult("model", True, detail, True)
    except NothingToChangeError:
        detail = f"{sink.model} runs, but did not carry out the sample edit; try another model"
        yield CheckResult("model", False, detail)
    except UserError as error:
        yield CheckResult("model", False, str(error), True)


class _Quiet:
    """A sink that only records the model's name."""

    model = ""

    def started(self, turn: object, base: object, model: str) -> None:
        self.model = model

    def waiting(self, sentence: str) -> None: ...

    def reading(self, progress: object) -> None: ...

    def disclosed(self, sentence: str) -> None: ...

    def text(self, text: str) -> None: ...

    def file(self, path: str, base: object) -> None: ...

    def hunk(self, hunk: object) -> None: ...

    def passed(self, line: int) -> None: ...
