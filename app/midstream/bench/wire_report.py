"""What `midstream bench wire` has measured, and how it is printed."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

PERSISTENT, NEW_SOCKET = "persistent", "new WebSocket"
NEW_HTTP, KEPT_HTTP = "HTTP + SSE", "kept HTTP"
"""Kinds of connection; the last two are a new one for each turn, and one for all."""

CLAIMS = {"round_trip_ms": -80, "first_text_ms": -50, "per_token_us": -30}
"""What OpenAI says its persistent connection saves, in percent; no method was published."""

_NAMES = {
    "round_trip_ms": "round trip",
    "first_text_ms": "time to first text",
    "per_token_us": "per token",
}


MOST_SPREAD = 4.0
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
        savings: Change against HTTP with a new connection for each turn, in percent, of each of the
            claims' figures; medians of the same turns side by side.
    """

    round_trip_ms: float
    first_text_ms: float
    whole_ms: float
    per_token_us: float
    savings: dict[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class TurnSamples:
    """What `TurnFigures` are the medians of, by round."""

    round_trip_ms: list[float]
    first_text_ms: list[float]
    whole_ms: list[float]
    per_token_us: list[float]

    def figures(self, beside: TurnSamples) -> TurnFigures:
        """The medians, and the savings against the same turns of another kind of connection.

        Pairs of neighbours: on a machine with other work on it, medians of a whole run drift apart.
        """
        return TurnFigures(
            median(self.round_trip_ms),
            median(self.first_text_ms),
            median(self.whole_ms),
            median(self.per_token_us),
            {name: _saving(getattr(self, name), getattr(beside, name)) for name in CLAIMS},
        )


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
        wait_p99_ms: its 99th percentile.
        queue_p50_ms: What of that was waiting for the engine, as the server says, and
        queue_p99_ms: its 99th percentile.
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
        """Whether somebody got far less than somebody else."""
        return self.spread > MOST_SPREAD


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
        crowd: Many clients on one server.
        ray: The same on Ray; None where it was not measured.
        ray_replicas: On how many replicas.
        ray_left_out: Why it was not.
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
    ray: CrowdFigures | None = None
    ray_replicas: int = 0
    ray_left_out: str = ""
    model: RedirectFigures | None = None


def print_report(report: Report) -> None:
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
    for name, claim in CLAIMS.items():
        ours = ", ".join(
            f"{kinds[PERSISTENT].savings[name]:+.0f} % at {rtt} ms"
            for rtt, kinds in report.turns.items()
        )
        print(f"  {_NAMES[name]:<19} {ours:<34} OpenAI's claim {claim} %, no method published")
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
    replicas = f"Ray with {report.ray_replicas} replicas"
    for where, crowd in (("one engine", report.crowd), (replicas, report.ray)):
        if crowd is not None:
            print(
                f"{crowd.clients} clients on {where}: {crowd.turns} turns; queue wait p50 "
                f"{crowd.queue_p50_ms:.0f} ms, p99 {crowd.queue_p99_ms:.0f} ms; first text p50 "
                f"{crowd.wait_p50_ms:.0f} ms, p99 {crowd.wait_p99_ms:.0f} ms; best served / worst "
                f"served {crowd.spread:.2f} ({'SOMEBODY STARVES' if crowd.starved else 'fair'})"
            )
    if report.ray is None:
        print(f"Ray: not measured, {report.ray_left_out}.")
    if report.model is None:
        print("Redirects of a real model: none is installed, or it wrote nothing.")
        return
    model = report.model
    print(
        f"{model.model}, {model.redirects} edits: first text {model.cold_ms:.1f} ms cold; stop to "
        f"terminal {model.stop_ms:.1f} ms; stop to redirected text {model.warm_ms:.1f} ms with "
        f"{model.cached_share:.0%} of the prompt cached"
    )
