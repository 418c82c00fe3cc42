"""Measurements of ``midstream bench engine``: waiting times (first token, stop, an event loop
beside it), given texts, and the same work in alternation with other engines.

Engines take turns step by step, because the machine is not steady: only what was measured in the
same minute is compared.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from midstream.bench.figures import percentile
from midstream.bench.formats import format_edits
from midstream.bench.peers import Peer
from midstream.bench.progress import BenchProgress
from midstream.bench.reference_edits import (
    REFERENCE_EDITS,
    edit_requests,
    long_requests,
)
from midstream.edits.request import parse_request, render_follow_up, render_request
from midstream.engine.bandwidth import timed
from midstream.engine.loop import PREFILL_CHUNK, ModelGeneration, Runtime
from midstream.engine.model import OnnxModel, PromptTooLongError
from midstream.engine.patch_drafting import PatchDrafter
from midstream.engine.plan import EncodedRequest
from midstream.engine.prompts import load_tokenizer
from midstream.engine.sampling import Sampler
from midstream.engine.types import GenerateRequest, Message, TextModel, Usage

LONG = "long region, "
"""In front of what is measured on long regions."""

REDIRECTS: dict[str, int | None] = {
    "redirect": None,
    "redirect read ahead": 0,
    "redirect read a line ago": 1,
}
"""What is measured of redirects; see ``_redirect``."""

KEPT_LINES = 3
"""Lines of an answer that stay when it is redirected."""

STOPS = 12
"""Generations stopped, each at another moment."""


def first_tokens(
    model: OnnxModel, repeat: int, progress: BenchProgress
) -> tuple[dict[str, float], dict[str, float]]:
    """Measure the first token with nothing cached, with all cached, and after redirects.

    The requests are the reference functions one by one, and several of them as one long region. A
    redirect is sent at once, or was read ahead as while it is typed: behind the same lines, or
    behind one line less.

    Returns:
        Milliseconds; and for redirects the shares of the cold time and of the prompt that is read.
    """
    times: dict[str, list[float]] = {}
    shares: dict[str, list[float]] = {}
    requests = [("", request) for request in edit_requests()]
    requests += [(LONG, request) for request in long_requests()]
    with progress.stoppable():
        for title, request in progress.over(requests * repeat):
            # A tiny context has no room for a long region.
            with contextlib.suppress(PromptTooLongError):
                model.cache.clear()
                cold, _ = _first_token(model, request)
                warm, _ = _first_token(model, request)
                found = {"cold": cold, "warm": warm}
                for kind, before in REDIRECTS.items():
                    found[kind], read = _redirect(model, request, before)
                    shares.setdefault(f"{title}{kind}, time", []).append(found[kind] / cold)
                    shares.setdefault(f"{title}{kind}, tokens read", []).append(read)
                for key, value in found.items():
                    times.setdefault(title + key, []).append(value)
    return (
        {key: 1000 * median(values) for key, values in times.items()},
        {key: median(values) for key, values in shares.items()},
    )


TYPED = 0.6
"""Share of an instruction that has been read when Enter is pressed, where one is typed."""


def changes(
    model: TextModel,
    requests: Sequence[GenerateRequest],
    forget: Callable[[], None],
    progress: BenchProgress,
) -> dict[str, float]:
    """Return milliseconds from Enter to the first changed line and to the whole answer.

    "pasted": nothing was read; "typed": the lines were read before the first word, and again with
    the first part of the instruction.
    """
    times: dict[str, list[float]] = {}
    with progress.stoppable():
        for request in progress.over(requests):
            for kind in ("pasted", "typed"):
                forget()
                if kind == "typed":
                    for share in (0.0, TYPED):
                        for _ in model.start(_typed(request, share)):
                            pass
                first, whole = _change(model, request)
                for what, seconds in (("first change", first), ("whole answer", whole)):
                    times.setdefault(f"{kind}, {what}", []).append(seconds)
    return {key: 1000 * median(values) for key, values in times.items()}


def _typed(request: GenerateRequest, share: float) -> GenerateRequest:
    """Return what is read ahead when a share of the instruction has been typed."""
    region = parse_request(request.messages[-1].text)
    assert region is not None
    words = region.instruction[: int(share * len(region.instruction))].strip()
    text = render_request(replace(region, instruction=words))
    return replace(request, messages=(Message("user", text),), generate=False)


def _change(model: TextModel, request: GenerateRequest) -> tuple[float, float]:
    """Return the seconds to the first line that differs and to the end."""
    region = parse_request(request.messages[-1].text)
    assert region is not None
    started = time.perf_counter()
    text, first = "", None
    for piece in model.start(request):
        text += piece.text
        if first is None and not region.region.startswith(text):
            first = time.perf_counter() - started
    whole = time.perf_counter() - started
    return whole if first is None else first, whole


def _redirect(
    model: OnnxModel, request: GenerateRequest, before: int | None
) -> tuple[float, float]:
    """Redirect an answer somewhere behind its third line; see ``_first_token``.

    Args:
        model: The model.
        request: What the answer is to.
        before: Lines that were still to come when the redirect was read ahead; None if it was not.
    """
    model.cache.clear()
    answer = iter(model.answer(request))
    text = ""
    for piece in answer:
        text += piece.text
        if text.count("\n") >= KEPT_LINES:
            break
    said = Message("user", render_follow_up("rename `result` to `outcome`"))

    def redirected(lines: int) -> GenerateRequest:
        kept = Message("assistant", "".join(text.splitlines(keepends=True)[:lines]))
        return replace(request, messages=(*request.messages, kept, said))

    if before is not None:
        for _ in model.start(replace(redirected(KEPT_LINES - before), generate=False)):
            pass
        next(answer, None)
    close: Callable[[], None] = getattr(answer, "close")  # noqa: B009
    close()
    return _first_token(model, redirected(KEPT_LINES))


def _first_token(model: OnnxModel, request: GenerateRequest) -> tuple[float, float]:
    """Return the seconds to a first token, and the share of the prompt that was read."""
    started = time.perf_counter()
    generation = model.start(request)
    pieces = iter(generation)
    next(pieces)
    seconds = time.perf_counter() - started
    close: Callable[[], None] = getattr(pieces, "close")  # noqa: B009
    close()
    usage = generation.usage
    return seconds, 1 - usage.cached_tokens / usage.input_tokens


class _NoText:
    """A text decoder for tokens whose text does not matter."""

    def feed(self, token_id: int) -> str:
        return ""

    def finish(self) -> str:
        return ""


def _bare(model: OnnxModel, prompt: int, answer: int) -> ModelGeneration:
    model.cache.clear()
    ids = [i % model.decoder.vocab for i in range(7, 7 + prompt)]
    return ModelGeneration(
        EncodedRequest(ids, [], frozenset(), _NoText()),
        Runtime(model.decoder, model.cache),
        Sampler(),
        limit=answer,
    )


def stops(
    model: OnnxModel, progress: BenchProgress, *, chunks: int = 16, turns: int = STOPS
) -> tuple[dict[str, float], dict[str, float]]:
    """Measure from stop() on one thread to the end of the generation on another.

    Args:
        model: The model.
        progress: Told every generation.
        chunks: How many chunks the prompt has.
        turns: Generations stopped per kind.

    Returns:
        Milliseconds, and the slowest stop in forwards of its kind: a chunk of a prompt, a step.
    """
    took: dict[str, float] = {}
    runs: dict[str, float] = {}
    prompt = min(model.decoder.context_length - 128, chunks * PREFILL_CHUNK)
    whole = _bare(model, prompt, 64)
    list(whole)
    forwards = {
        "reading": whole.usage.prefill_s * min(1.0, PREFILL_CHUNK / prompt),
        "writing": whole.usage.decode_s / whole.usage.forwards,
    }
    for kind, forward in forwards.items():
        times: list[float] = []
        with progress.stoppable():
            for turn in progress.over(range(turns)):
                delay = (1 + turn / turns) * forward
                answer = model.decoder.context_length - prompt - 1
                times.append(_stop_once(_bare(model, prompt, answer), delay, kind == "writing"))
        if not times:
            break
        took[kind] = 1000 * median(times)
        took[f"{kind}, slowest"] = 1000 * max(times)
        runs[kind] = max(times) / forward
        if progress.stopped:
            break
    return took, runs


def _stop_once(generation: ModelGeneration, delay: float, writing: bool) -> float:
    """Stop some seconds after the beginning, or after the first token; return how long it took."""
    begun, ended = threading.Event(), list[float]()

    def work() -> None:
        if not writing:
            begun.set()
        for _ in generation:
            begun.set()
        ended.append(time.perf_counter())

    thread = threading.Thread(target=work)
    thread.start()
    stopped = 0.0
    try:
        begun.wait()
        time.sleep(delay)
        stopped = time.perf_counter()
    finally:
        generation.stop()
        thread.join()
    return max(0.0, ended[0] - stopped)


async def loop_lag(model: OnnxModel) -> dict[str, float]:
    """Milliseconds by which an event loop's timers are late, idle and beside a generation."""
    found: dict[str, float] = {}

    def work(done: threading.Event) -> None:
        requests = edit_requests()
        while not done.is_set():
            for request in requests:
                for _ in model.start(request):
                    if done.is_set():
                        return

    for name, busy in (("idle", False), ("generating", True)):
        done = threading.Event()
        thread = threading.Thread(target=work, args=(done,))
        if busy:
            thread.start()
        lags: list[float] = []
        try:
            for _ in range(400):
                started = time.perf_counter()
                await asyncio.sleep(0.002)
                lags.append(1000 * (time.perf_counter() - started) - 2)
        finally:
            done.set()
            if busy:
                await asyncio.to_thread(thread.join)
        found[f"{name} p50"] = percentile(lags, 50)
        found[f"{name} p99"] = percentile(lags, 99)
    return found


