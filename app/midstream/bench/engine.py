"""`midstream bench engine`: the engine on this machine, beside its peers where they are installed.

Every figure is a median over prompts or repetitions. Texts are generated for real; nothing is
extrapolated. Wall-clock time only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from midstream.bench.reference_edits import REFERENCE_EDITS
from midstream.edits.request import RegionRequest, render_follow_up, render_request
from midstream.engine.folder import read_folder
from midstream.engine.inspect import graph_files
from midstream.engine.model import OnnxModel
from midstream.engine.types import GenerateRequest, Message, Usage
from midstream.errors import UserError
from midstream.resources import default_model

CONTEXTS = (256, 2048, 8192)
"""Cached tokens at which single steps are timed, as far as the model's context allows."""


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
    """Everything measured; times in milliseconds, memory in MiB."""

    model: str
    provider: str
    threads: int | None
    graph_mib: float
    load_ms: float = 0.0
    edits_drafted: EditFigures | None = None
    edits_undrafted: EditFigures | None = None
    same_text: str = ""
    plain_tokens_per_second: dict[int, float] = field(default_factory=dict[int, float])
    python_share: float = 0.0
    prefill_tokens_per_second: float = 0.0
    first_token_ms: dict[str, float] = field(default_factory=dict[str, float])
    stop_ms: dict[str, float] = field(default_factory=dict[str, float])
    loop_lag_ms: dict[str, float] = field(default_factory=dict[str, float])
    memory_mib: dict[str, float] = field(default_factory=dict[str, float])
    bandwidth_gb_s: float = 0.0
    bandwidth_share: float = 0.0
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
    report = Report(folder.name, provider, threads, size, load_ms=_ms(started))
    _measure_edits(report, model, repeat)
    _measure_steps(report, model)
    _measure_first_token(report, model, repeat)
    _measure_stop(report, model)
    asyncio.run(_measure_loop_lag(report, model))
    report.memory_mib = {
        "resident": resident_mib() - before,
        "live cache": model.decoder.cache_bytes / 2**20,
        "saved prefixes": model.cache.saved_bytes / 2**20,
    }
    report.bandwidth_gb_s = copy_bandwidth()
    if report.plain_tokens_per_second:
        read = size * 2**20 * max(report.plain_tokens_per_second.values())
        report.bandwidth_share = read / (report.bandwidth_gb_s * 1e9)
    model.close()
    _measure_genai(report, path, threads)
    _measure_llama(report, gguf, threads)
    return report


def edit_requests() -> list[GenerateRequest]:
    """Return the reference edits as requests."""
    return [
        GenerateRequest(
            messages=(
                Message(
                    "user",
                    render_request(
                        RegionRequest(instruction=instruction, region=region, path="reference.py")
                    ),
                ),
            ),
            max_output_tokens=512,
        )
        for instruction, region in REFERENCE_EDITS
    ]


def _ms(started: float) -> float:
    return 1000 * (time.perf_counter() - started)


def _complete(model: OnnxModel, request: GenerateRequest) -> tuple[str, Usage]:
    generation = model.start(request)
    text = "".join(piece.text for piece in generation)
    return text, generation.usage


def _measure_edits(report: Report, model: OnnxModel, repeat: int) -> None:
    requests = edit_requests()
    drafting = model.drafting
    _complete(model, requests[0])
    drafted = _edits(model, requests, repeat)
    model.drafting = None
    inside = model.decoder.runtime_s
    started = time.perf_counter()
    undrafted = _edits(model, requests, repeat)
    report.python_share = 1 - (model.decoder.runtime_s - inside) / (time.perf_counter() - started)
    model.drafting = drafting
    report.edits_drafted = _figures(drafted)
    report.edits_undrafted = _figures(undrafted)
    same = sum(one[0] == other[0] for one, other in zip(drafted, undrafted, strict=True))
    report.same_text = f"{same} of {len(drafted)}"


def _edits(
    model: OnnxModel, requests: Sequence[GenerateRequest], repeat: int
) -> list[tuple[str, Usage]]:
    return [_complete(model, request) for _ in range(repeat) for request in requests]


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


