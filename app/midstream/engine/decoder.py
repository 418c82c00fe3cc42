"""One decoder graph in one ONNX Runtime session, with its key/value cache: tokens in, logits out.

The cache rows [0, past) belong to the tokens run so far; running again with a smaller `past` rolls
back. Two ways of keeping them are known, and found out by a probe at load:

- shared: GroupQueryAttention writes into the very buffer it reads, so that a step copies nothing;
- concatenated: every run returns past and new rows in one new tensor, so two buffers take turns.

The buffers are host memory. On another provider than the CPU's, ONNX Runtime copies them to the
device and back at every run: right, but slow with a long cache.

What the tokens are, and which to run next, is not known here.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from midstream.engine.folder import ModelFolder, ModelFolderError
from midstream.engine.graph_io import CachePair, GraphIO, TensorInfo, read_graph_io
from midstream.engine.pace import RowCost
from midstream.engine.session import default_threads, open_session, reason

Array = np.ndarray[Any, Any]

POOLED_ROWS = 64
"""Bindings are kept for runs of at most this many tokens; longer ones (prefill) make their own."""


class RunTerminatedError(Exception):
    """A run was ended by `Decoder.terminate`; the cache holds what it held before."""


@dataclass(slots=True)
class _Run:
    """Everything bound for runs of one length: what to write before, what to read after.

    Between two small runs the weights push everything else out of the caches, so that every line of
    Python costs several times what it seems to; what can be made ready once is.
    """

    binding: Any
    tokens: Array
    positions: Array | None = None
    last: Array | None = None
    total: Array | None = None
    logits: Array | None = None


class Decoder:
    """Runs tokens through a decoder graph; owns the session and the live cache.

    Attributes:
        io: the graph's interface.
        context_length: most rows the cache may hold.
        threads: threads inside one operator.
        vocab: size of the vocabulary.
        shared: whether past and present are one buffer.
        all_rows: whether logits come back for every token of a run (needed to verify drafts).
        runtime_s: seconds spent inside ONNX Runtime so far.
        row_cost: what one more row of a run has cost so far.
        written: rows of the live cache that ever held something: the memory that it really takes
            (room beyond them is only reserved).
    """

    def __init__(
        self, folder: ModelFolder, *, provider: str = "cpu", threads: int | None = None
    ) -> None:
        """Load a folder's graph and find out how its cache works.

        Raises:
            ModelFolderError, UnavailableError: as in `open_session` and `read_graph_io`.
        """
        self._ort: Any = import_module("onnxruntime")
        self.threads = threads or default_threads(folder)
        self._session = open_session(folder, provider=provider, threads=self.threads)
        self.io: GraphIO = read_graph_io(
            folder, self._session.get_inputs(), self._session.get_outputs()
        )
        self.context_length = folder.context_length
        self._tile = math.gcd(16, *(2 * pair.width for pair in self.io.cache))
        self.shared, self.all_rows, self.vocab = self._probe(folder)
        self.runtime_s = 0.0
        self.row_cost = RowCost()
        self.written = 0
        self._capacity = 0
        self._buffers: list[list[Array]] = [
            [np.zeros(0, pair.dtype) for pair in self.io.cache]
            for _ in range(1 if self.shared else 2)
        ]
        self._side = 0
        self._stored = 0
        self._runs: dict[tuple[int, bool], _Run] = {}
        self._logits: Array = np.empty(0, self.io.logits.dtype)
        self._float_logits = bool(self._logits.dtype == np.float32)
        self._options = self._run_options()
        mask = self.io.extras.get("attention_mask")
        self._mask_name = mask.name if mask else ""
        self._mask: Array = np.ones((1, 0))
        self._reserve(min(self.context_length, 512), 0)

    @property
    def wafer_s(self) -> float | None:
        """Simulated seconds on a wafer so far; None where nothing is simulated."""
        clocks = getattr(self._session, "clocks", None)
        return None if clocks is None else float(clocks.wafer_s)

    @property
    def row_bytes(self) -> int:
        """Bytes that the live cache takes for one row."""
        return self.io.row_bytes * (1 if self.shared else 2)

    @property
    def cache_bytes(self) -> int:
        """Bytes that the live cache takes now."""
        return sum(buffer.nbytes for side in self._buffers for buffer in side)

    def run(self, ids: Sequence[int], past: int, *, exact: bool = False) -> Array:
        """Run tokens behind the first `past` cached rows and return their logits.

        Args:
            ids: the tokens, at least one.
            past: cached rows to keep; what lies behind them is overwritten.
            exact: make every row's bits independent of how many rows run together (see `_padded`).

        Returns:
            float32 [len(ids), vocab], or [1, vocab] where the graph returns the last row only.
            A view that the next run overwrites.

        Raises:
            RunTerminatedError: `terminate` was called meanwhile.
        """
        run = self._execute(ids, past, exact, logits=True)
        assert run.logits is not None
        logits = run.logits[: len(ids)]
        return logits if self._float_logits else logits.astype(np.float32)

    def fill(self, ids: Sequence[int], past: int, *, exact: bool = False) -> None:
        """Run tokens for their cache rows alone; what lies behind the last of them is not computed.

        Arguments and errors are those of `run`.
        """
        self._execute(ids, past, exact, logits=False)

    def terminate(self) -> None:
        """End the run in progress, and every later one until `rearm`; callable from any thread."""
        self._options.terminate = True

    def rearm(self) -> None:
        """Allow runs again after `terminate`."""
        self._options = self._run_options()

    def save_rows(self, count: int) -> list[Array]:
        """Return a copy of the first `count` rows: [heads, count, width] per cache tensor."""
        return [self._rows(index)[:, :count].copy() for index in range(len(self.io.cache))]

    def load_rows(self, saved: Sequence[Array], count: int) -> None:
        """Put the first `count` rows of a copy made by `save_rows` into the live cache."""
        if count > self._capacity:
            self._reserve(count, 0)
        self._stored = count
        self.written = max(self.written, count)
        for index, rows in enumerate(saved):
            self._rows(index)[:, :count] = rows[:, :count]

    def _run_options(self) -> Any:
        options = self._ort.RunOptions()
        # Without logits among the fetches, the vocabulary projection is not run at all.
        options.only_execute_path_to_fetches = True
        # Says that no GPU graph is captured: ONNX Runtime's Python layer asks for this entry at
        # every run, and that it is missing comes as an exception, a tenth of a small step.
        options.add_run_config_entry("gpu_graph_id", "-1")
        return options

    def _padded(self, count: int) -> int:
        """Return how many rows to run so that no tile of attention has one row.

        ONNX Runtime's CPU attention cuts the rows of a run into tiles of twice the head width
        (fewer with little level-2 cache) and takes another matrix kernel, which rounds differently,
        for a tile of one row. Measured on 1.31.1: with this avoided, a row has the same bits in
        runs of any length; the other operators agree with themselves anyway.
        """
        # Where only the last row has logits, it must be the one that is asked for.
        return count + 1 if self.all_rows and count % self._tile == 1 else count

    def _execute(self, ids: Sequence[int], past: int, exact: bool, *, logits: bool) -> _Run:
        count = self._padded(len(ids)) if exact else len(ids)
        if past + count > self._capacity:
            self._reserve(past + count, past)
        if past + count > self.written:
            self.written = past + count
        if not self.shared and past != self._stored:
            self._compact(past)
        run = self._prepared(count, past, logits)
        run.tokens[: len(ids)] = ids
        run.tokens[len(ids) :] = ids[-1]
        if run.positions is not None:
            run.positions[0] = np.arange(past, past + count)
        started = time.perf_counter()
        try:
            self._session.run_with_iobinding(run.binding, self._options)
        except Exception as error:
            if self._options.terminate:
                raise RunTerminatedError from error
            raise
        seconds = time.perf_counter() - started
        self.runtime_s += seconds
        if logits:
            self.row_cost.note(count, seconds)
        if not self.shared:
            self._side = 1 - self._side
            self._stored = past + count
        return run

    def _prepared(self, count: int, past: int, logits: bool) -> _Run:
        key = (count, logits)
        run = self._runs.get(key)
        if run is None:
            run = self._new_run(count, logits)
            if count <= POOLED_ROWS:
                self._runs[key] = run
        total = past + count
        if self._mask_name:
            run.binding.bind_cpu_input(self._mask_name, self._mask[:, :total])
        if run.last is not None:
            run.last.fill(total - 1)
        if run.total is not None:
            run.total.fill(total)
        if not self.shared:
            self._bind_cache(run.binding, past, total)
        return run

    def _new_run(self, count: int, logits: bool) -> _Run:
        tokens = np.zeros((1, count), self.io.tokens.dtype)
        run = _Run(self._session.io_binding(), tokens[0])
        bind = run.binding.bind_cpu_input
        bind(self.io.tokens.name, tokens)
        for name, info in self.io.extras.items():
            if name == "attention_mask":
                continue
            value = np.full(_sizes(name, info, count), count, info.dtype)
            bind(info.name, value)
            if name == "position_ids":
                run.positions = value
            elif name == "seqlens_k":
                run.last = value
            elif name == "total_sequence_length":
                run.total = value
        if logits:
            run.logits = self._logits_of(count if self.all_rows else 1)
            run.binding.bind_output(
                self.io.logits.name, "cpu", 0, run.logits.dtype, (1, *run.logits.shape),
                run.logits.ctypes.data,
            )  # fmt: skip
        if self.shared:
            self._bind_cache(run.binding, self._capacity, self._capacity)
        return run

    def _logits_of(self, rows: int) -> Array:
        """Return where the logits of so many rows go: one buffer for runs of every length."""
        size = rows * self.vocab
        if size > self._logits.size:
            self._runs.clear()
            self._logits = np.empty(size, self._logits.dtype)
        return self._logits[:size].reshape(rows, self.vocab)

    def _bind_cache(self, binding: Any, past: int, total: int) -> None:
        """Bind the live side as past and, where the graph concatenates, the other as present."""
        there = self._buffers[self._side]
        back = there if self.shared else self._buffers[1 - self._side]
        for pair, source, target in zip(self.io.cache, there, back, strict=True):
            shape = (1, pair.heads, past, pair.width)
            binding.bind_input(pair.past, "cpu", 0, pair.dtype, shape, source.ctypes.data)
            shape = (1, pair.heads, total, pair.width)
            binding.bind_output(pair.present, "cpu", 0, pair.dtype, shape, target.ctypes.data)

    def _rows(self, index: int) -> Array:
        """View one live cache tensor as [heads, rows, width]."""
        pair = self.io.cache[index]
        rows = self._capacity if self.shared else self._stored
        return _view(self._buffers[self._side][index], pair, rows)

    def _compact(self, past: int) -> None:
        """Drop the rows from `past` on (the layout is dense, so the rest has to move)."""
        for index, pair in enumerate(self.io.cache):
            rows = self._rows(index)
            kept = _view(self._buffers[self._side][index], pair, past)
            for head in range(pair.heads):
                kept[head] = rows[head, :past]
        self._stored = past

    def _reserve(self, rows: int, keep: int) -> None:
        """Make room for so many rows, of which the first ones stay.

        Capacity doubles, so that growing costs little in all.
        """
        if rows > self.context_length:
            raise ValueError(f"{rows} rows do not fit a context of {self.context_length}")
        capacity = min(self.context_length, max(rows, 2 * self._capacity))
        # Tensor by tensor, so that a long cache is not there twice meanwhile.
        for index, pair in enumerate(self.io.cache):
            grown = [
                np.zeros(pair.heads * capacity * pair.width, pair.dtype) for _ in self._buffers
            ]
            rows_there = _view(grown[self._side], pair, capacity if self.shared else keep)
            rows_there[:, :keep] = self._rows(index)[:, :keep]
            for side, buffer in zip(self._buffers, grown, strict=True):
                side[index] = buffer
        self._capacity = capacity
        self._stored = self.written = keep
        self._runs.clear()
        if self._mask_name:
            self._mask = np.ones((1, capacity), self.io.extras["attention_mask"].dtype)

    def _probe(self, folder: ModelFolder) -> tuple[bool, bool, int]:
        """Run two tokens to see whether the cache can be shared, and which logits come back."""
        if folder.shares_cache is not False:
            # Room for four rows of which none is used: only a graph that shares returns four. One
            # that concatenates returns six, or fails because its mask then does not fit.
            with contextlib.suppress(Exception):
                logits, present = self._probe_run(buffer=4, total=2)
                if present == 4:
                    return True, logits[1] == 2, logits[2]
        try:
            logits, _ = self._probe_run(buffer=0, total=2)
        except Exception as error:
            raise ModelFolderError(
                f"{folder.graph} loads but does not run: {reason(error)}"
            ) from error
        return False, logits[1] == 2, logits[2]

    def _probe_run(self, buffer: int, total: int) -> tuple[tuple[int, ...], int]:
        feeds: dict[str, Array] = {self.io.tokens.name: np.zeros((1, 2), self.io.tokens.dtype)}
        for name, info in self.io.extras.items():
            value = np.full(_sizes(name, info, 2), 2, info.dtype)
            if name == "attention_mask":
                value = np.ones((1, total), info.dtype)
            elif name == "position_ids":
                value[0] = (0, 1)
            elif name == "seqlens_k":
                value.fill(total - 1)
            feeds[info.name] = value
        for pair in self.io.cache:
            feeds[pair.past] = np.zeros((1, pair.heads, buffer, pair.width), pair.dtype)
        names = [self.io.logits.name, self.io.cache[0].present]
        logits, present = self._session.run(names, feeds)
        return logits.shape, present.shape[2]


def _view(buffer: Array, pair: CachePair, rows: int) -> Array:
    """View the start of a flat buffer as [heads, rows, width]."""
    return buffer[: pair.heads * rows * pair.width].reshape(pair.heads, rows, pair.width)


def _sizes(name: str, info: TensorInfo, count: int) -> tuple[int, ...]:
    """Return the dimensions to feed a known extra input with, for a run of `count` tokens."""
    if name == "position_ids":
        return (1, count)
    return (1,) * max(len(info.dims), 1 if name in ("seqlens_k", "use_cache_branch") else 0)
