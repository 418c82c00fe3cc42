"""Fixtures of the screen's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tui_support import CODE, Stage, on_stage


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with one Python file and some others."""
    root = tmp_path / "project"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg" / "things.py").write_text(CODE)
    (root / "notes.md").write_text("# Notes\n")
    return root


@pytest.fixture
async def stage(project: Path) -> AsyncIterator[Stage]:
    async with on_stage(project) as stage:
        yield stage
