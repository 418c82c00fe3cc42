"""Lines of Python that a model writes: what they leave open, and whether another line may follow.

Two scanners that know no grammar. ``LineState`` follows brackets, quotes and indentation over many
lines, which is enough to say that a line cannot come next. ``may_stand`` and ``may_come`` look at
one line in place of another, and refuse it only where it has become worse: brackets or quotes that
no longer match, or a statement that is none any more. Neither ever proves that a text is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from midstream.code.syntax import NOT_PYTHON, parse_python

_PIECE = re.compile(
    r"""(?P<triple>\"\"\"|''')|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|(?P<comment>\#.*)"""
    r"""|(?P<bracket>[()\[\]{}])"""
)
_FIRST_WORD = re.compile(r"(?:async\s+)?(\w+)")
_CONTINUES = {
    "elif": ("if", "elif"),
    "else": ("if", "elif", "for", "while", "except"),
    "except": ("try", "except"),
    "finally": ("try", "except", "else"),
}
"""Statements that go on with another one, and which ones those are."""


@dataclass(frozen=True, slots=True)
class LineState:
    """What is open behind a line.

    Attributes:
        depth: Brackets that are open.
        quote: The triple quote that is open, or "".
        joined: Whether a backslash joins the next line.
        indent: Columns of blanks before the statement that is open or came last.
        header: Columns of blanks before a statement that needs a body now, or -1.
        blocks: For each block that is open, its indentation and the first word of its last
            statement.
    """

    depth: int = 0
    quote: str = ""
    joined: bool = False
    indent: int = 0
    header: int = -1
    blocks: tuple[tuple[int, str], ...] = ()

    @property
    def inside(self) -> bool:
        """Whether the next line continues a statement."""
        return bool(self.depth > 0 or self.quote or self.joined)

    def open_like(self, other: LineState) -> bool:
        """Whether the same brackets and strings are open as after another line."""
        mine = (self.depth, self.quote, self.joined)
        return mine == (other.depth, other.quote, other.joined)

    @property
    def unfinished(self) -> bool:
        """Whether a block or a handler must follow."""
        return self.header >= 0 or any(word == "try" for _, word in self.blocks)

    def may_follow(self, line: str) -> bool:
        """Whether a line can come next, judging by its indentation and first word."""
        text = line.lstrip(" ")
        if self.inside or not text or text[0] in "#\t\f":
            return True
        at = len(line) - len(text)
        if self.header >= 0:
            return at > self.header
        if not self.blocks:
            return True
        word = next((word for level, word in self.blocks if level == at), None)
        inner = [word for level, word in self.blocks if level > at]
        before = _CONTINUES.get(_first_word(text))
        if word is None or "try" in inner:
            return False
        return word in before if before else word != "try"

    @lru_cache(maxsize=2048)  # noqa: B019 - states are few and small; every line is asked for often
    def after(self, line: str) -> LineState:
        depth, quote, code = self.depth, self.quote, ""
        at = 0
        if quote:
            end = line.find(quote)
            if end < 0:
                return self
            at, quote = end + 3, ""
        while (piece := _PIECE.search(line, at)) is not None:
            code += line[at : piece.start()]
            at = piece.end()
            if piece["triple"]:
                end = line.find(piece["triple"], at)
                if end < 0:
                    quote, at = piece["triple"], len(line)
                    break
                at = end + 3
            elif piece["bracket"]:
                depth += 1 if piece["bracket"] in "([{" else -1
            code += "" if piece["comment"] else "x"
        code = (code + line[at:]).rstrip()
        text = line.lstrip(" \t")
        indent, blocks = self.indent, self.blocks
        if not self.inside:
            if not text or text[0] == "#":
                return self
            indent = len(line) - len(text)
            outer = [block for block in blocks if block[0] < indent]
            blocks = (*outer, (indent, _first_word(text)))
        joined = code.endswith("\\")
        ends = code.endswith(":") and depth <= 0 and not quote
        return LineState(max(depth, 0), quote, joined, indent, indent if ends else -1, blocks)


def _first_word(text: str) -> str:
    found = _FIRST_WORD.match(text)
    return found[1] if found else ""


def states(lines: Iterable[str], first: LineState | None = None) -> list[LineState]:
    """What is open before each line and after the last one."""
    found = [first or LineState()]
    for line in lines:
        found.append(found[-1].after(line))
    return found


def is_regular(lines: Sequence[str], found: Sequence[LineState]) -> bool:
    """Whether lines, with the states before each and behind the last, follow each other as
    ``LineState`` expects it: indented by blanks only, and with nothing open behind them.
    """
    return (
        not any("\t" in line[: len(line) - len(line.lstrip())] for line in lines)
        and all(state.may_follow(line) for state, line in zip(found, lines, strict=False))
        and not found[-1].inside
        and not found[-1].unfinished
    )


_LINE_PIECE = re.compile(
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
    for piece in _LINE_PIECE.finditer(line):
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
    return sum((balance(line) or (0, False))[0] for line in lines) > 0


def may_stand(line: str, old: str | None, *, inside: bool) -> bool:
    """Whether a line may replace another one, or be added.

    Args:
        line: The new line.
        old: The line that it replaces, None for an added one.
        inside: Whether brackets are open that began on a line before; a part of a statement is
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
    """Whether a line of an answer may be written, on its own and as part of its statement.

    Args:
        line: The new line.
        old: The source line that it replaces, None for a new line.
        above: The answer's lines before it.
        source: The lines that the answer rewrites.
        used: How many of them the answer has passed, the replaced one included.
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
    """The lines of a statement up to its end; [] if it does not end."""
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
        line: A new line that may stand.
        above: The lines of the result before it.
        below: The next line with content of the source.
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
