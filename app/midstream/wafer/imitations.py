"""Pacing targets: from ``gpu`` or ``replay:llama3.1-8b`` to the rate of that model there.

Every figure is simulated; first tokens follow a prompt of ``CONTEXT`` tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from midstream.wafer.baselines import compare
from midstream.wafer.errors import WaferUsageError
from midstream.wafer.models import resolve
from midstream.wafer.options import Options
from midstream.wafer.pacing import Pace, PaceMode
from midstream.wafer.quantity import Band

DEFAULT_MODEL = "llama3.3-70b"
"""A model of a size that is served on both kinds of machine."""

MACHINES: dict[str, tuple[PaceMode, str]] = {
    "wafer": ("wafer", "wse3"),
    "gpu": ("gpu", "h100x8"),
    "replay": ("wafer", "wse3"),
}
"""The pacing mode and the machine for each word."""

REPLAY = "replay"
"""The word for showing complete answers at a wafer's speed."""

CONTEXT = 1024
"""Prompt and cached tokens, as in a request with one or two files."""


@dataclass(frozen=True, slots=True)
class Imitation:
    """A model on a machine whose speed is imitated.

    Attributes:
        pace: When its tokens are due.
        model: Name of the simulated model.
        machine: The machine, with its count.
        rate: Simulated tokens per second.
        first_token: Simulated seconds until the first token.
        replayed: Whether an answer is shown at that speed only once it is complete, which keeps the
            speed on a slower machine.
    """

    pace: Pace
    model: str
    machine: str
    rate: Band
    first_token: Band
    replayed: bool = False


@cache
def imitation(text: str) -> Imitation | None:
    """Simulate what ``off``, ``wafer``, ``gpu`` or ``replay`` asks for, also as ``wafer:MODEL``.

    Args:
        text: The mode, and optionally a preset, an ONNX file or a model folder (default:
            ``DEFAULT_MODEL``).

    Returns:
        None for ``off``.

    Raises:
        WaferUsageError: The mode or the model is unknown.
        ModelUnavailableError: The model cannot be read.
        DoesNotFitError: It fits on no number of wafers.
    """
    word, _, model = text.strip().partition(":")
    if word == "off" and not model:
        return None
    if word not in MACHINES:
        raise WaferUsageError(
            f"Pacing '{text}' is unknown; write off, wafer, gpu, replay, or one of the last three "
            "with a model, such as gpu:llama3.1-8b."
        )
    mode, machine = MACHINES[word]
    workload = resolve(model.strip() or DEFAULT_MODEL)
    options = Options(context=CONTEXT)
    found = compare(workload, options, [machine])[0]
    name = workload.shape.name
    pace = Pace(mode, 1.0 / found.rate.mid, first_seconds=found.first_token.mid)
    return Imitation(pace, name, found.label, found.rate, found.first_token, word == REPLAY)
