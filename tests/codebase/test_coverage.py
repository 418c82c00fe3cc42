"""Data of coverage tools: databases of coverage.py, its JSON report, and LCOV."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.codebase import coverage
from midstream.codebase.coverage import read_coverage
from tests.helpers.property import examples

SCHEMA = """
CREATE TABLE coverage_schema (version integer);
CREATE TABLE meta (key text, value text, unique (key));
CREATE TABLE file (id integer primary key, path text, unique (path));
CREATE TABLE context (id integer primary key, context text, unique (context));
CREATE TABLE line_bits (
    file_id integer, context_id integer, numbits blob, unique (file_id, context_id)
);
CREATE TABLE arc (file_id integer, context_id integer, fromno integer, tono integer);
CREATE TABLE tracer (file_id integer primary key, tracer text);
INSERT INTO coverage_schema VALUES (7);
"""
"""As coverage.py 7 makes it (https://coverage.readthedocs.io/en/latest/dbschema.html)."""


def numbits(lines: Iterable[int]) -> bytes:
    """A bit for each line: bit ``n % 8`` of byte ``n // 8``."""
    bits = sum(1 << line for line in set(lines))
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def database(
    path: Path, file: str, ran: Mapping[str, Iterable[int]], *, arcs: bool = False
) -> None:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as made:
        made.executescript(SCHEMA)
        made.execute("INSERT INTO file VALUES (1, ?)", (file,))
        for number, (context, lines) in enumerate(ran.items(), 1):
            made.execute("INSERT INTO context VALUES (?, ?)", (number, context))
            if arcs:
                pairs = [(number, -1, line) for line in lines]
                made.executemany("INSERT INTO arc VALUES (1, ?, ?, ?)", pairs)
            else:
                bits = numbits(lines)
                made.execute("INSERT INTO line_bits VALUES (1, ?, ?)", (number, bits))
        made.commit()


def newer(path: Path, than: Path) -> None:
    at = than.stat().st_mtime_ns + 1_000_000_000
    os.utime(path, ns=(at, at))


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "pkg" / "shop.py"
    path.parent.mkdir()
    path.write_text("def tax(x):\n    return x\n")
    os.utime(path, (1_000, 1_000))
    return path


@pytest.mark.parametrize("arcs", [False, True])
def test_a_database_names_lines_and_tests(tmp_path: Path, shop: Path, arcs: bool) -> None:
    ran = {"": [1], "tests/test_shop.py::test_tax|run": [2], "tests/test_shop.py::test_b|run": [9]}
    database(tmp_path / ".coverage", str(shop), ran, arcs=arcs)
    found = read_coverage(tmp_path, "pkg/shop.py")
    assert found is not None
    assert (found.source, found.older, found.missed) == (".coverage", False, None)
    assert found.ran == {0, 1, 8}
    assert found.tests_of([0, 1]) == ["tests/test_shop.py::test_tax"]
    assert read_coverage(tmp_path, "pkg/other.py") is None


@examples(20)
@given(lines=st.sets(st.integers(1, 400)))
def test_every_line_of_a_database_is_read(
    tmp_path_factory: pytest.TempPathFactory, lines: set[int]
) -> None:
    root = tmp_path_factory.mktemp("covered")
    (root / "a.py").write_text("")
    database(root / ".coverage", "a.py", {"": lines})  # relative_files = true
    found = read_coverage(root, "a.py")
    assert found is not None
    assert found.ran == {line - 1 for line in lines}


def test_a_json_report_tells_what_was_missed(tmp_path: Path, shop: Path) -> None:
    data = {
        "executed_lines": [1],
        "missing_lines": [2],
        "contexts": {"1": ["", "test_shop.test_tax"]},
    }
    report = {"meta": {"format": 3}, "files": {"pkg\\shop.py": data, "pkg/other.py": {}}}
    (tmp_path / "coverage.json").write_text(json.dumps(report))
    found = read_coverage(tmp_path, "pkg/shop.py")
    assert found is not None
    assert (found.source, found.ran, found.missed) == ("coverage.json", {0}, {1})
    assert found.tests_of([0]) == ["test_shop.test_tax"]


def test_lcov_counts_of_several_tests_are_added(tmp_path: Path, shop: Path) -> None:
    records = f"TN:\nSF:{shop}\nDA:1,1\nDA:2,0\nend_of_record\n"
    records += "SF:pkg/shop.py\nDA:2,3,xx\nDA:4,0\nend_of_record\nSF:b.js\nDA:7,1\nend_of_record\n"
    (tmp_path / "lcov.info").write_text(records)
    found = read_coverage(tmp_path, "pkg/shop.py")
    assert found is not None
    assert (found.ran, found.missed, found.tests) == ({0, 1}, {3}, {})


def test_data_from_before_the_last_change_are_older(tmp_path: Path, shop: Path) -> None:
    data = tmp_path / ".coverage"
    database(data, str(shop), {"": [1]})
    newer(shop, data)
    found = read_coverage(tmp_path, "pkg/shop.py")
    assert found is not None
    assert found.older


def test_the_newest_data_that_know_the_file_count(tmp_path: Path, shop: Path) -> None:
    data, report = tmp_path / ".coverage", tmp_path / "lcov.info"
    database(data, str(shop), {"": [1]})
    report.write_text("SF:pkg/shop.py\nDA:2,1\nend_of_record\n")
    newer(report, data)
    found = read_coverage(tmp_path, "pkg/shop.py")
    assert found is not None
    assert found.source == "lcov.info"
    report.write_text("SF:other.js\nDA:2,1\nend_of_record\n")
    newer(report, data)
    found = read_coverage(tmp_path, "pkg/shop.py")
    assert found is not None
    assert found.source == ".coverage"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".coverage", b"!coverage.py: This is a private format"),
        (".coverage", b""),
        ("coverage.json", b"[" * 100_000),
        ("coverage.json", b'{"files": {"pkg/shop.py": {"contexts": {"one": ["t"]}}}}'),
        ("coverage.json", b'{"files": 3}'),
        ("lcov.info", b"SF:pkg/shop.py\nDA:what\n"),
        ("lcov.info", b"\xff\xfe\x00"),
    ],
)
def test_what_cannot_be_read_counts_as_missing(
    tmp_path: Path, shop: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    assert read_coverage(tmp_path, "pkg/shop.py") is None


@pytest.mark.parametrize("arcs", [False, True])
def test_lines_without_a_known_context_are_of_no_test(
    tmp_path: Path, shop: Path, arcs: bool
) -> None:
    data = tmp_path / ".coverage"
    database(data, str(shop), {"test_shop.py::test_tax": [2]}, arcs=arcs)
    with closing(sqlite3.connect(data)) as made:
        made.execute("DELETE FROM context")
        made.commit()
    found = read_coverage(tmp_path, "pkg/shop.py")
    assert found is not None
    assert (found.ran, found.tests) == ({1}, {})


def test_a_database_with_too_much_to_say_is_not_read(
    tmp_path: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / ".coverage"
    database(data, str(shop), {"": [8 * coverage.MAX_VALUE_BYTES]})
    assert read_coverage(tmp_path, "pkg/shop.py") is None
    monkeypatch.setattr(coverage, "MAX_RUNS", 6)
    database(data, str(shop), {"one": [1, 2, 3], "two": [1, 2, 3]})
    assert read_coverage(tmp_path, "pkg/shop.py") is not None
    database(data, str(shop), {"one": [1, 2, 3], "two": [1, 2, 3, 4]})
    assert read_coverage(tmp_path, "pkg/shop.py") is None


def test_a_database_with_a_write_ahead_log_is_left_alone(tmp_path: Path, shop: Path) -> None:
    data = tmp_path / ".coverage"
    database(data, str(shop), {"": [1]})
    with closing(sqlite3.connect(data)) as made:
        made.execute("PRAGMA journal_mode = wal")
    before = sorted(tmp_path.iterdir())
    assert read_coverage(tmp_path, "pkg/shop.py") is None
    assert sorted(tmp_path.iterdir()) == before


def test_a_pipe_and_a_database_without_end_hold_nothing_up(
    tmp_path: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coverage, "MAX_STEPS", 300_000)
    os.mkfifo(tmp_path / "coverage.json")
    with closing(sqlite3.connect(tmp_path / ".coverage")) as made:
        made.executescript(
            "CREATE VIEW context AS SELECT 1, '';"
            "CREATE VIEW file AS WITH RECURSIVE n(id, path) AS"
            " (SELECT 1, 'x' UNION ALL SELECT id + 1, 'x' FROM n) SELECT * FROM n;"
        )
    assert read_coverage(tmp_path, "pkg/shop.py") is None
