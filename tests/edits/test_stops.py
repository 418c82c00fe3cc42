"""Stops and redirects at every token inside changed files: no acceptable line stands beside what it
replaces.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import midstream.edits
from midstream.edits.documents import SourceText, join_lines
from midstream.edits.hunks import HunkStore
from midstream.edits.proposal import FileProposal

FILES = sorted(Path(midstream.edits.__file__).parent.glob("*.py"))
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
STOPS_PER_CHANGE = 40
REDIRECTS_PER_CHANGE = 20


def changes(lines: list[str], rng: random.Random) -> Iterator[list[str]]:
    """A renamed name, some replaced statements, and both with lines added and removed."""
    names = sorted({name for line in lines for name in re.findall(r"\b[a-z_]{4,}\b", line)})
    name = rng.choice(names)
    yield [re.sub(rf"\b{name}\b", "other_name", line) for line in lines]
    replaced = list(lines)
    for at in rng.sample(range(len(lines)), 4):
        indent = replaced[at][: len(replaced[at]) - len(replaced[at].lstrip())]
        replaced[at] = f"{indent}entirely = different({at})"
    yield replaced
    mixed = list(replaced)
    at = rng.randrange(len(mixed) - 3)
    del mixed[at : at + 3]
    mixed[at:at] = ["first = added()", "second = added()"]
    yield mixed


def proposal_for(lines: Sequence[str]) -> FileProposal:
    proposal = FileProposal("a.py", SourceText.from_text(join_lines(lines)), HunkStore())
    proposal.begin(0, len(lines))
    return proposal


def acceptable(proposal: FileProposal) -> set[tuple[int, int, tuple[str, ...], tuple[str, ...]]]:
    return {(h.start, h.stop, h.old, h.new) for h in proposal.hunks.undecided()}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_stop_leaves_no_half_of_a_replacement(path: Path) -> None:
    rng = random.Random(path.stem)
    old = path.read_text("utf-8").splitlines()[:120]
    if len(old) < 10:
        return
    for new in changes(old, rng):
        text = join_lines(new)
        whole = proposal_for(old)
        whole.feed(text)
        whole.finish()
        wanted = acceptable(whole)
        ends = [match.end() for match in TOKEN.finditer(text)]
        for end in rng.sample(ends, min(STOPS_PER_CHANGE, len(ends))):
            stopped = proposal_for(old)
            stopped.feed(text[:end])
            stopped.abandon()
            # A part of a hunk would be an insertion next to lines that it is to replace.
            assert acceptable(stopped) <= wanted


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_redirect_leaves_no_half_of_a_replacement(path: Path) -> None:
    rng = random.Random(path.stem)
    old = path.read_text("utf-8").splitlines()[:120]
    if len(old) < 10:
        return
    for new in changes(old, rng):
        text = join_lines(new)
        whole = proposal_for(old)
        whole.feed(text)
        whole.finish()
        wanted = acceptable(whole)
        ends = [match.end() for match in TOKEN.finditer(text)]
        for end in rng.sample(ends, min(REDIRECTS_PER_CHANGE, len(ends))):
            redirected = proposal_for(old)
            segment = redirected.current
            assert segment is not None
            redirected.feed(text[:end])
            ahead = segment.kept_text
            assert redirected.freeze() == ahead
            # "No, leave the rest as it is": the lines that were not read come as they are.
            redirected.resume()
            rest = old[segment.unread.start :]
            redirected.feed(join_lines(rest))
            redirected.finish()
            assert acceptable(redirected) <= wanted
            assert new[: ahead.count("\n")] + rest == list(proposed(redirected))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_stop_after_a_redirect_leaves_no_half_of_a_replacement(path: Path) -> None:
    rng = random.Random(path.stem)
    old = path.read_text("utf-8").splitlines()[:120]
    if len(old) < 10:
        return
    for new in changes(old, rng):
        text = join_lines(new)
        for end in rng.sample(range(len(text)), min(REDIRECTS_PER_CHANGE, len(text))):
            redirected = proposal_for(old)
            segment = redirected.current
            assert segment is not None
            redirected.feed(text[:end])
            redirected.freeze()
            redirected.resume()
            first, at = acceptable(redirected), segment.unread.start
            other = join_lines(next(changes(old, rng))[at:])
            whole = proposal_for(old)
            whole.feed(join_lines(old[:at]) + other)
            whole.finish()
            redirected.feed(other[: rng.randint(0, len(other))])
            redirected.abandon()
            assert acceptable(redirected) <= first | acceptable(whole)


def proposed(proposal: FileProposal) -> Sequence[str]:
    return proposal.proposed_region(0, len(proposal.base.lines)).split("\n")[:-1]
