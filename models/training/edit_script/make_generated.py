"""Shards of generated edits, from the snippets and the generator in `models.training`.

    PYTHONPATH=app:.:RECIPE python make_generated.py --snippets 40000 --seed 1 --out shards
    PYTHONPATH=app:.:RECIPE python make_generated.py --evaluation --out evaluation

Runs in the repository's root. Every `--part` snippets make one file, `generated-SEED-NUMBER.jsonl`,
so that a training run can take them up while others are being made. The same seed makes the same
files.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import asdict
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import script_format as fmt

from models.training import data as generator
from models.training import reasons
from models.training.variants import examples

SKIPPED = frozenset(["invert_if"])
EDITS_OF_A_SNIPPET = 7

_names: Any = None
_weights: Any = None


def _set_up(names: Any, weights: Any, prose: Any) -> None:
    global _names, _weights
    reasons.use_prose(prose)
    generator.ATTEMPTS = 40
    _names, _weights = names, weights


def _rows_of(job: tuple[str, list[dict[str, Any]]]) -> list[tuple[str, list[tuple[str, str, str]]]]:
    seed, snippets = job
    rng = random.Random(seed)
    rows: list[tuple[str, list[tuple[str, str, str]]]] = []
    for snippet in snippets:
        chosen = generator._choose(rng, _weights)
        made = examples(
            snippet["text"],
            snippet["package"],
            _names,
            rng,
            chosen,
            held_out=False,
            plain=False,
            most=EDITS_OF_A_SNIPPET,
        )
        regions: dict[str, list[tuple[str, str, str]]] = {}
        for example in made:
            if example.kept or example.earlier:
                continue
            margin = fmt.margin_of(example.region)
            before = fmt.strip(example.region, margin)
            after = None if example.target is None else fmt.strip(example.target, margin)
            script = fmt.script(before, after)
            if after is None or fmt.apply(before, script) == after:
                regions.setdefault(before, []).append((example.task, example.instruction, script))
        rows += regions.items()
    return rows


def _parts(rows: list[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    for at in range(0, len(rows), size):
        yield rows[at : at + size]


def main() -> None:
    """Write shards, or the evaluation sets of known and new phrasings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("models/training/data"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--snippets", type=int, default=40_000)
    parser.add_argument("--part", type=int, default=2_000, help="snippets of a file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--evaluation", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    generator.ATTEMPTS = 40
    rows = [json.loads(line) for line in (options.data / "train.jsonl").read_text().splitlines()]
    random.Random(0).shuffle(rows)
    names = generator.name_pool(rows)
    measured = options.data / "applicability.json"
    if not measured.exists():
        measured.write_text(json.dumps(generator.applicability(rows, names)))
    if options.evaluation:
        held = [
            json.loads(line) for line in (options.data / "heldout.jsonl").read_text().splitlines()
        ]
        tasks = [task for task in generator.TASK_NAMES if task not in SKIPPED]
        reasons.use_prose(reasons.prose_of([row["text"] for row in rows]))
        for name, new in (("known", False), ("new", True)):
            made = generator.evaluation_set(held, 12, held_out=new, seed=7 + new, tasks=tasks)
            lines = (json.dumps(asdict(example)) + "\n" for example in made)
            (options.out / f"eval_{name}.jsonl").write_text("".join(lines))
        return
    prose = reasons.prose_of([row["text"] for row in rows])
    weights = generator.weights_of(json.loads(measured.read_text()), SKIPPED)
    random.Random(f"order {options.seed}").shuffle(rows)
    parts = list(_parts(rows[: options.snippets], options.part))
    with Pool(options.jobs, _set_up, (names, weights, prose)) as pool:
        for number, part in enumerate(parts):
            jobs = [(f"{options.seed}-{number}-{k}", p) for k, p in enumerate(_parts(part, 100))]
            target = options.out / f"generated-{options.seed:02}-{number:03}.jsonl"
            unfinished = target.with_suffix(".part")
            edits = 0
            with unfinished.open("w") as file:
                for made in pool.imap(_rows_of, jobs):
                    for region, group in made:
                        edits += len(group)
                        file.write(json.dumps({"region": region, "edits": group}) + "\n")
            unfinished.replace(target)
            print(target.name, edits, flush=True)


if __name__ == "__main__":
    main()
