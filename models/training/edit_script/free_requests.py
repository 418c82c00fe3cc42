"""Requests that confidence and the takeover are fitted on: free words, none of an evaluation set.

    PYTHONPATH=app:. python -m models.training.edit_script.free_requests --data DATA \
        --evaluation evaluation --out evaluation

Writes `free.jsonl` from code that was never trained on: requests of the generator that `measure`
leaves out, the same with free words round them, wishes that no task covers (to be left alone),
generated goals, and the commits behind those that `measure` asks.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from models.training.confidence import outside, reworded
from models.training.edit_script import script_format

sys.modules.setdefault("script_format", script_format)  # `goals` runs in its folder

MEASURED_PER_KIND = 2
"""Requests of a kind that `measure` asks, the first ones."""
MEASURED_COMMITS = 400
"""Commits that are measured at most, the first ones of the file, which has a random order."""
GOAL_SNIPPETS = 1_500


def examples(path: Path) -> list[dict[str, Any]]:
    """Return the generator's examples that are not measured, in random order."""
    rows: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    for line in path.read_text("utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        seen[row["task"]] = seen.get(row["task"], 0) + 1
        if seen[row["task"]] > MEASURED_PER_KIND:
            rows.append(row)
    random.Random(3).shuffle(rows)
    return rows


def goals(snippets: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield goals, one a snippet."""
    from models.training.edit_script.goals import rows_of

    rng = random.Random(4)
    for snippet in rng.sample(snippets, min(GOAL_SNIPPETS, len(snippets))):
        made = rows_of(snippet["text"], rng, 1, frozenset(), {})
        if made:
            region, [(_, request, script)] = made
            after = script_format.apply(region, script)
            yield {
                "package": snippet["package"],
                "region": region,
                "instruction": request,
                "target": after,
            }


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with heldout.jsonl")
    parser.add_argument("--evaluation", type=Path, required=True, help="eval_*, commits_heldout")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--each", type=int, default=60, help="requests of a sort")
    options = parser.parse_args()
    each: int = options.each
    snippets = [
        json.loads(line) for line in (options.data / "heldout.jsonl").read_text().splitlines()
    ]
    known, new = (examples(options.evaluation / f"eval_{name}.jsonl") for name in ("known", "new"))
    commits = (options.evaluation / "commits_heldout.jsonl").read_text("utf-8").splitlines()
    fitted: list[dict[str, Any]] = [json.loads(line) for line in commits[MEASURED_COMMITS:]]
    sorts: dict[str, list[dict[str, Any]]] = {
        "known": known[:each],
        "new": new[:each],
        "reworded": reworded(
            [row for row in new[each:] + known[each:] if row["target"] is not None], each
        ),
        "outside": [
            {"package": package, "region": region, "instruction": words, "target": None}
            for package, words, region in random.Random(6).sample(outside(snippets, 1), each)
        ],
        "goals": [row for row, _ in zip(goals(snippets), range(each), strict=False)],
        "commits": [
            {
                "package": row["repo"],
                "region": row["region"],
                "instruction": row["edits"][0][1],
                "target": script_format.apply(row["region"], row["edits"][0][2]),
            }
            for row in fitted[:each]
        ],
    }
    with (options.out / "free.jsonl").open("w", encoding="utf-8") as file:
        for sort, rows in sorts.items():
            for number, row in enumerate(rows):
                kept = {key: row[key] for key in ("package", "region", "instruction", "target")}
                file.write(json.dumps({"task": f"{sort} {number}", **kept}) + "\n")
            print(sort, len(rows))


if __name__ == "__main__":
    main()
