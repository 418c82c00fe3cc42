"""Fixtures of the pairing room."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from midstream.pairing.files import put_backs
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace.files import Workspace
from tests.helpers.pairing import make_repo
from tests.helpers.rewriting import BEFORE
from tests.helpers.stepped import SteppedModel, served


@pytest.fixture
def root(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder with one long function in ``run.py``.

    A module that needs other files names them in ``FILES``; those in ``COMMITTED`` are in a git
    repository with one commit.
    """
    root = tmp_path / "work"
    if committed := getattr(request.module, "COMMITTED", None):
        return make_repo(root, committed)
    root.mkdir()
    for name, text in getattr(request.module, "FILES", {"run.py": BEFORE}).items():
        (root / name).write_text(text)
    return root


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace(root)


@pytest.fixture
def quiet_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program is done as soon as it has written."""
    monkeypatch.setattr(put_backs, "QUIET_S", 0.0)


@pytest.fixture
def settings() -> Settings:
    return Settings()


@pytest.fixture
def model() -> SteppedModel:
    return SteppedModel()


@pytest.fixture
async def endpoint(model: SteppedModel) -> AsyncIterator[Endpoint]:
    model.forget()  # All cases of a parametrized test share one model.
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
