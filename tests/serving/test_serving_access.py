"""Access, and the cost of a hostile peer for others."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import ssl
import time
from pathlib import Path

import httpx
import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from midstream.engine.types import GenerateRequest
from midstream.serving import running as running_module
from midstream.serving.app import create_app
from midstream.serving.limits import Limits
from midstream.serving.replay import ReplayModel
from midstream.serving.running import serve
from midstream.serving.turn import ServedResponse
from tests.helpers.waiting import PATIENCE_S
from tests.helpers.wire import TOKEN, eventually, made_certificate, peer, running

AUTH = {"Authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize("token", [None, "wrong", TOKEN + "x", TOKEN[:-1], "ünïcödé"])
async def test_a_missing_or_wrong_token_is_refused(token: str | None) -> None:
    async with running() as port:
        headers = {} if token is None else {"Authorization": f"Bearer {token}".encode()}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
            for path in (
                "/v1/models",
                "/v1/telemetry",
                "/metrics",
                "/healthz/../metrics",
                "/healthzz",
            ):
                answer = await http.get(path, headers=headers)
                assert answer.status_code == 401
                assert answer.json()["error"]["code"] == "invalid_api_key"
            assert (await http.get("/healthz")).json() == {"status": "ok"}
        if token is None or token.isascii():
            with pytest.raises(InvalidStatus) as refused:
                async with peer(port, token):
                    pass
            assert refused.value.response.status_code == 401


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
async def test_a_browser_page_is_refused_even_with_the_token(origin: str) -> None:
    async with running() as port:
        with pytest.raises(InvalidStatus) as refused:
            async with peer(port, headers={"Origin": origin}):
                pass
        assert refused.value.response.status_code == 403
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
            for path in ("/v1/models", "/healthz", "/metrics"):
                answer = await http.get(path, headers=AUTH | {"Origin": origin})
                assert answer.status_code == 403


async def test_without_a_token_a_name_pointed_here_reads_nothing() -> None:
    async with running(token=None) as port, httpx.AsyncClient() as http:
        url = f"http://127.0.0.1:{port}/v1/models"
        assert (await http.get(url)).status_code == 200
        for host, status in (("localhost:1", 200), ("[::1]:1", 200), ("rebound.example", 403)):
            assert (await http.get(url, headers={"Host": host})).status_code == status
        for host in ("[", "a b", ""):
            assert (await http.get(url, headers={"Host": host})).status_code in (400, 403)
    async with running() as port, httpx.AsyncClient(headers=AUTH) as http:
        named = await http.get(
            f"http://127.0.0.1:{port}/v1/models", headers={"Host": "team.example"}
        )
        assert named.status_code == 200


async def test_large_messages_count_more() -> None:
    async with running(limits=Limits(frames_per_second=20)) as port, peer(port) as client:
        with contextlib.suppress(ConnectionClosed):
            for _ in range(10):
                await client.send(type="response.processed", padding="x" * 500_000)
        assert await client.closed() == 1008
        assert client.seen[-1]["error"]["code"] == "rate_limit"


async def test_ended_turns_hold_no_text() -> None:
    """Late stops are still answered, but a long connection keeps no text of its turns."""
    async with running() as port, peer(port) as client:
        await client.create("x" * 100_000, instructions="y" * 100_000)
        ended = (await client.terminal())["response"]["id"]
        await client.send(type="response.interrupt", response_id=ended)
        failed = await client.until("response.interrupt.failed")
        assert failed["error"]["code"] == "response_not_active"
        gc.collect()
        turns = [found for found in gc.get_objects() if isinstance(found, ServedResponse)]
        assert turns
        assert all(not turn.history and not turn.request.instructions for turn in turns)


async def test_models_are_listed_with_their_facts() -> None:
    async with running() as port:
        url = f"http://127.0.0.1:{port}/v1"
        async with httpx.AsyncClient(base_url=url, headers=AUTH) as http:
            listed = (await http.get("/models")).json()
            one = (await http.get("/models/replay")).json()
            missing = await http.get("/models/other")
    assert listed["object"] == "list"
    assert listed["data"] == [one]
    assert one["id"] == "replay"
    assert one["metadata"]["edit_format"] == "region"
    assert missing.status_code == 404
    assert "available: replay" in missing.json()["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": 9}, "temperature"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"input": 5}, "input"),
        ({"input": [{"type": "message", "role": "wizard", "content": "x"}]}, "input[0].role"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0]",
        ),
        ({"input": [{"type": "item_reference"}]}, "input[0].type"),
        ({"metadata": {"a": 1}}, "metadata[...]"),
        ({"metadata": {str(n): "x" for n in range(17)}}, "metadata"),
        ({"tools": "all"}, "tools"),
        ({"text": {"format": {"type": "json_schema"}}}, "text.format"),
        ({"reasoning": {"effort": 3}}, "reasoning.effort"),
        ({"stream_id": ""}, "stream_id"),
        ({"stream_id": "a b"}, "stream_id"),
        ({"previous_response_id": "resp_gone"}, "previous_response_id"),
    ],
)
async def test_a_wrong_field_is_named_and_the_connection_goes_on(
    fields: dict[str, object], param: str
) -> None:
    async with running() as port, peer(port) as client:
        await client.send(**({"type": "response.create", "model": "replay", "input": "x"} | fields))
        error = await client.until("error")
        assert error["status"] == 400
        assert error["error"]["type"] == "invalid_request_error"
        assert error["error"]["param"] == param
        await client.create(unknown_field={"a": 1}, client_metadata={}, stream=True)
        assert (await client.terminal())["type"] == "response.completed"


async def test_an_unknown_model_is_refused_by_name() -> None:
    async with running() as port, peer(port) as client:
        await client.send(type="response.create", model="gpt", input="x", stream_id="l")
        error = await client.until("error")
        assert (error["status"], error["error"]["code"]) == (404, "model_not_found")
        assert error["stream_id"] == "l"


@pytest.mark.parametrize(
    "frame",
    ["", "{", "[]", "null", '"x"', "{}", '{"type":5}', "[" * 100_000, b"\x00\x01", '{"type":"x"}'],
)
async def test_a_frame_that_is_no_request_is_answered_and_forgiven(frame: str | bytes) -> None:
    async with running() as port, peer(port) as client:
        await client.socket.send(frame)
        assert (await client.until("error"))["status"] == 400
        await client.create()
        assert (await client.terminal())["type"] == "response.completed"


async def test_codex_frames_without_meaning_here_are_ignored() -> None:
    async with running() as port, peer(port) as client:
        await client.send(type="response.processed", response_id="x")
        await client.create()
        await client.terminal()
        assert "error" not in client.types


async def test_too_many_bad_frames_end_the_connection() -> None:
    async with running(limits=Limits(bad_frames=5)) as port, peer(port) as client:
        for _ in range(8):
            await client.socket.send("garbage")
        assert await client.closed() == 1008
        assert client.types.count("error") == 5


async def test_a_message_over_the_limit_ends_only_its_connection() -> None:
    limits = Limits(message_bytes=10_000)
    async with running(limits=limits) as port, peer(port) as good:
        async with peer(port) as client:
            await client.create("x" * 20_000)
            assert await client.closed() == 1009
        await good.create("x" * 5_000)
        assert (await good.terminal())["type"] == "response.completed"


async def test_a_large_request_within_the_limit_is_served() -> None:
    async with running() as port, peer(port) as client:
        await client.create("x " * 1_000_000)
        assert (await client.terminal())["type"] == "response.completed"


async def test_a_flood_of_messages_ends_the_connection() -> None:
    async with running(limits=Limits(frames_per_second=50)) as port, peer(port) as client:
        with contextlib.suppress(ConnectionClosed):
            for _ in range(300):
                await client.send(type="response.processed")
        assert await client.closed() == 1008
        assert client.seen[-1]["status"] == 429


PING, PONG = b"\x89\xfd\0\0\0\0" + b"p" * 125, b"\x8a\x80\0\0\0\0"
FRAGMENT, EMPTY_REST = b"\x01\x81\0\0\0\0x", b"\x00\x80\0\0\0\0"


@pytest.mark.parametrize("frames", [PING * 2000, PONG * 2000, FRAGMENT + EMPTY_REST * 2000])
async def test_a_flood_of_frames_that_are_no_messages_ends_the_connection(frames: bytes) -> None:
    async with running() as port, peer(port) as good:
        async with peer(port) as client:
            client.socket.transport.write(frames)
            assert await client.closed() == 1008
        await good.create()
        assert (await good.terminal())["type"] == "response.completed"


async def test_a_few_pings_and_fragments_are_served() -> None:
    async with running() as port, peer(port) as client:
        client.socket.transport.write(PING * 100 + PONG * 100)
        await client.socket.send(['{"type":"response.create",', '"input":', '"x"}'])
        assert (await client.terminal())["type"] == "response.completed"
        await (await client.socket.ping())


@pytest.mark.system  # fills socket buffers for seconds
async def test_pings_of_a_peer_that_does_not_read_are_not_kept_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running_module, "_MAX_UNREAD_BYTES", 100_000)
    limits = Limits(frames_per_second=1_000_000)
    async with running(limits=limits) as port, peer(port) as client:
        transport = client.socket.transport
        transport.pause_reading()

        async def taken() -> bool:
            return transport.get_write_buffer_size() < 200_000

        for _ in range(80):
            transport.write(PING * 1000)
            await eventually(taken)
        (server_side,) = [
            found
            for found in gc.get_objects()
            if issubclass(type(found), running_module._Bounded)  # pyright: ignore[reportPrivateUsage]
            and not found.transport.is_closing()
        ]
        assert server_side.transport.get_write_buffer_size() < 1_000_000, "of 10 million"


async def test_a_compressed_bomb_ends_only_its_connection() -> None:
    limits = Limits(message_bytes=100_000)
    app = create_app({"replay": ReplayModel("x")}, token=None, limits=limits)
    async with (
        serve(app, limits=limits, compression=True) as server,
        peer(server.port, None, compression="deflate") as client,
        peer(server.port, None) as good,
    ):
        await client.socket.send(" " * 50_000_000)
        assert await client.closed() == 1009
        await good.create()
        assert (await good.terminal())["type"] == "response.completed"


async def test_waiting_requests_are_bounded() -> None:
    limits = Limits(waiting_creates=3)
    async with running("word " * 200, rate=400, limits=limits) as port, peer(port) as client:
        for _ in range(5):
            await client.create()
        error = await client.until("error")
        assert (error["status"], error["error"]["type"]) == (429, "rate_limit_error")


async def test_steers_are_bounded_in_number_and_length() -> None:
    limits = Limits(pending_steers=2, steer_characters=100)
    line = "a long line " * 400
    async with running(line, rate=400, limits=limits) as port, peer(port) as client:
        await client.create()
        target = (await client.until("response.created"))["response"]["id"]
        await client.until("response.output_text.delta")
        codes: list[str] = []
        for text in ("x" * 101, "one", "two", "three"):
            await client.send(type="response.steer", previous_response_id=target, input=text)
            wanted = "accepted" if text in ("one", "two") else "failed"
            event = await client.until(f"response.steer.{wanted}")
            codes.append(event.get("error", {}).get("code", ""))
        assert codes == ["invalid_input", "", "", "too_many_pending_steers"]


async def test_lanes_are_bounded() -> None:
    async with running(limits=Limits(lanes=2)) as port, peer(port) as client:
        for lane in ("a", "b", "a", "c"):
            await client.create(stream_id=lane)
        error = await client.until("error")
        assert error["error"]["code"] == "websocket_stream_limit_reached"
        assert error["stream_id"] == "c"


async def test_connections_are_bounded_and_come_free_again() -> None:
    async with running(limits=Limits(connections=2)) as port:
        async with peer(port), peer(port):
            with pytest.raises(InvalidStatus) as refused:
                async with peer(port):
                    pass
            assert refused.value.response.status_code == 503
        async with peer(port) as client:
            await client.create()
            assert (await client.terminal())["type"] == "response.completed"


async def test_an_old_connection_is_told_before_it_is_closed() -> None:
    limits = Limits(connection_seconds=0.2)
    async with running(limits=limits) as port, peer(port) as client:
        error = await client.until("error")
        assert error["error"]["code"] == "websocket_connection_limit_reached"
        assert await client.closed() == 1013


async def test_a_peer_that_never_reads_costs_the_others_nothing() -> None:
    """Its text piles up joined, within its own output; the engine and other sockets go on."""
    async with (
        running("word " * 20_000) as port,
        peer(port, max_queue=1, close_timeout=0.1) as lazy,
        peer(port) as busy,
    ):
        for _ in range(20):
            await lazy.create()
        await asyncio.sleep(0.3)
        for _ in range(3):
            began = time.process_time()
            await busy.create()
            await busy.terminal()
            assert time.process_time() - began < 2


async def test_half_open_connections_cost_the_others_nothing() -> None:
    async with running() as port:
        openers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
        for _, writer in openers[:100]:
            writer.write(b"GET /v1/responses HTTP/1.1\r\nHost: x\r\n")
        async with peer(port) as client:
            await client.create()
            assert (await client.terminal())["type"] == "response.completed"
        for _, writer in openers:
            writer.close()


async def test_nothing_of_a_request_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with running() as port, peer(port) as client:
        await client.create("private words", metadata={"k": "private words"})
        await client.terminal()
        await client.send(type="response.create", input=7, secret="private words")
        await client.until("error")
        answers = json.dumps(client.seen[-1])
    assert "private" not in caplog.text
    assert "/v1/responses" not in caplog.text, "nor where it was sent"
    assert "private" not in answers


async def test_a_fault_is_logged_without_the_words_it_happened_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def break_down(request: GenerateRequest) -> str:
        raise LookupError(f"no such word: {request.messages[-1].text}")

    async with running(ReplayModel(break_down)) as port, peer(port) as client:
        await client.create("private words")
        await client.terminal()
    assert "LookupError" in caplog.text
    assert "in break_down" in caplog.text
    assert "private" not in caplog.text


async def test_mistakes_of_peers_leave_no_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "uvicorn")
    limits = Limits(connections=1, message_bytes=10_000)
    async with running(limits=limits) as port:
        for wrong in ({"token": "wrong"}, {"headers": {"Origin": "https://evil.example"}}):
            with pytest.raises(InvalidStatus):
                async with peer(port, **wrong):
                    pass
        async with peer(port) as client:
            with pytest.raises(InvalidStatus):
                async with peer(port):
                    pass
            await client.create("x" * 20_000)
            assert await client.closed() == 1009
        async with peer(port) as client:
            text_frame_with_bad_utf8 = b"\x81\x82\x00\x00\x00\x00\xff\xfe"
            client.socket.transport.write(text_frame_with_bad_utf8)
            assert await client.closed() == 1007
        for rubbish in (
            b"\x16\x03\x01\x00\x00 a client that speaks TLS\r\n\r\n",
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(rubbish)
            assert b"HTTP/1.1 " in await reader.read(100)
            writer.close()
    assert not [record for record in caplog.records if record.name.startswith("uvicorn")]


async def test_what_waits_is_bounded_in_bytes_but_one_large_request_is_taken() -> None:
    limits = Limits(waiting_bytes=10_000)
    async with running("word " * 100, rate=400, limits=limits) as port, peer(port) as client:
        await client.create("x" * 50_000)
        await client.until("response.created")
        await client.create("x" * 5_000)
        assert (await client.until("error"))["status"] == 429
        await client.terminal()
        await client.create("x" * 5_000)
        assert (await client.terminal())["type"] == "response.completed"


async def test_posts_and_waiting_generations_are_bounded() -> None:
    body = {"input": "x"}
    limits = Limits(posts=3, waiting_total=2)
    async with running("word " * 100, rate=400, limits=limits) as port:
        url = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=url, headers=AUTH, timeout=10) as http:
            answers = await asyncio.gather(
                *(http.post("/v1/responses", json=body) for _ in range(20))
            )
            codes = [a.json()["error"]["code"] for a in answers if a.status_code == 503]
            assert sorted({a.status_code for a in answers}) == [200, 503]
            assert set(codes) <= {"too_many_connections", "server_overloaded"}
            assert (await http.post("/v1/responses", json=body)).status_code == 200


async def test_generations_are_bounded_over_all_connections_together() -> None:
    limits = Limits(waiting_total=2)
    async with (
        running("word " * 200, rate=400, limits=limits) as port,
        peer(port) as one,
        peer(port) as two,
        peer(port) as three,
    ):
        for client in (one, two):
            await client.create()
            await client.until("response.created")
        await three.create()
        error = await three.until("error")
        assert (error["status"], error["error"]["code"]) == (503, "server_overloaded")
        for client in (one, two):
            assert (await client.terminal())["type"] == "response.completed"
        await three.create(max_output_tokens=1)
        assert (await three.terminal())["type"] == "response.incomplete"


@pytest.mark.system
async def test_a_peer_that_stops_reading_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_module, "_REQUEST_SECONDS", 0.1)
    limits = Limits(unread_seconds=0.2)
    # More than the kernel keeps for a peer.
    text = ("w" * 999 + " ") * 40_000
    async with running(text, limits=limits) as port, peer(port) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=64)
        body = b'{"input":"x","stream":true}'
        head = f"POST /v1/responses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        url = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=url, headers=AUTH, timeout=None) as http:

            async def free() -> bool:
                async with http.stream("GET", "/v1/telemetry") as telemetry:
                    async for line in telemetry.aiter_lines():
                        if line.startswith("data: "):
                            return json.loads(line[6:])["running"] == []
                return False

            assert (await reader.readexactly(12)).endswith(b"200")
            await eventually(free)

        async def gone() -> bool:
            kept = [found for found in gc.get_objects() if type(found) is H11Protocol]
            return not any(found.transport.get_write_buffer_size() for found in kept)

        await eventually(gone)
        await client.create(max_output_tokens=3)
        assert (await client.terminal())["type"] == "response.incomplete"
        writer.close()


@pytest.mark.system
async def test_a_thousand_connections_are_served_or_refused_and_one_is_not_slowed() -> None:
    async with running(limits=Limits(connections=300)) as port, peer(port) as client:

        async def open_one() -> asyncio.StreamWriter:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                b"GET /v1/responses HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                + f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
            )
            return writer

        writers = await asyncio.gather(*(open_one() for _ in range(1000)))
        for _ in range(3):
            await client.create()
            assert (await client.terminal())["type"] == "response.completed"
        for writer in writers:
            writer.close()

        async def ask() -> bool:
            try:
                async with peer(port) as late:
                    await late.create()
                    return (await late.terminal())["type"] == "response.completed"
            except InvalidStatus:
                return False

        await eventually(ask)


async def test_a_connection_that_asks_for_nothing_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running_module, "_REQUEST_SECONDS", 0.1)
    async with running() as port, peer(port) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /v1/responses HTTP/1.1\r\n")
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.read() == b""
        writer.close()
        await client.create()
        assert (await client.terminal())["type"] == "response.completed"


async def test_many_connections_at_once_are_refused_or_served_and_none_is_lost() -> None:
    async def ask(port: int) -> str:
        try:
            async with peer(port) as client:
                await client.create()
                return (await client.terminal())["type"]
        except InvalidStatus as refused:
            return str(refused.response.status_code)

    async with running(limits=Limits(connections=40)) as port:
        results = await asyncio.gather(*(ask(port) for _ in range(200)))
        assert set(results) <= {"response.completed", "503"}
        assert results.count("response.completed") >= 40
        assert await ask(port) == "response.completed"


async def test_tls_with_a_certificate_file(tmp_path: Path) -> None:
    certificate, key = await made_certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=str(certificate))
    app = create_app({"replay": ReplayModel("secret")}, token=TOKEN)
    async with serve(app, certificate=str(certificate), key=str(key)) as server:
        url = f"https://127.0.0.1:{server.port}/v1"
        async with httpx.AsyncClient(base_url=url, headers=AUTH, verify=trusting) as http:
            assert (await http.get("/models")).status_code == 200
        async with connect(
            url.replace("https", "wss") + "/responses",
            additional_headers=AUTH,
            ssl=trusting,
            proxy=None,
        ) as socket:
            await socket.send('{"type":"response.create","input":"x"}')
            assert '"response.created"' in str(await socket.recv())


async def test_compression_is_negotiated_where_the_server_allows_it() -> None:
    for allowed in (True, False):
        app = create_app({"replay": ReplayModel("word " * 1000)}, token=None)
        async with (
            serve(app, compression=allowed) as server,
            peer(server.port, None, compression="deflate") as client,
        ):
            negotiated = client.socket.response.headers.get("Sec-WebSocket-Extensions", "")
            assert ("permessage-deflate" in negotiated) is allowed
            await client.create()
            await client.terminal()
            assert client.text() == "word " * 1000
