"""What kind of change each hunk of a file is, computed from its text.

A kind is named together with its evidence, a short phrase.  What needs only one file is found here;
what several files show together (moves, renames, the same edit in many places) is found from these
facts in ``edits.groups``.  That only formatting or comments change is proven by parsing both texts;
the other kinds are read off the words of the lines and the name of the file.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from midstream.code.equality import Comment, Replacement, applied, prove
from midstream.code.languages import grammar_of, is_test
from midstream.code.syntax import is_python
from midstream.edits.lcs import equal_blocks

if TYPE_CHECKING:
    from midstream.code.outline import Definition

MAX_TOKENS: Final = 4_000
"""Longest side of a hunk, in tokens, whose words are compared."""
MAX_LIKE: Final = 100
"""Longest run of tokens that is compared with others; longer ones count by their position."""
MAX_OUTLINED: Final = 20_000
"""Longest file, in lines, whose definitions are compared."""


class ChangeKind(StrEnum):
    """What a change is, in the order in which a reviewer should read it."""

    EXCEPTION = "differs from its group"
    INTERFACE = "public interface"
    DELETION = "takes behaviour away"
    PLAIN = "other changes"
    TESTS = "tests"
    IMPORTS = "imports only"
    COMMENTS = "comments only"
    GENERATED = "generated, lock files"
    RENAME = "renamed"
    SAME_EDIT = "the same edit"
    MOVED = "moved"
    FORMATTING = "formatting only"


class Evidence(NamedTuple):
    """A kind and what shows it."""

    kind: ChangeKind
    why: str


class ChangedBlock(NamedTuple):
    """A hunk as it is compared: at old line ``start``, lines ``old`` become ``new``."""

    id: int
    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


class TokenChange(NamedTuple):
    """A run of tokens that became another one.

    Attributes:
        removed: The text that goes.
        added: The text that comes.
        around: What stands before and after it: names, numbers, quotes and closing brackets as
            ``w``, all else as it is.  Where only literals change, also the name of what they are
            given to: ``verify`` in ``verify=True``, ``2 read`` in ``read(path, True)``.  Where the
            old text has several such places, also which of them this is.
        place: Where it stands: ``code``, ``string`` or ``comment``.
        defines: Whether it is the name of a definition.
    """

    removed: str
    added: str
    around: str
    place: str
    defines: bool

    def __str__(self) -> str:
        removed, added = self.removed.strip(), self.added.strip()
        if not (removed or added):
            return "other spaces"
        if not removed:
            return f"adds `{added}`"
        return f"`{removed}` → `{added}`" if added else f"removes `{removed}`"

    @property
    def is_layout(self) -> bool:
        """Whether only spaces, commas, quotes and brackets come or go."""
        return not _squashed(self.removed + self.added)

    @property
    def has_layout(self) -> bool:
        """Whether it is layout, or has layout at its end: ``true`` became ``false,``."""
        both = _squashed(self.removed) and _squashed(self.added)
        return self.is_layout or (bool(both) and _loose_end(self.removed) != _loose_end(self.added))

    @property
    def names(self) -> bool:
        """Whether one name takes the place of another."""
        return _is_name(self.removed) and _is_name(self.added)


@dataclass(frozen=True, slots=True)
class HunkFacts:
    """The kind of one hunk, judged by itself.

    Attributes:
        id: The hunk's.
        path: Its file.
        old: The lines that it removes.
        new: The lines that it adds.
        kinds: Its kinds with their evidence, the one that asks most of a reader first.
        changes: The tokens that differ; empty where lines only come or go.
        partial: Whether the replaced name stays elsewhere in the hunk, or the new one was there
            before; such a hunk differs from one that replaces all of them.
        bound: Whether what stands above decides what its lines are: they begin in a string or a
            comment, or a decorator stands above them, or is their last line.
    """

    id: int
    path: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    kinds: tuple[Evidence, ...] = ()
    changes: tuple[TokenChange, ...] = ()
    partial: bool = False
    bound: bool = False

    @property
    def is_equal(self) -> bool:
        """Whether its tree and its comments are as before."""
        return any(each.kind is ChangeKind.FORMATTING for each in self.kinds)


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file with hunks.

    Attributes:
        path: Its path.
        lines: Its text before all of them.
        blocks: The hunks, by position.
    """

    path: str
    lines: tuple[str, ...]
    blocks: tuple[ChangedBlock, ...]

    @property
    def size(self) -> int:
        """Characters that have to be read."""
        return sum(map(len, self.lines)) + sum(len(x) for b in self.blocks for x in b.new)


def facts_in(file: ChangedFile) -> list[HunkFacts]:
    """What the hunks of a file are; just their lines, if it cannot be read."""
    try:
        return facts_of(file.path, file.lines, file.blocks)
    except Exception:  # one strange file must not hide the hunks of the others
        return plain_facts(file)


