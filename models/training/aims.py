"""The figures that this model was meant to reach, beside those that it reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Report = dict[str, Any]


def _group(name: str, key: str = "known") -> Callable[[Report], float]:
    return lambda report: float(report["groups"][name][key])


def _set(name: str, key: str) -> Callable[[Report], float]:
    return lambda report: float(report["sets"][name][key])


def _said(name: str) -> Callable[[Report], float]:
    return lambda report: float(report["declining"][name]["said_precision"])


AIMS: list[tuple[str, float, Callable[[Report], float], Callable[[Report], float]]] = [
    ("tier 1", 80, _group("tier 1"), _group("tier 1", "new")),
    *(
        (name, 90.0, _group(name), _group(name, "new"))
        for name in ("rename", "parameter", "decorator", "f-string", "guard clause")
    ),
    (
        "tier 2, same program",
        50,
        _group("tier 2", "known_same_tree"),
        _group("tier 2", "new_same_tree"),
    ),
    (
        "seeded bug, its symptom said",
        50,
        _group("seeded bug, its symptom said"),
        _group("seeded bug, its symptom said", "new"),
    ),
    ("next edit", 70, _group("next edit"), _group("next edit", "new")),
    ("right to give up", 95, _said("known"), _said("new")),
    ("result parses", 99, _set("eval_known", "parses"), _set("eval_new", "parses")),
    (
        "untouched lines kept",
        99.5,
        _set("eval_known", "untouched_lines_kept"),
        _set("eval_new", "untouched_lines_kept"),
    ),
]
"""What is measured, the aim in per cent, and how to read the figure of "known" and of "new"."""
MAX_APART = 15
"""So many points new phrasings may lie below known ones."""


def table(report: Report) -> str:
    """Return the rows of a table: aim, known, new; what is short of its aim is in italics."""
    rows: list[str] = []
    for name, aim, known, new in AIMS:
        values = (f"{v} %" if v >= aim else f"*{v} %*" for v in (known(report), new(report)))
        rows.append(f"| {name} | {aim:g} % | {' | '.join(values)} |")
    sets = report["sets"]
    apart = sets["eval_known"]["exact_match"] - sets["eval_new"]["exact_match"]
    shown = f"{apart:.1f}" if apart <= MAX_APART else f"*{apart:.1f}*"
    rows.append(f"| new below known, points | at most {MAX_APART} | | {shown} |")
    return "\n".join(rows)
