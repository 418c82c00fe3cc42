"""From an ONNX decoder graph to operators: which node costs what, layer by layer.

Weight matrices become linear operators (projections that read the same tensor share one
collective); attention is priced whether fused (GroupQueryAttention, MultiHeadAttention, Attention)
or written out around a Softmax; norms, rotary embeddings, activations and mixtures of experts have
their own prices, and layout operators are folded into the placement.  A node of a type without a
price runs on the host and costs a round trip.

Layers are found by structure, not by name: a layer starts at the last full-width norm before its
attention.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from midstream.wafer.errors import ModelUnavailableError
from midstream.wafer.onnx_file import Graph, Node, TensorInfo, read_graph
from midstream.wafer.operators import Axis, Operator, Workload
from midstream.wafer.shape import ModelShape

MATMULS = frozenset(
    {"MatMul", "Gemm", "FusedMatMul", "FusedMatMulActivation", "MatMulInteger"}
    | {"DynamicQuantizeMatMul", "MatMulIntegerToFloat", "MatMulNBits", "MatMulBnb4"}
    | {"QLinearMatMul"}
)
ATTENTIONS = frozenset(
    {"GroupQueryAttention", "MultiHeadAttention", "Attention"}
    | {"DecoderMaskedMultiHeadAttention", "PagedAttention"}
)
NORMS = frozenset(
    {"SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization", "LayerNormalization"}
    | {"SkipLayerNormalization", "RMSNormalization", "SimplifiedLayerNormalizationFusion"}
    | {"ReduceMean", "LpNormalization"}
)
SCALAR = frozenset(
    {"Sigmoid", "QuickGelu", "Gelu", "FastGelu", "BiasGelu", "Tanh", "Erf", "Exp", "Silu"}
    | {"Swish", "Softplus", "HardSwish", "Mish", "Softmax", "LogSoftmax", "Reciprocal", "Sin"}
    | {"Cos", "Log", "TopK", "ArgMax"}
)
VECTOR = frozenset(
    {"Add", "Mul", "Sub", "Div", "Sqrt", "Pow", "Neg", "Abs", "Relu", "Clip", "Max", "Min"}
    | {"BiasAdd", "ReduceSum", "ReduceMax", "DynamicQuantizeLinear", "QuantizeLinear"}
    | {"DequantizeLinear", "Where"}
)
ROTARY = {"RotaryEmbedding", "GemmaRotaryEmbedding"}
MIXTURES = {"MoE", "QMoE"}
EMBEDDINGS = {"Gather", "GatherBlockQuantized", "EmbedLayerNormalization"}
PLUMBING = frozenset(
    {"Reshape", "Transpose", "Split", "Slice", "Concat", "Squeeze", "Unsqueeze", "Expand"}
    | {"Cast", "Identity", "Shape", "Constant", "ConstantOfShape", "Range", "Gather"}
    | {"GatherElements", "GatherND", "Tile", "Flatten", "Pad", "ScatterND", "ScatterElements"}
    | {"Dropout", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "And", "Or"}
    | {"Not", "CumSum", "Trilu", "IsNaN", "Mod", "Floor", "Ceil", "Size", "OneHot", "NonZero"}
)
WEIGHT_VIEWS = {"DequantizeLinear", "Cast", "Identity", "Transpose", "Reshape"}


@dataclass(slots=True)
class Found:
    """An operator with the node it came from and the tensor it reads."""

    operator: Operator
    node: Node
    reads: str


@dataclass(slots=True)
class NodeReader:
    graph: Graph
    weights: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    bits: dict[str, int] = field(default_factory=dict[str, int])
    origin: dict[str, str] = field(default_factory=dict[str, str])
    widths: dict[str, int] = field(default_factory=dict[str, int])
    found: list[Found] = field(default_factory=list[Found])
    folded: Counter[str] = field(default_factory=Counter[str])
    vocab: int = 0
    embedding: str = ""
    scores: set[str] = field(default_factory=set[str])
    probabilities: set[str] = field(default_factory=set[str])

    def read(self) -> None:
        """Walk the nodes in order."""
        for name, tensor in self.graph.initializers.items():
            self.weight(name, tensor, name)
        for info in self.graph.inputs:  # a decoder fed with embeddings instead of ids
            if len(info.dims) == 3 and info.bits >= 16 and isinstance(info.dims[2], int):
                self.widths[info.name] = info.dims[2]
        for node in self.graph.nodes:
            if node.constant is not None and node.outputs:
                self.weight(node.outputs[0], node.constant, node.outputs[0])
            else:
                self.node(node)

    def weight(self, name: str, tensor: TensorInfo, origin: str) -> None:
        self.weights[name] = tuple(d if isinstance(d, int) else 1 for d in tensor.dims)
        self.bits[name] = tensor.bits
        self.origin[name] = origin

    def width_in(self, node: Node) -> int:
        """Values per token of the widest activation a node reads; 0 when it reads none."""
        return max((self.widths.get(name, 0) for name in node.inputs), default=0)

    def emit(self, operator: Operator, node: Node, width: int) -> None:
        self.found.append(Found(operator, node, node.inputs[0] if node.inputs else ""))
        self.set_widths(node, width)

    def set_widths(self, node: Node, width: int) -> None:
        for output in node.outputs:
            if output and width:
                self.widths[output] = width

    def node(self, node: Node) -> None:
        """Classify one node."""
        op, width = node.op_type, self.width_in(node)
        if op in WEIGHT_VIEWS and node.inputs and node.inputs[0] in self.weights and not width:
            self.view(node)
        elif op in MATMULS:
            self.matmul(node, width)
        elif op in ATTENTIONS:
            self.attention(node)
        elif op in EMBEDDINGS and not width and self.is_embedding(node):
            self.lookup(node)
        elif not width and (op in PLUMBING or op in VECTOR or op in SCALAR or op == "ReduceMean"):
            # Masks, positions and shapes are the same for every layer and prepared once.
            self.folded[op] += 1
        elif op in NORMS:
            self.norm(node, width)
        elif op in MIXTURES:
            self.mixture(node, width)
        elif op in ROTARY:
            self.emit(Operator(op, "elementwise", width, vectors=3, op_types=(op,)), node, width)
        elif op == "Softmax" and self.scores.intersection(node.inputs):
            self.softmax(node)
        elif op in SCALAR or op in VECTOR:
            self.elementwise(node, width)
        elif op in PLUMBING:
            self.plumbing(node, width)
        else:
            host = Operator(op, "host", max(width, 1), op_types=(op,))
            self.emit(host, node, width)

    def view(self, node: Node) -> None:
        """A weight seen through a cast, a dequantisation or another shape stays a weight."""
        source = node.inputs[0]
        dims = self.weights[source]
        if node.op_type == "Transpose":
            dims = dims[::-1]
        elif node.op_type == "Reshape" and len(dims) == 3:
            # Rows, blocks and the bytes of a block (MatMulNBits), read by rows as an embedding.
            dims = (dims[0], dims[1] * dims[2])
        self.weights[node.outputs[0]] = dims
        self.bits[node.outputs[0]] = self.bits[source]
        self.origin[node.outputs[0]] = self.origin[source]

    def is_embedding(self, node: Node) -> bool:
        table = self.weights.get(node.inputs[0] if node.inputs else "", ())
        return len(table) == 2 and table[0] > 1 and table[1] > 1

    def lookup(self, node: Node) -> None:
        """A table read by token id: the first one is the embedding, later ones may be positions."""
        table = self.weights[node.inputs[0]]
        width = table[1]
        if node.op_type == "GatherBlockQuantized":
            width = table[1] * max(1, 8 // max(1, node.integer("bits", 4)))
            width = width if self.bits[node.inputs[0]] == 8 else table[1]
        if table[0] > self.vocab:
            self.vocab, self.embedding = table[0], self.origin[node.inputs[0]]
        self.folded[node.op_type] += 1
        self.set_widths(node, width)

    def matmul(self, node: Node, width: int) -> None:
        op = node.op_type
        if op in ("MatMulNBits", "MatMulBnb4"):
            k, n = node.integer("K"), node.integer("N")
            bits = node.integer("bits", 4)
            weight = node.inputs[1] if len(node.inputs) > 1 else ""
        else:
            position = 3 if op == "QLinearMatMul" else 1
            weight = node.inputs[position] if len(node.inputs) > position else ""
            dims = self.weights.get(weight, ())
            if len(dims) < 2:
                self.activations_product(node, width)
                return
            k, n = (dims[-1], dims[-2]) if node.integer("transB") else (dims[-2], dims[-1])
            bits = min(16, self.bits[weight] or 16)
        operator = Operator(op, "linear", k, n, weight_bits=bits, op_types=(op,))
        if not width:
            self.folded[op] += 1  # a product of constants, such as rotary angles from positions
            return
        self.emit(operator, node, n)
        self.origin.setdefault(node.outputs[0], self.origin.get(weight, weight))

    def activations_product(self, node: Node, width: int) -> None:
        """Scores or weighted values of a written-out attention; priced at its Softmax."""
        if not width:
            self.folded[node.op_type] += 1
            return
        if not self.probabilities.intersection(node.inputs):
            self.scores.update(node.outputs)
        self.set_widths(node, width)
        self.folded[node.op_type] += 1

    def softmax(self, node: Node) -> None:
        width = self.width_in(node)
        self.probabilities.update(node.outputs)
        operator = Operator("attention", "attention", width, width, op_types=("MatMul", "Softmax"))
        self.emit(operator, node, width)

    def attention(self, node: Node) -> None:
        heads = max(1, node.integer("num_heads", node.integer("q_num_heads", 1)))
        kv_heads = max(1, node.integer("kv_num_heads", heads))
        width = self.widths.get(node.inputs[0], 0) if node.inputs else 0
        second = "".join(node.inputs[1:2])
        built_in = self.weights.get(second, ())
        if len(built_in) == 2:  # com.microsoft Attention projects queries, keys and values itself
            bits = min(16, self.bits[second] or 16)
            k, n = built_in
            projection = Operator("qkv", "linear", k, n, weight_bits=bits, products=3)
            self.emit(replace(projection, op_types=(node.op_type,)), node, n)
            width = n // 3
        packed = len(node.inputs) < 3 or not node.inputs[1]
        if packed and width:
            width = width * heads // (heads + 2 * kv_heads)
        window = max(0, node.integer("local_window_size", 0))
        operator = Operator(
            "attention", "attention", width, width, window=window, op_types=(node.op_type,)
        )
        self.emit(operator, node, width)

    def norm(self, node: Node, width: int) -> None:
        operator = Operator(
            node.op_type, "norm", width, payload=1, vectors=4, op_types=(node.op_type,)
        )
        self.emit(operator, node, width)

    def elementwise(self, node: Node, width: int) -> None:
        op = node.op_type
        touched = self.scores.intersection(node.inputs)
        if touched:  # scale and mask of scores belong to the attention
            self.scores.update(node.outputs)
            self.set_widths(node, width)
            self.folded[op] += 1
            return
        scalars = width if op in SCALAR else 0
        operator = Operator(
            op, "elementwise", width, vectors=0 if scalars else 1, scalars=scalars, op_types=(op,)
        )
        self.emit(operator, node, width)

    def plumbing(self, node: Node, width: int) -> None:
        self.folded[node.op_type] += 1
        if self.scores.intersection(node.inputs):
            self.scores.update(node.outputs)
        if self.probabilities.intersection(node.inputs):
            self.probabilities.update(node.outputs)
        if node.op_type == "Split" and node.outputs:
            sizes = node.attributes.get("split")
            for index, output in enumerate(node.outputs):
                known = isinstance(sizes, tuple) and len(sizes) == len(node.outputs)
                part = sizes[index] if known and isinstance(sizes, tuple) else 0
                self.widths[output] = part or max(1, width // len(node.outputs))
            return
        self.set_widths(node, width)

    def mixture(self, node: Node, width: int) -> None:
        """MoE and QMoE: sizes of the experts' matrices from the two weight tensors."""
        quantised = node.op_type == "QMoE"
        names = [*node.inputs, *[""] * 6]
        up = self.weights.get(names[2], (1, 1))
        down = self.weights.get(names[5 if quantised else 4], (1, 1))
        bits = node.integer("expert_weight_bits", 4) if quantised else 16
        packed = 8 // bits if quantised else 1  # weights per stored byte
        active = max(1, node.integer("k", 1))
        inner = max(1, packed * math.prod(down[1:]) // max(1, width))
        ups = max(1, round(packed * math.prod(up[1:]) / max(1, width * inner)))
        gate_up = Operator(
            "experts_gate_up",
            "linear",
            width,
            ups * inner,
            copies=active,
            stored=up[0],
            payload=active * ups * inner,
            weight_bits=bits,
            products=ups,
            op_types=(node.op_type,),
        )
        activation = Operator(
            "experts_activation", "elementwise", active * inner, scalars=active * inner
        )
        expert_down = Operator(
            "experts_down",
            "linear",
            inner,
            width,
            axis="x",
            copies=active,
            stored=up[0],
            payload=width,
            weight_bits=bits,
            op_types=(node.op_type,),
        )
        for operator in (gate_up, activation, expert_down):
            self.emit(operator, node, width)


_LAYER_PREFIX = re.compile(r"^.*?(?:layers?|blocks?|h)[./_](\d+)[./_]")


def workload_from_onnx(path: Path, name: str | None = None) -> Workload:
    """Read an ONNX decoder and turn its nodes into operators.

    Args:
        path: The ``.onnx`` file; external weight data is not needed.
        name: Name of the shape (default: that of the file or its folder).

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
    """Width of the residual stream: the most common norm width, else projection output."""
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
    """Index of the final norm: the last full-width one after the last attention, before a
    projection.
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
    """A name that is the same in every layer: without layer prefix or running number."""
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
    """Whether the last projection reads the embedding table, transposed or not."""
    last = next((f for f in reversed(reader.found) if f.operator.kind == "linear"), None)
    if last is None or not head:
        return False
    return any(reader.origin.get(name, name) == reader.embedding for name in last.node.inputs)


def _cache_dims(graph: Graph, reader: NodeReader, query: int) -> tuple[int, int]:
    """Key/value heads and head width from the cache inputs or the attention node."""
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