def plain_facts(file: ChangedFile) -> list[HunkFacts]:
    """The hunks of a file without their kinds."""
    return [
        HunkFacts(id=block.id, path=file.path, old=block.old, new=block.new)
        for block in file.blocks
    ]


def facts_of(path: str, lines: Sequence[str], blocks: Sequence[ChangedBlock]) -> list[HunkFacts]:
    """What the hunks of a file are.

    Args:
        path: The file.
        lines: Its text before all of them, without terminators.
        blocks: The hunks, by position; they do not overlap.
    """
    changes = [Replacement(b.start, b.start + len(b.old), b.new) for b in blocks]
    after = applied(lines, changes)
    proven = _proven(path, lines, changes, blocks)
    interface = _interface(path, lines, after, changes, blocks)
    whole = _of_file(path, lines or after)
    before, begun = _begun(path, lines), _begun(path, after)
    facts: list[HunkFacts] = []
    shift = 0
    for index, block in enumerate(blocks):
        start = block.start + shift
        closers = [begun.get(row, "") for row in range(start, start + len(block.new))]
        shift += len(block.new) - len(block.old)
        equal = proven.get(index)
        kinds: list[Evidence] = []
        if equal is None:
            if why := interface.get(index):
                kinds.append(Evidence(ChangeKind.INTERFACE, why))
            if why := deletion(path, block.old, block.new):
                kinds.append(Evidence(ChangeKind.DELETION, why))
            if _only_imports(path, block, lines):
                kinds = [Evidence(ChangeKind.IMPORTS, "each line that changes is an import")]
        else:
            kinds.append(equal)
        if equal is None and _looks_equal(path, block):
            kinds.append(Evidence(ChangeKind.EXCEPTION, UNPROVEN))
        kinds += whole
        kinds.sort(key=lambda each: _ORDER[each.kind])
        tokens = (
            () if equal and equal.kind is ChangeKind.FORMATTING else _token_changes(block, closers)
        )
        facts.append(
            HunkFacts(
                id=block.id,
                path=path,
                old=block.old,
                new=block.new,
                kinds=tuple(kinds),
                changes=tokens,
                partial=_partial(block, tokens),
                bound=_bound(block, lines, after, start, before, begun),
            )
        )
    return facts


_ORDER: Final = {kind: place for place, kind in enumerate(ChangeKind)}


# Trees

EQUAL: Final = "the syntax tree is equal"
DOC_INDENTED: Final = "the syntax tree is equal, but for the indentation of docstrings"
UNPROVEN: Final = "only spaces, quotes or brackets change, yet no equal syntax tree was found"


def _proven(
    path: str,
    lines: Sequence[str],
    changes: Sequence[Replacement],
    blocks: Sequence[ChangedBlock],
) -> dict[int, Evidence]:
    """The hunks after which the syntax tree is as before."""
    documented = _in_docstrings(path, lines, blocks)
    likely = [i for i, block in enumerate(blocks) if i in documented or _may_be_equal(path, block)]
    if not likely:
        return {}
    found: dict[int, Evidence] = {}
    read = any("__doc__" in line for line in lines)
    for place, (olds, news) in prove(path, lines, [changes[i] for i in likely]).items():
        index = likely[place]
        same = [c.words for c in olds] == [c.words for c in news]
        tools = [each for each in (*olds, *news) if each.for_tools or (each.is_doc and read)]
        old, new = (_marked(side, tools) for side in (blocks[index].old, blocks[index].new))
        if tools and not (same and old == new):
            what = f"a comment that tools read: {tools[0].text[:60]}"
            if tools[0].is_doc:
                what = "a docstring with a doctest, or that the code reads"
            found[index] = Evidence(ChangeKind.PLAIN, what)
        elif [c.text for c in olds] == [c.text for c in news]:
            found[index] = Evidence(ChangeKind.FORMATTING, EQUAL)
        elif same:
            found[index] = Evidence(ChangeKind.FORMATTING, DOC_INDENTED)
        else:
            why = "without comments and docstrings, the syntax tree is equal"
            found[index] = Evidence(ChangeKind.COMMENTS, why)
    return found


def _marked(lines: Sequence[str], tools: Sequence[Comment]) -> list[str]:
    """The lines with comments that tools read, which are about what stands beside them."""
    texts = [text for tool in tools if not tool.is_doc for text in tool.text.splitlines()]
    return [line.strip() for line in lines if any(text.strip() in line for text in texts)]


_LOOSE: Final = re.compile(r"[\s,;()\[\]{}'\"`\\]+")
_COMMENT_SIGN: Final = re.compile(r"[#/*]")
_LINE_COMMENT: Final = re.compile(r"(?:#|//).*|/\*.*?\*/|^\s*(?:/?\*+/?|\*).*|/\*.*")


