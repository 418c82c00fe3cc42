"""SmolLM2-135M in plain PyTorch, arranged for training on a CPU with bf16 matrix units.

`Decoder.hidden` is the training pass over packed sequences, `Decoder.step` one cached step for
decoding. Query, key and value are one matrix product and so are the two halves of the gated
feed-forward layer, because the matrix units like large products. `load_weights` and `save_weights`
translate from and to the names of the Hugging Face layout (with or without the `model.` prefix), so
that every other tool can read the files.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

WIDTH = 576
LAYERS = 30
HEADS = 9
KEY_HEADS = 3
HEAD_WIDTH = 64
INNER = 1_536
ROPE_BASE = 100_000.0
EPSILON = 1e-5

Cache = tuple[Tensor, Tensor] | None


def rotary(positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return cosine and sine tables (batch, 1, time, head width) for token positions."""
    exponents = torch.arange(0, HEAD_WIDTH, 2).float() / HEAD_WIDTH
    angles = positions[..., None].float() * (1.0 / ROPE_BASE**exponents)
    angles = torch.cat([angles, angles], -1)
    return angles.cos().to(dtype)[:, None], angles.sin().to(dtype)[:, None]


def _rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat([-second, first], -1) * sine


class Norm(nn.Module):
    """Root-mean-square normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension."""
        return F.rms_norm(x, (WIDTH,), self.weight, EPSILON)


class Block(nn.Module):
    """One decoder layer."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = Norm()
        self.inner_norm = Norm()
        self.qkv = nn.Linear(WIDTH, (HEADS + 2 * KEY_HEADS) * HEAD_WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate_up = nn.Linear(WIDTH, 2 * INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def heads(self, x: Tensor, cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return rotated queries and keys, and values, each (batch, heads, time, head width)."""
        batch, time, _ = x.shape
        mixed = self.qkv(self.attention_norm(x)).view(batch, time, -1, HEAD_WIDTH).transpose(1, 2)
        query, key, value = mixed.split([HEADS, KEY_HEADS, KEY_HEADS], 1)
        return _rotate(query, cosine, sine), _rotate(key, cosine, sine), value

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """Return the layer's output from its input and what attention gave."""
        batch, time, _ = x.shape
        x = x + self.out(attended.transpose(1, 2).reshape(batch, time, WIDTH))
        gate, up = self.gate_up(self.inner_norm(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor, mask: Tensor) -> Tensor:
        """Run the layer; `mask` is added to the scores (0 or -inf; batch, 1, time, time)."""
        query, key, value = self.heads(x, cosine, sine)
        return self.finish(x, attend(query, key, value, mask))


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Attention written out: on CPUs faster to train than `scaled_dot_product_attention`."""
    batch, _, time, width = query.shape
    group = HEADS // KEY_HEADS
    # Query heads that share a key head are stacked along time: no copies of keys and values.
    stacked = (query * width**-0.5).reshape(batch, KEY_HEADS, group * time, width)
    scores = (stacked @ key.transpose(-1, -2)).view(batch, KEY_HEADS, group, time, -1)
    weights = torch.softmax(scores + mask[:, None], -1)
    return (weights.view(batch, KEY_HEADS, group * time, -1) @ value).view(
        batch, HEADS, time, width
    )


class Decoder(nn.Module):
    """The whole model; the output layer is the embedding."""

    def __init__(self, vocabulary: int, layers: int = LAYERS) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.layers = nn.ModuleList(Block() for _ in range(layers))
        self.norm = Norm()

    def hidden(self, tokens: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        """Return the last hidden states of whole sequences."""
        x = self.embedding(tokens)
        cosine, sine = rotary(positions, x.dtype)
        for layer in self.layers:
            x = layer(x, cosine, sine, mask)
        return self.norm(x)

    def step(
        self, tokens: Tensor, positions: Tensor, mask: Tensor, cache: list[Cache]
    ) -> tuple[Tensor, list[Cache]]:
        """Run some more tokens behind cached ones; returns hidden states and the new cache."""
        x = self.embedding(tokens)
        cosine, sine = rotary(positions, x.dtype)
        longer: list[Cache] = []
        for layer, old in zip(self.layers, cache, strict=True):
            assert isinstance(layer, Block)
            query, key, value = layer.heads(x, cosine, sine)
            if old is not None:
                key, value = torch.cat([old[0], key], 2), torch.cat([old[1], value], 2)
            longer.append((key, value))
            x = layer.finish(x, attend(query, key, value, mask))
        return self.norm(x), longer

    def head(self, hidden: Tensor) -> Tensor:
        """Return logits."""
        return F.linear(hidden, self.embedding.weight)


_JOINED = {
    "qkv": [f"self_attn.{name}_proj.weight" for name in "qkv"],
    "gate_up": ["mlp.gate_proj.weight", "mlp.up_proj.weight"],
    "out": ["self_attn.o_proj.weight"],
    "down": ["mlp.down_proj.weight"],
}
_NORMS = {"attention_norm": "input_layernorm", "inner_norm": "post_attention_layernorm"}
_ROWS = {"qkv": [HEADS * 64, KEY_HEADS * 64, KEY_HEADS * 64], "gate_up": [INNER, INNER]}


def load_weights(path: Path | str) -> Decoder:
    """Read a safetensors file with Hugging Face names into a float32 model."""
    stored = {name.removeprefix("model."): w.float() for name, w in load_file(path).items()}
    numbers = {int(name.split(".")[1]) for name in stored if name.startswith("layers.")}
    state = {
        "embedding.weight": stored["embed_tokens.weight"],
        "norm.weight": stored["norm.weight"],
    }
    for number in sorted(numbers):
        prefix = f"layers.{number}."
        for own, parts in _JOINED.items():
            state[f"{prefix}{own}.weight"] = torch.cat([stored[prefix + part] for part in parts])
        for own, theirs in _NORMS.items():
            state[f"{prefix}{own}.weight"] = stored[f"{prefix}{theirs}.weight"]
    model = Decoder(len(state["embedding.weight"]), len(numbers))
    model.load_state_dict(state)
    return model


def to_standard(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return a state dict under Hugging Face names."""
    out: dict[str, Tensor] = {}
    for name, w in state.items():
        parts = name.split(".")
        if parts[0] == "embedding":
            out["model.embed_tokens.weight"] = w
        elif parts[0] == "norm":
            out["model.norm.weight"] = w
        elif parts[2] in _NORMS:
            out[f"model.layers.{parts[1]}.{_NORMS[parts[2]]}.weight"] = w
        else:
            pieces = w.split(_ROWS.get(parts[2], [w.size(0)]))
            for target, piece in zip(_JOINED[parts[2]], pieces, strict=True):
                out[f"model.layers.{parts[1]}.{target}"] = piece
    return out


def save_weights(state: dict[str, Tensor], path: Path) -> None:
    """Write a state dict as bf16 safetensors with Hugging Face names, atomically."""
    named = {
        k: w.detach().to(torch.bfloat16).contiguous().clone() for k, w in to_standard(state).items()
    }
    unfinished = path.with_suffix(".part")
    save_file(named, unfinished, metadata={"format": "pt"})
    unfinished.replace(path)
