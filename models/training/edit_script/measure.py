"""Measure a model folder as the product runs it: quantised, drafted, greedy, through the engine.

    python -m models.training.edit_script.measure FOLDER --sets human=models/training/human/edits.toml \
        known=evaluation/eval_known.jsonl new=... commits=... goals=... --save report.json

Per set: exact answers, the same program, harm, and how right the answers are by confidence. With
`--calibrate` confidence and its threshold are fitted on the set `free` (`free_requests`) alone and
written into the folder: so high that, if as many answers were wrong as right, those that are not
flagged would be right as often as `models.training.confidence` wants.
Harm is an answer that is not right and is no Python any more, uses a name that nothing defines, or
deletes lines that nobody asked to delete.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from midstream.edits.request import RegionRequest, render_request
from midstream.edits.signs import read_signs, strangers
from midstream.engine.confidence import EditJudge, weighed
from midstream.engine.folder import Calibration, read_folder
from midstream.engine.model import OnnxModel
from midstream.engine.types import FinishReason, GenerateRequest, Message
from midstream.errors import UserError
from models.training.confidence import FOLDS
from models.training.edit_script.items import Item, items_of, same_programs
from models.training.edit_script.script_format import apply
from models.training.regression import area, fitted, trusted_from, with_section

Array = np.ndarray[Any, Any]

FITTED_ON: Final = "free"
"""The set that confidence is fitted on; the others choose nothing."""


@dataclass(slots=True)
class Answer:
    """What came of one request."""

    item: Item
    group: str
    text: str
    finished: bool
    gave_up: bool
    found: dict[str, float]
    milliseconds: float
    forwards: int
    tokens: int
    confidence: float = 0.0
    same: bool = False
    """Whether it is right in whatever form."""

    @property
    def changed(self) -> bool:
        return self.text != self.item.before

    @property
    def exact(self) -> bool:
        return not self.changed if self.item.left else self.text in self.item.right

    @property
    def harms(self) -> tuple[str, ...]:
        """What is wrong with it beyond not being what was asked for."""
        if not self.changed or self.same:
            return ()
        asked, before = self.item.instruction, self.item.before
        signs = read_signs(asked, before, self.text)
        odd = () if signs.broken else strangers(asked, before, self.text)
        found = {
            "syntax": signs.broken,
            "undefined": bool(signs.unbound or odd),
            "deleted": signs.deleted > 0,
        }
        return tuple(name for name, there in found.items() if there)

    def row(self) -> dict[str, Any]:
        """Return what is saved of it."""
        return {
            "set": self.group,
            "name": self.item.name,
            "kind": self.item.kind,
            "package": self.item.package,
            "left": self.item.left,
            "instruction": self.item.instruction,
            "before": self.item.before,
            "right": self.item.right,
            "text": self.text,
            "exact": self.exact,
            "same": self.same,
            "harms": self.harms,
            "answered": self.finished,
            "gave_up": self.gave_up,
            "confidence": round(self.confidence, 4),
            "features": self.found,
            "milliseconds": round(self.milliseconds),
            "forwards": self.forwards,
            "tokens": self.tokens,
        }

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Answer:
        """Return what `row` was made from."""
        texts = [row[key] for key in ("name", "kind", "package", "before", "instruction")]
        return cls(
            Item(*texts, tuple(row["right"]), row["left"]),
            row["set"],
            row["text"],
            row["answered"],
            row["gave_up"],
            row["features"],
            row["milliseconds"],
            row["forwards"],
            row["tokens"],
            row["confidence"],
            row["same"],
        )


class Prober:
    """Asks a model folder, and keeps what its judge finds."""

    def __init__(self, folder: Path, threads: int | None) -> None:
        known = read_folder(folder)
        self.table = known.confidence
        self._model = OnnxModel(
            replace(known, confidence=known.confidence or Calibration(0.0, 0.0, {})),
            threads=threads,
        )

    def ask(self, group: str, item: Item) -> Answer:
        """Return the answer to one request; the region as it was where there is none."""
        text = render_request(RegionRequest(item.instruction, item.before, language="python"))
        began = time.perf_counter()
        try:
            generation = self._model.answer(GenerateRequest((Message("user", text),)))
            pieces = "".join(piece.text for piece in generation)
        except UserError:
            return Answer(item, group, item.before, False, False, {}, 0.0, 0, 0)
        spent = 1000 * (time.perf_counter() - began)
        usage, judge = generation.usage, generation.judge
        finished = generation.finish_reason is FinishReason.STOP
        if not finished or not isinstance(judge, EditJudge):
            return Answer(item, group, item.before, False, False, {}, spent, usage.forwards, 0)
        return Answer(
            item,
            group,
            pieces,
            True,
            usage.gave_up,
            judge.features(),
            spent,
            usage.forwards,
            usage.output_tokens,
            usage.confidence or 0.0,
        )


def calibrated(answers: Sequence[Answer]) -> tuple[Calibration, dict[str, float]]:
    """Fit weights and threshold on answers that change something; figures are of five folds.

    Raises:
        SystemExit: there are too few, or all are right or wrong.
    """
    cases = [answer for answer in answers if answer.changed and answer.found]
    right = np.array([answer.same for answer in cases], float)
    if len(cases) < 50 or not 0 < right.mean() < 1:
        raise SystemExit(f"{len(cases)} answers change something: too few to calibrate on.")
    names = sorted({name for case in cases for name in case.found})
    inputs = np.array([[case.found.get(name, 0.0) for name in names] for case in cases])
    mean, spread = inputs.mean(axis=0), inputs.std(axis=0) + 1e-9
    inputs = (inputs - mean) / spread
    keys = [case.item.package or f"{case.group} {case.item.name}" for case in cases]
    fold = np.array([sorted(set(keys)).index(key) % FOLDS for key in keys])
    chances = np.full(len(cases), right.mean())
    for number in range(FOLDS):
        inside, out = fold != number, fold == number
        if out.any() and 0 < right[inside].mean() < 1:
            weights = fitted(inputs[inside], right[inside])
            chances[out] = 1 / (1 + np.exp(-(weights[0] + inputs[out] @ weights[1:])))
    threshold = trusted_from(chances, right)
    weights = fitted(inputs, right)
    raw = weights[1:] / spread
    table = Calibration(
        round(threshold, 4),
        round(float(weights[0] - (raw * mean).sum()), 4),
        {name: round(float(weight), 4) for name, weight in zip(names, raw, strict=True)},
    )
    kept = chances >= threshold
    return table, {
        "auc": round(area(chances, right), 3),
        "unflagged": round(100 * float(kept.mean()), 1),
        "right_unflagged": round(100 * float(right[kept].mean()), 1) if kept.any() else 0.0,
    }


def figures(answers: Sequence[Answer], table: Calibration | None) -> dict[str, Any]:
    """Return the report of one set, shares in per cent."""
    asked = [answer for answer in answers if not answer.item.left]
    left = [answer for answer in answers if answer.item.left]
    count = max(1, len(asked))

    def share(number: float, of: float) -> float:
        return round(100 * number / of, 1) if of else 0.0

    report: dict[str, Any] = {
        "n": len(asked),
        "exact": share(sum(answer.exact for answer in asked), count),
        "same": share(sum(answer.same for answer in asked), count),
        "unchanged": share(sum(not answer.changed for answer in asked), count),
        "declined": share(sum(answer.gave_up for answer in asked), count),
        "left_alone": f"{sum(answer.exact for answer in left)} of {len(left)}",
        "harm": {
            kind: share(sum(kind in answer.harms for answer in answers), len(answers))
            for kind in ("syntax", "undefined", "deleted")
        },
        "milliseconds": round(median(answer.milliseconds for answer in answers)),
        "forwards": median(answer.forwards for answer in answers),
        "tokens": median(answer.tokens for answer in answers),
    }
    if table is not None:
        changed = [answer for answer in answers if answer.changed]
        sure = [answer for answer in changed if answer.confidence >= table.threshold]
        report["unflagged"] = len(sure)
        report["right_unflagged"] = share(sum(answer.same for answer in sure), len(sure))
        report["harm_unflagged"] = share(sum(bool(a.harms) for a in sure), len(sure))
        report["by_confidence"] = dict(levels(changed))
    return report


def levels(answers: Sequence[Answer]) -> Iterator[tuple[str, str]]:
    """Yield how many answers of each fifth of the confidence scale are right."""
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        here = [a for a in answers if low <= a.confidence < low + 0.2 + (low == 0.8)]
        yield f"{low:.1f}", f"{sum(a.same for a in here)} of {len(here)}"


def main() -> None:
    """Print one line a set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="*", default=[], help="NAME=FILE")
    parser.add_argument(
        "--add", type=Path, nargs="*", default=[], help="reports of other sets of the same folder"
    )
    parser.add_argument("--per-kind", type=int, default=2)
    parser.add_argument("--items", type=int, default=100_000, help="of a set, about at most")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--calibrate", action="store_true", help="fit and write [confidence]")
    parser.add_argument("--save", type=Path, help="write the report and every answer as JSON")
    options = parser.parse_args()
    prober = Prober(options.folder, options.threads)
    answers: dict[str, list[Answer]] = {}
    for pair in options.sets:
        name, _, file = pair.partition("=")
        items = items_of(Path(file), options.per_kind, options.items, apply)
        answers[name] = [prober.ask(name, item) for item in items]
        verdicts = same_programs([(answer.item, answer.text) for answer in answers[name]])
        for answer, same in zip(answers[name], verdicts, strict=True):
            answer.same = same
        print(name, json.dumps(figures(answers[name], prober.table)), flush=True)
    table, fit = prober.table, dict[str, float]()
    added = [row for file in options.add for row in json.loads(file.read_text("utf-8"))["answers"]]
    for row in added:
        answers.setdefault(row["set"], []).append(Answer.of_row(row))
    for name in dict.fromkeys(row["set"] for row in added):
        print(name, json.dumps(figures(answers[name], prober.table)), flush=True)
    if options.calibrate:
        if FITTED_ON not in answers:
            raise SystemExit(f"--calibrate needs the set {FITTED_ON}=FILE (free_requests).")
        table, fit = calibrated(answers[FITTED_ON])
        written = {"threshold": table.threshold, "bias": table.bias, "weights": table.weights}
        card = options.folder / "midstream.toml"
        card.write_text(with_section(card.read_text("utf-8"), written), "utf-8")
        assert tomllib.loads(card.read_text("utf-8"))["confidence"]["bias"] == table.bias
        print("calibration", json.dumps(fit | written), flush=True)
        for name, part in answers.items():
            for answer in part:
                answer.confidence = weighed(table, answer.found) if answer.found else 0.0
            print(name, json.dumps(figures(part, table)), flush=True)
    if options.save:
        rows = [answer.row() for part in answers.values() for answer in part]
        report = {name: figures(part, table) for name, part in answers.items()}
        saved = {
            "model": options.folder.name,
            "threshold": table.threshold if table else None,
            "sets": report,
            "calibration": fit,
            "answers": rows,
        }
        options.save.write_text(json.dumps(saved, indent=1), "utf-8")


if __name__ == "__main__":
    main()