def _may_be_equal(path: str, block: ChangedBlock) -> bool:
    """Whether a proof is worth trying: apart from brackets, quotes and comments, all is equal."""
    language = grammar_of(path)
    if not (is_python(path) or language):
        return False
    # To a shell, `[ a=b ]` is one word, and `[a = b ]` another command.
    if language and language.name == "shell" and _words(block.old) != _words(block.new):
        return False
    if _looks_equal(path, block):
        return True
    if not any(_COMMENT_SIGN.search(line) for line in (*block.old, *block.new)):
        return False
    return _squashed(_uncommented(block.old)) == _squashed(_uncommented(block.new))


def _words(lines: Sequence[str]) -> list[str]:
    return [word for line in lines for word in _SHELL_COMMENT.sub("", line).split()]


_SHELL_COMMENT: Final = re.compile(r"(?:^|\s)#.*")


def _in_docstrings(
    path: str, lines: Sequence[str], blocks: Sequence[ChangedBlock]
) -> frozenset[int]:
    """The hunks that may lie in a docstring: an odd number of triple quotes stands above."""
    if not is_python(path):
        return frozenset()
    found: set[int] = set()
    quotes = at = 0
    for index, block in enumerate(blocks):
        quotes += sum(map(_quotes, lines[at : block.start]))
        at = block.start
        if quotes % 2 or sum(map(_quotes, block.old)) % 2 or any(map(_quotes, block.new)):
            found.add(index)
    return frozenset(found)


def _quotes(line: str) -> int:
    return line.count('"""') + line.count("'''")


def _looks_equal(path: str, block: ChangedBlock) -> bool:
    """Whether only spaces, quotes and brackets change, in a language with a parser."""
    if not (is_python(path) or grammar_of(path)):
        return False
    return _squashed("\n".join(block.old)) == _squashed("\n".join(block.new))


def _loose_end(text: str) -> str:
    return next((last[0] for last in _LOOSE.finditer(text) if last.end() == len(text)), "")


def _squashed(text: str) -> str:
    return _LOOSE.sub("", text).lower()


def _uncommented(lines: Sequence[str]) -> str:
    return "\n".join(_LINE_COMMENT.sub("", line) for line in lines)


# Interfaces

_HEADER: Final = re.compile(
    r"^\s*(?:@|(?:[\w<>,\[\]*&:~ ]+\s)?(?:def|class|function|func|fn|interface|type|enum|struct"
    r"|trait|module|public|protected|export|extern|static|typedef|namespace)\b)|\)\s*(?:->.*)?[:{]"
)
_PARAMETER: Final = re.compile(r"^\s*[*&]{0,2}\w+\s*(?:[:=,]|$|[\w\s.*&<>\[\]{}]+,$)")
_OPENS_MEMBERS: Final = re.compile(
    r"\b(?:interface|enum|struct)\b[^()]*\{\s*$|\btype\b[^()]*=\s*\{\s*$"
)
"""The head of a type whose lines are relied on, in Go and TypeScript."""
_PUBLIC_WORDS: Final = re.compile(r"\b(?:pub|public|protected|export)\b")
_ROUTE: Final = re.compile(
    r"@(?:\w+\.)*(?i:(?:route|get|post|put|delete|patch|head|options|websocket|request|all)"
    r"(?:mapping)?)\(|\b(?:re_path|path|url)\(\s*r?[\"']"
    # `app.get("/")` at the start of a line registers a route; after other code it is a request.
    r"|^\s*(?:\w*\.)+(?i:route|get|post|put|delete|patch|head|options|all|any|use|handle(?:func)?)"
    r"\(\s*[\"'`](?:[A-Z]+ )?/|^\s*(?:get|post|put|delete|patch)\s+[\"']/"
)
_EXPORT: Final = re.compile(
    r"^\s*(?:export\s*(?:type\s*)?[*{].*|pub\s+use\b.*|__all__\b.*"
    r"|export\s+(?:declare\s+)?(?:const|let|var|default|type|interface|enum)\s+[\w$]+)"
)
_DEPENDENCIES: Final = re.compile(
    r"(?:^|/)(?:requirements(?:/[\w.-]+|[\w.-]*)\.(?:txt|in)|pyproject\.toml|setup\.(?:py|cfg)"
    r"|package\.json|go\.(?:mod|work)|cargo\.toml|gemfile|[^/]*\.gemspec|pom\.xml"
    r"|(?:build|settings)\.gradle(?:\.kts)?|libs\.versions\.toml|pipfile|composer\.json"
    r"|environment\.ya?ml|pubspec\.yaml|mix\.exs|package\.swift|[^/]*\.(?:cs|fs)proj)$"
)
_SCHEMA: Final = re.compile(
    r"(?:^|/)migrations?/|(?:^|/)(?:openapi|swagger)[\w.-]*\.(?:json|ya?ml)$|(?:^|/)schema\.rb$"
    r"|\.schema\.json$|\.(?:sql|proto|graphql|avsc|thrift|xsd|prisma)$"
)
_SETTINGS: Final = re.compile(
    r"(?:^|/)(?:settings?|config)[\w-]*\.\w+$|(?:^|/)\.env\b|\.(?:ini|env|cfg)$"
    r"|(?:^|/)(?:config/[\w.-]+|application[\w.-]*|appsettings[\w.-]*)\."
    r"(?:ya?ml|json|toml|properties)$"
)

