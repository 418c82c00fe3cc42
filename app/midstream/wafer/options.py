"""Options of a simulation: one typed record, read from provider options or command-line flags."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from midstream.wafer.errors import WaferUsageError
from midstream.wafer.kernels import KernelGeneration, generation
from midstream.wafer.machines import Wafer, wafer
from midstream.wafer.operators import Workload
from midstream.wafer.placement import place
from midstream.wafer.plan import MODES, Mode, Plan
from midstream.wafer.speculation import Speculation, parse_speculation, speculation_kind

DEFAULT_KERNELS = "cerebras-2025"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a simulation.

    Attributes:
        hardware: ``wse2`` or ``wse3``.
        kernels: Kernel generation.
        wafers: Number of wafers; None finds the smallest that fits.
        mode: Placement mode.
        context: Cached tokens that decode is priced at.
        batch: Concurrent sequences.
        prompt: Prompt tokens for the time to first token; None takes the context.
        speculation: ``auto`` (as the generation serves it), ``none``, or text for
            ``wafer.speculation.parse_speculation``.
        weight_bits: Bits per weight; None takes the model's.
        kv_bits: Bits per cached value.
        clock_ghz: Clock; None takes the hardware's.
    """

    hardware: str = "wse3"
    kernels: str = DEFAULT_KERNELS
    wafers: int | None = None
    mode: Mode = "layer-rect"
    context: int = 4096
    batch: int = 1
    prompt: int | None = None
    speculation: str = "auto"
    weight_bits: int | None = None
    kv_bits: int = 16
    clock_ghz: float | None = None

    @classmethod
    def from_strings(cls, values: Mapping[str, str]) -> Options:
        """Read provider options (string to string, as ONNX Runtime has them).

        Raises:
            WaferUsageError: A name is unknown or a value cannot be read.
        """
        known = dict.fromkeys(cls.__dataclass_fields__)
        fields: dict[str, object] = {}
        for name, text in values.items():
            if name not in known:
                raise WaferUsageError(
                    f"Option '{name}' is unknown; options are {', '.join(known)}."
                )
            fields[name] = _value(name, str(text))
        return cls(**fields)  # pyright: ignore[reportArgumentType]

    @property
    def wafer(self) -> Wafer:
        found = wafer(self.hardware)
        return found.with_clock(self.clock_ghz) if self.clock_ghz else found

    @property
    def generation(self) -> KernelGeneration:
        return generation(self.kernels)

    def place(self, workload: Workload) -> Plan:
        """Place a model with these options; raises as ``placement.place``."""
        return place(
            workload,
            self.wafer,
            self.generation,
            wafers=self.wafers,
            mode=self.mode,
            weight_bits=self.weight_bits,
            kv_bits=self.kv_bits,
            context=self.context,
            batch=self.batch,
        )

    def speculating(self, layers: int) -> Speculation | None:
        """The speculation in numbers for a model of ``layers`` layers; None without any."""
        if speculation_kind(self.speculation) == "undisclosed":
            return None
        return parse_speculation(self.speculation, layers=layers)

    def as_strings(self) -> dict[str, str]:
        """The options as provider options; unset ones are left out."""
        pairs = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: str(value) for name, value in pairs.items() if value is not None}


def _value(name: str, text: str) -> object:
    plain = text.strip()
    if name in ("hardware", "kernels", "speculation"):
        return plain
    if name == "mode":
        if plain not in MODES:
            raise WaferUsageError(f"Placement mode '{text}' is unknown; use {' or '.join(MODES)}.")
        return plain
    if plain.lower() in ("", "auto", "none"):
        if name in ("wafers", "prompt", "weight_bits", "clock_ghz"):
            return None
        raise WaferUsageError(f"Option {name} needs a number, not '{text}'.")
    try:
        if name != "clock_ghz":
            return int(plain.removesuffix("k")) * (1024 if plain.endswith("k") else 1)
        clock = float(plain)
    except ValueError:
        raise WaferUsageError(f"Option {name} needs a number, not '{text}'.") from None
    if not 0 < clock < math.inf:
        raise WaferUsageError(f"A clock of {text} GHz is none; leave it out for the hardware's.")
    return clock
