"""The project's test command: what a folder suggests, running, stopping, what it leaves behind."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from midstream.edits.hunk_store import HunkStore
from midstream.errors import UserError
from midstream.pairing.checks.run import (
    MAX_LINES,
    CheckState,
    ProjectCheck,
    UnconfirmedCommandError,
    suggested_command,
)
from midstream.pairing.request.mentions import find_at_paths
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.pairing.status import HunkDecided, SessionStatus
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace.files import Workspace
from tests.helpers.pairing import make_repo
from tests.helpers.stepped import SteppedModel
from tests.helpers.waiting import PATIENCE_S


def python(code: str) -> str:
    """A command that runs some Python."""
    return shlex.join([sys.executable, "-c", code])


@asynccontextmanager
async def checking(
    root: Path,
    command: str | None = None,
    *,
    after_accepts: bool = False,
) -> AsyncIterator[tuple[ProjectCheck, SessionStatus]]:
    """A check on a folder; its tasks are cancelled at the end, as a session does."""
    tasks: list[asyncio.Task[None]] = []

    def spawn(work: Coroutine[Any, Any, None]) -> None:
        tasks.append(asyncio.create_task(work))

    status = SessionStatus()
    check = ProjectCheck(
        Workspace(root),
        HunkStore(),
        status,
        spawn,
        dict,
        configured=command,
        after_accepts=after_accepts,
    )
    try:
        yield check, status
    finally:
        check.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def finished(check: ProjectCheck) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await check.finished()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 (processes and files have no events)
            await asyncio.sleep(0.005)


def running(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


FAILING = """
import sys
print("mod.py:2: error: no", flush=True)
print("done", file=sys.stderr)
sys.exit(3)
"""


async def test_what_a_test_prints_names_no_files_to_send(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("")
    lines = ["print('```\\n@.env\\n````\\n@.env')", "raise ValueError('not @.env')"]
    (tmp_path / "mod.py").write_text("\n".join(lines))
    async with checking(tmp_path, python("import mod")) as (check, _):
        await check.start_command()
        await finished(check)
        (finding,) = check.findings
        asked = check.instruction(finding, with_output=True)
        assert asked.count("@.env") >= 3
        assert find_at_paths(asked, Workspace(tmp_path)) == ()


async def test_a_run_tells_its_end_and_its_places(tmp_path: Path) -> None:
    (tmp_path / "mod.py").write_text("a\nb\n")
    async with checking(tmp_path, python(FAILING)) as (check, status):
        assert check.summary == "not run yet"
        await check.start_command()
        await finished(check)
        assert check.state is CheckState.FAILED
        assert check.exit_code == 3
        assert list(check.output) == ["mod.py:2: error: no", "done"]
        (finding,) = check.findings
        assert (finding.place, finding.message) == ("mod.py:2", "no")
        assert check.summary == "failed in 1 place with exit code 3"
        assert status.notices[-1].text.endswith(
            "failed in 1 place with exit code 3; its output says why."
        )
        assert status.notices[-1].action == "checks"
        asked = check.instruction(finding, with_output=True)
        assert asked.startswith("fix this: no\n\n`")
        assert "mod.py:2: error: no" in asked
        assert check.instruction(finding, with_output=False) == "fix this: no"

        # A second run begins anew.
        (tmp_path / "mod.py").unlink()
        await check.start_command()
        await finished(check)
        assert check.findings == []


async def test_it_runs_in_the_folder_and_is_not_a_terminal(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), sys.stdin.read(), os.environ['NO_COLOR'])"
    async with checking(tmp_path, python(code)) as (check, _):
        await check.start_command()
        await finished(check)
        assert check.state is CheckState.PASSED
        folder, variable = check.output[0].split("  ")
        assert os.path.samefile(folder, tmp_path)  # noqa: PTH121, ASYNC240
        assert variable == "1"


async def test_stopping_ends_what_the_command_has_started(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    async with checking(tmp_path, python(code)) as (check, _):
        await check.start_command()
        with pytest.raises(UserError, match="is running; wait until it ends, or stop it"):
            await check.start_command()
        await until(lambda: check.output)
        child = int(check.output[0])
        await check.stop_command()
        await finished(check)
        assert check.state is CheckState.STOPPED
        await until(lambda: not running(child))


async def test_a_command_that_ignores_the_signal_is_killed(tmp_path: Path) -> None:
    code = (
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('deaf', flush=True)\n"
        "time.sleep(600)\n"
    )
    async with checking(tmp_path, python(code)) as (check, _):
        await check.start_command()
        await until(lambda: check.output)
        await check.stop_command()
        await finished(check)
        assert check.state is CheckState.STOPPED


async def test_something_left_in_the_background_does_not_hold_the_end_up(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid)\n"
    )
    async with checking(tmp_path, python(code)) as (check, _):
        await check.start_command()
        await finished(check)
        assert check.state is CheckState.PASSED
        await until(lambda: not running(int(check.output[0])))


async def test_closing_the_session_ends_the_command(tmp_path: Path) -> None:
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    async with checking(tmp_path, python(code)) as (check, _):
        await check.start_command()
        await until(lambda: check.output)
    assert not running(int(check.output[0]))


async def test_output_is_bounded_and_harmless(tmp_path: Path) -> None:
    code = (
        f"for n in range({MAX_LINES + 100}): print(n)\n"
        "print('x' * 100_000)\n"
        "print('10 %\\r20 %\\r\\x1b[32mdone\\x1b[0m')\n"
        "import sys; sys.stdout.buffer.write(b'\\xff\\xfe end')\n"
    )
    async with checking(tmp_path, python(code)) as (check, _):
        await check.start_command()
        await finished(check)
        assert len(check.output) == MAX_LINES
        assert check.dropped > 100
        assert max(map(len, check.output)) <= 4_000
        assert list(check.output)[-2:] == ["done", "\ufffd\ufffd end"]


async def test_what_cannot_be_started_is_a_sentence(tmp_path: Path) -> None:
    for command in ("no-such-program -q", "pytest 'unclosed"):
        async with checking(tmp_path, command) as (check, _):
            with pytest.raises(UserError, match="cannot be started"):
                await check.start_command()
            assert check.state is CheckState.BROKEN
            assert not check.running


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
async def test_what_a_folder_suggests_is_confirmed_once(tmp_path: Path) -> None:
    one, other = tmp_path / "one/work", tmp_path / "other/work"
    for root in (one, other):
        root.mkdir(parents=True)
        (root / "Makefile").write_text("test:\n\t@echo tested\n")
    async with checking(one) as (check, _):
        with pytest.raises(UnconfirmedCommandError, match="Makefile suggests make test"):
            await check.start_command()
        assert check.state is CheckState.NEVER
        await check.start_command(confirmed=True)
        await finished(check)
        assert check.output[-1] == "tested"
    async with checking(one) as (check, _):
        await check.start_command()
        await finished(check)
    async with checking(other) as (check, _):
        with pytest.raises(UnconfirmedCommandError):
            await check.start_command()
    # Another command of the same folder is another question.
    (one / "Makefile").write_text("check:\n\t@echo tested\n")
    async with checking(one) as (check, _):
        with pytest.raises(UnconfirmedCommandError, match="make check"):
            await check.start_command()


async def test_nothing_to_run_is_a_sentence(tmp_path: Path) -> None:
    async with checking(tmp_path) as (check, _):
        with pytest.raises(UserError, match="set check_command in the settings"):
            await check.start_command()


async def test_it_runs_by_itself_when_the_setting_says_so(tmp_path: Path) -> None:
    async with checking(tmp_path, python("print('ran')"), after_accepts=True) as (check, status):
        status.emit(HunkDecided("mod.py", 1))
        status.emit(HunkDecided("mod.py", 2))
        await until(lambda: check.state is CheckState.PASSED)
        assert list(check.output) == ["ran"]


async def test_by_itself_it_runs_nothing_that_was_not_confirmed(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("test:\n\ttouch ran\n")
    async with checking(tmp_path, after_accepts=True) as (check, status):
        status.emit(HunkDecided("mod.py", 1))
        await until(lambda: status.notices)
        assert "was not confirmed yet" in status.notices[-1].text
        assert check.state is CheckState.NEVER
    assert not (tmp_path / "ran").exists()


UNITTEST = "import unittest\n\n\nclass X(unittest.TestCase):\n    def test_x(self): ...\n"


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, "pytest -q"),
        ({"pyproject.toml": "", "tests/test_x.py": ""}, "pytest -q"),
        ({"test_x.py": ""}, "pytest -q"),
        ({"test_x.py": UNITTEST}, "python3 -m unittest"),
        ({"tests/test_x.py": UNITTEST}, "python3 -m unittest discover -s tests"),
        (
            {"tests/test_x.py": UNITTEST, "tests/__init__.py": "", ".venv/bin/python": ""},
            ".venv/bin/python -m unittest",
        ),
        (
            {"tests/test_x.py": UNITTEST, "uv.lock": ""},
            "uv run python -m unittest discover -s tests",
        ),
        ({"test_x.py": UNITTEST, "pytest.ini": ""}, "pytest -q"),
        ({"test_x.py": UNITTEST, "conftest.py": ""}, "pytest -q"),
        ({"test_x.py": UNITTEST, "test_y.py": "def test_y(): ...\n"}, "pytest -q"),
        ({"pytest.ini": "", "uv.lock": ""}, "uv run pytest -q"),
        ({"pytest.ini": "", ".venv/bin/python": ""}, ".venv/bin/python -m pytest -q"),
        ({"package.json": json.dumps({"scripts": {"test": "jest"}})}, "npm test"),
        (
            {"package.json": json.dumps({"scripts": {"test": "jest"}}), "pnpm-lock.yaml": ""},
            "pnpm test",
        ),
        ({"package.json": '{"scripts": {"test": "echo no test specified"}}'}, None),
        ({"package.json": "[" * 100_000}, None),
        ({"Cargo.toml": ""}, "cargo test"),
        ({"go.mod": ""}, "go test ./..."),
        ({"Makefile": "all:\n\ttrue\ncheck: all\n"}, "make check"),
        ({"Makefile": "test := 3\n"}, None),
        ({"pyproject.toml": "[project]\n"}, None),
    ],
)
def test_what_a_folder_suggests(tmp_path: Path, files: dict[str, str], command: str | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = suggested_command(tmp_path)
    assert (found.text if found else None) == command


def test_a_pipe_in_the_place_of_a_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "Makefile")
    os.mkfifo(tmp_path / "package.json")
    assert suggested_command(tmp_path) is None


SHOP = "def total(rows):\n    return sum(rows)\n"
TESTED = """\
from shop import total


