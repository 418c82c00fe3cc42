"""Measure whether a model folder knows that it has misunderstood, and calibrate it.

What the engine finds in an answer (`midstream.engine.confidence.features`) is weighed by a logistic
regression, so that the result is the share of right answers among such ones. Only answers that
change something are looked at: an answer that changes nothing cannot be taken for a right one.

Sets, all of packages that were never trained on: `known` and `new` are those of `evaluate`;
`reworded` puts free words round some of them, `outside` asks for what no task covers (see
`confidence_requests`). Every figure is of packages that the weights for it were not fitted on (five
folds). The threshold is the highest one that flags at most one right answer in ten of `known` and
of `new`, or a higher one that free words need (`RIGHT_UNFLAGGED`). The edits written by hand are
measured with `--human` and choose nothing.

What did not help, on the sets of `evaluate` and by folds: the margin to the runner-up in place of
or beside the probability, the lowest probability, how many are low, the length of answer or
request, and how many names are new.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from midstream.edits.request import RegionRequest, render_request
from midstream.engine.confidence import EditJudge, weighed
from midstream.engine.edit_request import EditRequest
from midstream.engine.folder import Calibration, read_folder
from midstream.engine.model import OnnxModel
from midstream.engine.types import FinishReason, GenerateRequest, Message
from midstream.errors import UserError
from models.training import human
from models.training.confidence_requests import OUTSIDE, REWORDED
from models.training.evaluate import load, percent, request_of, tree
from models.training.regression import area, fitted, trusted_from, with_section

Array = np.ndarray[Any, Any]

FALSE_ALARMS: Final = 0.1
"""Most right answers that may be flagged, of `known` and of `new`."""
FREE: Final = ("reworded", "outside")
FOLDS: Final = 5
LISTED: Final = re.compile(r"^\s+(\S.*)$", re.MULTILINE)
_SIGNATURE: Final = re.compile(r"def (\w+)\(([^()]*)\)")


@dataclass(frozen=True, slots=True)
class Case:
    """One answer.

    Attributes:
        group: which set it is of.
        package: where its snippet is from.
        right: whether it is the right one, or the same program.
        changed: whether it changes anything.
        found: its features.
    """

    group: str
    package: str
    right: bool
    changed: bool
    found: dict[str, float]


class Prober:
    """Asks a model folder and keeps what its judge finds, whether it is calibrated or not."""

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        """Load the folder."""
        self._model = OnnxModel(
            replace(read_folder(folder), confidence=Calibration(0.0, 0.0, {})), threads=threads
        )

    def ask(self, request: EditRequest) -> tuple[str, dict[str, float]] | None:
        """Return the rewrite and its features; None where there is no complete one."""
        region = RegionRequest(request.instruction, request.region, language="python")
        try:
            generation = self._model.answer(
                GenerateRequest((Message("user", render_request(region)),))
            )
            text = "".join(piece.text for piece in generation)
        except UserError:
            return None
        judge = generation.judge
        if generation.finish_reason is not FinishReason.STOP or not isinstance(judge, EditJudge):
            return None
        return text, judge.features()

    def case(self, group: str, package: str, request: EditRequest, right: Sequence[str]) -> Case:
        """Ask, and compare with the right answers; without an answer nothing is changed."""
        answer = self.ask(request)
        text, found = (request.region, {}) if answer is None else answer
        same = text in right
        if not same and (made := tree(text)) is not None:
            same = made in map(tree, right)
        return Case(group, package, same, text != request.region, found)

    def close(self) -> None:
        """Free the model."""
        self._model.close()


def reworded(examples: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Put free words round the requests of some examples."""
    rng = random.Random(5)
    forms = LISTED.findall(REWORDED)
    return [
        row | {"instruction": rng.choice(forms).format(x=row["instruction"].rstrip("."))}
        for row in rng.sample(examples, min(count, len(examples)))
    ]


def outside(snippets: Sequence[dict[str, Any]], each: int) -> list[tuple[str, str, str]]:
    """Make requests that no task covers; returns (package, instruction, region) of each."""
    rng = random.Random(6)
    functions = [
        (row, found)
        for row in snippets
        if 3 <= row["text"].count("\n") <= 25 and (found := _SIGNATURE.search(row["text"]))
    ]
    made: list[tuple[str, str, str]] = []
    for form in LISTED.findall(OUTSIDE):
        for row, found in rng.sample(functions, min(each, len(functions))):
            names = re.findall(r"(?:^|,)\s*(\w+)", found[2])
            names = [name for name in names if name not in ("self", "cls")]
            if "{name}" in form and not names:
                continue
            quote = "`" if rng.random() < 0.4 else ""
            name = rng.choice(names) if names else ""
            words = form.format(fn=f"{quote}{found[1]}{quote}", name=f"{quote}{name}{quote}")
            made.append((row["package"], words, row["text"]))
    return made


