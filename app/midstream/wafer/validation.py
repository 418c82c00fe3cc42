"""Runs the frozen parameters on published rows: predicted value, error and band, gates per group.

A row that measures the same as a calibration row (the same configuration, about the same value) is
marked and left out of the gates: only rows count to which the parameters were not fitted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from statistics import fmean, median
from typing import Any

from midstream.wafer.errors import RowError, WaferUsageError
from midstream.wafer.parameters import frozen_document
from midstream.wafer.predict import Prediction, configuration, predict
from midstream.wafer.rows import PublishedRow, RowProblem, read_rows

SHIPPED = ("calibration.csv", "validation.csv")
SAME_VALUE = 0.1
"""Relative difference up to which a value for the configuration of a calibration row is taken for
the same measurement, repeated or rounded; a value further off is judged."""

MAX_BAND_WIDTH = 2.0
"""Bands of undisclosed production rows may not be wider than this ratio."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One row with its prediction."""

    row: PublishedRow
    prediction: Prediction
    calibration: bool

    @property
    def error(self) -> float:
        """Relative error of the band's centre; none where a published bound is kept."""
        point, (low, high) = self.prediction.point, self.row.published_range
        bound = low == 0.0 or math.isinf(high)
        if bound and low <= point <= high:
            return 0.0
        return point / self.row.published - 1.0

    @property
    def covered(self) -> bool:
        """Whether the published value lies in the band; of a range or bound, whether any of it."""
        low, high = self.row.published_range
        return self.prediction.band.low <= high and low <= self.prediction.band.high


@dataclass(frozen=True, slots=True)
class Gate:
    """What a group has to reach; None means not asked for."""

    mape: float | None = None
    worst: float | None = None
    covered: float | None = None
    width: float | None = None


