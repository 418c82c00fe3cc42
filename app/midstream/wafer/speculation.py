"""Speculative decoding on a wafer: expected tokens per step and step time, closed form.

With independent acceptance ``alpha`` and ``g`` drafted tokens a step emits ``(1 - alpha^(g+1)) / (1
- alpha)`` tokens on average (arXiv 2211.17192); the general form has an acceptance per draft
position.  Layers are the stages of a pipeline, so verifying ``g + 1`` tokens costs one step plus
``g`` stages: nearly free, unlike drafting.

Two schedules: ``sync`` drafts, then verifies; ``overlapped`` drafts the next window on a rectangle
of its own while the target verifies, assuming that everything is accepted, and drafts again if not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from midstream.wafer.errors import WaferUsageError
from midstream.wafer.kernels import KernelGeneration
from midstream.wafer.parameters import Parameters, frozen
from midstream.wafer.shape import ModelShape

Schedule = Literal["sync", "overlapped"]

DRAFT_LAYERS = 16
"""Depth of a 1 B-class draft model such as llama3.2-1b (assumed where the draft is undisclosed)."""

TYPICAL_ACCEPTANCE = 0.7
"""Acceptance assumed where it is undisclosed; published examples run from 0.6 to 0.9."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """How drafts are made and accepted.

    Attributes:
        draft: Drafted tokens per step.
        alpha: Acceptance probability per token; ignored when ``acceptance`` is given.
        acceptance: Conditional acceptance per draft position.
        cost: Time of one draft step relative to a target step.
        schedule: ``sync`` or ``overlapped``.
    """

    draft: int
    alpha: float = TYPICAL_ACCEPTANCE
    acceptance: tuple[float, ...] = ()
    cost: float = 0.1
    schedule: Schedule = "sync"

    def __post_init__(self) -> None:
        rates = self.acceptance or (self.alpha,)
        if self.draft < 1 or any(not 0.0 <= rate <= 1.0 for rate in rates) or self.cost < 0:
            raise WaferUsageError(
                f"Speculation with draft {self.draft}, acceptance {rates} and cost {self.cost} "
                "makes no sense; draft at least 1 token, acceptance between 0 and 1."
            )
        if self.acceptance and len(self.acceptance) < self.draft:
            raise WaferUsageError(
                f"The acceptance vector has {len(self.acceptance)} entries for {self.draft} "
                "drafted tokens; give one per position."
            )

    def acceptance_at(self, position: int) -> float:
        """Probability that draft ``position`` (0-based) is accepted when all before it were."""
        return self.acceptance[position] if self.acceptance else self.alpha

    def expected_tokens(self) -> float:
        """Tokens emitted per step, the target's own token included."""
        return expected_tokens([self.acceptance_at(i) for i in range(self.draft)])

    def all_accepted(self) -> float:
        """Probability that the whole draft is accepted."""
        return math.prod(self.acceptance_at(i) for i in range(self.draft))

    def step(self, target: float, stage: float) -> float:
        """Duration of one step, from that of a plain target step and of one pipeline stage."""
        verify = target + self.draft * stage
        drafting = self.draft * self.cost * target
        if self.schedule == "sync":
            return drafting + verify
        hit = self.all_accepted()
        return hit * max(verify, drafting) + (1.0 - hit) * (verify + drafting)

    def speedup(self, stage_share: float) -> float:
        """Tokens per unit time relative to plain decoding; ``stage_share`` is stage over step."""
        return self.expected_tokens() / self.step(1.0, stage_share)


def expected_tokens(acceptance: Sequence[float]) -> float:
    """``1 + a1 + a1 a2 + ...``: expected tokens of one step."""
    total, survive = 1.0, 1.0
    for rate in acceptance:
        survive *= rate
        total += survive
    return total


def parse_speculation(text: str, *, layers: int) -> Speculation | None:
    """Read ``draft=4,alpha=0.8[,cost=0.1][,overlapped]`` or ``4x0.8``; None for ``none`` and such.

    Raises:
        WaferUsageError: The text cannot be read.
    """
    plain = text.strip().lower()
    if plain in ("", "none", "no", "off", "0", "false"):
        return None
    cost = min(1.0, DRAFT_LAYERS / layers)
    draft, alpha, schedule = 4, TYPICAL_ACCEPTANCE, "sync"
    try:
        if "x" in plain and "=" not in plain:
            first, second = plain.split("x", 1)
            return Speculation(int(first), float(second), cost=cost)
        for part in filter(None, (piece.strip() for piece in plain.replace(";", ",").split(","))):
            name, _, value = part.partition("=")
            if name in ("draft", "g", "gamma", "k"):
                draft = int(value)
            elif name in ("alpha", "a", "acceptance"):
                alpha = float(value)
            elif name in ("cost", "c"):
                cost = float(value)
            elif name in ("sync", "overlapped") and not value:
                schedule = name
            else:
                raise ValueError(part)
    except ValueError:
        raise WaferUsageError(
            f"Speculation '{text}' cannot be read; write draft=4,alpha=0.8 and optionally "
            "cost=0.1,overlapped."
        ) from None
    return Speculation(
        draft, alpha, cost=cost, schedule="overlapped" if schedule == "overlapped" else "sync"
    )


SERVED_GENERATION = "cerebras-2025"
"""The generation whose rates may contain undisclosed speculation."""

DRAFTED_FROM = 16e9
"""Weights from which a served model is assumed to use a draft.

The limit lies between the 8 B model, which has the size of a draft itself, and the 31 B model,
whose rate needs one (assumed).
"""

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
    """Whether a served model of this size is assumed to use a draft."""
    return shape.weights() >= DRAFTED_FROM


def tokens_per_step(
    text: str,
    shape: ModelShape,
    kernels: KernelGeneration,
    parameters: Parameters | None = None,
) -> tuple[float, str]:
    """Tokens per time of a plain step, and what was assumed.

    Args:
        text: What a row or an option says of speculation.
        shape: The model.
        kernels: The generation that serves it.
        parameters: Other than the frozen ones (used by the fit).

    Returns:
        The gain over plain decoding, and a note, ``""`` if nothing was assumed.

    Raises:
        WaferUsageError: The text has numbers that cannot be read.
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
