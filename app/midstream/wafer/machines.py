"""Hardware descriptions: wafers and GPUs as data, one source and trust mark per number.

The numbers are in ``data/hardware.toml``; this module loads and names them.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any, cast

from midstream.wafer.errors import WaferUsageError
from midstream.wafer.quantity import Quantity

_ALIASES = {
    "cs2": "wse2",
    "cs3": "wse3",
    "wse": "wse3",
    "waferscaleengine2": "wse2",
    "waferscaleengine3": "wse3",
    "a10080": "a100",
    "a10080gb": "a100",
    "a100sxm": "a100",
    "h100sxm": "h100",
    "h200sxm": "h200",
    "b200sxm": "b200",
}
_FORM_FACTOR = re.compile(
    r"[\s_-]*(?:\bsxm\d*|\bpcie|\bnvl|\b\d{2,3}\s?gb?\b|\(\d* ?(?:nodes?|gpus?)\))"
)
"""Additions to a chip's name, which are ignored; the baselines are the SXM variants."""
_GPU_COUNT = re.compile(r"^(?:(?P<pre>\d+)x)?(?P<name>[a-z]+\d+[a-z0-9]*?)(?:x(?P<post>\d+))?$")


@dataclass(frozen=True)
class Hardware:
    """Named numbers of one machine; ``numbers`` keeps the source of each."""

    name: str
    label: str
    numbers: dict[str, Quantity] = field(hash=False)

    def number(self, key: str) -> float:
        """The bare value of one number.

        Raises:
            KeyError: The description has no such number.
        """
        return self.numbers[key].value

    def count(self, key: str) -> int:
        """The value of a number that counts things."""
        return int(self.numbers[key].value)


@dataclass(frozen=True)
class Wafer(Hardware):
    """One wafer-scale engine."""

    def fabric(self, *, halo: bool) -> tuple[int, int]:
        """PE columns and rows that a program can use, with or without the SDK's memcpy halo."""
        width, height = self.count("fabric_width"), self.count("fabric_height")
        if halo:
            return width - self.count("halo_columns"), height - self.count("halo_rows")
        return width, height

    @property
    def clock_hz(self) -> float:
        """The clock that turns cycles into seconds."""
        return self.number("clock_ghz") * 1e9

    @property
    def cycles_per_mac(self) -> float:
        """Cycles per fp16 multiply-add when operands stream from SRAM at 32 bits per port and
        cycle.

        The fitted kernels sustain 2 MAC/cycle, half the 4-wide WSE-2 peak; three independent
        published tables agree on it (MODEL.md, "What the data identify").
        """
        return 1.0 / self.number("sram_read_words")

    @property
    def cycles_per_streamed_mac(self) -> float:
        """Cycles per fp16 multiply-add when weights stream through one 64-bit read port.

        ``y += w x`` reads ``w`` and ``y`` and writes ``y``: the other ports are taken, so a
        matrix-vector product reaches at most four fp16 weights a cycle at any SIMD width.
        """
        return 2.0 / self.number("port_bytes")

    @property
    def fp16_per_wavelet(self) -> int:
        """fp16 values carried by one wavelet."""
        return self.count("wavelet_bits") // 16

    def with_clock(self, ghz: float) -> Wafer:
        """The same wafer at another clock; cycles stay, seconds change."""
        if not 0.1 <= ghz <= 5.0:
            raise WaferUsageError(
                f"Clock {ghz} GHz is outside 0.1-5; give the clock in GHz, for example 1.1."
            )
        clock = replace(self.numbers["clock_ghz"], value=ghz, trust="D", source="set by the caller")
        return replace(self, numbers={**self.numbers, "clock_ghz": clock})


@dataclass(frozen=True)
class Gpu(Hardware):
    """``count_gpus`` GPUs of one kind, tensor-parallel; eight share a node."""

    count_gpus: int = 1

    GPUS_PER_NODE = 8

    @property
    def nodes(self) -> int:
        return -(-self.count_gpus // self.GPUS_PER_NODE)


@cache
def _table() -> dict[str, Any]:
    text = resources.files("midstream.wafer").joinpath("data/hardware.toml").read_text("utf-8")
    return tomllib.loads(text)


def _numbers(entry: dict[str, Any]) -> dict[str, Quantity]:
    table = cast("dict[str, dict[str, Any]]", entry["numbers"])
    return {
        key: Quantity(float(item["value"]), item["unit"], item["trust"], item["source"])
        for key, item in table.items()
    }


def hardware_names() -> list[str]:
    """Names that ``hardware`` accepts; GPUs also as ``8xh100`` or ``h100x8``."""
    return list(_table())


@cache
def hardware(name: str) -> Wafer | Gpu:
    """Look up a machine by name: ``wse3``, ``cs-3``, ``WSE-2``, ``a100``, ``a100x8``, ``8xH200``.

    Raises:
        WaferUsageError: The name is unknown.
    """
    bare = _FORM_FACTOR.sub("", name.strip().lower().replace("×", "x"))
    plain = re.sub(r"[\s_*-]", "", bare)
    plain = plain.removeprefix("cerebras").removeprefix("nvidia")
    key, gpus = _ALIASES.get(plain, plain), 1
    if key not in _table() and (match := _GPU_COUNT.match(plain)):
        base = match["name"]
        key = _ALIASES.get(base, base)
        gpus = int(match["pre"] or match["post"] or 1)
    entry = cast("dict[str, Any] | None", _table().get(key))
    if entry is None or gpus < 1:
        known = ", ".join(_table())
        raise WaferUsageError(
            f"Hardware '{name}' is unknown; use one of {known} (GPUs also as h100x8)."
        )
    if entry["kind"] == "wafer":
        if gpus > 1:
            raise WaferUsageError(
                f"Hardware '{name}' counts wafers; name {key} and give the number of wafers."
            )
        return Wafer(key, str(entry["label"]), _numbers(entry))
    return Gpu(key, str(entry["label"]), _numbers(entry), gpus)


def wafer(name: str) -> Wafer:
    """Look up a wafer.

    Raises:
        WaferUsageError: The name is unknown or names a GPU.
    """
    found = hardware(name)
    if not isinstance(found, Wafer):
        raise WaferUsageError(f"'{name}' is not a wafer; use wse2 or wse3.")
    return found
