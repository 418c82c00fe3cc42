"""Fuzzy matching of names, for pickers and completions."""

from __future__ import annotations

import re
from typing import Final

_FILLERS: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and are by can did do does find for have how i in is it me my of off on or see that "
        "the this to turn use was what with",
    )
)
"""Words that only join others."""


def fuzzy_score(wanted: str, text: str) -> float | None:
    """How well ``text`` matches letters typed in order; ``None`` if it does not.

    Consecutive letters, word beginnings and the last part of a path count more.  In a sentence,
    which has most letters somewhere, each letter follows the one before or begins a word.
    """
    found = _letters(wanted, text)
    return None if found is None else found[0]


def has_words(wanted: str, *texts: str) -> bool:
    """Whether texts have all words of a phrase, in any order and form.

    Args:
        wanted: Two words or more, in lower case; those that only join others do not count.
        texts: A word of theirs may be longer, or the beginning of one that is wanted.
    """
    if len(wanted.split()) < 2:
        return False
    known = re.findall(r"\w+", " ".join(texts).lower())
    words = [word for word in re.findall(r"\w+", wanted) if word not in _FILLERS]
    return bool(words) and all(
        any(one.startswith(word) or (len(one) > 3 and word.startswith(one)) for one in known)
        for word in words
    )


def matched_letters(wanted: str, text: str) -> tuple[int, ...]:
    """Positions of the letters of ``text`` that ``fuzzy_score`` has matched."""
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
        end = exact + len(wanted)
        ends_word = end == len(lowered) or not lowered[end].isalnum()
        whole = starts_word and ends_word
        score = 100 + 20 * starts_word + 10 * whole + 30 * (exact >= last_part)
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
