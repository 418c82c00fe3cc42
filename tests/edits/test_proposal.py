"""Streaming a rewrite into a file: rows, hunks, stops, decisions and moving bases."""

from __future__ import annotations

import contextlib
import difflib
import random
from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.documents import SourceText, join_lines
from midstream.edits.hunk_store import HunkStore, UndecidableError
from midstream.edits.hunks import HoldReason, Hunk, HunkState
from midstream.edits.proposal import FileProposal, Segment
from midstream.edits.rebase import Rebase
from midstream.edits.rows import Row, RowKind
from tests.helpers.property import examples
from tests.helpers.strategies import LINES, chunks, code, mutate

SEEDS = st.integers(0, 2**32)


def proposal_for(lines: list[str]) -> FileProposal:
    return FileProposal("a.py", SourceText.from_text(join_lines(lines)), HunkStore())


def stream(proposal: FileProposal, text: str, rng: random.Random) -> None:
    for chunk in chunks(rng, text):
        proposal.feed(chunk)


def live(proposal: FileProposal) -> list[Hunk]:
    """The hunks that can be rejected now."""
    return [hunk for hunk in proposal.hunks.for_path(proposal.path) if hunk.rejectable]


def accept_all(proposal: FileProposal) -> None:
    for hunk in proposal.hunks.undecided(proposal.path):
        proposal.hunks.accept(hunk.id)


def check_rows(proposal: FileProposal) -> None:
    """The rows of a finished segment are the base range, and blocks of changes are hunks."""
    for segment in proposal.segments:
        shown = [row.old for row in segment.settled if row.old is not None]
        expected = set(range(segment.start, segment.stop))
        folded = {
            n
            for i in segment.hunk_ids
            if (h := proposal.hunks.get(i)).base_lines != h.old
            and h.state != "conflict"
            and not h.displaced
            for n in range(h.start, h.stop)
        }
        assert shown == sorted(expected - folded)
        blocks = [
            list(group)
            for changed, group in groupby(segment.settled, lambda r: r.kind is not RowKind.CONTEXT)
            if changed
        ]
        for block in blocks:
            for hunk_id in {row.hunk for row in block}:
                assert hunk_id is not None
                hunk = proposal.hunks.get(hunk_id)
                assert not hunk.displaced
                mine = [row for row in block if row.hunk == hunk_id]
                assert tuple(r.text for r in mine if r.kind is RowKind.DELETED) == hunk.old
                assert tuple(r.text for r in mine if r.kind is RowKind.ADDED) == hunk.new


@examples(300)
@given(LINES, LINES, LINES, SEEDS)
def test_accept_all_is_after_and_reject_all_is_before(
    head: list[str], old: list[str], new: list[str], seed: int
) -> None:
    rng = random.Random(seed)
    proposal = proposal_for(head + old + head)
    segment = proposal.begin(len(head), len(head) + len(old))
    stream(proposal, join_lines(new), rng)
    proposal.finish()
    check_rows(proposal)
    assert segment.new_text == join_lines(new)
    for hunk in proposal.hunks:
        proposal.hunks.reject(hunk.id)
    assert proposal.composed() == proposal.base
    for hunk in proposal.hunks:
        proposal.hunks.accept(hunk.id)
    assert list(proposal.composed().lines) == head + new + head


@examples(200)
@given(SEEDS)
def test_any_subset_composes_like_the_rows_say(seed: int) -> None:
    rng = random.Random(seed)
    old = code(rng, 40)
    proposal = proposal_for(old)
    proposal.begin(0, len(old))
    new = mutate(rng, old, 5)
    stream(proposal, join_lines(new), rng)
    proposal.finish()
    chosen = {h.id for h in proposal.hunks if rng.random() < 0.5}
    order = list(chosen)
    rng.shuffle(order)
    for hunk_id in order:
        proposal.hunks.accept(hunk_id)
    signs = {RowKind.CONTEXT: "  ", RowKind.ADDED: "+ ", RowKind.DELETED: "- "}
    rows = proposal.segments[0].settled
    delta = [signs[row.kind] + row.text for row in rows]
    assert list(difflib.restore(delta, 1)) == old
    assert list(difflib.restore(delta, 2)) == new
    partly = [
        f"  {row.text}" if row.kind is RowKind.DELETED and row.hunk not in chosen else line
        for row, line in zip(rows, delta, strict=True)
        if row.kind is not RowKind.ADDED or row.hunk in chosen
    ]
    assert list(proposal.composed().lines) == list(difflib.restore(partly, 2))


