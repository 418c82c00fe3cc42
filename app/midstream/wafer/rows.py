"""Tables of published measurements: reading them forgivingly, and naming what a row is about.

Columns, in any order and case; extra ones are ignored; only ``hardware``, ``model`` and
``published`` are required:

hardware
    ``wse2``, ``wse3``, ``cs-3``, ``4xCS-3``, ``a100``, ``a100x8``, ``8xh100``, ``h200``, ``b200``
kernels
    ``waferllm-wse2``, ``cerebras-2024-08``, ``cerebras-2025`` (later vendor dates map to it),
    ``spec-limit``; an engine name such as ``sglang`` for GPUs
model
    a preset, a usual spelling of one, ``gemv-N``, ``gemv-MxN``, ``gemm-N``, or a path to a model
phase
    ``prefill`` (``ttft``), ``decode`` (``tpot``), ``end-to-end`` (``e2e``), ``gemv``, ``gemm``;
    empty: guessed from the other columns
grid
    PE grid of a benchmark: ``480``, ``480x480``, ``480^2``; per phase ``660/360`` or
    ``prefill=660 decode=360`` (or columns ``prefill_grid`` and ``decode_grid``)
wafers
    wafers of a production row; empty: the smallest number that fits; of a range such as ``20-26``
    the middle is taken and noted
context
    cached tokens in decode: ``4096``, ``4k``
batch
    sequences, 1 when empty
prompt, output
    prompt and generated tokens
speculation
    ``none``, ``undisclosed`` (or empty), ``yes``, or ``draft=4,alpha=0.8``
published
    the measured number; ``~2,200`` and ``1.8k`` are read as the number, ``1,400-1,500`` as a range
    (its middle is the number), ``>1000`` and ``up to 2000`` as bounds
unit
    ``tok/s`` (per request; end-to-end: output tokens over total time), ``s``, ``ms``, ``us``,
    ``ns``, ``cycles``, ``ms/token``, ``us/token``; empty: ``tok/s``, or ``us`` for gemv and gemm
source
    where the number was published
weight_bits (optional)
    16, 8, 4 or fp16, fp8, int4; empty: the model's native precision, or the highest that fits

Rows that cannot be read or are not modelled are reported with their line, the column and a reason;
they never stop the others.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass

from midstream.wafer.cost import Rectangle
from midstream.wafer.errors import RowError, WaferUsageError
from midstream.wafer.machines import Gpu, hardware
from midstream.wafer.presets import matrix_of
from midstream.wafer.row_cells import (
    read_bits,
    read_count,
    read_grids,
    read_published,
    read_unit,
)

COLUMNS = (
    "hardware",
    "kernels",
    "model",
    "phase",
    "grid",
    "wafers",
    "context",
    "batch",
    "prompt",
    "output",
    "speculation",
    "published",
    "unit",
    "source",
)
_REQUIRED = ("hardware", "model", "published")
_ALIASES = {
    "hw": "hardware",
    "device": "hardware",
    "system": "hardware",
    "platform": "hardware",
    "kernel": "kernels",
    "software": "kernels",
    "engine": "kernels",
    "stack": "kernels",
    "network": "model",
    "stage": "phase",
    "workload": "phase",
    "mesh": "grid",
    "pes": "grid",
    "systems": "wafers",
    "nwafers": "wafers",
    "numwafers": "wafers",
    "ctx": "context",
    "contextlength": "context",
    "seqlen": "context",
    "bsz": "batch",
    "batchsize": "batch",
    "input": "prompt",
    "inputtokens": "prompt",
    "inputlen": "prompt",
    "prompttokens": "prompt",
    "outputtokens": "output",
    "outputlen": "output",
    "spec": "speculation",
    "speculative": "speculation",
    "value": "published",
    "measured": "published",
    "result": "published",
    "units": "unit",
    "reference": "source",
    "ref": "source",
    "precision": "weight_bits",
    "bits": "weight_bits",
    "weightbits": "weight_bits",
    "prefillgrid": "prefill_grid",
    "gridprefill": "prefill_grid",
    "decodegrid": "decode_grid",
    "griddecode": "decode_grid",
}
_PHASES = {
    "prefill": "prefill",
    "prefilling": "prefill",
    "ttft": "prefill",
    "timetofirsttoken": "prefill",
    "firsttoken": "prefill",
    "decode": "decode",
    "decoding": "decode",
    "generation": "decode",
    "generate": "decode",
    "tpot": "decode",
    "itl": "decode",
    "timeperoutputtoken": "decode",
    "endtoend": "end-to-end",
    "e2e": "end-to-end",
    "total": "end-to-end",
    "inference": "end-to-end",
    "gemv": "gemv",
    "meshgemv": "gemv",
    "gemm": "gemm",
    "meshgemm": "gemm",
}
_TIMES = {"ttft", "timetofirsttoken", "firsttoken", "tpot", "itl", "timeperoutputtoken"}
"""Phases that are times by their name: without a unit they cannot be tokens per second."""
_WAFERS = re.compile(r"^(?:(\d+)[x×*]?)?(cerebras)?(wse|cs)([23])(?:[x×*](\d+))?$")


@dataclass(frozen=True, slots=True)
class Row:
    """One published measurement, normalised.

    Attributes:
        line: Line in the file (1 is the header).
        grids: PE grids for prefill and decode; equal when one was given, None without a grid.
        quantity: ``rate`` (tokens per second), ``time`` (seconds after scaling) or ``cycles``.
        scale: Factor from the row's unit to the base unit of ``quantity``.
        per_token: Whether a time is meant per token.
        speculation: Raw text, lower case; empty means undisclosed.
        published: The measured number; of a range its middle, of a bound the bound.
        published_range: What the cell allows: twice the number, the ends of a range, or one end
            and 0 or infinity.
        notes: What reading it decided.
    """

    line: int
    hardware: str
    kernels: str
    model: str
    phase: str
    grids: tuple[Rectangle, Rectangle] | None
    wafers: int | None
    context: int | None
    batch: int
    prompt: int | None
    output: int | None
    speculation: str
    published: float
    published_range: tuple[float, float]
    unit: str
    quantity: str
    scale: float
    per_token: bool
    source: str
    weight_bits: int | None
    matrix: tuple[int, int] | None
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Short name for tables."""
        where = " ".join(filter(None, (self.hardware, self.kernels)))
        grid = ""
        if self.grids is not None:
            first, second = self.grids
            grid = f"@{first.width}" if first == second else f"@{first.width}/{second.width}"
        length = f" {self.prompt}/{self.output}" if self.phase == "end-to-end" else ""
        return f"{where} {self.model}{grid} {self.phase}{length}"


