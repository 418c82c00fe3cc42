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
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import pytest

from midstream.engine.types import GenerateRequest
from midstream.responses.client import Client
from midstream.responses.conversation import ToolCall, ToolOutput
from midstream.responses.dialect import DIALECTS, EndpointKind
from midstream.responses.endpoint import Endpoint, Transport
from midstream.responses.events import Delta, Failed, Finished
from midstream.responses.stream import Stream
from midstream.serving.replay import ReplayModel
from midstream.serving.source import ModelSource
from tests.helpers.scripted_endpoint import expected
from tests.helpers.scripted_http import ScriptedHttp
from tests.helpers.wire import TOKEN, running

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]

SCRIPTS: Final = Path(__file__).parent / "scripts"
SOURCE: Final = Path(__file__).parents[2] / "app"
GRAMMAR: Final = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}
ANSWER: Final = 16
"""Tokens of the answers whose speed is measured."""
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


async def output(
    *command: str, check: bool = True, environ: Mapping[str, str] | None = None
) -> str:
    """Standard output of a program, which has to succeed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        env={**environment(), **(environ or {})},
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
        "OMP_NUM_THREADS": "1",  # Several would wait for each other on a busy machine.
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
async def midstream(folder: Path) -> AsyncGenerator[str]:
    """The address of a server with an edit model and a scripted chat model."""
    chat = ReplayModel(talk, name="chat", facts={"prompt": "chat"})
    async with running({folder.name: ModelSource(folder).load(), "chat": chat}) as port:
        yield f"http://127.0.0.1:{port}/v1"


@pytest.mark.parametrize(
    ("script", "package", "model"),
    [
        ("openai_python.py", "openai", ""),
        ("openai_agents.py", "openai-agents", "chat"),
        ("litellm_sdk.py", "litellm", "chat"),
    ],
)
async def test_a_python_client(copyist: Path, script: str, package: str, model: str) -> None:
    python = await python_with(package)
    async with midstream(copyist) as url:
        await output(str(python), str(SCRIPTS / script), url, TOKEN, model or copyist.name)


@pytest.mark.parametrize(
    ("script", "package"), [("openai_node.mjs", "openai"), ("vercel_ai.mjs", "@ai-sdk/openai")]
)
async def test_a_node_client(copyist: Path, script: str, package: str) -> None:
    folder, node = installed(), shutil.which("node")
    if node is None or not (folder / "node_modules" / package).exists():
        pytest.skip(f"node or the npm package {package} is not in {folder}; see install.sh")
    async with midstream(copyist) as url:
        await output(node, str(SCRIPTS / script), str(folder), url, TOKEN, "chat")


# What our client sends and the scripted servers answer, in the words of their clients.


async def test_requests_and_the_scripted_servers_fit_their_types(tmp_path: Path) -> None:
    """The requests of every kind of endpoint, and streams of `tests/helpers/scripted_http.py`."""
    python = await python_with("anthropic")
    lines: list[str] = []
    call = ToolCall("call_1", "apply_patch", "*** Begin Patch\n")
    tool = {"type": "custom", "name": "apply_patch", "description": "Edit.", "format": GRAMMAR}
    for kind, dialect in DIALECTS.items():
        for api in dialect.apis if not dialect.midstream else ():
            scripted = ScriptedHttp(apis=(api,))
            transport: Transport = "sse" if api == "responses" else api
            async with scripted.running() as url:
                client = Client(Endpoint(url, "k", "m", kind, transport))
                stream = await client.create(
                    messages=[("user", "a"), call, ToolOutput("call_1", "Done."), ("user", "b")],
                    instructions="Be short.",
                    max_output_tokens=9,
                    effort=dialect.efforts[-1] if dialect.efforts else None,
                    tools=[tool],
                    tool_choice={"type": "custom", "name": "apply_patch"},
                    temperature=0.5,
                )
                assert [e async for e in stream][-1].status == "completed"  # type: ignore[union-attr]
                await client.close()
            (body,) = scripted.bodies
            if kind == "openrouter":
                body.pop("reasoning")  # OpenRouter's own field.
            lines.append(json.dumps((api, body)))
    requests = tmp_path / "requests"
    requests.write_text("\n".join(lines))
    async with ScriptedHttp(reasoning="reasoning").running() as url:
        script = str(SCRIPTS / "three_apis.py")
        texts = await output(str(python), script, url, str(requests))
    assert [json.loads(line) for line in texts.splitlines()[-4:]] == [expected([("user", "a")])] * 4


def codex_binary() -> Path:
    """Codex itself; its npm package only starts it."""
    found = installed() / "node_modules" / "@openai"
    programs = [path for path in found.glob("codex-*/vendor/*/bin/codex") if path.is_file()]
    if not programs:
        pytest.skip(f"the npm package @openai/codex is not in {found.parent}; see install.sh")
    return programs[0]


@pytest.mark.parametrize(
    ("websockets", "named"),
    [(False, "sums.py"), (True, "./sums.py"), (False, "@sums.py"), (True, "{project}/sums.py")],
)
@pytest.mark.parametrize("model", ["gpt-6.1-sol", "gpt-5.5", "unknown-to-codex"])
async def test_codex(
    tmp_path: Path, copyist: Path, model: str, websockets: bool, named: str
) -> None:
    """Its tools differ by the model's name; with each, an edit model reads and patches."""
    codex, home, project = codex_binary(), tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    file = project / "sums.py"
    source = (
        "def total(values):\n    result = 0\n    for value in values:\n        result += value\n"
        "    return result\n"
    )
    file.write_text(source)
    async with running({model: ModelSource(copyist).load()}) as port:
        fields = {
            "name": "midstream", "base_url": f"http://127.0.0.1:{port}/v1",
            "wire_api": "responses", "experimental_bearer_token": TOKEN,
        }  # fmt: skip
        lines = [f"{name} = {json.dumps(value)}" for name, value in fields.items()]
        lines.append(f"supports_websockets = {str(websockets).lower()}")
        (home / "config.toml").write_text(
            f'model = "{model}"\nmodel_provider = "m"\n[model_providers.m]\n' + "\n".join(lines)
        )

        async def run(words: str) -> str:
            flags = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
            environ = {"CODEX_HOME": str(home)}
            command = (str(codex), "exec", "-C", str(project), *flags, words)
            return await output(*command, environ=environ)

        name = named.format(project=project)
        said = await run(f"Rename the variable `result` to `amount` in {name}.")
        assert "The tool answered: Success." in said
        assert "Name the file to change" in await run("What is a monad?")
    assert file.read_text() == source.replace("result", "amount")


