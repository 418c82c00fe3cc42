"""Everyday requests for training: their edits are what the requests say, their wordings vary."""

from __future__ import annotations

import ast
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

RECIPE = Path("models/training/edit_script").resolve()

FUNCTION = '''
def read_names(path, limit=10, verbose=False):
    """Read names."""
    # one on each line
    names = []
    for line in open(path):
        name = line.strip()
        if name in names:
            continue
        names.append(name)
    if len(names) > limit:
        raise ValueError("too many names")
    print("read %s names from %s" % (len(names), path))
    return names
'''.lstrip()


@pytest.fixture
def everyday(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(RECIPE))
    import everyday  # pyright: ignore[reportMissingImports]

    return everyday


def rows(everyday: ModuleType, count: int, taken: frozenset[str]) -> list[dict[str, Any]]:
    rng = random.Random(1)
    names = everyday.names_of([FUNCTION, 'def greet(person):\n    return "good morning"\n'])
    maker = everyday.Maker(names, taken, rng, most=6)
    made = [maker.row(FUNCTION) for _ in range(count)]
    return [row for row in made if row]


def test_every_answer_is_a_program_and_changes_what_is_asked(everyday: ModuleType) -> None:
    kinds: set[str] = set()
    for row in rows(everyday, 25, frozenset()):
        for kind, request, script in row["edits"]:
            after = everyday.fmt.apply(row["region"], script)
            ast.parse(after)
            assert request
            assert "{" not in request.replace("{}", "")
            assert (after == row["region"]) == (kind in ("everyday_done", "everyday_beyond"))
            kinds.add(kind)
    assert len(kinds) > 25


def test_requests_of_the_sets_written_by_hand_are_left_out(everyday: ModuleType) -> None:
    asked = {edit[1] for row in rows(everyday, 8, frozenset()) for edit in row["edits"]}
    taken = frozenset(everyday.normalised(request) for request in asked)
    again = {edit[1] for row in rows(everyday, 8, taken) for edit in row["edits"]}
    assert not {everyday.normalised(request) for request in again} & taken


def test_a_wording_is_one_of_its_sentences(everyday: ModuleType) -> None:
    rng = random.Random(2)
    wording = "(don't (crash|fail)|be robust) if {x} is empty(| please)"
    made = {everyday.expanded(wording, rng) for _ in range(200)}
    starts = ("don't crash", "don't fail", "be robust")
    ends = (" if {x} is empty", " if {x} is empty please")
    assert made == {start + end for start in starts for end in ends}
