"""What is asked besides one edit of a snippet: two edits at once, stopped and continued answers,
redirects, corrections by the guard, nothing to do, requests that are beyond the model; and all of
them in a mix.
"""

from __future__ import annotations

import random
import textwrap

from midstream.guard.correction import Correction, CorrectionRequest
from models.training import instructions
from models.training.code import Code, Edit
from models.training.tasks import Example, attempt, instruct
from models.training.templates_repairs import (
    ALSO,
    BEYOND,
    BEYOND_NEW,
    BOTH,
    RATHER,
    SAFE_TWINS,
    WARNINGS,
)

NO_CHANGE_SHARE = 0.09
CONTINUE_SHARE = 0.04
REDIRECT_SHARE = 0.18
BOTH_SHARE = 0.05
GUARD_SHARE = 0.5
"""Of the security rewrites: how many are corrections by the guard while a line is written."""

_FIRST = (
    *("rename_local", "rename_parameter", "add_docstring", "guard_return", "add_parameter"),
    *("guard_raise", "replace_literal", "add_hint", "change_default", "add_first"),
    *("replace_name", "delete_statement", "add_decorator"),
)
"""Edits that a redirected answer began with."""
_NOTHING_THERE = {
    "remove_prints": "print",
    "remove_docstring": '"""',
    "remove_decorators": "@",
    "remove_else": "else",
    "remove_comments": "#",
    "remove_asserts": "assert",
    "print_log": "print",
}
"""Edits that have nothing to do where a text does not occur."""


_IDEMPOTENT_NAMES = (
    "rename_local rename_parameter rename_function rename_attribute replace_name replace_exception "
    "remove_parameter change_default add_decorator remove_decorator remove_decorators add_hint "
    "add_return_hint remove_hints set_variable change_return replace_docstring remove_docstring "
    "add_docstring remove_comments remove_prints remove_asserts delete_statement make_async "
    "make_sync make_required make_optional remove_argument change_argument remove_else fstring "
    "print_log add_parameter add_parameter_plain optional_union change_message guard_return "
    "guard_raise guard_plain replace_literal extract_constant delete_call"
)
_IDEMPOTENT = frozenset(_IDEMPOTENT_NAMES.split())
"""Edits that have nothing to do once they are done."""


def _around(code: Code, rng: random.Random) -> dict[str, str]:
    """Return words that a reason for an edit of a snippet may use."""
    nouns = [name for name in rng.sample(code.names, 6) if "_" not in name or rng.random() < 0.3]
    atoms = rng.sample(sorted(code.atoms), min(3, len(code.atoms)))
    return {instructions.NOUNS: " ".join(nouns), instructions.ATOMS: " ".join(atoms)}


_NAMED = {
    **dict.fromkeys(
        ("rename_local", "rename_parameter", "rename_function", "rename_attribute"), "old"
    ),
    **dict.fromkeys(("replace_name", "replace_exception", "change_text", "finish_rename"), "old"),
    **dict.fromkeys(("remove_parameter", "change_default", "set_variable", "add_hint"), "name"),
    **dict.fromkeys(("make_required", "make_optional", "delete_assignment"), "name"),
    **dict.fromkeys(("delete_call", "swap_arguments", "fix_await", "add_argument"), "call"),
    **dict.fromkeys(("change_argument", "remove_argument"), "name"),
    **dict.fromkeys(("replace_literal", "return_to_raise"), "old!"),
    **dict.fromkeys(("add_after", "add_before"), "place!"),
    "extract_constant": "literal!",
    "extract_variable": "expr!",
    "delete_statement": "statement!",
    "remove_decorator": "decorator!",
}
"""What of a snippet an edit names: without it there is nothing to do."""


def _unrelated(edit: Edit, code: Code) -> Edit | None:
    """The same request about something that is not there: nothing can be done."""
    key = _NAMED.get(edit.task)
    if key is None or key not in edit.values:
        return None
    values, rng = dict(edit.values), code.rng
    if edit.task == "finish_rename" and edit.values["new"] in code.atoms:
        return None
    name = code.new_name()
    if key == "old!" or key == "literal!":
        other = str(rng.randint(2, 999)) if rng.random() < 0.6 else f'"{name}"'
        if other in code.text:
            return None
        values[key] = other
    elif key.endswith("!"):
        call = f"{name}({rng.choice(code.names)})"
        values[key] = {"decorator!": f"@{name}"}.get(key, call)
    else:
        values[key] = name
    values.pop("dotted", None)
    values.pop("newdotted", None)
    values.pop("sig!", None)
    values.pop("described", None)
    return Edit(edit.task, values, "")


