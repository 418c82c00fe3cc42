"""Evaluation sets: requests, and what counts as a right answer.

A `.toml` file is a hand-written set (`models/training/human`); a `.jsonl` file has examples of the
generator (`region`, `instruction`, `target`) or rows of shards (`region`, `edits`; the first edit
of each).

Checks of goal-style requests run in a child process, which is this file as a program: answers are
code that a model wrote. It reads a line of JSON `[setup, region, check]` for each case from
standard input and prints `1` or `0` for it.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

SECONDS: Final = 3
"""Time limit of a case."""

Case = tuple[str, str, str]
"""Set-up, region and check, run in this order in one namespace."""


@dataclass(frozen=True, slots=True)
class Item:
    """One request.

    Attributes:
        name: which one of its set.
        kind: what sort of change it is.
        package: where the code is from; "" where the set does not say.
        before: the region, with its indentation.
        instruction: the request.
        right: texts that count as right.
        left: whether nothing is to change.
        setup: what the check needs.
        check: code that passes for right answers of any form; "" where only texts count.
        language: of the region; "" where the set does not say.
    """

    name: str
    kind: str
    package: str
    before: str
    instruction: str
    right: tuple[str, ...]
    left: bool
    setup: str = ""
    check: str = ""
    language: str = ""


def items_of(path: Path, per_kind: int, most: int, apply: Callable[[str, str], str]) -> list[Item]:
    """Read one set.

    Args:
        path: the file.
        per_kind: of the generator's examples, how many of each kind.
        most: requests in all: the first ones of a shard, else some from everywhere.
        apply: `script_format.apply`, which makes the right answer of a row of a shard.
    """
    if path.suffix == ".toml":
        rows = tomllib.loads(path.read_text())["edit"]
        items = [
            Item(
                r["id"] if not number else f"{r['id']} {number + 1}",
                r["kind"],
                r.get("package", ""),
                r["before"],
                instruction,
                (r["after"], *r.get("accept", ())),
                r["kind"] in ("nothing to do", "beyond"),
                r.get("setup", ""),
                r.get("check", ""),
            )
            for r in rows
            for number, instruction in enumerate(r.get("instructions") or [r["instruction"]])
        ]
        return _spread(items, most)
    found: list[Item] = []
    seen: dict[str, int] = {}
    commits = False
    for number, line in enumerate(path.read_text().splitlines()):
        row: dict[str, Any] = json.loads(line)
        if commits := "edits" in row:
            kind, instruction, script = row["edits"][0]
            after = apply(row["region"], script)
            package = str(row.get("repo", ""))
            found.append(
                Item(str(number), kind, package, row["region"], instruction, (after,), False)
            )
            continue
        seen[row["task"]] = seen.get(row["task"], 0) + 1
        if seen[row["task"]] <= per_kind:
            target = row["region"] if row["target"] is None else row["target"]
            found.append(
                Item(
                    str(number),
                    row["task"],
                    row.get("package", ""),
                    row["region"],
                    row["instruction"],
                    (target, *row.get("accept", ())),
                    row["target"] is None,
                    language=row.get("language", ""),
                )
            )
    return found[:most] if commits else _spread(found, most)


def _spread(items: list[Item], most: int) -> list[Item]:
    """Return so many items at equal distances."""
    count = min(most, len(items))
    return [items[number * len(items) // count] for number in range(count)]


def tree_of(text: str) -> str | None:
    """Return a dump of the syntax tree, or None."""
    try:
        return ast.dump(ast.parse(textwrap.dedent(text)))
    except (SyntaxError, ValueError):
        return None


def same_programs(answers: Sequence[tuple[Item, str]]) -> list[bool]:
    """Return which answers are right: by text, by syntax tree, or as the request's check says."""
    verdicts: list[bool] = []
    open_cases: dict[int, Case] = {}
    for number, (item, text) in enumerate(answers):
        tree = tree_of(text)
        if item.left or text in item.right or tree is None:
            verdicts.append(text == item.before if item.left else text in item.right)
            continue
        verdicts.append(tree in map(tree_of, item.right))
        if item.check and not verdicts[-1] and text != item.before:
            open_cases[number] = (item.setup, text, item.check)
    for number, passed in zip(open_cases, passing(list(open_cases.values())), strict=True):
        verdicts[number] = passed
    return verdicts


def passing(cases: Sequence[Case]) -> list[bool]:
    """Return which checks pass."""
    found: list[bool] = []
    while len(found) < len(cases):
        rest = cases[len(found) :]
        with tempfile.TemporaryDirectory() as folder:
            child = subprocess.run(
                [sys.executable, str(Path(__file__).resolve())],
                input="".join(json.dumps(case) + "\n" for case in rest),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                cwd=folder,
                check=False,
            )
        verdicts = [line == "1" for line in child.stdout.splitlines()]
        found += verdicts
        if len(verdicts) < len(rest):
            found.append(False)  # the case that ended the child
    return found


def _over(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def _passes(case: Case) -> bool:
    namespace: dict[str, object] = {"__name__": "case"}
    folder = Path.cwd()
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for text in case:
                exec(compile(text, "<case>", "exec", dont_inherit=True), namespace)
    except BaseException:
        return False
    finally:
        signal.alarm(0)
        os.chdir(folder)
    return True


def main() -> None:
    """Answer each line."""
    signal.signal(signal.SIGALRM, _over)
    answers = sys.stdout
    for line in sys.stdin:
        print(int(_passes(tuple(json.loads(line)))), file=answers, flush=True)


if __name__ == "__main__":
    main()