@examples(100)
@given(SEEDS)
def test_settled_rows_are_append_only_while_streaming(seed: int) -> None:
    rng = random.Random(seed)
    old = code(rng, 50)
    proposal = proposal_for(old)
    segment = proposal.begin(0, len(old))
    seen: list[Row] = []
    for chunk in chunks(rng, join_lines(mutate(rng, old, 6))):
        proposal.feed(chunk)
        assert segment.settled[: len(seen)] == seen
        seen = list(segment.settled)
        for hunk in proposal.hunks.undecided():
            if rng.random() < 0.3:
                proposal.hunks.accept(hunk.id)
    proposal.finish()
    assert segment.settled[: len(seen)] == seen


def test_hunk_streams_until_a_context_line_follows() -> None:
    old = [f"statement {n}" for n in range(8)]
    proposal = proposal_for(old)
    segment = proposal.begin(0, 8)
    proposal.feed("statement 0\nchanged\nsta")
    assert len(proposal.hunks) == 0
    assert [row.kind for row in segment.tail()] == [RowKind.PENDING, RowKind.WRITING]
    assert segment.tail()[1].text == "sta"
    assert segment.unread == range(1, 8)
    proposal.feed("tement 2\nstatement 3\n")
    (hunk,) = proposal.hunks
    assert (hunk.start, hunk.stop, hunk.old, hunk.new) == (1, 2, ("statement 1",), ("changed",))
    assert hunk.state is HunkState.SETTLED
    assert segment.unread == range(4, 8)
    proposal.hunks.accept(hunk.id)  # while the rest still streams
    assert proposal.composed().lines[:3] == ("statement 0", "changed", "statement 2")
    assert proposal.composed().lines[3:] == tuple(old[3:])


def test_streaming_hunk_cannot_be_decided() -> None:
    proposal = proposal_for(["a"])
    proposal.begin(1, 1)
    proposal.feed("b\n")
    (hunk,) = proposal.hunks
    assert hunk.state is HunkState.STREAMING
    with pytest.raises(UndecidableError, match="still being written"):
        proposal.hunks.accept(hunk.id)
    proposal.finish()
    proposal.hunks.accept(hunk.id)
    assert proposal.composed().lines == ("a", "b")


@examples(200)
@given(SEEDS)
def test_freeze_and_resume_do_not_change_the_result(seed: int) -> None:
    rng = random.Random(seed)
    old = code(rng, 30)
    text = join_lines(mutate(rng, old, 4))
    plain, stopped = proposal_for(old), proposal_for(old)
    plain.begin(0, 30)
    stream(plain, text, rng)
    plain.finish()
    segment = stopped.begin(0, 30)
    cut = rng.randint(0, len(text))
    stream(stopped, text[:cut], rng)
    foreseen, undecided = segment.kept_text, len(segment.pending)
    kept = stopped.freeze()
    complete = text[: text.rfind("\n", 0, cut) + 1]
    assert kept == foreseen == segment.new_text
    assert complete.startswith(kept)
    assert complete.count("\n") - kept.count("\n") >= undecided
    assert segment.tail() == []
    with pytest.raises(ValueError, match="stopped"):
        stopped.feed("x")
    stopped.resume()
    stream(stopped, text[len(kept) :], rng)
    stopped.finish()
    assert segment.settled == plain.segments[0].settled
    assert [(h.old, h.new) for h in stopped.hunks] == [(h.old, h.new) for h in plain.hunks]


