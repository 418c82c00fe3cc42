"""Mentions in an instruction: names in code, and files and more with ``@``.

People write "rename total to amount in summarise" and "add a docstring to ``Parser.feed``".
``find_mentions`` finds the words that may be names of code and how surely each is one; whether
a name exists is looked up elsewhere.  ``find_at_paths`` finds ``@app.py``,
``@src/util.py:10-40``, ``@"my file"`` and the folder ``@src/``; ``find_at_words`` finds
``@diff`` and ``@error``.  Another word with an ``@`` that is not a file and does not look like one
(``@property``) is left alone.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from itertools import filterfalse
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from midstream.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from midstream.workspace.files import Workspace


class Sureness(IntEnum):
    """How likely a word is a name of code."""

    WORD = 0
    """A plain word; a name only if the file defines it."""
    SHAPED = 1
    """Shaped like an identifier: ``load_all``, ``HttpClient``, ``x2``, ``os.path``."""
    MARKED = 2
    """Written as code: in backticks or quotes, or with ``()`` behind it."""


class Mention(Struct, frozen=True):
    """A possible name in an instruction.

    Attributes:
        name: Dotted name.
        sureness: How likely it is a name.
        place: It says where the change goes (``in x``, ``function x``).
        fresh: The instruction introduces it (``rename a to fresh``, ``a parameter fresh``), so it
            need not exist.
        subject: It is the first word (``Cart.add forgets the price``), and so more likely the
            place than a plain word after it.
        modifies: Another plain word follows, so it is more likely English (``in upper case``).
        changed: What it does is to change (``make x return 3``, ``fix load_all``), so it exists.
        about: It is where the instruction begins, in front of a colon or behind a verb
            (``load: log it``, ``fix load for None``), and may still be a plain word (``fix bugs``).
    """

    name: str
    sureness: Sureness
    place: bool = False
    fresh: bool = False
    subject: bool = False
    modifies: bool = False
    changed: bool = False
    about: bool = False


_NAME = r"[^\W\d]\w*(?:(?:\.|::|#)[^\W\d]\w*)*"
"""A name with the joints of all languages: ``Cart.add``, ``Cart::add``, ``Cart#add``."""
NAMED = re.compile(
    rf"`(?P<ticks>{_NAME})(?:\(\))?`|(?P<call>{_NAME})\(\)"
    rf"|(?<!\w)(?P<quote>[\"'])(?P<quoted>{_NAME})(?P=quote)|(?P<bare>{_NAME})"
)
"""A word that may be a name, with the marks around it; see ``name_of``."""
_SHAPED = re.compile(r"_|\d|\w\.\w|[a-z][A-Z]|^[A-Z][a-z]+[A-Z]|^__")
_PLACE = frozenset({"in", "inside", "within", "of", "function", "method", "class", "def"})
_GIVING = frozenset({"add", "append", "apply", "attach", "give", "put", "write"})
_TAKING = frozenset({"cut", "delete", "drop", "eliminate", "remove", "strip", "take"})
_HEADS = re.compile(r"\s*:\s")
"""Follows a place in front of the request: ``load_all: rename x to y``."""
_ACTS = re.compile(
    r"(?:\(\))?\s+(?:should|must|can|cannot|can't|does|doesn't|is|isn't|has|never|always|crashes|fails"
    r"|breaks|returns|raises|throws|ignores|forgets|loses|misses|hangs|leaks|gives|needs|goes|takes)\b"
)
"""Follows a subject: ``ratio crashes when b is zero``; the first word is a verb otherwise."""
_MODIFIES = re.compile(
    r"\s+(?!(?:and|or|so|to|with|that|which|if|when|where|while|for|from|by|as|of|in|on|at|into|using"
    r"|instead|only|too|also|is|are|does|should|must|can|function|method|class)\b)[a-z]+\b"
)
_MAKES = frozenset({"make", "let", "have"})
_DOES = re.compile(
    r"(?:\(\))?\s+(?:(?:also|always|never|only)\s+)?(?:accept|raise|return|take|throw|yield)\b"
)
"""Follows what is made to do it: ``make load return None``."""
_FAILS = re.compile(
    r"(?:\(\))?\s+(?:crashes|fails|breaks|returns|raises|throws|ignores|forgets|loses|misses|hangs"
    r"|leaks)\b"
)
"""Follows a subject that does wrong so far: ``load_all crashes when ...``."""
_MENDS = frozenset({
    "document", "fix", "inline", "optimise", "optimize", "refactor", "repair", "shorten",
    "simplify",
})  # fmt: skip
"""Verbs of an instruction whose object exists."""
_CASED = re.compile(r"[a-z][a-z0-9]*_\w*[a-z0-9]|[a-z][a-z]+\w*[a-z0-9][A-Z]\w*")
"""A name in ``snake_case`` or ``camelCase``; ``GitHub`` and ``utf8`` may be plain words."""
_NEVER = frozenset({"and", "or", "to", "the", "a", "an", "in", "of"})
_LINKS = frozenset({"the", "a", "an", "this", "my", "our", "its"})
_NEW = re.compile(
    r"\b(?:parameters?|arguments?|args?|keyword|kwarg|attribute|field|option|flag|called|named|into|as"
    r"|variable|constant|alias|decorator"
    r"|with|using|uses?|calls?|raises?|returns?|except|catch|import|from|extract|"
    r"new\s+\w+)\s*(?:named\s+|called\s+|a\s+|an\s+|the\s+)?[`\"']?$",
    re.IGNORECASE,
)
_MADE = re.compile(
    r"\b(?:introduce|create|define|declare|extract|(?:change|convert|switch|turn|set)\s.*\sto)\s+"
    r"(?:a\s+|an\s+|the\s+)?(?:new\s+)?(?:\w+\s+)?[`\"']$",
    re.IGNORECASE,
)
"""Comes before a marked name that a change brings in: ``introduce ``limit`` ``."""
_RENAME = re.compile(
    rf"\brename\s+(?:(?:the|its|this)\s+)?(?:\w+\s+)?[`\"']?(?P<old>{_NAME})(?:\(\))?[`\"']?"
    rf"\s+(?:to|as|into|->|=>)\s+[`\"']?(?P<new>{_NAME})",
    re.IGNORECASE,
)


