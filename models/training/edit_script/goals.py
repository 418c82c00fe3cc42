"""Requests that name a goal, not an edit: "don't crash on an empty list", "newest first".

    PYTHONPATH=REPO:REPO/app:RECIPE python goals.py --data REPO/models/training/data/train.jsonl --out shards --human edits.toml

Every kind looks for a place in a real function where such a wish makes sense, makes the edit by the
syntax tree (both sides parse) and phrases the wish in one of its wordings. Wordings are varied by
haste: small letters, apologies, missing apostrophes, typing errors. What equals a request of the
hand-written set is left out. Rows with several kinds on one region share it.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import script_format as fmt

Function = ast.FunctionDef | ast.AsyncFunctionDef
Splice = tuple[int, int, int, int, str]
"""Line (from 1), column, end line, end column, text."""


class Place:
    """One function with helpers to edit it."""

    def __init__(self, text: str, function: Function, rng: random.Random) -> None:
        self.text, self.function, self.rng = text, function, rng
        self.lines = text.split("\n")
        self.names = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
        arguments = function.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        self.parameters = [a for a in every if a.arg not in ("self", "cls")]
        self.nodes = list(ast.walk(function))

    def source(self, node: ast.AST) -> str:
        """Return a node's text."""
        return ast.get_source_segment(self.text, node) or ""

    def splice(self, *edits: Splice) -> str:
        """Return the text with some spans replaced."""
        lines = list(self.lines)
        for line, column, end, end_column, new in sorted(edits, reverse=True):
            merged = lines[line - 1][:column] + new + lines[end - 1][end_column:]
            lines[line - 1 : end] = merged.split("\n")
        return "\n".join(lines)

    def over(self, node: ast.AST, new: str) -> Splice:
        """Return a splice that replaces a node."""
        return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, new)  # type: ignore[attr-defined]

    def first(self) -> tuple[int, str]:
        """Return the line number before which the body starts (behind the docstring), and its indent."""
        body = self.function.body
        at = (
            body[1]
            if ast.get_docstring(self.function, clean=False) is not None and len(body) > 1
            else body[0]
        )
        line = at.lineno
        for decorator in getattr(at, "decorator_list", []):
            line = min(line, decorator.lineno)
        return line, " " * body[0].col_offset

    def insert_first(self, code: str) -> str | None:
        """Return the text with code at the start of the body."""
        line, indent = self.first()
        if (
            ast.get_docstring(self.function, clean=False) is not None
            and len(self.function.body) == 1
        ):
            return None
        if self.function.body[0].lineno == self.function.lineno:
            return None
        new = textwrap.indent(code, indent).split("\n")
        return "\n".join([*self.lines[: line - 1], *new, *self.lines[line - 1 :]])

    def before(self, node: ast.stmt, code: str) -> str:
        """Return the text with code in front of a statement."""
        new = textwrap.indent(code, " " * node.col_offset).split("\n")
        return "\n".join([*self.lines[: node.lineno - 1], *new, *self.lines[node.lineno - 1 :]])

    def calls(self, *names: str) -> list[ast.Call]:
        """Return calls of functions whose dotted name ends with one of the names."""
        found: list[ast.Call] = []
        for node in self.nodes:
            if isinstance(node, ast.Call):
                dotted = self.source(node.func)
                if any(dotted == n or dotted.endswith("." + n) for n in names):
                    found.append(node)
        return found

    def add_argument(self, call: ast.Call, text: str) -> Splice | None:
        """Return a splice that adds an argument to a call written on one line's end."""
        end_line, end_column = call.end_lineno or 0, call.end_col_offset or 0
        last = [*call.args, *(k.value for k in call.keywords)]
        if any(isinstance(a, ast.GeneratorExp | ast.Starred) for a in call.args) or any(
            k.arg is None for k in call.keywords
        ):
            return None
        if not last:
            return (end_line, end_column - 1, end_line, end_column - 1, text)
        tail = max(last, key=lambda n: (n.end_lineno or 0, n.end_col_offset or 0))
        return (
            tail.end_lineno or 0,
            tail.end_col_offset or 0,
            tail.end_lineno or 0,
            tail.end_col_offset or 0,
            ", " + text,
        )

    def calls_without(self, keyword: str, *names: str) -> list[ast.Call]:
        """Return the calls of `calls` that do not have an argument of this name."""
        return [c for c in self.calls(*names) if not any(k.arg == keyword for k in c.keywords)]

    def with_argument(self, calls: Iterable[ast.Call], text: str) -> Iterator[str]:
        """Yield the text with an argument added to one of the calls, for each that can take it."""
        for call in calls:
            if splice := self.add_argument(call, text):
                yield self.splice(splice)

    def add_parameter(self, text: str) -> Splice | None:
        """Return a splice that adds a parameter with a default behind the others."""
        a = self.function.args
        if a.vararg or a.kwarg or a.kwonlyargs or not a.args:
            return None
        tail: ast.AST = a.defaults[-1] if a.defaults else (a.args[-1].annotation or a.args[-1])
        if a.defaults and (a.args[-1].end_lineno, a.args[-1].end_col_offset) > (
            a.defaults[-1].end_lineno,
            a.defaults[-1].end_col_offset,
        ):
            tail = a.args[-1]
        line, column = tail.end_lineno, tail.end_col_offset  # type: ignore[attr-defined]
        rest = self.lines[line - 1][column:]
        if not re.match(r"\s*[,)]|$", rest):
            return None
        return (line, column, line, column, ", " + text)


@dataclass(frozen=True, slots=True)
class Wish:
    """An edited text and what its wordings may mention."""

    text: str
    words: dict[str, str]
    extra: tuple[str, ...] = ()


Kind = Callable[[Place], Iterator[Wish]]
KINDS: dict[str, tuple[Kind, list[str]]] = {}


def kind(*wordings: str) -> Callable[[Kind], Kind]:
    """Register a kind of edit with its wordings; `{name}` stands for words of a wish."""

    def register(function: Kind) -> Kind:
        KINDS[function.__name__] = (function, list(wordings))
        return function

    return register


def _plain(name: str) -> str:
    return name.strip("_").replace("_", " ")


_LISTS = re.compile(
    r"([^s]s|list|items|rows|values|data|seq|iterable|queue|stack|points|nodes|array|entries)$"
)


def _returned(place: Place) -> str:
    """Return what a function would sensibly give for nothing."""
    values = [n.value for n in place.nodes if isinstance(n, ast.Return) and n.value is not None]
    for value in values:
        if isinstance(value, ast.List | ast.ListComp):
            return "[]"
        if isinstance(value, ast.Dict | ast.DictComp):
            return "{}"
        if isinstance(value, ast.JoinedStr) or (
            isinstance(value, ast.Constant) and isinstance(value.value, str)
        ):
            return '""'
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            return "False"
        if isinstance(value, ast.BinOp | ast.Constant):
            return "0"
        if isinstance(value, ast.Name):
            for n in place.nodes:
                if (
                    isinstance(n, ast.Assign)
                    and isinstance(n.targets[0], ast.Name)
                    and n.targets[0].id == value.id
                ):
                    found = {
                        ast.List: "[]",
                        ast.Dict: "{}",
                        ast.ListComp: "[]",
                        ast.DictComp: "{}",
                    }.get(type(n.value))
                    if found:
                        return found
    return "None" if values else ""


