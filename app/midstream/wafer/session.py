"""An inference session that looks like ONNX Runtime's: numerics on the CPU, timing simulated, two
clocks.

ONNX Runtime cannot take an execution provider written in Python (it loads shared libraries), and an
unknown provider name makes it fall back to the CPU with no more than a warning.  So our name never
reaches it: this session strips ``WaferSimExecutionProvider`` from the list, lets ONNX Runtime
compute on the remaining providers, and accounts every run on a simulated wafer clock.  Wall time
and wafer time are separate numbers and separate files.

    session = wafer.InferenceSession(
        "model.onnx",
        providers=[("WaferSimExecutionProvider", {"wafers": "1"}), "CPUExecutionProvider"],
    )
    session.run(None, feed)
    session.clocks  # wall_s: measured here; wafer_s: simulated
    session.simulate(context=32768).headline
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from midstream.wafer.errors import ModelUnavailableError, WaferUsageError
from midstream.wafer.estimate import Step, decode_step, prefill_pass, prefill_seconds
from midstream.wafer.onnx_shape import workload_from_onnx
from midstream.wafer.operators import Workload
from midstream.wafer.options import Options
from midstream.wafer.pipeline import stages_of
from midstream.wafer.plan import Plan
from midstream.wafer.report import Report, simulate
from midstream.wafer.trace import PROVIDER, TracedPass, trace_events

CPU_PROVIDER = "CPUExecutionProvider"
GRAPH_OPTION = "graph"
"""Extra provider option: ``optimized`` (default for small files), ``original`` or ``auto``."""

OPTIMISE_BELOW_BYTES = 256 * 1024 * 1024
"""Larger models are read as they are: an optimised copy would cost more than it is worth."""

CONTEXT_STEP = 64
"""Contexts are rounded up to a multiple of this for pricing, so that prices can be cached."""

VERIFY_TOKENS = 16
"""Up to this many tokens a pass is priced as decode of consecutive tokens, above as prefill."""

TRACED_PASSES = 256
"""Passes kept for the profile; later ones only advance the clock."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """What has run so far, on both clocks.

    Attributes:
        wall_s: Seconds measured on this machine inside the numerics.
        wafer_s: Seconds that the same passes take on the simulated wafers.
        runs: Passes.
        tokens: Tokens fed.
        simulated: Always true: ``wafer_s`` is simulated.
    """

    wall_s: float
    wafer_s: float
    runs: int
    tokens: int
    simulated: bool = True


class InferenceSession:
    """A session with ONNX Runtime's method names whose timing is simulated on wafers.

    Args:
        path_or_bytes: The model, as for ``onnxruntime.InferenceSession``.
        sess_options: ONNX Runtime session options, or None.
        providers: Providers in priority order; must name ``WaferSimExecutionProvider``, whose
            options are those of ``wafer.options.Options`` as strings, and
            ``GRAPH_OPTION``.
        provider_options: Options per provider, the other way ONNX Runtime takes them.
        **kwargs: Passed on.

    Raises:
        WaferUsageError: A provider or an option is unknown.
        DoesNotFitError: The model does not fit on the wafers asked for.
        ModelUnavailableError: The model cannot be read.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: Any = None,
        providers: Sequence[str | tuple[str, Mapping[str, str]]] | None = None,
        provider_options: Sequence[Mapping[str, str]] | None = None,
        **kwargs: Any,
    ) -> None:
        ort = _onnxruntime()
        rest, options = _split_providers(providers, provider_options)
        known = cast("set[str]", set(ort.get_available_providers()))
        for name, _ in rest:
            if name not in known:
                raise WaferUsageError(
                    f"Execution provider '{name}' is not available here; available are "
                    f"{', '.join(sorted(known))}."
                )
        graph = options.pop(GRAPH_OPTION, "auto")
        self.options = Options.from_strings(options)
        path = Path(os.fspath(path_or_bytes)) if not isinstance(path_or_bytes, bytes) else None
        if path is not None and not path.is_file():
            raise ModelUnavailableError(f"There is no model at '{path}'; check the path.")
        self.workload = _workload(path_or_bytes, path, graph)
        self.plan = self.options.place(self.workload)
        self._session: Any = ort.InferenceSession(
            path_or_bytes, sess_options, providers=rest, **kwargs
        )
        self._profile: bool = sess_options is not None and sess_options.enable_profiling
        self._prefix: str = sess_options.profile_file_prefix if sess_options is not None else ""
        self.numerics_profile: str | None = None
        self._cache: list[str] = [
            i.name for i in self._session.get_inputs() if "past" in i.name.lower()
        ]
        self._wall = 0.0
        self._wafer = 0.0
        self._runs = 0
        self._tokens = 0
        self._priced: dict[tuple[int, int], float] = {}
        self._traced: list[tuple[float, int, int]] = []

    # Running

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: Any = None,
    ) -> Any:
        """Compute the outputs (on the CPU) and advance both clocks."""
        began = time.perf_counter()
        outputs = self._session.run(output_names, input_feed, run_options)
        self._account(time.perf_counter() - began, input_feed)
        return outputs

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, Any],
        run_options: Any = None,
    ) -> Any:
        """Like ``run``, on ``OrtValue`` objects."""
        began = time.perf_counter()
        outputs = self._session.run_with_ort_values(
            output_names, input_dict_ort_values, run_options
        )
        self._account(time.perf_counter() - began, input_dict_ort_values)
        return outputs

    def io_binding(self) -> IOBinding:
        return IOBinding(self._session.io_binding())

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Any = None) -> None:
        """Run on bound inputs and outputs and advance both clocks."""
        began = time.perf_counter()
        # A binding made by ONNX Runtime itself works too, but its tokens are unknown.
        self._session.run_with_iobinding(getattr(iobinding, "inner", iobinding), run_options)
        self._account(time.perf_counter() - began, getattr(iobinding, "bound", {}))

    def _account(self, wall: float, feed: Mapping[str, Any]) -> None:
        tokens, context = tokens_and_context(feed, self._cache)
        self._wall += wall
        self._runs += 1
        self._tokens += tokens
        rounded = -(-context // CONTEXT_STEP) * CONTEXT_STEP
        key = (tokens, rounded)
        if key not in self._priced:
            self._priced[key] = _pass_seconds(self.plan, tokens, rounded)
        if len(self._traced) < TRACED_PASSES:
            self._traced.append((self._wafer, tokens, rounded))
        self._wafer += self._priced[key]

    # The simulated side

    @property
    def clocks(self) -> Clocks:
        return Clocks(self._wall, self._wafer, self._runs, self._tokens)

    def simulate(self, **changes: Any) -> Report:
        """Simulate decode of this model with the provider's options and some changes to them."""
        return simulate(self.workload, replace(self.options, **changes))

    def end_profiling(self) -> str:
        """End profiling.

        Returns:
            Path of the simulated profile (wafer clock), or ``""`` if profiling was off.  ONNX
            Runtime's own profile of the numerics (wall clock) is a separate file,
            ``numerics_profile``.
        """
        if not self._profile:
            return ""

        self._profile = False
        self.numerics_profile = self._session.end_profiling()
        passes = [
            TracedPass(start * 1e6, _traced_step(self.plan, tokens, context), tokens, context)
            for start, tokens, context in self._traced
        ]
        events = trace_events(
            self.plan,
            passes,
            numerics_provider=self._session.get_providers()[0],
            dropped=self._runs - len(passes),
        )
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
        target = Path(f"{self._prefix or 'onnxruntime_profile_'}_wafer_simulated_{stamp}.json")
        target.write_text(json.dumps(events), encoding="utf-8")
        return str(target)

    # The other methods of ONNX Runtime's session

    def get_providers(self) -> list[str]:
        """Our provider, which simulates the timing, then the providers that compute."""
        return [PROVIDER, *self._session.get_providers()]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Options per provider; ours say that it is virtual and who computes."""
        ours = {
            **self.options.as_strings(),
            "wafers": str(self.plan.wafers),
            "weight_bits": str(self.plan.weight_bits),
            "is_virtual": "1",
            "simulated": "timing",
            "numerics_provider": self._session.get_providers()[0],
        }
        return {PROVIDER: ours, **self._session.get_provider_options()}

    def set_providers(
        self,
        providers: Sequence[str | tuple[str, Mapping[str, str]]] | None = None,
        provider_options: Sequence[Mapping[str, str]] | None = None,
    ) -> None:
        """Change providers; clocks and plan start anew when our options change."""
        rest, options = _split_providers(providers, provider_options)
        options.pop(GRAPH_OPTION, None)
        self.options = Options.from_strings(options)
        self.plan = self.options.place(self.workload)
        self._session.set_providers(rest)
        self._wall = self._wafer = 0.0
        self._runs = self._tokens = 0
        self._priced.clear()
        self._traced.clear()

    def get_inputs(self) -> Any:
        return self._session.get_inputs()

    def get_outputs(self) -> Any:
        return self._session.get_outputs()

    def __getattr__(self, name: str) -> Any:
        """Everything else is ONNX Runtime's."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._session, name)


def _onnxruntime() -> Any:
    """ONNX Runtime, loaded on first use; its stubs are partial, so it is untyped here."""
    return import_module("onnxruntime")


def _split_providers(
    providers: Sequence[str | tuple[str, Mapping[str, str]]] | None,
    provider_options: Sequence[Mapping[str, str]] | None,
) -> tuple[list[tuple[str, dict[str, str]]], dict[str, str]]:
    """ONNX Runtime's providers with options, and our options."""
    named: list[tuple[str, dict[str, str]]] = []
    extra = list(provider_options or [])
    if extra and len(extra) != len(providers or []):
        raise WaferUsageError("Give as many provider_options as providers.")
    for index, provider in enumerate(providers or []):
        name, options = (provider, dict[str, str]()) if isinstance(provider, str) else provider
        merged = {**options, **(extra[index] if extra else {})}
        named.append((name, {key: str(value) for key, value in merged.items()}))
    ours = [options for name, options in named if name == PROVIDER]
    if not ours:
        raise WaferUsageError(
            f"providers does not name {PROVIDER}; for a session without simulation use "
            "onnxruntime.InferenceSession."
        )
    rest = [(name, options) for name, options in named if name != PROVIDER]
    return rest or [(CPU_PROVIDER, {})], ours[0]


def _workload(model: str | bytes | os.PathLike[str], path: Path | None, graph: str) -> Workload:
    """The operators of the optimised graph for small models, otherwise of the file as it is."""
    if graph not in ("auto", "optimized", "original"):
        raise WaferUsageError(
            f"Option graph '{graph}' is unknown; use auto, optimized or original."
        )
    size = len(model) if isinstance(model, bytes) else _total_bytes(path) if path else 0
    wanted = graph == "optimized" or (graph == "auto" and size <= OPTIMISE_BELOW_BYTES)
    name = path.parent.name if path is not None and path.stem.startswith("model") else None
    name = name or (path.stem if path is not None else "model")
    with tempfile.TemporaryDirectory(prefix="wafer-") as folder:
        target = Path(folder) / "model.onnx"
        if wanted and _write_optimised(model, target):
            return workload_from_onnx(target, name)
        if path is not None:
            return workload_from_onnx(path, name)
        if isinstance(model, bytes):
            target.write_bytes(model)
        return workload_from_onnx(target, name)


def _total_bytes(path: Path) -> int:
    siblings = [path, *path.parent.glob(f"{path.name}*data*")]
    return sum(file.stat().st_size for file in set(siblings) if file.is_file())


def _write_optimised(model: str | bytes | os.PathLike[str], target: Path) -> bool:
    """Let ONNX Runtime fuse the graph and write it; False if it cannot (size, exotic types)."""
    ort = _onnxruntime()
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    try:
        ort.InferenceSession(model, options, providers=[CPU_PROVIDER])
    except Exception:
        # The real session, built next, reports what is wrong with the model; this copy is only a
        # better view of it.
        return False
    return target.is_file()


def _pass_seconds(plan: Plan, tokens: int, context: int) -> float:
    if tokens > VERIFY_TOKENS:
        return prefill_seconds(plan, tokens)
    step = decode_step(plan, context=context)
    if tokens == 1:
        return step.seconds
    return step.seconds + (tokens - 1) * max(stage.seconds for stage in stages_of(plan, step))


def _traced_step(plan: Plan, tokens: int, context: int) -> Step:
    if tokens > VERIFY_TOKENS:
        return prefill_pass(plan, tokens=tokens, context=max(context, tokens))
    return decode_step(plan, context=context)


class IOBinding:
    """ONNX Runtime's ``IOBinding``, which also remembers the inputs, to count their tokens."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.bound: dict[str, Any] = {}

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        self.inner.bind_cpu_input(name, arr_on_cpu)
        self.bound[name] = arr_on_cpu

    def bind_ortvalue_input(self, name: str, ortvalue: Any) -> None:
        self.inner.bind_ortvalue_input(name, ortvalue)
        self.bound[name] = ortvalue

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Any,
        buffer_ptr: int,
    ) -> None:
        """Bind an input to memory; its shape is remembered, its values are not looked at."""
        self.inner.bind_input(name, device_type, device_id, element_type, shape, buffer_ptr)
        self.bound[name] = tuple(shape)

    def clear_binding_inputs(self) -> None:
        self.inner.clear_binding_inputs()
        self.bound.clear()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def tokens_and_context(feed: Mapping[str, Any], cache: Sequence[str]) -> tuple[int, int]:
    """Tokens fed by a run and tokens that attention sees, from the inputs that decoders have."""
    shape = partial(_shape_of, feed)
    ids = shape("input_ids") or shape("inputs_embeds")
    tokens = max(1, ids[1] if len(ids) > 1 else ids[0] if ids else 1)
    total = _scalar_of(feed, "total_sequence_length")
    if total is not None:
        return tokens, max(total, tokens)
    seen = _seen(feed.get("attention_mask"))
    if seen:
        return tokens, max(seen, tokens)
    past = shape(cache[0]) if cache else ()
    return tokens, tokens + (past[2] if len(past) == 4 else 0)


def _shape_of(feed: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """Shape of an array, an ``OrtValue`` or a bound memory block; empty if there is none."""
    value: Any = feed.get(name)
    if value is None:
        return ()
    shape: Any = getattr(value, "shape", value)
    sizes = cast("Sequence[int]", shape() if callable(shape) else shape)
    return tuple(int(size) for size in sizes)


def _seen(mask: Any) -> int:
    """Tokens that a mask shows to attention; the mask may be longer, with zeros."""
    if mask is None or isinstance(mask, tuple):
        sizes = cast("tuple[int, ...]", mask or ())
        return sizes[-1] if sizes else 0
    array = mask.numpy() if hasattr(mask, "numpy") else mask
    return int(array[0].astype(bool).sum()) if len(array) else 0


def _scalar_of(feed: Mapping[str, Any], name: str) -> int | None:
    value = feed.get(name)
    if value is None or isinstance(value, tuple):
        return None
    array = value.numpy() if hasattr(value, "numpy") else value
    return int(array.reshape(-1)[0]) if getattr(array, "size", 0) == 1 else None
