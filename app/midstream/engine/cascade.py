"""Two edit models behind one name: a small one answers first, a larger one where it is not sure.

The larger model's folder names the other one and the thresholds (``[takeover]`` in its
``midstream.toml``, see ``folder.Takeover``). The rule for one request:

1. The first model writes its whole answer out of sight, which takes milliseconds. If its calibrated
   probability reaches the threshold, it is shown. What the first model cannot be asked, and what
   goes on from text of the larger one, is not put to it.
2. Otherwise the larger model answers, and what it writes is shown as it comes; nothing that was
   shown is ever withdrawn. If it declines, which it says before any text, the first model's answer
   is shown unless that one has given up, too.
3. Where the first answer is nearly good enough (``Takeover.compare``), or the larger model's first
   token is unlikely (``Takeover.hold``), its answer is held back until it is complete. If it is
   below its own threshold, the likelier one of both is shown.
4. If even that one is hardly ever right (``Takeover.decline``), the request is declined: the lines
   stay as they are. Redirects and corrections, which go on from something, are not declined.

So the text is always that of one model from beginning to end, or the lines as they were, and
depends on the request alone.
``Usage.answered_by`` says whose it is. An answer of the first model below the threshold is flagged,
however sure that model is by its own.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from midstream.edits.request import RegionRequest, parse_request
from midstream.engine import huge_pages
from midstream.engine.folder import ModelFolder, Takeover, read_folder
from midstream.engine.layout import split_lines
from midstream.engine.loop import ModelGeneration
from midstream.engine.model import OnnxModel
from midstream.engine.types import (
    FinishReason,
    GenerateRequest,
    Generation,
    Message,
    Piece,
    TextModel,
    Usage,
)
from midstream.errors import UserError
from midstream.resources import find_model

_log = logging.getLogger(__name__)

MAX_HIDDEN: Final = 320
"""Tokens of the first model's answer, which is waited for: a rename in 64 lines takes some 256."""
KEPT_BYTES: Final = 16 << 20
"""Rows of earlier prompts that each model keeps, so that both fit 400 MB with 200 lines.

A row of the larger model takes 46 KB.
"""
REMEMBERED: Final = 64
"""Requests whose author is remembered for redirects."""


@dataclass(frozen=True, slots=True)
class HiddenAnswer:
    """A complete answer of which nothing was shown.

    Attributes:
        pieces: Its text.
        usage: What it has cost.
        finish: Why it ended.
    """

    pieces: tuple[Piece, ...]
    usage: Usage
    finish: FinishReason | None

    @property
    def probability(self) -> float | None:
        """Calibrated probability that it is right; None for one that is cut or declines."""
        complete = self.finish is FinishReason.STOP and not self.usage.gave_up
        return self.usage.confidence if complete else None

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


class BackgroundModel:
    """A model that is loaded in a thread of its own; whoever needs it earlier waits.

    Attributes:
        folder: What its files say.
        loaded: The model, or why it does not load.
    """

    def __init__(self, folder: ModelFolder, *, provider: str, threads: int | None) -> None:
        self.folder = folder
        self.loaded: Future[OnnxModel] = Future()
        self._options = (provider, threads)
        # Not a daemon: an interpreter that ends while ONNX Runtime loads a model aborts.
        threading.Thread(target=self._load, name=f"load-{folder.name}").start()

    def _load(self) -> None:
        provider, threads = self._options
        try:
            model = OnnxModel(self.folder, provider=provider, threads=threads)
        except Exception as error:
            _log.warning("%s was not loaded: %s", self.folder.name, error)
            self.loaded.set_exception(error)
        else:
            model.cache.budget = KEPT_BYTES
            self.loaded.set_result(model)
            huge_pages.collapse()

    def close(self) -> None:
        self.loaded.add_done_callback(_close)


def _close(loaded: Future[OnnxModel]) -> None:
    if loaded.exception() is None:
        loaded.result().close()


