"""A plain decoder: RMSNorm, rotary positions on half of each head, attention with biased QKV,
SwiGLU, tied embeddings.

Nothing here is special to edits, so that ONNX Runtime's stock operators serve it
(`models.training.graphs`). What is special is the start: `induction_init` sets up by hand the
circuits that copying needs (heads that look one, two and three tokens back, heads that find where
the same tokens stood before, a head that finds the next line anchor), which a small model otherwise
takes most of its training to find (Olsson et al., "In-context learning and induction heads").
"""

# pyright: reportMissingImports=false
# (torch belongs to the `train` extra only)
from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes of a decoder.

    `rotary_top` and `rotary_base` give the angular frequencies of the rotating pairs.
    `embedding_scale` multiplies embeddings at the input only: the tied table suits the logits when
    small, but the residual stream must start at about one, or a few optimiser steps of the blocks
    drown it.
    """

    vocab: int
    width: int = 256
    layers: int = 6
    heads: int = 4
    kv_heads: int = 4
    hidden: int = 640
    context: int = 1024
    rotary_top: float = 2.0
    rotary_base: float = 500.0
    epsilon: float = 1e-5
    embedding_scale: float = 32.0

    @property
    def head_size(self) -> int:
        """Width of one head."""
        return self.width // self.heads


def rotary_tables(config: ModelConfig) -> tuple[Tensor, Tensor]:
    """Return (cos, sin), float32 `[context, head_size / 2]`; the second half of the pairs does not
    rotate.
    """
    pairs = config.head_size // 2
    turning = pairs // 2
    steps = torch.arange(turning, dtype=torch.float64) / turning
    speed = torch.cat(
        [config.rotary_top * config.rotary_base**-steps, torch.zeros(pairs - turning)]
    )
    angle = torch.arange(config.context, dtype=torch.float64)[:, None] * speed[None]
    return angle.cos().float(), angle.sin().float()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate `[..., time, head_size]` by position: halves are the two coordinates of each pair."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Norm(nn.Module):
    """Root mean square norm with a gain."""

    def __init__(self, width: int, epsilon: float) -> None:
        """Start with gain one."""
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension."""
        scale = torch.rsqrt(
            torch.linalg.vecdot(x, x)[..., None].float() / x.shape[-1] + self.epsilon
        )
        return x * scale.to(x.dtype) * self.gain.to(x.dtype)