_GIVEN = {
    "[]": "an empty list",
    "{}": "an empty dict",
    '""': "an empty string",
    "0": "0",
    "None": "None",
    "False": "False",
    "": "nothing",
}


@kind(
    "don't crash on an empty {x}",
    "don't crash when {x} is empty",
    "{x} may be empty",
    "handle empty {x}",
    "cope with an empty {x}",
    "should work for empty {x} too",
    "no crash if there are no {w}",
    "empty {x} must not blow up",
    "return {given} when {x} is empty",
    "give back {given} if there is nothing in {x}",
    "nothing to do when {x} is empty",
    "an empty {x} should give {given}",
    "bail out early if there are no {w}",
    "without any {w} just return {given}",
    "empty input -> {given}",
    "what if {x} is empty? return {given}",
    "it falls over when {x} is empty",
    "make it safe for an empty {x}",
    "survive an empty {x}",
    "{x} can be empty, then the answer is {given}",
    "skip all of it if no {w} were given",
    "quick exit for empty {x}",
    "IndexError when {x} is empty",
    "users call this with an empty {x}",
)
def empty_input(place: Place) -> Iterator[Wish]:
    """A parameter that holds many may be empty."""
    used = {
        n.value.id
        for n in place.nodes
        if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)
    }
    used |= {
        n.iter.id
        for n in place.nodes
        if isinstance(n, ast.For | ast.comprehension) and isinstance(n.iter, ast.Name)
    }
    for call in place.calls("max", "min", "len", "sum"):
        used |= {a.id for a in call.args if isinstance(a, ast.Name)}
    for p in place.parameters:
        if p.arg in used and (_LISTS.search(p.arg) or "ist" in place.source(p)):
            value = _returned(place)
            new = place.insert_first(f"if not {p.arg}:\n    return {value}".rstrip())
            if new:
                yield Wish(new, {"x": p.arg, "w": _plain(p.arg), "given": _GIVEN[value]})


@kind(
    "{x} can be None",
    "don't blow up when {x} is None",
    "handle a missing {w}",
    "be robust against {x} being None",
    "{x} is None sometimes",
    "AttributeError: 'NoneType' when there is no {w}",
    "return {given} if no {w} was given",
    "no {w}? then {given}",
    "tolerate {x}=None",
    "should not fail without a {w}",
    "callers may pass None for {x}",
    "guard against a missing {x}",
    "without {w} return {given}",
    "None for {x} must not crash",
    "if {x} is None there is nothing to do",
    "sometimes we get no {w}, just return {given} then",
    "treat a missing {w} as nothing to do",
    "{x}=None should give {given}",
    "survive None as {x}",
    "make it None-safe for {x}",
)
def missing_input(place: Place) -> Iterator[Wish]:
    """A parameter may be None."""
    used = {
        n.value.id
        for n in place.nodes
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
    }
    for p in place.parameters:
        if p.arg in used:
            value = _returned(place)
            new = place.insert_first(f"if {p.arg} is None:\n    return {value}".rstrip())
            if new:
                yield Wish(new, {"x": p.arg, "w": _plain(p.arg), "given": _GIVEN[value]})


@kind(
    "newest first",
    "descending",
    "in descending order",
    "biggest first",
    "reverse order please",
    "highest on top",
    "largest to smallest",
    "latest at the top",
    "the other way round",
    "order is backwards",
    "sort it descending",
    "from high to low",
    "last one should come first",
    "sorted the wrong way round",
    "most recent first",
    "top entries first",
    "show the newest ones first",
    "want the biggest at the front",
)
def descending(place: Place) -> Iterator[Wish]:
    """Sorting goes the other way."""
    for text in place.with_argument(
        place.calls_without("reverse", "sorted", "sort"), "reverse=True"
    ):
        yield Wish(text, {})


@kind(
    "oldest first",
    "ascending",
    "smallest first",
    "in ascending order",
    "lowest on top",
    "sort it from low to high",
    "the order should be ascending",
    "the natural order, not reversed",
    "not backwards please",
    "first one first",
    "from small to large",
    "normal order again",
)
def ascending(place: Place) -> Iterator[Wish]:
    """Sorting is no longer reversed."""
    for call in place.calls("sorted", "sort"):
        for k in call.keywords:
            if k.arg == "reverse" and isinstance(k.value, ast.Constant) and k.value.value is True:
                text = place.lines[k.lineno - 1]
                if k.lineno == k.end_lineno and text[: k.col_offset].endswith(", "):
                    yield Wish(
                        place.splice(
                            (k.lineno, k.col_offset - 2, k.lineno, k.end_col_offset or 0, "")
                        ),
                        {},
                    )


@kind(
    "sort ignoring case",
    "upper and lower case should sort together",
    "case should not matter for the order",
    "case-insensitive order",
    "alphabetical, whatever the case",
    "Zebra must not come before apple",
    "ignore case when sorting",
    "dictionary order please, not ASCII",
    "capital letters come first now, they should not",
    "mixed case sorts wrong",
)
def sort_ignoring_case(place: Place) -> Iterator[Wish]:
    """Strings are sorted without regard to case."""
    plain = [call for call in place.calls("sorted", "sort") if not call.keywords]
    for text in place.with_argument(plain, "key=str.lower"):
        yield Wish(text, {})


@kind(
    "return None when nothing was found instead of raising",
    "don't raise, return None",
    "just give None back, no exception",
    "no exception please, None is fine",
    "should return None rather than raise {e}",
    "callers expect None, not {e}",
    "a miss is not an error, return None",
    "None instead of a {e}",
    "stop throwing {e}",
    "make it return None in the error case",
    "quietly return None",
    "not worth an exception, None will do",
    "be lenient: None instead of {e}",
    "I'd rather get None than an exception",
    "soft failure: None",
    "not found should simply be None",
)
def raise_to_none(place: Place) -> Iterator[Wish]:
    """An exception becomes None."""
    raises = [n for n in place.nodes if isinstance(n, ast.Raise) and n.exc is not None]
    if len(raises) == 1 and isinstance(raises[0].exc, ast.Call):
        name = place.source(raises[0].exc.func)
        if name not in ("NotImplementedError", "AssertionError") and any(
            isinstance(n, ast.Return) for n in place.nodes
        ):
            yield Wish(place.splice(place.over(raises[0], "return None")), {"e": name})


@kind(
    "fail loudly instead of returning None",
    "None hides the problem, raise {e}",
    "raise when nothing was found",
    "should be an error, not None",
    "blow up with a {e} instead of giving None",
    "don't hide failures behind None",
    "callers forget to check for None, raise {e}",
    "make it strict: {e} instead of None",
    "raise {e} rather than return None",
    "complain if there's nothing",
    "I want a {e} here, not None",
    "None is not an acceptable answer, raise {e}",
    "no silent None",
)
def none_to_raise(place: Place) -> Iterator[Wish]:
    """None becomes an exception."""
    found = [
        n
        for n in place.nodes
        if isinstance(n, ast.Return) and isinstance(n.value, ast.Constant) and n.value.value is None
    ]
    if len(found) == 1:
        error = place.rng.choice(["LookupError", "ValueError", "KeyError", "RuntimeError"])
        yield Wish(place.splice(place.over(found[0], f"raise {error}")), {"e": error})


