"""`midstream bench engine`: the engine on this machine, beside its peers where they are installed.

Every figure is a median over prompts or repetitions. Texts are generated for real; nothing is
extrapolated. Wall-clock time only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from midstream.bench import latency
from midstream.bench.bandwidth import LARGE, read_bandwidth, timed, weights_read
from midstream.bench.forced import forced_plans, write_forced
from midstream.bench.peers import Genai, LlamaCpp, Peer, PeerMissing
from midstream.bench.reference_edits import edit_requests
from midstream.engine.folder import graph_files, read_folder
from midstream.engine.loop import PREFILL_CHUNK
from midstream.engine.model import OnnxModel
from midstream.engine.types import GenerateRequest, Usage
from midstream.errors import UserError
from midstream.resources import default_model

SETTLE_SECONDS = 0.06
"""ONNX Runtime's threads spin for 25 ms after a run (measured); they would take a peer's core."""

ROUNDS, STEPS = 6, 20
"""Peers take turns: so many rounds of so many single steps each."""

CONTEXTS = (256, 1024, 2048, 8192)
"""Cached tokens at which single steps are timed, as far as the model's context allows."""


Peers = Mapping[str, Peer]


@dataclass(slots=True)
class EditFigures:
    """Edits of the reference functions, one way of generating them.

    Attributes:
        tokens_per_second: output tokens per second of decoding.
        characters_per_second: text per second of decoding.
        tokens_per_forward: output tokens per run of the model.
        characters_per_forward: text per run (a model with line anchors writes whole lines as one
            token, so tokens alone say little).
        forwards: runs of the model in all.
        tokens: output tokens in all.
    """

    tokens_per_second: float
    characters_per_second: float
    tokens_per_forward: float
    characters_per_forward: float
    forwards: int
    tokens: int


@dataclass(slots=True)
class Report:
    """Everything measured; times in milliseconds, memory in MiB.

    `edits_forced` are renames as plain text whose tokens are given (see `forced`); `python_share`
    is that of plain decode steps outside ONNX Runtime; `edit_ms` a whole edit from request to last
    token; `stop_forwards` the slowest stop in forwards of its kind (a chunk of a prompt, a step);
    `bandwidth_share` what plain decoding reads per second of what this machine can read, by context
    length.
    """

    model: str
    provider: str
    threads: int
    graph_mib: float
    load_ms: float = 0.0
    edits_drafted: EditFigures | None = None
    edits_undrafted: EditFigures | None = None
    edits_forced: EditFigures | None = None
    same_text: str = ""
    plain_tokens_per_second: dict[int, float] = field(default_factory=dict[int, float])
    python_share: float = 0.0
    edit_ms: dict[str, float] = field(default_factory=dict[str, float])
    prefill_tokens_per_second: dict[int, float] = field(default_factory=dict[int, float])
    first_token_ms: dict[str, float] = field(default_factory=dict[str, float])
    stop_ms: dict[str, float] = field(default_factory=dict[str, float])
    stop_forwards: dict[str, float] = field(default_factory=dict[str, float])
    loop_lag_ms: dict[str, float] = field(default_factory=dict[str, float])
    memory_mib: dict[str, float] = field(default_factory=dict[str, float])
    bandwidth_gb_s: dict[str, float] = field(default_factory=dict[str, float])
    bandwidth_share: dict[int, float] = field(default_factory=dict[int, float])
    peers: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    skipped: dict[str, str] = field(default_factory=dict[str, str])


def run(argv: Sequence[str]) -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(prog="midstream bench engine", description=__doc__)
    parser.add_argument("--model", type=Path, help="model folder (the shipped one)")
    parser.add_argument("--provider", default="cpu")
    parser.add_argument("--threads", type=int, help="threads inside one operator")
    parser.add_argument("--gguf", type=Path, help="an equal-size GGUF file for llama.cpp")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    try:
        report = measure(
            options.model or default_model(),
            provider=options.provider,
            threads=options.threads,
            gguf=options.gguf,
        )
    except UserError as error:
        if options.json:
            print(json.dumps({"error": {"code": error.code, "message": str(error)}}))
        else:
            print(error, file=sys.stderr)
        return error.exit_code
    print(json.dumps(asdict(report), indent=2) if options.json else "\n".join(as_lines(report)))
    return 0


