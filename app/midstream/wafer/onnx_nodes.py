"""Classifies the nodes of an ONNX decoder one by one and follows how wide every activation is.

The result is a flat list of priced operators in graph order; :mod:`midstream.wafer.onnx_shape` cuts
it into layers.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace

from midstream.wafer.onnx_file import Graph, Node, TensorInfo
from midstream.wafer.onnx_ops import (
    ATTENTIONS,
    EMBEDDINGS,
    MATMULS,
    MIXTURES,
    NORMS,
    PLUMBING,
    ROTARY,
    SCALAR,
    VECTOR,
    WEIGHT_VIEWS,
)
from midstream.wafer.operators import Operator


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
            self.folded[op] += (
                1  # masks, positions and shapes: the same for every layer, prepared once
            )
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
        """A weight seen through a cast, a dequantisation or a transposition stays a weight."""
        source = node.inputs[0]
        dims = self.weights[source]
        self.weights[node.outputs[0]] = dims[::-1] if node.op_type == "Transpose" else dims
        self.bits[node.outputs[0]] = self.bits[source]
        self.origin[node.outputs[0]] = self.origin[source]

    def is_embedding(self, node: Node) -> bool:
        table = self.weights.get(node.inputs[0] if node.inputs else "", ())
        return len(table) == 2 and table[0] > 1 and table[1] > 1

    def lookup(self, node: Node) -> None:
        """A table read by token id: an embedding the first time, anything later (positions)
        alike.
        """
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
