"""Tables of published measurements: reading them forgivingly, and naming what a row is about.

Columns, in any order and case; extra ones are ignored; only ``hardware``, ``model`` and
``published`` are required:

hardware
    ``wse2``, ``wse3``, ``cs-3``, ``a100``, ``a100x8``, ``8xh100``, ``h200``, ``b200``
kernels
    ``waferllm-wse2``, ``cerebras-2024-08``, ``cerebras-2025`` (later vendor dates map to it),
    ``spec-limit``; an engine name such as ``sglang`` for GPUs
model
    a preset, a usual spelling of one, ``gemv-N``, ``gemv-MxN``, ``gemm-N``, or a path to a model
phase
    ``prefill``, ``decode``, ``end-to-end`` (``e2e``), ``gemv``, ``gemm``; empty: guessed from the
    other columns
grid
    PE grid of a benchmark: ``480``, ``480x480``, ``480^2``; per phase ``660/360`` or
    ``prefill=660 decode=360`` (or columns ``prefill_grid`` and ``decode_grid``)
wafers
    wafers of a production row; empty: the smallest number that fits
context
    cached tokens in decode: ``4096``, ``4k``
batch
    sequences, 1 when empty
prompt, output
    prompt and generated tokens
speculation
    ``none``, ``undisclosed`` (or empty), ``yes``, or ``draft=4,alpha=0.8``
published
    the measured number; ``~2,200``, ``>1000`` and ``1.8k`` are read as the number
unit
    ``tok/s`` (per request; end-to-end: output tokens over total time), ``s``, ``ms``, ``us``,
    ``ns``, ``cycles``, ``ms/token``, ``us/token``; empty: ``tok/s``, or ``us`` for gemv and gemm
source
    where the number was published
weight_bits (optional)
    16, 8, 4 or fp16, fp8, int4; empty: the model's native precision, or the highest that fits

Rows that cannot be read or are not modelled are reported with their line and a reason; they never
stop the others.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass

from midstream.wafer.cost import Rectangle
from midstream.wafer.errors import WaferUsageError

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
    "decode": "decode",
    "decoding": "decode",
    "generation": "decode",
    "endtoend": "end-to-end",
    "e2e": "end-to-end",
    "total": "end-to-end",
    "inference": "end-to-end",
    "gemv": "gemv",
    "meshgemv": "gemv",
    "gemm": "gemm",
    "meshgemm": "gemm",
}
_TIME_UNITS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_MICROBENCH = re.compile(r"^(gemv|gemm)[-_ ]?(\d+)(k?)(?:[x×*](\d+)(k?))?$")
_NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?|[-+]?\.\d+", re.IGNORECASE)


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
    unit: str
    quantity: str
    scale: float
    per_token: bool
    source: str
    weight_bits: int | None
    matrix: tuple[int, int] | None

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

    @property
    def identity(self) -> tuple[object, ...]:
        """What makes two rows the same measurement, source aside."""
        return (
            self.hardware,
            self.kernels,
            self.model,
            self.phase,
            self.grids,
            self.wafers,
            self.context,
            self.prompt,
            self.output,
            self.published,
        )


@dataclass(frozen=True, slots=True)
class RowProblem:
    """A row that was left out, with the reason."""

    line: int
    reason: str


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
            except WaferUsageError as error:
                problems.append(RowProblem(reader.line_num, str(error)))
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
            f"The table lacks the column {' and '.join(missing)}; columns are {', '.join(COLUMNS)}."
        )
    return header


def _column(name: str) -> str:
    plain = re.sub(r"[\s_*()./-]", "", name.strip().lower())
    if plain in COLUMNS:
        return plain
    return _ALIASES.get(plain, plain)


def _row(line: int, record: dict[str, str]) -> Row:
    model = record.get("model", "")
    hardware = re.sub(r"[\s_-]", "", record.get("hardware", "").lower())
    hardware = {"cs2": "wse2", "cs3": "wse3"}.get(hardware, hardware)
    if not model or not hardware:
        raise WaferUsageError("The row names no model or no hardware; fill both columns.")
    matrix = _matrix(model)
    phase = _phase(record, matrix, model)
    prompt, output = _tokens(record, "prompt"), _tokens(record, "output")
    unit = record.get("unit", "").strip().lower().replace("μ", "µ")
    unit = unit or ("us" if matrix else "tok/s")
    quantity, scale, per_token = _unit(unit)
    return Row(
        line=line,
        hardware=hardware,
        kernels=_kernels(record, hardware),
        model=model.strip(),
        phase=phase,
        grids=_grids(record),
        wafers=_tokens(record, "wafers"),
        context=_tokens(record, "context"),
        batch=_tokens(record, "batch") or 1,
        prompt=prompt,
        output=output,
        speculation=record.get("speculation", "").strip().lower(),
        published=_published(record.get("published", "")),
        unit=unit,
        quantity=quantity,
        scale=scale,
        per_token=per_token,
        source=record.get("source", ""),
        weight_bits=_bits(record.get("weight_bits", "")),
        matrix=matrix,
    )


def _unit(unit: str) -> tuple[str, float, bool]:
    """Quantity, scale and whether it is per token, of a unit such as ``tok/s`` or ``ms/token``."""
    plain = re.sub(r"\s*\bper\b\s*", "/", unit).replace(" ", "")
    rate = re.match(r"(t|toks?|tokens?)/(s|secs?|seconds?)(/|$)", plain)
    if rate or plain in ("tps", "tpr"):
        return "rate", 1.0, False
    base, _, rest = plain.partition("/")
    base = {"seconds": "s", "second": "s"}.get(base, base)
    per_token = bool(re.fullmatch(r"toks?|tokens?", rest))
    if base in _TIME_UNITS and (not rest or per_token):
        return "time", _TIME_UNITS[base], per_token
    if match := re.fullmatch(r"([km]?)cycles?", base):
        return "cycles", {"": 1.0, "k": 1e3, "m": 1e6}[match[1]], per_token
    raise WaferUsageError(f"Unit '{unit}' is not modelled; use tok/s, s, ms, us, ns or cycles.")


def _kernels(record: dict[str, str], hardware: str) -> str:
    """Kernels as written; without them, the generation that a wafer row most likely means."""
    text = record.get("kernels", "").strip().lower()
    if text or not hardware.startswith("wse"):
        return text
    benchmark = record.get("grid") or record.get("prefill_grid") or record.get("decode_grid")
    return "waferllm-wse2" if benchmark or hardware == "wse2" else "cerebras-2025"


def _matrix(model: str) -> tuple[int, int] | None:
    match = _MICROBENCH.match(model.strip().lower().replace(" ", "-"))
    if match is None:
        return None
    rows = int(match[2]) * (1024 if match[3] else 1)
    columns = int(match[4]) * (1024 if match[5] else 1) if match[4] else rows
    return rows, columns


def _phase(record: dict[str, str], matrix: tuple[int, int] | None, model: str) -> str:
    text = re.sub(r"[\s_-]", "", record.get("phase", "").lower())
    if matrix is not None:
        return "gemm" if model.strip().lower().startswith("gemm") else "gemv"
    if text in _PHASES:
        return _PHASES[text]
    if text:
        raise WaferUsageError(
            f"Phase '{record.get('phase')}' is unknown; use prefill, decode, end-to-end, gemv "
            "or gemm."
        )
    if record.get("output"):
        return "end-to-end"
    return "prefill" if record.get("prompt") else "decode"


def _tokens(record: dict[str, str], column: str) -> int | None:
    """A count such as ``4096``, ``4,096``, ``4k`` or ``4K``; None when empty or ``n/a``."""
    text = record.get(column, "").strip().lower()
    if text in ("", "-", "n/a", "na", "none", "?", "auto", "unknown", "undisclosed"):
        return None
    match = re.match(r"[^\d-]{0,3}(\d[\d,]*(?:\.\d+)?)\s*(k?)(?![a-z.\d])", text)
    if match is None:
        raise WaferUsageError(
            f"Column {column} has '{record[column]}'; write a number such as 4096 or 4k."
        )
    value = float(match[1].replace(",", "")) * (1024 if match[2] else 1)
    if value < 1:
        raise WaferUsageError(f"Column {column} has '{record[column]}'; it must be at least 1.")
    return int(value)


def _published(text: str) -> float:
    """The first number of the cell; a trailing k means thousands."""
    match = _NUMBER.search(text)
    if match is None:
        raise WaferUsageError(f"Column published has '{text}'; write the measured number.")
    value = float(match[0].replace(",", ""))
    if text[match.end() :].strip().lower().startswith("k"):
        value *= 1000
    if value <= 0:
        raise WaferUsageError(f"Column published has '{text}'; it must be positive.")
    return value


def _bits(text: str) -> int | None:
    plain = text.strip().lower()
    if plain in ("", "undisclosed", "unknown", "native", "?", "-", "n/a"):
        return None
    found = re.search(r"(16|8|4)", plain)
    if found is None:
        raise WaferUsageError(f"Weight precision '{text}' is unknown; use 16, 8 or 4 bit.")
    return int(found[0])


def _grids(record: dict[str, str]) -> tuple[Rectangle, Rectangle] | None:
    """Grids for prefill and decode, from one column or two."""
    parts = [record.get("prefill_grid", ""), record.get("decode_grid", "")]
    named = [parse_grid(part) if part else None for part in parts]
    prefill, decode = named
    text = record.get("grid", "").strip().lower()
    if text in ("", "-", "n/a", "na"):
        if prefill is None and decode is None:
            return None
        return prefill or decode or Rectangle(1, 1), decode or prefill or Rectangle(1, 1)
    squares = re.sub(r"\^\s*2|²|\*\*\s*2", "", text)
    sizes = re.findall(r"\d+(?:\s*[x×*]\s*\d+)?", squares)
    if not 1 <= len(sizes) <= 2:
        raise WaferUsageError(f"Grid '{text}' cannot be read; write 480, 480x480 or 660/360.")
    first, last = parse_grid(sizes[0]), parse_grid(sizes[-1])
    decode_first = re.search(r"d(ecode)?\W*\d.*p(refill)?\W*\d", squares) is not None
    return (last, first) if decode_first else (first, last)


def parse_grid(text: str) -> Rectangle:
    """``480``, ``480x360`` (columns x rows), ``480^2``, ``480²``.

    Raises:
        WaferUsageError: The text cannot be read.
    """
    plain = (
        re.sub(r"[()\[\]\s]", "", text.lower())
        .removesuffix("^2")
        .removesuffix("²")
        .removesuffix("**2")
    )
    match = re.fullmatch(r"(\d+)(?:[x×*](\d+))?", plain)
    if match is None or int(match[1]) < 1 or int(match[2] or 1) < 1:
        raise WaferUsageError(f"Grid '{text}' cannot be read; write 480, 480x480 or 660/360.")
    width = int(match[1])
    return Rectangle(width, int(match[2] or width))
