"""The client against endpoints that speak other dialects and misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import random
import threading
import zlib
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from midstream.errors import UnavailableError
from midstream.responses import client as client_module
from midstream.responses import dialect as dialect_module
from midstream.responses.catalogue import list_models
from midstream.responses.client import Client
from midstream.responses.dialect import Dialect, EndpointKind
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import Delta, Failed, Finished, Started
from midstream.responses.http import Poster, RefusedError
from midstream.responses.stream import Stream
from tests.helpers.scripted_endpoint import Faults, Scripted, expected
from tests.helpers.waiting import PATIENCE_S

Messages = list[tuple[str, str]]


async def read(stream: Stream) -> tuple[str, Finished | Failed]:
    text, end = "", None
    async with asyncio.timeout(PATIENCE_S):
        async for event in stream:
            assert end is None
            if isinstance(event, Delta):
                text += event.text
            elif isinstance(event, Finished | Failed):
                end = event
    assert end is not None
    return text, end


async def stop_midway(stream: Stream) -> tuple[str, Finished | Failed]:
    """Stop after the first text and read on to the end."""
    text, end = "", None
    async with asyncio.timeout(PATIENCE_S):
        async for event in stream:
            if isinstance(event, Delta):
                assert not stream.interrupted, "text after the stop"
                text += event.text
                await stream.interrupt()
            elif isinstance(event, Finished | Failed):
                end = event
    assert end is not None
    return text, end


def endpoint(url: str, kind: EndpointKind = "openai") -> Endpoint:
    return Endpoint(url, "key", "model", kind)


async def test_a_growing_conversation_sends_only_what_is_new() -> None:
    scripted = Scripted()
    async with scripted.running() as url:
        client = Client(endpoint(url))
        messages: Messages = []
        for turn in range(4):
            messages.append(("user", f"turn {turn}"))
            text, _ = await read(await client.create(messages=messages))
            assert text == expected(messages)
            messages.append(("assistant", text))
        await client.close()
    assert [len(create["input"]) for create in scripted.creates] == [1, 1, 1, 1]
    assert [bool(c.get("previous_response_id")) for c in scripted.creates] == [False] + [True] * 3
    assert scripted.connections == 1


@pytest.mark.parametrize("change", ["instructions", "history", "effort", "tools"])
async def test_a_changed_conversation_is_sent_in_full(change: str) -> None:
    scripted = Scripted()
    async with scripted.running() as url:
        client = Client(endpoint(url))
        await read(await client.create(messages=[("user", "a")]))
        messages = [
            ("user", "b" if change == "history" else "a"),
            ("assistant", "x"),
            ("user", "c"),
        ]
        text, _ = await read(
            await client.create(
                messages=messages,
                instructions="new" if change == "instructions" else "",
                effort="high" if change == "effort" else None,
                tools=[{"type": "custom", "name": "t"}] if change == "tools" else (),
            )
        )
        await client.close()
    assert text == expected(messages)
    assert "previous_response_id" not in scripted.creates[1]


async def test_a_forgotten_conversation_is_sent_in_full_once() -> None:
    scripted = Scripted(faults=Faults(forget=1.0))
    async with scripted.running() as url:
        client = Client(endpoint(url))
        first, _ = await read(await client.create(messages=[("user", "a")]))
        messages = [("user", "a"), ("assistant", first), ("user", "b")]
        text, end = await read(await client.create(messages=messages))
        stale = await client.create(messages=[("user", "c")], previous_response_id="resp_other")
        _, refused = await read(stale)
        await client.close()
    assert (text, isinstance(end, Finished)) == (expected(messages), True)
    assert [len(create["input"]) for create in scripted.creates] == [1, 1, 3, 1]
    assert isinstance(refused, Failed)
    assert refused.code == "previous_response_not_found"


@pytest.mark.parametrize(
    ("kind", "interrupts", "connections", "sent"),
    [
        ("openai", "accept", 1, 2),
        ("openai", "refuse", 3, 1),
        ("openai", "error", 3, 1),
        ("openai", "ignore", 3, 1),
        ("xai", "ignore", 3, 0),
        ("azure", "accept", 3, 0),
        ("custom", "refuse", 3, 1),
    ],
)
async def test_a_stop_finds_the_rung_that_works_and_remembers_it(
    kind: EndpointKind, interrupts: str, connections: int, sent: int
) -> None:
    scripted = Scripted(interrupts=interrupts, pause=0.005, length=200)
    async with scripted.running() as url:
        client = Client(endpoint(url, kind))
        for _ in range(2):
            stream = await client.create(messages=[("user", "a")])
            text, end = await stop_midway(stream)
            assert text
            assert expected([("user", "a")], 200).startswith(text)
            assert isinstance(end, Finished)
            assert (end.status, end.reason) == ("incomplete", "interrupted")
        scripted.length = 40
        text, end = await read(await client.create(messages=[("user", "b")]))
        assert text == expected([("user", "b")])
        await client.close()
    # The last count has the spare that a dropping client keeps dialled.
    assert scripted.connections in (connections, connections + 1)
    assert scripted.interrupts_seen == sent, "what was learnt is not tried again"


@pytest.mark.parametrize("kind", ["local", "xai"])
async def test_a_stop_before_any_answer_does_not_wait_for_one(kind: EndpointKind) -> None:
    scripted = Scripted(silent=True)
    async with scripted.running() as url:
        client = Client(endpoint(url, kind))
        client._dialect = replace(client._dialect, patience_seconds=0.1)  # pyright: ignore
        stream = await client.create(messages=[("user", "a")])
        await asyncio.sleep(0.05)
        await stream.interrupt()
        async with asyncio.timeout(PATIENCE_S):
            text, end = await read(stream)
        scripted.silent = False
        assert (text, isinstance(end, Finished)) == ("", True)
        text, _ = await read(await client.create(messages=[("user", "b")]))
        assert text == expected([("user", "b")])
        await client.close()


async def test_a_drop_takes_the_spare_connection() -> None:
    scripted = Scripted(pause=0.005, length=300)
    async with scripted.running() as url:
        client = Client(endpoint(url, "xai"))
        stream = await client.create(messages=[("user", "a")])
        events = aiter(stream)
        await anext(events)
        # A spare is dialled while the first response runs.
        async with asyncio.timeout(PATIENCE_S):
            while scripted.connections < 2:  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.01)
        assert scripted.connections == 2
        await stream.interrupt()
        scripted.length = 5
        text, _ = await read(await client.create(messages=[("user", "b")]))
        assert text == expected([("user", "b")], 5)
        await client.close()


async def test_requests_that_were_never_acknowledged_are_sent_again() -> None:
    scripted = Scripted(faults=Faults(lose_before_created=1.0))
    async with scripted.running() as url:
        client = Client(endpoint(url))
        streams = [await client.create(messages=[("user", f"m{n}")]) for n in range(3)]
        await asyncio.sleep(0.1)
        scripted.faults = Faults()
        results = [await read(stream) for stream in streams]
        await client.close()
    assert [text for text, _ in results] == [expected([("user", f"m{n}")]) for n in range(3)]


async def test_a_server_that_never_acknowledges_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_module, "_BACKOFF_SECONDS", (0.0, 0.01, 0.02))
    scripted = Scripted(faults=Faults(lose_before_created=1.0))
    async with scripted.running() as url:
        client = Client(endpoint(url))
        _, end = await read(await client.create(messages=[("user", "a")]))
        await client.close()
    assert isinstance(end, Failed)
    assert end.code == "connection_lost"
    assert len(scripted.creates) < 8


async def test_a_response_that_breaks_off_fails_and_keeps_its_text() -> None:
    scripted = Scripted(faults=Faults(lose_midway=1.0))
    async with scripted.running() as url:
        client = Client(endpoint(url))
        text, end = await read(await client.create(messages=[("user", "a")]))
        assert isinstance(end, Failed)
        assert end.code == "connection_lost"
        assert expected([("user", "a")]).startswith(text)
        scripted.faults = Faults()
        text, end = await read(await client.create(messages=[("user", "b")]))
        assert isinstance(end, Finished)
        await client.close()


async def test_the_connection_is_renewed_between_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        dialect_module.DIALECTS,
        "xai",
        Dialect(websocket=True, connection_seconds=0.1),  # pyright: ignore
    )
    scripted = Scripted()
    async with scripted.running() as url:
        client = Client(endpoint(url, "xai"))
        await read(await client.create(messages=[("user", "a")]))
        await asyncio.sleep(0.15)
        await read(await client.create(messages=[("user", "b")]))
        await asyncio.sleep(0.02)
        assert len(scripted.open) <= 2, "the old connection is closed"
        await client.close()
    assert scripted.connections >= 2


@pytest.mark.system
@pytest.mark.parametrize(
    ("kind", "interrupts"),
    [("openai", "accept"), ("openai", "error"), ("xai", "ignore"), ("custom", "refuse")],
)
async def test_a_thousand_random_faults_lose_double_and_reorder_nothing(
    kind: EndpointKind, interrupts: str
) -> None:
    """300 faults in each of four dialects, among them drops, limits, forgetting and late events."""
    chance = random.Random(7)
    scripted = Scripted(
        interrupts=interrupts,
        length=8,
        remembers=2,
        random=random.Random(8),
        faults=Faults(
            lose_before_created=0.03,
            lose_midway=0.05,
            lose_before_terminal=0.02,
            double_event=0.02,
            omit_event=0.02,
            unknown_event=0.02,
            late_delta=0.02,
            limit=0.02,
            forget=0.05,
        ),
    )
    finished = failed = stopped = 0
    async with scripted.running() as url:
        client = Client(endpoint(url, kind))
        messages: Messages = []
        turn = 0
        while scripted.happened < 300:
            turn += 1
            if len(messages) > 6 or chance.random() < 0.1:
                messages = []
            messages = [*messages, ("user", f"turn {turn}")]
            whole = expected(messages, 8)
            stop = chance.random() < 0.15
            stream = await client.create(messages=messages)
            text, end = await (stop_midway if stop else read)(stream)
            if isinstance(end, Failed) or end.reason == "its last event contradicts its text":
                failed += 1
                # An omitted event that no later one could make up for leaves a gap at most.
                words = iter(whole.split())
                assert all(word in words for word in text.split()), (text, whole)
                messages = messages[:-1]
            elif end.reason == "interrupted":
                stopped += 1
                messages = [*messages, ("assistant", text)]
            else:
                finished += 1
                assert (text, end.kept) == (whole, whole)
                messages = [*messages, ("assistant", text)]
        await client.close()
    assert finished > 2 * failed > 0
    assert stopped > 15


@pytest.mark.parametrize("status", [200, 400, 403, 404, 405, 426, 500, 501])
async def test_a_refused_upgrade_means_http_for_the_session(status: int) -> None:
    scripted = Scripted(status=HTTPStatus(status))
    async with scripted.running() as url:
        client = Client(endpoint(url, "custom"))
        await client.connect()
        assert client.transport == "sse"
        await client.close()


@pytest.mark.parametrize("status", [401, 429, 503])
async def test_another_refusal_is_an_error(status: int) -> None:
    scripted = Scripted(status=HTTPStatus(status))
    async with scripted.running() as url:
        client = Client(endpoint(url, "custom"))
        with pytest.raises(UnavailableError, match=f"HTTP {status}"):
            await client.connect()
        await client.close()


class HttpServer:
    """An HTTP-only engine: answers one POST with the given chunks, split anywhere."""

    def __init__(self, chunks: list[bytes], *, head: bytes | None = None) -> None:
        self.head = head or (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        )
        self.chunks = chunks
        self.bodies: list[bytes] = []
        self.left = asyncio.Event()

    async def __aenter__(self) -> str:
        self.server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}/v1"

    async def __aexit__(self, *_: Any) -> None:
        self.server.close()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"GET"):
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        else:
            assert b"authorization: bearer key" in head.lower()
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            self.bodies.append(await reader.readexactly(length))
            writer.write(self.head)
            for chunk in self.chunks:
                writer.write(chunk)
                await writer.drain()
                await asyncio.sleep(0)
            if not self.chunks:
                await reader.read()
                self.left.set()
        writer.close()


SSE = (
    b'event: response.created\r\ndata: {"type":"response.created",'
    b'"response":{"id":"r","status":"in_progress"}}\r\n\r\n'
    b": a comment\n\n"
    b'data: {"type":"response.output_item.added","item":{"id":"m"}}\n\n'
    b'data: {"type":"response.output_text.delta","item_id":"m","delta":"na\xc3\xafve "}\n\n'
    b'data: {"type":"response.output_text.delta","item_id":"m",\ndata: "delta":"text"}\n\n'
    b'data: {"type":"response.completed","response":{"id":"r","status":"completed",'
    b'"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}}\n\n'
    b"data: [DONE]\n\n"
)


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
async def test_http_only_engines_are_streamed_from(size: int) -> None:
    server = HttpServer([SSE[i : i + size] for i in range(0, len(SSE), size)])
    async with server as url:
        client = Client(endpoint(url, "custom"))
        assert not client.reads_ahead
        for _ in range(2):
            text, end = await read(await client.create(messages=[("user", "hi"), ("user", "ho")]))
            assert text == "naïve text"
            assert isinstance(end, Finished)
            assert end.usage.output_tokens == 2
        assert client.transport == "sse"
        await client.close()
    assert len(server.bodies) == 2
    assert b'"stream":true' in server.bodies[0]
    assert b"previous_response_id" not in server.bodies[1]
    assert b'"type":"response.create"' not in server.bodies[0]


async def test_stopping_over_http_leaves_the_request() -> None:
    created = SSE.split(b": a comment")[0]
    head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + created
    server = HttpServer([], head=head)
    async with server as url:
        client = Client(endpoint(url, "custom"))
        stream = await client.create(messages=[("user", "hi")])
        assert isinstance(await anext(aiter(stream)), Started)
        await stream.interrupt()
        _, end = await read(stream)
        assert isinstance(end, Finished)
        assert end.reason == "interrupted"
        async with asyncio.timeout(PATIENCE_S):
            await server.left.wait()
        await client.close()


@pytest.mark.parametrize(
    ("head", "chunks", "code"),
    [
        (
            b"HTTP/1.1 400 Bad\r\nconnection: close\r\n\r\n",
            [b'{"error":{"code":"bad_model","message":"No such model."}}'],
            "bad_model",
        ),
        (b"HTTP/1.1 500 Oh\r\nconnection: close\r\n\r\n", [b"<html>"], "error"),
        (b"garbage\r\n\r\n", [b"x"], "unreachable"),
        (None, [SSE[:150]], "connection_lost"),
    ],
)
async def test_trouble_over_http_is_one_failure(
    head: bytes | None, chunks: list[bytes], code: str
) -> None:
    async with HttpServer(chunks, head=head) as url:
        client = Client(endpoint(url, "custom"))
        _, end = await read(await client.create(messages=[("user", "hi")]))
        await client.close()
    assert isinstance(end, Failed)
    assert end.code == code


PACKED = b"HTTP/1.1 %d OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: %s\r\n\r\n"


def in_pieces(data: bytes, size: int = 1000) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate"])
async def test_an_answer_that_a_gateway_packed_is_read(coding: str) -> None:
    packed = (zlib if coding == "deflate" else gzip).compress(SSE)
    head = PACKED % (200, coding.encode())
    async with HttpServer(in_pieces(packed, 7), head=head) as url:
        client = Client(endpoint(url, "custom"))
        text, end = await read(await client.create(messages=[("user", "hi")]))
        await client.close()
    assert (text, type(end)) == ("naïve text", Finished)


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip", lambda: gzip.compress(b": x\n" * (3 << 20))),
        ("deflate", lambda: zlib.compress(bytes(20 << 20))),
        ("gzip", lambda: gzip.compress(SSE)[:-20] + b"x" * 40),
        ("gzip, gzip", lambda: gzip.compress(gzip.compress(bytes(30 << 20)))),
        ("br", lambda: b"\x0b\x02\x80hello\x03"),
        ("zstd", lambda: b"(\xb5/\xfd"),
    ],
)
async def test_a_bomb_is_one_failure_and_nobody_waits_for_it(
    coding: str, packed: Callable[[], bytes], status: int
) -> None:
    body = packed()
    async with HttpServer(in_pieces(body, 4096), head=PACKED % (status, coding.encode())) as url:
        where = endpoint(url, "custom")
        client = Client(where)
        _, end = await read(await client.create(messages=[("user", "hi")]))
        await client.close()
        assert isinstance(end, Failed)
        poster, came = Poster(where), 0
        with contextlib.suppress(OSError, RefusedError):
            async for piece in poster.post(f"{url}/responses", b"{}", {}):
                assert len(piece) <= 65_536
                came += len(piece)
        await poster.close()
    assert came <= 100 * len(body) + 65_536


def test_a_list_that_is_a_bomb_is_refused() -> None:
    packed = gzip.compress(bytes(100 << 20))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(packed)

        def log_message(self, *_: object) -> None:  # type: ignore[override]
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        with pytest.raises(UnavailableError, match=r"too long|unpacks to"):
            list_models(endpoint(url, "custom"))
        server.shutdown()
