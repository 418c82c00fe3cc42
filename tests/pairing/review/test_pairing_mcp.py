"""``midstream mcp`` as an agent runs it: the protocol, and how a real review stands."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from midstream.agents.hooks import HookEvent
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.pairing import Witness, numbered
from tests.helpers.waiting import PATIENCE_S

BEFORE = numbered(30)
COMMITTED = {"run.py": BEFORE}
AFTER = BEFORE.replace("work(3)", "work(33)").replace("work(20)", "work(220)")


class Agent:
    """What an agent does with the server."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._asked = 0

    async def send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        await self._process.stdin.drain()

    async def hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            return json.loads(await self._process.stdout.readline())

    async def begin(self, method: str, **params: Any) -> int:
        self._asked += 1
        message = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        await self.send(json.dumps(message).encode())
        return self._asked

    async def ask(self, method: str, **params: Any) -> Any:
        asked = await self.begin(method, **params)
        answer = await self.hear()
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", asked)
        return answer["result"]

    async def call(self, name: str, **arguments: Any) -> str:
        result = await self.ask("tools/call", name=name, arguments=arguments)
        return result["content"][0]["text"]


@asynccontextmanager
async def agent(root: Path) -> AsyncIterator[Agent]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "midstream", "mcp"),
        cwd=root,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Agent(process)
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.close()
        async with asyncio.timeout(PATIENCE_S):
            assert await process.wait() == 0
            assert await process.stderr.read() == b""
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def reviewed(root: Path, settings: Settings, endpoint: Endpoint) -> AsyncIterator[Witness]:
    """A session that reviews the folder, with hooks."""
    async with await PairingSession.open(root, settings=settings, endpoint=endpoint) as session:
        witness = Witness(session)
        await witness.until(lambda: session.external.watching == "native")
        await session.review.switch_on(since_commit=True)
        await witness.until(lambda: session.gate.listening)
        yield witness


async def test_the_protocol_without_a_review(root: Path) -> None:
    async with agent(root) as client:
        hello = await client.ask("initialize", protocolVersion="2025-03-26", capabilities={})
        assert hello["protocolVersion"] == "2025-03-26"
        assert hello["serverInfo"]["name"] == "midstream"
        await client.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        tools = (await client.ask("tools/list"))["tools"]
        assert [tool["name"] for tool in tools] == ["review_status", "wait_for_review"]
        assert await client.ask("ping") == {}
        assert "No review is running in this folder" in await client.call("review_status")
        hello = await client.ask("initialize", protocolVersion="1999-01-01")
        assert hello["protocolVersion"] == "2025-06-18"


async def test_what_is_no_request_is_an_error_and_no_end(root: Path) -> None:
    async with agent(root) as client:
        for line, code in ((b"{", -32700), (b"[1]", -32600), (b"[" * 100_000, -32700)):
            await client.send(line)
            assert (await client.hear())["error"]["code"] == code
        await client.begin("resources/list")
        assert (await client.hear())["error"]["code"] == -32601
        await client.begin("tools/call", name="write_file", arguments=[])
        assert (await client.hear())["error"]["code"] == -32602
        await client.send(b'{"jsonrpc": "2.0", "method": "notifications/unknown", "params": 3}')
        assert await client.ask("ping") == {}


@pytest.mark.parametrize("odd", [b"NaN", b"1e999", b"[1]", b'{"a": 1}', b"null", b"1.5"])
async def test_an_id_that_no_answer_can_have_is_an_error(root: Path, odd: bytes) -> None:
    async with agent(root) as client:
        await client.send(b'{"jsonrpc": "2.0", "id": %b, "method": "ping"}' % odd)
        assert await client.hear() == {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": -32600, "message": "This is no id."},
        }
        assert await client.ask("ping") == {}


async def test_errors_are_short_and_a_missing_folder_is_an_error(root: Path) -> None:
    async with agent(root) as client:
        for method, named in (("m" * 10_000, {}), ("tools/call", {"name": "n" * 10_000})):
            await client.begin(method, **named)
            assert len((await client.hear())["error"]["message"]) < 200
        shutil.rmtree(root)
        await client.begin("tools/call", name="review_status")
        assert (await client.hear())["error"]["message"].startswith("No answer: ")


