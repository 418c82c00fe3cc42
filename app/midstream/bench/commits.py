"""``midstream bench commits``: how much of real commits is left to decide in the walk.

For each commit: its hunks, how many are decided one by one and how many groups there are, and the
share of hunks in groups.  Then an operator, a constant or a condition is changed in random hunks of
its groups, such that the file still parses and says something else, and it is counted how often the
walk has that hunk in no group, and in which place of the reading order.  Beside it: the changed
lines that ``git diff --color-moved`` leaves unmarked.
"""

from __future__ import annotations

import ast
import json
import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from midstream.arguments import CommandParser
from midstream.code.languages import grammar_of
from midstream.code.syntax import NOT_PYTHON, is_python, parse_python
from midstream.code.trees import parse
from midstream.edits.groups import arrange
from midstream.edits.kinds import ChangedBlock, ChangedFile, HunkFacts, facts_in
from midstream.edits.lcs import line_edits
from midstream.pairing.contents import usual_text
from midstream.workspace.repo import MAX_OUTPUT, checked_out_files, run_git
from midstream.workspace.snapshot import RevisionRange, find_range

if TYPE_CHECKING:
    from tree_sitter import Node

_TRIES: Final = 200
"""Hunks in which something to change is looked for."""
_SLIPS: Final = tuple(
    (re.compile(pattern), new)
    for pattern, new in (
        (r"==", "!="),
        (r"(?<![<>-])>(?!=)", ">="),
        (r"(?<![<>])<(?!=)", "<="),
        (r"\band\b", "or"),
        (r"\bnot ", ""),
        (r"\bTrue\b", "False"),
        (r"\bNone\b", "0"),
        (r"&&", "||"),
        (r"(?<=[ (])!(?=[\w(])", ""),
        (r"\btrue\b", "false"),
        (r"(?<=\w) \+ ", " - "),
        (r"(?<![\w.])0(?![\w.])", "1"),
        (r"(?<![\w.])1(?![\w.])", "2"),
    )
)
_PLAIN: Final = re.compile(rb"\x1b\[3[12]m[-+]")
"""A changed line that is not marked as moved, in git's own colours."""
_COLOURS: Final = ("old=red", "new=green", "oldMoved=bold blue", "newMoved=bold cyan")


@dataclass(frozen=True, slots=True)
class CommitFigures:
    """What the walk makes of a commit.

    Attributes:
        commit: How it was named.
        subject: The first line of its message.
        files: Changed files.
        lines: Added and deleted lines.
        hunks: Hunks.
        single: Hunks that are decided one by one.
        groups: Groups that are decided at once.
        slips: Edits that were slipped into groups.
        apart: Those that were in no group.
        place: Their place in the reading order, the median; 0 without any.
        unmoved: Changed lines that git does not mark as moved.
    """

    commit: str
    subject: str
    files: int
    lines: int
    hunks: int
    single: int
    groups: int
    slips: int
    apart: int
    place: int
    unmoved: int

    @property
    def mechanical(self) -> int:
        """The share of hunks in groups, per cent."""
        return round(100 * (self.hunks - self.single) / self.hunks) if self.hunks else 0

    def row(self) -> str:
        """A row of a Markdown table."""
        slips = f"{self.apart} of {self.slips}, {self.place}." if self.slips else ""
        return (
            f"| {self.commit} {self.subject} | {self.files} | {self.lines:,} | {self.hunks:,} | "
            f"{self.single} + {self.groups} | {self.mechanical} % | {slips} | {self.unmoved:,} |"
        )


def run(argv: Sequence[str]) -> int:
    """Count and print; 1 if a slipped-in edit was in a group."""
    parser = CommandParser(prog="midstream bench commits", description=__doc__)
    parser.add_argument("repository", type=Path, help="a folder in a git repository")
    parser.add_argument("commits", nargs="+", help="commits, or ranges such as A..B")
    parser.add_argument("--slips", type=int, default=20, help="edits to slip into groups")
    parser.add_argument("--seed", type=int, default=1, help="chooses them")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args(list(argv))
    figures: list[CommitFigures] = []
    if not options.json:
        print("| change | files | lines | hunks | one by one + groups | in groups | ", end="")
        print("slipped-in edits in no group, place | lines not marked as moved by git |")
        print("|---|---|---|---|---|---|---|---|", flush=True)
    for commit in options.commits:
        figures.append(measure(options.repository, commit, options.slips, options.seed))
        if not options.json:
            print(figures[-1].row(), flush=True)
    if options.json:
        print(json.dumps([asdict(one) for one in figures], indent=1))
    return int(any(one.apart != one.slips for one in figures))


