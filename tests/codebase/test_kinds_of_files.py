"""The kinds of hunks, found in processes: the same as in this one, and no file hides another."""

from __future__ import annotations

import asyncio.subprocess
from dataclasses import replace

import pytest

from midstream import processes
from midstream.codebase import kinds
from midstream.codebase.kinds import find_facts
from midstream.edits import kinds as kinds_here
from midstream.edits.kinds import ChangedBlock, ChangedFile, HunkFacts, facts_in, plain_facts

OLD = "    value = {'n': old_name(value)}"
NEW = '    value = {"n": old_name(value)}'
FILES = [
    ChangedFile(
        f"part{n}.py",
        ("def work(value):", OLD, "    if value:", "        return value"),
        (
            ChangedBlock(2 * n + 1, 1, (OLD,), (NEW,)),
            ChangedBlock(2 * n + 2, 2, ("    if value:", "        return value"), ()),
        ),
    )
    for n in range(5)
]
UNREADABLE = replace(FILES[0], path="odd.py", lines=("'\ud800'", *FILES[0].lines[1:]))


async def found(files: list[ChangedFile]) -> dict[str, list[HunkFacts]]:
    return {facts[0].path: facts async for facts in find_facts(files)}


@pytest.fixture(autouse=True)
def in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the files were large."""
    monkeypatch.setattr(kinds, "AT_ONCE", 0)


async def test_processes_find_what_is_found_here() -> None:
    facts = await found([UNREADABLE, *FILES])
    assert facts == {file.path: facts_in(file) for file in FILES}
    assert all(hunk.kinds for hunk in facts["part0.py"])


async def test_a_process_that_dies_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    start = processes.start_python

    async def start_another(_: str, **options: int) -> asyncio.subprocess.Process:
        return await start("keyword", **options)  # reads nothing, prints nothing

    monkeypatch.setattr(processes, "start_python", start_another)
    assert await found(FILES) == {}


def test_a_file_that_cannot_be_read_has_hunks_without_kinds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> list[HunkFacts]:
        raise RecursionError

    monkeypatch.setattr(kinds_here, "facts_of", fails)
    facts = facts_in(FILES[0])
    assert facts == plain_facts(FILES[0])
    assert [(hunk.old, hunk.new) for hunk in facts] == [b[2:] for b in FILES[0].blocks]
