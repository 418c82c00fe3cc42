"""From rows of edits to packed training sequences.

A row is one line of JSON in a shard: `region` (dedented source), `edits`: a list of `[kind,
instruction, script]`. All edits of a row share its region in a sequence: the region comes first and
each edit sees the region and itself, not its neighbours. Several rows are packed into one sequence.
The loss is on the scripts only.

Shards lie in one folder and are named `<source>-<anything>.jsonl`. `Mixture` draws sources by their
share of the tokens and reads every file as a shuffle that depends on its name and the pass only, so
that a position is two numbers. Files that appear while a run is under way are taken up at once, and
those that were read least often come first, the latest by name before others.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from models.training.edit_script.script_format import numbered

LONGEST_SCRIPT = 160
"""Scripts of more tokens are left out."""

POOL = 24
"""From so many groups the one that fills a sequence best is taken."""

NO_LOSS = -100


@dataclass(frozen=True, slots=True)
class Group:
    """The tokens of one row: positions restart at the end of the region for every edit."""

    tokens: list[int]
    positions: list[int]
    branches: list[int]
    labels: list[int]
    edits: int


class Codec:
    """Tokens of regions, instructions and scripts."""

    def __init__(self, tokenizer: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self.start: int = self._tokenizer.token_to_id("<|im_start|>")
        self.end: int = self._tokenizer.token_to_id("<|im_end|>")

    def encode(self, text: str) -> list[int]:
        """Return the tokens of plain text."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, tokens: list[int]) -> str:
        """Return the text of tokens."""
        return self._tokenizer.decode(tokens, skip_special_tokens=False)

    def region(self, source: str) -> list[int]:
        """Return the tokens of a dedented region with its line numbers."""
        return self.encode(numbered(source))

    def request(self, instruction: str) -> list[int]:
        """Return the tokens of an instruction in its marks."""
        return [self.start, *self.encode(instruction.strip()), self.end]

    def answer(self, script: str) -> list[int]:
        """Return the tokens of a script and the end mark."""
        return [*self.encode(script.rstrip("\n")), self.end]

    def group(self, row: dict[str, Any], length: int) -> Group | None:
        """Return a row's tokens, without the edits that do not fit, or None when none does."""
        region = self.region(row["region"])
        if len(region) > length - 40:
            return None
        tokens, positions, branches = list(region), list(range(len(region))), [0] * len(region)
        labels = [NO_LOSS] * len(region)
        edits = 0
        for _, instruction, script in row["edits"]:
            request, answer = self.request(instruction), self.answer(script)
            both = request + answer
            if len(answer) > LONGEST_SCRIPT or len(tokens) + len(both) > length:
                continue
            edits += 1
            tokens += both
            positions += range(len(region), len(region) + len(both))
            branches += [edits] * len(both)
            # The label of a token is the one that follows it.
            labels += [NO_LOSS] * (len(request) - 1) + answer + [NO_LOSS]
        return Group(tokens, positions, branches, labels, edits) if edits else None


@dataclass
class _Reading:
    """How far a file has been read."""

    passes: int = 0
    row: int = 0


