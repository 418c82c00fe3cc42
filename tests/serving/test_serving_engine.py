"""The whole wire with a real model: child process, ONNX Runtime session, random weights."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from test_serving_embedded import gone

from midstream.edits.request import RegionRequest, render_follow_up, render_request
from midstream.responses.client import Client
from midstream.responses.events import Delta, Failed, Finished
from midstream.responses.stream import Stream
from midstream.serving.embedded import EmbeddedServer
from midstream.serving.source import ModelSource
from tests.helpers.folders import SAMPLE, write_folder
from tests.helpers.waiting import PATIENCE_S

REGION = render_request(RegionRequest(instruction="rename total to amount", region=SAMPLE))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "tiny"
    write_folder(path)
    return path


@asynccontextmanager
async def embedded(folder: Path, state: Path) -> AsyncGenerator[Client]:
    server = EmbeddedServer(ModelSource(folder=folder, threads=1), state_dir=state)
    client = Client(await server.start())
    try:
        yield client
    finally:
        await client.close()
        await server.close()
        assert server.log_path is not None
        assert server.log_path.read_text() == ""


async def read(stream: Stream, *, stop_after: int | None = None) -> tuple[str, Finished | Failed]:
    text, end = "", None
    async for event in stream:
        if isinstance(event, Delta):
            assert not stream.interrupted
            text += event.text
            if stop_after is not None and len(text) >= stop_after:
                await stream.interrupt()
        elif isinstance(event, Finished | Failed):
            end = event
    assert end is not None
    return text, end


@pytest.mark.system
async def test_a_region_is_rewritten_stopped_and_redirected(folder: Path, tmp_path: Path) -> None:
    async with embedded(folder, tmp_path) as client:
        await client.connect()
        warm = await client.read_ahead(messages=[("user", REGION)])
        _, end = await read(warm)
        assert isinstance(end, Finished)
        prompt = end.usage.input_tokens
        assert prompt > 0
        assert end.usage.output_tokens == 0

        whole, end = await read(await client.create(messages=[("user", REGION)]))
        assert isinstance(end, Finished)
        assert end.usage.cached_tokens >= 0.9 * prompt, "the warm-up filled the cache"
        assert end.usage.output_tokens > 0
        assert end.metadata["midstream.provider"] == "cpu"

        again, _ = await read(await client.create(messages=[("user", REGION)]))
        assert again == whole, "greedy"

        text, end = await read(await client.create(messages=[("user", REGION)]), stop_after=1)
        assert isinstance(end, Finished)
        assert end.reason in ("interrupted", None)
        assert whole.startswith(text)

        kept = text[: text.rfind("\n") + 1]
        redirected = await client.create(
            messages=[
                ("user", REGION),
                ("assistant", kept),
                ("user", render_follow_up("add a docstring")),
            ]
        )
        _, end = await read(redirected)
        assert isinstance(end, Finished)


async def test_what_the_model_cannot_do_is_its_own_sentence(folder: Path, tmp_path: Path) -> None:
    async with embedded(folder, tmp_path) as client:
        _, end = await read(await client.create(messages=[("user", "write me a poem")]))
        assert isinstance(end, Failed)
        assert end.code == "invalid_prompt"
        assert "region" in end.message
        _, end = await read(await client.create(messages=[("user", REGION)]))
        assert isinstance(end, Finished)


_PARENT = """
import asyncio, sys
from pathlib import Path
from midstream.serving.embedded import EmbeddedServer
from midstream.serving.source import ModelSource

async def main():
    server = EmbeddedServer(ModelSource(folder=Path(sys.argv[1])), state_dir=Path(sys.argv[2]))
    starting = asyncio.create_task(server.start())
    while server.process is None:
        await asyncio.sleep(0.001)
    print(server.process.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("after", [0.0, 0.1, 0.4])
def test_it_ends_with_its_parent_while_it_loads(folder: Path, tmp_path: Path, after: float) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(folder), str(tmp_path)], stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(after)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + PATIENCE_S
    while not gone(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert gone(child)


def damaged_copy(folder: Path, broken: Path) -> Path:
    shutil.copytree(folder, broken)
    (broken / "model.onnx").write_bytes(b"damaged")
    return broken


async def test_a_damaged_graph_is_named(folder: Path, tmp_path: Path) -> None:
    broken = damaged_copy(folder, tmp_path / "broken")
    server = EmbeddedServer(ModelSource(folder=broken), state_dir=tmp_path)
    with pytest.raises(Exception, match=r"\.onnx") as caught:
        await server.start()
    assert "\n" not in str(caught.value)


@pytest.mark.system
async def test_the_next_server_need_not_read_a_conversation_again(tmp_path: Path) -> None:
    write_folder(tmp_path / "chat", prompt="chat", context=2048)
    source = ModelSource(folder=tmp_path / "chat", threads=1, cache_mb=64)
    found: list[int] = []
    for _ in range(2):
        server = EmbeddedServer(source, state_dir=tmp_path)
        client = Client(await server.start())
        asked = await client.create(messages=[("user", SAMPLE * 4)], max_output_tokens=4)
        _, end = await read(asked)
        assert isinstance(end, Finished)
        found.append(end.usage.cached_tokens)
        await client.close()
        await server.close()
    assert found[0] == 0
    assert found[1] > 256
