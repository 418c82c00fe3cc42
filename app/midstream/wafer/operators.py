"""Operators: what one token or chunk makes a decoder compute, whatever its placement and cost.

A ``ModelShape`` expands into the operators of each layer kind and of the output head.  An ONNX
graph is turned into the same operators (``wafer.onnx_shape``), so one function
(``wafer.cost``) prices both.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Literal

from midstream.wafer.shape import LatentAttention, LayerKind, ModelShape

Kind = Literal["linear", "attention", "norm", "elementwise", "head", "lookup", "host", "folded"]
Axis = Literal["x", "y"]


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator, or several that share one collective.

    Attributes:
        name: Readable name, unique within its layer.
        kind: How it is priced.
        k: Rows of the weight matrix (``linear``, ``head``), width of the query side
            (``attention``), otherwise vector width.
        n: Columns of the weight matrix, value width for ``attention``.
        axis: Mesh axis along which partial results are reduced; alternating axes need no
            transposes.
        copies: Matrices of this size that a token visits (active experts).
        stored: Matrices of this size in SRAM (all experts).
        payload: Values all-reduced per token, 0 for no collective; default ``copies * n`` for
            ``linear``.
        weight_bits: Bits per stored weight; 0 means the plan decides.
        scalars: Values that go through scalar code (exp, divide) per token.
        vectors: Vector instructions over ``k`` values per token.
        window: Attention window in tokens, 0 for none.
        products: Separate matrix products in prefill, where the published kernels do not fuse.
        alone: Whether it is a program of its own: nothing of a layer runs around its collective.
        op_types: ONNX operator types that it stands for.
    """

    name: str
    kind: Kind
    k: int
    n: int = 0
    axis: Axis = "y"
    copies: int = 1
    stored: int = 1
    payload: int | None = None
    weight_bits: int = 0
    scalars: int = 0
    vectors: int = 0
    window: int = 0
    products: int = 1
    alone: bool = False
    op_types: tuple[str, ...] = ()

    @property
    def reduced(self) -> int:
        """Values all-reduced per token."""
        if self.payload is not None:
            return self.payload
        return self.copies * self.n if self.kind in ("linear", "head") else 0

    @property
    def weights(self) -> int:
        """Weights kept in SRAM for this operator."""
        if self.kind in ("linear", "head", "lookup"):
            return self.stored * self.k * self.n
        return self.k if self.kind == "norm" else 0

    def stored_bytes(self, weight_bits: int) -> float:
        """Bytes of the stored weights where the plan keeps ``weight_bits`` per weight."""
        bits = 16 if self.kind == "norm" else self.weight_bits or weight_bits
        return self.weights * bits / 8

    @property
    def active_weights(self) -> int:
        """Weights that one token touches; a lookup touches one row, which counts as none."""
        if self.kind == "lookup":
            return 0
        return self.copies * self.k * self.n if self.kind in ("linear", "head") else self.weights

    def macs(self, context: int) -> int:
        """Multiply-adds for one token with ``context`` cached tokens."""
        if self.kind in ("linear", "head"):
            return self.copies * self.k * self.n
        if self.kind == "attention":
            seen = min(context, self.window) if self.window else context
            return (self.k + self.n) * seen
        return 0


@dataclass(frozen=True, eq=False)
class Workload:
    """The operators of a whole decoder, one list per distinct kind of layer.  Compared by identity.

    Attributes:
        shape: The model's dimensions.
        kinds: Operators of each distinct kind of layer, in execution order.
        layer_kinds: For every layer, the index of its kind.
        head: Operators after the last layer.
        nodes: For graphs, the node names behind ``(layer or None, operator name)``.
        product: Whether it is just one matrix-vector product.
    """

    shape: ModelShape
    kinds: tuple[tuple[Operator, ...], ...]
    layer_kinds: tuple[int, ...]
    head: tuple[Operator, ...]
    nodes: dict[tuple[int | None, str], tuple[str, ...]] = field(
        default_factory=dict[tuple[int | None, str], tuple[str, ...]]
    )
    product: bool = False

    def operators(self, kind: int | None) -> tuple[Operator, ...]:
        """Operators of a layer kind, or of the head for None."""
        return self.head if kind is None else self.kinds[kind]


@cache
def workload_of(shape: ModelShape) -> Workload:
    """The operators that a shape implies."""
    kinds = list(shape.layer_kinds())
    return Workload(
        shape,
        tuple(tuple(layer_operators(shape, kind)) for kind in kinds),
        tuple(kinds.index(shape.layer_kind(index)) for index in range(shape.layers)),
        tuple(head_operators(shape)),
    )


@cache
def product_of(rows: int, columns: int) -> Workload:
    """One product of a vector with a ``rows x columns`` matrix, as a decoder of one operator."""
    square = f"gemv-{rows}" if rows == columns else f"gemv-{rows}x{columns}"
    shape = ModelShape(
        square, layers=1, hidden=rows, heads=1, kv_heads=1, head_dim=1, ffn=0, vocab=0
    )
    product = Operator("gemv", "linear", rows, columns, alone=True, op_types=("MatMul",))
    return Workload(shape, ((product,),), (0,), (), product=True)


@lru_cache(maxsize=64)
def at_one_precision(workload: Workload) -> Workload:
    """The workload with all weights at the plan's precision, whatever its graph stores them in."""

    def cleared(operators: tuple[Operator, ...]) -> tuple[Operator, ...]:
        return tuple(replace(op, weight_bits=0) for op in operators)

    kinds = tuple(cleared(kind) for kind in workload.kinds)
    return replace(workload, kinds=kinds, head=cleared(workload.head))


def layer_operators(shape: ModelShape, kind: LayerKind) -> list[Operator]:
    """The operators of one layer in execution order."""
    return [*_attention_part(shape, kind), *_feed_forward_part(shape, kind)]


