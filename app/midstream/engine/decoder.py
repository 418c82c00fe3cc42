"""One decoder graph in one ONNX Runtime session, with its KV cache: tokens in, logits out.

The cache rows [0, past) belong to the tokens run so far; running again with a smaller ``past``
rolls back. ``cache_memory`` says how they are kept; which way a graph wants it is found out by a
probe at load. The cache lies where the provider computes; tokens, lengths and logits, which are
small, come from and go to the host at every run.

What the tokens are, and which to run next, is not known here.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from midstream.engine.cache_memory import CacheMemory, DeviceCache, HostCache
from midstream.engine.drafting import RowCost
from midstream.engine.folder import ModelFolder, ModelFolderError
from midstream.engine.graph import (
    CAPACITY_STEP,
    DEVICES,
    GraphIO,
    GraphTensor,
    Opening,
    read_graph_io,
    reason,
)
from midstream.engine.moved_rows import Run
from midstream.engine.rotary import Rotation, read_rotation

Array = np.ndarray[Any, Any]

POOLED_ROWS = 128
"""Bindings are kept for runs of at most this many tokens; longer ones make their own."""

FIRST_ROWS = 512
"""Rows that a cache has room for from the beginning, context permitting."""

IDLE_SHARE = 4
"""A cache this many times larger than a prompt needs is released. Growing it again copies the rows
that are kept, so that should stay rare."""

CLOSE_SHARE = 16
"""With packed attention, a cache has room for a sixteenth more rows than it holds, because every
run goes over all of its capacity."""

PACKED_IDLE_SHARE = 1.5
"""``IDLE_SHARE`` for packed attention."""

SCRATCH_BYTES = 256 << 20
"""Memory that the scores of packed attention may take (``Decoder.chunk``)."""

SCORE_COPIES = 4
"""Tensors as large as the scores that a run holds at once (measured: 3.5)."""

MIN_CHUNK = 16
"""Tokens of a prompt that are run together however long the context is."""

ROTATION_ROWS = 16
"""Rows that show how keys are turned; see ``rotary``."""

CAUSAL_SLACK = 1e-2
"""Spreads of the logits by which a later token may change an earlier one; it is only rounding."""


class RunTerminatedError(Exception):
    """A run was ended by ``Decoder.terminate``; the cache is unchanged."""


@dataclass(slots=True)
class _BoundRun:
    """The buffers bound for runs of one length: inputs to write before, outputs to read after.

    Between two small runs the weights push everything else out of the caches, so that every line of
    Python costs several times what it seems to; what can be made ready once is.
    """

    binding: Any
    tokens: Array
    inputs: dict[str, Array] = field(default_factory=dict[str, Array])
    positions: Array | None = None
    last: Array | None = None
    total: Array | None = None
    logits: Array | None = None


class Decoder:
    """Runs tokens through a decoder graph; owns the session and the live cache.

    Attributes:
        io: The graph's interface.
        context_length: Most rows the cache may hold.
        provider: Where it runs, a key of ``graph.PROVIDERS``.
        threads: Threads inside one operator.
        vocab: Size of the vocabulary.
        shared: Whether past and present are one buffer.
        packed: Whether attention is packed (``packed_attention``).
        all_rows: Whether logits come back for every token of a run (needed to verify drafts).
        causal: Whether a token's logits depend on no later one of its run (likewise). They do in
            graphs that quantise activations while they run, with one scale for all rows.
        runtime_s: Seconds spent inside ONNX Runtime so far.
        row_cost: What one more row of a run has cost so far.
        written: Rows of the live cache that were ever written: the memory that it really takes (the
            rest is only reserved).
    """

    def __init__(
        self,
        folder: ModelFolder,
        *,
        provider: str = "cpu",
        threads: int | None = None,
        opening: Opening | None = None,
        device: str | None = None,
    ) -> None:
        """Load a folder's graph and find out how its cache works.

        Args:
            folder: The model folder.
            provider: A key of ``graph.PROVIDERS``.
            threads: Threads inside one operator; None chooses by the graph's size.
            opening: The folder's graph where it is being opened already, with provider and threads
                of its own.
            device: Bind the cache as this device's regardless of the provider (for tests: "cpu").

        Raises:
            ModelFolderError, UnavailableError: As in ``Opening`` and ``read_graph_io``.
        """
        opening = opening or Opening(folder, provider=provider, threads=threads)
        self._ort: Any = import_module("onnxruntime")
        self.provider, self.threads = opening.provider, opening.threads
        self.packed = opening.packed
        self._queries = folder.cache_shape.queries if folder.cache_shape else 0
        self._session = opening.session()
        self.io: GraphIO = read_graph_io(
            folder, self._session.get_inputs(), self._session.get_outputs()
        )
        self.context_length = folder.context_length
        self._probe(folder)
        self.runtime_s = 0.0
        # On a busy machine a thread's own time says what rows cost, the wall's what else there was.
        self._clock = time.thread_time if self.provider in ("cpu", "wafer") else time.perf_counter
        self.row_cost = RowCost()
        self.written = 0
        device = device or DEVICES.get(self.provider)
        self._on_host = device is None
        self._cache: CacheMemory = (
            HostCache(self.io.cache, shared=self.shared)
            if device is None
            else DeviceCache(self.io.cache, shared=self.shared, device=device)
        )
        self._runs: dict[tuple[int, bool], _BoundRun] = {}
        self._logits: Array = np.empty(0, self.io.logits.dtype)
        self._float_logits = bool(self._logits.dtype == np.float32)
        self._options = self._run_options()
        mask = self.io.extras.get("attention_mask")
        self._mask_name = mask.name if mask else ""
        self._mask: Array = np.zeros((1, 0))
        self._masked = 0
        self._reserve(self._roomy(0), 0)

    @property
    def wafer_s(self) -> float | None:
        """Simulated seconds on a wafer so far; None where nothing is simulated."""
        clocks = getattr(self._session, "clocks", None)
        return None if clocks is None else float(clocks.wafer_s)

    @property
    def row_bytes(self) -> int:
        return self.io.row_bytes * (1 if self.shared else 2)

    @property
    def cache_bytes(self) -> int:
        return self._cache.nbytes

    def run(self, ids: Sequence[int], past: int, *, exact: bool = False) -> Array:
        """Run tokens behind the first ``past`` cached rows and return their logits.

        Args:
            ids: The tokens, at least one.
            past: Cached rows to keep; later ones are overwritten.
            exact: Make every row's bits independent of how many rows run together (see
                ``_padded``).

        Returns:
            float32 [len(ids), vocab], or [1, vocab] where the graph returns the last row only.
            A view that the next run overwrites.

        Raises:
            RunTerminatedError: ``terminate`` was called during the run.
        """
        run = self._execute(ids, past, exact, logits=True)
        assert run.logits is not None
        logits = run.logits[: len(ids)]
        return logits if self._float_logits else logits.astype(np.float32)

    def fill(self, ids: Sequence[int], past: int, *, exact: bool = False) -> None:
        """Run tokens for their cache rows alone; what lies behind the last of them is not computed.

        Arguments and errors are those of ``run``.
        """
        self._execute(ids, past, exact, logits=False)

    def chunk(self, most: int, past: int) -> int:
        """How many tokens of a prompt to run at once behind ``past`` rows.

        Returns:
            ``most``, or fewer where the scores of packed attention would take too much memory.
        """
        if not self.packed:
            return most
        of_one = SCORE_COPIES * 4 * self._queries * self._roomy(past + most)
        return min(most, max(SCRATCH_BYTES // of_one, MIN_CHUNK))

    def terminate(self) -> None:
        """End the run in progress, and every later one until ``rearm``; callable from any
        thread.
        """
        self._options.terminate = True

    def rearm(self) -> None:
        self._options = self._run_options()

    def save_rows(self, count: int) -> list[Array]:
        """Return a copy of the first ``count`` rows: [heads, count, width] per cache tensor."""
        return self._cache.save(count)

    def load_rows(self, saved: Sequence[Array], count: int) -> None:
        """Put the first ``count`` rows of a copy made by ``save_rows`` into the live cache."""
        if count > self._cache.capacity:
            self._grow(count, 0)
        self.written = max(self.written, count)
        self._cache.load(saved, count)

    def read_rotation(self, token: int) -> Rotation | None:
        """Run a token over and over to find out how keys depend on their position (``rotary``).

        Returns:
            The rotation of keys; None where keys depend on positions in another way. The live cache
            is not changed.
        """
        pairs = [pair for pair in self.io.cache if pair.holds_keys]
        if len({pair.width for pair in pairs}) != 1:
            return None
        tokens = [token] * min(ROTATION_ROWS, self.context_length)
        buffer = len(tokens) if self.shared else 0
        keys = self._probe_run(tokens, buffer, len(tokens), [pair.present for pair in pairs])
        return read_rotation([rows[0] for rows in keys])

    def move_rows(self, runs: Sequence[Run], rotation: Rotation, last: Sequence[int]) -> bool:
        """Move rows within the live cache to behind those in front of the first run.

        The last ones are computed anew there, which shows whether their turned keys are those of
        the new positions: a table of angles may depend on a text's length.

        Args:
            runs: One behind the other.
            rotation: How keys are turned.
            last: The tokens of the last rows, two or more.

        Returns:
            Whether they are; if not, only the rows in front of the first run are left.
        """
        end = runs[-1].target + runs[-1].length
        if end > self._cache.capacity:
            self._grow(end, max(run.source + run.length for run in runs))
        self.written = max(self.written, end)
        if not self._cache.move(runs, rotation):
            return False
        begin = end - len(last)
        turned = self._cache.keys(begin, end)
        self.fill(last, begin)
        return rotation.alike(turned, self._cache.keys(begin, end))

    def fit(self, rows: int, keep: int) -> None:
        """Give memory back that a longer prompt has left, if a cache of ``rows`` wants far less.

        Args:
            rows: What the next prompt takes.
            keep: How many of the live rows are its first ones; the others are lost.
        """
        wanted = self._roomy(rows)
        if self._cache.capacity >= (PACKED_IDLE_SHARE if self.packed else IDLE_SHARE) * wanted:
            self._reserve(wanted, keep)

    def give_back(self) -> None:
        """Free what long runs have taken beside the weights and the cache.

        ONNX Runtime keeps the memory of tensors for later runs and frees it at the end of a run
        that says so; this one computes the first layer of two tokens, beside the live cache.
        """
        self._runs.clear()
        self._logits = np.empty(0, self._logits.dtype)
        if self.provider != "cpu":
            return
        options = self._run_options()
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        buffer = 4 if self.shared else 0
        self._probe_run((0, 0), buffer, 2, [self.io.cache[0].present], options)

    def _run_options(self) -> Any:
        options = self._ort.RunOptions()
        # Without logits among the fetches, the vocabulary projection is not run at all.
        options.only_execute_path_to_fetches = True
        # Says that no GPU graph is captured: ONNX Runtime's Python layer asks for this entry at
        # every run, and that it is missing comes as an exception, a tenth of a small step.
        options.add_run_config_entry("gpu_graph_id", "-1")
        return options

    def _padded(self, count: int) -> int:
        """Return how many rows to run so that a row's bits do not depend on their number.

        Measured on ONNX Runtime 1.31.1's CPU kernels: block-quantised products (of blocks from 128
        weights on at 8 bits, 64 at 4) take rows by twos and another kernel, which rounds
        differently, for a row that is left over; so does attention, which cuts the rows of a run
        into tiles of an even number, for a tile of one row. With even numbers a row has the same
        bits in runs of any length; the other operators agree with themselves anyway.
        """
        # Where only the last row has logits, only that row can be requested.
        return count + (count & 1) if self.all_rows else count

    def _execute(self, ids: Sequence[int], past: int, exact: bool, *, logits: bool) -> _BoundRun:
        given = len(ids)
        count = self._padded(given) if exact else given
        total = past + count
        if total > self._cache.capacity:
            self._grow(total, past)
        if total > self.written:
            self.written = total
        if not self.shared and past != self._cache.stored:
            self._cache.drop(past)
        run = self._runs.get((count, logits)) or self._new_run(count, logits)
        run.tokens[:given] = ids
        if count > given:
            run.tokens[given:] = ids[-1]
        if run.positions is not None:
            run.positions[0] = np.arange(past, total)
        if run.last is not None:
            run.last.fill(total - 1)
        if run.total is not None:
            run.total.fill(total)
        if self._mask_name:
            self._set_mask(run, past, total)
        if not self._on_host:
            # Binding is what brings inputs to a device.
            for name, value in run.inputs.items():
                run.binding.bind_cpu_input(name, value)
        if not self.shared:
            self._cache.bind(run.binding, past, total)
        started, cost_before = time.perf_counter(), self._clock()
        try:
            self._session.run_with_iobinding(run.binding, self._options)
        except Exception as error:
            if self._options.terminate:
                raise RunTerminatedError from error
            raise
        self.runtime_s += time.perf_counter() - started
        if exact and logits:
            # The cost of rows matters only where drafts are verified.
            self.row_cost.note(count, self._clock() - cost_before)
        if not self.shared:
            self._cache.ran(run.binding, total)
        return run

    def _set_mask(self, run: _BoundRun, past: int, total: int) -> None:
        """Show attention the first ``total`` rows.

        Where the graph allows, the mask is always as long as the cache: it stays bound, and ONNX
        Runtime, which plans memory anew for shapes that it has not seen, knows all of a step's.
        """
        if not self._whole_mask:
            run.binding.bind_cpu_input(self._mask_name, self._mask[:, :total])
            return
        if total < self._masked:
            self._mask[0, total : self._masked] = 0
        self._mask[0, min(past, self._masked) : total] = 1
        self._masked = total

    def _new_run(self, count: int, logits: bool) -> _BoundRun:
        tokens = np.zeros((1, count), self.io.tokens.dtype)
        run = _BoundRun(self._session.io_binding(), tokens[0], {self.io.tokens.name: tokens})
        for name, info in self.io.extras.items():
            if name == "attention_mask":
                continue
            value = np.full(_sizes(name, info, count), count, info.dtype)
            run.inputs[info.name] = value
            if name == "position_ids":
                run.positions = value
            elif name == "seqlens_k":
                run.last = value
            elif name == "total_sequence_length":
                run.total = value
        if self._mask_name and self._whole_mask:
            run.inputs[self._mask_name] = self._mask
        for name, value in run.inputs.items():
            run.binding.bind_cpu_input(name, value)
        if logits:
            run.logits = self._logits_of(count if self.all_rows else 1)
            run.binding.bind_output(
                self.io.logits.name, "cpu", 0, run.logits.dtype, (1, *run.logits.shape),
                run.logits.ctypes.data,
            )  # fmt: skip
        if self.shared:
            self._cache.bind(run.binding, 0, 0)
        if count <= POOLED_ROWS:
            self._runs[count, logits] = run
        return run

    def _logits_of(self, rows: int) -> Array:
        """The buffer for the logits of ``rows`` rows; runs of every length share it."""
        size = rows * self.vocab
        if size > self._logits.size:
            self._runs.clear()
            self._logits = np.empty(size, self._logits.dtype)
        return self._logits[:size].reshape(rows, self.vocab)

    def _grow(self, rows: int, keep: int) -> None:
        """Make room for ``rows`` rows and keep the first ``keep``.

        Capacity grows by a share of itself, so that growing costs little in all.
        """
        if rows > self.context_length:
            raise ValueError(f"{rows} rows do not fit a context of {self.context_length}")
        doubled = min(self.context_length, max(rows, 2 * self._cache.capacity))
        self._reserve(self._roomy(rows) if self.packed else doubled, keep)

    def _roomy(self, rows: int) -> int:
        """The capacity to reserve for ``rows`` rows and some that follow."""
        if not self.packed:
            return min(self.context_length, max(FIRST_ROWS, 2 * rows))
        room = min(self.context_length, rows + max(CAPACITY_STEP, rows // CLOSE_SHARE))
        return -(-room // CAPACITY_STEP) * CAPACITY_STEP

    def _reserve(self, capacity: int, keep: int) -> None:
        """Move the first ``keep`` rows into a cache of another size."""
        self._cache.reserve(capacity, keep)
        self.written = keep
        self._runs.clear()
        if self._mask_name:
            fill = np.zeros if self._whole_mask else np.ones
            self._mask = fill((1, capacity), self.io.extras["attention_mask"].dtype)
            self._masked = 0

    def _probe(self, folder: ModelFolder) -> None:
        """Run two tokens to find out whether the cache can be shared and which logits come back."""
        self.shared = self._whole_mask = False
        self.causal = True
        logits: Array | None = None
        names = [self.io.logits.name, self.io.cache[0].present]
        if folder.shares_cache is not False:
            # Room for four rows of which none is used: only a graph that shares returns four. One
            # that concatenates returns six, or fails because its mask then does not fit.
            with contextlib.suppress(Exception):
                logits, present = self._probe_run((0, 0), 4, 2, names)
                self.shared = present.shape[2] == 4
        if self.shared and logits is not None:
            with contextlib.suppress(Exception):
                masked, present = self._probe_run((0, 0), 4, 4, names)
                self._whole_mask = present.shape[2] == 4 and np.array_equal(masked, logits)
        if not self.shared or logits is None:
            try:
                logits, _ = self._probe_run((0, 0), 0, 2, names)
            except Exception as error:
                raise ModelFolderError(
                    f"{folder.graph} loads but does not run: {reason(error)}"
                ) from error
        self.all_rows, self.vocab = logits.shape[1] == 2, int(logits.shape[2])
        if self.all_rows:
            buffer = 4 if self.shared else 0
            other, _ = self._probe_run((0, 1), buffer, 2, names)
            # Bit for bit on CPUs; on other devices sums may come in any order.
            gap = np.abs(np.subtract(other[0, 0], logits[0, 0], dtype=np.float32)).max()
            self.causal = bool(gap <= CAUSAL_SLACK * logits[0, 0].std(dtype=np.float32))

    def _probe_run(
        self,
        ids: Sequence[int],
        buffer: int,
        mask: int,
        names: Sequence[str],
        options: Any = None,
    ) -> list[Array]:
        """Run tokens with an empty cache and a mask of the given lengths; return these outputs."""
        count = len(ids)
        feeds: dict[str, Array] = {
            self.io.tokens.name: np.array([ids], self.io.tokens.dtype),
        }
        for name, info in self.io.extras.items():
            value = np.full(_sizes(name, info, count), count, info.dtype)
            if name == "attention_mask":
                value = np.ones((1, mask), info.dtype)
                value[0, count:] = 0
            elif name == "position_ids":
                value[0] = np.arange(count)
            elif name == "seqlens_k":
                value.fill(count - 1)
            feeds[info.name] = value
        for pair in self.io.cache:
            feeds[pair.past] = np.zeros((1, pair.heads, buffer, pair.width), pair.dtype)
        return self._session.run(list(names), feeds, options)


def _sizes(name: str, info: GraphTensor, count: int) -> tuple[int, ...]:
    if name == "position_ids":
        return (1, count)
    return (1,) * max(len(info.dims), 1 if name in ("seqlens_k", "use_cache_branch") else 0)
