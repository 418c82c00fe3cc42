"""The words of the screen, in a sentence each: for help, and for ``docs/words.md``."""

from __future__ import annotations

from typing import Final

WORDS: Final = (
    ("hunk", "A block of changed lines, and what you decide on."),
    ("settled", "Complete: the model can no longer change this hunk, so you can decide it now."),
    ("decide", "Accept or reject a model's hunk; keep or put back what another program wrote."),
    ("region", "The lines that an instruction is about: those marked, or the function there."),
    ("redirect", "An instruction while the model writes: complete hunks stay, the rest is new."),
    ("following", "The view moves along with the writing, until you move yourself."),
    ("flagged", "Look closely: the model is unsure, or a check found something. Never in bulk."),
    ("guarded", "Each finished line is checked; the model is stopped at a dangerous one."),
    ("quarantined", "Stopped by the guard, and not to be decided before you release it."),
    ("watching", "Writes of other programs to this folder are seen; reviewing: they become hunks."),
    ("attention", "A record on this machine of which hunks were on screen long enough to read."),
    ("effort", "The work for an answer: one pass, checks and a repair, or several candidates."),
    ("follow-on", "An edit that the model proposes by itself after one that you saved."),
    ("endpoint", "A model server: an address, a model, and where its key is found."),
    ("pace", "The speed limit of the built-in model; pacing imitates a simulated machine."),
)
"""Each word with what it means here."""