_WHEN = frozenset({"once", "twice", "again", "first", "last", "later", "here", "there", "only"})
"""Adverbs after "call it", which are not names: ``call it once``."""
_CALL = re.compile(
    rf"\b(?:call|name)\s+(?:it|them|this|that|(?:the|its)\s+\w+)\s+[`\"']?(?P<new>{_NAME})"
    r"[`\"']?(?=\s*(?:$|[.,;]|instead\b|everywhere\b))(?<!ly)",
    re.IGNORECASE,
)


class Mentions(Struct, frozen=True):
    """The names in an instruction.

    Attributes:
        all: In order, each name once.
        renamed: The old name, if the instruction is a rename.
    """

    all: tuple[Mention, ...]
    renamed: str | None

    @property
    def changed(self) -> list[Mention]:
        """What is to be changed, and so exists."""
        return [m for m in self.all if m.changed]

    @property
    def sure(self) -> list[Mention]:
        """Mentions that are names and must exist already."""
        return [m for m in self.all if m.sureness > Sureness.WORD and not m.fresh]


def find_mentions(instruction: str) -> Mentions:
    """The possible names in ``instruction``."""
    rename = _RENAME.search(instruction)
    called = {_dotted(match["new"]) for match in _CALL.finditer(instruction)}
    found: dict[str, Mention] = {}
    words: list[str] = []
    for match in NAMED.finditer(instruction):
        marked = match["ticks"] or match["call"] or match["quoted"]
        name = name_of(match)
        before = [word for word in words if word not in _LINKS]
        previous = words[-1] if words else ""
        words.append(name.lower())
        first_word = not before and not marked and not _ACTS.match(instruction, match.end())
        if marked:
            sureness = Sureness.MARKED
        elif instruction[: match.start()].endswith("@"):
            sureness = Sureness.WORD  # A decorator; it need not be in the file.
        elif _SHAPED.search(name):
            sureness = Sureness.SHAPED
        else:
            sureness = Sureness.WORD
        heads = not before and _HEADS.match(instruction, match.end()) is not None
        if sureness is Sureness.WORD and not heads and (first_word or name.lower() in _NEVER):
            continue  # The first word is the verb: "add", "sort", "rename".
        source = before[-1:] == ["from"] and not _TAKING.isdisjoint(before)
        begins = instruction[: match.start(match.lastgroup or 0)]
        fresh = not source and bool(_NEW.search(begins) or (marked and _MADE.search(begins)))
        if rename is not None and match.start() <= rename.start("new") < match.end():
            fresh = True
        fresh = fresh or name in called
        if before[-1:] == ["and"] and found:  # "to load and save" names two places
            place = not fresh and list(found.values())[-1].place
        else:
            place = not fresh and (
                source or _is_place(before) or (heads and sureness > Sureness.WORD)
            )
        subject = not before and not fresh and not heads
        modifies = not marked and bool(_MODIFIES.match(instruction, match.end()))
        behind = instruction[match.end() :]
        mended = not fresh and len(before) == 1 and before[0] in _MENDS
        if previous in _MAKES:
            changed = not fresh and bool(_DOES.match(behind))
        else:
            changed = (mended or (subject and bool(_FAILS.match(behind)))) and (
                bool(match["ticks"] or match["call"] or _CASED.fullmatch(name))
            )
        about = heads or mended
        mention = Mention(name, sureness, place, fresh, subject, modifies, changed, about)
        known = found.get(name)
        if known is None or (mention.sureness, mention.place) > (known.sureness, known.place):
            found[name] = mention
    return Mentions(tuple(found.values()), _dotted(rename["old"]) if rename else None)


