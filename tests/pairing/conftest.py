"""Fixtures of the pairing room."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pairing_support import SteppedModel, served

from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("MIDSTREAM_STATE_DIR", str(folder))
    return folder


@pytest.fixture
def settings() -> Settings:
    return Settings()


@pytest.fixture
def model() -> SteppedModel:
    return SteppedModel()


@pytest.fixture
async def endpoint(model: SteppedModel) -> AsyncIterator[Endpoint]:
    async with served(model) as endpoint:
        yield endpoint


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long runs of this room are made on demand: ``pytest -m slow tests/pairing``."""
    if "slow" in config.option.markexpr:
        return
    skip = pytest.mark.skip(reason="slow; run with -m slow")
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("slow"):
            item.add_marker(skip)