# Our client on their servers.


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass(frozen=True)
class Server:
    """A server of others: the address of its API, and its process id."""

    url: str
    process: int


@asynccontextmanager
async def started(
    *command: str, port: int, path: str, log: Path, environ: Mapping[str, str] | None = None
) -> AsyncGenerator[Server]:
    """Start a server and wait until it answers."""
    root = f"http://127.0.0.1:{port}"
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=file, stderr=file, env={**environment(), **(environ or {})}
        )
    try:
        async with httpx.AsyncClient(trust_env=False) as http, asyncio.timeout(SECONDS):
            while True:
                with contextlib.suppress(httpx.HTTPError):
                    if (await http.get(root + path)).status_code == 200:
                        break
                assert process.returncode is None, await asyncio.to_thread(log.read_text)
                await asyncio.sleep(0.2)
        yield Server(f"{root}/v1", process.pid)
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


@asynccontextmanager
async def litellm_proxy(python: Path, options: str, folder: Path) -> AsyncGenerator[str]:
    """The address of a proxy in front of another server, which it calls "bridged"."""
    config, port = folder / "litellm.yaml", free_port()
    config.write_text(f"model_list: [{{model_name: bridged, litellm_params: {options}}}]\n")
    command = (str(python.parent / "litellm"), "--config", str(config), "--host", "127.0.0.1")
    log = folder / "litellm.log"
    async with started(
        *command, "--port", str(port), port=port, path="/health/readiness", log=log
    ) as server:
        yield server.url


