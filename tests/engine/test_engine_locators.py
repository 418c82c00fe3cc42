"""What says where goes, what says what stays."""

from __future__ import annotations

import pytest

from midstream.engine.edit_request import without_locator

REGION = "    @cached\n    def add_tax(self, cents, rate):\n        return cents\n"


@pytest.mark.parametrize(
    ("instruction", "wanted"),
    [
        ("rename cents to amount in add_tax", "rename cents to amount"),
        ("rename cents to amount in the function `add_tax`", "rename cents to amount"),
        ("in add_tax, rename cents to amount", "rename cents to amount"),
        ("In Money.add_tax rename cents to amount.", "rename cents to amount."),
        ("in Money.add_tax: rename cents", "rename cents"),
        ("add_tax: rename cents", "rename cents"),
        ("`Money.add_tax`: rename cents to amount in add_tax", "rename cents to amount"),
        ("change add_tax: it rounds", "change add_tax: it rounds"),
        ('add a parameter `c` with default "E" to add_tax', 'add a parameter `c` with default "E"'),
        ("wrap the body of add_tax() in try", "wrap the body in try"),
        ("add a log line at the start of add_tax", "add a log line at the start"),
        ("rename add_tax to with_tax", "rename add_tax to with_tax"),
        ("rename cents to add_taxes", "rename cents to add_taxes"),
        ("to add_tax", "to add_tax"),
        ("make add_tax async", "make add_tax async"),
    ],
)
def test_without_locator(instruction: str, wanted: str) -> None:
    assert without_locator(instruction, REGION) == wanted


def test_a_region_without_a_definition_changes_nothing() -> None:
    assert without_locator("rename a in add_tax", "a = 1\n") == "rename a in add_tax"
