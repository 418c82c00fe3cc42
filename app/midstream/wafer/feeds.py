"""What a run of a decoder feeds: how many tokens, and how many of them attention sees.

Reads names and shapes that decoder graphs have in common; values only where they tell a length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast


class IOBinding:
    """ONNX Runtime's ``IOBinding`` that also remembers what tells how many tokens a run feeds."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.bound: dict[str, Any] = {}

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Bind an input to an array."""
        self.inner.bind_cpu_input(name, arr_on_cpu)
        self.bound[name] = arr_on_cpu

    def bind_ortvalue_input(self, name: str, ortvalue: Any) -> None:
        """Bind an input to an ``OrtValue``."""
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
        """Forget all inputs."""
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
    """Shape of an array, an ``OrtValue`` or a bound memory block; empty when there is none."""
    value: Any = feed.get(name)
    if value is None:
        return ()
    shape: Any = getattr(value, "shape", value)
    sizes = cast("Sequence[int]", shape() if callable(shape) else shape)
    return tuple(int(size) for size in sizes)


def _seen(mask: Any) -> int:
    """Tokens that a mask shows to attention: it may be longer than they are, and zero there."""
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
