"""Edits in shards: a script of changed lines for a dedented region.

Lines are numbered from 1. A script's lines are

    12|new text     line 12 becomes this
    12-             line 12 goes
    12+|new text    a new line behind line 12 (0: at the top)
    12> and 12<     line 12 four columns to the right or left
    *old=>new       the name is replaced in the whole region
    =               nothing to do

`script` writes what turns one text into another, `apply` carries a script out.
"""

from __future__ import annotations

import difflib
import re

STEP = "    "
LIKENESS = 0.45
"""Lines less alike than this are not two versions of one line."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LINE = re.compile(r"^(\d+)(\+\||\||-|>|<)(.*)$")


def margin_of(text: str) -> str:
    """Return the indent that all lines share, blank ones aside."""
    rows = [row for row in text.split("\n") if row.strip()]
    if not rows:
        return ""
    margin = rows[0][: len(rows[0]) - len(rows[0].lstrip(" "))]
    for row in rows:
        while not row.startswith(margin):
            margin = margin[:-1]
    return margin


def strip(text: str, margin: str) -> str:
    """Take a margin off."""
    rows = text.split("\n")
    return "\n".join(row[len(margin) :] if row.startswith(margin) else row for row in rows)


def place(text: str, margin: str) -> str:
    """Put a margin before all lines that are not blank."""
    return "\n".join(margin + row if row.strip() else row for row in text.split("\n"))


def _rows_of(text: str) -> list[str]:
    rows = text.split("\n")
    return rows[:-1] if rows[-1] == "" else rows


def replace_name(text: str, old: str, new: str) -> str:
    """Replace a name wherever it stands as a whole word."""
    pattern = r"(?<![A-Za-z0-9_])" + re.escape(old) + r"(?![A-Za-z0-9_])"
    return re.sub(pattern, lambda _: new, text)


def rename_of(before: str, after: str) -> tuple[str, str] | None:
    """Return the two names where a rename in the whole region is all that happened."""
    if before.count("\n") != after.count("\n"):
        return None
    old, new = _WORD.findall(before), _WORD.findall(after)
    if len(old) != len(new):
        return None
    different = {pair for pair in zip(old, new, strict=True) if pair[0] != pair[1]}
    if len(different) != 1:
        return None
    name, other = different.pop()
    if old.count(name) < 2 or replace_name(before, name, other) != after:
        return None
    return name, other


def script(before: str, after: str) -> str:
    """Return the script between two dedented regions."""
    if before == after:
        return "=\n"
    if renamed := rename_of(before, after):
        return f"*{renamed[0]}=>{renamed[1]}\n"
    old, new = _rows_of(before), _rows_of(after)
    out: list[str] = []
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for tag, i1, i2, j1, j2 in codes:
        if tag == "equal":
            continue
        gone, come = old[i1:i2], new[j1:j2]
        pairs: list[tuple[int | None, int | None]]
        if tag == "replace" and len(gone) != len(come):
            pairs = _align(gone, come)
        else:
            count = max(len(gone), len(come))
            pairs = [
                (k if k < len(gone) else None, k if k < len(come) else None) for k in range(count)
            ]
        last = i1  # the line behind which new ones go
        for x, y in pairs:
            if x is None:
                assert y is not None
                out.append(f"{last}+|{come[y]}")
                continue
            last = i1 + x + 1
            if y is None:
                out.append(f"{last}-")
            elif come[y] == STEP + gone[x]:
                out.append(f"{last}>")
            elif gone[x] == STEP + come[y]:
                out.append(f"{last}<")
            else:
                out.append(f"{last}|{come[y]}")
    return "\n".join(out) + "\n"


def _align(old: list[str], new: list[str]) -> list[tuple[int | None, int | None]]:
    """Pair lines so that the pairs are as alike as possible together."""
    alike = [
        [difflib.SequenceMatcher(None, o.strip(), w.strip(), autojunk=False).ratio() for w in new]
        for o in old
    ]
    n, m = len(old), len(new)
    best = [[0.0] * (m + 1) for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            pair = alike[i][j] if alike[i][j] > LIKENESS else -1
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + pair)
    i = j = 0
    out: list[tuple[int | None, int | None]] = []
    while i < n or j < m:
        both = i < n and j < m
        if (
            both
            and alike[i][j] > LIKENESS
            and (abs(best[i][j] - best[i + 1][j + 1] - alike[i][j]) < 1e-9)
        ):
            out.append((i, j))
            i, j = i + 1, j + 1
        elif j < m and (i == n or abs(best[i][j] - best[i][j + 1]) < 1e-9):
            out.append((None, j))
            j += 1
        else:
            out.append((i, None))
            i += 1
    return out


def apply(region: str, text: str) -> str:
    """Carry a script out; lines that are none of a script are passed over."""
    text = text.rstrip("\n")
    if text.strip() in ("=", ""):
        return region
    rows = _rows_of(region)
    ends = region.endswith("\n")
    lines = {number: [row] for number, row in enumerate(rows, 1)}
    lines[0] = []
    for line in text.split("\n"):
        if line.startswith("*") and "=>" in line:
            old, new = line[1:].split("=>", 1)
            return replace_name(region, old, new) if old else region
        found = _LINE.match(line)
        if found is None or int(found[1]) not in lines:
            continue
        number, action, rest = int(found[1]), found[2], found[3]
        here = lines[number]
        if action == "+|":
            here.append(rest)
        elif number == 0:
            continue
        elif action == "|":
            here[0:1] = [rest]
        elif action == "-":
            del here[:1]
        elif here:
            here[0] = STEP + here[0] if action == ">" else here[0].removeprefix(STEP)
    out = [row for number in range(len(rows) + 1) for row in lines[number]]
    return "\n".join(out) + ("\n" if ends and out else "")
