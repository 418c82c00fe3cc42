"""A prompt that is read before anybody asks: an answer is begun, and waits behind its first run.

Whoever types an instruction is mostly about to send it. If just that is asked next, the answer is
taken up where it waits; if not, what was read is in the cache like anything else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from midstream.engine.loop import ModelGeneration
from midstream.engine.types import FinishReason, Piece, Usage


class Preparation:
    """A `types.Generation` without text.

    Attributes:
        usage: what reading has cost.
    """

    def __init__(self, answer: ModelGeneration, ready: Callable[[ModelGeneration], None]) -> None:
        """Prepare; nothing runs before iteration.

        Args:
            answer: the answer, of which nothing was done yet.
            ready: told it once its first piece is there.
        """
        self.usage = Usage(input_tokens=answer.usage.input_tokens)
        self._answer = answer
        self._ready = ready
        self._stopped = False
        self._ending = threading.Lock()
        self._finish: FinishReason | None = None

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why it ended; None while it runs."""
        return self._finish

    def stop(self) -> None:
        """End it with the run in progress; callable from any thread, at any time.

        That run is not cut short: what is asked next most likely begins with those tokens. Once it
        is over, the answer is somebody else's and goes on.
        """
        with self._ending:
            self._stopped = True
            if self._finish is None:
                self._answer.give_way()

    def __iter__(self) -> Iterator[Piece]:
        """Read; there are no pieces."""
        done = self._answer.prepare()
        with self._ending:
            done = done and not self._stopped
            self._finish = FinishReason.STOP if done else FinishReason.STOPPED
        read = self._answer.usage
        self.usage.cached_tokens, self.usage.prefill_s = read.cached_tokens, read.prefill_s
        self.usage.wafer_s = read.wafer_s
        if done:
            self._ready(self._answer)
        return iter(())
