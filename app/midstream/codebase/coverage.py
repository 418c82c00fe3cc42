"""Which lines of a file the last tests ran, from the data that a coverage tool left.

Reads the database of coverage.py (``.coverage``, schema 7: ``file``, ``context``, ``line_bits``,
``arc``; https://coverage.readthedocs.io/en/latest/dbschema.html), its JSON report and LCOV
(``lcov.info``), without coverage.py.  The data may come from anywhere, so what cannot be read
within bounds counts as missing.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

from midstream.resources import open_regular, read_json, read_text

NAMES: Final = (
    ".coverage",
    "coverage.json",
    "lcov.info",
    "coverage/lcov.info",
    "coverage.lcov",
)
"""Where coverage tools leave their data, from the root."""
MAX_REPORT_BYTES: Final = 8_000_000
"""A larger report as text is not read: that would hold up the keys."""
MAX_VALUE_BYTES: Final = 1_000_000
"""A database with a longer value is not read; for the lines of a file that is eight million."""
MAX_RUNS: Final = 5_000_000
"""Lines of one file, counted for each test, that a database may name."""
MAX_STEPS: Final = 20_000_000
"""Instructions of SQLite for one question; a database with more to say than that is no data."""
_LOGGED: Final = slice(18, 20), b"\2\2"
"""Where a database says that it has a write-ahead log, and how
(https://www.sqlite.org/fileformat.html)."""
_PHASE: Final = re.compile(r"\|(?:setup|run|teardown)$")


@dataclass(frozen=True, slots=True)
class FileCoverage:
    """What was run of a file.

    Attributes:
        source: The file with the data, relative to the root.
        made: When it was written, in seconds since the epoch.
        older: Whether the file with the code was changed since, so that lines may have moved.
        ran: Lines that were run, 0-based.
        missed: Lines with code that were not run; ``None`` if the data do not tell.
        tests: The lines that each test ran, where the data name tests.
    """

    source: str
    made: float
    older: bool
    ran: frozenset[int] = frozenset()
    missed: frozenset[int] | None = None
    tests: Mapping[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])

    def tests_of(self, lines: Iterable[int]) -> list[str]:
        """The tests that ran one of some lines, in order."""
        wanted = frozenset(lines)
        return sorted(test for test, ran in self.tests.items() if ran & wanted)


def read_coverage(root: Path, path: str) -> FileCoverage | None:
    """The lines of a file that the last tests ran (blocking).

    Returns:
        What the newest data say that know the file; ``None`` without such data.
    """
    try:
        changed = (root / path).stat().st_mtime_ns
    except OSError:
        return None
    found: list[tuple[int, str]] = []
    for name in NAMES:
        try:
            found.append(((root / name).stat().st_mtime_ns, name))
        except OSError:
            continue
    for made, name in sorted(found, key=lambda each: -each[0]):
        try:
            lines = _read(root, name, path)
        except (OSError, ValueError, sqlite3.Error):
            continue
        if lines is not None:
            ran, missed, tests = lines
            return FileCoverage(name, made / 1e9, made <= changed, ran, missed, tests)
    return None


_Lines = tuple[frozenset[int], frozenset[int] | None, dict[str, frozenset[int]]]


def _read(root: Path, name: str, path: str) -> _Lines | None:
    if name == ".coverage":
        return _of_database(root, name, path)
    if name.endswith(".json"):
        return _of_json(root, name, path)
    return _of_lcov(root, name, path)


def _of_database(root: Path, name: str, path: str) -> _Lines | None:
    with open_regular(root / name) as file:
        place, logged = _LOGGED
        if file.read(place.stop)[place] == logged:
            raise ValueError("reading it would make files beside it")
    address = f"file:{quote(str(root / name))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as database:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        budget = iter(range(MAX_STEPS // 100_000))
        database.set_progress_handler(lambda: next(budget, None) is None, 100_000)
        names = (str(root / path), os.path.realpath(root / path), path)
        ids = database.execute("SELECT id FROM file WHERE path IN (?, ?, ?)", names).fetchall()
        if not ids:
            return None
        named = database.execute("SELECT * FROM context")
        tests = {context: _PHASE.sub("", str(name)) for context, name in named}
        by_test: dict[str, set[int]] = {}
        numbers = chain.from_iterable(_numbers(database, file) for (file,) in ids)
        for count, (context, number) in enumerate(numbers, 1):
            if count > MAX_RUNS:
                raise ValueError("these are too many lines")
            by_test.setdefault(tests.get(context, ""), set()).add(number - 1)
    ran = frozenset[int]().union(*by_test.values())
    return ran, None, {test: frozenset(lines) for test, lines in by_test.items() if test}


def _numbers(database: sqlite3.Connection, file: int) -> Iterator[tuple[int, int]]:
    """Contexts and 1-based lines of a file."""
    bits = "SELECT context_id, numbits FROM line_bits WHERE file_id = ?"
    for context, numbits in database.execute(bits, (file,)):
        if not isinstance(numbits, bytes):
            raise ValueError("the lines are no bits")
        for at, byte in enumerate(numbits):
            if byte:
                yield from ((context, at * 8 + bit) for bit in range(8) if byte >> bit & 1)
    arcs = "SELECT context_id, fromno, tono FROM arc WHERE file_id = ?"
    for context, *ends in database.execute(arcs, (file,)):
        yield from ((context, end) for end in ends if isinstance(end, int) and end > 0)


def _of_json(root: Path, name: str, path: str) -> _Lines | None:
    files = _object(_object(read_json(root / name, MAX_REPORT_BYTES)).get("files"))
    known = next((data for key, data in files.items() if _is(root, key, path)), None)
    if known is None:
        return None
    data = _object(known)
    tests: dict[str, set[int]] = {}
    for line, names in _object(data.get("contexts")).items():
        for test in cast("list[object]", names if isinstance(names, list) else []):
            tests.setdefault(_PHASE.sub("", str(test)), set()).add(int(line) - 1)
    named = {test: frozenset(lines) for test, lines in tests.items() if test}
    return _lines(data.get("executed_lines")), _lines(data.get("missing_lines")), named


def _of_lcov(root: Path, name: str, path: str) -> _Lines | None:
    counts: dict[int, int] = {}
    here = known = False
    for line in read_text(root / name, MAX_REPORT_BYTES, errors="replace").split("\n"):
        kind, _, rest = line.strip().partition(":")
        if kind == "SF":
            here = _is(root, rest, path)
            known |= here
        elif kind == "DA" and here:
            number, count = (int(part) for part in rest.split(",")[:2])
            counts[number - 1] = max(count, counts.get(number - 1, 0))
    if not known:
        return None
    ran = frozenset(line for line, count in counts.items() if count)
    return ran, frozenset(counts) - ran, {}


def _is(root: Path, name: str, path: str) -> bool:
    """Whether a report means this file."""
    return os.path.normpath(root / name.replace("\\", "/")) == os.path.normpath(root / path)


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _lines(value: object) -> frozenset[int]:
    numbers = cast("list[object]", value) if isinstance(value, list) else []
    return frozenset(number - 1 for number in numbers if isinstance(number, int))
