"""``midstream bench wire``: overhead of the wire protocol, and time to redirect a response.

The server runs in a process of its own and replays text, so every figure is transport, scheduling
and Python. A simulated network is a TCP proxy that holds every byte back for
half the round-trip time, and a new connection for a whole one (the TCP handshake); there is no
loss and no bandwidth limit. Times are medians.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.connection import Connection as Pipe
from statistics import median
from typing import NamedTuple

from websockets.asyncio.client import connect

from midstream.arguments import CommandParser, whole
from midstream.bench.figures import percentile
from midstream.engine.types import GenerateRequest, Message
from midstream.errors import UserError
from midstream.responses.client import Client
from midstream.responses.dialect import EndpointKind
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import Delta, Failed, Finished, StreamEvent
from midstream.responses.stream import Stream
from midstream.serving.limits import Limits
from midstream.serving.replay import ReplayModel

TOKEN = "bench"


def words_answer(request: GenerateRequest) -> str:
    """Answer with as many words as the last message says."""
    return "word " * int(request.messages[-1].text)


def _server(pipe: Pipe, rate: float, event_seconds: float) -> None:
    from midstream.serving.app import create_app
    from midstream.serving.running import serve

    async def main() -> None:
        app = create_app(
            {"replay": ReplayModel(words_answer, rate)},
            token=TOKEN,
            limits=Limits(event_seconds=event_seconds),
        )
        async with serve(app) as server:
            pipe.send(server.port)
            with contextlib.suppress(EOFError):
                await asyncio.to_thread(pipe.recv)

    asyncio.run(main())


@contextmanager
def served(*, rate: float, event_seconds: float = 0.008) -> Generator[int]:
    """Run a server that replays words in a process of its own; yields its port.

    Args:
        rate: Tokens per second, 0 for as fast as possible.
        event_seconds: Least time between two text events.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_server, args=(theirs, rate, event_seconds), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours.recv()
    finally:
        ours.close()
        process.join(5)


@asynccontextmanager
async def network(port: int, rtt: float) -> AsyncGenerator[int]:
    """A proxy that adds a round-trip time in seconds; yields its port."""
    if not rtt:
        yield port
        return
    writers: set[asyncio.StreamWriter] = set()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while data := await reader.read(65_536):
            loop.call_later(rtt / 2, writer.write, data)
        loop.call_later(rtt / 2, writer.close)

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(rtt)
        upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", port)
        writers.update((writer, upstream))
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(forward(reader, upstream), forward(upstream_reader, writer))

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.close()


PERSISTENT, NEW_SOCKET = "persistent", "new WebSocket"
NEW_HTTP, KEPT_HTTP = "HTTP + SSE", "kept HTTP"
"""Kinds of connection; the last two are a new one for each turn, and one for all."""

_NAMES = {
    "round_trip_ms": "round trip",
    "first_text_ms": "time to first text",
    "per_token_us": "per token",
}

MAX_SPREAD = 4.0
"""Turns of the best served client for each turn of the worst served, above which one starves."""


@dataclass(frozen=True, slots=True)
class Timed:
    """One turn.

    Attributes:
        first_ms: From asking to the first text.
        whole_ms: To the end of the response.
        queued_ms: What of that the server says it waited for the engine.
    """

    first_ms: float
    whole_ms: float
    queued_ms: float


@dataclass(slots=True)
class TurnFigures:
    """Turns over one kind of connection, medians.

    Attributes:
        round_trip_ms: From asking for one word (dialling included where each turn dials) to the
            end of the response.
        first_text_ms: From asking for 20 words to the first text.
        whole_ms: To the end of that response.
        per_token_us: What each further token of a long answer adds, making it included.
        savings: Change against HTTP with a new connection for each turn, in percent, of each of
            ``_NAMES``; medians of the same turns side by side.
    """

    round_trip_ms: float
    first_text_ms: float
    whole_ms: float
    per_token_us: float
    savings: dict[str, float] = field(default_factory=dict[str, float])


class TurnSamples(NamedTuple):
    """The samples whose medians are in ``TurnFigures``, by round."""

    round_trip_ms: list[float]
    first_text_ms: list[float]
    whole_ms: list[float]
    per_token_us: list[float]

    def figures(self, beside: TurnSamples) -> TurnFigures:
        """The medians, and the savings against the same turns of another kind of connection.

        Pairs of neighbours: on a machine with other work on it, medians of a whole run drift apart.
        """
        savings = {name: _saving(getattr(self, name), getattr(beside, name)) for name in _NAMES}
        return TurnFigures(*map(median, self), savings=savings)


