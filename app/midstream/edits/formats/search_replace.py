"""SEARCH/REPLACE blocks, in aider's spelling and in Cline's.

A block is a search marker, the old lines, a divider, the new lines and a replace marker; the file
is named in the lines before it or inherited from the block before.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from midstream.edits.events import (
    Event,
    FileOp,
    FileSectionClosed,
    FileSectionOpened,
    HunkClosed,
    HunkOpened,
    OldLine,
    Prose,
)
from midstream.edits.formats import ApplyPolicy, FormatSpec, Sniff, register
from midstream.edits.indent import indent_of
from midstream.edits.parsing import LineParser, Wait, file_operation, mentioned_file, name_before

_SEARCH = re.compile(r"(?:(<{3,}|-{3,}) SEARCH>?(?: +(\S+))?|<{5,9} (?:ORIGINAL|HEAD))$")
_HINT = re.compile(r":(start|end)_line:\s*(\d+)\s*$")
_DIVIDER = re.compile(r"={3,}$")
_REPLACE = re.compile(r"(?:(>{3,}|\+{3,}) REPLACE>?|>{5,9} (?:UPDATED|updated))$")
_MAYBE = re.compile(
    r"(?:[<-]{1,2}|[<-]{3,}(?: (?:[A-Z]{0,8}|SEARCH>?(?: +\S*)?))?|=+"
    r"|[>+]{1,2}|[>+]{3,}(?: (?:[A-Z]{0,8}|[a-z]{0,7}|REPLACE>))?)\s*$"
)
_SPELLED_OUT = re.compile(r"<{3,} SEARCH>?(?: |$)")
_CONFLICT = re.compile(r"<{7}(?: (?!SEARCH\b)|$)")
"""Git's marker of a merge conflict, which is text where blocks begin with ``SEARCH``."""
_CONFLICT_END = re.compile(r">{7}(?: (?!REPLACE\b)|$)")
_NAME_LINES: Final = 3
"""Lines before a block that may name its file."""
_USUAL: Final = 7
"""Usual length of a marker; other lengths are accepted where they do not underline a heading."""


class _BlockMode(Enum):
    PROSE = "prose"
    SEARCH = "search"
    REPLACE = "replace"


