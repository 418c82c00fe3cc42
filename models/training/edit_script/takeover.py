"""Choose when the larger model takes over from the smaller one, and measure both together.

    python -m models.training.edit_script.takeover reports/brook.json reports/rill.json \
        --folder models/rill-116m --save reports/both.json

Works on reports that `measure` saved of both models on the same sets. The rule is the engine's
(`midstream.engine.cascade`). Threshold and comparison are chosen on the set `free` alone, for the
most right answers. No answer of the larger model goes unmarked with which the smaller one's would be
marked: the set has too few requests, too much like each other, to trust more of them. With
`--folder` all of it is written into the larger model's folder.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from models.training.edit_script.measure import FITTED_ON

HOLD: Final = 0.8
"""Answers of the larger model whose first token is less likely are held back until complete: of the
set `free`, half of the answers that take over, and one right answer in ten of these."""
DECLINE: Final = 0.1
"""Answers that were held back and change something are not shown below this probability: one in 56
of the set `free` was right, by folds."""
GRID: Final = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0)
"""Thresholds that are tried."""
SECTION: Final = re.compile(r"^\[takeover\]\n(?:[^\[\n][^\n]*\n|\n)*", re.MULTILINE)
FLAG: Final = re.compile(r"^(\[confidence\]\nthreshold = )[\d.]+", re.MULTILINE)

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """When the larger model's answer is shown: see `midstream.engine.folder.Takeover`."""

    threshold: float
    compare: float
    hold: float = HOLD
    decline: float = DECLINE


@dataclass(frozen=True, slots=True)
class Shown:
    """What the pair shows for one request.

    Attributes:
        answer: the row of the model whose answer it is; of a declined request, one that changes
            nothing.
        first: whether that is the smaller one.
        flagged: whether it is shown as unsure.
    """

    answer: Answer
    first: bool
    flagged: bool


def shown(first: Answer, second: Answer, rule: Rule, flags: tuple[float, float]) -> Shown:
    """Apply the rule to the answers of both; `flags` are the models' own thresholds."""
    # An answer that changes nothing has no probability: it is saved as 0.
    one, two = first["confidence"], second["confidence"]
    with_first = Shown(first, True, one < max(flags[0], rule.threshold))
    with_second = Shown(second, False, two < flags[1])
    usable = first["answered"] and not first["gave_up"] and one
    if usable and one >= rule.threshold:
        return with_first
    opening = math.exp(second["features"].get("opening", 0.0))
    waits = bool(usable) and one >= rule.compare
    if not waits and not second["gave_up"] and second["answered"] and opening >= rule.hold:
        return with_second

    def fails(answer: Answer) -> bool:
        changed = answer["answered"] and answer["text"] != answer["before"]
        return changed and answer["confidence"] < rule.decline

    if usable and not fails(first):
        silent = second["gave_up"] or not second["answered"] or not two
        if silent or (two < flags[1] and one > two):
            return with_first
    if not fails(second):
        return with_second
    text = second["before"]
    nothing = {"text": text, "exact": second["left"], "same": second["left"], "harms": ()}
    return Shown(second | nothing | {"gave_up": True}, False, True)


def pairs_of(
    first: Iterable[Answer], second: Iterable[Answer]
) -> dict[str, list[tuple[Answer, Answer]]]:
    """Return the answers of both to the requests that both were asked, by set."""
    there = {(row["set"], row["name"]): row for row in first}
    found: dict[str, list[tuple[Answer, Answer]]] = {}
    for row in second:
        if (other := there.get((row["set"], row["name"]))) is not None:
            assert other["instruction"] == row["instruction"], row["name"]
            found.setdefault(row["set"], []).append((other, row))
    return found


def chosen(pairs: Sequence[tuple[Answer, Answer]], flags: tuple[float, float]) -> Rule:
    """Return the rule with the most right answers; of equals the one that waits least."""

    def right(rule: Rule) -> int:
        return sum(shown(one, two, rule, flags).answer["same"] for one, two in pairs)

    rules = [
        Rule(threshold, compare)
        for threshold in GRID
        for compare in (threshold, *(value for value in GRID[::-1] if value < threshold))
    ]
    return max(rules, key=right)


def figures(answers: Sequence[Shown]) -> dict[str, Any]:
    """Return the report of one set, shares in per cent."""

    def share(number: int, of: int) -> float:
        return round(100 * number / of, 1) if of else 0.0

    asked = [a for a in answers if not a.answer["left"]]
    left = [a for a in answers if a.answer["left"]]
    changed = [a for a in answers if a.answer["text"] != a.answer["before"]]
    sure = [a for a in changed if not a.flagged]
    return {
        "n": len(asked),
        "exact": share(sum(a.answer["exact"] for a in asked), len(asked)),
        "same": share(sum(a.answer["same"] for a in asked), len(asked)),
        "left_alone": f"{sum(a.answer['exact'] for a in left)} of {len(left)}",
        "by_first": share(sum(a.first for a in answers), len(answers)),
        "unflagged": len(sure),
        "right_unflagged": share(sum(a.answer["same"] for a in sure), len(sure)),
        "harm": share(sum(bool(a.answer["harms"]) for a in answers), len(answers)),
        "harm_unflagged": share(sum(bool(a.answer["harms"]) for a in sure), len(sure)),
        "right_of": dict(
            Counter("first" if a.first else "second" for a in asked if a.answer["same"])
        ),
    }


def with_takeover(text: str, first: str, rule: Rule, flag: float) -> str:
    """Return the text of a `midstream.toml` with this `[takeover]` table and `[confidence]` threshold."""
    text = FLAG.sub(rf"\g<1>{flag}", SECTION.sub("", text))
    table = (
        f'[takeover]\nfirst = "{first}"\nthreshold = {rule.threshold}\ncompare = {rule.compare}\n'
        f"hold = {rule.hold}\ndecline = {rule.decline}\n\n"
    )
    at = text.index("[card]\n")
    return text[:at] + table + text[at:]


def main() -> None:
    """Print one line a set for the first model, the second and both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("first", type=Path, help="report of the smaller model")
    parser.add_argument("second", type=Path, help="report of the larger model")
    parser.add_argument("--folder", type=Path, help="write [takeover] into this folder")
    parser.add_argument("--save", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    first, second = (
        json.loads(path.read_text("utf-8")) for path in (options.first, options.second)
    )
    pairs = pairs_of(first["answers"], second["answers"])
    own = first["threshold"] or 0.0
    flags = (own, max(own, second["threshold"] or 0.0))
    rule = chosen(pairs[FITTED_ON], flags)
    report: dict[str, Any] = {"threshold": rule.threshold, "compare": rule.compare, "sets": {}}
    print(json.dumps({"threshold": rule.threshold, "compare": rule.compare}))
    for name, part in pairs.items():
        row = {
            "first": figures([Shown(a, True, a["confidence"] < flags[0]) for a, _ in part]),
            "second": figures([Shown(b, False, b["confidence"] < flags[1]) for _, b in part]),
            "both": figures([shown(a, b, rule, flags) for a, b in part]),
            "either": sum(a["same"] or b["same"] for a, b in part if not a["left"]),
        }
        report["sets"][name] = row
        for kind in ("first", "second", "both"):
            print(f"{name:8} {kind:6}", json.dumps(row[kind]))
    if options.save:
        options.save.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    if options.folder:
        card = options.folder / "midstream.toml"
        written = with_takeover(card.read_text("utf-8"), first["model"], rule, flags[1])
        card.write_text(written, "utf-8")


if __name__ == "__main__":
    main()
