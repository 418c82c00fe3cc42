"""Related code: the definitions that a place uses, and the places that use it.

Found in a child process (``related_child``) while an instruction is typed, so that sending never
waits for it.  Only files of the folder that git does not ignore are read, none that is named as if
it held credentials; credentials in others are masked.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from midstream import processes
from midstream.code.syntax import has_syntax, same_language

if TYPE_CHECKING:
    from midstream.workspace.files import Workspace

SECONDS: Final = 8.0
"""Seconds after which the search is ended; the results until then count."""
MAX_FILES: Final = 4_000
"""Files that are read; of more, those that lie nearest."""
_REMEMBERED: Final = 8
"""Places whose code is kept."""
_LINE_LIMIT: Final = 1 << 22
"""Bytes of one line of the child's output."""


@dataclass(frozen=True, slots=True)
class FileLines:
    """Lines of a file.

    Attributes:
        path: The file, relative to the root.
        text: What it holds.
        start: First line, 0-based.
        stop: End line, exclusive.
        symbol: Dotted name of the definition that they belong to, ``""`` for none.
    """

    path: str
    text: str
    start: int
    stop: int
    symbol: str


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some lines of a file.

    Attributes:
        path: The file, relative to the root.
        line: 0-based line: the first of a definition, or that of a use.
        name: The definition, or the one that a use lies in; ``""`` for none.
        text: The lines, or of a long definition the head; credentials are masked.
    """

    path: str
    line: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Related:
    """What belongs to a place.

    Attributes:
        symbol: The definition that the place belongs to, ``""`` for none.
        definitions: What it uses.
        uses: Where it is used.
    """

    symbol: str = ""
    definitions: tuple[Excerpt, ...] = ()
    uses: tuple[Excerpt, ...] = ()


async def find_related(workspace: Workspace, place: FileLines, seconds: float) -> Related:
    """Find what belongs to a place; what takes too long or cannot be found is missing."""
    if not has_syntax(place.path):
        return Related(place.symbol)
    files = await asyncio.to_thread(_readable, workspace, place.path)
    found: list[tuple[str, Excerpt]] = []
    with suppress(TimeoutError, OSError, ValueError):
        async with asyncio.timeout(seconds):
            await _ask(workspace, place, files, found)
    return Related(
        place.symbol,
        tuple(each for kind, each in found if kind == "definition"),
        tuple(each for kind, each in found if kind == "use"),
    )


async def _ask(
    workspace: Workspace, place: FileLines, files: list[str], found: list[tuple[str, Excerpt]]
) -> None:
    from midstream.workspace.paths import state_dir

    asked = {
        "root": str(workspace.root),
        "files": files,
        "path": place.path,
        "text": place.text,
        "start": place.start,
        "stop": place.stop,
        "symbol": place.symbol,
        "cache": str(state_dir() / "jedi"),
    }
    child, requests, answers = await processes.start_answering(
        "midstream.codebase.related_child", limit=_LINE_LIMIT
    )
    complete = False
    try:
        requests.write(json.dumps(asked).encode("utf-8", "surrogatepass"))
        requests.close()
        async for line in answers:
            said = cast("dict[str, Any]", json.loads(line))
            text = masked(said["text"])
            found.append((said["kind"], Excerpt(said["path"], said["line"], said["name"], text)))
        complete = True
    finally:
        await processes.end(child, kill=not complete)


def _readable(workspace: Workspace, path: str) -> list[str]:
    """The files that may be read for a place in one of them, the nearest first (blocking)."""
    from midstream.guard.secrets import holds_secrets

    files = [
        each
        for each in workspace.files()
        if same_language(path, each)
        and not holds_secrets(each)
        # A link may lead to what the folder does not hold.
        and not (workspace.root / each).is_symlink()
    ]
    if len(files) > MAX_FILES:
        files.sort(key=lambda each: -_shared(path, each))
    return files[:MAX_FILES]


def _shared(one: str, other: str) -> int:
    """How many folders two files share."""
    count = 0
    for mine, theirs in zip(one.split("/")[:-1], other.split("/")[:-1], strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def masked(text: str) -> str:
    """A text with its credentials masked; the patterns are compiled when they are first used."""
    from midstream.guard.secrets import mask_text

    return mask_text(text)


class RelatedCode:
    """Finds what belongs to the places that a user writes instructions about, ahead of them."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._found: OrderedDict[FileLines, Related] = OrderedDict()
        self._place: FileLines | None = None
        self._search: asyncio.Task[None] | None = None

    def look(self, place: FileLines) -> None:
        """Begin to look for what belongs to a place; a search for another one ends."""
        if place in self._found or (self._searching and self._place == place):
            return
        if self._search is not None:
            self._search.cancel()
        self._place = place
        self._search = asyncio.create_task(self._find(place))

    def of(self, place: FileLines) -> Related | None:
        """The code related to a place, ``None`` if it is not known (yet)."""
        return self._found.get(place)

    def is_sought(self, place: FileLines) -> bool:
        """Whether the code related to a place is being looked for."""
        return self._searching and self._place == place

    async def settled(self, seconds: float | None = None) -> bool:
        """Wait until nothing is being looked for; whether something was."""
        search = self._search
        if search is None or search.done():
            return False
        await asyncio.wait({search}, timeout=seconds)
        return True

    async def close(self) -> None:
        """End the search."""
        if self._search is not None:
            self._search.cancel()
            await asyncio.wait({self._search})

    @property
    def _searching(self) -> bool:
        return self._search is not None and not self._search.done()

    async def _find(self, place: FileLines) -> None:
        self._found[place] = await find_related(self._workspace, place, SECONDS)
        while len(self._found) > _REMEMBERED:
            self._found.popitem(last=False)


def listed(excerpts: Iterable[Excerpt]) -> str:
    """Excerpts as text for a model: of each its place, then its lines."""
    said: list[str] = []
    for each in excerpts:
        within = f" in {each.name}" if each.name else ""
        said.append(f"{each.path}:{each.line + 1}{within}\n{each.text}")
    return "\n".join(said)
