"""The code that new tests are for: found by its name, by the selection, or at the cursor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from midstream.code.languages import tested_names
from midstream.code.outline import Definition, Outline, opens_block, outline
from midstream.code.syntax import is_python
from midstream.edits.indent import Dedented
from midstream.pairing.request.additions import without_bodies, without_body
from midstream.pairing.request.target import (
    Candidate,
    TargetUnclearError,
    find_in_files,
    texts_with_syntax,
)

if TYPE_CHECKING:
    from midstream.pairing.request.question import Question
    from midstream.workspace.files import Workspace


@dataclass(frozen=True, slots=True)
class Subject:
    """The code that new tests are for, or the type of Go that gets a method.

    Attributes:
        path: Its file.
        text: Its source; of a method, with the heading and the constructor of its class.
        names: What it defines; a model may write that again.
        imported: The module and the name to import in Python, ``None`` elsewhere.
    """

    path: str
    text: str
    names: tuple[str, ...]
    imported: tuple[str, str] | None = None


def find_subject(
    workspace: Workspace, about: str, home: str, question: Question, here: str
) -> Subject | None:
    """The code that tests are for, ``None`` if that is not clear (blocking).

    Args:
        workspace: The folder.
        about: What the instruction says about the tests.
        home: The file that gets them.
        question: The instruction, with the file that it was sent from.
        here: That file as it is proposed now, ``""`` if it is ``home`` or there is none.
    """
    path = question.path or ""
    if here and question.selection is None:
        found = _named([(path, here)], about)
        if len(found) == 1:
            return _shown(workspace, path, here, found[0].name)
    if question.selection is None:
        files = dict(texts_with_syntax(workspace, without=home))
        if here:
            files[path] = here
        found = _named(files.items(), about)
        names = tested_names(home)
        near = [each for each in found if PurePosixPath(each.path).stem.lower() in names]
        found = found if len(found) == 1 else near
        if len(found) == 1:
            return _shown(workspace, found[0].path, files[found[0].path], found[0].name)
    line = question.cursor if question.selection is None else question.selection[0]
    if not here or line is None:
        return None
    around = [d for d in outline(here.split("\n"), path).definitions if d.contains(line)]
    bodies = [d for d in around if d.kind != "assignment"]
    return _shown(workspace, path, here, bodies[-1].name) if bodies else None


def _named(files: Iterable[tuple[str, str]], about: str) -> list[Candidate]:
    """The definitions that a text names."""
    try:
        path, target = find_in_files(files, instruction=about)
    except TargetUnclearError as unclear:
        return [] if unclear.missing else [each for each in unclear.candidates if each.path]
    return [Candidate(path, target.symbol)]


def _shown(workspace: Workspace, path: str, text: str, name: str) -> Subject | None:
    lines = text.split("\n")
    outlined = outline(lines, path)
    found = outlined.named(name)
    if not found:
        return None
    definition = found[0]
    homes = [d for d in outlined.definitions if d.kind == "class" and d.encloses(definition)]
    own = homes[-1:] or [definition]
    source = "".join(f"{line}\n" for line in _source(outlined, path, definition, homes))
    imported = None
    if is_python(path):
        imported = _module(workspace.root, path), own[0].name.partition(".")[0]
    names = tuple(each.name for each in (*homes[-1:], definition))
    return Subject(path, Dedented.of(source).text, names, imported)


def _source(
    outlined: Outline, path: str, definition: Definition, homes: Sequence[Definition]
) -> Sequence[str]:
    lines = outlined.lines
    if definition.kind == "class":
        return without_bodies(lines, definition, outlined.members(definition), path).splitlines()
    own = lines[definition.start : definition.stop]
    if not homes:
        return own
    home = homes[-1]
    members = outlined.members(home)
    constructors = [d for d in members if d.name.endswith((".__init__", ".constructor"))]
    made = [
        line
        for d in constructors
        if d is not definition
        for line in (*without_body(lines[d.start : d.stop], path), "")
    ]
    start = members[0].start if members else home.stop
    heading = next((n for n in range(home.start, start) if opens_block(lines[n])), home.start)
    return [*lines[home.start : heading + 1], *made, *own]


def _module(root: Path, path: str) -> str:
    """The name under which a file of Python is imported."""
    file = PurePosixPath(path)
    parts = [] if file.stem == "__init__" else [file.stem]
    folder = file.parent
    while folder.name and (root / folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts) or file.parent.name
