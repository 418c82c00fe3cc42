"""Instructions that add a method to a class: the model writes only the method.

Writing a long class again for one more method takes a small model minutes.  It is shown such a
class without the bodies that there is no time to read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from midstream.code.languages import grammar_of
from midstream.code.outline import Definition, Outline
from midstream.edits.indent import indent_of

if TYPE_CHECKING:
    from midstream.edits.parsing import ReplyParser
    from midstream.pairing.request.target import Target

MIN_LINES: Final = 30
"""Shorter classes are written again as a whole."""
_MIN_BODY: Final = 2
"""Lines of a body; a shorter one is shown as it is."""
_MAX_CONSTRUCTOR: Final = 12
"""Lines of a constructor that is shown in full, because it tells what an object has."""
_CONSTRUCTOR: Final = re.compile(r"\s*(?:def __init__\b|constructor\s*\()")
OPENING: Final = r"^\W*(?:(?:please|now|can you|could you|let'?s)\s+)*"
"""The beginning of an instruction, before its verb."""
PARTS: Final = (
    r"parameter|argument|call|name|doc\w*|decorator|annotation|comment|signature|body|type|return"
)
"""Words for what belongs to a function: "a method call" is no method."""
_MEMBER: Final = (
    r"(?:method|property|getter|setter|class\s?method|static\s?method|member function)\b"
    rf"(?!\s+(?:{PARTS}))"
)
_KIND: Final = (
    r"(?:new|small|simple|short|public|private|protected|static|class|async|abstract|helper|boolean"
    r"|convenience|second|read-?only|cached|instance|`[^`]+`|\w+\([^)]*\)|__\w+__)"
)
_ADDS: Final = re.compile(
    rf"{OPENING}"
    r"(?:add|write|create|implement|define|give\s+(?:it|this class|the class|`?[\w.]+`?))\s+"
    rf"(?:me\s+)?(?:(?:a|an|another|one|the)\s+)?(?:(?:{_KIND}\s+){{0,3}}{_MEMBER}|`?__\w+__\b)",
    re.IGNORECASE,
)
_VERB: Final = re.compile(r"\b(?:add|write|create|implement|define|give)\b", re.IGNORECASE)
FURTHER: Final = re.compile(
    r"(?:\band\b|\bthen\b|\bbut\b|[,;.])\s+(?:also\s+|then\s+)?(?:use|call|make|change|remove|delete"
    r"|replace|update|rename|move|let|have|turn|convert|drop|set|add|document|test|fix)\b",
    re.IGNORECASE,
)
_IMPL: Final = re.compile(r"\s*(?:unsafe\s+)?impl\b(?!.*\bfor\b)")
_COUNT: Final = r"(?:(?:a|an|some|one|two|new|unit|matching)\s+)"
_TEST: Final = r"tests?\b(?:\s+cases?)?(?:\s*[.!]*$|\s+(?:for|of|in|to|that|which)\b.*)"
_IT: Final = r"(?:it|this|that|them|these|the\s+(?:new\s+)?(?:method|function|class))\b"
_AND_TESTS: Final = re.compile(
    r"[,;]?\s+(?:and|plus|along\s+with|together\s+with)\s+(?:also\s+)?"
    rf"(?:(?:add|write|create)\s+(?P<wanted>{_COUNT}*{_TEST})"
    # A bare word may be a verb: "that parses a line and tests for None".
    rf"|(?P<tests>{_COUNT}+{_TEST}|tests(?=\s*[.!]*$|\s+for\s+{_IT}|\s+in\s).*))",
    re.IGNORECASE | re.DOTALL,
)
_FOR_IT: Final = re.compile(rf"\b(?:for|of)\s+{_IT}", re.IGNORECASE)
_TESTS: Final = re.compile(r"\btests?\b(?:\s+cases?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Addition:
    """Where a class gets one more method.

    Attributes:
        line: The line of the class that it comes before, from the start of the class.
        margin: White space in front of the members of the class.
        first: The line of the class that names its first method.
        outlined: The class with three dots for bodies of functions.
        declared: What declares the type, where its methods stand elsewhere (Rust).
        around: Lines of the file outside of the class, without white space around them.
    """

    line: int
    margin: str
    first: int
    outlined: str
    declared: str = ""
    around: frozenset[str] = field(default=frozenset(), repr=False)

    def parser(self, old: Sequence[str], path: str) -> ReplyParser:
        """Reads an answer as the rewrite of the class ``old``."""
        from midstream.edits.additions import AdditionParser

        return AdditionParser(
            old,
            self.line,
            self.margin,
            first=self.first,
            path=path,
            around=self.around,
            apart=bool(self.declared),
        )


def without_tests(instruction: str) -> tuple[str, str]:
    """An instruction without the tests that it asks for as well, and these: "a test for it".

    They go elsewhere than what they are for.
    """
    found = _AND_TESTS.search(instruction)
    if found is None or re.search(r"\btests?\b", instruction[: found.start()]):
        return instruction, ""
    return instruction[: found.start()], (found["wanted"] or found["tests"]).rstrip(" .!")


def ask_for_tests(tests: str, name: str) -> str:
    """The instruction for tests that were left out: "a test for it" as "write a test for NAME"."""
    said, known = _FOR_IT.subn(f"for {name}", tests, count=1)
    if not known and not re.search(r"\b(?:for|of)\b", tests, re.IGNORECASE):
        said = _TESTS.sub(rf"\g<0> for {name}", tests, count=1)
    return f"write {said}"


def find_addition(
    instruction: str, outlined: Outline, target: Target, path: str
) -> tuple[Target, Addition] | None:
    """The class that gets a method, and where; ``None`` if the instruction asks for more or else.

    Args:
        instruction: The instruction.
        outlined: The definitions of the file.
        target: What was found for it: a class, or a method at the cursor, behind which the new one
            comes.
        path: The file's name.
    """
    found = adds_method(instruction)
    if found is None:
        return None
    around = [d for d in outlined.definitions if d.start <= target.start and target.stop <= d.stop]
    homes = [d for d in around if d.kind == "class"]
    declared = ""
    if (block := _block_of(outlined, target)) is not None:
        home, members = block
        types = [d for d in outlined.definitions if d.kind == "class" and d.name == home.name]
        declared = "".join(f"{line}\n" for d in types for line in outlined.lines[d.start : d.stop])
        target = (
            target
            if target.symbol != home.name
            else replace(target, start=home.start, stop=home.stop)
        )
    elif not homes or homes[-1].length < MIN_LINES:
        return None
    else:
        home = homes[-1]
        members = outlined.members(home)
    functions = [d for d in members if d.kind == "function"]
    if not functions:
        return None
    here = [d for d in members if d.start <= target.start and target.stop <= d.stop]
    if not here and (home.start, home.stop) != (target.start, target.stop):
        return None
    if names_one(instruction, found, here, members):
        return None
    margin = min((indent_of(outlined.lines[d.start]) for d in members), key=len)
    last = [d for d in here or members if indent_of(outlined.lines[d.start]) == margin]
    if not last:  # The method at the cursor is in a condition.
        return None
    addition = Addition(
        last[-1].stop - home.start,
        margin,
        _line_of_name(outlined.lines, functions[0]) - home.start,
        without_bodies(outlined.lines, home, members, path),
        declared,
        frozenset(
            line.strip()
            for line in (*outlined.lines[: home.start], *outlined.lines[home.stop :])
            if line.strip()
        ),
    )
    place = replace(target, start=home.start, stop=home.stop, symbol=home.name)
    return place, addition


def _block_of(outlined: Outline, target: Target) -> tuple[Definition, list[Definition]] | None:
    """The ``impl`` block in which Rust has the methods of a type, and these; the last of several.

    It is the one of the method at the cursor, if there is one.
    """
    names = {target.symbol, target.symbol.rpartition(".")[0]}
    types = [d.name for d in outlined.definitions if d.kind == "class" and d.name in names]
    methods = [
        d
        for d in outlined.definitions
        if d.kind == "function" and d.name.rpartition(".")[0] in types[:1]
    ]
    found: dict[tuple[int, int], list[Definition]] = {}
    for method in methods:
        span = _impl_around(outlined.lines, method)
        if span is not None:
            found.setdefault(span, []).append(method)
    here = [s for s in found if s[0] <= target.start and target.stop <= s[1]]
    if not found:
        return None
    span = (here or list(found))[-1]
    return Definition(types[0], "class", *span), found[span]


def _impl_around(lines: Sequence[str], method: Definition) -> tuple[int, int] | None:
    """The lines of the block of a type's own methods around one, ``None`` if it is in no such."""
    depth = len(indent_of(lines[method.start]))
    start = method.start
    while start >= 0 and (not lines[start].strip() or len(indent_of(lines[start])) >= depth):
        start -= 1
    if start < 0 or not _IMPL.match(lines[start]):
        return None
    end = f"{indent_of(lines[start])}}}"
    stop = next((n for n in range(method.stop, len(lines)) if lines[n].rstrip() == end), None)
    return None if stop is None else (start, stop + 1)


