"""Syntax tokens of source lines, lexed lazily and resumable at line starts.

A ``LineLexer`` runs a pygments lexer over a text that may still grow.  It keeps the lexer's
state at the start of nearly every line, so that appending a line or looking at one in the middle
costs that line and not the file; tokens are kept for recently used lines only.  pygments is
imported on first use.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pygments.lexer import Lexer

    from midstream.code.lexing_rules import RulesByCharacter

Span = tuple[int, int, str]
"""Start column, end column and kind; columns count characters."""
Stack = tuple[str, ...]

KINDS: Final = (
    *("keyword", "string", "number", "comment", "function", "type", "constant", "decorator"),
    *("builtin", "operator", "punctuation"),
)
"""Every kind a span can have; text outside spans is plain."""

MAX_LINE_LENGTH: Final = 4_000
"""A text with a longer line (minified code, data) is not lexed at all."""
_KEPT_LINES: Final = 4_096
"""Lines of a text whose tokens are kept; a quarter of them is dropped at a time."""
_REMEMBERED: Final = 16_384
"""Lines that are remembered of all texts; then they are forgotten at once."""
_memory: dict[tuple[str, Stack, str], tuple[tuple[Span, ...], Stack]] = {}
"""Lines lexed before: language, state and text, to tokens and the state after."""

_KIND_OF: Final = {
    "Keyword.Constant": "constant",
    "Keyword.Type": "type",
    "Keyword": "keyword",
    "Operator.Word": "keyword",
    "Operator": "operator",
    "Punctuation": "punctuation",
    "Literal.String.Interpol": "punctuation",
    "Literal.String": "string",
    "Literal.Number": "number",
    "Literal": "string",
    "Comment": "comment",
    "Name.Function.Magic": "function",
    "Name.Function": "function",
    "Name.Class": "type",
    "Name.Exception": "type",
    "Name.Namespace": "plain",
    "Name.Decorator": "decorator",
    "Name.Builtin": "builtin",
    "Name.Constant": "constant",
    "Name.Tag": "keyword",
    "Name.Attribute": "function",
    "Name.Label": "function",
    "Generic.Heading": "keyword",
    "Generic.Subheading": "keyword",
}


@lru_cache(maxsize=1_024)
def _kind(token_type: Any) -> str:
    """The kind of a pygments token type: that of its nearest named ancestor, or ``"plain"``."""
    while token_type:
        kind = _KIND_OF.get(".".join(token_type))
        if kind is not None:
            return kind
        token_type = token_type.parent
    return "plain"


@lru_cache(maxsize=64)
def _lexer_for_name(name: str) -> Lexer | None:
    if not name:  # No file is open: nothing is loaded for it before the first paint.
        return None
    from pygments import lexers
    from pygments.util import ClassNotFound

    try:
        return lexers.get_lexer_for_filename(name)  # pyright: ignore[reportUnknownMemberType]
    except ClassNotFound:
        return None


def language_of(path: str) -> str:
    """The name of the language a path's ending stands for, or ``""``; reads no file."""
    lexer = _lexer_for_name(_representative(path))
    return "" if lexer is None else lexer.name


def _representative(path: str) -> str:
    """A file name with the same ending, so that one lexer serves all files of a kind."""
    name = path.replace("\\", "/").rpartition("/")[2]
    stem, dot, ending = name.rpartition(".")
    return f"x.{ending}" if stem and dot else name


def meet(path: str, lines: Sequence[str]) -> None:
    """Read the rules of a language as far as some lines need them (blocking).

    Pygments reads the patterns of all names at the first, which takes 80 ms, and the rules of each
    language take some 10 ms more when they are met for the first time.
    """
    LineLexer(path, lines).advance(len(lines))


