"""Everyday requests about loops, calls, logs and errors; see `everyday_kinds`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from everyday_kinds import Names, aloud, calls, fresh, wish
from goals import Place, Wish

# Loops.


_SKIPS: list[tuple[str, tuple[str, ...]]] = [
    (
        "if not {i}:\n    continue",
        (
            "(skip|ignore|leave out|drop) empty {ws}",
            "(pass over|don't bother with) {ws} that are (empty|falsy)",
            "empty {ws} (should|must) be (skipped|ignored)",
            "no empty {ws}",
        ),
    ),
    (
        "if {i} is None:\n    continue",
        (
            "(skip|ignore|leave out) (None|{ws} that are None)",
            "(some {ws}|a {i}) (can|may|might) be None(, skip those|)",
            "None {ws} (should|must) be (skipped|ignored)",
            "(crashes|fails) on None (in|among) the {ws}",
        ),
    ),
    (
        'if {i}.startswith("#"):\n    continue',
        (
            "(skip|ignore) (comments|comment lines|lines with #|{ws} starting with #)",
            "(comments|lines that start with #) (should|must) be (ignored|skipped)",
        ),
    ),
    (
        'if {i}.startswith("_"):\n    continue',
        (
            "(skip|ignore|leave out) (private|internal) {ws}",
            "(ignore|skip|no) {ws} (starting|that start) with an underscore",
        ),
    ),
    (
        'if {i}.startswith("."):\n    continue',
        (
            "(skip|ignore|leave out) hidden (files|{ws})",
            "(ignore|skip) {ws} (starting|that start) with a dot",
            "dotfiles (should|must) be (skipped|ignored)",
        ),
    ),
    (
        "if not {i}.strip():\n    continue",
        (
            "(skip|ignore|drop) blank (lines|{ws})",
            "(blank|whitespace-only) {ws} (should|must) be ignored",
        ),
    ),
    (
        "if {i} < 0:\n    continue",
        (
            "(skip|ignore) negative (numbers|{ws})",
            "only {ws} from 0 (up|upwards)",
            "negative {ws} (don't|do not) count",
        ),
    ),
    (
        "if {i} == 0:\n    continue",
        ("(skip|ignore|leave out) (zeros|{ws} that are 0)", "(0|zero) (doesn't|should not) count"),
    ),
    (
        "if {i} is None:\n    break",
        (
            "(stop|end|break) (at|with) the first None",
            "stop (the loop|) (when|as soon as) {i} is None",
        ),
    ),
    (
        "if not {i}:\n    break",
        (
            "(stop|end|break) at the first empty (one|{i})",
            "stop (the loop |)(when|as soon as) {i} is empty",
        ),
    ),
    (
        "if not isinstance({i}, str):\n    continue",
        (
            "(skip|ignore|leave out) (everything|{ws}|what) that (is|are) (not a string|no str)",
            "only (strings|str)(, skip the rest|)",
        ),
    ),
]


@wish("(skip|ignore) some")
def skip_more(place: Place, names: Names) -> Iterator[Wish]:
    """A loop passes over some entries."""
    for n in place.nodes:
        if isinstance(n, ast.For) and isinstance(n.target, ast.Name) and len(n.body) > 0:
            if n.body[0].lineno == n.lineno:
                continue
            i = n.target.id
            ws = aloud(i) + ("" if i.endswith("s") else "s")
            for code, wordings in _SKIPS:
                new = code.replace("{i}", i)
                if new.split("\n")[0] not in place.text:
                    yield Wish(place.before(n.body[0], new), {"i": i, "ws": ws}, wordings)
            if isinstance(n.iter, ast.Name | ast.Attribute | ast.Call) and not place.source(
                n.iter
            ).startswith(("enumerate", "sorted", "range", "zip", "reversed")):
                text = place.source(n.iter)
                x = text.split("(")[0]
                for code, wordings in (
                    (
                        f"sorted({text})",
                        (
                            "(go through|walk|process|visit|handle) (the |)(them|{ws}) in (sorted |alphabetical |)order",
                            "(the order of the loop is random|iterate in a fixed order)(, sort it|)",
                            "sorted {ws}( please|)",
                            "loop over sorted {ws}",
                        ),
                    ),
                    (
                        f"reversed({text})",
                        (
                            "(go through|walk|process|visit) (them|the {ws}) (backwards|in reverse|from the end)",
                            "(start at|begin with) the last {i}",
                            "loop in reverse",
                        ),
                    ),
                    (
                        f"list({text})",
                        (
                            "RuntimeError: dictionary changed size during iteration",
                            "(the {ws} change|it is changed) (while|during) (the loop|iterating)",
                            "(loop|iterate) over a copy( of it|)",
                            "set changed size during iteration",
                        ),
                    ),
                    (
                        f"{text}[1:]",
                        (
                            "(skip|leave out|ignore|without) the first ({i}|one)",
                            "(start|begin) (at|with) the second ({i}|one)",
                            "the first {i} is (the header|a header)(, skip it|)",
                        ),
                    ),
                    (
                        f"{text}[:-1]",
                        (
                            "(skip|leave out|ignore|without) the last ({i}|one)",
                            "all but the last ({i}|one)",
                        ),
                    ),
                ):
                    if code.endswith("]") and isinstance(n.iter, ast.Call):
                        continue
                    yield Wish(
                        place.splice(place.over(n.iter, code)), {"x": x, "i": i, "ws": ws}, wordings
                    )
        if isinstance(n, ast.While) and isinstance(n.test, ast.Constant) and n.test.value is True:
            count = str(place.rng.choice([3, 3, 5, 10]))
            line = place.lines[n.lineno - 1]
            new = line.replace("while True:", f"for _ in range({count}):").replace(
                "while 1:", f"for _ in range({count}):"
            )
            if new != line:
                yield Wish(
                    "\n".join([*place.lines[: n.lineno - 1], new, *place.lines[n.lineno :]]),
                    {"n": count},
                    (
                        "(stop|give up|end) after {n} (tries|attempts|rounds|times)",
                        "(don't|do not|never) (loop|retry|try|run) (for ever|forever|endlessly)(, {n} times at most|; {n} tries are enough)",
                        "{n} (tries|attempts) (at most|max|are enough|only)",
                        "(at most|no more than) {n} (attempts|tries|iterations)",
                        "endless loop(, limit it to|; stop after) {n} rounds",
                    ),
                )


# Calls, logs and errors.


@wish(
    "log (instead of|not|rather than) print(ing|)",
    "(use|via|with) (the logger|logging|logger.info)(, not print| instead of print|)",
    "(print|prints) -> (log|logger)",
    "(should|must|has to) (log|go to the log)(, not print|)",
    "no print(s|)(, log it|; use the logger| - log)",
    "(replace|turn|change) (the |)print(s|) (by|into|with) (logging|log calls|logger calls)",
)
def log_not_print(place: Place, names: Names) -> Iterator[Wish]:
    """Prints are logged."""
    logger = "logger"
    if found := re.search(
        r"\b(logger|log|logging|LOG|_logger|self\.log(?:ger)?)\.\w+\(", place.text
    ):
        logger = found[1]
    edits = [
        place.over(call.func, f"{logger}.info")
        for call, f in calls(place)
        if f == "print" and len(call.args) == 1 and not call.keywords
    ]
    if edits and len(edits) == sum(1 for _, f in calls(place) if f == "print"):
        yield Wish(place.splice(*edits), {})


_LEVELS = ["debug", "info", "warning", "error", "exception", "critical"]


@wish("(use|log) level {k}")
def log_level(place: Place, names: Names) -> Iterator[Wish]:
    """Logs change their level."""
    for call, f in calls(place):
        owner, _, level = f.rpartition(".")
        if level in _LEVELS and re.search(r"log", owner, re.I):
            for new in _LEVELS:
                if new != level:
                    yield Wish(
                        place.splice(place.over(call.func, f"{owner}.{new}")),
                        {"k": new, "a": level},
                        (
                            "(log|report) (it |this |)(as|at level|with level) {k}(, not {a}| instead of {a}|)",
                            "(that's|this is|it is) (only |just |)(a |an |){k}(, not {a}|, no {a})",
                            "{k} (rather than|instead of) {a}",
                            "{a} is (too loud|wrong|the wrong level) here, (use |){k}",
                        ),
                    )
            yield Wish(
                place.splice(place.over(call.func, f"{owner}.exception")),
                {},
                (
                    "(log|keep|include|I want) the (traceback|stack trace)( too|)",
                    "the log (should|must) (show|have|include) the traceback",
                ),
            )


@wish(
    "(also|additionally) (catch|handle) {e}",
    "(catch|handle) {e} (too|as well|also)",
    "{e} (is not caught|slips through|gets through|comes through)",
    "{e} (should|must) be (caught|handled) (too|as well|the same way)",
    "(it |)(dies|crashes|fails|blows up) with {e}(, treat it the same way|, same handling please)",
)
def catch_more(place: Place, names: Names) -> Iterator[Wish]:
    """A handler catches one more error."""
    errors = [
        "KeyError",
        "ValueError",
        "OSError",
        "TypeError",
        "AttributeError",
        "IndexError",
        "TimeoutError",
        "ConnectionError",
        "UnicodeDecodeError",
        "FileNotFoundError",
        "PermissionError",
        "json.JSONDecodeError",
    ]
    for n in place.nodes:
        if not isinstance(n, ast.ExceptHandler):
            continue
        e = place.rng.choice(errors)
        if n.type is not None and e not in place.text:
            old = place.source(n.type)
            if isinstance(n.type, ast.Tuple) and n.type.elts:
                last = n.type.elts[-1]
                yield Wish(place.splice(place.over(last, f"{place.source(last)}, {e}")), {"e": e})
            elif isinstance(n.type, ast.Name | ast.Attribute):
                if old not in ("Exception", "BaseException"):
                    yield Wish(place.splice(place.over(n.type, f"({old}, {e})")), {"e": e})
                yield Wish(
                    place.splice(place.over(n.type, e)),
                    {"e": e, "a": old},
                    (
                        "(only|just) (catch|handle) {e}( here|)",
                        "(catch|handle) {e} (only|instead of {a}|, not {a}|rather than {a})",
                        "{a} (catches too much|is too broad|is too wide)(, {e} is meant|; {e})",
                        "(it|this) (should|must) (only |)catch {e}",
                    ),
                )
        if n.body and not any(isinstance(s, ast.Raise) for s in ast.walk(n)):
            last = n.body[-1]
            if isinstance(last, ast.Expr) and last.lineno > n.lineno:
                indent = " " * last.col_offset
                end = last.end_lineno or 0
                yield Wish(
                    "\n".join([*place.lines[:end], f"{indent}raise", *place.lines[end:]]),
                    {},
                    (
                        "(re-raise|reraise) (it|the error|the exception|) (afterwards|after that|)",
                        "(don't|do not) swallow (it|the error|the exception)",
                        "(the error|it) (should|must) (still |)(reach|get to) the caller",
                        "callers (need to|should|must) (see|get) the (error|exception) too",
                    ),
                )
    for n in place.nodes:
        if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call):
            old = place.source(n.exc.func)
            e = place.rng.choice(
                [*errors[:7], "RuntimeError", "NotImplementedError", "LookupError"]
            )
            if e != old:
                yield Wish(
                    place.splice(place.over(n.exc.func, e)),
                    {"e": e, "a": old},
                    (
                        "(raise|throw|should be|make it|better) (a |an |){e}( instead|, not {a}|)",
                        "{a} (is the wrong error|is wrong|does not fit)( here|)(, {e}|; {e} is meant)",
                        "{e} (instead of|rather than) {a}",
                        "callers (catch|expect) {e}",
                    ),
                )
            if (
                len(n.exc.args) == 1
                and not n.exc.keywords
                and isinstance(n.exc.args[0], ast.Constant)
            ):
                node = n.exc.args[0]
                text = place.rng.choice(names.strings)
                yield Wish(
                    place.splice(place.over(node, f'"{text}"')),
                    {"t": text},
                    (
                        "the error (should|must) (say|read|be) ('{t}'|\"{t}\")",
                        "(error|message|error message|error text): {t}",
                        "(change|make) the error message (to|into|) ('{t}'|\"{t}\")",
                    ),
                )


@wish(
    "(pass|give|hand) {k}={v} to {f}",
    "(call|run) {f} with {k}={v}( too|)",
    "{f} (should|must|needs to) (get|be given|be called with|have) {k}={v}",
    "(add|missing) {k}={v} (in|to|at|for) (the |){f}( call|)",
    "{k} (should|must) be {v} (for|in|at) {f}",
)
def pass_argument(place: Place, names: Names) -> Iterator[Wish]:
    """A call gets an argument."""
    for call, f in calls(place):
        if (
            f in ("print", "len", "isinstance", "str", "int", "super", "range", "list")
            or len(f) > 30
            or "(" in f
            or "\n" in f
        ):
            continue
        short = f.split(".")[-1]
        own = [p.arg for p in place.parameters]
        k = fresh(place, names.variables)
        choices = ["None", "True", "False", "0", "1", "10", '"utf-8"', *own, *own]
        v = place.rng.choice(choices)
        if v in own:
            k = v
        if any(w.arg == k for w in call.keywords) or sum(1 for _, g in calls(place) if g == f) != 1:
            continue
        if p := place.add_argument(call, f"{k}={v}"):
            yield Wish(place.splice(p), {"f": short, "k": k, "v": v})
            if k == v:
                yield Wish(
                    place.splice(p),
                    {"f": short, "x": k},
                    (
                        "(pass|hand|forward|give) {x} (on |through |)to {f}",
                        "{f} (should|must|needs to) (get|know|receive) {x}( too|)",
                        "{x} (is not passed|gets lost|is not forwarded)( to {f}|)",
                        "{x} (is|seems) (ignored|unused)(, pass it to {f}|; {f} should get it)",
                    ),
                )


@wish(
    "(call|use|run) {y} (instead of|rather than|, not|in place of) {f}",
    "{f} (is gone|is deprecated|no longer exists|was renamed)(, use {y}|; it is {y} now|: {y})",
    "(replace|swap) {f} (by|with|for) {y}",
    "{f} -> {y}",
    "(should|must) be {y}, not {f}",
)
def other_call(place: Place, names: Names) -> Iterator[Wish]:
    """Another function is called."""
    for call, f in calls(place):
        if len(f) > 34 or "(" in f or "\n" in f or place.text.count(f) != 1:
            continue
        owner, dot, short = f.rpartition(".")
        y = fresh(place, names.functions)
        if len(short) > 2:
            yield Wish(place.splice(place.over(call.func, owner + dot + y)), {"f": short, "y": y})


@wish(
    "(remember|keep|cache|store) (the |){x} (in|as) self.{y}",
    "(store|save|put) {x} (on the object|on self|on the instance) as {y}",
    "self.{y} = {x} (too|at the start|first|)",
)
def keep_on_self(place: Place, names: Names) -> Iterator[Wish]:
    """An argument is kept."""
    if not re.search(r"\(self\b", place.text.split(":")[0]):
        return
    for p in place.parameters[:3]:
        y = place.rng.choice([p.arg, p.arg, "_" + p.arg, fresh(place, names.variables)])
        if f"self.{y}" not in place.text and (new := place.insert_first(f"self.{y} = {p.arg}")):
            yield Wish(new, {"x": p.arg, "y": y})


@wish(
    "(use|try|test with|check with|write) (an |)f(-| |)string(s|)( here|)",
    "(f-strings|an f-string) (please|are nicer|is easier to read)",
    "(no|get rid of|drop|old-style) (%|percent|format)( formatting|)(, use an f-string| -> f-string)",
)
def to_fstring(place: Place, names: Names) -> Iterator[Wish]:
    """A formatted text becomes an f-string."""
    for n in place.nodes:
        if (
            isinstance(n, ast.BinOp)
            and isinstance(n.op, ast.Mod)
            and isinstance(n.left, ast.Constant)
            and isinstance(n.left.value, str)
        ):
            text = place.source(n.left)
            values = n.right.elts if isinstance(n.right, ast.Tuple) else [n.right]
            parts = re.split(r"%[sd]", text)
            if (
                "%" in "".join(parts)
                or "{" in text
                or len(parts) != len(values) + 1
                or "\n" in text
            ):
                continue
            if isinstance(n.right, ast.Dict):
                continue
            sources = [place.source(v) for v in values]
            if text[0] not in "\"'" or any(text[0] in s or "\\" in s for s in sources):
                continue
            new = (
                "f"
                + parts[0]
                + "".join("{" + s + "}" + p for s, p in zip(sources, parts[1:], strict=True))
            )
            yield Wish(place.splice(place.over(n, new)), {})


@wish(
    "(use|make it|better) a set(, lookups in lists are slow| for the lookup| for lookups|)",
    "(lookups|membership tests) (in|on) a (list|tuple) (are|is) slow(, use a set|)",
    "(the |)(list|tuple) (here |)(should|could|might as well) be a set",
    "set instead of (list|tuple)",
)
def set_for_lookup(place: Place, names: Names) -> Iterator[Wish]:
    """A membership test uses a set."""
    for n in place.nodes:
        if (
            isinstance(n, ast.Compare)
            and len(n.ops) == 1
            and isinstance(n.ops[0], ast.In | ast.NotIn)
        ):
            right = n.comparators[0]
            if (
                isinstance(right, ast.List | ast.Tuple)
                and right.elts
                and all(isinstance(e, ast.Constant) for e in right.elts)
            ):
                inner = ", ".join(place.source(e) for e in right.elts)
                if "\n" not in place.source(right):
                    yield Wish(place.splice(place.over(right, "{" + inner + "}")), {})
    for n in place.nodes:
        if (
            isinstance(n, ast.Assign)
            and isinstance(n.targets[0], ast.Name)
            and place.source(n.value) == "[]"
        ):
            x = n.targets[0].id
            if (
                f"in {x}" in place.text
                and f"{x}.append(" in place.text
                and f"return {x}" not in place.text
            ):
                text = place.splice(place.over(n.value, "set()")).replace(
                    f"{x}.append(", f"{x}.add("
                )
                yield Wish(
                    text,
                    {"x": x},
                    (
                        "{x} (should|must|could) be a set",
                        "(use|make it) a set (for|for) {x}",
                        "(looking up|lookups) (things |)in {x} (is|are) slow",
                        "(slow|quadratic) (for|with) many entries" + "(, make {x} a set|)",
                    ),
                )


@wish(
    "keep the order",
    "(the order|order) (gets lost|is lost|should stay|must not change|should be kept|must be kept)",
    "(unique|no duplicates)(, but in order|, order kept)",
    "(preserve|don't lose|retain) the (original |)order",
    "(result|output) (order changes|is in a different order) (every time|on each run)",
)
def keep_order(place: Place, names: Names) -> Iterator[Wish]:
    """Duplicates go without loss of order."""
    for call, f in calls(place):
        if f == "list" and len(call.args) == 1 and isinstance(call.args[0], ast.Call):
            inner = call.args[0]
            if place.source(inner.func) == "set" and len(inner.args) == 1:
                yield Wish(place.splice(place.over(inner.func, "dict.fromkeys")), {})
        if (
            f == "set"
            and len(call.args) == 1
            and re.search(rf"return {re.escape(place.source(call))}$", place.text, re.M)
        ):
            yield Wish(
                place.splice(
                    place.over(call, f"list(dict.fromkeys({place.source(call.args[0])}))")
                ),
                {},
            )


@wish(
    "(return early|exit early|invert the if|invert the condition)( to avoid nesting|)",
    "(flatten|unnest|un-nest) (this|it|the if)",
    "(less|too much|reduce) (nesting|indentation)( please|)",
    "(use|make it|turn it into) a guard clause",
    "(turn|make) the (big |outer |)if (into |)an early return",
)
def guard_clause(place: Place, names: Names) -> Iterator[Wish]:
    """A last `if` becomes an early return."""
    last = place.function.body[-1]
    if (
        isinstance(last, ast.If)
        and not last.orelse
        and len(last.body) >= 2
        and last.body[0].lineno == (last.test.end_lineno or 0) + 1
        and last.test.lineno == last.test.end_lineno == last.lineno
    ):
        test = place.source(last.test)
        if isinstance(last.test, ast.UnaryOp) and isinstance(last.test.op, ast.Not):
            opposite = place.source(last.test.operand)
        elif isinstance(last.test, ast.Compare) and len(last.test.ops) == 1:
            op = last.test.ops[0]
            pair = {
                ast.Is: ("is", "is not"),
                ast.IsNot: ("is not", "is"),
                ast.In: (" in ", " not in "),
                ast.NotIn: (" not in ", " in "),
                ast.Eq: ("==", "!="),
                ast.NotEq: ("!=", "=="),
            }.get(type(op))
            if pair is None or test.count(pair[0]) != 1:
                return
            opposite = test.replace(*pair)
        elif isinstance(last.test, ast.BoolOp | ast.Compare):
            opposite = f"not ({test})"
        else:
            opposite = f"not {test}"
        indent = " " * last.col_offset
        body = place.lines[last.body[0].lineno - 1 : last.end_lineno]
        if any(row.strip() and not row.startswith(indent + "    ") for row in body):
            return
        lines = [
            *place.lines[: last.lineno - 1],
            f"{indent}if {opposite}:",
            f"{indent}    return",
            *(row[4:] if row.strip() else row for row in body),
            *place.lines[last.end_lineno or 0 :],
        ]
        yield Wish("\n".join(lines), {})


@wish(
    "(close the file|the file is never closed|file handle leaks|leaks a file handle)",
    "(use|open it in|with) a (with block|with statement|context manager)( for the file|)",
    "ResourceWarning: unclosed file",
    "(make sure|ensure) the file (is|gets) closed( even on errors| in any case|)",
    "the file (should|must) be closed (even|also) (if|when) (something|it) fails",
)
def with_block(place: Place, names: Names) -> Iterator[Wish]:
    """A file is opened in a with block."""
    for parent in place.nodes:
        block = getattr(parent, "body", None)
        if not isinstance(block, list):
            continue
        for k, n in enumerate(block):
            if (
                isinstance(n, ast.Assign)
                and isinstance(n.value, ast.Call)
                and place.source(n.value.func) in ("open", "io.open", "gzip.open", "codecs.open")
                and isinstance(n.targets[0], ast.Name)
                and n.lineno == n.end_lineno
                and k + 1 < len(block)
                and len(block) - k <= 6
            ):
                f = n.targets[0].id
                rest = block[k + 1 :]
                lines = list(place.lines)
                lines[n.lineno - 1] = " " * n.col_offset + f"with {place.source(n.value)} as {f}:"
                end = rest[-1].end_lineno or 0
                out = lines[: n.lineno]
                if '"""' in "\n".join(lines[n.lineno : end]):
                    continue
                out += [
                    "    " + row if row.strip() else row
                    for row in lines[n.lineno : end]
                    if row.strip() != f"{f}.close()"
                ]
                yield Wish("\n".join(out + lines[end:]), {"x": f})


