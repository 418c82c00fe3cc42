"""The human-written edits: sound data, and a measurement that tells right from wrong."""

from __future__ import annotations

import ast
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from midstream.engine.loading import load_model
from models.training.corpus import HELD_OUT, is_permissive
from models.training.human import LEFT_ALONE, HumanEdit, Report, ask, judge, load

EDITS = load()
STYLES = {"terse", "sentence", "sloppy", "question", "reason"}


def test_there_are_enough_of_every_sort() -> None:
    assert len(EDITS) >= 80
    assert len({edit.id for edit in EDITS}) == len(EDITS)
    assert len({edit.kind for edit in EDITS}) >= 30
    assert set(Counter(edit.style for edit in EDITS)) == STYLES
    assert min(Counter(edit.style for edit in EDITS).values()) >= 5
    assert len({edit.instruction for edit in EDITS}) == len(EDITS)
    assert {edit.package.split()[0] for edit in EDITS} == HELD_OUT


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.id)
def test_both_sides_are_python_and_differ(edit: HumanEdit) -> None:
    for text in (edit.before, *edit.right):
        ast.parse(textwrap.dedent(text))
        assert text.endswith("\n")
    assert (edit.before == edit.after) == (edit.kind in LEFT_ALONE)
    assert edit.after not in edit.accept
    assert 3 <= edit.before.count("\n") <= 40
    assert is_permissive(edit.licence)
    assert edit.path.startswith(edit.package.split()[0] + "/")


def test_the_references_score_full_marks_and_a_model_that_does_nothing_none() -> None:
    full, idle = Report("references"), Report("nothing")
    for edit in EDITS:
        full.add(edit, judge(edit, edit.right[-1], "", 1, 1.0))
        idle.add(edit, judge(edit, edit.before, "", 1, 1.0))
    best = full.as_json()
    assert best["total"]["exact"] == best["total"]["kept"] == best["total"]["parses"] == 100
    assert all(row["same_tree"] == 100 for row in best["kinds"].values())
    assert idle.as_json()["total"]["exact"] == 0
    assert idle.as_json()["total"]["unchanged"] == 100
    assert all(idle.as_json()["kinds"][kind]["exact"] == 100 for kind in LEFT_ALONE)
    assert full.total.n == sum(edit.kind not in LEFT_ALONE for edit in EDITS)


def test_a_lost_line_a_comment_and_broken_code_are_told_apart() -> None:
    edit = next(edit for edit in EDITS if edit.kind == "rename local")
    lost = judge(edit, "".join(edit.after.splitlines(keepends=True)[:-1]), "", 1, 1.0)
    assert not lost.exact
    assert lost.kept == lost.untouched - 1
    commented = judge(edit, edit.after + "    # more\n", "", 1, 1.0)
    assert commented.same_tree
    assert not commented.exact
    assert not judge(edit, "def broken(:\n", "", 1, 1.0).parses
    assert not judge(edit, "", "", 1, 1.0).parses


def test_declining_is_right_only_where_there_is_nothing_to_do() -> None:
    for kind in ("beyond", "rename local"):
        edit = next(edit for edit in EDITS if edit.kind == kind)
        answer = judge(edit, "", "This is more than the model can do.", 0, 0.1)
        assert answer.exact == (kind == "beyond")
        assert answer.unchanged
        assert answer.kept == answer.untouched


def test_it_runs_through_the_engine(copyist: Path) -> None:
    model = load_model(copyist, threads=1)
    report = Report(copyist.name)
    for edit in EDITS[:3]:
        text, declined, tokens = ask(model, edit)
        report.add(edit, judge(edit, text, declined, tokens, 0.1))
        assert text
        assert tokens > 0
    model.close()
    assert report.total.n == 3
