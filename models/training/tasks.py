"""All task kinds with their share of the training mix; from a snippet to an edit and its words."""

from __future__ import annotations

import ast
import random
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
from models.training.wordings import table

Task = Callable[[Code], Edit | None]

SHARES: dict[str, float] = {
    "rename_local": 13,
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
    "extract_variable": 7,
    "fstring": 18,
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
    "add_first": 5,
    "add_last": 6,
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
    "optional_union": 3,
    "secure_sql": 3.5,
    "secure_shell": 3,
    "secure_call": 2.5,
    "secure_verify": 1.5,
    "secure_secret": 2,
    "fix_return": 2.5,
    "fix_await": 2,
    "fix_self": 3,
    "swap_arguments": 5,
    "fix_none": 1.5,
    "fix_mutable_default": 3,
    "fix_bare_except": 1.5,
    "flip_bool_operator": 4,
    "finish_rename": 5,
    "add_after": 6,
    "add_before": 4,
    "change_message": 4,
    "change_argument": 6,
    "remove_argument": 6,
    "add_element": 4,
    "make_required": 2,
    "make_optional": 3,
    "add_hints": 6,
    "change_text": 2,
    "delete_call": 4,
    "delete_line": 2,
    "return_to_raise": 3.5,
    "guard_continue": 2,
    "negate_condition": 3,
    "fix_boundary": 4,
    "fix_condition": 4.5,
    "fix_sign": 3.5,
    "fix_index": 2.5,
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
}

_SPOKEN = (
    *("guard_return", "change_return", "change_default", "add_parameter", "set_variable"),
    *("change_argument", "return_to_raise"),
)
"""Edits whose values people say in words, as "an empty list"."""


@dataclass(frozen=True, slots=True)
class Example:
    """One written example: what a user would send, and the right answer.

    `target` is the whole region after the edit; None where nothing is to change.
    """

    task: str
    package: str
    instruction: str
    region: str
    target: str | None


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
    values = table("value")
    ready: dict[str, str] = {}
    for key, value in edit.values.items():
        if key in (instructions.NOUN, instructions.ATOM):
            ready[key] = value
            continue
        words = values.get(value, []) if key in ("value!", "old!", "new!") else []
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
            "does",
            "should_do",
            "takes",
            "should_take",
        ):
            ready[key] = value
        else:
            ready[key] = instructions.quoted(value, rng, name=True)
    return ready


def instruct(edit: Edit, rng: random.Random, *, held_out: bool, styled: bool = True) -> str:
    """Write an instruction for an edit, from the families of one side of the split."""
    return instructions.ask(edit.task, _texts(edit, rng), rng, held_out=held_out, styled=styled)
