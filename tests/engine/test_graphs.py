"""The graph builder against a reference written out in NumPy, and through ONNX Runtime with a
shared cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

from tests.helpers.decoders import (  # noqa: E402
    INTEGER_TOP,
    DecoderShape,
    build_decoder,
    product_names,
    quantise_columns,
    weight_shapes,
)
from tests.helpers.tiny import dequantised  # noqa: E402

Array = npt.NDArray[np.float32]
SHAPE = DecoderShape(
    vocab=50, width=64, layers=2, heads=4, kv_heads=2, head_size=16, hidden=96, context=64
)


def random_weights(shape: DecoderShape, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    weights = {
        name: (rng.standard_normal(size) / np.sqrt(size[0])).astype(np.float32)
        for name, size in weight_shapes(shape).items()
    }
    angle = (
        np.arange(shape.context)[:, None] * 100.0 ** -np.linspace(0, 1, shape.head_size // 2)[None]
    )
    return weights | {
        "cos": np.cos(angle).astype(np.float32),
        "sin": np.sin(angle).astype(np.float32),
    }


def reference(shape: DecoderShape, w: Mapping[str, Array], tokens: list[int], bits: int) -> Array:
    def matrix(name: str) -> Array:
        return w[name] if bits == 32 else dequantised(w[name], bits)

    def norm(x: Array, gain: Array) -> Any:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + shape.epsilon) * gain

    def turn(x: Array) -> Any:
        first, second = np.split(x, 2, axis=-1)
        cos, sin = w["cos"][: len(x), None], w["sin"][: len(x), None]
        return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)

    x = w["embedding"][tokens]
    time = len(tokens)
    for n in range(shape.layers):
        at = f"layers.{n}"
        packed = norm(x, w[f"{at}.attention_norm"]) @ matrix(f"{at}.qkv") + w[f"{at}.qkv_bias"]
        heads = packed.reshape(time, -1, shape.head_size)
        q = turn(heads[:, : shape.heads])
        k = turn(heads[:, shape.heads : shape.heads + shape.kv_heads])
        v = heads[:, shape.heads + shape.kv_heads :]
        group = shape.heads // shape.kv_heads
        k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(shape.head_size)
        scores = np.where(np.tril(np.ones((time, time), bool)), scores, -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        mixed = np.einsum("hij,jhd->ihd", scores, v).reshape(time, -1)
        x = x + mixed @ matrix(f"{at}.out")
        gate, up = np.split(norm(x, w[f"{at}.hidden_norm"]) @ matrix(f"{at}.gate_up"), 2, axis=-1)
        x = x + (gate / (1 + np.exp(-gate)) * up) @ matrix(f"{at}.down")
    return norm(x, w["final_norm"]) @ matrix("head")


def session(weights: Mapping[str, Array], bits: int) -> Any:
    model = build_decoder(SHAPE, weights, bits=bits)
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def run(
    runner: Any, tokens: list[int], past: dict[str, Array] | None = None
) -> tuple[Array, dict[str, Array]]:
    names = [
        f"past_key_values.{n}.{part}" for n in range(SHAPE.layers) for part in ("key", "value")
    ]
    empty = np.zeros((1, SHAPE.kv_heads, 0, SHAPE.head_size), np.float32)
    past = past or dict.fromkeys(names, empty)
    total = past[names[0]].shape[2] + len(tokens)
    inputs = {
        "input_ids": np.array([tokens], np.int64),
        "attention_mask": np.ones((1, total), np.int64),
    }
    logits, *present = runner.run(None, inputs | past)
    return logits[0], dict(zip(names, present, strict=True))


TOKENS = [3, 14, 15, 9, 2, 6, 5, 35, 8, 9, 7, 9]


@pytest.mark.parametrize(("bits", "tolerance"), [(32, 1e-4), (8, 0.06), (4, 0.06)])
def test_the_graph_computes_what_the_reference_says(bits: int, tolerance: float) -> None:
    weights = random_weights(SHAPE)
    expected = reference(SHAPE, weights, TOKENS, bits)
    found, _ = run(session(weights, bits), TOKENS)
    assert found.shape == (len(TOKENS), SHAPE.vocab)
    # With quantised weights ORT also rounds activations to 8 bits (accuracy_level 4).
    assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()


@pytest.mark.parametrize("bits", [32, 8])
def test_decoding_step_by_step_equals_one_pass(bits: int) -> None:
    runner = session(random_weights(SHAPE), bits)
    whole, _ = run(runner, TOKENS)
    logits, past = run(runner, TOKENS[:5])
    steps = [logits]
    for token in TOKENS[5:]:
        logits, past = run(runner, [token], past)
        steps.append(logits)
    assert np.abs(np.concatenate(steps) - whole).max() < 1e-4 * np.abs(whole).max()


def integer_session(weights: Mapping[str, Array]) -> Any:
    model = build_decoder(SHAPE, weights, steps=dict.fromkeys(product_names(SHAPE), 0.01))
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def test_integer_products_compute_what_the_reference_says() -> None:
    weights = random_weights(SHAPE)
    expected = reference(SHAPE, weights, TOKENS, 32)
    found, _ = run(integer_session(weights), TOKENS)
    assert np.abs(found - expected).max() < 0.06 * np.abs(expected).max()


@pytest.mark.parametrize("rows", [2, 3, 5, 8, 11])
def test_rows_of_integer_products_have_their_bits_whatever_runs_beside_them(rows: int) -> None:
    runner = integer_session(random_weights(SHAPE))
    _, past = run(runner, TOKENS[:1])
    expected, _ = run(runner, TOKENS[1:], past)
    found, _ = run(runner, TOKENS[1 : 1 + rows], past)
    even = rows - rows % 2  # attention has another kernel for a row that is left over
    np.testing.assert_array_equal(found[:even], expected[:even])


def test_weights_of_integer_products_lose_at_most_half_a_step() -> None:
    matrix = np.random.default_rng(1).standard_normal((70, 5)).astype(np.float32)
    matrix[:, 4] = 0
    stored, scales = quantise_columns(matrix)
    assert np.abs(stored.astype(int)).max() == INTEGER_TOP
    assert np.all(np.abs(stored * scales - matrix) <= 0.501 * scales)


def test_past_and_present_may_share_one_buffer() -> None:
    runner = session(random_weights(SHAPE), 32)
    whole, _ = run(runner, TOKENS)
    binding = runner.io_binding()
    cache: dict[str, Any] = {}
    for n in range(SHAPE.layers):
        for part in ("key", "value"):
            zeros = np.zeros((1, SHAPE.kv_heads, SHAPE.context, SHAPE.head_size), np.float32)
            cache[f"{n}.{part}"] = ort.OrtValue.ortvalue_from_numpy(zeros)
            binding.bind_ortvalue_input(f"past_key_values.{n}.{part}", cache[f"{n}.{part}"])
            binding.bind_ortvalue_output(f"present.{n}.{part}", cache[f"{n}.{part}"])
    rows: list[Array] = []
    for begin, end in ((0, 6), (6, 7), (7, 12)):
        binding.bind_cpu_input("input_ids", np.array([TOKENS[begin:end]], np.int64))
        binding.bind_cpu_input("attention_mask", np.ones((1, end), np.int64))
        binding.bind_output("logits")
        runner.run_with_iobinding(binding)
        rows.append(binding.copy_outputs_to_cpu()[-1][0])
    assert np.abs(np.concatenate(rows) - whole).max() < 1e-4 * np.abs(whole).max()


@pytest.mark.parametrize("bits", [4, 8])
def test_quantisation_loses_at_most_half_a_step(bits: int) -> None:
    matrix = np.random.default_rng(1).standard_normal((70, 5)).astype(np.float32)
    error = np.abs(dequantised(matrix, bits) - matrix)
    assert error.max() <= 0.51 * np.abs(matrix).max() / ((1 << (bits - 1)) - 1)
    assert error.max() > 0


def test_wrong_weights_are_refused_by_name() -> None:
    weights = random_weights(SHAPE)
    del weights["layers.1.out"]
    with pytest.raises(ValueError, match=r"layers\.1\.out"):
        build_decoder(SHAPE, weights)
    with pytest.raises(ValueError, match="bits"):
        build_decoder(SHAPE, random_weights(SHAPE), bits=3)
    with pytest.raises(ValueError, match="bits"):
        build_decoder(SHAPE, random_weights(SHAPE), bits=4, steps={})