async def test_litellm_proxy_in_front_of_our_server(tmp_path: Path, copyist: Path) -> None:
    python = await python_with("litellm")
    async with midstream(copyist) as ours:
        options = f"{{model: openai/chat, api_base: '{ours}', api_key: {TOKEN}}}"
        async with litellm_proxy(python, options, tmp_path) as url:
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
    async with started(*command, port=port, path="/health", log=log) as server:
        url = server.url
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
        text, _, end = await ask(url.replace("/v1", ""), model)
        assert isinstance(end, Finished), end
        assert text


@dataclass(frozen=True)
class Figures:
    """One way to a real model, measured.

    Attributes:
        first_text_s: From the request to the first text.
        rate: Tokens per second after that.
        first_text_cpu_s: The same in CPU time of the engine, which other programs do not change.
        cpu_rate: Tokens per second of CPU time.
        redirect_s: From a stop at the first text to the first text of what goes on from it.
        still: At most so many tokens were generated for an answer that was stopped at its first
            text, by the engine's CPU time, in which reading the prompt is counted as tokens too.
    """

    first_text_s: float
    rate: float
    first_text_cpu_s: float
    cpu_rate: float
    redirect_s: float
    still: float


def cpu_seconds(process: int) -> float:
    """CPU time of a process so far (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def settled(process: int) -> float:
    """CPU time of a process once it rests."""
    async with asyncio.timeout(SECONDS):
        spent, rests = cpu_seconds(process), 0
        while rests < 3:
            await asyncio.sleep(0.5)
            now = cpu_seconds(process)
            rests, spent = (rests + 1 if now - spent <= 0.02 else 0), now
    return spent


async def measured(
    url: str, model: str, transport: Transport, engine: int, kind: EndpointKind = "custom"
) -> Figures:
    """An answer, a stop, and a redirect that goes on from what was written."""
    client = Client(Endpoint(url, None, model, kind, transport))
    story = [("user", "Write a long story about a dog.")]
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(SECONDS):
            before, began, first, text = await settled(engine), loop.time(), 0.0, ""
            reading = 0.0
            stream = await client.create(messages=story, max_output_tokens=ANSWER)
            async for event in stream:
                if isinstance(event, Delta):
                    if not text:
                        first, reading = loop.time(), cpu_seconds(engine) - before
                    text += event.text
            last, busy = loop.time(), await settled(engine) - before
            assert text, event
            before, begun = await settled(engine), ""
            stream = await client.create(messages=story, max_output_tokens=400)
            async for event in stream:
                if isinstance(event, Delta):
                    begun += event.text
                    await stream.interrupt()
                elif isinstance(event, Finished):
                    assert (event.status, event.reason) == ("incomplete", "interrupted")
            after = await settled(engine) - before
            stream = await client.create(messages=story, max_output_tokens=400)
            begun, stopped = await first_of(stream), loop.time()
            await stream.interrupt()
            more = [*story, ("assistant", begun), ("user", "Now a cat.")]
            stream = await client.create(messages=more, max_output_tokens=4)
            assert await first_of(stream)
            redirect = loop.time() - stopped
            assert isinstance([event async for event in stream][-1], Finished)
    finally:
        await client.close()
    assert after < busy * 400 / ANSWER / 2, "the engine goes on for nobody"
    writing, cpu_rate = ANSWER - 1, (ANSWER - 1) / (busy - reading)
    rate = writing / (last - first)
    return Figures(first - began, rate, reading, cpu_rate, redirect, after * cpu_rate)


async def first_of(stream: Stream) -> str:
    """The first text of a response."""
    async for event in stream:
        if isinstance(event, Delta):
            return event.text
    return ""


async def ended_of(client: Client, messages: list[tuple[str, str]]) -> Finished | Failed | None:
    stream = await client.create(messages=messages, max_output_tokens=4)
    return next((e for e in [e async for e in stream] if isinstance(e, Finished | Failed)), None)


def report(engine: str, transport: str, figures: Figures) -> None:
    print(
        f"| {engine} | {transport} | {figures.first_text_s:.1f} s | {figures.rate:.1f} "
        f"| {figures.first_text_cpu_s:.2f} s | {figures.cpu_rate:.1f} | {figures.redirect_s:.1f} s "
        f"| at most {figures.still:.0f} |",
        flush=True,
    )


@asynccontextmanager
async def midstream_serve(folder: Path) -> AsyncGenerator[Server]:
    """`midstream serve` with SmolLM2 in 4 bits, as ONNX Runtime GenAI's builder writes it."""
    model, port = installed() / "layouts" / "genai-int4", free_port()
    if not model.is_dir():
        pytest.skip(f"{model} is missing; see tests/clients/install.sh")
    place = ("--port", str(port), "--threads", "1", "--model", str(model))
    command = (sys.executable, "-m", "midstream", "serve", *place)
    environ = {"PYTHONPATH": str(SOURCE), "MIDSTREAM_STATE_DIR": str(folder / "state")}
    async with started(
        *command, port=port, path="/healthz", log=folder / "serve.log", environ=environ
    ) as server:
        yield server


