"""Midstream with the software of others: clients on its server, and its own client on servers.

Run by `-m clients`; `install.sh` installs the software into the folder named by MIDSTREAM_CLIENTS.
docs/compatibility.md has the versions that were run last, and the results.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from midstream.engine.types import GenerateRequest
from midstream.resources import default_model
from midstream.responses.client import Client
from midstream.responses.endpoint import Endpoint, Transport
from midstream.responses.events import Delta, Failed, Finished
from midstream.serving.replay import ReplayModel
from midstream.serving.source import ModelSource
from tests.helpers.wire import TOKEN, running

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]

SCRIPTS: Final = Path(__file__).parent / "scripts"
SECONDS: Final = 300
"""How long a program of others may take to start or to answer, on a busy machine."""


def installed() -> Path:
    folder = os.environ.get("MIDSTREAM_CLIENTS")
    if folder is None:
        pytest.skip("MIDSTREAM_CLIENTS names no folder; make one with tests/clients/install.sh")
    return Path(folder).expanduser().absolute()


async def python_with(package: str, group: str = "clients") -> Path:
    """A Python that has a package; skips the test if there is none."""
    has_own = package == "openai" and "MIDSTREAM_CLIENTS" not in os.environ
    python = Path(sys.executable) if has_own else installed() / group / "bin" / "python"
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    if not python.exists() or not (said := await output(str(python), "-c", code, check=False)):
        pytest.skip(f"{package} is not installed in {python}; see tests/clients/install.sh")
    print(package, said.strip())
    return python


async def output(*command: str, check: bool = True) -> str:
    """What a program writes; it has to end well."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=PIPE, stderr=STDOUT, env=environment()
    )
    try:
        async with asyncio.timeout(SECONDS):
            said, _ = await process.communicate()
    finally:
        await ended(process)
    assert not check or process.returncode == 0, said.decode()
    return said.decode() if process.returncode == 0 else ""


async def ended(process: Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def environment() -> dict[str, str]:
    """Without our own packages, and without the network."""
    return {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "HF_HUB_OFFLINE": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "NO_COLOR": "1",
    }


# Their clients on our server.


def talk(request: GenerateRequest) -> str:
    """A chat model that reads a file once it has a tool for that."""
    if any(message.role == "tool" for message in request.messages):
        return "It prints 1."
    if "read_file" in request.instructions:
        call = {"name": "read_file", "arguments": {"path": "a.py"}}
        return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
    return "Hello."


@asynccontextmanager
async def midstream() -> AsyncGenerator[str]:
    """The address of a server with the built-in model and a scripted chat model."""
    chat = ReplayModel(talk, name="chat", facts={"prompt": "chat"})
    async with running({default_model().name: ModelSource().load(), "chat": chat}) as port:
        yield f"http://127.0.0.1:{port}/v1"


@pytest.mark.parametrize(
    ("script", "package", "model"),
    [
        ("openai_python.py", "openai", ""),
        ("openai_agents.py", "openai-agents", "chat"),
        ("litellm_sdk.py", "litellm", "chat"),
    ],
)
async def test_a_python_client(script: str, package: str, model: str) -> None:
    python = await python_with(package)
    async with midstream() as url:
        await output(str(python), str(SCRIPTS / script), url, TOKEN, model or default_model().name)


async def test_openai_for_node() -> None:
    folder, node = installed(), shutil.which("node")
    if node is None or not (folder / "node_modules" / "openai").exists():
        pytest.skip(f"node or the npm package openai is not in {folder}")
    async with midstream() as url:
        await output(node, str(SCRIPTS / "openai_node.mjs"), str(folder), url, TOKEN, "chat")


# Our client on their servers.


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def started(*command: str, port: int, path: str, log: Path) -> AsyncGenerator[str]:
    """Start a server and wait until it answers; yields the address of its API."""
    root = f"http://127.0.0.1:{port}"
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=file, stderr=file, env=environment()
        )
    try:
        async with httpx.AsyncClient(trust_env=False) as http, asyncio.timeout(SECONDS):
            while True:
                with contextlib.suppress(httpx.HTTPError):
                    if (await http.get(root + path)).status_code == 200:
                        break
                assert process.returncode is None, await asyncio.to_thread(log.read_text)
                await asyncio.sleep(0.2)
        yield f"{root}/v1"
    finally:
        await ended(process)


