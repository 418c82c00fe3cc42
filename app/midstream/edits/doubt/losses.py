"""What a rewrite loses in any language: definitions, names that the request speaks of, a value.

Each is a reason to flag an answer by itself, as the slips of Python are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from keyword import iskeyword
from typing import Final

from midstream.code.outline import PARSED_LINES, Definition, outline
from midstream.edits.doubt.rewrite import JudgedRewrite
from midstream.edits.doubt.signs import asks_for_removal, vanished
from midstream.edits.lcs import line_edits

_RENAMES: Final = re.compile(
    r"\b(?:renam|call(?:ed)?\b|named\b|name (?:it|this|that|them)\b|turn|convert|replac|split"
    r"|extract|merg|inlin|mov|remov|delet|drop|get(?:ting)? rid|nuke|eliminat|kill|scrap|rm\b"
    r"|becom|chang|instead|separat|divid)",
    re.IGNORECASE,
)
"""Words of a request after which a definition may be gone."""
_TAKES_AWAY: Final = re.compile(
    rf"{_RENAMES.pattern}|\b(?:rather|no longer|without|strip|simplif|avoid|stop|don't|do not|not\b"
    r"|never|switch|swap|mak|tak|rewrit|refactor|shorten|from|unneeded|unused|useless|clean)",
    re.IGNORECASE,
)
"""Words of a request after which a name that it speaks of may be gone."""
_COMMENT: Final = re.compile(r"(?:#|//).*")
_TOKEN: Final = re.compile(r"\w+|[^\w\s]")
_GIVEN: Final = re.compile(r"[^\W\d]\w*(?=\s*=(?!=))")
"""Names that get a value, such as arguments given by name."""
_RETURNS: Final = re.compile(r"->\s*(?!\(\s*\)|!)\S")
_LEAVES: Final = re.compile(
    r"\s*(?:return|break|continue|panic!|todo!|unimplemented!|unreachable!)"
)


def losses(rewrite: JudgedRewrite) -> list[str]:
    """What speaks against a rewrite, as sentences without their subject "it"."""
    instruction, path = rewrite.said, rewrite.path
    region = rewrite.before, rewrite.after
    before = rewrite.around(rewrite.before.split("\n")[:-1])
    after = rewrite.around(rewrite.proposed)
    if max(len(before), len(after)) > PARSED_LINES:
        return []
    old, new = (_by_name(lines, path) for lines in (before, after))
    found: list[str] = []
    gone = [name for name in old if name not in new]
    come = [name for name in new if name not in old]
    if rewrite.python and vanished(instruction, *region):
        gone = []  # It is said anyway.
    if gone and not _RENAMES.search(instruction):
        if len(gone) == len(come) == 1:
            found.append(f"renamed `{gone[0]}` to `{come[0]}` without being asked to")
        elif come:
            found.append(f"no longer defines `{gone[0]}`")
    if not _TAKES_AWAY.search(instruction):
        words = [set(re.findall(r"\w+", text)) for text in region]
        lost = (name for name in rewrite.names if name.rpartition(".")[2] in words[0] - words[1])
        if name := next(lost, ""):
            found.append(f"took `{name}` away, which the request speaks of")
        elif not asks_for_removal(instruction) and (name := _only_less(*region)):
            found.append(f"only takes code away (`{name}`)")
    if path.endswith(".rs"):
        for name in new:
            if _loses_value(after, new[name]) and not (
                name in old and _loses_value(before, old[name])
            ):
                found.append(f"ends `{name}` with a semicolon, so that it returns nothing")
                break
    return found


def _only_less(before: str, after: str) -> str:
    """A name that a line loses in a rewrite which adds nothing, ``""`` if there is none."""
    # Models may leave out the margin of what they rewrite.
    old, new = (
        [_COMMENT.sub("", line).strip() for line in text.splitlines()] for text in (before, after)
    )
    rest = iter(_TOKEN.findall("\n".join(old)))
    kept = _TOKEN.findall("\n".join(new))
    if not all(token in rest for token in kept):  # Each is looked for behind the one before.
        return ""
    for edit in line_edits(old, new):
        text = "\n".join(old[edit.start : edit.stop])
        lost = set(_TOKEN.findall(text)).difference(kept, _GIVEN.findall(text))
        name = next((n for n in sorted(lost) if n.isidentifier() and not iskeyword(n)), "")
        if name and len(edit.lines) == edit.stop - edit.start:
            return name
    return ""


def _by_name(lines: Sequence[str], path: str) -> dict[str, Definition]:
    """The functions and classes of a file."""
    found = outline(tuple(lines), path).definitions
    return {each.name: each for each in found if each.kind != "assignment"}


def _loses_value(lines: Sequence[str], function: Definition) -> bool:
    """Whether a function of Rust that has a value ends with a statement that has none."""
    own = [line for line in lines[function.start : function.stop] if line.strip()]
    head = next((n for n, line in enumerate(own) if line.rstrip().endswith("{")), None)
    if function.kind != "function" or head is None or len(own) < head + 3:
        return False
    if not _RETURNS.search(" ".join(own[: head + 1])):
        return False
    last = re.sub(r"\s*//.*$", "", own[-2])
    return last.rstrip().endswith(";") and _LEAVES.match(last) is None
