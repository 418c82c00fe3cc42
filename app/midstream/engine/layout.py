"""Lines and token spans of the edit codec: a region's dedented lines, the source line of each
target line, and the span of a line that a change replaces.

Plain text and lists of token ids; the codec turns one into the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from midstream.engine.python_lines import LineState, is_regular, states


@dataclass(slots=True)
class Layout:
    """The line structure of one request: what anchors stand for."""

    margin: str
    lines: list[str]
    first_anchor: int = 0
    _states: list[LineState] | None = None

    def states(self) -> list[LineState]:
        """What is open before each line and after the last; [] where that is not informative."""
        if self._states is None:
            found = states(self.lines)
            self._states = found if is_regular(self.lines, found) else []
        return self._states

    def strip(self, line: str) -> str | None:
        """Return a line without the margin, or None where it does not have it."""
        if line.startswith(self.margin):
            return line[len(self.margin) :]
        return "" if not line else None


def split_lines(text: str) -> list[str]:
    """Split on newlines only (form feeds and other separators stay inside a line)."""
    if not text:
        return []
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def next_line(lines: Iterable[str]) -> str | None:
    return next((line for line in lines if line.strip()), None)


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


def deeper(layout: Layout, line: str) -> str | None:
    """The line one level deeper; None for a blank line or one without the margin."""
    if not line.startswith(layout.margin) or not line.strip(" \t"):
        return None
    return layout.margin + "    " + line[len(layout.margin) :]


def shallower(layout: Layout, line: str) -> str | None:
    """The line one level shallower; None where it has no level to lose."""
    if not line.startswith(layout.margin + "    "):
        return None
    return layout.margin + line[len(layout.margin) + 4 :]


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


def align(
    source: Sequence[str], target: Sequence[str], *, open_end: bool
) -> list[tuple[int | None, str]]:
    """Pair target lines with source lines, in order, so that the most text is kept.

    Args:
        source: Source lines.
        target: Target lines.
        open_end: Whether the target is only the start of an answer, so that its end need not meet
            the source's.

    Returns:
        One ``(source index or None, line)`` for every target line.
    """
    head = 0
    limit = min(len(source), len(target))
    while head < limit and source[head] == target[head]:
        head += 1
    tail = 0
    while not open_end and tail < limit - head and source[-1 - tail] == target[-1 - tail]:
        tail += 1
    src = source[head : len(source) - tail]
    tgt = target[head : len(target) - tail]
    pairs: list[tuple[int | None, str]] = [(k, target[k]) for k in range(head)]
    if len(src) == len(tgt) and len(src) <= 1:
        pairs += [(head + k, line) for k, line in enumerate(tgt)]
    else:
        pairs += [
            (None if k is None else head + k, line) for k, line in _best_pairs(src, tgt, open_end)
        ]
    shift = len(source) - len(target)
    pairs += [(k + shift, target[k]) for k in range(len(target) - tail, len(target))]
    return pairs


def _best_pairs(
    src: Sequence[str], tgt: Sequence[str], open_end: bool
) -> list[tuple[int | None, str]]:
    rows, columns = len(src), len(tgt)
    if not columns:
        return []
    skip = 0.2 if open_end else 0.0  # what was kept so far rarely jumps far ahead in the source
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


def places(ids: list[int], slot: int, equals: frozenset[int]) -> list[int]:
    """Return where a swap replaces a token: everywhere, but of a line in which it is both a keyword
    of a call (``equals`` follows) and something else, only the else.

    In ``open(path, encoding=encoding)`` a variable that is renamed is the second ``encoding``.
    """
    every = [k for k, token in enumerate(ids) if token == slot]
    others = [k for k in every if k + 1 >= len(ids) or ids[k + 1] not in equals]
    return others or every


def replaced(ids: list[int], slot: int, new: list[int], equals: frozenset[int]) -> list[int]:
    chosen = frozenset(places(ids, slot, equals))
    out: list[int] = []
    for k, token in enumerate(ids):
        out += new if k in chosen else [token]
    return out


def cut_span(source: list[int], target: list[int]) -> list[int]:
    """Return the first and the last token of the span to replace, and what replaces it.

    The span is the smallest one that its two tokens name without doubt (``without_span``) and that
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
    """Return tokens with others in place of a span: from the first ``first`` to the next ``last``.

    Tokens that do not name a span leave the line as it was.
    """
    if first not in source or last not in source[source.index(first) :]:
        return source
    low = source.index(first)
    return [*source[:low], *new, *source[source.index(last, low) + 1 :]]
