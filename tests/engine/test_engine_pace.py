"""How much is drafted: by what rows cost and how often drafts are right."""

from __future__ import annotations

import pytest

from midstream.engine.drafting import DraftLength, RowCost


def lengths(share: float, outcomes: list[tuple[int, int]], most: int = 32) -> list[int]:
    pace = DraftLength(RowCost(share), most)
    found = [pace.length()]
    for proposed, accepted in outcomes:
        pace.learn(proposed, accepted)
        found.append(pace.length())
    return found


def test_length_grows_while_drafts_are_right_and_falls_when_they_are_not() -> None:
    grown = lengths(0.1, [(4, 4), (9, 9), (20, 20)])
    assert grown == sorted(grown)
    assert grown[-1] > 2 * grown[0]
    # With the token that is run anyway, rows come by twos.
    assert all(length % 2 for length in grown)
    fallen = lengths(0.1, [(4, 0)] * 5)
    assert fallen == sorted(fallen, reverse=True)
    # The second row of a run is there anyway.
    assert fallen[-1] == 1


def test_dear_rows_make_drafts_short() -> None:
    chances = [(8, 6), (8, 7)]
    by_cost = [lengths(share, chances)[-1] for share in (0.01, 0.05, 0.2, 0.9)]
    assert by_cost == sorted(by_cost, reverse=True)
    assert by_cost[0] > 3 * by_cost[-1]


def test_most_is_never_passed_and_nothing_is_learned_from_nothing() -> None:
    assert max(lengths(0.01, [(7, 7)] * 9, most=7)) == 7
    assert lengths(0.1, [(0, 0)]) == lengths(0.1, [])[:1] * 2


@pytest.mark.parametrize("share", [0.02, 0.2, 0.6])
def test_the_share_of_a_row_is_learned(share: float) -> None:
    cost = RowCost()
    for turn in range(60):
        rows = (2, 5, 9, 17)[turn % 4]
        cost.note(rows, 0.004 * (1 + share * (rows - 2)))
    assert cost.share == pytest.approx(share, rel=0.05)


def test_late_runs_change_little() -> None:
    cost = RowCost()
    for turn in range(120):
        # Other work makes every third run late, wide ones more.
        late = (0.0, 0.0, 0.003 * (turn % 5))[turn % 3]
        cost.note((2, 9)[turn % 2], (0.001, 0.0017 + late)[turn % 2] + late)
    assert 0.08 < cost.share < 0.13


def test_wide_runs_alone_say_nothing() -> None:
    cost = RowCost(0.3)
    cost.note(9, 1.0)
    assert cost.share == 0.3