@examples(200)
@given(SEEDS)
def test_abandon_keeps_what_was_not_reached(seed: int) -> None:
    rng = random.Random(seed)
    old = code(rng, 30)
    text = join_lines(mutate(rng, old, 4))
    proposal = proposal_for(old)
    segment = proposal.begin(0, 30)
    stream(proposal, text[: rng.randint(0, len(text))], rng)
    if rng.random() < 0.5:
        proposal.freeze()
    complete = list(segment.new_lines)
    decided = [(h.id, h.state) for h in proposal.hunks if h.state is HunkState.SETTLED]
    proposal.abandon()
    check_rows(proposal)
    assert segment.finished
    assert all(proposal.hunks.get(i).state is state for i, state in decided)
    shown = [row for row in segment.settled if row.kind is not RowKind.DELETED]
    assert [row.new for row in shown] == list(range(len(shown)))
    accept_all(proposal)
    result = list(proposal.composed().lines)
    assert [row.text for row in shown] == result
    assert any(
        result == [*complete[:count], *old[len(old) - len(result) + count :]]
        for count in range(min(len(complete), len(result)) + 1)
    )


@examples(200)
@given(SEEDS)
def test_a_stop_leaves_only_hunks_that_the_whole_rewrite_has_too(seed: int) -> None:
    """No replacement is half there: a line that is to go never stays beside its new form."""
    rng = random.Random(seed)
    old = code(rng, 30)
    text = join_lines(mutate(rng, old, 4))
    whole, stopped = proposal_for(old), proposal_for(old)
    for proposal, upto in ((whole, len(text)), (stopped, rng.randint(0, len(text)))):
        proposal.begin(0, 30)
        stream(proposal, text[:upto], rng)
    whole.finish()
    stopped.abandon()
    wanted = {(h.start, h.stop, h.old, h.new) for h in whole.hunks.undecided()}
    for hunk in stopped.hunks.undecided():
        if hunk.stop < 30:  # What is added behind the last line replaces none.
            assert (hunk.start, hunk.stop, hunk.old, hunk.new) in wanted


def test_a_long_insertion_that_is_stopped_before_the_lines_it_replaces() -> None:
    old = [f"old {n}" for n in range(90)]
    proposal = proposal_for(["head", *old])
    segment = proposal.begin(0, 91)
    proposal.feed(join_lines(["head", *(f"entirely different {n}" for n in range(90))]))
    assert [h.state for h in proposal.hunks] == [HunkState.STREAMING]
    proposal.abandon()
    check_rows(proposal)
    assert proposal.hunks.undecided() == []
    assert [row.text for row in segment.settled] == ["head", *old]
    assert [row.new for row in segment.settled] == list(range(91))


def test_a_stopped_follow_up_gives_back_what_it_did_not_reach() -> None:
    lines = [f"line {number}" for number in range(12)]
    proposal = proposal_for(lines)
    proposal.begin(0, 12)
    first = [*lines]
    first[1], first[9] = "changed 1", "changed 9"
    proposal.feed(join_lines(first))
    proposal.finish()
    early, late = proposal.hunks.undecided()
    proposal.begin(0, 12)
    proposal.feed(join_lines(["line 0", "other 1", "line 2", "line 3", "line 4"]))
    assert late.state is HunkState.SUPERSEDED
    proposal.abandon()
    assert early.state is HunkState.SUPERSEDED
    assert late.state is HunkState.SETTLED
    check_rows(proposal)
    accept_all(proposal)
    wanted = [*lines]
    wanted[1], wanted[9] = "other 1", "changed 9"
    assert proposal.composed().lines == tuple(wanted)


@examples(150)
@given(SEEDS)
def test_giving_back_keeps_rows_and_hunks_whole(seed: int) -> None:
    rng = random.Random(seed)
    lines = code(rng, 24)
    proposal = proposal_for(lines)
    for _ in range(3):
        proposal.begin(0, len(lines))
        new = mutate(rng, lines, 4)
        stream(proposal, join_lines(new[: rng.randrange(len(new) + 1)]), rng)
        if rng.random() < 0.7:
            proposal.abandon()
        else:
            proposal.finish()
        check_rows(proposal)
    accept_all(proposal)
    check_rows(proposal)


def test_abandon_before_the_first_line_changes_nothing() -> None:
    proposal = proposal_for(["a", "b"])
    segment = proposal.begin(0, 2)
    proposal.feed("half a li")
    proposal.abandon()
    assert len(proposal.hunks) == 0
    assert [row.kind for row in segment.settled] == [RowKind.CONTEXT] * 2


