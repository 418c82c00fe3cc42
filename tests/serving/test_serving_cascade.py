"""Two models behind one name, over the wire: who answered, what is waited for, stops, redirects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("onnx")

from test_serving_sdk import validate

from midstream.edits.request import render_follow_up
from midstream.engine.cascade import Cascade
from midstream.engine.folder import Takeover, read_folder
from midstream.engine.model import OnnxModel
from midstream.engine.types import GenerateRequest
from midstream.resources import models_dir
from tests.helpers.cascades import Loaded
from tests.helpers.scripts import asked, folder_of
from tests.helpers.wire import Peer, peer, running

BROOK = models_dir() / "brook-4m"
RENAME = asked("rename `result` to `amount`")

pytestmark = pytest.mark.skipif(not BROOK.is_dir(), reason="no model has been exported yet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory.mktemp("script"))


@pytest.fixture(params=[0.0, 1.01], ids=["first", "larger"])
def cascade(folder: Path, request: pytest.FixtureRequest) -> Cascade:
    """A pair; the server closes it."""
    first, second = (OnnxModel(read_folder(path), threads=1) for path in (BROOK, folder))
    threshold: float = request.param
    return Cascade(first, Loaded(second), Takeover("brook-4m", threshold, threshold))


def text_of(model: OnnxModel | Cascade, request: GenerateRequest) -> str:
    return "".join(piece.text for piece in model.start(request))


@asynccontextmanager
async def talking(cascade: Cascade) -> AsyncGenerator[Peer]:
    async with running({"replay": cascade}) as port, peer(port) as client:
        yield client


async def test_who_answers_is_said_before_the_text_and_at_the_end(cascade: Cascade) -> None:
    whole = text_of(cascade, RENAME)
    name = "brook-4m" if cascade.threshold == 0 else "tiny-script"
    async with talking(cascade) as client:
        await client.create(RENAME.messages[0].text)
        end = await client.terminal()
        assert client.text() == whole
        assert end["response"]["metadata"]["midstream.answered_by"] == name
        assert end["response"]["metadata"]["midstream.first_model"] == "brook-4m"
        kinds = [event["type"] for event in client.seen]
        told = next(
            at
            for at, event in enumerate(client.seen)
            if "midstream.answered_by" in event.get("response", {}).get("metadata", {})
        )
        assert told < kinds.index("response.output_text.delta")
        confident = "midstream.confidence_threshold" in end["response"]["metadata"]
        assert confident == (name == "brook-4m")
        validate(client.seen)


async def test_a_stop_while_nothing_is_shown_keeps_nothing(cascade: Cascade) -> None:
    whole = text_of(cascade, RENAME)
    async with talking(cascade) as client:
        await client.create(RENAME.messages[0].text)
        created = await client.until("response.created")
        await client.send(
            type="response.interrupt",
            response_id=created["response"]["id"],
            mode="keep_partial_items",
        )
        end = await client.terminal()
        assert whole.startswith(client.text())
        assert end["type"] in ("response.incomplete", "response.completed")
        client.seen.clear()
        await client.create(RENAME.messages[0].text)
        await client.terminal()
        assert client.text() == whole


async def test_what_waits_for_the_larger_model_says_so_and_can_be_stopped(
    folder: Path, cascade: Cascade
) -> None:
    loaded = cascade.second.loaded.result()
    waiting = Cascade(
        cascade.first, Loaded(loaded, at_once=False), Takeover("brook-4m", 1.01, 1.01)
    )
    async with talking(waiting) as client:
        for stop in (True, False):
            client.seen.clear()
            await client.create(RENAME.messages[0].text)
            event = await client.until("response.in_progress")
            while event["response"]["metadata"].get("midstream.waits_for") != "tiny-script":
                event = await client.until("response.in_progress")
            if stop:
                await client.send(
                    type="response.interrupt",
                    response_id=event["response"]["id"],
                    mode="discard_partial_items",
                )
            else:
                waiting.second.loaded.set_result(loaded)
            end = await client.terminal()
            assert end["type"] == ("response.incomplete" if stop else "response.completed")
            assert "midstream.waits_for" not in end["response"]["metadata"]


async def test_a_redirect_goes_on_with_the_same_model(cascade: Cascade) -> None:
    lines = text_of(cascade, RENAME).splitlines(keepends=True)
    async with talking(cascade) as client:
        names: list[str] = []
        for content in (
            [("user", RENAME.messages[0].text)],
            [
                ("user", RENAME.messages[0].text),
                ("assistant", "".join(lines[:2])),
                ("user", render_follow_up("rename `item` to `entry`")),
            ],
        ):
            messages = [{"type": "message", "role": r, "content": c} for r, c in content]
            await client.create(messages)
            end = await client.terminal()
            names.append(end["response"]["metadata"]["midstream.answered_by"])
        assert len(set(names)) == 1


async def test_two_clients_at_once_get_whole_answers(cascade: Cascade) -> None:
    other = asked("rename `item` to `entry`")
    wholes = {request: text_of(cascade, request) for request in (RENAME, other)}
    async with running({"replay": cascade}) as port:

        async def ask(request: GenerateRequest) -> None:
            async with peer(port) as client:
                for ahead in (True, False, False):
                    client.seen.clear()
                    fields = {"generate": False} if ahead else {}
                    await client.create(request.messages[0].text, **fields)
                    await client.terminal()
                    assert client.text() == ("" if ahead else wholes[request])

        await asyncio.gather(*(ask(request) for request in (RENAME, other) * 2))