@wish(
    "(new keys fail|KeyError the first time|it fails for new keys|KeyError for a new key)",
    "(start with an empty list|make an empty list|create the list) (for|for) (new|unknown) keys",
    "KeyError (when|if|because) {k} is not (in {x} yet|there yet)",
    "{x} (may|might) not have {k} yet",
)
def first_of_key(place: Place, names: Names) -> Iterator[Wish]:
    """A key's list starts by itself; plain look-ups get a default or a clear error."""
    for call, _ in calls(place):
        func = call.func
        if (
            isinstance(func, ast.Attribute)
            and func.attr in ("append", "add", "extend", "update")
            and isinstance(func.value, ast.Subscript)
        ):
            sub = func.value
            if isinstance(sub.slice, ast.Slice | ast.Tuple | ast.Constant | ast.UnaryOp):
                continue
            x, k = place.source(sub.value), place.source(sub.slice)
            empty = {"append": "[]", "extend": "[]", "add": "set()", "update": "{}"}[func.attr]
            yield Wish(
                place.splice(place.over(sub, f"{x}.setdefault({k}, {empty})")), {"x": x, "k": k}
            )
    for n in place.nodes:
        if (
            isinstance(n, ast.Subscript)
            and isinstance(n.ctx, ast.Load)
            and isinstance(n.value, ast.Name | ast.Attribute)
            and isinstance(n.slice, ast.Name)
            and not re.search(
                r"^(i|j|k|n|idx|index|pos|\w*type\w*|List|Dict|Optional|Union)$",
                place.source(n.slice),
            )
            and re.search(
                r"dict|map|table|cache|by_|lookup|config|settings|options|registry|index|s$",
                place.source(n.value),
            )
        ):
            x, k = place.source(n.value), place.source(n.slice)
            v = place.rng.choice(["None", "0", "[]", '""'])
            text = f"{x}.get({k})" if v == "None" else f"{x}.get({k}, {v})"
            yield Wish(
                place.splice(place.over(n, text)),
                {"x": x, "k": k, "v": v},
                (
                    "(use|take|return|give) {v} (for|for) (an |)unknown {k}(s|)",
                    "{v} (if|when) {k} is not in {x}",
                    "(no|avoid the|prevent the) KeyError (for) {k}( is missing| is unknown|)"
                    + "(, {v} instead|; use {v})",
                    "unknown {k} (should|must) (give|be|mean) {v}",
                ),
            )


