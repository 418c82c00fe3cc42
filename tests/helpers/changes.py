"""Changes of several files, as the walk through a review sees them."""

from __future__ import annotations

from collections.abc import Mapping

from midstream.edits.groups import ReviewWalk, arrange
from midstream.edits.kinds import ChangedBlock, HunkFacts, facts_of
from midstream.edits.lcs import line_edits


def facts_between(path: str, old: str, new: str, first: int = 1) -> list[HunkFacts]:
    """The facts of the hunks between two versions of a file; ids count from ``first``."""
    before, after = old.splitlines(), new.splitlines()
    blocks = [
        ChangedBlock(first + number, edit.start, tuple(before[edit.start : edit.stop]), edit.lines)
        for number, edit in enumerate(line_edits(before, after))
    ]
    return facts_of(path, before, blocks)


def facts_of_files(before: Mapping[str, str], after: Mapping[str, str]) -> list[HunkFacts]:
    """The same of several files; a file missing on one side is created or deleted."""
    facts: list[HunkFacts] = []
    for path in sorted({*before, *after}):
        facts += facts_between(path, before.get(path, ""), after.get(path, ""), len(facts) + 1)
    return facts


def walked(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[ReviewWalk, list[HunkFacts]]:
    """The walk through a change of several files, and its facts."""
    facts = facts_of_files(before, after)
    return arrange(facts), facts
