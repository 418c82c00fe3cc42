"""All task kinds with their share of the training mix, and the way from a snippet to a written
example.
"""

from __future__ import annotations

import ast
import random
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from models.training import instructions, tasks_body, tasks_names, tasks_text
from models.training.code import Code, Edit

Task = Callable[[Code], Edit | None]

SHARES: dict[str, float] = {
    "rename_local": 12,
    "rename_parameter": 10,
    "rename_function": 4,
    "rename_attribute": 4,
    "replace_name": 5,
    "replace_exception": 3,
    "add_parameter": 7,
    "add_parameter_plain": 3,
    "remove_parameter": 3,
    "change_default": 4,
    "add_decorator": 4,
    "remove_decorator": 3,
    "remove_decorators": 1,
    "guard_return": 7,
    "guard_plain": 2,
    "guard_raise": 4,
    "add_hint": 6,
    "add_return_hint": 4,
    "remove_hints": 2,
    "extract_constant": 4,
    "extract_variable": 4,
    "fstring": 9,
    "invert_if": 2,
    "remove_else": 3,
    "change_comparison": 3,
    "replace_literal": 5,
    "set_variable": 3,
    "change_return": 3,
    "add_docstring": 5,
    "replace_docstring": 2,
    "remove_docstring": 2,
    "print_log": 4,
    "wrap_try": 3,
    "wrap_with": 1.5,
    "add_first": 3,
    "add_last": 2,
    "add_before_return": 2,
    "add_comment": 2,
    "remove_comments": 1,
    "remove_prints": 2,
    "remove_asserts": 1,
    "delete_statement": 3,
    "delete_assignment": 1.5,
    "make_async": 1.5,
    "make_sync": 1,
    "add_argument": 3,
    "optional_union": 1,
}
"""Relative share of each task; a task that fits few snippets is tried on more of them."""

_MODULES = (tasks_names, tasks_text, tasks_body)
TASKS: dict[str, Task] = {
    name: next(getattr(module, name) for module in _MODULES if hasattr(module, name))
    for name in SHARES
}

NO_CHANGE_SHARE = 0.03
CONTINUE_SHARE = 0.10


@dataclass(frozen=True, slots=True)
class Example:
    """One written example: what a user would send, and the right answer.

    `kept` is the part that an earlier turn wrote already; `target` is the whole region, kept lines
    included.
    """

    task: str
    package: str
    instruction: str
    region: str
    kept: str
    target: str


def attempt(
    task: str, text: str, names: list[str], rng: random.Random, *, natural: bool = False
) -> Edit | None:
    """Try a task on a dedented snippet; None where it does not fit or a side does not parse."""
    try:
        code = Code(text, rng, names, natural)
        edit = TASKS[task](code)
        if edit is None or edit.target == (edit.source or text):
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
        if key.endswith("!"):
            ready[key[:-1]] = instructions.quoted(value, rng, name=False)
        elif key == "text":
            quote = '"' if rng.random() < 0.7 or "'" in value else rng.choice("'`")
            ready[key] = quote + value + quote
        elif key == "cond":
            ready[key] = value.replace("{x}", instructions.quoted(edit.values["x"], rng, name=True))
        elif key in ("raw", "type", "action", "x"):
            ready[key] = value
        else:
            ready[key] = instructions.quoted(value, rng, name=True)
    return ready


def instruct(edit: Edit, rng: random.Random, *, held_out: bool) -> str:
    """Write an instruction for an edit, from the families of one side of the split."""
    ready = _texts(edit, rng)
    usable = [
        t
        for t in instructions.families(edit.task, held_out=held_out)
        if "from {old}" not in t or "old" in ready
    ]
    return instructions.write(rng.choice(usable), ready, rng)


def _unrelated(
    task: str, edit: Edit, text: str, names: list[str], rng: random.Random
) -> Edit | None:
    """The same request about a name that is not there: nothing may change."""
    old = edit.values.get("old") or edit.values.get("name")
    if old is None or "old" not in edit.values or not task.startswith("rename"):
        return None
    values = dict(edit.values)
    values["old"] = Code(text, rng, names).new_name()
    values.pop("dotted", None)
    return Edit(task, values, text)


def examples(
    text: str,
    package: str,
    names: list[str],
    rng: random.Random,
    chosen: list[str],
    *,
    held_out: bool,
    plain: bool,
) -> list[Example]:
    """Make examples of the chosen tasks from one snippet (with its indent).

    Args:
        text: the snippet as it stands in its file.
        package: where it is from.
        names: pool of new names.
        rng: source of randomness.
        chosen: tasks to try.
        held_out: whether to use the held-out template families.
        plain: whether to leave out no-change and continuation examples (for evaluation).
    """
    dedented = textwrap.dedent(text)
    first = next(row for row in text.split("\n") if row.strip())
    margin = first[: len(first) - len(first.lstrip())]

    def place(body: str) -> str:
        rows = body.split("\n")
        return "\n".join(margin + row if row.strip() else row for row in rows)

    if place(dedented) != text:
        margin = ""
    made: list[Example] = []
    for task in chosen:
        edit = attempt(task, dedented, names, rng, natural=plain)
        if edit is None:
            continue
        kept = ""
        source, target = edit.source or dedented, edit.target
        if not plain and edit.source is None and rng.random() < NO_CHANGE_SHARE:
            edit = _unrelated(task, edit, dedented, names, rng) or edit
            target = edit.target
        elif not plain and edit.source is None and rng.random() < CONTINUE_SHARE:
            target, kept = _continued(edit, dedented, names, rng)
        instruction = instruct(edit, rng, held_out=held_out)
        made.append(Example(task, package, instruction, place(source), place(kept), place(target)))
    return made


def _continued(edit: Edit, text: str, names: list[str], rng: random.Random) -> tuple[str, str]:
    """Turn an edit into one that goes on from kept lines, its own or those of another edit."""
    rows = edit.target.split("\n")[:-1]
    cut = rng.randrange(1, len(rows)) if len(rows) > 1 else 0
    if not cut or rng.random() < 0.5:
        return edit.target, "\n".join(rows[:cut]) + ("\n" if cut else "")
    other = attempt(
        rng.choice(
            ("rename_local", "rename_parameter", "add_docstring", "guard_return", "add_parameter")
        ),
        text,
        names,
        rng,
    )
    source = text.split("\n")[:-1]
    if other is None:
        return edit.target, "\n".join(rows[:cut]) + "\n"
    before = other.target.split("\n")[:-1]
    # Where both answers end alike up to the cut, counted from the bottom, the new answer's rest
    # follows the kept lines.
    rest_lines = len(source) - min(len(source) - 1, cut)
    if rest_lines >= len(before) or rest_lines >= len(rows):
        return edit.target, "\n".join(rows[:cut]) + "\n"
    shift = len(before) - len(source)
    shift2 = len(rows) - len(source)
    if (shift2 and rows[-rest_lines:] != source[-rest_lines:]) or (
        shift and before[-rest_lines:] != source[-rest_lines:]
    ):
        return edit.target, "\n".join(rows[:cut]) + "\n"
    kept = before[: len(before) - rest_lines]
    return "\n".join([*kept, *rows[len(rows) - rest_lines :]]) + "\n", "\n".join(kept) + "\n"
