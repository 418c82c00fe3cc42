"""The words of the screen, in a sentence each, and those that a review has in place of others.

Help shows them, and ``docs/words.md``.
"""

from __future__ import annotations

import re
from typing import Final

WORDS: Final = (
    ("hunk", "A block of changed lines; what you decide on."),
    ("settled", "A hunk is complete: the model no longer changes it."),
    ("region", "The lines that an instruction may change."),
    ("redirect", "To give an instruction while the model writes."),
    ("following", "The view moves along with the writing."),
    ("flagged", "Look closely: the model or a check is in doubt."),
    ("your turn", "The model or an agent waits for your answer."),
    ("guarded", "Each line is checked; dangerous ones stop the model."),
    ("held back", "A hunk that the guard stopped; release it to decide."),
    ("watching", "What other programs write here is noticed."),
    ("reviewing", "What other programs write becomes hunks to decide on."),
    ("walk", "A reading order; equal hunks are decided at once."),
    ("overview", "Bars right of the code: where hunks are; click to go."),
    ("attention", "Which hunks were on screen long enough to read."),
    ("effort", "Work per answer: one pass, a repair, or several tries."),
    ("follow-on", "An edit proposed after one that you saved."),
    ("endpoint", "A model server: address, model and key."),
    ("pace", "A speed limit; pacing imitates a machine's speed."),
)
"""Each word with what it means here."""

_IN_REVIEW: Final = {
    "accept": "keep",
    "accepted": "kept",
    "accepts": "keeps",
    "reject": "put back",
    "rejected": "put back",
    "rejects": "puts back",
}
_DECIDING: Final = re.compile(r"\b(?:accept|reject)(?:ed|s)?\b", re.IGNORECASE)


def in_review(text: str) -> str:
    """A text about decisions in the words of a review, which keeps or puts back what is on disk."""

    def other(found: re.Match[str]) -> str:
        word = _IN_REVIEW[found[0].lower()]
        return word.capitalize() if found[0][0].isupper() else word

    return _DECIDING.sub(other, text)