def name_of(match: re.Match[str]) -> str:
    """The dotted name that ``NAMED`` has found."""
    return _dotted(match[match.lastgroup or 0])


def _dotted(name: str) -> str:
    return re.sub("::|#", ".", name)


def new_names(instruction: str) -> list[str]:
    """The names that a change must introduce: ``rename a to b``, ``call it b``."""
    found = [
        _dotted(m["new"]) for pattern in (_RENAME, _CALL) for m in pattern.finditer(instruction)
    ]
    return [name for name in dict.fromkeys(found) if name.lower() not in _WHEN]


def missing_names(instruction: str, lines: Iterable[str]) -> list[str]:
    """The names that an instruction assumes to exist but that do not occur in ``lines``."""
    mentions = find_mentions(instruction)
    names = [mention.name for mention in mentions.sure if not mention.place]
    if mentions.renamed is not None:
        names.insert(0, mentions.renamed)
    there = {word for line in lines for word in re.findall(r"\w+", line)}
    return [name for name in dict.fromkeys(names) if name.rpartition(".")[2] not in there]


def _is_place(before: list[str]) -> bool:
    """Whether the word after ``before`` (lower case, without articles) says where."""
    if not before:
        return False
    if before[-1] == "to":  # "add a docstring to load", but not "convert to snake_case"
        return before[0] in _GIVING
    return before[-1] in _PLACE and before[-2:-1] != ["instead"]


# Files

_AT_PATH = re.compile(
    r"(?<![\w@`])@(?:\"(?P<quoted>[^\"\n]+)\"|(?P<bare>[\w.~/\\-]*[\w/]))"
    r"(?::(?:(?P<first>\d+)(?:-(?P<last>\d+))?|(?P<symbol>[^\W\d]\w*(?:\.[^\W\d]\w*)*)))?"
)
_SUFFIXES: Final = (
    "bat c cc cfg cpp cs css csv env go h hpp htm html ini ipynb java js json jsx kt lock lua md"
    " php pl ps1 py pyi pyx rb rs rst sh sql svg swift tcss tex toml ts tsv tsx txt xml yaml yml"
)
_LIKE_A_FILE = re.compile(rf"/|\.(?:{_SUFFIXES.replace(' ', '|')})$", re.IGNORECASE)
"""``@functools.cache`` is a decorator, not a file."""


_FENCED = re.compile(r"^(?P<fence>`{3,})[^\n]*\n.*?(?:^(?P=fence)`*[ \t]*$|\Z)", re.M | re.S)
"""Quoted text, such as the output of a test: what it says is no word of the user's."""

_ASIDE = re.compile(
    r"\b(?:as|like|see|from|than|style\s+of|compare(?:d)?\s+(?:to|with)|using)\s+"
    r"(?:the\s+)?(?:one\s+)?(?:in\s+|of\s+)?$",
    re.IGNORECASE,
)
"""Comes before a file that is only to be looked at."""


class UnknownFileError(UserError):
    """An instruction names a file that does not exist."""

    code = "unknown-file"
    exit_code = 2