def test_finish_deletes_the_unread_rest() -> None:
    proposal = proposal_for(["a = 1", "b = 2", "c = 3"])
    proposal.begin(0, 3)
    proposal.feed("a = 1")
    proposal.finish()
    (hunk,) = proposal.hunks
    assert (hunk.old, hunk.new) == (("b = 2", "c = 3"), ())


def test_a_stopped_stream_has_no_end() -> None:
    proposal = proposal_for(["a"])
    proposal.begin(0, 1)
    proposal.freeze()
    with pytest.raises(ValueError, match="abandon"):
        proposal.finish()


def test_crlf_split_between_chunks() -> None:
    proposal = FileProposal("a", SourceText.from_text("a\r\nb\r\n"), HunkStore())
    proposal.begin(0, 2)
    for chunk in ["a\r", "\nB\r", "\n"]:
        proposal.feed(chunk)
    proposal.finish()
    accept_all(proposal)
    assert proposal.composed().to_bytes() == b"a\r\nB\r\n"


def test_begin_supersedes_what_overlaps_and_keeps_the_rest() -> None:
    old = [f"statement {n}" for n in range(30)]
    new = list(old)
    new[3], new[15], new[27] = "first", "second", "third"
    proposal = proposal_for(old)
    proposal.begin(0, 30)
    proposal.feed(join_lines(new))
    proposal.finish()
    first, second, third = proposal.hunks
    with pytest.raises(ValueError, match="no lines"):
        proposal.begin(0, 31)
    assert proposal.proposed_region(10, 20) == join_lines(new[10:20])
    segment = proposal.begin(10, 20)
    with pytest.raises(ValueError, match="open already"):
        proposal.begin(0, 1)
    assert [h.state for h in (first, second, third)] == [
        HunkState.SETTLED,
        HunkState.SUPERSEDED,
        HunkState.SETTLED,
    ]
    assert [(s.start, s.stop) for s in proposal.segments] == [(0, 10), (10, 20), (20, 30)]
    assert segment is proposal.segments[1]
    with pytest.raises(UndecidableError, match="replaced by a later edit"):
        proposal.hunks.accept(second.id)
    proposal.feed(join_lines([*new[10:19], "fourth"]))
    proposal.finish()
    accept_all(proposal)
    assert list(proposal.composed().lines) == [*new[:19], "fourth", *new[20:]]


def test_insertion_where_two_regions_meet_is_superseded() -> None:
    proposal = proposal_for(["a = 1", "b = 2", "c = 3"])
    proposal.begin(0, 1)
    proposal.feed("a = 1\ninserted\n")
    proposal.finish()
    proposal.begin(1, 1)
    proposal.feed("also inserted\n")
    proposal.finish()
    assert [h.state for h in proposal.hunks] == [HunkState.SUPERSEDED, HunkState.SETTLED]
    check_rows(proposal)
    segment = proposal.begin(1, 3)
    assert {h.state for h in proposal.hunks} == {HunkState.SUPERSEDED}
    assert [(s.start, s.stop) for s in proposal.segments] == [(0, 1), (1, 3)]
    assert proposal.segments[1] is segment
    assert [row.kind for row in proposal.segments[0].settled] == [RowKind.CONTEXT]


def test_begin_folds_accepted_hunks_first() -> None:
    proposal = proposal_for(["a = 1", "b = 2", "c = 3", "d = 4"])
    proposal.begin(0, 2)
    proposal.feed("zero = 0\na = 1\nb = 2\n")
    proposal.finish()
    accept_all(proposal)
    segment = proposal.begin(2, 4)  # in the coordinates from before the fold
    assert (segment.start, segment.stop) == (3, 5)
    assert proposal.base.lines[0] == "zero = 0"
    proposal.feed("c = 30\nd = 4\n")
    proposal.finish()
    accept_all(proposal)
    assert proposal.composed().lines == ("zero = 0", "a = 1", "b = 2", "c = 30", "d = 4")


