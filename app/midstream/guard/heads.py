"""What a linter needs of the lines above a streamed region: the same line numbers, less to read.

A rule needs imports, constants and the scopes around the region, not the bodies of other functions.
`reduced_head` blanks those out, so that a verdict on the last function of a file costs no more than
on the first.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from midstream.guard.prefix import complete_prefix

SHORT: int = 120
"""Heads up to this many lines are left as they are."""

_KEPT = (
    ast.Import,
    ast.ImportFrom,
    ast.Assign,
    ast.AnnAssign,
    ast.If,
    ast.Try,
    ast.With,
)


def reduced_head(lines: Sequence[str], start: int) -> list[str]:
    """Return the lines before ``start`` with everything blanked that says nothing about it.

    Args:
        lines: The whole file, without terminators.
        start: First line of the region.

    Returns:
        ``start`` lines. Where neither the file nor its head parses, they come back unchanged.
    """
    head = list(lines[:start])
    if start <= SHORT:
        return head
    tree = _parsed("\n".join(lines)) or _parsed(complete_prefix(head) or "(")
    if tree is not None:
        _blank(head, tree.body, start)
    return head


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _blank(head: list[str], body: Sequence[ast.stmt], start: int) -> None:
    for node in body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]) - 1
        stop = node.end_lineno or node.lineno
        if first >= start:
            return
        if stop > start:
            if isinstance(node, ast.ClassDef):
                _blank(head, node.body, start)
        elif not isinstance(node, _KEPT) or stop - first > SHORT:
            head[first:stop] = [""] * (stop - first)
