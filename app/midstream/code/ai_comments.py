"""Instructions written as comments in a file: ``# rename x to total AI!``.

The convention is aider's: a comment that begins or ends with ``AI!`` asks for a change, one with
``AI?`` asks a question, and comments directly above it that are marked with a plain ``AI`` belong
to it.  The language's lexer decides what a comment is, so text in a docstring is none.  Pure text
in, text out; ``background`` decides when a comment is carried out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from midstream.code.lexing import LineLexer

_COMMENT = re.compile(r"(?P<code>|.*?\s)(?P<mark>#+|//+|--|;+)\s*(?P<text>\S.*?)\s*")
_FIRST = re.compile(r"ai\b(?P<sign>[!?]?)(?![\w-])[\s:,]*(?P<rest>.*)", re.IGNORECASE)
_LAST = re.compile(r"(?P<rest>.*?)[\s,:]*(?<![\w-])ai(?P<sign>[!?]?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AiComment:
    """A comment for the model.

    Attributes:
        start: Its first line, 0-based.
        stop: The line after its last.
        text: Its text, without the marks.
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
    column: int


def find_comments(lines: Sequence[str], path: str = "") -> list[AiComment]:
    """The comments of a file that are for the model, by position.

    Args:
        lines: The file, without terminators.
        path: Its path, for the language; in an unknown one the marks alone decide.
    """
    found: list[AiComment] = []
    above: list[str] = []
    indent = 0
    is_comment = _Comments(path, lines)
    for number, line in enumerate(lines):
        marked = _marked(line)
        if marked is not None and not is_comment(number, marked.column):
            marked = None
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


def without_comments(lines: Sequence[str], path: str = "") -> list[str]:
    """The lines without the comments that ``find_comments`` finds; code before them stays."""
    kept = list(lines)
    for comment in reversed(find_comments(lines, path)):
        match = _COMMENT.fullmatch(lines[comment.stop - 1])
        code = match["code"].rstrip() if match is not None else ""
        kept[comment.start : comment.stop] = [code] if code else []
    return kept


class _Comments:
    """Which positions of a text are in comments; lexes it on first use."""

    def __init__(self, path: str, lines: Sequence[str]) -> None:
        self._path = path
        self._lines = lines
        self._lexer: LineLexer | None = None

    def __call__(self, line: int, column: int) -> bool:
        if not self._path:
            return True
        if self._lexer is None:
            self._lexer = LineLexer(self._path, self._lines)
        self._lexer.advance(line + 1)
        spans = self._lexer.spans(line)
        kinds = [kind for start, stop, kind in spans if start <= column < stop]
        return "comment" in kinds if spans else True


def _marked(line: str) -> _Marked | None:
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
    return _Marked(len(code), not code.strip(), text.strip(), sign, comment.start("mark"))
