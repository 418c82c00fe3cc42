"""The aligner: valid alignments, nothing revised, close to the optimum."""

from __future__ import annotations

import random
from itertools import pairwise
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from midstream.edits.aligner import MAX_PENDING, Aligner, LineChange, Op
from midstream.edits.lcs import line_map, matching_pairs
from tests.helpers.strategies import LINES, code, mutate


def check_alignment(old: list[str], new: list[str], ops: list[Op]) -> None:
    """Every line decided once, in order, context lines equal."""
    kept_old = [op.old for op in ops if op.change is not LineChange.ADDED]
    kept_new = [op.new for op in ops if op.change is not LineChange.DELETED]
    assert kept_old == list(range(len(kept_old)))
    assert kept_new == list(range(len(new)))
    assert all(old[op.old] == new[op.new] for op in ops if op.change is LineChange.CONTEXT)


@given(LINES, LINES)
def test_finish_aligns_everything(old: list[str], new: list[str]) -> None:
    aligner = Aligner(old)
    ops = [op for line in new for op in aligner.push(line)] + aligner.finish()
    check_alignment(old, new, ops)
    assert aligner.cursor == len(old)
    assert not aligner.pending


@given(LINES, LINES)
def test_stop_deletes_nothing_unread_but_what_was_replaced(old: list[str], new: list[str]) -> None:
    aligner = Aligner(old)
    ops = [op for line in new for op in aligner.push(line)]
    before = len(ops)
    ops += aligner.stop()
    check_alignment(old, new, ops)
    assert not aligner.pending
    tail = ops[before:]
    tail = tail[
        max((n + 1 for n, op in enumerate(tail) if op.change is LineChange.CONTEXT), default=0) :
    ]
    gone = [old[op.old] for op in tail if op.change is LineChange.DELETED]
    written = [new[op.new] for op in tail if op.change is LineChange.ADDED]
    assert len(gone) <= len(written)
    for before_stop, after in zip(gone, written, strict=False):
        assert before_stop.strip()
        assert fuzz.ratio(before_stop.strip(), after.strip()) >= 70


@given(LINES)
def test_equal_text_is_context_at_once(old: list[str]) -> None:
    aligner = Aligner(old)
    for number, line in enumerate(old):
        assert aligner.push(line) == [Op(LineChange.CONTEXT, number, number)]
    assert aligner.finish() == []


@given(st.integers(0, 10_000))
def test_pending_is_bounded_and_cursor_only_moves_on(seed: int) -> None:
    rng = random.Random(seed)
    old = code(rng, 60)
    aligner = Aligner(old)
    cursor = 0
    for line in mutate(rng, old, 6) + [f"new {n}" for n in range(100)]:
        aligner.push(line)
        assert len(aligner.pending) <= MAX_PENDING
        assert aligner.cursor >= cursor
        cursor = aligner.cursor


def test_deletion_is_found_after_little_evidence() -> None:
    old = [f"statement number {n}" for n in range(40)]
    aligner = Aligner(old)
    decided = [aligner.push(line) for line in old[5:12]]
    first = next(number for number, ops in enumerate(decided) if ops)
    assert first <= 3
    assert [op.change for op in decided[first]][:5] == [LineChange.DELETED] * 5


def test_far_false_anchor_needs_more_evidence() -> None:
    old = [f"line {n} of the file" for n in range(60)]
    aligner = Aligner(old)
    assert aligner.push(old[50]) == []
    assert aligner.push(old[51]) == []
    assert aligner.cursor == 0


def test_a_pattern_of_replaced_lines_is_followed() -> None:
    """One changed line among two frequent ones, over and over: no line alone says much."""
    old = [text for n in range(80) for text in ("  {", f'    "size": {n},', "  },")]
    new = [line.replace('"size"', '"length"') for line in old]
    aligner = Aligner(old)
    ops = [op for line in new for op in aligner.push(line)] + aligner.finish()
    assert sum(op.change is not LineChange.CONTEXT for op in ops) <= 1.1 * 160