_DECLARES: Final = re.compile(r"(?:^|/)(?:setup|settings(?:_\w+)?|migrations/\d\w*)\.py$")
"""Python files that are no code like other: all they hold is relied on."""


def _interface(
    path: str,
    lines: Sequence[str],
    after: Sequence[str],
    changes: Sequence[Replacement],
    blocks: Sequence[ChangedBlock],
) -> dict[int, str]:
    """What hunks change that others may rely on."""
    lower = path.lower()
    if is_test(path):
        return {}
    for what, found in (
        ("dependencies", _DEPENDENCIES.search(lower)),
        ("a schema", _SCHEMA.search(lower)),
        ("settings", _SETTINGS.search(lower)),
    ):
        if found and (not is_python(path) or _DECLARES.search(lower)):
            return dict.fromkeys(range(len(blocks)), f"{what}: {path}")
    reasons = {
        index: what
        for what, found in (("an export", _exports), ("a route", _routes))
        for index, block in enumerate(blocks)
        if found(block.old) - found(block.new)
    }
    if not (is_python(path) or grammar_of(path)) or max(len(lines), len(after)) > MAX_OUTLINED:
        return reasons
    opens = [_opens_members(line) for line in lines]
    likely = {i for i, block in enumerate(blocks) if _may_touch_header(block, lines, opens)}
    if not likely or not lines:
        return reasons
    olds, news = _headers(path, lines), _headers(path, after)
    shift = 0
    for index, (change, block) in enumerate(zip(changes, blocks, strict=True)):
        start, stop = change.start + shift, change.start + shift + len(block.new)
        shift += len(block.new) - len(block.old)
        if index not in likely:
            continue
        said: list[str] = []
        for one in olds.values():
            if not (one.start < change.stop and one.stop > change.start):
                continue
            two = news.get(one.name)
            if two is None:
                said.append(f"`{one.name}` is gone")
            elif two.text != one.text:
                said.append(f"`{one.name}` has {one.differs}")
        for two in news.values():
            one = olds.get(two.name)
            touched = two.start < stop and two.stop > start
            if touched and one is not None and one.text != two.text:
                said.append(f"`{two.name}` has {two.differs}")
        if said := list(dict.fromkeys(said)):
            more = f" and {len(said) - 2} more" if len(said) > 2 else ""
            reasons[index] = ", ".join(said[:2]) + more
    return reasons


def _routes(lines: Sequence[str]) -> set[str]:
    return {line.strip() for line in lines if _ROUTE.search(line)}


def _exports(lines: Sequence[str]) -> set[str]:
    return {match[0].strip() for match in map(_EXPORT.match, lines) if match}


def _opens_members(line: str) -> bool | None:
    """Whether a line begins a type with members; ``None`` for a brace that ends a definition."""
    if line.startswith("}"):
        return None
    return line.rstrip().endswith("{") and _OPENS_MEMBERS.search(line) is not None


def _may_touch_header(
    block: ChangedBlock, lines: Sequence[str], opens: Sequence[bool | None]
) -> bool:
    """Whether a hunk has a line that may belong to the head of a definition, or is a member."""
    if any(_HEADER.search(line) for line in (*block.old, *block.new)):
        return True
    for opened in reversed(opens[max(0, block.start - 40) : block.start]):
        if opened:
            return True
        if opened is None:
            break
    if not any(_PARAMETER.match(line) for line in (*block.old, *block.new)):
        return False
    # A parameter on a line of its own: the head begins above.
    for line in reversed(lines[max(0, block.start - 40) : block.start]):
        if _HEADER.search(line):
            return line.rstrip().endswith(("(", ",")) or "(" in line
        if not _PARAMETER.match(line):
            return False
    return False


class _DefinitionHeader(NamedTuple):
    name: str
    text: str
    start: int
    stop: int
    differs: str = "another signature"