def head_operators(shape: ModelShape) -> list[Operator]:
    """Final norm, output projection and arg-max; empty for a shape without vocabulary."""
    if not shape.vocab:
        return []
    return [
        _norm("final_norm", shape.hidden),
        Operator("lm_head", "head", shape.hidden, shape.vocab, op_types=("MatMul",)),
    ]


def _norm(name: str, width: int) -> Operator:
    """RMS norm: square, sum, one scalar all-reduce, two multiplications."""
    return Operator(
        name, "norm", width, payload=1, vectors=4, op_types=("SimplifiedLayerNormalization",)
    )


def _attention_part(shape: ModelShape, kind: LayerKind) -> list[Operator]:
    if shape.latent is not None:
        return _latent_attention(shape, shape.latent, kind)
    query, kv = shape.query_width, shape.kv_width
    return [
        _norm("input_norm", shape.hidden),
        Operator(
            "qkv_proj", "linear", shape.hidden, query + 2 * kv, products=3, op_types=("MatMul",)
        ),
        Operator("rope", "elementwise", query + kv, vectors=3, op_types=("RotaryEmbedding",)),
        Operator(
            "attention",
            "attention",
            query,
            query,
            window=kind.window,
            op_types=("GroupQueryAttention",),
        ),
        Operator("o_proj", "linear", query, shape.hidden, axis="x", op_types=("MatMul",)),
        Operator("attn_residual", "elementwise", shape.hidden, vectors=1, op_types=("Add",)),
    ]


def _latent_attention(shape: ModelShape, mla: LatentAttention, kind: LayerKind) -> list[Operator]:
    """Latent attention with absorbed projections: scores and sums in the compressed space.

    Two projections act head by head (block-diagonal), so their multiply-adds are ``heads * a * b``
    and their outputs ``heads * b`` wide.
    """
    heads = shape.heads
    latent_query = heads * (mla.kv_rank + mla.rope_dim)
    return [
        _norm("input_norm", shape.hidden),
        Operator(
            "q_a_kv_a_proj", "linear", shape.hidden, mla.query_rank + mla.kv_rank + mla.rope_dim
        ),
        _norm("q_a_kv_a_norm", mla.query_rank + mla.kv_rank),
        Operator("q_b_proj", "linear", mla.query_rank, heads * (mla.nope_dim + mla.rope_dim), "x"),
        Operator("rope", "elementwise", heads * mla.rope_dim, vectors=3),
        Operator(
            "k_absorb",
            "linear",
            heads * mla.nope_dim,
            mla.kv_rank,
            payload=heads * mla.kv_rank,
        ),
        Operator(
            "latent_attention",
            "attention",
            latent_query,
            heads * mla.kv_rank,
            window=kind.window,
            op_types=("MultiHeadAttention",),
        ),
        Operator(
            "v_absorb",
            "linear",
            heads * mla.kv_rank,
            mla.value_dim,
            payload=heads * mla.value_dim,
        ),
        Operator("o_proj", "linear", heads * mla.value_dim, shape.hidden, axis="x"),
        Operator("attn_residual", "elementwise", shape.hidden, vectors=1),
    ]


def _feed_forward_part(shape: ModelShape, kind: LayerKind) -> list[Operator]:
    ups = 2 if shape.gated else 1
    norm = _norm("post_norm", shape.hidden)
    residual = Operator("ffn_residual", "elementwise", shape.hidden, vectors=1, op_types=("Add",))
    if not kind.moe:
        inner = shape.ffn
        return [
            norm,
            Operator(
                "gate_up_proj",
                "linear",
                shape.hidden,
                ups * inner,
                products=ups,
                op_types=("MatMul",),
            ),
            _activation(inner, shape.gated),
            Operator("down_proj", "linear", inner, shape.hidden, axis="x", op_types=("MatMul",)),
            residual,
        ]
    return [norm, *expert_operators(shape, ups), residual]


def expert_operators(shape: ModelShape, ups: int) -> list[Operator]:
    """A mixture layer with every expert sliced over the whole rectangle.

    For a single stream this beats one rectangle per expert: weights of the chosen experts are
    local, active experts share one collective per projection, and the weighted sum is taken before
    the last one.  The router adds its projection and a small collective that agrees on the top k.
    """
    active = shape.experts_active
    inner = active * shape.expert_ffn + shape.shared_ffn
    operators = [
        Operator("router", "linear", shape.hidden, shape.experts, weight_bits=16),
        Operator(
            "top_k", "elementwise", shape.experts, payload=2 * active, axis="x", scalars=active
        ),
        Operator(
            "experts_gate_up",
            "linear",
            shape.hidden,
            ups * shape.expert_ffn,
            copies=active,
            stored=shape.experts,
            payload=ups * inner,
            products=ups,
            op_types=("MoE",),
        ),
    ]
    if shape.shared_ffn:
        operators.append(
            Operator("shared_gate_up", "linear", shape.hidden, ups * shape.shared_ffn, payload=0)
        )
    operators.append(_activation(inner, shape.gated))
    if shape.shared_ffn:
        operators.append(
            Operator("shared_down", "linear", shape.shared_ffn, shape.hidden, "x", payload=0)
        )
    operators.append(
        Operator(
            "experts_down",
            "linear",
            shape.expert_ffn,
            shape.hidden,
            axis="x",
            copies=active,
            stored=shape.experts,
            payload=shape.hidden,
            op_types=("MoE",),
        )
    )
    return operators


def _activation(inner: int, gated: bool) -> Operator:
    return Operator(
        "activation",
        "elementwise",
        inner,
        scalars=inner,
        vectors=1 if gated else 0,
        op_types=("Sigmoid", "Mul") if gated else ("Gelu",),
    )
