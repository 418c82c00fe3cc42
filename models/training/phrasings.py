"""Measure fixed phrasings on held-out functions: what a model may be advertised for.

Each candidate is one plain sentence, filled in with the names of many held-out snippets. Those that
are right at least nine times out of ten on one half of the snippets are measured again on the other
half; those that hold there too become the `suggestions` of `midstream.toml`.
"""

from __future__ import annotations

import argparse
import json
import random
import textwrap
from pathlib import Path
from typing import Any

from midstream.engine.edit_request import EditRequest
from models.training.asking import Asker
from models.training.code import Code
from models.training.data import name_pool
from models.training.tasks import attempt

CANDIDATES: dict[str, list[str]] = {
    "rename_local": [
        "rename {old} to {new}",
        "rename `{old}` to `{new}`",
        "rename the variable `{old}` to `{new}`",
        "{old} -> {new}",
        "call {old} {new} instead",
        "{old} should be called {new}",
    ],
    "rename_parameter": [
        "rename {old} to {new}",
        "rename `{old}` to `{new}`",
        "rename the parameter `{old}` to `{new}`",
        "rename the parameter {old} to {new}",
    ],
    "rename_function": [
        "rename {old} to {new}",
        "rename the function `{old}` to `{new}`",
        "rename this function to `{new}`",
    ],
    "rename_attribute": [
        "rename {dotted} to {newdotted}",
        "rename the attribute `{old}` to `{new}`",
    ],
    "replace_name": ["use {new} instead of {old}", "replace `{old}` with `{new}`"],
    "replace_exception": ["raise {new} instead of {old}"],
    "add_parameter": [
        "add a parameter {name} with default {value}",
        "add a parameter `{name}` with default `{value}`",
        "add {sig}",
        "add an optional parameter `{name}` with default `{value}`",
    ],
    "add_parameter_plain": ["add a parameter {name}", "add a parameter `{name}`"],
    "remove_parameter": ["remove the parameter {name}", "remove the unused parameter `{name}`"],
    "change_default": [
        "change the default of {name} to {value}",
        "change the default of `{name}` to `{value}`",
        "{name} should default to {value}",
    ],
    "add_decorator": [
        "add the decorator `{decorator}`",
        "add {decorator}",
        "decorate it with {decorator}",
    ],
    "remove_decorator": ["remove the decorator {decorator}", "remove `{decorator}`"],
    "guard_return": [
        "return {value} if {cond}",
        "return `{value}` if {cond}",
        "add a guard clause: return {value} if {cond}",
        "if {cond} return {value}",
    ],
    "guard_plain": ["return early if {cond}", "do nothing if {cond}"],
    "guard_raise": ["raise {error} if {cond}", "raise `{error}` if {cond}"],
    "add_hint": [
        "annotate {name} as {type}",
        "annotate `{name}` as `{type}`",
        "add a type hint {type} to {name}",
        "{name} is a {type}",
    ],
    "add_return_hint": [
        "add return type {type}",
        "add the return type `{type}`",
        "it returns a {type}",
    ],
    "remove_hints": ["remove the type hints"],
    "extract_constant": [
        "extract {literal} into a constant {name}",
        "extract `{literal}` to a constant `{name}`",
    ],
    "fstring": ["use an f-string", "convert to an f-string", "use f-strings"],
    "remove_else": ["remove the else after return", "no else after return"],
    "change_comparison": ["change {old} to {new}", "use `{new}` instead of `{old}`"],
    "replace_literal": ["change {old} to {new}", "replace `{old}` with `{new}`"],
    "set_variable": ["set {name} to {value}", "set `{name}` to `{value}`"],
    "change_return": ["return {value} instead of {old}", "change the return value to `{value}`"],
    "add_docstring": ['add a docstring "{text}"', "add a docstring: {text}"],
    "replace_docstring": ['change the docstring to "{text}"', "change the docstring: {text}"],
    "remove_docstring": ["remove the docstring"],
    "print_log": ["replace print with {logger}", "use {logger} instead of print"],
    "wrap_try": ["wrap the body in try/except {error} and {action}", "catch {error} and {action}"],
    "add_first": ["add `{statement}` at the start", "start with `{statement}`"],
    "add_last": ["add `{statement}` at the end"],
    "add_before_return": ["add `{statement}` before the return"],
    "add_comment": ['add a comment "{text}" above it', "add a comment: {text}"],
    "remove_prints": ["remove the prints", "remove all print calls"],
    "delete_statement": ["remove `{statement}`", "delete the line `{statement}`"],
    "make_async": ["make it async"],
    "add_after": ["add `{statement}` after `{place}`"],
    "add_before": ["add `{statement}` before `{place}`"],
    "change_message": ['change the error message to "{text}"'],
    "make_optional": ["make {name} optional"],
    "make_required": ["make {name} required"],
    "return_to_raise": ["raise {error} instead of returning {old}"],
    "guard_continue": ["skip it if {cond}"],
    "negate_condition": ["negate the condition"],
    "delete_call": ["remove the call to {call}"],
    "finish_rename": ["finish the rename of {old} to {new}"],
    "fix_none": ["use is None instead of == None"],
    "fix_mutable_default": ["fix the mutable default of {name}"],
    "secure_sql": ["use query parameters"],
    "secure_verify": ["keep certificate verification on"],
    "secure_secret": ["read the secret from the environment"],
}


