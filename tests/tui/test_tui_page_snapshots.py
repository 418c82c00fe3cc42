"""Pictures of the pages, in two sizes and two themes.

``pytest tests/tui/test_tui_page_snapshots.py --snapshot-update`` takes new ones; look at them
before you keep them.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from midstream.edits.documents import SourceText
from midstream.pairing.activity import Activity
from midstream.pairing.files.commit import (
    AcceptedChanges,
    Changes,
    Comparison,
    FileChange,
    OtherChange,
)
from midstream.pairing.files.staged import Standing
from midstream.pairing.journal.journal import SessionSummary
from midstream.pairing.models import choosing
from midstream.pairing.models.choosing import ModelChoice
from midstream.responses.profiles import Price
from midstream.settings import SETTINGS, Settings
from midstream.tui.app import MidstreamApp
from midstream.tui.pages import models, sessions, settings
from midstream.tui.telemetry import figures
from midstream.workspace.journal import SessionInfo
from midstream.workspace.staging import BlobChange, IndexState
from tests.helpers.folders import write_folder
from tests.helpers.stage import CODE, shown

pytestmark = pytest.mark.system

WIDE, SMALL = (160, 48), (80, 24)
Step = Callable[[Pilot[None]], Awaitable[None]]
DAY = 86_400.0
CONFIG = """\
layout = "auto"

[model]
pace = 40

