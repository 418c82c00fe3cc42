"""Measure model folders as the product runs them: whole, through the engine, side by side.

    PYTHONPATH=app:. python -m models.training.evaluate FOLDER ... --save report.json \
        --sets hand=models/training/human/edits.toml goals=models/training/human/goals.toml \
        known=eval_known.jsonl commits=commits.jsonl go=go.jsonl

A set that is named after a language is asked in that language, all others in Python unless their
rows say another one. Right is what is the same program, or passes the request's check; of other
languages, the same text. The report also has what confidence is fitted on (``confidence``).
"""

from __future__ import annotations

import argparse
import json
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from midstream.edits.request import RegionRequest, render_request
from midstream.engine.confidence import EditJudge
from midstream.engine.folder import Calibration, read_folder
from midstream.engine.model import OnnxModel
from midstream.engine.types import FinishReason, GenerateRequest, Message
from midstream.errors import UserError
from models.training.items import Item, items_of, same_programs
from models.training.languages import LANGUAGES
from models.training.script_format import apply


def answers(folder: Path, items: list[Item], language: str, threads: int) -> list[dict[str, Any]]:
    """Return a folder's answers; the region as it was where it declines."""
    known = read_folder(folder)
    table = known.confidence or Calibration(0.0, 0.0, {})
    model = OnnxModel(replace(known, confidence=table), threads=threads)
    rows = [answer(model, item, item.language or language) for item in items]
    model.close()
    for row, item, right in zip(
        rows,
        items,
        same_programs([(i, r["text"]) for i, r in zip(items, rows, strict=True)]),
        strict=True,
    ):
        plain = item.before if item.left else None
        row |= {
            "package": item.package,
            "kind": item.kind,
            "instruction": item.instruction,
            "before": item.before,
            "left": item.left,
            "right": right or row["text"] == plain or row["text"] in item.right,
            "changed": row["text"] != item.before,
        }
    return rows


def answer(model: OnnxModel, item: Item, language: str) -> dict[str, Any]:
    """Return one answer, its cost, and what its judge finds; one that is cut is none."""
    text = render_request(RegionRequest(item.instruction, item.before, language=language))
    made, tokens, runs, confidence = item.before, 0, 0, None
    found: dict[str, float] = {}
    began = time.perf_counter()
    with suppress(UserError):
        generation = model.answer(GenerateRequest((Message("user", text),)))
        whole = "".join(piece.text for piece in generation)
        usage, judge = generation.usage, generation.judge
        tokens, runs = usage.output_tokens, usage.forwards
        if generation.finish_reason is FinishReason.STOP and isinstance(judge, EditJudge):
            made, found, confidence = whole, judge.features(), usage.confidence
    return {
        "text": made,
        "tokens": tokens,
        "forwards": runs,
        "seconds": round(time.perf_counter() - began, 3),
        "features": {name: round(value, 4) for name, value in found.items()},
        "confidence": confidence,
    }


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of one set."""
    asked = [row for row in rows if not row["left"]]
    left = [row for row in rows if row["left"]]
    return {
        "n": len(asked),
        "right": sum(row["right"] for row in asked),
        "unchanged": sum(not row["changed"] for row in asked),
        "left_alone": f"{sum(not row['changed'] for row in left)} of {len(left)}",
        "seconds": median(row["seconds"] for row in rows) if rows else 0.0,
        "forwards": median(row["forwards"] for row in rows) if rows else 0,
    }


def main() -> None:
    """Print one line for each folder and set."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--sets", nargs="+", required=True, help="NAME=FILE")
    parser.add_argument("--per-kind", type=int, default=2)
    parser.add_argument("--items", type=int, default=100_000, help="of a set, about at most")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    report: dict[str, Any] = {}
    for folder in options.folders:
        for pair in options.sets:
            name, _, file = pair.partition("=")
            language = name if name in LANGUAGES else "python"
            items = items_of(Path(file), options.per_kind, options.items, apply)
            rows = answers(folder, items, language, options.threads)
            report[f"{folder.name} {name}"] = {"figures": figures(rows), "rows": rows}
            print(folder.name, name, json.dumps(figures(rows)), flush=True)
            if options.save:
                options.save.write_text(json.dumps(report, indent=1), "utf-8")


if __name__ == "__main__":
    main()
