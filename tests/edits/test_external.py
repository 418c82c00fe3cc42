"""Hunks of what other programs wrote: kept, put back, and derived again when they write more."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.documents import LineEdit, SourceText, join_lines
from midstream.edits.external import waiting_hunks
from midstream.edits.hunk_store import HunkStore, UndecidableError
from midstream.edits.hunks import Hunk, HunkState
from midstream.edits.proposal import FileProposal
from midstream.edits.rows import RowKind
from tests.helpers.property import examples
from tests.helpers.strategies import code, mutate

OLD = ["def area(w, h):", "    return w * h", "", "def name():", "    return 'x'", "", "END = 1"]
NEW = ["def area(w, h, s=1):", "    return w * h * s", *OLD[2:6], "END = 2", "MORE = 3"]


def text(lines: Sequence[str]) -> SourceText:
    return SourceText.from_text(join_lines(lines))


def opened(lines: Sequence[str] = OLD) -> FileProposal:
    return FileProposal("a.py", text(lines), HunkStore())


def reviewed(proposal: FileProposal) -> list[str]:
    """The file without its undecided lines, worked out independently."""
    proposal.advance(proposal.composed())
    waits = waiting_hunks(proposal.hunks.for_path("a.py"))
    edits = [LineEdit(hunk.start, hunk.stop, hunk.old) for hunk in waits]
    return list(proposal.base.replace(edits).lines)


def on_disk(proposal: FileProposal) -> list[str]:
    return list(proposal.composed().lines)


def test_what_was_written_waits_and_is_in_the_file() -> None:
    proposal = opened()
    first, second = proposal.advance(text(NEW), review=True)
    assert (first.old, first.new) == (tuple(OLD[:2]), tuple(NEW[:2]))
    assert second.new == ("END = 2", "MORE = 3")
    assert on_disk(proposal) == NEW
    assert proposal.hunks.undecided("a.py") == [first, second]
    assert proposal.accepted() == (text(OLD), text(OLD)), "nothing was accepted"


def test_a_hunk_that_is_put_back_leaves_the_others() -> None:
    proposal = opened()
    first, second = proposal.advance(text(NEW), review=True)
    proposal.hunks.reject(first.id)
    assert on_disk(proposal) == [*OLD[:6], "END = 2", "MORE = 3"]
    proposal.hunks.accept(second.id)
    assert on_disk(proposal) == [*OLD[:6], "END = 2", "MORE = 3"]
    assert list(proposal.accepted()[0].lines) == OLD
    proposal.hunks.undo()
    proposal.hunks.undo()
    assert on_disk(proposal) == NEW


def test_a_write_takes_out_one_of_two_equal_insertions_side_by_side() -> None:
    """Both have the same place in the reviewed text; one of them stays."""
    proposal = opened(["a", "a"])
    (first,) = proposal.advance(text(["b", "a", "a"]), review=True)
    proposal.hunks.accept(first.id)
    (second,) = proposal.advance(text(["b", "b", "a", "a"]), review=True)
    proposal.hunks.undo()
    assert waiting_hunks(proposal.hunks.for_path("a.py")) == [first, second]
    proposal.advance(text(["b", "a", "a"]), review=True)
    assert reviewed(proposal) == list(proposal.reviewed().lines) == ["a", "a"]
    assert proposal.hunks.undecided("a.py") == [first]


def test_a_write_into_a_hunk_whose_put_back_was_undone_waits_as_well() -> None:
    proposal = opened()
    first, _ = proposal.advance(text(NEW), review=True)
    proposal.hunks.reject(first.id)
    proposal.advance(proposal.composed())
    proposal.hunks.undo()
    assert list(proposal.reviewed().lines) == OLD
    now = [NEW[0], "MORE", *NEW[1:]]
    proposal.advance(text(now), review=True)
    assert on_disk(proposal) == now
    assert reviewed(proposal) == list(proposal.reviewed().lines) == OLD
    assert {hunk.state for hunk in proposal.hunks.undecided("a.py")} == {HunkState.SETTLED}
    for hunk in proposal.hunks.undecided("a.py"):
        proposal.hunks.reject(hunk.id)
    assert on_disk(proposal) == OLD


def test_a_hunk_that_is_not_touched_stays_the_same_hunk() -> None:
    proposal = opened()
    first, second = proposal.advance(text(NEW), review=True)
    later = [*NEW[:3], "# here", *NEW[3:6], "END = 22", "MORE = 3"]
    between, changed = proposal.advance(text(later), review=True)
    assert first.state is HunkState.SETTLED
    assert (first.start, first.stop) == (0, 2)
    assert second.state is HunkState.SUPERSEDED, "a decision about it would be about other text"
    assert (changed.old, changed.new) == (("END = 1",), ("END = 22", "MORE = 3"))
    assert between.new == ("# here",)


def test_what_is_written_next_to_a_hunk_joins_it() -> None:
    proposal = opened()
    first, _ = proposal.advance(text(NEW), review=True)
    (joined,) = proposal.advance(text(["# top", *NEW]), review=True)
    assert first.state is HunkState.SUPERSEDED
    assert (joined.old, joined.new) == (tuple(OLD[:2]), ("# top", *NEW[:2]))


def test_a_change_taken_back_by_its_author_is_no_hunk() -> None:
    proposal = opened()
    proposal.advance(text(NEW), review=True)
    assert proposal.advance(text(OLD), review=True) == ()
    assert proposal.hunks.undecided() == []


def test_what_is_written_again_after_it_was_put_back_is_a_new_hunk() -> None:
    proposal = opened()
    first, _ = proposal.advance(text(NEW), review=True)
    proposal.hunks.reject(first.id)
    (again,) = proposal.advance(text(NEW), review=True)
    assert again.new == first.new
    assert first.state is HunkState.REJECTED
    assert again.state is HunkState.SETTLED


def test_a_kept_hunk_that_its_author_takes_back_is_not_written_again() -> None:
    proposal = opened()
    first, second = proposal.advance(text(NEW), review=True)
    proposal.hunks.accept(first.id)
    proposal.hunks.accept(second.id)
    (taken,) = proposal.advance(text([*OLD[:2], *NEW[2:]]), review=True)
    assert taken.new == tuple(OLD[:2])
    assert on_disk(proposal) == [*OLD[:2], *NEW[2:]]


def test_lines_of_a_hunk_are_decided_alone() -> None:
    proposal = opened()
    first, _ = proposal.advance(text(NEW), review=True)
    parts = proposal.hunks.decide_lines(first.id, 3, 4, HunkState.REJECTED)
    assert [part.external for part in parts] == [True] * len(parts)
    assert on_disk(proposal) == [NEW[0], *NEW[2:]], "the old lines belong to the part before"
    proposal.hunks.undo()
    assert on_disk(proposal) == NEW
    assert first.state is HunkState.SETTLED


def test_a_change_in_the_lines_that_a_model_writes_is_no_hunk() -> None:
    proposal = opened()
    proposal.begin(0, 2)
    proposal.feed("def area(w, h, d):\n")
    assert proposal.advance(text([OLD[0], "    return h * w", *OLD[2:]]), review=True) == ()
    (apart,) = proposal.advance(
        text([OLD[0], "    return h * w", *OLD[2:6], "END = 9"]), review=True
    )
    assert apart.new == ("END = 9",)
    proposal.feed("    return w * h * d\n")
    proposal.finish()


def test_without_review_nothing_new_waits() -> None:
    proposal = opened()
    first, second = proposal.advance(text(NEW), review=True)
    assert proposal.advance(text([*NEW[:3], "# here", *NEW[3:-1]])) == ()
    assert first.state is HunkState.SETTLED
    assert second.state is HunkState.SUPERSEDED


class Review:
    """A file that other programs and a reviewer change in turn."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.proposal = opened(code(rng, rng.randint(0, 30)))
        self.decided: dict[int, HunkState] = {}

    @property
    def hunks(self) -> HunkStore:
        return self.proposal.hunks

    def write(self) -> None:
        """Another program writes."""
        reference = reviewed(self.proposal)
        after = mutate(self.rng, on_disk(self.proposal), self.rng.randint(0, 3))
        old = {h.id: (h.old, h.new) for h in self.hunks.undecided()}
        self.proposal.advance(text(after), review=True)
        assert on_disk(self.proposal) == after, "a write of another program stands"
        assert reviewed(self.proposal) == reference, "it decides nothing"
        for hunk in self.hunks.undecided():
            assert old.get(hunk.id, (hunk.old, hunk.new)) == (hunk.old, hunk.new)

    def pick(self) -> Hunk | None:
        choices = self.hunks.undecided()
        return self.rng.choice(choices) if choices else None

    def keep(self) -> None:
        if hunk := self.pick():
            before = on_disk(self.proposal)
            self.hunks.accept(hunk.id)
            assert on_disk(self.proposal) == before

    def put_back(self) -> None:
        if hunk := self.pick():
            reviewed(self.proposal)  # folds what was decided
            before = on_disk(self.proposal)
            at = hunk.start
            self.hunks.reject(hunk.id)
            assert before[at : at + hunk.added] == list(hunk.new)
            before[at : at + hunk.added] = hunk.old
            assert on_disk(self.proposal) == before

    def put_back_lines(self) -> None:
        if hunk := self.pick():
            total = hunk.deleted + hunk.added
            start = self.rng.randrange(total)
            state = self.rng.choice([HunkState.ACCEPTED, HunkState.REJECTED])
            self.hunks.decide_lines(hunk.id, start, self.rng.randint(start + 1, total), state)

    def undo(self) -> None:
        with contextlib.suppress(UndecidableError):
            self.hunks.undo()

    def redo(self) -> None:
        with contextlib.suppress(UndecidableError):
            self.hunks.redo()

    def check(self) -> None:
        shown: list[tuple[int, list[str]]] = []
        reviewed(self.proposal)
        for segment in self.proposal.segments:
            rows = [
                row
                for row in segment.settled
                if row.hunk is None or (row.kind is RowKind.DELETED) == self.is_out(row.hunk)
            ]
            shown.append((segment.start, [row.text for row in rows]))
        lines = on_disk(self.proposal)
        for start, rows in shown:
            assert lines[start : start + len(rows)] == rows, "the screen shows the file"

    def is_out(self, hunk_id: int) -> bool:
        return self.hunks.get(hunk_id).base_lines == self.hunks.get(hunk_id).old


@given(st.integers(0, 2**32))
@examples(400)
def test_any_order_of_writes_and_decisions(seed: int) -> None:
    rng = random.Random(seed)
    review = Review(rng)
    steps = [
        *[review.write, review.keep, review.put_back, review.put_back_lines],
        *[review.undo, review.redo],
    ]
    for _ in range(rng.randint(1, 14)):
        rng.choice(steps)()
        review.check()


@pytest.mark.parametrize("seed", range(3))
def test_everything_put_back_is_the_reviewed_text(seed: int) -> None:
    review = Review(random.Random(seed))
    for _ in range(5):
        review.write()
    reference = reviewed(review.proposal)
    for hunk in review.hunks.undecided():
        review.hunks.reject(hunk.id)
    assert on_disk(review.proposal) == reference
