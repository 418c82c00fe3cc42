"""Which mined commits are trained on: a shard of them, and the held-out ones for evaluation.

    PYTHONPATH=app:. python -m models.training.select_commits --mined mined \
        --held-out mined-heldout --evaluation evaluation/commits_heldout.jsonl --out commits.jsonl

Left out are: what scores too low, changes of docstrings and doctests only, vague subjects, a change
or subject that came before (backports), functions of benchmarks, and regions that are nearly the
same as held-out code or as a hand-written request's.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import random
import re
import textwrap
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from models.training import script_format as fmt
from models.training.duplicates import NearDuplicates, is_benchmark

_VAGUE = re.compile(
    r"^(small|minor|tiny|more|some|another|further|various|misc|few|quick|tweaks?|follow.?up|"
    r"clean(ed|ing|s)?[ -]?up|polish|refactor(ed|ing)?|improve(d|ments?)?|address(ed)?|apply|"
    r"code review|review|fix(ed|es|ing)? (the )?"
    r"(tests?|build|bug|ci|docs?|docstrings?|error|it|this)\b).{0,24}$"
    r"|doctest|docstring|\bdocs?\b|documentation|comments?\b|as per @|@\w+|pr feedback|nits?\b",
    re.I,
)
_LICENCES = {"MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "PSF-2.0"}


def without_docstrings(text: str) -> str | None:
    """Return a dump of the code without docstrings, or None when it does not parse."""
    for wrapped in ("async def _():\n" + textwrap.indent(text, " "), text):
        try:
            tree = ast.parse(wrapped)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                node.body = [  # type: ignore[attr-defined]
                    n
                    for n in body
                    if not (
                        isinstance(n, ast.Expr)
                        and isinstance(n.value, ast.Constant)
                        and isinstance(n.value.value, str)
                    )
                ]
        return ast.dump(tree)
    return None


def is_edit(row: dict[str, Any]) -> bool:
    """Whether a row changes code, at a request that says something."""
    _, instruction, script = row["edits"][0]
    if _VAGUE.search(instruction) or ">>>" in script:
        return False
    before, after = (
        without_docstrings(row["region"]),
        without_docstrings(fmt.apply(row["region"], script)),
    )
    return before is not None and after is not None and before != after


def main() -> None:
    """Write the shard, the held-out set and a table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--mined", type=Path, required=True)
    parser.add_argument("--held-out", type=Path, required=True)
    parser.add_argument("--snippets", type=Path, default=Path("models/training/data/heldout.jsonl"))
    parser.add_argument("--human", type=Path, default=Path("models/training/human/edits.toml"))
    parser.add_argument("--given", type=Path, help="rows of another mining, not to be repeated")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--evaluation", type=Path)
    parser.add_argument("--score", type=float, default=0.82)
    options = parser.parse_args()
    near = NearDuplicates(
        [json.loads(line)["text"] for line in options.snippets.read_text().splitlines()]
        + [row["before"] for row in tomllib.loads(options.human.read_text())["edit"]]
    )
    licences = {
        e["repo"]: e
        for e in map(json.loads, (options.mined / "sources.jsonl").read_text().splitlines())
    }
    seen: set[str] = set()
    if options.given:
        for row in map(json.loads, options.given.read_text().splitlines()):
            seen |= {row["region"], row["sha"]}
    reasons: Counter[str] = Counter()

    def chosen(folder: Path, held_out: bool) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for path in sorted(folder.glob("*+*.jsonl")):
            for line in path.read_text().splitlines():
                row = json.loads(line)
                instruction = row["edits"][0][1]
                subject = f"{row['repo'].split('/')[1]} {instruction.lower()}"
                if (
                    set(licences[row["repo"]]["licence"].split(" and ")) - _LICENCES
                    or "supervisor" in row["repo"].lower()
                ):
                    reasons["licence"] += 1
                elif row["score"] < options.score:
                    reasons["score"] += 1
                elif row["region"] in seen or subject in seen or row["sha"] in seen:
                    reasons["repeated"] += 1
                elif not is_edit(row):
                    reasons["no edit"] += 1
                elif not held_out and (is_benchmark(row["region"]) or near.has(row["region"])):
                    reasons["held out"] += 1
                else:
                    seen.update((row["region"], subject))
                    rows.append(row)
        return rows

    rows = chosen(options.mined, False)
    random.Random(0).shuffle(rows)
    unfinished = options.out.with_suffix(".part")
    unfinished.write_text("".join(json.dumps(row) + "\n" for row in rows))
    unfinished.replace(options.out)
    report: dict[str, Any] = {
        "rows": len(rows),
        "left_out": dict(reasons),
        "by_repository": dict(Counter(r["repo"] for r in rows).most_common()),
        "with_import": sum(bool(r["imports"]) for r in rows),
        "sha256": hashlib.sha256(options.out.read_bytes()).hexdigest(),
    }
    if options.evaluation:
        held = chosen(options.held_out, True)
        random.Random(0).shuffle(held)
        options.evaluation.write_text("".join(json.dumps(row) + "\n" for row in held))
        report["held_out"] = dict(Counter(r["repo"] for r in held).most_common())
        report["held_out_sha256"] = hashlib.sha256(options.evaluation.read_bytes()).hexdigest()
    options.out.with_suffix(".report").write_text(json.dumps(report, indent=1))
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
