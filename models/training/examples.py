"""Rows of edits as packed training sequences.

A row is one line of JSON in a shard: ``region`` (dedented source), ``language`` (Python where it is
missing) and ``edits``: lists of kind, request and script of changed lines (``script_format``), or
of kind, request, ``""`` and the new text (of kind ``question``: the answer). A request and its
answer stand in chat marks:

    user, a fence with the region, the request | assistant, a fence with the new region
    user, a fence with the region, a question  | assistant, the answer in words

The region comes first, so that it can be read while the request is typed, and all requests of a row
share it: each sees the region and itself. The loss counts what changes in full, lines that stay
little, and the first token of each of these half: it decides whether the line stays.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import difflib
import random
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from models.training import script_format
from models.training.mixture import Mixture

NO_LOSS = -100
FENCE = "```"
STAYS, FIRST = 0.15, 0.5
"""Weights of a line that stays, and of its first token."""
WORDS = 0.5
"""Weight of a token of an answer in words."""
ENDS = 0.3
"""Weight of the end mark."""
MAX_EDITS = 5
"""Requests of a row in one group."""
POOL = 24
"""From so many groups the largest that fits goes into a sequence."""
SHORT_FROM, SHORT_KEPT, SHORT_SHARE = 8, (4, 10), 0.5
"""Of answers that end with so many lines that stay, this share is cut behind 4 to 10 of them:
copies teach little. Cut closer and more often, a model was seen to change more than was asked."""


@dataclass(slots=True)
class Group:
    """The tokens of one row: positions restart at the end of the region for every request."""

    tokens: list[int]
    positions: list[int] = field(default_factory=list[int])
    branches: list[int] = field(default_factory=list[int])
    labels: list[int] = field(default_factory=list[int])
    weights: list[float] = field(default_factory=list[float])
    edits: int = 0

    def __post_init__(self) -> None:
        count = len(self.tokens)
        self.positions, self.branches = list(range(count)), [0] * count
        self.labels, self.weights = [NO_LOSS] * count, [0.0] * count
        self._shared = count

    _shared: int = field(init=False, default=0)

    def add(self, request: list[int], answer: list[int], weights: list[float]) -> None:
        """Append a request and its answer."""
        self.edits += 1
        count = len(request) + len(answer)
        self.tokens += request + answer
        self.positions += range(self._shared, self._shared + count)
        self.branches += [self.edits] * count
        # The label of a token is the one that follows it.
        self.labels += [NO_LOSS] * (len(request) - 1) + answer + [NO_LOSS]
        self.weights += [0.0] * (len(request) - 1) + weights + [0.0]


class Codec:
    """Tokens of regions, requests and answers."""

    def __init__(self, tokenizer: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self.start, self.end = (self._mark(f"<|im_{name}|>") for name in ("start", "end"))

    def _mark(self, name: str) -> int:
        found = self._tokenizer.token_to_id(name)
        if found is None:
            raise ValueError(f"the tokenizer has no {name}")
        return found

    def encode(self, text: str) -> list[int]:
        """Return the tokens of plain text."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def region(self, source: str, language: str) -> list[int]:
        """Return the tokens of a region in its fence."""
        text = source.rstrip("\n")
        return [self.start, *self.encode(f"user\n{FENCE}{language}\n{text}\n{FENCE}\n")]

    def request(self, words: str, language: str | None) -> list[int]:
        """Return the tokens of a request, and of what stands before the answer.

        Args:
            words: The request.
            language: Names the fence of the answer; None for an answer in words.
        """
        opening = self.encode(
            "assistant\n" if language is None else f"assistant\n{FENCE}{language}\n"
        )
        return [*self.encode(words.strip()), self.end, *self.encode("\n"), self.start, *opening]

    def words(self, text: str) -> tuple[list[int], list[float]]:
        """Return the tokens of an answer in words, and their weights."""
        tokens = self.encode(text.strip())
        return [*tokens, self.end], [WORDS] * len(tokens) + [ENDS]

    def answer(self, before: str, after: str, *, ends: bool) -> tuple[list[int], list[float]]:
        """Return the tokens of an answer, which may be cut short, and their weights."""
        text = after.rstrip("\n") + ("\n" + FENCE if ends else "\n")
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        old, new = before.rstrip("\n").split("\n"), after.rstrip("\n").split("\n")
        by_line = [1.0] * (len(new) + 1)
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for tag, _, _, first, last in matcher.get_opcodes():
            if tag == "equal":
                by_line[first:last] = [STAYS] * (last - first)
        starts = [0]
        for row in new:
            starts.append(starts[-1] + len(row) + 1)
        weights: list[float] = []
        line, seen = 0, -1
        for begin, _ in encoded.offsets:
            while line + 1 < len(starts) and begin >= starts[line + 1]:
                line += 1
            weight = by_line[min(line, len(by_line) - 1)]
            weights.append(max(weight, FIRST) if line != seen else weight)
            seen = line
        if not ends:  # the last token may be a part of a longer one
            return encoded.ids[:-1], weights[:-1]
        return [*encoded.ids, self.end], [*weights, ENDS]


def shortened(before: str, after: str, rng: random.Random) -> str:
    """Return a new text as it is, or without the most of a long end that stays."""
    old, new = before.rstrip("\n").split("\n"), after.rstrip("\n").split("\n")
    same = 0
    while same < min(len(old), len(new)) and old[-1 - same] == new[-1 - same]:
        same += 1
    cut = same - rng.randint(*SHORT_KEPT)
    if cut < SHORT_FROM or before == after or rng.random() > SHORT_SHARE:
        return after
    return "\n".join(new[: len(new) - cut])