@kind(
    "make the {w} configurable",
    "let callers choose the {w}",
    "{w} should be a parameter",
    "the {w} is hardcoded",
    "callers need their own {w}",
    "I want to pass a different {w}",
    "allow another {w}",
    "don't hardcode the {w}",
    "{w} should be adjustable",
    "be able to set {n} from outside",
    "expose {n}",
    "{w} must be settable by the caller, same default",
    "different {w} per call",
    "let me override the {w}",
    "not always {v} for {n}",
    "{v} does not fit everyone, make {n} an option",
    "user-defined {w}",
    "the caller decides about {w}",
    "parametrize the {w}",
)
def configurable(place: Place) -> Iterator[Wish]:
    """A constant of the body becomes a parameter with that default."""
    taken = {p.arg for p in place.parameters} | place.names
    for node in [n for statement in place.function.body for n in ast.walk(statement)]:
        if (
            isinstance(node, ast.keyword)
            and node.arg
            and isinstance(node.value, ast.Constant)
            and node.value.value not in (None, True, False)
        ):
            if (
                node.arg not in taken
                and node not in place.function.args.defaults
                and (p := place.add_parameter(f"{node.arg}={place.source(node.value)}"))
            ):
                yield Wish(
                    place.splice(p, place.over(node.value, node.arg)),
                    {"w": _plain(node.arg), "n": node.arg, "v": place.source(node.value)},
                )
        if (
            isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
        ):
            name, value = node.targets[0].id, node.value.value
            stores = [
                n
                for n in place.nodes
                if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
            ]
            if (
                node in place.function.body
                and len(stores) == 1
                and isinstance(value, int | float | str)
                and not isinstance(value, bool)
                and node.lineno == node.end_lineno
                and len(place.function.body) > 2
                and (p := place.add_parameter(f"{name}={place.source(node.value)}"))
            ):
                text = place.splice(p, (node.lineno, 0, node.lineno + 1, 0, ""))
                yield Wish(text, {"w": _plain(name), "n": name, "v": place.source(node.value)})


@kind(
    "ignore case",
    "case should not matter",
    "upper case {w} should work too",
    "accept {w} in any case",
    "make the comparison case-insensitive",
    "{x} might be upper case",
    "users type it in capitals sometimes",
    "don't care about upper/lower case of {x}",
    "compare without case",
    "lower and upper case are the same here",
    "case insensitive please",
    "should also match in capitals",
)
def ignore_case(place: Place) -> Iterator[Wish]:
    """A comparison with a lower-case text ignores case."""
    for n in place.nodes:
        if (
            isinstance(n, ast.Compare)
            and len(n.ops) == 1
            and isinstance(n.ops[0], ast.Eq | ast.NotEq)
            and isinstance(n.left, ast.Name | ast.Attribute)
        ):
            right = n.comparators[0]
            if (
                isinstance(right, ast.Constant)
                and isinstance(right.value, str)
                and right.value
                and right.value == right.value.lower()
                and right.value.isalpha()
            ):
                left = place.source(n.left)
                yield Wish(
                    place.splice(place.over(n.left, f"{left}.lower()")),
                    {"x": left, "w": _plain(left.split(".")[-1])},
                )


@kind(
    "ignore whitespace around {x}",
    "trim the {w}",
    "spaces around the {w} should not matter",
    "leading and trailing blanks of {x} are to be ignored",
    "people paste {w} with spaces",
    "{x} sometimes has a trailing newline",
    "strip it first",
    "tolerate surrounding whitespace",
    "clean up {x} before using it",
    "accidental spaces in {x} break this",
    "get rid of blanks at both ends of {x}",
    "whitespace around {x} is noise",
)
def trim(place: Place) -> Iterator[Wish]:
    """A string parameter is stripped first."""
    for p in place.parameters:
        annotated = p.annotation is not None and place.source(p.annotation) == "str"
        uses = any(
            isinstance(n, ast.Attribute)
            and isinstance(n.value, ast.Name)
            and n.value.id == p.arg
            and n.attr in ("split", "lower", "startswith", "upper", "replace", "endswith", "find")
            for n in place.nodes
        )
        if (annotated or uses) and (new := place.insert_first(f"{p.arg} = {p.arg}.strip()")):
            yield Wish(new, {"x": p.arg, "w": _plain(p.arg)})


@kind(
    "don't fail when {k} is missing",
    "{k} may be missing",
    "no KeyError for {k}",
    "missing {k} should just be None",
    "tolerate a missing {k}",
    "KeyError: {k}",
    "{k} is optional",
    "not every {d} has a {k}",
    "handle {d} without {k}",
    "{k} is not always there",
    "should not crash without {k}",
    "sometimes there's no {k} in {d}",
    "be lenient about {k}",
    "{d} might lack {k}",
    "absent {k} -> None",
)
def missing_key(place: Place) -> Iterator[Wish]:
    """A key that may be missing is read with get."""
    for n in place.nodes:
        if (
            isinstance(n, ast.Subscript)
            and isinstance(n.ctx, ast.Load)
            and isinstance(n.slice, ast.Constant)
            and isinstance(n.slice.value, str)
            and isinstance(n.value, ast.Name | ast.Attribute)
            and place.source(n.value) not in ("self", "cls")
        ):
            owner, key = place.source(n.value), place.source(n.slice)
            if key:
                yield Wish(
                    place.splice(place.over(n, f"{owner}.get({key})")),
                    {"k": n.slice.value, "d": owner},
                )


@kind(
    "always use utf-8",
    "umlauts come out wrong",
    "should work on windows too",
    "don't depend on the locale's encoding",
    "read and write as UTF-8",
    "UnicodeDecodeError on windows",
    "files are utf-8",
    "encoding must not depend on the machine",
    "accents get garbled",
    "be explicit about the encoding",
    "non-ascii content breaks",
)
def utf8(place: Place) -> Iterator[Wish]:
    """Files are opened as UTF-8."""
    for call in place.calls("open", "read_text", "write_text"):
        mode = [a for a in call.args[1:2] if isinstance(a, ast.Constant)]
        if (
            any("b" in str(m.value) for m in mode)
            or any(k.arg in ("encoding", "mode") for k in call.keywords)
            or "os." in place.source(call.func)
        ):
            continue
        if place.source(call.func) == "open" or (
            isinstance(call.func, ast.Attribute) and call.func.attr != "open"
        ):
            for text in place.with_argument([call], 'encoding="utf-8"'):
                yield Wish(text, {})


