"""Which words of a changed line changed: ranges in the deleted and in the added line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from midstream.edits.rows import Row, RowKind

Range = tuple[int, int]
"""Start and end column, end exclusive."""

_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")
LEAST_SIMILAR: Final = 0.4
"""Lines less alike than this share too little for marks to help."""
LONGEST: Final = 500


def changed_words(old: str, new: str) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """Ranges of both that differ, by words; none when the lines are too different."""
    if old == new or len(old) > LONGEST or len(new) > LONGEST:
        return (), ()
    from rapidfuzz.distance import LCSseq

    before, after = _WORD.findall(old), _WORD.findall(new)
    if LCSseq.normalized_similarity(before, after) < LEAST_SIMILAR:
        return (), ()
    old_starts, new_starts = _starts(before), _starts(after)
    gone: list[Range] = []
    come: list[Range] = []
    for block in LCSseq.opcodes(before, after):
        if block.tag == "equal":
            continue
        old_start, old_stop = block.src_start, block.src_end
        new_start, new_stop = block.dest_start, block.dest_end
        if old_stop > old_start:
            gone.append((old_starts[old_start], old_starts[old_stop]))
        if new_stop > new_start:
            come.append((new_starts[new_start], new_starts[new_stop]))
    return _merged(old, gone), _merged(new, come)


def _starts(words: Sequence[str]) -> list[int]:
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    return starts


def _merged(text: str, ranges: list[Range]) -> tuple[Range, ...]:
    """Ranges joined where only a blank lies between them, so that a phrase is one mark."""
    joined: list[Range] = []
    for start, stop in ranges:
        if joined and not text[joined[-1][1] : start].strip() and start - joined[-1][1] <= 1:
            joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((start, stop))
    return tuple(joined)


def pair_lines(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Which deleted line each added line replaces, in order.

    By position when the counts agree, else by likeness.
    """
    if len(old) == len(new):
        return [(index, index) for index in range(len(old))]
    if not old or not new or len(old) * len(new) > 400:
        return []
    from rapidfuzz.distance import LCSseq

    pairs: list[tuple[int, int]] = []
    floor = 0
    for old_index, line in enumerate(old):
        best, best_score = -1, 0.6
        for new_index in range(floor, len(new)):
            score = LCSseq.normalized_similarity(line.strip(), new[new_index].strip())
            if score > best_score:
                best, best_score = new_index, score
        if best >= 0:
            pairs.append((old_index, best))
            floor = best + 1
    return pairs


def compare_rows(rows: Sequence[Row]) -> dict[int, tuple[Range, ...]]:
    """The changed words of a hunk's rows, by their position among them."""
    gone = [(at, row.text) for at, row in enumerate(rows) if row.kind is RowKind.DELETED]
    come = [(at, row.text) for at, row in enumerate(rows) if row.kind is not RowKind.DELETED]
    ranges: dict[int, tuple[Range, ...]] = {}
    for old, new in pair_lines([text for _, text in gone], [text for _, text in come]):
        ranges[gone[old][0]], ranges[come[new][0]] = changed_words(gone[old][1], come[new][1])
    return ranges