class _Forced(Sampler):
    """Picks the tokens of a given text, one after the other."""

    def __init__(self, tokens: Sequence[int]) -> None:
        super().__init__()
        self._tokens = iter(tokens)

    def pick(self, logits: np.ndarray[Any, Any]) -> int:
        # What a greedy choice costs is part of the step.
        super().pick(logits)
        return next(self._tokens)


def renames() -> Iterator[tuple[str, str, str]]:
    """Yield the reference edits that are renames: instruction, source and outcome."""
    for instruction, region in REFERENCE_EDITS:
        names = re.fullmatch(r"rename `(\w+)` to `(\w+)`", instruction)
        if names:
            yield instruction, region, re.sub(rf"\b{names[1]}\b", names[2], region)


def forced_plans(model: OnnxModel) -> list[tuple[EncodedRequest, list[int], str]]:
    """Return every rename as a plan, with the tokens and the text of its outcome."""
    tokenizer = load_tokenizer(model.folder)

    def ids(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False).ids)

    plans: list[tuple[EncodedRequest, list[int], str]] = []
    for instruction, source, outcome in renames():
        draft = ids(source)
        plan = EncodedRequest([*ids(instruction), *draft], draft, frozenset(), _NoText())
        plans.append((plan, ids(outcome), outcome))
    return plans