@kind(
    "don't fail if the folder is already there",
    "folder may exist already",
    "existing directory is fine",
    "should be repeatable, the directory can exist",
    "FileExistsError on the second run",
    "no error when the directory exists",
    "running it twice must work",
    "it's ok if it's already there",
    "tolerate an existing folder",
    "second call crashes",
)
def folder_exists(place: Place) -> Iterator[Wish]:
    """A folder may exist."""
    calls = place.calls_without("exist_ok", "makedirs", "mkdir")
    able = [call for call in calls if place.source(call.func) != "os.mkdir"]
    for text in place.with_argument(able, "exist_ok=True"):
        yield Wish(text, {})


@kind(
    "must not hang forever",
    "don't wait forever",
    "give up after {t} seconds",
    "it hangs when the server does not answer",
    "stop waiting after {t}s",
    "wait {t} seconds at most",
    "put an upper limit of {t} seconds on the wait",
    "blocks for ever sometimes, {t} seconds are enough",
    "set a deadline of {t} s",
    "hung again last night. {t}s max",
)
def no_hang(place: Place) -> Iterator[Wish]:
    """A call gets a timeout."""
    for call in place.calls_without(
        "timeout",
        "requests.get",
        "requests.post",
        "session.get",
        "session.post",
        "urlopen",
        "subprocess.run",
        "check_output",
        "communicate",
        "check_call",
        "requests.request",
    ):
        seconds = place.rng.choice(["5", "10", "30", "60"])
        for text in place.with_argument([call], f"timeout={seconds}"):
            yield Wish(text, {"t": seconds})


@kind(
    "stop when the command fails",
    "a failing command must not go unnoticed",
    "errors of the command are ignored, they should not be",
    "raise if the exit code is not 0",
    "nonzero exit should be an error",
    "fail if the command fails",
    "we don't notice when it fails",
    "check the exit status",
)
def command_fails(place: Place) -> Iterator[Wish]:
    """A command's failure is an error."""
    calls = place.calls_without("check", "subprocess.run")
    for text in place.with_argument(calls, "check=True"):
        yield Wish(text, {})


@kind(
    "make the json readable",
    "pretty print the json",
    "json should be indented",
    "humans read that file, format it nicely",
    "one key per line in the json",
    "nicer json output",
    "indent it by 2",
)
def pretty_json(place: Place) -> Iterator[Wish]:
    """JSON is indented."""
    calls = place.calls_without("indent", "json.dump", "json.dumps")
    for text in place.with_argument(calls, "indent=2"):
        yield Wish(text, {})


@kind(
    "stable key order in the json",
    "same data should give the same json",
    "keys in alphabetical order",
    "diffs of the output are noisy, sort the keys",
    "output order must not change between runs",
    "make the json deterministic",
)
def sorted_json(place: Place) -> Iterator[Wish]:
    """JSON keys are sorted."""
    calls = place.calls_without("sort_keys", "json.dump", "json.dumps")
    for text in place.with_argument(calls, "sort_keys=True"):
        yield Wish(text, {})


@kind(
    "the end should be included",
    "include the last one",
    "last element is never reached",
    "it stops one too early",
    "up to and including {b}",
    "{b} itself should count too",
    "upper bound is inclusive",
    "one short at the end",
)
def inclusive(place: Place) -> Iterator[Wish]:
    """A range includes its end."""
    for call in place.calls("range"):
        if 1 <= len(call.args) <= 2 and isinstance(call.args[-1], ast.Name | ast.Attribute):
            end = place.source(call.args[-1])
            yield Wish(place.splice(place.over(call.args[-1], f"{end} + 1")), {"b": end})


@kind(
    "remember results",
    "don't compute it twice",
    "cache it",
    "called again and again with the same arguments, make it faster",
    "memoize",
    "same input, same output: keep the result",
    "it's slow when called repeatedly",
    "avoid recomputing",
    "reuse earlier results",
)
def cached(place: Place) -> Iterator[Wish]:
    """Results are cached."""
    f = place.function
    if (
        f.decorator_list
        or not place.parameters
        or isinstance(f, ast.AsyncFunctionDef)
        or any(a.arg in ("self", "cls") for a in f.args.args)
    ):
        return
    if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in place.nodes) or not any(
        isinstance(n, ast.Return) and n.value for n in place.nodes
    ):
        return
    decorator = place.rng.choice(["@functools.cache", "@lru_cache(maxsize=None)", "@cache"])
    lines = [*place.lines]
    lines.insert(f.lineno - 1, decorator)
    yield Wish(
        "\n".join(lines),
        {},
        (
            f"remember results with {decorator}",
            f"too slow, {decorator}",
            f"cache with {decorator[1:]}",
            f"use {decorator[1:]} so it isn't computed twice",
        ),
    )


@kind(
    "{x} should be optional",
    "don't force callers to pass {x}",
    "make it possible to leave {x} out",
    "{x} is not always known",
    "callers without {w} should be able to use it",
    "most callers have no {w}",
    "allow calling it without {x}",
    "not everyone has a {w}",
    "{x} can be omitted",
    "nobody needs to give {x}",
)
def optional(place: Place) -> Iterator[Wish]:
    """The last parameter may be left out."""
    a = place.function.args
    if (
        a.args
        and not a.defaults
        and not a.posonlyargs
        and not a.vararg
        and not a.kwonlyargs
        and a.args[-1].arg not in ("self", "cls")
    ):
        last = a.args[-1]
        spaced = " = " if last.annotation else "="
        if last.annotation is None:
            yield Wish(
                place.splice(
                    (
                        last.end_lineno or 0,
                        last.end_col_offset or 0,
                        last.end_lineno or 0,
                        last.end_col_offset or 0,
                        f"{spaced}None",
                    )
                ),
                {"x": last.arg, "w": _plain(last.arg)},
            )


@kind(
    "callers should have to name {x}",
    "{x} must be given by keyword",
    "nobody should pass {x} by position",
    "force {x}=... at the call",
    "keyword-only {x}",
    "calls like f(1, 2) are unreadable, {x} by name only",
    "positional {x} is confusing, forbid it",
)
def by_name(place: Place) -> Iterator[Wish]:
    """A parameter becomes keyword-only."""
    a = place.function.args
    if len(a.args) >= 2 and not a.vararg and not a.kwonlyargs and a.defaults:
        last = a.args[-1]
        yield Wish(
            place.splice((last.lineno, last.col_offset, last.lineno, last.col_offset, "*, ")),
            {"x": last.arg},
        )


@kind(
    "return a real list",
    "I need a list, not an iterator",
    "the result can be read only once, give a list",
    "len() of the result fails",
    "should be indexable",
    "list please, no generator",
    "callers iterate over it twice",
)
def real_list(place: Place) -> Iterator[Wish]:
    """A lazy result becomes a list."""
    for n in place.nodes:
        if isinstance(n, ast.Return) and n.value is not None:
            if isinstance(n.value, ast.Call) and place.source(n.value.func) in (
                "map",
                "filter",
                "zip",
                "reversed",
            ):
                yield Wish(place.splice(place.over(n.value, f"list({place.source(n.value)})")), {})
            elif isinstance(n.value, ast.GeneratorExp) and place.source(n.value).startswith("("):
                yield Wish(
                    place.splice(place.over(n.value, f"[{place.source(n.value)[1:-1]}]")), {}
                )


