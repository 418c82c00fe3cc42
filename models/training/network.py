"""Qwen2 in plain PyTorch: a frozen bf16 base with float32 adapters on its products.

Adapters are pairs of small matrices beside every weight (Hu et al. 2021, "LoRA"). The lowest layers
may be left as they are: nothing is computed backwards through them.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from safetensors.torch import load_file
from torch import Tensor, nn

RANK = 32
PRODUCTS = ("qkv", "o", "gu", "dn")
"""Products of a layer: attention's inputs and output, gate and up together, down."""
PARTS = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "o": ("self_attn.o_proj",),
    "gu": ("mlp.gate_proj", "mlp.up_proj"),
    "dn": ("mlp.down_proj",),
}
"""The matrices of Hugging Face folders that stand under one another in a product's."""


class Shape:
    """The sizes in a Hugging Face folder's configuration."""

    def __init__(self, folder: Path) -> None:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
        self.width: int = config["hidden_size"]
        self.layers: int = config["num_hidden_layers"]
        self.heads: int = config["num_attention_heads"]
        self.keys: int = config["num_key_value_heads"]
        self.head = self.width // self.heads
        self.inner: int = config["intermediate_size"]
        self.epsilon: float = config["rms_norm_eps"]
        parameters: dict[str, Any] = config.get("rope_parameters") or config
        self.base: float = parameters.get("rope_theta", 1e6)


class Product(nn.Module):
    """A frozen matrix with an adapter."""

    def __init__(self, weight: Tensor, bias: Tensor | None, rank: int) -> None:
        super().__init__()
        self.w: Tensor
        self.b: Tensor | None
        self.register_buffer("w", weight.to(torch.bfloat16))
        self.register_buffer("b", None if bias is None else bias.to(torch.bfloat16))
        outputs, inputs = weight.shape
        self.a = nn.Parameter(torch.randn(rank, inputs) / math.sqrt(inputs))
        self.bb = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, x: Tensor) -> Tensor:
        small = F.linear(F.linear(x, self.a.to(x.dtype)), self.bb.to(x.dtype))
        return F.linear(x, self.w, self.b) + small


def norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Root mean square normalisation, computed in float32."""
    wide = x.float()
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)
    return (wide * scale).to(x.dtype) * weight


class Block(nn.Module):
    """One layer."""

    def __init__(self, state: dict[str, Tensor], prefix: str, shape: Shape, rank: int) -> None:
        super().__init__()
        self.shape = shape
        self.n1: Tensor
        self.n2: Tensor
        self.register_buffer("n1", state[f"{prefix}input_layernorm.weight"].bfloat16())
        self.register_buffer("n2", state[f"{prefix}post_attention_layernorm.weight"].bfloat16())
        made: dict[str, Product] = {}
        for name, parts in PARTS.items():
            weight = torch.cat([state[f"{prefix}{part}.weight"].float() for part in parts])
            biases = [state.get(f"{prefix}{part}.bias") for part in parts]
            known = [bias.float() for bias in biases if bias is not None]
            made[name] = Product(weight, torch.cat(known) if known else None, rank)
        self.qkv, self.o, self.gu, self.dn = (made[name] for name in PRODUCTS)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        c = self.shape
        batch, time, _ = x.shape
        rows = self.qkv(norm(x, self.n1, c.epsilon)).view(batch, time, -1, c.head).transpose(1, 2)
        q, k, v = rows.split([c.heads, c.keys, c.keys], 1)

        def turned(t: Tensor) -> Tensor:
            half = c.head // 2
            return t * cos + torch.cat([-t[..., half:], t[..., :half]], -1) * sin

        q, k = turned(q), turned(k)
        if x.is_cuda:
            # Kernels that take a mask want a key head for every query head.
            k, v = (t.repeat_interleave(c.heads // c.keys, 1) for t in (k, v))
            seen = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            # Query heads that share a key head are rows of one product.
            group = c.heads // c.keys
            stacked = (q * c.head**-0.5).reshape(batch, c.keys, group * time, c.head)
            scores = (stacked @ k.transpose(-1, -2)).view(batch, c.keys, group, time, -1)
            weights = torch.softmax(scores + mask[:, None], -1)
            seen = (weights.view(batch, c.keys, group * time, -1) @ v).view(
                batch, c.heads, time, c.head
            )
        x = x + self.o(seen.transpose(1, 2).reshape(batch, time, c.width))
        gate, up = self.gu(norm(x, self.n2, c.epsilon)).chunk(2, -1)
        return x + self.dn(F.silu(gate) * up)


class Network(nn.Module):
    """The decoder of a Hugging Face folder."""

    def __init__(
        self, folder: Path, rows: Sequence[int] | None = None, frozen: int = 0, rank: int = RANK
    ) -> None:
        """Load the weights.

        Args:
            folder: The base model.
            rows: The tokens that are kept, by their numbers in the base model; None for all.
            frozen: Layers from below that get no adapters that learn.
            rank: The adapters' rank.
        """
        super().__init__()
        self.shape = shape = Shape(folder)
        self.frozen = frozen
        state = load_file(folder / "model.safetensors")
        table = state["model.embed_tokens.weight"]
        if rows is not None:
            table = table[torch.tensor(rows)].contiguous()
        self.emb: Tensor
        self.nf: Tensor
        self.register_buffer("emb", table.bfloat16())
        self.register_buffer("nf", state["model.norm.weight"].bfloat16())
        self.layers = nn.ModuleList(
            Block(state, f"model.layers.{i}.", shape, rank) for i in range(shape.layers)
        )

    def turns(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines of the rotary embedding, ``[batch, 1, time, head]``."""
        c = self.shape
        steps = c.base ** (torch.arange(0, c.head, 2, device=positions.device).float() / c.head)
        angles = positions[..., None].float() / steps
        angles = torch.cat([angles, angles], -1)
        kind = self.nf.dtype
        return angles.cos().to(kind)[:, None], angles.sin().to(kind)[:, None]

    def hidden(self, tokens: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        """Return the last layer's output, normalised."""
        x = F.embedding(tokens, self.emb)
        cos, sin = self.turns(positions)
        with torch.no_grad():
            for layer in self.layers[: self.frozen]:
                x = layer(x, cos, sin, mask)
        for layer in self.layers[self.frozen :]:
            x = layer(x, cos, sin, mask)
        return norm(x, self.nf, self.shape.epsilon)

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the scores of all tokens."""
        return F.linear(hidden, self.emb)

    def learning(self) -> list[nn.Parameter]:
        """Return the adapters that learn."""
        return [p for name, p in self.named_parameters() if int(name.split(".")[1]) >= self.frozen]

    def adapters(self) -> dict[str, Tensor]:
        """Return all adapters by name."""
        return {name: p.detach() for name, p in self.named_parameters()}
