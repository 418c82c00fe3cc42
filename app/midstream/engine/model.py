"""A loaded model: folder, graph, prompts and KV cache behind the interface that the server uses.

A prompt may be read while its instruction is being typed, because it will probably be sent. The
answer is begun and waits after its first run (``Preparation``). If just that request follows, the
answer continues from there; if not, what was read is in the cache like anything else.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module

from midstream.engine.cache_memory import SPARE_BYTES, available_bytes, rows_that_fit, spelled
from midstream.engine.decoder import Decoder
from midstream.engine.folder import Drafting, ModelFolder, graph_files
from midstream.engine.graph import Opening, usable_cores
from midstream.engine.loop import ModelGeneration, ReadingSpeed, Runtime
from midstream.engine.plan import EncodedRequest, PromptError
from midstream.engine.prefix_cache import PrefixCache
from midstream.engine.prefix_files import PrefixFiles
from midstream.engine.prompts import prompt_style, require_vocabulary
from midstream.engine.sampling import Sampler
from midstream.engine.types import FinishReason, GenerateRequest, Piece, Usage
from midstream.processes import return_freed


class Preparation:
    """A ``types.Generation`` without text."""

    def __init__(self, answer: ModelGeneration, ready: Callable[[ModelGeneration], None]) -> None:
        """Prepare; nothing runs before iteration.

        Args:
            answer: The answer, of which nothing was done yet.
            ready: Told it once its first piece is there.
        """
        self.usage = Usage(input_tokens=answer.usage.input_tokens)
        self._answer = answer
        self._ready = ready
        self._stopped = False
        self._ending = threading.Lock()
        self._finish: FinishReason | None = None

    @property
    def finish_reason(self) -> FinishReason | None:
        return self._finish

    def stop(self) -> None:
        """End it with the run in progress; callable from any thread, at any time.

        That run is cut short only if it takes long: the next request probably begins with the same
        tokens. Once it is over, the answer belongs to that request and continues.
        """
        with self._ending:
            if self._finish is None and not self._stopped:
                self._answer.give_way()
                self._ends_in(YIELD_SECONDS)
            self._stopped = True

    def __iter__(self) -> Iterator[Piece]:
        """Read; there are no pieces."""
        limit = self._ends_in(READ_SECONDS)
        try:
            done = self._answer.prepare()
        finally:
            limit.cancel()
        with self._ending:
            done = done and not self._stopped
            self._finish = FinishReason.STOP if done else FinishReason.STOPPED
        read = self._answer.usage
        self.usage.cached_tokens, self.usage.prefill_s = read.cached_tokens, read.prefill_s
        self.usage.wafer_s = read.wafer_s
        if done:
            self._ready(self._answer)
        return iter(())

    def _ends_in(self, seconds: float) -> threading.Timer:
        timer = threading.Timer(seconds, self._end)
        timer.daemon = True
        timer.start()
        return timer

    def _end(self) -> None:
        """Cut the run in progress short: what a graph computes may have no end."""
        with self._ending:
            self._stopped = True
            if self._finish is None:
                self._answer.stop()


READ_BYTES = 75e9
"""Bytes of weights times tokens that one core reads in a second, until that is measured."""
YIELD_SECONDS = 3.0
"""How long a run that only reads may go on while another generation waits for it."""
READ_SECONDS = 300.0
"""Longest time to read a prompt ahead of its request."""
REST_SECONDS = 10.0
"""How long after a request memory is given back that only reading takes."""
CLOSE_SECONDS = 5.0
"""How long ``close`` waits for a running generation to end."""


class PromptTooLongError(PromptError):
    """The prompt leaves no room for an answer in the model's context."""

    code = "prompt_too_long"


class MemoryShortError(PromptError):
    """The cache of a prompt does not fit into the memory that is free."""

    code = "memory"


