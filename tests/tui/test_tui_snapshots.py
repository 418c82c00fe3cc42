"""Pictures of the screens, compared with the ones that were looked at and found good.

``pytest tests/tui/test_tui_snapshots.py --snapshot-update`` takes new ones; look at them before you
keep them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from midstream.edits.hunks import HunkState
from midstream.pairing.activity import Activity
from midstream.settings import Settings
from midstream.tui.app import MidstreamApp
from midstream.tui.review import status
from midstream.tui.widgets.status_row import StatusFacts
from tests.helpers.stage import CODE, shown

pytestmark = pytest.mark.system

WIDE, SMALL = (160, 48), (80, 24)
FACTS = StatusFacts(
    model="built-in",
    doing=Activity.READY,
    history=(400.0, 900.0, 1300.0, 1250.0, 1100.0),
    ttft_s=0.021,
    tokens=212,
    branch="main",
    dirty=2,
    watching="native",
)
Step = Callable[[Pilot[None]], Awaitable[None]]


@pytest.fixture(autouse=True)
def fixed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fix the facts that differ from run to run: rates, times, the place of the folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(status, "status_facts", lambda state: FACTS)


def app_on(root: Path, theme: str, **settings: object) -> MidstreamApp:
    script = root.parent / "script.json"
    script.write_text(json.dumps([{"match": "", "edit": [["total", "found"]]}]))
    options = Settings(theme=theme, journal=False, **settings)  # type: ignore[arg-type]
    return MidstreamApp(root, options, replay=script, open_file="pkg/things.py")


async def opened(pilot: Pilot[None]) -> MidstreamApp:
    app = pilot.app
    assert isinstance(app, MidstreamApp)
    await shown(
        pilot,
        lambda: (
            app.session is not None
            and app.session.status.state == "ready"
            and app.review.state.path
            and app.review.state.files
        ),
    )
    await pilot.press("escape")
    return app


async def decided(pilot: Pilot[None]) -> None:
    """Three hunks: accepted, rejected, and one under the cursor."""
    app = await opened(pilot)
    review = app.review
    review.panes.pane.go_to(7)
    review.panes.composer.put("rename total to found")
    review.steer.send()
    session = app.session
    assert session is not None

    def states() -> set[HunkState]:
        return {hunk.state for hunk in session.hunks}

    await shown(pilot, lambda: session.turns.last is not None and not session.turns.last.running)
    await pilot.press("g", "right_square_bracket", "a")
    await shown(pilot, lambda: HunkState.ACCEPTED in states())
    await pilot.press("r")
    await shown(pilot, lambda: HunkState.REJECTED in states())
    review.notices.clear()
    await shown(pilot)


async def helped(pilot: Pilot[None]) -> None:
    await opened(pilot)
    await pilot.press("question_mark")
    await shown(pilot)


async def picking(pilot: Pilot[None]) -> None:
    await opened(pilot)
    await pilot.press("colon")
    await shown(pilot)


async def aiming(pilot: Pilot[None]) -> None:
    await opened(pilot)
    await pilot.press("j", "j", "j", "j", "j", "j", "v", "j", "j", "i")
    await shown(pilot)


@pytest.mark.parametrize("size", [WIDE, SMALL], ids=["wide", "small"])
@pytest.mark.parametrize("theme", ["midnight", "paper"])
def test_review(snap_compare, project: Path, theme: str, size: tuple[int, int]) -> None:
    assert snap_compare(app_on(project, theme), terminal_size=size, run_before=decided)


@pytest.mark.parametrize("step", [helped, picking, aiming], ids=["help", "palette", "aim"])
def test_screens(snap_compare, project: Path, step: Step) -> None:
    assert snap_compare(app_on(project, "midnight"), terminal_size=(120, 40), run_before=step)


def test_split(snap_compare, project: Path) -> None:
    app = app_on(project, "midnight", layout="split")
    assert snap_compare(app, terminal_size=WIDE, run_before=decided)


def test_ascii(snap_compare, project: Path) -> None:
    app = app_on(project, "contrast", ascii=True)
    assert snap_compare(app, terminal_size=SMALL, run_before=decided)


def test_code_is_what_the_pictures_show() -> None:
    assert CODE.count("total") == 4
