"""Measure a shipped model folder as the product runs it: quantised, greedy, through the engine.

Sets, all of packages that were never trained on: `eval_known` (phrasings that training saw),
`eval_new` (families that were held out), `eval_steered` (redirects and corrections by the guard),
and requests that are beyond the model, among the first two. `human` measures the edits that were
written by hand.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import shutil
import statistics
import tempfile
import textwrap
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from midstream.engine.edit_request import EditRequest
from midstream.guard.correction import CorrectionRequest
from models.training.asking import Asker, Outcome
from models.training.code import Code
from models.training.data import name_pool
from models.training.tasks import attempt


def parses(text: str) -> bool:
    """Whether a region is valid Python once dedented."""
    return tree(text) is not None


def tree(text: str) -> str | None:
    """Return the dedented text's syntax tree as text, None if it is not Python."""
    try:
        return ast.dump(ast.parse(textwrap.dedent(text)))
    except (SyntaxError, ValueError):
        return None


def kept_part(target: str) -> str:
    """Return the first half of the lines of an answer."""
    lines = target.splitlines(keepends=True)
    return "".join(lines[: len(lines) // 2])


def percent(part: float, whole: float, digits: int = 1) -> float:
    """Return a share in per cent."""
    return round(100 * part / whole, digits) if whole else 0.0


GROUPS: dict[str, tuple[str, ...]] = {
    "tier 1": (
        *("rename_local", "rename_parameter", "rename_function", "rename_attribute"),
        *("replace_name", "replace_exception", "replace_literal", "change_comparison"),
        *("add_parameter", "add_parameter_plain", "remove_parameter", "change_default"),
        *("make_required", "make_optional", "add_decorator", "remove_decorator"),
        *("remove_decorators", "guard_return", "guard_plain", "guard_raise", "guard_continue"),
        *("extract_constant", "extract_variable", "fstring", "negate_condition", "remove_else"),
        *("optional_union", "print_log", "make_async", "make_sync", "add_argument"),
        *("change_argument", "remove_argument", "add_element", "set_variable", "change_return"),
        *("delete_statement", "delete_assignment", "delete_call", "delete_line", "remove_prints"),
        *("remove_asserts", "remove_comments", "remove_hints", "add_first", "add_last"),
        *("add_before_return", "add_after", "add_before", "wrap_with"),
    ),
    "rename": ("rename_local", "rename_parameter", "rename_function", "rename_attribute"),
    "parameter": ("add_parameter", "add_parameter_plain", "remove_parameter", "change_default"),
    "decorator": ("add_decorator", "remove_decorator", "remove_decorators"),
    "f-string": ("fstring",),
    "guard clause": ("guard_return", "guard_plain", "guard_raise"),
    "tier 2": (
        *("add_hint", "add_return_hint", "add_hints", "wrap_try", "return_to_raise"),
        *("add_docstring", "replace_docstring", "remove_docstring", "add_comment"),
        *("change_message", "change_text"),
    ),
    "seeded bug, its symptom said": (
        *("fix_return", "fix_await", "fix_self", "fix_none", "fix_mutable_default"),
        *("fix_bare_except", "swap_arguments", "flip_bool_operator", "fix_boundary"),
        *("fix_condition", "fix_sign", "fix_index"),
    ),
    "security rewrite": (
        *("secure_sql", "secure_shell", "secure_call", "secure_verify", "secure_secret"),
    ),
    "next edit": ("finish_rename",),
}
"""Kinds of edits that are measured together. "next edit" is the rest of a change of which a part is
made: a name was changed in one place or some, and its other uses follow."""


@dataclass(slots=True)
class Tally:
    """Sums over examples."""

    n: int = 0
    exact: int = 0
    same_tree: int = 0
    parses: int = 0
    unchanged: int = 0
    gave_up: int = 0
    lines: int = 0
    kept: int = 0
    costs: list[tuple[int, int, float]] = field(default_factory=list[tuple[int, int, float]])

    def add(self, example: dict[str, Any], outcome: Outcome) -> bool:
        """Count an outcome; return whether it is right to the character."""
        target = example["region"] if example["target"] is None else example["target"]
        right = outcome.text == target
        found = tree(outcome.text)
        self.n += 1
        self.exact += right
        self.same_tree += right or (found is not None and found == tree(target))
        self.parses += found is not None
        self.unchanged += outcome.text == example["region"]
        self.gave_up += outcome.gave_up
        same = set(example["region"].split("\n")) & set(target.split("\n"))
        self.lines += len(same)
        self.kept += len(same & set(outcome.text.split("\n")))
        self.costs.append((outcome.tokens, outcome.forwards, outcome.seconds))
        return right

    def row(self) -> dict[str, Any]:
        """Return the shares in per cent, and what an edit costs."""
        seconds = sum(s for _, _, s in self.costs)
        return {
            "n": self.n,
            "exact_match": percent(self.exact, self.n),
            "same_tree": percent(self.same_tree, self.n),
            "parses": percent(self.parses, self.n),
            "unchanged": percent(self.unchanged, self.n),
            "untouched_lines_kept": percent(self.kept, self.lines, 2),
            "tokens_a_forward": round(
                sum(t for t, _, _ in self.costs) / max(1, sum(f for _, f, _ in self.costs)), 2
            ),
            "milliseconds_median": round(1000 * statistics.median(s for _, _, s in self.costs), 1),
            "tokens_a_second": round(sum(t for t, _, _ in self.costs) / max(seconds, 1e-9)),
        }


def correction_of(example: dict[str, Any]) -> CorrectionRequest | None:
    """Return the correction that an example asks for, None for any other."""
    return msgspec.convert(example.get("correction"), CorrectionRequest | None)


def request_of(example: dict[str, Any], **changed: Any) -> EditRequest:
    """Return the request of an example."""
    fields: dict[str, Any] = {
        "instruction": example["instruction"],
        "region": example["region"],
        "kept": example["kept"],
        "earlier": tuple(example.get("earlier", ())),
        "correction": correction_of(example),
    }
    return EditRequest(**(fields | changed))


def measure(
    asker: Asker, examples: Iterable[dict[str, Any]], answers: list[dict[str, Any]] | None = None
) -> tuple[dict[str, Any], dict[str, Tally]]:
    """Return (report without what is beyond the model, tallies of the tasks)."""
    total = Tally()
    tasks: dict[str, Tally] = {}
    for example in examples:
        outcome = asker.ask(request_of(example))
        right = tasks.setdefault(example["task"], Tally()).add(example, outcome)
        if example["task"] != "beyond":
            total.add(example, outcome)
        if answers is not None:
            answers.append(example | {"answer": outcome.text, "right": right})
    order = sorted(tasks.items(), key=lambda item: -item[1].exact / item[1].n)
    rows: dict[str, Any] = {
        task: {
            "exact_match": round(percent(tally.exact, tally.n)),
            "same_tree": round(percent(tally.same_tree, tally.n)),
            "parses": round(percent(tally.parses, tally.n)),
            "unchanged": round(percent(tally.unchanged, tally.n)),
            "n": tally.n,
        }
        for task, tally in order
        if task != "beyond"
    }
    return total.row() | {"tasks": rows}, tasks


def declining(known: dict[str, Tally], new: dict[str, Tally]) -> dict[str, Any]:
    """Return how well the model tells what is beyond it.

    It may leave the region as it was, or say so (`said_`: the answer is its token for that, which
    the product shows). `recall` is the share of such requests among which it does, `precision` the
    share of such requests among all with which it does, weighted as if one request in ten were
    beyond it.
    """
    report: dict[str, Any] = {}
    for name, tasks in (("known", known), ("new", new)):
        beyond = tasks.get("beyond", Tally())
        others = [tally for task, tally in tasks.items() if task != "beyond"]
        row: dict[str, Any] = {"n": beyond.n}
        for prefix, field_name in (("", "unchanged"), ("said_", "gave_up")):
            count = sum(getattr(tally, field_name) for tally in others)
            wrongly = count / max(1, sum(tally.n for tally in others))
            recall = getattr(beyond, field_name) / max(1, beyond.n)
            row[f"{prefix}recall"] = percent(recall, 1)
            row["others_said" if prefix else "others_left_alone"] = percent(wrongly, 1)
            row[f"{prefix}precision"] = percent(0.1 * recall, 0.1 * recall + 0.9 * wrongly)
        report[name] = row
    return report


def groups(known: dict[str, Tally], new: dict[str, Tally]) -> dict[str, Any]:
    """Return the share of right answers of the `GROUPS`, of both sets."""
    report: dict[str, Any] = {}
    for group, kinds in GROUPS.items():
        row: dict[str, Any] = {}
        for name, tasks in (("known", known), ("new", new)):
            found = [tasks[kind] for kind in kinds if kind in tasks]
            row["n"] = sum(tally.n for tally in found)
            row[name] = percent(sum(tally.exact for tally in found), row["n"])
            row[f"{name}_same_tree"] = percent(sum(tally.same_tree for tally in found), row["n"])
        report[group] = row
    return report


def thirty_lines(asker: Asker, path: Path, most: int = 60) -> dict[str, Any]:
    """Rename variables of held-out functions of 28 to 32 lines; return what an edit costs."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rng = random.Random(5)
    rng.shuffle(rows)
    names = name_pool(rows, 2_500)
    tally = Tally()
    for row in rows:
        if tally.n >= most:
            break
        if not 28 <= row["text"].count("\n") <= 32:
            continue
        try:
            code = Code(textwrap.dedent(row["text"]), rng, names)
        except (SyntaxError, ValueError):
            continue
        edit = attempt("rename_local", code) if code.fn is not None else None
        if edit is None:
            continue
        asked = f"rename `{edit.values['old']}` to `{edit.values['new']}`"
        outcome = asker.ask(EditRequest(asked, code.text))
        tally.add({"region": code.text, "target": edit.target}, outcome)
    return {
        key: value
        for key, value in tally.row().items()
        if key in ("n", "exact_match", "milliseconds_median", "tokens_a_second")
    }


def nothing_to_do(asker: Asker, examples: list[dict[str, Any]]) -> dict[str, Any]:
    """Ask for changes of a name that is not there; return how often nothing changed, and how often
    the model said so.
    """
    asked = (
        "rename `no_such_name` to `another_name`",
        "change the default of no_such_name to 3",
        "no_such_name should be called another_name",
        "remove the parameter no_such_name",
    )
    outcomes = [
        (asker.ask(EditRequest(asked[k % len(asked)], example["region"])), example["region"])
        for k, example in enumerate(examples)
    ]
    return {
        "n": len(outcomes),
        "unchanged": percent(sum(o.text == region for o, region in outcomes), len(outcomes)),
        "said": percent(sum(o.gave_up for o, _ in outcomes), len(outcomes)),
    }


def steered(asker: Asker, examples: list[dict[str, Any]]) -> dict[str, Any]:
    """Measure redirects and corrections, asked for while the first answer is written."""
    report: dict[str, Any] = {}
    for kind in dict.fromkeys(example["task"] for example in examples):
        tally, shares = Tally(), list[float]()
        for example in (example for example in examples if example["task"] == kind):
            first = {"earlier": (), "kept": "", "correction": None}
            asker.ask(request_of(example, instruction=example["earlier"][0], **first))
            outcome = asker.ask(request_of(example))
            tally.add(example, outcome)
            shares.append(1 - outcome.cached / max(1, outcome.prompt))
        report[kind] = {
            "n": tally.n,
            "exact_match": percent(tally.exact, tally.n),
            "parses": percent(tally.parses, tally.n),
            "prompt_read": percent(statistics.mean(shares), 1),
        }
    return report


def steered_otherwise(folder: Path, threads: int | None, examples: list[Any]) -> dict[str, Any]:
    """Measure redirects in the form that the folder does not use: appended or read first."""
    with tempfile.TemporaryDirectory() as scratch:
        other = Path(shutil.copytree(folder, Path(scratch) / folder.name))
        facts = other / "midstream.toml"
        text = facts.read_text("utf-8")
        swapped = re.sub(
            r"^appended = ([01])$", lambda m: f"appended = {1 - int(m[1])}", text, flags=re.M
        )
        facts.write_text(swapped, "utf-8")
        asker = Asker(other, threads)
        report = steered(asker, examples)
        asker.close()
    return report


def compared(report: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return mean exact match of another report's tasks, there and here (each task counts the
    same).
    """
    out: dict[str, Any] = {}
    for name, short in (("eval_known", "known"), ("eval_new", "new")):
        old, new = before["sets"][name]["tasks"], report["sets"][name]["tasks"]
        both = [task for task in old if task in new]
        out["tasks"] = len(both)
        out[short] = round(statistics.mean(old[t]["exact_match"] for t in both), 1)
        out[f"now_{short}"] = round(statistics.mean(new[t]["exact_match"] for t in both), 1)
    if "human" in before:
        out["human"] = before["human"]["total"]["exact"]
    return out


def load(path: Path, per_task: int, skip: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    """Return up to `per_task` examples of each task of a set."""
    used: dict[str, int] = {}
    found: list[dict[str, Any]] = []
    for line in path.read_text().splitlines():
        example = json.loads(line)
        used[example["task"]] = used.get(example["task"], 0) + 1
        if example["task"] not in skip and used[example["task"]] <= per_task:
            found.append(example)
    return found


def table(report: dict[str, Any]) -> str:
    """Return a report as text."""
    lines: list[str] = []
    for name, part in report["sets"].items():
        lines.append(
            f"{name}: exact {part['exact_match']} %, same tree {part['same_tree']} %, parses "
            f"{part['parses']} %, untouched lines {part['untouched_lines_kept']} %, "
            f"{part['tokens_a_forward']} tokens a forward, {part['milliseconds_median']} ms an edit"
        )
        lines += [
            f"  {task:22} {row['exact_match']:3} %  tree {row['same_tree']:3} %  parses "
            f"{row['parses']:3} %  as it was {row['unchanged']:3} %  n={row['n']}"
            for task, row in part["tasks"].items()
        ]
    for name in (
        "continued",
        "nothing_to_do",
        "steered",
        "steered_otherwise",
        "declining",
        "groups",
        "thirty_lines",
        "before",
    ):
        if name in report:
            lines.append(f"{name}: {json.dumps(report[name])}")
    return "\n".join(lines)


def main() -> None:
    """Measure a model folder on the evaluation sets."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--model", type=Path, default=Path("models/brook-4m"))
    parser.add_argument("--data", type=Path, default=Path("models/training/data"))
    parser.add_argument(
        "--config",
        type=Path,
        default=Path("models/training/configs/nano.toml"),
        help="the training configuration: tasks that it skips are not measured",
    )
    parser.add_argument("--per-task", type=int, default=60)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--json", action="store_true", help="print the whole report as JSON")
    parser.add_argument("--answers", type=Path, help="write every answer to this file")
    parser.add_argument("--before", type=Path, help="another model's evaluation.json to compare")
    parser.add_argument(
        "--save", action="store_true", help="save the report as evaluation.json in the model folder"
    )
    arguments = parser.parse_args()
    skip = frozenset[str](tomllib.loads(arguments.config.read_text())["train"]["skip_tasks"])
    asker = Asker(arguments.model, arguments.threads)
    data: Path = arguments.data
    most: int = arguments.per_task
    facts = tomllib.loads((arguments.model / "midstream.toml").read_text("utf-8"))
    report: dict[str, Any] = {"sets": {}, "appended": int(facts["codec"]["appended"])}
    answers: list[dict[str, Any]] = []
    tallies: list[dict[str, Tally]] = []
    known = load(data / "eval_known.jsonl", most, skip)
    for name, examples in (
        ("eval_known", known),
        ("eval_new", load(data / "eval_new.jsonl", most, skip)),
    ):
        found: list[dict[str, Any]] = []
        report["sets"][name], tasks = measure(asker, examples, found)
        tallies.append(tasks)
        answers += [row | {"set": name} for row in found]
    report["declining"] = declining(*tallies)
    report["groups"] = groups(*tallies)
    some = [example for example in known if example["target"] is not None]
    some = some[:: max(1, len(some) // (5 * most))]
    halves = [example | {"kept": kept_part(example["target"])} for example in some]
    report["continued"] = {
        key: value
        for key, value in measure(asker, halves)[0].items()
        if key in ("n", "exact_match", "parses")
    }
    report["nothing_to_do"] = nothing_to_do(asker, some[:100])
    report["thirty_lines"] = thirty_lines(asker, data / "heldout.jsonl")
    redirects = load(data / "eval_steered.jsonl", 2 * most)
    report["steered"] = steered(asker, redirects)
    asker.close()
    report["steered_otherwise"] = steered_otherwise(arguments.model, arguments.threads, redirects)
    if arguments.before:
        report["before"] = compared(report, json.loads(arguments.before.read_text()))
    if arguments.answers:
        arguments.answers.write_text("".join(json.dumps(row) + "\n" for row in answers))
    if arguments.save:
        (arguments.model / "evaluation.json").write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1) if arguments.json else table(report))


if __name__ == "__main__":
    main()