def _saving(own: list[float], others: list[float]) -> float:
    """Median change in percent; 0 where there is nothing to compare with."""
    pairs = [(a, b) for a, b in zip(own, others, strict=True) if b > 0]
    return median(100 * (a / b - 1) for a, b in pairs) if pairs else 0.0


@dataclass(slots=True)
class CrowdFigures:
    """Many clients that ask at the same time, again and again.

    Attributes:
        clients: How many.
        turns: Turns they got together.
        wait_p50_ms: From asking to the first text, and
        wait_p99_ms: Its 99th percentile.
        queue_p50_ms: What of that was waiting for the engine, as the server says, and
        queue_p99_ms: Its 99th percentile.
        spread: Turns of the client that got most, for each turn of the one that got least.
    """

    clients: int
    turns: int
    wait_p50_ms: float
    wait_p99_ms: float
    queue_p50_ms: float
    queue_p99_ms: float
    spread: float

    @property
    def starved(self) -> bool:
        """Whether one client got far fewer turns than another."""
        return self.spread > MAX_SPREAD


@dataclass(slots=True)
class WireReport:
    """Everything measured.

    Attributes:
        turns: By round-trip time in milliseconds and kind of connection.
        interrupt_ms: From the stop to the terminal event.
        redirect_ms: From the stop to the first text of the next response, on the same connection.
        redirect_dropping_ms: The same where the endpoint cannot be interrupted (spare connection).
        stale_events: Text delivered after a stop; must be 0.
        events_per_second: Text events, one per token, server to client.
        joined_tokens_per_second: Tokens when events are joined to at most 200 a second.
        overhead_us_per_token: Time per token on top of generating it, joined.
        crowd: Many clients on one server.
    """

    turns: dict[str, dict[str, TurnFigures]] = field(
        default_factory=dict[str, dict[str, TurnFigures]]
    )
    interrupt_ms: float = 0.0
    interrupt_p99_ms: float = 0.0
    redirect_ms: float = 0.0
    redirect_dropping_ms: float = 0.0
    stale_events: int = 0
    events_per_second: float = 0.0
    joined_tokens_per_second: float = 0.0
    overhead_us_per_token: float = 0.0
    crowd: CrowdFigures | None = None


def print_report(report: WireReport) -> None:
    """Print everything for a person."""
    print("Connection                       round trip  first text  20 words   per token")
    for rtt, kinds in report.turns.items():
        for name, figures in kinds.items():
            print(
                f"  network {rtt:>3} ms  {name:<14} {figures.round_trip_ms:>8.2f} ms "
                f"{figures.first_text_ms:>8.2f} ms {figures.whole_ms:>6.2f} ms "
                f"{figures.per_token_us:>8.2f} us"
            )
    print("Persistent WebSocket against HTTP + SSE with a new connection for each turn:")
    for name, title in _NAMES.items():
        ours = ", ".join(
            f"{kinds[PERSISTENT].savings[name]:+.0f} % at {rtt} ms"
            for rtt, kinds in report.turns.items()
        )
        print(f"  {title:<19} {ours}")
    print("  (no TLS here: with it every new connection costs one or two round trips more)")
    print(
        f"Stop to terminal event: {report.interrupt_ms:.2f} ms median, "
        f"{report.interrupt_p99_ms:.2f} ms p99; text after the stop: {report.stale_events}"
    )
    print(
        f"Stop to first redirected text: {report.redirect_ms:.2f} ms, "
        f"{report.redirect_dropping_ms:.2f} ms where the connection must be dropped"
    )
    print(f"Text events per second, not joined: {report.events_per_second:,.0f}")
    print(
        f"Joined to 200 events/s: {report.joined_tokens_per_second:,.0f} tokens/s, "
        f"{report.overhead_us_per_token:.1f} us per token on top of making it"
    )
    if (crowd := report.crowd) is not None:
        print(
            f"{crowd.clients} clients: {crowd.turns} turns; queue wait p50 "
            f"{crowd.queue_p50_ms:.0f} ms, p99 {crowd.queue_p99_ms:.0f} ms; first text p50 "
            f"{crowd.wait_p50_ms:.0f} ms, p99 {crowd.wait_p99_ms:.0f} ms; best served / worst "
            f"served {crowd.spread:.2f} ({'A CLIENT STARVES' if crowd.starved else 'fair'})"
        )


