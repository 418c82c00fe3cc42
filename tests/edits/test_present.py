"""Requests for what is there already."""

from __future__ import annotations

import pytest

from midstream.edits.present import already_there

CODE = '''\
    @functools.cache
    def total(rows, *, unit=None):
        """Sum."""
        return sum(rows)
'''


@pytest.mark.parametrize(
    ("asked", "had"),
    [
        ("add a docstring to total", "`total` has a docstring"),
        ("Add a docstring.", "`total` has a docstring"),
        ("please write a docstring for the function `total`", "`total` has a docstring"),
        ("total: add a docstring", "`total` has a docstring"),
        ("give Bill.total a docstring", "`total` has a docstring"),
        ("give it a docstring", "`total` has a docstring"),
        ("add a parameter unit to total", "`total` has a parameter `unit`"),
        ("add a parameter `rows` with default None to total", "`total` has a parameter `rows`"),
        ("add the cache decorator to total", "`total` has the decorator `cache`"),
        ("add @functools.cache", "`total` has the decorator `functools.cache`"),
    ],
)
def test_what_is_there_is_said(asked: str, had: str) -> None:
    assert already_there(asked, CODE) == had


@pytest.mark.parametrize(
    "asked",
    [
        "add a docstring to other",
        "add a docstring to total that says what unit is",
        "add a docstring in Google style",
        "add a docstring to total and rename rows to lines",
        "add a better docstring to total",
        "add docstrings",
        "remove the docstring",
        "add a parameter limit to total",
        "add @staticmethod",
        "document total",
        "",
    ],
)
def test_any_other_wish_is_left_to_the_model(asked: str) -> None:
    assert already_there(asked, CODE) == ""


def test_only_of_one_definition() -> None:
    assert already_there("add a docstring", CODE * 2) == ""
    assert already_there("add a docstring", "def broken(:\n") == ""
    assert already_there("add a docstring", "total = 1\n") == ""
    bare = CODE.replace('        """Sum."""\n', "")
    assert already_there("add a docstring to total", bare) == ""