GATES: dict[str, Gate] = {
    "WaferLLM prefill": Gate(mape=0.08, worst=0.15),
    "WaferLLM decode": Gate(mape=0.08, worst=0.15),
    "WaferLLM GEMV": Gate(mape=0.08, worst=0.15),
    "WaferLLM end-to-end": Gate(worst=0.15),
    "Aug-2024 production decode": Gate(worst=0.15),
    "2025+ production decode": Gate(covered=0.8, width=MAX_BAND_WIDTH),
    "GPU decode": Gate(mape=0.15),
}
"""Gates of the design, by group; other groups are reported without one."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Statistics of the rows of one group that were not used for calibration."""

    name: str
    rows: int
    calibration_rows: int
    mape: float
    worst: float
    median: float
    covered: float
    widest: float
    gate: Gate | None
    failures: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        return {
            "group": self.name,
            "held_out_rows": self.rows,
            "calibration_rows": self.calibration_rows,
            "mape": self.mape,
            "max_abs_error": self.worst,
            "median_abs_error": self.median,
            "share_in_band": self.covered,
            "widest_band": self.widest,
            "gated": self.gate is not None,
            "failures": list(self.failures),
        }


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of a run."""

    checked: tuple[Checked, ...]
    groups: tuple[RowGroup, ...]
    problems: tuple[RowProblem, ...]

    @property
    def passed(self) -> bool:
        """Whether no gate of a group with held-out rows failed."""
        return not any(group.failures for group in self.groups)

    def as_dict(self) -> dict[str, object]:
        return {
            "simulated": True,
            "parameters": {
                name: entry["value"] for name, entry in frozen_document()["parameters"].items()
            },
            "rows": [_row_dict(item) for item in self.checked],
            "groups": [group.as_dict() for group in self.groups],
            "leave_one_out": frozen_document()["leave_one_out"],
            "left_out": [
                {"line": p.line, "column": p.column, "reason": p.reason} for p in self.problems
            ],
            "passed": self.passed,
        }


def _row_dict(item: Checked) -> dict[str, object]:
    row, band = item.row, item.prediction.band
    return {
        "line": row.line,
        "row": row.label,
        "hardware": row.hardware,
        "kernels": row.kernels,
        "model": row.model,
        "phase": row.phase,
        "published": row.published,
        "predicted": item.prediction.point,
        "low": band.low,
        "high": band.high,
        "unit": row.unit,
        "error": item.error,
        "in_band": item.covered,
        "mark": band.mark,
        "group": item.prediction.group,
        "calibration": item.calibration,
        "source": row.source,
        "notes": list(item.prediction.notes),
        "simulated": True,
    }


@dataclass(frozen=True, slots=True)
class LeaveOneOut:
    """How well the fit predicts calibration rows that it is not given, each left out in turn.

    Attributes:
        stage: Stage of the fit.
        rows: Number of rows that were left out.
        mape: Mean of their absolute relative errors.
        worst: Largest of them.
        identified: Whether the other rows are at least as many as the constants of the stage.
    """

    stage: str
    rows: int
    mape: float
    worst: float
    identified: bool


def leave_one_out() -> list[LeaveOneOut]:
    """The frozen leave-one-out errors by stage of the fit."""
    records: list[dict[str, Any]] = frozen_document()["leave_one_out"]
    found: list[LeaveOneOut] = []
    for stage in dict.fromkeys(record["stage"] for record in records):
        mine = [record for record in records if record["stage"] == stage]
        errors = [abs(float(record["error"])) for record in mine]
        identified = all(record["identified"] for record in mine)
        found.append(LeaveOneOut(stage, len(mine), fmean(errors), max(errors), identified))
    return found


def shipped_text(name: str) -> str:
    """The content of a shipped table."""
    return resources.files("midstream.wafer").joinpath(f"data/{name}").read_text("utf-8")


def calibration_rows() -> list[PublishedRow]:
    """The rows that the frozen parameters were fitted to."""
    return read_rows(shipped_text("calibration.csv"))[0]


@cache
def _fitted() -> dict[tuple[object, ...], tuple[float, ...]]:
    values: dict[tuple[object, ...], tuple[float, ...]] = {}
    for row in calibration_rows():
        key = configuration(row)
        values[key] = (*values.get(key, ()), row.published)
    return values


def validate(rows_file: str | Path | None = None) -> Validation:
    """Predict every row of a table, by default of the shipped ones.

    Args:
        rows_file: A CSV file with the columns of ``wafer.rows``.

    Raises:
        WaferUsageError: The file cannot be read or has no usable header.
    """
    rows: list[PublishedRow] = []
    problems: list[RowProblem] = []
    if rows_file is None:
        texts = [shipped_text(name) for name in SHIPPED]
    else:
        try:
            texts = [Path(rows_file).read_text("utf-8-sig")]
        except (OSError, UnicodeDecodeError) as error:
            message = f"The table '{rows_file}' cannot be read; give a CSV file."
            raise WaferUsageError(message) from error
    for text in texts:
        good, bad = read_rows(text)
        rows.extend(good)
        problems.extend(bad)
    fitted = _fitted()
    checked: list[Checked] = []
    for row in rows:
        try:
            values = fitted.get(configuration(row), ())
            known = any(abs(row.published / value - 1) <= SAME_VALUE for value in values)
            checked.append(Checked(row, predict(row), known))
        except RowError as error:
            problems.append(RowProblem(row.line, str(error), error.column))
    problems.sort(key=lambda problem: problem.line)
    names = dict.fromkeys(item.prediction.group for item in checked)
    groups = tuple(
        _group(name, [c for c in checked if c.prediction.group == name]) for name in names
    )
    return Validation(tuple(checked), groups, tuple(problems))


def _group(name: str, members: list[Checked]) -> RowGroup:
    held_out = [item for item in members if not item.calibration]
    errors = [abs(item.error) for item in held_out]
    count = len(held_out)
    mape = sum(errors) / count if count else 0.0
    worst = max(errors, default=0.0)
    covered = sum(item.covered for item in held_out) / count if count else 1.0
    widest = max((item.prediction.band.width for item in held_out), default=1.0)
    gate = GATES.get(name)
    failures: list[str] = []
    if gate is not None and count:
        limits = (
            ("MAPE", mape, gate.mape),
            ("largest error", worst, gate.worst),
            ("band width", widest, gate.width),
        )
        failures = [
            f"{what} {v:.3g} above {limit:.3g}" for what, v, limit in limits if limit and v > limit
        ]
        if gate.covered is not None and covered < gate.covered:
            failures.append(f"{covered:.0%} of rows in their band, below {gate.covered:.0%}")
    return RowGroup(
        name,
        count,
        len(members) - count,
        mape,
        worst,
        median(errors) if errors else 0.0,
        covered,
        widest,
        gate,
        tuple(failures),
    )