def adds_method(instruction: str) -> re.Match[str] | None:
    """The beginning of an instruction that adds a method and does nothing else."""
    found = _ADDS.match(instruction)
    return found if found and not FURTHER.search(instruction, found.end()) else None


def names_one(
    instruction: str,
    found: re.Match[str],
    here: Sequence[Definition],
    members: Sequence[Definition],
) -> bool:
    """Whether what is to be added is there already.

    Args:
        instruction: The instruction.
        found: Its beginning, see ``adds_method``.
        here: The method at the cursor, if that tells the place.
        members: All methods of the class.
    """
    told = instruction if here else _with_next_word(instruction, found)
    said = set(re.findall(r"\w+", _VERB.sub("", told, count=1)))
    # Ruby's `name=` is a method of its own; an instruction leaves the sign out.
    return any(d.own_name.removesuffix("=") in said for d in here or members)


def _with_next_word(instruction: str, found: re.Match[str]) -> str:
    """What an instruction says up to the name of what it adds, which may follow at once."""
    following = re.match(r"(?:\W|\b(?:called|named)\b)*\w+", instruction[found.end() :])
    return found[0] + (following[0] if following else "")


def _line_of_name(lines: Sequence[str], function: Definition) -> int:
    """The line that names a function, below its comments and decorators."""
    word = re.compile(rf"(?<!\w){re.escape(function.own_name)}(?!\w)")
    for number in range(function.start, function.stop):
        if word.search(lines[number]) and not re.match(r"\s*(?:[#@*]|//|/\*)", lines[number]):
            return number
    return function.start


