"""A text model that is held back: the same text, later.

Two reasons: to follow the stream with one's eyes (at most so many tokens per second), and to feel
how fast another machine would be (every token when it would be due there). Nothing is computed
faster than it is; a model that is slower than the pace is passed through as it comes. Stopping is
as quick as without it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from midstream.engine.types import (
    FinishReason,
    GenerateRequest,
    Generation,
    Piece,
    TextModel,
    Usage,
)

if TYPE_CHECKING:
    from midstream.wafer.paces import Imitation


class Timetable(Protocol):
    """When the tokens of one generation may be passed on."""

    def left(self, now: float, tokens: int) -> float:
        """Seconds until the next ``tokens`` tokens are all due; not positive when they are."""
        ...

    def passed(self, now: float, tokens: int) -> None:
        """``tokens`` tokens have been passed on."""
        ...


class ReadingPace:
    """At most ``rate`` tokens per second; the first at once, and a late one delays those behind."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._due: float | None = None

    def left(self, now: float, tokens: int) -> float:
        """Seconds until the next ``tokens`` tokens are all due."""
        due = now if self._due is None else self._due
        return due + (tokens - 1) / self._rate - now

    def passed(self, now: float, tokens: int) -> None:
        """The next token is due one beat after these."""
        self._due = max(self._due or 0.0, now - 1.0 / self._rate) + tokens / self._rate


class SimulatedPace:
    """Every token when it would be out on the imitated machine, counted from the start."""

    def __init__(self, imitated: Imitation) -> None:
        self._pace = imitated.pace
        self._start = time.perf_counter()
        self._passed = 0

    def left(self, now: float, tokens: int) -> float:
        """Seconds until the next ``tokens`` tokens are all due."""
        return self._start + self._pace.due(self._passed + tokens - 1) - now

    def passed(self, now: float, tokens: int) -> None:
        """Count them."""
        del now  # a late token does not delay those behind it
        self._passed += tokens


class PacedGeneration:
    """Passes the pieces of another generation on, none of them early.

    Attributes:
        usage: What the generation cost; waiting is not counted.
    """

    def __init__(self, inner: Generation, timetable: Callable[[], Timetable]) -> None:
        self.usage: Usage = inner.usage
        self._inner = inner
        self._timetable = timetable
        self._stopped = threading.Event()

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why it ended; None while it runs."""
        return self._inner.finish_reason

    def __iter__(self) -> Iterator[Piece]:
        """Generate."""
        timetable = self._timetable()
        for whole in self._inner:
            for piece in _parts(whole, timetable):
                left = timetable.left(time.perf_counter(), piece.tokens)
                if left > 0:
                    self._stopped.wait(left)
                timetable.passed(time.perf_counter(), piece.tokens)
                if not self._stopped.is_set():
                    yield piece

    def stop(self) -> None:
        """End it now, also while it waits; pieces that wait are dropped."""
        self._stopped.set()
        self._inner.stop()


def _parts(piece: Piece, timetable: Timetable) -> Iterator[Piece]:
    """A piece of several drafted tokens token by token, unless all of it is due anyway.

    Where the tokens of a piece begin is not known, so its text is cut evenly.
    """
    count, text = piece.tokens, piece.text
    if count < 2 or timetable.left(time.perf_counter(), count) <= 0:
        yield piece
        return
    for number in range(count):
        begin, end = (len(text) * n // count for n in (number, number + 1))
        yield Piece(text[begin:end], 1)


class PacedModel:
    """A model whose generations keep a pace.

    Args:
        inner: The model.
        pace: Tokens per second, more than 0, or what is imitated.
    """

    def __init__(self, inner: TextModel, pace: float | Imitation) -> None:
        self._inner = inner
        self._facts: Mapping[str, str] = inner.facts
        self._timetable: Callable[[], Timetable]
        if isinstance(pace, int | float):
            if pace <= 0:
                raise ValueError("pace must be more than 0")
            self._timetable = lambda: ReadingPace(pace)
        else:
            self._timetable = lambda: SimulatedPace(pace)
            self._facts = {
                **inner.facts,
                "pacing": pace.pace.mode,
                "pacing_model": pace.model,
                "pacing_machine": pace.machine,
                "pacing_rate": f"{pace.pace.tokens_per_second:.6g}",
            }

    @property
    def name(self) -> str:
        """The name that requests use."""
        return self._inner.name

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts for clients; of an imitation also what is imitated."""
        return self._facts

    def start(self, request: GenerateRequest) -> PacedGeneration:
        """Start a generation; raises what the model raises."""
        return PacedGeneration(self._inner.start(request), self._timetable)

    def close(self) -> None:
        """Free the model."""
        self._inner.close()
