"""Which rows the code pane has, for any stream and any decisions."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.documents import SourceText
from midstream.edits.hunk_store import HunkStore
from midstream.edits.proposal import FileProposal
from midstream.tui.diff.view import FileView, Look
from tests.helpers.property import examples

LINES = st.lists(st.sampled_from(["a", "b", "c", "d = 1", "", "    return x", "e"]), max_size=14)


def view_of(lines: list[str]) -> tuple[FileProposal, HunkStore, FileView]:
    base = SourceText.from_bytes("".join(f"{line}\n" for line in lines).encode())
    hunks = HunkStore()
    proposal = FileProposal("f.py", base, hunks)
    return proposal, hunks, FileView(proposal, hunks)


def rows(view: FileView) -> list:
    view.refresh()
    shown = [view.row(y) for y in range(view.size)]
    assert None not in shown
    return shown


@given(LINES, LINES, st.data())
@examples(150)
def test_rows_hold_both_texts_at_every_moment(
    old: list[str], new: list[str], data: st.DataObject
) -> None:
    proposal, hunks, view = view_of([*old, "tail"])
    start = data.draw(st.integers(0, len(old)))
    stop = data.draw(st.integers(start, len(old)))
    proposal.begin(start, stop)
    text = "".join(f"{line}\n" for line in new)
    at = 0
    while at < len(text):
        step = data.draw(st.integers(1, 9))
        proposal.feed(text[at : at + step])
        at += step
        shown = rows(view)
        assert [
            r.text for r in shown if r.look in (Look.CONTEXT, Look.DELETED, Look.UNREAD)
        ] == list(proposal.base.lines)
    proposal.finish()
    shown = rows(view)
    assert [r.text for r in shown if r.look is not Look.DELETED] == [
        *old[:start],
        *new,
        *old[stop:],
        "tail",
    ]
    numbers = [r.new for r in shown if r.look is not Look.DELETED]
    assert numbers == list(range(len(numbers)))
    assert [r.old for r in shown if r.look is not Look.ADDED] == list(
        range(len(proposal.base.lines))
    )
    for first, last, hunk in view.places():
        assert [view.row(y).hunk.id for y in range(first, last)] == [hunk.id] * (last - first)
        assert [view.row(y).offset for y in range(first, last)] == list(range(last - first))
    before = [(r.old, r.text) for r in shown]
    for hunk in list(hunks):
        if hunk.decidable:
            hunks.reject(hunk.id) if data.draw(st.booleans()) else hunks.accept(hunk.id)
    shown = rows(view)
    assert [(r.old, r.text) for r in shown] == before  # No decision moves a row.
    composed = proposal.composed().lines
    in_file = [r for r in shown if r.look in (Look.CONTEXT, Look.KEPT, Look.ADDED)]
    assert [r.text for r in in_file] == list(composed)
    assert [r.new for r in in_file] == list(range(len(composed)))
    check_numbers(view, shown, composed)
    view.fold_rejected()
    shown = rows(view)
    refusing = [h for h in hunks if h.state == "rejected" and h.new]
    assert [r.hunk.id for r in shown if r.look is Look.FOLDED_REJECTED] == [h.id for h in refusing]
    assert not any(r.look is Look.REJECTED for r in shown)
    in_file = [r for r in shown if r.look in (Look.CONTEXT, Look.KEPT, Look.ADDED)]
    assert [r.text for r in in_file] == list(composed)
    assert [r.new for r in in_file] == list(range(len(composed)))
    check_numbers(view, shown, composed)
    for hunk in refusing:
        view.toggle_rejected(hunk.id)
    assert [(r.old, r.text) for r in rows(view)] == before


def check_numbers(view: FileView, shown: list, composed: tuple[str, ...]) -> None:
    """With every hunk decided, the new numbers are those of the file."""
    marks = 0
    for y, row in enumerate(shown):
        if row.look is Look.CONTEXT:
            assert composed[view.written_at(y)] == row.text
            assert view.to_base(view.to_written(row.old)) == row.old
        if row.look in (Look.CONTEXT, Look.ADDED, Look.KEPT):
            assert composed[row.new] == row.text
        elif row.look in (Look.REJECTED, Look.FOLDED_REJECTED):
            assert row.new is None
        marks += row.hunk is not None and row.first
    assert marks == len({row.hunk.id for row in shown if row.hunk is not None})
    bases = [view.base_at(y) for y in range(len(shown))]
    assert bases == sorted(bases)
    for first, last, hunk in view.places():
        assert {view.row(y).hunk.id for y in range(first, last)} == {hunk.id}


def test_walking_visits_every_undecided_hunk_once() -> None:
    proposal, hunks, view = view_of([f"line {n}" for n in range(30)])
    proposal.begin(0, 30)
    proposal.feed("".join(f"line {n}\n" if n % 5 else f"changed {n}\n" for n in range(30)))
    proposal.finish()
    rows(view)
    seen = []
    y = view.next_hunk(-1, undecided=True)
    while y is not None:
        seen.append(view.hunk_at(y).id)
        y = view.next_hunk(y, undecided=True)
    assert seen == [h.id for h in hunks.for_path("f.py")]
    hunks.accept(seen[1])
    assert view.next_hunk(view.rows_of(seen[0])[0], undecided=True) == view.rows_of(seen[2])[0]
    assert view.next_hunk(view.rows_of(seen[2])[0], forward=False) == view.rows_of(seen[1])[0]


def test_folding_hides_what_is_far_from_changes() -> None:
    proposal, _, view = view_of([f"line {n}" for n in range(100)])
    proposal.begin(40, 60)
    proposal.feed("".join(f"line {n}\n" if n != 50 else "new\n" for n in range(40, 60)))
    proposal.finish()
    view.folded = True
    shown = rows(view)
    assert [r.text for r in shown if r.look is Look.FOLDED_CONTEXT] == [
        "47 unchanged lines",
        "46 unchanged lines",
    ]
    assert view.size == 100 + 1 - 47 - 46 + 2


def test_lines_and_rows_lead_to_each_other_across_a_large_file() -> None:
    proposal, _, view = view_of([f"line {n}" for n in range(50_000)])
    proposal.begin(100, 120)
    proposal.feed("".join(f"other {n}\n" for n in range(100, 140)))
    proposal.finish()
    before = time.thread_time()
    view.refresh()
    for line in range(0, 50_000, 997):
        assert view.row(view.row_of_base(line)).old == line
        row = view.row(view.row_of_line(line))
        assert row.new == line
    assert time.thread_time() - before < 1.0


def test_split_puts_what_replaces_beside_what_is_replaced() -> None:
    proposal, hunks, view = view_of(["def f():", "    a = 1", "    b = 2", "    return a"])
    proposal.begin(0, 4)
    proposal.feed("def f():\n    x = 1\n    y = 2\n    z = 3\n    return a\n")
    proposal.finish()
    unified = len(rows(view))
    view.split = True
    shown = rows(view)
    assert len(shown) == unified - 2
    pairs = [(r.beside.text if r.beside else None, r.text) for r in shown if r.look is Look.ADDED]
    assert pairs == [("    a = 1", "    x = 1"), ("    b = 2", "    y = 2"), (None, "    z = 3")]
    (hunk,) = hunks
    assert view.rows_of(hunk.id) == (1, 4)
    assert [view.base_at(y) for y in range(len(shown))] == [0, 1, 2, 2, 3]
    hunks.accept(hunk.id)
    rows(view)
    assert [view.written_at(y) for y in range(len(shown))] == [0, 1, 2, 3, 4]


def one_sided(lines: list[str], new: str) -> list[bool]:
    """Whether the rows are of one side: while they are written, then, and once all is rejected."""
    proposal, hunks, view = view_of(lines)
    proposal.begin(0, len(lines))
    seen: list[bool] = []
    reject = lambda: [hunks.reject(hunk.id) for hunk in hunks.undecided()]  # noqa: E731
    for step in (lambda: proposal.feed(new), proposal.finish, reject):
        step()
        rows(view)
        seen.append(view.one_sided)
    return seen


def test_a_file_that_is_all_new_or_all_deleted_has_one_side_whatever_is_decided() -> None:
    assert one_sided([], "a\nb\n") == [True] * 3
    assert one_sided(["a", "b"], "") == [False, True, True]
    assert one_sided(["a", "b"], "a\nb\nc\n") == [False] * 3
    assert one_sided(["a", "b"], "c\n") == [False] * 3


def test_accepted_rows_keep_their_old_numbers_when_they_are_part_of_the_base() -> None:
    proposal, hunks, view = view_of(["a", "b", "c", "d", "e"])
    proposal.begin(0, 5)
    proposal.feed("a\nB\nC\nd\n")
    proposal.finish()
    first, last = hunks
    hunks.accept(first.id)
    hunks.accept(last.id)
    before = [(row.text, row.old) for row in rows(view)]
    assert before == [("a", 0), ("b", 1), ("c", 2), ("B", None), ("C", None), ("d", 3), ("e", 4)]
    proposal.advance(proposal.composed())
    # The last row has no line in its place; its number would be that of the next line.
    assert [(row.text, row.old) for row in rows(view)] == [*before[:-1], ("e", None)]
    lines = [view.base_at(y) for y in range(view.size)]
    assert lines == sorted(lines)
