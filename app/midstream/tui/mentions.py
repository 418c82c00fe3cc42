"""Completions of ``@`` in an instruction: files, folders, their definitions, and some words.

Finds the mention that is being typed and ranks what fits it; reading is done in a thread, and what
is not read yet is left out, which ``MentionSource.missing`` says.  Shows nothing, and does not
know what a mention means to the model.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from time import monotonic
from typing import Final

from msgspec import Struct

from midstream.code.syntax import has_syntax, is_python
from midstream.pairing.request.mentions import AtWord
from midstream.tui.fuzzy import fuzzy_score

MAX_CHOICES: Final = 50
"""Candidates at most."""
MAX_FILES_READ: Final = 2_000
"""Files that are read for their definitions."""
MAX_TREES: Final = 400
"""Files in languages other than Python among them, for which a whole syntax tree is built."""
MAX_OUTLINED_LINES: Final = 10_000
"""Lines; longer files take too long to outline."""
OLD_S: Final = 30.0
"""Age from which on the definitions of the folder are read again."""
FROM_LETTERS: Final = 2
"""Letters from which on definitions of other files are offered."""
MORE_FILES: Final = "still reading the folder"
"""The note of a list that was opened before the files of the folder are known."""
BEGINS: Final = 100
"""Score of a name that begins with the typed text: more than all other scores together."""

_WORDS: Final = {
    AtWord.DIFF: "all uncommitted changes",
    AtWord.ERROR: "the last failed test run",
}
_TYPED: Final = re.compile(r"(?:^|[\s(\[{,;\"'`])@(?P<query>\"[^\"\n]*|[^\s@\"`]*)$")
_BARE: Final = re.compile(r"[\w.~/\\-]*[\w/]\Z")


class MentionQuery(Struct, frozen=True):
    """A mention that is being typed.

    Attributes:
        start: Column of its ``@``.
        query: What stands behind it.
    """

    start: int
    query: str


class MentionChoice(Struct, frozen=True):
    """Something a mention can become.

    Attributes:
        path: A file, a folder with a slash at its end, or a word such as ``diff``.
        symbol: Dotted name of a definition in it, ``""`` for the file.
        about: What it is, in a word or two.
    """

    path: str
    symbol: str = ""
    about: str = ""

    @property
    def text(self) -> str:
        """How it stands in the instruction."""
        path = self.path if _BARE.match(self.path) else f'"{self.path}"'
        return f"@{path}:{self.symbol}" if self.symbol else f"@{path}"


class Symbol(Struct, frozen=True):
    """A definition: dotted name, kind, 0-based line."""

    name: str
    kind: str
    line: int


def typed_at(line: str, column: int) -> MentionQuery | None:
    """The mention that ends at a column of a line, if one is being typed there."""
    match = _TYPED.search(line[:column])
    if match is None or (column < len(line) and (line[column].isalnum() or line[column] == "_")):
        return None
    return MentionQuery(match.start("query") - 1, match["query"].lstrip('"'))


class MentionSource:
    """Knows what can be mentioned.

    Args:
        files: The files of the folder.
        recent: Files that were looked at, the last one first.
        read: The lines of a file (blocking); nothing where it cannot be read.
        listed: Whether the folder has been read, so that ``files`` is complete.
    """

    def __init__(
        self,
        files: Callable[[], Sequence[str]],
        recent: Callable[[], Sequence[str]],
        read: Callable[[str], Sequence[str]],
        listed: Callable[[], bool] = lambda: True,
        wide: Callable[[], bool] = lambda: False,
    ) -> None:
        self._files = files
        self._recent = recent
        self._read = read
        self._listed = listed
        self._wide = wide
        self._symbols: dict[str, tuple[Symbol, ...]] = {}
        self._project: dict[str, tuple[Symbol, ...]] | None = None
        self._project_read = -OLD_S

    def forget(self) -> None:
        """Typing has ended: files that change until the next time are read again."""
        self._symbols.clear()

    def candidates(self, query: str) -> list[MentionChoice]:
        """The candidates that fit, the best first."""
        path, colon, name = query.rpartition(":")
        if colon:
            return self._in_file(path, name)
        recent = list(self._recent())
        wanted = query.lower()
        if not wanted:
            return self._first(recent)
        scored: list[tuple[float, MentionChoice]] = []
        for found in self._files():
            if (score := _score(wanted, found, "/")) is not None:
                near = 25 - recent.index(found) if found in recent[:20] else 0
                scored.append((score + near, MentionChoice(found, about="recent" if near else "")))
        for choice in self._more():
            name = choice.path if wanted.endswith("/") else choice.path.removesuffix("/")
            if (score := _score(wanted, name, "/")) is not None:
                # A whole name is meant as it stands, also before the files in it.
                scored.append((score + BEGINS * (name.lower() == wanted), choice))
        open_path = recent[0] if recent else ""
        for found, symbols in self._known(wanted, open_path):
            for symbol in symbols:
                if (score := _score(wanted, symbol.name, ".")) is not None:
                    score += 10 if found == open_path else -10
                    scored.append((score, _of(found, symbol, here=found == open_path)))
        scored.sort(key=lambda pair: -pair[0])
        return [candidate for _, candidate in scored[:MAX_CHOICES]]

    def _first(self, recent: list[str]) -> list[MentionChoice]:
        """Before a letter is typed: recent files, definitions of the open file, other files."""
        found = [MentionChoice(path, about="recent") for path in recent[:3]]
        if recent:
            symbols = self._symbols.get(recent[0], ())
            found += [_of(recent[0], symbol, here=True) for symbol in symbols if _outer(symbol)]
        found += [choice for choice in self._more() if not choice.path.endswith("/")]
        shown = set(recent[:3])
        found += [MentionChoice(path) for path in self._files()[:MAX_CHOICES] if path not in shown]
        return found[:MAX_CHOICES]

    def _more(self) -> list[MentionChoice]:
        """Words and folders, for models that read more than the lines."""
        if not self._wide():
            return []
        folders = {path.rpartition("/")[0] for path in self._files()}
        # A folder may hold folders only.
        folders |= {str(above) for folder in folders for above in PurePosixPath(folder).parents}
        words = [MentionChoice(word, about=about) for word, about in _WORDS.items()]
        return words + [
            MentionChoice(f"{each}/", about="folder") for each in sorted(folders - {"", "."})
        ]

    def _in_file(self, path: str, name: str) -> list[MentionChoice]:
        symbols = self._symbols.get(path.strip('"'), ())
        scored = [
            (score, symbol)
            for symbol in symbols
            if (score := _score(name.lower(), symbol.name, ".") if name else -symbol.line)
            is not None
        ]
        scored.sort(key=lambda pair: -pair[0])
        return [_of(path.strip('"'), symbol, here=True) for _, symbol in scored[:MAX_CHOICES]]

    def _known(self, wanted: str, open_path: str) -> list[tuple[str, tuple[Symbol, ...]]]:
        known = [(open_path, self._symbols.get(open_path, ()))] if open_path else []
        if len(wanted) >= FROM_LETTERS:
            known += [item for item in (self._project or {}).items() if item[0] != open_path]
        return known

    def missing(self, query: str) -> str:
        """The candidates for a mention that may come later, in words; ``""`` if these are all."""
        path, colon, _ = query.rpartition(":")
        if colon:
            target = path.strip('"')
            unread = has_syntax(target) and target not in self._symbols
            return f"reading {target}" if unread else ""
        if not self._listed():
            return MORE_FILES
        if len(query) >= FROM_LETTERS and self._project is None:
            return "still reading definitions"
        return ""

    async def prepare(self, query: str) -> bool:
        """Read what the query asks for; says whether there is more to offer now."""
        path, colon, _ = query.rpartition(":")
        recent = self._recent()
        target = path.strip('"') if colon else recent[0] if recent else ""
        more = False
        if has_syntax(target) and target not in self._symbols:
            self._symbols[target] = await asyncio.to_thread(self._outline, target)
            more = True
        stale = self._listed() and monotonic() - self._project_read > OLD_S
        if not colon and len(query) >= FROM_LETTERS and stale:
            self._project_read = monotonic()
            self._project = await asyncio.to_thread(self._read_project, list(self._files()))
            more = True
        return more

    def _outline(self, path: str) -> tuple[Symbol, ...]:
        from midstream.code.outline import outline

        lines = self._read(path)
        if len(lines) > MAX_OUTLINED_LINES:
            return ()
        return tuple(Symbol(d.name, d.kind, d.start) for d in outline(lines, path).definitions)

    def _read_project(self, files: Sequence[str]) -> dict[str, tuple[Symbol, ...]]:
        from midstream.code.outline import headers

        paths = [path for path in files if has_syntax(path)]
        others = [path for path in paths if not is_python(path)][:MAX_TREES]
        python = [path for path in paths if is_python(path)][: MAX_FILES_READ - len(others)]
        found = {
            path: tuple(Symbol(h.name, h.kind, h.line) for h in headers(self._read(path)))
            for path in python
        }
        return found | {path: self._outline(path) for path in others}


def _of(path: str, symbol: Symbol, *, here: bool) -> MentionChoice:
    where = f"line {symbol.line + 1}" if here else path
    return MentionChoice(path, symbol.name, f"{symbol.kind}, {where}")


def _outer(symbol: Symbol) -> bool:
    return symbol.kind != "assignment" and "." not in symbol.name


def _score(wanted: str, text: str, joint: str) -> float | None:
    """How well lower-case letters fit; scattered ones must all be in the last part of the name.

    ``joint`` stands between the parts of ``text``, a path or a dotted name.
    """
    lowered = text.lower()
    scattered = wanted not in lowered and "/" not in wanted
    if scattered and fuzzy_score(wanted, text.rpartition("/")[2]) is None:
        return None
    name = lowered if joint in wanted else lowered.rpartition(joint)[2]
    score = fuzzy_score(wanted, text)
    return None if score is None else score + BEGINS * name.startswith(wanted)