class Cascade:
    """Two models behind the larger one's name; a ``TextModel``."""

    def __init__(self, first: OnnxModel, second: BackgroundModel, takeover: Takeover) -> None:
        """Compose two models.

        Args:
            first: Asked first; its folder has a calibration.
            second: Takes over.
            takeover: When it does.
        """
        self.first = first
        self.second = second
        first.cache.budget = KEPT_BYTES
        judged = first.folder.confidence
        own = 0.0 if judged is None else judged.threshold
        compare = own if takeover.compare is None else takeover.compare
        self.threshold = takeover.threshold
        self.compare = compare if second.folder.confidence is not None else takeover.threshold
        self.flag = max(own, takeover.threshold)
        """An answer of the first model with a lower probability is flagged."""
        self.hold, self.decline = takeover.hold, takeover.decline
        languages = first.folder.facts.get("languages", "any")
        self._languages = () if languages == "any" else ("", *languages.split(","))
        asked_first = {"provider": first.facts["provider"], "first_model": first.name}
        self._facts = {**second.folder.facts, **asked_first}
        self._authors: OrderedDict[tuple[Message, ...], str] = OrderedDict()
        self._ready: tuple[GenerateRequest, HiddenAnswer] | None = None

    @property
    def name(self) -> str:
        return self.second.folder.name

    @property
    def facts(self) -> Mapping[str, str]:
        return self._facts

    def start(self, request: GenerateRequest) -> Generation:
        """Begin an answer; a request that neither model takes raises when it is iterated."""
        return CascadeAnswer(self, request) if request.generate else CascadeReading(self, request)

    def close(self) -> None:
        self.first.close()
        self.second.close()

    def suits_first(self, request: GenerateRequest) -> bool:
        """Whether the first model is to be asked."""
        at, region = _last_region(request.messages)
        if region is None or (self._languages and region.language not in self._languages):
            return False
        kept = any(each.role == "assistant" and each.text for each in request.messages[at:])
        author = self._authors.get(request.messages[:at]) if kept else None
        # The guard words its corrections as the first model knows them.
        return request.correction is not None or author != self.second.folder.name

    def note_author(self, request: GenerateRequest, name: str) -> None:
        """Remember who answers a request, for what continues from it."""
        key = request.messages[: _last_region(request.messages)[0]]
        self._authors[key] = name
        self._authors.move_to_end(key)
        while len(self._authors) > REMEMBERED:
            self._authors.popitem(last=False)

    def take_ready(self, request: GenerateRequest) -> HiddenAnswer | None:
        """The first model's answer to this very request, if it was written ahead."""
        ready, self._ready = self._ready, None
        asked = replace(request, generate=True)
        if ready is None or ready[0] != asked:
            return None
        return ready[1]

    def keep_ready(self, request: GenerateRequest, answer: HiddenAnswer) -> None:
        """Keep the first model's answer for when the same is asked."""
        cost = Usage(input_tokens=answer.usage.input_tokens)
        cost.cached_tokens, cost.output_tokens = cost.input_tokens, answer.usage.output_tokens
        cost.confidence, cost.gave_up = answer.usage.confidence, answer.usage.gave_up
        self._ready = (replace(request, generate=True), replace(answer, usage=cost))

    def shows_first(self, answer: HiddenAnswer | None) -> bool:
        """Whether the first model's answer is shown without asking the other one."""
        probability = None if answer is None else answer.probability
        return probability is not None and probability >= self.threshold

    def compares(self, answer: HiddenAnswer | None) -> bool:
        """Whether the first model's answer competes with the larger one's."""
        probability = None if answer is None else answer.probability
        return probability is not None and self.compare <= probability < self.threshold

    def prefers_first(self, first: HiddenAnswer, second: HiddenAnswer) -> bool:
        """Whether the first of two complete answers is shown."""
        judged = self.second.folder.confidence
        mine, other = first.probability, second.probability
        if mine is None or other is None or judged is None:
            return mine is not None
        return other < judged.threshold and mine > other


def _last_region(messages: Sequence[Message]) -> tuple[int, RegionRequest | None]:
    """Return the last region request, and how many messages there are up to it."""
    for at in range(len(messages), 0, -1):
        if messages[at - 1].role == "user":
            region = parse_request(messages[at - 1].text)
            if region is not None:
                return at, region
    return 0, None