def measure(
    path: Path,
    *,
    provider: str = "cpu",
    threads: int | None = None,
    gguf: Path | None = None,
    repeat: int = 3,
) -> Report:
    """Measure one model folder.

    Args:
        path: the folder.
        provider: where to run it.
        threads: threads inside one operator.
        gguf: a model file for llama.cpp, to compare with.
        repeat: how often the reference edits are generated.

    Raises:
        UserError: the folder cannot be used.
    """
    folder = read_folder(path)
    size = sum(file.stat().st_size for file in graph_files(folder)) / 2**20
    before = resident_mib()
    started = time.perf_counter()
    model = OnnxModel(folder, provider=provider, threads=threads)
    report = Report(folder.name, provider, model.decoder.threads, size, load_ms=_ms(started))
    found = _peers(report, path, gguf, model)
    _measure_edits(report, model, repeat, found)
    _measure_steps(report, model, found)
    found.clear()
    report.first_token_ms = latency.first_tokens(model, repeat)
    report.stop_ms, report.stop_forwards = latency.stops(model)
    report.loop_lag_ms = asyncio.run(latency.loop_lag(model))
    report.memory_mib = {
        "resident": resident_mib() - before,
        "live cache": model.decoder.cache_bytes / 2**20,
        "saved prefixes": model.cache.saved_bytes / 2**20,
    }
    _measure_bandwidth(report, model)
    model.close()
    return report


def _peers(report: Report, path: Path, gguf: Path | None, model: OnnxModel) -> dict[str, Peer]:
    """Load the peers that can be compared with; the report says why others are left out."""
    threads, context = model.decoder.threads, model.decoder.context_length
    found: dict[str, Peer] = {}
    for name, load in (
        (Genai.name, lambda: Genai(path, threads)),
        (LlamaCpp.name, lambda: LlamaCpp(gguf, threads, context)),
    ):
        try:
            found[name] = load()
            report.peers[name] = {}
        except PeerMissing as reason:
            report.skipped[name] = str(reason)
    return found


def _ms(started: float) -> float:
    return 1000 * (time.perf_counter() - started)


def _complete(
    model: OnnxModel, request: GenerateRequest, *, fresh: bool = False
) -> tuple[str, Usage]:
    if fresh:
        model.cache.clear()
    generation = model.start(request)
    text = "".join(piece.text for piece in generation)
    return text, generation.usage


def _measure_edits(report: Report, model: OnnxModel, repeat: int, found: Peers) -> None:
    requests = edit_requests()
    drafting = model.drafting
    _complete(model, requests[0])
    prompts = [model.plan(request).prompt_ids for request in requests]
    theirs: dict[str, list[tuple[float, float]]] = {name: [] for name in found}
    drafted: list[tuple[str, Usage]] = []
    # In turns, so that all see the same machine.
    for _ in range(repeat):
        for request, prompt in zip(requests, prompts, strict=True):
            _settle(["", *found])
            drafted.append(_complete(model, request, fresh=True))
            for name, peer in found.items():
                _settle(["", *found])
                theirs[name].append(_write(peer, prompt, drafted[-1][1].output_tokens))
    model.drafting = None
    undrafted = [_complete(model, request) for request in requests * repeat]
    report.python_share = median(_python_share(model, request) for request in requests)
    model.drafting = drafting
    forced: list[tuple[str, Usage]] = []
    forced_theirs: dict[str, list[tuple[float, float]]] = {name: [] for name in found}
    for plan, tokens, text in forced_plans(model) * repeat:
        _settle(["", *found])
        forced.append((text, write_forced(model, plan, tokens)))
        for name, peer in found.items():
            _settle(["", *found])
            forced_theirs[name].append(_write(peer, plan.prompt_ids, len(tokens)))
    report.edits_drafted = _figures(drafted)
    report.edits_undrafted = _figures(undrafted)
    report.edits_forced = _figures(forced)
    for kind, ours, others in (
        ("edit", drafted, theirs),
        ("forced edit", forced, forced_theirs),
    ):
        report.edit_ms[kind] = 1000 * median(u.prefill_s + u.decode_s for _, u in ours)
        for name, rounds in others.items():
            report.peers[name][f"{kind}s tokens/s"] = median(rate for rate, _ in rounds)
            report.peers[name][f"{kind} ms"] = 1000 * median(whole for _, whole in rounds)
    same = sum(one[0] == other[0] for one, other in zip(drafted, undrafted, strict=True))
    report.same_text = f"{same} of {len(drafted)}"