@given(st.data())
def test_begin_takes_a_range_within_accepted_hunks_to_what_replaces_it(data: st.DataObject) -> None:
    """What survives the fold stays on its side of the range."""
    old = [f"line {number}" for number in range(data.draw(st.integers(0, 12)))]
    line = st.sampled_from([*old, *(f"new {number}" for number in range(4))])
    proposal = proposal_for(old)
    proposal.begin(0, len(old))
    proposal.feed("".join(f"{each}\n" for each in data.draw(st.lists(line, unique=True))))
    proposal.finish()
    for hunk in proposal.hunks.for_path(proposal.path):
        if data.draw(st.booleans()):
            proposal.hunks.accept(hunk.id)
    start = data.draw(st.integers(0, len(old)))
    stop = data.draw(st.integers(start, len(old)))
    rebase = Rebase(proposal.hunks.for_path(proposal.path), proposal.base, proposal.composed())
    segment = proposal.begin(start, stop)
    for number, place in enumerate(rebase.lines):
        if place < 0:
            continue
        side = (number >= start) - (number < start) if number < stop else 2
        new_side = 2 if place >= segment.stop else 1 if place >= segment.start else -1
        assert side == new_side, old[number]


def test_undo_after_the_fold_asks_for_the_old_lines_back() -> None:
    proposal = proposal_for(["a = 1", "b = 2", "c = 3"])
    before = proposal.base
    proposal.begin(0, 3)
    proposal.feed("a = 1\nB\nB2\nc = 3\n")
    proposal.finish()
    (hunk,) = proposal.hunks
    proposal.hunks.accept(hunk.id)
    kinds = [row.kind for row in proposal.segments[0].settled]
    proposal.advance(proposal.composed())
    assert proposal.composed() == proposal.base
    assert [row.kind for row in proposal.segments[0].settled] == kinds
    assert proposal.hunks.undo() == (hunk,)
    assert proposal.composed() == before
    proposal.advance(before)
    assert hunk.state is HunkState.SETTLED
    proposal.hunks.redo()
    assert proposal.composed().lines == ("a = 1", "B", "B2", "c = 3")


def example() -> tuple[FileProposal, list[str]]:
    """Ten lines; undecided hunks replace line 2, insert before 5, delete 8."""
    old = [f"statement {n}" for n in range(10)]
    proposal = proposal_for(old)
    proposal.begin(0, 10)
    new = [*old[:2], "changed 2", *old[3:5], "inserted", *old[5:8], old[9]]
    proposal.feed(join_lines(new))
    proposal.finish()
    return proposal, old


def test_external_edit_elsewhere_moves_hunks() -> None:
    proposal, old = example()
    proposal.hunks.accept(1)
    disk = list(proposal.composed().lines)
    disk[:0] = ["# header", ""]
    disk.append("# footer")
    proposal.advance(SourceText.from_text(join_lines(disk)))
    check_rows(proposal)
    assert [h.start for h in proposal.hunks] == [4, 7, 10]
    accept_all(proposal)
    assert list(proposal.composed().lines) == [
        "# header",
        "",
        *old[:2],
        "changed 2",
        *old[3:5],
        "inserted",
        *old[5:8],
        old[9],
        "# footer",
    ]


def test_external_edit_of_the_same_lines_is_a_conflict_and_can_end() -> None:
    proposal, old = example()
    disk = [*old]
    disk[8] = "the user's own"
    proposal.advance(SourceText.from_text(join_lines(disk)))
    hunk = proposal.hunks.get(3)
    assert hunk.state is HunkState.CONFLICT
    assert hunk.base_lines == ("the user's own",)
    check_texts = [row.text for row in proposal.segments[0].settled if row.hunk is None]
    assert "the user's own" in check_texts
    with pytest.raises(UndecidableError, match="conflict"):
        proposal.hunks.accept(3)
    accept_all(proposal)
    assert "the user's own" in proposal.composed().lines
    proposal.advance(SourceText.from_text(join_lines(old)))
    assert hunk.state is HunkState.SETTLED
    proposal.hunks.accept(3)
    assert old[8] not in proposal.composed().lines