def beyond(code: Code, rng: random.Random, *, held_out: bool) -> str:
    """Write a request that no task covers, or one that has nothing to do here."""
    if not held_out and rng.random() < 0.3:
        absent = [
            t
            for t, text in _NOTHING_THERE.items()
            if text not in code.text and "''" not in code.text
        ]
        if absent:
            values = {"logger": rng.choice(["logger.info", "log.debug", "logging.info"])}
            return instructions.ask(rng.choice(absent), values, rng, held_out=False)
    name = code.fn.name if code.fn is not None else rng.choice(sorted(code.atoms) or ["it"])
    values = {"name": instructions.quoted(name, rng, name=True)} | _around(code, rng)
    if held_out:
        return instructions.write(rng.choice(BEYOND_NEW), values, rng)
    return instructions.write(rng.choice(BEYOND), values, rng, reason=0.2)


def examples(
    text: str,
    package: str,
    names: list[str],
    rng: random.Random,
    chosen: list[str],
    *,
    held_out: bool,
    plain: bool,
    most: int = 99,
) -> list[Example]:
    """Make examples of the chosen tasks from one snippet (with its indent).

    Args:
        text: the snippet as it stands in its file.
        package: where it is from.
        names: pool of new names.
        rng: source of randomness.
        chosen: tasks to try.
        held_out: whether to use the held-out template families.
        plain: whether to leave out no-change, continued, redirected and double examples (for
            evaluation).
        most: how many to make at most.
    """
    dedented = textwrap.dedent(text)
    first = next(row for row in text.split("\n") if row.strip())
    margin = first[: len(first) - len(first.lstrip())]

    def place(body: str) -> str:
        rows = body.split("\n")
        return "\n".join(margin + row if row.strip() else row for row in rows)

    if place(dedented) != text:
        margin = ""
    try:
        code = Code(dedented, rng, names, plain)
    except (SyntaxError, ValueError, RecursionError):
        return []
    made: list[Example] = []
    for task in chosen:
        if len(made) >= most:
            break
        if task == "beyond":
            asked = beyond(code, rng, held_out=held_out)
            made.append(Example(task, package, asked, text, "", None))
            continue
        edit = attempt(task, code)
        if edit is None:
            continue
        if not plain:
            edit.values.update(_around(code, rng))
        if task == "secure_call":
            edit.values["unsafe_name"], edit.values["safe"] = SAFE_TWINS[edit.values["about"]]
        elif task == "secure_secret":
            edit.values["secret"] = edit.values["unsafe!"].split(" =")[0]
        variant = None if plain else _variant(edit, code, names, rng)
        if variant is None:
            asked = instruct(edit, rng, held_out=held_out)
            variant = Example(task, package, asked, edit.source or dedented, "", edit.target)
        made.append(
            Example(
                task,
                package,
                variant.instruction,
                place(variant.region),
                place(variant.kept),
                None if variant.target is None else place(variant.target),
                variant.earlier,
            )
        )
    return made


def _variant(edit: Edit, code: Code, names: list[str], rng: random.Random) -> Example | None:
    """Turn an edit, by chance, into one that goes on from kept lines or asks for something else."""
    task, text = edit.task, code.text
    if task.startswith("secure_"):
        return _stopped(edit, rng) if rng.random() < GUARD_SHARE else None
    if edit.source is not None:
        return None
    chance = rng.random()
    if chance < NO_CHANGE_SHARE:
        if task in _IDEMPOTENT and rng.random() < 0.4:
            return Example(task, "", instruct(edit, rng, held_out=False), edit.target, "", None)
        absent = _unrelated(edit, code)
        if absent is None:
            return None
        return Example(task, "", instruct(absent, rng, held_out=False), text, "", None)
    chance -= NO_CHANGE_SHARE
    if chance < CONTINUE_SHARE:
        kept = _lines(edit.target, rng)
        return Example(task, "", instruct(edit, rng, held_out=False), text, kept, edit.target)
    chance -= CONTINUE_SHARE
    if chance < REDIRECT_SHARE:
        return redirected(edit, code, names, rng, also=rng.random() < 0.4)
    if chance < REDIRECT_SHARE + BOTH_SHARE:
        second = _second(edit, names, rng)
        if second is None:
            return None
        one = instruct(edit, rng, held_out=False, styled=False)
        two = instruct(second, rng, held_out=False, styled=False)
        asked = instructions.write(rng.choice(BOTH), {"one": one, "two": two}, rng)
        return Example(task, "", asked, text, "", second.target)
    return None


def _lines(target: str, rng: random.Random) -> str:
    """Return the first so many lines of an answer, at least one and not all."""
    rows = target.split("\n")[:-1]
    cut = rng.randrange(1, len(rows)) if len(rows) > 1 else 0
    return "\n".join(rows[:cut]) + ("\n" if cut else "")


