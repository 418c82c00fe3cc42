"""Tokenised training examples in memory: which come next, and how they become a batch."""

# pyright: reportMissingImports=false
# (torch belongs to the `train` extra only)
from __future__ import annotations

import queue
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from models.training.data import TASK_NAMES


@dataclass(slots=True)
class Batch:
    """One batch.

    Attributes:
        tokens: int64 `[examples, width]`, zero behind the end.
        places: int64, flat positions in `tokens` to predict from.
        answers: int64, the token that follows each place.
        weights: float32, loss weight of each answer.
    """

    tokens: Tensor
    places: Tensor
    answers: Tensor
    weights: Tensor


class Shards:
    """Training examples, drawn in batches of similar length; shards that appear later are taken up.

    Each example is used once before any is used again.
    """

    def __init__(
        self, folder: Path, anchors: tuple[int, int], skip: frozenset[str], rng: random.Random
    ) -> None:
        """Use a folder's shards; `anchors` is the half-open range of anchor ids, `skip` names tasks
        to leave out.
        """
        self._folder, self._anchors, self._rng = folder, anchors, rng
        self._skip = [TASK_NAMES.index(task) for task in skip if task in TASK_NAMES]
        self._loaded: set[str] = set()
        self._tokens = np.zeros(0, np.int64)
        self._starts = np.zeros(1, np.int64)
        self._prompts = np.zeros(0, np.int64)
        self._lengths = np.zeros(0, np.int64)
        self._usable = np.zeros(0, np.int64)
        self._left: list[int] = []
        self._batches: list[np.ndarray] = []

    def _load(self) -> bool:
        """Take up new shards, in place of those before them; False if there are none."""
        paths = [p for p in sorted(self._folder.glob("shard-*.npz")) if p.name not in self._loaded]
        if not paths:
            return False
        self._loaded.update(p.name for p in paths)
        parts = [np.load(path) for path in paths]
        self._tokens = np.concatenate([part["tokens"] for part in parts])
        self._lengths = np.concatenate([np.diff(part["starts"]) for part in parts])
        self._starts = np.concatenate([[0], np.cumsum(self._lengths)])
        self._prompts = np.concatenate([part["prompts"] for part in parts]).astype(np.int64)
        tasks = np.concatenate([part["tasks"] for part in parts])
        self._usable = np.flatnonzero(~np.isin(tasks, self._skip))
        return True

    def __len__(self) -> int:
        """Return how many examples are loaded."""
        return len(self._usable)

    def next(self, tokens: int, longest: int, copied_weight: float) -> Batch:
        """Return a batch of about `tokens` tokens, of examples of at most `longest`.

        Raises:
            FileNotFoundError: the folder has no shards.
        """
        while not self._batches:
            if not self._left:
                if not self._load() and not self._loaded:
                    raise FileNotFoundError(
                        f"{self._folder} has no shards; run models.training.data"
                    )
                self._left = self._usable.tolist()
                self._rng.shuffle(self._left)
            size = max(6_000, 4 * tokens // 100)
            chunk, self._left = np.array(self._left[:size]), self._left[size:]
            self._batches = self._grouped(chunk, tokens, longest)
        return self._collate(self._batches.pop(), copied_weight)

    def _grouped(self, chosen: np.ndarray, tokens: int, longest: int) -> list[np.ndarray]:
        chosen = chosen[self._lengths[chosen] <= longest]
        noise = np.array([self._rng.random() for _ in range(len(chosen))])
        order = chosen[np.argsort(self._lengths[chosen] * (1 + 0.1 * noise))]
        out: list[np.ndarray] = []
        begin = 0
        while begin < len(order):
            length = int(self._lengths[order[min(begin + 8, len(order) - 1)]])
            size = max(1, tokens // length)
            out.append(order[begin : begin + size])
            begin += size
        self._rng.shuffle(out)
        return out

    def _collate(self, picked: np.ndarray, copied_weight: float) -> Batch:
        width = -(-int(self._lengths[picked].max()) // 16) * 16
        tokens = np.zeros((len(picked), width), np.int64)
        places: list[np.ndarray] = []
        answers: list[np.ndarray] = []
        for row, example in enumerate(picked):
            text = self._tokens[self._starts[example] : self._starts[example + 1]].astype(np.int64)
            tokens[row, : len(text)] = text
            prompt = int(self._prompts[example])
            places.append(np.arange(prompt - 1, len(text) - 1) + row * width)
            answers.append(text[prompt:])
        answer = np.concatenate(answers)
        place = np.concatenate(places)
        low, high = self._anchors
        before = tokens.reshape(-1)[place]
        plain = (
            (answer >= low)
            & (answer < high)
            & (before >= low)
            & (before < high)
            & (answer == before + 1)
        )
        weight = np.where(plain, copied_weight, 1.0).astype(np.float32)
        return Batch(*(torch.from_numpy(part) for part in (tokens, place, answer, weight)))


def prefetched(make: Callable[[], Batch], depth: int) -> Iterator[Batch]:
    """Yield what `make` returns, made ahead by a thread: a GPU should not wait for a batch."""
    ready: queue.Queue[Batch | Exception] = queue.Queue(depth)
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            try:
                made: Batch | Exception = make()
            except Exception as error:
                made = error
            while not over.is_set():
                try:
                    ready.put(made, timeout=0.2)
                    break
                except queue.Full:
                    continue
            if isinstance(made, Exception):
                return

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        while True:
            batch = ready.get()
            if isinstance(batch, Exception):
                raise batch
            yield batch
    finally:
        over.set()
        worker.join()
