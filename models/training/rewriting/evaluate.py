"""Measure model folders as the product runs them: whole, through the engine, side by side.

    PYTHONPATH=app:. python -m models.training.rewriting.evaluate FOLDER ... --save report.json \
        --sets hand=models/training/human/edits.toml goals=models/training/human/goals.toml \
        known=eval_known.jsonl commits=commits.jsonl go=go.jsonl

A set that is named after a language is asked in that language, all others in Python. Right is what
is the same program, or passes the request's check; of other languages, the same text.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

from midstream.edits.request import RegionRequest, render_request
from midstream.engine.model import load_model
from midstream.engine.types import GenerateRequest, Message
from midstream.errors import UserError
from models.training.edit_script.items import Item, items_of, same_programs
from models.training.edit_script.languages import LANGUAGES
from models.training.edit_script.script_format import apply


def answers(folder: Path, items: list[Item], language: str, threads: int) -> list[dict[str, Any]]:
    """Return a folder's answers; the region as it was where it declines."""
    model = load_model(folder, threads=threads)
    rows: list[dict[str, Any]] = []
    for item in items:
        text = render_request(RegionRequest(item.instruction, item.before, language=language))
        began = time.perf_counter()
        try:
            generation = model.start(GenerateRequest((Message("user", text),)))
            made = "".join(piece.text for piece in generation)
            tokens, runs = generation.usage.output_tokens, generation.usage.forwards
        except UserError:
            made, tokens, runs = item.before, 0, 0
        seconds = round(time.perf_counter() - began, 3)
        rows.append({"text": made, "tokens": tokens, "forwards": runs, "seconds": seconds})
    model.close()
    for row, item, right in zip(
        rows,
        items,
        same_programs([(i, r["text"]) for i, r in zip(items, rows, strict=True)]),
        strict=True,
    ):
        plain = item.before if item.left else None
        row |= {
            "kind": item.kind,
            "instruction": item.instruction,
            "before": item.before,
            "left": item.left,
            "right": right or row["text"] == plain or row["text"] in item.right,
            "changed": row["text"] != item.before,
        }
    return rows


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
