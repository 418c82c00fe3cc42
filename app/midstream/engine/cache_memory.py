"""The memory of a decoder's live KV cache: where its rows are stored, how they are copied in and
out, and how many more fit.

Two layouts. Shared: GroupQueryAttention writes into the very buffer that it reads, so that a step
copies nothing. Concatenated: every run returns past and new rows in one new tensor, which is the
next run's past. ``HostCache`` lies in this process' memory; ``DeviceCache`` lies where the provider
computes, and comes to the host only when rows are copied aside, put back, or dropped from
concatenated tensors. Which tokens the rows stand for is ``prefix_cache``'s business.

The cache grows with what it holds, so a context is not paid for before it is used; a request that
cannot fit is refused beforehand instead of ending the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from mmap import ACCESS_COPY, mmap
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from midstream.engine.graph import CachePair
from midstream.engine.moved_rows import Run
from midstream.engine.rotary import Rotation

Array = np.ndarray[Any, Any]


class CacheMemory(Protocol):
    """Cache rows [0, stored) of every tensor, with room for ``capacity`` rows.

    Attributes:
        capacity: Rows that fit.
        stored: Rows that concatenated tensors hold now; means nothing where they are shared.
    """

    capacity: int
    stored: int

    @property
    def nbytes(self) -> int:
        """Bytes taken now."""
        ...

    def reserve(self, capacity: int, keep: int) -> None:
        """Make room for ``capacity`` rows and keep the first ``keep``; bindings become invalid."""
        ...

    def bind(self, binding: Any, past: int, total: int) -> None:
        """Bind the cache to a run: once per binding where it is shared, else before every run."""
        ...

    def ran(self, binding: Any, total: int) -> None:
        """Take what a run on concatenated tensors returned."""
        ...

    def drop(self, past: int) -> None:
        """Forget the rows from ``past`` on (needed for concatenated tensors only)."""
        ...

    def save(self, count: int) -> list[Array]:
        """Return a copy of the first rows: [heads, count, width] per tensor, on the host."""
        ...

    def load(self, saved: Sequence[Array], count: int) -> None:
        """Put the first rows of such a copy back."""
        ...

    def move(self, runs: Sequence[Run], rotation: Rotation) -> bool:
        """Put rows in other places, behind those in front of the first run; nothing stays behind
        the last one. The runs are adjacent and fit into the capacity.

        Returns:
            Whether they were moved; False where this cache cannot.
        """
        ...

    def keys(self, begin: int, end: int) -> Array:
        """Return a copy of rows of the first layer's keys: [heads, end - begin, width]."""
        ...


class HostCache:
    """A cache in host memory; concatenated tensors take turns in two buffers."""

    def __init__(self, pairs: Sequence[CachePair], *, shared: bool) -> None:
        self.capacity = self.stored = 0
        self._pairs = pairs
        self._shared = shared
        self._side = 0
        self._buffers = [
            [np.zeros(0, pair.dtype) for pair in pairs] for _ in range(1 if shared else 2)
        ]

    @property
    def nbytes(self) -> int:
        return sum(buffer.nbytes for side in self._buffers for buffer in side)

    def reserve(self, capacity: int, keep: int) -> None:
        # Tensor by tensor, so that a long cache is never held twice.
        for index, pair in enumerate(self._pairs):
            grown = [_zeros(pair.heads * capacity * pair.width, pair.dtype) for _ in self._buffers]
            rows = _view(grown[self._side], pair, capacity if self._shared else keep)
            rows[:, :keep] = self._rows(index)[:, :keep]
            for side, buffer in zip(self._buffers, grown, strict=True):
                side[index] = buffer
        self.capacity, self.stored = capacity, keep

    def bind(self, binding: Any, past: int, total: int) -> None:
        if self._shared:
            past = total = self.capacity
        there = self._buffers[self._side]
        back = there if self._shared else self._buffers[1 - self._side]
        for pair, source, target in zip(self._pairs, there, back, strict=True):
            shape = (1, pair.heads, past, pair.width)
            binding.bind_input(pair.past, "cpu", 0, pair.dtype, shape, source.ctypes.data)
            shape = (1, pair.heads, total, pair.width)
            binding.bind_output(pair.present, "cpu", 0, pair.dtype, shape, target.ctypes.data)

    def ran(self, binding: Any, total: int) -> None:
        self._side = 1 - self._side
        self.stored = total

    def drop(self, past: int) -> None:
        # The layout is dense, so what stays has to move.
        for index, pair in enumerate(self._pairs):
            rows = self._rows(index)
            kept = _view(self._buffers[self._side][index], pair, past)
            for head in range(pair.heads):
                kept[head] = rows[head, :past]
        self.stored = past

    def save(self, count: int) -> list[Array]:
        return [self._rows(index)[:, :count].copy() for index in range(len(self._pairs))]

    def load(self, saved: Sequence[Array], count: int) -> None:
        self.stored = count
        for index, rows in enumerate(saved):
            self._rows(index)[:, :count] = rows[:, :count]

    def move(self, runs: Sequence[Run], rotation: Rotation) -> bool:
        first, end = runs[0].target, runs[-1].target + runs[-1].length
        for index, pair in enumerate(self._pairs):
            rows = self._rows(index)
            pieces = [rows[:, :first]]
            for run in runs:
                piece = rows[:, run.source : run.source + run.length]
                by = run.target - run.source
                pieces.append(rotation.turned(piece, by) if pair.holds_keys else piece)
            # All of them are copied before one is overwritten.
            whole = np.concatenate(pieces, axis=1)
            buffer = self._buffers[self._side][index]
            _view(buffer, pair, self.capacity if self._shared else end)[:, :end] = whole
        self.stored = end
        return True

    def keys(self, begin: int, end: int) -> Array:
        return self._rows(_first_keys(self._pairs))[:, begin:end].copy()

    def _rows(self, index: int) -> Array:
        """View one live tensor as [heads, rows, width]."""
        rows = self.capacity if self._shared else self.stored
        return _view(self._buffers[self._side][index], self._pairs[index], rows)