@dataclass(frozen=True, slots=True)
class RowProblem:
    """A row that was left out.

    Attributes:
        line: Line in the file.
        reason: One sentence.
        column: Column at fault, or "" where it is the whole line.
    """

    line: int
    reason: str
    column: str = ""

    @property
    def where(self) -> str:
        """``line 7, column unit``."""
        return f"line {self.line}" + (f", column {self.column}" if self.column else "")


def read_rows(text: str) -> tuple[list[Row], list[RowProblem]]:
    """Read a table.

    Returns:
        The rows that could be read, and the problems of the others.

    Raises:
        WaferUsageError: The table has no usable header.
    """
    body = text.lstrip("\ufeff")
    first = next((line for line in body.splitlines() if _holds_data([line])), "")
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(body), delimiter=delimiter)
    header: list[str] = []
    rows: list[Row] = []
    problems: list[RowProblem] = []
    try:
        for cells in reader:
            if not _holds_data(cells):
                continue
            if not header:
                header = _header(cells)
                continue
            record = dict(zip(header, (cell.strip() for cell in cells), strict=False))
            try:
                rows.append(_row(reader.line_num, record))
            except RowError as error:
                problems.append(RowProblem(reader.line_num, str(error), error.column))
    except csv.Error as error:
        problems.append(RowProblem(reader.line_num, f"The rest of the table is not CSV: {error}."))
    if not header:
        raise WaferUsageError("The table is empty; its first line must name the columns.")
    return rows, problems


def _holds_data(cells: list[str]) -> bool:
    """Whether a line is neither blank nor a comment."""
    return any(cell.strip() for cell in cells) and not cells[0].lstrip().startswith("#")


