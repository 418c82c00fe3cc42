"""One edit of a file of 200 lines in each edit format, for ``midstream bench engine``.

The file is real code, the first lines of a module of this package; the edit renames one name and
changes two docstrings. What is written is given, so that every model writes the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from midstream.bench import wire

LINES, REGION, CONTEXT = 200, 60, 3
"""Lines of the file, of the region, and around a change."""


@dataclass(frozen=True, slots=True)
class FormatEdit:
    """One format.

    Attributes:
        name: What it is called.
        prompt: What is read; the file is in it.
        draft: What the answer would be if it changed nothing; "" where that is not known.
        answer: What is written.
    """

    name: str
    prompt: str
    draft: str
    answer: str


def format_edits() -> Iterator[FormatEdit]:
    """Yield the edit in every format."""
    old = Path(wire.__file__).read_text("utf-8").splitlines(keepends=True)[:LINES]
    renamed = re.sub(r"\bpercentile\b", "quantile", "".join(old))
    new = renamed.replace('    """', '    """Here: ', 2).splitlines(keepends=True)
    prompt = f"The file bench.py:\n{''.join(old)}\nRename `percentile` to `quantile`.\n"
    changes = [
        change
        for change in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if change[0] != "equal"
    ]
    blocks, patch = "", "*** Begin Patch\n*** Update File: bench.py\n"
    for _, begin, end, start, stop in changes:
        before, after = old[max(0, begin - CONTEXT) : begin], old[end : end + CONTEXT]
        blocks += "".join(["bench.py\n<<<<<<< SEARCH\n", *before, *old[begin:end], *after])
        blocks += "".join(["=======\n", *before, *new[start:stop], *after, ">>>>>>> REPLACE\n"])
        lines = [f" {line}" for line in before] + [f"-{line}" for line in old[begin:end]]
        lines += [f"+{line}" for line in new[start:stop]] + [f" {line}" for line in after]
        patch += "".join(["@@\n", *lines])
    yield FormatEdit("region", prompt, "".join(old[:REGION]), "".join(new[:REGION]))
    yield FormatEdit("SEARCH/REPLACE", prompt, "", blocks)
    yield FormatEdit("apply_patch", prompt, "", f"{patch}*** End Patch\n")
    yield FormatEdit("whole file", prompt, "", "".join(new))