class DeviceCache:
    """A cache in the memory of the device that computes."""

    def __init__(self, pairs: Sequence[CachePair], *, shared: bool, device: str) -> None:
        """``device`` is an ONNX Runtime device type, "cuda" or "dml"."""
        self.capacity = self.stored = 0
        self._pairs = pairs
        self._shared = shared
        self._device = device
        self._values: list[Any] = [self._put(_empty(pair, 0)) for pair in pairs]

    @property
    def nbytes(self) -> int:
        return sum(int(value.tensor_size_in_bytes()) for value in self._values)

    def reserve(self, capacity: int, keep: int) -> None:
        """Concatenated tensors are made by the runs, as long as they need."""
        if self._shared:
            kept = self.save(keep)
            self._values = [self._put(_empty(pair, capacity)) for pair in self._pairs]
            self.load(kept, keep)
        elif keep != self.stored:
            self.drop(keep)
        self.capacity, self.stored = capacity, keep

    def bind(self, binding: Any, past: int, total: int) -> None:
        for pair, value in zip(self._pairs, self._values, strict=True):
            binding.bind_ortvalue_input(pair.past, value)
            if self._shared:
                binding.bind_ortvalue_output(pair.present, value)
            else:
                binding.bind_output(pair.present, self._device)

    def ran(self, binding: Any, total: int) -> None:
        # Outputs come in the order of their binding, which ends with the cache.
        self._values = binding.get_outputs()[-len(self._pairs) :]
        self.stored = total

    def drop(self, past: int) -> None:
        self.load(self.save(past), past)

    def save(self, count: int) -> list[Array]:
        return [value.numpy()[0, :, :count].copy() for value in self._values]

    def load(self, saved: Sequence[Array], count: int) -> None:
        for index, rows in enumerate(saved):
            if self._shared:
                whole = self._values[index].numpy()
                whole[0, :, :count] = rows[:, :count]
                self._values[index].update_inplace(whole)
            else:
                self._values[index] = self._put(rows[None, :, :count])
        self.stored = count

    def move(self, runs: Sequence[Run], rotation: Rotation) -> bool:
        return False

    def keys(self, begin: int, end: int) -> Array:
        return self._values[_first_keys(self._pairs)].numpy()[0, :, begin:end].copy()

    def _put(self, rows: Array) -> Any:
        value: Any = import_module("onnxruntime").OrtValue
        return value.ortvalue_from_numpy(np.ascontiguousarray(rows), self._device)


def _first_keys(pairs: Sequence[CachePair]) -> int:
    return next(index for index, pair in enumerate(pairs) if pair.holds_keys)


def _empty(pair: CachePair, rows: int) -> Array:
    return np.zeros((1, pair.heads, rows, pair.width), pair.dtype)


def _zeros(size: int, dtype: Any) -> Array:
    """A flat array of zeros, aligned to a page.

    Its pages go back to the system with it, where malloc keeps those of arrays of this size.
    """
    count = size * np.dtype(dtype).itemsize
    if not count:
        return np.empty(0, dtype)
    return np.frombuffer(mmap(-1, count, access=ACCESS_COPY), dtype)


def _view(buffer: Array, pair: CachePair, rows: int) -> Array:
    """View the start of a flat buffer as [heads, rows, width]."""
    return buffer[: pair.heads * rows * pair.width].reshape(pair.heads, rows, pair.width)


MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")

SPARE_BYTES = 256 << 20
"""Left for what else a run needs: attention's scratch, activations, logits."""


def available_bytes() -> int | None:
    """Return how much memory this process may still take; None where the system does not say.

    The smaller one of Linux' ``MemAvailable`` and what the control group leaves.
    """
    found: list[int] = []
    for line in _lines(MEMINFO):
        if line.startswith("MemAvailable:"):
            found.append(1024 * int(line.split()[1]))
    limit, used = _lines(CGROUP / "memory.max"), _lines(CGROUP / "memory.current")
    if limit and used and limit[0].isdigit() and used[0].isdigit():
        found.append(max(0, int(limit[0]) - int(used[0])))
    return min(found) if found else None


def rows_that_fit(row_bytes: int) -> int | None:
    """How many more cache rows fit into free memory; None if that is unknown."""
    free = available_bytes()
    return None if free is None else max(0, free - SPARE_BYTES) // row_bytes


def spelled(size: int) -> str:
    """Format a number of bytes: "812 MiB", "12.3 GiB"."""
    return f"{size / 2**20:.0f} MiB" if size < 2**30 else f"{size / 2**30:.1f} GiB"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except OSError:
        return []
