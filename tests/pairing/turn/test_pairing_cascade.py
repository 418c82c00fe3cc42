"""What a session tells of two models behind one name: who answered, is waited for, or cannot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("onnx")

from midstream.engine.cascade import Cascade
from midstream.engine.folder import ModelFolderError, Takeover, read_folder
from midstream.engine.model import OnnxModel
from midstream.pairing.journal.journal import Replay
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.plain import lines
from midstream.resources import models_dir
from midstream.settings import Settings
from midstream.tui.review.status import status_facts
from tests.helpers.cascades import Loaded
from tests.helpers.pairing import Witness
from tests.helpers.scripts import REGION, folder_of
from tests.helpers.stepped import served

BROOK = models_dir() / "brook-4m"
NEVER = Takeover("brook-4m", 1.01, 1.01)
SURE = Takeover("brook-4m", 0.0, 0.0)

pytestmark = pytest.mark.skipif(not BROOK.is_dir(), reason="no model has been exported yet")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "cart.py").write_text(f"class Cart:\n{REGION}")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory.mktemp("script"))


@asynccontextmanager
async def opened(
    root: Path, folder: Path, takeover: Takeover, *, at_once: bool = True
) -> AsyncIterator[tuple[PairingSession, Cascade, OnnxModel]]:
    first, second = (OnnxModel(read_folder(path), threads=1) for path in (BROOK, folder))
    cascade = Cascade(first, Loaded(second, at_once=at_once), takeover)
    async with (
        served(cascade) as endpoint,
        await PairingSession.open(
            root, settings=Settings(), endpoint=endpoint, watch=False
        ) as session,
    ):
        yield session, cascade, second


async def ask(session: PairingSession) -> None:
    await session.turns.instruct(
        Question("rename `result` to `amount`", path="cart.py", selection=(1, 7))
    )


@pytest.mark.parametrize(("takeover", "name"), [(SURE, "brook-4m"), (NEVER, "tiny-script")])
async def test_who_answered_is_on_the_screen_and_in_the_journal(
    root: Path, folder: Path, takeover: Takeover, name: str
) -> None:
    async with opened(root, folder, takeover) as (session, _, _):
        assert status_facts(session, "cart.py").model in ("", "tiny-script")
        await ask(session)
        await session.turns.finished()
        turn = session.turns.last
        assert turn is not None
        assert turn.answered_by == name
        assert session.server.model_name == "tiny-script"
        assert status_facts(session, "cart.py").model == name
        assert f" of {name}; " in lines.ended(turn, 1)
        place = session.journal.path
    assert place is not None
    assert Replay.read(place).turns[-1].answered_by == name


async def test_a_model_that_is_still_loaded_is_told_and_a_stop_keeps_nothing(
    root: Path, folder: Path
) -> None:
    async with opened(root, folder, NEVER, at_once=False) as (session, cascade, second):
        sentence = "tiny-script is still loading and will answer when it is ready."
        witness = Witness(session)
        for stops in (True, False):
            await ask(session)
            await witness.until(lambda: sentence in [n.text for n in session.status.notices])
            session.status.notices.clear()
            if stops:
                await session.turns.stop()
                await session.turns.finished()
                assert not session.hunks.undecided()
        cascade.second.loaded.set_result(second)
        await session.turns.finished()
        assert session.turns.last is not None
        assert session.turns.last.answered_by == "tiny-script"


async def test_a_model_that_cannot_be_loaded_is_told(root: Path, folder: Path) -> None:
    async with opened(root, folder, NEVER, at_once=False) as (session, cascade, second):
        cascade.second.loaded.set_exception(ModelFolderError("Its file is damaged."))
        await ask(session)
        await session.turns.finished()
        told = [notice.text for notice in session.status.notices]
        assert "brook-4m answers alone: Its file is damaged." in told
        assert any(sentence.startswith("brook-4m is unsure about this one") for sentence in told)
        await asyncio.to_thread(second.close)
