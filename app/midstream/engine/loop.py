"""The generation loop: prefill the prompt in chunks, then draft, run, verify and emit until
something ends it.

Reads top to bottom as what happens. A stop flag is looked at before every run, and ends a run in
progress. Between two runs another generation may read a prompt ahead; the rows of this one are put
back before the next run.

Exactness: where a model may be drafted for, the decoder runs at least two rows at once, drafted or
not, because its kernels round a single row differently from the same row among others (measured:
two and more rows agree bit for bit). So the greedy text with drafting is the greedy text without.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from midstream.engine.decoder import Array, Decoder, RunTerminatedError
from midstream.engine.departure import ROWS, Departure
from midstream.engine.drafting import Drafter, DraftLength
from midstream.engine.folder import Drafting
from midstream.engine.plan import EncodedRequest, Judge, Proposer, StopStrings
from midstream.engine.prefix_cache import PrefixCache
from midstream.engine.repetition import RepetitionWatch
from midstream.engine.sampling import Sampler
from midstream.engine.types import FinishReason, Piece, Usage

PREFILL_CHUNK = 128
"""Prompt tokens per run: long enough for the matrix kernels, short enough to stop in between."""

SHORT_TAIL = 16
"""Up to this many uncached prompt tokens are read by the first decoding run: another run would
take longer than their unneeded logits.
"""

ALONE = nullcontext()
"""In place of a lock where nothing else uses the model."""


MEASURED_TOKENS = 64
"""Tokens read at once that are enough to measure the reading rate."""


class ReadingSpeed:
    """How fast a model reads prompts, as measured.

    Attributes:
        rate: Tokens in a second.
    """

    def __init__(self, guess: float) -> None:
        """Start with a guess, which the first prompt replaces."""
        self.rate = guess
        self._measured = False

    def note(self, tokens: int, seconds: float) -> None:
        """Record the rate of one reading, if it was long enough to measure."""
        if tokens < MEASURED_TOKENS or seconds <= 0:
            return
        measured = tokens / seconds
        self.rate = (self.rate + measured) / 2 if self._measured else measured
        self._measured = True


@dataclass(frozen=True, slots=True)
class Runtime:
    """The state that all generations of one model share.

    Attributes:
        decoder: The graph; used only inside ``step``.
        cache: What it remembers; likewise.
        drafting: How much to draft; None verifies no drafts (the text is the same if ``exact``).
        exact: Make every row's bits independent of how many run together.
        turn: Held while generating, so that one generation writes at a time.
        step: Held for every run.
        speed: Notes how fast prompts are read.
    """

    decoder: Decoder
    cache: PrefixCache
    drafting: Drafting | None = None
    exact: bool = False
    turn: AbstractContextManager[object] = ALONE
    step: AbstractContextManager[object] = ALONE
    speed: ReadingSpeed | None = None


class ModelGeneration:
    """One generation on one decoder; see ``types.Generation`` for what callers may do with it.

    Attributes:
        usage: What it has cost so far.
    """

    def __init__(
        self,
        plan: EncodedRequest,
        runtime: Runtime,
        sampler: Sampler,
        *,
        limit: int,
        stop: Sequence[str] = (),
        moved: bool = False,
        must_change: bool = False,
    ) -> None:
        """Prepare; nothing runs before iteration.

        Args:
            plan: The request in tokens; prompt and ``limit`` together fit the context.
            runtime: The model.
            sampler: Chooses tokens.
            limit: Most tokens to generate.
            stop: Texts that end the answer.
            moved: Whether the prompt may begin with moved rows; see ``PrefixCache.open``.
            must_change: Whether the answer leaves its draft where another token is likeliest.

        Raises:
            PromptError: A stop string is empty.
        """
        self.usage = Usage(input_tokens=len(plan.prompt_ids))
        self._plan = plan
        self._text = StopStrings(plan.decoder, stop)
        # Answers of edit models have a length that is known.
        self._watch = RepetitionWatch(plan.prompt_ids) if plan.most is None else None
        self._decoder = runtime.decoder
        self._cache = runtime.cache
        self._rows = runtime.cache.tokens
        self._turn = runtime.turn
        self._step = runtime.step
        self._speed = runtime.speed
        self._sampler = sampler
        self._limit = limit
        self._moved = moved
        fits = 0 < len(plan.draft_ids) < limit
        self._must_change = must_change and fits and runtime.decoder.all_rows
        self._exact = runtime.exact
        # Of a prompt, the first token must not depend on how much was cached: see the module's
        # docstring for what is different about one row. Exact runs are never that short.
        self._last = 1 if runtime.exact else 2
        self._drafter: Proposer | None = None
        if runtime.drafting is not None and runtime.decoder.all_rows:
            self._drafter = plan.drafter or Drafter(plan.draft_ids, plan.prompt_ids)
            self._pace = DraftLength(runtime.decoder.row_cost, runtime.drafting.most)
        self._stop = threading.Event()
        self._running = threading.Lock()
        self._active = False
        self._wafer_s: float | None = None
        self._made: Iterator[Piece] | None = None
        self._first: Piece | None = None
        self._finish: FinishReason | None = None

    @property
    def finish_reason(self) -> FinishReason | None:
        return self._finish

    @property
    def judge(self) -> Judge | None:
        return self._plan.judge

    def stop(self) -> None:
        """End it within one forward pass; callable from any thread, at any time."""
        self._stop.set()
        with self._running:
            if self._active:
                self._decoder.terminate()

    def give_way(self) -> None:
        """End it with the run in progress, whose rows are kept; likewise."""
        self._stop.set()

    def prepare(self) -> bool:
        """Read the prompt and do the first run, before the text is requested.

        Returns:
            Whether the first piece is ready; False if the generation was stopped.
        """
        self._made = self._produce()
        self._first = next((piece for piece in self._made if piece.tokens), None)
        return self._first is not None and not self._stop.is_set()

    def __iter__(self) -> Iterator[Piece]:
        """Prefill the prompt, then yield a piece for every forward pass.

        Pieces without text or tokens tell that a part of the prompt was read. However it ends, text
        that was held back and is certain comes last, as a piece of no tokens.
        """
        with self._turn:
            try:
                if self._first is not None:
                    # Read before it was requested, so it counts as cached.
                    self.usage.cached_tokens, self.usage.prefill_s = self.usage.input_tokens, 0.0
                    yield self._first
                if not self._stop.is_set():
                    yield from self._made or self._produce()
                    if rest := self._text.finish():
                        yield Piece(rest, 0)
            finally:
                if self._finish is None:
                    self._finish = FinishReason.STOPPED

    def _produce(self) -> Iterator[Piece]:
        started = time.perf_counter()
        try:
            yield from self._prefill()
            read = time.perf_counter()
            if self._stop.is_set():
                return  # perhaps between two chunks of the prompt
            self.usage.prefill_s = read - started
            if self._speed is not None:
                fresh = len(self._plan.prompt_ids) - self.usage.cached_tokens
                self._speed.note(fresh, self.usage.prefill_s)
            pieces = self._decode()
            while piece := next(pieces, None):
                # Time that the reader takes between pieces does not count.
                self.usage.decode_s += time.perf_counter() - read
                yield piece
                read = time.perf_counter()
        except RunTerminatedError:
            return

    def _prefill(self) -> Iterator[Piece]:
        """Compute the rows of all prompt tokens but the last ones, which the first run decodes.

        Yields:
            An empty piece after each chunk but the last.
        """
        prompt = self._plan.prompt_ids
        with self._step:
            past = self._open(prompt[: -self._last])
        self.usage.cached_tokens = self.usage.read_tokens = past
        while past < len(prompt) - SHORT_TAIL and not self._stop.is_set():
            end = past + self._decoder.chunk(PREFILL_CHUNK, past)
            chunk = prompt[past : min(end, len(prompt) - self._last)]
            with self._step:
                self._take_back()
                self._fill(chunk, past)
            past += len(chunk)
            self.usage.read_tokens = past
            if past < len(prompt) - SHORT_TAIL:
                yield Piece("", 0)

    def _decode(self) -> Iterator[Piece]:
        judge = self._plan.judge
        given = self._plan.prompt_ids[len(self._rows) :]
        if self._must_change:
            judge = None  # The first answer was judged, and this is the one behind it.
            tokens = self._departed(given)
            piece, ended = self._piece(tokens)
            if ended or tokens == self._plan.draft_ids:
                self._finish = FinishReason.STOP
                yield piece
                return
            given = tokens[-1:]
            yield piece
            if self._drafter:
                self._drafter.learn(tokens)
        while not self._stop.is_set():
            left = self._limit - self.usage.output_tokens
            if left <= 0:
                self._finish = FinishReason.LENGTH
                return
            draft: list[int] = []
            if self._drafter:
                draft = self._drafter.propose(min(left - 1, self._pace.length(len(given))))
            with self._step:
                logits = self._run([*given, *draft])[-1 - len(draft) :]
                tokens = self._verify(draft, logits)
                self._cache.extend([*given, *tokens[:-1]])
                piece, ended = self._piece(tokens)
                if judge is not None:
                    judge.take(logits, tokens[: piece.tokens])
            # From here on another generation's run may overwrite the logits.
            given = tokens[-1:]
            self.usage.forwards += 1
            self.usage.drafted_tokens += len(draft)
            self.usage.accepted_tokens += min(piece.tokens, len(tokens) - 1)
            if ended:
                circles = self._watch is not None and self._watch.found
                self._finish = FinishReason.REPETITION if circles else FinishReason.STOP
            yield piece
            # The rest is done after the text is out, so it delays nothing.
            if ended:
                if judge is not None:
                    self.usage.confidence = judge.confidence()
                return
            if self._drafter:
                self._drafter.learn(tokens)
                self._pace.learn(len(draft), len(tokens) - 1)

    def _departed(self, given: Sequence[int]) -> list[int]:
        """The beginning of an answer that changes something: some of the draft and another token.

        The rows of all but that token are live then. All of the draft if nothing else is likely.
        """
        plan = self._plan
        assert plan.text_of is not None
        found = Departure(plan.draft_ids, plan.text_of, plan.stop_ids)
        # The last token of the draft is behind the last row that is needed.
        tokens = [*given, *plan.draft_ids[:-1]]
        first = len(given) - 1
        while tokens:
            count = self._decoder.chunk(ROWS, len(self._rows))
            chunk, tokens = tokens[:count], tokens[count:]
            with self._step:
                logits = self._run(chunk)
                self._cache.extend(chunk)
                self.usage.forwards += 1
                found.take(logits[first:])
            first = max(0, first - count)
        best = found.best()
        if best is None:
            return list(plan.draft_ids)
        place, token = best
        with self._step:
            self._take_back()
            self._cache.keep(len(plan.prompt_ids) + place)
        return [*plan.draft_ids[:place], token]

    def _run(self, tokens: Sequence[int]) -> Array:
        """Run tokens behind the live rows, this generation's own; returns their logits."""
        self._take_back()
        self._begin_run()
        try:
            return self._decoder.run(tokens, len(self._rows), exact=self._exact)
        finally:
            self._end_run()

    def _begin_run(self) -> None:
        """From here on a stop ends the run in progress."""
        with self._running:
            if self._stop.is_set():
                raise RunTerminatedError
            self._active = True
        self._wafer_s = self._decoder.wafer_s

    def _end_run(self) -> None:
        with self._running:
            self._active = False
            if self._stop.is_set():
                self._decoder.rearm()
        if self._wafer_s is not None and self._decoder.wafer_s is not None:
            spent = self._decoder.wafer_s - self._wafer_s
            self.usage.wafer_s = (self.usage.wafer_s or 0.0) + spent

    def _open(self, tokens: Sequence[int]) -> int:
        """Make the live rows the longest known prefix of these tokens; returns its length."""
        past = self._cache.open(tokens, moved=self._moved)
        self._rows = self._cache.tokens
        return past

    def _take_back(self) -> None:
        """Restore this generation's rows if another prompt was read meanwhile."""
        if self._cache.tokens is self._rows:
            return
        rows = self._rows
        past = self._open(rows)
        while past < len(rows):
            chunk = rows[past : past + self._decoder.chunk(PREFILL_CHUNK, past)]
            self._fill(chunk, past)
            past += len(chunk)

    def _fill(self, chunk: Sequence[int], past: int) -> None:
        self._begin_run()
        try:
            self._decoder.fill(chunk, past, exact=self._exact)
        finally:
            self._end_run()
        self._cache.extend(chunk)

    def _verify(self, draft: Sequence[int], logits: Array) -> list[int]:
        """The draft tokens that the model agrees with, and its own next one."""
        tokens: list[int] = []
        for row in range(len(draft) + 1):
            token = self._sampler.pick(logits[row])
            tokens.append(token)
            if row == len(draft) or token != draft[row] or token in self._plan.stop_ids:
                break
        return tokens

    def _piece(self, tokens: Sequence[int]) -> tuple[Piece, bool]:
        """Return the text of new tokens, and whether the answer ends with it.

        Tokens behind a stop string, or behind the point where the answer only repeats itself, do
        not count: without a draft they would not have been written.
        """
        text, read = "", 0
        for token in tokens:
            text += self._text.feed(token)
            read += 1
            if self._text.hit or (self._watch is not None and self._watch.feed(token)):
                break
        self.usage.output_tokens += read
        ended = self._text.hit or (self._watch is not None and self._watch.found)
        return Piece(text, read), ended or tokens[-1] in self._plan.stop_ids
