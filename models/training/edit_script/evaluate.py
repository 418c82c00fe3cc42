"""Greedy decoding of evaluation sets: exact answers and answers with the same syntax tree.

python evaluate.py runs/branch.safetensors --sets human=edits.toml known=eval_known.jsonl --save result.json

"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import script_format as fmt
import torch
from items import Item, items_of, same_programs, tree_of
from network import Cache, Decoder, load_weights
from packing import Codec
from torch import Tensor


def decode(
    model: Decoder, codec: Codec, prompts: list[list[int]], batch: int, most: int
) -> list[str]:
    """Answer prompts greedily; what is finished leaves the batch."""
    answers: list[list[int]] = [[] for _ in prompts]
    order = sorted(range(len(prompts)), key=lambda k: len(prompts[k]))
    kind = next(model.parameters()).dtype
    for at in range(0, len(order), batch):
        chosen = order[at : at + batch]
        width = max(len(prompts[k]) for k in chosen)
        tokens = torch.zeros(len(chosen), width, dtype=torch.long)
        padding = torch.tensor([width - len(prompts[k]) for k in chosen])
        for row, k in enumerate(chosen):
            tokens[row, width - len(prompts[k]) :] = torch.tensor(prompts[k])
        seen = torch.arange(width)[None, None] >= padding[:, None, None]
        allowed = (torch.ones(width, width, dtype=torch.bool).tril()[None] & seen) | torch.eye(
            width, dtype=torch.bool
        )[None]
        mask = torch.zeros(len(chosen), 1, width, width, dtype=kind).masked_fill_(
            ~allowed[:, None], float("-inf")
        )
        positions = (torch.arange(width)[None] - padding[:, None]).clamp(min=0)
        none: list[Cache] = [None] * len(model.layers)
        hidden, cache = model.step(tokens, positions, mask, none)
        alive = torch.tensor(chosen)
        next_tokens: Tensor = model.head(hidden[:, -1]).argmax(-1)
        for done in range(most):
            keep = next_tokens != codec.end
            for k, token in zip(alive[keep].tolist(), next_tokens[keep].tolist(), strict=True):
                answers[k].append(token)
            if not keep.any():
                break
            if not keep.all():
                alive, next_tokens, padding = alive[keep], next_tokens[keep], padding[keep]
                cache = [(c[0][keep], c[1][keep]) for c in cache if c is not None]
            seen = torch.arange(width + done + 1)[None] >= padding[:, None]
            mask = torch.zeros(len(alive), 1, 1, width + done + 1, dtype=kind).masked_fill_(
                ~seen[:, None, None], float("-inf")
            )
            hidden, cache = model.step(
                next_tokens[:, None], (width - padding + done)[:, None], mask, cache
            )
            next_tokens = model.head(hidden[:, -1]).argmax(-1)
    return [codec.decode(answer) for answer in answers]


def measure(
    model: Decoder, codec: Codec, items: list[Item], batch: int, most: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the figures of a set and a row for every item."""
    began = time.time()
    margins = [fmt.margin_of(item.before) for item in items]
    sources = [fmt.strip(item.before, margin) for item, margin in zip(items, margins, strict=True)]
    prompts = [
        codec.region(s) + codec.request(item.instruction)
        for s, item in zip(sources, items, strict=True)
    ]
    with torch.no_grad():
        outputs = decode(model, codec, prompts, batch, most)
    texts = [
        fmt.place(fmt.apply(source, output), margin)
        for source, margin, output in zip(sources, margins, outputs, strict=True)
    ]
    verdicts = same_programs(list(zip(items, texts, strict=True)))
    rows = [
        {
            **asdict(item),
            "output": output,
            "text": text,
            "exact": text == item.before if item.left else text in item.right,
            "same": same,
            "parses": tree_of(text) is not None,
            "unchanged": text == item.before,
        }
        for item, output, text, same in zip(items, outputs, texts, verdicts, strict=True)
    ]
    asked = [row for row in rows if not row["left"]]
    left = [row for row in rows if row["left"]]
    share = {
        name: round(100 * sum(row[name] for row in asked) / max(len(asked), 1), 1)
        for name in ("exact", "same", "parses", "unchanged")
    }
    every = round(100 * sum(row["exact"] for row in rows) / len(rows), 1)
    figures = {
        "n": len(asked),
        **share,
        "with_left": every,
        "left_alone": f"{sum(r['exact'] for r in left)} of {len(left)}",
        "seconds": round(time.time() - began),
    }
    return figures, rows


def main() -> None:
    """Print one line a set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("weights", type=Path)
    parser.add_argument("--sets", nargs="+", required=True, help="NAME=FILE")
    parser.add_argument("--tokenizer", type=Path, default=Path("base/tokenizer.json"))
    parser.add_argument("--per-kind", type=int, default=2)
    parser.add_argument("--items", type=int, default=100_000, help="of a set, at most")
    parser.add_argument("--batch", type=int, default=54)
    parser.add_argument("--answer", type=int, default=160, help="tokens of an answer at most")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    codec = Codec(options.tokenizer)
    model = load_weights(options.weights).to(torch.bfloat16).eval()
    results: dict[str, Any] = {}
    for pair in options.sets:
        name, _, file = pair.partition("=")
        figures, rows = measure(
            model,
            codec,
            items_of(Path(file), options.per_kind, options.items, fmt.apply),
            options.batch,
            options.answer,
        )
        results[name] = {"figures": figures, "rows": rows}
        print(name, json.dumps(figures), flush=True)
        if options.save:
            options.save.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
