"""Round weights to 4 bits so that the outputs change least (GPTQ).

Weights are rounded input by input; what a rounding changes in the outputs, the inputs that follow
make up for, by how inputs go together on examples (Frantar et al. 2022, "GPTQ: Accurate
Post-Training Quantization for Generative Pre-trained Transformers"). Examples come from training
shards, never from evaluation sets.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from models.training.calibration import activations
from models.training.edit_script.script_format import numbered
from models.training.graphs import (
    Array,
    BlockFormat,
    DecoderShape,
    QuantisedBlocks,
    block_ranges,
    pack_blocks,
)

DAMPING = 0.02
"""Share of the mean square that is added to each input's own, for inputs that hardly occur."""
EXAMPLES = 64


def examples(shards: Path, tokenizer: Tokenizer, count: int = EXAMPLES) -> list[list[int]]:
    """Return tokens of training examples from the shards of all sources in equal shares."""

    def encode(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    begin, end = (tokenizer.token_to_id(f"<|im_{name}|>") for name in ("start", "end"))
    files = sorted(shards.glob("*.jsonl"))
    sources = {file.name.split("-")[0]: file for file in files}
    if not sources:
        raise SystemExit(f"{shards} has no shards (*.jsonl): rounding needs training examples.")
    rng = random.Random(0)
    found: list[list[int]] = []
    for file in sources.values():
        with file.open("rb") as lines:
            rows = [line for _, line in zip(range(3_000), lines, strict=False)]
        for line in rng.sample(rows, min(len(rows), count // len(sources))):
            row: dict[str, Any] = json.loads(line)
            _, asked, script = rng.choice(row["edits"])
            request = [begin, *encode(asked.strip()), end]
            ids = [*encode(numbered(row["region"])), *request, *encode(script.rstrip("\n")), end]
            found.append(ids[:600])
    return found


def correlations(
    shape: DecoderShape,
    weights: Mapping[str, Array],
    sequences: Iterable[Sequence[int]],
    threads: int = 1,
) -> dict[str, Array]:
    """Return for the input of every product the sums of its channels' products, [inputs, inputs]."""
    sums: dict[str, Array] = {}
    for product, rows in activations(shape, weights, sequences, threads):
        if product != "logits":
            found = rows.T @ rows
            sums[product] = sums[product] + found if product in sums else found
    return sums


def rounded(matrix: Array, sums: Array, form: BlockFormat) -> QuantisedBlocks:
    """Quantise `[inputs, outputs]`, given the correlations of its inputs."""
    square = sums.astype(np.float64)
    square[np.diag_indices(len(square))] += DAMPING * square.diagonal().mean() + 1e-8
    spread = np.linalg.cholesky(np.linalg.inv(square)).T.astype(np.float32)
    return rounded_along(matrix, spread, form)


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


def quantised(
    weights: Mapping[str, Array], sums: Mapping[str, Array], forms: Mapping[str, BlockFormat]
) -> dict[str, QuantisedBlocks]:
    """Return all matrices that have a form of 4 bits, rounded; the embedding is left out.

    Args:
        weights: by the names of `graphs.weight_shapes`.
        sums: what `correlations` returned.
        forms: how each kind of matrix is quantised.
    """
    chosen = {name: forms.get(name.rpartition(".")[2]) for name in sums}
    return {
        name: rounded(weights[name], sums[name], form)
        for name, form in chosen.items()
        if form is not None and form.bits == 4
    }
