"""Texts and single steps of the engine beside those of its peers, for `midstream bench engine`.

Everybody takes short turns, so that all see the same machine, and what is reported beside a peer is
the median of the ratios of neighbouring turns: other work on the machine changes times by a lot and
such ratios by little.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from midstream.bench.bandwidth import timed
from midstream.bench.forced import forced_plans, write_forced
from midstream.bench.peers import Peer
from midstream.bench.reference_edits import edit_requests
from midstream.engine.loop import PREFILL_CHUNK
from midstream.engine.model import OnnxModel
from midstream.engine.prompts import load_tokenizer
from midstream.engine.types import GenerateRequest, Usage

SETTLE_SECONDS = 0.06
"""ONNX Runtime's threads spin for 25 ms after a run (measured); they would take a peer's core."""

ROUNDS, WARM, STEPS = 16, 2, 8
"""Turns at single steps: so many rounds, each with so many steps untimed and so many timed."""

READS, READ_SECONDS = 5, 1.0
"""A prompt is read that often, or until reading it has taken so long."""

CONTEXTS = (256, 1024, 2048, 8192)
"""Cached tokens at which single steps are timed, as far as the model's context allows."""

Peers = Mapping[str, Peer]


@dataclass(frozen=True, slots=True)
class Beside:
    """A peer's figure, ours from the neighbouring turns, and how many times as quick we are."""

    theirs: float
    ours: float
    times: float


@dataclass(frozen=True, slots=True)
class EditFigures:
    """Edits of the reference functions, one way of generating them.

    Attributes:
        tokens_per_second: output tokens per second of decoding.
        characters_per_second: text per second of decoding.
        tokens_per_forward: output tokens per run of the model.
        characters_per_forward: text per run (a model with line anchors writes whole lines as one
            token, so tokens alone say little).
        edit_ms: a whole edit, from its tokens to the last one of the answer.
        forwards: runs of the model in all.
        tokens: output tokens in all.
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


def edits(model: OnnxModel, peers: Peers, repeat: int) -> Edits:
    """Let everybody answer the reference edits in the model's own way, nothing cached.

    Where that way is a code of its own, the peers also write the same text in full, as they would
    with a model of this size that knows plain text only.
    """
    requests = edit_requests()
    tokenizer = load_tokenizer(model.folder) if model.folder.prompt == "edit-codec" else None
    write(model, requests[0])
    turns: list[_Turn] = []
    for request in requests * repeat:
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


def forced_edits(model: OnnxModel, peers: Peers, repeat: int) -> Edits:
    """Let everybody write the reference renames as plain text (see `forced`), nothing cached."""
    turns: list[_Turn] = []
    for plan, tokens, text in forced_plans(model) * repeat:
        settle(model, peers)
        usage = write_forced(model, plan, tokens)
        turns.append(_turn(plan.prompt_ids, text, usage, model, peers))
    return _edits(turns)


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
    """Let a peer read a prompt and take so many steps; return the seconds of these and of all."""
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
    """Put a peer's seconds beside ours, text by text."""
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
        last = len(ids) - 1
        for at in range(0, last, PREFILL_CHUNK):
            self._decoder.fill(ids[at : min(at + PREFILL_CHUNK, last)], at)
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


def steps(model: OnnxModel, peers: Peers) -> dict[int, Speeds]:
    """Time prefill and single greedy steps at several context lengths."""
    model.cache.clear()
    engines: dict[str, Peer] = {"": Plain(model), **peers}
    room = ROUNDS * (WARM + STEPS)
    found: dict[int, Speeds] = {}
    for context in CONTEXTS:
        if context + room > model.decoder.context_length:
            continue
        ids = [i % min(200, model.decoder.vocab) for i in range(7, 7 + context)]
        read: dict[str, float] = {}
        turns: dict[str, list[float]] = {name: [] for name in engines}
        for name, engine in engines.items():
            # The first time makes room.
            engine.read(ids, room)
            reads: list[float] = []
            while len(reads) < READS and sum(reads) < READ_SECONDS:
                settle(model, peers)
                started = time.perf_counter()
                engine.read(ids, room)
                reads.append(time.perf_counter() - started)
            read[name] = median(reads)
        for turn in range(ROUNDS):
            for name in sorted(engines, reverse=bool(turn % 2)):
                settle(model, peers)
                for _ in range(WARM):
                    engines[name].step()
                turns[name].append(median(timed(engines[name].step) for _ in range(STEPS)))
        prefill, plain = context / read[""], 1 / median(turns[""])
        found[context] = Speeds(prefill, plain, {})
        for name in peers:
            ratios = [theirs / ours for theirs, ours in zip(turns[name], turns[""], strict=True)]
            found[context].peers[name] = {
                "plain": Beside(1 / median(turns[name]), plain, median(ratios)),
                "prefill": Beside(context / read[name], prefill, read[name] / read[""]),
            }
    return found
