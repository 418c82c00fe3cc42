"""Reads the structure of an ONNX file: nodes and tensor shapes, never the weights.

ONNX Runtime's metadata names inputs and outputs but not nodes, and the ``onnx`` package copies the
weights that a file holds into memory, so this is a small reader of the protobuf wire format (field
numbers of ``onnx.proto``), which also reads ONNX Runtime's optimised models.  Weight bytes are
skipped by their length prefix in a memory map: a file of many gigabytes costs no more than its
graph.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from midstream.wafer.errors import ModelUnavailableError

_BITS = {
    1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64,
    16: 16, 17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4,
}  # fmt: skip
"""Bits per element of ``TensorProto.DataType``."""

Dim = int | str
Field = tuple[int, int, int | memoryview]


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Name, element type (``TensorProto.DataType``) and dimensions: numbers, names, or ``?``."""

    name: str
    data_type: int
    dims: tuple[Dim, ...]

    @property
    def bits(self) -> int:
        """Bits per element; 0 when the type is unknown."""
        return _BITS.get(self.data_type, 0)


@dataclass(frozen=True, slots=True)
class Node:
    """One graph node; attributes are integers, floats, strings or lists of integers."""

    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, int | float | str | tuple[int, ...]]
    constant: TensorInfo | None = None

    def integer(self, name: str, default: int = 0) -> int:
        value = self.attributes.get(name, default)
        return value if isinstance(value, int) else default


@dataclass(slots=True)
class Graph:
    """The parts of a model's main graph that placement and pricing need."""

    nodes: list[Node] = field(default_factory=list[Node])
    initializers: dict[str, TensorInfo] = field(default_factory=dict[str, TensorInfo])
    inputs: list[TensorInfo] = field(default_factory=list[TensorInfo])


def read_graph(path: Path) -> Graph:
    """Read the main graph of an ONNX file.

    Raises:
        ModelUnavailableError: The file cannot be opened or is not an ONNX model.
    """
    try:
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                raise ModelUnavailableError(f"'{path}' is empty; give an ONNX model.")
            # Not closed by hand: an error while parsing may leave views into it for the traceback.
            graph = _model(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    except OSError as error:
        raise ModelUnavailableError(f"'{path}' cannot be read: {error.strerror}.") from error
    except (ValueError, IndexError, struct.error) as error:
        raise ModelUnavailableError(f"'{path}' is not a readable ONNX model.") from error
    if not graph.nodes:
        raise ModelUnavailableError(f"'{path}' is not an ONNX model, or its graph is empty.")
    return graph


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("varint too long")


def _fields(view: memoryview) -> Iterator[Field]:
    """Field number, wire type and value (an integer, or the bytes of a length-delimited field)."""
    at, end = 0, len(view)
    while at < end:
        key, at = _varint(view, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(view, at)
            yield number, wire, value
        elif wire == 2:
            length, at = _varint(view, at)
            if at + length > end:
                raise ValueError("field longer than its message")
            yield number, wire, view[at : at + length]
            at += length
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            yield number, wire, view[at : at + size]
            at += size
        else:
            raise ValueError("unknown wire type")
        if number == 0:
            raise ValueError("field number zero")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _integers(wire: int, value: int | memoryview) -> list[int]:
    if isinstance(value, int):
        return [_signed(value)]
    if wire != 2:
        return []
    numbers: list[int] = []
    at = 0
    while at < len(value):
        number, at = _varint(value, at)
        numbers.append(_signed(number))
    return numbers


def _text(value: int | memoryview) -> str:
    return "" if isinstance(value, int) else bytes(value).decode("utf-8", "replace")


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError("message expected")
    return value


def _model(view: memoryview) -> Graph:
    graph = Graph()
    for number, _, value in _fields(view):
        if number == 7:
            _graph(_bytes(value), graph)
    return graph


def _graph(view: memoryview, graph: Graph) -> None:
    for number, _, value in _fields(view):
        if number == 1:
            graph.nodes.append(_node(_bytes(value)))
        elif number == 5:
            tensor = _tensor(_bytes(value))
            graph.initializers[tensor.name] = tensor
        elif number == 11:
            graph.inputs.append(_value_info(_bytes(value)))


def _node(view: memoryview) -> Node:
    inputs: list[str] = []
    outputs: list[str] = []
    name = op_type = ""
    attributes: dict[str, int | float | str | tuple[int, ...]] = {}
    constant: TensorInfo | None = None
    for number, _, value in _fields(view):
        if number == 1:
            inputs.append(_text(value))
        elif number == 2:
            outputs.append(_text(value))
        elif number == 3:
            name = _text(value)
        elif number == 4:
            op_type = _text(value)
        elif number == 5:
            key, content = _attribute(_bytes(value))
            if isinstance(content, TensorInfo):
                constant = content
            elif content is not None:
                attributes[key] = content
    return Node(name, op_type, tuple(inputs), tuple(outputs), attributes, constant)


def _attribute(
    view: memoryview,
) -> tuple[str, int | float | str | tuple[int, ...] | TensorInfo | None]:
    """Name and content; None stands for a sub-graph."""
    name = ""
    content: int | float | str | tuple[int, ...] | TensorInfo | None = 0
    numbers: list[int] = []
    for number, wire, value in _fields(view):
        if number == 1:
            name = _text(value)
        elif number == 2 and not isinstance(value, int):
            content = struct.unpack("<f", value)[0]
        elif number == 3 and isinstance(value, int):
            content = _signed(value)
        elif number == 4:
            content = _text(value)
        elif number == 5:
            content = _tensor(_bytes(value))
        elif number in (6, 11):
            content = None
        elif number == 8:
            numbers.extend(_integers(wire, value))
    return name, tuple(numbers) if numbers else content


def _tensor(view: memoryview) -> TensorInfo:
    name, data_type = "", 0
    dims: list[Dim] = []
    for number, wire, value in _fields(view):
        if number == 1:
            dims.extend(_integers(wire, value))
        elif number == 2 and isinstance(value, int):
            data_type = value
        elif number == 8:
            name = _text(value)
    return TensorInfo(name, data_type, tuple(dims))


def _value_info(view: memoryview) -> TensorInfo:
    name, data_type = "", 0
    dims: list[Dim] = []
    for number, _, value in _fields(view):
        if number == 1:
            name = _text(value)
        elif number == 2:
            for kind, _, tensor_type in _fields(_bytes(value)):
                if kind != 1:
                    continue
                for part, _, content in _fields(_bytes(tensor_type)):
                    if part == 1 and isinstance(content, int):
                        data_type = content
                    elif part == 2:
                        dims = [
                            _dimension(_bytes(d)) for n, _, d in _fields(_bytes(content)) if n == 1
                        ]
    return TensorInfo(name, data_type, tuple(dims))


def _dimension(view: memoryview) -> Dim:
    for number, _, value in _fields(view):
        if number == 1 and isinstance(value, int):
            return _signed(value)
        if number == 2:
            return _text(value) or "?"
    return "?"
