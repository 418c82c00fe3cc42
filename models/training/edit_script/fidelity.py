"""Compare quantised model folders with a float32 one, token by token on right answers.

    python -m models.training.edit_script.fidelity export/float32 export/int4 export/mixed

Reads the requests written by hand and the first right answer to each (teacher forcing). Per folder:
the mean loss of the answers' tokens, the share of tokens and of whole answers that are the likeliest
ones, the Kullback-Leibler divergence from the first folder, and how often the likeliest token is
the first folder's.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from midstream.engine.decoder import Decoder
from midstream.engine.folder import read_folder
from models.training import human
from models.training.edit_script import script_format as fmt

Array = np.ndarray[Any, Any]


def sequences(tokenizer: Tokenizer, most: int) -> list[tuple[list[int], int]]:
    """Return tokens of region, request and answer, and where the answer begins."""

    def encode(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    begin, end = (tokenizer.token_to_id(f"<|im_{name}|>") for name in ("start", "end"))
    found: list[tuple[list[int], int]] = []
    for edit in human.load()[:: max(1, 120 // most)]:
        margin = fmt.margin_of(edit.before)
        before, after = (fmt.strip(text, margin) for text in (edit.before, edit.after))
        script = fmt.script(before, None if edit.kind == "beyond" else after)
        prompt = [*encode(fmt.numbered(before)), begin, *encode(edit.instruction), end]
        found.append(([*prompt, *encode(script.rstrip("\n")), end], len(prompt)))
    return found


def log_chances(decoder: Decoder, ids: list[int], start: int) -> Array:
    """Return log-probabilities [answer tokens, vocabulary] of one sequence."""
    for at in range(0, start - 1, 128):
        decoder.fill(ids[at : min(at + 128, start - 1)], at)
    rows = decoder.run(ids[start - 1 : -1], start - 1, exact=True).astype(np.float64)
    rows -= rows.max(axis=1, keepdims=True)
    return rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))


def measure(
    decoder: Decoder, items: Iterable[tuple[list[int], int]], reference: list[Array] | None
) -> tuple[dict[str, float], list[Array]]:
    """Return the figures of one folder and its log-probabilities in float16."""
    losses: list[Array] = []
    right: list[Array] = []
    gaps: list[Array] = []
    same: list[Array] = []
    kept: list[Array] = []
    for number, (ids, start) in enumerate(items):
        chances = log_chances(decoder, ids, start)
        target = np.array(ids[start:])
        losses.append(-chances[np.arange(len(target)), target])
        right.append(chances.argmax(axis=1) == target)
        kept.append(chances.astype(np.float32))
        if reference is not None:
            known = reference[number].astype(np.float64)
            gaps.append((np.exp(known) * (known - chances)).sum(axis=1))
            same.append(chances.argmax(axis=1) == known.argmax(axis=1))
    figures = {
        "answers": len(losses),
        "loss": float(np.concatenate(losses).mean()),
        "tokens": 100 * float(np.concatenate(right).mean()),
        "whole": 100 * float(np.mean([row.all() for row in right])),
    }
    if gaps:
        figures["divergence"] = float(np.concatenate(gaps).mean())
        figures["agrees"] = 100 * float(np.concatenate(same).mean())
    return figures, kept


def main() -> None:
    """Print one line a folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--save", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(options.folders[0] / "tokenizer.json"))
    items = sequences(tokenizer, options.items)
    reference: list[Array] | None = None
    report: list[dict[str, Any]] = []
    for path in options.folders:
        decoder = Decoder(read_folder(path), threads=options.threads)
        figures, kept = measure(decoder, items, reference)
        reference = reference if reference is not None else kept
        report.append({"folder": path.name, **figures})
        print(path.name, {name: round(value, 4) for name, value in figures.items()}, flush=True)
    if options.save:
        options.save.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
