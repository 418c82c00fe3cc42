"""Fuzzy matching of names, for pickers and completions."""

from __future__ import annotations


def fuzzy_score(wanted: str, text: str) -> float | None:
    """How well ``text`` matches letters typed in order; ``None`` if it does not.

    Consecutive letters, word beginnings and the last part of a path count more.  In a sentence,
    which has most letters somewhere, each letter follows the one before or begins a word.
    """
    found = _letters(wanted, text)
    return None if found is None else found[0]


def matched_letters(wanted: str, text: str) -> tuple[int, ...]:
    """Positions of the letters of ``text`` that :func:`fuzzy_score` has matched."""
    found = _letters(wanted, text)
    return () if found is None else found[1]


def _letters(wanted: str, text: str) -> tuple[float, tuple[int, ...]] | None:
    lowered = text.lower()
    sentence = " " in text.strip()
    last_part = lowered.rfind("/") + 1
    exact = lowered.rfind(wanted)
    score = 0.0
    if exact >= 0:
        starts_word = exact == 0 or not lowered[exact - 1].isalnum()
        score = 100 + 20 * starts_word + 30 * (exact >= last_part)
        return score - len(text) * 0.1, tuple(range(exact, exact + len(wanted)))
    at = -1
    places: list[int] = []
    for letter in wanted:
        if letter.isspace():
            continue
        found = lowered.find(letter, at + 1)
        while sentence and found > 0 and found != at + 1 and lowered[found - 1].isalnum():
            found = lowered.find(letter, found + 1)
        if found < 0:
            return None
        places.append(found)
        score += 3 if found == at + 1 else 0
        score += 2 if found == 0 or not lowered[found - 1].isalnum() else 0
        score += 1 if found >= last_part else 0
        at = found
    return score - len(text) * 0.05, tuple(places)
