"""What every test gets: its own state and configuration, never those of the person who runs it."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder of the test; there is no configuration file."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("MIDSTREAM_STATE_DIR", str(folder))
    monkeypatch.setenv("MIDSTREAM_CONFIG", str(folder / "config.toml"))
    return folder
