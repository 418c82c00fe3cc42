"""The example project of ``midstream demo``."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from midstream.cli import main
from midstream.demo import READING_PACE, DemoInfo, check_command, make_demo
from midstream.demo.tour import PATH, STEPS, WRITER, Done
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.tui.app import MidstreamApp
from midstream.tui.pages.commit import CommitScreen
from midstream.workspace.repo import repo_status, run_git
from tests.helpers.stage import shown


def test_the_copy_is_a_clean_repository_whose_tests_pass(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    status = repo_status(demo.root)
    assert status is not None
    assert (status.branch, status.dirty, status.untracked) == ("main", 0, 0)
    own = shlex.split(check_command())
    pytest_as_well = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for command in (own, pytest_as_well):
        assert subprocess.run(command, cwd=demo.root, env=plain, check=False).returncode == 0


def test_without_git_there_is_a_copy_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    demo = make_demo(tmp_path)
    assert (demo.root / "tally" / "money.py").is_file()
    assert not (demo.root / ".git").exists()


def test_the_first_suggestion_changes_four_places_or_more(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    (rename,) = [s for s in demo.suggestions if s.title == "Rename a variable"]
    lines = (demo.root / rename.path).read_text().splitlines()
    places = [n for n, line in enumerate(lines) if re.search(r"\brows\b", line)]
    apart = [n for n, before in zip(places[1:], places, strict=False) if n > before + 1]
    assert len(apart) + 1 >= 4, "hunks, which unchanged lines keep apart"


def test_the_demo_starts_at_a_reading_pace_unless_another_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[tuple[float | None, object]] = []

    def run(path: Path, settings: Settings, *, flags: dict[str, object], **_: object) -> int:
        begun.append((settings.pace, flags.get("pace")))
        return 0

    monkeypatch.setattr("midstream.tui.app.run_app", run)
    monkeypatch.setattr("midstream.cli._check_terminal", lambda: None)
    for arguments in (["demo"], ["demo", "--pace", "40"]):
        assert main(arguments) == 0
    assert begun == [(READING_PACE, READING_PACE), (40.0, 40.0)]
    assert READING_PACE <= 30


def test_the_demo_answers_with_the_shipped_model_unless_the_command_line_names_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[str | None, bool]] = []

    def run(path: Path, settings: Settings, *, flags: dict[str, object], **_: object) -> int:
        assert flags.get("endpoint", settings.endpoint) == settings.endpoint
        begun.append((settings.endpoint, settings.journal))
        return 0

    config = tmp_path / "config.toml"
    config.write_text('endpoint = "mine"\n[endpoints.mine]\nurl = "http://127.0.0.1:9/v1"\n')
    monkeypatch.setenv("MIDSTREAM_CONFIG", str(config))
    monkeypatch.setattr("midstream.tui.app.run_app", run)
    monkeypatch.setattr("midstream.cli._check_terminal", lambda: None)
    for arguments in (["demo"], ["demo", "--endpoint", "mine"]):
        assert main(arguments) == 0
    assert begun == [(None, False), ("mine", False)]


def _script(folder: Path) -> Path:
    script = folder / "script.json"
    script.write_text(json.dumps([{"match": "", "edit": [["rows", "totals"]]}]))
    return script


async def test_one_sentence_names_the_pace_and_one_key_turns_it_off(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    script = _script(tmp_path)
    settings = Settings(journal=False, attention=False, pace=READING_PACE)
    app = MidstreamApp(demo.root, settings, demo=demo, replay=script)
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot, lambda: app.session and app.session.status.state == "ready")

        def words() -> str:
            return " ".join(app.review.panes.welcome.render().plain.split())

        sentence = (
            "The model writes slowly, so that you can decide and redirect while it writes; "
            "p switches to full speed."
        )
        assert sentence in words()
        await pilot.press("escape", "p")
        await shown(pilot, lambda: "at full speed; p switches back" in app.review.panes.notice.text)
        assert app.settings.pace is None
        assert "writes slowly" not in words()
        await pilot.press("p")
        await shown(pilot, lambda: app.settings.pace == READING_PACE)
        assert sentence in words()


def _tour_script(folder: Path, second: list[list[str]], rate: float) -> Path:
    """Answers of a model for the instructions of the tour."""
    script = folder / "script.json"
    first = {"match": "", "edit": [["rows", "totals"]], "rate": rate}
    script.write_text(json.dumps([{"match": "results", "edit": second}, first]))
    return script


RESULTS = [["rows", "results"], ["totals", "results"]]
"""The renames that the redirect asks for."""


class _Tourist:
    """Reads the tour and presses keys."""

    def __init__(self, app: MidstreamApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot
        self.line = app.review.panes.tour

    @property
    def number(self) -> int:
        """The step that is shown; one more than there are at the end."""
        place = self.line.words.place
        return int(place.split()[0]) if place else len(STEPS) + 1

    @property
    def text(self) -> str:
        return self.line.words.text

    @property
    def session(self) -> PairingSession:
        assert self.app.session is not None
        return self.app.session

    async def begin(self) -> None:
        await shown(self.pilot, lambda: "in the empty line" in self.text)
        await shown(self.pilot, lambda: self.app.session and self.session.external.watching)
        await self.pilot.press("enter")
        await self.until(1)

    async def until(self, number: int) -> None:
        await shown(self.pilot, lambda: self.number >= number)

    async def idle(self) -> None:
        """Wait until the model is done and nothing is under way."""

        def idle() -> bool:
            keys = [w for w in self.app.workers if w.group == "serial" and not w.is_finished]
            return not (keys or self.session.turns.busy) and bool(self.line.words.enter)

        await shown(self.pilot, idle)


@asynccontextmanager
async def _touring(
    demo: DemoInfo, size: tuple[int, int] = (80, 24), **model: Any
) -> AsyncIterator[_Tourist]:
    """A tour at its first step, with a ``model`` as the app takes it."""
    app = MidstreamApp(demo.root, Settings(journal=False), demo=demo, **model)
    async with app.run_test(size=size) as pilot:
        tourist = _Tourist(app, pilot)
        await tourist.begin()
        yield tourist


async def test_the_tour_shows_each_step_and_enter_carries_it_out(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    script = _tour_script(tmp_path, RESULTS, rate=60)
    async with _touring(demo, size=(100, 30), replay=script) as tourist:
        app, pilot = tourist.app, tourist.pilot
        for number, step in enumerate(STEPS, 1):
            await tourist.until(number)
            if tourist.number == number:
                await pilot.press("enter")
            if step.done is Done.DECIDED:  # what was not seen is asked for again
                await shown(pilot, lambda: not tourist.session.turns.busy)
                while tourist.number == number:
                    await pilot.press("enter")
                    await shown(pilot)
            if step.done is Done.COMMITTED:
                await shown(pilot, lambda: isinstance(app.screen, CommitScreen))
                page = app.screen
                assert isinstance(page, CommitScreen)
                assert "enter commits it" in page.tour.words.text
                await pilot.press("enter")
        await shown(pilot, lambda: tourist.line.words.place == "")
        assert tourist.text == ""
    assert "USD" not in (demo.root / WRITER.path).read_text()
    report = (demo.root / PATH).read_text()
    assert "results" in report
    assert "totals" not in report
    subjects = run_git(demo.root, ["log", "-1", "--format=%s"])
    assert subjects.strip() == b"Rename `rows` to `results` in month_report"


@pytest.mark.system
async def test_the_tour_says_what_fits_where_the_model_was_done_long_ago(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    flagged = [*RESULTS, ["minutes", "password"]]
    script = _tour_script(tmp_path, flagged, rate=0)
    async with _touring(demo, replay=script) as tourist:
        pilot = tourist.pilot
        read: list[list[str]] = []
        for number in range(1, 5):
            await tourist.until(number)
            await tourist.idle()
            read.append([tourist.text])
            assert tourist.number == number
            while tourist.number == number:
                await pilot.press("enter")
                await shown(pilot)
                await tourist.idle()
                if tourist.number == number:
                    read[-1].append(tourist.text)
        first, second, third, fourth = read
        assert "sends it" in first[0]
        assert second == [
            "The model is done. a accepts the hunk under the cursor and saves it to the file at "
            "once."
        ]
        assert "you can say so while the model writes, too" in third[0]
        assert "The hunks are flagged: look at each one. a accepts it" in fourth[-1]
        assert len(fourth) <= 3
        assert not tourist.session.hunks.undecided()


@pytest.mark.system
async def test_enter_leads_on_where_a_step_has_nothing_to_act_on(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    script = _tour_script(tmp_path, RESULTS, rate=0)
    async with _touring(demo, replay=script) as tourist:
        app, pilot = tourist.app, tourist.pilot
        pointless: list[int] = []
        while tourist.number < len(STEPS):
            await tourist.idle()
            number, step = tourist.number, STEPS[tourist.number - 1]
            if number in (2, 4):  # these steps reject all undecided hunks
                await pilot.press("R")
            elif step.done is Done.PUT_BACK:
                await pilot.press("a")  # kept
            await shown(pilot)
            if tourist.number == number:
                if "goes on" in tourist.text:
                    pointless.append(number)
                await pilot.press("enter")
                if step.done is Done.COMMITTED:
                    await shown(pilot, lambda: isinstance(app.screen, CommitScreen))
                    while app.screen is not app.review:
                        await pilot.press("escape")
                    await pilot.press("enter")  # the page was left without a commit
                await shown(pilot, lambda number=number: tourist.number > number)
        assert pointless == [2, 8], "steps without anything to act on"
        assert tourist.line.words.enter == "end the tour"


@pytest.mark.system
async def test_the_tour_leads_on_without_a_model_and_when_it_is_begun_again(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    demo = make_demo(tmp_path)
    unreachable = Endpoint(f"ws://127.0.0.1:{unused_tcp_port}/v1", None, "none")
    written = next(number for number, step in enumerate(STEPS, 1) if step.done is Done.WRITTEN)

    async def lead_on() -> None:
        while (number := tourist.number) < written:
            await tourist.idle()
            if app.review.panes.typing:  # The text that could not be sent is there again.
                await pilot.press("escape")
            if tourist.number == number:
                await pilot.press("enter")
                await shown(pilot)

    async with _touring(demo, endpoint=unreachable) as tourist:
        app, pilot = tourist.app, tourist.pilot
        await lead_on()
        await pilot.press("enter")
        await tourist.until(written + 1)
        await pilot.press("escape")
        assert not tourist.line.words.place
        await pilot.press("f4")
        await lead_on()
        await tourist.idle()
        assert "nothing left to change" in tourist.text
        await pilot.press("enter")
        await tourist.until(written + 1)
    assert "USD" in (demo.root / WRITER.path).read_text()


async def test_the_tour_is_left_at_any_step(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    app = MidstreamApp(demo.root, Settings(journal=False), demo=demo, replay=_script(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        line = app.review.panes.tour
        await shown(pilot, lambda: "in the empty line" in line.words.text)
        await pilot.press("enter")
        await shown(pilot, lambda: line.words.place)
        await pilot.press("escape")
        await shown(pilot, lambda: "Press f4 for a tour" in line.words.text)
        await pilot.press("i", "h", "i")
        assert app.review.panes.composer.text == "hi"