def write_forced(model: OnnxModel, plan: EncodedRequest, tokens: Sequence[int]) -> Usage:
    """Write an outcome, with nothing in the cache; return what it cost."""
    generation = _start(model, plan, tokens)
    for _ in generation:
        pass
    return generation.usage


def python_share(model: OnnxModel, plan: EncodedRequest, tokens: Sequence[int]) -> float:
    """Write an outcome token by token; return the share of the time outside ONNX Runtime."""
    drafting, model.drafting = model.drafting, None
    generation = _start(model, plan, tokens)
    model.drafting = drafting
    pieces = iter(generation)
    next(pieces)
    # The prompt is read by now.
    inside, spent = model.decoder.runtime_s, generation.usage.decode_s
    for _ in pieces:
        pass
    inside, spent = model.decoder.runtime_s - inside, generation.usage.decode_s - spent
    return 1 - inside / spent


def _start(model: OnnxModel, plan: EncodedRequest, tokens: Sequence[int]) -> ModelGeneration:
    model.cache.clear()
    return ModelGeneration(
        plan,
        Runtime(model.decoder, model.cache, model.drafting, exact=model.exact),
        _Forced(tokens),
        limit=len(tokens),
    )


SETTLE_SECONDS = 0.06
"""ONNX Runtime's threads spin for 25 ms after a run (measured); they would take a peer's core."""

ROUNDS, WARM, STEPS = 16, 2, 8
"""Turns at single steps: rounds, and untimed and timed steps in each."""

