"""Oracle of renames: of names that a package defines once, every token of that name is a use."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import inspect
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Symbol(NamedTuple):
    """A name and where it is defined, 0-based."""

    name: str
    path: str
    line: int
    column: int


class Package:
    """A folder with a package, and its names that stand for one thing only.

    Args:
        folder: The folder, with the package's tests if there are any.
        inside: Where the names have to be defined.
    """

    def __init__(self, folder: Path, inside: str = "") -> None:
        self.root = folder
        self._inside = inside
        self.texts = {
            path.relative_to(folder).as_posix(): path.read_text("utf-8")
            for path in sorted(folder.rglob("*.py"))
        }
        self.defined: dict[str, list[Symbol]] = {}
        self.uses: dict[str, int] = {}
        for path, text in self.texts.items():
            tree = ast.parse(text)
            for name_, line, column in defined(tree, text.split("\n")):
                self.defined.setdefault(name_, []).append(Symbol(name_, path, line, column))
            for each in used(tree):
                self.uses[each] = self.uses.get(each, 0) + 1

    @classmethod
    def copied(cls, name: str, folder: Path) -> Package:
        """A copy of an installed package, in a folder."""
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        ignore = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(Path(spec.origin).parent, folder / name, ignore=ignore)
        return cls(folder)

    def symbols(self, count: int) -> list[Symbol]:
        """Names defined once, which neither builtins nor imported modules have, in chance order.

        What stands in bytes is left out: pickles of earlier releases have the earlier name.
        """
        foreign = self._foreign() | self._in_bytes()
        found = [
            places[0]
            for name, places in sorted(self.defined.items())
            if len(places) == 1
            and len(name) > 3
            and not name.startswith("__")
            and name not in foreign
            and self.uses.get(name, 0) > 1
            and places[0].path.startswith(self._inside)
        ]
        random.Random(17).shuffle(found)
        return found[:count]

    def _foreign(self) -> set[str]:
        names: set[str] = set()
        for kind in (str, bytes, list, dict, set, int, object, type, property, Path):
            names.update(dir(kind))
        for text in self.texts.values():
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    module = getattr(node, "module", None) or ""
                    if getattr(node, "level", 0) or module.startswith(tuple(self._tops)):
                        continue
                    for alias in node.names:
                        names |= {alias.asname or "", *f"{module}.{alias.name}".split(".")}
                        names |= _members(module or alias.name)
        return names

    def _in_bytes(self) -> set[str]:
        found: set[str] = set()
        for text in self.texts.values():
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Constant) and isinstance(node.value, bytes):
                    found.update(re.findall(r"\w+", node.value.decode("latin-1")))
        return found

    @property
    def _tops(self) -> set[str]:
        return {path.split("/")[0] for path in self.texts}


def _members(module: str) -> set[str]:
    try:
        loaded = importlib.import_module(module)
    except Exception:
        return set()
    found = set(dir(loaded))
    for each in list(vars(loaded).values()):
        if isinstance(each, type):
            found.update(dir(each))
        with contextlib.suppress(TypeError, ValueError):
            found.update(inspect.signature(each).parameters)
    return found


def defined(tree: ast.Module, lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """Every name that a module defines, with its line and column."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            column = lines[node.lineno - 1].index(node.name, node.col_offset)
            yield node.name, node.lineno - 1, column
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno - 1, node.col_offset
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno - 1, node.col_offset
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            end = (node.end_lineno or 1) - 1, (node.end_col_offset or 0) - len(node.attr)
            yield node.attr, *end


def used(tree: ast.Module) -> Iterator[str]:
    """Every name that stands in a module, as often as it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.arg, ast.keyword)):
            yield node.arg or ""
        elif isinstance(node, ast.alias):
            yield node.name
            yield node.asname or ""
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names
