"""Everyday requests about what a function returns and what it takes; see `everyday_kinds`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from everyday_kinds import TYPES, Names, aloud, atom, one_return, wish
from goals import Place, Wish

# Return values.


@wish(
    "(only|just|give me|return|keep) the first {n}( ones|| please|)",
    "(at most|no more than|up to) {n} (results|of them|entries)",
    "(cap|limit) (it|the result|the list) (at|to) {n}",
    "{n} (are enough|is enough|max)",
    "(cut|truncate) (it|the result) after {n}",
    "{n} results (max|at most|tops)",
    "first {n} only",
)
def first_few(place: Place, names: Names) -> Iterator[Wish]:
    """A result list is cut."""
    value = one_return(place)
    if isinstance(value, ast.Name) and re.search(r"s$|list|result|out", value.id):
        n = str(place.rng.choice([2, 3, 5, 8, 10, 20, 50, 100]))
        yield Wish(place.splice(place.over(value, f"{value.id}[:{n}]")), {"n": n})
        yield Wish(
            place.splice(place.over(value, f"{value.id}[-{n}:]")),
            {"n": n},
            (
                "(only|just|return|keep) the last {n}( ones|| please)",
                "the {n} most recent (ones|entries|)",
                "last {n} only",
                "(I only need|give me) the final {n}",
            ),
        )


@wish(
    "(sort|order) (them|the result|it) by {f}( please||, ascending)",
    "sorted by {f}( please|)",
    "(should|must) come (out|back) (sorted|ordered) by {f}",
    "by {f}, (lowest|smallest) first",
    "{f} decides the order",
)
def sort_by(place: Place, names: Names) -> Iterator[Wish]:
    """A result list is sorted by an attribute or key."""
    value = one_return(place)
    if not isinstance(value, ast.Name) or not re.search(r"s$|list|result|out", value.id):
        return
    v = value.id
    f = place.rng.choice(
        ["date", "name", "size", "created", "priority", "age", "score", "title", "length"]
        + [place.rng.choice(names.variables)] * 4
    )
    yield Wish(place.splice(place.over(value, f"sorted({v}, key=lambda item: item.{f})")), {"f": f})
    yield Wish(
        place.splice(place.over(value, f"sorted({v}, key=lambda item: item.{f}, reverse=True)")),
        {"f": f},
        (
            "(sort|order) (them |it |the result |)by {f} (descending|desc|in descending order)",
            "sort by {f}, (highest|newest|largest|latest) first",
            "descending by {f}( please|)",
            "(highest|biggest|latest) {f} (first|on top|at the top)",
        ),
    )
    yield Wish(
        place.splice(place.over(value, f'sorted({v}, key=lambda item: item["{f}"])')),
        {"f": f},
        ("(sort|order) (them|the dicts) by (the|their) key {f}", 'sort on item["{f}"]'),
    )


@wish(
    "(sort|order) (the result|it|them|{x})(| please| before returning|first)",
    "(should|must) (be|come back) sorted",
    "(alphabetical|sorted) order( please|)",
    "the order is random(, sort it| every time|)",
    "deterministic order please",
    "in order please",
)
def sort_result(place: Place, names: Names) -> Iterator[Wish]:
    """A result is sorted."""
    value = one_return(place)
    if isinstance(value, ast.Name) and re.search(r"s$|list|names|keys|out", value.id):
        yield Wish(place.splice(place.over(value, f"sorted({value.id})")), {"x": value.id})
        yield Wish(
            place.splice(place.over(value, f"sorted({value.id}, reverse=True)")),
            {"x": value.id},
            (
                "(newest|largest|highest|biggest|latest) first",
                "(sort|order) {x} (descending|in reverse|backwards|from high to low)",
                "return {x} sorted in (descending|reverse) order",
                "(sorted|sort) (descending|desc)( please|)",
            ),
        )
        yield Wish(
            place.splice(place.over(value, f"{value.id}[::-1]")),
            {"x": value.id},
            (
                "(in |)reverse(d|) order( please|)",
                "(reverse|flip) (the list|the result|{x})",
                "return {x} (reversed|backwards|the other way round)",
                "last (one|entry) first",
            ),
        )


_CONVERSIONS = {
    "tuple": "a tuple",
    "list": "a list",
    "set": "a set",
    "str": "a string",
    "int": "an int",
    "float": "a float",
    "bool": "a bool",
    "frozenset": "a frozenset",
}


@wish(
    "return {w}( instead||, not what it is now| please)",
    "(should|must|has to) (return|be|give|hand back) {w}",
    "(make|turn) the result (into |){w}",
    "callers (expect|need|want) {w}",
    "convert (the result|it) to {w}",
    "I (need|want) {w} (back|as result|here)",
    "{w} please",
)
def convert_result(place: Place, names: Names) -> Iterator[Wish]:
    """A result is converted."""
    value = one_return(place)
    if value is None or isinstance(value, ast.Constant | ast.GeneratorExp):
        return
    text = place.source(value)
    for name, words in _CONVERSIONS.items():
        if not text.startswith(name + "("):
            yield Wish(place.splice(place.over(value, f"{name}({text})")), {"w": words})


@wish(
    "(should be|return it in|give it back in|make it|result in|convert to) lower( |-|)case",
    "lowercase (the result|it)( please|)",
)
def text_result(place: Place, names: Names) -> Iterator[Wish]:
    """A text that is returned is changed."""
    value = one_return(place)
    if value is None or not re.search(
        r"name|text|str|path|url|line|title|label|join|format|key|word|msg|message", place.text
    ):
        return
    if isinstance(value, ast.Constant | ast.List | ast.Dict | ast.Compare | ast.BoolOp):
        return
    inner = atom(place, value)

    def made(tail: str, *wordings: str) -> Wish:
        return Wish(place.splice(place.over(value, inner + tail)), {}, wordings)

    yield Wish(place.splice(place.over(value, inner + ".lower()")), {})
    yield made(
        ".upper()",
        "(should be|return it in|make it|convert to) (upper case|uppercase|capitals)",
        "uppercase (the result|it)( please|)",
    )
    yield made(
        ".strip()",
        "(strip|trim) the (result|return value)( please|)",
        "no (whitespace|blanks|spaces) around the result( please|)",
        "the result (has|comes with) stray (whitespace|spaces|newlines) (|around it)",
    )
    yield made(
        '.rstrip("/")',
        "(without|no|drop the|remove the|strip the) trailing slash(es|)",
        "(it|the result) (should|must) not end (with|in) a slash",
    )
    yield made(
        '.rstrip("\\n")',
        "(without|no|drop the|strip the) trailing newline",
        "(there is|it has) a newline at the end, (remove it|it should not)",
    )
    yield made(
        '.replace(" ", "_")',
        "(replace|swap) (spaces|blanks) (by|with|for) underscores",
        "underscores instead of (spaces|blanks)",
    )
    yield made(
        '.replace("\\\\", "/")',
        "forward slashes (please|only|on windows too)",
        "(no backslashes|backslashes should become slashes)",
    )
    yield made(
        ".title()", "(title case|Title Case) (please|it|for the result)", "capitalize every word"
    )
    yield made(
        ".splitlines()", "(split it into|return the) lines", "a list of lines(, not one text|)"
    )


@wish(
    "(never|not) (below|less than|under) {n}",
    "(at least|minimum|min) {n}( please|)",
    "(the result|it) (must|should|can) (never|not) (be|get|go|drop) (below|under) {n}",
    "(clamp|clip) (it|the result) at {n} from below",
    "lower (bound|limit) (of|is) {n}",
)
def clamp_result(place: Place, names: Names) -> Iterator[Wish]:
    """A number that is returned is kept in its bounds."""
    value = one_return(place)
    if not isinstance(value, ast.BinOp | ast.Name | ast.Attribute) or isinstance(
        getattr(value, "op", None), ast.Mod
    ):
        return
    if not re.search(
        r"count|size|len|num|total|sum|index|width|time|rate|ratio|-|\*|/", place.text
    ):
        return
    text, rng = place.source(value), place.rng
    low, high = rng.choice(["0", "0", "1", "0.0"]), str(rng.choice([1, 10, 60, 100, 255, 1000]))
    yield Wish(place.splice(place.over(value, f"max({low}, {text})")), {"n": low})
    if low == "0":
        yield Wish(
            place.splice(place.over(value, f"max(0, {text})")),
            {},
            (
                "(must|should|can) (never|not) be negative",
                "(no|avoid|prevent) negative (results|values|numbers)",
                "negative (results|values) make no sense, (0|zero) then",
                "(stop|floor|clamp) at (0|zero)",
            ),
        )
    yield Wish(
        place.splice(place.over(value, f"min({text}, {high})")),
        {"n": high},
        (
            "(cap|limit|clip) (it|the result) (at|to) {n}",
            "(never|not) (above|more than|over) {n}",
            "(at most|maximum|max) {n}",
            "(must|should) (not|never) exceed {n}",
        ),
    )
    yield Wish(
        place.splice(place.over(value, f"max({low}, min({text}, {high}))")),
        {"a": low, "b": high},
        (
            "(clamp|clip|keep|limit) (it|the result|) (to|between) {a} and {b}",
            "(must|should) (stay|be|lie) between {a} and {b}",
            "range is {a} to {b}, enforce it",
        ),
    )


@wish(
    "(also|additionally) (return|give back|hand out) {x}",
    "return {x} (too|as well|also|along with the result|next to it)",
    "callers need {x} (too|as well)",
    "give back both, the result and {x}",
)
def return_more(place: Place, names: Names) -> Iterator[Wish]:
    """A second value is returned."""
    value = one_return(place)
    if isinstance(value, ast.Name | ast.Call | ast.Attribute):
        local = sorted(
            {n.id for n in place.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        )
        for name in local[:3]:
            if name != place.source(value):
                yield Wish(
                    place.splice(place.over(value, f"{place.source(value)}, {name}")), {"x": name}
                )


# Checks at the start.


@wish(
    "raise {e} (if|when|for) {x} is (empty|missing or empty|falsy)",
    "{x} must not be empty(, {e} otherwise|; raise {e})",
    "{e} on empty {x}( please|)",
    "(reject|refuse|do not accept) (an |)empty {x}(| with {e}| with a {e})",
    "(complain|fail|blow up) with {e} (if|when) (there is no {w}|{x} is empty)",
    "an empty {w} is an error(|: {e}|, raise {e})",
)
def refuse_empty(place: Place, names: Names) -> Iterator[Wish]:
    """An empty argument is refused."""
    for p in place.parameters[:3]:
        w = aloud(p.arg)
        code = f'if not {p.arg}:\n    raise ValueError("{p.arg} must not be empty")'
        if (new := place.insert_first(code)) and f"if not {p.arg}" not in place.text:
            yield Wish(new, {"x": p.arg, "w": w, "e": "ValueError"})
        if new := place.insert_first(
            f'if {p.arg} is None:\n    raise ValueError("{p.arg} is required")'
        ):
            if f"{p.arg} is None" not in place.text:
                yield Wish(
                    new,
                    {"x": p.arg, "w": w},
                    (
                        "{x} is required(, raise ValueError if it is None|)",
                        "(raise|ValueError) (if|when) {x} is None",
                        "(reject|refuse) {x}=None",
                        "None is not allowed for {x}(|, ValueError)",
                        "fail early (if|when) (no {w} is given|{x} is None)",
                    ),
                )


@wish(
    "raise TypeError (if|when|unless) {x} (isn't|is not) (a|an) {k}",
    "{x} (must|has to) be (a|an) {k}(, TypeError otherwise|, else TypeError|)",
    "check that {x} is (a|an) {k}",
    "(only accept|accept only|allow only) {k} for {x}",
    "(reject|refuse) {x} (if it is not|unless it's|that is no) {k}",
    "TypeError for anything but {k} as {x}",
)
def check_type(place: Place, names: Names) -> Iterator[Wish]:
    """The type of an argument is checked."""
    for p in place.parameters[:3]:
        k = place.rng.choice(TYPES)
        article = "an" if k == "int" else "a"
        code = (
            f"if not isinstance({p.arg}, {k}):\n"
            f'    raise TypeError("{p.arg} must be {article} {k}")'
        )
        if new := place.insert_first(code):
            yield Wish(new, {"x": p.arg, "k": k})


@wish(
    "(return|give|give back|hand back) {v} (if|when|as soon as|in case) {x} is {k}",
    "{v} (if|when|for) {x} (==|is|equals) {k}",
    "(if|when) {x} is {k}( then|,|) (return|give|just return|it should return|the result is) {v}",
    "{x} == {k} (should|must) (give|return|yield) {v}",
    "(early exit|return early|bail out|shortcut) with {v} (if|when) {x} is {k}",
)
def early_exit(place: Place, names: Names) -> Iterator[Wish]:
    """A special case returns at once."""
    rng = place.rng
    for p in place.parameters[:3]:
        v = rng.choice(["None", "0", "1", "False", "True", "[]", "{}", '""', "-1", "self"])
        if v == "self" and not re.search(r"\(self\b", place.lines[0]):
            v = "None"
        k = rng.choice(["0", "1", "-1", "10", "100"])
        # `{}` in words would be taken for a field of the sentence: words are put in last.
        if new := place.insert_first(f"if {p.arg} == {k}:\n    return {v}"):
            yield Wish(new, {"x": p.arg, "k": k, "v": v})
        if new := place.insert_first(f"if not {p.arg}:\n    return {v}"):
            yield Wish(
                new,
                {"x": p.arg, "v": v, "w": aloud(p.arg)},
                (
                    "(return|give|give back) {v} (if|when) (there is no {w}|{x} is empty|not {x})",
                    "{v} for (empty|missing) {x}",
                    "(nothing|no {w}) (given|to do)(?|,) (then|return) {v}",
                    "return {v} (early|right away|at once|straight away) (if|when) {x} is (empty|falsy)",
                    "(don't|do not) (crash|fail|die|choke) (if|when) {x} is empty, (return|give) {v}",
                    "without {w} the (result|answer) (is|should be) {v}",
                ),
            )
        if new := place.insert_first(f"if {p.arg} is None:\n    return {v}"):
            yield Wish(
                new,
                {"x": p.arg, "v": v, "w": aloud(p.arg)},
                (
                    "(handle|allow|accept|tolerate|cope with) None for {x}(,|:|, then|) (return|give) {v}",
                    "{x} (can|may|might) be None(,|;) (then|in that case) (return|give) {v}",
                    "(return|give|hand back) {v} (if|when|where) {x} is None",
                    "(crashes|fails|blows up|breaks) (when|if) {x} is None(,|;|.) (should return|return|want) {v}",
                    "None as {x} should (give|return) {v}",
                ),
            )
        b = rng.choice(["0", "1", "0", "10", "100"])
        if new := place.insert_first(
            f'if {p.arg} < {b}:\n    raise ValueError("{p.arg} must be at least {b}")'
        ):
            yield Wish(
                new,
                {"x": p.arg, "b": b},
                (
                    "{x} (must|has to|needs to) be at least {b}",
                    "(reject|refuse|ValueError for) {x} (<|below|under|less than|smaller than) {b}",
                    "raise ValueError (if|when) {x} (<|is below|is less than) {b}",
                ),
            )
        e = rng.choice(["ValueError", "TypeError", "RuntimeError", "KeyError", "IndexError"])
        text = rng.choice(names.strings)
        if new := place.insert_first(f'if not {p.arg}:\n    raise {e}("{text}")'):
            yield Wish(
                new,
                {"x": p.arg, "e": e, "t": text, "w": aloud(p.arg)},
                (
                    'raise {e}("{t}") (if|when|without) (|any) {x}',
                    "(if|when) {x} is empty raise {e} (with the message|saying|with) ('{t}'|\"{t}\")",
                    "(error|{e}) '{t}' (when|if) there is no {w}",
                ),
            )


@wish(
    "(use|take|default to|fall back to|assume) {v} (if|when) {x} is None",
    "(if|when|where) {x} is None (use|take|it should be) {v}",
    "{x} (defaults|should default|falls back) to {v} (when|if) (it is |)None",
    "None for {x} (means|should mean|is the same as) {v}",
    "no {w} given(?|,| ->) (use|take) {v}",
)
def fall_back(place: Place, names: Names) -> Iterator[Wish]:
    """None stands for a default."""
    for p in place.parameters[:3]:
        v = place.rng.choice(
            [
                "0",
                "1",
                "10",
                "[]",
                "()",
                '""',
                "True",
                "False",
                '"utf-8"',
                "time.time()",
                "os.getcwd()",
            ]
        )
        if f"if {p.arg} is None" in place.text:
            continue
        if new := place.insert_first(f"if {p.arg} is None:\n    {p.arg} = {v}"):
            yield Wish(new, {"x": p.arg, "v": v, "w": aloud(p.arg)})


@wish(
    "(strip|trim) {x}( first| before using it|)",
    "(ignore|drop|remove) (whitespace|blanks|spaces) around {x}",
    "{x} (may|can|might) have (spaces|blanks|whitespace) around it",
)
def normalise_argument(place: Place, names: Names) -> Iterator[Wish]:
    """An argument is normalised first."""
    for p in place.parameters[:3]:
        x, w = p.arg, aloud(p.arg)

        def made(code: str, *wordings: str, x: str = x, w: str = w) -> Iterator[Wish]:
            new = place.insert_first(code)
            if new and code not in place.text:
                yield Wish(new, {"x": x, "w": w}, wordings)

        if re.search(r"name|key|text|word|url|path|line|title|label|value|str|mode|kind", x):
            if (
                new := place.insert_first(f"{x} = {x}.strip()")
            ) and f"{x}.strip()" not in place.text:
                yield Wish(new, {"x": x, "w": w})
            yield from made(
                f"{x} = {x}.lower()",
                "(ignore|disregard|don't care about) (the |)case of {x}",
                "{x} (in|with) (capitals|upper case|any case) should (work|be fine) (too|as well|)",
                "(lower|lowercase) {x} (first|)",
                "(the case|upper or lower case) of {w} (must|should) not matter",
            )
            yield from made(
                f"{x} = str({x})",
                "(convert|turn|cast) {x} (to|into) (a |)(str|string)( first|)",
                "accept (numbers|anything) as {x}(, use str of it|)",
                "{x} (may|can) be (a number|a Path|an int)( too|)(, make it a string|)",
            )
        yield from made(
            f"{x} = list({x})",
            "{x} (may|can|might) be (a generator|an iterator|any iterable)",
            "(materialise|convert|turn) {x} (into|to) a list (first|)",
            "{x} (is|gets) (read|iterated|walked) twice, (so |)(generators fail|make it a list)",
            "work on a copy of {x}(, as a list|)",
        )
        yield from made(
            f"{x} = int({x})",
            "{x} (comes in|arrives|is given) as (a |)(string|text)(, make it an int|)",
            "(convert|cast) {x} to (an |)int( first|)",
        )
        yield from made(
            f"if isinstance({x}, str):\n    {x} = [{x}]",
            "(accept|allow|support) (a single|one) (string|str) (for|as) {x}( too|)",
            "{x} (may|can) be (a single string|one string|a str) (too|as well|)",
            "a (lone|single) string as {x} should (count as|be treated as|mean) (a list of one|one entry)",
        )
