"""Uses of a name in languages other than Python, from syntax trees alone.

A tree knows no types, so this decides by what defines the name.  A parameter or local variable is
used in its function only.  Any other name is certain where nothing else in the project is called
so; a member of an object only if the object is ``this`` or its like, or if the name has several
words, as ``add`` is a member of much that the project does not define.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from midstream.code.outline import Definition, outline
from midstream.code.trees import Occurrence
from midstream.codebase.similar_edits import names_at

_SEVERAL_WORDS: Final = re.compile(r"[a-z0-9][A-Z]|[^_]_[^_]")


@dataclass(frozen=True, slots=True)
class _File:
    """The occurrences of the name in one file.

    Attributes:
        spots: Where it stands, without what a local variable of that name means.
        defining: Those of them that define it.
        local: The functions that have a local variable of that name, with its uses.
    """

    spots: Sequence[Occurrence]
    defining: Sequence[Occurrence]
    local: Sequence[tuple[Definition, Sequence[Occurrence]]]


def search_trees(
    start: tuple[str, int, int], name: str, texts: Mapping[str, str]
) -> list[tuple[str, int, int, bool, bool]]:
    """Find the uses of what is called ``name`` at ``start``.

    Args:
        start: File, line and column of one use.
        name: The name.
        texts: The files in that language.

    Returns:
        Path, line, column, whether it is certain, and whether it defines the name; in order.
    """
    path, line, column = start
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    files = {p: _read(p, text, name) for p, text in sorted(texts.items()) if word.search(text)}
    if path not in files:
        return []
    for _, uses in files[path].local:
        if any((use.line, use.column) == (line, column) for use in uses):
            bound = uses[0]
            return [(path, u.line, u.column, u.role != "shorthand", u is bound) for u in uses]
    defining = {p: file.defining for p, file in files.items() if file.defining}
    only = sum(map(len, defining.values())) <= 1
    members = any(use.member for uses in defining.values() for use in uses)
    found: list[tuple[str, int, int, bool, bool]] = []
    for other, file in files.items():
        for use in file.spots:
            if use.role == "key" and not members:
                continue
            defines = use in file.defining
            if only:
                certain = defines or _says_enough(use, name)
            else:
                mine = len(defining.get(path, ())) == 1 and other == path
                here = other == path and (use.line, use.column) == (line, column)
                certain = here or (mine and (defines or _says_enough(use, name)))
            found.append((other, use.line, use.column, certain, defines))
    return found


def _says_enough(use: Occurrence, name: str) -> bool:
    if use.role in ("plain", "own"):
        return True
    return use.role == "member" and _SEVERAL_WORDS.search(name) is not None


def _read(path: str, text: str, name: str) -> _File:
    lines = tuple(text.split("\n"))
    outlined = outline(lines, path)
    spots = list(names_at(lines, name, path))
    local: list[tuple[Definition, Sequence[Occurrence]]] = []
    for function in outlined.binding(name):
        inside = [s for s in spots if function.contains(s.line) and not s.member]
        if inside:
            local.append((function, inside))
    bound = {spot for _, inside in local for spot in inside}
    free = [spot for spot in spots if spot not in bound]
    defining: list[Occurrence] = []
    for definition in outlined.definitions:
        if definition.name.rpartition(".")[2] == name:
            first = next((s for s in free if definition.contains(s.line)), None)
            if first is not None and first not in defining:
                defining.append(first)
    return _File(free, defining, local)
