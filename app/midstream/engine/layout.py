"""Lines of a region: their common margin, and which source line each line of an answer is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def split_lines(text: str) -> list[str]:
    """Split on newlines only (form feeds and other separators stay inside a line)."""
    if not text:
        return []
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def common_margin(lines: Iterable[str]) -> str:
    margin: str | None = None
    for line in lines:
        if not line.strip(" \t"):
            continue
        lead = line[: len(line) - len(line.lstrip(" \t"))]
        if margin is None:
            margin = lead
            continue
        while not lead.startswith(margin):
            margin = margin[:-1]
    return margin or ""


_WORD = re.compile(r"\w+|[^\w\s]")


def _similarity(old: str, new: str, old_words: list[str], new_words: list[str]) -> float:
    """Score a pair of lines for the alignment: 3 when equal, 2.5 when only the indent differs, else
    0..2.
    """
    if old == new:
        return 3.0 if old.strip() else 1.0
    if not old_words or not new_words:
        return 0.0
    if old_words == new_words:
        return 2.5
    rest = list(old_words)
    common = 0
    for word in new_words:
        if word in rest:
            rest.remove(word)
            common += 1
    share = 2 * common / (len(old_words) + len(new_words))
    return 2 * share if share >= 0.3 else 0.0


def align(source: Sequence[str], target: Sequence[str]) -> list[tuple[int | None, str]]:
    """Pair the lines of the start of an answer with source lines, so that the most text is kept.

    Args:
        source: Source lines.
        target: Lines of the answer so far, in the order of the source.

    Returns:
        One ``(source index or None, line)`` for every line of the answer.
    """
    head = 0
    limit = min(len(source), len(target))
    while head < limit and source[head] == target[head]:
        head += 1
    src, tgt = source[head:], target[head:]
    pairs: list[tuple[int | None, str]] = [(k, target[k]) for k in range(head)]
    if len(src) == len(tgt) and len(src) <= 1:
        pairs += [(head + k, line) for k, line in enumerate(tgt)]
    else:
        pairs += [(None if k is None else head + k, line) for k, line in _best_pairs(src, tgt)]
    return pairs


def _best_pairs(src: Sequence[str], tgt: Sequence[str]) -> list[tuple[int | None, str]]:
    rows, columns = len(src), len(tgt)
    if not columns:
        return []
    skip = 0.2  # An answer rarely jumps far ahead in the source.
    src_words = [_WORD.findall(line) for line in src]
    tgt_words = [_WORD.findall(line) for line in tgt]
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    pair = [[0.0] * columns for _ in range(rows)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            score = _similarity(src[i], tgt[j], src_words[i], tgt_words[j])
            pair[i][j] = score
            together = best[i + 1][j + 1] + score if score > 0 else -1.0
            best[i][j] = max(together, best[i + 1][j] - skip, best[i][j + 1])
    pairs: list[tuple[int | None, str]] = []
    i = j = 0
    while j < columns:
        if i < rows and pair[i][j] > 0 and best[i][j] == best[i + 1][j + 1] + pair[i][j]:
            pairs.append((i, tgt[j]))
            i, j = i + 1, j + 1
        elif i < rows and best[i][j] == best[i + 1][j] - skip:
            i += 1
        else:
            pairs.append((None, tgt[j]))
            j += 1
    return pairs
