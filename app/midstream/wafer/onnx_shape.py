"""From an ONNX decoder graph to operators: which node costs what, layer by layer.

Weight matrices become linear operators (projections that read the same tensor share one
collective), attention is priced whether fused (GroupQueryAttention, MultiHeadAttention, Attention)
or written out around a Softmax, norms, rotary embeddings, activations and mixtures of experts have
their own prices, and layout plumbing is folded into the placement.  A node of a type nobody priced
goes to the host and costs a round trip: never nothing.

Layers are found by structure, not by name: a layer starts at the last full-width norm before its
attention.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from midstream.wafer.errors import ModelUnavailableError
from midstream.wafer.onnx_file import Graph, Node, read_graph
from midstream.wafer.onnx_nodes import Found, NodeReader
from midstream.wafer.operators import Axis, Operator, Workload
from midstream.wafer.shape import ModelShape

_LAYER_PREFIX = re.compile(r"^.*?(?:layers?|blocks?|h)[./_](\d+)[./_]")


def workload_from_onnx(path: Path, name: str | None = None) -> Workload:
    """Read an ONNX decoder and turn its nodes into operators.

    Args:
        path: The ``.onnx`` file; external weight data is not needed.
        name: Name of the resulting shape; the file's (or its folder's) name otherwise.

    Raises:
        ModelUnavailableError: It cannot be read, or has no attention and no weight matrix to place.
    """
    graph = read_graph(path)
    reader = NodeReader(graph)
    reader.read()
    if not any(f.operator.kind == "linear" for f in reader.found):
        raise ModelUnavailableError(
            f"'{path}' has no weight matrices that could be placed on a wafer."
        )
    label = name or (path.parent.name if path.stem.startswith("model") else path.stem)
    return _assemble(reader, label or path.stem, str(path.name))


def _assemble(reader: NodeReader, name: str, source: str) -> Workload:
    found = reader.found
    hidden = _residual_width(found)
    starts = _layer_starts(found, hidden)
    head_at = _head_start(found, hidden, starts)
    bounds = [*starts, head_at]
    nodes: dict[tuple[int | None, str], tuple[str, ...]] = {}
    kinds: dict[tuple[Operator, ...], int] = {}
    layer_kinds: list[int] = []
    for layer, (start, stop) in enumerate(pairwise(bounds)):
        begin = 0 if layer == 0 else start
        operators = _fuse(found[begin:stop], hidden, layer, nodes)
        layer_kinds.append(kinds.setdefault(operators, len(kinds)))
    head = _fuse(found[head_at:], hidden, None, nodes)
    head = tuple(replace(op, kind="head") if op.kind == "linear" else op for op in head)
    shape = _shape(reader, name, source, hidden, len(layer_kinds), tuple(kinds), head)
    return Workload(shape, tuple(kinds), tuple(layer_kinds), head, nodes)


def _residual_width(found: list[Found]) -> int:
    """Width of the residual stream: the most common norm width, else the most common projection
    output.
    """
    norms = Counter(f.operator.k for f in found if f.operator.kind == "norm")
    outputs = Counter(f.operator.n for f in found if f.operator.kind == "linear")
    widths = norms or outputs
    return max(widths, key=lambda width: (widths[width], width))


def _layer_starts(found: list[Found], hidden: int) -> list[int]:
    """Index of the first operator of every layer; one layer when there is no attention."""
    starts: list[int] = []
    previous = 0
    for index, item in enumerate(found):
        if item.operator.kind != "attention":
            continue
        begin = previous
        for back in range(index, previous - 1, -1):
            operator = found[back].operator
            if operator.kind == "norm" and operator.k == hidden:
                begin = back
                break
        starts.append(begin)
        previous = index + 1
    return starts or [0]


def _head_start(found: list[Found], hidden: int, starts: list[int]) -> int:
    """Index of the final norm: the last full-width norm after the last layer's attention, if a
    projection follows.
    """
    linears = [i for i, f in enumerate(found) if f.operator.kind == "linear"]
    last = linears[-1]
    if last < starts[-1] or found[last].operator.n == hidden:
        return len(found)
    for index in range(last, starts[-1], -1):
        operator = found[index].operator
        if operator.kind == "norm" and operator.k == hidden:
            return index
        if operator.kind == "linear" and index != last:
            return last
    return last


def _fuse(
    found: list[Found],
    hidden: int,
    layer: int | None,
    nodes: dict[tuple[int | None, str], tuple[str, ...]],
) -> tuple[Operator, ...]:
    """Name the operators of one segment and merge projections that read the same tensor."""
    merged: list[Operator] = []
    by_input: dict[str, int] = {}
    taken: Counter[str] = Counter()
    mixed_already = False
    for item in found:
        operator, node = item.operator, item.node
        if operator.kind == "attention":
            mixed_already = True
        if operator.kind == "linear" and operator.stored == 1 and item.reads in by_input:
            at = by_input[item.reads]
            first = merged[at]
            merged[at] = replace(first, n=first.n + operator.n, products=first.products + 1)
            nodes[layer, first.name] += (node.name,)
            continue
        label = _label(node, operator)
        taken[label] += 1
        label = label if taken[label] == 1 else f"{label}#{taken[label]}"
        axis: Axis = operator.axis
        if (
            operator.kind == "linear"
            and operator.stored == 1
            and operator.n == hidden
            and mixed_already
        ):
            axis = "x"
        if operator.kind == "linear" and operator.stored == 1:
            by_input[item.reads] = len(merged)
        nodes[layer, label] = (node.name,)
        merged.append(replace(operator, name=label, axis=axis))
    return tuple(merged)


def _label(node: Node, operator: Operator) -> str:
    """A name that is the same in every layer: the node's without its layer prefix or running
    number.
    """
    if operator.name == "qkv" or operator.name.startswith("experts_"):
        return operator.name
    tail = _LAYER_PREFIX.sub("", node.name)
    tail = re.sub(r"_\d+$", "", tail)
    return tail or node.op_type


def _shape(
    reader: NodeReader,
    name: str,
    source: str,
    hidden: int,
    layers: int,
    kinds: tuple[tuple[Operator, ...], ...],
    head: tuple[Operator, ...],
) -> ModelShape:
    operators = [op for kind in kinds for op in kind]
    attention = next((op for op in operators if op.kind == "attention"), None)
    query = attention.k if attention and attention.k else hidden
    kv_heads, head_dim = _cache_dims(reader.graph, reader, query)
    heads = max(1, query // head_dim)
    if heads % kv_heads:
        kv_heads = heads
    projection = next((op for op in head if op.kind == "head"), None)
    vocab = projection.n if projection else 0
    inner = max(
        (op.k for op in operators if op.kind == "linear" and op.axis == "x"), default=hidden
    )
    linear_bits = [op.weight_bits for op in operators if op.kind == "linear"]
    bits = Counter(linear_bits).most_common(1)[0][0] if linear_bits else 16
    return ModelShape(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        ffn=inner,
        vocab=vocab,
        tied=not reader.embedding or _is_tied(reader, head),
        window=max((op.window for op in operators), default=0),
        full_every=0,
        native_bits=bits if bits in (4, 8, 16) else 16,
        source=f"ONNX graph {source}",
    )


def _is_tied(reader: NodeReader, head: tuple[Operator, ...]) -> bool:
    """Whether the last projection reads the embedding table (directly or through a
    transposition).
    """
    last = next((f for f in reversed(reader.found) if f.operator.kind == "linear"), None)
    if last is None or not head:
        return False
    return any(reader.origin.get(name, name) == reader.embedding for name in last.node.inputs)


def _cache_dims(graph: Graph, reader: NodeReader, query: int) -> tuple[int, int]:
    """Key/value heads and head width from the cache inputs, or from the attention node's
    attributes.
    """
    for info in graph.inputs:
        lowered = info.name.lower()
        if (
            len(info.dims) == 4
            and "past" in lowered
            and ("key" in lowered or lowered.endswith(".k"))
        ):
            heads, width = info.dims[1], info.dims[3]
            if isinstance(heads, int) and isinstance(width, int) and heads > 0 and width > 0:
                return heads, width
    for item in reader.found:
        heads = item.node.integer("num_heads", 0)
        if item.operator.kind == "attention" and heads:
            return max(1, item.node.integer("kv_num_heads", heads)), max(1, query // heads)
    width = 64 if query % 64 == 0 else query
    return max(1, query // width), width