def _headers(path: str, lines: Sequence[str]) -> dict[str, _DefinitionHeader]:
    """The heads of public functions and classes, without spaces and comments."""
    from midstream.code.outline import outline

    found: dict[str, _DefinitionHeader] = {}
    inside: list[Definition] = []
    for one in outline(tuple(lines), path).definitions:
        while inside and not inside[-1].encloses(one):
            inside.pop()
        local = any(outer.kind == "function" for outer in inside)
        inside.append(one)
        if local or one.kind == "assignment" or not one.name:
            continue
        header = _header(path, lines, one)
        if _is_public(path, header):
            found.setdefault(one.name, header)
    return found


def _header(path: str, lines: Sequence[str], one: Definition) -> _DefinitionHeader:
    ends = (":",) if is_python(path) else ("{", ";", "=>", "do", "=")
    depth = 0
    for row in range(one.start, min(one.stop, one.start + 60)):
        code = _code(lines[row])
        depth += sum(map(code.count, "([")) - sum(map(code.count, ")]"))
        whole = code.rstrip()
        above = row == one.start and whole.lstrip().startswith(("@", "#[", "/"))
        if depth <= 0 and not above and (whole.endswith(ends) or ("{" in whole and ends[0] == "{")):
            break
    else:
        row = one.start
    if _OPENS_MEMBERS.search(lines[row]) and _has_members(path):
        body = [_code(line).strip() for line in lines[one.start : one.stop]]
        if "struct" in lines[row]:  # what begins with a small letter is private
            body = [line for line in body if not line[:1].islower() or "struct" in line]
        return _DefinitionHeader(one.name, "\n".join(body), one.start, one.stop, "other members")
    text = "".join(_code(line) for line in lines[one.start : row + 1])
    if is_python(path) and ":" in text and not text.rstrip().endswith(":"):
        text = text[: text.rindex(":")]
    return _DefinitionHeader(one.name, re.sub(r"[\s,]+", "", text), one.start, row + 1)


def _has_members(path: str) -> bool:
    language = grammar_of(path)
    return language is not None and (language.family == "script" or path.endswith(".go"))


def _is_public(path: str, header: _DefinitionHeader) -> bool:
    parts = header.name.split(".")
    if any(part.startswith("_") and not part.endswith("__") for part in parts):
        return False
    suffix = PurePosixPath(path).suffix.lower()
    if suffix == ".go":
        return parts[-1][:1].isupper()
    if suffix in (".rs", ".java"):
        return bool(_PUBLIC_WORDS.search(header.text) or header.text.startswith("pub"))
    return True


# Behaviour

_BEHAVIOUR: Final = (
    (
        "check",
        "checks",
        re.compile(
            r"\bassert\w*|\bself\.assert\w*|\bexpect\(|\b(?:check|verify|validate|require|ensure)"
            r"\w*[(.]|\bt\.(?:error|fatal)f?\(|\bpytest\.raises\("
            r"|\b\w*(?:permission|authori[sz]|authenticat|csrf|login_?required)\w*"
            r"|\b(?:is|has|require)_?(?:admin|staff|super_?user|owner|perm|role|access|allowed|auth)"
            r"\w*|\b(?:can|may)_?(?:edit|read|write|view|delete|update|create|manage)\w*|\bcan\(",
            re.IGNORECASE,
        ),
    ),
    (
        "error handler",
        "error handlers",
        re.compile(
            r"\b(?:except|catch|rescue|finally|raise|throw|panic|recover|ensure|defer)\b|\)\?[;)]"
        ),
    ),
    (
        "branch",
        "branches",
        re.compile(r"\b(?:if|elif|else|elsif|unless|case|switch|match|when|guard|while)\b|\s\?\s"),
    ),
)


def deletion(path: str, removed: Sequence[str], added: Sequence[str]) -> str:
    """What behaviour goes: more branches, error handlers or checks in the old lines than in the
    new ones.
    """
    if not (is_python(path) or grammar_of(path)):
        return ""
    gone: list[str] = []
    if not any(pattern.search("\n".join(removed)) for _, _, pattern in _BEHAVIOUR):
        return ""
    old, new = [*map(_code, removed)], [*map(_code, added)]
    for one, many, pattern in _BEHAVIOUR:
        count = _counted(pattern, old) - _counted(pattern, new)
        if count > 0:
            gone.append(f"{count} {one if count == 1 else many}")
    return f"{', '.join(gone)} less" if gone else ""


def _counted(pattern: re.Pattern[str], lines: Sequence[str]) -> int:
    return sum(len(pattern.findall(line)) for line in lines)


_LITERAL: Final = re.compile(
    r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`|(?:#|//).*$|/\*.*?\*/"
)


def _code(line: str) -> str:
    """A line without its strings and comments, as far as the line shows them."""
    return _LITERAL.sub('""', line) if "#" in line or "/" in line or _QUOTE.search(line) else line


_QUOTE: Final = re.compile(r"[\"'`]")


# Files

