"""The changed words of a hunk's rows, as the painter takes them."""

from __future__ import annotations

from collections.abc import Sequence

from midstream.edits.rows import Row, RowKind

Range = tuple[int, int]
"""Start and end column, end exclusive."""


def compare_rows(rows: Sequence[Row]) -> dict[int, tuple[Range, ...]]:
    """The changed words of a hunk's rows, by their position among them."""
    # Not needed before the first hunk; its import would delay the first frame.
    from midstream.edits.intraline import pair_lines, word_difference

    gone = [(at, row.text) for at, row in enumerate(rows) if row.kind is RowKind.DELETED]
    come = [(at, row.text) for at, row in enumerate(rows) if row.kind is not RowKind.DELETED]
    ranges: dict[int, tuple[Range, ...]] = {}
    for old, new in pair_lines([text for _, text in gone], [text for _, text in come]):
        if difference := word_difference(gone[old][1], come[new][1]):
            ranges[gone[old][0]] = tuple((span.start, span.stop) for span in difference[0])
            ranges[come[new][0]] = tuple((span.start, span.stop) for span in difference[1])
    return ranges
