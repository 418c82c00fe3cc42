"""Stops and redirects at every token inside changed files: no acceptable line stands beside what it
replaces.

On demand (`-m slow`), the same at some 6,400 places inside 638 changes that people have made:
`MIDSTREAM_HISTORIES` names folders of git repositories, with the separator of `PATH` between them.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import midstream.edits
from midstream.edits.documents import SourceText, join_lines
from midstream.edits.hunk_store import HunkStore
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


Change = tuple[int, int, tuple[str, ...], tuple[str, ...]]
"""First line, line after the last, old lines, new lines."""


def acceptable(proposal: FileProposal) -> set[Change]:
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


# Changes that people have made

CHANGES = 638
STOPS = 6_403
"""As many as the aligner's thresholds were chosen on."""
AROUND = 60
"""Lines of context that a region has on both sides of a change."""
COMMITS = 500
"""Of each repository, the newest ones."""
MAX_LINES = 200


def committed_changes(repository: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Regions of Python files before and after a commit, the newest first."""
    log = subprocess.run(
        [
            *("git", "-C", str(repository), "log", "-p", f"-U{AROUND}", f"-n{COMMITS}"),
            *("--no-merges", "--diff-filter=M", "--format=", "--no-color", "--", "*.py"),
        ],
        capture_output=True,
        text=True,
        errors="replace",
        check=True,
    ).stdout
    for part in re.split(r"^(?:@@ .*|diff --git .*(?:\n(?!@@).*)*)\n", log, flags=re.M):
        lines = [line for line in part.split("\n") if line[:1] in (" ", "-", "+")]
        old = [line[1:] for line in lines if line[0] in " -"]
        new = [line[1:] for line in lines if line[0] in " +"]
        if old != new and 10 <= len(old) <= MAX_LINES:
            yield old, new


def ends_inside(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """Offsets after the tokens of a text, from its first changed line to behind its last one."""
    shorter = min(len(old), len(new))
    first = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    same = next((n for n in range(shorter - first) if old[-1 - n] != new[-1 - n]), 0)
    start = len(join_lines(new[:first]))
    stop = len(join_lines(new[: len(new) - same + 1]))
    return [match.end() for match in TOKEN.finditer(join_lines(new)) if start < match.end() < stop]


def is_beginning(part: Change, wanted: set[Change], end: int) -> bool:
    """Whether a part is the first lines of a change that adds lines behind the last one."""
    return part[:3] == (end, end, ()) and any(
        whole[:3] == part[:3] and whole[3][: len(part[3])] == part[3] for whole in wanted
    )


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.skipif("MIDSTREAM_HISTORIES" not in os.environ, reason="MIDSTREAM_HISTORIES not set")
def test_no_stop_inside_a_committed_change_leaves_an_acceptable_duplicate() -> None:
    rng = random.Random(6403)
    found: list[tuple[list[str], list[str]]] = []
    for folder in os.environ["MIDSTREAM_HISTORIES"].split(os.pathsep):
        found += committed_changes(Path(folder))
    chosen = [
        (old, new, ends)
        for old, new in rng.sample(found, len(found))
        if len(ends := ends_inside(old, new)) > STOPS // CHANGES
    ][:CHANGES]
    stops = halves = begun = left = 0
    for number, (old, new, ends) in enumerate(chosen):
        text = join_lines(new)
        whole = proposal_for(old)
        whole.feed(text)
        whole.finish()
        wanted = acceptable(whole)
        here = STOPS // len(chosen) + (number < STOPS % len(chosen))
        for end in rng.sample(ends, min(here, len(ends))):
            stopped = proposal_for(old)
            stopped.feed(text[:end])
            stopped.abandon()
            stops += 1
            parts = acceptable(stopped) - wanted
            # Behind the last line of a region, a beginning replaces nothing.
            added = {part for part in parts if is_beginning(part, wanted, len(old))}
            begun += bool(added)
            halves += parts != added
            left += bool(acceptable(stopped))
    print(
        f"{stops:,} stops inside {len(chosen)} of {len(found):,} changes: {left:,} leave hunks, "
        f"{begun} the beginning of what is added at the end, {halves} half of a replacement"
    )
    assert stops >= STOPS - len(chosen)
    assert halves == 0