READS, READ_SECONDS = 5, 2.0
"""How often a prompt is read, unless reading takes more than these seconds in all."""

CONTEXTS = (256, 1024, 4096, 16384)
"""Cached tokens at which single steps are timed, as far as the model's context allows."""

ROWS = (1, 2, 4, 8, 16, 32)
"""Tokens of one run, behind the shortest context, that are timed."""

Peers = Mapping[str, Peer]


@dataclass(frozen=True, slots=True)
class Beside:
    """A peer's figure, ours from the neighbouring turns, and how many times as quick we are.

    Attributes:
        cpu: The same of processor time, which other work on the machine does not lengthen; 0 where
            it was not taken.
    """

    theirs: float
    ours: float
    times: float
    cpu: float = 0.0


@dataclass(frozen=True, slots=True)
class EditFigures:
    """Edits of the reference functions, one way of generating them.

    Attributes:
        tokens_per_second: Output tokens per second of decoding.
        characters_per_second: Text per second of decoding.
        tokens_per_forward: Output tokens per forward pass.
        characters_per_forward: Text per run (a model with line anchors writes whole lines as one
            token, so tokens alone say little).
        edit_ms: A whole edit, from its tokens to the last one of the answer.
        forwards: Forward passes in all.
        tokens: Output tokens in all.
    """

    tokens_per_second: float
    characters_per_second: float
    tokens_per_forward: float
    characters_per_forward: float
    edit_ms: float
    forwards: int
    tokens: int


@dataclass(slots=True)
class Edits:
    """One kind of edit: our figures, and those of the peers that wrote as many tokens plainly."""

    figures: EditFigures
    texts: list[str]
    peers: dict[str, dict[str, Beside]]


def edits(model: OnnxModel, peers: Peers, repeat: int, progress: BenchProgress) -> Edits:
    """Answer the reference edits in the model's own way, nothing cached, and let the peers follow.

    Where that way is a code of its own, the peers also write the same text in full, as they would
    with a model of this size that knows plain text only.

    Raises:
        KeyboardInterrupt: Ctrl+C was pressed before the first was written.
    """
    requests = edit_requests()
    tokenizer = load_tokenizer(model.folder) if model.folder.is_edit_model else None
    write(model, requests[0])
    turns: list[_Turn] = []
    with progress.stoppable():
        for request in progress.over(requests * repeat):
            prompt = model.plan(request).prompt_ids
            model.cache.clear()
            settle(model, peers)
            turn = _turn(prompt, *write(model, request), model, peers)
            if tokenizer is not None:
                asked = tokenizer.encode(request.messages[-1].text, add_special_tokens=False).ids
                plain = tokenizer.encode(turn.text, add_special_tokens=False).ids
                fits = len(asked) + len(plain) < model.decoder.context_length
                for name, peer in peers.items() if fits else ():
                    settle(model, peers)
                    turn.plain[name] = _write_plainly(peer, asked, len(plain))
            turns.append(turn)
    return _edits(turns)


def forced_edits(model: OnnxModel, peers: Peers, repeat: int, progress: BenchProgress) -> Edits:
    """Write the reference renames as plain text, nothing cached, and let the peers follow.

    Raises:
        KeyboardInterrupt: Ctrl+C was pressed before the first was written.
    """
    turns: list[_Turn] = []
    with progress.stoppable():
        for plan, tokens, text in progress.over(forced_plans(model) * repeat):
            settle(model, peers)
            usage = write_forced(model, plan, tokens)
            turns.append(_turn(plan.prompt_ids, text, usage, model, peers))
    return _edits(turns)


def edits_by_format(model: OnnxModel, peers: Peers, progress: BenchProgress) -> dict[str, Edits]:
    """Write an edit of 200 lines in every format, once, nothing cached.

    Formats whose answer does not fit the model's context are left out.
    """
    tokenizer = load_tokenizer(model.folder)

    def ids(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False).ids)

    found: dict[str, Edits] = {}
    with progress.stoppable():
        for edit in progress.over(list(format_edits())):
            prompt, tokens = ids(edit.prompt), ids(edit.answer)
            if len(prompt) + len(tokens) + 2 > model.decoder.context_length:
                continue
            drafter = None if edit.draft else PatchDrafter(edit.prompt, tokenizer, prompt)
            draft = ids(edit.draft)
            plan = EncodedRequest(prompt, draft, frozenset(), _NoText(), drafter=drafter)
            settle(model, peers)
            usage = write_forced(model, plan, tokens)
            found[edit.name] = _edits([_turn(prompt, edit.answer, usage, model, peers)])
    return found


