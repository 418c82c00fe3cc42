"""The correction that a model receives when the guard stops it, worded once for all parts.

The session builds a ``Correction`` from a finding, the request carries it to the engine, and the
training recipe makes its examples with it.  Nothing parses the wording back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from midstream.guard.findings import Finding

_NO_IDIOM: Final = "write it in another, safe way"


@dataclass(frozen=True, slots=True)
class Correction:
    """A line that has to be written differently.

    Attributes:
        line: 1-based number of the line in its file.
        rule: Code of the rule that it breaks, such as ``S608``.
        message: What is wrong with it: a sentence without its full stop.
        advice: The safe way to write it: a sentence in the imperative, with its full stop.
    """

    line: int
    rule: str
    message: str
    advice: str

    @classmethod
    def of(cls, finding: Finding, line: int) -> Correction:
        """The correction of a finding on the 1-based ``line`` of its file."""
        idiom = finding.idiom or _NO_IDIOM
        return cls(line, finding.rule, finding.message, f"{idiom[:1].upper()}{idiom[1:]}.")


@dataclass(frozen=True, slots=True)
class CorrectionRequest:
    """An instruction that is sent again because a line of its answer has to be corrected."""

    asked: str
    correction: Correction

    @property
    def instruction(self) -> str:
        """The instruction in words, for models that read nothing else."""
        return corrective_instruction(self.asked, self.correction)


def corrective_instruction(asked: str, correction: Correction) -> str:
    """The instruction for the model: what was ``asked`` for, and which line must change."""
    return (
        f"{asked}\nLine {correction.line} must not be written like that: {correction.message} "
        f"({correction.rule}). {correction.advice}"
    )