def without_bodies(
    lines: Sequence[str], home: Definition, members: Sequence[Definition], path: str
) -> str:
    """A class with three dots for the bodies of its functions."""
    shown: list[str] = []
    at = home.start
    for member in members:
        shown += lines[at : member.start]
        at = member.stop
        shown += without_body(lines[member.start : member.stop], path)
    shown += lines[at : home.stop]
    return "".join(f"{line}\n" for line in shown)


def without_body(function: Sequence[str], path: str) -> Sequence[str]:
    """A function with three dots for its body, if that is long enough."""
    python = grammar_of(path) is None
    head = _head(function, python=python)
    tail = 0 if python else 1
    body = function[head : len(function) - tail]
    tells = len(function) <= _MAX_CONSTRUCTOR and any(map(_CONSTRUCTOR.match, function[:head]))
    if head == 0 or len(body) < _MIN_BODY or tells:
        return function
    # Dots in a comment are what a model of 0.5B parameters writes for the body of the new method.
    return [*function[:head], f"{indent_of(body[0])}...", *function[len(function) - tail :]]


def _head(function: Sequence[str], *, python: bool) -> int:
    """How many lines come before the body; 0 if that is not clear."""
    depth = 0
    for number, line in enumerate(function, 1):
        depth += sum(map(line.count, "([")) - sum(map(line.count, ")]"))
        ends = line.rstrip().split("#")[0].rstrip().endswith(":") if python else "{" in line
        if ends and depth <= 0:
            return number
    return 0
