"""Token spans of the edit codec: what a changed line names of the line that it was.

Pure lists of token ids; what they stand for is the codec's business.
"""

from __future__ import annotations


def places(ids: list[int], slot: int, equals: frozenset[int]) -> list[int]:
    """Return where a swap replaces a token: everywhere, but of a line in which it is both a keyword
    of a call (`equals` follows) and something else, only the else.

    In `open(path, encoding=encoding)` a variable that is renamed is the second `encoding`.
    """
    every = [k for k, token in enumerate(ids) if token == slot]
    others = [k for k in every if k + 1 >= len(ids) or ids[k + 1] not in equals]
    return others or every


def replaced(ids: list[int], slot: int, new: list[int], equals: frozenset[int]) -> list[int]:
    """Return tokens with others in the `places` of a token."""
    chosen = frozenset(places(ids, slot, equals))
    out: list[int] = []
    for k, token in enumerate(ids):
        out += new if k in chosen else [token]
    return out


def cut_span(source: list[int], target: list[int]) -> list[int]:
    """Return the first and the last token of the span to replace, and what replaces it.

    The span is the smallest one that its two tokens name without doubt (`without_span`) and that
    holds all that differs; [] where there is none.
    """
    limit = min(len(source), len(target))
    head = next((k for k in range(limit) if source[k] != target[k]), limit)
    tail = 0
    while tail < limit - head and source[-1 - tail] == target[-1 - tail]:
        tail += 1
    low, high = head, len(source) - tail - 1
    if low > high and low > 0:
        low -= 1
    elif low > high:
        high += 1
    while 0 <= low < len(source) and source.index(source[low]) != low:
        low -= 1
    while 0 <= low <= high < len(source) and source.index(source[high], low) != high:
        high += 1
    if low < 0 or not low <= high < len(source):
        return []
    return [source[low], source[high], *target[low : len(target) - (len(source) - 1 - high)]]


def without_span(source: list[int], first: int, last: int, new: list[int]) -> list[int]:
    """Return tokens with others in place of a span: from the first `first` to the next `last`.

    Tokens that do not name a span leave the line as it was.
    """
    if first not in source or last not in source[source.index(first) :]:
        return source
    low = source.index(first)
    return [*source[:low], *new, *source[source.index(last, low) + 1 :]]
