"""The words of the screen, in a sentence each: for help, and for ``docs/words.md``."""

from __future__ import annotations

from typing import Final

WORDS: Final = (
    ("hunk", "A block of changed lines; what you decide on."),
    ("settled", "A hunk that the model can no longer change."),
    ("region", "The lines that an instruction is about."),
    ("redirect", "An instruction while the model writes."),
    ("following", "The view moves along with the writing."),
    ("flagged", "Look closely: the model or a check is in doubt."),
    ("your turn", "The model or an agent waits for your answer."),
    ("guarded", "Each line is checked; dangerous ones stop the model."),
    ("quarantined", "Stopped by the guard; release it to decide."),
    ("watching", "What other programs write here is noticed."),
    ("reviewing", "It becomes hunks, to keep or to put back."),
    ("attention", "Which hunks were on screen long enough to read."),
    ("effort", "One pass, checks and a repair, or several tries."),
    ("follow-on", "An edit proposed after one that you saved."),
    ("endpoint", "A model server: address, model and key."),
    ("pace", "A speed limit; pacing imitates a machine's speed."),
)
"""Each word with what it means here."""