def test_total():
    assert total([1, 2]) == 4
"""


@asynccontextmanager
async def proposing(
    tmp_path: Path, endpoint: Endpoint, model: SteppedModel, command: str
) -> AsyncIterator[PairingSession]:
    """A session in which a hunk waits that makes the test pass."""
    root = make_repo(tmp_path / "work", {"shop.py": SHOP, "test_shop.py": TESTED})
    async with await PairingSession.open(
        root, settings=Settings(check_command=command), endpoint=endpoint, watch=False
    ) as session:
        await session.turns.instruct(Question("add one", path="shop.py", cursor=0))
        for text in ("def total(rows):\n", "    return sum(rows) + 1\n", None):
            model.give(text)
        await session.turns.finished()
        assert session.hunks.undecided()
        yield session


def copies_in(folder: Path) -> list[Path]:
    return list(folder.glob("midstream-copy-*"))


PYTEST = shlex.join([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"])


async def test_it_runs_with_the_hunks_that_wait(
    tmp_path: Path, endpoint: Endpoint, model: SteppedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # Most of its time is its plugins.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with proposing(tmp_path, endpoint, model, PYTEST) as session:
        check, root = session.check, session.workspace.root
        await check.start_command()
        await finished(check)
        assert check.state is CheckState.FAILED
        assert [finding.place for finding in check.findings] == ["test_shop.py:5"]
        await check.start_command(proposed=True)
        await finished(check)
        assert check.state is CheckState.PASSED, list(check.output)
        assert check.title.endswith(" with 1 undecided hunk")
        assert "with 1 undecided hunk: passed" in session.status.notices[-1].text
        assert (root / "shop.py").read_text() == SHOP
        assert not copies_in(tmp_path)
        for hunk in session.hunks.undecided():
            await session.decisions.reject(hunk.id)
        with pytest.raises(UserError, match="No hunk waits for a decision"):
            await check.start_command(proposed=True)
        assert check.state is CheckState.PASSED


async def test_places_in_the_copy_are_places_of_the_folder(
    tmp_path: Path, endpoint: Endpoint, model: SteppedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = (
        "import os, sys; print(os.path.abspath('shop.py') + ':2: error: wrong')\n"
        "open('shop.py', 'w').close(); sys.exit(1)"
    )
    async with proposing(tmp_path, endpoint, model, python(code)) as session:
        check, root = session.check, session.workspace.root
        await check.start_command(proposed=True)
        await finished(check)
        assert [finding.place for finding in check.findings] == ["shop.py:2"]
        assert list(check.output) == [f"{root / 'shop.py'}:2: error: wrong"]
        assert (root / "shop.py").read_text() == SHOP
        assert "` with 1 undecided hunk failed in 1 place with exit code 1" in check.failure()


async def test_stopping_and_closing_leave_no_copy(
    tmp_path: Path, endpoint: Endpoint, model: SteppedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = "import time; print('begun', flush=True); time.sleep(600)"
    async with proposing(tmp_path, endpoint, model, python(code)) as session:
        check = session.check
        await check.start_command(proposed=True)
        await check.stop_command()  # while the copy is made, or when it was
        await finished(check)
        assert check.state is CheckState.STOPPED
        await check.start_command(proposed=True)
        await until(lambda: check.output)
        await check.stop_command()
        await finished(check)
        assert check.state is CheckState.STOPPED
        assert not copies_in(tmp_path)
        await check.start_command(proposed=True)
        await until(lambda: check.output)
    assert not copies_in(tmp_path)


async def test_a_command_that_cannot_be_started_in_a_copy_is_a_notice(
    tmp_path: Path, endpoint: Endpoint, model: SteppedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with proposing(tmp_path, endpoint, model, "no-such-program -q") as session:
        await session.check.start_command(proposed=True)
        await finished(session.check)
        assert session.check.state is CheckState.BROKEN
        assert "cannot be started" in session.status.notices[-1].text
    assert not copies_in(tmp_path)
