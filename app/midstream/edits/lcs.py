"""Longest common subsequences of lines: exact where affordable, anchored on unique lines elsewhere.

This aligns two known lists of lines; ``aligner`` aligns a text that is still growing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from itertools import islice

from rapidfuzz.distance import LCSseq

from midstream.edits.documents import LineEdit

_EXACT_CELLS = 200_000_000
"""Largest exact problem (old lines x new lines); the bit matrix then takes 25 MB."""
_MAX_DEPTH = 8
"""How often a problem is split: each time costs as much as the texts are long."""


def matching_pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Index pairs ``(i, j)`` with ``old[i] == new[j]``, ascending in both.

    Exact (a longest common subsequence) up to 200 million cells after the common head and tail are
    cut off; beyond that, problems are split at lines that are unique on both sides (patience), and
    where there are none, at runs of lines and the like.
    """
    return [(i + k, j + k) for i, j, size in _matching_blocks(old, new) for k in range(size)]


def _matching_blocks(
    old: Sequence[str], new: Sequence[str], depth: int = 0
) -> Iterator[tuple[int, int, int]]:
    """The same as blocks ``(old start, new start, size)``, up to the ends of both texts.

    The first block, the last, and those beside anchors may be empty.  ``depth`` counts the splits.
    """
    head = 0
    limit = min(len(old), len(new))
    while head < limit and old[head] == new[head]:
        head += 1
    tail = 0
    limit -= head
    while tail < limit and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    yield 0, 0, head
    middle_old = old[head : len(old) - tail]
    middle_new = new[head : len(new) - tail]
    for i, j, size in _middle(middle_old, middle_new, depth):
        yield i + head, j + head, size
    yield len(old) - tail, len(new) - tail, tail


def line_map(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """For each old line its line in ``new``, or -1 where it has none."""
    result = [-1] * len(old)
    for i, j in matching_pairs(old, new):
        result[i] = j
    return result


def line_edits(old: Sequence[str], new: Sequence[str]) -> list[LineEdit]:
    """The edits that turn old lines into new ones and leave common lines alone."""
    edits: list[LineEdit] = []
    at = at_new = 0
    for i, j, size in _matching_blocks(old, new):
        if i > at or j > at_new:
            edits.append(LineEdit(at, i, tuple(new[at_new:j])))
        at, at_new = i + size, j + size
    return edits


def equal_blocks(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int, int]]:
    """An exact longest common subsequence as blocks ``(old start, new start, size)``.

    Memory grows with ``len(old) * len(new)`` bits.
    """
    if not old or not new:
        return []
    return [
        (o.src_start, o.dest_start, o.src_end - o.src_start)
        for o in LCSseq.opcodes(old, new)
        if o.tag == "equal"
    ]


def _middle(old: Sequence[str], new: Sequence[str], depth: int) -> Iterator[tuple[int, int, int]]:
    if not old or not new:
        return
    if len(old) * len(new) <= _EXACT_CELLS:
        yield from equal_blocks(old, new)
        return
    if depth == _MAX_DEPTH:
        return
    if not (anchors := _anchors(old, new)):
        return
    i = j = 0
    for anchor_i, anchor_j in [*anchors, (len(old), len(new))]:
        if anchor_i > i and anchor_j > j:
            between = _matching_blocks(old[i:anchor_i], new[j:anchor_j], depth + 1)
            yield from ((i + di, j + dj, size) for di, dj, size in between)
        if anchor_i < len(old):
            yield anchor_i, anchor_j, 1
        i, j = anchor_i + 1, anchor_j + 1


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of equal lines at which a large problem is split, ascending in both.

    They are lines that are unique on both sides, else the first ones of runs that are, else the
    first, the second, and so on, of equal ones.
    """
    for hashes in (_line_hashes, partial(_run_hashes, 4), partial(_run_hashes, 32), _place_hashes):
        pairs = _unique_pairs(hashes(old), hashes(new))
        if anchors := [(i, j) for i, j in pairs if old[i] == new[j]]:
            return anchors
    return []


def _line_hashes(lines: Sequence[str]) -> list[int]:
    return [*map(hash, lines)]


def _run_hashes(length: int, lines: Sequence[str]) -> list[int]:
    return [*map(hash, zip(*(islice(lines, n, None) for n in range(length)), strict=False))]


def _place_hashes(lines: Sequence[str]) -> list[int]:
    """Of each line, with how often it has occurred before."""
    seen = Counter[str]()
    hashes: list[int] = []
    for line in lines:
        hashes.append(hash((line, seen[line])))
        seen[line] += 1
    return hashes


def _unique_pairs(old: Sequence[int], new: Sequence[int]) -> list[tuple[int, int]]:
    """Longest increasing chain of pairs of what occurs exactly once on each side."""
    old_count, new_count = Counter(old), Counter(new)
    at = {line: i for i, line in enumerate(old) if old_count[line] == 1}
    candidates = [
        (at[line], j) for j, line in enumerate(new) if new_count[line] == 1 and line in at
    ]
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (i, _) in enumerate(candidates):
        pile = bisect_left(tops, i)
        before.append(ends[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(i)
            ends.append(number)
        else:
            tops[pile] = i
            ends[pile] = number
    chain: list[tuple[int, int]] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        chain.append(candidates[number])
        number = before[number]
    chain.reverse()
    return chain