def fill(template: str, values: dict[str, str]) -> str | None:
    """Fill a candidate; None when the edit does not have what it names."""
    text = template
    for key, value in values.items():
        key = key.rstrip("!")
        if key == "cond":
            value = value.replace("{x}", values["x"])
        text = text.replace("{" + key + "}", value)
    return None if "{" in template and text == template else text


def measure(
    asker: Asker,
    rows: list[dict[str, str]],
    most: int,
    candidates: dict[str, list[str]],
) -> list[dict[str, Any]]:
    """Return one row per candidate: task, phrasing, n, exact match in per cent, by length."""
    names = name_pool(rows, 2_500)
    report: list[dict[str, Any]] = []
    for task, phrasings in candidates.items():
        rng = random.Random(11)
        found: list[tuple[str, Any]] = []
        for row in rows:
            source = textwrap.dedent(row["text"])
            if len(found) >= most:
                break
            try:
                code = Code(source, rng, names, natural=True)
            except (SyntaxError, ValueError):
                continue
            edit = attempt(task, code)
            if edit is not None:
                found.append((edit.source or source, edit))
        for phrasing in phrasings:
            hits: dict[bool, list[bool]] = {True: [], False: []}
            for source, edit in found:
                words = fill(phrasing, edit.values)
                if words is None:
                    continue
                answer = asker.ask(EditRequest(words, source)).text
                hits[source.count("\n") <= 12].append(answer == edit.target)
            every = hits[True] + hits[False]
            row: dict[str, Any] = {"task": task, "phrasing": phrasing, "n": len(every)}
            for key, some in (("exact", every), ("to_12", hits[True]), ("to_25", hits[False])):
                row[key] = round(100 * sum(some) / len(some)) if some else None
            report.append(row)
    return report


def good(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that are right at least nine times out of ten, of enough tries."""
    return [row for row in rows if row["n"] >= 20 and row["exact"] >= 90]


def main() -> None:
    """Add measured phrasings and suggestions to a model folder's `evaluation.json`."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--model", type=Path, default=Path("models/brook-4m"))
    parser.add_argument("--data", type=Path, default=Path("models/training/data"))
    parser.add_argument("--most", type=int, default=40, help="examples per task")
    arguments = parser.parse_args()
    lines = (arguments.data / "heldout.jsonl").read_text().splitlines()
    rows = [row for line in lines if (row := json.loads(line))["text"].count("\n") <= 25]
    random.Random(3).shuffle(rows)
    asker, half = Asker(arguments.model), len(rows) // 2
    # Chosen on one half and measured again on the other: the best of many candidates at n = 40 look
    # better than they are.
    first = measure(asker, rows[:half], arguments.most, CANDIDATES)
    chosen: dict[str, list[str]] = {}
    for row in good(first):
        chosen.setdefault(row["task"], []).append(row["phrasing"])
    second = measure(asker, rows[half:], arguments.most, chosen)
    path = arguments.model / "evaluation.json"
    report = json.loads(path.read_text())
    report["phrasings"] = sorted(first, key=lambda row: -(row["exact"] or 0))
    report["confirmed"] = sorted(second, key=lambda row: -(row["exact"] or 0))
    report["suggestions"] = list(
        dict.fromkeys(row["phrasing"] for row in good(report["confirmed"]))
    )
    path.write_text(json.dumps(report, indent=1) + "\n")
    for name in ("phrasings", "confirmed"):
        print(name)
        for row in report[name]:
            lengths = f"<= 12 lines {row['to_12']}, <= 25 {row['to_25']}"
            print(f"{row['exact']:3} % (n={row['n']}, {lengths})  {row['task']}: {row['phrasing']}")


if __name__ == "__main__":
    main()
