"""Rates and counts of what the model sends, for the status line and its sparkline."""

from __future__ import annotations

import time
from collections import deque

from midstream.pairing.costs import Cost

SHORTEST_S = 0.004
"""Seconds; what was written in less has no rate."""
WINDOW_S = 1.0
"""Seconds over which the rate is taken."""
SAMPLE_S = 0.25
"""Seconds of one entry of ``history``."""
HISTORY = 120
"""Entries of ``history``."""


class Meter:
    """Counts tokens as they arrive.

    Attributes:
        history: Tokens per second of past quarter seconds, oldest first, for a sparkline.
        ttft_s: Seconds to the first text of the last turn, or ``None`` before it.
        input_tokens: Prompt tokens of all finished turns, as the server counted them.
        output_tokens: Generated tokens of all turns.
        cached_tokens: Prompt tokens that the server found in its cache.
        request_s: Seconds until the server had taken the last request, or ``None`` before it.
        cost: What the server counted for the last answer that has ended.
        total: The same for all answers together.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int]] = deque()
        self._turn_tokens = 0
        self._first_tokens = 0
        self._sent_at: float | None = None
        self._first_at: float | None = None
        self._last_at: float | None = None
        self._bucket_start: float | None = None
        self._bucket = 0
        self.history: deque[float] = deque(maxlen=HISTORY)
        self.ttft_s: float | None = None
        self.input_tokens = 0
        self.output_tokens = 0
        self.cached_tokens = 0
        self.request_s: float | None = None
        self.cost = Cost()
        self.total = Cost()

    def start_turn(self) -> None:
        """A request goes out now."""
        self._recent.clear()
        self._turn_tokens = 0
        self._sent_at = time.monotonic()
        self._first_at = self._last_at = None
        self._bucket_start, self._bucket = None, 0
        self.ttft_s = self.request_s = None
        self.cost = Cost()

    def taken(self) -> None:
        """The server has taken the request."""
        if self._sent_at is not None and self.request_s is None:
            self.request_s = time.monotonic() - self._sent_at

    def add(self, tokens: int) -> None:
        """``tokens`` have just arrived."""
        now = time.monotonic()
        if self._first_at is None:
            self._first_at = self._bucket_start = now
            self._first_tokens = tokens
            if self._sent_at is not None:
                self.ttft_s = now - self._sent_at
        self._last_at = now
        self._recent.append((now, tokens))
        self._turn_tokens += tokens
        self.output_tokens += tokens
        self._sample(now)
        self._bucket += tokens

    def finish_turn(self) -> None:
        """The turn's text has ended."""
        if self._bucket_start is not None and self._bucket:
            elapsed = max(time.monotonic() - self._bucket_start, 1e-3)
            self.history.append(self._bucket / max(elapsed, SAMPLE_S))
        self._bucket_start, self._bucket = None, 0

    def add_cost(self, cost: Cost, *, current: bool) -> None:
        """Keep what an answer has cost; ``current`` unless another turn has begun meanwhile."""
        self.total += cost
        if current:
            self.cost = cost

    def add_usage(self, *, input_tokens: int, cached_tokens: int, missed: int) -> None:
        """Take over what the server counted for a turn, which may be over for a while.

        Args:
            input_tokens: Tokens of the prompt.
            cached_tokens: How many of them it had in its cache.
            missed: Generated tokens beyond those that were passed to ``add`` (may be negative).
        """
        self.input_tokens += input_tokens
        self.cached_tokens += cached_tokens
        self.output_tokens += missed

    @property
    def turn_tokens(self) -> int:
        """Tokens of the current or last turn."""
        return self._turn_tokens

    @property
    def turn_rate(self) -> float | None:
        """Mean tokens per second of the current or last turn, first text to last.

        What came with the first text was written before it and does not count.  ``None`` where the
        rest took so short a time that it tells nothing.
        """
        if self._first_at is None or self._last_at is None:
            return None
        lasted = self._last_at - self._first_at
        if lasted < SHORTEST_S:
            return None
        return (self._turn_tokens - self._first_tokens) / lasted

    @property
    def tokens_per_second(self) -> float:
        """Rate over the last second, or since the first text where that is shorter."""
        now = time.monotonic()
        while self._recent and now - self._recent[0][0] > WINDOW_S:
            self._recent.popleft()
        if not self._recent or self._first_at is None:
            return 0.0
        span = min(WINDOW_S, max(now - self._first_at, 0.05))
        return sum(tokens for _, tokens in self._recent) / span

    def _sample(self, now: float) -> None:
        start = self._bucket_start
        if start is None:
            return
        passed = int((now - start) / SAMPLE_S)
        if passed < 1:
            return
        self.history.append(self._bucket / SAMPLE_S)
        self.history.extend(0.0 for _ in range(min(passed - 1, HISTORY)))
        self._bucket_start, self._bucket = start + passed * SAMPLE_S, 0