@kind(
    "spaces around the separators should not matter",
    "allow blanks after the {s}",
    "'a{s} b' should work too",
    "trim the parts",
    "the pieces have stray spaces",
    "tolerate spaces between entries",
    "entries come with leading blanks",
)
def trimmed_parts(place: Place) -> Iterator[Wish]:
    """Parts of a split are stripped."""
    for call in place.calls("split"):
        if (
            len(call.args) == 1
            and isinstance(call.args[0], ast.Constant)
            and call.args[0].value in (",", ";", ":", "|", "=")
        ):
            if place.source(call.func.value) != "re":  # type: ignore[attr-defined]
                yield Wish(
                    place.splice(
                        place.over(call, f"[part.strip() for part in {place.source(call)}]")
                    ),
                    {"s": call.args[0].value},
                )


@kind(
    "avoid division by zero",
    "ZeroDivisionError when {b} is 0",
    "{b} can be 0",
    "don't crash if {b} is zero",
    "0 for {b} should give 0",
    "no {w} should mean 0, not a crash",
    "handle {b} == 0",
    "guard the division",
    "when {b} is 0 the result is 0",
)
def divide_safely(place: Place) -> Iterator[Wish]:
    """A division by zero gives 0."""
    for n in place.nodes:
        if (
            isinstance(n, ast.Return | ast.Assign)
            and isinstance(n.value, ast.BinOp)
            and isinstance(n.value.op, ast.Div | ast.FloorDiv)
            and isinstance(n.value.right, ast.Name | ast.Attribute)
        ):
            b = place.source(n.value.right)
            yield Wish(
                place.splice(place.over(n.value, f"{place.source(n.value)} if {b} else 0")),
                {"b": b, "w": _plain(b.split(".")[-1])},
            )


@kind(
    "two decimals are enough",
    "too many digits, round to {d}",
    "only {d} decimals",
    "round the result",
    "0.30000000000000004 is ugly",
    "{d} digits after the point",
    "nobody needs that precision, {d} places",
)
def rounded(place: Place) -> Iterator[Wish]:
    """A result is rounded."""
    for n in place.nodes:
        if (
            isinstance(n, ast.Return)
            and isinstance(n.value, ast.BinOp)
            and isinstance(n.value.op, ast.Div)
        ):
            yield Wish(
                place.splice(place.over(n.value, f"round({place.source(n.value)}, 2)")),
                {"d": place.rng.choice(["2", "two"])},
            )


@kind(
    "don't modify the caller's {w}",
    "{x} of the caller must stay as it is",
    "leave the passed {w} alone",
    "work on a copy",
    "it changes the argument, it shouldn't",
    "side effect on {x}, avoid it",
    "my {w} is different after the call",
    "don't touch the original {x}",
    "callers are surprised that {x} changes",
)
def no_side_effect(place: Place) -> Iterator[Wish]:
    """A parameter is copied before it is changed."""
    for p in place.parameters:
        for n in place.nodes:
            method = (
                isinstance(n, ast.Call)
                and isinstance(n.func, ast.Attribute)
                and isinstance(n.func.value, ast.Name)
                and n.func.value.id == p.arg
            )
            maker = ""
            if method and n.func.attr in ("append", "extend", "sort", "insert", "reverse"):  # type: ignore[union-attr]
                maker = "list"
            elif (method and n.func.attr in ("update", "setdefault")) or (
                isinstance(n, ast.Subscript)
                and isinstance(n.ctx, ast.Store)
                and isinstance(n.value, ast.Name)
                and n.value.id == p.arg
                and isinstance(n.slice, ast.Constant)
                and isinstance(n.slice.value, str)
            ):  # type: ignore[union-attr]
                maker = "dict"
            if maker and (new := place.insert_first(f"{p.arg} = {maker}({p.arg})")):
                yield Wish(new, {"x": p.arg, "w": _plain(p.arg)})
                break


@kind(
    "asserts vanish with -O, raise a proper error",
    "use a real exception instead of assert",
    "this check must also run in production",
    "ValueError instead of the assert",
    "assert is not for user input",
    "don't rely on assert here",
    "AssertionError is no good for callers",
)
def real_error(place: Place) -> Iterator[Wish]:
    """An assert becomes an exception."""
    for n in place.nodes:
        if isinstance(n, ast.Assert) and n.lineno == n.end_lineno:
            test, message = place.source(n.test), place.source(n.msg) if n.msg else ""
            opposite = (
                test[4:]
                if isinstance(n.test, ast.UnaryOp) and test.startswith("not ")
                else f"not {test}"
                if isinstance(n.test, ast.Name | ast.Call | ast.Attribute)
                else f"not ({test})"
            )
            if isinstance(n.test, ast.Compare) and len(n.test.ops) == 1:
                turned = {
                    ast.Is: "is not",
                    ast.IsNot: "is",
                    ast.Eq: "!=",
                    ast.NotEq: "==",
                    ast.In: "not in",
                    ast.NotIn: "in",
                    ast.Lt: ">=",
                    ast.Gt: "<=",
                    ast.LtE: ">",
                    ast.GtE: "<",
                }[type(n.test.ops[0])]
                opposite = (
                    f"{place.source(n.test.left)} {turned} {place.source(n.test.comparators[0])}"
                )
            indent = " " * n.col_offset
            error = f"ValueError({message})" if message else "ValueError"
            yield Wish(
                place.splice(place.over(n, f"if {opposite}:\n{indent}    raise {error}")), {}
            )


@kind(
    "reject negative {w}",
    "{x} must not be negative",
    "negative {x} makes no sense, complain",
    "a negative {w} is a bug of the caller, raise ValueError",
    "check that {x} is not below zero",
    "refuse {x} < 0",
    "ValueError for negative {x}",
    "validate {x}, it can't be negative",
)
def not_negative(place: Place) -> Iterator[Wish]:
    """A negative number is refused."""
    for p in place.parameters:
        number = re.search(
            r"(^|_)(count|size|limit|n|num|width|height|length|timeout|depth|index|offset|level|max|min|delay|age|amount|port|total|step|k)$",
            p.arg,
        )
        if (
            number or (p.annotation is not None and place.source(p.annotation) in ("int", "float"))
        ) and (
            new := place.insert_first(
                f'if {p.arg} < 0:\n    raise ValueError("{p.arg} must not be negative")'
            )
        ):
            yield Wish(new, {"x": p.arg, "w": _plain(p.arg)})


@kind(
    "keep the original cause",
    "don't lose the original traceback",
    "the cause gets lost",
    "chain the exceptions",
    "show where the error came from",
    "I want to see the original error too",
    "raise from the caught one",
)
def keep_cause(place: Place) -> Iterator[Wish]:
    """An exception raised in a handler names its cause."""
    for handler in (
        n for n in place.nodes if isinstance(n, ast.ExceptHandler) and n.type is not None
    ):
        last = handler.body[-1]
        if (
            isinstance(last, ast.Raise)
            and last.exc is not None
            and last.cause is None
            and isinstance(last.exc, ast.Call)
        ):
            edits = [
                (
                    last.end_lineno or 0,
                    last.end_col_offset or 0,
                    last.end_lineno or 0,
                    last.end_col_offset or 0,
                    f" from {handler.name or 'error'}",
                )
            ]
            if handler.name is None:
                end = handler.type
                edits.append(
                    (
                        end.end_lineno or 0,
                        end.end_col_offset or 0,
                        end.end_lineno or 0,
                        end.end_col_offset or 0,
                        " as error",
                    )
                )
            yield Wish(place.splice(*edits), {})


