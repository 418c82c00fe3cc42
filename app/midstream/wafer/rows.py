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
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from midstream.wafer.cost import Rectangle
from midstream.wafer.errors import RowError, WaferUsageError
from midstream.wafer.machines import Gpu, hardware
from midstream.wafer.models import matrix_of

COLUMNS = (
    *("hardware", "kernels", "model", "phase", "grid", "wafers", "context", "batch", "prompt"),
    *("output", "speculation", "published", "unit", "source"),
)
_REQUIRED = ("hardware", "model", "published")


def _by_alias(names: Mapping[str, str]) -> dict[str, str]:
    """Names by alias, from the aliases of each name separated by spaces."""
    return {alias: name for name, aliases in names.items() for alias in aliases.split()}


_ALIASES = _by_alias(
    {
        "hardware": "hw device system platform",
        "kernels": "kernel software engine stack",
        "model": "network",
        "phase": "stage workload",
        "grid": "mesh pes",
        "wafers": "systems nwafers numwafers",
        "context": "ctx contextlength seqlen",
        "batch": "bsz batchsize",
        "prompt": "input inputtokens inputlen prompttokens",
        "output": "outputtokens outputlen",
        "speculation": "spec speculative",
        "published": "value measured result",
        "unit": "units",
        "source": "reference ref",
        "weight_bits": "precision bits weightbits",
        "prefill_grid": "prefillgrid gridprefill",
        "decode_grid": "decodegrid griddecode",
    }
)
_PHASES = _by_alias(
    {
        "prefill": "prefill prefilling ttft timetofirsttoken firsttoken",
        "decode": "decode decoding generation generate tpot itl timeperoutputtoken",
        "end-to-end": "endtoend e2e total inference",
        "gemv": "gemv meshgemv",
        "gemm": "gemm meshgemm",
    }
)
_TIMES = {"ttft", "timetofirsttoken", "firsttoken", "tpot", "itl", "timeperoutputtoken"}
"""Phases that are times by their name: without a unit they cannot be tokens per second."""
_WAFERS = re.compile(r"^(?:(\d+)[x×*]?)?(cerebras)?(wse|cs)([23])(?:[x×*](\d+))?$")


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One published measurement, normalised.

    Attributes:
        line: Line in the file (1 is the header).
        grids: PE grids for prefill and decode; equal when one was given, None without a grid.
        quantity: ``rate`` (tokens per second), ``time`` (seconds after scaling) or ``cycles``.
        scale: Factor from the row's unit to the base unit of ``quantity``.
        per_token: Whether a time is per token.
        speculation: Raw text, lower case; empty means undisclosed.
        published: The measured number; of a range its middle, of a bound the bound.
        published_range: What the cell allows: the number twice, a range, or a bound and 0 or
            infinity.
        notes: How ambiguous cells were read.
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
    """A row that was left out; ``column`` is ``""`` where the whole line is at fault."""

    line: int
    reason: str
    column: str = ""

    @property
    def where(self) -> str:
        """``line 7, column unit``."""
        return f"line {self.line}" + (f", column {self.column}" if self.column else "")


def read_rows(text: str) -> tuple[list[PublishedRow], list[RowProblem]]:
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
    rows: list[PublishedRow] = []
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


def _row(line: int, record: dict[str, str]) -> PublishedRow:
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
    return PublishedRow(
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
    """Kernels as written; without any, the generation that a wafer row most likely means."""
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


_TIME_UNITS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE)
_COUNT = r"(\d[\d,]*(?:\.\d+)?)\s*(k?)"
_RANGE = re.compile(r"\s*(?:k|tok/s)?\s*(?:-|–|—|\bto\b|\.\.\.?|…)\s*(?=[\d.])", re.IGNORECASE)
_AT_LEAST = re.compile(r"^\W*(?:>|≥|over|above|at least|more than|min)|\d\s*\+", re.IGNORECASE)
_AT_MOST = re.compile(r"^\W*(?:<|≤|up to|under|below|at most|less than|max)", re.IGNORECASE)


def read_unit(unit: str) -> tuple[str, float, bool]:
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
    raise RowError("unit", f"Unit '{unit}' is not modelled; use tok/s, s, ms, us, ns or cycles.")


