"""Choose the tokens that are kept: those that code and requests use, closed under the merges.

    python -m models.training.vocabulary --base base --snippets train.jsonl \
        --shards shards --sources FOLDER --out cut

Counts the base model's tokens in training data and in a folder of sources in other languages, never
in evaluation sets. All single bytes stay, so every text can still be written, and a text that needs
kept tokens only is split as before. ``rows.json`` says which rows of the table are kept; with
``--rows`` and such a file its tokens are kept, and nothing is counted.
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

from tokenizers import Tokenizer

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
"""Tokens with a meaning of their own that stay, with the numbers they have."""
ENGLISH = 0.15
"""Share of the tokens that is kept for words of requests which training data lacks."""
REQUEST_WEIGHT = 8
"""A token of a request counts as much as this many of code: there is far more code."""

_WORD = re.compile(r"Ġ[a-z]+")
SIZE = 36_864
CHARACTERS = 4_000_000
"""Of a kind of source, at most."""
CODE = (".js", ".ts", ".go", ".rs", ".java")
OTHER = (".md", ".c", ".css", ".html", ".sh", ".rst", ".json", ".toml", ".yml")
OTHER_SHARE = 0.2
MAX_FILE_CHARACTERS = 60_000
MIN_LINES = 1 / 200
"""Files with fewer lines for each character were minified."""


def texts(snippets: Path, shards: Path, most: int) -> Iterator[tuple[str, int]]:
    """Yield texts of training data and what their tokens count, so many characters a source."""
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
            for _, *asked in row["edits"]:
                yield from ((text, REQUEST_WEIGHT) for text in asked)


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


def sources(folder: Path, suffix: str, most: float) -> Iterator[str]:
    """Yield files of a language, about so many characters."""
    files = [path for path in sorted(folder.rglob(f"*{suffix}")) if path.is_file()]
    random.Random(0).shuffle(files)
    used = 0
    for path in files:
        if ".min." in path.name or path.name.endswith(".d.ts"):
            continue
        text = path.read_text("utf-8", "replace")
        if len(text) < MAX_FILE_CHARACTERS and text.count("\n") > MIN_LINES * len(text):
            used += len(text)
            yield text
        if used > most:
            return


def smaller(base: dict[str, Any], kept: list[str]) -> tuple[dict[str, Any], list[int]]:
    """Return the contents of ``tokenizer.json`` for kept tokens, and each one's row in the base.

    The special tokens come last.
    """
    added = {token["content"]: token["id"] for token in base["added_tokens"]}
    order = [token for token in kept if token not in SPECIAL] + list(SPECIAL)
    numbers = {token: number for number, token in enumerate(order)}
    merges = [
        pair
        for pair in base["model"]["merges"]
        if all(piece in numbers for piece in (*pair, "".join(pair)))
    ]
    vocabulary = {token: number for token, number in numbers.items() if token not in SPECIAL}
    special = [
        token | {"id": numbers[token["content"]]}
        for token in base["added_tokens"]
        if token["content"] in SPECIAL
    ]
    model = base["model"] | {"vocab": vocabulary, "merges": merges}
    rows = [added[token] if token in SPECIAL else base["model"]["vocab"][token] for token in order]
    return base | {"added_tokens": special, "model": model}, rows


def counted(tokenizer: Tokenizer, options: argparse.Namespace) -> Counter[str]:
    """Return how often training data and sources have each token."""
    counts: Counter[int] = Counter()

    def count(text: str, weight: int = 1) -> None:
        for token in tokenizer.encode(text, add_special_tokens=False).ids:
            counts[token] += weight

    for text, weight in texts(options.snippets, options.shards, CHARACTERS):
        count(text, weight)
    for suffix in (*CODE, *OTHER) if options.sources else ():
        most = CHARACTERS * (1 if suffix in CODE else OTHER_SHARE)
        for text in sources(options.sources, suffix, most):
            count(text)
    named: Counter[str] = Counter()
    for token, number in counts.items():
        named[tokenizer.id_to_token(token) or ""] += number
    return named


def main() -> None:
    """Write the smaller tokenizer and the rows that it keeps."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--base", type=Path, default=Path("base"))
    parser.add_argument("--rows", type=Path, help="rows.json of an earlier choice")
    parser.add_argument("--snippets", type=Path, help="train.jsonl")
    parser.add_argument("--shards", type=Path)
    parser.add_argument("--sources", type=Path, help="folder with code in other languages")
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--out", type=Path, default=Path("cut"))
    options = parser.parse_args()
    path = options.base / "tokenizer.json"
    base = json.loads(path.read_text("utf-8"))
    if options.rows:
        wanted = frozenset(json.loads(options.rows.read_text("utf-8")))
        known: dict[str, int] = base["model"]["vocab"]
        kept = [token for token, row in known.items() if row in wanted and token not in SPECIAL]
        kept.sort(key=known.__getitem__)
    elif options.snippets and options.shards:
        named = counted(Tokenizer.from_file(str(path)), options)
        kept = chosen(base, named, options.size)
    else:
        parser.error("Say --rows, or --snippets and --shards.")
    contents, rows = smaller(base, kept)
    options.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(contents, ensure_ascii=False)
    (options.out / "tokenizer.json").write_text(text, "utf-8")
    (options.out / "rows.json").write_text(json.dumps(rows), "utf-8")
    print(f"{len(rows)} tokens are kept.")


if __name__ == "__main__":
    main()
