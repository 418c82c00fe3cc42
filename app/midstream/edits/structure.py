"""Which tokens of a hunk differ, spaces and line breaks apart where they mean nothing.

The marks of ``edits.intraline`` compare line with line; these compare all old lines with all new
ones, so that arguments on lines of their own are no change.  Strings and comments are one token
each.  Where a line begins is a token as well, if the language may take it for the end of a
statement.  In Python, its indentation is a part of it, unless the blocks that a line lies in are
the same on both sides, apart from those whose first line is marked: what an ``if`` was written
around is no change.  In doubt, nothing is said, and the plain marks stand.
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
_REACH: Final = 100
"""How many tokens away a better place is looked for."""
_ALIKE: Final = 0.5
"""Share of the shorter side that has to be on the other one; less says nothing."""
_TOKEN: Final = re.compile(r"\w+|[-+*/%=<>!&|^~?:.@]+|[^\w\s]")
_QUOTES: Final = frozenset("\"'`")
_MARKS: Final = frozenset(('"""', "'''", "`"))
"""Tokens that begin and end a string of several lines."""
_ATOMS: Final = ("string", "comment")
_SPACED: Final = re.compile(r"</|/>|=\s*\}|^\s*#\s*define\b|\\$")
"""Token kinds in which spaces mean something: markup, ``f"{value = }"``, macros, continued
lines."""
_SCRIPTS: Final = frozenset((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"))
"""Languages that end a statement with a line where the next one cannot go on with it."""
_FREE: Final = frozenset((".java", ".rs", ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh"))
"""Languages in which no statement ends with a line.  A directive of C is one comment token."""
_GO: Final = frozenset((".go",))
_BEFORE_MORE: Final = re.compile(r"(?:.*(?:[=&|^%,:;*<({[]|=>)|[-+])$")
"""The last token of a line of JavaScript that no statement ends with."""
_GOES_ON: Final = re.compile(r"[=&|^%,:;?)\]}]|\.$|[-+]$")
"""The first token of one that no statement begins with."""
_RESTRICTED: Final = frozenset(("return", "break", "continue", "throw", "yield", "async", "type"))
"""Words that JavaScript takes for a whole statement, or for a name, where the line ends."""
_HEADS: Final = frozenset(("if", "for", "while"))
_GO_ENDS: Final = re.compile(r"\w|[)\]}]$|\+\+$|--$")
"""The last token of a line of Go that ends a statement, if it is no comment."""
_OPENING: Final = {")": "(", "]": "[", "}": "{"}


class LexedLine(NamedTuple):
    """A line and its tokens, as ``code.lexing`` finds them."""

    text: str
    spans: Sequence[LexedSpan]


class _Token(NamedTuple):
    text: str
    line: int
    start: int
    stop: int
    in_text: bool = False
    """Whether it begins a line within a string."""
    first: bool = False
    """Whether nothing else stands for the beginning of its line."""

    @property
    def begins_line(self) -> bool:
        return self.text.startswith("\n")


class _BlockLine(NamedTuple):
    """A line of Python, with all that its brackets hold.

    Attributes:
        indent: The space before it.
        first: Its first token.
        last: Its last one that is no comment.
        around: The lines that open the blocks it lies in, by the tokens that begin them.
    """

    indent: str
    first: int
    last: int
    around: tuple[int, ...]


class _Side(NamedTuple):
    """One side of a hunk.

    Attributes:
        tokens: Its tokens.
        lines: Its lines by the token that begins each, in Python, if their blocks are clear.
    """

    tokens: list[_Token]
    lines: dict[int, _BlockLine]


class TokenMarks(NamedTuple):
    """What differs in the old and in the new lines, by line."""

    old: list[list[Span]]
    new: list[list[Span]]


def has_structure(path: str) -> bool:
    """Whether the spaces of a language are known to mean nothing between tokens."""
    if is_python(path):
        return True
    return grammar_of(path) is not None and _suffix(path) in _SCRIPTS | _FREE | _GO


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
    sides = _Side(olds, {}), _Side(news, {})
    if is_python(path) and (before := _blocks(olds)) and (after := _blocks(news)):
        sides = _Side(olds, before), _Side(news, after)
    pairs = _Pairs(*sides)
    visible = min(sum(not t.begins_line for t in side) for side in (olds, news))
    same = sum(to >= 0 and not t.begins_line for t, to in zip(olds, pairs.of_old, strict=True))
    if not visible or same < _ALIKE * visible:
        return None
    pairs.slide()
    pairs.part_moved()
    left, come = _left(olds, pairs.of_old), _left(news, pairs.of_new)
    if left is None or come is None:
        return None
    return TokenMarks(_spans(old, left), _spans(new, come))


class _Pairs:
    """The pairs of equal tokens of both sides, in order.

    Attributes:
        of_old: For each old token the new one, or -1.
        of_new: For each new token the old one, or -1.
    """

    def __init__(self, old: _Side, new: _Side) -> None:
        self._old = old
        self._new = new
        self.of_old = [-1] * len(old.tokens)
        self.of_new = [-1] * len(new.tokens)
        for i, j, size in equal_blocks(_texts(old), _texts(new)):
            for at in range(size):
                self._pair(i + at, j + at)

    def _pair(self, i: int, j: int) -> None:
        self.of_old[i], self.of_new[j] = j, i

    def slide(self) -> None:
        """Among equivalent places for an insertion or deletion, take that of whole lines and whole
        brackets.
        """
        _slide(self._old, self.of_old, self.of_new)
        _slide(self._new, self.of_new, self.of_old)

    def part_moved(self) -> None:
        """Part the beginnings of lines that are indented otherwise, without a mark that says why.

        The blocks around both are to be the same, in the same order, apart from those whose first
        word is marked, and to begin at the same indentation: all that is around the hunk is then
        the same, too.
        """
        moved: list[tuple[int, int]] = []
        for i, mine in self._old.lines.items():
            j = self.of_old[i]
            theirs = self._new.lines.get(j)
            if j < 0 or (theirs is not None and mine.indent == theirs.indent):
                continue
            if theirs is None or not self._within_same(mine, theirs):
                moved.append((i, j))
        for i, j in moved:
            self.of_old[i] = self.of_new[j] = -1

    def _within_same(self, mine: _BlockLine, theirs: _BlockLine) -> bool:
        olds, news = self._old.lines, self._new.lines
        if _outermost(olds, mine) != _outermost(news, theirs):
            return False
        before = [at for at in mine.around if self.of_old[olds[at].first] >= 0]
        after = [at for at in theirs.around if self.of_new[news[at].first] >= 0]
        return len(before) == len(after) and all(map(self._is_same_line, before, after))

    def _is_same_line(self, i: int, j: int) -> bool:
        mine, theirs = self._old.lines[i], self._new.lines[j]
        pairs = (i, j), (mine.first, theirs.first), (mine.last, theirs.last)
        return all(self.of_old[one] == other for one, other in pairs)


def _texts(side: _Side) -> list[str]:
    """What is compared: the beginning of a line with known blocks without its indentation."""
    return ["\n:" if at in side.lines else token.text for at, token in enumerate(side.tokens)]


def _outermost(lines: dict[int, _BlockLine], line: _BlockLine) -> str:
    return lines[line.around[0]].indent if line.around else line.indent


def _slide(side: _Side, mine: list[int], theirs: list[int]) -> None:
    """Move each run of tokens without partners that could as well be a little before or behind.

    Args:
        side: The tokens.
        mine: Their partners.
        theirs: The partners of the tokens of the other side.
    """
    texts = _texts(side)
    brackets = _brackets(texts)
    stop: int = 0
    while stop < len(texts):
        if mine[stop] >= 0:
            stop += 1
            continue
        start = stop
        while stop < len(texts) and mine[stop] < 0:
            stop += 1
        places = _places(texts, mine, start, stop)
        if len(places) == 1:
            continue
        size = stop - start
        left = {at for at in brackets if mine[at] < 0 and not start <= at < stop}
        costs: list[tuple[int, bool, int, int]] = []
        for at in places:
            run = range(at, at + size)
            others = [brackets[each] for each in run if each in brackets]
            torn = sum(other not in run and other not in left for other in others)
            begins_line = side.tokens[at].begins_line or side.tokens[at].first
            costs.append((torn, not begins_line, abs(at - start), at))
        best: int = min(costs)[-1]
        whole = range(places[0], places[-1] + size)
        partners = [mine[at] for at in whole if mine[at] >= 0]
        mine[best : best + size] = [-1] * size
        taken = [at for at in whole if not best <= at < best + size]
        for at, partner in zip(taken, partners, strict=True):
            mine[at], theirs[partner] = partner, at
        stop = max(stop, best + size)


def _places(texts: Sequence[str], mine: Sequence[int], start: int, stop: int) -> range:
    """Where a run of tokens without partners can begin, so that the rest has equal partners."""
    size = stop - start
    low = high = start
    while low > max(0, start - _REACH) and mine[low - 1] >= 0:
        if texts[low - 1] != texts[low - 1 + size]:
            break
        low -= 1
    while high + size < min(len(texts), stop + _REACH) and mine[high + size] >= 0:
        if texts[high] != texts[high + size]:
            break
        high += 1
    return range(low, high + 1)


def _brackets(texts: Sequence[str]) -> dict[int, int]:
    """For each bracket the one that it closes, or that closes it."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for at, text in enumerate(texts):
        if text in _OPENING.values():
            opened.append(at)
        elif text in _OPENING and opened and texts[opened[-1]] == _OPENING[text]:
            found[at] = opened[-1]
            found[opened.pop()] = at
    return found


def _blocks(tokens: Sequence[_Token]) -> dict[int, _BlockLine] | None:
    """The lines of Python code by the tokens that begin them, with the blocks around each.

    Returns:
        ``None`` where the lines are no whole blocks: a line is deeper than the one above, which
        opens none, or less deep than its neighbours.
    """
    found: dict[int, _BlockLine] = {}
    around: list[int] = []
    bodies: dict[int, str] = {}
    begins = [at for at, token in enumerate(tokens) if token.begins_line]
    opened = False
    for at, stop in zip(begins, [*begins[1:], len(tokens)], strict=True):
        if tokens[at].in_text:
            continue
        indent = tokens[at].text[1:]
        is_comment = tokens[at + 1].text.startswith("#")
        while not is_comment and around and len(found[around[-1]].indent) >= len(indent):
            if opened:
                return None
            around.pop()
        inside = [each for each in around if len(found[each].indent) < len(indent)]
        last = stop - 1
        while last > at + 1 and tokens[last].text.startswith("#"):
            last -= 1
        found[at] = _BlockLine(indent, at + 1, last, tuple(inside))
        if is_comment:
            continue
        block = around[-1] if around else -1
        body = bodies.setdefault(block, indent)
        if body != indent:
            if around or not body.startswith(indent):
                return None
            bodies[block] = indent  # It ends a block that begins above.
        if opened := tokens[last].text.endswith(":"):
            around.append(at)
            bodies.pop(at, None)
    return found


def _suffix(path: str) -> str:
    return path[path.rfind(".") :].lower()


def _tokens(path: str, lines: Sequence[LexedLine]) -> list[_Token] | None:
    """The tokens of lines.

    Returns:
        ``None`` where they are not lexed or too many, or where spaces may mean something.
    """
    if not any(line.spans for line in lines):
        return None
    python = is_python(path)
    breaks = _Breaks(path)
    unread = ("#",) if python else ("//", "/*", "*/")
    goes_on = False
    found: list[_Token] = []
    for number, line in enumerate(lines):
        if not line.text.strip():
            if goes_on:
                found.append(_Token("\n", number, 0, 0, in_text=True))
            continue
        if _SPACED.search(line.text):
            return None
        mine = list(_tokens_of(line, number))
        in_text = goes_on or line.text[:1].isspace()
        in_text = in_text and any(at == 0 and kind == "string" for at, _, kind in line.spans)
        first, kind = mine[0]
        if not found or (in_text and not breaks.within) or breaks.before(first.text, kind):
            indent = line.text[: len(line.text) - len(line.text.lstrip())] if python else ""
            found.append(_Token(f"\n{indent}", number, 0, len(indent), in_text))
        else:
            mine[0] = first._replace(first=True), kind
        goes_on = _ends_in_text(line, mine, goes_on=goes_on)
        for token, kind in mine:
            is_quote = not kind and token.text[0] in _QUOTES
            if is_quote and not _is_label(line, token.start):
                return None
            if not kind and token.text.startswith(unread):
                return None
            found.append(token)
            breaks.pass_by(token.text, kind)
        if len(found) > MAX_TOKENS:
            return None
    return found


class _Breaks:
    """Where the beginning of a line may be that of a statement.

    Attributes:
        within: Whether the brackets around let line breaks mean nothing.
    """

    def __init__(self, path: str) -> None:
        suffix = _suffix(path)
        self._python = is_python(path)
        self._free = suffix in _FREE
        self._go = suffix in _GO
        # A break may stand for a semicolon in curly brackets, and in all of Go.
        self._loose = "([{" if self._python else "" if self._go else "(["
        self._opened: list[tuple[bool, bool]] = []
        """For each bracket around, whether breaks mean nothing in it, and whether it is a head."""
        self._last = self._before_last = ""
        """The last tokens that are no comments; strings count as words."""
        self._after_head = False

    @property
    def within(self) -> bool:
        return bool(self._opened) and self._opened[-1][0]

    def before(self, text: str, kind: str) -> bool:
        """Whether the break before a line counts that begins with this token."""
        if self.within or self._free:
            return False
        if self._python:
            return True
        if self._go:
            return bool(_GO_ENDS.search(self._last)) and text not in (")", "]", "}")
        if self._last in _RESTRICTED:
            return True
        goes_on = not kind and _GOES_ON.match(text)
        return not (goes_on or self._after_head or _BEFORE_MORE.match(self._last))

    def pass_by(self, text: str, kind: str) -> None:
        """Take the next token."""
        if kind == "comment":
            return
        self._after_head = False
        if kind:
            text = "text"
        elif text in "([{":
            is_head = self._last in _HEADS and self._before_last != "."
            self._opened.append((text in self._loose, is_head))
        elif text in ")]}" and self._opened:
            self._after_head = self._opened.pop()[1]
        self._before_last, self._last = self._last, text


def _ends_in_text(line: LexedLine, tokens: Sequence[tuple[_Token, str]], *, goes_on: bool) -> bool:
    """Whether a string goes on in the next line, as far as its last characters tell.

    Args:
        line: The line.
        tokens: Its tokens.
        goes_on: Whether the line before ends in a string.
    """
    last, kind = tokens[-1]
    if kind != "string" or last.stop < len(line.text):
        return False
    if last.text in _MARKS:
        return not (goes_on and len(tokens) == 1)
    return last.text[-1] not in _QUOTES


def _is_label(line: LexedLine, at: int) -> bool:
    """Whether a quote stands before the name of a lifetime or a label of Rust."""
    return any(start == at and kind == "operator" for start, _, kind in line.spans)


def _tokens_of(line: LexedLine, number: int) -> Iterator[tuple[_Token, str]]:
    """The tokens of one line; of a string or a comment also the kind, else ``""``."""
    at = 0
    for start, stop, kind in _atoms(line):
        for match in _TOKEN.finditer(line.text, at, start):
            yield _Token(match.group(), number, match.start(), match.end()), ""
        yield _Token(line.text[start:stop], number, start, stop), kind
        at = stop
    for match in _TOKEN.finditer(line.text, at):
        yield _Token(match.group(), number, match.start(), match.end()), ""


def _atoms(line: LexedLine) -> list[LexedSpan]:
    """Strings and comments, their parts put together; of a comment without the space around it."""
    found: list[LexedSpan] = []
    for start, stop, kind in line.spans:
        # The lexer calls a format field in a string punctuation; its spaces mean something.
        is_field = kind == "punctuation" and " " in line.text[start:stop]
        if kind not in _ATOMS and not is_field:
            continue
        if found and found[-1][1] == start:
            found[-1] = found[-1][0], stop, found[-1][2]
        else:
            found.append((start, stop, kind))
    found = [_stripped(line.text, span) if span[2] == "comment" else span for span in found]
    return [span for span in found if span[0] < span[1]]


def _stripped(text: str, span: LexedSpan) -> LexedSpan:
    start, stop, kind = span
    inner = text[start:stop]
    return start + len(inner) - len(inner.lstrip()), start + len(inner.rstrip()), kind


def _left(tokens: Sequence[_Token], partners: Sequence[int]) -> list[_Token] | None:
    """The tokens without partners; ``None`` if one of them cannot be seen, nor one beside it."""
    left: list[_Token] = []
    run: list[_Token] = []
    for token, partner in zip((*tokens, None), (*partners, 0), strict=True):
        if token is not None and partner < 0:
            run.append(token)
            continue
        if run and all(each.start == each.stop for each in run):
            return None
        left += run
        run = []
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
