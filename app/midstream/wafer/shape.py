"""Model shapes: the numbers of a decoder that decide its placement and its cost.

A ``ModelShape`` says how many layers, how wide, which attention (full, grouped, sliding,
latent) and which feed-forward part (dense, mixture of experts) a decoder has, and counts weights
and cache bytes exactly.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from midstream.wafer.errors import WaferUsageError


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek, Kimi): widths of the compressed parts."""

    query_rank: int
    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True)
class LayerKind:
    """The features that tell layers apart: feed-forward part and attention window (0: full)."""

    moe: bool
    window: int


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A decoder's dimensions.

    Attributes:
        name: Preset or file name.
        layers: Decoder layers.
        hidden: Width of the residual stream.
        heads: Query heads.
        kv_heads: Key/value heads (equal to ``heads`` without grouping).
        head_dim: Width of one head.
        ffn: Inner width of the dense feed-forward part.
        vocab: Vocabulary size; 0 when the graph has no output projection.
        gated: Whether the feed-forward part has a gate matrix (SwiGLU) beside up and down.
        tied: Whether the input embedding and the output projection share one matrix.
        experts: Experts per mixture layer, 0 for dense models.
        experts_active: Experts a token visits.
        expert_ffn: Inner width of one expert.
        shared_ffn: Inner width of the always-active shared expert, 0 for none.
        dense_layers: Leading layers that stay dense in a mixture model.
        moe_every: Every n-th layer is a mixture layer (1: all).
        window: Sliding or chunked attention window in tokens, 0 for none.
        full_every: With a window, every n-th layer attends to everything.
        latent: Latent attention, or None.
        native_bits: Bits per weight the model is published in (4 for MXFP4 or int4 releases).
        trust: ``published`` (a model card or configuration file) or ``assumed``.
        source: Where the numbers come from.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    gated: bool = True
    tied: bool = False
    experts: int = 0
    experts_active: int = 0
    expert_ffn: int = 0
    shared_ffn: int = 0
    dense_layers: int = 0
    moe_every: int = 1
    window: int = 0
    full_every: int = 2
    latent: LatentAttention | None = None
    native_bits: int = 16
    trust: str = "published"
    source: str = ""

    def __post_init__(self) -> None:
        for field in ("layers", "hidden", "heads", "kv_heads", "head_dim"):
            if getattr(self, field) < 1:
                raise WaferUsageError(
                    f"Model shape '{self.name}' has {field} = {getattr(self, field)}; it must be "
                    "positive."
                )
        if self.heads % self.kv_heads:
            raise WaferUsageError(
                f"Model shape '{self.name}' has {self.heads} heads for {self.kv_heads} key/value "
                "heads; the first must be a multiple of the second."
            )

    @property
    def query_width(self) -> int:
        """Width of all query heads together."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all key heads together (values have the same)."""
        return self.kv_heads * self.head_dim

    @property
    def is_moe(self) -> bool:
        return self.experts > 0

    def layer_kind(self, index: int) -> LayerKind:
        moe = self.is_moe and index >= self.dense_layers and (index + 1) % self.moe_every == 0
        windowed = self.window > 0 and (self.full_every == 0 or (index + 1) % self.full_every != 0)
        return LayerKind(moe, self.window if windowed else 0)

    def layer_kinds(self) -> dict[LayerKind, int]:
        """Distinct layer kinds with how many layers there are of each."""
        return dict(Counter(self.layer_kind(index) for index in range(self.layers)))

    def attention_weights(self) -> int:
        """Weights of one layer's attention projections."""
        if self.latent is None:
            return self.hidden * (2 * self.query_width + 2 * self.kv_width)
        mla = self.latent
        query = self.hidden * mla.query_rank + mla.query_rank * self.heads * (
            mla.nope_dim + mla.rope_dim
        )
        key_value = self.hidden * (mla.kv_rank + mla.rope_dim)
        key_value += mla.kv_rank * self.heads * (mla.nope_dim + mla.value_dim)
        return query + key_value + self.heads * mla.value_dim * self.hidden

    def ffn_weights(self, kind: LayerKind, *, active_only: bool = False) -> int:
        """Weights of one layer's feed-forward part, all experts or only those one token visits."""
        matrices = 3 if self.gated else 2
        if not kind.moe:
            return matrices * self.hidden * self.ffn
        experts = self.experts_active if active_only else self.experts
        inner = experts * self.expert_ffn + self.shared_ffn
        return matrices * self.hidden * inner + self.hidden * self.experts

    def layer_weights(self, kind: LayerKind, *, active_only: bool = False) -> int:
        """Weights of one layer, its two norms included."""
        return (
            self.attention_weights()
            + self.ffn_weights(kind, active_only=active_only)
            + 2 * self.hidden
        )

    @property
    def head_weights(self) -> int:
        """Weights of the output projection."""
        return self.vocab * self.hidden

    @property
    def embedding_weights(self) -> int:
        """Weights of the input embedding that are stored beside the output projection."""
        return 0 if self.tied else self.vocab * self.hidden

    def weights(self, *, active_only: bool = False) -> int:
        """All weights, or those that one token touches (its embedding row left out)."""
        layers = sum(
            count * self.layer_weights(kind, active_only=active_only)
            for kind, count in self.layer_kinds().items()
        )
        return layers + self.head_weights + (0 if active_only else self.embedding_weights)

    def kv_values_per_token(self) -> int:
        """Cached values per token and layer (keys and values, or the latent row)."""
        if self.latent is not None:
            return self.latent.kv_rank + self.latent.rope_dim
        return 2 * self.kv_width

    def kv_bytes(self, context: int, kv_bits: int = 16) -> int:
        """Bytes of the cache of one sequence of ``context`` tokens over all layers."""
        per_token = self.kv_values_per_token() * kv_bits // 8
        return sum(
            count * per_token * (min(context, kind.window) if kind.window else context)
            for kind, count in self.layer_kinds().items()
        )

    def as_benchmarked(self) -> ModelShape:
        """The shape that WaferLLM's published kernels really run.

        Their layer benchmark has one head of full width, keys and values as wide as queries (also
        for grouped-query models), and neither embedding nor output projection.
        """
        return replace(self, kv_heads=self.heads, vocab=0, trust=self.trust)