def _settle(others: Collection[str]) -> None:
    """Wait until the threads of the engine that ran last have stopped spinning."""
    if len(others) > 1:
        time.sleep(SETTLE_SECONDS)


def _write(peer: Peer, prompt: Sequence[int], length: int) -> tuple[float, float]:
    """Let a peer answer with so many tokens; return tokens per second and seconds of the whole."""
    started = time.perf_counter()
    peer.read(prompt, length)
    read = time.perf_counter()
    for _ in range(length):
        peer.step()
    ended = time.perf_counter()
    return length / (ended - read), ended - started


def _python_share(model: OnnxModel, request: GenerateRequest) -> float:
    """Return which part of a request's decode steps is spent outside ONNX Runtime."""
    _complete(model, request)
    # Its prompt is in the cache now, so that nothing but decoding is run.
    inside = model.decoder.runtime_s
    _, usage = _complete(model, request)
    return 1 - (model.decoder.runtime_s - inside) / usage.decode_s


def _figures(results: Sequence[tuple[str, Usage]]) -> EditFigures:
    usages = [usage for _, usage in results]
    return EditFigures(
        tokens_per_second=median(u.output_tokens / u.decode_s for u in usages),
        characters_per_second=median(len(text) / u.decode_s for text, u in results),
        tokens_per_forward=sum(u.output_tokens for u in usages) / sum(u.forwards for u in usages),
        characters_per_forward=sum(len(text) for text, _ in results)
        / sum(u.forwards for u in usages),
        forwards=sum(u.forwards for u in usages),
        tokens=sum(u.output_tokens for u in usages),
    )


class _Plain:
    """Our decoder as a peer of the others: plain greedy steps without prompts or text."""

    def __init__(self, model: OnnxModel) -> None:
        self._decoder = model.decoder
        self._past = 0
        self._token = 0

    def read(self, ids: Sequence[int], room: int) -> None:
        last = len(ids) - 1
        for at in range(0, last, PREFILL_CHUNK):
            self._decoder.fill(ids[at : min(at + PREFILL_CHUNK, last)], at)
        self._past, self._token = last, ids[last]
        self.step()

    def step(self) -> None:
        logits = self._decoder.run([self._token], self._past)
        self._token = int(logits[0].argmax())
        self._past += 1


def _measure_steps(report: Report, model: OnnxModel, found: Peers) -> None:
    """Time prefill and single greedy steps at several context lengths, peers in turns."""
    model.cache.clear()
    engines: dict[str, Peer] = {"": _Plain(model), **found}
    room = ROUNDS * STEPS
    for context in CONTEXTS:
        if context + room > model.decoder.context_length:
            continue
        ids = [i % min(200, model.decoder.vocab) for i in range(7, 7 + context)]
        times: dict[str, list[float]] = {name: [] for name in engines}
        for name, engine in engines.items():
            _settle(engines)
            started = time.perf_counter()
            engine.read(ids, room)
            read = context / (time.perf_counter() - started)
            if name:
                report.peers[name][f"prefill tokens/s at {context}"] = read
            else:
                report.prefill_tokens_per_second[context] = read
        for _ in range(ROUNDS):
            for name, engine in engines.items():
                _settle(engines)
                times[name] += [timed(engine.step) for _ in range(STEPS)]
        report.plain_tokens_per_second[context] = 1 / median(times[""])
        for name in found:
            report.peers[name][f"plain tokens/s at {context}"] = 1 / median(times[name])


