"""The child process: how it starts, what it says when it cannot, and that it never outlives its
parent.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from asyncio.subprocess import Process
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from midstream.errors import UnavailableError
from midstream.responses.client import Client
from midstream.responses.events import Delta, Failed, Finished, Started
from midstream.serving import embedded
from midstream.serving.embedded import EmbeddedServer
from midstream.serving.source import ModelSource
from tests.helpers.endless_graph import make_endless
from tests.helpers.folders import write_folder
from tests.helpers.waiting import PATIENCE_S

pytestmark = pytest.mark.system


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.json"
    path.write_text(json.dumps([{"match": "", "text": "word " * 100_000, "rate": 500}]))
    return path


def proc(pid: int, name: str) -> bytes:
    """What the kernel shows of a process."""
    return Path(f"/proc/{pid}/{name}").read_bytes()


def gone(pid: int) -> bool:
    """Whether a process has ended (a zombie that nobody reaped counts as ended)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return True
    return state in "ZX"


async def test_each_start_has_its_own_token_and_listens_on_loopback_alone(
    script: Path, tmp_path: Path
) -> None:
    tokens: set[str | None] = set()
    for _ in range(2):
        server = EmbeddedServer(ModelSource(replay=script), state_dir=tmp_path)
        endpoint = await server.start()
        try:
            tokens.add(endpoint.token)
            port = urlsplit(endpoint.url).port
            with pytest.raises(ConnectionRefusedError):  # A server on every address answers here.
                await asyncio.open_connection("127.0.0.2", port)
        finally:
            await server.close()
    assert len(tokens) == 2
    assert all(token is not None and len(token) >= 22 for token in tokens)


async def test_a_child_that_was_launched_is_the_one_that_serves(
    script: Path, tmp_path: Path
) -> None:
    server = EmbeddedServer(ModelSource(replay=script), state_dir=tmp_path)
    await server.launch()
    launched = server.process
    assert launched is not None
    with pytest.raises(UnavailableError, match="running already"):
        await server.launch()
    try:
        client = Client(await server.start())
        assert server.process is launched
        await client.connect()
        await client.close()
        with pytest.raises(UnavailableError, match="running already"):
            await server.start()
    finally:
        await server.close()
    assert gone(launched.pid)


async def test_a_child_that_was_launched_and_is_not_needed_ends(
    script: Path, tmp_path: Path
) -> None:
    server = EmbeddedServer(ModelSource(replay=script), state_dir=tmp_path)
    await server.launch()
    launched = server.process
    assert launched is not None
    await server.close()
    assert gone(launched.pid)


async def test_it_serves_with_a_token_that_is_not_on_its_command_line(
    script: Path, tmp_path: Path
) -> None:
    server = EmbeddedServer(ModelSource(replay=script), state_dir=tmp_path)
    endpoint = await server.start()
    assert server.process is not None
    pid = server.process.pid
    try:
        assert endpoint.kind == "local"
        assert endpoint.token
        assert endpoint.token not in repr(endpoint)
        assert endpoint.token.encode() not in proc(pid, "cmdline")
        assert endpoint.token.encode() not in proc(pid, "environ")
        client = Client(endpoint)
        stream = await client.create(messages=[("user", "go")])
        async for event in stream:
            if isinstance(event, Delta):
                await stream.interrupt()
            end = event
        assert isinstance(end, Finished)
        assert end.reason == "interrupted"
        await client.close()
    finally:
        await server.close()
    assert gone(pid)
    assert server.log_path is not None
    assert server.log_path.read_text() == ""


async def test_each_server_answers_to_its_own_token_alone(script: Path, tmp_path: Path) -> None:
    servers = [EmbeddedServer(ModelSource(replay=script), state_dir=tmp_path) for _ in range(2)]
    try:
        first, second = [await server.start() for server in servers]
        assert first.url != second.url
        async with httpx.AsyncClient(base_url=first.http_url) as http:
            for token, status in ((None, 401), (second.token, 401), (first.token, 200)):
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                assert (await http.get("/models", headers=headers)).status_code == status
    finally:
        for server in servers:
            await server.close()