def _second(edit: Edit, names: list[str], rng: random.Random) -> Edit | None:
    """Return another edit of what an edit leaves."""
    second = attempt(rng.choice(_FIRST), Code(edit.target, rng, names))
    return None if second is None or second.source is not None else second


def redirected(
    edit: Edit, code: Code, names: list[str], rng: random.Random, *, also: bool
) -> Example | None:
    """Make an example in which the edit is asked for while the answer to another one is written.

    Either the first answer is given up, and its lines stay only as far as they are written; or more
    is asked (`also`), and the rest follows both instructions.
    """
    text = code.text
    if also:
        second = _second(edit, names, rng)
        if second is None:
            return None
        before, after = edit.target.split("\n")[:-1], second.target.split("\n")[:-1]
        same = next((k for k, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
        if not same:
            return None
        kept = "\n".join(before[: rng.randint(1, same)]) + "\n"
        asked = instruct(second, rng, held_out=False, styled=False)
        asked = instructions.write(rng.choice(ALSO), {"ask": asked}, rng, styled=False)
        earlier = instruct(edit, rng, held_out=False)
        return Example(edit.task, "", asked, text, kept, second.target, (earlier,))
    other = attempt(rng.choice(_FIRST), code)
    if other is None or other.source is not None:
        return None
    merged = _merged(edit, other, text, rng)
    if merged is None:
        return None
    target, kept = merged
    asked = instruct(edit, rng, held_out=False, styled=False)
    if rng.random() < 0.2:
        return Example(edit.task, "", asked, text, kept, target)
    asked = instructions.write(rng.choice(RATHER), {"ask": asked}, rng, styled=False)
    earlier = instruct(other, rng, held_out=False)
    return Example(edit.task, "", asked, text, kept, target, (earlier,))


def _merged(edit: Edit, other: Edit, text: str, rng: random.Random) -> tuple[str, str] | None:
    """Return (rewrite, kept lines) of which the start follows one edit and the rest another."""
    rows, before = edit.target.split("\n")[:-1], other.target.split("\n")[:-1]
    source = text.split("\n")[:-1]
    if len(source) < 2:
        return None
    rest = len(source) - rng.randrange(1, len(source))
    if rest >= len(before) or rest >= len(rows):
        return None
    if len(rows) != len(source) and rows[-rest:] != source[-rest:]:
        return None
    if len(before) != len(source) and before[-rest:] != source[-rest:]:
        return None
    kept = before[: len(before) - rest]
    return "\n".join([*kept, *rows[len(rows) - rest :]]) + "\n", "\n".join(kept) + "\n"


def _stopped(edit: Edit, rng: random.Random) -> Example | None:
    """Make an example as the engine puts a correction by the guard: the unsafe line is in the
    region, the lines before it are kept, and the advice is the instruction.
    """
    assert edit.source is not None
    number = edit.source[: edit.source.index(edit.values["unsafe!"])].count("\n")
    kept = "".join(edit.source.splitlines(keepends=True)[:number])
    advice = WARNINGS[edit.values.get("about", edit.task)][2]
    asked = advice if rng.random() < 0.7 else instruct(edit, rng, held_out=False)
    return Example(edit.task, "", asked, edit.source, kept, edit.target)


def corrected(edit: Edit, code: Code, rng: random.Random) -> Example | None:
    """Make an example in which the guard has stopped a line that was asked for."""
    assert edit.source is not None
    bad = edit.values["unsafe!"]
    at = edit.source.index(bad)
    good = edit.target[at : edit.target.index("\n", at)]
    asked_edit = attempt(rng.choice(("add_first", "add_last", "add_before_return")), code)
    if asked_edit is None or asked_edit.target.count(asked_edit.values["statement!"]) != 1:
        return None
    target = asked_edit.target.replace(asked_edit.values["statement!"], good)
    asked_edit.values["statement!"] = bad
    asked = instruct(asked_edit, rng, held_out=False)
    message, rule, advice = WARNINGS[edit.values.get("about", edit.task)]
    number = target[: target.index(good)].count("\n")
    correction = CorrectionRequest(
        asked, Correction(number + rng.randint(1, 300), rule, message, advice)
    )
    kept, earlier = "", tuple[str, ...]()
    if rng.random() < 0.6 and number:
        kept = "\n".join(target.split("\n")[:number]) + "\n"
        earlier = (asked,) if rng.random() < 0.8 else ()
    said = correction.instruction
    return Example(edit.task, "", said, code.text, kept, target, earlier, correction)
