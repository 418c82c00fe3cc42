"""The order to read the hunks of a change in: definitions before uses, tests behind their code.

A file that a hunk defines a name in comes before the files whose new lines have that name.  A test
file is matched to its code by name (``test_money.py`` and ``money.py``), or else by an import among
its changed lines; where several files fit equally well, it stays among the tests.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from midstream.code.languages import tested_names

if TYPE_CHECKING:
    from midstream.edits.kinds import HunkFacts

_IMPORT: Final = re.compile(
    r"^\s*(?:from\s+\S+\s+import\b|(?:import|use)\b|#\s*include\b|.*\brequire\(|.*\bfrom\s+[\"'])"
)
_WORD: Final = re.compile(r"\w+")
_DEFINES: Final = re.compile(
    r"(?:(?:export|default|declare|pub|public|async|abstract|final|static)\s+)*"
    r"(?:def|class|function|func|fn|struct|enum|trait|interface|type|module|const)\s+"
    r"(?:\([^)]*\)\s*)?([^\W\d]\w{2,})"
)
"""A definition at the margin, by its name."""


def definitions_first(hunks: Sequence[int], facts: Mapping[int, HunkFacts]) -> list[int]:
    """Put files that define a name before those that use it; the hunks of a file stay together.

    Args:
        hunks: The hunks, by file.
        facts: All hunks by id.
    """
    by_file: dict[str, list[int]] = defaultdict(list)
    defined: dict[str, set[str]] = defaultdict(set)
    for hunk_id in hunks:
        path = facts[hunk_id].path
        by_file[path].append(hunk_id)
        for found in filter(None, map(_DEFINES.match, facts[hunk_id].new)):
            defined[found[1]].add(path)
    homes = {name: next(iter(paths)) for name, paths in defined.items() if len(paths) == 1}
    done: dict[str, None] = {}
    opened: set[str] = set()
    todo = [*reversed(by_file)] if homes else []
    while todo:
        path = todo.pop()
        before: list[str] = []
        if path not in opened:
            opened.add(path)
            lines = (line for hunk_id in by_file[path] for line in facts[hunk_id].new)
            words = dict.fromkeys(word for line in lines for word in _WORD.findall(line))
            before = [homes[word] for word in words if word in homes]
        if before := [each for each in dict.fromkeys(before) if each not in opened]:
            todo += (path, *reversed(before))
        else:
            done[path] = None
    return [hunk_id for path in done or by_file for hunk_id in by_file[path]]


def reading_order(
    code: Sequence[int], tests: Sequence[int], facts: Mapping[int, HunkFacts]
) -> list[int]:
    """Put the hunks of each test file behind the last hunk of the file that it tests.

    Args:
        code: The hunks before them, in their order.
        tests: The hunks of test files, in their order; tests without such code come last.
        facts: All hunks by id.
    """
    last = {facts[hunk_id].path: hunk_id for hunk_id in code}
    by_file: dict[str, list[int]] = defaultdict(list)
    for hunk_id in tests:
        by_file[facts[hunk_id].path].append(hunk_id)
    stems: dict[str, list[str]] = defaultdict(list)
    for path in last:
        stems[PurePosixPath(path).name.partition(".")[0].lower()].append(path)
    behind: dict[int, list[int]] = defaultdict(list)
    rest: list[int] = []
    for path, ids in by_file.items():
        about = _tested(path, [facts[hunk_id] for hunk_id in ids], stems)
        (rest if about is None else behind[last[about]]).extend(ids)
    return [*(each for hunk_id in code for each in (hunk_id, *behind[hunk_id])), *rest]


def _tested(
    test: str, hunks: Iterable[HunkFacts], stems: Mapping[str, Sequence[str]]
) -> str | None:
    """The file that a test file is about; ``None`` if that cannot be told.

    Args:
        test: The test file.
        hunks: Its hunks.
        stems: The files to choose from, by their names in lower case up to the first dot.
    """
    for name in tested_names(test):
        if found := _nearest(test, stems.get(name, ())):
            return found
    words = {
        word.lower()
        for hunk in hunks
        for line in (*hunk.new, *hunk.old)
        if _IMPORT.match(line)
        for word in _WORD.findall(line)
    }
    imported = [path for stem in words & stems.keys() for path in stems[stem]]
    return _nearest(test, imported)


def _nearest(test: str, paths: Sequence[str]) -> str | None:
    """The path with the most folders in common with a test; ``None`` if there are several."""
    folders = set(PurePosixPath(test).parent.parts)
    common = {path: len(folders.intersection(PurePosixPath(path).parent.parts)) for path in paths}
    most = max(common.values(), default=0)
    best = [path for path, count in common.items() if count == most]
    return best[0] if len(best) == 1 else None
