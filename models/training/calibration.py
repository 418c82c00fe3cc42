"""Prepares weights for integer products (see `graphs`): how far activations reach, as measured on
sequences of tokens, and weights that make them easier to round.

Channels of an activation differ in reach by tens of times, and one step serves them all. What a
channel is divided by, its row of the following matrix is multiplied with; half of the difference is
moved there (Xiao et al. 2023, "SmoothQuant: Accurate and Efficient Post-Training Quantization for
Large Language Models"). Norms, values and the up projection, which make the activations, take the
division into their own weights, so the graph stays as it is.

Needs the `onnx` package and onnxruntime; training and tests import this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from models.training.graphs import Array, DecoderShape, build_decoder, product_inputs

SAMPLES = 4096
"""Values of a tensor that are looked at per sequence to choose a step."""

MIN_PROBABILITY = 1e-5
"""A channel or a weight that is smaller counts as that large."""

SHARES = np.linspace(0.2, 1, 33)
"""Parts of the largest value at which a range is tried to end."""


def calibrated(
    shape: DecoderShape, weights: Mapping[str, Array], sequences: Iterable[Sequence[int]]
) -> tuple[dict[str, Array], dict[str, float]]:
    """Return weights that compute the same, and the steps for them.

    Args:
        shape: sizes.
        weights: arrays as `graphs.weight_shapes` lists them, float32.
        sequences: tokens such as the model will read and write; some hundred are enough.

    Returns:
        Weights, and `steps` for `graphs.build_decoder`: what lies outside of a product's 256 steps
        is cut off, where that gives the least squared error.
    """
    known = [list(ids) for ids in sequences]
    reach: dict[str, Array] = {}
    for product, rows in activations(shape, weights, known):
        top = np.abs(rows).max(axis=0)
        reach[product] = np.maximum(reach[product], top) if product in reach else top
    smooth = _smoothed(shape, weights, reach)
    rng = np.random.default_rng(0)
    samples: dict[str, list[Array]] = {}
    for product, rows in activations(shape, smooth, known):
        values = rows.reshape(-1)
        chosen = values[rng.integers(values.size, size=SAMPLES)]
        samples.setdefault(product, []).append(np.append(chosen, np.abs(values).max()))
    return smooth, {name: best_step(np.concatenate(found)) for name, found in samples.items()}


def activations(
    shape: DecoderShape,
    weights: Mapping[str, Array],
    sequences: Iterable[Sequence[int]],
    threads: int = 0,
) -> Iterator[tuple[str, Array]]:
    """Yield every product's input [tokens, channels], sequence by sequence.

    `threads` is how many the products share, 0 for as many as there are cores.
    """
    inputs = product_inputs(shape)
    model = build_decoder(shape, weights, bits=32)
    for tensor in inputs.values():
        model.graph.output.append(helper.make_tensor_value_info(tensor, TensorProto.FLOAT, None))
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    session = runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    for ids in sequences:
        cache = np.zeros((1, shape.kv_heads, len(ids), shape.head_size), np.float32)
        feeds = {
            "input_ids": np.array([ids], np.int64),
            "attention_mask": np.ones((1, len(ids)), np.int64),
        } | {
            f"past_key_values.{layer}.{part}": cache
            for layer in range(shape.layers)
            for part in ("key", "value")
        }
        found = session.run(list(inputs.values()), feeds)
        for product, rows in zip(inputs, found, strict=True):
            yield product, rows[0]


def _smoothed(
    shape: DecoderShape, weights: Mapping[str, Array], reach: Mapping[str, Array]
) -> dict[str, Array]:
    """Return weights with which the channels of every activation reach about as far."""
    out = dict(weights)
    for product, top in reach.items():
        layer, _, name = product.rpartition(".")
        at = f"{layer}." if layer else ""
        weight = "head" if name == "logits" else product
        matrix = out[weight]
        if name == "out":
            by, rows = _value_factors(shape, top, matrix)
            first = (shape.heads + shape.kv_heads) * shape.head_size
            out[f"{at}qkv"] = _divided(out[f"{at}qkv"], by, first)
            out[f"{at}qkv_bias"] = _divided(out[f"{at}qkv_bias"], by, first)
        else:
            by = rows = _factors(top, np.abs(matrix).max(axis=1))
            if name == "down":
                out[f"{at}gate_up"] = _divided(out[f"{at}gate_up"], by, shape.hidden)
            else:
                gain = {"qkv": "attention_norm", "gate_up": "hidden_norm", "logits": "final_norm"}
                out[f"{at}{gain[name]}"] = out[f"{at}{gain[name]}"] / by
        out[weight] = matrix * rows[:, None]
    return out


def _factors(activations: Array, weights: Array) -> Array:
    """Return by what to divide channels: the root of how much further they reach than their
    weights, one in the (geometric) mean.
    """
    ratio = np.maximum(activations, MIN_PROBABILITY) / np.maximum(weights, MIN_PROBABILITY)
    root = np.sqrt(ratio)
    return np.asarray(root / np.exp(np.log(root).mean()), np.float32)


def _value_factors(shape: DecoderShape, top: Array, matrix: Array) -> tuple[Array, Array]:
    """Return the factors of the value heads, and of the query heads' channels that they become."""
    group = (shape.kv_heads, shape.heads // shape.kv_heads, shape.head_size)

    def widest(values: Array) -> Array:
        return np.asarray(values.reshape(group).max(axis=1).reshape(-1), np.float32)

    by = _factors(widest(top), widest(np.abs(matrix).max(axis=1)))
    wide = np.broadcast_to(by.reshape(shape.kv_heads, 1, shape.head_size), group)
    return by, np.ascontiguousarray(wide).reshape(-1)


def _divided(values: Array, by: Array, first: int) -> Array:
    """Divide the last dimension of an array from `first` on."""
    out = values.copy()
    out[..., first:] /= by
    return out


def best_step(values: Array) -> float:
    """Return the step that rounds these values to 256 with the least squared error."""
    steps = np.maximum(np.abs(values).max(), MIN_PROBABILITY) * SHARES / 127

    def error(step: float) -> float:
        rounded = np.clip(np.round(values / step), -128, 127) * step
        return float(np.square(rounded - values).sum())

    return float(min(steps, key=error))