def new_text(row: dict[str, Any], edit: list[str]) -> str | None:
    """Return what an edit makes of the row's region, or None where that cannot be said."""
    if len(edit) > 3:
        return edit[3]
    after = script_format.apply(row["region"], edit[2])
    return None if after == row["region"] and edit[2].strip() != "=" else after


def group_of(codec: Codec, row: dict[str, Any], length: int, rng: random.Random) -> Group | None:
    """Return a row's tokens, without what does not fit, or None where nothing is left."""
    language = row.get("language", "python")
    region = codec.region(row["region"], language)
    if len(region) > length // 2 - 30:
        return None
    group = Group(region)
    for edit in rng.sample(row["edits"], len(row["edits"])):
        after = new_text(row, edit)
        if after is None or group.edits == MAX_EDITS:
            continue
        if edit[0] == "question":
            request = codec.request(edit[1], None)
            answer, weights = codec.words(after)
        else:
            request = codec.request(edit[1], language)
            part = shortened(row["region"], after, rng)
            answer, weights = codec.answer(row["region"], part, ends=part == after)
        if len(group.tokens) + len(request) + len(answer) <= length:
            group.add(request, answer, weights)
    return group if group.edits else None


class Packer:
    """Fills sequences with groups."""

    def __init__(self, codec: Codec, mixture: Mixture, length: int, seed: int) -> None:
        self._codec, self._mixture, self._length = codec, mixture, length
        self._rng = random.Random(seed)
        self._waiting: list[Group] = []

    def sequence(self) -> list[Group]:
        """Return groups that fill a sequence: the one that waits longest, then what fits best."""
        chosen: list[Group] = []
        room = self._length
        while True:
            while len(self._waiting) < POOL:
                source, row = self._mixture.next()
                group = group_of(self._codec, row, self._length, self._rng)
                self._mixture.charge(source, len(group.tokens) if group else 0)
                if group:
                    self._waiting.append(group)
            fitting = [group for group in self._waiting if len(group.tokens) <= room]
            if not fitting:
                return chosen
            best = max(fitting, key=lambda group: len(group.tokens)) if chosen else fitting[0]
            self._waiting.remove(best)
            room -= len(best.tokens)
            chosen.append(best)


@dataclass(frozen=True, slots=True)
class Batch:
    """Tensors of some sequences, ``[sequences, length]`` each.

    Attributes:
        tokens: The tokens.
        positions: Their positions: those of a request follow its region's.
        owners: Which group a token belongs to; -1 behind the last.
        branches: Which request of its group it belongs to; 0 for the region.
        labels: The token that follows, or ``NO_LOSS``.
        weights: What each label counts.
        used: Tokens that are no padding.
        edits: Requests.
    """

    tokens: Tensor
    positions: Tensor
    owners: Tensor
    branches: Tensor
    labels: Tensor
    weights: Tensor
    used: int
    edits: int

    def to(self, device: torch.device) -> Batch:
        """Return the same on a device."""
        return Batch(
            self.tokens.to(device, non_blocking=True),
            self.positions.to(device, non_blocking=True),
            self.owners.to(device, non_blocking=True),
            self.branches.to(device, non_blocking=True),
            self.labels.to(device, non_blocking=True),
            self.weights.to(device, non_blocking=True),
            self.used,
            self.edits,
        )

    def mask(self) -> Tensor:
        """Return what is added to scores, bf16 ``[sequences, 1, length, length]``.

        A request sees its region and itself, and padding sees itself.
        """
        length = self.tokens.shape[1]
        same = self.owners[:, :, None] == self.owners[:, None, :]
        visible = (self.branches[:, None, :] == 0) | (
            self.branches[:, :, None] == self.branches[:, None, :]
        )
        ones = torch.ones(length, length, dtype=torch.bool, device=self.tokens.device)
        allowed = (same & visible & ones.tril()) | torch.eye(
            length, dtype=torch.bool, device=self.tokens.device
        )
        mask = torch.zeros(allowed.shape, dtype=torch.bfloat16, device=self.tokens.device)
        return mask.masked_fill_(~allowed, float("-inf"))[:, None]


def batch_of(sequences: list[list[Group]], length: int) -> Batch:
    """Build the tensors of sequences."""
    count = len(sequences)
    tokens = torch.zeros(count, length, dtype=torch.long)
    positions, branches = torch.zeros_like(tokens), torch.zeros_like(tokens)
    labels, owners = torch.full_like(tokens, NO_LOSS), torch.full_like(tokens, -1)
    weights = torch.zeros(count, length)
    for row, sequence in enumerate(sequences):
        ends = [0]
        for group in sequence:
            ends.append(ends[-1] + len(group.tokens))
        for owner, (group, (begin, end)) in enumerate(zip(sequence, pairwise(ends), strict=True)):
            here = slice(begin, end)
            tokens[row, here] = torch.tensor(group.tokens)
            positions[row, here] = torch.tensor(group.positions)
            branches[row, here] = torch.tensor(group.branches)
            labels[row, here] = torch.tensor(group.labels)
            weights[row, here] = torch.tensor(group.weights)
            owners[row, here] = owner
    groups = [group for sequence in sequences for group in sequence]
    used, edits = sum(len(g.tokens) for g in groups), sum(g.edits for g in groups)
    return Batch(tokens, positions, owners, branches, labels, weights, used, edits)
