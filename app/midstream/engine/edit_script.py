"""Edit scripts as text: what may come next in one, and how it rewrites a region as it streams.

A script's lines are

    12|new text     line 12 becomes this
    12-             line 12 goes
    12+|new text    a new line behind line 12 (0: at the top)
    12> and 12<     line 12 four columns to the right or left
    *old=>new       the name is replaced in the whole region
    =               nothing to do
    ?               beyond the model

Numbers ascend, so everything before the line that is being written is decided. A rename, ``=`` and
``?`` stand alone. Tokens are not known here; ``script_codec`` knows them. The trainer has the same
format in ``models/training/edit_script/script_format.py``, and a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from midstream.engine.layout import align
from midstream.engine.script_code import LineRules, is_open, names_in

STEP: Final = "    "
_LINE: Final = re.compile(r"(\d+)(\+\||\||-|>|<)(.*)", re.DOTALL)
_NAME: Final = re.compile(r"[^\W\d]\w*")
_DIGITS: Final = frozenset("0123456789")


def margin_of(lines: Sequence[str]) -> str:
    """Return the spaces that all lines except blank ones begin with."""
    rows = [line for line in lines if line.strip()]
    if not rows:
        return ""
    return " " * min(len(row) - len(row.lstrip(" ")) for row in rows)


def numbered(rows: Sequence[str]) -> str:
    """Return dedented lines with their numbers, each ended by a newline."""
    return "".join(f"{number}|{row}\n" for number, row in enumerate(rows, 1))


@dataclass(frozen=True, slots=True)
class ScriptRegion:
    """A region as a script sees it.

    Attributes:
        lines: The lines as they are.
        margin: Spaces taken off in front of them.
        rows: The lines without it.
    """

    lines: tuple[str, ...]
    margin: str
    rows: tuple[str, ...]

    @classmethod
    def of(cls, lines: Sequence[str]) -> ScriptRegion:
        margin = margin_of(lines)
        return cls(tuple(lines), margin, tuple(line.removeprefix(margin) for line in lines))

    def placed(self, row: str) -> str:
        """Return a written row as a line of the file."""
        return self.margin + row if row.strip() else row

    def _row(self, line: str) -> str:
        """The row that is placed as this line; a blank one has no margin."""
        return line.removeprefix(self.margin) if line.strip() else line

    def kept_script(self, kept: Sequence[str]) -> tuple[str, int]:
        """Return the script of the start of an answer, and how many source lines that start uses.

        Args:
            kept: Complete lines of the answer, as lines of the file.
        """
        script: list[str] = []
        used = 0
        for source, line in align(self.lines, kept, open_end=True):
            if source is None:
                script.append(f"{used}+|{self._row(line)}\n")
                continue
            script += [f"{number}-\n" for number in range(used + 1, source + 1)]
            used = source + 1
            if line != self.lines[source]:
                script.append(f"{used}|{self._row(line)}\n")
        return "".join(script), used


def replace_name(text: str, old: str, new: str) -> str:
    """Replace a name wherever it stands as a whole word."""
    return _word(old).sub(lambda _: new, text)


@lru_cache(8)
def _word(name: str) -> re.Pattern[str]:
    return re.compile(r"(?<![A-Za-z0-9_])" + re.escape(name) + r"(?![A-Za-z0-9_])")


class ScriptApplier:
    """Turns the text of a script, in pieces of any size, into the text of the region.

    Lines in front of the one that is being changed come out as soon as its number is known, and the
    changed line as it is written. A line of the script that is malformed, or whose number has been
    passed, changes nothing.

    Attributes:
        gave_up: Whether the script says that the request is beyond the model.
        lines: The lines of the region so far.
    """

    def __init__(self, region: ScriptRegion, used: int = 0) -> None:
        """Begin behind the first ``used`` lines of a region."""
        self.gave_up = False
        self._region = region
        self._passed = used
        self._line = ""
        self._given = 0  # characters of the line that the open one writes
        self._begun = False

    def feed(self, text: str) -> str:
        """Take more of the script; return the region's text that it makes certain."""
        out = ""
        self._line += text
        while "\n" in self._line:
            line, self._line = self._line.split("\n", 1)
            out += self._apply(line)
        return out + self._so_far(self._line)

    def finish(self) -> str:
        """End the script; return the rest of the region."""
        line, self._line = self._line, ""
        if line == "?" and not self._begun:
            self.gave_up = True
        return self._apply(line) + self._copy(len(self._region.lines))

    def _so_far(self, line: str) -> str:
        """Return what an open line of the script makes certain: the lines in front of the one that
        it is about, and the start of that one.
        """
        found = self._read(line)
        if found is None:
            return ""
        number, action, text = found
        out = self._copy(number if action == "+|" else number - 1)
        # Spaces alone may yet become a blank line, which has no margin.
        return out + self._written(text) if action[-1] == "|" and text.strip() else out

    def _written(self, text: str) -> str:
        """Return what is new of a line that is written in place of another, or behind it."""
        line, given = self._region.placed(text), self._given
        self._given = len(line)
        return line[given:]

    def _read(self, line: str) -> tuple[int, str, str] | None:
        found = _LINE.fullmatch(line)
        if found is None:
            return None
        number, action = int(found[1]), found[2]
        least = self._passed + (action != "+|")
        return (number, action, found[3]) if least <= number <= len(self._region.rows) else None

    def _apply(self, line: str) -> str:
        renamed = line[1:].split("=>", 1) if line.startswith("*") else []
        if len(renamed) == 2 and not self._begun:
            self._begun = True
            return self._renamed(*renamed)
        found = self._read(line)
        if found is None:
            return ""
        number, action, text = found
        self._begun = True
        if action == "+|":
            out = self._copy(number)
        else:
            out, row = self._copy(number - 1), self._region.rows[number - 1]
            self._passed = number
            if action == "-":
                return out
            if action == ">":
                text = STEP + row
            elif action == "<":
                text = row.removeprefix(STEP)
        out += self._written(text) + "\n"
        self._given = 0
        return out

    def _renamed(self, old: str, new: str) -> str:
        rest = self._region.lines[self._passed :]
        self._passed = len(self._region.lines) + 1  # a rename is the whole script
        if not old:
            return "".join(line + "\n" for line in rest)
        return "".join(replace_name(line, old, new) + "\n" for line in rest)

    def _copy(self, count: int) -> str:
        """Pass lines that stay as they are, up to a number."""
        lines = self._region.lines[self._passed : count]
        self._passed = max(self._passed, count)
        return "".join(line + "\n" for line in lines)


