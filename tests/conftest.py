"""Fixtures for all tests: each has its own state and configuration, never the user's."""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import os
import signal
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers.property import register_profiles

if TYPE_CHECKING:
    from tests.helpers.hosted import Hosted

pytest_plugins = ["tests.helpers.leftovers", "tests.helpers.selecting"]
register_profiles()


# Workers and hundreds of processes import the same code: it is compiled once, whatever the shell
# of the run asks for. To collect the tests again takes a third of the processor time then.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_configure() -> None:
    """Let children be stopped by SIGINT, also in a run that ignores it, as ``nohup ... &`` does."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One file alone runs in this process: workers would take longer to start than it takes.

    Otherwise there are at least four: tests wait for processes, disks and clocks.
    """
    targets = [Path(str(argument).partition("::")[0]) for argument in config.args]
    return 0 if len(targets) == 1 and targets[0].is_file() else max(4, os.cpu_count() or 1)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Keep what collecting leaves, half a million objects, out of every collection of garbage.

    A full one takes a fifth of a second longer with them, and collecting itself is slower.
    """
    gc.disable()
    _import_share(session.config)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _import_share(config: pytest.Config) -> None:
    """Import a worker's share of the files, so that each file is compiled by one worker only.

    All of them collect the same files in the same order, and without this, all compile them.
    """
    from tests.helpers.selecting import has_tests

    worker: dict[str, Any] = getattr(config, "workerinput", {})
    if not worker:
        return
    files = sorted(
        file
        for argument in config.args
        for file in (config.rootpath / argument.partition("::")[0]).rglob("test_*.py")
        if has_tests(config, file)
    )
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for file in files[number::count]:
        # What cannot be imported, or skips itself, is reported when it is collected.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            if file.with_name("__init__.py").exists():
                importlib.import_module(f"{file.parent.name}.{file.stem}")
            else:  # As pytest itself names and finds it.
                sys.path.insert(0, str(file.parent))
                importlib.import_module(file.stem)


@pytest.fixture(scope="session")
def tmp_path_factory(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[pytest.TempPathFactory]:
    """Pytest's own, which counts its folders instead of listing them all for the next number.

    A list of the thousands that a run makes takes longer than many a test.
    """
    numbers = itertools.count()
    make = tmp_path_factory.mktemp

    def counted(basename: str, numbered: bool = True) -> Path:
        return make(f"{basename}{next(numbers):04}" if numbered else basename, numbered=False)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tmp_path_factory, "mktemp", counted)
        yield tmp_path_factory


@pytest.fixture(scope="session")
def _jedi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What jedi keeps of Python's own modules: to read them takes a second of every search."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # One for all workers; files in it are written whole.
    folder = folder / "jedi"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(autouse=True)
def state(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, _jedi: Path
) -> Path:
    """The state folder of the test; there is no configuration file."""
    folder = tmp_path_factory.mktemp("state")
    (folder / "jedi").symlink_to(_jedi, target_is_directory=True)
    monkeypatch.setenv("MIDSTREAM_STATE_DIR", str(folder))
    monkeypatch.setenv("MIDSTREAM_CONFIG", str(folder / "config.toml"))
    return folder


@pytest.fixture(autouse=True)
def related_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """No related code is looked for: what is sent must not depend on how fast it is found.

    Tests of it override this fixture.
    """
    from midstream.codebase.related import RelatedCode

    monkeypatch.setattr(RelatedCode, "look", lambda *_: None)


@pytest.fixture(scope="session")
def copyist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the suite's own edit model, for ``Settings.model``; see ``helpers.copyist``."""
    from tests.helpers.copyist import NAME, write_copyist

    return write_copyist(tmp_path_factory.mktemp("models") / NAME)


@pytest.fixture
def built_in(copyist: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, as the built-in model of every program that the test starts."""
    monkeypatch.setenv("MIDSTREAM_MODEL", str(copyist))
    return copyist


@pytest.fixture
def hosted() -> Hosted:
    """A hosted model, which says what the test tells it."""
    from tests.helpers.hosted import Hosted

    return Hosted()


@pytest.fixture
async def url(hosted: Hosted) -> AsyncIterator[str]:
    """The address of the hosted model."""
    async with hosted.running() as url:
        yield url
