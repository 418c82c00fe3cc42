"""Round the merged weights to 4 and 8 bits, layer by layer, so that outputs change least.

Matrices of 4 bits are rounded by examples (Frantar et al. 2022, "GPTQ: Accurate Post-Training
Quantization for Generative Pre-trained Transformers"): weights are rounded input by input, and what
a rounding changes in the outputs, the inputs that follow make up for, by how inputs go together.
The inputs of a layer are those that the rounded layers below it give, on sequences of training
data, never of evaluation sets.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch

from models.training.blocks import (
    Array,
    BlockFormat,
    QuantisedBlocks,
    block_ranges,
    pack_blocks,
    quantise_range,
    unpack_blocks,
)
from models.training.examples import Batch
from models.training.network import PARTS, PRODUCTS, Block, Network

DAMPING: Final = 0.02
"""Share of the mean square that is added to each input's own, for inputs that hardly occur."""
FOUR: Final = BlockFormat(4, 128)
EIGHT: Final = BlockFormat(8, 128)
NAMES: Final = {
    "qkv": ("attn.qkv_proj",),
    "o": ("attn.o_proj",),
    "gu": ("mlp.gate_proj", "mlp.up_proj"),
    "dn": ("mlp.down_proj",),
}
"""A product's matrices in the graph of the builder."""


def sensitive(layer: int, layers: int) -> bool:
    """Whether a layer's attention inputs and down matrix keep 8 bits (the choice of llama.cpp)."""
    edge = layers / 8
    return layer < edge or layer >= 7 * edge or (layer - round(edge)) % 3 == 2


def form_of(product: str, layer: int, layers: int) -> BlockFormat:
    """Return how a product is stored."""
    return EIGHT if product in ("qkv", "dn") and sensitive(layer, layers) else FOUR


def merged(block: Block) -> None:
    """Add a layer's adapters to its weights."""
    for name in PRODUCTS:
        product = getattr(block, name)
        change = product.bb.detach().float() @ product.a.detach().float()
        product.w = product.w.float() + change
        product.bb.data.zero_()


def rounded_layers(
    network: Network, batches: Sequence[Batch], kept: Mapping[str, Array] | None = None
) -> Iterator[tuple[str, BlockFormat, QuantisedBlocks]]:
    """Yield for each matrix of each layer its name in the graph, its form and its blocks.

    Args:
        network: Adapters and all; it is changed to compute with the rounded weights.
        batches: Training examples.
        kept: Matrices ``[outputs, inputs]`` of an earlier export by their names in the graph, which
            stay as they are: they are computed with and not yielded.
    """
    layers = len(network.layers)
    with torch.no_grad():
        states = [torch.nn.functional.embedding(batch.tokens, network.emb) for batch in batches]
        turns = [network.turns(batch.positions) for batch in batches]
        for number in range(layers):
            block: Any = network.layers[number]
            merged(block)
            if kept and f"model.layers.{number}.attn.o_proj" in kept:
                for name in PRODUCTS:
                    parts = [kept[f"model.layers.{number}.{at}"] for at in NAMES[name]]
                    getattr(block, name).w = torch.from_numpy(np.concatenate(parts)).bfloat16()
                _advance(block, batches, states, turns)
                continue
            exact = {name: getattr(block, name).w for name in PRODUCTS}
            for name in PRODUCTS:
                getattr(block, name).w = exact[name].bfloat16()
            wanted = [n for n in PRODUCTS if form_of(n, number, layers).bits == 4]
            sums = _correlations(block, wanted, batches, states, turns)
            spread = {name: spread_of(found) for name, found in sums.items()}
            for name in PRODUCTS:
                form = form_of(name, number, layers)
                matrix = exact[name].numpy()
                parts = np.split(matrix, len(NAMES[name])) if name == "gu" else [matrix]
                values: list[Any] = []
                for part, at in zip(parts, NAMES[name], strict=True):
                    blocks = (
                        rounded_along(part.T, spread[name], form)
                        if form.bits == 4
                        else quantise_range(part.T, form)
                    )
                    values.append(unpack_blocks(blocks, len(part), form))
                    yield f"model.layers.{number}.{at}", form, blocks
                getattr(block, name).w = torch.from_numpy(np.concatenate(values)).bfloat16()
            _advance(block, batches, states, turns)


def rounded_along(matrix: Array, spread: Array, form: BlockFormat) -> QuantisedBlocks:
    """Quantise `[inputs, outputs]`.

    Args:
        matrix: the weights.
        spread: the upper triangle U with U' U the inverse of the inputs' correlations: row i holds
            what input i's error does to later ones.
        form: how it is stored.
    """
    inputs, outputs = matrix.shape
    weights = matrix.astype(np.float32).copy()
    most = (1 << form.bits) - 1
    stored = np.empty((outputs, inputs // form.block, form.block), np.float32)
    scales = np.empty((outputs, inputs // form.block, 1), np.float32)
    zeros = np.empty_like(scales)
    for number, begin in enumerate(range(0, inputs, form.block)):
        end = begin + form.block
        block = weights[begin:end]
        scale, zero = block_ranges(np.ascontiguousarray(block.T), form.bits)
        scales[:, number], zeros[:, number] = scale, zero
        errors = np.empty_like(block)
        for k in range(form.block):
            level = np.clip(np.round(block[k] / scale[:, 0]) + zero[:, 0], 0, most)
            stored[:, number, k] = level
            errors[k] = (block[k] - (level - zero[:, 0]) * scale[:, 0]) / spread[
                begin + k, begin + k
            ]
            block[k + 1 :] -= np.outer(spread[begin + k, begin + k + 1 : end], errors[k])
        weights[end:] -= spread[begin:end, end:].T @ errors
    return pack_blocks(stored, scales, zeros, form.bits)


def spread_of(sums: torch.Tensor) -> Any:
    """Return the upper triangle U with U' U the inverse of correlations, float32.

    With rows and columns in reverse order, a Cholesky factor is an upper triangle R with R R' the
    correlations; U is its inverse.
    """
    square = sums.clone()
    square.diagonal().add_(DAMPING * square.diagonal().mean() + 1e-8)
    factor = torch.linalg.cholesky(square.flip(0, 1)).flip(0, 1)
    identity = torch.eye(len(square))
    return torch.linalg.solve_triangular(factor, identity, upper=True).numpy()


def _advance(
    block: Any,
    batches: Sequence[Batch],
    states: list[torch.Tensor],
    turns: Sequence[tuple[torch.Tensor, torch.Tensor]],
) -> None:
    for index, batch in enumerate(batches):
        states[index] = block(states[index], *turns[index], batch.mask())


def _correlations(
    block: Any,
    names: Sequence[str],
    batches: Sequence[Batch],
    states: Sequence[torch.Tensor],
    turns: Sequence[tuple[torch.Tensor, torch.Tensor]],
) -> dict[str, torch.Tensor]:
    sums: dict[str, torch.Tensor] = {}

    def watch(name: str) -> Any:
        def note(_: Any, inputs: tuple[torch.Tensor]) -> None:
            rows = inputs[0].flatten(0, 1).float()
            found = rows.T @ rows
            sums[name] = sums[name] + found if name in sums else found

        return note

    hooks = [getattr(block, name).register_forward_pre_hook(watch(name)) for name in names]
    for batch, state, turn in zip(batches, states, turns, strict=True):
        block(state, *turn, batch.mask())
    for hook in hooks:
        hook.remove()
    return sums


assert set(NAMES) == set(PARTS)
