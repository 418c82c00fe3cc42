"""Other engines on the same machine, for `midstream bench engine`: plain greedy decoding of the
same folder, or of a file of equal size, where they are installed.

For llama.cpp the model of a folder is written as GGUF (version 3), so that it is timed on the very
same one; needs the `onnx` package. Only graphs that the training recipe builds can be written:
their tensors have known names. They are what llama.cpp calls "llama" (rotary grouped-query
attention with biases, RMSNorm, SwiGLU). Matrices keep their bits: 8 become Q8_0 and 4 become Q4_0,
both in blocks of 32 with a half-precision scale, 32 stay float32.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from midstream.engine.folder import ModelFolder

Array = np.ndarray[Any, Any]

ALIGNMENT = 32
"""Bytes to whose multiples tensors are aligned unless a file says otherwise."""

BLOCK = 32
"""Weights per scale in Q8_0 and Q4_0."""

UINT32, FLOAT32, STRING = 4, 6, 8
"""Value types of the metadata."""

STILL = 1e-30
"""Radians per position that turn nothing."""

KINDS = {32: 0, 4: 2, 8: 8}
"""Tensor types by bits: F32, Q4_0, Q8_0."""


class NotWritableError(Exception):
    """A folder's model cannot be written as GGUF; the text says why."""


def write_gguf(folder: ModelFolder, target: Path) -> None:
    """Write a folder's model.

    Raises:
        NotWritableError: the training recipe did not build it, or the `onnx` package is missing.
    """
    if find_spec("onnx") is None:
        raise NotWritableError("the onnx package, which reads the weights, is not installed")
    try:
        model = _Model(folder)
    except KeyError as error:
        raise NotWritableError("its graph was not built by Midstream") from error
    tensors = model.tensors()
    inputs = {values.shape[-1] for values, bits in tensors.values() if bits != 32}
    if any(count % BLOCK for count in inputs):
        raise NotWritableError(f"a matrix has a number of inputs that is no multiple of {BLOCK}")
    _write(target, model.facts(), tensors)


