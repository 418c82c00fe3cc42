"""The goal-style requests can be judged: their checks tell right answers from the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.training.items import items_of, passing, same_programs

GOALS = Path("models/training/human/goals.toml")


@pytest.mark.system
def test_checks_tell_right_answers_from_the_start() -> None:
    goals = items_of(GOALS, 1, 1000, lambda region, _: region)
    assert len(goals) == 400
    assert len({(goal.before, goal.instruction) for goal in goals}) == 400
    starts = [(goal.setup, goal.before, goal.check) for goal in goals[::2]]
    assert passing(starts) == [goal.left for goal in goals[::2]]
    rights = [(goal.setup, text, goal.check) for goal in goals[::2] for text in goal.right]
    assert all(passing(rights))


def test_an_answer_in_another_form_is_right() -> None:
    goal = next(goal for goal in items_of(GOALS, 1, 1000, lambda r, _: r) if not goal.left)
    # Same behaviour, neither the text nor the syntax tree of what is expected.
    other = goal.right[0].rstrip() + "\n\n\nUNUSED = None\n"
    assert same_programs([(goal, other), (goal, goal.before), (goal, "def (")]) == [
        True,
        False,
        False,
    ]


@pytest.mark.system
def test_an_answer_that_hangs_or_ends_the_process_is_wrong() -> None:
    good = ("", "x = 1\n", "assert x == 1\n")
    bad = [
        ("", "while True: pass\n", ""),
        ("", "import os\nos._exit(3)\n", ""),
        ("", "raise SystemExit\n", ""),
        ("", "print('1')\n", "assert False\n"),
    ]
    assert passing([good, *bad, good]) == [True, False, False, False, False, True]