class Block(nn.Module):
    """Attention and a gated feed-forward, each behind its norm."""

    def __init__(self, config: ModelConfig) -> None:
        """Make the block's weights: `qkv` and `gate_up` are packed."""
        super().__init__()
        c = self.config = config
        self.attention_norm = Norm(c.width, c.epsilon)
        self.qkv = nn.Linear(c.width, (c.heads + 2 * c.kv_heads) * c.head_size)
        self.out = nn.Linear(c.heads * c.head_size, c.width, bias=False)
        self.hidden_norm = Norm(c.width, c.epsilon)
        self.gate_up = nn.Linear(c.width, 2 * c.hidden, bias=False)
        self.down = nn.Linear(c.hidden, c.width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        """Map `[batch, time, width]` to the same shape; `mask` is added to the attention scores.

        Attention is written out: on CPU, in bf16 and for sequences this short, it trains faster
        than the fused kernel.
        """
        c = self.config
        batch, time, _ = x.shape
        packed = self.qkv(self.attention_norm(x)).view(batch, time, -1, c.head_size).transpose(1, 2)
        turned = rotate(packed[:, : c.heads + c.kv_heads], cos, sin)
        q, k, v = turned[:, : c.heads], turned[:, c.heads :], packed[:, c.heads + c.kv_heads :]
        if c.kv_heads != c.heads:
            k, v = (part.repeat_interleave(c.heads // c.kv_heads, dim=1) for part in (k, v))
        scores = (q * c.head_size**-0.5) @ k.transpose(-1, -2) + mask
        mixed = torch.softmax(scores, dim=-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, time, -1))
        gate, up = self.gate_up(self.hidden_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Decoder(nn.Module):
    """The whole model."""

    cos: Tensor
    sin: Tensor

    def __init__(self, config: ModelConfig) -> None:
        """Make weights with a standard start (see also `induction_init`)."""
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.final_norm = Norm(config.width, config.epsilon)
        cos, sin = rotary_tables(config)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                std = 0.03 if "embedding" in name else 0.5 / math.sqrt(weight.shape[1])
                if name.endswith(("out.weight", "down.weight")):
                    std = 0.3 / math.sqrt(weight.shape[1])
                nn.init.normal_(weight, std=std)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)

    def hidden(self, tokens: Tensor) -> Tensor:
        """Return the normed last states `[batch, time, width]` of int64 `[batch, time]` tokens."""
        x = self.embedding(tokens) * self.config.embedding_scale
        if torch.is_autocast_enabled(tokens.device.type):
            x = x.bfloat16()
        time = tokens.shape[1]
        cos, sin = self.cos[:time].to(x.dtype), self.sin[:time].to(x.dtype)
        mask = torch.full((time, time), float("-inf"), dtype=x.dtype, device=x.device).triu(1)
        for block in self.blocks:
            x = block(x, cos, sin, mask)
        return self.final_norm(x)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits, `[batch, time, vocab]`."""
        return F.linear(self.hidden(tokens), self.embedding.weight)


@torch.no_grad()
def induction_init(model: Decoder, anchor_0: int, anchors: int) -> None:
    """Set up copying circuits by hand (needs 4 heads of 64 in a width of 256 and at least two
    layers).

    The residual stream is divided at the start: coordinates 0-159 hold token embeddings, of which
    128-159 hold a rotary code of the line number for anchors only; 160-207 hold the previous token,
    208-255 the one before.
    """
    c = model.config
    if c.width != 256 or c.head_size != 64 or c.kv_heads != 4:
        raise ValueError("induction_init is written for 4 heads of 64")
    table = model.embedding.weight
    table[:, 128:] = 0
    table[:, :128] = torch.randn(c.vocab, 128) * 0.03 * math.sqrt(2)
    waves = 1.5 * (0.05 ** (torch.arange(16) / 16))
    angle = torch.arange(anchors)[:, None] * waves[None]
    table[anchor_0 : anchor_0 + anchors, 128:160] = torch.cat([angle.cos(), angle.sin()], -1) * 0.06
    table[anchor_0 : anchor_0 + anchors, :128] *= 0.5

    turning = slice(0, 16), slice(32, 48)
    still = torch.cat([torch.arange(16, 32), torch.arange(48, 64)])
    speed = c.rotary_top * c.rotary_base ** -(torch.arange(16) / 16)
    project = torch.randn(48, 160) / math.sqrt(160)

    first: Block = model.blocks[0]  # type: ignore[assignment]
    qkv, bias, out = (
        first.qkv.weight.view(3, 4, 64, 256),
        first.qkv.bias.view(3, 4, 64),
        first.out.weight.view(256, 4, 64),
    )
    sharp = 4.5
    for head, back in enumerate((1, 2, 3)):
        qkv[:2, head] *= 0.05
        bias[0, head, turning[0]] = sharp * (speed * back).cos()
        bias[0, head, turning[1]] = -sharp * (speed * back).sin()
        bias[1, head, turning[0]] = sharp
        bias[1, head, turning[1]] = 0
        if back < 3:
            qkv[2, head] = 0
            qkv[2, head, :48, :160] = project
            out[:, head] = 0
            begin = 160 + 48 * (back - 1)
            out[begin : begin + 48, head, :48] = torch.eye(48) * 1.2

    second: Block = model.blocks[1]  # type: ignore[assignment]
    qkv, bias, out = (
        second.qkv.weight.view(3, 4, 64, 256),
        second.qkv.bias.view(3, 4, 64),
        second.out.weight.view(256, 4, 64),
    )
    for head in range(3):
        look = torch.randn(32, 48) / math.sqrt(48)
        look2 = torch.randn(32, 48) / math.sqrt(48)
        qkv[:, head] = 0
        q = torch.zeros(32, 256)
        k = torch.zeros(32, 256)
        q[:, :160] = look @ project * 3.0
        k[:, 160:208] = look * 3.0
        q[:, 160:208] += look2 * 2.0
        k[:, 208:256] = look2 * 2.0
        qkv[0, head, still] = q
        qkv[1, head, still] = k
        begin = 64 * head
        size = min(64, 160 - begin)
        qkv[2, head, :size, begin : begin + size] = torch.eye(size)
        out[:, head] = 0
        out[begin : begin + size, head, :size] = torch.eye(size) * 2.5
    qkv[:, 3] = 0
    code = torch.zeros(32, 256)
    code[:, 128:160] = torch.eye(32)
    ahead = torch.zeros(32, 256)
    cos, sin = waves.cos(), waves.sin()
    ahead[:16, 128:144], ahead[:16, 144:160] = torch.diag(cos), -torch.diag(sin)
    ahead[16:, 128:144], ahead[16:, 144:160] = torch.diag(sin), torch.diag(cos)
    qkv[0, 3, still] = ahead * 1.8
    qkv[1, 3, still] = code * 1.8
    qkv[2, 3, :32, 128:160] = torch.eye(32)
    qkv[2, 3, 32:, :32] = torch.eye(32)
    out[:, 3] = 0
    out[128:160, 3, :32] = torch.eye(32) * 1.6
    out[:32, 3, 32:] = torch.eye(32) * 1.6
