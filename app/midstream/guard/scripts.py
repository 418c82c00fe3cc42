"""String-built SQL in JavaScript, TypeScript and Go, read line by line.

A small lexer follows literals, brackets and ``+`` across lines and reports every text that is
built, with its holes.  It knows no grammar: what it does not understand is a hole, and only text
that is SQL beyond doubt, or is passed to a database call, counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from midstream.guard.findings import Level
from midstream.guard.queries import FRAGMENT, Hole, Piece, is_statement, judge

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+) | (?P<comment>//.*|/\*) | (?P<quote>["'`])
      | (?P<plus>\+=?) | (?P<assign>:=|=(?![=>])) | (?P<open>[(\[{]) | (?P<close>[)\]}])
      | (?P<comma>,) | (?P<semicolon>;) | (?P<word>[A-Za-z_$][\w$]*)
      | (?P<other>\d[\w.]*|=>|===?|!==?|[^\s\w])""",
    re.VERBOSE,
)
_BEFORE_REGEX: Final = re.compile(r"(?:^|[=(,:\[!&|?{};+\-*%<>~^]|\breturn|\bcase|\btypeof)\s*$")
_REGEX: Final = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\[])+/[a-z]*")
_SAFE: Final = re.compile(
    r"""^[\d.]+$ | \.length$ | ^len\( | ^(?:-|\+)?\d
      | \b(?:parseInt|parseFloat|Number|BigInt|strconv\.\w+|Math\.\w+|Repeat)\(
      | escape | quote | placeholder | sanitiz | =>\s*["'`][?$%]
      | \?\s*(?:\(?\s*)?["'`][^"'`]*["'`]\s*:\s*["'`][^"'`]*["'`]\)?$""",
    re.VERBOSE | re.IGNORECASE,
)
_CONSTANT: Final = re.compile(r"^(?:[\w$]+\.)*[A-Z][A-Z0-9_]+$")
_CALLS: Final = frozenset(
    {"query", "execute", "exec", "all", "get", "run", "each", "raw", "prepare"}
    | {"queryRawUnsafe", "$queryRawUnsafe", "$executeRawUnsafe", "unsafe", "Query", "QueryRow"}
    | {"Exec", "Prepare", "QueryEx", "QueryRowEx", "ExecEx", "Queryx", "Get", "Select"}
    | {"MustExec", "NamedExec", "Raw", "literal", "queryRow", "batch", "QueryContext"}
    | {"QueryRowContext", "ExecContext", "PrepareContext", "GetContext", "SelectContext"}
)
_CLAUSES: Final = frozenset(
    {"Where", "WhereOr", "Or", "Not", "ColumnExpr", "OrderExpr", "Having", "whereRaw"}
    | {"orWhereRaw", "havingRaw", "orderByRaw", "joinRaw", "groupByRaw"}
)
"""Methods of query builders that take pieces of SQL."""
_FORMATS: Final = frozenset({"Sprintf", "format"})
_VERB: Final = re.compile(r"%%|%[-+# 0]*(?:\*|\d+)?(?:\.\d+)?(?:\[\d+\])?([a-zA-Z])")
_FUNCTION: Final = re.compile(
    r"^\s*(?:export\s+|default\s+|static\s+)*(?:async\s+)?(?:function\b|func\b)"
)
_GOES_ON: Final = frozenset({".", "?", ":", "&", "|", ")", "]", "}", "*", "/", "-"})
"""Starts of lines that continue the statement before."""
_SAYS: Final = re.compile(
    r"(?:^|\.)(?:console\.\w+|log(?:ger)?\.\w+|(?:[FS]?[Pp]rint|Fatal|Panic)(?:f|ln)?|panic|Errorf?)$"
)
"""Calls that only show their arguments."""
_CONTEXT: Final = re.compile(r"(?:^|\W)(?:ctx|context)\b|Context\(\)$")
_MAX_LINE_LENGTH: Final = 4_000
"""Characters of a line that are read."""
_MAX_NAMES: Final = 200
"""Names of a function whose texts are kept."""


@dataclass(frozen=True, slots=True)
class Built:
    """A query with holes: its lines (0-based, half-open) and what it does to the stream."""

    line: int
    stop: int
    level: Level


@dataclass(slots=True)
class _Frame:
    """One bracket, or the text outside of all."""

    callee: str = ""
    pieces: list[Piece] = field(default_factory=list[Piece])
    operand: str = ""
    text: bool = False
    begun: int = 0
    target: str = ""
    adds: bool = False
    joined: bool = True
    """Whether the next operand belongs to the text: at its beginning, and after ``+``."""
    first: str = ""
    """The first of several names that are assigned at once (Go: ``id, err := …``)."""
    block: bool = False
    """Whether it is a brace, which may hold statements."""
    arguments: list[tuple[Piece, ...]] = field(default_factory=list[tuple[Piece, ...]])
    names: list[bool] = field(default_factory=list[bool])
    """For each argument, whether it is just a name with a known text."""


