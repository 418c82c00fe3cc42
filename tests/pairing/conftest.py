"""Fixtures of the pairing room."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pairing_support import SteppedModel, served

from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings


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