def _header(cells: list[str]) -> list[str]:
    """Normalised column names.

    Raises:
        WaferUsageError: A required column is missing.
    """
    header = [_column(name) for name in cells]
    missing = [name for name in _REQUIRED if name not in header]
    if missing:
        raise WaferUsageError(
            f"The table has no column {' and no column '.join(missing)}; the columns are "
            f"{', '.join(COLUMNS)}."
        )
    return header


def _column(name: str) -> str:
    plain = re.sub(r"[\s_*()./-]", "", name.strip().lower())
    if plain in COLUMNS:
        return plain
    return _ALIASES.get(plain, plain)


def _row(line: int, record: dict[str, str]) -> Row:
    model = record.get("model", "")
    if not model:
        raise RowError("model", "The row names no model; fill the column.")
    machine, counted = _machine(record.get("hardware", ""))
    matrix = matrix_of(model)
    phase = _phase(record, matrix, model)
    unit = record.get("unit", "").strip().lower().replace("μ", "µ")
    if not unit and _plain_phase(record) in _TIMES:
        raise RowError("unit", f"'{record['phase']}' is a time; write its unit, s, ms or us.")
    unit = unit or ("us" if matrix else "tok/s")
    quantity, scale, per_token = read_unit(unit)
    notes: list[str] = []
    published, limits = read_published(record.get("published", ""))
    return Row(
        line=line,
        hardware=machine,
        kernels=_kernels(record, machine),
        model=model.strip(),
        phase=phase,
        grids=read_grids(record),
        wafers=read_count(record, "wafers", notes) or counted,
        context=read_count(record, "context", notes),
        batch=read_count(record, "batch", notes) or 1,
        prompt=read_count(record, "prompt", notes),
        output=read_count(record, "output", notes),
        speculation=record.get("speculation", "").strip().lower(),
        published=published,
        published_range=limits,
        unit=unit,
        quantity=quantity,
        scale=scale,
        per_token=per_token,
        source=record.get("source", ""),
        weight_bits=read_bits(record.get("weight_bits", "")),
        matrix=matrix,
        notes=tuple(notes),
    )


def _machine(text: str) -> tuple[str, int | None]:
    """Name of the hardware, and how many wafers the cell counts (``4xCS-3``)."""
    plain = re.sub(r"[\s_-]", "", text.lower())
    if not plain:
        raise RowError("hardware", "The row names no hardware; fill the column.")
    bare = re.sub(r"\(.*?\)|systems?|wafers?", "", plain)  # "4 CS-3 systems", "WSE-2 (850k cores)"
    if found := _WAFERS.match(bare):
        count = found[1] or found[5]
        return f"wse{found[4]}", int(count) if count and int(count) > 0 else None
    try:
        machine = hardware(text)
    except WaferUsageError as error:
        raise RowError("hardware", str(error)) from error
    return machine.name + (f"x{machine.count_gpus}" if isinstance(machine, Gpu) else ""), None


def _kernels(record: dict[str, str], hardware: str) -> str:
    """Kernels as written; without them, the generation that a wafer row most likely means."""
    text = record.get("kernels", "").strip().lower()
    if text or not hardware.startswith("wse"):
        return text
    benchmark = record.get("grid") or record.get("prefill_grid") or record.get("decode_grid")
    return "waferllm-wse2" if benchmark or hardware == "wse2" else "cerebras-2025"


def _plain_phase(record: dict[str, str]) -> str:
    return re.sub(r"[\s_-]", "", record.get("phase", "").lower())


def _phase(record: dict[str, str], matrix: tuple[int, int] | None, model: str) -> str:
    text = _plain_phase(record)
    if matrix is not None:
        return "gemm" if model.strip().lower().startswith("gemm") else "gemv"
    if text in _PHASES:
        return _PHASES[text]
    if text:
        raise RowError(
            "phase",
            f"Phase '{record.get('phase')}' is unknown; use prefill, decode, end-to-end, gemv "
            "or gemm.",
        )
    if record.get("output"):
        return "end-to-end"
    return "prefill" if record.get("prompt") else "decode"
