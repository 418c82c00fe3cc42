"""Pytest plugin: no test leaves a process behind.

Every process of a run carries a mark in its environment. What a test has started and not ended is
killed after it, and the test fails. What is left when pytest has gone, however it went, is killed
by the reaper.
"""

from __future__ import annotations

import gc
import os
import subprocess
import time
import uuid
from collections.abc import Generator
from typing import Any

import pytest

from tests.helpers.processes import PROC, RUN, command_line, descendants, kill, start_reaper

_REAPER = pytest.StashKey[subprocess.Popen[bytes]]()


class Leftovers:
    """Finds the processes that a test has left."""

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._kept = _children()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        """Let processes stay that a fixture of a module or of the session has started."""
        if fixturedef.scope == "function":
            return (yield)
        before = _children()
        try:
            return (yield)
        finally:
            self._kept |= _children() - before

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, Any, Any]:
        try:
            return (yield)
        finally:
            if _children() - self._kept:
                gc.collect()  # An object that ends its process may be held by an error's frames.
            deadline = time.monotonic() + self._grace_s
            while (left := _children() - self._kept) and time.monotonic() < deadline:
                time.sleep(0.01)
            if left:
                told = "; ".join(f"{pid}: {command_line(pid)}" for pid in sorted(left))
                kill(left)
                pytest.fail(f"The test has left processes behind: {told}", pytrace=False)


def _children() -> set[int]:
    # The resource tracker of multiprocessing stays until its parent ends, by design.
    return {
        pid
        for pid in descendants(os.getpid())
        if "multiprocessing.resource_tracker" not in command_line(pid)
    }


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "leftovers_grace", "Seconds that a process may take to end after its test.", default="5"
    )


def pytest_configure(config: pytest.Config) -> None:
    if not (PROC / "self" / "environ").exists():
        return  # Only Linux says which process belongs to whom.
    if not hasattr(config, "workerinput"):
        os.environ[RUN] = uuid.uuid4().hex
        config.stash[_REAPER] = start_reaper(os.environ[RUN])
    config.pluginmanager.register(Leftovers(float(config.getini("leftovers_grace"))))


def pytest_unconfigure(config: pytest.Config) -> None:
    reaper = config.stash.get(_REAPER, None)
    if reaper is not None:
        reaper.communicate()