@dataclass(frozen=True, slots=True)
class FittedConfidence:
    """What was fitted, and what it gave for each case by folds.

    Attributes:
        table: what goes into the model folder.
        chances: [cases], of weights fitted on other packages.
    """

    table: Calibration
    chances: Array


def calibrate(cases: Sequence[Case]) -> FittedConfidence:
    """Fit weights and threshold on answers that change something.

    Raises:
        SystemExit: there are too few of them, or all are right.
    """
    right = np.array([case.right for case in cases], float)
    if len(cases) < 100 or not 0 < right.mean() < 1:
        raise SystemExit(
            f"{len(cases)} answers change something and {int(right.sum())} of them are right: that "
            "is too little to calibrate on."
        )
    names = sorted({name for case in cases for name in case.found})
    inputs = np.array([[case.found.get(name, 0.0) for name in names] for case in cases])
    mean, spread = inputs.mean(axis=0), inputs.std(axis=0) + 1e-9
    inputs = (inputs - mean) / spread
    packages = sorted({case.package for case in cases})
    fold = np.array([packages.index(case.package) % FOLDS for case in cases])
    chances = np.full(len(cases), right.mean())
    for number in range(FOLDS):
        inside, out = fold != number, fold == number
        if out.any() and 0 < right[inside].mean() < 1:
            weights = fitted(inputs[inside], right[inside])
            chances[out] = 1 / (1 + np.exp(-(weights[0] + inputs[out] @ weights[1:])))
    groups = np.array([case.group for case in cases])
    threshold = chosen_threshold(groups, right, chances)
    weights = fitted(inputs, right)
    raw = weights[1:] / spread
    table = Calibration(
        round(threshold, 4),
        round(float(weights[0] - (raw * mean).sum()), 4),
        {name: round(float(weight), 4) for name, weight in zip(names, raw, strict=True)},
    )
    return FittedConfidence(table, chances)


def rechosen(cases: Sequence[Case], table: Calibration) -> FittedConfidence:
    """Keep the weights of a model folder and choose its threshold anew.

    The folder's weights have seen these packages, so the figures are a little too good.
    """
    chances = np.array([weighed(table, case.found) for case in cases])
    right = np.array([case.right for case in cases], float)
    groups = np.array([case.group for case in cases])
    threshold = round(chosen_threshold(groups, right, chances), 4)
    return FittedConfidence(replace(table, threshold=threshold), chances)


def chosen_threshold(groups: Array, right: Array, chances: Array) -> float:
    """Return the threshold for answers that change something; see the module's text."""
    chosen = [chances[(groups == name) & (right > 0)] for name in ("known", "new")]
    threshold = min(float(np.quantile(part, FALSE_ALARMS)) for part in chosen if len(part))
    free = np.isin(groups, FREE)
    return max(threshold, trusted_from(chances[free], right[free]))


def row(cases: Sequence[Case], chances: Array, threshold: float) -> dict[str, Any]:
    """Return what is told of one set: shares in per cent, of answers that change something."""
    right = np.array([case.right for case in cases], float)
    low = chances < threshold
    # Of a handful of right or wrong answers an area says nothing.
    auc = area(chances, right) if min(right.sum(), len(right) - right.sum()) >= 10 else None
    return {
        "answers": len(cases),
        "right": percent(right.mean(), 1) if len(cases) else 0.0,
        "auc": None if auc is None else round(auc, 3),
        "wrong_flagged": percent(int((low & (right == 0)).sum()), int((right == 0).sum())),
        "right_flagged": percent(int((low & (right > 0)).sum()), int(right.sum())),
        "right_among_flagged": percent(int((low & (right > 0)).sum()), int(low.sum())),
        "right_among_others": percent(int((~low & (right > 0)).sum()), int((~low).sum())),
    }


