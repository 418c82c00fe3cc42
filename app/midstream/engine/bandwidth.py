"""The memory bandwidth of this machine, and the bytes that one decode step reads."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from midstream.engine.folder import ModelFolder, graph_files

LARGE = 256 << 20
"""Bytes that no cache holds."""


def weights_read(folder: ModelFolder) -> int:
    """Return how many bytes of weights a step of one token reads.

    Tables of which it reads a row (embeddings, rotary angles) do not count. Telling them apart
    needs the ``onnx`` package; without it the whole file is taken.
    """
    if find_spec("onnx") is None:
        return sum(file.stat().st_size for file in graph_files(folder))
    onnx: Any = import_module("onnx")
    graph = onnx.load(str(folder.graph), load_external_data=False).graph
    rows: set[str] = set()
    whole: set[str] = set()
    for node in graph.node:
        table = {"Gather": (0,), "GroupQueryAttention": (7, 8)}.get(node.op_type, ())
        for place, name in enumerate(node.input):
            (rows if place in table else whole).add(name)
    return sum(_size(tensor) for tensor in graph.initializer if tensor.name in whole)


def _size(tensor: Any) -> int:
    onnx: Any = import_module("onnx")
    count = int(np.prod(list(tensor.dims), dtype=np.int64))
    return count * int(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)


def read_bandwidth(size: int, threads: int) -> float:
    """Return the GB/s that some threads read together, going over ``size`` bytes repeatedly.

    A small size stays in a cache and is read faster than memory is.
    """
    blocks = [np.ones(max(1, size // threads // 4), np.float32) for _ in range(threads)]
    times = max(1, (64 << 20) // size)

    def read(block: Any) -> None:
        for _ in range(times):
            # The quickest plain reading that numpy has: one vector comparison per load.
            block.max()

    with ThreadPoolExecutor(threads) as pool:
        seconds = min(timed(lambda: list(pool.map(read, blocks))) for _ in range(5))
    return sum(block.nbytes for block in blocks) * times / seconds / 1e9


def quiet_bandwidth(size: int, threads: int) -> float:
    """Return the GB/s that some threads would read if the machine had nothing else to do.

    Each thread's own time counts, not that in which others have its core.
    """

    def read(block: Any) -> float:
        best = float("inf")
        for _ in range(3):
            started = time.thread_time()
            block.max()
            best = min(best, time.thread_time() - started)
        return float(block.nbytes) / best / 1e9

    blocks = [np.ones(max(1, size // threads // 4), np.float32) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(read, blocks))


def timed(call: Callable[[], Any]) -> float:
    """Return how many seconds a call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
