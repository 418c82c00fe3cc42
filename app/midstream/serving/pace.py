"""Slows a text model down: the same text, but later.

Either to a reading pace (a limit of tokens per second), or to the simulated pace of another machine
(every token when it would be due there). Nothing gets faster: a model slower than the pace is
passed through as it comes, or, in replay mode, passed on at the pace once the answer is complete.
Stopping is as quick as without it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
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
    from midstream.wafer.imitations import Imitation


CHARS_PER_TOKEN = 4
"""Text that one token of the imitated model stands for (assumed: code in a vocabulary of 128,000).

The model that runs may spend one token on a whole unchanged line, which no other model does.
"""


class Timetable(Protocol):
    """The times at which the text of one generation may be passed on."""

    def parts(self, piece: Piece) -> list[Piece]:
        """A piece as it would come token by token."""
        ...

    def left(self, now: float, piece: Piece) -> float:
        """Seconds until all of the next piece is due; not positive when it is."""
        ...

    def passed(self, now: float, piece: Piece, usage: Usage) -> None: ...


class ReadingPace:
    """At most ``rate`` tokens per second; the first at once, and a late one delays those behind."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._due: float | None = None

    def parts(self, piece: Piece) -> list[Piece]:
        """Split by tokens; where each begins is unknown, so the text is cut evenly."""
        count, text = piece.tokens, piece.text
        if count < 2:
            return [piece]
        cuts = [len(text) * number // count for number in range(count + 1)]
        return [Piece(text[begin:end], 1) for begin, end in pairwise(cuts)]

    def left(self, now: float, piece: Piece) -> float:
        due = now if self._due is None else self._due
        return due + (piece.tokens - 1) / self._rate - now

    def passed(self, now: float, piece: Piece, usage: Usage) -> None:
        del usage
        self._due = max(self._due or 0.0, now - 1.0 / self._rate) + piece.tokens / self._rate


class SimulatedPace:
    """All text when it would be out on the imitated machine, counted from the start."""

    def __init__(self, imitated: Imitation) -> None:
        self._pace = imitated.pace
        self._start = time.perf_counter()
        self._characters = 0

    def parts(self, piece: Piece) -> list[Piece]:
        """In tokens of the imitated model; the first carries the tokens that were spent."""
        text = piece.text
        starts = range(0, max(1, len(text)), CHARS_PER_TOKEN)
        return [Piece(text[at : at + CHARS_PER_TOKEN], 0 if at else piece.tokens) for at in starts]

    def left(self, now: float, piece: Piece) -> float:
        return self._start + self._due(len(piece.text)) - now

    def passed(self, now: float, piece: Piece, usage: Usage) -> None:
        if piece.text:
            usage.due_s = self._due(len(piece.text))
            usage.passed_s = now - self._start
        self._characters += len(piece.text)

    def _due(self, more: int) -> float:
        characters = self._characters + more
        return self._pace.due((characters - 1) // CHARS_PER_TOKEN) if characters else 0.0


class PacedGeneration:
    """Passes the pieces of another generation on, none of them early.

    Args:
        inner: The generation.
        timetable: Makes the timetable; its clock starts when it is made.
        replayed: Whether the clock starts only when the inner generation has ended.

    Attributes:
        usage: What the generation cost; waiting is only in what it says of the pacing.
    """

    def __init__(
        self, inner: Generation, timetable: Callable[[], Timetable], *, replayed: bool = False
    ) -> None:
        self.usage: Usage = inner.usage
        self._inner = inner
        self._timetable = timetable
        self._replayed = replayed
        self._dropped = False
        self._stopped = threading.Event()

    @property
    def finish_reason(self) -> FinishReason | None:
        return FinishReason.STOPPED if self._dropped else self._inner.finish_reason

    def __iter__(self) -> Iterator[Piece]:
        source: Iterable[Piece] = list(self._inner) if self._replayed else self._inner
        timetable = self._timetable()
        for whole in source:
            ready = timetable.left(time.perf_counter(), whole) <= 0
            for piece in [whole] if ready else timetable.parts(whole):
                left = timetable.left(time.perf_counter(), piece)
                if left > 0:
                    self._stopped.wait(left)
                timetable.passed(time.perf_counter(), piece, self.usage)
                if self._stopped.is_set():
                    self._dropped = True
                else:
                    yield piece

    def stop(self) -> None:
        """End it now, also while it waits; pieces that wait are dropped."""
        self._stopped.set()
        self._inner.stop()


class PacedModel:
    """A model whose generations keep a pace: tokens per second, or what is imitated."""

    def __init__(self, inner: TextModel, pace: float | Imitation) -> None:
        self._inner = inner
        self._facts: Mapping[str, str] = inner.facts
        self._timetable: Callable[[], Timetable]
        self._replayed = False
        if isinstance(pace, int | float):
            if pace <= 0:
                raise ValueError("pace must be more than 0")
            self._timetable = lambda: ReadingPace(pace)
        else:
            self._timetable = lambda: SimulatedPace(pace)
            self._replayed = pace.replayed
            self._facts = {
                **inner.facts,
                "pacing": "replay" if pace.replayed else pace.pace.mode,
                "pacing_model": pace.model,
                "pacing_machine": pace.machine,
                "pacing_rate": f"{pace.pace.tokens_per_second:.6g}",
            }

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def facts(self) -> Mapping[str, str]:
        return self._facts

    def start(self, request: GenerateRequest) -> PacedGeneration:
        return PacedGeneration(self._inner.start(request), self._timetable, replayed=self._replayed)

    def close(self) -> None:
        self._inner.close()
