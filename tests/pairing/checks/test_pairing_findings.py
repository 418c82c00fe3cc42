"""Places that failed, read out of what real tools printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.pairing.checks.findings import MAX_FINDINGS, FailedPlace, FindingReader, plain

FILES = {
    "mod.py",
    "tests/test_m.py",
    "tests/test_bad.py",
    "src/lib.rs",
    "a.ts",
    "pkg/a.go",
    "a_test.go",
}


def inside(path: str) -> str | None:
    path = path.removeprefix("./").removeprefix("/p/")
    return path if path in FILES else None


def read(output: str) -> list[tuple[str, str, str]]:
    reader = FindingReader(inside)
    for line in output.splitlines(keepends=True):
        reader.read(line)
    reader.finish()
    return [(each.place, each.message, each.test) for each in reader.findings]


PYTEST = """\
FFE                                                                      [100%]
==================================== ERRORS ====================================
______________________ ERROR collecting tests/test_bad.py ______________________
ImportError while importing test module '/p/tests/test_bad.py'.
Hint: make sure your test modules/packages have valid Python names.
Traceback:
/usr/lib/python3.11/importlib/__init__.py:126: in import_module
    return _bootstrap._gcd_import(name[level:], package, level)
tests/test_bad.py:1: in <module>
    import nothing_here
E   ModuleNotFoundError: No module named 'nothing_here'
__________________________ ERROR at setup of test_fix __________________________
file /p/tests/test_m.py, line 20
  def test_fix(nofixture):
E       fixture 'nofixture' not found
>       available fixtures: cache, capfd

/p/tests/test_m.py:20
=================================== FAILURES ===================================
___________________________________ test_eq ____________________________________

    def test_eq():
        a = 3
>       assert a == 4
E       assert 3 == 4

tests/test_m.py:10: AssertionError
___________________________________ test_div ___________________________________

    def test_div():
>       assert div(1, 0) == 3
               ^^^^^^^^^

tests/test_m.py:6:\x20
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

a = 1, b = 0

    def div(a, b):
>       return a / b
E       ZeroDivisionError: division by zero

mod.py:3: ZeroDivisionError
=========================== short test summary info ============================
FAILED tests/test_m.py::test_eq - assert 3 == 4
FAILED tests/test_m.py::test_div - ZeroDivisionError: division by zero
FAILED tests/test_m.py::TestC::test_more[a b] - ValueError: boom
ERROR tests/test_bad.py
ERROR tests/test_m.py::test_fix
4 failed, 2 errors in 0.12s
"""


def test_pytest() -> None:
    assert read(PYTEST) == [
        ("tests/test_bad.py:1", "ModuleNotFoundError: No module named 'nothing_here'", ""),
        ("tests/test_m.py:20", "fixture 'nofixture' not found", "test_fix"),
        ("tests/test_m.py:10", "assert 3 == 4", "test_eq"),
        ("mod.py:3", "ZeroDivisionError: division by zero", "test_div"),
    ]


def test_pytest_without_tracebacks() -> None:
    summary = PYTEST[PYTEST.index("FAILED tests/test_m.py::test_eq") :]
    assert read(summary) == [
        ("tests/test_m.py", "assert 3 == 4", "test_eq"),
        ("tests/test_m.py", "ZeroDivisionError: division by zero", "test_div"),
        ("tests/test_bad.py", "failed", ""),
        ("tests/test_m.py", "failed", "test_fix"),
    ]


NATIVE = """\
___________________________________ test_div ___________________________________
Traceback (most recent call last):
  File "/usr/lib/python3/dist-packages/_pytest/runner.py", line 361, in from_call
    result: TResult | None = func()
  File "/p/tests/test_m.py", line 6, in test_div
    assert div(1, 0) == 3
  File "/p/mod.py", line 3, in div
    return a / b
ZeroDivisionError: division by zero
=========================== short test summary info ============================
"""

UNITTEST = """\
.E
======================================================================
ERROR: test_b (__main__.T.test_b)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/p/tests/test_m.py", line 7, in test_b
    div(1, 0)
  File "/p/mod.py", line 3, in div
    return a / b
           ~~^~~
ZeroDivisionError: division by zero

----------------------------------------------------------------------
Ran 2 tests in 0.001s
"""

RUFF = """\
F401 [*] `os` imported but unused
 --> mod.py:1:8
  |
1 | import os
  |        ^^
  |
help: Remove unused import: `os`

Found 1 error.
"""

CARGO = """\
---- tests::eq stdout ----

