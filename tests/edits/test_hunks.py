"""Decisions: undo and redo, splitting, editing, deciding a part, holding back."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.documents import SourceText, join_lines
from midstream.edits.hunk_store import HunkCounts, HunkStore, UndecidableError
from midstream.edits.hunks import HoldReason, Hunk, HunkState
from midstream.edits.proposal import FileProposal
from midstream.edits.rows import RowKind
from tests.helpers.property import examples
from tests.helpers.strategies import code, mutate

OLD = ["head", "old 1", "old 2", "old 3", "tail line"]
NEW = ["head", "new 1", "new 2", "tail line"]


def example(new: Sequence[str] = ("new 1", "new 2")) -> tuple[FileProposal, Hunk]:
    proposal = FileProposal("a", SourceText.from_text(join_lines(OLD)), HunkStore())
    proposal.begin(0, len(OLD))
    proposal.feed(join_lines(["head", *new, "tail line"]))
    proposal.finish()
    (hunk,) = proposal.hunks
    return proposal, hunk


def shown(proposal: FileProposal) -> list[tuple[RowKind, str, int | None]]:
    return [(row.kind, row.text, row.hunk) for row in proposal.segments[0].settled]


def assert_found_anew(store: HunkStore) -> None:
    """The indexes of the store agree with the present state of its hunks, all of one file."""
    live = sorted((hunk for hunk in store if hunk.live), key=lambda hunk: hunk.order)
    assert store.for_path("a") == live
    assert store.waiting() == store.waiting("a") == [hunk for hunk in live if hunk.waits]
    assert store.counts() == store.counts("a") == HunkCounts.of(store)
    waiting = len(store.waiting())
    assert store.waiting_by_path() == ({"a": waiting} if waiting else {})


def test_ids_only_grow_and_version_counts_changes() -> None:
    proposal, hunk = example()
    store = proposal.hunks
    version = store.version
    store.accept(hunk.id)
    assert store.version > version
    version = store.version
    store.accept(hunk.id)
    assert store.version == version
    first, second = store.split(hunk.id, [(1, 1)]) if store.undo() else (hunk, hunk)
    assert hunk.id < first.id < second.id
    assert len(store) == 3
    assert [h.id for h in store] == [hunk.id, first.id, second.id]


def test_undo_and_redo() -> None:
    proposal, hunk = example()
    store = proposal.hunks
    assert not store.undoable
    assert store.undo() == ()
    store.reject(hunk.id, "not so")
    store.accept(hunk.id)
    assert store.undo() == (hunk,)
    assert (hunk.state, hunk.note) == (HunkState.REJECTED, "not so")
    assert store.undoable
    assert store.undo() == (hunk,)
    assert not store.undoable
    assert (hunk.state, hunk.note) == (HunkState.SETTLED, "")
    assert store.redo() == (hunk,)
    assert hunk.state is HunkState.REJECTED
    store.decide((hunk.id,), HunkState.SETTLED)
    assert store.redo() == ()
    assert store.undecided("a") == [hunk]
    assert store.undecided("b") == []


def test_deciding_several_is_one_step_and_all_or_nothing() -> None:
    old = [f"statement {n}" for n in range(20)]
    new = ["first", *old[1:10], "second", *old[11:]]
    proposal = FileProposal("a", SourceText.from_text(join_lines(old)), HunkStore())
    proposal.begin(0, 20)
    proposal.feed(join_lines(new))
    proposal.finish()
    store = proposal.hunks
    first, second = store
    store.hold_back(second.id, HoldReason("secret-password", "a secret"))
    with pytest.raises(UndecidableError, match="held back"):
        store.decide([first.id, second.id], HunkState.ACCEPTED)
    assert first.state is HunkState.SETTLED
    store.release(second.id, "it is a test value")
    store.decide([first.id, second.id], HunkState.ACCEPTED)
    assert set(store.undo()) == {first, second}
    with pytest.raises(UndecidableError, match="not held back"):
        store.release(second.id)


def test_the_users_release_is_a_step_and_the_guards_is_not() -> None:
    store = HunkStore()
    proposal = FileProposal("a", SourceText.from_text("one\ntwo\n"), store)
    proposal.begin(0, 2)
    proposal.feed("one\nTWO\n")
    proposal.finish()
    (hunk,) = store
    why = HoldReason("S608", "a query built from parts")
    store.hold_back(hunk.id, why)
    store.release(hunk.id, "checked", undoable=True)
    store.accept(hunk.id)
    assert store.undo() == (hunk,)
    assert (hunk.state, hunk.hold) == (HunkState.SETTLED, None)
    assert store.undo() == (hunk,)
    assert (hunk.state, hunk.note, hunk.hold) == (HunkState.HELD, str(why), why)
    assert store.redo() == (hunk,)
    assert (hunk.state, hunk.note, hunk.hold) == (HunkState.SETTLED, "checked", None)
    store.undo()
    store.release(hunk.id, "the guard is off for this file")
    assert store.undo() == ()
    assert hunk.state is HunkState.SETTLED


def test_split_undo_redo_keep_rows_and_text() -> None:
    proposal, hunk = example()
    store = proposal.hunks
    before = shown(proposal)
    first, second = store.split(hunk.id, [(1, 1)])
    assert hunk.state is HunkState.SUPERSEDED
    assert (first.old, first.new) == (("old 1",), ("new 1",))
    assert (second.old, second.new) == (("old 2", "old 3"), ("new 2",))
    assert {i for _, _, i in shown(proposal)} == {None, first.id, second.id}
    store.accept(second.id)
    assert proposal.composed().lines == ("head", "old 1", "new 2", "tail line")
    store.undo()
    store.undo()
    assert hunk.state is HunkState.SETTLED
    assert shown(proposal) == before
    store.redo()
    store.redo()
    assert proposal.composed().lines == ("head", "old 1", "new 2", "tail line")


def test_split_survives_a_move_of_the_base() -> None:
    proposal, hunk = example()
    store = proposal.hunks
    first, second = store.split(hunk.id, [(1, 1)])
    proposal.advance(SourceText.from_text(join_lines(["# user", *OLD])))
    assert (first.start, second.start) == (2, 3)
    store.undo()
    assert (hunk.start, hunk.stop) == (2, 5)
    store.accept(hunk.id)
    assert proposal.composed().lines == ("# user", *NEW)


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (0, 1, ["head", "old 2", "old 3", "tail line"]),
        (1, 2, ["head", "old 1", "old 3", "tail line"]),
        (3, 4, ["head", "old 1", "old 2", "old 3", "new 1", "tail line"]),
        (4, 5, ["head", "old 1", "old 2", "old 3", "new 2", "tail line"]),
        (2, 4, ["head", "old 1", "old 2", "new 1", "tail line"]),
        (0, 5, NEW),
    ],
)
def test_deciding_a_line_range(start: int, stop: int, expected: list[str]) -> None:
    proposal, hunk = example()
    proposal.hunks.decide_lines(hunk.id, start, stop, HunkState.ACCEPTED)
    assert list(proposal.composed().lines) == expected
    proposal.hunks.undo()
    assert proposal.composed() == proposal.base
    proposal.hunks.decide_lines(hunk.id, start, stop, HunkState.REJECTED)
    for rest in proposal.hunks.undecided():
        proposal.hunks.accept(rest.id)
    proposal.hunks.redo()
    rejected = [h for h in proposal.hunks if h.state is HunkState.REJECTED]
    assert sum(h.added + h.deleted for h in rejected) == stop - start


@pytest.mark.parametrize("new_first", [False, True])
def test_a_new_line_stays_beside_the_old_one_of_its_place(new_first: bool) -> None:
    """Of two lines that are exchanged, the first is taken: it comes before the old second one."""
    proposal, _ = example(["new 1", "new 2", "new 3"])
    store = proposal.hunks
    wanted = ["new 1", "old 1"] if new_first else ["old 1", "new 1"]
    while wanted:
        line = wanted.pop()
        (part,) = [h for h in store.undecided() if line in (*h.old, *h.new)]
        at = [*part.old, *part.new].index(line)
        store.decide_lines(part.id, at, at + 1, HunkState.ACCEPTED)
    assert list(proposal.composed().lines) == ["head", "new 1", "old 2", "old 3", "tail line"]


def test_line_range_must_be_in_the_hunk() -> None:
    proposal, hunk = example()
    for start, stop in ((0, 0), (-1, 1), (0, 6)):
        with pytest.raises(ValueError, match="not lines of hunk"):
            proposal.hunks.decide_lines(hunk.id, start, stop, HunkState.ACCEPTED)
    with pytest.raises(ValueError, match="cuts"):
        proposal.hunks.split(hunk.id, [(2, 2), (1, 1)])


def test_edit_in_place() -> None:
    proposal, hunk = example()
    store = proposal.hunks
    store.edit(hunk.id, ["mine"])
    assert [row[1] for row in shown(proposal) if row[0] is RowKind.ADDED] == ["mine"]
    store.accept(hunk.id)
    assert proposal.composed().lines == ("head", "mine", "tail line")
    with pytest.raises(UndecidableError, match="decided already"):
        store.edit(hunk.id, ["other"])
    store.undo()
    store.undo()
    assert hunk.new == ("new 1", "new 2")
    with pytest.raises(ValueError, match="terminator"):
        store.edit(hunk.id, ["a\nb"])


def test_streaming_hunk_can_be_held_back() -> None:
    proposal = FileProposal("a", SourceText.from_text("a\n"), HunkStore())
    proposal.begin(1, 1)
    proposal.feed("password\n")
    (hunk,) = proposal.hunks
    why = HoldReason("secret-password", "looks like a secret")
    proposal.hunks.hold_back(hunk.id, why)
    proposal.feed("more\n")
    proposal.finish()
    assert (hunk.state, hunk.hold) == (HunkState.HELD, why)
    assert hunk.note == "looks like a secret (secret-password)"
    assert proposal.proposed_region(0, 1) == "a\n"
    with pytest.raises(UndecidableError, match="release it first"):
        proposal.hunks.accept(hunk.id)


@examples(150)
@given(st.integers(0, 2**32))
def test_undo_is_the_inverse_of_any_steps(seed: int) -> None:
    rng = random.Random(seed)
    old = code(rng, 40)
    proposal = FileProposal("a", SourceText.from_text(join_lines(old)), HunkStore())
    proposal.begin(0, 40)
    proposal.feed(join_lines(mutate(rng, old, 5)))
    proposal.finish()
    store = proposal.hunks
    composed = [(proposal.composed(), shown(proposal))]
    for _ in range(12):
        undecided = store.undecided()
        if not undecided:
            break
        hunk = rng.choice(undecided)
        match rng.randint(0, 4):
            case 0:
                store.reject(hunk.id, "why")
            case 1 if hunk.added + hunk.deleted:
                stop = rng.randint(1, hunk.added + hunk.deleted)
                store.decide_lines(hunk.id, rng.randint(0, stop - 1), stop, HunkState.ACCEPTED)
            case 2:
                store.edit(hunk.id, ["edited", *hunk.new])
            case 3 if hunk.added and hunk.deleted:
                store.split(hunk.id, [(rng.randint(0, hunk.deleted), rng.randint(0, hunk.added))])
            case _:
                store.accept(hunk.id)
        composed.append((proposal.composed(), shown(proposal)))
        assert_found_anew(store)
    states = list(composed)
    while states:
        text, rows = states.pop()
        assert proposal.composed() == text
        assert sorted(map(str, rows)) == sorted(map(str, shown(proposal)))
        assert bool(store.undo()) == bool(states)
        assert_found_anew(store)
    for text, _ in composed[1:]:
        assert store.redo()
        assert_found_anew(store)
        assert proposal.composed() == text
