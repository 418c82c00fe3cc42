"""`midstream bench wire`: what the wire costs, and how fast a redirect comes back from a model.

The server runs in a process of its own and replays text, so every figure but the last line is
transport, scheduling and Python. A simulated network is a TCP proxy that holds every byte back for
half the round-trip time, and a new connection for a whole one (the TCP handshake); there is no
loss and no bandwidth limit. Times are medians.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median, quantiles

from midstream.bench.network import TOKEN, network, served, words_answer
from midstream.bench.reference_edits import REFERENCE_EDITS
from midstream.edits.request import RegionRequest, render_follow_up, render_request
from midstream.engine.types import GenerateRequest, Message
from midstream.errors import UserError
from midstream.resources import model_folders
from midstream.responses.client import Client
from midstream.responses.endpoint import Endpoint, EndpointKind
from midstream.responses.events import Delta, Failed, Finished
from midstream.responses.stream import Stream
from midstream.serving.embedded import EmbeddedServer
from midstream.serving.replay import ReplayModel

_SHORT, _LONG = "20", "20000"
"""Requests: the number of words of the answer."""

_EVENT_RATES = (10_000.0, 20_000.0, 40_000.0)
_CLAIMS = (
    "OpenAI's figures for its persistent connection against HTTP per turn: round trips -80 %, "
    "time to first token -50 %, per token -30 %; no method was published."
)


@dataclass(slots=True)
class TurnFigures:
    """Short turns over one kind of connection, in milliseconds.

    Attributes:
        first_text_ms: From asking (dialling included where each turn dials) to the first text.
        whole_ms: To the end of the response.
    """

    first_text_ms: float
    whole_ms: float


@dataclass(slots=True)
class RedirectFigures:
    """Edits of the reference functions by the installed model, stopped after a line and redirected.

    Attributes:
        model: Its name.
        cold_ms: From asking to the first text, with nothing of the prompt in the cache.
        warm_ms: From the stop to the first text of the redirected response.
        stop_ms: From the stop to the terminal event.
        cached_share: Share of the redirected prompts that was in the cache.
        redirects: How many edits wrote a line to be stopped after.
    """

    model: str
    cold_ms: float
    warm_ms: float
    stop_ms: float
    cached_share: float
    redirects: int


@dataclass(slots=True)
class Report:
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
        clients: How many clients asked at the same time.
        queue_p50_ms: Their wait until the engine took them up, and
        queue_p99_ms: its 99th percentile.
        served_spread: Turns that the best served client got, per turn of the worst served.
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
    clients: int = 0
    queue_p50_ms: float = 0.0
    queue_p99_ms: float = 0.0
    served_spread: float = 0.0
    model: RedirectFigures | None = None


def _endpoint(port: int, kind: EndpointKind = "local") -> Endpoint:
    return Endpoint(f"ws://127.0.0.1:{port}/v1", TOKEN, "replay", kind)


async def _until_text(stream: Stream) -> None:
    async for event in stream:
        if isinstance(event, Delta):
            return
        if isinstance(event, Failed):
            raise UserError(f"The benchmark's server failed: {event.message}")


async def _finish(stream: Stream) -> None:
    async for _ in stream:
        pass


async def _timed_turn(client: Client) -> tuple[float, float]:
    began = time.perf_counter()
    stream = await client.create(messages=[("user", _SHORT)])
    await _until_text(stream)
    first = time.perf_counter()
    await _finish(stream)
    return (first - began) * 1000, (time.perf_counter() - began) * 1000


class _HttpClient(Client):
    """The client when it has learnt that the endpoint speaks HTTP only."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._http_only = True


async def _turns(
    port: int, rounds: int, make: Callable[[Endpoint], Client], reuse: bool
) -> TurnFigures:
    times: list[tuple[float, float]] = []
    client = make(_endpoint(port))
    if reuse:
        await _timed_turn(client)
    for _ in range(rounds):
        if not reuse:
            await client.close()
            client = make(_endpoint(port))
        times.append(await _timed_turn(client))
    await client.close()
    return TurnFigures(median(first for first, _ in times), median(whole for _, whole in times))


async def _measure_turns(report: Report, rounds: int, rtts: Sequence[float]) -> None:
    with served(rate=0) as port:
        for rtt in rtts:
            count = rounds if not rtt else max(5, rounds // 5)
            async with network(port, rtt / 1000) as way:
                report.turns[f"{rtt:g}"] = {
                    "persistent": await _turns(way, count, Client, True),
                    "new WebSocket": await _turns(way, count, Client, False),
                    "HTTP + SSE": await _turns(way, count, _HttpClient, False),
                }


async def _measure_stops(report: Report, rounds: int) -> None:
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
                report.interrupt_p99_ms = quantiles(stops, n=100, method="inclusive")[98]
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
    report: Report, words: str, rates: Sequence[float], repetitions: int
) -> None:
    request = GenerateRequest((Message("user", words),))
    began = time.perf_counter()
    tokens = sum(piece.tokens for piece in ReplayModel(words_answer).start(request))
    alone = time.perf_counter() - began
    # The worker joins what the loop has not fetched yet, so the rate that counts is found by
    # trying.
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
    from websockets.asyncio.client import connect

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