_GENERATED_NAME: Final = re.compile(
    r"(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|go\.sum"
    r"|[\w.-]+\.lock|uv\.lock|flake\.lock)$|\.min\.(?:js|css)$|_pb2(?:_grpc)?\.pyi?$|\.pb\.\w+$"
    r"|\.(?:map|snap)$"
)
_GENERATED_TEXT: Final = re.compile(
    r"@generated|\bDO NOT EDIT\b|(?:automatically|auto-?) ?generated", re.IGNORECASE
)


def _of_file(path: str, lines: Sequence[str]) -> list[Evidence]:
    """The kinds that all hunks of a file share."""
    kinds: list[Evidence] = []
    if is_test(path):
        kinds.append(Evidence(ChangeKind.TESTS, f"{path} holds tests"))
    if _GENERATED_NAME.search(path):
        kinds.append(Evidence(ChangeKind.GENERATED, f"{path} is written by a program"))
    elif said := next((line for line in lines[:5] if _GENERATED_TEXT.search(line)), ""):
        kinds.append(Evidence(ChangeKind.GENERATED, f"the file says so: {said.strip()[:60]}"))
    return kinds


# Imports

_IMPORT: Final = re.compile(
    r"\s*(?:import(?=[\s\"{*])[\w.*{},:\s$\"]*(?:=\s*require\(\"\"\))?|import\s*\("
    r"|from\s+[\w.]+\s+import\b(?:[\w,\s*]*\\?|\s*\([\w,\s]*\)?)|use\s+[\w:{},\s*]+"
    r"|require(?:_relative)?\s+\"\"|(?:const|let|var)\s+[\w{},:\s$]+=\s*require\(\"\"\)(?:\.\w+)*"
    r")(?:\s*;)?\s*(?:\"\")?"
)
"""A line that is an import and nothing else, its strings and comments emptied."""
_INCLUDE: Final = re.compile(r"\s*#\s*include\s*[<\"][^<>\"]*[>\"]\s*(?://.*|/\*.*\*/)?")
_OPENS: Final = re.compile(r"[({]\s*(?:\"\")?$|\\$")
_CLOSES: Final = re.compile(r"(?:\)|\}(?:\s*from\s*\"\")?)\s*;?\s*(?:\"\")?$")
_MEMBER: Final = re.compile(
    r"(?:(?:type\s+)?[\w.*:{}$]+(?:\s+as\s+\w+)?|(?:[\w.]+\s+)?\"\")?(?:\s*\"\")?"
)


def _is_import(line: str) -> bool:
    return bool(_IMPORT.fullmatch(_code(line)) or _INCLUDE.fullmatch(line))


def _is_member(line: str) -> bool:
    """Whether a line lists names as within the brackets of an import."""
    parts = _CLOSES.sub("", _code(line)).split(",")
    return all(_MEMBER.fullmatch(part.strip()) for part in parts)


def _only_imports(path: str, block: ChangedBlock, lines: Sequence[str]) -> bool:
    if not (is_python(path) or grammar_of(path)):
        return False
    open_above = _inside_import(lines, block.start)
    return all(_imports(side, open_above) for side in (block.old, block.new)) and any(
        line.strip() for line in (*block.old, *block.new)
    )


def _imports(lines: Sequence[str], inside: bool) -> bool:
    for line in lines:
        if not line.strip():
            continue
        code = _code(line)
        if inside and _is_member(line):
            inside = not _CLOSES.search(code)
        elif _is_import(line):
            inside = bool(_OPENS.search(code))
        else:
            return False
    return True


def _inside_import(lines: Sequence[str], start: int) -> bool:
    """Whether the lines above a place begin an import that goes on there."""
    for line in reversed(lines[max(0, start - 60) : start]):
        code = _code(line)
        if _is_import(line):
            return bool(_OPENS.search(code))
        if not _is_member(line) or _CLOSES.search(code):
            return False
    return False


# Tokens

_TOKEN: Final = re.compile(r"\w+|[^\S\n]+|\n|[^\w\s]")
_DEFINES: Final = re.compile(
    r"\b(?:def|class|function|func|fn|struct|enum|trait|interface|type|const|let|var|module"
    r"|namespace|macro_rules!|define)\s+(?:\([^)]*\)\s*)?$"
)
_ASSIGNS: Final = re.compile(r"\s*(?::[^=]+)?=(?!=)")
_WORDS: Final = frozenset({
    "and", "or", "not", "is", "in", "if", "else", "elif", "for", "while", "return", "raise",
    "throw", "try", "except", "catch", "finally", "assert", "pass", "break", "continue", "del",
    "lambda", "yield", "await", "async", "def", "class", "function", "func", "fn", "let", "var",
    "const", "import", "from", "as", "with", "global", "nonlocal", "new", "delete", "typeof",
    "instanceof", "switch", "case", "default", "do", "true", "false", "null", "none", "nil",
    "undefined", "this", "self", "super", "void", "static", "public", "private", "protected",
    "final", "abstract", "extends", "implements", "int", "float", "str", "bool",
})  # fmt: skip
"""Words of the languages, which are no names."""


