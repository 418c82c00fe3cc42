"""Evaluation sets: requests, and the texts that count as right answers.

A `.toml` file is the hand-written set; a `.jsonl` file has examples of the generator (`region`,
`instruction`, `target`) or rows of shards (`region`, `edits`; the first edit of each).
"""

from __future__ import annotations

import ast
import json
import textwrap
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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
    """

    name: str
    kind: str
    package: str
    before: str
    instruction: str
    right: tuple[str, ...]
    left: bool


def items_of(path: Path, per_kind: int, most: int, apply: Callable[[str, str], str]) -> list[Item]:
    """Read one set.

    Args:
        path: the file.
        per_kind: of the generator's examples, how many of each kind.
        most: requests in all.
        apply: `script_format.apply`, which makes the right answer of a row of a shard.
    """
    if path.suffix == ".toml":
        rows = tomllib.loads(path.read_text())["edit"]
        return [
            Item(
                r["id"],
                r["kind"],
                r["package"],
                r["before"],
                r["instruction"],
                (r["after"], *r.get("accept", ())),
                r["kind"] in ("nothing to do", "beyond"),
            )
            for r in rows
        ][:: max(1, len(rows) // most)]
    found: list[Item] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(path.read_text().splitlines()):
        row: dict[str, Any] = json.loads(line)
        if "edits" in row:
            kind, instruction, script = row["edits"][0]
            after = apply(row["region"], script)
            package = str(row.get("repository", ""))
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
                    (target,),
                    row["target"] is None,
                )
            )
    return found[:most]


def tree_of(text: str) -> str | None:
    """Return a dump of the syntax tree, or None."""
    try:
        return ast.dump(ast.parse(textwrap.dedent(text)))
    except (SyntaxError, ValueError):
        return None
