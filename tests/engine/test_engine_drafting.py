"""Drafts: following a source, finding it again, falling back on the prompt, lengths."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from midstream.engine.drafting import CopyPointer, Drafter


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
    # 4, 8, then 16 drafted tokens and the model's own one each: 5 + 9 + 6 * 17 > 100.
    assert runs == 8


def test_the_length_doubles_and_falls_back() -> None:
    drafter = Drafter(list(range(60)), [99], first=2, most=8)
    assert drafter.propose(50) == [0, 1]
    drafter.learn(2, 2, [0, 1, 2])
    assert len(drafter.propose(50)) == 4
    drafter.learn(4, 4, [3, 4, 5, 6, 7])
    assert len(drafter.propose(50)) == 8
    drafter.learn(8, 3, [8, 9, 10, 77])
    # The model left the source; its next token brings it back.
    drafter.learn(0, 0, [12])
    assert drafter.propose(50) == [13, 14]


def test_insertion_replacement_and_deletion_are_followed() -> None:
    source = list(range(100, 160))
    output = [*source[:10], 1, 2, 3, *source[10:20], 4, *source[21:30], *source[40:]]
    runs, accepted = replay(Drafter(source, []), output)
    assert accepted > 0.7 * len(output)
    assert runs < 0.4 * len(output)


def test_the_nearest_of_equal_matches_is_taken() -> None:
    pointer = CopyPointer([5, 6, 7, 5, 6, 8, 5, 6, 9], 0)
    output: list[int] = []
    for token in (5, 6, 7, 1, 5, 6):
        output.append(token)
        pointer.follow(output)
    assert pointer.at == 5
    for token in (2, 6):
        output.append(token)
        pointer.follow(output)
    assert pointer.at == 5


def test_a_longer_match_beats_a_nearer_one() -> None:
    pointer = CopyPointer([1, 2, 3, 4, 50, 51, 52, 4, 60], 6)
    output = [9]
    for token in (1, 2, 3, 4):
        output.append(token)
        pointer.follow(output)
    assert pointer.at == 4


def test_the_prompt_helps_inside_a_changed_line() -> None:
    # Anchors 1..4 make the source; the prompt holds each anchor with its line's tokens.
    prompt = [90, 1, 20, 21, 22, 23, 24, 2, 30, 31, 3, 40, 4, 91]
    drafter = Drafter([1, 2, 3, 4], prompt)
    drafter.learn(0, 0, [1, 20])
    # Behind "1 20" the prompt goes on with the line, then the source with its next anchors.
    assert drafter.propose(16) == [21, 22, 23, 24]
    drafter.learn(4, 4, [21, 22, 23, 24, 2])
    assert drafter.propose(16) == [3, 4]


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
def test_any_output_comes_through(source: list[int], prompt: list[int], output: list[int]) -> None:
    runs, accepted = replay(Drafter(source, prompt), output)
    assert runs + accepted == len(output)
