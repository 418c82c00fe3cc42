"""What the lines of Python so far leave open for the next one: brackets, strings, blocks.

A scanner of lines that knows no grammar: it follows brackets, quotes and indentation, which is
enough to say that a line cannot come next. It never says that a text is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

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
        depth: brackets that are open.
        quote: the triple quote that is open, or "".
        joined: whether a backslash joins the next line.
        indent: columns of blanks before the statement that is open or came last.
        header: columns of blanks before a statement that needs a body now, or -1.
        blocks: for each block that is open, its indentation and the first word of its last
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
        """Whether the next line goes on with a statement."""
        return bool(self.depth > 0 or self.quote or self.joined)

    def open_like(self, other: LineState) -> bool:
        """Whether the same brackets and strings are open as behind another line."""
        mine = (self.depth, self.quote, self.joined)
        return mine == (other.depth, other.quote, other.joined)

    @property
    def unfinished(self) -> bool:
        """Whether a block or a handler must follow."""
        return self.header >= 0 or any(word == "try" for _, word in self.blocks)

    def may_follow(self, line: str) -> bool:
        """Whether a line can come next as far as its indentation and first word tell."""
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
        """Return what is open behind the next line."""
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
    """Return what is open before each line and behind the last one."""
    found = [first or LineState()]
    for line in lines:
        found.append(found[-1].after(line))
    return found


def is_regular(lines: Sequence[str], found: Sequence[LineState]) -> bool:
    """Whether lines, with the states before each and behind the last, follow each other as
    `LineState` expects it: indented by blanks only, and with nothing open behind them.
    """
    return (
        not any("\t" in line[: len(line) - len(line.lstrip())] for line in lines)
        and all(state.may_follow(line) for state, line in zip(found, lines, strict=False))
        and not found[-1].inside
        and not found[-1].unfinished
    )
