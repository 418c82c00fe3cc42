"""Findings of the guard: a rule, a place, and a severity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """The effect of a finding on the stream."""

    HALT = "halt"
    """The model is stopped and the hunk is held back."""
    WARN = "warn"
    """The hunk is marked; it can be accepted, but not in bulk."""
    OFF = "off"
    """The rule is not reported."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a text.

    Attributes:
        rule: Rule code: ruff's (``S608``) or one of ours (``secret-aws-key``).
        message: One sentence for people.
        line: First line, 0-based.
        stop: Line after the last one.
        level: What it does to the stream.
        idiom: The safe way to write it, as an instruction to the model, or ``""``.
        evidence: The stripped source of the first line with secrets masked; it identifies a finding
            after lines have moved.
    """

    rule: str
    message: str
    line: int
    stop: int
    level: Level
    idiom: str
    evidence: str

    @property
    def key(self) -> tuple[str, str]:
        """The identity of a finding, which survives moved lines."""
        return (self.rule, self.evidence)
