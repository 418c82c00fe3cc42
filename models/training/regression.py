"""Calibration of confidence: a logistic regression, its threshold, and its place in a folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

RIGHT_UNFLAGGED: Final = 0.85
"""Least share of right answers among the unflagged ones, if as many answers were wrong as right,
which is near what people meet."""
RIDGE: Final = 1.0
SECTION: Final = re.compile(r"^\[confidence\]\n(?:[^\[\n][^\n]*\n|\n)*", re.MULTILINE)


def fitted(inputs: Array, right: Array) -> Array:
    """Fit a logistic regression with a ridge by Newton's method.

    Args:
        inputs: [n, features], standardised.
        right: [n], 1 for a right answer, else 0.

    Returns:
        [1 + features]: the bias (which the ridge leaves alone) and the weights.
    """
    rows = np.c_[np.ones(len(inputs)), inputs]
    ridge = np.eye(rows.shape[1]) * RIDGE
    ridge[0, 0] = 0.0
    weights = np.zeros(rows.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        slope = rows.T @ (chance - right) + ridge @ weights
        curve = (rows * (chance * (1 - chance))[:, None]).T @ rows + ridge
        step = np.linalg.solve(curve + 1e-9 * np.eye(len(curve)), slope)
        weights -= step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def area(chances: Array, right: Array) -> float:
    """Return the area under the ROC curve: how often a right answer stands above a wrong one.

    There must be some of both.
    """
    good, bad = chances[right > 0], np.sort(chances[right == 0])
    below = np.searchsorted(bad, good, "left") + np.searchsorted(bad, good, "right")
    return float(below.mean() / 2 / len(bad))


def expected_from(chances: Array) -> float:
    """Return the lowest threshold above which ``RIGHT_UNFLAGGED`` of the answers should be right.

    That is what the chances promise, so it depends little on single answers.

    Args:
        chances: [n], calibrated.
    """
    order = np.sort(chances)[::-1]
    shares = order.cumsum() / np.arange(1, len(order) + 1)
    enough = np.flatnonzero(shares >= RIGHT_UNFLAGGED)
    return float(order[enough[-1]] if len(enough) else order[0])


def section(report: Mapping[str, Any]) -> str:
    """Return the ``[confidence]`` table of ``midstream.toml``, a blank line behind it."""
    weights = ", ".join(f"{name} = {value}" for name, value in report["weights"].items())
    return (
        f"[confidence]\nthreshold = {report['threshold']}\nbias = {report['bias']}\n"
        f"weights = {{ {weights} }}\n\n"
    )


def with_section(text: str, report: Mapping[str, Any]) -> str:
    """Return the text of a ``midstream.toml`` with this ``[confidence]`` table."""
    text = SECTION.sub("", text)
    at = text.find("[card]\n")
    if at < 0:
        return f"{text.rstrip()}\n\n{section(report).rstrip()}\n"
    return text[:at] + section(report) + text[at:]