def measure(repository: Path, commit: str, slips: int, seed: int) -> CommitFigures:
    """Look at one commit, or at a range.

    Raises:
        UsageError: There is none of this name.
    """
    span = find_range(repository, commit if ".." in commit else f"{commit}^!")
    files = _changed_files(repository, span)
    facts = {file.path: facts_in(file) for file in files}
    hunks = [hunk for of_file in facts.values() for hunk in of_file]
    walk = arrange(hunks)
    grouped = [hunk_id for group in walk.groups for hunk_id in group.hunks]
    places = _slip(files, facts, grouped, slips, random.Random(seed))
    apart = [place for place in places if place is not None]
    subject = run_git(repository, ["log", "-1", "--format=%s", span.new])
    return CommitFigures(
        commit,
        subject.decode(errors="replace").strip(),
        len(files),
        sum(len(hunk.old) + len(hunk.new) for hunk in hunks),
        len(hunks),
        len(hunks) - len(grouped),
        len(walk.groups),
        len(places),
        len(apart),
        round(median(apart)) if apart else 0,
        _unmoved(repository, span),
    )


def _changed_files(repository: Path, span: RevisionRange) -> list[ChangedFile]:
    """The files that differ, with their hunks."""
    listing = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", span.old, span.new]
    paths = [path for path in os.fsdecode(run_git(repository, listing)).split("\0") if path]
    sides = [
        checked_out_files(repository, tree, paths, limit=MAX_OUTPUT)
        for tree in (span.old, span.new)
    ]
    files: list[ChangedFile] = []
    count = 0
    for path in paths:
        old, new = (_lines(side.get(path, b"")) for side in sides)
        if old is None or new is None or old == new:  # It is decided as a whole.
            old, new = (), (f"{path} as a whole",)
        blocks = [
            ChangedBlock(number, edit.start, old[edit.start : edit.stop], edit.lines)
            for number, edit in enumerate(line_edits(old, new), count)
        ]
        count += len(blocks)
        files.append(ChangedFile(path, old, tuple(blocks)))
    return files


def _lines(data: bytes) -> tuple[str, ...] | None:
    text = usual_text(data)
    return None if text is None else text.lines


def _slip(
    files: Sequence[ChangedFile],
    facts: Mapping[str, list[HunkFacts]],
    grouped: Sequence[int],
    count: int,
    chance: random.Random,
) -> list[int | None]:
    """Change hunks of groups one at a time; the place of each, ``None`` if it is in a group."""
    places: list[int | None] = []
    of_hunk = {block.id: (file, block) for file in files for block in file.blocks}
    chosen = chance.sample(list(grouped), min(_TRIES, len(grouped)))
    for hunk_id in chosen:
        if len(places) == count:
            break
        file, block = of_hunk[hunk_id]
        changed = _changed(file, block, chance)
        if changed is None:
            continue
        other = {**facts, file.path: facts_in(changed)}
        walk = arrange(hunk for of_file in other.values() for hunk in of_file)
        in_group = any(hunk_id in group.hunks for group in walk.groups)
        places.append(None if in_group else walk.order.index(hunk_id) + 1)
    return places


def _changed(file: ChangedFile, block: ChangedBlock, chance: random.Random) -> ChangedFile | None:
    """A file with another meaning of one hunk, ``None`` if nothing to change was found in it."""
    before = _said(file)
    if not before:
        return None
    found = [
        (row, match.start(), match.end(), new)
        for row, line in enumerate(block.new)
        for pattern, new in _SLIPS
        for match in pattern.finditer(line)
    ]
    chance.shuffle(found)
    for row, start, stop, new in found:
        line = block.new[row]
        lines = list(block.new)
        lines[row] = f"{line[:start]}{new}{line[stop:]}"
        other = block._replace(new=tuple(lines))
        blocks = tuple(other if each.id == block.id else each for each in file.blocks)
        changed = replace(file, blocks=blocks)
        if _said(changed) not in ("", before):
            return changed
    return None


def _said(file: ChangedFile) -> str:
    """A file with all of its hunks as Python's syntax tree, or as the tokens of another language.

    Comments are left out; ``""`` if it does not parse, or no grammar is known.
    """
    lines = list(file.lines)
    for block in reversed(file.blocks):
        lines[block.start : block.start + len(block.old)] = block.new
    text = "\n".join(lines)
    if is_python(file.path):
        try:
            return ast.dump(parse_python(text))
        except NOT_PYTHON:
            return ""
    language = grammar_of(file.path)
    root = parse(language, text).root_node if language else None
    return "" if root is None or root.has_error else "\n".join(_tokens(root))


def _tokens(root: Node) -> Iterator[str]:
    todo = [root]
    while todo:
        node = todo.pop()
        if node.children:
            todo += reversed(node.children)
        elif not node.type.endswith("comment"):
            yield (node.text or b"").decode("utf-8", "replace")


def _unmoved(repository: Path, span: RevisionRange) -> int:
    """Changed lines that git does not mark as moved."""
    settings = [word for colour in _COLOURS for word in ("-c", f"color.diff.{colour}")]
    command = ["diff", "--color=always", "--color-moved=blocks", "--no-renames", span.old, span.new]
    answer = run_git(repository, [*settings, *command])
    return sum(_PLAIN.match(line) is not None for line in answer.splitlines())