async def ask(
    url: str, model: str, *, transport: Transport = "auto", stop: bool = False
) -> tuple[str, str, Finished | Failed]:
    """Ask through Midstream's client: the text, the transport that it found, and the end."""
    client = Client(Endpoint(url, None, model, "custom", transport))
    text, end = "", None
    try:
        async with asyncio.timeout(SECONDS):
            stream = await client.create(
                messages=[("user", "Name a colour.")], max_output_tokens=None if stop else 6
            )
            async for event in stream:
                if isinstance(event, Delta):
                    text += event.text
                    if stop:
                        await stream.interrupt()
                elif isinstance(event, Finished | Failed):
                    end = event
        found = client.transport
    finally:
        await client.close()
    assert end is not None
    return text, found, end


async def test_litellm_proxy_in_front_of_our_server(tmp_path: Path) -> None:
    python, port = await python_with("litellm"), free_port()
    async with midstream() as ours:
        config = tmp_path / "litellm.yaml"
        options = f"{{model: openai/chat, api_base: '{ours}', api_key: {TOKEN}}}"
        config.write_text(f"model_list: [{{model_name: bridged, litellm_params: {options}}}]\n")
        command = (str(python.parent / "litellm"), "--config", str(config), "--host", "127.0.0.1")
        async with started(
            *command, "--port", str(port), port=port, path="/health/readiness",
            log=tmp_path / "log",
        ) as url:  # fmt: skip
            # Their SDK through their proxy: every event passes their types on the way.
            await output(str(python), str(SCRIPTS / "litellm_sdk.py"), url, "sk-any", "bridged")
            # Its WebSockets open and close without a word.
            text, transport, end = await ask(url, "bridged")
    assert isinstance(end, Finished)
    assert (text, transport) == ("Hello.", "sse")


def transformers_serve(python: Path, port: int) -> tuple[str, ...]:
    code = "from transformers.cli.transformers import main; main()"
    place = ("--host", "127.0.0.1", "--port", str(port))
    return str(python), "-c", code, "serve", *place


@pytest.mark.parametrize("websockets", [True, False])
async def test_transformers_serve(tmp_path: Path, websockets: bool) -> None:
    """With the package websockets, uvicorn refuses the upgrade with 403, without it with 404."""
    python, port = await python_with("transformers", "engines"), free_port()
    model = str(installed() / "model")
    command = transformers_serve(python, port)
    if not websockets:
        hidden = "import sys; sys.modules['websockets'] = sys.modules['wsproto'] = None; "
        command = (command[0], "-c", hidden + command[2], *command[3:])
    log = tmp_path / "log"
    async with started(*command, port=port, path="/health", log=log) as url:
        text, transport, end = await ask(url, model)
        assert isinstance(end, Finished), end
        assert transport == "sse"
        assert text
        _, _, stopped = await ask(url, model, stop=True)
        assert isinstance(stopped, Finished)
        assert stopped.reason == "interrupted"
        _, _, nameless = await ask(url, "")
        assert isinstance(nameless, Failed)
        assert "no model is named" in nameless.message
        _, _, forced = await ask(url.replace("/v1", ""), model)
        assert isinstance(forced, Failed)
        assert f"try {url}." in forced.message


async def test_mlx_lm_server(tmp_path: Path) -> None:
    """Chat Completions only, in HTTP/1.0: the sentence names the way out."""
    python, port = await python_with("mlx-lm", "engines"), free_port()
    model = str(installed() / "model")
    command = (str(python.parent / "mlx_lm.server"), "--model", model, "--port", str(port))
    async with started(*command, port=port, path="/health", log=tmp_path / "log") as url:
        for transport in ("auto", "sse"):
            _, _, end = await ask(url, model, transport=transport)
            assert isinstance(end, Failed)
            assert f"has no Responses API at {url}/responses (HTTP 404" in end.message
            assert f"--api_base {url}`" in end.message
