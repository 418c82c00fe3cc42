"""Rows of shards in the shares that a training run wants.

Shards lie in one folder and are named `<source>-<anything>.jsonl`; a row is one line of JSON, see
`examples`. `Mixture` draws sources by their share of the tokens and reads every file as a shuffle
that depends on its name and the pass only, so that a position is two numbers. Files that appear
while a run is under way are taken up at once, and those that were read least often come first, the
latest by name before others.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class _Reading:
    """How far a file has been read."""

    passes: int = 0
    row: int = 0


class Mixture:
    """An endless stream of rows from a folder of shards; its position can be saved.

    The seed gives the order in which a shard's rows are read.
    """

    def __init__(self, folder: Path, shares: dict[str, float], seed: int = 0) -> None:
        self._folder = folder
        self._shares = shares
        self._seed = seed
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
            random.Random(f"{self._seed} {name} {passes}").shuffle(rows)
            self._rows[name, passes] = rows
        return self._rows[name, passes]