_WORD, _SHORT, _LONG = "1", "20", "20000"
"""Requests: the number of words of the answer."""

_CROWD_RATE = 4000
"""Tokens per second of the engine that a crowd shares."""

_EVENT_RATES = (10_000.0, 20_000.0, 40_000.0)
"""Tokens per second at which events are counted."""


def _endpoint(port: int, kind: EndpointKind = "local") -> Endpoint:
    return Endpoint(f"ws://127.0.0.1:{port}/v1", TOKEN, "replay", kind)


async def _until_text(stream: Stream) -> None:
    async for event in stream:
        if isinstance(event, Delta):
            return
        _check(event)


async def _finish(stream: Stream) -> Finished | None:
    """Read to the end; returns it, unless it was read before."""
    end: Finished | None = None
    async for event in stream:
        _check(event)
        if isinstance(event, Finished):
            end = event
    return end


def _check(event: StreamEvent) -> None:
    if isinstance(event, Failed):
        raise UserError(f"The benchmark's server failed: {event.message}")


async def _timed(client: Client, words: str) -> Timed:
    began = time.perf_counter()
    stream = await client.create(messages=[("user", words)])
    await _until_text(stream)
    first = time.perf_counter()
    end = await _finish(stream)
    waited = 0.0 if end is None else float(end.metadata.get("midstream.queue_ms", 0))
    return Timed((first - began) * 1000, (time.perf_counter() - began) * 1000, waited)


async def _turns(port: int, rounds: int) -> dict[str, TurnFigures]:
    """Measure turns over all kinds of connection, in alternation: the machine is not steady."""
    socket = _endpoint(port)
    http = replace(socket, transport="sse")
    kept = {PERSISTENT: Client(socket), KEPT_HTTP: Client(http)}
    endpoints = {PERSISTENT: socket, NEW_SOCKET: socket, NEW_HTTP: http, KEPT_HTTP: http}
    taken: dict[tuple[str, str], list[Timed]] = defaultdict(list)
    for client in kept.values():
        await _timed(client, _WORD)
    for _ in range(rounds):
        for words in (_WORD, _SHORT, _LONG):
            for name, endpoint in endpoints.items():
                client = kept.get(name) or Client(endpoint)
                taken[name, words].append(await _timed(client, words))
                if name not in kept:
                    await client.close()
    for client in kept.values():
        await client.close()
    samples = {
        name: TurnSamples(
            round_trip_ms=[timed.whole_ms for timed in taken[name, _WORD]],
            first_text_ms=[timed.first_ms for timed in taken[name, _SHORT]],
            whole_ms=[timed.whole_ms for timed in taken[name, _SHORT]],
            # Less what the same round took for one word.
            per_token_us=[
                1000 * (long.whole_ms - word.whole_ms) / (int(_LONG) - 1)
                for long, word in zip(taken[name, _LONG], taken[name, _WORD], strict=True)
            ],
        )
        for name in endpoints
    }
    return {name: found.figures(samples[NEW_HTTP]) for name, found in samples.items()}


