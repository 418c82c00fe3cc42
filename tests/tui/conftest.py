"""Fixtures of the screen's tests."""

from __future__ import annotations

import gc
import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import textual.app
import textual.pilot
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from midstream.tui import garbage
from tests.helpers.idle import handled, idle, pause
from tests.helpers.pages import make_repo
from tests.helpers.stage import CODE, Stage, on_stage

_tests = itertools.count(1)
_LEFT_ALONE = dict.fromkeys(("freeze", "unfreeze", "set_threshold"), lambda *_: None)
_COLLECTOR = SimpleNamespace(**vars(gc) | _LEFT_ALONE)
"""``gc`` without the functions that freeze objects or set thresholds."""
_RARELY = (20_000, 10, 10)
"""Thresholds: most objects of a test are collected with its app."""


@pytest.fixture(autouse=True, scope="session")
def _pilots_wait_for_the_loop() -> None:
    """A pilot goes on as soon as the loop has nothing to do, and not before.

    To ask each widget whether it has read its messages takes longer than what most keys do.
    """
    textual.app.wait_for_idle = idle  # type: ignore[attr-defined]
    textual.pilot.wait_for_idle = idle  # type: ignore[attr-defined]
    Pilot._wait_for_screen = handled  # type: ignore[assignment]
    Pilot.pause = pause  # type: ignore[method-assign]


@pytest.fixture(autouse=True, scope="session")
def _rules_are_parsed_once() -> Iterator[None]:
    """Apps share what was parsed: each of them, and each page, would parse the same CSS again."""
    parsed: dict[tuple[object, ...], list[RuleSet]] = {}
    whole: dict[tuple[object, ...], list[RuleSet]] = {}
    parse_rules, parse = Stylesheet._parse_rules, Stylesheet.parse

    def parse_rules_once(sheet: Stylesheet, *piece: Any, **more: Any) -> list[RuleSet]:
        key = (*piece, *more.items(), *sheet._variables.items())
        if key not in parsed:
            parsed[key] = parse_rules(sheet, *piece, **more)
        return parsed[key]

    def parse_once(sheet: Stylesheet) -> None:
        key = (*sheet.source.items(), *sheet._variables.items(), *sheet._invalid_css)
        if key not in whole:
            parse(sheet)
            whole[key] = sheet._rules
        sheet._rules, sheet._rules_map, sheet._require_parse = whole[key], None, False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_rules_once)
        patch.setattr(Stylesheet, "parse", parse_once)
        patch.setattr(RuleSet, "__hash__", object.__hash__)  # the same, without a call of Python
        yield


@pytest.fixture(autouse=True)
def _frozen_stays_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ending apps would unfreeze what collecting the tests has left: 0.3 s of each collection."""
    monkeypatch.setattr(garbage, "gc", _COLLECTOR)


@pytest.fixture(autouse=True)
def _collect_old_apps() -> None:
    """Now and then, collect the objects of ended apps: running apps put full collections off."""
    gc.set_threshold(*_RARELY)
    if next(_tests) % 10 == 0:
        gc.collect()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with one Python file and some others."""
    root = tmp_path / "project"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg" / "things.py").write_text(CODE)
    (root / "notes.md").write_text("# Notes\n")
    return root


@pytest.fixture
def repo(project: Path) -> Path:
    """The ``project`` as a repository with one commit."""
    make_repo(project)
    return project


@pytest.fixture
async def stage(project: Path) -> AsyncIterator[Stage]:
    async with on_stage(project) as stage:
        yield stage