@cache
def _is_name(token: str) -> bool:
    return (token.isidentifier() and len(token) > 1 and token.lower() not in _WORDS) or token in (
        "_",
    )


_LONG: Final = re.compile(r"\"\"\"|'''|`|/\*")
_PYTHON_ATOM: Final = re.compile(
    r"(?P<long>\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?''')"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*",
    re.DOTALL,
)
_ATOM: Final = re.compile(
    r"(?P<long>\"\"\".*?\"\"\"|`[^`]*`|/\*.*?\*/)"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|//[^\n]*",
    re.DOTALL,
)


def _begun(path: str, lines: Sequence[str]) -> dict[int, str]:
    """The lines that begin in a string or a comment, and what ends it."""
    atom = _PYTHON_ATOM if is_python(path) else _ATOM if grammar_of(path) else None
    if atom is None or not any(map(_LONG.search, lines)):
        return {}
    found: dict[int, str] = {}
    text = "\n".join(lines)
    at = row = 0
    for match in atom.finditer(text):
        if (long := match["long"]) and "\n" in long:
            row += text.count("\n", at, match.start())
            stop = row + long.count("\n")
            end = "*/" if long.startswith("/*") else "`" if long[0] == "`" else long[:3]
            found |= dict.fromkeys(range(row + 1, stop + 1), end)
            at, row = match.end(), stop
    return found


def _token_changes(block: ChangedBlock, closers: Sequence[str]) -> tuple[TokenChange, ...]:
    """The tokens that differ; ``closers`` end the text that each new line begins in."""
    if not block.old or not block.new:
        return ()
    changes: list[TokenChange] = []
    if len(block.old) == len(block.new):
        for old, new, end in zip(block.old, block.new, closers, strict=True):
            changes += _compared(old, new, (end,))
    else:
        changes += _compared("\n".join(block.old), "\n".join(block.new), closers)
    return tuple(changes)


def _compared(old: str, new: str, closers: Sequence[str]) -> Iterator[TokenChange]:
    """The runs of tokens that differ, spaces and line breaks included."""
    if old == new:
        return
    olds, news = _TOKEN.findall(old), _TOKEN.findall(new)
    limit = min(len(olds), len(news))
    head = 0
    while head < limit and olds[head] == news[head]:
        head += 1
    tail = 0
    while tail < limit - head and olds[-1 - tail] == news[-1 - tail]:
        tail += 1
    one, two = olds[head : len(olds) - tail], news[head : len(news) - tail]
    if max(len(one), len(two)) > MAX_TOKENS:
        blocks: list[tuple[int, int, int]] = []
    else:
        blocks = equal_blocks(one, two)
    ends = [(0, 0), *((i + size, j + size) for i, j, size in blocks)]
    starts = [*((i, j) for i, j, _ in blocks), (len(one), len(two))]
    places = _LikePlaces(olds)
    for (i, j), (stop, end) in zip(ends, starts, strict=True):
        if i == stop and j == end:
            continue
        before = "".join(news[: head + j])
        after = "".join(news[head + end : head + end + 6])
        line = before[before.rfind("\n") + 1 :]
        place = _place(line, closers[before.count("\n")])
        around = _around(before.rstrip(), after.lstrip(" "))
        if place == "string" or _only_literals((*one[i:stop], *two[j:end])):
            around = _owner(before) + around
        around += places.which(head + i, head + stop)
        yield TokenChange(
            removed="".join(one[i:stop]),
            added="".join(two[j:end]),
            around=around,
            place=place,
            defines=_DEFINES.search(line) is not None
            or (not line.strip() and _ASSIGNS.match(after) is not None),
        )


