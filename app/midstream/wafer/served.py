"""Tokens per step of a served model: what a row, a person or a generation says of speculation.

A vendor's rate counts tokens, a simulation counts steps.  Between them stands speculation, which
the vendor announced in October 2024 and has not described since.  What is said in numbers is taken
from :mod:`midstream.wafer.speculation`; what is not said is one constant per kind of model, and a
band.
"""

from __future__ import annotations

import re
from typing import Literal

from midstream.wafer.kernels import KernelGeneration
from midstream.wafer.parameters import Parameters, frozen
from midstream.wafer.shape import ModelShape
from midstream.wafer.speculation import TYPICAL_ACCEPTANCE, Speculation, parse_speculation

SERVED_GENERATION = "cerebras-2025"
"""The generation whose rates may contain speculation nobody described."""

DRAFTED_FROM = 16e9
"""Weights from which a served model is taken to have a draft: between the 8 B model, itself of a
draft's size, and the 31 B one, whose rate needs one (assumed)."""

DENSE_DRAFT = Speculation(4, TYPICAL_ACCEPTANCE, cost=0.0)
"""Draft of a dense model where it is undisclosed: four tokens of a small model of its family, made
while the target verifies (assumed; the 2.77 tokens per step are the example of arXiv 2211.17192 for
an acceptance of 0.7)."""

SpeculationKind = Literal["none", "undisclosed", "undisclosed draft", "given"]


def speculation_kind(text: str) -> SpeculationKind:
    """What a speculation cell says: nothing known, none, a draft without numbers, or numbers."""
    plain = text.strip().lower()
    if plain in ("0", "false", "off") or re.match(r"(no|not|none|without)\b", plain):
        return "none"
    if "=" in plain or re.fullmatch(r"\d+x[\d.]+", plain):
        return "given"
    unknown = re.search(r"undisclos|unknown|unclear|not said|as served", plain)
    if plain in ("", "?", "-", "n/a", "na", "auto") or unknown:
        sure = re.search(r"draft|confirmed|implied|^yes", plain)
        return "undisclosed draft" if sure else "undisclosed"
    return "undisclosed draft"


def drafted(shape: ModelShape) -> bool:
    """Whether a served model of this size is taken to have a draft."""
    return shape.weights() >= DRAFTED_FROM


def tokens_per_step(
    text: str,
    shape: ModelShape,
    kernels: KernelGeneration,
    parameters: Parameters | None = None,
) -> tuple[float, str]:
    """Tokens per time of a plain step, and what was assumed to know it.

    Args:
        text: What is said of speculation.
        shape: The model.
        kernels: The generation that serves it.
        parameters: Other than the frozen ones (used by the fit).

    Returns:
        The gain over plain decoding, and a note, empty where nothing was assumed.

    Raises:
        WaferUsageError: Numbers are given that cannot be read.
    """
    kind = speculation_kind(text)
    if kind == "given":
        speculation = parse_speculation(text, layers=shape.layers)
        gain = speculation.speedup(1.0 / shape.layers) if speculation is not None else 1.0
        return gain, f"{gain:.2f} tokens per step from {text.strip()}"
    served = kernels.name == SERVED_GENERATION or kind == "undisclosed draft"
    if kind == "none" or not served or not drafted(shape):
        return 1.0, ""
    if shape.is_moe:
        gain = (parameters or frozen()).gain_2025
        return gain, f"{gain:.2f} tokens per step as served (fitted; how is undisclosed)"
    gain = DENSE_DRAFT.speedup(1.0 / shape.layers)
    return gain, f"{gain:.2f} tokens per step as served (draft undisclosed, assumed)"
