"""Everyday requests about signatures, names, values and texts; see `everyday_kinds`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from everyday_kinds import TYPES, Names, aloud, calls, fresh, texts, wish
from goals import Place, Wish

# Signatures and names.


@wish(
    "(default|the default) (for|of|value of) {x} (should be|is now|must be|->|to) {v}",
    "{x} (should default|defaults|must default) to {v}",
    "(make|let) {x} (default to|be) {v} (by default|unless given|)",
    "(change|set|switch) (the default of |the default for |default ){x} to {v}",
    "{x}={v} (by default|as default|unless told otherwise)( please|)",
    "(use|take) {v} as (the |)default (for|of) {x}",
)
def change_default(place: Place, names: Names) -> Iterator[Wish]:
    """A default is changed."""
    a = place.function.args
    every = [*a.posonlyargs, *a.args]
    rng = place.rng
    for arg, default in zip(every[len(every) - len(a.defaults) :], a.defaults, strict=True):
        if not isinstance(default, ast.Constant):
            continue
        old, value = place.source(default), default.value
        if isinstance(value, bool):
            v = str(not value)
            yield Wish(
                place.splice(place.over(default, v)),
                {"x": arg.arg, "w": aloud(arg.arg)},
                (
                    "{x} (should be|must be|is) "
                    + ("(on|enabled)" if v == "True" else "(off|disabled|opt-in)")
                    + " by default",
                    "(flip|invert|negate) the default of {x}",
                    "(turn|switch) {w} " + ("on" if v == "True" else "off") + " by default",
                    "{x}=" + v + " (by default|should be the default)",
                ),
            )
        elif isinstance(value, int | float):
            v = str(
                rng.choice(
                    [0, 1, 2, 3, 5, 8, 10, 15, 20, 30, 60, 100, 120, 256, 500, 1000, 4096, 0.5]
                )
            )
            if v != old:
                yield Wish(place.splice(place.over(default, v)), {"x": arg.arg, "v": v})
        elif value is None:
            v = rng.choice(["0", "1", "10", "()", '""', "True", "False", '"utf-8"', '"."', "60"])
            yield Wish(place.splice(place.over(default, v)), {"x": arg.arg, "v": v})
        elif isinstance(value, str) and old[0] in "\"'" and "\\" not in old:
            v = f"{old[0]}{rng.choice([rng.choice(names.variables), rng.choice(names.strings)])}{old[0]}"
            yield Wish(place.splice(place.over(default, v)), {"x": arg.arg, "v": v})


@wish(
    "(add|give it|take|accept|it needs) (a |an |)(parameter|argument|option|keyword) {y} (with default |defaulting to |, default |=){v}",
    "(new|extra|another|optional) (parameter|argument|option) {y}={v}( please|)",
    "(let|allow) callers (to |)pass {y}(, default|, defaults to|. default:) {v}",
    "(it should|should|must) (take|accept) (an optional |a |){y}(, {v} by default|={v})",
    "(callers want|we want|I need) (to pass |){y}={v}( as argument|)",
)
def new_parameter(place: Place, names: Names) -> Iterator[Wish]:
    """A parameter is added."""
    y = fresh(place, names.variables)
    v = place.rng.choice(["None", "None", "False", "True", "0", "1", "10", '""', "()"])
    if p := place.add_parameter(f"{y}={v}"):
        yield Wish(place.splice(p), {"y": y, "v": v, "w": aloud(y)})
        if v == "None":
            yield Wish(
                place.splice(p),
                {"y": y, "w": aloud(y)},
                (
                    "(add|take|accept) an optional {y}( parameter| argument|)",
                    "optional {y}( parameter| argument|) please",
                    "(let|allow) (me|callers) (to |)(pass|give) (a|an|) {y}",
                ),
            )
        if v == "False":
            yield Wish(
                place.splice(p),
                {"y": y, "w": aloud(y)},
                (
                    "(add|introduce|take) (a |an |)(flag|switch|boolean) {y}(, off by default|, default off|)",
                    "{y} (flag|switch), off by default",
                ),
            )


@wish(
    "(call it|rename it to|better name:|should be called|name it) {y}",
    "(rename|change the name of) (the function|this function|this|it) to {y}",
    "{f} (should|must) be (called|named) {y}",
    "{f} -> {y}",
    "{f} (is a bad name|says nothing|is misleading)(, {y} is better|; call it {y}|, use {y})",
    "the function('s name should be| is now called| should have the name) {y}",
)
def rename_function(place: Place, names: Names) -> Iterator[Wish]:
    """The function is renamed."""
    f = place.function.name
    if f.startswith("__") or len(re.findall(rf"\b{f}\b", place.text)) != 1:
        return
    y = fresh(place, names.functions)
    new = re.sub(rf"\b{f}\b", y, place.text, count=1)
    yield Wish(new, {"f": f, "y": y})
    if not f.startswith("_"):
        yield Wish(
            re.sub(rf"\b{f}\b", "_" + f, place.text, count=1),
            {"f": f},
            (
                "make (it|this|the function) private",
                "(this|it|{f}) is (internal|private)( only|), (prefix it with an underscore|mark it as such|rename accordingly)",
                "(nobody|no one) (outside|else) (should|may|must) call (this|{f})(, make it private|)",
                "{f} (should|must) be private",
            ),
        )
    else:
        yield Wish(
            re.sub(rf"\b{f}\b", f.lstrip("_"), place.text, count=1),
            {"f": f},
            (
                "make (it|this|the function) public",
                "(this|{f}) (should|may) be (public|used from outside)",
                "drop the (leading |)underscore (from|of) (the name|{f})",
            ),
        )


@wish(
    "(rename|change) {x} to {y}",
    "(call|name) {x} {y}( instead|| from now on)",
    "{x} (should|must|ought to) be (called|named) {y}",
    "{y} (is a better name for|instead of|rather than) {x}",
    "{x} -> {y}",
    "{x} is (a bad|a misleading|no good) name(, make it {y}|; {y}|, use {y})",
    "use the name {y} for {x}",
    "(don't|do not) call it {x}, call it {y}",
)
def rename_variable(place: Place, names: Names) -> Iterator[Wish]:
    """A variable or parameter is renamed everywhere."""
    local = {n.id for n in place.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    local |= {p.arg for p in place.parameters}
    attributes = {n.attr for n in place.nodes if isinstance(n, ast.Attribute)}
    attributes |= {n.arg for n in place.nodes if isinstance(n, ast.keyword) and n.arg}
    for x in sorted(local - attributes):
        if len(x) < 2 or len(re.findall(rf"\b{x}\b", place.text)) < 2:
            continue
        if any(x in s for _, _, s in texts(place)):
            continue
        y = fresh(place, names.variables)
        yield Wish(re.sub(rf"\b{x}\b", y, place.text), {"x": x, "y": y})


@wish(
    "(annotate|type|mark) {x} as {k}",
    "{x} is (a|an) {k}(, say so in the signature|, add the type|, annotate it)",
    "(add|put) (a type hint|the type|the annotation) {k} (for|to|on) {x}",
    "type hint for {x}(: |, ){k}",
    "{x}: {k} (please|in the signature)",
)
def annotate(place: Place, names: Names) -> Iterator[Wish]:
    """A parameter or the result gets a type."""
    rng = place.rng
    kinds = [
        *TYPES,
        "list[str]",
        "dict[str, int]",
        "Path",
        "str | None",
        "int | None",
        "Callable",
        "Iterable[str]",
    ]
    defaults = {id(d) for d in place.function.args.defaults}
    for p in place.parameters[:4]:
        if p.annotation is None:
            k = rng.choice(kinds)
            line = place.lines[p.lineno - 1]
            end = p.end_col_offset or 0
            rest = line[end:]
            if rest.startswith("=") and defaults:
                new = f"{line[:end]}: {k} = {rest[1:]}"
            elif re.match(r"\s*[,)]|$", rest):
                new = f"{line[:end]}: {k}{rest}"
            else:
                continue
            yield Wish(
                "\n".join([*place.lines[: p.lineno - 1], new, *place.lines[p.lineno :]]),
                {"x": p.arg, "k": k},
            )
    header = next((i for i, line in enumerate(place.lines) if line.rstrip().endswith("):")), None)
    if (
        place.function.returns is None
        and header is not None
        and header + 1 < place.function.body[0].lineno
    ):
        k = rng.choice([*kinds, "None", "None"])
        lines = list(place.lines)
        lines[header] = lines[header].rstrip()[:-1] + f" -> {k}:"
        yield Wish(
            "\n".join(lines),
            {"k": k},
            (
                "(it|the function|this) returns {k}(, say so|, annotate it|)",
                "(annotate|type|declare) the (return type|result|return value) as {k}",
                "return type {k}( please|)",
                "(add|missing) -> {k}",
            ),
        )


# Values and texts.


@wish(
    "(use|take|make it) {b} (instead of|rather than|not) {a}",
    "{a} (should|must|has to) be {b}",
    "(change|replace|turn) (the |){a} (to|into) {b}",
    "{b}, not {a}",
    "{a} (is wrong|is too much|does not fit)(, use {b}|, {b} please|; {b})",
    "{a} -> {b}",
)
def other_number(place: Place, names: Names) -> Iterator[Wish]:
    """A number becomes another."""
    rng = place.rng
    for n in place.nodes:
        if (
            isinstance(n, ast.Constant)
            and isinstance(n.value, int | float)
            and not isinstance(n.value, bool)
            and len(re.findall(rf"(?<![\w.]){re.escape(place.source(n))}(?![\w.])", place.text))
            == 1
        ):
            a = place.source(n)
            b = str(
                rng.choice(
                    [
                        0,
                        1,
                        2,
                        3,
                        4,
                        5,
                        7,
                        8,
                        10,
                        12,
                        16,
                        20,
                        24,
                        30,
                        50,
                        60,
                        64,
                        100,
                        128,
                        300,
                        512,
                        1024,
                        3600,
                        0.1,
                        0.5,
                        2.5,
                    ]
                )
            )
            if a == b:
                continue
            yield Wish(place.splice(place.over(n, b)), {"a": a, "b": b})
            parent = next(
                (
                    p
                    for p in place.nodes
                    if (isinstance(p, ast.keyword) and p.value is n and p.arg)
                    or (
                        isinstance(p, ast.Assign)
                        and p.value is n
                        and isinstance(p.targets[0], ast.Name)
                    )
                ),
                None,
            )
            if parent is not None and isinstance(n.value, int) and n.value > 1:
                x = (
                    parent.arg
                    if isinstance(parent, ast.keyword)
                    else place.source(parent.targets[0])
                )  # type: ignore[attr-defined]
                words = {"x": str(x), "w": aloud(str(x)), "b": b}
                yield Wish(
                    place.splice(place.over(n, b)),
                    words,
                    (
                        "(set|change|put) (the {w}|{x}) to {b}",
                        "{x} (should|must|has to) be {b}",
                        (
                            "(raise|increase|bump)"
                            if float(b) > n.value
                            else "(lower|reduce|decrease)"
                        )
                        + " (the {w}|{x}) to {b}",
                        "a {w} of {b} (please|is right|would be better)",
                    ),
                )
                yield Wish(
                    place.splice(place.over(n, str(n.value * 2))),
                    words,
                    (
                        "double (the {w}|{x})",
                        "twice the {w}( please|)",
                        "(the {w}|{x}) should be twice as (big|large|high)",
                    ),
                )
                if n.value % 2 == 0:
                    yield Wish(
                        place.splice(place.over(n, str(n.value // 2))),
                        words,
                        ("halve (the {w}|{x})", "half the {w}( please|)", "cut {x} in half"),
                    )


@wish(
    "(say|write|print) '{b}' (instead of|rather than|not) '{a}'",
    "'{a}' (should|must|has to) (be|read|say) '{b}'",
    "(change|replace) (the text|the string|) '{a}' (to|->) '{b}'",
    '(use|put|write) "{b}" (in place of|instead of|where it says) "{a}"',
    '"{a}" -> "{b}"',
    "the (text|message|string|wording) should be '{b}'(, not '{a}'|)",
    "(reword|rephrase) (it|the message|the text|)(:| to|) {b}",
)
def other_text(place: Place, names: Names) -> Iterator[Wish]:
    """A text becomes another."""
    for node, quote, text in texts(place):
        if re.fullmatch(r"[\w ,.:;!-]{3,50}", text):
            b = (
                place.rng.choice(names.strings)
                if " " in text
                else place.rng.choice(names.variables)
            )
            if place.text.count(f"{quote}{text}{quote}") == 1:
                yield Wish(
                    place.splice(place.over(node, f"{quote}{b}{quote}")), {"a": text, "b": b}
                )
            if " " in text and text[0].islower():
                big = text[0].upper() + text[1:]
                yield Wish(
                    place.splice(place.over(node, quote + big + quote)),
                    {"a": text},
                    (
                        "(start|begin) the (message|text|string) with a capital( letter|)",
                        "capitali(s|z)e the (message|text|first letter of the message)",
                    ),
                )
            if " " in text and text[-1].isalpha():
                yield Wish(
                    place.splice(place.over(node, quote + text + "." + quote)),
                    {"a": text},
                    (
                        "(end|finish) the (message|sentence|text) with a (full stop|period|dot)",
                        "(the message lacks|there is no|add a|missing) (full stop|period) (at the end|) of the message",
                    ),
                )


@wish(
    "(also|additionally) (accept|allow|support|match|take) '{b}'",
    "'{b}' (should|must) (work|match|count|be accepted|be fine) (too|as well|also)",
    "(treat|handle) '{b}' (like|the same as|just like) '{a}'",
    "'{b}' (is the same as|means the same as|is another word for) '{a}'",
    "'{a}' or '{b}', (both are fine|either will do)",
    '(accept|allow) "{b}" (as well as|next to|besides) "{a}"',
)
def also_accept(place: Place, names: Names) -> Iterator[Wish]:
    """A comparison accepts one more text."""
    for n in place.nodes:
        if (
            isinstance(n, ast.Compare)
            and len(n.ops) == 1
            and isinstance(n.comparators[0], ast.Constant)
            and isinstance(n.comparators[0].value, str)
            and isinstance(n.ops[0], ast.Eq | ast.NotEq)
        ):
            a, left = place.source(n.comparators[0]), place.source(n.left)
            if len(a) < 3 or a[0] not in "\"'" or "\\" in a:
                continue
            b = place.rng.choice(names.variables)
            word = "in" if isinstance(n.ops[0], ast.Eq) else "not in"
            yield Wish(
                place.splice(place.over(n, f"{left} {word} ({a}, {a[0]}{b}{a[0]})")),
                {"a": a[1:-1], "b": b},
            )
    for call, f in calls(place):
        if f.endswith((".endswith", ".startswith")) and len(call.args) == 1:
            node = call.args[0]
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                a = place.source(node)
                if len(a) < 3 or a[0] not in "\"'" or "\\" in a:
                    continue
                b = place.rng.choice(
                    [
                        ".yml",
                        ".txt",
                        ".json",
                        ".csv",
                        ".jpeg",
                        "_",
                        "#",
                        "http",
                        "//",
                        place.rng.choice(names.variables),
                    ]
                )
                yield Wish(
                    place.splice(place.over(node, f"({a}, {a[0]}{b}{a[0]})")),
                    {"a": a[1:-1], "b": b},
                )
    for n in place.nodes:
        if (
            isinstance(n, ast.Compare)
            and len(n.ops) == 1
            and isinstance(n.ops[0], ast.In | ast.NotIn)
            and isinstance(n.comparators[0], ast.Tuple | ast.List | ast.Set)
            and n.comparators[0].elts
            and all(
                isinstance(e, ast.Constant) and isinstance(e.value, str)
                for e in n.comparators[0].elts
            )
        ):
            last = n.comparators[0].elts[-1]
            a = place.source(last)
            if a[0] in "\"'" and len(a) > 2:
                b = place.rng.choice(names.variables)
                yield Wish(
                    place.splice(place.over(last, f"{a}, {a[0]}{b}{a[0]}")), {"a": a[1:-1], "b": b}
                )


@wish(
    "(use|with|it is) https(, not http|| please)",
    "(http is insecure|no plain http|http -> https)",
    "the link (should|must) be https",
)
def small_texts(place: Place, names: Names) -> Iterator[Wish]:
    """File modes, patterns, links, separators."""
    for node, quote, text in texts(place):
        if text.startswith("http://"):
            yield Wish(place.splice(place.over(node, quote + "https" + text[4:] + quote)), {})
    for call, f in calls(place):
        if f == "open" and len(call.args) > 1 and isinstance(call.args[1], ast.Constant):
            mode = call.args[1].value
            if not isinstance(mode, str):
                continue

            def made(new: str, *wordings: str, node: ast.expr = call.args[1]) -> Wish:
                quote = place.source(node)[0]
                return Wish(place.splice(place.over(node, quote + new + quote)), {}, wordings)

            if "w" in mode:
                yield made(
                    mode.replace("w", "a"),
                    "(append|add) (to the file|at the end) (instead of overwriting|)(| it)",
                    "(don't|do not) (overwrite|truncate) the file(, append|; append)",
                    "(keep what is in|keep the old content of) the file",
                    "(the second run|every call) (wipes|overwrites) the file, it should append",
                )
                yield made(
                    mode.replace("w", "x"),
                    "(fail|raise|error) (if|when) the file (exists|is there|already exists)",
                    "never overwrite (an existing|a) file",
                )
            if mode in ("r", "w"):
                yield made(
                    mode + "b",
                    "(open|treat) it (in binary mode|as binary)",
                    "(bytes|binary mode)(, not text| please|)",
                    "it's a binary file",
                )
        if f.endswith((".split", ".join")) or (
            isinstance(call.func, ast.Attribute) and call.func.attr == "join"
        ):
            owner = call.func
            node = None
            if (
                isinstance(owner, ast.Attribute)
                and owner.attr == "join"
                and isinstance(owner.value, ast.Constant)
            ):
                node = owner.value
            elif (
                call.args
                and isinstance(call.args[0], ast.Constant)
                and isinstance(call.args[0].value, str)
            ):
                node = call.args[0]
            if node is None or not isinstance(node.value, str) or len(node.value) > 2:
                continue
            name, text = place.rng.choice(
                [
                    ("commas", ","),
                    ("semicolons", ";"),
                    ("tabs", "\\t"),
                    ("colons", ":"),
                    ("pipes", "|"),
                    ("newlines", "\\n"),
                    ("dashes", "-"),
                    ("slashes", "/"),
                    ("dots", "."),
                    ("spaces", " "),
                ]
            )
            quote = place.source(node)[0]
            if quote not in "\"'" or place.source(node)[1:-1] == text:
                continue
            joins = isinstance(owner, ast.Attribute) and owner.attr == "join"
            wordings = (
                (
                    "(separate|join|connect|glue) (them|the parts|) (by|with|using) {w}",
                    "{w} (between them|as separators|in between)",
                    "{w} instead",
                )
                if joins
                else (
                    "(split|separate|cut) (it |)(at|on|by) {w}",
                    "the (fields|parts) are separated by {w}",
                    "{w} (separate|are between) the (parts|fields)",
                )
            )
            yield Wish(place.splice(place.over(node, quote + text + quote)), {"w": name}, wordings)
        if f.endswith(".split") and len(call.args) == 1 and not call.keywords:
            if p := place.add_argument(call, "1"):
                yield Wish(
                    place.splice(p),
                    {},
                    (
                        "(split|cut) (only |)at the first (one|separator)( only|)",
                        "(split|cut) (it |)(just |only |)once",
                        "only (the first separator counts|two parts at most)",
                        "ValueError: too many values to unpack (when|if) there (are|is) more than one separator",
                    ),
                )
        if f.endswith(".glob"):
            node = call.func
            yield Wish(
                place.splice(place.over(node, f[: -len("glob")] + "rglob")),
                {},
                (
                    "(search|look in|include|descend into) (subfolders|subdirectories)( too|)",
                    "(recursively|recurse)( please|)",
                    "(files in subfolders|nested files) are (missing|not found)",
                ),
            )
