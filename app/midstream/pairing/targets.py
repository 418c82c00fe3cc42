"""Which lines an instruction is about.

Found, in this order, from an explicit selection, from the symbol that the instruction names, or
from the function or class the cursor stands in.  Never a guess: where nothing fits, the error is a
question that lists what could be meant.  Reads text only; no file is opened here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from midstream.errors import UserError

if TYPE_CHECKING:
    from midstream.edits.documents import SourceText


class TargetUnclearError(UserError):
    """The instruction fits no place, or several; the sentence is a question.

    Attributes:
        candidates: Dotted names (or ``path: name``) that could be meant, best first.
    """

    code = "target_unclear"

    def __init__(self, question: str, candidates: tuple[str, ...] = ()) -> None:
        super().__init__(question)
        self.candidates = candidates


@dataclass(frozen=True, slots=True)
class Target:
    """A region of one file.

    Attributes:
        start: First line, 0-based.
        stop: End line, exclusive.
        symbol: Dotted name of what the region is, or ``""`` for a plain line range.
        why: How it was found, in words for the person.
    """

    start: int
    stop: int
    symbol: str
    why: str


def find_target(
    text: SourceText,
    *,
    instruction: str,
    cursor: int | None = None,
    selection: tuple[int, int] | None = None,
    max_lines: int | None = None,
) -> Target:
    """The lines of ``text`` that ``instruction`` is about.

    Args:
        text: The file as it is proposed now.
        instruction: What the person asks for; may name a symbol.
        cursor: The 0-based line the cursor stands on, if there is one.
        selection: A 0-based half-open line range that overrides everything else.
        max_lines: The longest region the model takes, or ``None`` for no limit.

    Raises:
        TargetUnclearError: Nothing fits, several things do, or what fits is too long.
    """
    raise NotImplementedError