def test_size_is_near_the_optimum() -> None:
    rng = random.Random(7)
    total = best = 0
    for _ in range(150):
        old = code(rng, rng.randint(5, 150))
        new = mutate(rng, old, rng.randint(1, 6))
        aligner = Aligner(old)
        ops = [op for line in new for op in aligner.push(line)] + aligner.finish()
        total += sum(op.change is not LineChange.CONTEXT for op in ops)
        best += len(old) + len(new) - 2 * len(matching_pairs(old, new))
    assert total <= 1.05 * best


@pytest.mark.parametrize("size", [3, 400])
def test_stop_passes_over_a_replaced_line_only_with_a_meeting(size: int) -> None:
    old = [f"l{n}" for n in range(size)]
    aligner = Aligner(old)
    ops = [op for line in ["l0", "CHANGED", "l2"] for op in aligner.push(line)] + aligner.stop()
    assert [op.change for op in ops] == [
        LineChange.CONTEXT,
        LineChange.DELETED,
        LineChange.ADDED,
        LineChange.CONTEXT,
    ]
    aligner = Aligner(old)
    ops = [op for line in ["l0", "CHANGED"] for op in aligner.push(line)] + aligner.stop()
    assert [op.change for op in ops] == [LineChange.CONTEXT, LineChange.ADDED]


def test_stop_takes_the_line_away_whose_new_form_was_written() -> None:
    old = ["a = 1", "path += escape(path[idx : match.start()])", "path += f'{convertor}'"]
    aligner = Aligner(old)
    new = ["a = 1", "path += escape(path[position : match.start()])"]
    ops = [op for line in new for op in aligner.push(line)] + aligner.stop()
    assert [op.change for op in ops] == [LineChange.CONTEXT, LineChange.DELETED, LineChange.ADDED]
    assert aligner.cursor == 2


@given(LINES, LINES)
def test_line_map_is_a_common_subsequence(old: list[str], new: list[str]) -> None:
    moves = line_map(old, new)
    targets = [target for target in moves if target >= 0]
    assert targets == sorted(set(targets))
    assert all(new[target] == old[i] for i, target in enumerate(moves) if target >= 0)


@given(LINES, LINES)
def test_a_large_problem_has_a_common_subsequence_too(old: list[str], new: list[str]) -> None:
    with mock.patch("midstream.edits.lcs._EXACT_CELLS", 1):
        pairs = matching_pairs(old, new)
    assert all(old[i] == new[j] for i, j in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))


@pytest.mark.parametrize("kinds", [1, 2, 10, 100])
@pytest.mark.parametrize("copies", [1, 4])
def test_large_problems_of_lines_that_repeat_split_where_they_are_alike(
    monkeypatch: pytest.MonkeyPatch, kinds: int, copies: int
) -> None:
    rng = random.Random(kinds)
    old = [str(rng.randrange(kinds)) for _ in range(1000 // copies)] * copies
    new = [line for number, line in enumerate(old) if number % 200 != 99]
    new[500:500] = ["new"]
    monkeypatch.setattr("midstream.edits.lcs._EXACT_CELLS", 10_000)
    assert len(matching_pairs(old, new)) >= 0.8 * len(old)


def test_no_lines_split_a_problem_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line becomes unique only once the problem was split at the one before."""
    monkeypatch.setattr("midstream.edits.lcs._EXACT_CELLS", 50)

    def chain(mark: str) -> list[str]:
        links = ((f"l{n + 1}", f"{mark}{n}", f"l{n}") for n in range(1500))
        return [mark, *(line for link in links for line in link), "l1500", mark]

    assert matching_pairs(chain("old"), chain("new"))


def test_large_problems_split_at_unique_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("midstream.edits.lcs._EXACT_CELLS", 50)
    rng = random.Random(3)
    old = code(rng, 300)
    new = mutate(rng, old, 20)
    pairs = matching_pairs(old, new)
    assert pairs == sorted(pairs)
    assert all(old[i] == new[j] for i, j in pairs)
    monkeypatch.undo()
    assert len(pairs) >= 0.95 * len(matching_pairs(old, new))