def write(model: OnnxModel, request: GenerateRequest) -> tuple[str, Usage]:
    """Return an answer and what it cost."""
    generation = model.start(request)
    text = "".join(piece.text for piece in generation)
    return text, generation.usage


def settle(model: OnnxModel, peers: Peers) -> None:
    """Wait until the threads of the engine that ran last have stopped spinning."""
    if peers and model.decoder.threads > 1:
        time.sleep(SETTLE_SECONDS)


@dataclass(slots=True)
class _Turn:
    """An edit as we wrote it, and per peer the seconds of its steps and of the whole: for as many
    tokens, and for the text in full.
    """

    text: str
    usage: Usage
    peers: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    plain: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])


def _write_plainly(peer: Peer, prompt: Sequence[int], count: int) -> tuple[float, float]:
    """Let a peer read a prompt and take ``count`` steps; return the seconds of these and of all."""
    started = time.perf_counter()
    peer.read(prompt, count)
    read = time.perf_counter()
    for _ in range(count):
        peer.step()
    ended = time.perf_counter()
    return ended - read, ended - started


def _turn(prompt: Sequence[int], text: str, usage: Usage, model: OnnxModel, peers: Peers) -> _Turn:
    """Let the peers write as many tokens as we just did."""
    turn = _Turn(text, usage)
    for name, peer in peers.items():
        settle(model, peers)
        turn.peers[name] = _write_plainly(peer, prompt, usage.output_tokens)
    return turn


def _edits(turns: Sequence[_Turn]) -> Edits:
    if not turns:
        raise KeyboardInterrupt
    usages = [turn.usage for turn in turns]
    forwards = sum(usage.forwards for usage in usages)
    tokens = sum(usage.output_tokens for usage in usages)
    figures = EditFigures(
        tokens_per_second=median(u.output_tokens / u.decode_s for u in usages),
        characters_per_second=median(len(t.text) / t.usage.decode_s for t in turns),
        tokens_per_forward=tokens / forwards,
        characters_per_forward=sum(len(turn.text) for turn in turns) / forwards,
        edit_ms=1000 * median(u.prefill_s + u.decode_s for u in usages),
        forwards=forwards,
        tokens=tokens,
    )
    found: dict[str, dict[str, Beside]] = {}
    for name in turns[0].peers:
        found[name] = _beside(figures, turns, [turn.peers[name] for turn in turns], "")
        if fitting := [turn for turn in turns if name in turn.plain]:
            plain = [turn.plain[name] for turn in fitting]
            found[name] |= _beside(figures, fitting, plain, "same text in full, ")
    return Edits(figures, [turn.text for turn in turns], found)


def _beside(
    figures: EditFigures,
    turns: Sequence[_Turn],
    theirs: Sequence[tuple[float, float]],
    title: str,
) -> dict[str, Beside]:
    usages = [turn.usage for turn in turns]
    quicker = median(steps / u.decode_s for (steps, _), u in zip(theirs, usages, strict=True))
    found = {
        "characters/s": Beside(
            median(len(t.text) / steps for (steps, _), t in zip(theirs, turns, strict=True)),
            figures.characters_per_second,
            quicker,
        ),
        "whole, ms": Beside(
            1000 * median(whole for _, whole in theirs),
            figures.edit_ms,
            median(
                w / (u.prefill_s + u.decode_s) for (_, w), u in zip(theirs, usages, strict=True)
            ),
        ),
    }
    if not title:
        rate = median(u.output_tokens / s for (s, _), u in zip(theirs, usages, strict=True))
        found["tokens/s"] = Beside(rate, figures.tokens_per_second, quicker)
    return {f"{title}{unit}": figure for unit, figure in found.items()}