class _LikePlaces:
    """Finds the places of a text in which the same tokens stand between the same neighbours."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._all = tokens
        self._counts = Counter(tokens)
        self._like: dict[tuple[str, ...], list[int]] = {}

    def which(self, start: int, stop: int) -> str:
        """Which of such places these tokens are, as ``2/3``; ``""`` for the only one."""
        if stop - start > MAX_LIKE:
            return f" @{start}"
        run = self._all[start:stop]
        if any(self._counts[token] == 1 and not token.isspace() for token in run):
            return ""
        first, last = bisect_left(self._visible, start), bisect_left(self._visible, stop)
        mine = self._seen(first, last - first)
        if mine not in self._like:
            head = mine[1] if last > first else f"{mine[1]} "
            places = self._starts[mine[0], head]
            self._like[mine] = [at for at in places if self._seen(at, last - first) == mine]
        like = self._like[mine]
        return f" {bisect_left(like, first) + 1}/{len(like)}" if len(like) > 1 else ""

    @cached_property
    def _visible(self) -> list[int]:
        return [at for at, token in enumerate(self._all) if not token.isspace()]

    @cached_property
    def _tokens(self) -> list[str]:
        return [self._all[at] for at in self._visible]

    @cached_property
    def _kinds(self) -> list[str]:
        return list(map(_class, self._tokens))

    @cached_property
    def _starts(self) -> dict[tuple[str, str], list[int]]:
        """Places by what stands before them, and their first token."""
        starts: dict[tuple[str, str], list[int]] = defaultdict(list)
        for at, (before, token) in enumerate(zip(["\n", *self._kinds], self._tokens, strict=False)):
            starts[before, token].append(at)
            starts[before, self._kinds[at] + " "].append(at)  # for what only comes
        return starts

    def _seen(self, at: int, size: int) -> tuple[str, ...]:
        kinds = self._kinds
        before = kinds[at - 1] if at else "\n"
        after = kinds[at + size] if at + size < len(kinds) else "\n"
        return (before, *self._tokens[at : at + size], after)


def _around(before: str, after: str) -> str:
    """The tokens on both sides; what ends an operand is one class, as names and numbers are."""
    left = "".join(_TOKEN.findall(before[-40:])[-1:]) or "\n"
    right = "".join(_TOKEN.findall(after)[:1]) or "\n"
    return f"{_class(left)}…{_class(right)}"


_CONSTANTS: Final = frozenset({"true", "false", "none", "null", "nil", "undefined"})


def _only_literals(tokens: Sequence[str]) -> bool:
    """Whether the words among tokens are numbers and constants, or there are quotes."""
    words = [token for token in tokens if _WORD.match(token)]
    if any(not word[0].isdigit() and word.lower() not in _CONSTANTS for word in words):
        return any(map(_QUOTE.match, tokens))
    return bool(words) or any(map(_QUOTE.match, tokens))


_WORD: Final = re.compile(r"\w")
_OWNER: Final = re.compile(
    r"([\w.]+)[\"'\]]*\s*(?:[=!<>]?=|[(:])\s*[-+]?(?:\w{0,2}[\"'`][^\"'`]*)?$"
)


def _owner(before: str) -> str:
    """The name that a literal is given to or compared with, ``""`` if none stands before it."""
    before = before[-200:]
    if found := _OWNER.search(before):
        return f"{found[1]} "
    depth = commas = 0
    tokens = _TOKEN.findall(_STRINGS.sub('""', before))
    for at in range(len(tokens) - 1, 0, -1):
        depth += (tokens[at] in ")]}") - (tokens[at] in "([{")
        commas += tokens[at] == "," and not depth
        if depth < 0:
            return f"{commas + 1} {tokens[at - 1]} "
    return ""


def _class(token: str) -> str:
    return "w" if _OPERAND.match(token) else token


_OPERAND: Final = re.compile(r"[\w)\]\"']")


def _place(line: str, end: str) -> str:
    """Whether the end of a line lies in a string or a comment, where it may begin in one."""
    if end and end not in line:
        return "comment" if end == "*/" else "string"
    line = line[line.index(end) + len(end) :]
    rest = _STRINGS.sub("", line)
    if _COMMENT_START.search(rest):
        return "comment"
    return "string" if _QUOTE.search(rest) else "code"


_STRINGS: Final = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`")
_COMMENT_START: Final = re.compile(r"#|//|/\*|^\s*\*")


_DECORATOR: Final = re.compile(r"\s*(?:@\w|#!?\[)")


def _bound(
    block: ChangedBlock,
    lines: Sequence[str],
    after: Sequence[str],
    start: int,
    before: Mapping[int, str],
    begun: Mapping[int, str],
) -> bool:
    """Whether added or removed lines stand in a string, or below or beside a decorator.

    What they are by themselves then says nothing about what they do.
    """
    if block.old and block.new:
        return False
    text, at, inside = (lines, block.start, before) if block.old else (after, start, begun)
    above, last = text[at - 1] if at else "", (block.old or block.new or ("",))[-1]
    # Where both are the same, the lines begin one line above as well.
    return at in inside or (above != last and any(map(_DECORATOR.match, (above, last))))


def _partial(block: ChangedBlock, changes: Sequence[TokenChange]) -> bool:
    """Whether only some uses of a name were replaced, or the new name was there before."""
    names = [change for change in changes if change.names]
    if not names:
        return False
    return any(_has_name(block.new, c.removed) or _has_name(block.old, c.added) for c in names)


def _has_name(lines: Sequence[str], name: str) -> bool:
    return any(name in line and name in _TOKEN.findall(line) for line in lines)
