"""A text model at a reading pace: the same text, at most so many tokens per second.

For people who want to follow the stream with their eyes, and for showing what a slower model
feels like. Stopping is as quick as without it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping

from midstream.engine.types import (
    FinishReason,
    GenerateRequest,
    Generation,
    Piece,
    TextModel,
    Usage,
)


class PacedGeneration:
    """Passes the pieces of another generation on, none of them early.

    Attributes:
        usage: What the generation cost; waiting is not counted.
    """

    def __init__(self, inner: Generation, rate: float) -> None:
        self.usage: Usage = inner.usage
        self._inner = inner
        self._rate = rate
        self._stopped = threading.Event()

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why it ended; None while it runs."""
        return self._inner.finish_reason

    def __iter__(self) -> Iterator[Piece]:
        """Generate; the first piece comes at once."""
        due: float | None = None
        for piece in self._inner:
            if due is not None and (left := due - time.perf_counter()) > 0:
                self._stopped.wait(left)
            due = (
                max(due or 0.0, time.perf_counter() - 1.0 / self._rate) + piece.tokens / self._rate
            )
            if not self._stopped.is_set():
                yield piece

    def stop(self) -> None:
        """End it now, also while it waits; pieces that wait are dropped."""
        self._stopped.set()
        self._inner.stop()


class PacedModel:
    """A model whose generations keep a pace.

    Args:
        inner: The model.
        rate: Tokens per second, more than 0.
    """

    def __init__(self, inner: TextModel, rate: float) -> None:
        if rate <= 0:
            raise ValueError("rate must be more than 0")
        self._inner = inner
        self._rate = rate

    @property
    def name(self) -> str:
        """The name that requests use."""
        return self._inner.name

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts for clients."""
        return self._inner.facts

    def start(self, request: GenerateRequest) -> PacedGeneration:
        """Start a generation; raises what the model raises."""
        return PacedGeneration(self._inner.start(request), self._rate)

    def close(self) -> None:
        """Free the model."""
        self._inner.close()
