"""Parsing Python from several threads of one process."""

from __future__ import annotations

import ast
import gc
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from midstream.code.syntax import parse_python
from midstream.edits import apply

TEXT = Path(apply.__file__).read_text("utf-8")


@pytest.fixture
def interrupted() -> Iterator[None]:
    """Let other threads run in the middle of a parse, as a collection of garbage may do."""
    threshold = gc.get_threshold()

    def yield_to_others(phase: str, info: dict[str, int]) -> None:
        time.sleep(0.0002)

    gc.callbacks.append(yield_to_others)
    gc.set_threshold(150)
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(yield_to_others)


def nested(depth: int) -> ast.Module:
    """Parse below a stack of calls: each thread counts from its own depth."""
    return parse_python(TEXT) if depth == 0 else nested(depth - 1)


@pytest.mark.usefixtures("interrupted")
def test_threads_that_parse_at_once_do_not_disturb_each_other() -> None:
    with ThreadPoolExecutor(4) as pool:
        trees = list(pool.map(nested, [n % 4 * 15 for n in range(16)]))
    assert {len(tree.body) for tree in trees} == {len(ast.parse(TEXT).body)}


def test_a_library_that_parses_meanwhile_does_not_disturb_it() -> None:
    threshold, due = gc.get_threshold(), [3]

    def parse_something(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and due[0]:
            due[0] -= 1
            ast.literal_eval("('hunk.accept',)")

    gc.callbacks.append(parse_something)
    gc.set_threshold(150)
    try:
        tree = nested(5)
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(parse_something)
    assert due == [0]
    assert len(tree.body) == len(ast.parse(TEXT).body)


def test_what_is_wrong_is_raised_and_warnings_are_not_told() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse_python('x = "\\d"\n')
    with pytest.raises(SyntaxError):
        parse_python("def (:\n")
