"""Drafts: following a text, finding it again, expecting changes again, prompt lookup."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from midstream.engine.drafting import MAX_NEW_LENGTH, Drafter


def replay(drafter: Drafter, output: list[int], most: int = 16) -> tuple[int, int]:
    """Feed a known output through the drafter; return (runs, accepted tokens)."""
    at = runs = accepted = 0
    while at < len(output):
        draft = drafter.propose(min(most, len(output) - at - 1))
        taken = 0
        while taken < len(draft) and draft[taken] == output[at + taken]:
            taken += 1
        drafter.learn(output[at : at + taken + 1])
        at += taken + 1
        runs += 1
        accepted += taken
    return runs, accepted


def test_a_copy_takes_few_runs() -> None:
    source = list(range(100, 200))
    assert replay(Drafter(source, [1, 2, 3]), source, 9) == (10, 90)


def test_insertion_replacement_and_deletion_are_followed() -> None:
    source = list(range(100, 160))
    output = [*source[:10], 1, 2, 3, *source[10:20], 4, *source[21:30], *source[40:]]
    runs, accepted = replay(Drafter(source, []), output)
    # Each new token is a run, and so is each of the three places where the source goes on.
    assert runs <= 4 + 3 + 4
    assert runs + accepted == len(output)


def test_a_name_of_several_tokens_is_replaced_again() -> None:
    source = [10, 50, 51, 11, 12, 50, 51, 13, 50, 14, 15, 50, 51]
    drafter = Drafter(source, [])
    assert drafter.propose(2) == [10, 50]
    drafter.learn([10, 60])
    # One token for another is the commonest change.
    assert drafter.propose(1) == [51]
    drafter.learn([61, 62])
    drafter.learn([11])
    # One place may be chance; what follows it is the source.
    assert drafter.propose(1) == [12]
    drafter.learn([12])
    # 50 alone is another name.
    assert drafter.propose(99) == [60, 61, 62, 13, 50, 14, 15, 60, 61, 62]
    drafter.learn([60, 61])
    assert drafter.propose(3) == [62, 13, 50]


def test_a_replacement_that_is_not_made_is_not_expected_again() -> None:
    source = [10, 50, 11, 12, 50, 13, 14, 50, 15]
    drafter = Drafter(source, [])
    drafter.learn([10, 60, 11, 12])
    assert drafter.propose(2) == [60, 13]
    drafter.learn([50, 13])
    assert drafter.propose(3) == [14, 50, 15]


def test_a_chance_meeting_with_the_source_is_new_text() -> None:
    source = [10, 50, 11, 12, 13, 50, 14]
    drafter = Drafter(source, [])
    # 11 belongs to what replaces 50, and only the second 11 is the source's.
    drafter.learn([10, 60, 11, 61, 11, 12, 13])
    assert drafter.propose(9) == [60, 11, 61, 14]


def test_what_was_left_out_is_left_out_again() -> None:
    source = [10, 50, 11, 12, 50, 13, 14]
    drafter = Drafter(source, [])
    drafter.learn([10, 11, 12])
    assert drafter.propose(9) == [13, 14]


def test_a_long_insertion_is_come_back_from() -> None:
    source = list(range(100, 140))
    new = list(range(1, MAX_NEW_LENGTH + 30))
    drafter = Drafter(source, [])
    runs, accepted = replay(drafter, [*source[:20], *new, *source[20:]])
    assert runs < len(new) + 8
    assert accepted > 30


def test_the_longest_match_is_taken_and_the_latest_of_equal_ones() -> None:
    text = [1, 2, 3, 4, 50, 51, 3, 4, 60, 61]
    drafter = Drafter([], text)
    drafter.learn([90, 2, 3, 4])
    assert drafter.propose(2) == [50, 51]
    drafter = Drafter([], text)
    drafter.learn([90, 3, 4])
    assert drafter.propose(2) == [60, 61]


def test_the_output_itself_is_looked_up() -> None:
    drafter = Drafter([], [9])
    drafter.learn([5, 6, 7, 8, 5, 6])
    assert drafter.propose(9) == [7, 8, 5, 6]


def test_nothing_to_go_by() -> None:
    drafter = Drafter([], [1, 2, 3])
    assert drafter.propose(9) == []
    drafter.learn([7])
    assert drafter.propose(9) == []
    assert Drafter([], [1]).propose(9) == []
    assert Drafter([1, 2], [1, 2]).propose(0) == []


tokens = st.lists(st.integers(0, 9), max_size=60)


@given(tokens, tokens, tokens, st.integers(0, 9))
def test_any_output_comes_through(
    draft: list[int], prompt: list[int], output: list[int], most: int
) -> None:
    runs, accepted = replay(Drafter(draft, prompt), output, most)
    assert runs + accepted == len(output)


@given(tokens, tokens, tokens)
def test_a_stretch_of_the_prompt_is_drafted_whole(
    before: list[int], draft: list[int], after: list[int]
) -> None:
    if draft:
        drafter = Drafter(draft, [*before, *draft, *after])
        assert drafter.propose(99) == draft