@wish(
    "(remove|delete|drop|get rid of) the (comment|comments)( please|)",
    "(no|needless|useless) comment(s|)( here|)",
)
def drop_things(place: Place, names: Names) -> Iterator[Wish]:
    """Comments, docstrings, logs and single calls go."""
    lines = place.lines
    comments = [i for i, row in enumerate(lines) if row.lstrip().startswith("#")]
    if comments and '"""' not in place.text and "'''" not in place.text:
        yield Wish("\n".join(r for i, r in enumerate(lines) if i not in comments), {})
    for parent in place.nodes:
        block = getattr(parent, "body", None)
        if not isinstance(block, list) or len(block) < 2:
            continue
        for n in block:
            if (
                isinstance(n, ast.Expr)
                and isinstance(n.value, ast.Call)
                and n.lineno == n.end_lineno
            ):
                f = place.source(n.value.func)
                short = f.split(".")[-1]
                if sum(1 for _, g in calls(place) if g.endswith(short)) != 1 or "(" in f:
                    continue
                new = "\n".join([*lines[: n.lineno - 1], *lines[n.lineno :]])
                if re.search(r"log", f, re.I):
                    yield Wish(
                        new,
                        {},
                        (
                            "(remove|drop|delete|no) (the |)log(ging|) (here|)",
                            "(this|it) need not be logged",
                            "too much logging",
                        ),
                    )
                else:
                    yield Wish(
                        new,
                        {"f": short},
                        (
                            "(drop|remove|delete|get rid of|no need for) the {f} (call|line)",
                            "(don't|do not|no need to|it should not|stop) call {f}( here|)",
                            "{f} (is not needed|is unnecessary|is superfluous|should not be called)( here| any more|)",
                        ),
                    )