def read_count(record: Mapping[str, str], column: str, notes: list[str]) -> int | None:
    """A count such as ``4096``, ``4,096``, ``4k`` or ``20-26``; None when empty or ``n/a``."""
    text = record.get(column, "").strip().lower()
    if text in ("", "-", "n/a", "na", "none", "?", "auto", "unknown", "undisclosed"):
        return None
    first, last = rf"[^\d-]{{0,3}}{_COUNT}", r"(?![a-z.\d])"
    match = re.match(first + last, text)
    if match is None:
        raise RowError(column, f"It has '{record[column]}'; write a number such as 4096 or 4k.")
    value = _thousands(match[1], match[2])
    if other := re.match(rf"{first}\s*(?:-|–|\bto\b)\s*{_COUNT}{last}", text):
        value = (value + _thousands(other[3], other[4])) / 2
        notes.append(f"{column} {record[column]} read as {value:,.0f}")
    if value < 1:
        raise RowError(column, f"It has '{record[column]}'; it must be at least 1.")
    return int(value)


def _thousands(digits: str, suffix: str) -> float:
    return float(digits.replace(",", "")) * (1024 if suffix else 1)


def read_published(text: str) -> tuple[float, tuple[float, float]]:
    """The number of the cell and the range it allows."""
    found = _NUMBER.search(text)
    if found is None:
        raise RowError("published", f"It has '{text}'; write the measured number.")
    low, stop = _thousandfold(text, found)
    between = _RANGE.match(text, stop)
    second = _NUMBER.match(text, between.end()) if between else None
    high = _thousandfold(text, second)[0] if second else low
    if low * 1000 <= high and _k_once(text, found, second):
        low *= 1000  # "1-2k": the suffix is meant for both
    if low <= 0 or not math.isfinite(low + high):
        raise RowError("published", f"It has '{text}'; it must be positive.")
    if high > low:
        return (low + high) / 2, (low, high)
    if _AT_LEAST.search(text):
        return low, (low, math.inf)
    return low, (0.0, low) if _AT_MOST.search(text) else (low, low)


def _thousandfold(text: str, found: re.Match[str]) -> tuple[float, int]:
    """A number with its ``k``, and where it ends."""
    value = float(found[0].replace(",", ""))
    suffix = re.compile(r"\s*k(?![a-z])", re.IGNORECASE).match(text, found.end())
    return (value * 1000, suffix.end()) if suffix else (value, found.end())


def _k_once(text: str, first: re.Match[str], second: re.Match[str] | None) -> bool:
    """Whether only the second number of a range has a ``k``, which is then meant for both."""
    ends = [_thousandfold(text, found)[1] > found.end() for found in (first, second) if found]
    return ends == [False, True]


def read_bits(text: str) -> int | None:
    """Bits per weight of ``fp8``, ``int4`` or ``16``; None when not said."""
    plain = text.strip().lower()
    if plain in ("", "undisclosed", "unknown", "native", "?", "-", "n/a"):
        return None
    found = re.search(r"(16|8|4)", plain)
    if found is None:
        raise RowError("weight_bits", f"Precision '{text}' is unknown; use 16, 8 or 4 bit.")
    return int(found[0])


def read_grids(record: Mapping[str, str]) -> tuple[Rectangle, Rectangle] | None:
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
        raise RowError("grid", f"Grid '{text}' cannot be read; write 480, 480x480 or 660/360.")
    first, last = parse_grid(sizes[0]), parse_grid(sizes[-1])
    decode_first = re.search(r"d(ecode)?\W*\d.*p(refill)?\W*\d", squares) is not None
    return (last, first) if decode_first else (first, last)


def parse_grid(text: str) -> Rectangle:
    """``480``, ``480x360`` (columns x rows), ``480^2``, ``480²``.

    Raises:
        RowError: The text cannot be read.
    """
    plain = (
        re.sub(r"[()\[\]\s]", "", text.lower())
        .removesuffix("^2")
        .removesuffix("²")
        .removesuffix("**2")
    )
    match = re.fullmatch(r"(\d+)(?:[x×*](\d+))?", plain)
    if match is None or int(match[1]) < 1 or int(match[2] or 1) < 1:
        raise RowError("grid", f"Grid '{text}' cannot be read; write 480, 480x480 or 660/360.")
    width = int(match[1])
    return Rectangle(width, int(match[2] or width))
