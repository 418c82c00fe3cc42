"""Counters of the server in Prometheus' text format; nothing about what was asked or answered."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Histogram:
    """Seconds in fixed buckets."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._text = text
        self._counts = [0] * (len(_BUCKETS) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(_BUCKETS, seconds)] += 1
        self._sum += seconds

    def render(self) -> list[str]:
        """Prometheus lines; bucket counts are cumulative."""
        lines = [f"# HELP {self._name} {self._text}", f"# TYPE {self._name} histogram"]
        total = 0
        for bound, count in zip((*map(str, _BUCKETS), "+Inf"), self._counts, strict=True):
            total += count
            lines.append(f'{self._name}_bucket{{le="{bound}"}} {total}')
        return [*lines, f"{self._name}_sum {self._sum:.6f}", f"{self._name}_count {total}"]


class Metrics:
    """What the server counts. Touched on the event loop only.

    Attributes:
        responses: Ended responses by status and reason.
        tokens: Tokens by kind ("input", "cached", "output").
        first_text: Seconds from ``response.created`` to the first text event.
        waiting: Seconds from ``response.created`` until the engine took the response up.
    """

    def __init__(self) -> None:
        self.responses: Counter[tuple[str, str]] = Counter()
        self.tokens: Counter[str] = Counter()
        self.text_events = 0
        self.prefill_seconds = 0.0
        self.decode_seconds = 0.0
        self.first_text = Histogram(
            "midstream_first_text_seconds", "Time from created to the first text event."
        )
        self.waiting = Histogram(
            "midstream_queue_seconds", "Time from created until the engine took the response up."
        )

    def render(self, *, connections: int, generations: int) -> str:
        """Everything as one text.

        Args:
            connections: Open WebSockets.
            generations: Generations that run or wait.
        """
        lines: list[str] = []

        def add(name: str, kind: str, text: str, samples: dict[str, float]) -> None:
            lines.extend((f"# HELP midstream_{name} {text}", f"# TYPE midstream_{name} {kind}"))
            lines.extend(f"midstream_{name}{labels} {value:g}" for labels, value in samples.items())

        add("connections", "gauge", "Open WebSocket connections.", {"": connections})
        add("generations", "gauge", "Generations that run or wait.", {"": generations})
        add(
            "responses_total",
            "counter",
            "Ended responses.",
            {
                f'{{status="{status}",reason="{reason}"}}': count
                for (status, reason), count in sorted(self.responses.items())
            },
        )
        add(
            "tokens_total",
            "counter",
            "Tokens; cached ones are part of the input.",
            {f'{{kind="{kind}"}}': self.tokens[kind] for kind in ("input", "cached", "output")},
        )
        add("text_events_total", "counter", "Text events sent.", {"": self.text_events})
        add("prefill_seconds_total", "counter", "Time reading input.", {"": self.prefill_seconds})
        add("decode_seconds_total", "counter", "Time generating.", {"": self.decode_seconds})
        return "\n".join([*lines, *self.first_text.render(), *self.waiting.render(), ""])
