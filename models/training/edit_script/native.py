"""Forward, backward and optimiser of the model on AMX cores, by the kernels of `kernels.cpp`.

Three to ten times as fast as PyTorch on the same cores: no copies and no page faults between the
operations, weights packed once a step, sequences of any length without padding, attention only
within a group and below the diagonal, and loops that share work dynamically, so that a core that
others use does not hold up the rest. Sums are in float32, so are the residual stream, the gradients
and the optimiser's state; products take bf16.

The rows of a step are those of its groups (see `packing.Group`), one behind the other.
"""

from __future__ import annotations

import ctypes
import math
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from network import HEADS, INNER, KEY_HEADS, ROPE_BASE, WIDTH
from packing import NO_LOSS, Group
from torch import Tensor

QKV = (HEADS + 2 * KEY_HEADS) * 64
SPARE = 32
"""Rows behind the last one that kernels may read."""

_HERE = Path(__file__).parent


def build(target: Path) -> Path:
    """Compile the kernels if their source is newer than the library."""
    source = _HERE / "kernels.cpp"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        flags = ["-O3", "-march=sapphirerapids", "-fopenmp", "-shared", "-fPIC"]
        subprocess.run(["g++", *flags, str(source), "-o", str(target)], check=True)
    return target


def supported() -> bool:
    """Whether this machine has the instructions."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return "amx_bf16" in flags and "avx512_bf16" in flags


class Kernels:
    """The library, called with tensors and numbers."""

    def __init__(self, library: Path, threads: int) -> None:
        self._library = ctypes.CDLL(str(library.resolve()))
        for name in ("cross_entropy", "squares"):
            getattr(self._library, name).restype = ctypes.c_double
        if self._library.setup(threads):
            raise OSError("this machine does not let us use AMX tiles")

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._library, name)

        def call(*values: Tensor | float | int | None) -> Any:
            return function(*(self._argument(value) for value in values))

        self.__dict__[name] = call
        return call

    @staticmethod
    def _argument(value: Tensor | float | int | None) -> Any:
        if value is None:
            return ctypes.c_void_p(0)
        if isinstance(value, Tensor):
            return ctypes.c_void_p(value.data_ptr())
        return ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int64(value)


@dataclass(frozen=True, slots=True)
class Step:
    """What the kernels need to know of the groups of a step."""

    rows: int
    tokens: Tensor
    positions: Tensor
    starts: Tensor
    regions: Tensor
    own: Tensor
    chosen: Tensor
    labels: Tensor
    used: int
    edits: int


def step_of(groups: list[Group]) -> Step:
    """Lay groups out one behind the other."""
    used = sum(len(group.tokens) for group in groups)
    rows = -(-used // 32) * 32
    columns: dict[str, npt.NDArray[np.int32]] = {
        name: np.zeros(rows + SPARE, np.int32) for name in ("tokens", "positions", "regions", "own")
    }
    labels = np.full(rows, NO_LOSS, np.int32)
    starts = [0]
    for group in groups:
        at, count = starts[-1], len(group.tokens)
        here = slice(at, at + count)
        branches = np.array(group.branches)
        columns["tokens"][here] = group.tokens
        columns["positions"][here] = group.positions
        columns["regions"][here] = int((branches == 0).sum())
        columns["own"][here] = np.searchsorted(branches, branches)
        labels[here] = group.labels
        starts.append(at + count)
    if used < rows:  # one more group of padding, so that every row belongs to one
        columns["regions"][used:rows] = rows - used
        starts.append(rows)
    chosen = np.flatnonzero(labels != NO_LOSS)
    tensors = {name: torch.from_numpy(values) for name, values in columns.items()}
    return Step(
        rows,
        tensors["tokens"],
        tensors["positions"],
        torch.tensor(starts, dtype=torch.int32),
        tensors["regions"],
        tensors["own"],
        torch.from_numpy(chosen),
        torch.from_numpy(labels[chosen].copy()),
        used,
        sum(group.edits for group in groups),
    )


class Engine:
    """Weights, gradients and optimiser state of one model."""

    def __init__(self, masters: dict[str, Tensor], kernels: Kernels, most_rows: int) -> None:
        self.kernels = kernels
        self.masters = {name: w.float().contiguous() for name, w in masters.items()}
        self.vocabulary = len(masters["embedding.weight"])
        if self.vocabulary % 32:
            raise ValueError(f"{self.vocabulary} tokens: the kernels want a multiple of 32")
        self.layers = 1 + max(int(n.split(".")[1]) for n in masters if n.startswith("layers."))
        self.gradients = {name: torch.zeros_like(w) for name, w in self.masters.items()}
        self.first = {name: torch.zeros_like(w) for name, w in self.masters.items()}
        self.second = {name: torch.zeros_like(w) for name, w in self.masters.items()}
        self.steps = 0
        self._small = {
            n: torch.empty_like(w, dtype=torch.bfloat16)
            for n, w in self.masters.items()
            if w.dim() > 1
        }
        self._forward = {name: torch.empty_like(w) for name, w in self._small.items()}
        self._backward = {name: torch.empty_like(w) for name, w in self._small.items()}
        for name, small in self._small.items():
            kernels.to_bf16(self.masters[name], small.numel(), small)
        self._pack_weights()
        angles = torch.arange(8_192)[:, None].double() / ROPE_BASE ** (
            torch.arange(0, 64, 2).double() / 64
        )
        self._cosine, self._sine = (
            angles.cos().float().contiguous(),
            angles.sin().float().contiguous(),
        )
        self._rows = most_rows + SPARE
        self._kept = [self._layer_buffers() for _ in range(self.layers)]
        self._work: dict[str, Tensor] = {}

    def _layer_buffers(self) -> dict[str, Tensor]:
        shapes: dict[str, tuple[int, torch.dtype]] = {
            "x": (WIDTH, torch.float32),
            "middle": (WIDTH, torch.float32),
            "h1": (WIDTH, torch.bfloat16),
            "h2": (WIDTH, torch.bfloat16),
            "qkv": (QKV, torch.bfloat16),
            "attended": (WIDTH, torch.bfloat16),
            "gate_up": (2 * INNER, torch.bfloat16),
            "inner": (INNER, torch.bfloat16),
            "r1": (1, torch.float32),
            "r2": (1, torch.float32),
            "lse": (HEADS, torch.float32),
        }
        return {
            k: torch.zeros(self._rows * width, dtype=dtype) for k, (width, dtype) in shapes.items()
        }

    def _buffer(self, name: str, size: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
        """Return scratch space, kept between calls and grown when it must be."""
        found = self._work.get(name)
        if found is None or found.numel() < size:
            found = self._work[name] = torch.zeros(size, dtype=dtype)
        return found

    def _pack_weights(self) -> None:
        for name, small in self._small.items():
            self.kernels.pack_t(small, *small.shape, self._forward[name])
            self.kernels.pack_i(small, *small.shape, self._backward[name])

    def loss(self, step: Step, backward: bool = True) -> float:
        """Return the mean loss of a step's scripts and leave its gradient in `gradients`."""
        kernels, m = self.kernels, step.rows
        if m + SPARE > self._rows:
            raise ValueError(f"{m} rows are more than the {self._rows - SPARE} there is room for")
        groups = len(step.starts) - 1
        x = self._buffer("x", self._rows * WIDTH, torch.float32)
        kernels.embed(self._small["embedding.weight"], step.tokens, m, WIDTH, x)
        for number, kept in enumerate(self._kept):
            name = f"layers.{number}."
            kept["x"][: m * WIDTH].copy_(x[: m * WIDTH])
            kernels.norm_forward(
                x, self.masters[name + "attention_norm.weight"], m, WIDTH, kept["h1"], kept["r1"]
            )
            kernels.multiply(
                kept["h1"], self._forward[name + "qkv.weight"], m, QKV, WIDTH, kept["qkv"], None, 0
            )
            kernels.rope(
                kept["qkv"],
                step.positions,
                m,
                QKV,
                HEADS,
                HEADS + KEY_HEADS,
                self._cosine,
                self._sine,
                1,
            )
            kernels.attention_forward(
                kept["qkv"],
                step.starts,
                groups,
                m,
                step.regions,
                step.own,
                kept["attended"],
                kept["lse"],
            )
            kernels.multiply(
                kept["attended"], self._forward[name + "out.weight"], m, WIDTH, WIDTH, None, x, 1
            )
            kept["middle"][: m * WIDTH].copy_(x[: m * WIDTH])
            kernels.norm_forward(
                x, self.masters[name + "inner_norm.weight"], m, WIDTH, kept["h2"], kept["r2"]
            )
            kernels.multiply(
                kept["h2"],
                self._forward[name + "gate_up.weight"],
                m,
                2 * INNER,
                WIDTH,
                kept["gate_up"],
                None,
                0,
            )
            kernels.swiglu_forward(kept["gate_up"], m, INNER, kept["inner"])
            kernels.multiply(
                kept["inner"], self._forward[name + "down.weight"], m, WIDTH, INNER, None, x, 1
            )
        return self._head(step, x, backward)

    def _head(self, step: Step, x: Tensor, backward: bool) -> float:
        """Loss over the rows that have a label; starts the backward pass."""
        kernels = self.kernels
        count = len(step.chosen)
        padded = -(-count // 32) * 32
        rows = torch.zeros(padded, WIDTH)
        rows[:count] = x[: step.rows * WIDTH].view(-1, WIDTH)[step.chosen]
        hidden = self._buffer("hidden", padded * WIDTH)
        inverse = self._buffer("inverse", padded, torch.float32)
        scale = self.masters["norm.weight"]
        kernels.norm_forward(rows, scale, padded, WIDTH, hidden, inverse)
        tokens = self.vocabulary
        logits = self._buffer("logits", padded * tokens)
        kernels.multiply(
            hidden, self._forward["embedding.weight"], padded, tokens, WIDTH, logits, None, 0
        )
        loss = kernels.cross_entropy(logits, step.labels, count, padded, tokens)
        if not backward:
            return loss
        dh = self._buffer("dh", max(self._rows, padded) * WIDTH, torch.float32)
        kernels.multiply(
            logits, self._backward["embedding.weight"], padded, WIDTH, tokens, None, dh, 0
        )
        self._weights_of("embedding.weight", logits, hidden, padded)
        selected = torch.zeros_like(rows)
        small = self._buffer("dx16", max(self._rows, padded) * WIDTH)
        self.gradients["norm.weight"].zero_()
        kernels.norm_backward(
            dh, rows, scale, inverse, padded, WIDTH, selected, small, self.gradients["norm.weight"]
        )
        dx = self._buffer("dx", self._rows * WIDTH, torch.float32)
        dx.zero_()
        dx[: step.rows * WIDTH].view(-1, WIDTH)[step.chosen] = selected[:count]
        kernels.to_bf16(dx, step.rows * WIDTH, small)
        self._layers_backward(step, dx, small, dh)
        return loss

    def _layers_backward(self, step: Step, dx: Tensor, dx16: Tensor, dh: Tensor) -> None:
        kernels, m, gradients = self.kernels, step.rows, self.gradients
        groups = len(step.starts) - 1
        inner = self._buffer("d_inner", self._rows * INNER)
        gate_up = self._buffer("d_gate_up", self._rows * 2 * INNER)
        attended = self._buffer("d_attended", self._rows * WIDTH)
        qkv = self._buffer("d_qkv", self._rows * QKV)
        for number in reversed(range(self.layers)):
            kept, name = self._kept[number], f"layers.{number}."
            kernels.multiply(
                dx16, self._backward[name + "down.weight"], m, INNER, WIDTH, inner, None, 0
            )
            self._weights_of(name + "down.weight", dx16, kept["inner"], m)
            kernels.swiglu_backward(kept["gate_up"], inner, m, INNER, gate_up)
            kernels.multiply(
                gate_up, self._backward[name + "gate_up.weight"], m, WIDTH, 2 * INNER, None, dh, 0
            )
            self._weights_of(name + "gate_up.weight", gate_up, kept["h2"], m)
            norm = name + "inner_norm.weight"
            gradients[norm].zero_()
            kernels.norm_backward(
                dh,
                kept["middle"],
                self.masters[norm],
                kept["r2"],
                m,
                WIDTH,
                dx,
                dx16,
                gradients[norm],
            )
            kernels.multiply(
                dx16, self._backward[name + "out.weight"], m, WIDTH, WIDTH, attended, None, 0
            )
            self._weights_of(name + "out.weight", dx16, kept["attended"], m)
            kernels.attention_backward(
                kept["qkv"],
                kept["attended"],
                attended,
                kept["lse"],
                step.starts,
                groups,
                m,
                step.regions,
                step.own,
                qkv,
            )
            kernels.rope(
                qkv, step.positions, m, QKV, HEADS, HEADS + KEY_HEADS, self._cosine, self._sine, -1
            )
            kernels.multiply(qkv, self._backward[name + "qkv.weight"], m, WIDTH, QKV, None, dh, 0)
            self._weights_of(name + "qkv.weight", qkv, kept["h1"], m)
            norm = name + "attention_norm.weight"
            gradients[norm].zero_()
            kernels.norm_backward(
                dh, kept["x"], self.masters[norm], kept["r1"], m, WIDTH, dx, dx16, gradients[norm]
            )
        kernels.embed_backward(dx, step.tokens, m, WIDTH, gradients["embedding.weight"])

    def _weights_of(self, name: str, gradient: Tensor, given: Tensor, rows: int) -> None:
        """Write a matrix's gradient from those of its outputs and from its inputs."""
        n, c = self.masters[name].shape
        left = self._buffer("left", rows * n)
        right = self._buffer("right", max(self._rows, rows) * 2 * INNER)
        self.kernels.pack_it(gradient, rows, n, left)
        self.kernels.pack_i(given, rows, c, right)
        self.kernels.weight_gradient(left, right, rows, n, c, self.gradients[name])

    def update(self, rate: float, decay: float = 0.01, most: float = 1.0) -> float:
        """One AdamW step with the gradient's norm held to `most`; returns the norm it had."""
        kernels = self.kernels
        norm = math.sqrt(sum(kernels.squares(g, g.numel()) for g in self.gradients.values()))
        scale = min(1.0, most / (norm + 1e-6))
        self.steps += 1
        for name, master in self.masters.items():
            kernels.adamw(
                master,
                self.first[name],
                self.second[name],
                self.gradients[name],
                self._small.get(name),
                master.numel(),
                float(scale),
                float(rate),
                decay if master.dim() > 1 else 0.0,
                0.9,
                0.95,
                1 - 0.9**self.steps,
                1 - 0.95**self.steps,
            )
        self._pack_weights()
        return norm

    def state(self) -> dict[str, Any]:
        """Return the optimiser's state."""
        return {"first": self.first, "second": self.second, "steps": self.steps}

    def restore(self, state: dict[str, Any]) -> None:
        """Take an optimiser's state over."""
        self.steps = state["steps"]
        for name in self.masters:
            self.first[name].copy_(state["first"][name])
            self.second[name].copy_(state["second"][name])
