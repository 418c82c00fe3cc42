"""Which tokens of a hunk differ, spaces and line breaks apart where they mean nothing.

The marks of ``edits.intraline`` compare line with line; these compare all old lines with all new
ones, so that arguments on lines of their own are no change.  Strings and comments are one token
each.  Where a line begins is a token as well, except within brackets, and in Python its indentation
is a part of it.  In doubt, nothing is said, and the plain marks stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from midstream.code.languages import grammar_of
from midstream.code.lexing import Span as LexedSpan
from midstream.code.syntax import is_python
from midstream.edits.intraline import Span
from midstream.edits.lcs import equal_blocks

MAX_TOKENS: Final = 4_000
"""Tokens of the longer side of a hunk that are compared."""
_ALIKE: Final = 0.5
"""Share of the shorter side that has to be on the other one; less says nothing."""
_TOKEN: Final = re.compile(r"\w+|[-+*/%=<>!&|^~?:.@]+|[^\w\s]")
_QUOTES: Final = frozenset("\"'`")
_ATOMS: Final = ("string", "comment")
_SPACED: Final = re.compile(r"</|/>|=\s*\}|^\s*#\s*define\b|\\$")
"""Where spaces mean something in code: markup, ``f"{value = }"``, macros, continued lines."""
_SUFFIXES: Final = frozenset((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".go", ".rs", ".java"))
_C_SUFFIXES: Final = frozenset((".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh"))


class LexedLine(NamedTuple):
    """A line and its tokens, as ``code.lexing`` finds them."""

    text: str
    spans: Sequence[LexedSpan]


class _Token(NamedTuple):
    text: str
    line: int
    start: int
    stop: int

    @property
    def begins_line(self) -> bool:
        return self.text.startswith("\n")


class TokenMarks(NamedTuple):
    """What differs in the old and in the new lines, by line."""

    old: list[list[Span]]
    new: list[list[Span]]


def has_structure(path: str) -> bool:
    """Whether the spaces of a language are known to mean nothing between tokens."""
    if is_python(path):
        return True
    suffix = path[path.rfind(".") :].lower()
    return grammar_of(path) is not None and suffix in _SUFFIXES | _C_SUFFIXES


def token_difference(
    path: str, old: Sequence[LexedLine], new: Sequence[LexedLine]
) -> TokenMarks | None:
    """The tokens that differ between the two sides of a hunk.

    What is not marked has the same tokens on both sides, in the same order.

    Args:
        path: The file, whose name tells the language.
        old: The lines that the hunk removes.
        new: The lines that it adds.

    Returns:
        ``None`` where the comparison is in doubt.
    """
    if not old or not new or not has_structure(path):
        return None
    olds, news = _tokens(path, old), _tokens(path, new)
    if olds is None or news is None:
        return None
    blocks = equal_blocks([token.text for token in olds], [token.text for token in news])
    visible = min(sum(not t.begins_line for t in side) for side in (olds, news))
    same = sum(not token.begins_line for i, _, size in blocks for token in olds[i : i + size])
    if not visible or same < _ALIKE * visible:
        return None
    left = _left(olds, [(i, size) for i, _, size in blocks])
    come = _left(news, [(j, size) for _, j, size in blocks])
    if left is None or come is None:
        return None
    return TokenMarks(_spans(old, left), _spans(new, come))


def _tokens(path: str, lines: Sequence[LexedLine]) -> list[_Token] | None:
    """The tokens of lines.

    Returns:
        ``None`` where they are not lexed or too many, or where spaces may mean something.
    """
    python, depth = is_python(path), 0
    # Between curly brackets of other languages are statements, which a line break may end.
    opening, closing = ("([{", ")]}") if python else ("([", ")]")
    comment = ("#",) if python else ("#", "//", "/*", "*/")
    found: list[_Token] = []
    if not any(line.spans for line in lines):
        return None
    for number, line in enumerate(lines):
        if not line.text.strip():
            continue
        if _SPACED.search(line.text):
            return None
        if depth == 0:
            indent = line.text[: len(line.text) - len(line.text.lstrip())] if python else ""
            found.append(_Token(f"\n{indent}", number, 0, len(indent)))
        for token, is_atom in _tokens_of(line, number):
            found.append(token)
            text = token.text
            if is_atom:
                continue
            if text[0] in _QUOTES or text.startswith(comment):
                return None
            if text in opening:
                depth += 1
            elif text in closing:
                depth = max(0, depth - 1)
            elif text == "{" and depth:
                return None
        if len(found) > MAX_TOKENS:
            return None
    return found


def _tokens_of(line: LexedLine, number: int) -> Iterator[tuple[_Token, bool]]:
    """The tokens of one line, and whether each is an atom."""
    at = 0
    for start, stop in _atoms(line):
        for match in _TOKEN.finditer(line.text, at, start):
            yield _Token(match.group(), number, match.start(), match.end()), False
        yield _Token(line.text[start:stop], number, start, stop), True
        at = stop
    for match in _TOKEN.finditer(line.text, at):
        yield _Token(match.group(), number, match.start(), match.end()), False


def _atoms(line: LexedLine) -> list[tuple[int, int]]:
    """Strings and comments, their parts put together."""
    found: list[tuple[int, int]] = []
    for start, stop, kind in line.spans:
        # The lexer calls a format field in a string punctuation; its spaces mean something.
        is_field = kind == "punctuation" and " " in line.text[start:stop]
        if kind not in _ATOMS and not is_field:
            continue
        if found and found[-1][1] == start:
            found[-1] = found[-1][0], stop
        else:
            found.append((start, stop))
    return found


def _left(tokens: Sequence[_Token], blocks: Sequence[tuple[int, int]]) -> list[_Token] | None:
    """The tokens outside of blocks; ``None`` if one of them cannot be seen, nor one beside it."""
    left: list[_Token] = []
    at = 0
    for first, size in (*blocks, (len(tokens), 0)):
        run = tokens[at:first]
        if run and all(token.start == token.stop for token in run):
            return None
        left += run
        at = first + size
    return left


def _spans(lines: Sequence[LexedLine], tokens: Sequence[_Token]) -> list[list[Span]]:
    """The characters of tokens, by line; what only spaces divide is one span."""
    spans: list[list[Span]] = [[] for _ in lines]
    for token in tokens:
        if token.start == token.stop:
            continue
        mine = spans[token.line]
        if mine and not lines[token.line].text[mine[-1].stop : token.start].strip():
            mine[-1] = Span(mine[-1].start, token.stop)
        else:
            mine.append(Span(token.start, token.stop))
    return spans
