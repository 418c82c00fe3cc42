"""Finding the file and the lines that an instruction refers to.

In this order: an explicit selection, the symbol that the instruction names, the function or class
at the cursor.  Never a guess: where nothing fits, the error is a question that lists candidates.
Only ``search_workspace`` opens files.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rapidfuzz import fuzz, process

from midstream.code.outline import (
    Definition,
    Outline,
    declared_names,
    identifiers,
    may_define,
    outline,
)
from midstream.code.syntax import has_syntax
from midstream.errors import UserError
from midstream.pairing.request.mentions import Mention, Mentions, Sureness, find_mentions

if TYPE_CHECKING:
    from midstream.edits.documents import SourceText
    from midstream.workspace.files import Workspace

MAX_FILE_BYTES: Final = 2_000_000
"""Larger files are not searched."""
MAX_PARSED: Final = 200
"""Limit on the files that are parsed for one instruction; more of them are never a clear answer."""
MAX_CHOICES: Final = 9
"""Candidates offered on screen: one for each number key."""
_NEAR: Final = 60.0
"""Per cent of likeness (``rapidfuzz.fuzz.ratio``) at which a name is offered for a misspelt one."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A definition that an instruction could mean.

    Attributes:
        path: Its file; ``""`` for the file that the instruction was sent for.
        name: Dotted name.
        lines: 0-based half-open range, where several definitions of the file share the name.
        number: Which of these it is, counted from 0.
    """

    path: str
    name: str
    lines: tuple[int, int] | None = None
    number: int = 0

    @property
    def label(self) -> str:
        """The candidate as shown in a list of choices."""
        name = f"{self.path}: {self.name}" if self.path else self.name
        return name if self.lines is None else f"{name} (lines {self.lines[0] + 1}-{self.lines[1]})"

    def locate(self, lines: Sequence[str], path: str) -> tuple[int, int] | None:
        """Where it is in the file as it is now, ``None`` if it is gone."""
        found = outline(lines, path).named(self.name)
        if not found:
            return None
        definition = found[min(self.number, len(found) - 1)]
        return definition.start, definition.stop


class TargetUnclearError(UserError):
    """The instruction fits no place, or several; the message is a question.

    Attributes:
        candidates: Definitions that could be meant, best first.
        missing: The name that is not in the file; another file may have it.
        question: The message without the candidates, for a screen that lists them.
    """

    code = "target-unclear"
    exit_code = 2

    def __init__(
        self,
        message: str,
        candidates: tuple[Candidate, ...] = (),
        missing: str = "",
        question: str = "",
    ) -> None:
        super().__init__(message)
        self.candidates = candidates
        self.missing = missing
        self.question = question or message


@dataclass(frozen=True, slots=True)
class Target:
    """A region of one file.

    Attributes:
        start: First line, 0-based.
        stop: End line, exclusive.
        symbol: Dotted name of the definition, or ``""`` for a plain line range.
        why: How it was found, for display.
        undefined: A name in the instruction that these lines were not meant for: the file does not
            define it, though another may, or it is to have another name and does not stand there.
        later: Other definitions that the instruction lists, which are asked for afterwards.
    """

    start: int
    stop: int
    symbol: str
    why: str
    undefined: str = ""
    later: str = ""


@dataclass(frozen=True, slots=True)
class _Found:
    """A definition that an instruction mentions."""

    path: str
    definition: Definition
    mention: Mention


def find_target(
    text: SourceText,
    *,
    instruction: str,
    cursor: int | None = None,
    selection: tuple[int, int] | None = None,
    max_lines: int | None = None,
    path: str = "",
    symbol: str = "",
) -> Target:
    """The lines of ``text`` that ``instruction`` is about.

    Args:
        text: The file as it is proposed now.
        instruction: May name a symbol.
        cursor: 0-based line of the cursor, if any.
        selection: 0-based half-open line range that overrides everything else.
        max_lines: The longest region the model takes, or ``None`` for no limit.
        path: The file's name, which tells its language.
        symbol: A definition that is named with ``@`` together with the file.

    Raises:
        TargetUnclearError: Nothing fits, several things do, or what fits is too long.
    """
    lines = text.lines
    outlined = outline(lines, path)
    path = path or "the file"
    if selection is not None:
        return _selected(outlined, selection, max_lines, path)
    mentions = find_mentions(instruction)
    if symbol and (named := outlined.named(symbol)):
        if len(named) > 1:
            raise _several(named)
        target = _with_absent(_whole(named[0], "named with @"), lines, mentions)
        return _fitting(target, outlined, max_lines, path)
    found = _mentioned(path, outlined, mentions)
    if cursor is None and not found:
        _check_places(lines, outlined, mentions, path)
    if mentions.renamed is not None:
        target = _renamed(outlined, mentions.renamed, found, cursor)
        target = target and _with_absent(target, lines, mentions)
    else:
        target = _named(found, cursor)
    if target is None:
        _check_existing(lines, outlined, mentions, path, with_cursor=cursor is not None)
        if cursor is not None:
            target = _at_cursor(outlined, cursor, max_lines)
            if target is not None and (undefined := _not_here(lines, outlined, mentions, target)):
                target = replace(target, undefined=undefined)
    if target is None:
        target = _bound(outlined, mentions)
    if target is None:
        target = _only_thing(lines, outlined)
    if target is None:
        raise _which(outlined, mentions, path, _foreign(lines, mentions))
    return _fitting(target, outlined, max_lines, path)


def named_places(outlined: Outline, mentions: Mentions) -> list[Definition]:
    """The definitions of a file that an instruction names as its places, the likeliest only."""
    found = _mentioned("", outlined, mentions)
    if mentions.renamed is not None:
        found = [f for f in found if f.mention.place and f.mention.name != mentions.renamed]
    return [f.definition for f in _narrowed(found)]


def find_in_files(files: Iterable[tuple[str, str]], *, instruction: str) -> tuple[str, Target]:
    """The one definition among several files that ``instruction`` names.

    Args:
        files: Paths and texts; a text is parsed only if it may define a mentioned name.
        instruction: The instruction.

    Raises:
        TargetUnclearError: No definition is named, or several are.
    """
    mentions = find_mentions(instruction)
    wanted = {m.name.rpartition(".")[2] for m in mentions.all if not m.fresh}
    found: list[_Found] = []
    homes: dict[str, str] = {}
    parsed = 0
    for path, text in files:
        homes = dict.fromkeys(declared_names(path, text), path) | homes
        if parsed < MAX_PARSED and may_define(path, text, wanted):
            parsed += 1
            found += _mentioned(path, outline(text.split("\n"), path), mentions)
    if mentions.renamed is not None and any(f.mention.place for f in found):
        found = [f for f in found if f.mention.place and f.mention.name != mentions.renamed]
    pool = _narrowed(found)
    if len(pool) == 1:
        definition = pool[0].definition
        return pool[0].path, _whole(definition, f"the only `{definition.name}` in this folder")
    if pool:
        choices = tuple(Candidate(f.path, f.definition.name) for f in pool)
        raise _asked("Which one do you mean", ": ", choices)
    # If something is renamed inside a place, the place determines the file.
    sure = sorted(mentions.sure, key=lambda mention: not mention.place)
    missing = sure[0].name if sure else None
    if not missing:  # Neighbours of plain words are accidents of spelling: faster, `footer`.
        raise TargetUnclearError(
            "Which file is this about? Open one, or name a file, function or class in the "
            "instruction."
        )
    near = _nearest([missing], homes)
    hint = f"nearest: {_listed(near)}" if near else "name a function or class, or open its file"
    sentence = f"Nothing here is called `{missing}`; {hint}."
    choices = tuple(Candidate(homes[name], name) for name in near)
    raise TargetUnclearError(sentence, choices, missing)


def search_workspace(workspace: Workspace, instruction: str) -> str:
    """The one file of the workspace that defines what ``instruction`` names (blocking).

    Raises:
        TargetUnclearError: None is named, or several are, or no file is in a known language.
    """
    paths = [path for path in workspace.files() if has_syntax(path)]
    if not paths:
        raise TargetUnclearError(
            f"There is no code in {workspace.root} in a language that is read for names; open "
            "another folder or name a file."
        )
    return find_in_files(_texts(workspace, paths), instruction=instruction)[0]


def texts_with_syntax(workspace: Workspace, *, without: str) -> Iterator[tuple[str, str]]:
    """The files in languages that are read for names, but for one, and their texts (blocking)."""
    files = workspace.files()
    return _texts(workspace, [path for path in files if has_syntax(path) and path != without])


def is_only_there(workspace: Workspace, mentions: Mentions, path: str, here: Outline) -> bool:
    """Whether a file defines something that is mentioned and another does not (blocking)."""
    return any(
        not here.named(found.mention.name)
        for _, text in _texts(workspace, [path])
        for found in _mentioned(path, outline(text.split("\n"), path), mentions)
    )


def check_changed(mentions: Mentions, lines: Sequence[str], path: str) -> None:
    """Refuse an instruction about what something does if the file has nothing of that name.

    Elsewhere a name that the file does not have may be one that the change adds.

    Args:
        mentions: Of an instruction such as "make load return None" or "fix load_all".
        lines: The file as it is proposed now.
        path: Its name.

    Raises:
        TargetUnclearError: It names a function, say, that is not there.
    """
    words = {word.lower() for line in lines for word in re.findall(r"\w+", line)}
    for mention in mentions.changed:
        last = mention.name.rpartition(".")[2]
        name = last.lower()
        if keyword.iskeyword(last) or hasattr(builtins, last) or any(name in w for w in words):
            continue
        if mention.sureness is Sureness.WORD and (
            name in _NO_NAMES
            or _ENGLISH.search(name)
            or any(len(word) >= _STEM and name.startswith(word) for word in words)
        ):
            continue
        raise _absent(mention, outline(lines, path), path)


def not_renamed(
    workspace: Workspace, name: str, path: str, lines: Sequence[str], place: str
) -> TargetUnclearError:
    """Why a name cannot be renamed in a place: it stands elsewhere, or nowhere (blocking).

    Args:
        workspace: The folder.
        name: The name that is to have another.
        path: The file of the place.
        lines: That file.
        place: What to call the place, which does not have the name.
    """
    last = name.rpartition(".")[2]
    word = re.compile(rf"\b{re.escape(last)}\b")
    if here := [number for number, line in enumerate(lines, 1) if word.search(line)]:
        numbers = ", ".join(map(str, here[:3])) + (" and further ones" if here[3:] else "")
        sentence = (
            f"`{name}` is not in {place} but in line{'s' * (len(here) > 1)} {numbers} of {path}; "
            "mark the lines that you mean, or name their function."
        )
        return TargetUnclearError(sentence, missing=name)
    others: list[str] = []
    known: set[str] = set()
    for other, text in _texts(workspace, [p for p in workspace.files() if has_syntax(p)]):
        if word.search(text):
            others.append(other)
        known |= declared_names(other, text)
    if others:
        listed = " and ".join(others[:2]) + (" and further files" if others[2:] else "")
        sentence = f"`{name}` is not in {path} but in {listed}; open the one you mean."
        return TargetUnclearError(sentence, missing=name)
    # A name of the file itself is likelier than one that another file defines.
    near = _nearest([last], identifiers(lines)) or _nearest([last], known)
    hint = f"; nearest: {_listed(near)}" if near else "; use a name that the code has"
    return TargetUnclearError(f"Nothing here is called `{name}`{hint}.", missing=name)


def _texts(workspace: Workspace, paths: list[str]) -> Iterator[tuple[str, str]]:
    for path in paths:
        try:
            data = workspace.read(path)
        except UserError:
            continue  # Unreadable files cannot be edited either.
        if len(data) <= MAX_FILE_BYTES:
            yield path, data.decode("utf-8", "replace").replace("\r\n", "\n")


def _mentioned(path: str, outlined: Outline, mentions: Mentions) -> list[_Found]:
    found: list[_Found] = []
    for mention in mentions.all:
        if mention.fresh:
            continue
        for definition in outlined.named(mention.name):
            # "the name of the file" must not find an attribute called `name`.
            if definition.kind != "assignment" or mention.sureness > Sureness.WORD:
                found.append(_Found(path, definition, mention))
    return found


def _narrowed(found: Sequence[_Found]) -> list[_Found]:
    """The mentions that are left when places and the surest words are preferred."""
    pool = list(found)
    places = [f for f in pool if f.mention.place]
    subjects = [f for f in pool if f.mention.subject]
    if places and subjects and all(f.mention.sureness is Sureness.WORD for f in places):
        # "Cart.next goes past the end of items" is not about what is called `items`.
        places = subjects
    if places:
        pool = [f for f in pool if f in places or any(_houses(place, f) for place in places)]
    if any(f.mention.sureness > Sureness.WORD for f in pool):
        pool = [f for f in pool if f.mention.sureness > Sureness.WORD or f in places]
    # "add in Cart" means Cart's, where several classes have an `add`.
    housed = {f.mention for f in pool if any(_houses(other, f) for other in pool)}
    pool = [f for f in pool if f.mention not in housed or any(_houses(other, f) for other in pool)]
    inner = [f for f in pool if not any(_houses(f, other) for other in pool)]
    unique = {(f.path, f.definition.start, f.definition.name): f for f in inner}
    return list(unique.values())


def _houses(outer: _Found, inner: _Found) -> bool:
    return outer.path == inner.path and outer.definition.encloses(inner.definition)


def _named(found: Sequence[_Found], cursor: int | None) -> Target | None:
    pool = _narrowed(found)
    if not pool:
        return None
    if len(pool) > 1 and cursor is not None:
        pool = [f for f in pool if f.definition.contains(cursor)] or pool
    if len(pool) == 1:
        return _whole(pool[0].definition, "named in the instruction")
    raise _several([f.definition for f in pool])


def _renamed(
    outlined: Outline, old: str, found: Sequence[_Found], cursor: int | None
) -> Target | None:
    """Where a rename happens: the named place, what binds the name, or its definition."""
    places = [f for f in _narrowed([f for f in found if f.mention.place]) if f.mention.name != old]
    binding = outlined.binding(old)
    places = [f for f in places if f.definition in binding] or places
    if len(places) == 1:
        return _whole(places[0].definition, "named in the instruction")
    if places:
        raise _several([f.definition for f in places])
    named = [d for d in outlined.named(old) if d.kind != "assignment" and d not in binding]
    candidates = [*binding, *named]
    if cursor is not None:
        candidates = [d for d in candidates if d.contains(cursor)][-1:] or candidates
    # Next to a function of that name a constant is the less likely one.
    candidates = candidates or outlined.named(old)
    if len(candidates) == 1:
        return _whole(candidates[0], f"it defines `{old}`")
    if candidates:
        raise _several(candidates, f"`{old}` is a name in several places")
    return None


def _bound(outlined: Outline, mentions: Mentions) -> Target | None:
    """The one function that has a mentioned name as a parameter or local variable."""
    for mention in mentions.sure:
        having = outlined.binding(mention.name)
        if len(having) == 1:
            return _whole(having[0], f"it has `{mention.name}`")
        if having:
            raise _several(having, f"`{mention.name}` is a name in several places")
    return None


def _check_existing(
    lines: Sequence[str], outlined: Outline, mentions: Mentions, path: str, *, with_cursor: bool
) -> None:
    """Refuse an instruction about a name that is nowhere in the file, or in the class it is named
    with.

    With a cursor there is a place already, and an unknown name may be one that the change adds;
    then only a name that stands for the place must exist.
    """
    renamed = [
        m
        for m in mentions.all
        if m.name == mentions.renamed and m.sureness is Sureness.WORD and m.name not in _NO_NAMES
    ]
    for mention in [*mentions.sure, *renamed]:
        if with_cursor and not mention.place:
            continue
        head, _, last = mention.name.rpartition(".")
        if keyword.iskeyword(last) or hasattr(builtins, last):
            continue
        word = re.compile(rf"\b{re.escape(last)}\b")
        owners = [d for d in outlined.named(head) if d.kind == "class"] if head else []
        among = [line for d in owners for line in lines[d.start : d.stop]] if owners else lines
        if any(word.search(line) for line in among):
            continue
        raise _absent(mention, outlined, path)


def _absent(mention: Mention, outlined: Outline, path: str) -> TargetUnclearError:
    near = _nearest([mention.name], {d.name for d in outlined.definitions})
    hint = f"nearest: {_listed(near)}" if near else "name a function, or mark lines"
    sentence = f"There is no `{mention.name}` in {path}; {hint}."
    return TargetUnclearError(sentence, _here(near), mention.name)


_NO_NAMES = frozenset({
    "it", "itself", "them", "this", "that", "these", "those", "here", "there", "everything",
    "all", "code", "file", "function", "module", "method", "class", "def", "functions",
    "methods", "classes", "body", "signature", "docstring", "parameters", "arguments", "loop",
    "loops", "place", "places", "end", "start", "top", "bottom", "beginning", "front", "back",
    "order", "parallel", "general", "case", "cases", "python", "type", "types", "string",
    "strings", "parameter", "argument", "variable", "attribute", "constant", "field", "name",
})  # fmt: skip
"""Words for places and things that are not names."""
_ENGLISH: Final = re.compile(r"(?:s|ing|ed|ly)$")
"""Ends many a plain word (``make errors raise``) and few names that are one word."""
_STEM: Final = 4
"""Letters that a plain word has in common with a name that it may be about: parser, ``parse``."""


def _check_places(lines: Sequence[str], outlined: Outline, mentions: Mentions, path: str) -> None:
    """Raise TargetUnclearError if a named place is nowhere in the file, not even as a word."""
    words = {word.lower() for line in lines for word in re.findall(r"\w+", line)}
    for mention in mentions.all:
        name = mention.name.lower()
        if not mention.place or mention.sureness > Sureness.WORD:
            continue
        if name not in words and name not in _NO_NAMES:
            absent = _absent(mention, outlined, path)
            if mention.modifies and not absent.candidates:
                continue  # "in upper case": an English word.
            raise absent


def _at_cursor(outlined: Outline, cursor: int, max_lines: int | None) -> Target | None:
    around = [d for d in outlined.definitions if d.contains(cursor)]
    functions = [d for d in around if d.kind == "function"]
    if functions:
        return _whole(functions[-1], "at the cursor")
    if around:
        fitting = [d for d in around if max_lines is None or d.length <= max_lines]
        return _whole((fitting or around)[-1], "at the cursor")
    for start, stop in outlined.statements:
        if start <= cursor < stop:
            return Target(start, stop, "", "the statement at the cursor")
    return None


def _not_here(lines: Sequence[str], outlined: Outline, mentions: Mentions, target: Target) -> str:
    """A name that another file may define, and that the place at the cursor was not meant for."""
    places = (
        m.name for m in mentions.sure if (m.place or m.changed) and not outlined.named(m.name)
    )
    if undefined := next(places, "") or _foreign(lines, mentions):
        return undefined
    old = mentions.renamed
    if old is None or old.lower() in _NO_NAMES or outlined.named(old):
        return ""
    if absent := _with_absent(target, lines, mentions).undefined:
        return absent
    # A name that is only used there is renamed at its definition; an attribute, where it is set.
    last = re.escape(old.rpartition(".")[2])
    is_set = re.compile(rf"\.{last}\s*(?::[^=]+)?=(?!=)")
    return "" if outlined.binding(old) or any(map(is_set.search, lines)) else old


def _foreign(lines: Sequence[str], mentions: Mentions) -> str:
    """A plain word for the place ("average: ...", "fix average") that is nowhere in the file."""
    placed = [m for m in mentions.all if m.place or m.subject or m.changed]
    begun = [m for m in mentions.all if m.about and m not in placed]
    words: set[str] | None = None
    for mention in (*placed, *begun):  # "fix the crash in average" is not about a `crash`.
        name = mention.name
        english = mention.modifies and not mention.changed
        if mention.sureness > Sureness.WORD or mention.fresh or english:
            continue
        if name.lower() in _NO_NAMES or keyword.iskeyword(name) or hasattr(builtins, name):
            continue
        if words is None:
            words = {word.lower() for line in lines for word in re.findall(r"\w+", line)}
        if name.lower() not in words:
            return name
    return ""


def _with_absent(target: Target, lines: Sequence[str], mentions: Mentions) -> Target:
    """The target, noting the name to be replaced if its lines do not contain that name."""
    old = mentions.renamed
    if old is None or old.lower() in _NO_NAMES:
        return target
    word = re.compile(rf"\b{re.escape(old.rpartition('.')[2])}\b")
    if any(map(word.search, lines[target.start : target.stop])):
        return target
    return replace(target, undefined=old)


def _only_thing(lines: Sequence[str], outlined: Outline) -> Target | None:
    definitions = [d for d in outlined.definitions if d.kind != "assignment"]
    top = [d for d in definitions if not any(o.encloses(d) for o in definitions)]
    if len(top) == 1:
        return _whole(top[0], f"the only {top[0].kind} in the file")
    if not top:
        return Target(0, len(lines), "", "the whole file")
    return None


def _selected(
    outlined: Outline, selection: tuple[int, int], max_lines: int | None, path: str
) -> Target:
    start, stop = selection
    lines = outlined.lines
    if start < 0 or stop < start or start > len(lines):
        raise TargetUnclearError(
            f"Lines {start + 1}-{stop} are not in {path}, which has {len(lines)}."
        )
    stop = min(stop, len(lines))
    whole = [d for d in outlined.definitions if (d.start, d.stop) == (start, stop)]
    target = Target(start, stop, whole[0].name if whole else "", "the marked lines")
    return _fitting(target, outlined, max_lines, path)


def _fitting(target: Target, outlined: Outline, max_lines: int | None, path: str) -> Target:
    length = target.stop - target.start
    if max_lines is None or length <= max_lines:
        return target
    inside = [
        d
        for d in outlined.definitions
        if d.kind != "assignment"
        and target.start <= d.start
        and d.stop <= target.stop
        and d.length <= max_lines
    ]
    names = tuple(dict.fromkeys(d.name for d in inside))
    what = f"`{target.symbol}`" if target.symbol else f"This part of {path}"
    hint = f"name a smaller part ({_listed(names)}) or mark lines" if names else "mark fewer"
    raise TargetUnclearError(
        f"{what} has {length} lines and the model takes {max_lines} at a time; {hint}.",
        _here(names),
    )


def _several(definitions: Sequence[Definition], what: str = "") -> TargetUnclearError:
    candidates = _here(d.name for d in definitions)
    if len(candidates) == 1:  # One name, several definitions.
        candidates = tuple(
            Candidate("", d.name, (d.start, d.stop), number) for number, d in enumerate(definitions)
        )
    opening = f"{what}: which one" if what else "One place at a time: which one"
    return _asked(f"{opening} do you mean", ", ", candidates)


def _asked(opening: str, joint: str, candidates: tuple[Candidate, ...]) -> TargetUnclearError:
    """The question which of some candidates is meant."""
    over = len(candidates) - MAX_CHOICES
    more = f" ({over} more: say its name.)" if over > 0 else ""
    sentence = f"{opening}{joint}{_listed([each.label for each in candidates])}?"
    return TargetUnclearError(sentence, candidates, question=f"{opening}?{more}")


def _here(names: Iterable[str]) -> tuple[Candidate, ...]:
    return tuple(Candidate("", name) for name in dict.fromkeys(names))


def _which(outlined: Outline, mentions: Mentions, path: str, missing: str) -> TargetUnclearError:
    definitions = [d for d in outlined.definitions if d.kind != "assignment"]
    near = _nearest([m.name for m in mentions.all], {d.name for d in definitions})
    names = tuple(dict.fromkeys([*near, *(d.name for d in definitions)]))
    opening = f"Which part of {path} is this about"
    sentence = f"{opening}: {_listed(names)}? Name it, or mark lines."
    question = f"{opening}? Name it, or mark lines."
    return TargetUnclearError(sentence, _here(names), missing, question)


def _nearest(wanted: Sequence[str], names: Iterable[str]) -> tuple[str, ...]:
    by_last: dict[str, str] = {}
    for name in sorted(names):
        by_last.setdefault(name.rpartition(".")[2], name)
    near: dict[str, None] = {}
    for word in wanted:
        last = word.rpartition(".")[2]
        found = process.extract(last, list(by_last), scorer=fuzz.ratio, limit=3, score_cutoff=_NEAR)
        for match, _, _ in found:
            near.setdefault(by_last[match])
    return tuple(near)[:3]


def _listed(names: Sequence[str], limit: int = 6) -> str:
    shown = [f"`{name}`" for name in names[:limit]]
    if len(names) > limit:
        return ", ".join(shown) + f" or {len(names) - limit} more"
    return " or ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _whole(definition: Definition, why: str) -> Target:
    return Target(definition.start, definition.stop, definition.name, why)
