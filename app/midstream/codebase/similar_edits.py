"""Similar edits: other places that need a change which was made in one place.

A user renames one use of a name, or replaces one literal; the other uses need the same.  The
change is derived from two versions of a file, and the places from the newer one.  Only what can be
said in one sentence is recognised (``Substitution``); any other change can be asked for again in
places that look alike (``similar_places``).  Pure text in, places out.
"""

from __future__ import annotations

import io
import keyword
import re
import tokenize
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rapidfuzz import fuzz

from midstream.code.languages import grammar_of
from midstream.code.outline import Definition, Outline, outline
from midstream.code.trees import Occurrence, occurrences
from midstream.edits.lcs import matching_pairs

MAX_EDITS = 3
"""Different substitutions in one change; more of them are no one change any longer."""

SIMILAR = 80.0
"""Per cent of likeness (``rapidfuzz.fuzz.ratio``) at which a line is taken for another's twin."""

_TOKEN = re.compile(
    r"""[A-Za-z_]\w*|\d[\w.]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\s+|[^\w\s]""", re.ASCII
)
_HEADS = ("def", "class")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_LITERAL = re.compile(r"""\d[\w.]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""", re.ASCII)


@dataclass(frozen=True, slots=True)
class Substitution:
    """One token that was replaced by another wherever the change touched it.

    Attributes:
        kind: A name, an attribute (a name behind a dot, or one that a class defines) or a literal.
        old: The token before.
        new: The token after.
        scope: Dotted name of the function outside of which the old name means something else;
            ``""`` for the whole file.
    """

    kind: Literal["name", "attribute", "literal"]
    old: str
    new: str
    scope: str = ""

    @property
    def instruction(self) -> str:
        """The request to a model."""
        if self.kind == "literal":
            return f"replace {self.old} with {self.new}"
        return f"rename `{self.old}` to `{self.new}`"


@dataclass(frozen=True, slots=True)
class EditPlace:
    """Lines in which a change is wanted.

    Attributes:
        start: First line, 0-based.
        stop: The line after the last.
        symbol: The function, ``""`` outside functions.
    """

    start: int
    stop: int
    symbol: str


def substitutions(
    before: Sequence[str], after: Sequence[str], path: str = ""
) -> list[Substitution]:
    """The tokens that a change of a file replaced one for one.

    Args:
        before: The file before, lines without terminators.
        after: The file after.
        path: Its name, which tells the language; what tells none is read as Python.

    Returns:
        At most ``MAX_EDITS``, in the order in which they appear; none if lines were changed in any
        other way.  Lines that were only added or removed do not count.
    """
    found: dict[tuple[str, str, str], int] = {}
    for old_start, old_stop, new_start, new_stop in _gaps(before, after):
        if old_start == old_stop or new_start == new_stop:
            continue
        if old_stop - old_start != new_stop - new_start:
            return []
        for number, (old, new) in enumerate(
            zip(before[old_start:old_stop], after[new_start:new_stop], strict=True), old_start
        ):
            pairs = _replaced(old, new)
            if not pairs:
                return []
            for pair in pairs:
                found.setdefault(pair, number)
    if len(found) > MAX_EDITS:
        return []
    outlined = outline(before, path)
    return [_scoped(*pair, line, outlined) for pair, line in found.items()]


def places(
    lines: Sequence[str], wanted: Substitution, longest: int | None = None, path: str = ""
) -> list[EditPlace]:
    """Where the old token still stands.

    Args:
        lines: The file as it is now.
        wanted: The substitution.
        longest: Longest place in lines; longer ones are left out.
        path: The file's name, see ``substitutions``.

    Returns:
        The functions, or outside of them the statements, that still have it, by position.
    """
    outlined = outline(lines, path)
    shadowed = set[str]()
    if wanted.kind == "name" and not wanted.scope:
        shadowed = {definition.name for definition in outlined.binding(wanted.old)}
    found: dict[EditPlace, None] = {}
    for line in _occurrences(lines, wanted, outlined, path):
        place = _around(outlined, line)
        if place is None or place.symbol in shadowed:
            continue
        statement = lines[place.start : place.stop]
        if not place.symbol and _imports(statement) and renamed_import(statement, wanted) is None:
            continue  # a module of that name, or another name that is called so here
        if wanted.scope and place.symbol != wanted.scope:
            continue
        if longest is None or place.stop - place.start <= longest:
            found[place] = None
    return list(found)


