"""Repairs: a real function is broken in one place, and the request tells the symptom.

Every kind yields `Bug`s: the broken text, the words of its wordings, and wordings as small grammars
(`everyday.expanded`). The answer is the function as it was.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from everyday_kinds import Names, aloud
from goals import Place


@dataclass(frozen=True, slots=True)
class Bug:
    """A broken function and how its symptom is told."""

    text: str
    words: dict[str, str]
    wordings: tuple[str, ...]


Breaker = Callable[[Place, Names], Iterator[Bug]]
BUGS: dict[str, Breaker] = {}


def bug(function: Breaker) -> Breaker:
    """Register a kind of bug."""
    BUGS[function.__name__] = function
    return function


def _slip(word: str, place: Place) -> str:
    """Return a word with a typing error."""
    at = place.rng.randrange(1, len(word) - 1)
    roll = place.rng.random()
    if roll < 0.4:
        return word[:at] + word[at + 1 :]
    if roll < 0.75:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return word[:at] + word[at] + word[at:]


@bug
def mistyped_name(place: Place, names: Names) -> Iterator[Bug]:
    """A name is mistyped in one of its uses."""
    for n in place.nodes:
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and len(n.id) > 4:
            if len(re.findall(rf"\b{n.id}\b", place.text)) < 2:
                continue
            wrong = _slip(n.id, place)
            if wrong != n.id and wrong not in place.text:
                yield Bug(
                    place.splice(place.over(n, wrong)),
                    {"x": wrong, "y": n.id},
                    (
                        "NameError: name '{x}' is not defined",
                        "(there is|I see) a typo (in a name|somewhere)(, fix it|)",
                        "(fix|correct) the typo (in {x}|{x}|)( please|)",
                        "{x} (is a typo|is misspelled|does not exist)(, should be {y}|)",
                        "(undefined name|what is) {x}(?|)",
                    ),
                )


@bug
def mistyped_text(place: Place, names: Names) -> Iterator[Bug]:
    """A word of a text or comment is mistyped."""
    for i, line in enumerate(place.lines):
        comment = "#" in line and line.lstrip().startswith("#")
        text = re.search(r'(?:"[^"\\{]{8,}"|\'[^\'\\{]{8,}\')', line)
        if not comment and text is None:
            continue
        found = [
            m
            for m in re.finditer(r"\b[a-z]{5,}\b", line)
            if comment or (text and text.start() < m.start() < text.end())
        ]
        if not found or (not comment and text and " " not in text[0]):
            continue
        m = place.rng.choice(found)
        wrong = _slip(m[0], place)
        if wrong == m[0]:
            continue
        yield Bug(
            "\n".join(
                [
                    *place.lines[:i],
                    line[: m.start()] + wrong + line[m.end() :],
                    *place.lines[i + 1 :],
                ]
            ),
            {"x": wrong, "y": m[0]},
            (
                "(fix|correct) the (typo|spelling)(| please| mistake)",
                "typo(| in the comment| here)"
                if comment
                else "typo(| in the message| in the text| here)",
                "(there is|there's) a (typo|spelling mistake) (in the text|in there|here)",
                "{x} (is misspelled|is a typo|should be {y})",
                "it's spelled {y}(, not {x}|)",
            ),
        )


@bug
def comparison(place: Place, names: Names) -> Iterator[Bug]:
    """A comparison is off by the equal case or the wrong way round."""
    near = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}
    for n in place.nodes:
        if not isinstance(n, ast.Compare) or len(n.ops) != 1:
            continue
        a, b = place.source(n.left), place.source(n.comparators[0])
        if len(a) + len(b) > 50 or "\n" in a + b:
            continue
        words = {"a": a, "b": b}
        if pair := near.get(type(n.ops[0])):
            right, wrong = pair
            should = "should" if "=" in right else "should not"
            yield Bug(
                place.splice(place.over(n, f"{a} {wrong} {b}")),
                words,
                (
                    "off by one(| in the comparison| when {a} is {b})",
                    "wrong (result|answer) (when|if) {a} (equals|is exactly|is) {b}",
                    "{a} == {b} (is handled wrong|goes the wrong way|is wrong)",
                    "(the boundary|the edge case|the limit) is (wrong|off by one)",
                    "(when|if) {a} equals {b} it " + should + " (count|match|be true|apply)",
                    "{b} itself " + should + " (count|be included|match)",
                ),
            )
            flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[right]
            yield Bug(
                place.splice(place.over(n, f"{a} {flipped} {b}")),
                words,
                (
                    "the comparison (of {a} with {b} |)is (the wrong way round|reversed|backwards|inverted)",
                    "(should be|must be) (true|taken) (when|if) {a} is "
                    + ("smaller" if "<" in right else "larger")
                    + " than {b}",
                    "(<|>) is (the wrong way round|reversed)",
                ),
            )
        elif isinstance(n.ops[0], ast.Is | ast.IsNot) and b == "None":
            wrong = "is not" if isinstance(n.ops[0], ast.Is) else "is"
            yield Bug(
                place.splice(place.over(n, f"{a} {wrong} None")),
                words,
                (
                    "the (None check|check|condition|test)( for {a}|) is (inverted|the wrong way round|backwards|wrong)",
                    "(AttributeError|TypeError)( on None| because {a} is None|: 'NoneType' object)",
                    "(does the opposite|it behaves the wrong way) (when|if) {a} is None",
                    "(flip|invert|negate) the check of {a}",
                ),
            )
        elif isinstance(n.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
            right = {ast.Eq: "==", ast.NotEq: "!=", ast.In: "in", ast.NotIn: "not in"}[
                type(n.ops[0])
            ]
            wrong = {"==": "!=", "!=": "==", "in": "not in", "not in": "in"}[right]
            yield Bug(
                place.splice(place.over(n, f"{a} {wrong} {b}")),
                words,
                (
                    "the (check|condition|test|if)( with {b}|) is (inverted|the wrong way round|backwards)",
                    "(it |)does the opposite( of what it should|)",
                    "(flip|invert|negate) the (check|test|condition) (of|on|for) {a}",
                    "(should|must) (apply|happen|be taken) "
                    + ("when" if right in ("==", "in") else "unless")
                    + " {a} is "
                    + ("in " if "in" in right else "")
                    + "{b}",
                ),
            )


@bug
def and_or(place: Place, names: Names) -> Iterator[Bug]:
    """`and` and `or` are mixed up."""
    for n in place.nodes:
        if isinstance(n, ast.BoolOp) and len(n.values) == 2:
            a, b = (place.source(v) for v in n.values)
            if "\n" in place.source(n):
                continue
            word = "or" if isinstance(n.op, ast.And) else "and"
            both = word == "or"
            yield Bug(
                place.splice(place.over(n, f"{a} {word} {b}")),
                {"a": a, "b": b},
                (
                    (
                        "both conditions (must|should|have to) (hold|be true|be met)"
                        if both
                        else "(one of the conditions|either condition) (is enough|suffices|should do)"
                    ),
                    (
                        "(should only happen|only) if both (are true|hold)"
                        if both
                        else "(either|one) of them is enough"
                    ),
                    "(and|or) is (wrong|mixed up) (here|in the condition)",
                    "(wrong|mixed up) (boolean|logical) operator",
                    "`" + word + "` (is wrong|should be `" + ("and" if both else "or") + "`)",
                ),
            )


@bug
def lost_return(place: Place, names: Names) -> Iterator[Bug]:
    """The last return is lost, or stands in the loop."""
    last = place.function.body[-1]
    if isinstance(last, ast.Return) and last.value is not None:
        value = place.source(last.value)
        line = place.lines[last.lineno - 1]
        if isinstance(last.value, ast.Name) and len(place.function.body) > 2:
            yield Bug(
                "\n".join([*place.lines[: last.lineno - 1], *place.lines[last.end_lineno or 0 :]]),
                {"x": value, "f": place.function.name},
                (
                    "(it|{f}) (returns None|always returns None|returns nothing), (it |)should return {x}",
                    "(forgot|missing) (the return of|return) {x}",
                    "the {x} is never returned",
                    "(return|hand back) {x} at the end",
                ),
            )
        if isinstance(last.value, ast.Call | ast.BinOp) and "return " in line:
            yield Bug(
                "\n".join(
                    [
                        *place.lines[: last.lineno - 1],
                        line.replace("return ", "", 1),
                        *place.lines[last.lineno :],
                    ]
                ),
                {"f": place.function.name},
                (
                    "(it|{f}) (always |)(returns None|gives None|returns nothing)",
                    "(the return is missing|forgot to return|missing return|return is missing)( at the end|)",
                    "(the result|what it computes) is (thrown away|never returned|lost)",
                    "TypeError: 'NoneType' object is not (iterable|subscriptable) (in|at) the caller",
                ),
            )
        before = place.function.body[-2] if len(place.function.body) > 1 else None
        if (
            isinstance(before, ast.For | ast.While)
            and not before.orelse
            and last.lineno == last.end_lineno
        ):
            yield Bug(
                "\n".join(
                    [*place.lines[: last.lineno - 1], "    " + line, *place.lines[last.lineno :]]
                ),
                {"x": value},
                (
                    "(it |)(stops|returns|ends) (after|in) the first (iteration|round|one)",
                    "(only the first|just one) entry is (processed|handled|looked at)",
                    "the return (is in the loop|is indented too far|should be after the loop|belongs behind the loop)",
                    "(returns|stops) too early",
                ),
            )


@bug
def lost_await(place: Place, names: Names) -> Iterator[Bug]:
    """An `await` is missing."""
    for n in place.nodes:
        if isinstance(n, ast.Await):
            inner = place.source(n.value)
            f = place.source(n.value.func) if isinstance(n.value, ast.Call) else inner
            if "\n" not in inner and "(" not in f:
                yield Bug(
                    place.splice(place.over(n, inner)),
                    {"f": f.split(".")[-1]},
                    (
                        "RuntimeWarning: coroutine '{f}' was never awaited",
                        "(forgot to|must|need to) await {f}",
                        "(missing await|await is missing)(| before {f}| at {f})",
                        "(I get|it is|returns) a coroutine (instead of|, not) (a|the) (value|result)",
                    ),
                )


@bug
def lost_self(place: Place, names: Names) -> Iterator[Bug]:
    """`self.` is missing."""
    for n in place.nodes:
        if (
            isinstance(n, ast.Attribute)
            and isinstance(n.value, ast.Name)
            and n.value.id == "self"
            and n.attr not in place.names
        ):
            yield Bug(
                place.splice(place.over(n, n.attr)),
                {"x": n.attr},
                (
                    "NameError: name '{x}' is not defined",
                    "{x} (is an attribute|lives on self|belongs to the object|is on the instance)",
                    "(self is missing|missing self)( before {x}|)",
                    "(should be|use) self.{x}",
                ),
            )


@bug
def lost_call(place: Place, names: Names) -> Iterator[Bug]:
    """Parentheses, `.items()` or a conversion are missing."""
    for n in place.nodes:
        if (
            isinstance(n, ast.Call)
            and not n.args
            and not n.keywords
            and isinstance(n.func, ast.Attribute)
        ):
            f = n.func.attr
            inner = place.source(n.func)
            if "\n" in inner:
                continue
            if f == "items":
                yield Bug(
                    place.splice(place.over(n, place.source(n.func.value))),
                    {},
                    (
                        "ValueError: (too many|not enough) values to unpack( in the loop|)",
                        "(loop over|iterate over|it should use) the items(, not the keys|)",
                        ".items() is missing",
                    ),
                )
            else:
                yield Bug(
                    place.splice(place.over(n, inner)),
                    {"f": f},
                    (
                        "(parentheses|the call brackets) (are missing|missing)( after {f}|)",
                        "{f} is (never|not) called( here|)",
                        "(I get|it uses) the (method|bound method|function)( {f}|) (itself|instead of its result)",
                        "<bound method {f} of ...> (shows up|in the output)",
                    ),
                )
        if (
            isinstance(n, ast.Call)
            and isinstance(n.func, ast.Name)
            and len(n.args) == 1
            and not n.keywords
        ):
            inner = place.source(n.args[0])
            if "\n" in inner or isinstance(n.args[0], ast.GeneratorExp | ast.Starred):
                continue
            told = {
                "str": (
                    "TypeError: can only concatenate str to str",
                    "{x} (must|should) be (converted to|made|turned into) a string( first|)",
                    "(TypeError|crash) (when|if) {x} is no string",
                ),
                "int": (
                    "TypeError: '<' not supported between instances of 'str' and 'int'",
                    "{x} (is|comes as) a string(, make it an int| here|)",
                    "(convert|cast) {x} to (an |)int",
                ),
                "len": (
                    "TypeError: (comparing|adding) a list (with|and) a number",
                    "(compare|use|it should be) the (length|number) of {x}",
                    "{x} is a list, (its length|the length) is meant",
                ),
                "sorted": (
                    "the order (changes|is random|varies)( from run to run|)",
                    "(sort {x}|{x} should be sorted)( again|)",
                    "(no longer|not) sorted",
                ),
                "list": (
                    "{x} (must|should) be a (real |)list( here|)",
                    "(generators|views) (don't|do not) support (len|indexing)",
                    "(wrap|turn) {x} into a list",
                ),
            }.get(n.func.id)
            if told:
                yield Bug(place.splice(place.over(n, inner)), {"x": inner}, told)


@bug
def wrong_operator(place: Place, names: Names) -> Iterator[Bug]:
    """Plus and minus, min and max, append and extend, `=` and `+=` are mixed up."""
    for n in place.nodes:
        if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add | ast.Sub):
            a, b = place.source(n.left), place.source(n.right)
            if (
                isinstance(n.left, ast.Constant | ast.JoinedStr | ast.List | ast.BinOp)
                or len(a + b) > 50
                or "\n" in a + b
            ):
                continue
            if isinstance(n.right, ast.Constant) and not isinstance(n.right.value, int | float):
                continue
            plus = isinstance(n.op, ast.Add)
            yield Bug(
                place.splice(place.over(n, f"{a} {'-' if plus else '+'} {b}")),
                {"a": a, "b": b},
                (
                    (
                        "{b} (should|must) be added( to {a}|, not subtracted|)"
                        if plus
                        else "{b} (should|must) be subtracted( from {a}|, not added|)"
                    ),
                    "(wrong sign|the sign is wrong)(| of {b}| before {b})",
                    (
                        "(add|plus) {b}, (don't subtract|not minus)"
                        if plus
                        else "(subtract|minus) {b}, (don't add|not plus)"
                    ),
                ),
            )
        if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add):
            x, v = place.source(n.target), place.source(n.value)
            if "\n" not in v:
                yield Bug(
                    place.splice(place.over(n, f"{x} = {v}")),
                    {"x": x, "w": aloud(x)},
                    (
                        "{x} (only has|keeps|is) the last (value|one)(, should add up|)",
                        "{x} (is overwritten|gets overwritten|does not add up)( in every round| each time|)",
                        "(accumulate|add up|sum up) {x}",
                        "the {w} (is wrong|is too small), (it does not add up|only the last one counts)",
                    ),
                )
        if isinstance(n, ast.Call):
            f = place.source(n.func)
            owner, dot, short = f.rpartition(".")
            pair = {
                "min": "max",
                "max": "min",
                "append": "extend",
                "extend": "append",
                "any": "all",
                "all": "any",
                "startswith": "endswith",
                "endswith": "startswith",
                "lstrip": "rstrip",
                "rstrip": "lstrip",
                "lower": "upper",
                "upper": "lower",
                "ceil": "floor",
                "floor": "ceil",
            }.get(short)
            if pair is None or (short in ("min", "max", "any", "all") and owner) or "\n" in f:
                continue
            told = {
                "min": (
                    "(the smaller|the smallest|the minimum) (one |)is (meant|wanted)",
                    "(should|must) be the (smallest|minimum), not the (largest|maximum)",
                ),
                "max": (
                    "(the larger|the largest|the maximum) (one |)is (meant|wanted)",
                    "(should|must) be the (largest|maximum), not the (smallest|minimum)",
                ),
                "append": (
                    "(it |)should add (one entry|the whole thing) (as one|, not its parts)",
                    "(strings|texts) are (torn|split) into letters",
                    "TypeError: object is not iterable( at extend|)",
                ),
                "extend": (
                    "(a list of lists comes out|the result is nested|I get lists in the list)(, should be flat|)",
                    "(flatten|flat list|no nested lists)( please|)",
                ),
                "any": (
                    "one (of them |)(is enough|suffices)",
                    "(should be true if|true when) (any|at least one) (is|matches)",
                ),
                "all": (
                    "(all of them|every one) (must|should|has to) (hold|match|be true)",
                    "(should be true only if|only true when) (all|every one) match",
                ),
                "startswith": (
                    "(should|must) look at the (start|beginning)(, not the end|)",
                    "the (start|prefix) is meant",
                ),
                "endswith": (
                    "(should|must) look at the end(, not the start|)",
                    "the (end|suffix) is meant",
                ),
                "lstrip": (
                    "(strip|cut) (at |)the (left|start)(, not the right|)",
                    "wrong side is stripped",
                ),
                "rstrip": (
                    "(strip|cut) (at |)the (right|end)(, not the left|)",
                    "wrong side is stripped",
                ),
                "lower": (
                    "(should be|make it) lower case",
                    "lower case, not (upper case|capitals)",
                ),
                "upper": (
                    "(should be|make it) (upper case|capitals)",
                    "(upper case|capitals), not lower case",
                ),
                "ceil": ("round up(, not down|)", "(should|must) be rounded up"),
                "floor": ("round down(, not up|)", "(should|must) be rounded down"),
            }[short]
            yield Bug(
                place.splice(place.over(n.func, owner + dot + pair)),
                {"a": pair, "b": short},
                (
                    *told,
                    "(wrong function|not {a}|{a} is wrong), {b}( is meant| please|)",
                    "{b} (instead of|, not|rather than) {a}",
                ),
            )


@bug
def off_by_one(place: Place, names: Names) -> Iterator[Bug]:
    """An index, a range or a slice is off by one."""
    for n in place.nodes:
        if (
            isinstance(n, ast.Subscript)
            and isinstance(n.slice, ast.Constant)
            and isinstance(n.slice.value, int)
        ):
            x, k = place.source(n.value), n.slice.value
            if k in (0, 1) and "\n" not in x and len(x) < 30:
                order = ["first", "second"]
                yield Bug(
                    place.splice(place.over(n.slice, str(1 - k))),
                    {"x": x},
                    (
                        f"(the {order[k]}|{order[k]}) (one|element|entry) (of {{x}} |)is meant(, not the {order[1 - k]}|)",
                        f"(use|take) the {order[k]} (element|entry|one)( of {{x}}|)",
                        "(wrong|off-by-one) index( into {x}|)",
                        "(IndexError: list index out of range|off by one)( with {x}|)"
                        if k == 0
                        else "off by one( at {x}|)",
                    ),
                )
        if (
            isinstance(n, ast.UnaryOp)
            and isinstance(n.op, ast.USub)
            and isinstance(n.operand, ast.Constant)
            and n.operand.value == 1
        ):
            parent = next(
                (p for p in place.nodes if isinstance(p, ast.Subscript) and p.slice is n), None
            )
            if parent is not None:
                x = place.source(parent.value)
                yield Bug(
                    place.splice(place.over(n, "0")),
                    {"x": x},
                    (
                        "(the last|last) (one|element|entry) (of {x} |)(is meant|please|not the first)",
                        "(use|take) the last (element|one|entry)( of {x}|)",
                    ),
                )
        if isinstance(n, ast.Call) and place.source(n.func) == "range" and n.args:
            last = n.args[min(1, len(n.args) - 1)]
            text = place.source(last)
            if isinstance(last, ast.Name | ast.Call | ast.Attribute) and "\n" not in text:
                yield Bug(
                    place.splice(place.over(last, f"{text} - 1")),
                    {"x": text},
                    (
                        "(the last one|the last element|the last) is (missing|skipped|never reached|left out)",
                        "(stops|ends) one too early",
                        "off by one (in|at the end of) the (loop|range)",
                        "(it |)(misses|skips|forgets) the last (one|element|round)",
                    ),
                )
                yield Bug(
                    place.splice(place.over(last, f"{text} + 1")),
                    {"x": text},
                    (
                        "IndexError(: list index out of range| at the end of the loop| in the last round|)",
                        "(runs|goes|loops) one (too far|too many|past the end)",
                        "one (iteration|round) too many",
                    ),
                )


@bug
def lost_not(place: Place, names: Names) -> Iterator[Bug]:
    """A `not` is missing or too much, a bool is the wrong one."""
    for n in place.nodes:
        if (
            isinstance(n, ast.If)
            and n.lineno == n.test.end_lineno
            and not isinstance(n.test, ast.Compare | ast.BoolOp)
        ):
            text = place.source(n.test)
            inverted = isinstance(n.test, ast.UnaryOp) and isinstance(n.test.op, ast.Not)
            wrong = place.source(n.test.operand) if inverted else f"not {text}"  # type: ignore[attr-defined]
            x = wrong if inverted else text
            yield Bug(
                place.splice(place.over(n.test, wrong)),
                {"x": x},
                (
                    "the (check|condition|if)( of {x}| on {x}|) is (inverted|the wrong way round|backwards)",
                    "(should|must) (happen|apply) " + ("unless {x}" if inverted else "if {x}"),
                    "(does|it does) the opposite of what (it should|I expect)",
                    "(flip|invert|negate) the (condition|if|check)( of {x}|)",
                ),
            )
        if (
            isinstance(n, ast.Return)
            and isinstance(n.value, ast.Constant)
            and isinstance(n.value.value, bool)
        ):
            if sum(isinstance(m, ast.Return) for m in place.nodes) <= 2:
                right = n.value.value
                if (
                    place.text.count(f"return {right}") == 1
                    and f"return {not right}" not in place.text
                ):
                    yield Bug(
                        place.splice(place.over(n.value, str(not right))),
                        {"v": str(right)},
                        (
                            "(should|must) return {v}( here| there|)",
                            "(wrong|inverted) (bool|result)",
                            "return {v}(, not the opposite|)",
                        ),
                    )
