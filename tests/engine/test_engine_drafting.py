"""Drafts: following a text, finding it again, repeating replacements, lengths."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from midstream.engine.drafting import Drafter


def replay(drafter: Drafter, output: list[int]) -> tuple[int, int]:
    """Feed a known output through the drafter; return (runs, accepted tokens)."""
    at = runs = accepted = 0
    while at < len(output):
        draft = drafter.propose(len(output) - at - 1)
        taken = 0
        while taken < len(draft) and draft[taken] == output[at + taken]:
            taken += 1
        drafter.learn(len(draft), taken, output[at : at + taken + 1])
        at += taken + 1
        runs += 1
        accepted += taken
    return runs, accepted


def test_a_copy_takes_few_runs() -> None:
    source = list(range(100, 200))
    runs, accepted = replay(Drafter(source, [1, 2, 3]), source)
    assert accepted == 100 - runs
    # 3, 7, 15, then 16 drafted tokens and the model's own one each: 4 + 8 + 16 + 5 * 17 > 100.
    assert runs == 8


def test_the_length_grows_and_falls() -> None:
    drafter = Drafter(list(range(60)), [99], first=2, most=8)
    assert drafter.propose(50) == [0, 1]
    drafter.learn(2, 2, [0, 1, 2])
    assert drafter.propose(50) == [3, 4, 5, 6, 7]
    drafter.learn(5, 5, [3, 4, 5, 6, 7, 8])
    assert len(drafter.propose(50)) == 8
    drafter.learn(8, 4, [9, 10, 11, 12, 77])
    assert len(drafter.propose(50)) == 4
    drafter.learn(4, 0, [78])
    drafter.learn(0, 0, [15])
    assert drafter.propose(50) == [16]


def test_insertion_replacement_and_deletion_are_followed() -> None:
    source = list(range(100, 160))
    output = [*source[:10], 1, 2, 3, *source[10:20], 4, *source[21:30], *source[40:]]
    runs, accepted = replay(Drafter(source, []), output)
    assert accepted > 0.6 * len(output)
    assert runs < 0.4 * len(output)


def test_a_replacement_is_repeated() -> None:
    source = [10, 50, 11, 12, 50, 13, 50, 14, 15]
    drafter = Drafter(source, [], first=8)
    drafter.learn(8, 1, [10, 60])
    # One replacement may be chance; the text goes on behind it.
    assert drafter.propose(1) == [11]
    drafter.learn(1, 1, [11, 12])
    assert drafter.propose(9) == [60, 13, 60, 14, 15]


def test_a_longer_match_beats_a_nearer_one() -> None:
    text = [1, 2, 3, 4, 50, 51, 52, 4, 60, 61]
    drafter = Drafter(text, [], first=1)
    replay(drafter, [1, 2, 3, 4, 50, 51, 52, 4, 60])
    replay(drafter, [90, 91, 2, 3, 4])
    assert drafter.propose(1) == [50]


def test_the_nearest_of_equal_matches_is_taken() -> None:
    drafter = Drafter([5, 6, 7, 5, 6, 8, 5, 6, 9], [], first=1)
    replay(drafter, [5, 6, 7, 1, 2, 5, 6])
    assert drafter.propose(1) == [8]


PROMPT = [90, 1, 20, 21, 22, 2, 30, 31, 20, 3, 40, 4, 20, 41, 5, 91]
"""Anchors 1 to 5 with the tokens of their lines between them."""


def test_unchanged_lines_are_their_anchors() -> None:
    drafter = Drafter([1, 2, 3, 4, 5], PROMPT, first=9)
    assert drafter.propose(9) == [1, 2, 3, 4, 5]


def test_inside_a_changed_line_the_line_is_drafted() -> None:
    drafter = Drafter([1, 2, 3, 4, 5], PROMPT, first=9)
    drafter.learn(9, 1, [1, 20])
    # Behind the end of the line the output is expected to skip lines again.
    assert drafter.propose(9) == [21, 22, 2, 3, 4, 5]


def test_lines_with_a_replaced_token_are_drafted_in_full() -> None:
    drafter = Drafter([1, 2, 3, 4, 5], PROMPT, first=12)
    # 20 became 70 in the first line, and what follows it stayed.
    drafter.learn(12, 1, [1, 70, 21])
    assert drafter.propose(12) == [22, 2, 30, 31, 70, 3, 4, 70, 41, 5]


def test_what_is_put_in_behind_a_line_is_expected_behind_the_next() -> None:
    drafter = Drafter([1, 2, 3, 4, 5], PROMPT, first=12)
    drafter.learn(12, 1, [1, 70])
    drafter.learn(0, 0, [2])
    assert drafter.propose(12) == [70, 3, 70, 4, 70, 5]
    drafter.learn(12, 1, [70, 3])
    drafter.learn(0, 0, [4])
    # The third line stayed as it was: no habit any more.
    assert drafter.propose(12) == [5]


def test_room_is_respected() -> None:
    drafter = Drafter([1, 2, 3, 4, 5, 6], [9])
    assert drafter.propose(2) == [1, 2]
    assert drafter.propose(0) == []


def test_nothing_to_go_by() -> None:
    drafter = Drafter([], [1, 2, 3])
    assert drafter.propose(9) == []
    drafter.learn(0, 0, [7])
    assert drafter.propose(9) == []


@given(
    st.lists(st.integers(0, 9), max_size=40),
    st.lists(st.integers(0, 9), max_size=40),
    st.lists(st.integers(0, 9), min_size=1, max_size=60),
)
def test_any_output_comes_through(draft: list[int], prompt: list[int], output: list[int]) -> None:
    runs, accepted = replay(Drafter(draft, prompt), output)
    assert runs + accepted == len(output)


@given(st.data())
def test_any_selection_of_the_prompt_can_be_a_draft(data: st.DataObject) -> None:
    prompt = data.draw(st.lists(st.integers(0, 99), min_size=1, max_size=40, unique=True))
    chosen = data.draw(st.lists(st.sampled_from(range(len(prompt))), min_size=1, unique=True))
    draft = [prompt[place] for place in sorted(chosen)]
    runs, accepted = replay(Drafter(draft, prompt, first=99, most=99), draft)
    assert (runs, accepted) == (1, len(draft) - 1)
