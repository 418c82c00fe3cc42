"""Taking back what was accepted before a later rewrite of the same place."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.documents import SourceText, join_lines
from midstream.edits.hunk_store import HunkStore, UndecidableError
from midstream.edits.hunks import Hunk, HunkState, Obstacle
from midstream.edits.proposal import FileProposal
from tests.helpers.property import examples
from tests.helpers.strategies import chunks, code, mutate

OLD = ["head", "one", "two", "three", "four", "tail line"]
FIRST = ["head", "one", "CHECK", "two", "three", "four", "tail line"]


def text(lines: Sequence[str]) -> SourceText:
    return SourceText.from_text(join_lines(lines))


def rewrite(proposal: FileProposal, lines: Sequence[str]) -> list[Hunk]:
    known = len(proposal.hunks)
    proposal.begin(0, len(proposal.base.lines))
    proposal.feed(join_lines(lines))
    proposal.finish()
    return list(proposal.hunks)[known:]


def accepted_first() -> tuple[FileProposal, Hunk]:
    proposal = FileProposal("a", text(OLD), HunkStore())
    (hunk,) = rewrite(proposal, FIRST)
    proposal.hunks.accept(hunk.id)
    return proposal, hunk


def shown(proposal: FileProposal) -> list[tuple[str, str]]:
    return [(row.kind.value, row.text) for s in proposal.segments for row in s.settled]


def test_undo_reaches_what_a_later_answer_left_as_it_was() -> None:
    proposal, first = accepted_first()
    store = proposal.hunks
    (other,) = rewrite(proposal, [*FIRST[:5], "FOUR", FIRST[-1]])
    assert store.undoable
    assert store.stuck is None
    assert store.undo() == (first,)
    assert list(proposal.composed().lines) == OLD
    assert other.state is HunkState.SETTLED, "the later answer waits as before"
    assert ("added", "CHECK") in shown(proposal)
    assert ("added", "FOUR") in shown(proposal)
    assert store.redo() == (first,)
    assert list(proposal.composed().lines) == FIRST
    store.accept(other.id)
    assert list(proposal.composed().lines) == [*FIRST[:5], "FOUR", FIRST[-1]]


def test_a_waiting_hunk_in_the_very_lines_gives_way_and_comes_back_with_redo() -> None:
    proposal, first = accepted_first()
    store = proposal.hunks
    (other,) = rewrite(proposal, ["head", "one", "CHECK AGAIN", *FIRST[3:]])
    before = shown(proposal)
    assert store.undo() == (first,)
    assert list(proposal.composed().lines) == OLD
    assert [h.id for h in store.for_path("a")] == [first.id]
    assert store.redo() == (first,)
    assert list(proposal.composed().lines) == FIRST
    assert [h.id for h in store.undecided("a")] == [other.id]
    assert shown(proposal) == before


def test_answers_upon_answers_are_taken_back_one_after_the_other() -> None:
    proposal, first = accepted_first()
    store = proposal.hunks
    (second,) = rewrite(proposal, ["head", "one", "CHECK AGAIN", *FIRST[3:]])
    store.accept(second.id)
    (third,) = rewrite(proposal, ["head", "one", "CHECK AGAIN", "two", "THREE", *FIRST[5:]])
    store.accept(third.id)
    assert [store.undo() for _ in range(4)] == [(third,), (second,), (first,), ()]
    assert list(proposal.composed().lines) == OLD


def test_lines_that_were_accepted_out_of_a_hunk_are_taken_back_as_well() -> None:
    proposal = FileProposal("a", text(OLD), HunkStore())
    (hunk,) = rewrite(proposal, ["head", "one", "CHECK", "CHECK 2", *OLD[2:]])
    part = proposal.hunks.decide_lines(hunk.id, 0, 1, HunkState.ACCEPTED)[0]
    rewrite(proposal, [*FIRST[:5], "FOUR", FIRST[-1]])
    assert proposal.hunks.undo() == (part,)
    assert list(proposal.composed().lines) == OLD


def test_a_deletion_is_taken_back() -> None:
    proposal = FileProposal("a", text(OLD), HunkStore())
    (hunk,) = rewrite(proposal, [line for line in OLD if line != "two"])
    proposal.hunks.accept(hunk.id)
    rewrite(proposal, ["head", "one", "three", "FOUR", "tail line"])
    assert proposal.hunks.undo() == (hunk,)
    assert list(proposal.composed().lines) == OLD


@pytest.mark.parametrize(
    "saved",
    [
        ["head", "one", "CHECK mine", *FIRST[3:]],
        ["head", "one", "CHECK", "CHECK", *FIRST[3:]],
        ["head", "one", *FIRST[3:]],
    ],
)
def test_what_was_changed_by_hand_is_stuck(saved: list[str]) -> None:
    proposal, first = accepted_first()
    rewrite(proposal, [*FIRST[:5], "FOUR", FIRST[-1]])
    proposal.advance(text(saved))
    if saved.count("CHECK") == 2:
        # One of the two is the person's own; which one does not matter.
        assert proposal.hunks.undo() == (first,)
        assert proposal.composed().lines.count("CHECK") == 1
        return
    assert proposal.hunks.stuck == (first, Obstacle.CHANGED)
    assert proposal.hunks.undo() == ()
    assert list(proposal.composed().lines) == saved


def test_while_the_model_writes_there_it_waits() -> None:
    proposal, first = accepted_first()
    proposal.begin(0, len(OLD))
    proposal.feed("head\none\n")
    assert proposal.hunks.stuck == (first, Obstacle.WRITING)
    proposal.feed(join_lines(FIRST[2:]))
    proposal.finish()
    assert proposal.hunks.stuck is None
    assert proposal.hunks.undo() == (first,)


def test_it_joins_the_segments_that_it_reaches_over() -> None:
    proposal = FileProposal("a", text(OLD), HunkStore())
    (hunk,) = rewrite(proposal, ["head", "ONE", "TWO", "THREE", "four", "tail line"])
    proposal.hunks.accept(hunk.id)
    proposal.begin(3, 6)
    proposal.feed("THREE\nFOUR\ntail line\n")
    proposal.finish()
    assert proposal.hunks.undo() == (hunk,)
    (segment,) = proposal.segments
    assert (segment.start, segment.stop) == (1, 6)
    assert ("added", "FOUR") in shown(proposal)
    assert list(proposal.composed().lines) == OLD


@examples(200, derandomize=True)
@given(st.integers(0, 2**32), st.booleans())
def test_all_accepts_of_all_answers_can_be_taken_back(seed: int, unique: bool) -> None:
    """Where its lines are ambiguous, an accept cannot be taken back; nothing wrong is restored."""
    rng = random.Random(seed)
    old = [f"statement {n}" for n in range(25)] if unique else code(rng, 25)
    proposal = FileProposal("a", text(old), HunkStore())
    store = proposal.hunks
    for turn in range(4):
        total = len(proposal.base.lines)
        start, stop = sorted((rng.randint(0, total), rng.randint(0, total)))
        start, stop = proposal.cover(start, stop)
        region = proposal.proposed_region(start, stop).splitlines()
        proposal.begin(start, stop)
        new = mutate(rng, region, 3)
        if unique:
            new = [
                line if line in region else f"{line} {turn} {n} {rng.random()}"
                for n, line in enumerate(new)
            ]
        for chunk in chunks(rng, join_lines(new)):
            proposal.feed(chunk)
        proposal.finish()
        decide_some(rng, store)
    while store.undoable:
        if store.stuck is not None:
            return
        assert store.undo()
        for hunk in store.for_path("a"):
            assert proposal.base.lines[hunk.start : hunk.stop] == hunk.base_lines
            assert any(hunk.id in s.hunk_ids for s in proposal.segments)
    assert list(proposal.composed().lines) == old


def decide_some(rng: random.Random, store: HunkStore) -> None:
    """Decide hunks that wait, some of them in parts."""
    while store.undecided() and rng.random() < 0.8:
        hunk = rng.choice(store.undecided())
        if rng.random() < 0.2 and hunk.base_lines == hunk.old and hunk.added + hunk.deleted:
            last = rng.randint(1, hunk.added + hunk.deleted)
            store.decide_lines(hunk.id, rng.randint(0, last - 1), last, HunkState.ACCEPTED)
            continue
        try:
            store.decide((hunk.id,), rng.choice((HunkState.ACCEPTED, HunkState.REJECTED)))
        except UndecidableError:
            return
