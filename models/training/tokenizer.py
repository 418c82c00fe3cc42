"""Train the byte-level BPE of the edit codec on code and on instructions.

The codec's special tokens take the first ids. They are not registered as added tokens: text that
happens to spell one must stay text.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path

from midstream.engine.vocabulary import CodecLimits, special_tokens

_WORDS = (
    "def|class|return|if|elif|else|for|in|not|is|and|or|import|from|as|with|raise|yield|await|async|"
    "lambda|assert|del|except|while|global|try|finally"
)
PIECES = rf" ?(?:{_WORDS})\b ?|[^\W\d]\w*|\d+|\s+| ?[^\w\s]+ ?"
"""Names never carry a space, so that a name has the same tokens everywhere; operators and keywords
absorb theirs.
"""


def train(texts: Iterator[str], size: int, limits: CodecLimits) -> str:
    """Train a tokenizer of `size` tokens in all and return its JSON."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=special_tokens(limits),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    document = json.loads(tokenizer.to_str())
    document["added_tokens"] = []
    return json.dumps(document, ensure_ascii=False)


def main() -> None:
    """Write `tokenizer.json` into the data folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, default=Path("models/training/data"))
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--snippets", type=int, default=40_000)
    arguments = parser.parse_args()
    lines = (arguments.data / "train.jsonl").read_text("utf-8").splitlines()
    random.Random(0).shuffle(lines)

    def texts() -> Iterator[str]:
        from models.training.instructions import vocabulary

        for line in lines[: arguments.snippets]:
            for row in str(json.loads(line)["text"]).split("\n"):
                yield row.strip()
        for word in vocabulary():
            for _ in range(4_000):
                yield word

    (arguments.data / "tokenizer.json").write_text(
        train(texts(), arguments.size, CodecLimits()), "utf-8"
    )


if __name__ == "__main__":
    main()