def renamed_import(lines: Sequence[str], wanted: Substitution) -> list[str] | None:
    """A ``from … import …`` statement with the name that it imports renamed.

    Args:
        lines: Those of the statement.
        wanted: The substitution.

    Returns:
        Its lines after; ``None`` if they are anything else, or import no such name.
    """
    if wanted.kind != "name" or not _imports(lines) or not lines[0].lstrip().startswith("from"):
        return None
    places: list[tuple[int, int]] = []
    imports, before = False, ""
    for token in tokens(lines):
        imports = imports or token.string == "import"
        if imports and token.string == wanted.old and before in ("import", "(", ","):
            places.append((token.start[0] - 1, token.start[1]))
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.string
    after = list(lines)
    for row, column in reversed(places):
        rest = after[row][column + len(wanted.old) :]
        after[row] = f"{after[row][:column]}{wanted.new}{rest}"
    return after if places else None


def similar_places(
    lines: Sequence[str], old: Sequence[str], longest: int | None = None, path: str = ""
) -> list[EditPlace]:
    """Functions with a line much like one that a change replaced.

    Args:
        lines: The file as it is now.
        old: The lines that were replaced.
        longest: Longest place in lines; longer ones are left out.
        path: The file's name, see ``substitutions``.
    """
    wanted = [line.strip() for line in old if len(line.strip()) > len("return")]
    outlined = outline(lines, path)
    found: dict[EditPlace, None] = {}
    for number, line in enumerate(lines):
        text = line.strip()
        if not any(fuzz.ratio(text, twin, score_cutoff=SIMILAR) for twin in wanted):
            continue
        place = _around(outlined, number)
        if place is not None and (longest is None or place.stop - place.start <= longest):
            found[place] = None
    return list(found)


def around(lines: Sequence[str], line: int, path: str = "") -> EditPlace | None:
    """The function, or outside of functions the statement, that a line belongs to."""
    return _around(outline(lines, path), line)


