"""Whether a line of Python that a model wrote can stand where another one stood, and how far in.

Looks at one line at a time, so it cannot prove that a text is right; it says no only where a line
has become worse: brackets or quotes that no longer match, or a statement that is none any more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from midstream.edits.syntax import NOT_PYTHON, parse_python

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
    elif text.split("#")[0].rstrip().endswith(":"):
        text = text.split("#")[0] + " pass"
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


def fitted(line: str, above: Sequence[str], below: str | None) -> str:
    """Return a new line, further in or out where its indentation cannot be meant.

    Args:
        line: a new line that may stand.
        above: the lines of the result before it.
        below: the next line with content of the source.
    """
    last = next((text for text in reversed(above) if text.strip()), None)
    blocks = sum(text.count('"""') + text.count("'''") for text in above)
    neighbour = below if last is None else last
    unclear = "\t" in line or blocks % 2 or inside(above) or not line.strip()
    if neighbour is None or unclear or "\t" in neighbour or neighbour.lstrip().startswith("#"):
        return line
    at, there = _indent(line), _indent(neighbour)
    if last is None:
        wanted = there
    elif last.rstrip().endswith(":"):
        wanted = at if at > there else there + 4
    else:
        wanted = min(at, there)
    return " " * wanted + line.lstrip(" ")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