async def test_a_real_model_in_midstream_serve(tmp_path: Path) -> None:
    async with midstream_serve(tmp_path) as server:
        for transport in ("websocket", "sse"):
            figures = await measured(server.url, "", transport, server.process, "local")
            report("midstream serve", transport, figures)


async def test_a_real_model_in_transformers(tmp_path: Path) -> None:
    python, port = await python_with("transformers", "engines"), free_port()
    model, log = str(installed() / "model"), tmp_path / "log"
    command = transformers_serve(python, port)
    async with started(*command, port=port, path="/health", log=log) as server:
        for transport in ("sse", "chat"):
            await ask(server.url, model, transport=transport)  # Loads the model.
            figures = await measured(server.url, model, transport, server.process)
            report("transformers serve", transport, figures)


async def test_a_real_model_in_mlx_lm(tmp_path: Path) -> None:
    """Chat Completions only, in HTTP/1.0."""
    python, port = await python_with("mlx-lm", "engines"), free_port()
    model = str(installed() / "model")
    command = (str(python.parent / "mlx_lm.server"), "--model", model, "--port", str(port))
    async with started(*command, port=port, path="/health", log=tmp_path / "log") as server:
        client = Client(Endpoint(server.url, None, model))
        assert isinstance(await ended_of(client, [("user", "Name a colour.")]), Finished)
        assert client.transport == "chat"
        assert client.remark == "127.0.0.1 has no Responses API; its Chat Completions API is used."
        await client.close()
        report("mlx_lm.server", "chat", await measured(server.url, model, "chat", server.process))
        _, _, end = await ask(server.url, model, transport="sse")
        assert isinstance(end, Failed)
        assert "has no Responses API below" in end.message
        assert "try `--transport auto`" in end.message


async def test_a_real_model_behind_a_gateway(tmp_path: Path) -> None:
    """LiteLLM's proxy has all three APIs in front of an engine that has Chat Completions only."""
    python, port = await python_with("mlx-lm", "engines"), free_port()
    litellm = await python_with("litellm")
    model = str(installed() / "model")
    command = (str(python.parent / "mlx_lm.server"), "--model", model, "--port", str(port))
    async with started(*command, port=port, path="/health", log=tmp_path / "log") as server:
        # As a server of OpenAI's it would be asked for a Responses API of its own.
        options = f"{{model: 'lm_studio/{model}', api_base: '{server.url}', api_key: any}}"
        async with litellm_proxy(litellm, options, tmp_path) as url:
            for transport in ("sse", "chat", "messages"):
                figures = await measured(url, "bridged", transport, server.process)
                report("LiteLLM proxy on mlx_lm.server", transport, figures)


@asynccontextmanager
async def llama_cpp(folder: Path) -> AsyncGenerator[Server]:
    """llama.cpp's own server, as the package xllamacpp has it, with all three APIs."""
    python, port = await python_with("xllamacpp", "engines"), free_port()
    (weights,) = (installed() / "smollm2").glob("**/*.gguf")
    command = (str(python), str(SCRIPTS / "llama_cpp_server.py"), str(weights), str(port))
    async with started(*command, port=port, path="/health", log=folder / "log") as server:
        yield server


async def test_a_real_model_in_llama_cpp(tmp_path: Path) -> None:
    async with llama_cpp(tmp_path) as server:
        for transport in ("sse", "chat", "messages"):
            figures = await measured(server.url, "smollm2", transport, server.process)
            report("llama.cpp", transport, figures)
