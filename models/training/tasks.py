"""All task kinds with their share of the training mix, and the way from a snippet to a written
example.
"""

from __future__ import annotations

import ast
import random
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from models.training import (
    instructions,
    tasks_body,
    tasks_bugs,
    tasks_calls,
    tasks_flow,
    tasks_format,
    tasks_names,
    tasks_safe,
    tasks_text,
)
from models.training.code import Code, Edit
from models.training.templates_repairs import (
    ALSO,
    BEYOND,
    BEYOND_NEW,
    BOTH,
    CORRECTION,
    RATHER,
    SAFE_TWINS,
    WARNINGS,
)
from models.training.templates_words import VALUE_WORDS

Task = Callable[[Code], Edit | None]

SHARES: dict[str, float] = {
    "rename_local": 14,
    "rename_parameter": 9,
    "rename_function": 4,
    "rename_attribute": 4,
    "replace_name": 5,
    "replace_exception": 3,
    "add_parameter": 8,
    "add_parameter_plain": 4,
    "remove_parameter": 6,
    "change_default": 6,
    "add_decorator": 4,
    "remove_decorator": 3,
    "remove_decorators": 1,
    "guard_return": 6,
    "guard_plain": 2,
    "guard_raise": 5,
    "add_hint": 5,
    "add_return_hint": 4,
    "remove_hints": 3,
    "extract_constant": 4,
    "extract_variable": 3,
    "fstring": 9,
    "invert_if": 1,
    "remove_else": 4,
    "change_comparison": 3,
    "replace_literal": 5,
    "set_variable": 4,
    "change_return": 3,
    "add_docstring": 4,
    "replace_docstring": 2,
    "remove_docstring": 2,
    "print_log": 4,
    "wrap_try": 6,
    "wrap_with": 2,
    "add_first": 4,
    "add_last": 5,
    "add_before_return": 5,
    "add_comment": 1.5,
    "remove_comments": 1.5,
    "remove_prints": 4,
    "remove_asserts": 1,
    "delete_statement": 4,
    "delete_assignment": 1.5,
    "make_async": 1.5,
    "make_sync": 1,
    "add_argument": 3,
    "optional_union": 1,
    "secure_sql": 3,
    "secure_shell": 3,
    "secure_call": 2.5,
    "secure_verify": 1.5,
    "secure_secret": 2,
    "fix_return": 2,
    "fix_await": 1,
    "fix_self": 2,
    "swap_arguments": 2,
    "fix_none": 1.5,
    "fix_mutable_default": 2,
    "fix_bare_except": 1,
    "flip_bool_operator": 1,
    "finish_rename": 3,
    "add_after": 4,
    "add_before": 3,
    "change_message": 2,
    "change_argument": 3,
    "remove_argument": 2,
    "add_element": 1.5,
    "make_required": 1.5,
    "make_optional": 1.5,
    "add_hints": 3,
    "change_text": 2,
    "delete_call": 2.5,
    "delete_line": 1.5,
    "return_to_raise": 2.5,
    "guard_continue": 2,
    "negate_condition": 1.5,
    "beyond": 4,
}
"""Relative share of each task; a task that fits few snippets is tried on more of them."""

_MODULES = (
    tasks_names,
    tasks_text,
    tasks_format,
    tasks_calls,
    tasks_flow,
    tasks_body,
    tasks_safe,
    tasks_bugs,
)
TASKS: dict[str, Task] = {
    name: next(getattr(module, name) for module in _MODULES if hasattr(module, name))
    for name in SHARES
    if name != "beyond"
}

NO_CHANGE_SHARE = 0.04
CONTINUE_SHARE = 0.05
REDIRECT_SHARE = 0.06
BOTH_SHARE = 0.03
GUARD_SHARE = 0.5
"""Of the security rewrites: how many are corrections by the guard while a line is written."""

_FIRST = (
    *("rename_local", "rename_parameter", "add_docstring", "guard_return", "add_parameter"),
    *("guard_raise", "replace_literal", "add_hint", "change_default", "add_first"),
    *("replace_name", "delete_statement", "add_decorator"),
)
"""Edits that a redirected answer began with."""
_SPOKEN = (
    *("guard_return", "change_return", "change_default", "add_parameter", "set_variable"),
    *("change_argument", "return_to_raise"),
)
"""Edits whose values people say in words, as "an empty list"."""
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


@dataclass(frozen=True, slots=True)
class Example:
    """One written example: what a user would send, and the right answer.

    `kept` is the part that an earlier turn wrote already, under the instructions `earlier`;
    `target` is the whole region, kept lines included. None: the right answer is to give up.
    """

    task: str
    package: str
    instruction: str
    region: str
    kept: str
    target: str | None
    earlier: tuple[str, ...] = ()


def attempt(task: str, code: Code) -> Edit | None:
    """Try a task on a snippet; None where it does not fit or a side does not parse."""
    try:
        edit = TASKS[task](code)
        if edit is None or edit.target == (edit.source or code.text):
            return None
        ast.parse(edit.target)
        if edit.source is not None:
            ast.parse(edit.source)
    except (ValueError, SyntaxError, IndexError, AssertionError, RecursionError):
        return None
    return edit


def _texts(edit: Edit, rng: random.Random) -> dict[str, str]:
    ready: dict[str, str] = {}
    for key, value in edit.values.items():
        words = VALUE_WORDS.get(value, []) if key in ("value!", "old!", "new!") else []
        if words and edit.task in _SPOKEN and rng.random() < 0.2:
            ready[key[:-1]] = rng.choice(words)
        elif key.endswith("!"):
            ready[key[:-1]] = instructions.quoted(value, rng, name=False)
        elif key == "text":
            quote = '"' if rng.random() < 0.7 or "'" in value else rng.choice("'`")
            ready[key] = quote + value + quote
        elif key == "cond":
            ready[key] = value.replace("{x}", instructions.quoted(edit.values["x"], rng, name=True))
        elif key.startswith("type_") or key in (
            "raw",
            "type",
            "action",
            "x",
            "line",
            "about",
            "described",
            "which",
            "safe",
            "unsafe_name",
        ):
            ready[key] = value
        else:
            ready[key] = instructions.quoted(value, rng, name=True)
    return ready


def instruct(edit: Edit, rng: random.Random, *, held_out: bool, styled: bool = True) -> str:
    """Write an instruction for an edit, from the families of one side of the split."""
    return instructions.ask(edit.task, _texts(edit, rng), rng, held_out=held_out, styled=styled)


def _unrelated(edit: Edit, code: Code) -> Edit | None:
    """The same request about a name that is not there: nothing can be done."""
    values = dict(edit.values)
    if edit.task.startswith("rename") or edit.task in ("replace_name", "replace_exception"):
        key = "old"
    elif edit.task in ("remove_parameter", "change_default", "set_variable", "add_hint"):
        key = "name"
    else:
        return None
    values[key] = code.new_name()
    values.pop("dotted", None)
    values.pop("newdotted", None)
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
    values = {"name": instructions.quoted(name, rng, name=True)}
    return instructions.write(rng.choice(BEYOND_NEW if held_out else BEYOND), values, rng)


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
    if rng.random() < 0.35:
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
    said = CORRECTION.format(
        asked=asked, line=number + rng.randint(1, 300), message=message, rule=rule, advice=advice
    )
    kept, earlier = "", tuple[str, ...]()
    if rng.random() < 0.6 and number:
        kept = "\n".join(target.split("\n")[:number]) + "\n"
        earlier = (asked,) if rng.random() < 0.8 else ()
    return Example(edit.task, "", said, code.text, kept, target, earlier)
