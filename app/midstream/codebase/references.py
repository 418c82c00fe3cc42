"""Uses of a name across a project, and those that a change leaves behind.

The search runs in a child process (``references_child``), so it holds nothing up, and cancelling
the coroutine ends it.  Jedi was chosen over rope and libcst: of 642 uses of 75 names in pathspec,
markdown-it-py and httpx it missed 62, rope 104 and libcst 246.  With the grouping of
``references_child`` what is left are namesakes, such as ``str.join``.  What other languages are
read with knows no types: see ``references_trees``.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final, cast

from midstream import processes
from midstream.code.outline import Definition, outline
from midstream.code.syntax import has_syntax, same_language
from midstream.codebase.similar_edits import Substitution, first_use, names_at, substitutions
from midstream.edits.lcs import matching_pairs
from midstream.errors import UserError
from midstream.resources import read_text

MAX_NAMES: Final = 8
"""Names that are gone from a file and looked for; a file that loses more is being replaced."""
MAX_LISTED: Final = 4
"""Places that a sentence lists."""
_LINE_LIMIT: Final = 1 << 26
"""Bytes of one line that the child process may print."""

Lines = Mapping[str, Sequence[str]]
"""Lines of files by path."""
FilesOutside = Callable[[str], Sequence[str]]
"""Finds files of the project outside of its folder that have a word, such as ``../tests/a.py``."""
_RenamedUse = tuple[Substitution, tuple[int, int], tuple[int, int]]
"""What is exchanged, with line and column of one use before and one after."""


class ReferencesError(UserError):
    """The uses of a name could not be found."""

    code = "references-failed"


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """A place in which a name stands.

    Attributes:
        path: The file, relative to the root.
        line: 0-based line.
        column: 0-based column of the name.
        certain: Whether it is that name for sure; otherwise nothing says what it belongs to.
        defines: Whether it defines the name.
    """

    path: str
    line: int
    column: int
    certain: bool = True
    defines: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class UseLeft:
    """A use of a name that a change renames or deletes.

    Attributes:
        name: The name that is gone.
        new: Its new name, ``""`` if it was deleted.
        path: The file of the use.
        line: 0-based line, in the file as it will be after the change.
        text: That line, without spaces around it.
        certain: Whether it is that name for sure.
    """

    name: str
    new: str
    path: str
    line: int
    text: str
    certain: bool = True


async def find_uses(
    root: Path,
    files: Iterable[str],
    name: str,
    start: Use,
    *,
    texts: Lines | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Use]:
    """Find every use of what is called ``name`` at ``start``, in order.

    Args:
        root: The folder.
        files: Its files; those in other languages than that of ``start`` are left out.
        name: The name.
        start: One of its uses.
        texts: Lines of files that are not to be read from disk.
        progress: Is called with the tokens looked at so far, and all of them.

    Raises:
        ReferencesError: The search failed.
    """
    from midstream.workspace.paths import state_dir

    asked = {
        "root": str(root),
        "files": [path for path in files if same_language(start.path, path)],
        "texts": {path: "".join(f"{x}\n" for x in lines) for path, lines in (texts or {}).items()},
        "name": name,
        "start": [start.path, start.line, start.column],
        "cache": str(state_dir() / "jedi"),
    }
    try:
        child, requests, answers = await processes.start_answering(
            "midstream.codebase.references_child", limit=_LINE_LIMIT
        )
    except OSError as error:
        raise ReferencesError(f"No search for `{name}` could be started: {error}.") from error
    uses: list[Use] | None = None
    try:
        requests.write(json.dumps(asked).encode("utf-8", "surrogatepass"))
        requests.close()
        async for line in answers:
            said = cast("dict[str, Any]", json.loads(line))
            if "uses" in said:
                uses = [Use(*use) for use in said["uses"]]
            elif progress is not None:
                progress(said["looked_at"], said["of"])
    except (OSError, ValueError) as error:
        raise ReferencesError(f"The search for `{name}` broke off: {error}.") from error
    finally:
        await processes.end(child, kill=uses is None)
    if uses is None:
        raise ReferencesError(
            f"The search for the uses of `{name}` failed; search for them in your editor."
        )
    return uses


def with_name(lines: Sequence[str], uses: Iterable[Use], old: str, new: str) -> list[str]:
    """Lines in which some uses of a name have another one; others than ``old`` stay."""
    after = list(lines)
    for use in sorted(uses, reverse=True):
        if use.line >= len(after):
            continue
        line = after[use.line]
        if line.startswith(old, use.column):
            after[use.line] = f"{line[: use.column]}{new}{line[use.column + len(old) :]}"
    return after


def taken_away(
    before: Sequence[str], after: Sequence[str], name: str, path: str = ""
) -> list[tuple[int, int]]:
    """Line and column of the definitions of a name that a change of a file takes away."""
    spots = [
        first_use(before, name, range(definition.start, definition.stop), path)
        for definition in _gone(before, after, path)
        if definition.name.rpartition(".")[2] == name
    ]
    return [spot for spot in spots if spot is not None]


async def uses_left(
    root: Path,
    files: Sequence[str],
    before: Lines,
    after: Lines,
    *,
    outside: FilesOutside | None = None,
    absent: set[tuple[str, str]] | None = None,
) -> tuple[UseLeft, ...]:
    """Where names are still used that a change renames or deletes.

    A name that is defined elsewhere may have been renamed where it is used: then its definition is
    left, and its other uses.

    Args:
        root: The folder.
        files: Its files.
        before: The files of the change as they are on disk.
        after: The same files as they will be.
        outside: Finds files outside of the folder that may use a name as well.
        absent: Names, each with the ending of a file, that no file on disk has; what is found to
            be absent is added, so that changes that are looked at together share a search.

    Returns:
        The certain uses, by name, file and line, and the uncertain ones inside the definition that
        is gone: a recursion would break. None where every name is still defined.

    Raises:
        ReferencesError: A search failed.
    """
    found: list[UseLeft] = []
    absent = set() if absent is None else absent

    async def searched(name: str) -> list[str]:
        return [*files, *(await asyncio.to_thread(outside, name) if outside else ())]

    async def occurs(name: str, texts: Lines, path: str) -> bool:
        return await asyncio.to_thread(_occurs, root, await searched(name), name, texts, path)

    async def remains(name: str, path: str) -> bool:
        known = (name, PurePosixPath(path).suffix)
        if known in absent:
            return _occurs(root, (), name, after, path)
        if await occurs(name, after, path):
            return True
        absent.add(known)
        return False

    async def look(
        name: str,
        new: str,
        start: Use,
        *,
        inside: range = range(0),
        defined_elsewhere: bool = False,
    ) -> None:
        uses = await find_uses(root, await searched(name), name, start, texts=before)
        if defined_elsewhere and not any(use.certain and use.defines for use in uses):
            return
        left = [u for u in uses if u.certain or (u.path == start.path and u.line in inside)]
        for other, certain in dict.fromkeys((use.path, use.certain) for use in left):
            mine = [use for use in left if (use.path, use.certain) == (other, certain)]
            now = after[other] if other in after else await asyncio.to_thread(_read, root, other)
            then = before.get(other, now)
            found.extend(
                UseLeft(name, new, other, line, now[line].strip(), certain)
                for line in _still_there(then, now, mine, name, other)
            )

    def replaced(path: str) -> tuple[list[Substitution], list[Definition], list[_RenamedUse]]:
        both = before[path], after[path]
        return renames(*both, path), _gone(*both, path), list(_renamed_uses(*both, path))

    for path in filter(has_syntax, before):
        names, gone, uses_renamed = await asyncio.to_thread(replaced, path)
        renamed = {each.old: each.new for each in names}
        for definition in gone:
            name = definition.name.rpartition(".")[2]
            body = range(definition.start, definition.stop)
            spot = first_use(before[path], name, body, path)
            if spot is not None and await remains(name, path):
                await look(name, renamed.get(name, ""), Use(path, *spot), inside=body)
        for each, old, new in uses_renamed:
            if not await remains(each.old, path):
                continue
            # A definition elsewhere may be used instead.
            if await occurs(each.new, before, path):
                mentioned = await searched(each.new)
                uses = await find_uses(root, mentioned, each.new, Use(path, *new), texts=after)
                _, come = _changed(before[path], after[path])
                there = (use for use in uses if use.path != path or use.line not in come)
                if any(use.certain and use.defines for use in there):
                    continue
            await look(each.old, each.new, Use(path, *old), defined_elsewhere=True)
    return tuple(dict.fromkeys(found))


def _renamed_uses(before: Sequence[str], after: Sequence[str], path: str) -> Iterator[_RenamedUse]:
    """Names of elsewhere that a change exchanges, each with a use before and one after."""
    outlined = outline(before, path)
    gone, come = _changed(before, after)
    for each in substitutions(before, after, path):
        if each.kind == "literal" or each.scope or outlined.named(each.old):
            continue
        attribute = each.kind == "attribute"
        old = first_use(before, each.old, gone, path, attribute=attribute)
        new = first_use(after, each.new, come, path, attribute=attribute)
        if old is not None and new is not None:
            yield each, old, new


def _changed(before: Sequence[str], after: Sequence[str]) -> tuple[set[int], set[int]]:
    """The lines that a change takes away, and those that it brings."""
    pairs = matching_pairs(before, after)
    gone = set(range(len(before))) - {old for old, _ in pairs}
    return gone, set(range(len(after))) - {new for _, new in pairs}


def renames(before: Sequence[str], after: Sequence[str], path: str = "") -> list[Substitution]:
    """The names and literals that a change of a file replaces.

    Args:
        before: The lines of the file before.
        after: The lines after.
        path: Its name, which tells the language.

    Returns:
        What is exchanged token for token, else definitions that have another name, also where
        more of them has changed: as many of one kind and place go as come.
    """
    if found := substitutions(before, after, path):
        return found
    gone, come = _gone(before, after, path), _gone(after, before, path)
    for old in gone:
        home, _, name = old.name.rpartition(".")

        def is_alike(other: Definition, home: str = home, kind: str = old.kind) -> bool:
            return other.kind == kind and other.name.rpartition(".")[0] == home

        mine, theirs = list(filter(is_alike, gone)), list(filter(is_alike, come))
        if len(mine) == len(theirs):
            new = theirs[mine.index(old)].name.rpartition(".")[2]
            found.append(Substitution("attribute" if home else "name", name, new))
    return found


async def told_uses_left(
    root: Path,
    files: Sequence[str],
    before: Lines,
    after: Lines,
    *,
    outside: FilesOutside | None = None,
) -> str:
    """The result of ``uses_left``, or the reason for none, as a sentence; ``""`` for no uses."""
    try:
        left = await uses_left(root, files, before, after, outside=outside)
    except ReferencesError as error:
        return str(error)
    return f"{listed(left)}." if left else ""


def listed(left: Sequence[UseLeft]) -> str:
    """A sentence without its full stop that lists uses which a change leaves behind."""
    sentences: list[str] = []
    if sure := [use for use in left if use.certain]:
        names = _quoted(sure)
        be = "is" if names.count("`") == 2 else "are"
        sentences.append(f"{names} {be} still used in {_places(sure)}")
    if unsure := [use for use in left if not use.certain]:
        sentences.append(
            f"Nothing says whether {_quoted(unsure)} means the same in {_places(unsure)}"
        )
    return ". ".join(sentences)


def _quoted(left: Sequence[UseLeft]) -> str:
    return " and ".join(f"`{name}`" for name in dict.fromkeys(use.name for use in left))


def _places(left: Sequence[UseLeft]) -> str:
    places = ", ".join(f"{use.path}:{use.line + 1}" for use in left[:MAX_LISTED])
    if (more := len(left) - MAX_LISTED) <= 0:
        return places
    return f"{places} and {more} more place{'s' * (more != 1)}"


def _gone(before: Sequence[str], after: Sequence[str], path: str) -> list[Definition]:
    """Definitions that a change takes away, without those inside of others that go."""
    there = {definition.name for definition in outline(after, path).definitions}
    gone = [d for d in outline(before, path).definitions if d.name not in there]
    # A namesake that was defined twice and is still defined once is not gone.
    outer = [d for d in gone if not any(other.encloses(d) for other in gone)]
    return list({d.name: d for d in outer}.values())[:MAX_NAMES]


def _occurs(root: Path, files: Iterable[str], name: str, changed: Lines, path: str) -> bool:
    """Whether a name stands in files in the language of one, so that a search may find a use."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    return any(
        any(word.search(x) for x in (changed[other] if other in changed else _read(root, other)))
        for other in dict.fromkeys([*changed, *files])
        if same_language(path, other)
    )


def _still_there(
    before: Sequence[str], after: Sequence[str], uses: Sequence[Use], name: str, path: str
) -> list[int]:
    """The lines of ``after`` that still have one of the uses in ``before``."""
    lines = {use.line for use in uses}
    kept = dict(matching_pairs(before, after)) if before is not after else {}
    if before is after:
        return sorted(lines)
    found = {kept[line] for line in lines if line in kept}
    # On a changed line `self.total = total` an attribute is no parameter of that name.
    members = {(s.line, s.column): s.member for s in names_at(before, name, path)}
    forms = {members.get((u.line, u.column), False) for u in uses if u.line not in kept}
    if forms:
        new = set(range(len(after))) - set(kept.values())
        spots = names_at(after, name, path)
        found |= {s.line for s in spots if s.line in new and s.member in forms}
    return sorted(found)


def _read(root: Path, path: str) -> list[str]:
    try:
        return read_text(root / path, errors="replace").split("\n")
    except OSError:
        return []