def measured(cases: Sequence[Case], calibration: FittedConfidence) -> dict[str, Any]:
    """Return the report of all sets."""
    changed = [case for case in cases if case.changed]
    table = calibration.table
    sets: dict[str, Any] = {}
    for name in dict.fromkeys(case.group for case in cases):
        at = [k for k, case in enumerate(changed) if case.group == name]
        asked = [case for case in cases if case.group == name]
        sets[name] = {
            "asked": len(asked),
            "left_alone": percent(sum(not case.changed for case in asked), len(asked)),
            **row([changed[k] for k in at], calibration.chances[at], table.threshold),
        }
    return {
        "threshold": table.threshold,
        "bias": table.bias,
        "weights": dict(table.weights),
        "auc": round(
            area(calibration.chances, np.array([case.right for case in changed], float)), 3
        ),
        "sets": sets,
    }


def by_hand(prober: Prober, table: Calibration) -> dict[str, Any]:
    """Return the row of the edits written by hand, with a calibration that did not see them."""
    cases: list[Case] = []
    for edit in human.load():
        right = (edit.before,) if edit.kind in human.LEFT_ALONE else edit.right
        cases.append(prober.case("human", "", EditRequest(edit.instruction, edit.before), right))
    changed = [case for case in cases if case.changed]
    chances = np.array([weighed(table, case.found) for case in changed])
    return {
        "asked": len(cases),
        "left_alone": percent(len(cases) - len(changed), len(cases)),
        **row(changed, chances, table.threshold),
    }


def told(report: Mapping[str, Any]) -> str:
    """Return a report as text."""
    lines = [
        f"threshold {report['threshold']}, AUC over all {report['auc']}",
        f"{'':10} {'asked':>6} {'alone':>6} {'changed':>8} {'right':>6} {'AUC':>6} "
        f"{'wrong flagged':>14} {'right flagged':>14} {'right if flagged, else':>23}",
    ]
    for name, part in report["sets"].items():
        auc = "-" if part["auc"] is None else part["auc"]
        lines.append(
            f"{name:10} {part['asked']:6} {part['left_alone']:5} % {part['answers']:8} "
            f"{part['right']:5}% {auc:>6} {part['wrong_flagged']:12} % {part['right_flagged']:12} %"
            f" {part['right_among_flagged']:9} % {part['right_among_others']:9} %"
        )
    return "\n".join(lines)


def cases_of(prober: Prober, data: Path, per_task: int) -> list[Case]:
    """Ask everything that the calibration is made from."""
    cases: list[Case] = []

    def ask(group: str, examples: Iterable[dict[str, Any]]) -> None:
        for example in examples:
            right = example["region"] if example["target"] is None else example["target"]
            cases.append(prober.case(group, example["package"], request_of(example), (right,)))

    doable: list[dict[str, Any]] = []
    for group in ("known", "new"):
        examples = load(data / f"eval_{group}.jsonl", per_task)
        examples = [row for row in examples if not row["kept"]]
        doable += [row for row in examples if row["task"] != "beyond"]
        ask(group, examples)
    ask("reworded", reworded(doable, 20 * per_task))
    snippets = [json.loads(line) for line in (data / "heldout.jsonl").read_text().splitlines()]
    for package, words, region in outside(snippets, max(1, per_task // 5)):
        cases.append(prober.case("outside", package, EditRequest(words, region), (region,)))
    return cases


def main() -> None:
    """Calibrate a model folder and say what that is worth."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--model", type=Path, default=Path("models/brook-4m"))
    parser.add_argument("--data", type=Path, default=Path("models/training/data"))
    parser.add_argument("--per-task", type=int, default=30)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--human", action="store_true", help="also measure the edits by hand")
    parser.add_argument(
        "--keep-weights", action="store_true", help="choose the threshold only, for these weights"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--save", action="store_true", help="write the calibration into the model folder"
    )
    arguments = parser.parse_args()
    folder: Path = arguments.model
    prober = Prober(folder, arguments.threads)
    cases = cases_of(prober, arguments.data, arguments.per_task)
    changed = [case for case in cases if case.changed]
    table = read_folder(folder).confidence
    if arguments.keep_weights and table is not None:
        calibration = rechosen(changed, table)
    else:
        calibration = calibrate(changed)
    report = measured(cases, calibration)
    if arguments.human:
        report["sets"]["human"] = by_hand(prober, calibration.table)
    prober.close()
    if arguments.save:
        facts, saved = folder / "midstream.toml", folder / "evaluation.json"
        facts.write_text(with_section(facts.read_text("utf-8"), report), "utf-8")
        everything: dict[str, Any] = json.loads(saved.read_text()) if saved.exists() else {}
        everything["confidence"] = report
        saved.write_text(json.dumps(everything, indent=1) + "\n")
    print(json.dumps(report, indent=1) if arguments.json else told(report))


if __name__ == "__main__":
    main()