class Plain:
    """Our decoder as a peer of the others: plain greedy steps without prompts or text."""

    def __init__(self, model: OnnxModel) -> None:
        """Use a model's decoder; its cache is overwritten."""
        self._decoder = model.decoder
        self._past = 0
        self._token = 0

    def read(self, ids: Sequence[int], room: int) -> None:
        """Forget everything and read a prompt."""
        at, last = 0, len(ids) - 1
        while at < last:
            chunk = ids[at : min(at + self._decoder.chunk(PREFILL_CHUNK, at), last)]
            self._decoder.fill(chunk, at)
            at += len(chunk)
        self._past, self._token = last, ids[last]
        self.step()

    def step(self) -> int:
        """Generate one token and return it."""
        logits = self._decoder.run([self._token], self._past)
        self._token = int(logits[0].argmax())
        self._past += 1
        return self._token


@dataclass(slots=True)
class Speeds:
    """Tokens per second at one context length: reading it, and single steps behind it."""

    prefill: float
    plain: float
    peers: dict[str, dict[str, Beside]]


def steps(
    model: OnnxModel, peers: Peers, progress: BenchProgress, contexts: Sequence[int] = CONTEXTS
) -> dict[int, Speeds]:
    """Time prefill and single greedy steps at several context lengths, as far as they fit."""
    model.cache.clear()
    engines: dict[str, Peer] = {"": Plain(model), **peers}
    room = ROUNDS * (WARM + STEPS)
    found: dict[int, Speeds] = {}
    fitting = [size for size in contexts if size + room <= model.decoder.context_length]
    with progress.stoppable():
        for context in progress.over(fitting):
            ids = [i % min(200, model.decoder.vocab) for i in range(7, 7 + context)]
            reads = {name: list[_Taken]() for name in engines}
            turns = {name: list[_Taken]() for name in engines}
            for engine in engines.values():
                # Makes room.
                engine.read(ids[:1], room + context - 1)
            while len(reads[""]) < READS and sum(read.wall for read in reads[""]) < READ_SECONDS:
                for name, engine in engines.items():
                    settle(model, peers)
                    reads[name].append(_take(partial(engine.read, ids, room)))
            for turn in range(ROUNDS):
                for name in sorted(engines, reverse=bool(turn % 2)):
                    settle(model, peers)
                    for _ in range(WARM):
                        engines[name].step()
                    turns[name].append(_typical([_take(engines[name].step) for _ in range(STEPS)]))
            prefill, plain = context / _typical(reads[""]).wall, 1 / _typical(turns[""]).wall
            found[context] = Speeds(prefill, plain, {})
            for name in peers:
                found[context].peers[name] = {
                    "plain": _rates(turns[name], turns[""], 1),
                    "prefill": _rates(reads[name], reads[""], context),
                }
    return found


@dataclass(frozen=True, slots=True)
class _Taken:
    """Seconds that something took: of the wall's clock and of all processors together."""

    wall: float
    cpu: float


def _take(call: Callable[[], object]) -> _Taken:
    cpu, started = time.process_time(), time.perf_counter()
    call()
    return _Taken(time.perf_counter() - started, time.process_time() - cpu)


def _typical(taken: Sequence[_Taken]) -> _Taken:
    return _Taken(median(one.wall for one in taken), median(one.cpu for one in taken))


def _rates(theirs: Sequence[_Taken], ours: Sequence[_Taken], tokens: int) -> Beside:
    """Compare the same work in neighbouring turns."""
    pairs = list(zip(theirs, ours, strict=True))
    return Beside(
        tokens / _typical(theirs).wall,
        tokens / _typical(ours).wall,
        median(them.wall / us.wall for them, us in pairs),
        median(them.cpu / us.cpu for them, us in pairs),
    )


def row_times(model: OnnxModel, progress: BenchProgress) -> dict[int, float]:
    """Milliseconds of a run by how many tokens it has, in turns, behind the shortest context."""
    model.cache.clear()
    decoder, past = model.decoder, CONTEXTS[0]
    counts = [rows for rows in ROWS if past + rows + 1 < decoder.context_length]
    decoder.fill([i % decoder.vocab for i in range(past)], 0)
    times = {rows: list[float]() for rows in counts}
    with progress.stoppable():
        for _ in progress.over(range(ROUNDS)):
            for rows in counts:
                ids = [i % decoder.vocab for i in range(rows)]
                times[rows].append(timed(partial(decoder.run, ids, past)))
    return {rows: 1000 * median(taken) for rows, taken in times.items() if taken}
