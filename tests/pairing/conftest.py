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