async def _measure_turns(report: WireReport, rounds: int, rtts: Sequence[float]) -> None:
    with served(rate=0) as port:
        for rtt in rtts:
            async with network(port, rtt / 1000) as way:
                count = rounds if not rtt else max(5, rounds // 3)
                report.turns[f"{rtt:g}"] = await _turns(way, count)


async def _measure_stops(report: WireReport, rounds: int) -> None:
    with served(rate=1000) as port:
        for kind in ("local", "xai"):
            client = Client(_endpoint(port, kind))
            stops: list[float] = []
            redirects: list[float] = []
            for _ in range(rounds):
                stream = await client.create(messages=[("user", _LONG)])
                await _until_text(stream)
                await asyncio.sleep(0.02)
                began = time.perf_counter()
                await stream.interrupt()
                following = await client.create(messages=[("user", _SHORT)])
                async for event in stream:
                    report.stale_events += isinstance(event, Delta)
                    if isinstance(event, Finished):
                        stops.append((time.perf_counter() - began) * 1000)
                await _until_text(following)
                redirects.append((time.perf_counter() - began) * 1000)
                await _finish(following)
            await client.close()
            if kind == "local":
                report.interrupt_ms = median(stops)
                report.interrupt_p99_ms = percentile(stops, 99)
                report.redirect_ms = median(redirects)
            else:
                report.redirect_dropping_ms = median(redirects)


async def _stream_seconds(port: int, words: str, repetitions: int) -> float:
    client = Client(_endpoint(port))
    taken: list[float] = []
    for _ in range(repetitions):
        began = time.perf_counter()
        await _finish(await client.create(messages=[("user", words)]))
        taken.append(time.perf_counter() - began)
    await client.close()
    return median(taken)


async def _measure_rate(
    report: WireReport, words: str, rates: Sequence[float], repetitions: int
) -> None:
    request = GenerateRequest((Message("user", words),))
    began = time.perf_counter()
    tokens = sum(piece.tokens for piece in ReplayModel(words_answer).start(request))
    alone = time.perf_counter() - began
    # The worker joins what the loop has not fetched yet: try several rates, keep the best.
    for rate in rates:
        with served(rate=rate, event_seconds=0) as port:
            events = await _count_events(port, words, repetitions)
        report.events_per_second = max(report.events_per_second, events)
    with served(rate=0) as port:
        taken = await _stream_seconds(port, words, repetitions)
        report.joined_tokens_per_second = tokens / taken
        report.overhead_us_per_token = max(0.0, taken - alone) / tokens * 1e6


async def _count_events(port: int, words: str, repetitions: int) -> float:
    """Text events per second as the socket delivers them."""
    rates: list[float] = []
    headers = {"Authorization": f"Bearer {TOKEN}"}
    url = _endpoint(port).websocket_url
    async with connect(
        url, additional_headers=headers, compression=None, proxy=None, max_size=None
    ) as socket:
        for _ in range(repetitions):
            await socket.send(json.dumps({"type": "response.create", "input": words}))
            events, began = 0, time.perf_counter()
            while True:
                frame = await socket.recv(decode=False)
                events += frame.startswith(b'{"type":"response.output_text.delta"')
                if frame.startswith(b'{"type":"response.completed"'):
                    break
            rates.append(events / (time.perf_counter() - began))
    return median(rates)


async def _measure_crowd(report: WireReport, clients: int, seconds: float) -> None:
    with served(rate=_CROWD_RATE) as port:
        report.crowd = await _crowd(port, clients, seconds)


async def _crowd(port: int, clients: int, seconds: float) -> CrowdFigures:
    taken: list[Timed] = []
    turns = [0] * clients
    opened = [Client(_endpoint(port)) for _ in range(clients)]
    await asyncio.gather(*(client.connect() for client in opened))
    end = time.perf_counter() + seconds

    async def work(index: int) -> None:
        while time.perf_counter() < end:
            taken.append(await _timed(opened[index], _SHORT))
            turns[index] += 1

    try:
        await asyncio.gather(*(work(index) for index in range(clients)))
    finally:
        await asyncio.gather(*(client.close() for client in opened))
    firsts, queued = [t.first_ms for t in taken], [t.queued_ms for t in taken]
    return CrowdFigures(
        clients,
        sum(turns),
        median(firsts),
        percentile(firsts, 99),
        median(queued),
        percentile(queued, 99),
        max(turns) / max(1, min(turns)),
    )


def run(argv: Sequence[str]) -> int:
    """Measure and print; returns 1 if text came after a stop, or a client starved."""
    parser = CommandParser(prog="midstream bench wire", description=__doc__)
    parser.add_argument("--rounds", type=whole(4), default=50, help="turns per figure (default 50)")
    parser.add_argument("--clients", type=whole(1), default=64, help="clients at once (default 64)")
    parser.add_argument(
        "--rtt", type=whole(0), default=40, help="simulated round trip in ms (default 40)"
    )
    parser.add_argument("--quick", action="store_true", help="a few rounds only")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    rounds = 8 if options.quick else options.rounds
    clients = 8 if options.quick else options.clients
    report = WireReport()

    async def measure() -> None:
        steps: list[Awaitable[None]] = [
            _measure_turns(report, rounds, (0.0, options.rtt) if options.rtt > 0 else (0.0,)),
            _measure_stops(report, rounds),
            _measure_rate(report, "2000", _EVENT_RATES[1:2], 1)
            if options.quick
            else _measure_rate(report, _LONG, _EVENT_RATES, 5),
            _measure_crowd(report, clients, 0.5 if options.quick else 5.0),
        ]
        for step in steps:
            await step

    asyncio.run(measure())
    if options.json:
        print(json.dumps(asdict(report)))
    else:
        print_report(report)
    starved = report.crowd is not None and report.crowd.starved
    return 1 if report.stale_events or starved else 0
