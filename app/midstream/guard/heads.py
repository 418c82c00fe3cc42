"""What rules need of the lines above a streamed region: names, not bodies.

A linter needs to know what is imported and which built-in names are shadowed; following queries
needs plain constants.  A `Head` holds both as a few lines of text, so that a verdict at the end of
a long file costs no more than at its beginning.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from typing import Final

from midstream.guard.mending import parse

_IMPORT: Final = re.compile(
    r"^[ \t]*(?:import[ \t]+[\w., \t]+"
    r"|from[ \t]+[\w.]+[ \t]+import[ \t]+(?:\([^)]*\)|[\w.,* \t]+(?:\\\n[\w., \t]+)*))",
    re.MULTILINE,
)
_CONSTANT: Final = re.compile(r"^[A-Za-z_]\w*[ \t]*(?::[^=\n]+)?=[ \t]*[^=\s(\[{].*$", re.MULTILINE)
_TAKEN: Final = re.compile(
    r"^(?:async[ \t]+)?(?:def|class)[ \t]+(eval|exec|open|input)\b", re.MULTILINE
)
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_MOST: Final = 300

_MODULES: Final = (
    *("os", "subprocess", "pickle", "cPickle", "dill", "marshal", "shelve", "yaml", "hashlib"),
    *("requests", "httpx", "ssl", "tempfile", "commands", "popen2", "jinja2", "jsonpickle"),
    *("pandas", "asyncio"),
)
_FUNCTIONS: Final = {
    **dict.fromkeys(("popen", "system"), "os"),
    **dict.fromkeys(
        ("Popen", "check_output", "check_call", "getoutput", "getstatusoutput"), "subprocess"
    ),
}
_USED: Final = re.compile(rf"(?<![\w.])(?:({'|'.join(_MODULES)})\.|({'|'.join(_FUNCTIONS)})\()")


class Head:
    """The names that the text so far has bound.

    Attributes:
        constants: Plain assignments at the left margin, one line each.
    """

    def __init__(self) -> None:
        self._imports: dict[str, frozenset[str]] = {}
        self.constants: list[str] = []
        self._bound: set[str] = set()

    def learn(self, text: str) -> None:
        """Take in the names that a piece of the file binds."""
        for match in _IMPORT.finditer(text):
            self._import(match.group().strip())
        for match in _CONSTANT.finditer(text):
            if len(self.constants) < _MOST and parse(match.group()) is not None:
                self.constants.append(match.group())
        for match in _TAKEN.finditer(text):
            self._imports[f"{match.group(1)} = None"] = frozenset({match.group(1)})

    def _import(self, statement: str) -> None:
        tree = parse(statement)
        for node in tree.body if tree is not None else ():
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                continue
            names = frozenset((name.asname or name.name).split(".")[0] for name in node.names)
            self._bound |= names
            if len(self._imports) < _MOST:
                self._imports[ast.unparse(node)] = names

    def prelude(self, lines: Iterable[str]) -> list[str]:
        """Lines to put before an excerpt so that its names mean what they mean in the file.

        A module that is used but not imported is imported here: a function cut from its file, or
        written before its imports, is as dangerous as with them.
        """
        text = "\n".join(lines)
        used = set(_WORD.findall(text)) | {"*"}
        known = [line for line, names in self._imports.items() if not names.isdisjoint(used)]
        return [*known, *self._missing(text)]

    def _missing(self, text: str) -> list[str]:
        missing: set[str] = set()
        for module, function in _USED.findall(text):
            name = module or function
            if name in self._bound or re.search(rf"\b(?:def|class)\s+{name}\b", text):
                continue
            missing.add(f"import {name}" if module else f"from {_FUNCTIONS[name]} import {name}")
        return sorted(missing)


def without_future(lines: Sequence[str]) -> list[str]:
    """Return the lines with imports from ``__future__`` blanked: they may not follow a prelude."""
    return [
        re.sub(r"^from\s+__future__\s+import\s+[\w, ]+", "pass", line)
        if line.startswith("from __future__")
        else line
        for line in lines
    ]
