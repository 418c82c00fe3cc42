"""The edit of 200 lines that the engine bench writes in every format."""

from __future__ import annotations

import pytest

from midstream.bench.formats import LINES, REGION, format_edits
from midstream.edits.apply import apply_reply

EDITS = {edit.name: edit for edit in format_edits()}


def source(prompt: str) -> str:
    return prompt.removeprefix("The file bench.py:\n").rpartition("\nRename")[0]


@pytest.mark.parametrize(
    ("name", "spelled"), [("SEARCH/REPLACE", "search-replace"), ("apply_patch", "v4a")]
)
def test_an_answer_makes_the_whole_new_file(name: str, spelled: str) -> None:
    edit, whole = EDITS[name], EDITS["whole file"].answer
    result = apply_reply(edit.answer, lambda path: source(edit.prompt).encode(), spelled)
    assert result.ok, result.to_json()
    assert result.changes == {"bench.py": whole.encode()}


def test_the_region_is_the_beginning_of_the_file() -> None:
    region, whole = EDITS["region"], EDITS["whole file"].answer
    lines = source(region.prompt).splitlines(keepends=True)
    assert len(lines) == LINES
    assert region.draft == "".join(lines[:REGION])
    assert whole.startswith(region.answer)
    assert region.answer != region.draft
