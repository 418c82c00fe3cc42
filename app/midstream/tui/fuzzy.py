"""Fuzzy matching of names, for pickers and completions."""

from __future__ import annotations


def fuzzy_score(wanted: str, text: str) -> float | None:
    """How well ``text`` matches letters typed in order; ``None`` if it does not.

    Consecutive letters, word beginnings and the last part of a path count more.
    """
    lowered = text.lower()
    last_part = lowered.rfind("/") + 1
    exact = lowered.rfind(wanted)
    score = 0.0
    if exact >= 0:
        starts_word = exact == 0 or not lowered[exact - 1].isalnum()
        score = 100 + 20 * starts_word + 30 * (exact >= last_part)
        return score - len(text) * 0.1
    at = -1
    for letter in wanted:
        if letter.isspace():
            continue
        found = lowered.find(letter, at + 1)
        if found < 0:
            return None
        score += 3 if found == at + 1 else 0
        score += 2 if found == 0 or not lowered[found - 1].isalnum() else 0
        score += 1 if found >= last_part else 0
        at = found
    return score - len(text) * 0.05
