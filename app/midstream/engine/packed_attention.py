"""Attention that reads every key/value head once for all query heads that share it.

On CPUs, ONNX Runtime's ``GroupQueryAttention`` multiplies each query head by itself, so cache rows
that seven heads share are read seven times. Here that node is replaced by operators that put the
query heads of a group into one matrix, with one product per key/value head:

    scores = queries [group * tokens, width] x keys^T [width, capacity]

Interface, cache layout and arithmetic stay the same. Rotary embedding is ONNX Runtime's own
operator, and ``ScatterND`` writes new rows into the buffer that past and present share, without a
copy. The products run over the whole capacity of the cache with unused rows masked, so the capacity
should stay close to what is used.

The bits of a row depend neither on how many tokens run together nor on the capacity, if there are
two tokens or more and the capacity is a multiple of ``graph.CAPACITY_STEP``: sums over the cache
are then cut at the same rows, and the masked ones add exact zeros. ``_Writer._mix`` says what it
takes with several threads.

This module imports ``onnx``; it is itself imported only for models that gain by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from midstream.engine.tied_weights import name_twice

MAX_PACKED_TOKENS = 2
"""Up to this many tokens, keys are the first factor of the scores' product (``_Writer._score``);
with three and more that took longer (0.5B shape, contexts of 1,000 to 16,000 tokens)."""

MAX_FILE_BYTES = 64 << 20
"""Larger graph files hold their weights; editing one takes several times its size in memory."""

OTHER_ARITHMETIC = (
    "local_window_size",
    "softcap",
    "smooth_softmax",
    "qk_output",
    "kv_cache_bit_width",
)
"""Attributes of ``GroupQueryAttention`` that change what it computes unless they are 0 or -1."""


@dataclass(frozen=True, slots=True)
class _Heads:
    """The heads of a layer.

    Attributes:
        queries: Query heads.
        keys: key/value heads.
        width: Numbers in a head.
        scale: What scores are multiplied by.
        interleaved: Which numbers rotary embedding pairs, as ``RotaryEmbedding`` takes it.
    """

    queries: int
    keys: int
    width: int
    scale: float
    interleaved: int

    @property
    def group(self) -> int:
        return self.queries // self.keys


def pack_attention(graph: Path, *, tokens: str, threads: int) -> bytes | None:
    """Return a graph with packed attention, serialised; None if its attention cannot be packed.

    Every attention has to be a causal ``GroupQueryAttention`` in float32 on packed queries, keys
    and values, with rotary embedding and without a window or soft cap: what ONNX Runtime GenAI's
    builder writes for CPUs.

    Args:
        graph: An ONNX file whose weights are in other files.
        tokens: The input that takes token ids.
        threads: Threads inside one operator.
    """
    if graph.stat().st_size > MAX_FILE_BYTES:
        return None
    model = onnx.ModelProto.FromString(graph.read_bytes())
    attentions = [node for node in model.graph.node if node.op_type == "GroupQueryAttention"]
    kinds = {_heads(model, node) for node in attentions}
    lengths = {node.input[5] for node in attentions}
    heads = next(iter(kinds), None)
    if len(kinds) != 1 or len(lengths) != 1 or heads is None or heads.queries < threads:
        return None
    writer = _Writer(heads, threads)
    first = attentions[0]
    before = writer.common(tokens, length=first.input[5], past=first.input[3])
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        if node.op_type != "GroupQueryAttention":
            nodes.append(node)
            continue
        nodes += before + writer.layer(node)
        before = []
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(writer.constants)
    name_twice(model)
    return model.SerializeToString()


def _heads(model: onnx.ModelProto, node: onnx.NodeProto) -> _Heads | None:
    """The heads of an attention; None if it is not one that can be packed."""
    said: dict[str, Any] = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if not node.input[0] or any(node.input[1:3]) or any(node.input[9:]) or any(node.output[3:]):
        return None
    if not said.get("do_rotary") or not said.get("causal", 1):
        return None
    if any(said.get(name, 0) not in (0, -1) for name in OTHER_ARITHMETIC):
        return None
    past = next((given for given in model.graph.input if given.name == node.input[3]), None)
    cosines = next((c for c in model.graph.initializer if c.name == node.input[7]), None)
    if past is None or cosines is None or past.type.tensor_type.elem_type != TensorProto.FLOAT:
        return None
    queries, keys = int(said["num_heads"]), int(said["kv_num_heads"])
    turned = 2 * int(cosines.dims[1])
    # The builder leaves the width open. It differs where only a part of a head is rotated.
    width = past.type.tensor_type.shape.dim[3].dim_value or turned
    if width != turned or queries % keys:
        return None
    scale = float(said.get("scale", 0.0)) or width**-0.5
    return _Heads(queries, keys, width, scale, int(said.get("rotary_interleaved", 0)))


class _Writer:
    """Writes the nodes that take the place of attention; their names begin with "packed/"."""

    def __init__(self, heads: _Heads, threads: int) -> None:
        self._heads = heads
        self._threads = threads
        self._scope = "packed"
        self._nodes: list[onnx.NodeProto] = []
        self._lists: dict[tuple[int, ...], str] = {}
        self._begin = self._places = self._mask = self._few = self._parts = ""
        self.constants: list[TensorProto] = []

    def common(self, tokens: str, *, length: str, past: str) -> list[onnx.NodeProto]:
        """Return the nodes that all layers use: where new rows go, and the causal mask.

        Args:
            tokens: int64 [1, S], the token ids.
            length: int32, one number: the last position after the run.
            past: A cache tensor, [1, heads, capacity, width].
        """
        zero, one, two = (self._constant(np.int64(n), f"number_{n}") for n in (0, 1, 2))
        count = self._add("Gather", [self._add("Shape", [tokens], "tokens_shape"), one], "count")
        last = self._add("Cast", [length], "last", to=TensorProto.INT64)
        last = self._add("Reshape", [last, self._list(1)], "last_position")
        self._begin = self._add("Sub", [self._add("Add", [last, one], "end"), count], "begin")
        span = self._add("Range", [zero, count, one], "span")
        rows = self._add("Add", [span, self._begin], "rows")
        self._places = self._indices(rows)
        size = self._add("Gather", [self._add("Shape", [past], "past_shape"), two], "capacity")
        self._mask = self._causal(rows, self._add("Range", [zero, size, one], "columns"))
        few = self._constant(np.int64(MAX_PACKED_TOKENS), "few_tokens")
        self._few = self._add("LessOrEqual", [count, few], "few")
        single = self._add("Equal", [count, one], "single")
        parts = [self._list(n) for n in (self._heads.group, self._fewest_parts())]
        # A shape to reshape to: heads, parts, rows, and the capacity as it is.
        sizes = [self._list(self._heads.keys), self._add("Where", [single, *parts], "part_count")]
        self._parts = self._add("Concat", [*sizes, self._list(-1, 0)], "parts", axis=0)
        return self._taken()

    def layer(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Return the nodes that compute one ``GroupQueryAttention``."""
        heads, (out, key, value) = self._heads, node.output[:3]
        self._scope = f"packed/{out}"
        shape = self._list(1, -1, heads.queries + 2 * heads.keys, heads.width)
        rows = self._add("Reshape", [node.input[0], shape], "rows")
        rows = self._add("Transpose", [rows], "by_head", perm=[0, 2, 1, 3])
        positioned, values = self._split(rows, heads.queries + heads.keys, heads.keys)
        rotary: dict[str, Any] = {
            "domain": "com.microsoft",
            "interleaved": heads.interleaved,
        }
        angles = node.input[7:9]
        turned = self._add(
            "RotaryEmbedding", [positioned, self._begin, *angles], "turned", **rotary
        )
        queries, keys = self._split(turned, heads.queries, heads.keys)
        self._make("ScatterND", [node.input[3], self._places, keys], key)
        self._make("ScatterND", [node.input[4], self._places, values], value)
        shape = self._list(1, heads.keys, -1, heads.width)
        queries = self._add("Reshape", [queries, shape], "queries")
        scores = self._add("Add", [self._score(queries, key), self._mask], "masked")
        mixed = self._mix(self._add("Softmax", [scores], "shares", axis=-1), value)
        shape = self._list(1, heads.queries, -1, heads.width)
        mixed = self._add("Reshape", [mixed, shape], "mixed_by_head")
        mixed = self._add("Transpose", [mixed], "mixed_by_token", perm=[0, 2, 1, 3])
        self._make("Reshape", [mixed, self._list(1, -1, heads.queries * heads.width)], out)
        return self._taken()

    def _indices(self, rows: str) -> str:
        """Batch, head and row of every new row, [1, heads, S, 3]."""
        heads = self._constant(np.arange(self._heads.keys)[:, None], "heads")
        zeros = self._constant(np.zeros((self._heads.keys, 1), np.int64), "zeros")
        nothing = self._add("Sub", [rows, rows], "nothing")
        parts: list[str] = []
        for name, down, across in (
            ("batch", zeros, nothing),
            ("head", heads, nothing),
            ("row", zeros, rows),
        ):
            grid = self._add("Add", [down, across], f"{name}_grid")
            parts.append(self._add("Unsqueeze", [grid, self._list(-1)], f"{name}_index"))
        joined = self._add("Concat", parts, "indices", axis=-1)
        return self._add("Unsqueeze", [joined, self._list(0)], "places")

    def _causal(self, rows: str, columns: str) -> str:
        """0 where a row may look and minus infinity elsewhere, [1, 1, group * S, capacity]."""
        lines = self._add("Unsqueeze", [rows, self._list(-1)], "lines")
        visible = self._add("LessOrEqual", [columns, lines], "visible")
        seen = self._constant(np.float32(0), "seen")
        unseen = self._constant(np.float32(-np.inf), "unseen")
        mask = self._add("Where", [visible, seen, unseen], "mask")
        mask = self._add("Tile", [mask, self._list(self._heads.group, 1)], "mask_of_group")
        return self._add("Unsqueeze", [mask, self._list(0, 1)], "mask_of_all")

    def _score(self, queries: str, keys: str) -> str:
        """Multiply queries by keys: [1, heads, group * S, capacity].

        A product streams its first factor and copies its second one aside. With few tokens the keys
        are much the larger factor and come first; with many, transposing the result costs more.
        A score is a sum over the width of a head, in the same order either way.
        """
        by_row, few, many = (f"{self._scope}/scores_{n}" for n in ("by_row", "few", "many"))
        product: dict[str, Any] = {
            "domain": "com.microsoft",
            "alpha": self._heads.scale,
            "transB": 1,
        }
        keys_first = [
            helper.make_node("FusedMatMul", [keys, queries], [by_row], **product),
            helper.make_node("Transpose", [by_row], [few], perm=[0, 1, 3, 2]),
        ]
        queries_first = [helper.make_node("FusedMatMul", [queries, keys], [many], **product)]
        shape = [1, self._heads.keys, None, None]
        branches = [
            helper.make_graph(
                nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
            )
            for nodes, name in ((keys_first, few), (queries_first, many))
        ]
        return self._add(
            "If", [self._few], "scores", then_branch=branches[0], else_branch=branches[1]
        )

    def _mix(self, shares: str, values: str) -> str:
        """Multiply shares by values: [heads, parts, group / parts * S, width].

        ONNX Runtime cuts a product between threads by rows or by columns, whichever are more, and
        the columns of a piece say how sums over the cache are cut. Each thread needs a whole
        product of its own, so that a row's bits do not depend on the number of rows; with more
        threads than key/value heads, the query heads of a group are parted for that.

        A single token, which is never run where bits matter, has a product for each query head: one
        row is multiplied without copying the values aside.
        """
        shares = self._add("Reshape", [shares, self._parts], "shares_parted")
        shape = self._list(self._heads.keys, 1, -1, self._heads.width)
        values = self._add("Reshape", [values, shape], "values")
        return self._add("MatMul", [shares, values], "mixed")

    def _fewest_parts(self) -> int:
        """The fewest equal parts of a group that give every thread a product."""
        heads = self._heads
        every = (n for n in range(1, heads.group + 1) if heads.group % n == 0)
        return next((n for n in every if heads.keys * n >= self._threads), heads.group)

    def _split(self, rows: str, *sizes: int) -> Sequence[str]:
        """Split [1, heads, S, width] by heads."""
        names = [f"{rows}/{index}" for index in range(len(sizes))]
        self._nodes.append(helper.make_node("Split", [rows, self._list(*sizes)], names, axis=1))
        return names

    def _add(self, kind: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        return self._make(kind, inputs, f"{self._scope}/{name}", **attributes)

    def _make(self, kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def _list(self, *values: int) -> str:
        """A constant: a shape, axes, sizes. Each is written once."""
        if values not in self._lists:
            name = "list_" + "_".join(map(str, values))
            self._lists[values] = self._constant(np.array(values, np.int64), name)
        return self._lists[values]

    def _constant(self, value: Any, name: str) -> str:
        name = f"packed/{name}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def _taken(self) -> list[onnx.NodeProto]:
        nodes, self._nodes = self._nodes, []
        return nodes
