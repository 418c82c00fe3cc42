"""Reads a decoder graph's inputs and outputs: what has to be fed, what comes back, how the cache is
laid out.

Nothing is assumed from a model's name: an input that nobody knows how to feed is an error that
names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from midstream.engine.folder import ModelFolder, ModelFolderError

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
class TensorInfo:
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


@dataclass(frozen=True, slots=True)
class GraphIO:
    """The interface of one decoder graph.

    Attributes:
        tokens: the input that takes token ids, [1, S].
        logits: the output, [1, S, vocabulary], or [1, 1, vocabulary] where a graph keeps only the
        last.
        extras: the other inputs by their known name (see `EXTRAS`).
        cache: the cache tensors, layer by layer; each is [1, heads, length, width].
    """

    tokens: TensorInfo
    logits: TensorInfo
    extras: Mapping[str, TensorInfo]
    cache: tuple[CachePair, ...]

    @property
    def row_bytes(self) -> int:
        """Bytes that one token takes in the cache."""
        return sum(pair.heads * pair.width * np.dtype(pair.dtype).itemsize for pair in self.cache)


def read_graph_io(folder: ModelFolder, inputs: Iterable[Any], outputs: Iterable[Any]) -> GraphIO:
    """Match a session's inputs and outputs with their meaning.

    Args:
        folder: the folder the graph is from (its name table, and its name in errors).
        inputs: `session.get_inputs()`.
        outputs: `session.get_outputs()`.

    Raises:
        ModelFolderError: an input is unknown, or tokens, logits or a cache tensor are missing.
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
    extras: dict[str, TensorInfo] = {}
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


def _listed(tensors: Mapping[str, TensorInfo]) -> str:
    """Return names for a sentence, without the many of the cache."""
    names = [name for name in tensors if _cache_key(name) is None]
    return ", ".join(names[:6]) + (" and a cache" if len(names) < len(tensors) else "")


def _fault(folder: ModelFolder, what: str) -> ModelFolderError:
    return ModelFolderError(f"{folder.graph} {what}; it is no decoder that Midstream can run.")


def _tensor_info(folder: ModelFolder) -> Callable[[Any], TensorInfo]:
    def convert(value: Any) -> TensorInfo:
        kind = str(value.type)
        if kind not in TYPES:
            raise _fault(folder, f"uses {kind} for {value.name}")
        return TensorInfo(str(value.name), TYPES[kind], tuple(value.shape))

    return convert


_LAYER = re.compile(r"^(?P<stem>past|present)\D*(?P<layer>\d+)\D*?(?P<kind>key|value)$")
_KIND_FIRST = re.compile(r"^(?P<stem>past|present)\D*(?P<kind>key|value)\D*(?P<layer>\d+)$")


def _cache_key(name: str) -> tuple[str, int, str] | None:
    """Return ("past" or "present", layer, "key" or "value") for a cache tensor's name."""
    match = _LAYER.match(name) or _KIND_FIRST.match(name)
    return (match["stem"], int(match["layer"]), match["kind"]) if match else None


def _cache_pairs(
    folder: ModelFolder, given: Mapping[str, TensorInfo], made: Mapping[str, TensorInfo]
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
        heads, width = info.dims[1], info.dims[3]
        if not isinstance(heads, int) or not isinstance(width, int):
            raise _fault(folder, f"does not fix heads and width of {info.name}")
        pairs.append(CachePair(info.name, present[key].name, info.dtype, heads, width))
    return tuple(pairs)
