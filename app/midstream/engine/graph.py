"""The graph of a model folder: opening it in ONNX Runtime and reading its inputs and outputs.

Provider and threads are chosen here, and a file that ONNX Runtime refuses becomes a sentence that
says why. What a graph has to be fed, what comes back and how its cache is laid out is read from the
graph itself and never assumed from a model's name; an unknown input is an error that names it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

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


WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
"""ONNX Runtime's option for where the weights of a graph from memory are."""


def default_threads(folder: ModelFolder) -> int:
    """Default number of threads inside one operator.

    One for a graph so small that waking a second thread costs what it saves; otherwise as many as
    this process may use, at most 8.
    """
    size = sum(file.stat().st_size for file in graph_files(folder))
    return 1 if size < ONE_THREAD_BYTES else min(8, usable_cores())


PACKED_GROUP = 4
"""Query heads that share a key/value head from which on attention is packed. With three and 135
million parameters a step took up to 12 % longer, with six or seven and more 6 to 40 % less."""


CAPACITY_STEP = 128
"""With packed attention the cache's capacity is a multiple of this, so that a row has the same bits
at every capacity: the softmax takes 64 values at a time, and products cut sums into pieces of 128
or 256 rows (MLAS in ONNX Runtime 1.32)."""


def packed_graph(folder: ModelFolder, *, provider: str, threads: int) -> bytes | None:
    """Return the folder's graph with attention packed by groups of query heads.

    Returns:
        The graph, which reads its weights from the folder; None where attention is not packed.
    """
    shape = folder.cache_shape
    if provider != "cpu" or shape is None or shape.queries < PACKED_GROUP * shape.heads:
        return None
    if folder.shares_cache is False or folder.drafting is None:
        # Without drafts the text is to be that of other runtimes; sums in another order may change
        # which of two equally likely tokens is chosen.
        return None
    # It imports `onnx`, which takes longer than a small model to load.
    from midstream.engine.packed_attention import pack_attention

    tokens = folder.input_names.get("input_ids", "input_ids")
    return pack_attention(folder.graph, tokens=tokens, threads=threads)


class Opening:
    """A folder's graph on its way into ONNX Runtime.

    A thread opens it, which mostly packs weights and leaves Python free for other work.

    Attributes:
        provider: A key of ``PROVIDERS``.
        threads: Threads inside one operator.
        packed: Whether attention is packed (``packed_graph``).
    """

    def __init__(
        self, folder: ModelFolder, *, provider: str = "cpu", threads: int | None = None
    ) -> None:
        """Begin.

        Args:
            folder: The model folder.
            provider: A key of ``PROVIDERS``.
            threads: Threads inside one operator; None chooses by the graph's size.

        Raises:
            UnavailableError: The provider is unknown, or the installed onnxruntime lacks it.
        """
        self.provider = provider
        self.threads = threads or default_threads(folder)
        self._graph = folder.graph
        graph = packed_graph(folder, provider=provider, threads=self.threads)
        self.packed = graph is not None
        runtime: Any = import_module("onnxruntime")
        wanted = PROVIDERS.get(provider)
        offered: list[str] = [*runtime.get_available_providers(), PROVIDERS["wafer"]]
        if wanted is None or wanted not in offered:
            names = ", ".join(key for key, value in PROVIDERS.items() if value in offered)
            raise UnavailableError(
                f'The installed onnxruntime offers no provider "{provider}"; it has {names}.'
            )
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        # Errors come as exceptions; on stderr they would tear the screen.
        options.log_severity_level = 4
        # Threads wait for each other and for the next run spinning, 25 ms long, which is the
        # default: asleep between runs they are woken late where other work keeps the cores busy
        # (measured with 2 threads and 20 million parameters on two such cores: steps of 1.6 to 6 ms
        # instead of 0.9). Every tensor in memory of its own: it is given back all the same, and a
        # step that is mostly small operators takes 2 to 3 % less time (measured with 4 million
        # parameters).
        options.enable_mem_reuse = False
        if graph is not None:
            options.add_session_config_entry(WEIGHTS_FOLDER, str(folder.graph.parent))
        session = runtime.InferenceSession
        if provider == "wafer":
            from midstream.wafer.session import InferenceSession

            session = InferenceSession
        names = [wanted] if wanted == PROVIDERS["cpu"] else [wanted, PROVIDERS["cpu"]]
        pool = ThreadPoolExecutor(1, thread_name_prefix="open")
        source = graph or str(folder.graph)
        self._opened = pool.submit(session, source, options, providers=names)
        pool.shutdown(wait=False)

    def session(self) -> Any:
        """Wait for the session.

        Raises:
            ModelFolderError: The graph cannot be loaded.
        """
        try:
            return self._opened.result()
        except Exception as error:
            raise ModelFolderError(_load_fault(self._graph, error)) from error


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def reason(error: Exception) -> str:
    """First line of a foreign error, without ONNX Runtime's error numbers."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", line)


POINTER = b"version https://git-lfs"
"""How a file begins that only stands for one in Git LFS."""


def _load_fault(graph: Path, error: Exception) -> str:
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


TYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
}
"""Element types of graph inputs and outputs as numpy knows them."""

EXTRAS = (
    "attention_mask",
    "position_ids",
    "seqlens_k",
    "total_sequence_length",
    "num_logits_to_keep",
    "use_cache_branch",
)
"""Inputs besides tokens and cache that the decoder knows how to feed."""


@dataclass(frozen=True, slots=True)
class GraphTensor:
    """A graph input or output: name, numpy element type, dimensions (a name where it varies)."""

    name: str
    dtype: Any
    dims: tuple[int | str | None, ...]


@dataclass(frozen=True, slots=True)
class CachePair:
    """One cache tensor's way in and out of the graph."""

    past: str
    present: str
    dtype: Any
    heads: int
    width: int

    @property
    def holds_keys(self) -> bool:
        """Whether it holds keys, not values."""
        named = _cache_key(self.past)
        return named is not None and named[2] == "key"