def _measure_steps(report: Report, model: OnnxModel) -> None:
    """Time prefill and single greedy steps at several context lengths, without prompts or text."""
    decoder = model.decoder
    model.cache.clear()
    for context in CONTEXTS:
        if context + 64 > decoder.context_length:
            continue
        ids = [i % decoder.vocab for i in range(7, 7 + context)]
        started = time.perf_counter()
        for at in range(0, context, 128):
            decoder.fill(ids[at : at + 128], at)
        seconds = time.perf_counter() - started
        report.prefill_tokens_per_second = max(report.prefill_tokens_per_second, context / seconds)
        token, times = 7, list[float]()
        for step in range(48):
            started = time.perf_counter()
            token = int(decoder.run([token], context + step)[0].argmax())
            times.append(time.perf_counter() - started)
        report.plain_tokens_per_second[context] = 1 / median(times)


def _measure_first_token(report: Report, model: OnnxModel, repeat: int) -> None:
    times: dict[str, list[float]] = {"cold": [], "warm": [], "redirect": []}
    for request in edit_requests() * repeat:
        model.cache.clear()
        times["cold"].append(_first_token(model, request)[0])
        seconds, text = _first_token(model, request)
        times["warm"].append(seconds)
        text += "".join(piece.text for piece in model.start(request))
        kept = "".join(text.splitlines(keepends=True)[:2])
        redirected = GenerateRequest(
            messages=(
                *request.messages,
                Message("assistant", kept),
                Message("user", render_follow_up("rename `result` to `outcome`")),
            ),
            max_output_tokens=4,
        )
        times["redirect"].append(_first_token(model, redirected)[0])
    report.first_token_ms = {key: 1000 * median(values) for key, values in times.items()}


def _first_token(model: OnnxModel, request: GenerateRequest) -> tuple[float, str]:
    started = time.perf_counter()
    pieces = iter(model.start(request))
    piece = next(pieces)
    seconds = time.perf_counter() - started
    close: Callable[[], None] = getattr(pieces, "close")  # noqa: B009
    close()
    return seconds, piece.text


def _measure_stop(report: Report, model: OnnxModel) -> None:
    """Time from stop() on one thread to the end of the generation on another."""
    request = max(edit_requests(), key=lambda r: len(r.messages[0].text))
    times: dict[str, list[float]] = {"reading": [], "writing": []}
    for kind, values in times.items():
        for _ in range(10):
            model.cache.clear()
            values.append(_stop_once(model, request, after_first=kind == "writing"))
    report.stop_ms = {key: 1000 * median(values) for key, values in times.items()}


def _stop_once(model: OnnxModel, request: GenerateRequest, *, after_first: bool) -> float:
    generation = model.start(request)
    begun, ended = threading.Event(), list[float]()

    def work() -> None:
        if not after_first:
            begun.set()
        for _ in generation:
            begun.set()
        begun.set()
        ended.append(time.perf_counter())

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    if not after_first:
        time.sleep(0.002)
    stopped = time.perf_counter()
    generation.stop()
    thread.join()
    return max(0.0, ended[0] - stopped)


