"""The application on a real local Ray: sticky connections, and load brings more replicas."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from midstream.errors import UnavailableError
from midstream.responses.client import Client
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import Finished
from midstream.serving import cluster as cluster_module
from midstream.serving.cluster import ClusterOptions, cluster
from midstream.serving.source import ModelSource
from tests.helpers.wire import TOKEN, eventually, peer

pytestmark = pytest.mark.system

AUTH = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.json"
    path.write_text(json.dumps([{"match": "", "text": "word " * 60, "rate": 200}]))
    return path


def test_without_ray_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UnavailableError, match=r"pip install 'midstream\[ray\]'"):
        cluster_module.application(ClusterOptions(ModelSource()))


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_two_replicas_serve_connections_that_stay_where_they_are(script: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'midstream[ray]'")
    from ray import serve  # pyright: ignore[reportMissingImports]

    def replicas() -> int:
        deployment = serve.status().applications["midstream"].deployments["midstream"]
        return dict(deployment.replica_states).get("RUNNING", 0)  # type: ignore[arg-type]

    options = ClusterOptions(
        ModelSource(replay=script),
        token=TOKEN,
        port=0,
        max_replicas=2,
        connections_per_replica=2,
        cpus=0.25,
    )
    async with cluster(options) as port, AsyncExitStack() as stack:
        for headers, status in (({}, 401), (AUTH | {"Origin": "https://evil.example"}, 403)):
            with pytest.raises(InvalidStatus) as refused:
                async with peer(port, None, headers=headers):
                    pass
            assert refused.value.response.status_code == status
        assert replicas() == 1
        early = [await stack.enter_async_context(peer(port)) for _ in range(6)]

        async def two() -> bool:
            return replicas() == 2

        await eventually(two, 90)
        late = [await stack.enter_async_context(peer(port)) for _ in range(6)]

        async def chain(client: Any) -> None:
            """Go on three times from a response that only this connection's replica holds."""
            previous = None
            for _ in range(3):
                fields = {"previous_response_id": previous} if previous else {}
                await client.create("go", store=False, **fields)
                ended = await client.terminal()
                assert ended["type"] == "response.completed"
                previous = ended["response"]["id"]

        await asyncio.gather(*(chain(client) for client in (*early, *late)))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=AUTH) as http:
            assert (await http.get("/healthz")).json() == {"status": "ok"}


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_the_command_serves_on_ray_and_ends_in_order(script: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'midstream[ray]'")
    token = tmp_path / "token"
    token.write_text(TOKEN)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "midstream", "serve", "--ray", "--port", "0", "--replay", script,
        "--token-file", token, "--replica-cpus", "0.25", "--json",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        told = json.loads(await asyncio.wait_for(process.stdout.readline(), 120))
        client = Client(Endpoint(told["url"], TOKEN, "replay", "local"))
        stream = await client.create(messages=[("user", "go")])
        ends = [event async for event in stream if isinstance(event, Finished)]
        assert ends[0].text == "word " * 60
        began = time.perf_counter()
        stream = await client.create(messages=[("user", "go")])
        await anext(stream)
        await stream.interrupt()
        ends = [event async for event in stream if isinstance(event, Finished)]
        assert ends[0].reason == "interrupted"
        assert time.perf_counter() - began < 5
        process.send_signal(signal.SIGTERM)
        await client.close()
        assert await asyncio.wait_for(process.wait(), 60) == 0
    finally:
        if process.returncode is None:
            process.kill()