class LineLexer:
    """Tokens by line for one text.

    Args:
        path: Names the language by its ending; a path without a known lexer gives no spans.
        lines: The text so far, without terminators.
        stack: The lexer state to begin in, where the lines are a part of a longer text
            (from ``resume_at`` of that text's lexer).
    """

    def __init__(self, path: str, lines: Iterable[str] = (), *, stack: Stack | None = None) -> None:
        self._lexer = _lexer_for_name(_representative(path))
        self._rules: dict[str, RulesByCharacter] | None = _regex_rules(self._lexer)
        self._text = ""
        self._starts: array[int] = array("Q", [0])
        self._stacks: list[Stack | None] = [stack or ("root",)]
        self._interned: dict[Stack, Stack] = {}
        self._frontier = 0
        self._spans: dict[int, tuple[Span, ...]] = {}
        self.append(lines)

    def __len__(self) -> int:
        return len(self._starts) - 1

    @property
    def ready(self) -> int:
        """Lines before this one have been passed; their ``spans`` are cheap."""
        return len(self) if self._rules is None else min(self._frontier, len(self))

    def append(self, lines: Iterable[str]) -> None:
        """Add lines at the end of the text."""
        parts = list(lines)
        if not parts:
            return
        sizes = list(map(len, parts))
        if max(sizes) > MAX_LINE_LENGTH:
            self._lexer = self._rules = None
        ends = accumulate(
            sizes, lambda position, size: position + size + 1, initial=self._starts[-1]
        )
        self._starts.extend(islice(ends, 1, None))
        parts.append("")
        self._text += "\n".join(parts)

    def advance(self, stop: int, *, limit: int | None = None) -> bool:
        """Pass all lines before ``stop``.

        Args:
            stop: The first line that is not needed; may lie beyond the text.
            limit: Most lines to pass now, so that a caller can watch its clock.

        Returns:
            Whether the lines before ``stop`` are ready.
        """
        stop = min(stop, len(self))
        if self._rules is None or self._frontier >= stop:
            return True
        reach = stop if limit is None else min(stop, self._frontier + limit)
        while self._frontier < reach:
            self._frontier = self._pass_line(self._frontier)
        return self._frontier >= stop

    def spans(self, line: int) -> tuple[Span, ...]:
        """The tokens of one line, ``()`` where it is not ready (see ``advance``) or not lexed."""
        known = self._spans.get(line)
        if known is not None:
            return known
        if self._lexer is None or not 0 <= line < len(self):
            return ()
        if self._rules is None:
            text = self._text[self._starts[line] : self._starts[line + 1]]
            return self._keep(line, _stateless(self._lexer, text))
        if line >= self._frontier:
            return ()
        self._lex(self._checkpoint(line), line + 1)
        return self._spans.get(line, ())

    def preview(self, text: str) -> tuple[Span, ...]:
        """The tokens ``text`` would have as the next line; ``()`` while lines above are unread."""
        if self._lexer is None or len(text) > MAX_LINE_LENGTH:
            return ()
        if self._rules is None:
            return _stateless(self._lexer, text + "\n")
        stack = self._stacks[len(self)] if len(self._stacks) > len(self) else None
        if stack is None:
            return ()
        line = LineLexer.__new__(LineLexer)
        line._lexer, line._rules = self._lexer, self._rules
        line._text, line._starts = f"{text}\n", array("Q", [0, len(text) + 1])
        line._stacks, line._interned, line._frontier = (
            list[Stack | None]([stack]),
            self._interned,
            1,
        )
        line._spans = {}
        return line.spans(0)

    def resume_at(self, line: int) -> tuple[int, Stack]:
        """The nearest line above with a known state, and that state."""
        self.advance(line)
        first = self._checkpoint(line)
        return first, self._stacks[first] or ("root",)

    def _pass_line(self, line: int) -> int:
        """Lex one line, or all lines of a multi-line token; returns the line after.

        A rewrite repeats most lines of its region, so results are cached by line and state.
        """
        stack = self._stacks[line] if line < len(self._stacks) else None
        if stack is None:
            return self._lex(self._checkpoint(line), line + 1)
        name = "" if self._lexer is None else self._lexer.name
        key = (name, stack, self._text[self._starts[line] : self._starts[line + 1]])
        known = _memory.get(key)
        if known is not None:
            self._keep(line, known[0])
            self._mark(line + 1, list(known[1]))
            return line + 1
        after = self._lex(line, line + 1)
        end = self._stacks[line + 1] if line + 1 < len(self._stacks) else None
        spans = self._spans.get(line)
        if after == line + 1 and end is not None and spans is not None:
            if len(_memory) >= _REMEMBERED:
                _memory.clear()
            _memory[key] = (spans, end)
        return after

    def _checkpoint(self, line: int) -> int:
        line = min(line, len(self._stacks) - 1)
        while self._stacks[line] is None:
            line -= 1
        return line

    def _keep(self, line: int, spans: tuple[Span, ...]) -> tuple[Span, ...]:
        if len(self._spans) >= _KEPT_LINES:
            for old in list(self._spans)[: _KEPT_LINES // 4]:
                del self._spans[old]
        self._spans[line] = spans
        return spans

    def _mark(self, line: int, stack: list[str]) -> None:
        stacks = self._stacks
        while len(stacks) <= line:
            stacks.append(None)
        frozen = tuple(stack)
        stacks[line] = self._interned.setdefault(frozen, frozen)

    def _lex(self, first: int, stop: int) -> int:
        """Run the rules from the checkpoint at ``first`` to ``stop`` or later; the first line not
        passed.
        """
        rules, lexer, text, starts = self._rules, self._lexer, self._text, self._starts
        if rules is None:
            return stop
        simple = _token_type()
        stack = list(self._stacks[first] or ("root",))
        position, line, end = starts[first], first, starts[stop]
        spans: list[Span] = []
        limit = len(self)

        def put(at: int, kind: str, value: str) -> None:
            nonlocal line, spans
            if line < limit and at < starts[line + 1] and "\n" not in value:
                if value and kind != "plain":
                    column = at - starts[line]
                    spans.append((column, column + len(value), kind))
                return
            for part in value.split("\n"):
                while line < limit and at >= starts[line + 1]:
                    self._keep(line, tuple(spans))
                    line, spans = line + 1, []
                if part and kind != "plain":
                    column = at - starts[line]
                    spans.append((column, column + len(part), kind))
                at += len(part) + 1

        while position < end:
            for match_rule, action, new_state in rules[stack[-1]][text[position]]:
                match = match_rule(text, position)
                if match is None:
                    continue
                if action is not None:
                    if type(action) is simple:
                        put(position, _kind(action), match.group())
                    else:
                        for at, token_type, value in action(lexer, match):
                            put(at, _kind(token_type), value)
                position = match.end()
                if new_state is not None:
                    _move(stack, new_state)
                break
            else:
                if text[position] == "\n":
                    stack = ["root"]
                position += 1
            if position and text[position - 1] == "\n":
                passed = line
                while passed < limit and starts[passed] < position:
                    passed += 1
                if starts[passed] == position:
                    while line < passed:
                        self._keep(line, tuple(spans))
                        line, spans = line + 1, []
                    self._mark(passed, stack)
        if line < limit and line < stop:
            self._keep(line, tuple(spans))
        return max(stop, line)


@lru_cache(maxsize=1)
def _token_type() -> Any:
    from pygments.token import Token

    return type(Token)


@lru_cache(maxsize=64)
def _regex_rules(lexer: Lexer | None) -> dict[str, RulesByCharacter] | None:
    """The processed rules of a plain regex lexer; other lexers keep state we cannot resume."""
    if lexer is None:
        return None
    from pygments.lexer import ExtendedRegexLexer, RegexLexer

    from midstream.code.lexing_rules import rules_by_character

    if not isinstance(lexer, RegexLexer) or isinstance(lexer, ExtendedRegexLexer):
        return None
    rules: dict[str, list[Any]] = getattr(lexer, "_tokens")  # noqa: B009 (not in the stubs)
    return rules_by_character(rules)


def _move(stack: list[str], new_state: object) -> None:
    if isinstance(new_state, tuple):
        for state in new_state:  # pyright: ignore[reportUnknownVariableType]
            _move(stack, -1 if state == "#pop" else state)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(new_state, int):
        del stack[max(1, len(stack) - abs(new_state)) :]
    elif new_state == "#push":
        stack.append(stack[-1])
    else:
        stack.append(str(new_state))


def _stateless(lexer: Lexer, text: str) -> tuple[Span, ...]:
    spans: list[Span] = []
    for at, token_type, value in lexer.get_tokens_unprocessed(text):
        kind = _kind(token_type)
        stop = at + len(value.rstrip("\n"))
        if kind != "plain" and stop > at:
            spans.append((at, stop, kind))
    return tuple(spans)


def plain_runs(spans: Sequence[Span], length: int) -> list[Span]:
    """Spans that cover ``[0, length)`` without gaps: ``"plain"`` between tokens, neighbours of one
    kind joined.
    """
    runs: list[Span] = []
    column = begun = 0
    last = ""
    for start, stop, kind in spans:
        if start >= length:
            break
        if start > column:
            runs.append((column, start, "plain"))
            last = ""
        if stop > column:
            if kind == last:
                runs[-1] = (begun, min(stop, length), kind)
            else:
                begun, last = max(start, column), kind
                runs.append((begun, min(stop, length), kind))
            column = stop
    if column < length:
        runs.append((column, length, "plain"))
    return runs