[endpoints.openai]
kind = "openai"
model = "deep-5"
price_in = 1.25
price_out = 10
context = 400000
"""
SHOWN = ("theme", "layout", "ascii", "keys", "key_binds", "model", "threads", "pace", "guard")
CHOICES = [
    ModelChoice(
        "built-in:/models/river-391m",
        "built-in",
        "Edits functions in six languages",
        "built-in",
        "folder",
        "/models/river-391m",
        8192,
        Price(0, 0, 0),
        "region",
        ("auto", "low", "medium", "high", "xhigh"),
        ("python", "javascript", "typescript", "go", "rust", "java"),
        size=261_000_000,
    ),
    ModelChoice(
        "endpoint:openai",
        "deep-5",
        "",
        "openai",
        "openai",
        "wss://api.openai.com/v1",
        400_000,
        Price(1.25, 10, 0.125),
        "v4a",
        ("auto", "low", "high"),
        key="missing",
        key_name="OPENAI_API_KEY",
    ),
    ModelChoice(
        "endpoint:desk", "qwen", "", "desk", "custom", "http://127.0.0.1:8080/v1", efforts=("auto",)
    ),
]
INFOS = [
    SessionInfo(
        Path(f"{n}.jsonl"), 1_700_000_000.0 - n * DAY, 1_700_000_900.0 - n * DAY, size, live
    )
    for n, (size, live) in enumerate([(48_000, False), (9_000, True), (1_200, False)])
]
SUMMARIES = {
    "0.jsonl": SessionSummary(
        ("rename total to found", "raise a ValueError if items is empty"),
        ("pkg/things.py",),
        4,
        1,
        2,
        outcomes=((3, 1, 0), (1, 0, 2)),
    ),
    "1.jsonl": SessionSummary(
        ("add a parameter limit",), ("pkg/things.py",), 1, 0, 0, outcomes=((1, 0, 0),)
    ),
    "2.jsonl": SessionSummary(trouble="The last session cannot be resumed: it is damaged."),
}

MEASURED = figures.Measured(
    model="built-in",
    doing=Activity.READY,
    mean=1234.0,
    history=(400.0, 900.0, 1300.0, 1250.0, 1100.0),
    ttft_s=0.021,
    request_s=0.006,
    tokens=212,
    session_tokens=640,
)
OVERDUE = BlobChange(b"a\nb\nc\n", b"".join(b"%d\n" % n for n in range(14)))


def changed(path: str, state: IndexState, blobs: BlobChange, **facts: Any) -> FileChange:
    nothing = SourceText.from_text("")
    compared = Comparison(blobs, (nothing, nothing))
    return FileChange(path, state, compared, compared.diff(), **facts)


CHANGES = Changes(
    (
        changed(
            "pkg/things.py",
            IndexState.STAGED,
            BlobChange(CODE.encode(), CODE.replace("total", "found", 2).encode()),
            undecided=1,
        ),
        changed("pkg/invoices/overdue.py", IndexState.UNSTAGED, OVERDUE),
        changed(
            "pkg/auth.py",
            IndexState.CONFLICT,
            BlobChange(b"a\n", b"b\n"),
            trouble="It does not fit.",
        ),
    ),
    (OtherChange("notes.md", "notes.md", Standing.YOURS),),
    "main",
)


@pytest.fixture(autouse=True)
def fixed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: Path) -> None:
    """Fix the facts that differ from run to run and from machine to machine."""

    async def look(self: AcceptedChanges, *, amend: bool = False) -> Changes:
        return CHANGES

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("MIDSTREAM_CONFIG", str(tmp_path / ".config" / "config.toml"))
    monkeypatch.setattr(models, "model_choices", lambda *_: CHOICES)
    monkeypatch.setattr(models, "chosen_id", lambda settings: CHOICES[0].id)
    monkeypatch.setattr(AcceptedChanges, "look", look)
    # The pictures are of the page, not of how many settings there are by now.
    monkeypatch.setattr(settings, "SETTINGS", [s for s in SETTINGS if s.name in SHOWN])
    monkeypatch.setattr(choosing, "sensitive_part", lambda path: "")
    monkeypatch.setattr(sessions, "earlier_sessions", lambda root: INFOS)
    monkeypatch.setattr(sessions, "summarize", lambda path: SUMMARIES[path.name])
    time.tzset()
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config" / "config.toml").write_text(CONFIG)


def app_on(root: Path, theme: str, **options: object) -> MidstreamApp:
    # No server is needed, so none is started: nobody listens at this address.
    chosen = Settings(
        theme=theme,
        journal=False,
        attention=False,
        endpoint_url="http://127.0.0.1:1/v1",
        **options,  # type: ignore[arg-type]
    )
    return MidstreamApp(root, chosen)


async def on_page(pilot: Pilot[None], key: str, ready: Callable[[Any], object]) -> None:
    app = pilot.app
    assert isinstance(app, MidstreamApp)
    await shown(pilot, lambda: app.session is not None)
    await pilot.press("escape", key)
    await shown(pilot, lambda: app.screen is not app.review and ready(app.screen))


async def committing(pilot: Pilot[None]) -> None:
    await on_page(pilot, "C", lambda screen: screen.changes)
    await pilot.press(*"Say found for total", "enter", "enter")
    await shown(pilot)


async def listing(pilot: Pilot[None]) -> None:
    await on_page(pilot, "H", lambda screen: len(screen.summaries) == 3)


async def setting(pilot: Pilot[None]) -> None:
    await on_page(pilot, "comma", lambda screen: screen.resolved)
    await pilot.press("j")
    await shown(pilot)


async def choosing_model(pilot: Pilot[None]) -> None:
    await on_page(pilot, "M", lambda screen: screen.read)
    await pilot.press("j")
    await shown(pilot)


async def telling_rates(pilot: Pilot[None]) -> None:
    await on_page(pilot, "W", lambda screen: screen.simulation.result)


@pytest.mark.parametrize(("theme", "size"), [("midnight", WIDE), ("paper", SMALL)])
def test_telemetry(
    snap_compare,
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    theme: str,
    size: tuple[int, int],
) -> None:
    monkeypatch.setattr(figures.Measured, "of", lambda session: MEASURED)
    write_folder(tmp_path / "small-4m", prompt="chat", width=256, layers=12, hidden=512)
    app = app_on(project, theme)
    # So that the model of the built-in server is simulated.
    app.settings = replace(app.settings, endpoint_url=None, model=tmp_path / "small-4m")
    assert snap_compare(app, terminal_size=size, run_before=telling_rates)


@pytest.mark.parametrize("size", [WIDE, SMALL], ids=["wide", "small"])
@pytest.mark.parametrize("theme", ["midnight", "paper"])
@pytest.mark.parametrize(
    "step",
    [committing, listing, setting, choosing_model],
    ids=["commit", "sessions", "settings", "models"],
)
def test_pages(snap_compare, project: Path, step: Step, theme: str, size: tuple[int, int]) -> None:
    assert snap_compare(app_on(project, theme), terminal_size=size, run_before=step)


def test_ascii(snap_compare, project: Path) -> None:
    app = app_on(project, "contrast", ascii=True)
    assert snap_compare(app, terminal_size=SMALL, run_before=setting)