@kind(
    "let Ctrl-C through",
    "don't catch KeyboardInterrupt",
    "can't be interrupted with ctrl-c",
    "catch less",
    "the except catches too much",
    "SystemExit should not be swallowed",
)
def not_everything(place: Place) -> Iterator[Wish]:
    """A bare except becomes `except Exception`."""
    for n in place.nodes:
        if (
            isinstance(n, ast.ExceptHandler)
            and n.type is None
            and place.lines[n.lineno - 1].strip().startswith("except:")
        ):
            yield Wish(
                place.splice(
                    (n.lineno, n.col_offset, n.lineno, n.col_offset + 6, "except Exception")
                ),
                {},
            )


@kind(
    "don't swallow errors silently",
    "at least log the error",
    "failures go unnoticed here",
    "we should see in the log when that fails",
    "log it instead of hiding it",
    "silent failure, leave a trace in the log",
    "want to know when this goes wrong",
)
def log_failure(place: Place) -> Iterator[Wish]:
    """A handler that does nothing logs."""
    for n in place.nodes:
        if (
            isinstance(n, ast.ExceptHandler)
            and len(n.body) == 1
            and isinstance(n.body[0], ast.Pass)
            and n.body[0].lineno > n.lineno
        ):
            name = "log" if "log" in place.names else "logger"
            what = _plain(place.function.name)
            yield Wish(
                place.splice(place.over(n.body[0], f'{name}.exception("{what} failed")')), {}
            )


@kind(
    "no error when there are none",
    "default to None when there is nothing",
    "{f}() of nothing fails",
    "ValueError: {f}() arg is an empty sequence",
    "None if there is nothing to compare",
    "should be None for an empty sequence",
    "empty case for the {f}",
)
def extreme_of_nothing(place: Place) -> Iterator[Wish]:
    """Min and max get a default."""
    for call in place.calls("min", "max"):
        name = place.source(call.func)
        if name in ("min", "max") and len(call.args) == 1 and not call.keywords:
            if s := place.add_argument(call, "default=None"):
                yield Wish(place.splice(s), {"f": name})
            elif isinstance(call.args[0], ast.GeneratorExp):
                inner = place.source(call.args[0])
                inner = inner if inner.startswith("(") else f"({inner})"
                yield Wish(
                    place.splice(place.over(call, f"{name}({inner}, default=None)")), {"f": name}
                )


@kind(
    "one per line",
    "separate them by newlines",
    "each on its own line",
    "put every entry on a new line",
    "should be a list with one entry per line",
    "line breaks between them instead of {s}",
)
def one_per_line(place: Place) -> Iterator[Wish]:
    """A join uses line breaks."""
    for call in place.calls("join"):
        value = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(value, ast.Constant) and value.value in (", ", " ", ",", "; ", " | "):
            yield Wish(
                place.splice(place.over(value, '"\\n"')),
                {
                    "s": {
                        ", ": "commas",
                        ",": "commas",
                        " ": "spaces",
                        "; ": "semicolons",
                        " | ": "bars",
                    }[value.value]
                },
            )


@kind(
    "comma separated please",
    "separate them by commas",
    "put commas between them",
    "commas instead of spaces",
    "should read a, b, c",
)
def by_commas(place: Place) -> Iterator[Wish]:
    """A join uses commas."""
    for call in place.calls("join"):
        value = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(value, ast.Constant) and value.value in (" ", "", "\n", "; "):
            yield Wish(place.splice(place.over(value, '", "')), {})


_SKIPS: list[tuple[str, str, tuple[str, ...]]] = [
    (
        "not {x}",
        "",
        (
            "skip empty {ws}",
            "ignore empty ones",
            "empty {x} should be skipped",
            "nothing to do for an empty {w}",
            "pass over empty {ws}",
            "no empty {ws} please",
        ),
    ),
    (
        "{x} is None",
        "",
        (
            "skip None",
            "ignore missing {ws}",
            "{x} can be None, skip it",
            "None entries are to be left out",
            "leave out the missing ones",
        ),
    ),
    (
        "not {x}.strip()",
        "line|row|text|word|part|name|s",
        (
            "skip blank {ws}",
            "ignore blank {ws}",
            "blank {ws} should not count",
            "whitespace-only {ws} are noise",
        ),
    ),
    (
        '{x}.startswith("#")',
        "line|row|text",
        (
            "skip comments",
            "ignore comment {ws}",
            "{ws} with # are comments, leave them out",
            "comments should not be parsed",
        ),
    ),
    (
        '{x}.startswith(".")',
        "name|file|filename|entry|path|fname|f|fn",
        (
            "skip hidden files",
            "ignore dotfiles",
            "hidden ones are not wanted",
            "leave out everything that starts with a dot",
        ),
    ),
    (
        '{x}.startswith("_")',
        "name|key|attr|k|member|field",
        (
            "skip private {ws}",
            "private names are none of our business",
            "ignore what starts with an underscore",
            "only public {ws}",
        ),
    ),
]


@kind("skip empty ones")
def skip_some(place: Place) -> Iterator[Wish]:
    """A loop passes over some entries."""
    for loop in (
        n for n in place.nodes if isinstance(n, ast.For) and isinstance(n.target, ast.Name)
    ):
        name = loop.target.id  # type: ignore[union-attr]
        condition, only, wordings = place.rng.choice(_SKIPS)
        if (only and not re.fullmatch(only, name)) or loop.body[0].lineno == loop.lineno:
            continue
        code = f"if {condition.format(x=name)}:\n    continue"
        words = {
            "x": name,
            "w": _plain(name),
            "ws": _plain(name) + ("" if name.endswith("s") else "s"),
        }
        yield Wish(
            place.before(loop.body[0], code), words, tuple(w.format(**words) for w in wordings)
        )


@kind(
    "keep going if one of them fails",
    "one bad {w} must not stop the rest",
    "a single failure should not abort everything",
    "skip {ws} that fail",
    "carry on with the next {w} on errors",
    "errors in one {w} should not kill the loop",
    "be robust: continue after {e}",
)
def keep_going(place: Place) -> Iterator[Wish]:
    """A failure in a loop goes on with the next entry."""
    for loop in (
        n for n in place.nodes if isinstance(n, ast.For) and isinstance(n.target, ast.Name)
    ):
        first, last = loop.body[0], loop.body[-1]
        if (
            first.lineno == loop.lineno
            or (last.end_lineno or 0) - first.lineno > 6
            or loop.orelse
            or isinstance(first, ast.Try)
        ):
            continue
        if any(
            isinstance(n, ast.Constant) and isinstance(n.value, str) and "\n" in n.value
            for n in ast.walk(loop)
        ):
            continue
        indent = " " * first.col_offset
        error = place.rng.choice(["Exception", "OSError", "ValueError", "KeyError"])
        inner = [
            "    " + line if line.strip() else line
            for line in place.lines[first.lineno - 1 : last.end_lineno]
        ]
        new = [
            *place.lines[: first.lineno - 1],
            f"{indent}try:",
            *inner,
            f"{indent}except {error}:",
            f"{indent}    continue",
            *place.lines[last.end_lineno or 0 :],
        ]
        name = _plain(loop.target.id)  # type: ignore[union-attr]
        wordings = (
            ()
            if error == "Exception"
            else (
                f"skip it on {error}",
                f"{error} in one {name} should not stop the others",
                f"continue with the next one on {error}",
                f"tolerate {error} for single {name}s",
            )
        )
        yield Wish(
            "\n".join(new),
            {"w": name, "ws": name if name.endswith("s") else name + "s", "e": error},
            wordings,
        )