@dataclass(slots=True)
class _Template:
    """An open template literal: its pieces so far and where its frames begin."""

    pieces: list[Piece]
    depth: int
    tagged: bool
    begun: int


class ScriptReader:
    """Follows a text line by line.

    Args:
        go: The language is Go, otherwise JavaScript or TypeScript.
        runs: Also report where a query is run that was reported where it was built.
    """

    def __init__(self, *, go: bool, runs: bool = False) -> None:
        self._go = go
        self._runs = runs
        self._line = 0
        self._comment = False
        self._raw: list[str] | None = None
        self._raw_begun = 0
        self._frames = [_Frame(block=True)]
        self._templates: list[_Template] = []
        self._known: dict[str, tuple[Piece, ...]] = {}
        self._told: set[tuple[int, Hole]] = set()
        self._found: list[Built] = []

    def feed(self, line: str) -> list[Built]:
        """Take the next line; return the queries with holes that it completes."""
        self._found = []
        line = line[:_MAX_LINE_LENGTH]
        if _FUNCTION.match(line):
            self._known.clear()
        position = 0
        fresh = True
        while position < len(line):
            if self._comment:
                end = line.find("*/", position)
                if end < 0:
                    break
                position, self._comment = end + 2, False
            elif self._raw is not None:
                position = self._read_raw(line, position)
            elif self._templates and self._in_template():
                position = self._read_template(line, position)
            else:
                position, fresh = self._read_code(line, position, fresh)
        if self._raw is not None:
            self._raw.append("\n")
        elif self._templates and self._in_template():
            self._templates[-1].pieces.append("\n")
        else:
            self._look(self._frames[-1])
        self._line += 1
        return self._found

    # Tokens

    def _in_template(self) -> bool:
        return len(self._frames) == self._templates[-1].depth

    def _read_code(self, line: str, position: int, fresh: bool) -> tuple[int, bool]:
        match = _TOKEN.match(line, position)
        if match is None:
            return position + 1, fresh
        kind, text = match.lastgroup, match.group()
        frame = self._frames[-1]
        if kind == "space":
            if frame.operand and not frame.operand.endswith(" "):
                frame.operand += " "
            return match.end(), fresh
        if kind == "comment":
            self._comment = text == "/*"
            return (match.end() if self._comment else len(line)), fresh
        if fresh and kind not in ("plus", "close") and text not in _GOES_ON and _is_over(frame):
            self._end_statement()
        if text == "/" and not self._go:
            regex = _REGEX.match(line, position)
            if regex is not None and _BEFORE_REGEX.search(line[:position]):
                frame.operand += "/regex/"
                return regex.end(), False
        if kind == "quote":
            return self._read_quote(line, position, text), False
        if kind == "plus":
            self._plus(frame, assigns=text == "+=")
        elif kind == "assign":
            self._assign(frame)
        elif kind == "open":
            words = re.search(r"[\w$.]*$", frame.operand.rstrip() if text == "(" else "")
            callee = words.group() if words else ""
            self._frames.append(_Frame(callee=callee, begun=self._line, block=text == "{"))
        elif kind == "close":
            self._close(text)
        elif kind == "comma":
            self._argument(frame)
        elif kind == "semicolon":
            self._end_statement()
        else:
            frame.operand += text
        return match.end(), False

    def _read_quote(self, line: str, position: int, quote: str) -> int:
        frame = self._frames[-1]
        if quote == "`":
            if self._go:
                self._raw, self._raw_begun = [], self._line
            else:
                tag = re.search(r"[\w$.]+$", frame.operand)
                tagged = tag is not None and not tag.group().endswith(
                    (".raw", "return", "in", "of")
                )
                if tag is not None:
                    frame.operand = frame.operand[: tag.start()]
                self._templates.append(_Template([], len(self._frames), tagged, self._line))
            return position + 1
        index = position + 1
        while index < len(line) and line[index] != quote:
            index += 2 if line[index] == "\\" else 1
        self._text((line[position + 1 : index],), self._line)
        return index + 1

    def _read_raw(self, line: str, position: int) -> int:
        assert self._raw is not None
        end = line.find("`", position)
        if end < 0:
            self._raw.append(line[position:])
            return len(line)
        text = "".join([*self._raw, line[position:end]])
        self._raw = None
        self._text((text,), self._raw_begun)
        return end + 1

    def _read_template(self, line: str, position: int) -> int:
        template = self._templates[-1]
        index = position
        while index < len(line):
            if line[index] == "\\":
                index += 2
                continue
            if line[index] == "`":
                template.pieces.append(line[position:index])
                self._templates.pop()
                pieces = tuple(template.pieces)
                if template.tagged:
                    pieces = tuple(p if isinstance(p, str) else "?" for p in pieces)
                self._text(pieces, template.begun)
                return index + 1
            if line.startswith("${", index):
                template.pieces.append(line[position:index])
                self._frames.append(_Frame(callee="${", begun=self._line))
                return index + 2
            index += 1
        template.pieces.append(line[position:])
        return len(line)

    # Texts

    def _text(self, pieces: tuple[Piece, ...], begun: int) -> None:
        """Take a literal."""
        frame = self._frames[-1]
        if frame.joined and not frame.operand.strip(" ("):
            if not frame.text and not frame.pieces:
                frame.begun = begun
            frame.pieces += pieces
            frame.text = True
            frame.joined = False
            frame.operand = ""
        else:
            frame.operand += (
                '"' + "".join(p if isinstance(p, str) else "${}" for p in pieces)[:40] + '"'
            )

    def _operand(self, frame: _Frame) -> None:
        """Make what follows the last ``+`` a part of the text."""
        source = re.sub(
            r"^(?:return|await|const|let|var|new|yield)\b\s*", "", frame.operand.strip()
        )
        frame.operand = ""
        if not source or not frame.joined:
            return
        if source in self._known:
            frame.pieces += self._known[source]
            frame.text = True
        elif _CONSTANT.match(source) or _SAFE.search(source):
            frame.pieces.append("CONSTANT")
        else:
            frame.pieces.append(Hole(source[:80], source.startswith("this.")))

    def _plus(self, frame: _Frame, *, assigns: bool) -> None:
        if assigns:
            words = re.search(r"[\w$.]+$", frame.operand.strip())
            name = words.group() if words else ""
            self._reset(frame)
            frame.target, frame.adds = name, True
            return
        if frame.joined:
            self._operand(frame)
        frame.operand = ""
        frame.joined = True

    def _assign(self, frame: _Frame) -> None:
        words = re.search(r"([\w$.]+)(?:\s*:\s*[\w<>\[\]]+)?\s*$", frame.operand)
        name = frame.first or (words.group(1) if words else "")
        self._reset(frame)
        frame.target, frame.adds, frame.first = name, False, ""

    def _reset(self, frame: _Frame) -> None:
        frame.pieces, frame.operand, frame.text, frame.joined = [], "", False, True
        frame.begun = self._line

    def _whole(self, frame: _Frame) -> tuple[Piece, ...]:
        if frame.joined:
            self._operand(frame)
        return tuple(frame.pieces)

    def _argument(self, frame: _Frame) -> None:
        self._look(frame)
        if self._go and frame.block and not frame.pieces and not frame.first:
            frame.first = name if (name := frame.operand.strip()).isidentifier() else ""
        frame.names.append(not frame.pieces and frame.operand.strip() in self._known)
        pieces = self._whole(frame)
        frame.arguments.append(pieces)
        if frame.block:
            self._keep(frame, pieces)
        self._reset(frame)
        frame.target = ""

    def _end_statement(self) -> None:
        frame = self._frames[-1]
        self._look(frame)
        self._keep(frame, self._whole(frame))
        self._reset(frame)
        frame.target = frame.first = ""

    def _keep(self, frame: _Frame, pieces: tuple[Piece, ...]) -> None:
        if not frame.target or len(self._known) > _MAX_NAMES:
            return
        if frame.adds:
            if frame.target in self._known:
                self._known[frame.target] += pieces
        elif frame.text:
            self._known[frame.target] = pieces
        elif pieces and all(isinstance(piece, str) for piece in pieces):
            self._known[frame.target] = ("CONSTANT",)
        else:
            self._known.pop(frame.target, None)

    def _close(self, text: str) -> None:
        if len(self._frames) == 1 or (self._templates and self._in_template()):
            return
        frame = self._frames.pop()
        outer = self._frames[-1]
        if frame.callee == "${":
            self._fill(frame)
            return
        self._frames.append(frame)
        if frame.operand.strip() or frame.pieces:
            self._argument(frame)
        self._frames.pop()
        name = frame.callee.rsplit(".", 1)[-1]
        if text == ")" and name == "concat" and self._concat(frame, outer):
            return
        if text == ")" and name in _FORMATS and frame.arguments:
            outer.operand = outer.operand.rstrip()[: -len(frame.callee)]
            self._text(_formatted(frame.arguments), frame.begun)
        elif text == ")" and not frame.callee and len(frame.arguments) == 1 and outer.joined:
            if any(isinstance(piece, str) for piece in frame.arguments[0]):
                self._text(frame.arguments[0], frame.begun)
        else:
            if text == ")" and (name in _CALLS or name in _CLAUSES):
                self._run(frame, name)
            inside = ", ".join(_source(argument) for argument in frame.arguments)
            outer.operand += f"({inside})"

    def _concat(self, frame: _Frame, outer: _Frame) -> bool:
        """``text.concat(part)`` is ``text + part``; returns whether the text is known."""
        parts = tuple(piece for argument in frame.arguments for piece in argument)
        receiver = frame.callee[: -len(".concat")]
        if not receiver and outer.text:
            outer.pieces += parts
            outer.operand = ""
            return True
        if receiver in self._known:
            outer.operand = outer.operand.rstrip()[: -len(frame.callee)]
            self._text(self._known[receiver] + parts, frame.begun)
            return True
        return False

    def _fill(self, frame: _Frame) -> None:
        """Take a completed field of a template."""
        pieces = self._whole(frame)
        template = self._templates[-1]
        if any(isinstance(piece, Hole) for piece in pieces) or not pieces:
            template.pieces += [p for p in pieces if isinstance(p, Hole)] or ["CONSTANT"]
        else:
            template.pieces += pieces

    # Verdicts

    def _look(self, frame: _Frame) -> None:
        if not frame.text and not (frame.adds and frame.target in self._known):
            return
        if _SAYS.search(frame.callee):
            return
        pieces = tuple(frame.pieces)
        if frame.joined and (operand := frame.operand.strip()):
            copy = _Frame(operand=operand)
            self._operand(copy)
            pieces += tuple(copy.pieces)
        if frame.adds:
            pieces = self._known.get(frame.target, ()) + pieces
        if is_statement(pieces):
            self._tell(frame, pieces, judge(pieces, executed=False, parameters=False))

    def _run(self, frame: _Frame, name: str) -> None:
        number = 1 if name.endswith("Context") and len(frame.arguments) > 1 else 0
        if self._go and len(frame.arguments) > 1:
            context = _CONTEXT.search(_source(frame.arguments[0]))
            number = 1 if context or name in ("Get", "Select") else number
        if len(frame.arguments) <= number:
            return
        pieces = frame.arguments[number]
        if not any(isinstance(piece, str) for piece in pieces):
            return
        if frame.names[number] and not self._runs:
            told = {hole for _, hole in self._told}
            if all(piece in told for piece in pieces if isinstance(piece, Hole)):
                return  # It was reported where it was built.
        if name in _CLAUSES and not is_statement(pieces):
            self._tell(frame, pieces, judge(pieces, executed=False, parameters=False))
        elif is_statement(pieces) or (
            name not in ("get", "all", "run", "each", "exec") and _words(pieces)
        ):
            parameters = len(frame.arguments) > number + 1
            self._tell(frame, pieces, judge(pieces, executed=True, parameters=parameters))

    def _tell(self, frame: _Frame, pieces: tuple[Piece, ...], level: Level | None) -> None:
        holes = {piece for piece in pieces if isinstance(piece, Hole)}
        new = {(frame.begun, hole) for hole in holes} - self._told
        if level is Level.HALT and new:
            self._told |= new
            self._found.append(Built(frame.begun, self._line + 1, level))