class _Model:
    """A folder's weights and sizes, by the names that the training recipe gives."""

    def __init__(self, folder: ModelFolder) -> None:
        """Read everything; raises KeyError where a name is missing."""
        onnx: Any = import_module("onnx")
        graph = onnx.load(str(folder.graph)).graph
        self._context = folder.context_length
        self._held = {item.name: onnx.numpy_helper.to_array(item) for item in graph.initializer}
        self._said: dict[str, dict[str, Any]] = {
            node.name: {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            for node in graph.node
        }
        self._layers = sum(node.op_type == "GroupQueryAttention" for node in graph.node)
        attention = self._said["layers.0.attention"]
        self._heads, self._kept = int(attention["num_heads"]), int(attention["kv_num_heads"])
        self._width = 2 * int(self._held["cos_cache"].shape[1])
        self._hidden = len(self._matrix("layers.0.gate_up")[0]) // 2

    def facts(self) -> dict[str, str | int | float]:
        vocabulary, length = self._held["embedding"].shape
        sizes = {
            "vocab_size": vocabulary,
            "context_length": self._context,
            "embedding_length": length,
            "feed_forward_length": self._hidden,
            "block_count": self._layers,
            "attention.head_count": self._heads,
            "attention.head_count_kv": self._kept,
            "attention.key_length": self._width,
            "attention.value_length": self._width,
            "attention.layer_norm_rms_epsilon": float(self._said["final_norm"]["epsilon"]),
            "rope.dimension_count": self._width,
            "rope.freq_base": 1.0,
        }
        return {
            "general.architecture": "llama",
            "tokenizer.ggml.model": "none",
            **{f"llama.{key}": value for key, value in sizes.items()},
        }

    def tensors(self) -> dict[str, tuple[Array, int]]:
        """Return every tensor, [outputs, inputs] or [values], and its bits."""
        found = {
            "token_embd.weight": (self._held["embedding"], 32),
            "output_norm.weight": (self._held["final_norm.gain"], 32),
            "output.weight": self._matrix("logits"),
            "rope_freqs.weight": (self._slowness(), 32),
        }
        heads = (self._heads * self._width, *2 * (self._kept * self._width,))
        for layer in range(self._layers):
            at, to = f"layers.{layer}", f"blk.{layer}"
            found[f"{to}.attn_norm.weight"] = (self._held[f"{at}.attention_norm.gain"], 32)
            found[f"{to}.ffn_norm.weight"] = (self._held[f"{at}.hidden_norm.gain"], 32)
            found[f"{to}.attn_output.weight"] = self._matrix(f"{at}.out")
            found[f"{to}.ffn_down.weight"] = self._matrix(f"{at}.down")
            packed, bits = self._matrix(f"{at}.qkv")
            bias = self._held[f"{at}.qkv.bias"]
            for part, end, size in zip("qkv", accumulate(heads), heads, strict=True):
                rows = np.arange(end - size, end)
                if part != "v":
                    # Pairs that turn together stand side by side.
                    rows = rows.reshape(-1, 2, self._width // 2).swapaxes(1, 2).reshape(-1)
                found[f"{to}.attn_{part}.weight"] = (packed[rows], bits)
                found[f"{to}.attn_{part}.bias"] = (bias[rows], 32)
            both, bits = self._matrix(f"{at}.gate_up")
            found[f"{to}.ffn_gate.weight"] = (both[: self._hidden], bits)
            found[f"{to}.ffn_up.weight"] = (both[self._hidden :], bits)
        return found

    def _slowness(self) -> Array:
        """Return the divisor of a radian that gives each pair's angle at position 1."""
        angles = np.arctan2(self._held["sin_cache"][1], self._held["cos_cache"][1])
        return np.where(angles > 0, 1 / np.maximum(angles, STILL), 1 / STILL).astype(np.float32)

    def _matrix(self, name: str) -> tuple[Array, int]:
        """Return a product's float32 weights, [outputs, inputs], and how many bits they take."""
        stored, said = self._held[f"{name}.weight"], self._said[name]
        if stored.dtype == np.int8:
            return stored.T * self._held[f"{name}.scales"][:, None], 8
        if "bits" not in said:
            return stored.T, 32
        bits, outputs = int(said["bits"]), len(stored)
        if bits == 4:
            stored = np.stack([stored & 15, stored >> 4], axis=-1)
        blocks = stored.reshape(outputs, -1, int(said["block_size"])).astype(np.float32)
        scales = self._held[f"{name}.scales"].reshape(outputs, -1, 1)
        values = (blocks - (1 << (bits - 1))) * scales
        return values.reshape(outputs, -1)[:, : int(said["K"])], bits


def _write(
    target: Path,
    facts: Mapping[str, str | int | float],
    tensors: Mapping[str, tuple[Array, int]],
) -> None:
    head = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(facts)))
    for key, value in facts.items():
        head += _string(key)
        if isinstance(value, str):
            head += struct.pack("<I", STRING) + _string(value)
        elif isinstance(value, int):
            head += struct.pack("<II", UINT32, value)
        else:
            head += struct.pack("<If", FLOAT32, value)
    body = bytearray()
    for name, (values, bits) in tensors.items():
        # The innermost dimension comes first.
        sizes = values.shape[::-1]
        head += _string(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
        head += struct.pack("<IQ", KINDS[bits], len(body))
        body += _packed(values, bits)
        body += bytes(-len(body) % ALIGNMENT)
    head += bytes(-len(head) % ALIGNMENT)
    target.write_bytes(bytes(head + body))


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _packed(values: Array, bits: int) -> bytes:
    """Return a tensor's bytes: float32, or blocks of a half-precision scale and its weights."""
    if bits == 32:
        return np.ascontiguousarray(values, "<f4").tobytes()
    blocks = values.reshape(-1, BLOCK)
    top = 127 if bits == 8 else 7
    scales = (np.abs(blocks).max(axis=1, keepdims=True) / top).astype("<f2")
    steps = np.divide(blocks, scales, out=np.zeros_like(blocks), where=scales > 0)
    whole = np.clip(np.rint(steps), -top, top).astype(np.int8)
    if bits == 4:
        # The first half of a block is in the low bits, shifted to be above zero.
        raised = (whole + 8).astype(np.uint8)
        whole = raised[:, : BLOCK // 2] | (raised[:, BLOCK // 2 :] << 4)
    return np.hstack([scales.view(np.uint8), whole.view(np.uint8)]).tobytes()


class PeerMissing(Exception):  # noqa: N818 - a reason, not a fault
    """A peer cannot be compared with; the text says why."""


class Peer(Protocol):
    """An engine that decodes greedily, one token at a time."""

    def read(self, ids: Sequence[int], room: int) -> None:
        """Forget everything and read a prompt; there will be at most `room` steps."""
        ...

    def step(self) -> int:
        """Generate one token and return it."""
        ...


class Genai:
    """onnxruntime-genai on the same folder."""

    name = "onnxruntime-genai"

    def __init__(self, path: Path, threads: int) -> None:
        """Load the folder.

        Raises:
            PeerMissing: it is not installed, or cannot run the folder.
        """
        if find_spec("onnxruntime_genai") is None:
            raise PeerMissing("it is not installed (pip install onnxruntime-genai)")
        if not (path / "genai_config.json").is_file():
            raise PeerMissing("the folder is not in its layout")
        self._runtime: Any = import_module("onnxruntime_genai")
        self._running: Any = None
        try:
            config = self._runtime.Config(str(path))
            chosen = {"intra_op_num_threads": threads}
            config.overlay(json.dumps({"model": {"decoder": {"session_options": chosen}}}))
            self._model = self._runtime.Model(config)
        except Exception as error:
            raise PeerMissing(str(error).splitlines()[0]) from error

    def read(self, ids: Sequence[int], room: int) -> None:
        """Forget everything and read a prompt."""
        params = self._runtime.GeneratorParams(self._model)
        length = len(ids) + room + 1
        # Without a minimum it would stop where it takes the answer to end.
        params.set_search_options(max_length=length, min_length=length, do_sample=False)
        self._running = self._runtime.Generator(self._model, params)
        self._running.append_tokens(list(ids))

    def step(self) -> int:
        """Generate one token and return it."""
        self._running.generate_next_token()
        return int(self._running.get_next_tokens()[0])


class LlamaCpp:
    """llama.cpp on a GGUF file, through the C functions that llama-cpp-python passes on."""

    name = "llama.cpp"

    def __init__(self, gguf: Path, threads: int, context: int) -> None:
        """Load a file for contexts of this length.

        Raises:
            PeerMissing: it is not installed, or cannot run the file.
        """
        if not llama_installed():
            raise PeerMissing(
                "llama-cpp-python is not installed; pip builds it, with a C++ compiler"
            )
        if not gguf.is_file():
            raise PeerMissing(f"there is no file {gguf}")
        self._runtime: Any = import_module("llama_cpp")
        self._quiet = self._runtime.llama_log_callback(_say_nothing)
        self._runtime.llama_log_set(self._quiet, None)
        for extra in (True, False):
            # Some of its kernels crash on processors that announce more than they allow.
            if _survives(gguf, extra):
                break
        else:
            raise PeerMissing(f"it cannot run {gguf.name}")
        chosen = self._runtime.llama_model_default_params()
        chosen.use_extra_bufts = extra
        self._model = self._runtime.llama_model_load_from_file(str(gguf).encode(), chosen)
        params = self._runtime.llama_context_default_params()
        params.n_ctx, params.n_threads, params.n_threads_batch = context, threads, threads
        self._context = self._runtime.llama_init_from_model(self._model, params)
        vocabulary = self._runtime.llama_model_get_vocab(self._model)
        self._size = int(self._runtime.llama_vocab_n_tokens(vocabulary))
        self.plain_kernels = not extra

    def read(self, ids: Sequence[int], room: int) -> None:
        """Forget everything and read a prompt."""
        memory = self._runtime.llama_get_memory(self._context)
        self._runtime.llama_memory_clear(memory, False)
        at = self._runtime.llama_n_batch(self._context)
        for start in range(0, len(ids), at):
            self._decode(ids[start : start + at])

    def step(self) -> int:
        """Generate one token and return it."""
        logits = self._runtime.llama_get_logits_ith(self._context, -1)
        token = int(np.ctypeslib.as_array(logits, (self._size,)).argmax())
        self._decode([token])
        return token

    def _decode(self, ids: Sequence[int]) -> None:
        tokens = (self._runtime.llama_token * len(ids))(*ids)
        batch = self._runtime.llama_batch_get_one(tokens, len(ids))
        if self._runtime.llama_decode(self._context, batch):
            raise RuntimeError("llama.cpp could not run a batch")


def _say_nothing(level: int, text: bytes, data: object) -> None:
    """Take a line of llama.cpp's log."""


def llama_installed() -> bool:
    """Return whether llama-cpp-python is there."""
    return find_spec("llama_cpp") is not None


_TRIAL = """
import sys, llama_cpp as l
chosen = l.llama_model_default_params()
chosen.use_extra_bufts = sys.argv[2] == "True"
model = l.llama_model_load_from_file(sys.argv[1].encode(), chosen)
context = l.llama_init_from_model(model, l.llama_context_default_params())
for count in (40, 1):
    batch = l.llama_batch_get_one((l.llama_token * count)(), count)
    assert l.llama_decode(context, batch) == 0
"""


def _survives(gguf: Path, extra: bool) -> bool:
    """Return whether a process of its own can run a file, with its special kernels or without."""
    command = [sys.executable, "-c", _TRIAL, str(gguf), str(extra)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