async def test_a_child_that_dies_ends_the_stream_at_once_and_can_be_replaced(
    script: Path, tmp_path: Path
) -> None:
    server = EmbeddedServer(ModelSource(replay=script), state_dir=tmp_path)
    client = Client(await server.start())
    stream = await client.create(messages=[("user", "go")])
    events = aiter(stream)
    assert isinstance(await anext(events), Started)
    assert server.process is not None
    server.process.kill()
    async with asyncio.timeout(PATIENCE_S):
        async for event in events:
            end = event
    assert isinstance(end, Failed)
    assert end.code == "connection_lost"
    with pytest.raises(UnavailableError, match="cannot be reached"):
        await client.create(messages=[("user", "go")])
    await client.close()
    await server.close()
    again = Client(await server.start())
    assert isinstance(await anext(aiter(await again.create(messages=[("user", "go")]))), Started)
    await again.close()
    await server.close()


_PARENT = """
import asyncio, sys
from pathlib import Path
from midstream.responses.client import Client
from midstream.responses.events import Delta
from midstream.serving.embedded import EmbeddedServer
from midstream.serving.source import ModelSource

async def main():
    server = EmbeddedServer(ModelSource(replay=Path(sys.argv[1])), state_dir=Path(sys.argv[2]))
    client = Client(await server.start())
    stream = await client.create(messages=[("user", "go")])
    async for event in stream:
        if isinstance(event, Delta):
            print(server.process.pid, flush=True)
            break
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_parent_even_in_the_middle_of_a_stream(
    script: Path, tmp_path: Path, signal_number: int
) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(script), str(tmp_path)], stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert not gone(child)
    os.kill(parent.pid, signal_number)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + PATIENCE_S
    while not gone(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert gone(child)


async def test_the_pipe_alone_is_enough_to_end_it(script: Path, tmp_path: Path) -> None:
    """Standard input ends the child where the kernel does not (other systems than Linux)."""
    server = EmbeddedServer(ModelSource(replay=script), state_dir=tmp_path)
    await server.start()
    process = server.process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    async with asyncio.timeout(PATIENCE_S):
        assert await process.wait() == 0
    assert not server.alive
    await server.close()


async def test_a_missing_model_folder_is_one_sentence(tmp_path: Path) -> None:
    server = EmbeddedServer(ModelSource(folder=tmp_path / "nowhere"), state_dir=tmp_path)
    with pytest.raises(UnavailableError, match=r"no model folder at .*nowhere"):
        await server.start()
    assert server.process is None


async def test_a_broken_model_folder_is_the_engines_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "genai_config.json").write_text("{")
    server = EmbeddedServer(ModelSource(folder=folder), state_dir=tmp_path)
    with pytest.raises(UnavailableError) as caught:
        await server.start()
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not server.alive


async def test_a_model_that_never_loads_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_START_SECONDS", 3)
    write_folder(tmp_path / "endless")
    make_endless(tmp_path / "endless", above=0)
    server = EmbeddedServer(ModelSource(folder=tmp_path / "endless"), state_dir=tmp_path)
    begun: list[int] = []
    greet = server._greet

    async def watched(process: Process) -> object:
        begun.append(process.pid)
        return await greet(process)

    monkeypatch.setattr(server, "_greet", watched)
    with pytest.raises(UnavailableError, match="did not start within 3 seconds"):
        await server.start()
    assert gone(*begun)


async def test_a_broken_script_is_named(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"match": "x"}]')
    server = EmbeddedServer(ModelSource(replay=script), state_dir=tmp_path)
    with pytest.raises(UnavailableError, match=r"script\.json.*needs either text or edit"):
        await server.start()


async def test_a_project_file_is_not_imported_in_place_of_ours(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "uvicorn.py").write_text("raise SystemExit('imported from the project')")
    (project / "midstream").mkdir()
    monkeypatch.chdir(project)
    server = EmbeddedServer(ModelSource(replay=script), state_dir=tmp_path)
    await server.start()
    await server.close()


async def test_keys_of_hosted_endpoints_do_not_reach_the_child(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "A_SECRET", "DB_PASSWORD"):
        monkeypatch.setenv(name, "sk-secret")
    server = EmbeddedServer(ModelSource(replay=script), state_dir=tmp_path)
    await server.start()
    assert server.process is not None
    environment = proc(server.process.pid, "environ")
    await server.close()
    assert b"sk-secret" not in environment
    assert b"PATH=" in environment


async def test_only_the_last_logs_are_kept(script: Path, tmp_path: Path) -> None:
    folder = tmp_path / "server-logs"
    folder.mkdir()
    for number in range(9):
        (folder / f"{number}.log").write_text("old")
    server = EmbeddedServer(ModelSource(replay=script), state_dir=tmp_path)
    await server.start()
    await server.close()
    assert len(list(folder.iterdir())) == 5
    assert server.log_path in folder.iterdir()
