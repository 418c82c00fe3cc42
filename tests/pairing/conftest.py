"""Fixtures of the pairing room."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.rewriting import BEFORE
from tests.helpers.stepped import SteppedModel, served


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one long function; modules that need other files have their own."""
    root = tmp_path / "work"
    root.mkdir()
    (root / "run.py").write_text(BEFORE)
    return root


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


@pytest.fixture
async def session(
    root: Path, settings: Settings, endpoint: Endpoint
) -> AsyncIterator[PairingSession]:
    """A session on the ``root`` of the test's module."""
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as opened:
        yield opened
