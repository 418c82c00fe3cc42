"""What the GPU run is expected to add: an extrapolation of the learning curve, no measurement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

GPU_TOKENS = 1.6e9
"""Tokens of `configs/base.toml` in three times nine minutes, at a million a second: a guess from
the arithmetic of the model (150 million operations a token) and a sixth of what one GPU can do."""


def ends_of_phases(curve: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the points at which a phase ended, that is, the rate had fallen to zero.

    A point of the curve is marked by "end"; the last one always counts.
    """
    return [row for row in curve if row.get("end") or row is curve[-1]]


def extrapolated(curve: Sequence[dict[str, Any]], name: str) -> tuple[float, float]:
    """Return a low and a high guess of a set's mean exact match after `GPU_TOKENS`.

    The errors are taken to fall with a power of the tokens. The smallest power between two ends of
    phases that follow each other is the high guess, half of it the low one: between the phases
    examples, phrasings and codec became better as well, which tokens alone do not do.
    """
    ends, last = ends_of_phases(curve), curve[-1]
    powers = [
        math.log((100 - one[name]) / (100 - two[name])) / math.log(two["tokens"] / one["tokens"])
        for one, two in pairwise(ends)
    ]
    ratio = GPU_TOKENS / last["tokens"]
    low, high = (100 - (100 - last[name]) / ratio ** (min(powers) * part) for part in (0.5, 1.0))
    return low, high


def told(curve: Sequence[dict[str, Any]]) -> str:
    """Return the paragraph for the model card; "" for a curve with one phase."""
    ends = ends_of_phases(curve)
    if len(ends) < 2:
        return ""
    known, new = extrapolated(curve, "known"), extrapolated(curve, "new")
    points = ", ".join(
        f"{row['tokens'] / 1e6:.0f} M ({row['known']} % / {row['new']} %)" for row in ends
    )
    return f"""\
### What a GPU run is expected to add

All of this was trained on CPU cores. `configs/base.toml` (25 M parameters, three times nine minutes
on one GPU, `gpu.sh`) has not been run. At the ends of the phases the curve stands at
{points} (known / new).
If errors fall with the smallest power of the tokens that two of these ends show, or with half of it
(examples, phrasings and codec became better as well), some {GPU_TOKENS / 1e6:.0f} M tokens would
bring known phrasings to {known[0]:.0f}-{known[1]:.0f} % and
new ones to {new[0]:.0f}-{new[1]:.0f} %. What such a run should mend is what this size copies badly:
text between values (f-strings), lines that are written anew, redirects whose source was read under
another instruction. What it will not mend alone are phrasings that training does not have: "new"
and "by hand" depend on the grammar more than on the tokens. This is a guess from {len(ends)}
points; nothing of it was measured.
"""
