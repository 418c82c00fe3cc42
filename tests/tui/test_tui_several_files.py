"""One answer about several files on the screen: the rail, and decisions about all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from midstream.pairing.files import attention
from midstream.tui.app import MidstreamApp
from midstream.tui.review import navigate
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import make_repo
from tests.helpers.stage import Stage, on_stage, ready

FILES = {"run.py": "step = 1\nlast = 2\n", "util.py": "a = 1\nb = 2\n", "gone.txt": "one\n"}
PATCH = (
    "*** Begin Patch\n"
    "*** Update File: run.py\n@@\n-step = 1\n+step = 2\n"
    "*** Update File: util.py\n@@\n-a = 1\n+a = eval(b)\n"
    "*** Add File: fresh.py\n+fresh = 1\n"
    "*** Delete File: gone.txt\n"
    "*** End Patch\n"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "work", FILES)


@asynccontextmanager
async def answered(root: Path, *, attention: bool) -> AsyncIterator[Stage]:
    """The screen with the whole answer, run.py shown."""
    hosted = Hosted()
    async with hosted.running() as url:
        settings = hosted.settings(url, "v4a")
        settings = replace(settings, journal=False, attention=attention)
        app = MidstreamApp(root, settings)
        async with ready(app, size=(150, 40)) as stage:
            await stage.open("run.py")
            await stage.press("i")
            stage.composer.put("rework it")
            await stage.press("enter")
            hosted.say(PATCH)
            hosted.end()
            await stage.until(lambda: len(stage.session.hunks.undecided()) == 4, "hunks")
            await stage.until(lambda: stage.session.status.state == "ready", "end")
            await stage.press("escape")
            yield stage


def on_disk(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(root.glob("*.*")) if path.is_file()}


def rail(stage: Stage, path: str) -> str:
    rows = [stage.rail._strip(y).text for y in range(min(9, len(stage.rail.rows)))]
    return next((row for row in rows if path in row), "")


async def test_the_rail_says_what_is_open_decided_or_in_conflict(root: Path) -> None:
    async with answered(root, attention=False) as stage:
        for path in ("run.py", "util.py", "fresh.py", "gone.txt"):
            await stage.until(lambda path=path: "1 waits" in rail(stage, path), path)
        hunk = next(h for h in stage.session.hunks if h.path == "fresh.py")
        assert await stage.session.decisions.accept(hunk.id)
        await stage.until(lambda: "done" in rail(stage, "fresh.py"), "decided")
        (root / "util.py").write_text("a = 9\nb = 2\n")
        await stage.session.external.refresh()
        await stage.until(lambda: "1 conflict" in rail(stage, "util.py"), "conflict")
        assert "1 waits" in rail(stage, "run.py")
        assert rail(stage, "fresh.py").index("+") == rail(stage, "run.py").index("+")


async def test_the_rail_says_writing_once_text_comes(project: Path) -> None:
    async with on_stage(project, size=(150, 40)) as stage:
        await stage.open("pkg/things.py")
        stage.pane.go_to(7)
        await stage.instruct("say more")
        await stage.until(lambda: stage.session.status.state == "waiting", "reading")
        await stage.pilot.pause(0.2)
        assert "writing" not in rail(stage, "things.py")
        await stage.stream(stage.model.region.splitlines(keepends=True)[0])
        await stage.until(lambda: "writing" in rail(stage, "things.py"), "writing")
        stage.model.end()


async def test_one_key_accepts_all_files_but_what_is_risky(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second press accepts unread hunks; none accepts risky ones."""
    monkeypatch.setattr(navigate, "ARRIVAL_S", 0.0)  # The screen has just moved by itself.
    monkeypatch.setattr(attention, "MAX_STEP_S", 0.0)  # However long it is shown: unread.
    async with answered(root, attention=True) as stage:
        await stage.press("alt+a")
        await stage.until(lambda: "alt+a again accepts" in stage.notice, "a question")
        assert "1 hunk to decide one by one (is about running programs)" in stage.notice
        await stage.press("alt+a")
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 1, "accepted")
        await stage.until(lambda: "accepted and written" in stage.notice, "word")
        assert on_disk(root) == {
            "run.py": "step = 2\nlast = 2\n",
            "util.py": FILES["util.py"],
            "fresh.py": "fresh = 1\n",
        }
        await stage.press("u")
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 4, "undone in one step")
        await stage.until(lambda: on_disk(root) == FILES, "on disk")


async def test_one_key_rejects_all_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(navigate, "ARRIVAL_S", 0.0)
    async with answered(root, attention=False) as stage:
        await stage.press("alt+r")
        await stage.until(lambda: not stage.session.hunks.undecided(), "rejected")
        await stage.until(lambda: "4 hunks rejected" in stage.notice, "word")
        assert on_disk(root) == FILES