@kind(
    "only the first {n} please",
    "let me limit the number of results",
    "callers want just the first few",
    "add a way to get only the first so many",
    "allow limiting the result",
    "support a limit",
    "too many results, make them limitable",
)
def limited(place: Place) -> Iterator[Wish]:
    """A result list can be cut."""
    returns = [n for n in place.nodes if isinstance(n, ast.Return)]
    if (
        len(returns) == 1
        and isinstance(returns[0].value, ast.Name)
        and _returned(place) == "[]"
        and "limit" not in place.text
    ):
        if p := place.add_parameter("limit=None"):
            value = returns[0].value
            yield Wish(place.splice(p, place.over(value, f"{value.id}[:limit]")), {"n": "ones"})


@kind(
    "no duplicates",
    "each one only once",
    "drop duplicates but keep the order",
    "the same entry shows up twice",
    "duplicates should be removed",
    "unique values only, in order",
    "entries are repeated, they should not be",
)
def unique(place: Place) -> Iterator[Wish]:
    """A result list has no duplicates."""
    returns = [n for n in place.nodes if isinstance(n, ast.Return)]
    if len(returns) == 1 and isinstance(returns[0].value, ast.Name) and _returned(place) == "[]":
        yield Wish(
            place.splice(
                place.over(returns[0].value, f"list(dict.fromkeys({returns[0].value.id}))")
            ),
            {},
        )


@kind(
    "tell how many there are",
    "return the number of them",
    "give back the count",
    "I only need how many",
    "just the number, not the things themselves",
)
def count_only(place: Place) -> Iterator[Wish]:
    """A count is returned."""
    returns = [n for n in place.nodes if isinstance(n, ast.Return)]
    if (
        len(returns) == 1
        and isinstance(returns[0].value, ast.Name)
        and _returned(place) in ("[]", "{}")
    ):
        yield Wish(place.splice(place.over(returns[0].value, f"len({returns[0].value.id})")), {})


@kind(
    "be quiet",
    "no output on stdout",
    "it prints debug stuff, it shouldn't",
    "don't clutter the terminal",
    "nothing should be printed",
    "leftover debug output",
    "silence it",
    "too chatty",
)
def quiet(place: Place) -> Iterator[Wish]:
    """Prints go away."""
    prints = [
        n
        for n in place.nodes
        if isinstance(n, ast.Expr)
        and isinstance(n.value, ast.Call)
        and place.source(n.value.func) == "print"
    ]
    if not prints:
        return
    for parent in place.nodes:
        for block in (getattr(parent, "body", None), getattr(parent, "orelse", None)):
            if isinstance(block, list) and block and all(n in prints for n in block):
                return
    yield Wish(place.splice(*((n.lineno, 0, (n.end_lineno or 0) + 1, 0, "") for n in prints)), {})


@kind(
    "accept strings as path too",
    "{x} may be a str",
    "also take a plain string for {x}",
    "should work with str and Path",
    "AttributeError: 'str' object has no attribute",
    "callers pass {x} as a string",
)
def path_like(place: Place) -> Iterator[Wish]:
    """A path may be given as text."""
    for p in place.parameters:
        if any(
            isinstance(n, ast.Attribute)
            and isinstance(n.value, ast.Name)
            and n.value.id == p.arg
            and n.attr
            in (
                "exists",
                "read_text",
                "open",
                "parent",
                "is_dir",
                "write_text",
                "is_file",
                "stem",
                "suffix",
                "glob",
                "iterdir",
                "resolve",
            )
            for n in place.nodes
        ):
            if new := place.insert_first(f"{p.arg} = Path({p.arg})"):
                yield Wish(new, {"x": p.arg})


@kind(
    "times should be in UTC",
    "use utc",
    "don't depend on the local time zone",
    "wrong by an hour in summer",
    "timezone-aware please, UTC",
    "naive datetimes cause trouble, use utc",
)
def utc(place: Place) -> Iterator[Wish]:
    """Now is in UTC."""
    for call in place.calls("now", "utcnow"):
        owner = place.source(call.func).rpartition(".")[0]
        if owner.endswith("datetime") and not call.args and not call.keywords:
            zone = "datetime.timezone.utc" if owner == "datetime.datetime" else "timezone.utc"
            yield Wish(place.splice(place.over(call, f"{owner}.now({zone})")), {})


@kind(
    "more than once in a row should count too",
    "new keys fail when counting",
    "KeyError on the first one",
    "start counting at 0 for new keys",
    "counting breaks for unseen {k}",
)
def count_from_zero(place: Place) -> Iterator[Wish]:
    """Counting starts by itself."""
    for n in place.nodes:
        if (
            isinstance(n, ast.AugAssign)
            and isinstance(n.op, ast.Add)
            and isinstance(n.target, ast.Subscript)
            and isinstance(n.target.value, ast.Name | ast.Attribute)
            and isinstance(n.target.slice, ast.Name)
        ):
            d, k = place.source(n.target.value), place.source(n.target.slice)
            yield Wish(
                place.splice(
                    place.over(n, f"{d}[{k}] = {d}.get({k}, 0) + {place.source(n.value)}")
                ),
                {"k": k},
            )


@kind(
    "say which {x} it was",
    "include the {w} in the error",
    "error message should mention {x}",
    "the message does not help, show {x}",
    "tell the user what {x} was wrong",
    "put the value of {x} into the message",
    "more helpful error: name the {w}",
)
def telling_error(place: Place) -> Iterator[Wish]:
    """An error message names the value."""
    for n in place.nodes:
        if (
            isinstance(n, ast.Raise)
            and isinstance(n.exc, ast.Call)
            and len(n.exc.args) == 1
            and isinstance(n.exc.args[0], ast.Constant)
            and isinstance(n.exc.args[0].value, str)
        ):
            old = place.source(n.exc.args[0])
            if "\n" in old or old[0] not in "\"'" or "{" in old or not place.parameters:
                continue
            p = place.rng.choice(place.parameters).arg
            text, quote = old[1:-1].rstrip(".!"), old[0]
            yield Wish(
                place.splice(place.over(n.exc.args[0], f"f{quote}{text}: {{{p}!r}}{quote}")),
                {"x": p, "w": _plain(p)},
            )


