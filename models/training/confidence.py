"""Calibrate how sure a model folder may be of an answer, on requests that it was not trained on.

    PYTHONPATH=app:. python -m models.training.confidence set --data DATA \
        --evaluation EVALUATION --wishes wishes_apart.txt --out apart.jsonl
    PYTHONPATH=app:. python -m models.training.evaluate FOLDER --per-kind 1000 \
        --sets apart=apart.jsonl hand=models/training/human/edits.toml --save report.json
    PYTHONPATH=app:. python -m models.training.confidence fit report.json --folder FOLDER

``set`` writes requests of the generator about held-out code, which no other set asks, and as many
everyday wishes. ``fit`` fits a logistic regression on the answers to the set ``apart`` that change
something, writes it into the folder, and reports every set of the report by its confidence; of
``apart`` by folds of regions. ``tell`` reports the same of a folder that is calibrated.

An answer is right if it is the same program as the one that was written for its request, or another
one that was read and found right (``texts/accepted.txt``), so a little more is right than counted.

What told nothing more by folds: the lowest log-probability of a change and the first one's, the
doubt of what is copied, how much is left out, the signs in the text (``edits.doubt.signs``),
whether words of the request come up in the change or the region, their number, how many names are
new. Back quotes in the request do, but only because the generator writes them; people do not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from midstream.engine.confidence import weighed
from midstream.engine.folder import Calibration, read_folder
from models.training import script_format as fmt
from models.training.data import blocks, corpus_of, frozen
from models.training.regression import area, expected_from, fitted, with_section
from models.training.wordings import TEXTS, table

Array = np.ndarray[Any, Any]
Row = dict[str, Any]

FITTED_ON: Final = "apart"
USED: Final = ("mean", "doubt", "changes", "size")
"""Features that are weighed, of those that the engine finds."""
FOLDS: Final = 8
KEYS: Final = ("before", "instruction", "text")
"""What an answer that was found right by reading is known by."""
EACH: Final = 60
"""Requests of each sort of the generator."""
MEASURED_PER_KIND: Final = 2
"""Requests of a kind in the sets "known" and "new" that ``evaluate`` asks, the first ones."""
_SIGNATURE: Final = re.compile(r"def (\w+)\(([^()]*)\)")


def digest(*texts: str) -> str:
    """Return the start of the SHA-256 of some texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def accepted() -> frozenset[str]:
    """Return the digests of region, request and answer that were found right by reading."""
    return frozenset((TEXTS / "accepted.txt").read_text("utf-8").split())


def wished(texts: Sequence[Path], corpus: dict[str, str], count: int) -> list[Row]:
    """Return some wishes in one wording each, in the form of the generator's examples."""
    rng = random.Random(7)
    rows: list[Row] = []
    for path in texts:
        for language, region, requests in blocks(path.read_text("utf-8"), corpus):
            for asked, script in requests:
                left = script.strip() == "="
                rows.append(
                    {
                        "task": f"wish {len(rows)}",
                        "package": digest(region),
                        "language": language,
                        "region": region,
                        "instruction": rng.choice(asked.split(" | ")).strip(),
                        "target": None if left else fmt.apply(region, script),
                    }
                )
    rng.shuffle(rows)
    return rows[:count]


def unmeasured(path: Path) -> list[Row]:
    """Return the examples of a set of the generator that no measurement asks, in random order."""
    rows: list[Row] = []
    seen: Counter[str] = Counter()
    for line in path.read_text("utf-8").splitlines():
        row: Row = json.loads(line)
        seen[row["task"]] += 1
        if seen[row["task"]] > MEASURED_PER_KIND:
            rows.append(row)
    random.Random(3).shuffle(rows)
    return rows


def reworded(examples: Sequence[Row], count: int) -> list[Row]:
    """Put free words round the requests of some examples."""
    rng = random.Random(5)
    (forms,) = table("reworded").values()
    return [
        row | {"instruction": rng.choice(forms).format(x=row["instruction"].rstrip("."))}
        for row in rng.sample(examples, min(count, len(examples)))
    ]


