"""Which words of a changed line differ: runs once for a pair of lines, when their hunk settles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from rapidfuzz import fuzz

from midstream.edits.lcs import equal_blocks

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_SIMILAR: Final = 50.0
"""Lines less similar than this (of 100) are different lines; marking words would be noise.

Lines that give the same name another value are not, however little the values have in common.
"""
_NAMED: Final = re.compile(r"\s*([\w\"'][^=:#]*?)\s*[=:](?!=)")
"""What a line gives a value: the target of an assignment, the key of a dictionary's entry."""
_MAX_LINE_LENGTH: Final = 2_000
"""Longer lines are not compared word by word."""


class Span(NamedTuple):
    """Characters ``[start, stop)`` of a line."""

    start: int
    stop: int


def word_difference(old: str, new: str) -> tuple[list[Span], list[Span]] | None:
    """The parts of two lines that differ, as runs of whole words.

    Returns:
        Spans of the old line and of the new line, or None if the lines are too different (or too
        long) for the comparison to say anything.

    >>> word_difference("total = price * 2", "total = price * count")
    ([Span(start=16, stop=17)], [Span(start=16, stop=21)])
    """
    if max(len(old), len(new)) > _MAX_LINE_LENGTH:
        return None
    if _similarity(old, new) == 0:
        return None
    old_words, new_words = _WORD.findall(old), _WORD.findall(new)
    blocks = equal_blocks(old_words, new_words)
    olds = _gaps(old_words, [(i, size) for i, _, size in blocks])
    news = _gaps(new_words, [(j, size) for _, j, size in blocks])
    return olds, news


def pair_lines(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Lines of a hunk worth comparing: index pairs, ascending in both.

    Each old line is paired with the most similar new line that keeps the order.
    """
    if len(old) * len(new) > 4_096:
        return [(i, i) for i in range(min(len(old), len(new)))]
    scores = [[_similarity(a.strip(), b.strip()) for b in new] for a in old]
    # Needleman-Wunsch over similarity, gaps free.
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            score = scores[i][j]
            matched = best[i + 1][j + 1] + score if score else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], matched)
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(old) and j < len(new):
        score = scores[i][j]
        if score and best[i][j] == best[i + 1][j + 1] + score:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _similarity(old: str, new: str) -> float:
    """How similar two lines are (of 100), 0 where they are different lines."""
    if score := fuzz.ratio(old, new, score_cutoff=_SIMILAR):
        return score
    named, again = _NAMED.match(old), _NAMED.match(new)
    same = named is not None and again is not None and named[1] == again[1]
    return _SIMILAR if same else 0.0


def _gaps(words: Sequence[str], blocks: Sequence[tuple[int, int]]) -> list[Span]:
    """Character spans of the words outside the blocks; gaps of one space are bridged."""
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    spans: list[Span] = []
    at = 0
    for first, size in [*blocks, (len(words), 0)]:
        if first > at:
            start, stop = starts[at], starts[first]
            if spans and not "".join(words[_index(starts, spans[-1].stop) : at]).strip():
                start = spans.pop().start
            spans.append(Span(start, stop))
        at = first + size
    return spans


def _index(starts: Sequence[int], position: int) -> int:
    return starts.index(position)
