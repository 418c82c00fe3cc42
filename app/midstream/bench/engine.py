"""``midstream bench engine``: the speed of the engine, beside other engines where they are
installed.

Every figure is a median over prompts or repetitions. Texts are really generated; nothing is
extrapolated. Times are wall-clock times unless a figure says that it is processor time. Engines
that are compared take turns, run by run.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from midstream.arguments import CommandParser
from midstream.bench import timing
from midstream.bench.dropped_turns import DroppedTurns, dropped_turns
from midstream.bench.first_text import FirstText, first_texts
from midstream.bench.gguf import NotWritableError, write_gguf
from midstream.bench.machine import compared, machine_facts, read_output
from midstream.bench.peers import Genai, LlamaCpp, Peer, PeerMissing, llama_installed
from midstream.bench.progress import BenchProgress
from midstream.bench.reference_edits import screenful_requests
from midstream.bench.timing import Beside, EditFigures, forced_plans, python_share
from midstream.cli import INTERRUPTED
from midstream.engine.bandwidth import LARGE, read_bandwidth, weights_read
from midstream.engine.folder import graph_files, read_folder
from midstream.engine.model import OnnxModel
from midstream.engine.spare_memory import arrange
from midstream.processes import resident_bytes
from midstream.resources import default_model, find_model

PARTS = ("edits", "formats", "steps", "first", "changes", "contexts", "turns", "stops")
"""What can be measured."""


@dataclass(slots=True)
class EngineReport:
    """Everything measured; times in milliseconds, memory in MiB.

    Attributes:
        machine: What it was measured on, and with which versions.
        edits: By kind: "region", "SEARCH/REPLACE", "apply_patch" and "whole file" are a given edit
            of 200 lines in these formats; "whole lines" are renames as plain text whose tokens are
            given, which is how models without the edit codec answer; "own way" is the text that the
            model writes, drafted, and "own way, undrafted" the same without drafts.
        python_share: Share of plain steps without drafts that is spent outside ONNX Runtime.
        row_share: What one more drafted token adds to a step.
        rows_ms: A run by how many tokens it has, behind 256 cached ones.
        redirect_share: Of the cold time, and of the prompt that is read, after a redirect.
        first_text: Of chat models: the first text of an answer behind a context.
        turns: Likewise: what moved cache rows cost and change where old turns are dropped.
        change_ms: From Enter to the first changed line and to the whole answer.
        stop_forwards: The slowest stop in forwards of its kind (a chunk of a prompt, a step).
        bandwidth_share: Bytes that plain decoding reads a second, relative to what this machine can
            read, by context length.
        peers: What was measured in turns with each: as many tokens as ours, or the text in full.
        stopped: The part in which Ctrl+C was pressed: its later figures, and those of the parts
            behind it, were not measured. "" for a whole report.
    """

    model: str
    provider: str
    threads: int
    graph_mib: float
    load_ms: float = 0.0
    edits: dict[str, EditFigures] = field(default_factory=dict[str, EditFigures])
    same_text: str = ""
    plain_tokens_per_second: dict[int, float] = field(default_factory=dict[int, float])
    python_share: float = 0.0
    row_share: float = 0.0
    rows_ms: dict[int, float] = field(default_factory=dict[int, float])
    prefill_tokens_per_second: dict[int, float] = field(default_factory=dict[int, float])
    first_token_ms: dict[str, float] = field(default_factory=dict[str, float])
    redirect_share: dict[str, float] = field(default_factory=dict[str, float])
    first_text: dict[str, FirstText] = field(default_factory=dict[str, FirstText])
    turns: dict[str, DroppedTurns] = field(default_factory=dict[str, DroppedTurns])
    change_ms: dict[str, float] = field(default_factory=dict[str, float])
    stop_ms: dict[str, float] = field(default_factory=dict[str, float])
    stop_forwards: dict[str, float] = field(default_factory=dict[str, float])
    loop_lag_ms: dict[str, float] = field(default_factory=dict[str, float])
    memory_mib: dict[str, float] = field(default_factory=dict[str, float])
    bandwidth_gb_s: dict[str, float] = field(default_factory=dict[str, float])
    bandwidth_share: dict[int, float] = field(default_factory=dict[int, float])
    peers: dict[str, dict[str, Beside]] = field(default_factory=dict[str, dict[str, Beside]])
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    machine: dict[str, str] = field(default_factory=machine_facts)
    stopped: str = ""


def run(argv: Sequence[str]) -> int:
    """Measure and print; returns the exit code."""
    parser = CommandParser(prog="midstream bench engine", description=__doc__)
    parser.add_argument("--model", type=Path, help="model folder (the shipped one)")
    parser.add_argument("--provider", default="cpu")
    parser.add_argument("--threads", type=int, help="threads inside one operator")
    parser.add_argument("--gguf", type=Path, help="a GGUF file for llama.cpp (the model itself)")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, metavar="WHAT", help=f"some of: {', '.join(PARTS)}"
    )
    parser.add_argument(
        "--contexts",
        nargs="+",
        type=int,
        metavar="TOKENS",
        default=timing.CONTEXTS,
        help="cached tokens at which steps and first texts are timed",
    )
    parser.add_argument(
        "--texts",
        type=Path,
        metavar="FOLDER",
        help="Markdown files to make conversations of, for turns",
    )
    parser.add_argument(
        "--compare", type=Path, metavar="FILE", help="an earlier output (--json) to compare with"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    earlier = None if options.compare is None else read_output(options.compare)
    path = default_model() if options.model is None else find_model(options.model)
    provider, threads, progress = options.provider, options.threads, BenchProgress()
    with progress.ended_by_ctrl_c():
        report = measure(
            path,
            progress,
            provider=provider,
            threads=threads,
            gguf=options.gguf,
            only=options.only or PARTS,
            contexts=options.contexts,
            texts=options.texts,
        )
    progress.end()
    # Keys of JSON objects are text.
    found = json.loads(json.dumps(asdict(report)))
    print(json.dumps(found, indent=2) if options.json else "\n".join(as_lines(report)))
    if earlier is not None:
        lines = "\n".join([f"compared with {options.compare}:", *compared(earlier, found)])
        print(lines, file=sys.stderr if options.json else sys.stdout)
    return INTERRUPTED if progress.stopped else 0


def measure(
    path: Path,
    progress: BenchProgress,
    *,
    provider: str = "cpu",
    threads: int | None = None,
    gguf: Path | None = None,
    repeat: int = 3,
    only: Collection[str] = PARTS,
    contexts: Sequence[int] = timing.CONTEXTS,
    texts: Path | None = None,
) -> EngineReport:
    """Measure one model folder.

    Args:
        path: The folder.
        progress: Told what is being measured.
        provider: Where to run it.
        threads: Threads inside one operator.
        gguf: A model file for llama.cpp, to compare with.
        repeat: How often the reference edits are generated.
        only: Which parts to measure.
        contexts: Cached tokens at which steps and first texts are timed.
        texts: A folder of Markdown files, to make conversations of.

    Returns:
        What was measured, up to Ctrl+C if that was pressed.

    Raises:
        UserError: The folder cannot be used.
    """
    folder = read_folder(path)
    progress.part(f"{folder.name}: loading")
    size = sum(file.stat().st_size for file in graph_files(folder)) / 2**20
    before = resident_bytes()
    started = time.perf_counter()
    model = OnnxModel(folder, provider=provider, threads=threads)
    loaded = 1000 * (time.perf_counter() - started)
    arrange(graph_files(folder))
    report = EngineReport(folder.name, provider, model.decoder.threads, size, load_ms=loaded)
    report.memory_mib["loaded"] = (resident_bytes() - before) / 2**20
    found = _peers(report, path, gguf, model)
    with progress.stoppable():
        if "edits" in only:
            _measure_edits(report, model, repeat, found, progress)
        if "formats" in only:
            _measure_formats(report, model, found, progress)
        if "steps" in only:
            _measure_steps(report, model, found, progress, contexts)
        found.clear()
        if "first" in only:
            progress.part(f"{folder.name}: first tokens and redirects")
            report.first_token_ms, report.redirect_share = timing.first_tokens(
                model, repeat, progress
            )
        if "changes" in only:
            progress.part(f"{folder.name}: edits of 24 lines")
            requests = screenful_requests() * repeat
            report.change_ms = timing.changes(model, requests, model.cache.clear, progress)
        if not folder.is_edit_model:
            if "contexts" in only:
                progress.part(f"{folder.name}: first texts behind a context")
                report.first_text = first_texts(model, contexts, progress)
            if "turns" in only and texts is not None:
                progress.part(f"{folder.name}: turns dropped")
                report.turns = dropped_turns(model, texts, progress)
        if "stops" in only:
            progress.part(f"{folder.name}: stops")
            report.stop_ms, report.stop_forwards = timing.stops(model, progress)
            progress.part(f"{folder.name}: an event loop beside it")
            report.loop_lag_ms = asyncio.run(timing.loop_lag(model))
        used = resident_bytes() - before
        model.give_back()
        report.memory_mib |= {
            "used": used / 2**20,
            "resident": (resident_bytes() - before) / 2**20,
            "live cache": model.decoder.cache_bytes / 2**20,
            "saved prefixes": model.cache.saved_bytes / 2**20,
        }
    report.stopped = progress.stopped
    model.close()
    return report


def _peers(
    report: EngineReport, path: Path, gguf: Path | None, model: OnnxModel
) -> dict[str, Peer]:
    """Load the peers that can be compared with; the report says why others are left out."""
    threads = model.decoder.threads
    found: dict[str, Peer] = {}
    for name, load in (
        (Genai.name, lambda: Genai(path, threads)),
        (LlamaCpp.name, lambda: _llama(model, gguf)),
    ):
        try:
            found[name] = load()
            report.peers[name] = {}
        except PeerMissing as reason:
            report.skipped[name] = str(reason)
    return found


def _llama(model: OnnxModel, gguf: Path | None) -> LlamaCpp:
    """Load llama.cpp with a file, or with the very model if none is given."""
    threads, context = model.decoder.threads, model.decoder.context_length
    if gguf is not None or not llama_installed():
        return LlamaCpp(gguf or Path(), threads, context)
    with tempfile.TemporaryDirectory(prefix="midstream-gguf-") as folder:
        written = Path(folder) / "model.gguf"
        try:
            write_gguf(model.folder, written)
        except NotWritableError as reason:
            raise PeerMissing(f"{reason}; give an equal-size file with --gguf") from reason
        return LlamaCpp(written, threads, context)


def _measure_edits(
    report: EngineReport,
    model: OnnxModel,
    repeat: int,
    found: dict[str, Peer],
    progress: BenchProgress,
) -> None:
    def keep(kind: str, result: timing.Edits) -> timing.Edits:
        report.edits[kind] = result.figures
        for name, figures in result.peers.items():
            for unit, figure in figures.items():
                report.peers[name][f"edits, {kind}, {unit}"] = figure
        return result

    progress.part(f"{report.model}: edits, given texts")
    keep("whole lines", timing.forced_edits(model, found, repeat, progress))
    progress.part(f"{report.model}: edits, its own way")
    drafted = keep("own way", timing.edits(model, found, repeat, progress))
    progress.part(f"{report.model}: edits, its own way, undrafted")
    drafting, model.drafting = model.drafting, None
    try:
        undrafted = keep("own way, undrafted", timing.edits(model, {}, repeat, progress))
    finally:
        model.drafting = drafting
    pairs = list(zip(drafted.texts, undrafted.texts, strict=False))
    report.same_text = f"{sum(one == other for one, other in pairs)} of {len(pairs)}"
    progress.part(f"{report.model}: single steps of given texts")
    plans = progress.over(forced_plans(model) * repeat)
    report.python_share = median(python_share(model, plan, tokens) for plan, tokens, _ in plans)
    report.row_share = model.decoder.row_cost.share


def _measure_formats(
    report: EngineReport, model: OnnxModel, found: dict[str, Peer], progress: BenchProgress
) -> None:
    progress.part(f"{report.model}: edits of 200 lines, by format")
    for kind, result in timing.edits_by_format(model, found, progress).items():
        report.edits[kind] = result.figures
        for name, figures in result.peers.items():
            for unit, figure in figures.items():
                report.peers[name][f"200 lines, {kind}, {unit}"] = figure


def _measure_steps(
    report: EngineReport,
    model: OnnxModel,
    found: dict[str, Peer],
    progress: BenchProgress,
    contexts: Sequence[int],
) -> None:
    progress.part(f"{report.model}: runs of several tokens")
    report.rows_ms = timing.row_times(model, progress)
    progress.part(f"{report.model}: prefill and single steps")
    for context, speeds in timing.steps(model, found, progress, contexts).items():
        report.plain_tokens_per_second[context] = speeds.plain
        report.prefill_tokens_per_second[context] = speeds.prefill
        for name, figures in speeds.peers.items():
            for kind, figure in figures.items():
                report.peers[name][f"{kind} at {context}, tokens/s"] = figure
    _measure_bandwidth(report, model)


def _measure_bandwidth(report: EngineReport, model: OnnxModel) -> None:
    threads = model.decoder.threads
    weights = weights_read(model.folder)
    report.bandwidth_gb_s["memory"] = read_bandwidth(LARGE, threads)
    for context, rate in report.plain_tokens_per_second.items():
        size = weights + context * model.decoder.io.row_bytes
        limit = read_bandwidth(size, threads)
        report.bandwidth_gb_s[f"{size / 2**20:.1f} MiB, a step at {context}"] = limit
        report.bandwidth_share[context] = size * rate / (limit * 1e9)


def _row_share(report: EngineReport, rows: int) -> float:
    """The cost of each further token in a forward pass, as a share of a pass of one token."""
    return (report.rows_ms[rows] / report.rows_ms[1] - 1) / (rows - 1)


def as_lines(report: EngineReport) -> Iterator[str]:
    """Yield a report as text for a terminal."""
    threads = "1 thread" if report.threads == 1 else f"{report.threads} threads"
    yield "; ".join(f"{name} {text}" for name, text in report.machine.items())
    yield f"{report.model}: {report.graph_mib:.1f} MiB, {report.provider}, {threads}"
    yield f"  load                 {report.load_ms:8.0f} ms"
    for kind, figures in report.edits.items():
        yield (
            f"  edits, {kind:18} {figures.tokens_per_second:8.0f} tokens/s  "
            f"{figures.characters_per_second:8.0f} characters/s  "
            f"{figures.tokens_per_forward:5.2f} tokens and "
            f"{figures.characters_per_forward:5.1f} characters per forward  "
            f"{figures.edit_ms:7.2f} ms each"
        )
    if report.same_text:
        yield f"  same text, drafted or not {report.same_text:>8}"
    for rows, spent in report.rows_ms.items():
        more = (
            "" if rows == 1 else f"  {100 * _row_share(report, rows):5.0f} % of one for each more"
        )
        yield f"  run of {rows:<13} {spent:8.2f} ms{more}"
    for context, speed in report.plain_tokens_per_second.items():
        yield f"  plain at {context:<11} {speed:8.0f} tokens/s"
    if report.python_share:
        yield f"  Python's share       {100 * report.python_share:8.1f} % of a plain step"
        yield f"  a drafted token adds {100 * report.row_share:8.1f} % of a plain step"
    for context, speed in report.prefill_tokens_per_second.items():
        yield f"  prefill of {context:<9} {speed:8.0f} tokens/s"
    for title, values, unit in (
        ("first token", report.first_token_ms, "ms"),
        ("24 lines", report.change_ms, "ms"),
        ("stop while", report.stop_ms, "ms"),
        ("loop lag", report.loop_lag_ms, "ms"),
        ("memory", report.memory_mib, "MiB"),
    ):
        for key, value in values.items():
            yield f"  {title + ', ' + key:24} {value:8.2f} {unit}"
    shares = report.redirect_share
    for title in ("", timing.LONG):
        for kind in timing.REDIRECTS:
            if (time := shares.get(f"{title}{kind}, time")) is not None:
                read = shares[f"{title}{kind}, tokens read"]
                yield (
                    f"  {title + kind:39} {100 * time:4.0f} % of the cold time; "
                    f"{100 * read:.0f} % of its prompt is read"
                )
    for key, text in report.first_text.items():
        yield (
            f"  first text, {key:28} {text.wall_ms:8.1f} ms, {text.cpu_ms:8.1f} ms of processor; "
            f"{text.read} of {text.tokens} tokens are read"
        )
    for key, turns in report.turns.items():
        yield f"  {key}, {turns.conversations} conversations of {turns.tokens:.0f} tokens:"
        for kind, loss in turns.loss.items():
            cost = ""
            if kind in turns.read:
                read, cpu = turns.read[kind], turns.cpu_ms[kind]
                cost = f", {read:.0f} tokens read, {cpu:.0f} ms of processor"
            yield f"    {kind:8} loss {loss:.3f}{cost}"
        yield f"    moved rows: loss {100 * turns.worse:+.2f} % (± {100 * turns.deviation:.2f})"
        for pair, share in turns.same.items():
            yield f"    same answer, {pair}: {100 * share:.0f} %"
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
        for key, figure in figures.items():
            yield (
                f"  {peer}: {key:33} {figure.theirs:8.0f}  ours {figure.ours:8.0f}, "
                f"{figure.times:.2f}x as quick"
                + (f", {figure.cpu:.2f}x in processor time" if figure.cpu else "")
            )
    for peer, reason in report.skipped.items():
        yield f"  {peer}: left out, {reason}"
    if report.stopped:
        yield f"Stopped at {report.stopped}: what comes after that was not measured."