def test_a_conflict_is_put_away_without_a_change_and_comes_back_with_undo() -> None:
    proposal, old = example()
    disk = [*old]
    disk[8:9] = ["the user's own", "and one more"]
    proposal.advance(SourceText.from_text(join_lines(disk)))
    hunks, hunk = proposal.hunks, proposal.hunks.get(3)
    note = hunk.note
    seen = list(proposal.segments[0].settled)
    for _ in range(2):
        hunks.reject(3) if hunk.state is HunkState.CONFLICT else hunks.redo()
        assert (hunk.state, hunk.note) == (HunkState.REJECTED, "")
        assert proposal.composed().lines == proposal.accepted()[0].lines == tuple(disk)
        check_rows(proposal)
        rows = proposal.segments[0].settled
        assert not [row for row in rows if row.hunk == 3]
        assert "and one more" in [row.text for row in rows if row.hunk is None]
        assert hunks.undo() == (hunk,)
        assert (hunk.state, hunk.note) == (HunkState.CONFLICT, note)
        assert proposal.segments[0].settled == seen
        assert proposal.composed().lines == tuple(disk)
    hunks.redo()
    held = HoldReason("S608", "a query built from parts")
    for refused in (hunks.accept, hunks.reject, lambda i: hunks.hold_back(i, held)):
        with pytest.raises(UndecidableError, match="undo that first"):
            refused(3)
    # It moves with its place.
    disk.insert(0, "above")
    proposal.advance(SourceText.from_text(join_lines(disk)))
    accept_all(proposal)
    assert "the user's own" in proposal.composed().lines
    assert hunks.undo() != (hunk,)
    assert hunks.undo() != (hunk,)
    assert hunks.undo() == (hunk,)
    assert hunk.base_lines == ("the user's own", "and one more")
    check_rows(proposal)


@pytest.mark.parametrize("hunk_id", [1, 2, 3])
def test_external_edit_equal_to_a_hunk_counts_as_accept(hunk_id: int) -> None:
    proposal, old = example()
    edits = {1: (2, 3, ["changed 2"]), 2: (5, 5, ["inserted"]), 3: (8, 9, [])}
    start, stop, lines = edits[hunk_id]
    disk = [*old[:start], *lines, *old[stop:]]
    proposal.advance(SourceText.from_text(join_lines(disk)))
    states = {h.id: h.state for h in proposal.hunks}
    assert states.pop(hunk_id) is HunkState.ACCEPTED
    assert set(states.values()) == {HunkState.SETTLED}
    assert list(proposal.composed().lines) == disk
    check_rows(proposal)


def test_reverted_file_takes_the_accept_back() -> None:
    proposal, old = example()
    proposal.hunks.accept(1)
    proposal.advance(SourceText.from_text(join_lines(old)))
    assert proposal.hunks.get(1).state is HunkState.SETTLED
    assert list(proposal.composed().lines) == old


@examples(300)
@given(SEEDS)
def test_user_lines_survive_any_interleaving(seed: int) -> None:
    """Saves in the middle of a stream: no line of the user is lost, no unaccepted one is there."""
    rng = random.Random(seed)
    old = code(rng, 30)
    proposal = proposal_for(old)
    start, stop = sorted((rng.randint(0, 30), rng.randint(0, 30)))
    segment = proposal.begin(start, stop)
    marks: list[str] = []
    accepted: set[str] = set()
    disk = proposal.base
    for chunk in chunks(rng, join_lines(mutate(rng, old[start:stop], 3))):
        proposal.feed(chunk)
        action = rng.random()
        if action < 0.1:
            lines = list(disk.lines)
            marks.append(f"# user {len(marks)}")
            at = rng.randint(0, len(lines))
            gone = lines[at : at + rng.choice([0, 0, 1, 4])]
            lines[at : at + len(gone)] = [marks[-1]]
            marks = [mark for mark in marks if mark not in gone]
            disk = SourceText.from_text(join_lines(lines))
            proposal.advance(disk)
        elif action < 0.3 and proposal.hunks.undecided():
            proposal.hunks.accept(rng.choice(proposal.hunks.undecided()).id)
        elif action < 0.4 and (waiting := [h for h in live(proposal) if not h.decided]):
            proposal.hunks.reject(rng.choice(waiting).id)
        elif action < 0.45:
            proposal.hunks.undo()
        elif action < 0.5:
            proposal.freeze()
            proposal.resume()
        if action < 0.5:
            disk = proposal.composed()
        assert set(marks) <= set(disk.lines)
        accepted |= {line for h in proposal.hunks if h.state == "accepted" for line in h.new}
        assert {line for line in disk.lines if "changed_" in line} <= accepted
    proposal.abandon() if rng.random() < 0.3 else proposal.finish()
    check_rows(proposal)
    accept_all(proposal)
    assert set(marks) <= set(proposal.composed().lines)
    assert isinstance(segment, Segment)