thread 'tests::eq' (858) panicked at src/lib.rs:9:9:
assertion `left == right` failed
  left: 2
 right: 3
stack backtrace:
   4: x::tests::eq
             at ./src/lib.rs:9:9
"""

RUSTC = """\
warning: unused variable: `a`
 --> src/lib.rs:2:9
error[E0308]: mismatched types
 --> src/lib.rs:1:36
  |
1 | pub fn div(a: i32, b: i32) -> u8 { a / b }
  |                               --   ^^^^^ expected `u8`, found `i32`
"""

TSC = "a.ts(1,14): error TS2322: Type 'string' is not assignable to type 'number'.\n"
TSC_PRETTY = (
    "\x1b[96ma.ts\x1b[0m:\x1b[93m1\x1b[0m:\x1b[93m14\x1b[0m - \x1b[91merror\x1b[0m\x1b[90m TS2322: "
    "\x1b[0mType 'string' is not assignable to type 'number'.\n"
)
PYRIGHT = """\
/p/mod.py
  /p/mod.py:7:12 - error: Type "int" is not assignable to return type "str"
    "int" is not assignable to "str" (reportReturnType)
  /p/mod.py:9:5 - warning: Unused
"""
MYPY = (
    'mod.py:7: error: Incompatible return value type (got "int")  [return-value]\n'
    "mod.py:7: note: See\n"
)
GO = """\
--- FAIL: TestTotal (0.00s)
    a_test.go:12: got 3, want 4
FAIL
"""
GO_BUILD = "# example.org/x\n./pkg/a.go:3:5: undefined: total\n"
CONCISE = "mod.py:1:8: F401 [*] `os` imported but unused\n"


@pytest.mark.parametrize(
    ("output", "found"),
    [
        (NATIVE, ("mod.py:3", "ZeroDivisionError: division by zero", "test_div")),
        (UNITTEST, ("mod.py:3", "ZeroDivisionError: division by zero", "")),
        (RUFF, ("mod.py:1", "F401 [*] `os` imported but unused", "")),
        (CONCISE, ("mod.py:1", "F401 [*] `os` imported but unused", "")),
        (CARGO, ("src/lib.rs:9", "assertion `left == right` failed", "tests::eq")),
        (RUSTC, ("src/lib.rs:1", "mismatched types", "")),
        (TSC, ("a.ts:1", "TS2322: Type 'string' is not assignable to type 'number'.", "")),
        (TSC_PRETTY, ("a.ts:1", "TS2322: Type 'string' is not assignable to type 'number'.", "")),
        (PYRIGHT, ("mod.py:7", 'Type "int" is not assignable to return type "str"', "")),
        (
            MYPY,
            ("mod.py:7", 'Incompatible return value type (got "int")  [return-value]', ""),
        ),
        (GO, ("a_test.go:12", "got 3, want 4", "TestTotal")),
        (GO_BUILD, ("pkg/a.go:3", "undefined: total", "")),
    ],
)
def test_other_tools(output: str, found: tuple[str, str, str]) -> None:
    assert read(output) == [found]


def test_only_files_of_the_folder_are_places() -> None:
    assert read("/etc/passwd:1:1: error: x\n../mod.py:1:1: E1 y\nnowhere.py:3: error: z\n") == []
    outside = (
        'Traceback (most recent call last):\n  File "/usr/lib/x.py", line 3, in f\nValueError: a\n'
    )
    assert read(outside) == []


def test_the_same_is_told_once_and_findings_end() -> None:
    assert len(read(CONCISE * 3)) == 1
    many = "".join(f"mod.py:{n}:1: E1 x\n" for n in range(1, MAX_FINDINGS + 50))
    assert len(read(many)) == MAX_FINDINGS


def test_escape_sequences_do_not_come_through() -> None:
    assert plain("\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 \x1b(B") == "red link "
    assert plain("x" * 100_000) == "x" * 2_000


PARTS = st.sampled_from(
    [*PYTEST.splitlines(), *CARGO.splitlines(), *RUFF.splitlines(), *UNITTEST.splitlines(), TSC, GO]
)


WORDS = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=60)


@given(st.lists(st.one_of(PARTS, WORDS), max_size=40))
def test_any_output_is_read(lines: list[str]) -> None:
    reader = FindingReader(inside)
    for line in lines:
        reader.read(line)
    reader.finish()
    assert reader.lines == len(lines)
    for each in reader.findings:
        assert isinstance(each, FailedPlace)
        assert each.path in FILES
        assert each.line is None or each.line >= 0
        assert "\n" not in each.message
        assert 0 < each.seen <= reader.lines