class _CascadeWork:
    """What answers and readings share: the first model's part, and the stop.

    Attributes:
        usage: What it has cost so far.
    """

    def __init__(self, cascade: Cascade, request: GenerateRequest) -> None:
        self.usage = Usage()
        self._cascade = cascade
        self._request = request
        self._running: Generation | None = None
        self._stopped = False
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._finish: FinishReason | None = None

    @property
    def finish_reason(self) -> FinishReason | None:
        return self._finish

    def stop(self) -> None:
        """End it within one forward pass; callable from any thread, at any time."""
        with self._lock:
            self._stopped = True
            running = self._running
        self._wake.set()
        if running is not None:
            running.stop()

    def _begin(self, generation: Generation) -> None:
        """A stop ends this generation from now on."""
        with self._lock:
            self._running = generation
            stopped = self._stopped
        if stopped:
            generation.stop()

    def _ask_first(self) -> HiddenAnswer | None:
        """The first model's answer; None if it cannot be asked, or was stopped."""
        most = self._request.max_output_tokens
        limit = MAX_HIDDEN if most is None else min(most, MAX_HIDDEN)
        asked = replace(self._request, generate=True, max_output_tokens=limit)
        try:
            generation = self._cascade.first.answer(asked)
        except UserError:
            return None
        self._begin(generation)
        answer = HiddenAnswer(tuple(generation), generation.usage, generation.finish_reason)
        return None if self._stopped else answer


class CascadeReading(_CascadeWork):
    """Reads ahead for both models; a ``types.Generation`` without text.

    The first model's answer is written already. If it will not be shown, the larger model reads the
    request and begins its answer; it reads a region without words, too.
    """

    def __iter__(self) -> Iterator[Piece]:
        self._read()
        self._finish = FinishReason.STOPPED if self._stopped else FinishReason.STOP
        return iter(())

    def _read(self) -> None:
        cascade, request = self._cascade, self._request
        if _has_words(request) and cascade.suits_first(request):
            answer = self._ask_first()
            if answer is not None:
                cascade.keep_ready(request, answer)
                self.usage.take(answer.usage)
            if self._stopped or cascade.shows_first(answer):
                return
        loaded = cascade.second.loaded
        if not loaded.done() or loaded.exception() is not None:
            return
        reading = loaded.result().start(request)
        self._begin(reading)
        for _ in reading:
            pass
        self.usage.take(reading.usage)


