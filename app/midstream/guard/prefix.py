"""Making the first lines of a Python file parse: close what is open, or say that one must wait.

A stream is cut after every finished line, mostly in the middle of a block.  ``PrefixLexer`` follows
the text line by line and knows whether a statement is still open (inside brackets, a string, or
after a backslash).  If none is, ``closing()`` gives the few lines that turn the prefix into a
module: ``pass`` after a header, a stub after a decorator, ``finally: pass`` for every open ``try``
(not ``except``, which a linter would report).

It is a lexer, not a checker: for text that is not Python its answers are undefined but harmless.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_CODE = re.compile(
    r"""(?P<comment>\#.*)
    | (?P<string>\b[rRbBuUfFtT]{0,2}(?:\"{3}|'{3}|\"|')|\"{3}|'{3}|\"|')
    | (?P<open>[(\[{])
    | (?P<close>[)\]}])
    | (?P<colon>:)
    | (?P<bang>!(?!=))
    """,
    re.VERBOSE,
)
_SIMPLE = re.compile(r"""[^"'#\\()\[\]{}]*(?:\([^"'#\\()\[\]{}]*\)[^"'#\\()\[\]{}]*)*$""")
"""No string, no comment, and every bracket is closed again at once: most lines."""
_STOPS = {quote: re.compile(rf"\\|{quote}") for quote in ('"', "'", '"""', "'''")}
_KEYWORD = re.compile(r"(?:async\s+)?([a-zA-Z_]+)")


@dataclass(slots=True)
class _String:
    """An open string literal."""

    quote: str
    raw: bool
    formatted: bool
    spec: bool = False
    """Inside the format specification of a replacement field."""

    @property
    def triple(self) -> bool:
        return len(self.quote) == 3


@dataclass(slots=True)
class _OpenBlock:
    """A compound statement that has been opened at some indentation."""

    indent: str
    keyword: str
    needs_handler: bool
    lines: tuple[str, ...] = ()
    """The header as written, for functions and classes."""
    number: int = 0
    """The header's first line, counted from the first one fed."""


_CLAUSES: Final = frozenset({"elif", "else", "except", "finally"})
_STAND_INS: Final = {
    "for": ("while 1:",),
    "while": ("while 1:",),
    "try": ("try:",),
    "except": ("try: pass", "except Exception:"),
    "else": ("try: pass", "except Exception: pass", "else:"),
    "match": ("match 1:",),
    "case": ("case 1:",),
}
"""The opener of a block after which the same clauses may follow; ``if 1:`` for all others."""


class PrefixLexer:
    """Follows a Python text line by line."""

    def __init__(self) -> None:
        self._stack: list[_String | str] = []
        self._blocks: list[_OpenBlock] = []
        self._continued = False
        self._statement: list[str] = []
        self._fed = 0
        self._header: _OpenBlock | None = None
        self._decorator: str | None = None
        self._ends_with_colon = False

    @property
    def open(self) -> bool:
        """Whether the last statement is still unfinished."""
        return bool(self._stack) or self._continued

    def feed(self, line: str) -> None:
        """Take the next line, with or without its terminator."""
        line = line.rstrip("\r\n")
        self._fed += 1
        fresh = not self.open
        if fresh:
            if not (body := line.lstrip()) or body[0] == "#":
                return
            self._statement = []
            self._ends_with_colon = False
        self._statement.append(line)
        self._scan(line)
        if not self.open:
            self._end_statement()

    def closing(self) -> list[str]:
        """Return the lines that complete the text so far; only meaningful while not ``open``."""
        lines: list[str] = []
        blocks = list(self._blocks)
        if self._decorator is not None:
            lines.append(f"{self._decorator}def _(): pass")
        elif self._header is not None:
            inner = self._header.indent + ("\t" if "\t" in self._header.indent else " ")
            body = "case _: pass" if self._header.keyword == "match" else "pass"
            lines.append(inner + body)
            blocks.append(self._header)
        for block in reversed(blocks):
            if block.needs_handler:
                lines.append(f"{block.indent}finally: pass")
        return lines

    def context(self, line: str) -> list[str]:
        """Lines that put a statement beginning with ``line`` into its place.

        They stand for everything that was fed: the headers of the open blocks (as written for
        functions and classes), and a partner for a clause such as ``else``.
        """
        width = _width(line)
        match = _KEYWORD.match(line.lstrip())
        clause = match is not None and match.group(1) in _CLAUSES
        context: list[str] = []
        blocks = [*self._blocks, *([self._header] if self._header is not None else [])]
        for block in blocks:
            if _width(block.indent) < width:
                context += block.lines or _stand_ins(block)
            elif _width(block.indent) == width and clause:
                inner = block.indent + ("\t" if "\t" in block.indent else " ")
                context += [*_stand_ins(block), f"{inner}pass"]
        return context

    @property
    def unfinished(self) -> list[str]:
        """The lines of the unfinished statement so far."""
        return list(self._statement) if self.open else []

    @property
    def function(self) -> int | None:
        """The line at which the outermost open function begins, counted from the first one fed."""
        blocks = [*self._blocks, *([self._header] if self._header is not None else [])]
        return next((block.number for block in blocks if block.keyword == "def"), None)

    # Characters

    def _scan(self, line: str) -> None:
        self._continued = False
        if not self._stack and _SIMPLE.match(line):
            self._ends_with_colon = line.rstrip().endswith(":")
            return
        position = 0
        while position < len(line):
            top = self._stack[-1] if self._stack else None
            if isinstance(top, _String):
                position = self._scan_string(line, position, top)
            else:
                position = self._scan_code(line, position)
        top = self._stack[-1] if self._stack else None
        if isinstance(top, _String) and not top.triple and not self._continued:
            self._drop_strings()  # an unterminated literal is not Python: do not wait for its end

    def _scan_code(self, line: str, position: int) -> int:
        match = _CODE.search(line, position)
        between = line[position : match.start() if match else len(line)]
        if between.strip():
            self._ends_with_colon = False
        if match is None:
            if line.endswith("\\"):
                self._continued = True
            return len(line)
        kind, text = match.lastgroup, match.group()
        if kind == "comment":
            return len(line)
        if kind == "string":
            self._ends_with_colon = False
            quote = text.lstrip("rRbBuUfFtT")
            prefix = text[: -len(quote)].lower()
            self._stack.append(_String(quote, "r" in prefix, "f" in prefix or "t" in prefix))
        elif kind == "open":
            self._stack.append(text)
        elif kind == "close":
            if self._stack and isinstance(self._stack[-1], str):
                self._stack.pop()
            self._ends_with_colon = False
        elif self._in_field():
            if kind == "colon":
                outer = self._stack[-2]
                assert isinstance(outer, _String)
                outer.spec = True
                self._stack.pop()
        elif kind == "colon":
            self._ends_with_colon = not self._stack
        return match.end()

    def _in_field(self) -> bool:
        """Whether the innermost bracket is the brace of an f-string's replacement field."""
        return (
            len(self._stack) > 1
            and self._stack[-1] == "{"
            and isinstance(self._stack[-2], _String)
            and self._stack[-2].formatted
        )

    def _scan_string(self, line: str, position: int, string: _String) -> int:
        index = position
        if not string.formatted:
            match = _STOPS[string.quote].search(line, position)
            if match is None:
                return len(line)
            index = match.start()
        while index < len(line):
            char = line[index]
            if char == "\\" and not (
                string.raw and string.formatted and line[index + 1 : index + 2] in "{}"
            ):
                if index + 1 >= len(line):
                    self._continued = True
                    return len(line)
                index += 2
                continue
            if string.formatted and char == "{":
                if not string.spec and line.startswith("{{", index):
                    index += 2
                    continue
                self._stack.append("{")
                return index + 1
            if string.formatted and char == "}":
                string.spec = False
            elif line.startswith(string.quote, index):
                self._stack.pop()
                return index + len(string.quote)
            index += 1
        return index

    def _drop_strings(self) -> None:
        while self._stack and isinstance(self._stack[-1], _String):
            self._stack.pop()

    # Statements

    def _end_statement(self) -> None:
        text = self._statement[0]
        indent = text[: len(text) - len(text.lstrip())]
        body = text[len(indent) :]
        match = _KEYWORD.match(body)
        keyword = match.group(1) if match else ""
        if self._header is not None:
            self._blocks.append(self._header)
            self._header = None
        while self._blocks and len(self._blocks[-1].indent.expandtabs()) >= len(
            indent.expandtabs()
        ):
            block = self._blocks[-1]
            same = len(block.indent.expandtabs()) == len(indent.expandtabs())
            if same and block.needs_handler and keyword in ("except", "finally"):
                break
            self._blocks.pop()
        if self._blocks and self._blocks[-1].needs_handler and keyword in ("except", "finally"):
            self._blocks.pop()
        self._decorator = indent if body.startswith("@") else None
        if self._ends_with_colon:
            number = self._fed - len(self._statement)
            lines = tuple(self._statement) if keyword in ("def", "class") else ()
            self._header = _OpenBlock(indent, keyword, keyword == "try", lines, number)
        elif re.match(r"try\s*:", body):
            self._blocks.append(_OpenBlock(indent, keyword, needs_handler=True))


def _width(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip())].expandtabs())


def _stand_ins(block: _OpenBlock) -> list[str]:
    return [block.indent + header for header in _STAND_INS.get(block.keyword, ("if 1:",))]


def complete_prefix(lines: list[str]) -> str | None:
    """The first lines of a text as a module that parses; None while a statement is unfinished."""
    lexer = PrefixLexer()
    for line in lines:
        lexer.feed(line)
    if lexer.open:
        return None
    return "\n".join([*lines, *lexer.closing(), ""])