class NeedsConsentError(UserError):
    """An instruction names files that may hold secrets; sending them needs the user's consent.

    Args:
        ignored: Files that git ignores, relative to the root.
        sensitive: Other files that credentials are kept in, by their names.

    Attributes:
        paths: All of them.
    """

    code = "needs-consent"

    def __init__(self, ignored: tuple[str, ...], sensitive: tuple[str, ...] = ()) -> None:
        self.paths = (*ignored, *sensitive)
        said: list[str] = []
        if ignored:
            they = "it" if len(ignored) == 1 else "they"
            said.append(f"Git ignores {', '.join(ignored)}, so {they} may contain secrets")
        if sensitive:
            be = "has the name of a file" if len(sensitive) == 1 else "have the names of files"
            said.append(f"{', '.join(sensitive)} {be} with credentials")
        it = "it" if len(self.paths) == 1 else "them"
        super().__init__(", and ".join(said), f"allow sending {it}, or take the @ away")


class AtWord(StrEnum):
    """What can be named with ``@`` beside files and folders."""

    DIFF = "diff"
    """The uncommitted changes of all files."""
    ERROR = "error"
    """What the project's check said when it failed last."""


@dataclass(frozen=True, slots=True)
class AtPath:
    """A file or folder named with ``@``.

    Attributes:
        path: Relative to the root.
        lines: 0-based half-open range of lines, ``None`` for all.
        symbol: Dotted name of a definition in it, ``""`` for the file.
        aside: Whether it is named only for comparison (``as in @notes.md``).
        folder: Whether it is a folder.
    """

    path: str
    lines: tuple[int, int] | None = None
    symbol: str = ""
    aside: bool = field(default=False, compare=False)
    folder: bool = False


FILE_NAME: Final = rf"[\w./-]*\w\.(?:{_SUFFIXES.replace(' ', '|')})"
"""Pattern of a file that is named without ``@``."""
_IN_WORDS = re.compile(
    r"(?P<link>\b(?:in|inside|within|of|from|to|file|module)\s+(?:the\s+)?(?:(?:file|module)\s+)?)"
    rf"(?P<tick>`?)(?P<path>{FILE_NAME})(?P=tick)(?![\w/`(])",
    re.IGNORECASE,
)
"""``in utils.py``, ``of the file src/app.py``: a file that is named without ``@``."""


def with_at_paths(instruction: str, files: Callable[[], Sequence[str]]) -> str:
    """The instruction with an ``@`` before the files that it names in words.

    A word that is no file of the folder, or the name of several, stays as it is.

    Args:
        instruction: The instruction.
        files: The files of the folder; called only if one may be named.
    """
    if not _IN_WORDS.search(instruction):
        return instruction
    paths, in_quotes = files(), _quotes(instruction)

    def named(match: re.Match[str]) -> str:
        if in_quotes(match):
            return match[0]
        name = match["path"]
        found = [path for path in paths if path == name or path.endswith(f"/{name}")]
        path = name if name in found else found[0] if len(found) == 1 else ""
        return f'{match["link"]}@"{path}"' if path else match[0]

    return _IN_WORDS.sub(named, instruction)


def without_mentions(instruction: str) -> str:
    """The instruction without ``@`` files, so that their parts are not read as names of code.

    A definition that is named with its file stays, in backticks.
    """
    return _AT_PATH.sub(_plain, instruction)


_IN_FILE = re.compile(
    r"(?P<gap>[ \t]*)"
    r"(?P<link>(?i:\b(?:in|inside|within|of|from)\s+(?:the\s+)?(?:(?:file|module)\s+)?)?)"
    + _AT_PATH.pattern
)


def without_files(instruction: str) -> str:
    """The instruction for a model that sees one place and is not told the file.

    "in @util.py" is left out, "in @util.py:load" is "in load", and a file that is named for
    comparison loses its ``@``, which would be taken for a decorator.
    """

    def said(match: re.Match[str]) -> str:
        path = _path_of(match)
        if _is_word(match):
            return f"{match['gap']}{match['link']}{path}"
        if not (match["quoted"] or _LIKE_A_FILE.search(path)):
            return match[0]
        if _ASIDE.search(instruction[: match.start("link")] + match["link"]):
            return f"{match['gap']}{match['link']}{path}"
        return f"{match['gap']}{match['link']}{match['symbol']}" if match["symbol"] else ""

    text = _IN_FILE.sub(said, instruction)
    left = text.strip().lstrip(",:; ")
    return left if left and text != instruction else instruction