async def test_an_agent_learns_what_was_put_back_and_why(
    root: Path, settings: Settings, endpoint: Endpoint
) -> None:
    async with reviewed(root, settings, endpoint) as witness, agent(root) as client:
        decisions = witness.session.decisions
        (root / "run.py").write_text(AFTER)
        await witness.until(lambda: len(witness.session.hunks.undecided()) == 2)
        said = await client.call("review_status")
        assert "2 hunks of yours wait for the user: run.py." in said
        assert "Nothing new was put back" in said
        first, last = [hunk.id for hunk in witness.session.hunks.undecided()]
        asked = await client.begin("tools/call", name="wait_for_review", arguments={})
        # A ping is answered while a call waits.
        assert await client.ask("ping") == {}
        await decisions.accept(first)
        await decisions.reject(last, "twenty is right")
        await decisions.put_backs.apply()
        answer = await client.hear()
        assert answer["id"] == asked
        said = answer["result"]["content"][0]["text"]
        assert said.startswith("None of your changes is waiting for a decision.")
        assert "Reason: twenty is right" in said
        assert "work(33)" in (root / "run.py").read_text()
        assert "work(220)" not in (root / "run.py").read_text()
        # It was told once.
        assert "Nothing new was put back." in await client.call("review_status")


async def test_waiting_ends_in_time(root: Path, settings: Settings, endpoint: Endpoint) -> None:
    async with reviewed(root, settings, endpoint) as witness, agent(root) as client:
        (root / "run.py").write_text(AFTER)
        await witness.until(lambda: len(witness.session.hunks.undecided()) == 2)
        assert "2 hunks of yours wait" in await client.call("wait_for_review", seconds=1)


@pytest.mark.parametrize("seconds", ["1" + "0" * 400, "1e400", "-1e400", "NaN", '"x"', "[]", "-5"])
async def test_any_wait_is_answered(
    root: Path, settings: Settings, endpoint: Endpoint, seconds: str
) -> None:
    call = (
        '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait_for_review",'
        ' "arguments": {"seconds": %s}}}'
    )
    async with reviewed(root, settings, endpoint) as witness, agent(root) as client:
        (root / "run.py").write_text(AFTER)
        await witness.until(lambda: len(witness.session.hunks.undecided()) == 2)
        await client.send((call % seconds).encode())
        assert await client.ask("ping") == {}
        decided = [hunk.id for hunk in witness.session.hunks.undecided()]
        for hunk in decided:
            await witness.session.decisions.accept(hunk)
        answer = await client.hear()
        assert answer["id"] == 7
        assert "None of your changes" in answer["result"]["content"][0]["text"] or seconds == "-5"


@pytest.mark.parametrize("seconds", ["1e308", "-1", "null", "{}"])
async def test_the_session_waits_no_longer_than_agents_do(
    root: Path, settings: Settings, endpoint: Endpoint, seconds: str
) -> None:
    line = '{"hook_event_name": "MidstreamReview", "cwd": %s, "tool_name": "wait_for_review",'
    line = line % json.dumps(str(root)) + f' "tool_input": {{"seconds": {seconds}}}}}'
    async with reviewed(root, settings, endpoint) as witness:
        (root / "run.py").write_text(AFTER)
        await witness.until(lambda: len(witness.session.hunks.undecided()) == 2)
        event = HookEvent.read(line.encode())
        assert event is not None
        answering = asyncio.ensure_future(witness.session.gate.answer(event))
        await witness.until(lambda: len(asyncio.all_tasks()) > 1)
        for hunk in witness.session.hunks.undecided():
            await witness.session.decisions.accept(hunk.id)
        async with asyncio.timeout(PATIENCE_S):
            answer = await answering
        assert answer is not None
        assert "None of your changes" in answer["text"]


async def test_an_agent_that_leaves_while_it_waits_is_no_trouble(
    root: Path, settings: Settings, endpoint: Endpoint
) -> None:
    async with reviewed(root, settings, endpoint) as witness:
        (root / "run.py").write_text(AFTER)
        await witness.until(lambda: len(witness.session.hunks.undecided()) == 2)
        async with agent(root) as client:
            await client.begin("tools/call", name="wait_for_review", arguments={"seconds": "x"})
        async with agent(root) as client:
            assert "2 hunks of yours wait" in await client.call("review_status")