def outside(snippets: Sequence[Row]) -> list[Row]:
    """Return requests that no task covers, to be left alone."""
    rng = random.Random(6)
    functions = [
        (row, found)
        for row in snippets
        if 3 <= row["text"].count("\n") <= 25 and (found := _SIGNATURE.search(row["text"]))
    ]
    made: list[Row] = []
    for form in table("outside")[""] if functions else ():
        row, found = rng.choice(functions)
        names = [n for n in re.findall(r"(?:^|,)\s*(\w+)", found[2]) if n not in ("self", "cls")]
        if "{name}" in form and not names:
            continue
        quote = "`" if rng.random() < 0.4 else ""
        name = rng.choice(names) if names else ""
        asked = form.format(fn=f"{quote}{found[1]}{quote}", name=f"{quote}{name}{quote}")
        about = {"package": row["package"], "region": row["text"]}
        made.append(about | {"instruction": asked, "target": None})
    return made


def generated(data: Path, evaluation: Path) -> list[Row]:
    """Return requests of the generator that no set asks, some of them in free words, and goals."""
    snippets = [json.loads(line) for line in (data / "heldout.jsonl").read_text().splitlines()]
    known, new = (unmeasured(evaluation / f"eval_{name}.jsonl") for name in ("known", "new"))
    doable = [row for row in new[EACH:] + known[EACH:] if row["target"] is not None]
    held = corpus_of(data / "heldout.jsonl")
    goals = [
        {
            "package": digest(row["region"]),
            "region": row["region"],
            "instruction": asked,
            "target": fmt.apply(row["region"], script),
        }
        for row in frozen((TEXTS / "goals_apart.jsonl").read_text("utf-8"), held)
        for _, asked, script in row["edits"]
    ]
    sorts: dict[str, list[Row]] = {
        "known": known[:EACH],
        "new": new[:EACH],
        "reworded": reworded(doable, EACH),
        "outside": random.Random(6).sample(away := outside(snippets), min(EACH // 2, len(away))),
        "goals": goals[:EACH],
    }
    keys = ("package", "region", "instruction", "target")
    return [
        {"task": f"{sort} {number}", **{key: row[key] for key in keys}}
        for sort, rows in sorts.items()
        for number, row in enumerate(rows)
    ]


def taken(rows: Sequence[Row]) -> list[Row]:
    """Return the answers that change something and are complete, with ``right`` after reading."""
    known = accepted()
    return [
        row | {"right": row["right"] or digest(*(row[key] for key in KEYS)) in known}
        for row in rows
        if row["changed"] and row["features"]
    ]


def chances_of(rows: Sequence[Row]) -> tuple[Calibration, Array]:
    """Fit a calibration; return it, and the chances of the rows by folds of regions.

    Raises:
        SystemExit: There is too little to fit on.
    """
    right = np.array([row["right"] for row in rows], float)
    if len(rows) < 50 or not 0 < right.mean() < 1:
        raise SystemExit(f"{len(rows)} answers change something: too few to calibrate on.")
    inputs = np.array([[row["features"].get(name, 0.0) for name in USED] for row in rows])
    mean, spread = inputs.mean(axis=0), inputs.std(axis=0) + 1e-9
    inputs = (inputs - mean) / spread
    fold = np.array([int(digest(row["before"]), 16) % FOLDS for row in rows])
    chances = np.full(len(rows), right.mean())
    for number in range(FOLDS):
        inside, out = fold != number, fold == number
        if out.any() and 0 < right[inside].mean() < 1:
            weights = fitted(inputs[inside], right[inside])
            chances[out] = 1 / (1 + np.exp(-(weights[0] + inputs[out] @ weights[1:])))
    weights = fitted(inputs, right)
    raw = weights[1:] / spread
    table = Calibration(
        round(expected_from(chances), 4),
        round(float(weights[0] - (raw * mean).sum()), 4),
        {name: round(float(weight), 4) for name, weight in zip(USED, raw, strict=True)},
    )
    return table, chances


def told(name: str, right: Array, chances: Array, threshold: float) -> list[str]:
    """Describe one set: answers below and above the threshold, and by tenths."""
    wrong, low = 1 - right, chances < threshold
    both = 0 < right.sum() < len(right)
    kept = int((~low).sum())
    lines = [
        f"{name}: {len(right)} answers change something, {right.sum():.0f} are right"
        + (f"; AUC {area(chances, right):.3f}" if both else ""),
        f"  not flagged {kept}, right of them {right[~low].sum():.0f}"
        f"; flagged: wrong {wrong[low].sum():.0f} of {wrong.sum():.0f}"
        f", right {right[low].sum():.0f} of {right.sum():.0f}",
    ]
    for tenth in range(10):
        here = (chances >= tenth / 10) & (chances < (tenth + 1) / 10 + (tenth == 9))
        if here.any():
            lines.append(f"  {tenth / 10:.1f}: right {right[here].sum():.0f} of {here.sum()}")
    return lines


def fit(report: dict[str, Any], folder: Path | None) -> list[str]:
    """Fit on a report of ``evaluate``, write the result into a folder, and describe it."""
    sets = sets_of(report)
    if FITTED_ON not in sets:
        raise SystemExit(f"The report has no set {FITTED_ON}.")
    table, folds = chances_of(sets[FITTED_ON])
    written: dict[str, Any] = {
        "threshold": table.threshold,
        "bias": table.bias,
        "weights": dict(table.weights),
    }
    lines = [json.dumps(written), *tell(sets, table, folds)]
    if folder is not None:
        card = folder / "midstream.toml"
        card.write_text(with_section(card.read_text("utf-8"), written), "utf-8")
    return lines


def sets_of(report: dict[str, Any]) -> dict[str, list[Row]]:
    """Return the answers of each set of a report of ``evaluate``; see ``taken``."""
    return {key.partition(" ")[2]: taken(value["rows"]) for key, value in report.items()}


def tell(
    sets: dict[str, list[Row]], table: Calibration, folds: Array | None = None
) -> Iterator[str]:
    """Describe each set; ``folds`` has the chances of the one that was fitted on."""
    for name, rows in sets.items():
        right = np.array([row["right"] for row in rows], float)
        chances = np.array([weighed(table, row["features"]) for row in rows])
        if folds is not None and name == FITTED_ON:
            chances = folds
        yield from told(name, right, chances, table.threshold)


def main() -> None:
    """Write the set, fit, or tell."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parts = parser.add_subparsers(dest="what", required=True)
    made = parts.add_parser("set")
    made.add_argument("--data", type=Path, required=True, help="folder of train and heldout.jsonl")
    made.add_argument("--evaluation", type=Path, required=True, help="folder of eval_*.jsonl")
    made.add_argument("--wishes", type=Path, nargs="+", required=True, help="texts")
    made.add_argument("--out", type=Path, required=True)
    fitting = parts.add_parser("fit")
    fitting.add_argument("report", type=Path, help="of evaluate, with the set apart")
    fitting.add_argument("--folder", type=Path, help="where [confidence] is written")
    telling = parts.add_parser("tell")
    telling.add_argument("report", type=Path, help="of evaluate")
    telling.add_argument(
        "--folder", type=Path, required=True, help="the folder whose [confidence] is described"
    )
    options = parser.parse_args()
    if options.what == "tell":
        table = read_folder(options.folder).confidence
        if table is None:
            raise SystemExit(f"{options.folder / 'midstream.toml'} has no [confidence].")
        report = json.loads(options.report.read_text("utf-8"))
        print("\n".join(tell(sets_of(report), table)))
        return
    if options.what == "fit":
        print("\n".join(fit(json.loads(options.report.read_text("utf-8")), options.folder)))
        return
    rows = generated(options.data, options.evaluation)
    corpus = corpus_of(options.data / "train.jsonl")
    rows += wished(options.wishes, corpus, len(rows))
    random.Random(8).shuffle(rows)
    options.out.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    print(len(rows))


if __name__ == "__main__":
    main()