def test_user_deletes_an_unread_line_which_the_rewrite_keeps() -> None:
    old = [f"statement {n}" for n in range(6)]
    proposal = proposal_for(old)
    proposal.begin(0, 6)
    proposal.feed("statement 0\nchanged 1\n")
    disk = SourceText.from_text(join_lines([line for line in old if line != "statement 4"]))
    proposal.advance(disk)
    proposal.feed(join_lines(old[2:]))
    proposal.finish()
    check_rows(proposal)
    accept_all(proposal)
    assert list(proposal.composed().lines) == [old[0], "changed 1", old[2], old[3], old[5]]


@examples(200)
@given(SEEDS)
def test_many_turns(seed: int) -> None:
    """Rewrites of changing regions, decisions, undo and saves: the picture stays consistent."""
    rng = random.Random(seed)
    proposal = proposal_for(code(rng, 25))
    store = proposal.hunks
    for turn in range(4):
        if rng.random() < 0.5:
            proposal.advance(proposal.composed())
        total = len(proposal.base.lines)
        start, stop = sorted((rng.randint(0, total), rng.randint(0, total)))
        start, stop = proposal.cover(start, stop)
        region = proposal.proposed_region(start, stop).splitlines()
        segment = proposal.begin(start, stop)
        for chunk in chunks(rng, join_lines(mutate(rng, region, 2))):
            proposal.feed(chunk)
            if rng.random() < 0.2 and store.undecided():
                store.accept(rng.choice(store.undecided()).id)
            if rng.random() < 0.1:
                lines = list(proposal.composed().lines)
                at = rng.randint(0, len(lines))
                lines[at : at + rng.choice([0, 1, 3])] = [f"# user {turn} {at}"]
                proposal.advance(SourceText.from_text(join_lines(lines)))
        proposal.abandon() if rng.random() < 0.2 else proposal.finish()
        assert segment in proposal.segments
        for _ in range(rng.randint(0, 4)):
            with contextlib.suppress(UndecidableError):
                rng.choice([store.undo, store.redo])()
            if store.undecided():
                hunk = rng.choice(store.undecided())
                match rng.randint(0, 5):
                    case 0 if hunk.base_lines == hunk.old:
                        cut = rng.randint(0, hunk.deleted), rng.randint(0, hunk.added)
                        store.split(hunk.id, [cut])
                    case 1 if hunk.base_lines == hunk.old:
                        store.edit(hunk.id, [*hunk.new, "# edited"])
                    case 2 if hunk.base_lines == hunk.old and hunk.added + hunk.deleted:
                        last = rng.randint(1, hunk.added + hunk.deleted)
                        first = rng.randint(0, last - 1)
                        store.decide_lines(hunk.id, first, last, HunkState.ACCEPTED)
                    case 3:
                        store.reject(hunk.id)
                    case _:
                        store.accept(hunk.id)
        check_rows(proposal)
        bounds = [(s.start, s.stop) for s in proposal.segments]
        assert all(a[1] <= b[0] for a, b in pairwise(bounds))
        assert all(0 <= a <= b <= len(proposal.base.lines) for a, b in bounds)
        for hunk in store.for_path("a.py"):
            assert proposal.base.lines[hunk.start : hunk.stop] == hunk.base_lines
            assert any(hunk.id in s.hunk_ids for s in proposal.segments)
        before = proposal.composed()
        proposal.advance(before)
        assert proposal.composed() == before == proposal.base
