"""A plan: the rectangles of wafers that hold a model, how full PEs are, and what does not fit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from midstream.wafer.cost import Rectangle, ceil_div
from midstream.wafer.kernels import KernelGeneration
from midstream.wafer.machines import Wafer
from midstream.wafer.operators import Workload
from midstream.wafer.shape import ModelShape

Mode = Literal["layer-rect", "time-mux"]
MODES: tuple[Mode, ...] = ("layer-rect", "time-mux")

ALLREDUCE_COLOURS_PER_AXIS = 10
"""Two reduction arms and two group arms, send and receive, and two multicast directions
(``comm_pe.csl``).
"""
HANDOFF_COLOURS = 2
"""In and out of a rectangle, where each layer has one of its own."""
HOST_COLOURS = 2
"""In and out of the wafer."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One item on one wafer.

    Attributes:
        name: ``embedding``, ``layer 7`` or ``lm_head``.
        layer: Layer index, or None.
        kind: Index of its layer kind in the workload, or None.
        wafer: Wafer index.
        rect: Its PEs.
        weight_bytes: Padded weight bytes on the fullest PE.
        buffer_bytes: Activation buffers on the fullest PE.
    """

    name: str
    layer: int | None
    kind: int | None
    wafer: int
    rect: Rectangle
    weight_bytes: int
    buffer_bytes: int


@dataclass(frozen=True, slots=True)
class KvCapacity:
    """Tokens one layer can cache, with and without WaferLLM's cache shift.

    ``shift`` spreads tokens over all rows by pushing the oldest entries one row up when a row is
    full; ``concat`` appends to one row.  Their ratio is the number of rows, up to rounding down.
    """

    rows: int
    concat: int
    shift: int


def kv_capacity(free_bytes: float, bytes_per_token: float, rows: int) -> KvCapacity:
    """Tokens that fit when each PE row has room for ``free_bytes / bytes_per_token`` of them."""
    if free_bytes <= 0 or bytes_per_token <= 0:
        return KvCapacity(rows, 0, 0)
    return KvCapacity(
        rows, int(free_bytes // bytes_per_token), int(rows * free_bytes // bytes_per_token)
    )


@dataclass(frozen=True)
class Plan:
    """A placement that fits (or, from ``place`` with ``check=False``, the best attempt)."""

    workload: Workload
    hw: Wafer
    kernels: KernelGeneration
    wafers: int
    mode: Mode
    weight_bits: int
    kv_bits: int
    items: tuple[Placed, ...]

    @property
    def shape(self) -> ModelShape:
        return self.workload.shape

    @property
    def layer_items(self) -> list[Placed]:
        return [item for item in self.items if item.layer is not None]

    @property
    def working_items(self) -> list[Placed]:
        """The layers and the output head, in order."""
        return [item for item in self.items if item.name != "embedding"]

    @property
    def colours(self) -> int:
        """Colours in use on the busiest PE."""
        colours = 2 * ALLREDUCE_COLOURS_PER_AXIS + HOST_COLOURS
        return colours + (HANDOFF_COLOURS if self.mode == "layer-rect" else 0)

    @cached_property
    def groups(self) -> dict[tuple[int | None, Rectangle], int]:
        """How many rectangles there are of each layer kind (None: the head) and size."""
        return dict(Counter((item.kind, item.rect.size) for item in self.working_items))

    def used_bytes(self, item: Placed) -> int:
        """Bytes taken on the fullest PE of an item before any key or value is cached."""
        weights = item.weight_bytes
        if self.mode == "time-mux":
            weights = sum(other.weight_bytes for other in self.items if other.wafer == item.wafer)
        return weights + item.buffer_bytes + self.kernels.reserve_bytes

    def free_bytes(self, item: Placed) -> int:
        """Bytes left for keys and values on each PE of an item."""
        return self.hw.count("sram_bytes") - self.used_bytes(item)

    def kv_bytes_per_token(self, item: Placed) -> float:
        """Bytes of one token's keys and values on each PE of one row of an item."""
        values = ceil_div(self.shape.kv_values_per_token(), item.rect.width)
        per_layer = values * self.kv_bits / 8
        if self.mode == "time-mux":
            return per_layer * sum(1 for other in self.layer_items if other.wafer == item.wafer)
        return per_layer

    @cached_property
    def kv(self) -> KvCapacity:
        """Cache capacity of the tightest layer with full attention (of any layer if none has)."""
        full = [i for i in self.layer_items if not self._windowed(i)]
        capacities = [
            kv_capacity(self.free_bytes(i), self.kv_bytes_per_token(i), i.rect.height)
            for i in full or self.layer_items
        ]
        return min(capacities, key=lambda capacity: capacity.shift)

    def _windowed(self, item: Placed) -> bool:
        return any(
            op.kind == "attention" and op.window for op in self.workload.operators(item.kind)
        )

    @cached_property
    def padding(self) -> float:
        """Share of stored weight bytes that is alignment padding."""
        stored = sum(i.weight_bytes * i.rect.pes for i in self.items)
        return 1.0 - stored_bytes(self.workload, self.weight_bits) / stored if stored else 0.0

    @cached_property
    def fill(self) -> float:
        """Highest share of SRAM in use on any PE, cache excluded."""
        return max(self.used_bytes(item) for item in self.items) / self.hw.count("sram_bytes")

    def sram_bytes(self, wafer: int, context: int) -> tuple[float, float]:
        """Bytes that padded weights, and that the cache of a context, take on one wafer."""
        per_token = self.shape.kv_values_per_token() * self.kv_bits / 8
        weights = cache = 0.0
        for item in self.items:
            if item.wafer != wafer:
                continue
            weights += item.weight_bytes * item.rect.pes
            if item.layer is not None:
                windows = [op.window for op in self.workload.operators(item.kind) if op.window]
                cache += per_token * min([context, *windows])
        return weights, cache

    def spare_bytes(self, context: int, batch: int = 1) -> float:
        """SRAM left after weights, buffers, code and the cache of a context."""
        width, height = self.hw.fabric(halo=self.kernels.halo)
        room = self.wafers * width * height * self.hw.count("sram_bytes")
        room -= self.wafers * width * height * self.kernels.reserve_bytes
        stored = sum((item.weight_bytes + item.buffer_bytes) * item.rect.pes for item in self.items)
        return room - stored - batch * self.shape.kv_bytes(context, self.kv_bits)

    def problem(self, context: int, batch: int = 1) -> str | None:
        """Why the plan does not fit, or None when it does."""
        limit = self.hw.count("colours")
        if self.colours > limit:
            return f"it needs {self.colours} colours per PE and {self.hw.label} has {limit}"
        for item in self.items:
            used, room = self.used_bytes(item), self.hw.count("sram_bytes")
            if used > room:
                return f"{item.name} needs {used / 1024:.1f} KB on a PE that has {room // 1024} KB"
        if self.kv.shift < context * batch:
            return f"the cache holds {self.kv.shift:,} tokens and {context * batch:,} are asked for"
        return None


def stored_bytes(workload: Workload, weight_bits: int) -> float:
    """Bytes of all weights that are kept in SRAM, without padding: layers, head and embedding."""
    layers = Counter(workload.layer_kinds)
    total = workload.shape.embedding_weights * weight_bits / 8
    for kind, count in [*layers.items(), (None, 1)]:
        total += count * sum(op.stored_bytes(weight_bits) for op in workload.operators(kind))
    return total