async def _measure_loop_lag(report: Report, model: OnnxModel) -> None:
    """How late an event loop's timers are while a worker thread of the same process generates."""

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
        for _ in range(400):
            started = time.perf_counter()
            await asyncio.sleep(0.002)
            lags.append(_ms(started) - 2)
        done.set()
        if busy:
            await asyncio.to_thread(thread.join)
        lags.sort()
        report.loop_lag_ms[f"{name} p50"] = lags[len(lags) // 2]
        report.loop_lag_ms[f"{name} p99"] = lags[int(len(lags) * 0.99)]


def resident_mib() -> float:
    """Return the resident memory of this process in MiB (0 where /proc is missing)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * 4096 / 2**20


def copy_bandwidth() -> float:
    """Return how fast this thread reads memory, in GB/s: the best of several sums of 64 MiB."""
    import numpy as np

    block = np.ones(8 << 20)
    best = min(_timed(block.sum) for _ in range(5))
    return block.nbytes / best / 1e9


def _timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _measure_genai(report: Report, path: Path, threads: int | None) -> None:
    """Plain greedy decoding of the same folder in onnxruntime-genai."""
    if find_spec("onnxruntime_genai") is None:
        report.skipped["onnxruntime-genai"] = "not installed"
        return
    if not (path / "genai_config.json").is_file():
        report.skipped["onnxruntime-genai"] = "the folder is not in its layout"
        return
    genai: Any = import_module("onnxruntime_genai")
    try:
        config = genai.Config(str(path))
        if threads:
            config.overlay(
                json.dumps(
                    {"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}}
                )
            )
        model = genai.Model(config)
        for context in report.plain_tokens_per_second:
            params = genai.GeneratorParams(model)
            params.set_search_options(max_length=context + 64, do_sample=False)
            generator = genai.Generator(model, params)
            started = time.perf_counter()
            generator.append_tokens([i % 200 for i in range(7, 7 + context)])
            generator.generate_next_token()
            prefill = time.perf_counter() - started
            times = [_timed(generator.generate_next_token) for _ in range(40)]
            figures = report.peers.setdefault("onnxruntime-genai", {})
            figures[f"plain tokens/s at {context}"] = 1 / median(times)
            figures[f"prefill tokens/s at {context}"] = context / prefill
    except Exception as error:
        report.skipped["onnxruntime-genai"] = str(error).splitlines()[0]


def _measure_llama(report: Report, gguf: Path | None, threads: int | None) -> None:
    """Plain greedy decoding of a GGUF file in llama.cpp."""
    if find_spec("llama_cpp") is None:
        report.skipped["llama.cpp"] = "llama-cpp-python is not installed"
        return
    if gguf is None:
        report.skipped["llama.cpp"] = "no --gguf given"
        return
    llama_cpp: Any = import_module("llama_cpp")
    try:
        model = llama_cpp.Llama(str(gguf), n_ctx=4096, n_threads=threads, verbose=False)
        for context in report.plain_tokens_per_second:
            model.reset()
            started = time.perf_counter()
            model.eval([i % 200 for i in range(7, 7 + context)])
            prefill = time.perf_counter() - started
            times = [_timed(lambda: model.eval([7])) for _ in range(40)]
            figures = report.peers.setdefault("llama.cpp", {})
            figures[f"plain tokens/s at {context}"] = 1 / median(times)
            figures[f"prefill tokens/s at {context}"] = context / prefill
    except Exception as error:
        report.skipped["llama.cpp"] = str(error).splitlines()[0]


def as_lines(report: Report) -> Iterator[str]:
    """Yield a report as text for a terminal."""
    threads = "default threads" if report.threads is None else f"{report.threads} threads"
    yield f"{report.model}: {report.graph_mib:.1f} MiB, {report.provider}, {threads}"
    yield f"  load                 {report.load_ms:8.0f} ms"
    for name, figures in (
        ("edits, drafted", report.edits_drafted),
        ("edits, undrafted", report.edits_undrafted),
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
    yield f"  Python's share       {100 * report.python_share:8.1f} % of undrafted edits"
    yield f"  prefill              {report.prefill_tokens_per_second:8.0f} tokens/s"
    for title, values, unit in (
        ("first token", report.first_token_ms, "ms"),
        ("stop while", report.stop_ms, "ms"),
        ("loop lag", report.loop_lag_ms, "ms"),
        ("memory", report.memory_mib, "MiB"),
    ):
        for key, value in values.items():
            yield f"  {title + ', ' + key:24} {value:8.2f} {unit}"
    yield (
        f"  memory bandwidth     {report.bandwidth_gb_s:8.1f} GB/s in one thread; "
        f"plain decoding reads weights at {100 * report.bandwidth_share:.0f} % of it"
    )
    for peer, figures in report.peers.items():
        for key, value in figures.items():
            yield f"  {peer}: {key:24} {value:8.0f}"
    for peer, reason in report.skipped.items():
        yield f"  {peer}: left out, {reason}"