class OnnxModel:
    """A model folder in ONNX Runtime; a ``TextModel``.

    Generations take turns: one runs, the next one waits when it is iterated. A prompt that is only
    read (``generate`` is False) waits for no turn: it is read between the runs of other
    generations, and its begun answer is kept for the same request.

    Attributes:
        folder: What the folder's files say.
        decoder: The graph and its cache.
        cache: What is remembered of earlier prompts.
        drafting: How much is drafted; None verifies no drafts (the text is the same, only slower).
        exact: Whether all runs are such that the text with drafts is the text without.
    """

    def __init__(
        self,
        folder: ModelFolder,
        *,
        provider: str = "cpu",
        threads: int | None = None,
        kept_bytes: int = 0,
        opening: Opening | None = None,
    ) -> None:
        """Load the graph and what turns requests into tokens.

        Args:
            folder: The model folder.
            provider: Where it runs; see ``graph.PROVIDERS``.
            threads: Threads inside one operator; None for the cores this process may use.
            kept_bytes: Bytes on disk for what it has read; 0 keeps nothing. Edit models read little
                and keep nothing.
            opening: The folder's graph where it is being opened already, with provider and threads
                of its own.

        Raises:
            ModelFolderError: The sentence names the file or graph input at fault.
            UnavailableError: The installed onnxruntime lacks that provider.
        """
        self.folder = folder
        opening = opening or Opening(folder, provider=provider, threads=threads)
        self._style = prompt_style(folder)  # While the graph is opened.
        self.decoder = Decoder(folder, opening=opening)
        provider = self.decoder.provider
        self.exact = folder.drafting is not None and self.decoder.causal
        self.drafting: Drafting | None = folder.drafting if self.exact else None
        require_vocabulary(folder, self._style, self.decoder.vocab)
        kept = bool(kept_bytes) and not folder.is_edit_model
        self.cache = PrefixCache(
            self.decoder,
            files=self._kept_files(provider, kept_bytes) if kept else None,
            moves=folder.plain_attention,
        )
        self._facts = {**folder.facts, "provider": provider}
        if self.decoder.all_rows:
            self._facts["must_change"] = "1"
        cores = threads or usable_cores()
        weights = sum(file.stat().st_size for file in graph_files(folder))
        self._speed = ReadingSpeed(READ_BYTES * cores / max(1, weights))
        self._turn = threading.Lock()
        self._step = threading.Lock()
        self._ahead: tuple[GenerateRequest, ModelGeneration] | None = None
        self._started: weakref.WeakSet[ModelGeneration] = weakref.WeakSet()
        self._resting: threading.Timer | None = None
        self._closed = False

    def _kept_files(self, provider: str, budget: int) -> PrefixFiles:
        version = import_module("onnxruntime").__version__
        kernels = f"{provider} {version} exact={self.exact} packed={self.decoder.packed}"
        return PrefixFiles(self.folder, self.decoder.io.cache, source=kernels, budget=budget)

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def facts(self) -> Mapping[str, str]:
        """The properties in the folder, and for chat models the rate at which prompts are read
        here.
        """
        if self.folder.is_edit_model:
            return self._facts
        return {**self._facts, "reading_rate": f"{self._speed.rate:.0f}"}

    def start(self, request: GenerateRequest) -> ModelGeneration | Preparation:
        """Encode a request; it runs when the generation is iterated.

        Raises:
            PromptTooLongError: The sentence names both lengths.
            MemoryShortError: The sentence names what is needed and what is free.
            UserError: The model cannot be asked this.
        """
        if self._closed:
            raise RuntimeError("the model is closed")
        if request.generate and (begun := self._begun(request)) is not None:
            return begun
        answer = self.answer(request)
        if request.generate:
            return answer
        asked = replace(request, generate=True)
        return Preparation(answer, lambda begun: setattr(self, "_ahead", (asked, begun)))

    def _begun(self, request: GenerateRequest) -> ModelGeneration | None:
        """The answer that was begun ahead, if it answers this request."""
        ahead, self._ahead = self._ahead, None
        return ahead[1] if ahead is not None and ahead[0] == request else None

    def answer(self, request: GenerateRequest) -> ModelGeneration:
        """A fresh answer, ignoring one that was begun ahead; errors are those of ``start``."""
        plan = self.plan(request)
        # An exact run may need one more row than it has tokens, and an answer needs one.
        room = self.decoder.context_length - 1 - len(plan.prompt_ids)
        most = min(self.folder.limits.prompt or 2**31, self.decoder.context_length - 2)
        if len(plan.prompt_ids) > most:
            raise PromptTooLongError(
                f"The prompt has {len(plan.prompt_ids)} tokens and {self.name} reads at most "
                f"{most}; select a smaller part, or shorten the instruction."
            )
        room = min(room, self._affordable(len(plan.prompt_ids)))
        asked = (room, request.max_output_tokens, self.folder.limits.output, plan.most)
        generation = ModelGeneration(
            plan,
            Runtime(
                self.decoder,
                self.cache,
                self.drafting,
                exact=self.exact,
                turn=self._turn,
                step=self._step,
                speed=self._speed,
            ),
            Sampler(
                temperature=request.temperature,
                top_p=request.top_p,
                top_k=request.top_k,
                min_p=request.min_p,
                seed=request.seed,
            ),
            limit=min(limit for limit in asked if limit is not None),
            stop=request.stop,
            moved=request.prose,
            must_change=request.must_change,
        )
        self._started.add(generation)
        self._rest_later()
        return generation

    def _rest_later(self) -> None:
        if self._resting is None or not self._resting.is_alive():
            # A model that is dropped unclosed should not be kept by its timer.
            self._resting = threading.Timer(REST_SECONDS, _rest, (weakref.ref(self),))
            self._resting.daemon = True
            self._resting.start()

    def rest(self) -> None:
        """Give memory back unless a generation is running; then later."""
        if self._turn.locked():
            self._resting = None
            self._rest_later()
        elif not self._closed:
            self.give_back()

    def give_back(self) -> None:
        """Give memory back that reading and verifying take; later runs take it again."""
        with self._step:
            self.decoder.give_back()
        return_freed()

    def _affordable(self, prompt: int) -> int:
        """How many tokens may follow a prompt before memory runs out."""
        decoder = self.decoder
        if decoder.context_length * decoder.row_bytes <= SPARE_BYTES:
            return decoder.context_length
        more = rows_that_fit(decoder.row_bytes)
        if more is None:
            return decoder.context_length
        left = decoder.written + more - prompt - 1
        if left < 1:
            raise MemoryShortError(
                f"The prompt has {prompt} tokens, whose cache takes "
                f"{spelled(prompt * decoder.row_bytes)}, and {spelled(available_bytes() or 0)} of "
                "memory are free; select a smaller part."
            )
        return left

    def plan(self, request: GenerateRequest) -> EncodedRequest:
        """A request in tokens; errors are those of ``start``."""
        return self._style.plan(request)

    def close(self) -> None:
        """Stop the running generation, wait for it, and keep on disk the prompt that was read
        last.
        """
        self._closed = True
        if self._resting is not None:
            self._resting.cancel()
        for generation in list(self._started):
            generation.stop()
        # A generation that is not iterated cannot notice the stop and must not block closing.
        if self._turn.acquire(timeout=CLOSE_SECONDS):
            with self._step:
                self.cache.keep_on_disk()
                self.cache.clear()
            self._turn.release()


def _rest(model: weakref.ref[OnnxModel]) -> None:
    if (there := model()) is not None:
        there.rest()