@kind(
    "the old list is shared between calls",
    "calls influence each other",
    "{x} keeps growing between calls",
    "state leaks from one call to the next",
    "default {x} is shared by all calls",
    "second call sees the {w} of the first",
    "each call should start with a fresh {w}",
)
def fresh_default(place: Place) -> Iterator[Wish]:
    """A mutable default is made anew."""
    a = place.function.args
    every = [*a.posonlyargs, *a.args]
    for arg, default in zip(every[len(every) - len(a.defaults) :], a.defaults, strict=True):
        if (
            isinstance(default, ast.List | ast.Dict)
            and place.source(default) in ("[]", "{}")
            and arg.annotation is None
        ):
            inserted = place.insert_first(
                f"if {arg.arg} is None:\n    {arg.arg} = {place.source(default)}"
            )
            if inserted:
                lines = inserted.split("\n")
                row = lines[default.lineno - 1]
                lines[default.lineno - 1] = (
                    row[: default.col_offset] + "None" + row[default.end_col_offset :]
                )
                yield Wish("\n".join(lines), {"x": arg.arg, "w": _plain(arg.arg)})


_LEADS = [
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "please ",
    "can you ",
    "we need this: ",
    "hm, ",
    "bug: ",
    "fix: ",
    "ok: ",
    "i think ",
    "user report: ",
    "todo ",
    "small thing: ",
    "it would be nice if: ",
]
_TAILS = [
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    " please",
    " pls",
    " thx",
    ", thanks",
    " here",
    " too",
    "!",
    ".",
    ".",
    " ok?",
    " (seen in production)",
    ", as discussed",
    " from now on",
]


def vary(text: str, rng: random.Random) -> str:
    """Return a wording as somebody in a hurry types it."""
    roll = rng.random()
    if roll < 0.12:
        text = rng.choice(_LEADS) + text
    elif roll < 0.26:
        text = text + rng.choice(_TAILS)
    if rng.random() < 0.25:
        text = text[0].upper() + text[1:]
    if rng.random() < 0.15:
        text = text.replace("'", "")
    if rng.random() < 0.1:
        text = text.replace("don't", rng.choice(["do not", "dont", "never"])).replace(
            "should", rng.choice(["must", "has to", "shoud"])
        )
    if rng.random() < 0.08 and len(text) > 12:
        at = rng.randrange(2, len(text) - 2)
        pair = text[at : at + 2]
        if pair.isalpha() and rng.random() < 0.6:
            text = text[:at] + pair[::-1] + text[at + 2 :]
        elif text[at].isalpha():
            text = text[:at] + text[at + 1 :]
    return text


def function_of(text: str) -> Function | None:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    found = tree.body[0] if len(tree.body) == 1 else None
    return found if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef) else None


def rows_of(
    text: str, rng: random.Random, most: int, taken: frozenset[str], weights: dict[str, float]
) -> tuple[str, list[tuple[str, str, str]]] | None:
    """Return a dedented region and some wishes for it."""
    region = fmt.strip(text, fmt.margin_of(text))
    function = function_of(region)
    if function is None:
        return None
    place = Place(region, function, rng)
    found: list[tuple[str, Wish]] = []
    for name, (make, _) in KINDS.items():
        if rng.random() < weights.get(name, 1.0):
            wishes = list(make(place))
            if wishes:
                found.append((name, rng.choice(wishes)))
    rng.shuffle(found)
    edits: list[tuple[str, str, str]] = []
    for name, wish in found[:most]:
        if wish.text == region:
            continue
        try:
            ast.parse(wish.text)
        except (SyntaxError, ValueError):
            continue
        script = fmt.script(region, wish.text)
        if fmt.apply(region, script) != wish.text:
            continue
        own = list(wish.extra) if name == "skip_some" else [*KINDS[name][1], *wish.extra]
        instruction = vary(rng.choice(own).format(**wish.words), rng)
        if normalised(instruction) not in taken:
            edits.append((f"goal_{name}", instruction, script))
    return (region, edits) if edits else None


def done_row(
    text: str, rng: random.Random, most: int, taken: frozenset[str], weights: dict[str, float]
) -> tuple[str, list[tuple[str, str, str]]] | None:
    """Return a region in which a wish has come true already, and others that have not."""
    made = rows_of(text, rng, 1, taken, weights)
    if made is None:
        return None
    region, [(name, instruction, script)] = made
    after = fmt.apply(region, script)
    function = function_of(after)
    # A wish that can be carried out once more is not done.
    if function is None or list(KINDS[name[5:]][0](Place(after, function, rng))):
        return None
    more = rows_of(after, rng, most - 1, taken, weights)
    others = [edit for edit in more[1] if edit[0] != name] if more else []
    return after, [("goal_done", instruction, fmt.script(after, after)), *others]


def normalised(text: str) -> str:
    """Return letters and digits of a request only."""
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).strip()


def main() -> None:
    """Write shards of goals."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="snippets")
    parser.add_argument("--human", type=Path, required=True, help="requests that must not occur")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", type=int, default=8_000, help="rows of a file")
    parser.add_argument("--most", type=int, default=4, help="wishes of a snippet")
    parser.add_argument("--done", type=float, default=0.0, help="share with nothing left to do")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--snippets", type=int, default=1_000_000)
    options = parser.parse_args()
    rng = random.Random(f"goals {options.seed}")
    taken = frozenset(
        normalised(row["instruction"]) for row in tomllib.loads(options.human.read_text())["edit"]
    )
    snippets = [json.loads(line)["text"] for line in options.data.read_text().splitlines()]
    rng.shuffle(snippets)
    snippets = snippets[: options.snippets]
    counts: dict[str, int] = {}
    for text in snippets[:3_000]:
        made = rows_of(text, rng, 99, taken, {})
        for name, _, _ in made[1] if made else []:
            counts[name[5:]] = counts.get(name[5:], 0) + 1
    # Common kinds are thinned out, so that rare ones get their share.
    weights = {name: min(1.0, 60 / count) for name, count in counts.items()}
    rows: list[str] = []
    number = edits = 0
    totals: dict[str, int] = {}

    def write() -> None:
        nonlocal number
        target = options.out / f"goals-{options.seed:02}-{number:03}.jsonl"
        unfinished = target.with_suffix(".part")
        unfinished.write_text("".join(rows))
        unfinished.replace(target)
        number += 1
        rows.clear()

    other = random.Random(f"done {options.seed}")
    for text in snippets:
        done = other.random() < options.done
        made = (
            done_row(text, other, options.most, taken, weights)
            if done
            else rows_of(text, rng, options.most, taken, weights)
        )
        if made:
            rows.append(json.dumps({"region": made[0], "edits": made[1]}) + "\n")
            edits += len(made[1])
            for name, _, _ in made[1]:
                totals[name] = totals.get(name, 0) + 1
        if len(rows) >= options.part:
            write()
    if rows:
        write()
    wordings = sum(len(w) for _, w in KINDS.values()) + sum(len(w) for _, _, w in _SKIPS)
    print(
        json.dumps({"edits": edits, "kinds": len(KINDS), "wordings": wordings, "by_kind": totals})
    )


if __name__ == "__main__":
    main()
