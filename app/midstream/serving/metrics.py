"""Server counters in Prometheus' text format, without any content of requests or answers.

A server counts for itself. The replicas of a cluster show each other's counters as well, each with
its name as the label ``replica``, because Prometheus reaches any one of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Upper bounds of the buckets of a histogram, in seconds."""

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric of one server.

    Attributes:
        name: Its name.
        kind: Its type.
        text: What it is.
        samples: Its values: ending of the name, labels, value.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    text: str
    samples: list[tuple[str, Labels, float]] = field(
        default_factory=list[tuple[str, Labels, float]]
    )


def render(servers: Mapping[str, Sequence[Family]]) -> str:
    """The metrics of servers as one text.

    Args:
        servers: By name; the one server whose name is "" gets no label.
    """
    lines: list[str] = []
    together: dict[str, list[tuple[str, Family]]] = {}
    for server, families in servers.items():
        for family in families:
            together.setdefault(family.name, []).append((server, family))
    for name, found in together.items():
        first = found[0][1]
        lines += [f"# HELP {name} {first.text}", f"# TYPE {name} {first.kind}"]
        for server, family in found:
            own: Labels = (("replica", server),) if server else ()
            lines += [
                f"{name}{ending}{_written((*own, *labels))} {_number(value)}"
                for ending, labels, value in family.samples
            ]
    return "\n".join([*lines, ""])


def _written(labels: Labels) -> str:
    return "{" + ",".join(f'{key}="{value}"' for key, value in labels) + "}" if labels else ""


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6f}"


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

    def family(self) -> Family:
        """What was observed; bucket counts are cumulative."""
        family = Family(self._name, "histogram", self._text)
        total = 0
        for bound, count in zip((*map(str, _BUCKETS), "+Inf"), self._counts, strict=True):
            total += count
            family.samples.append(("_bucket", (("le", bound),), total))
        family.samples.extend((("_sum", (), self._sum), ("_count", (), total)))
        return family


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
            "midstream_queue_seconds", "Time from created until the engine started the response."
        )

    def families(self, *, connections: int, generations: int) -> list[Family]:
        """Everything."""
        ended: list[tuple[str, Labels, float]] = [
            ("", (("status", status), ("reason", reason)), count)
            for (status, reason), count in sorted(self.responses.items())
        ]
        tokens: list[tuple[str, Labels, float]] = [
            ("", (("kind", kind),), self.tokens[kind]) for kind in ("input", "cached", "output")
        ]
        return [
            _gauge("connections", "Open WebSocket connections.", connections),
            _gauge("generations", "Running and waiting generations.", generations),
            Family("midstream_responses_total", "counter", "Ended responses.", ended),
            Family(
                "midstream_tokens_total",
                "counter",
                "Tokens; cached ones count as input.",
                tokens,
            ),
            _counter("text_events_total", "Text events sent.", self.text_events),
            _counter(
                "prefill_seconds_total",
                "Time spent processing input (prefill).",
                self.prefill_seconds,
            ),
            _counter("decode_seconds_total", "Time generating.", self.decode_seconds),
            self.first_text.family(),
            self.waiting.family(),
        ]


def _gauge(name: str, text: str, value: float) -> Family:
    return Family(f"midstream_{name}", "gauge", text, [("", (), value)])


def _counter(name: str, text: str, value: float) -> Family:
    return Family(f"midstream_{name}", "counter", text, [("", (), value)])