def _is_over(frame: _Frame) -> bool:
    """Whether the end of the line ends a statement: not in brackets and not after an operator."""
    waits = frame.joined and not frame.operand.strip() and (frame.pieces or frame.target)
    return frame.block and not waits


def _words(pieces: tuple[Piece, ...]) -> bool:
    return any(isinstance(piece, str) and FRAGMENT.search(piece) for piece in pieces)


def _source(pieces: tuple[Piece, ...]) -> str:
    return "".join(p if isinstance(p, str) else p.source for p in pieces)[:80]


def _formatted(arguments: list[tuple[Piece, ...]]) -> tuple[Piece, ...]:
    """The result of ``Sprintf`` for its arguments."""
    pieces: list[Piece] = []
    taken = 0
    for piece in arguments[0]:
        if isinstance(piece, Hole):
            pieces.append(piece)
            continue
        end = 0
        for match in _VERB.finditer(piece):
            pieces.append(piece[end : match.start()])
            end = match.end()
            if match.group() == "%%":
                pieces.append("%")
                continue
            taken += 1
            if match.group(1) in "dboxXeEfFgGtTcpU":
                pieces.append("0")
            elif taken < len(arguments):
                pieces += arguments[taken]
            else:
                pieces.append(Hole("…"))
        pieces.append(piece[end:])
    return tuple(pieces)
