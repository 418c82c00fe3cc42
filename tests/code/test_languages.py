"""The language and the kind of a file, read from its name."""

from __future__ import annotations

import pytest

from midstream.code.languages import is_test


@pytest.mark.parametrize(
    "path",
    [
        "tests/helpers.py",
        "pkg/test_money.py",
        "conftest.py",
        "pkg/money_test.go",
        "src/money.spec.ts",
        "src/__tests__/money.js",
        "src/MoneyTest.java",
    ],
)
def test_a_file_that_holds_tests(path: str) -> None:
    assert is_test(path)


@pytest.mark.parametrize("path", ["src/money.py", "attest/latest.py", "pkg/my.test.d/a.py"])
def test_a_file_that_holds_none(path: str) -> None:
    assert not is_test(path)