def _measure_bandwidth(report: Report, model: OnnxModel) -> None:
    """Compare what a plain step reads, weights and cache, with what memory gives."""
    threads = model.decoder.threads
    weights = weights_read(model.folder)
    report.bandwidth_gb_s["memory"] = read_bandwidth(LARGE, threads)
    for context, rate in report.plain_tokens_per_second.items():
        size = weights + context * model.decoder.io.row_bytes
        limit = read_bandwidth(size, threads)
        report.bandwidth_gb_s[f"{size / 2**20:.1f} MiB, a step at {context}"] = limit
        report.bandwidth_share[context] = size * rate / (limit * 1e9)


def resident_mib() -> float:
    """Return the resident memory of this process in MiB (0 where /proc is missing)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * 4096 / 2**20


def as_lines(report: Report) -> Iterator[str]:
    """Yield a report as text for a terminal."""
    threads = "1 thread" if report.threads == 1 else f"{report.threads} threads"
    yield f"{report.model}: {report.graph_mib:.1f} MiB, {report.provider}, {threads}"
    yield f"  load                 {report.load_ms:8.0f} ms"
    for name, figures in (
        ("edits, drafted", report.edits_drafted),
        ("edits, undrafted", report.edits_undrafted),
        ("edits, forced", report.edits_forced),
    ):
        if figures:
            yield (
                f"  {name:20} {figures.tokens_per_second:8.0f} tokens/s  "
                f"{figures.characters_per_second:8.0f} characters/s  "
                f"{figures.tokens_per_forward:5.2f} tokens and "
                f"{figures.characters_per_forward:5.1f} characters per forward"
            )
    yield f"  same text            {report.same_text:>8}"
    for context, speed in report.plain_tokens_per_second.items():
        yield f"  plain at {context:<11} {speed:8.0f} tokens/s"
    yield f"  Python's share       {100 * report.python_share:8.1f} % of a plain step"
    for context, speed in report.prefill_tokens_per_second.items():
        yield f"  prefill of {context:<9} {speed:8.0f} tokens/s"
    for title, values, unit in (
        ("whole edit", report.edit_ms, "ms"),
        ("first token", report.first_token_ms, "ms"),
        ("stop while", report.stop_ms, "ms"),
        ("loop lag", report.loop_lag_ms, "ms"),
        ("memory", report.memory_mib, "MiB"),
    ):
        for key, value in values.items():
            yield f"  {title + ', ' + key:24} {value:8.2f} {unit}"
    for key, value in report.stop_forwards.items():
        yield f"  {'slowest stop, ' + key:24} {value:8.2f} forwards"
    for key, value in report.bandwidth_gb_s.items():
        yield f"  reads {key:27} {value:8.1f} GB/s"
    for context, share in report.bandwidth_share.items():
        speed = report.plain_tokens_per_second[context]
        yield (
            f"  limit at {context:<11} {speed / share:8.0f} tokens/s; "
            f"plain decoding reaches {100 * share:.0f} % of it"
        )
    for peer, figures in report.peers.items():
        for key, value in figures.items():
            ours = _ours(report, key)
            times = "" if ours is None else f"  ours {ours:8.0f}, {_ratio(key, ours, value):.2f}x"
            yield f"  {peer}: {key:24} {value:8.0f}{times}"
    for peer, reason in report.skipped.items():
        yield f"  {peer}: left out, {reason}"


def _ours(report: Report, key: str) -> float | None:
    """Return our figure for a peer's."""
    figures = {"edits": report.edits_drafted, "forced edits": report.edits_forced}
    if key.endswith(" ms"):
        return report.edit_ms[key.removesuffix(" ms")]
    kind, _, context = key.partition(" tokens/s at ")
    if context:
        plain = kind == "plain"
        rates = report.plain_tokens_per_second if plain else report.prefill_tokens_per_second
        return rates[int(context)]
    edits = figures[key.removesuffix(" tokens/s")]
    return edits and edits.tokens_per_second


def _ratio(key: str, ours: float, theirs: float) -> float:
    """Return how many times as quick we are."""
    return theirs / ours if key.endswith("ms") else ours / theirs
