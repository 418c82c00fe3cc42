"""The example project of ``midstream demo``."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from midstream.cli import main
from midstream.demo import READING_PACE, check_command, make_demo
from midstream.demo.tour import OFFER, PATH, STEPS, WRITER, Done
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


async def test_the_tour_shows_each_step_and_enter_carries_it_out(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps(
            [
                {"match": "sums", "edit": [["rows", "sums"], ["totals", "sums"]]},
                {"match": "", "edit": [["rows", "totals"]], "rate": 60},
            ]
        )
    )
    app = MidstreamApp(demo.root, Settings(journal=False), demo=demo, replay=script)
    async with app.run_test(size=(100, 30)) as pilot:
        line = app.review.panes.tour
        await shown(pilot, lambda: line.text == OFFER)
        await shown(pilot, lambda: app.session and app.session.external.watching)

        def step_shown() -> int:
            return int(line.place.split()[0]) if line.place else len(STEPS) + 1

        await pilot.press("enter")
        for number, step in enumerate(STEPS, 1):
            await shown(pilot, lambda number=number: step_shown() >= number)
            if step_shown() == number:
                await pilot.press("enter")
            if step.done is Done.DECIDED:  # what was not seen is asked for again
                await shown(pilot, lambda: not app.session.turns.busy)  # type: ignore[union-attr]
                while step_shown() == number:
                    await pilot.press("enter")
                    await shown(pilot)
            if step.done is Done.COMMITTED:
                await shown(pilot, lambda: isinstance(app.screen, CommitScreen))
                await shown(pilot, lambda: app.screen.changes is not None)  # type: ignore[attr-defined]
                await pilot.press("ctrl+s")
        await shown(pilot, lambda: line.place == "")
        assert line.text == ""
    assert "USD" not in (demo.root / WRITER.path).read_text()
    report = (demo.root / PATH).read_text()
    assert "sums" in report
    assert "totals" not in report
    subjects = run_git(demo.root, ["log", "-1", "--format=%s"])
    assert subjects.strip() == b"Rename `rows` to `sums` in month_report"


async def test_the_tour_is_left_at_any_step(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    app = MidstreamApp(demo.root, Settings(journal=False), demo=demo, replay=_script(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        line = app.review.panes.tour
        await shown(pilot, lambda: line.text == OFFER)
        await pilot.press("enter")
        await shown(pilot, lambda: line.place)
        await pilot.press("escape")
        await shown(pilot, lambda: line.text == OFFER)
        await pilot.press("i", "h", "i")
        assert app.review.panes.composer.text == "hi"