def named_with_file(instruction: str, path: str) -> str:
    """The definition that a mention of a file names, ``""`` if it names none."""
    for match in _at_paths(instruction):
        if match["symbol"] and _path_of(match) == path:
            return match["symbol"]
    return ""


def _at_paths(instruction: str) -> Iterator[re.Match[str]]:
    """What an instruction names with ``@``, without what it quotes."""
    return filterfalse(_quotes(instruction), _AT_PATH.finditer(instruction))


def _quotes(instruction: str) -> Callable[[re.Match[str]], bool]:
    """Whether a match in an instruction begins in quoted text."""
    spans = [match.span() for match in _FENCED.finditer(instruction)]
    return lambda match: any(start <= match.start() < stop for start, stop in spans)


def find_at_words(instruction: str) -> frozenset[AtWord]:
    """What an instruction names with ``@`` beside files and folders."""
    found = filter(_is_word, _at_paths(instruction))
    return frozenset(AtWord(match["bare"]) for match in found)


def _is_word(match: re.Match[str]) -> bool:
    alone = not (match["first"] or match["symbol"])
    return alone and match["bare"] in AtWord.__members__.values()


def _plain(match: re.Match[str]) -> str:
    if _is_word(match):
        return ""
    if not (match["quoted"] or _LIKE_A_FILE.search(_path_of(match))):
        return match[0]
    return f"`{match['symbol']}`" if match["symbol"] else ""


def find_at_paths(
    instruction: str, workspace: Workspace, allowed: Collection[str] = ()
) -> tuple[AtPath, ...]:
    """The files and folders that an instruction names with ``@``, in order (blocking).

    Args:
        instruction: The instruction.
        workspace: The folder.
        allowed: Files of the next kinds that the user allows to be sent.

    Raises:
        UnknownFileError: A name looks like a file but does not exist.
        NeedsConsentError: A file is ignored by git, or one that credentials are kept in.
        UserError: A name leaves the folder.
    """
    from midstream.guard.secrets import holds_secrets

    found: dict[AtPath, None] = {}
    ignored: list[str] = []
    sensitive: list[str] = []
    for match in _at_paths(instruction):
        name = _path_of(match)
        path = workspace.relative(name) if _LIKE_A_FILE.search(name) or match["quoted"] else name
        folder = _is_folder(match, workspace.root / path)
        if not folder and not (workspace.root / path).is_file():
            if not (match["quoted"] or _LIKE_A_FILE.search(name)):
                continue
            called = [each for each in workspace.files() if each.endswith(f"/{name}")]
            if len(called) != 1:
                raise UnknownFileError(f"There is no file {name}{_nearest_path(name, workspace)}.")
            path = called[0]
        if path not in allowed and workspace.ignores(path):
            ignored.append(path)
            continue
        if path not in allowed and not folder and holds_secrets(path):
            sensitive.append(path)
            continue
        lines = None
        if match["first"]:
            first = max(1, int(match["first"]))
            lines = (first - 1, max(first, int(match["last"] or first)))
        aside = _ASIDE.search(instruction[: match.start()]) is not None
        found[AtPath(path, lines, match["symbol"] or "", aside, folder)] = None
    if ignored or sensitive:
        raise NeedsConsentError(tuple(dict.fromkeys(ignored)), tuple(dict.fromkeys(sensitive)))
    return tuple(found)


def _is_folder(match: re.Match[str], path: Path) -> bool:
    """``@src/`` and ``@"src"`` are folders; ``@cache`` is a decorator whatever lies there."""
    alone = not (match["first"] or match["symbol"])
    return alone and bool(match["quoted"] or "/" in match["bare"]) and path.is_dir()


def _path_of(match: re.Match[str]) -> str:
    return match["quoted"] or match["bare"]


def _nearest_path(name: str, workspace: Workspace) -> str:
    paths = workspace.files()
    by_name = {path.rpartition("/")[2]: path for path in paths}
    last = name.rpartition("/")[2]
    near = [path for path in paths if path.endswith(f"/{last}")]
    near = near or difflib.get_close_matches(name, paths, n=1, cutoff=0.6)
    near = near or [by_name[each] for each in difflib.get_close_matches(last, by_name, n=1)]
    return f"; did you mean @{near[0]}?" if near else "; name one that exists, or drop the @"