class CascadeAnswer(_CascadeWork):
    """One answer; a ``types.Generation``. Errors of the larger model are raised by the
    iteration.
    """

    def __init__(self, cascade: Cascade, request: GenerateRequest) -> None:
        super().__init__(cascade, request)
        at, region = _last_region(request.messages)
        again = at < len(request.messages) or request.correction is not None
        self._untouched = None if region is None or again else split_lines(region.region)
        """What a declined request leaves; None where it is not the first one about its region."""

    def __iter__(self) -> Iterator[Piece]:
        try:
            yield from self._pieces()
        finally:
            if self._finish is None:
                self._finish = FinishReason.STOPPED

    def _pieces(self) -> Iterator[Piece]:
        cascade, request = self._cascade, self._request
        began = time.perf_counter()
        first: HiddenAnswer | None = None
        if cascade.suits_first(request):
            first = cascade.take_ready(request) or self._ask_first()
            if cascade.shows_first(first) and first is not None:
                yield from self._show_first(first)
                return
        self.usage.hidden_s = time.perf_counter() - began
        try:
            yield from self._wait_for_second()
            if self._stopped:
                return
            generation = cascade.second.loaded.result().start(request)
        except Exception as error:
            if first is None or self._stopped:
                raise
            self.usage.trouble = str(error)
            yield from self._show_first(first)
            return
        self._begin(generation)
        yield from self._show_second(generation, first)

    def _wait_for_second(self) -> Iterator[Piece]:
        """Wait until the larger model is loaded, or the answer stopped; says so in ``usage``."""
        second = self._cascade.second
        if not second.loaded.done():
            second.loaded.add_done_callback(lambda _: self._wake.set())
            self.usage.waits_for = second.folder.name
            yield Piece("", 0)  # Has the server look at `usage`.
            self._wake.wait()
            self.usage.waits_for = ""

    def _show_second(self, generation: Generation, first: HiddenAnswer | None) -> Iterator[Piece]:
        """Show the larger model's answer: as it comes, or once it is complete and was compared."""
        cascade = self._cascade
        held: list[Piece] = []
        waits, shown = cascade.compares(first), False
        for piece in generation:
            self.usage.take(generation.usage)
            if shown:
                yield piece
                continue
            held.append(piece)
            if piece.text and not waits and not self._doubtful(generation):
                self._name(cascade.second.folder.name, None)
                shown = True
                yield from held
        self.usage.take(generation.usage)
        if self._stopped:
            return
        if not shown:
            yield from self._show_better(
                first, HiddenAnswer(tuple(held), generation.usage, generation.finish_reason)
            )
        else:
            self._finish = generation.finish_reason

    def _show_better(self, first: HiddenAnswer | None, second: HiddenAnswer) -> Iterator[Piece]:
        """Show one of two complete answers, or decline."""
        cascade = self._cascade
        if first is None and second.usage.gave_up:
            first = self._ask_first()
        if first is not None and not self._fails(first) and cascade.prefers_first(first, second):
            self.usage.hidden_s = second.usage.prefill_s + second.usage.decode_s
            yield from self._show_first(first)
            return
        self._name(cascade.second.folder.name, None)
        self._finish = second.finish
        if self._untouched is None or not self._fails(second):
            yield from second.pieces
            return
        self.usage.gave_up = True
        yield Piece("".join(f"{line}\n" for line in self._untouched), 0)

    def _doubtful(self, generation: Generation) -> bool:
        """Whether nothing is shown of an answer of the larger model before it is complete."""
        judge = generation.judge if isinstance(generation, ModelGeneration) else None
        if judge is None:
            return False
        unlikely = self._untouched is not None and judge.opening < self._cascade.hold
        return judge.gave_up or unlikely

    def _fails(self, answer: HiddenAnswer) -> bool:
        """Whether an answer changes something and is hardly ever right."""
        chance, lines = answer.probability, self._untouched
        unlikely = chance is not None and chance < self._cascade.decline
        return unlikely and lines is not None and split_lines(answer.text) != lines

    def _show_first(self, answer: HiddenAnswer) -> Iterator[Piece]:
        self.usage.take(answer.usage)
        self._name(self._cascade.first.name, self._cascade.flag)
        for piece in answer.pieces:
            if self._stopped:
                return
            yield piece
        self._finish = answer.finish

    def _name(self, model: str, threshold: float | None) -> None:
        """Say whose answer is shown, from its first piece on."""
        self.usage.answered_by, self.usage.threshold = model, threshold
        self._cascade.note_author(self._request, model)


def _has_words(request: GenerateRequest) -> bool:
    """Whether anything is asked; a region may be read before there are words."""
    at, region = _last_region(request.messages)
    if region is None or at < len(request.messages):
        return region is not None
    return bool(region.instruction.strip())


def load_served_model(
    folder: Path, *, provider: str = "cpu", threads: int | None = None, kept_bytes: int = 0
) -> TextModel:
    """Load what answers under the name of a model folder: its model, or two if it names another.

    The larger one of two is loaded in the background.

    Args:
        folder: In ONNX Runtime GenAI, Optimum or transformers.js layout.
        provider: Where it runs; see ``graph.PROVIDERS``.
        threads: Threads inside one operator; None for the cores this process may use.
        kept_bytes: Bytes on disk for what a chat model has read; see ``OnnxModel``.

    Raises:
        ModelFolderError: The sentence names the file or graph input at fault.
        UnavailableError: The installed onnxruntime lacks that provider.
    """
    described = read_folder(folder)
    first = first_folder(described)
    if described.takeover is None or first is None:
        model = OnnxModel(described, provider=provider, threads=threads, kept_bytes=kept_bytes)
        huge_pages.collapse_in_background()
        return model
    quick = OnnxModel(first, provider=provider, threads=threads)
    second = BackgroundModel(described, provider=provider, threads=threads)
    return Cascade(quick, second, described.takeover)


def first_folder(folder: ModelFolder) -> ModelFolder | None:
    """The model that is asked before this one: beside it, else an installed one; None for none.

    Raises:
        ModelFolderError: It is installed and cannot be used.
    """
    if folder.takeover is None:
        return None
    beside = folder.path.resolve().parent / folder.takeover.first
    path = beside if beside.is_dir() else find_model(Path(folder.takeover.first))
    return read_folder(path) if path.is_dir() else None