@dataclass(frozen=True, slots=True)
class GraphIO:
    """The interface of one decoder graph.

    Attributes:
        tokens: The input that takes token ids, [1, S].
        logits: The output, [1, S, vocabulary], or [1, 1, vocabulary] where a graph keeps only the
        last.
        extras: The other inputs by their known name (see ``EXTRAS``).
        cache: The cache tensors, layer by layer; each is [1, heads, length, width].
    """

    tokens: GraphTensor
    logits: GraphTensor
    extras: Mapping[str, GraphTensor]
    cache: tuple[CachePair, ...]

    @property
    def row_bytes(self) -> int:
        """Bytes of one token in the cache."""
        return sum(pair.heads * pair.width * np.dtype(pair.dtype).itemsize for pair in self.cache)


def read_graph_io(folder: ModelFolder, inputs: Iterable[Any], outputs: Iterable[Any]) -> GraphIO:
    """Match a session's inputs and outputs with their meaning.

    Args:
        folder: The folder the graph is from (its name table, and its name in errors).
        inputs: ``session.get_inputs()``.
        outputs: ``session.get_outputs()``.

    Raises:
        ModelFolderError: An input is unknown, or tokens, logits or a cache tensor are missing.
    """
    given = {info.name: info for info in map(_tensor_info(folder), inputs)}
    made = {info.name: info for info in map(_tensor_info(folder), outputs)}
    tokens = given.pop(folder.input_names.get("input_ids", "input_ids"), None)
    if tokens is None:
        wanted = folder.input_names.get("input_ids", "input_ids")
        raise _fault(folder, f"has no input {wanted} for token ids, only {_listed(given)}")
    wanted = folder.output_names.get("logits", "logits")
    logits = made.get(wanted)
    if logits is None:
        raise _fault(folder, f"has no output {wanted}, only {_listed(made)}")
    extras: dict[str, GraphTensor] = {}
    for known in EXTRAS:
        info = given.pop(folder.input_names.get(known, known), None)
        if info is not None:
            extras[known] = info
    cache = _cache_pairs(folder, given, made)
    for pair in cache:
        del given[pair.past]
    if given:
        raise _fault(folder, f"wants the input {next(iter(given))}, which is not known")
    return GraphIO(tokens, logits, extras, cache)


def _listed(tensors: Mapping[str, GraphTensor]) -> str:
    names = [name for name in tensors if _cache_key(name) is None]
    return ", ".join(names[:6]) + (" and a cache" if len(names) < len(tensors) else "")


def _fault(folder: ModelFolder, what: str) -> ModelFolderError:
    return ModelFolderError(f"{folder.graph} {what}; it is not a decoder that Midstream can run.")


def _tensor_info(folder: ModelFolder) -> Callable[[Any], GraphTensor]:
    def convert(value: Any) -> GraphTensor:
        kind = str(value.type)
        if kind not in TYPES:
            raise _fault(folder, f"uses {kind} for {value.name}")
        return GraphTensor(str(value.name), TYPES[kind], tuple(value.shape))

    return convert


_LAYER = re.compile(r"^(?P<stem>past|present)\D*(?P<layer>\d+)\D*?(?P<kind>key|value)$")
_KIND_FIRST = re.compile(r"^(?P<stem>past|present)\D*(?P<kind>key|value)\D*(?P<layer>\d+)$")


def _cache_key(name: str) -> tuple[str, int, str] | None:
    """Return ("past" or "present", layer, "key" or "value") for a cache tensor's name."""
    match = _LAYER.match(name) or _KIND_FIRST.match(name)
    return (match["stem"], int(match["layer"]), match["kind"]) if match else None


def _cache_pairs(
    folder: ModelFolder, given: Mapping[str, GraphTensor], made: Mapping[str, GraphTensor]
) -> tuple[CachePair, ...]:
    past = {key[1:]: info for info in given.values() if (key := _cache_key(info.name))}
    present = {key[1:]: info for info in made.values() if (key := _cache_key(info.name))}
    if not past:
        raise _fault(folder, "has no cache inputs (past_key_values.N.key and .value)")
    pairs: list[CachePair] = []
    for key in sorted(past):
        info = past[key]
        if key not in present:
            raise _fault(folder, f"takes {info.name} but has no output present.{key[0]}.{key[1]}")
        if len(info.dims) != 4:
            raise _fault(
                folder, f"has the cache input {info.name} with {len(info.dims)} dimensions"
            )
        # Exporters leave symbols where layers could differ; the configuration then has the sizes.
        said = folder.cache_shape
        heads = _size(info.dims[1], said and said.heads)
        width = _size(info.dims[3], said and said.width)
        if heads is None or width is None:
            raise _fault(
                folder,
                f"does not fix heads and width of {info.name}, nor does its configuration",
            )
        pairs.append(CachePair(info.name, present[key].name, info.dtype, heads, width))
    return tuple(pairs)


def _size(dim: int | str | None, said: int | None) -> int | None:
    return dim if isinstance(dim, int) else said
