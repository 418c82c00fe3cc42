"""Other engines on the same machine, for `midstream bench engine`: plain greedy decoding of the
same folder, or of a file of equal size, where they are installed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from midstream.engine.plan import Plan

STEPS = 64
"""Single steps timed at every context length."""


class PeerMissing(Exception):  # noqa: N818 - a reason, not a fault
    """A peer cannot be compared with; the text says why."""


def genai(
    path: Path,
    threads: int | None,
    contexts: Sequence[int],
    edits: Sequence[Plan],
    lengths: Sequence[int],
) -> dict[str, float]:
    """Measure onnxruntime-genai on the same folder.

    Args:
        path: the model folder.
        threads: threads inside one operator; None for its own choice.
        contexts: cached tokens at which single steps are timed.
        edits: requests to answer as well.
        lengths: how many tokens of an answer to generate for each (it does not know their ends).

    Raises:
        PeerMissing: it is not installed, or cannot run the folder.
    """
    if find_spec("onnxruntime_genai") is None:
        raise PeerMissing("not installed")
    if not (path / "genai_config.json").is_file():
        raise PeerMissing("the folder is not in its layout")
    runtime: Any = import_module("onnxruntime_genai")
    figures: dict[str, float] = {}

    def generator(length: int) -> Any:
        params = runtime.GeneratorParams(model)
        params.set_search_options(max_length=length, min_length=length, do_sample=False)
        return runtime.Generator(model, params)

    try:
        config = runtime.Config(str(path))
        if threads:
            chosen = {"intra_op_num_threads": threads}
            config.overlay(json.dumps({"model": {"decoder": {"session_options": chosen}}}))
        model = runtime.Model(config)
        for context in contexts:
            running = generator(context + STEPS + 1)
            started = time.perf_counter()
            running.append_tokens([i % 200 for i in range(7, 7 + context)])
            running.generate_next_token()
            prefill = time.perf_counter() - started
            times = [timed(running.generate_next_token) for _ in range(STEPS)]
            figures[f"plain tokens/s at {context}"] = 1 / median(times)
            figures[f"prefill tokens/s at {context}"] = context / prefill
        rates: list[float] = []
        wholes: list[float] = []
        for plan, length in zip(edits, lengths, strict=True):
            started = time.perf_counter()
            running = generator(len(plan.prompt_ids) + length + 1)
            running.append_tokens(plan.prompt_ids)
            read = time.perf_counter()
            for _ in range(length):
                running.generate_next_token()
            ended = time.perf_counter()
            rates.append(length / (ended - read))
            wholes.append(1000 * (ended - started))
        figures["edits tokens/s"] = median(rates)
        figures["edit ms"] = median(wholes)
    except Exception as error:
        raise PeerMissing(str(error).splitlines()[0]) from error
    return figures


def llama_cpp(gguf: Path | None, threads: int | None, contexts: Sequence[int]) -> dict[str, float]:
    """Measure llama.cpp on a GGUF file.

    Raises:
        PeerMissing: it is not installed, or there is no file that it can run.
    """
    if find_spec("llama_cpp") is None:
        raise PeerMissing("llama-cpp-python is not installed")
    if gguf is None:
        raise PeerMissing("no --gguf given")
    runtime: Any = import_module("llama_cpp")
    figures: dict[str, float] = {}
    try:
        length = max(contexts, default=0) + STEPS + 1
        model = runtime.Llama(str(gguf), n_ctx=length, n_threads=threads, verbose=False)
        for context in contexts:
            model.reset()
            started = time.perf_counter()
            model.eval([i % 200 for i in range(7, 7 + context)])
            prefill = time.perf_counter() - started
            times = [timed(lambda: model.eval([7])) for _ in range(STEPS)]
            figures[f"plain tokens/s at {context}"] = 1 / median(times)
            figures[f"prefill tokens/s at {context}"] = context / prefill
    except Exception as error:
        raise PeerMissing(str(error).splitlines()[0]) from error
    return figures


def timed(call: Callable[[], Any]) -> float:
    """Return how many seconds a call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