async def _measure_crowd(report: Report, clients: int, seconds: float) -> None:
    with served(rate=4000) as port:
        waits: list[float] = []
        turns = [0] * clients
        end = time.perf_counter() + seconds

        async def work(index: int) -> None:
            client = Client(_endpoint(port))
            await client.connect()
            while time.perf_counter() < end:
                stream = await client.create(messages=[("user", _SHORT)])
                began = time.perf_counter()
                await _until_text(stream)
                waits.append((time.perf_counter() - began) * 1000)
                await _finish(stream)
                turns[index] += 1
            await client.close()

        await asyncio.gather(*(work(index) for index in range(clients)))
    report.clients = clients
    report.queue_p50_ms = median(waits)
    report.queue_p99_ms = quantiles(waits, n=100, method="inclusive")[98]
    report.served_spread = max(turns) / max(1, min(turns))


async def _measure_model(report: Report) -> None:
    cold: list[float] = []
    warm: list[float] = []
    stops: list[float] = []
    shares: list[float] = []
    regions = {region: instruction for instruction, region in reversed(REFERENCE_EDITS)}
    server = EmbeddedServer()
    endpoint = await server.start()
    client = Client(endpoint)
    try:
        for region, instruction in regions.items():
            request = render_request(RegionRequest(instruction=instruction, region=region))
            began = time.perf_counter()
            stream = await client.create(messages=[("user", request)])
            kept = ""
            async for event in stream:
                if isinstance(event, Delta):
                    if not kept:
                        cold.append((time.perf_counter() - began) * 1000)
                    kept += event.text
                    if "\n" in kept:
                        break
            kept = kept[: kept.rfind("\n") + 1]
            if not kept:
                continue
            began = time.perf_counter()
            await stream.interrupt()
            follow_up = render_follow_up("add the decorator `@traced`")
            redirected = await client.create(
                messages=[("user", request), ("assistant", kept), ("user", follow_up)]
            )
            await _finish(stream)
            stops.append((time.perf_counter() - began) * 1000)
            await _until_text(redirected)
            warm.append((time.perf_counter() - began) * 1000)
            async for event in redirected:
                if isinstance(event, Finished):
                    shares.append(event.usage.cached_tokens / max(1, event.usage.input_tokens))
    finally:
        await client.close()
        await server.close()
    if warm:
        report.model = RedirectFigures(
            endpoint.model, median(cold), median(warm), median(stops), median(shares), len(warm)
        )


def _print(report: Report) -> None:
    print("Turns of 20 words, ms                first text      whole")
    for rtt, kinds in report.turns.items():
        for name, figures in kinds.items():
            print(
                f"  round trip {rtt:>3} ms  {name:<14} {figures.first_text_ms:>9.2f}  "
                f"{figures.whole_ms:>9.2f}"
            )
        own, http = kinds["persistent"].first_text_ms, kinds["HTTP + SSE"].first_text_ms
        print(f"  persistent against HTTP + SSE: first text {100 * (own / http - 1):+.0f} %")
    print(f"  ({_CLAIMS})")
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
    print(
        f"{report.clients} clients on one engine: wait p50 {report.queue_p50_ms:.0f} ms, "
        f"p99 {report.queue_p99_ms:.0f} ms; best served / worst served {report.served_spread:.2f}"
    )
    if report.model is None:
        print("Redirects of a real model: none is installed, or it wrote nothing.")
        return
    model = report.model
    print(
        f"{model.model}, {model.redirects} edits: first text {model.cold_ms:.1f} ms cold; stop to "
        f"terminal {model.stop_ms:.1f} ms; stop to redirected text {model.warm_ms:.1f} ms with "
        f"{model.cached_share:.0%} of the prompt cached"
    )


def run(argv: Sequence[str]) -> int:
    """Measure and print; returns the exit code (1 if text came after a stop)."""
    parser = argparse.ArgumentParser(prog="midstream bench wire", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50, help="turns per figure (default 50)")
    parser.add_argument("--clients", type=int, default=64, help="clients at once (default 64)")
    parser.add_argument(
        "--rtt", type=float, default=40.0, help="simulated round trip in ms (default 40)"
    )
    parser.add_argument("--quick", action="store_true", help="a few rounds only")
    parser.add_argument("--no-model", action="store_true", help="leave out the installed model")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    rounds = 8 if options.quick else max(4, options.rounds)
    clients = 8 if options.quick else max(1, options.clients)
    report = Report()

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
        if not options.no_model and model_folders():
            await _measure_model(report)

    asyncio.run(measure())
    if options.json:
        print(json.dumps(asdict(report)))
    else:
        _print(report)
    return 1 if report.stale_events else 0
