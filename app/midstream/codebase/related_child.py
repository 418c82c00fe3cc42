"""A process that finds the code related to a place: what it uses, and what uses it.

Reads one JSON object from its input (see ``related.find_related``) and prints one a line, each as
soon as it is found; what has not come in time is done without.  Python is read with jedi, other
languages by their trees (see ``references_child``).
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any, Final, cast

from midstream.code.languages import grammar_of, is_test
from midstream.code.outline import Definition, Outline, may_define, outline
from midstream.code.syntax import NOT_PYTHON, parse_python
from midstream.codebase.references_child import MODEST, Project, Spot, keep_whole
from midstream.codebase.references_trees import search_trees
from midstream.codebase.similar_edits import first_use, names_at
from midstream.resources import read_text

SHORT: Final = 16
"""Lines of a definition that is sent in full; a longer one is sent as its head and docstring."""
MAX_MEMBERS: Final = 30
"""Members of a class whose heads are sent."""
MAX_NAMES: Final = 60
"""Names of the place that are looked up."""
MAX_DEFINITIONS: Final = 16
"""Definitions that are sent."""
MAX_USES: Final = 8
"""Uses that are sent."""
MAX_USES_IN_FILE: Final = 3
"""Uses that are sent of one file."""
MAX_FILE_BYTES: Final = 400_000
"""A longer file is not read: it is data, or made by a program."""
MAX_CONSTANT_LINES: Final = 6
"""Lines of an assignment; a longer one is data."""
MAX_SEARCHED: Final = 20
"""Limit on the files that are searched for uses, the likeliest ones first."""
MAX_TRIED: Final = 40
"""Occurrences of a name that are resolved to their definitions."""
_HEAD: Final = 4
"""Lines that show the head of a definition whose text cannot be parsed."""
_WORD: Final = re.compile(r"[^\W\d]\w*")
_INTRODUCES: Final = re.compile(
    r"\s*(?:(?:async\s+)?def\s|class\s|from\s|import\s|__all__\b|[\w ]+,$|\"\w+\",$)"
)
"""Begins a line that defines, imports or lists a name."""
_SEVERAL_WORDS: Final = re.compile(r"[a-z0-9][A-Z]|[^_]_[^_]")


class RelatedQuery:
    """The lines that are asked about, and the texts of the project.

    Args:
        root: The folder.
        path: The file.
        start: First line, 0-based.
        stop: End line, exclusive.
        texts: All files in that language.
    """

    def __init__(
        self, root: Path, path: str, start: int, stop: int, texts: Mapping[str, str]
    ) -> None:
        self.root, self.path, self.start, self.stop, self.texts = root, path, start, stop, texts
        self.lines = tuple(texts[path].split("\n"))

    @property
    def lies_around(self) -> range:
        """Its lines."""
        return range(self.start, self.stop)

    def lines_of(self, path: str) -> tuple[str, ...]:
        """The lines of a file."""
        return self.lines if path == self.path else tuple(self.texts[path].split("\n"))

    def used(self) -> Iterator[tuple[str, Definition]]:
        """The definitions that the lines use, with their files; the surest first."""
        told = set[tuple[str, str]]()
        find = self._used_in_python if grammar_of(self.path) is None else self._used_by_trees
        for path, line, name in find():
            definition = self._defined(path, line, name)
            if definition is None or (path, definition.name) in told:
                continue
            told.add((path, definition.name))
            yield path, definition
            if len(told) >= MAX_DEFINITIONS:
                return

    def _defined(self, path: str, line: int, name: str) -> Definition | None:
        """The definition of a name in a line of a file, if it is worth telling."""
        if path not in self.texts or (path == self.path and line in self.lies_around):
            return None
        found = [
            each
            for each in outline(self.lines_of(path), path).definitions
            if each.name.rpartition(".")[2] == name and each.contains(line)
        ]
        if not found:
            return None  # A module, an attribute, a parameter.
        nearest = found[-1]
        around = path == self.path and nearest.start <= self.start and self.stop <= nearest.stop
        constant = nearest.kind == "assignment"
        data = constant and ("." in nearest.name or nearest.length > MAX_CONSTANT_LINES)
        return None if around or data else nearest

    def _used_in_python(self) -> Iterator[tuple[str, int, str]]:
        project = Project(self.root, "", {self.path: self.texts[self.path]}, self.path)
        plain: dict[str, Spot] = {}
        members: dict[str, Spot] = {}
        leaf = project.trees[self.path].get_leaf_for_position((self.start + 1, 0), True)
        while leaf is not None and leaf.start_pos[0] <= self.stop:
            if leaf.type == "name" and leaf.start_pos[0] > self.start and not leaf.is_definition():
                before = leaf.get_previous_leaf()
                member = before is not None and before.value == "."
                spot = Spot(self.path, leaf.start_pos[0] - 1, leaf.start_pos[1])
                (members if member else plain).setdefault(leaf.value, spot)
            leaf = leaf.get_next_leaf()
        for spot in [*plain.values(), *members.values()][:MAX_NAMES]:
            for found in project.definitions(spot) or ():
                if found.path in self.texts:
                    line = self.lines_of(found.path)[found.line :][:1]
                    word = _WORD.match(line[0], found.column) if line else None
                    if word is not None:
                        yield found.path, found.line, word[0]

    def _used_by_trees(self) -> Iterator[tuple[str, int, str]]:
        here = self.lines[self.start : self.stop]
        local = outline(self.lines, self.path).local or {}
        words = dict.fromkeys(word for line in here for word in _WORD.findall(line))
        names = [
            word
            for word in words
            if len(word) > 1 and not any(row in self.lies_around for row in local.get(word, ()))
        ]
        defined: dict[str, list[tuple[str, int]]] = {}
        for path in self.texts:
            if not may_define(path, self.texts[path], names):
                continue
            for each in outline(self.lines_of(path), path).definitions:
                name = each.name.rpartition(".")[2]
                if name in names:
                    defined.setdefault(name, []).append((path, each.start))
        for name in names[:MAX_NAMES]:
            homes = defined.get(name, [])
            # A tree knows no types: of several namesakes only one in the same file is meant.
            mine = [home for home in homes if home[0] == self.path]
            certain = mine if len(mine) == 1 else homes
            as_code = any(s.line in self.lies_around for s in names_at(self.lines, name, self.path))
            if len(certain) == 1 and as_code:
                yield *certain[0], name

    def users(self, symbol: str) -> Iterator[tuple[str, int]]:
        """File and line of the uses of the definition that the lines belong to, tests last."""
        name = symbol.rpartition(".")[2]
        at = first_use(self.lines, name, self.lies_around, self.path) if name else None
        if at is None:
            return
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        having = {path: text for path, text in self.texts.items() if word.search(text)}
        start = Spot(self.path, *at)
        if grammar_of(self.path) is None:
            found = self._users_in_python(symbol, start, having)
        else:
            uses = search_trees(start, name, having)
            certain = [(path, line) for path, line, _, sure, defines in uses if sure > defines]
            found = iter(sorted(certain, key=lambda use: (is_test(use[0]), use)))
        told = set[tuple[str, int]]()
        count: dict[str, int] = {}
        for path, line in found:
            inside = path == self.path and line in self.lies_around
            if inside or (path, line) in told or count.get(path, 0) >= MAX_USES_IN_FILE:
                continue
            told.add((path, line))
            count[path] = count.get(path, 0) + 1
            yield path, line

    def _users_in_python(
        self, symbol: str, start: Spot, having: Mapping[str, str]
    ) -> Iterator[tuple[str, int]]:
        owner, _, name = symbol.rpartition(".")
        defining = re.compile(
            rf"^\s*(?:async\s+)?(?:def|class)\s+{re.escape(name)}\b", re.MULTILINE
        )
        homes = sum(len(defining.findall(text)) for text in having.values())
        # A unique name needs no types; a member of one word may be a library's.
        certain = homes == 1 and (not owner or _SEVERAL_WORDS.search(name) is not None)
        nearby = sorted(having, key=lambda path: self._distance(path, owner))[:MAX_SEARCHED]
        own = {self.path: having[self.path]}
        project: Project | None = None
        tried = 0
        for path in dict.fromkeys([*(each for each in nearby if each != self.path), self.path]):
            lines = self.lines_of(path)
            for spot in names_at(lines, name, path):
                if _INTRODUCES.match(lines[spot.line]):
                    continue
                tried += not certain
                if tried > MAX_TRIED:
                    return
                if not certain:
                    project = project or Project(self.root, name, own, self.path)
                    project.texts[path] = having[path]
                    if start not in (project.definitions(Spot(path, *spot[:2])) or ()):
                        continue
                yield path, spot.line

    def _distance(self, path: str, owner: str) -> tuple[object, ...]:
        """How unlikely a file is to use a member of a class, or what this module defines."""
        text = self.texts[path]
        module = PurePosixPath(self.path).stem
        knows = [*([owner] if owner else []), *([module] if module != "__init__" else [])]
        strange = sum(re.search(rf"\b{re.escape(each)}\b", text) is None for each in knows)
        return strange, is_test(path), path


def told(definition: Definition, lines: Sequence[str], path: str) -> str:
    """A definition for the model: whole if it is short, else its head, and those of its members."""
    own = lines[definition.start : definition.stop]
    if len(own) <= SHORT:
        return _joined(own)
    head = _head(own, path)
    shown = [*own[:head]]
    if definition.kind == "class":
        members = _members(outline(tuple(lines), path), definition)
        for member in members[:MAX_MEMBERS]:
            first = member.start - definition.start
            if first >= head:
                shown += _signature(own[first : member.stop - definition.start], path)
        if len(members) > MAX_MEMBERS:
            shown.append(f"    ({len(members) - MAX_MEMBERS} more members)")
    return _joined([*shown, f"    ... ({len(own)} lines)"])


def _members(outlined: Outline, owner: Definition) -> list[Definition]:
    depth = owner.name.count(".") + 1
    return [
        each
        for each in outlined.definitions
        if owner.encloses(each) and each.name.count(".") == depth
    ]


def _signature(own: Sequence[str], path: str) -> Sequence[str]:
    """The head of a definition without its docstring."""
    return own[: _head(own, path, docstring=False)]


def _head(own: Sequence[str], path: str, *, docstring: bool = True) -> int:
    """How many lines the head of a definition takes."""
    if grammar_of(path) is not None:
        opened = next((n for n, line in enumerate(own, 1) if re.search(r"[{;:]\s*$", line)), 1)
        return min(opened, SHORT)
    try:
        node = parse_python(textwrap.dedent(_joined(own))).body[0]
    except (*NOT_PYTHON, IndexError):
        return min(_HEAD, len(own))
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return len(own) if len(own) <= SHORT else 1
    first = node.body[0]
    said = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    if said and docstring:
        return min(first.end_lineno or SHORT, 2 * SHORT)
    begins = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))])
    return max(1, begins - 1)


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _around(lines: Sequence[str], line: int, path: str) -> tuple[str, str]:
    """The definition that a line is in, ``""`` for none, and a few lines around it."""
    homes = [d for d in outline(tuple(lines), path).definitions if d.contains(line)]
    homes = [d for d in homes if d.kind != "assignment"]
    low, high = max(0, line - 1), min(len(lines), line + 2)
    if homes:
        low, high = max(low, homes[-1].start), min(high, homes[-1].stop)
    return homes[-1].name if homes else "", _joined(lines[low:high])


def _read(root: Path, paths: Sequence[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for path in paths:
        try:
            texts[path] = read_text(root / path, MAX_FILE_BYTES)
        except (OSError, ValueError):
            continue
    return texts


def main() -> None:
    """Answer the one request on standard input, at a low priority."""
    if hasattr(os, "nice"):
        os.nice(MODEST)
    asked = cast("dict[str, Any]", json.loads(sys.stdin.buffer.read()))
    if grammar_of(asked["path"]) is None:
        cast("Any", import_module("jedi")).settings.cache_directory = asked["cache"]
        keep_whole(cast("Any", import_module("parso.cache")))
    root, path = Path(asked["root"]), asked["path"]
    texts = _read(root, asked["files"]) | {path: asked["text"]}
    place = RelatedQuery(root, path, asked["start"], asked["stop"], texts)

    def say(kind: str, other: str, line: int, name: str, text: str) -> None:
        said = {"kind": kind, "path": other, "line": line, "name": name, "text": text}
        print(json.dumps(said), flush=True)

    for other, found in place.used():
        say("definition", other, found.start, found.name, told(found, place.lines_of(other), other))
    for count, (other, line) in enumerate(place.users(asked["symbol"])):
        if count >= MAX_USES:
            break
        say("use", other, line, *_around(place.lines_of(other), line, other))


if __name__ == "__main__":
    main()