class SearchReplaceParser(LineParser):
    """Reads blocks with prose between them; several files, several blocks a file."""

    _closes_lines = True

    def __init__(self) -> None:
        super().__init__()
        self._mode = _BlockMode.PROSE
        self._recent: list[str] = []  # lines that may name the next block's file
        self._path: str | None = None
        self._mentioned: str | None = None  # a file that the text since the last block mentions
        self._unopened = False  # the marker came; lines with a position may follow
        self._hint: int | None = None  # line at which the block is said to be, 0-based
        self._dashes = False  # Cline's spelling
        self._plain_search = False  # the marker says SEARCH, so a conflict marker is text
        self._in_conflict = False  # the old lines are within a merge conflict of the file
        self._operated = False  # a file is deleted or moved
        self._column = 0
        self._previous = ""
        self._pieces: list[str] = []  # of the line that is passed on while it is written

    def _start(self, start: str) -> str | Wait:
        if self._mode is not _BlockMode.REPLACE:
            return Wait.LINE
        stripped = start.lstrip()
        if not stripped or _MAYBE.match(stripped):
            return Wait.MORE
        return start

    def _passed(self, text: str, *, ended: bool) -> None:
        self._pieces.append(text)
        if ended:
            self._previous = "".join(self._pieces)
            self._pieces.clear()
        super()._passed(text, ended=ended)

    def _line(self, line: str, *, ended: bool) -> None:
        marker = line.strip()
        if self._mode is _BlockMode.PROSE:
            if _SEARCH.match(marker):
                self._open(line)
            elif operation := file_operation(line):
                self._operate(operation)
            elif _REPLACE.match(marker):
                self._problem(f"'{marker}' without a SEARCH block before it")
            else:
                self._keep_recent(line + ("\n" if ended else ""))
        elif self._mode is _BlockMode.SEARCH:
            self._search_line(line, marker)
        else:
            self._replace_line(line, marker, ended=ended)
        self._previous = line

    def _end(self) -> None:
        if self._unopened:
            self._announce()
        self._events += map(Prose, self._recent)
        if self._mode is _BlockMode.SEARCH:
            self._cut("the reply ends inside a SEARCH block: expected '======='")
        elif self._mode is _BlockMode.REPLACE:
            if self._dashes:
                self._events.append(HunkClosed(self.next_hunk - 1))
            else:
                self._cut("the reply ends inside a REPLACE block: expected '>>>>>>> REPLACE'")
        elif not self.next_hunk and not self._operated:
            self._problem("the reply has no SEARCH block", fatal=True)
        if self._path is not None:
            self._events.append(FileSectionClosed(self._path, newline=self._newline_of_file()))

    def _search_line(self, line: str, marker: str) -> None:
        if self._unopened:
            hint = _HINT.match(marker)
            if hint:
                self._hint = int(hint[2]) - 1 if hint[1] == "start" else self._hint
                return
            rule = self._hint is not None and re.fullmatch(r"-{3,}", marker)
            self._announce()
            if rule:
                return
        if self._is_of_conflict(line):
            self._events.append(OldLine(self.next_hunk - 1, line))
        elif self._is_divider(marker):
            self._mode = _BlockMode.REPLACE
        elif _REPLACE.match(marker):
            self._problem(f"'{marker}' comes before a '=======' line")
            self._close()
        elif self._reopens(line):
            self._problem("a new SEARCH block starts before a '=======' line")
            self._close()
            self._open(line)
        else:
            self._events.append(OldLine(self.next_hunk - 1, line))

    def _replace_line(self, line: str, marker: str, *, ended: bool) -> None:
        if _REPLACE.match(marker) or (self._is_divider(marker) and not self._dashes):
            self._close()
        elif self._reopens(line):
            self._problem("a new SEARCH block starts before '>>>>>>> REPLACE'")
            self._close()
            self._open(line)
        else:
            self._new(line + ("\n" if ended else ""))

    def _is_of_conflict(self, line: str) -> bool:
        """Whether an old line is one of a merge conflict, whose markers are text as well."""
        if not self._in_conflict:
            self._in_conflict = self._plain_search and _CONFLICT.match(line) is not None
            return self._in_conflict
        if _CONFLICT_END.match(line):
            self._in_conflict = False
            return True
        # A marker of a block shows that the conflict has no end here.
        self._in_conflict = _REPLACE.match(line) is None and _SPELLED_OUT.match(line) is None
        return self._in_conflict

    def _is_divider(self, marker: str) -> bool:
        if not _DIVIDER.match(marker):
            return False
        heading = len(self._previous.rstrip()) == len(marker) and self._previous[:1] not in "=<- "
        return len(marker) == _USUAL or (len(marker) >= 3 and not heading)

    def _reopens(self, line: str) -> bool:
        """Whether a line in a block starts another; one indented deeper is code about blocks."""
        return _SEARCH.match(line.strip()) is not None and len(indent_of(line)) <= self._column

    def _open(self, line: str) -> None:
        marked = _SEARCH.match(line.strip())
        name = name_before([text.rstrip("\n") for text in self._recent])
        name = (marked[2] if marked else None) or name
        if name is None and self._path is None:
            name = self._mentioned
        self._recent.clear()
        self._mentioned = None
        if name is not None and name != self._path and self._path is not None:
            self._events.append(FileSectionClosed(self._path, newline=self._newline_of_file()))
            self._path = None
        if self._path is None:
            self._path = path = name or ""
            self._events.append(FileSectionOpened(FileOp.UPDATE, path))
        self._dashes = line.lstrip().startswith("-")
        self._plain_search = _SPELLED_OUT.match(line.lstrip()) is not None
        self._in_conflict = False
        self._column = len(indent_of(line))
        self._begin_hunk()
        self._unopened, self._hint = True, None
        self._mode = _BlockMode.SEARCH

    def _operate(self, operation: list[Event]) -> None:
        """Report that a file is deleted or moved; its blocks are through."""
        self._events += map(Prose, self._recent)
        self._recent.clear()
        self._mentioned = None
        if self._path is not None:
            self._events.append(FileSectionClosed(self._path, newline=self._newline_of_file()))
            self._path = None
        self._events += operation
        self._operated = True

    def _announce(self) -> None:
        self._unopened = False
        hunk, dashes = self.next_hunk - 1, self._dashes
        self._events.append(HunkOpened(hunk, line=self._hint, create_only=dashes, old_first=True))

    def _close(self) -> None:
        self._events.append(HunkClosed(self.next_hunk - 1))
        self._hunk = None
        self._mode = _BlockMode.PROSE

    def _keep_recent(self, text: str) -> None:
        self._mentioned = mentioned_file(text) or self._mentioned
        self._recent.append(text)
        if len(self._recent) > _NAME_LINES:
            self._prose(self._recent.pop(0))


def _opens_block(line: str) -> bool:
    return _SEARCH.match(line.strip()) is not None


_PROMPT: Final = """\
Write each edit as a block, with the path of its file in the line above:

app.py
<<<<<<< SEARCH
lines of the file as they are
=======
the lines that replace them
>>>>>>> REPLACE

The lines under SEARCH must be whole lines copied character by character from the file, indentation
included, and enough of them to occur once: the changed lines and one or two around them, never a
whole function. Write one block for each place. An empty SEARCH part makes a new file. The line
"*** Delete File: path" deletes a file, and "*** Move File: old/path -> new/path" renames it, behind
the blocks that change it. Say nothing between the blocks but what is needed to understand them.
"""

register(
    FormatSpec(
        "search-replace",
        SearchReplaceParser,
        sniff=Sniff(_opens_block),
        prompt=_PROMPT,
        policy=ApplyPolicy(whole_sides=True),
    )
)
