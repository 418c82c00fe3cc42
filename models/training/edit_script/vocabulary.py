"""A smaller vocabulary: the tokens that Python edits use, cut out of the base model's.

    python vocabulary.py choose --snippets train.jsonl --shards shards --out cut
    python vocabulary.py cut runs/trunk.pt OUT.pt --old base/tokenizer.json --new cut/tokenizer.json

`choose` counts the base model's tokens in training data (never in evaluation sets) and keeps the
most used ones, single bytes, and the commonest English words, with every token that the merges of
a kept one pass through: a text that needs kept tokens only is split as before. `cut` takes the rows
of those tokens out of weights (.safetensors) or out of a training checkpoint (.pt, with the
optimiser's state).
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
"""Tokens with a meaning of their own that stay, with the numbers they have."""
SIZE = 16_384
ENGLISH = 0.15
"""Share of the vocabulary that is kept for words which requests may have and training data lacks."""
REQUEST_WEIGHT = 8
"""A token of a request counts as much as this many of code: there is far more code."""

_WORD = re.compile(r"Ġ[a-z]+")


def texts(snippets: Path, shards: Path, most: int) -> Iterator[tuple[str, int]]:
    """Yield texts of training data and what their tokens count, about `most` characters a source."""
    rng = random.Random(0)
    rows = snippets.read_bytes().splitlines()
    rng.shuffle(rows)
    used = 0
    for line in rows:
        text = json.loads(line)["text"]
        used += len(text)
        if used > most:
            break
        yield text, 1
    files: dict[str, list[bytes]] = {}
    for file in sorted(shards.glob("*.jsonl")):
        files.setdefault(file.name.split("-")[0], []).extend(file.read_bytes().splitlines())
    for found in files.values():
        rng.shuffle(found)
        used = 0
        for line in found:
            row: dict[str, Any] = json.loads(line)
            used += len(line)
            if used > most:
                break
            yield row["region"], 1
            for _, request, script in row["edits"]:
                yield request, REQUEST_WEIGHT
                yield script, REQUEST_WEIGHT


def chosen(base: dict[str, Any], counts: Counter[str], size: int) -> list[str]:
    """Return the tokens to keep, in the order of the base vocabulary."""
    vocabulary: dict[str, int] = base["model"]["vocab"]
    merges: list[tuple[str, str]] = [tuple(pair) for pair in base["model"]["merges"]]
    parents = {left + right: (left, right) for left, right in merges}
    kept = {*SPECIAL, *(token for token in vocabulary if len(token) == 1)}

    def with_parents(token: str) -> set[str]:
        found, waiting = set[str](), [token]
        while waiting:
            piece = waiting.pop()
            if piece not in kept and piece not in found:
                found.add(piece)
                waiting += parents.get(piece, ())
        return found

    def take(tokens: Iterable[str], until: int) -> None:
        for token in tokens:
            more = with_parents(token)
            if len(kept) + len(more) <= until:
                kept.update(more)

    used = [token for token, _ in counts.most_common() if token not in kept]
    # Merges are in the order of their frequency in the base model's training data.
    english = [token for token in vocabulary if _WORD.fullmatch(token)]
    english.sort(key=vocabulary.__getitem__)
    take(used, round(size * (1 - ENGLISH)))
    take(english, size)
    take(used, size)
    return sorted(kept, key=vocabulary.__getitem__)


def smaller(base: dict[str, Any], kept: list[str]) -> dict[str, Any]:
    """Return the contents of `tokenizer.json` for the kept tokens, numbered in their order."""
    numbers = {token: number for number, token in enumerate(kept)}
    special = [token for token in base["added_tokens"] if token["content"] in SPECIAL]
    assert [token["id"] for token in special] == [numbers[token["content"]] for token in special]
    # A merge stays if its halves and its result do; each token is the result of one merge.
    merges = [
        pair
        for pair in base["model"]["merges"]
        if all(piece in numbers for piece in (*pair, "".join(pair)))
    ]
    model = base["model"] | {"vocab": numbers, "merges": merges}
    return base | {"added_tokens": special, "model": model}


def rows_of(old: dict[str, Any], new: dict[str, Any]) -> list[int]:
    """Return for every token of the new vocabulary its row in the old one."""
    return [old["model"]["vocab"][token] for token in new["model"]["vocab"]]


def cut(source: Path, target: Path, rows: list[int]) -> None:
    """Write weights or a checkpoint with these rows of the embedding only."""
    import torch
    from safetensors.torch import load_file, save_file

    chosen_rows = torch.tensor(rows)
    if source.suffix == ".safetensors":
        weights = load_file(source)
        name = next(name for name in weights if name.endswith("embed_tokens.weight"))
        weights[name] = weights[name][chosen_rows].contiguous()
        save_file(weights, target, metadata={"format": "pt"})
        return
    state: dict[str, Any] = torch.load(source, weights_only=False)
    state["waiting"] = []  # groups that hold numbers of the old vocabulary
    optimiser = state["optimiser"]
    for tensors in (state["masters"], optimiser["first"], optimiser["second"]):
        tensors["embedding.weight"] = tensors["embedding.weight"][chosen_rows].contiguous()
    torch.save(state, target)


def main() -> None:
    """Choose a vocabulary or apply one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    choose = commands.add_parser("choose")
    choose.add_argument("--base", type=Path, default=Path("base"), help="config and tokenizer")
    choose.add_argument("--snippets", type=Path, required=True, help="train.jsonl")
    choose.add_argument("--shards", type=Path, required=True)
    choose.add_argument("--characters", type=int, default=3_000_000, help="of a source, at most")
    choose.add_argument("--size", type=int, default=SIZE)
    choose.add_argument("--out", type=Path, required=True)
    apply = commands.add_parser("cut")
    apply.add_argument("source", type=Path)
    apply.add_argument("target", type=Path)
    apply.add_argument("--old", type=Path, default=Path("base/tokenizer.json"))
    apply.add_argument("--new", type=Path, required=True)
    options = parser.parse_args()
    if options.command == "cut":
        old, new = (json.loads(path.read_text("utf-8")) for path in (options.old, options.new))
        cut(options.source, options.target, rows_of(old, new))
        return

    from tokenizers import Tokenizer

    path = options.base / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(path))
    counts: Counter[int] = Counter()
    for text, weight in texts(options.snippets, options.shards, options.characters):
        for token in tokenizer.encode(text, add_special_tokens=False).ids:
            counts[token] += weight
    named = Counter({tokenizer.id_to_token(token): count for token, count in counts.items()})
    base = json.loads(path.read_text("utf-8"))
    kept = chosen(base, named, options.size)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "tokenizer.json").write_text(
        json.dumps(smaller(base, kept), ensure_ascii=False), "utf-8"
    )
    config = json.loads((options.base / "config.json").read_text("utf-8"))
    (options.out / "config.json").write_text(
        json.dumps(config | {"vocab_size": len(kept)}, indent=2) + "\n", "utf-8"
    )
    left_out = sum(count for token, count in named.items() if token not in set(kept))
    share = 100 * left_out / named.total()
    print(f"{len(kept)} tokens kept, {share:.2f} % of the data's tokens are others now")


if __name__ == "__main__":
    main()
