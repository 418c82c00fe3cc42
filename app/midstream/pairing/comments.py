"""Instructions written as comments in a file: ``# rename x to total AI!``.

The convention is aider's: a comment that begins or ends with ``AI!`` asks for a change, one with
``AI?`` asks a question, and comments directly above it that are marked with a plain ``AI`` belong
to it.  Pure text in, text out; ``errands`` decides when such a comment is carried out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_COMMENT = re.compile(r"(?P<code>|.*?\s)(?P<mark>#+|//+|--|;+)\s*(?P<text>\S.*?)\s*")
_FIRST = re.compile(r"ai\b(?P<sign>[!?]?)(?![\w-])[\s:,]*(?P<rest>.*)", re.IGNORECASE)
_LAST = re.compile(r"(?P<rest>.*?)[\s,:]*(?<![\w-])ai(?P<sign>[!?]?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AiComment:
    """A comment that is meant for the model.

    Attributes:
        start: Its first line, 0-based.
        stop: The line after its last.
        text: What it says, without the marks.
        kind: ``change`` for ``AI!``, ``question`` for ``AI?``.
    """

    start: int
    stop: int
    text: str
    kind: Literal["change", "question"]


@dataclass(frozen=True, slots=True)
class _Marked:
    indent: int
    whole: bool
    text: str
    sign: str


def find_comments(lines: Sequence[str]) -> list[AiComment]:
    """The comments of a file that ask the model for something, by position.

    Args:
        lines: The file, without terminators.
    """
    found: list[AiComment] = []
    above: list[str] = []
    indent = 0
    for number, line in enumerate(lines):
        marked = _marked(line)
        if marked is None:
            above = []
            continue
        if not marked.whole or (above and marked.indent != indent):
            above = []
        indent = marked.indent
        if not marked.sign:
            above = [*above, marked.text] if marked.whole else []
            continue
        text = " ".join(part for part in (*above, marked.text) if part)
        if text:
            kind = "change" if marked.sign == "!" else "question"
            found.append(AiComment(number - len(above), number + 1, text, kind))
        above = []
    return found


def without_comments(lines: Sequence[str]) -> list[str]:
    """The lines without the comments that ``find_comments`` finds; code before them stays."""
    kept = list(lines)
    for comment in reversed(find_comments(lines)):
        match = _COMMENT.fullmatch(lines[comment.stop - 1])
        code = match["code"].rstrip() if match is not None else ""
        kept[comment.start : comment.stop] = [code] if code else []
    return kept


def _marked(line: str) -> _Marked | None:
    """What a line says to the model, ``None`` if nothing."""
    if "ai" not in line.lower():
        return None
    comment = _COMMENT.fullmatch(line)
    if comment is None:
        return None
    first, last = _FIRST.fullmatch(comment["text"]), _LAST.fullmatch(comment["text"])
    if first is None and last is None:
        return None
    sign = (first["sign"] if first else "") or (last["sign"] if last else "")
    text = last["rest"] if last else comment["text"]
    if first is not None:
        text = text[first.start("rest") :]
    code = comment["code"]
    return _Marked(len(code), not code.strip(), text.strip(), sign)
