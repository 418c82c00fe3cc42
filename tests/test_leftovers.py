"""No process outlives the tests that started it, however they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.processes import marked, running, started
from tests.helpers.waiting import until

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[1]
TESTS = """
import os, subprocess, sys, time
import pytest

SLEEP = [sys.executable, "-c", "import time; time.sleep(1000)"]

def note(pid):
    with open("pids", "a") as file:
        file.write(f"{pid}\\n")

@pytest.fixture(scope="module")
def server():
    process = subprocess.Popen(SLEEP)
    note(process.pid)
    yield process
    process.kill()
    process.wait()

def test_with_a_server_of_the_module(server):
    assert server.poll() is None

def test_and_another_with_it(server):
    assert server.poll() is None

def test_that_passes_and_leaves_one():
    note(subprocess.Popen(SLEEP, start_new_session=True).pid)

def test_that_fails_and_leaves_one():
    note(subprocess.Popen(SLEEP).pid)
    raise AssertionError

def test_whose_child_leaves_one_of_its_own():
    start = f"subprocess.Popen({SLEEP!r}, start_new_session=True, stdout=subprocess.DEVNULL)"
    code = f"import subprocess; print({start}.pid)"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    note(int(done.stdout))

@pytest.mark.skipif("HANG" not in os.environ, reason="would hang")
def test_that_hangs():
    note(subprocess.Popen(SLEEP, start_new_session=True).pid)
    note("hangs")
    time.sleep(1000)
"""


def command(*options: str) -> list[str]:
    plugins = ["-p", "tests.helpers.leftovers", "-p", "xdist", "-p", "no:cacheprovider"]
    ini = ["-c", os.devnull, "-o", "leftovers_grace=0.2"]
    return [sys.executable, "-m", "pytest", "-q", *ini, *plugins, *options]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "test_inner.py").write_text(TESTS)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return tmp_path


def pids(folder: Path) -> list[int]:
    path = folder / "pids"
    return [int(word) for word in path.read_text().split() if word != "hangs"]


@pytest.mark.parametrize("options", [[], ["-n", "1"]], ids=["in one process", "in a worker"])
def test_what_a_test_leaves_is_killed_and_told(folder: Path, options: list[str]) -> None:
    done = subprocess.run(
        command("--rootdir", str(folder), str(folder), *options),
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert "4 passed, 1 skipped, 2 errors" in done.stdout.replace("1 failed, ", ""), done.stdout
    told = [line for line in done.stdout.splitlines() if line.startswith("The test has left")]
    assert len(told) == 2, done.stdout
    assert len(pids(folder)) == 4
    assert not any(running(pid) for pid in pids(folder))


@pytest.mark.parametrize("options", [[], ["-n", "1"]], ids=["in one process", "in a worker"])
def test_nothing_outlives_a_killed_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.setenv("HANG", "1")
    with started(
        command("--rootdir", str(folder), str(folder), "-k", "hangs or leaves", *options),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as run:
        path = folder / "pids"
        until(lambda: path.exists() and "hangs" in path.read_text(), "the test that hangs")
        assert any(running(pid) for pid in pids(folder))
        os.kill(run.pid, signal.SIGKILL)
    until(lambda: not any(running(pid) for pid in pids(folder)), "the end of all processes")
    assert not marked("no such run")