class Mixture:
    """An endless stream of rows from a folder of shards; its position can be saved."""

    def __init__(self, folder: Path, shares: dict[str, float]) -> None:
        self._folder = folder
        self._shares = shares
        self._read: dict[str, _Reading] = {}
        self._rows: dict[tuple[str, int], list[bytes]] = {}
        self._owed = dict.fromkeys(shares, 0.0)
        self.tokens = dict.fromkeys(shares, 0)

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs to go on at the same row."""
        files = {name: (at.passes, at.row) for name, at in self._read.items()}
        return {"files": files, "owed": self._owed, "tokens": self.tokens}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._read = {name: _Reading(*at) for name, at in state["files"].items()}
        self._owed |= {k: v for k, v in state["owed"].items() if k in self._owed}
        self.tokens |= {k: v for k, v in state["tokens"].items() if k in self.tokens}

    def passes(self) -> dict[str, str]:
        """Return how often each file has been read, for the log."""
        return {
            name: f"{at.passes}+{at.row}"
            for name, at in sorted(self._read.items())
            if at.row or at.passes
        }

    def charge(self, source: str, tokens: int) -> None:
        """Count tokens that a source gave."""
        self._owed[source] -= tokens
        self.tokens[source] += tokens

    def next(self) -> tuple[str, dict[str, Any]]:
        """Return a row and its source: the one that is most behind its share."""
        found: dict[str, list[str]] = {}
        for path in self._folder.glob("*.jsonl"):
            source = path.name.split("-")[0]
            if self._shares.get(source, 0) > 0 and path.stat().st_size:
                found.setdefault(source, []).append(path.name)
        if not found:
            raise FileNotFoundError(f"no shards in {self._folder}")
        total = sum(self._shares[source] for source in found)
        if max(self._owed[source] for source in found) <= 0:
            for source in found:
                self._owed[source] += 2_000 * self._shares[source] / total
        source = max(found, key=lambda name: self._owed[name])
        reading = {name: self._read.setdefault(name, _Reading()) for name in found[source]}
        least = min(at.passes for at in reading.values())
        name = max(name for name, at in reading.items() if at.passes == least)
        rows = self._load(name, least)
        at = reading[name]
        row = json.loads(rows[at.row])
        at.row += 1
        if at.row >= len(rows):
            del self._rows[name, at.passes]
            at.passes, at.row = at.passes + 1, 0
        return source, row

    def _load(self, name: str, passes: int) -> list[bytes]:
        if (name, passes) not in self._rows:
            rows = (self._folder / name).read_bytes().splitlines()
            random.Random(f"{name} {passes}").shuffle(rows)
            self._rows[name, passes] = rows
        return self._rows[name, passes]


class Packer:
    """Takes groups until a step is full."""

    def __init__(self, codec: Codec, mixture: Mixture, longest: int) -> None:
        self._codec, self._mixture, self._longest = codec, mixture, longest
        self.waiting: list[Group] = []

    def groups(self, room: int) -> list[Group]:
        """Return groups of at most `room` tokens together; the first that did not fit comes next."""
        chosen: list[Group] = []
        used = 0
        while True:
            while not self.waiting:
                source, row = self._mixture.next()
                group = self._codec.group(row, self._longest)
                self._mixture.charge(source, len(group.tokens) if group else 0)
                if group:
                    self.waiting.append(group)
            if used + len(self.waiting[0].tokens) > room:
                return chosen
            used += len(self.waiting[0].tokens)
            chosen.append(self.waiting.pop())


@dataclass(frozen=True, slots=True)
class Batch:
    """Tensors of some sequences."""

    tokens: Tensor
    positions: Tensor
    mask: Tensor
    labels: Tensor
    used: int
    edits: int


def batch_of(sequences: list[list[Group]], length: int, dtype: torch.dtype) -> Batch:
    """Build tensors; the mask lets an edit see its region and itself."""
    count = len(sequences)
    tokens = torch.zeros(count, length, dtype=torch.long)
    positions, branches = torch.zeros_like(tokens), torch.zeros_like(tokens)
    labels = torch.full_like(tokens, NO_LOSS)
    owners = torch.full_like(tokens, -1)
    used = edits = 0
    for row, sequence in enumerate(sequences):
        at = 0
        for owner, group in enumerate(sequence):
            here = slice(at, at + len(group.tokens))
            tokens[row, here] = torch.tensor(group.tokens)
            positions[row, here] = torch.tensor(group.positions)
            branches[row, here] = torch.tensor(group.branches)
            labels[row, here] = torch.tensor(group.labels)
            owners[row, here] = owner
            at += len(group.tokens)
            edits += group.edits
        used += at
    same = owners[:, :, None] == owners[:, None, :]
    visible = (branches[:, None, :] == 0) | (branches[:, :, None] == branches[:, None, :])
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    allowed = (same & visible & causal) | torch.eye(length, dtype=torch.bool)
    mask = torch.zeros(count, 1, length, length, dtype=dtype)
    mask.masked_fill_(~allowed[:, None], float("-inf"))
    return Batch(tokens, positions, mask, labels, used, edits)