def _gaps(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """The ranges of lines that differ, old and new."""
    old = new = 0
    for same_old, same_new in (*matching_pairs(before, after), (len(before), len(after))):
        if old < same_old or new < same_new:
            yield old, same_old, new, same_new
        old, new = same_old + 1, same_new + 1


def _replaced(old: str, new: str) -> set[tuple[str, str, str]]:
    """Kind, old and new of the tokens that differ; empty if the lines differ in any other way."""
    olds, news = _TOKEN.findall(old), _TOKEN.findall(new)
    if len(olds) != len(news):
        return set()
    pairs: set[tuple[str, str, str]] = set()
    for at, (one, other) in enumerate(zip(olds, news, strict=True)):
        if one == other:
            continue
        if _is_name(one) and _is_name(other):
            behind_dot = at > 0 and olds[at - 1] == "."
            pairs.add(("attribute" if behind_dot else "name", one, other))
        elif _LITERAL.fullmatch(one) and _LITERAL.fullmatch(other):
            pairs.add(("literal", one, other))
        else:
            return set()
    return pairs


def _is_name(token: str) -> bool:
    return _NAME.fullmatch(token) is not None and not keyword.iskeyword(token)


def _scoped(kind: str, old: str, new: str, line: int, outlined: Outline) -> Substitution:
    if kind == "attribute":
        return Substitution("attribute", old, new)
    if kind == "name" and any(d.contains(line) for d in _members(outlined, old)):
        return Substitution("attribute", old, new)
    around = [d.name for d in outlined.outermost if d.contains(line)]
    if kind == "literal":  # a number means something only where it stands
        return Substitution("literal", old, new, around[0] if around else "")
    own = [d.name for d in outlined.binding(old) if d.contains(line)]
    return Substitution("name", old, new, own[0] if own else "")


def _members(outlined: Outline, name: str) -> list[Definition]:
    """Where a class defines a method or a field of this name."""
    classes = {d.name for d in outlined.definitions if d.kind == "class"}
    found: list[Definition] = []
    for definition in outlined.definitions:
        owner, _, last = definition.name.rpartition(".")
        if last == name and owner in classes:
            found.append(definition)
    return found


def _occurrences(
    lines: Sequence[str], wanted: Substitution, outlined: Outline, path: str
) -> Iterator[int]:
    """Lines in which the old token stands as code."""
    if grammar_of(path) is not None:
        for spot in names_at(lines, wanted.old, path) if wanted.kind != "literal" else ():
            if spot.member == (wanted.kind == "attribute"):
                yield spot.line
        return
    members = _members(outlined, wanted.old) if wanted.kind == "attribute" else []
    kinds = {tokenize.NAME} if wanted.kind != "literal" else {tokenize.NUMBER, tokenize.STRING}
    before = ""
    for token in tokens(lines):
        if token.type in kinds and token.string == wanted.old:
            line = token.start[0] - 1
            member = before == "." or _defines(members, line, before)
            if wanted.kind == "literal" or member == (wanted.kind == "attribute"):
                yield line
        before = token.string


def names_at(lines: Sequence[str], name: str, path: str = "") -> Iterator[Occurrence]:
    """Where a name stands as code in a file, by position.

    Args:
        lines: The file.
        name: The name.
        path: The file's name, see ``substitutions``.
    """
    language = grammar_of(path)
    if language is not None:
        yield from occurrences(language, lines, name)
        return
    before = ""
    for token in tokens(lines):
        if token.type == tokenize.NAME and token.string == name:
            role = "member" if before == "." else "plain"
            yield Occurrence(token.start[0] - 1, token.start[1], role)
        before = token.string


def first_use(
    lines: Sequence[str],
    name: str,
    among: Container[int],
    path: str = "",
    *,
    attribute: bool = False,
) -> tuple[int, int] | None:
    """Line and column where a name first stands as code on one of some lines of a file.

    An attribute stands behind a dot: a parameter may have its name.
    """
    for spot in names_at(lines, name, path):
        if spot.line in among and (spot.member or not attribute):
            return spot.line, spot.column
    return None


def tokens(lines: Sequence[str]) -> Iterator[tokenize.TokenInfo]:
    """The tokens as far as they can be read; the rest of a file may be being typed."""
    source = io.StringIO("".join(f"{line}\n" for line in lines)).readline
    try:
        yield from tokenize.generate_tokens(source)
    except (tokenize.TokenError, SyntaxError):
        return


def _imports(lines: Sequence[str]) -> bool:
    return bool(lines) and lines[0].split(maxsplit=1)[:1] in (["import"], ["from"])


def _defines(members: Sequence[Definition], line: int, before: str) -> bool:
    """Whether the name behind ``before`` in a line is being defined there."""
    return any(
        line == d.start if d.kind == "assignment" else d.contains(line) and before in _HEADS
        for d in members
    )


def _around(outlined: Outline, line: int) -> EditPlace | None:
    for definition in outlined.outermost:
        if definition.contains(line):
            return EditPlace(definition.start, definition.stop, definition.name)
    for definition in outlined.definitions:
        # A field of a class; all of the class would be much for one line.
        field = definition.kind == "assignment" and "." in definition.name
        if field and definition.contains(line):
            return EditPlace(definition.start, definition.stop, definition.name)
    for start, stop in outlined.statements:
        if start <= line < stop:
            return EditPlace(start, stop, "")
    return None
