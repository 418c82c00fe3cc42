"""A run leaves out files without a test of it, and no test."""

from __future__ import annotations

import pytest

from tests.helpers.selecting import may_select

FIRST = "not slow and not system and not clients and not agents and not browser"
SECOND = "(system or fuzz or hypothesis) and not slow"
SYSTEM = "pytestmark = pytest.mark.system\n\ndef test_a(): ...\n"
SOME = "@pytest.mark.system\ndef test_a(): ...\n\ndef test_b(): ...\n"
BARE = "def test_a(): ...\n"
PROPERTY = "from hypothesis import given\n\n@given(st.text())\ndef test_a(text): ...\n"


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        (SYSTEM, False, True),
        (SOME, True, True),
        (BARE, True, False),
        (PROPERTY, True, True),
        (SYSTEM.replace("pytest.mark.system", "[pytest.mark.slow]"), False, False),
        (SYSTEM.replace("pytest.mark.system", "[\n    pytest.mark.slow,\n]"), True, False),
        (SYSTEM.replace("pytest.mark.system", 'pytest.mark.usefixtures("a")'), True, False),
        (f"    {SYSTEM}", True, True),
    ],
)
def test_a_file_is_left_out_where_no_test_of_it_is_selected(
    text: str, first: bool, second: bool
) -> None:
    assert may_select(FIRST, text) is first
    assert may_select(SECOND, text) is second


@pytest.mark.parametrize(
    "expression", ["", "asyncio", "timeout(900)", "not (asyncio", "slow or asyncio"]
)
def test_what_cannot_be_told_is_collected(expression: str) -> None:
    assert may_select(expression, BARE)
