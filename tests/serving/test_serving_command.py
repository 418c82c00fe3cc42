"""`midstream serve`: its flags reach the server, and what is wrong with them is said at once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
from asyncio import StreamReader
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from midstream.cli import main
from midstream.commands.serve import read_token
from midstream.errors import UsageError
from tests.helpers.wire import made_certificate, peer

pytestmark = pytest.mark.system

ORIGIN = "http://localhost:3000"


@asynccontextmanager
async def served(
    tmp_path: Path, *arguments: str, stderr: BinaryIO | None = None
) -> AsyncGenerator[int]:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"match": "", "text": "one two three"}]))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "midstream", "serve", "--port", "0", "--replay", script, "--json",
        *arguments, stdout=asyncio.subprocess.PIPE, stderr=stderr,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        told = json.loads(await process.stdout.readline())
        yield urlsplit(told["url"]).port or 0
    finally:
        process.send_signal(signal.SIGINT)
        await process.wait()


async def test_the_flags_reach_the_server(tmp_path: Path) -> None:
    flags = ["--allow-origin", ORIGIN, "--max-connections", "1", "--max-message", "1"]
    async with served(tmp_path, *flags) as port:
        async with peer(port, None, headers={"Origin": ORIGIN}) as client:
            await client.create()
            assert (await client.terminal())["type"] == "response.completed"
            with pytest.raises(InvalidStatus) as refused:
                async with peer(port, None):
                    pass
            assert refused.value.response.status_code == 503
            # It is refused while it is on its way, so a reset may overtake the server's last word.
            with suppress(ConnectionClosed):
                await client.create("x" * 2_000_000)
            assert await client.closed() in (1009, None)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/v1") as http:
            asked = {
                "Origin": ORIGIN,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization,content-type",
            }
            before = await http.options("/responses", headers=asked)
            assert before.headers["access-control-allow-origin"] == ORIGIN
            answer = await http.post("/responses", json={"input": "x"}, headers={"Origin": ORIGIN})
            assert answer.headers["access-control-allow-origin"] == ORIGIN
            other = {"Origin": "https://evil.example"}
            refusal = await http.post("/responses", json={"input": "x"}, headers=other)
            assert refusal.status_code == 403
            assert "access-control-allow-origin" not in refusal.headers


async def test_a_token_file_and_tls_files(tmp_path: Path) -> None:
    certificate, key = await made_certificate(tmp_path)
    (tmp_path / "token").write_text("from-a-file\n")
    flags = ["--tls-cert", str(certificate), "--tls-key", str(key)]
    trusting = ssl.create_default_context(cafile=str(certificate))
    async with served(tmp_path, *flags, "--token-file", str(tmp_path / "token")) as port:
        url = f"https://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=url, verify=trusting) as http:
            assert (await http.get("/v1/models")).status_code == 401
            known = {"Authorization": "Bearer from-a-file"}
            assert (await http.get("/v1/models", headers=known)).status_code == 200
        with pytest.raises(httpx.TransportError):
            async with httpx.AsyncClient() as http:
                await http.get(f"http://127.0.0.1:{port}/healthz")


async def test_requests_are_logged_for_who_asks_and_prompts_for_nobody(tmp_path: Path) -> None:
    for flags in ([], ["--log-requests"]):
        log = tmp_path / f"log{len(flags)}"
        with log.open("wb") as stderr:
            async with served(tmp_path, *flags, stderr=stderr) as port:
                async with peer(port, None) as client:
                    await client.create("private words")
                    await client.terminal()
                async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
                    await http.get("/v1/models")
        text = log.read_text()
        assert ("GET /v1/models" in text) is bool(flags), text
        assert ("WebSocket /v1/responses" in text) is bool(flags), text
        assert "private" not in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--tls-cert", "c.pem"], "TLS needs both --tls-cert and --tls-key."),
        (["--tls-cert", "no.pem", "--tls-key", "no.pem"], "are not a certificate and its key"),
        (["--allow-origin", "ide.example"], "--allow-origin ide.example is not an origin"),
        (["--allow-origin", "https://ide.example/page"], "is not an origin"),
        (["--max-connections", "0"], "'0' is not a number from 1 to 1e+06"),
        (["--port", "99999"], "'99999' is not a number from 0 to 65535"),
    ],
)
def test_a_wrong_flag_is_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("token", "mode", "sentence"),
    [
        (
            "short",
            0o600,
            "and can be guessed; where other machines can connect, it needs 22 or more",
        ),
        ("x" * 21, 0o600, "has 21 characters and can be guessed"),
        ("x" * 22, 0o600, "TLS needs both"),
        ("long-enough-" * 3, 0o644, "Every user of this machine can read or write"),
        ("long-enough-" * 3, 0o602, "Every user of this machine can read or write"),
        ("long-enough-" * 3, 0o640, "TLS needs both"),
        ("short", 0o644, "TLS needs both"),
    ],
)
def test_off_loopback_a_token_is_long_and_private(
    tmp_path: Path, token: str, mode: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check of TLS comes next: a sentence about that says that the token passed."""
    file = tmp_path / "token"
    file.write_text(token)
    file.chmod(mode)
    host = "127.0.0.1" if (token, mode) == ("short", 0o644) else "0.0.0.0"
    flags = ["--host", host, "--token-file", str(file), "--tls-cert", "c.pem"]
    assert main(["serve", *flags]) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_off_loopback_it_warns_that_nothing_is_encrypted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model is loaded next: a sentence about that says that it went on."""
    file = tmp_path / "token"
    file.write_text("long-enough-" * 3)
    file.chmod(0o600)
    flags = ["--token-file", str(file), "--replay", str(tmp_path / "none.json")]
    for host in ("0.0.0.0", "127.0.0.1"):
        assert main(["serve", "--host", host, *flags]) != 0
        assert ("without TLS" in capsys.readouterr().err) is (host == "0.0.0.0")
    for host in ("0.0.0.0", "a-name.example"):
        assert main(["serve", "--host", host]) == 2
        assert "needs a token" in capsys.readouterr().err


async def test_ctrl_c_says_one_line(tmp_path: Path) -> None:
    with (tmp_path / "stderr").open("w+b") as stderr:
        async with served(tmp_path, stderr=stderr) as port, peer(port, None) as client:
            await client.create()
            assert (await client.terminal())["type"] == "response.completed"
        stderr.seek(0)
        assert stderr.read().decode() == "midstream: stopped.\n"


AS_FIRST = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
"""Runs a command as the first process of a container: it gets no signal that it does not handle."""


def may_be_first() -> bool:
    with suppress(OSError):
        return subprocess.run([*AS_FIRST, "true"], check=False, capture_output=True).returncode == 0
    return False


def first_inside(pid: int) -> int:
    """The process that `AS_FIRST` has started; for itself it is the first one."""
    inside = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    assert Path(f"/proc/{inside}/status").read_text().split("NSpid:")[1].split()[1] == "1"
    return inside


async def answering(
    tmp_path: Path, program: Sequence[str], words: int, rate: int
) -> tuple[Process, StreamReader, str]:
    """A server of long answers: its process, what it says and its address."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"match": "", "text": "word " * words, "rate": rate}]))
    process = await asyncio.create_subprocess_exec(
        *program, "serve", "--port", "0", "--json", "--replay", str(script),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    told = json.loads(await process.stdout.readline())
    return process, process.stderr, told["url"].replace("ws:", "http:")


@asynccontextmanager
async def begun(http: httpx.AsyncClient, url: str) -> AsyncGenerator[AsyncIterator[str]]:
    """The rest of an answer whose first words have come."""
    asked = {"input": "x", "stream": True}
    async with http.stream("POST", f"{url}/responses", json=asked) as answer:
        lines = answer.aiter_lines()
        while "output_text.delta" not in await anext(lines):
            pass
        yield lines


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(("streamed", "first"), [(False, False), (True, False), (True, True)])
async def test_a_stopped_server_lets_its_answers_end(
    tmp_path: Path, number: signal.Signals, streamed: bool, first: bool
) -> None:
    if first and not may_be_first():
        pytest.skip("no namespace of processes can be made here")
    words = 320  # Longer than a server without a grace would wait for its connections.
    program = [*(AS_FIRST if first else ()), sys.executable, "-m", "midstream"]
    process, stderr, url = await answering(tmp_path, program, words, rate=100)
    pid = first_inside(process.pid) if first else process.pid
    async with httpx.AsyncClient(timeout=60) as http:
        if streamed:
            async with begun(http, url) as lines:
                os.kill(pid, number)
                rest = "\n".join([line async for line in lines])
            assert "response.completed" in rest
        else:
            asking = asyncio.create_task(http.post(f"{url}/responses", json={"input": "x"}))
            telemetry = f"{url.removesuffix('/v1')}/metrics"
            while "midstream_generations 1" not in (await http.get(telemetry)).text:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            os.kill(pid, number)
            answer = await asking
            assert answer.status_code == 200
            assert answer.text.count("word") >= words
    told = (await stderr.read()).decode()
    assert "may end within 30 s" in told
    assert "Traceback" not in told
    assert await process.wait() == (0 if number == signal.SIGTERM else 130)


PATIENT = """
import sys
from midstream.cli import main
from midstream.commands import serve
serve.GRACE_S = float(sys.argv.pop(1))
sys.exit(main(sys.argv[1:]))
"""
"""The program with another time for answers to end."""


@pytest.mark.parametrize(("grace", "signals"), [("0.2", 1), ("36000", 2)])
async def test_an_answer_that_does_not_end_holds_no_server_up(
    tmp_path: Path, grace: str, signals: int
) -> None:
    """It is cut once its time is up, or by a second signal."""
    program = [sys.executable, "-c", PATIENT, grace]
    process, stderr, url = await answering(tmp_path, program, words=40_000, rate=1)
    async with httpx.AsyncClient(timeout=60) as http, begun(http, url) as lines:
        process.send_signal(signal.SIGTERM)
        assert b"may end within" in await stderr.readline()
        if signals == 2:
            process.send_signal(signal.SIGTERM)
        with suppress(httpx.HTTPError):
            assert "response.completed" not in "".join([line async for line in lines])
        assert await process.wait() == 0


@pytest.mark.parametrize("content", ["", " \n", "two words", "one\ntwo", "t\u00f6ken", "a\tb"])
def test_a_file_with_no_one_token_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "token"
    file.write_text(content, "utf-8")
    with pytest.raises(UsageError, match="must contain one token without spaces"):
        read_token(file)