@wish(
    "(wait|sleep|pause) {n} (seconds|s|sec) (first|before it starts|at the start)",
    "(start|begin) with a (pause|sleep) of {n} seconds",
)
def first_line(place: Place, names: Names) -> Iterator[Wish]:
    """Something happens first."""
    rng = place.rng
    n = str(rng.choice([1, 2, 3, 5, 10, 30, 60]))
    if new := place.insert_first(f"time.sleep({n})"):
        yield Wish(new, {"n": n})
    for p in place.parameters[:2]:
        if new := place.insert_first(f'logger.debug("{p.arg}: %s", {p.arg})'):
            yield Wish(
                new,
                {"x": p.arg},
                (
                    "(log|debug-log) (the value of |){x}( first| at the start|)",
                    "I want to see {x} in the (log|debug log)",
                    "debug log for {x}",
                ),
            )
        if new := place.insert_first(f"print({p.arg})"):
            yield Wish(
                new,
                {"x": p.arg},
                ("print {x}( first| at the start|)", "show me {x}( on stdout|, just print it)"),
            )
        if new := place.insert_first(f"assert {p.arg} is not None"):
            yield Wish(
                new,
                {"x": p.arg},
                (
                    "assert (that |){x} is (not None|given|there)",
                    "{x} can't be None here, assert it",
                ),
            )
    call = f"{fresh(place, names.functions)}()"
    if new := place.insert_first(call):
        yield Wish(
            new,
            {"y": call},
            (
                "(call|run|do) {y} (first|before anything else|at the start)",
                "(start|begin) (with|by calling) {y}",
                "{y} (should|must|has to) (run|happen|come) first",
            ),
        )
    if new := place.insert_first(
        f'warnings.warn("{place.function.name} is deprecated", DeprecationWarning, stacklevel=2)'
    ):
        yield Wish(
            new,
            {"f": place.function.name},
            (
                "(deprecate|mark as deprecated) (this|{f}|it)",
                "(warn|tell) callers that {f} is deprecated",
                "{f} is deprecated, (warn about it|emit a warning)",
            ),
        )
    if new := place.insert_first("raise NotImplementedError"):
        yield Wish(
            new,
            {},
            (
                "(not implemented yet|this isn't implemented)(, say so|, raise|)",
                "raise NotImplementedError (first|at the start)",
            ),
        )
