"""Fits the parameters on the calibration rows and writes ``data/parameters.json``.

Run ``python -m midstream.wafer.fit`` to reproduce the committed file.  Only
``data/calibration.csv`` is read: the rows that the design fixed for calibration.  Each stage
minimises the sum of squared log errors of its own rows:

1. three cycle constants on the five WaferLLM rows (3 prefill, 2 decode);
2. one scale on the Aug-2024 row of Llama-3.1-8B;
3. one scale of the 2025 stack on the row of Llama-3.1-8B, taken to be served without a draft;
4. the tokens per step of mixtures on the other two catalogue rows of 2025;
5. four GPU constants on the four A100 rows, the all-reduce bounded below by
``ALLREDUCE_FLOOR_US``.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path

from midstream.wafer.models import resolve
from midstream.wafer.parameters import PARAMETERS_FILE, Parameters
from midstream.wafer.predict import predict
from midstream.wafer.rows import PublishedRow
from midstream.wafer.speculation import drafted
from midstream.wafer.validation import calibration_rows

ALLREDUCE_FLOOR_US = 5.0
"""Two launches and an NVLink round trip cannot be faster; keeps an under-determined fit physical
(assumed).
"""

FLAT = 1e-11
"""Spread of the objective over the simplex below which a search has converged."""

_START = Parameters(4.0, 400.0, 500.0, 1.0, 1.0, 1.5, 0.8, 60.0, 10.0, 40.0)

_STAGES: tuple[tuple[str, tuple[str, ...], Callable[[PublishedRow], bool]], ...] = (
    (
        "WaferLLM kernels",
        ("issue_cycles", "shift_cycles", "collective_cycles"),
        lambda row: row.kernels.startswith("waferllm"),
    ),
    ("Aug-2024 stack", ("scale_2024_08",), lambda row: row.kernels == "cerebras-2024-08"),
    (
        "2025 stack",
        ("scale_2025",),
        lambda row: row.kernels == "cerebras-2025" and not drafted(resolve(row.model).shape),
    ),
    (
        "2025 mixtures",
        ("gain_2025",),
        lambda row: row.kernels == "cerebras-2025" and drafted(resolve(row.model).shape),
    ),
    (
        "A100 baseline",
        ("gpu_efficiency", "gpu_layer_us", "gpu_allreduce_us", "gpu_internode_us"),
        lambda row: row.hardware.startswith("a100"),
    ),
)


def log_error(row: PublishedRow, parameters: Parameters) -> float:
    """``ln(predicted / published)`` of a row under given parameters."""
    predicted = predict(row, parameters)
    return math.log(predicted.point / row.published)


def minimise(
    objective: Callable[[Sequence[float]], float], start: Sequence[float], steps: int = 300
) -> list[float]:
    """Nelder-Mead simplex search: deterministic, good enough for up to four smooth parameters."""
    size = len(start)
    simplex: list[list[float]] = [list(start)]
    for axis in range(size):
        point = list(start)
        point[axis] *= 1.15
        simplex.append(point)
    values = [objective(point) for point in simplex]
    for _ in range(steps):
        order = sorted(range(size + 1), key=values.__getitem__)
        simplex = [simplex[i] for i in order]
        values = [values[i] for i in order]
        if values[-1] - values[0] <= FLAT:
            break
        worst = simplex[-1]
        centre = [sum(point[axis] for point in simplex[:-1]) / size for axis in range(size)]
        candidate = _between(centre, worst, -1.0)
        value = objective(candidate)
        if value < values[0]:
            further = _between(centre, worst, -2.0)
            candidate, value = min(
                (candidate, value), (further, objective(further)), key=lambda pair: pair[1]
            )
        elif value >= values[-2]:
            candidate = _between(centre, worst, 0.5)
            value = objective(candidate)
        if value < values[-1]:
            simplex[-1], values[-1] = candidate, value
            continue
        simplex = [_between(simplex[0], point, 0.5) for point in simplex]
        values = [objective(point) for point in simplex]
    return simplex[min(range(size + 1), key=values.__getitem__)]


def _between(origin: Sequence[float], target: Sequence[float], share: float) -> list[float]:
    return [o + share * (t - o) for o, t in zip(origin, target, strict=True)]


def fit(rows: Sequence[PublishedRow]) -> tuple[Parameters, list[dict[str, object]]]:
    """Fit all stages in order.

    Returns:
        The parameters, and per row its stage, published value, fitted value and residual.
    """
    parameters = _START
    residuals: list[dict[str, object]] = []
    for stage, names, wanted in _STAGES:
        mine = [row for row in rows if wanted(row)]
        parameters = _fit_stage(names, mine, parameters)
        residuals.extend(_record(stage, row, parameters) for row in mine)
    return parameters, residuals


def leave_one_out(rows: Sequence[PublishedRow], parameters: Parameters) -> list[dict[str, object]]:
    """Refit every stage without each of its rows in turn, and predict the row left out.

    Stages with one row are missing.  ``identified`` is false where fewer rows than constants
    remain: the error then depends on the start of the search more than on the model.

    Args:
        rows: The calibration rows.
        parameters: The fit of all rows, for the constants of other stages.
    """
    records: list[dict[str, object]] = []
    for stage, names, wanted in _STAGES:
        mine = [row for row in rows if wanted(row)]
        base = replace(parameters, **{name: getattr(_START, name) for name in names})
        for row in mine if len(mine) > 1 else ():
            others = [other for other in mine if other is not row]
            record = _record(stage, row, _fit_stage(names, others, base))
            records.append(record | {"identified": len(others) >= len(names)})
    return records


def _fit_stage(
    names: tuple[str, ...], rows: Sequence[PublishedRow], base: Parameters
) -> Parameters:
    """The constants of one stage that fit its rows best, the others as in ``base``."""

    def objective(values: Sequence[float]) -> float:
        trial = dict(zip(names, values, strict=True))
        if min(values) <= 0 or trial.get("gpu_allreduce_us", 1e9) < ALLREDUCE_FLOOR_US:
            return 1e6
        candidate = replace(base, **trial)
        return sum(log_error(row, candidate) ** 2 for row in rows)

    best = minimise(objective, [float(getattr(base, name)) for name in names])
    return replace(base, **dict(zip(names, best, strict=True)))


def _record(stage: str, row: PublishedRow, parameters: Parameters) -> dict[str, object]:
    return {
        "stage": stage,
        "row": row.label,
        "published": row.published,
        "fitted": round(predict(row, parameters).point, 2),
        "error": round(math.exp(log_error(row, parameters)) - 1, 4),
    }


def document(
    parameters: Parameters,
    residuals: list[dict[str, object]],
    left_out: list[dict[str, object]],
) -> dict[str, object]:
    """The content of the frozen file; values are rounded to four significant digits."""
    stage_of = {name: stage for stage, names, _ in _STAGES for name in names}
    return {
        "about": "Written by python -m midstream.wafer.fit from data/calibration.csv; do not edit.",
        "parameters": {
            constant.name: {
                "value": float(f"{getattr(parameters, constant.name):.4g}"),
                **constant.metadata,
                "mark": "calibrated",
                "stage": stage_of[constant.name],
            }
            for constant in fields(parameters)
        },
        "residuals": residuals,
        "leave_one_out": left_out,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Fit and print; with ``--write PATH`` also write the document."""
    parser = argparse.ArgumentParser(prog="midstream.wafer.fit", description=__doc__)
    parser.add_argument(
        "--write", type=Path, help=f"where to write, normally .../{PARAMETERS_FILE}"
    )
    arguments = parser.parse_args(argv)
    rows = calibration_rows()
    parameters, residuals = fit(rows)
    left_out = leave_one_out(rows, parameters)
    content = json.dumps(document(parameters, residuals, left_out), indent=2) + "\n"
    if arguments.write:
        arguments.write.write_text(content, encoding="utf-8")
    print(content, end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
