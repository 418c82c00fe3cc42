"""Inspection of model folders for users: their contents, whether they work, and installing one.

Everything comes back as data; printing it is the command line's business.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from midstream.edits.request import RegionRequest, render_request
from midstream.engine.cache_memory import available_bytes, spelled
from midstream.engine.decoder import Decoder
from midstream.engine.folder import ModelFolder, ModelFolderError, graph_files, read_folder
from midstream.engine.prompts import prompt_style, require_vocabulary
from midstream.engine.types import GenerateRequest, Message
from midstream.errors import UserError
from midstream.workspace import atomic

AGREEMENT = 1e-2
"""Largest difference of logits (relative to their spread) between one run and two of the same."""


@dataclass(frozen=True, slots=True)
class ModelReport:
    """What a folder's files say, without loading the model.

    Attributes:
        path: The folder.
        name: The model's name in requests.
        layout: "genai", "optimum" or "transformers.js".
        graph: File name of the ONNX graph.
        bytes: Size of the graph with its external data.
        context_length: Most tokens of prompt and answer together.
        cache_bytes: Memory that the cache takes when the context is full, estimated; None where the
            configuration does not say enough. A graph that concatenates takes twice as much.
        prompt: One of ``folder.PROMPTS``.
        facts: Further facts from ``midstream.toml``.
    """

    path: Path
    name: str
    layout: str
    graph: str
    bytes: int
    context_length: int
    cache_bytes: int | None
    prompt: str
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FolderCheck:
    """One trial: its name, whether it worked, and its result."""

    name: str
    ok: bool
    detail: str


def describe(path: Path) -> ModelReport:
    """Return what a folder holds.

    Raises:
        ModelFolderError: It is no model folder.
    """
    folder = read_folder(path)
    return ModelReport(
        path=folder.path,
        name=folder.name,
        layout=folder.layout,
        graph=folder.graph.name,
        bytes=sum(file.stat().st_size for file in graph_files(folder)),
        context_length=folder.context_length,
        cache_bytes=folder.row_bytes and folder.row_bytes * folder.context_length,
        prompt=folder.prompt,
        facts=folder.facts,
    )


def installed(places: Iterable[Path]) -> list[ModelReport]:
    """The models in these directories, by name."""
    found: list[ModelReport] = []
    for place in places:
        if not place.is_dir():
            continue
        for path in sorted(place.iterdir()):
            try:
                found.append(describe(path))
            except ModelFolderError:
                continue
    return sorted(found, key=lambda info: info.name)


def check(
    path: Path, *, provider: str = "cpu", threads: int | None = None
) -> Iterator[FolderCheck]:
    """Try a model step by step; the first failure ends it.

    Yields:
        Each trial as soon as it has ended.
    """
    step = "files"
    try:
        folder = read_folder(path)
        yield FolderCheck(step, True, f"{folder.layout} layout, {folder.graph.name}")
        step = "prompt"
        style = prompt_style(folder)
        count = len(style.plan(_sample(folder)).prompt_ids)
        yield FolderCheck(step, True, f"{folder.prompt}, {count} tokens for a small request")
        step = "graph"
        started = time.perf_counter()
        decoder = Decoder(folder, provider=provider, threads=threads)
        seconds = time.perf_counter() - started
        yield FolderCheck(step, True, f"loads in {1000 * seconds:.0f} ms")
        step = "vocabulary"
        require_vocabulary(folder, style, decoder.vocab)
    except UserError as error:
        yield FolderCheck(step, False, str(error))
        return
    yield _endings(folder, decoder)
    yield _interface(decoder)
    yield _memory(decoder)
    yield from _numbers(decoder)


def _sample(folder: ModelFolder) -> GenerateRequest:
    text = "Hello!"
    if folder.is_edit_model:
        region = RegionRequest(instruction="rename `a` to `b`", region="a = 1\n")
        text = render_request(region)
    return GenerateRequest((Message("user", text),))


def _endings(folder: ModelFolder, decoder: Decoder) -> FolderCheck:
    """Which tokens end a text; without one, answers would run to their limit."""
    known = sorted(token for token in folder.eos_ids if 0 <= token < decoder.vocab)
    detail = f"{decoder.vocab} tokens; texts end with {', '.join(map(str, known))}"
    if folder.is_edit_model or known:
        return FolderCheck("vocabulary", True, detail if known else f"{decoder.vocab} tokens")
    named = ", ".join(map(str, sorted(folder.eos_ids))) or "none"
    return FolderCheck(
        "vocabulary",
        False,
        f"no token of {decoder.vocab} is said to end a text (eos_token_id: {named}); answers would "
        f"go on to their limit, so name it in {folder.path / 'generation_config.json'}",
    )


def _interface(decoder: Decoder) -> FolderCheck:
    extras = ", ".join(decoder.io.extras) or "no other inputs"
    kind = "one shared buffer" if decoder.shared else "concatenated at every step"
    packed = "; attention packed by groups of query heads" if decoder.packed else ""
    return FolderCheck("interface", True, f"{extras}; cache: {kind}{packed}")


def _memory(decoder: Decoder) -> FolderCheck:
    rows = decoder.context_length
    free = available_bytes()
    left = "" if free is None else f", {spelled(free)} are free"
    return FolderCheck(
        "memory", True, f"{spelled(rows * decoder.row_bytes)} of KV cache for {rows} tokens{left}"
    )


def _numbers(decoder: Decoder) -> Iterator[FolderCheck]:
    """Run random tokens: finite, independent of how they are cut, and how fast."""
    count = min(96, decoder.context_length - 2)
    ids = [int(i) for i in np.random.default_rng(0).integers(0, decoder.vocab, count)]
    last = count // 2
    decoder.run(ids, 0, exact=True)
    started = time.perf_counter()
    whole = decoder.run(ids, 0, exact=True)[-1].copy()
    prefill = count / (time.perf_counter() - started)
    decoder.fill(ids[:last], 0, exact=True)
    cut = decoder.run(ids[last:], last, exact=True)[-1].copy()
    if not np.isfinite(whole).all():
        yield FolderCheck("numbers", False, "the graph returns infinities or NaN")
        return
    gap = float(np.abs(whole - cut).max()) / (float(whole.std()) or 1.0)
    if gap > AGREEMENT and decoder.causal:
        yield FolderCheck(
            "cache", False, f"logits change by {gap:.2f} spreads when a prompt is cut in two"
        )
        return
    exact = "drafting is exact" if gap == 0 else "drafting may change near-ties"
    if not decoder.all_rows:
        exact = "one row of logits: no drafting"
    elif not decoder.causal:
        exact = (
            "one scale for all tokens of a forward pass, so output depends on what was cached: "
            "no drafting; prefer a 4-bit or unquantised graph"
        )
    yield FolderCheck("cache", True, exact)
    steps: list[float] = []
    for _ in range(20):
        started = time.perf_counter()
        decoder.run(ids[:1], last)
        steps.append(time.perf_counter() - started)
    decode = 1 / float(np.median(steps))
    yield FolderCheck(
        "speed", True, f"prefill {prefill:.0f} tokens/s, decode {decode:.0f} tokens/s (no drafting)"
    )


def add(source: Path, models: Path) -> ModelReport:
    """Copy a model folder into a directory of models, under its own name.

    Raises:
        ModelFolderError: It is no model folder, does not run, or the name is taken.
    """
    info = describe(source)
    for step in check(source):
        if not step.ok:
            raise ModelFolderError(step.detail)
    target = models / info.name
    if "/" in info.name or "\\" in info.name or info.name in ("", ".", ".."):
        raise ModelFolderError(
            f'{source} calls itself "{info.name}", which is not a valid folder name.'
        )
    if target.exists():
        raise ModelFolderError(f"{target} already exists; remove it first.")
    models.mkdir(parents=True, exist_ok=True)
    partial = models / f".{info.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(source, partial)
    atomic.rename_whole(partial, target)
    return describe(target)
