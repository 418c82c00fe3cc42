"""Instructions that add a function or a test to a file: the model writes only what is new.

It is told which names the file has, and shown the code that a test is for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from midstream.code.imports import behind_imports, import_words
from midstream.code.languages import is_test
from midstream.code.outline import Definition, outline
from midstream.edits.indent import indent_of
from midstream.pairing.request.additions import FURTHER, OPENING, PARTS
from midstream.pairing.request.mentions import FILE_NAME

if TYPE_CHECKING:
    from midstream.edits.parsing import ReplyParser

_PREPOSITION: Final = (
    r"(?:to|in|into|inside|within|of|for|from|on|at|with|by|as|that|which|and|or|if|when)"
)
_NEW_CODE: Final = re.compile(
    rf"{OPENING}"
    r"(?:add|write|create|implement|define|put)\s+(?:me\s+)?"
    rf"(?:(?!{_PREPOSITION}\b)\S+\s+){{0,5}}?"
    r"(?P<kind>(?:(?:helper|utility)\s+)?functions?|helpers?|(?:unit\s+)?test(?:\s+case|\s+function)?s?"
    r"|fixtures?|class(?:es)?|dataclass(?:es)?|exceptions?|coroutines?|generators?)\b"
    rf"(?!\s+(?:{PARTS}|method|variable|data|file|suite|attribute)s?\b)",
    re.IGNORECASE,
)
"""The beginning of an instruction that wants definitions of their own."""
_CALLED: Final = re.compile(
    r"\s+(?:called\s+|named\s+)?[`\"']?(?P<name>[^\W\d]\w*)(?=[`\"'(]|\s|$)", re.IGNORECASE
)
_INTO_FILE: Final = re.compile(
    r"\b(?:in|into|to|inside)\s+(?:(?:the|a|an)\s+)?(?:new\s+)?(?:(?:test\s+)?(?:file|module)\s+)?"
    rf"@?(?P<quote>[`\"']?)(?P<path>{FILE_NAME})(?P=quote)(?![\w/`(:])",
    re.IGNORECASE,
)
_MODULE: Final = re.compile(r"(?:pub\b\S*\s+)?mod\b")


@dataclass(frozen=True, slots=True)
class NewCode:
    """What an instruction adds to a file.

    Attributes:
        file: The file as it is named; ``""`` for tests whose file is not.
        name: What it is called, ``""`` if that is left to the model.
        about: What else is said about it.
        tests: Whether it is tests.
    """

    file: str
    name: str
    about: str
    tests: bool


@dataclass(frozen=True, slots=True)
class FileAddition:
    """Where a file gets more definitions.

    Attributes:
        imports: The line that new imports come before.
        line: The line that new definitions come before.
        names: Names that the file imports or defines.
        known: Names whose definitions the model is shown; it may write them again.
        new: What was asked for.
        owner: The type that gets a method, ``""`` for definitions of their own.
    """

    imports: int
    line: int
    names: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    new: NewCode | None = None
    owner: str = ""

    def parser(self, old: Sequence[str], path: str) -> ReplyParser:
        """Reads an answer as the rewrite of the file ``old``."""
        from midstream.edits.additions import FileAdditionParser

        return FileAdditionParser(old, self.imports, self.line, path=path, known=self.known)


def find_new_code(instruction: str) -> NewCode | None:
    """What an instruction adds to a file; ``None`` if it asks for more or else.

    It has to name the file, unless it asks for tests.
    """
    found = _NEW_CODE.match(instruction)
    if found is None or FURTHER.search(instruction, found.end()):
        return None
    tests = "test" in found["kind"].lower()
    files = [match["path"] for match in _INTO_FILE.finditer(instruction, found.start("kind"))]
    # "a test for load in app.py" says where load is.
    files = [file for file in files if not tests or is_test(file)]
    if not (files or tests):
        return None
    name = "" if tests else _name_of(instruction, found)
    return NewCode("".join(files[:1]), name, _INTO_FILE.sub("", instruction[found.end() :]), tests)


def _name_of(instruction: str, found: re.Match[str]) -> str:
    """The name of the new function: "a function load", "a load(path) function"."""
    called = _CALLED.match(instruction, found.end())
    if called is not None and not re.fullmatch(_PREPOSITION, called["name"], re.IGNORECASE):
        return called["name"]
    shaped = re.findall(r"`(\w+)|\b(\w+)\(|\b(\w*_\w+)\b", instruction[: found.start("kind")])
    return next((name for groups in shaped for name in groups if name), "")


def place_in_file(
    lines: Sequence[str],
    path: str,
    known: Sequence[str] = (),
    new: NewCode | None = None,
    *,
    owner: str = "",
) -> FileAddition:
    """Where a file gets more definitions.

    Args:
        lines: The file as it is proposed now.
        path: Its name.
        known: See ``FileAddition``.
        new: The same.
        owner: The same; the method comes behind its last one.
    """
    definitions = outline(tuple(lines), path).definitions
    top = [d for d in definitions if not any(other.encloses(d) for other in definitions)]
    own = [d for d in top if owner and owner in (d.name, d.name.rpartition(".")[0])]
    ends = (_end_of(d, lines) for d in own or top if d.kind != "assignment")
    line = max(filter(None, ends), default=len(lines))
    while line and not lines[line - 1].strip():
        line -= 1
    names = dict.fromkeys([*import_words("\n".join(lines), path), *(d.name for d in top)])
    return FileAddition(
        min(behind_imports(lines), line), line, tuple(names), tuple(known), new, owner
    )


def _end_of(definition: Definition, lines: Sequence[str]) -> int | None:
    """The line behind a definition, or behind the block of Rust that it is in.

    Returns:
        ``None`` if others do not belong behind it: it is in a condition, or in a module.
    """
    if not indent_of(lines[definition.start]):
        return definition.stop
    above = next((line for line in lines[definition.start :: -1] if line[:1].strip()), "")
    below = range(definition.stop, len(lines))
    end = next((n for n in below if lines[n][:1].strip()), None)
    if end is None or lines[end] != "}" or _MODULE.match(above):
        return None
    return end + 1
