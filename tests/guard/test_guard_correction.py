"""The correction of a finding, and how a model is told."""

from __future__ import annotations

from midstream.guard.correction import Correction, corrective_instruction
from midstream.guard.findings import Finding, Level


def finding(idiom: str) -> Finding:
    return Finding("S608", "SQL is built from strings", 4, 5, Level.HALT, idiom, "db.run(...)")


def test_a_correction_names_line_rule_and_the_safe_way() -> None:
    correction = Correction.of(finding("use query parameters"), 12)
    assert correction == Correction(
        12, "S608", "SQL is built from strings", "Use query parameters."
    )
    assert corrective_instruction("add a search", correction) == (
        "add a search\nLine 12 must not be written like that: SQL is built from strings (S608). "
        "Use query parameters."
    )


def test_a_rule_without_an_idiom_still_gives_advice() -> None:
    assert Correction.of(finding(""), 1).advice == "Write it in another, safe way."