@dataclass(frozen=True, slots=True)
class ScriptState:
    """The position of a script in its grammar.

    Attributes:
        at: "start", "line", "number", "plus", "content", "closed", "old", "arrow", "new", "done".
        number: The number of the open line so far.
        passed: The last number; it comes again only to insert behind it.
        text: What stands in the open line behind its action, or the name in a rename.
        replaces: The row that the open line replaces; 0 where it is inserted.
        ruled: Whether the open line follows the grammar's rules for code.
        names: Identifiers of the lines that were written before.
        within: Whether the line before it ended within brackets or a string.
    """

    at: str = "start"
    number: str = ""
    passed: int = 0
    text: str = ""
    replaces: int = 0
    ruled: bool = False
    names: frozenset[str] = frozenset()
    within: bool = False


@dataclass(slots=True)
class ScriptGrammar:
    """What a script for one region may be: numbers ascend and exist, lines have an action.

    Attributes:
        region: What the script is about.
        state: Where the script is.
        rules: What written lines may hold; None for anything.
    """

    region: ScriptRegion
    state: ScriptState = field(default_factory=ScriptState)
    rules: LineRules | None = None

    def after(self, text: str) -> ScriptState | None:
        """Return the state after more text, None if it may not come."""
        state: ScriptState | None = self.state
        for char in text:
            state = self._after(state, char)
            if state is None:
                return None
        return state

    def without_rules(self) -> ScriptGrammar:
        """The same, with nothing ruled out for the rest of the line."""
        return ScriptGrammar(self.region, replace(self.state, ruled=False), self.rules)

    def repair(self) -> str | None:
        """The text that completes a script where a rule forbids its likeliest end."""
        if self.rules is None:
            return None
        return self.rules.repair(self.state.text, self.state.names)

    def may_end(self) -> bool:
        """Whether a script may end here."""
        state = self.state
        if state.at == "content" and state.ruled and self.rules is not None:
            return self.rules.may_end(state.text, state.replaces, state.names)
        return state.at in ("line", "content", "closed", "done") or (
            state.at == "new" and bool(state.text)
        )

    def _after(self, state: ScriptState, char: str) -> ScriptState | None:
        at = state.at
        if at == "content":
            if state.ruled and self.rules and not self.rules.allows(state.text, char, state.names):
                return None
            if char != "\n":
                return replace(state, text=state.text + char)
        if at in ("content", "closed"):
            return self._next_line(state) if char == "\n" else None
        if at in ("start", "line", "number") and char in _DIGITS:
            number = state.number + char
            return (
                replace(state, at="number", number=number) if self._exists(number, state) else None
            )
        if at == "start":
            return {"*": replace(state, at="old"), "=": _DONE, "?": _DONE}.get(char)
        if at == "number":
            return self._action(state, int(state.number), char)
        if at == "plus":
            return self._content(state, inserted=True) if char == "|" else None
        if at == "old" and char == "=":
            known = any(_word(state.text).search(row) for row in self.region.rows)
            return replace(state, at="arrow") if state.text and known else None
        if at == "arrow":
            return ScriptState("new", passed=state.passed) if char == ">" else None
        if at in ("old", "new"):
            text = state.text + char
            return replace(state, text=text) if _NAME.fullmatch(text) else None
        return None

    def _exists(self, digits: str, state: ScriptState) -> bool:
        """Whether digits begin the number of a line that may come."""
        if len(digits) > 1 and digits[0] == "0":
            return False
        low = high = int(digits)
        last = len(self.region.rows)
        if digits == "0":
            return state.passed == 0
        while low <= last:
            if high >= state.passed:
                return True
            low, high = 10 * low, 10 * high + 9
        return False

    def _action(self, state: ScriptState, number: int, char: str) -> ScriptState | None:
        if char == "+":
            return replace(state, at="plus") if number >= state.passed else None
        if number <= state.passed:
            return None
        row = self.region.rows[number - 1]
        allowed = {
            "|": True,
            "-": True,
            ">": bool(row.strip()),
            "<": row.startswith(STEP),
        }
        if not allowed.get(char, False):
            return None
        return self._content(state) if char == "|" else replace(state, at="closed")

    def _next_line(self, state: ScriptState) -> ScriptState:
        return ScriptState(
            "line",
            passed=int(state.number),
            names=state.names | names_in(state.text),
            within=is_open(state.text),
        )

    def _content(self, state: ScriptState, *, inserted: bool = False) -> ScriptState:
        number = int(state.number)
        rules = self.rules
        ruled = rules is not None and not state.within and rules.covers(number, inserted=inserted)
        return replace(state, at="content", replaces=0 if inserted else number, ruled=ruled)


_DONE: Final = ScriptState("done")
