"""Whether a line of Python that a model wrote can stand where another one stood, and how far in.

Looks at one line at a time, so it cannot prove that a text is right; it says no only where a line
has become worse: brackets or quotes that no longer match, or a statement that is none any more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from midstream.edits.syntax import NOT_PYTHON, parse_python
from midstream.engine.line_state import LineState, states

_PIECE = re.compile(
    r"""\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|(?P<rest>[\"'].*)|\#.*|(?P<bracket>[()\[\]{}])"""
)
_BEFORE = (
    ("elif ", "if x:\n pass\n"),
    ("else:", "if x:\n pass\n"),
    ("except", "try:\n pass\n"),
    ("finally:", "try:\n pass\n"),
)
"""Lines that continue a statement, and how one begins that they may continue."""


@lru_cache(maxsize=2048)
def balance(line: str) -> tuple[int, bool] | None:
    """Return how many brackets a line opens more than it closes, and whether a string stays open;
    None where that cannot be told from the line (triple quotes).
    """
    if '"""' in line or "'''" in line:
        return None
    depth, open_string = 0, False
    for piece in _PIECE.finditer(line):
        if piece["bracket"]:
            depth += 1 if piece["bracket"] in "([{" else -1
        elif piece["rest"]:
            open_string = True
    return depth, open_string


@lru_cache(maxsize=2048)
def stands_alone(line: str) -> bool:
    """Whether a line is a statement, or the first line of one with a body."""
    text = line.strip()
    if not text or text.startswith(("#", "case ")):
        return True
    before = next((head for start, head in _BEFORE if text.startswith(start)), "")
    if text.startswith("@"):
        text += "\ndef f(): pass"
    elif text.startswith("try:"):
        text += "\n pass\nfinally:\n pass"
    elif states(text.split("\n"))[-1].header >= 0:
        text += "\n pass"
    try:
        parse_python(f"{before}{text}\n")
    except NOT_PYTHON:
        return False
    return True


def inside(lines: Sequence[str]) -> bool:
    """Whether brackets are open behind some lines."""
    return sum((balance(line) or (0, False))[0] for line in lines) > 0


def may_stand(line: str, old: str | None, *, inside: bool) -> bool:
    """Whether a line may take the place of another one, or come anew where there was none.

    Args:
        line: what is to stand there.
        old: what stood there, None for a new line.
        inside: whether brackets are open that began on a line before; a part of a statement is
            judged by its brackets and quotes only.
    """
    there = (0, False) if old is None else balance(old)
    now = balance(line)
    if there is None or now is None:
        return True
    if there != now:
        return False
    if inside or there != (0, False) or (old is not None and not stands_alone(old)):
        return True
    return stands_alone(line)


def may_come(
    line: str, old: str | None, *, above: Sequence[str], source: Sequence[str], used: int
) -> bool:
    """Whether a line of an answer may be written, itself and as a part of its statement.

    Args:
        line: what is to stand there.
        old: the source line that it replaces, None for a new line.
        above: the answer's lines before it.
        source: the lines that the answer rewrites.
        used: how many of them the answer has come past, the replaced one included.
    """
    before = source[: used - (old is not None)]
    if not may_stand(line, old, inside=inside(before)):
        return False
    if balance(line) is None:  # triple quotes: what they leave open must be closed further down
        behind = states([*above, line])[-1]
        if not any(behind.open_like(state) for state in states(source)[used:]):
            return False
    return _statement_stands(above, line, old, source[used:])


def _statement_stands(
    above: Sequence[str], line: str, old: str | None, rest: Sequence[str]
) -> bool:
    """Whether a statement of several lines is still one with a line of it changed or added; True
    also where that cannot be told: it does not end, or was none before.
    """
    before = states(above)
    start = max(k for k, state in enumerate(before) if not state.inside)
    head = above[start:]
    if not head and old is None:
        return True
    old_lines = _ended(head, [] if old is None else [old], rest)
    new_lines = _ended(head, [line], rest)
    if not head and len(old_lines) <= 1 and len(new_lines) <= 1:
        return True
    if not old_lines or not stands_alone("\n".join(old_lines)):
        return True
    return bool(new_lines) and stands_alone("\n".join(new_lines))


def _ended(head: Sequence[str], middle: Sequence[str], rest: Sequence[str]) -> list[str]:
    """Return the lines of a statement up to where it ends, [] if it does not."""
    found: list[str] = []
    state = LineState()
    for number, line in enumerate([*head, *middle, *rest]):
        found.append(line)
        state = state.after(line)
        if number + 1 >= len(head) + len(middle) and not state.inside:
            return found
    return []


def fitted(line: str, above: Sequence[str], below: str | None) -> str:
    """Return a new line, further in or out where its indentation cannot be meant.

    Args:
        line: a new line that may stand.
        above: the lines of the result before it.
        below: the next line with content of the source.
    """
    state = states(above)[-1]
    if "\t" in line or state.inside or not line.strip():
        return line
    at = _indent(line)
    levels = [level for level, _ in state.blocks if level <= at]
    if state.header >= 0:
        wanted = at if at > state.header else state.header + 4
    elif state.blocks:
        wanted = max(levels, default=at)
    elif any(text.strip() for text in above) or below is None or "\t" in below:
        return line
    else:
        wanted = _indent(below)
    return " " * wanted + line.lstrip(" ")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
