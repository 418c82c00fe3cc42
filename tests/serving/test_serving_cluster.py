"""The application on a real local Ray: sticky connections, and load brings more replicas."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import time
from contextlib import AsyncExitStack
from importlib.util import find_spec
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


def needs_ray() -> None:
    """Skip the test without Ray; does not import it, because it reads the environment then."""
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'midstream[ray]'")


def test_without_ray_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UnavailableError, match=r"pip install 'midstream\[ray\]'"):
        cluster_module.application(ClusterOptions(ModelSource()))


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_two_replicas_serve_connections_that_stay_where_they_are(script: Path) -> None:
    needs_ray()

    def replicas() -> int:
        from ray import serve  # pyright: ignore[reportMissingImports]

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
async def test_what_one_replica_stores_any_of_them_finds(tmp_path: Path) -> None:
    needs_ray()
    script = tmp_path / "script.json"
    entries = [
        {"match": "long", "text": "word " * 100_000, "rate": 100},
        {"match": "", "text": "alpha beta"},
    ]
    script.write_text(json.dumps(entries))
    options = ClusterOptions(
        ModelSource(replay=script), token=TOKEN, port=0, min_replicas=2, max_replicas=2, cpus=0.25
    )
    async with cluster(options) as port:
        base = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=base, headers=AUTH, timeout=60) as http:

            async def post(**fields: Any) -> dict[str, Any]:
                answer = await http.post("/v1/responses", json={"model": "replay", **fields})
                assert answer.status_code == 200, answer.text
                return answer.json()

            async def counts() -> dict[str, int]:
                """Ended responses by replica."""
                text = (await http.get("/metrics")).text
                assert text.count("# TYPE midstream_responses_total counter") == 1
                found: dict[str, int] = {}
                for line in text.splitlines():
                    if line.startswith("midstream_responses_total{"):
                        name = line.partition('replica="')[2].partition('"')[0]
                        found[name] = found.get(name, 0) + int(line.rpartition(" ")[2])
                return found

            made = [await post(input=str(number)) for number in range(12)]
            found = [
                (await http.get(f"/v1/responses/{each['id']}")).json()
                for each in made
                for _ in range(4)
            ]
            assert found == [each for each in made for _ in range(4)]
            last = made[-1]
            for _ in range(12):
                last = await post(input="on", previous_response_id=last["id"])

            async def all_counted() -> bool:
                return sum((await counts()).values()) == 24

            await eventually(all_counted)
            assert len(await counts()) == 2, "both replicas have answered, and each shows both"

            running = [await post(input="long", background=True) for _ in range(6)]
            for each in running:
                place = f"/v1/responses/{each['id']}"
                assert (await http.get(place)).json()["status"] in ("queued", "in_progress")
                assert (await http.get(f"{place}/input_items")).json()["data"]
                ended = (await http.post(f"{place}/cancel")).json()
                assert ended["status"] == "cancelled", ended
                assert (await http.delete(place)).json()["deleted"] is True
            for each in (*running, *made):
                if each in made:
                    await http.delete(f"/v1/responses/{each['id']}")
                for _ in range(3):
                    gone = await http.get(f"/v1/responses/{each['id']}")
                    assert gone.status_code == 404
                    assert "was deleted" in gone.json()["error"]["message"]


def listening(pids: set[int]) -> dict[int, str]:
    """Ports on which these processes listen, with the address as Linux writes it."""
    inodes: set[str] = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                inodes.add(str(descriptor.readlink()))
    found: dict[int, str] = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            address, _, port = fields[1].rpartition(":")
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                found[int(port, 16)] = address
    return found


def descendants(pid: int) -> set[int]:
    """A process and all that it has started."""
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


async def check_ports(pid: int) -> None:
    """No port of a Ray that was started for a server can be used without its token."""
    import grpc  # pyright: ignore[reportMissingModuleSource]

    ports = await asyncio.to_thread(lambda: listening(descendants(pid)))
    assert ports
    loopback = ("0100007F", "0000000000000000FFFF00000100007F", "0" * 24 + "01000000")
    for number, address in ports.items():
        if address in loopback:
            continue
        with grpc.insecure_channel(f"127.0.0.1:{number}") as channel:  # Between replicas.
            call = channel.unary_unary("/ray.serve.ASGIService/HandleRequest")
            with pytest.raises(grpc.RpcError) as refused:
                await asyncio.to_thread(call, b"", timeout=30)
            assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_the_command_serves_on_ray_and_ends_in_order(script: Path, tmp_path: Path) -> None:
    needs_ray()
    token = tmp_path / "token"
    token.write_text(TOKEN)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "midstream", "serve", "--ray", "--port", "0", "--replay", script,
        "--token-file", token, "--replica-cpus", "0.25", "--json",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        told = json.loads(await asyncio.wait_for(process.stdout.readline(), 240))
        if sys.platform == "linux":
            await check_ports(process.pid)
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
