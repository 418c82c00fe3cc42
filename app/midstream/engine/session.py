"""Opens a model folder's graph in ONNX Runtime: provider, threads, and in words of ours what is
wrong with a file that it does not take.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from midstream.engine.folder import ModelFolder, ModelFolderError, graph_files
from midstream.errors import UnavailableError

PROVIDERS: dict[str, str] = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "rocm": "ROCMExecutionProvider",
    "directml": "DmlExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "webgpu": "WebGpuExecutionProvider",
    "wafer": "WaferSimExecutionProvider",
}
"""Short provider names and ONNX Runtime's; "wafer" computes on the CPU and simulates the timing."""

DEVICES = {"cuda": "cuda", "tensorrt": "cuda", "rocm": "cuda", "directml": "dml"}
"""Providers that compute beside the host's memory, and what ONNX Runtime calls theirs."""

ONE_THREAD_BYTES = 12 << 20
"""Graphs below this size run in one thread unless told otherwise (measured: up to 8 rows at once
are quicker so with 5 MB, and the screen's process keeps a core)."""


def default_threads(folder: ModelFolder) -> int:
    """Return how many threads one operator takes if nobody says.

    One where the graph is so small that waking a second one costs what it saves, else as many as
    this process may use, at most 8.
    """
    size = sum(file.stat().st_size for file in graph_files(folder))
    return 1 if size < ONE_THREAD_BYTES else min(8, usable_cores())


def open_session(folder: ModelFolder, *, provider: str, threads: int) -> Any:
    """Open a folder's graph in ONNX Runtime.

    Args:
        folder: the model folder.
        provider: a key of `PROVIDERS`.
        threads: threads inside one operator.

    Raises:
        UnavailableError: the provider is unknown, or the installed onnxruntime has it not.
        ModelFolderError: the graph cannot be loaded.
    """
    runtime: Any = import_module("onnxruntime")
    wanted = PROVIDERS.get(provider)
    offered: list[str] = [*runtime.get_available_providers(), PROVIDERS["wafer"]]
    if wanted is None or wanted not in offered:
        names = ", ".join(key for key, value in PROVIDERS.items() if value in offered)
        raise UnavailableError(
            f'The installed onnxruntime offers no provider "{provider}"; it has {names}.'
        )
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Errors come as exceptions; on stderr they would tear the screen.
    options.log_severity_level = 4
    # Threads wait for each other and for the next run spinning, 25 ms long, which is the default:
    # asleep between runs they are woken late where other work keeps the cores busy (measured with 2
    # threads and 20 million parameters on two such cores: steps of 1.6 to 6 ms instead of 0.9).
    # Every tensor in memory of its own: it is given back all the same, and a step that is mostly
    # small operators takes 2 to 3 % less time (measured with 4 million parameters).
    options.enable_mem_reuse = False
    names = [wanted] if wanted == PROVIDERS["cpu"] else [wanted, PROVIDERS["cpu"]]
    try:
        if provider == "wafer":
            from midstream.wafer.session import InferenceSession

            return InferenceSession(str(folder.graph), options, providers=names)
        return runtime.InferenceSession(str(folder.graph), options, providers=names)
    except Exception as error:
        raise ModelFolderError(_load_fault(folder.graph, error)) from error


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def reason(error: Exception) -> str:
    """Return the first line of a foreign error, without ONNX Runtime's error numbers."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", line)


POINTER = b"version https://git-lfs"
"""How a file begins that only stands for one in Git LFS."""


def _load_fault(graph: Path, error: Exception) -> str:
    """Return a sentence on why a graph cannot be loaded."""
    text = reason(error)
    with graph.open("rb") as file:
        if file.read(len(POINTER)) == POINTER:
            return f"{graph} is a Git LFS pointer and not the graph; fetch it with `git lfs pull`."
    if missing := re.search(r'path does not exist: "([^"]+)"', text):
        return f"{graph} cannot be loaded: its weights, {missing[1]}, are missing; copy them there."
    if "out of bounds or can not be read in full" in text:
        return f"{graph} cannot be loaded: its external data is cut short; copy the files again."
    if "Protobuf parsing failed" in text:
        return f"{graph} cannot be loaded: it is cut short or no ONNX graph; copy it again."
    if version := re.search(r"Unsupported model IR version: \d+", text):
        text = version[0]
    if unknown := re.search(r"([\w.]+:\w+)\(-?\d+\) is not a registered function/op", text):
        return (
            f"{graph} cannot be loaded: the installed onnxruntime has no operator {unknown[1]}; "
            "a newer one may have."
        )
    return f"{graph} cannot be loaded: {text}"
