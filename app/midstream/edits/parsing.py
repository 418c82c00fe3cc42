"""What all reply parsers share: an interface, a driver for line-based formats, file names.

The laws of a parser: events do not depend on the chunking; hunk ids only grow and a closed hunk
never changes; nothing that could be the start of a marker is reported; cost is constant per
character, amortised.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import Final, Protocol

from midstream.edits.documents import NewlineFolder
from midstream.edits.events import (
    Event,
    FileOp,
    FileSectionClosed,
    FileSectionOpened,
    NewText,
    Problem,
    Prose,
)

_END = re.compile(r"\r\n|\r|\n")


class ReplyParser(Protocol):
    """Reads a reply as it streams, without files or clock."""

    def feed(self, text: str) -> list[Event]:
        """Take the next part of the reply, in any chunking; returns what it makes known."""
        ...

    def finish(self) -> list[Event]:
        """The reply has ended; returns what was held back, and problems if it is unfinished."""
        ...


class Wait(Enum):
    """Why the start of a line cannot be reported yet."""

    MORE = "more"
    """It may be a marker; ask again when there is more of it."""
    LINE = "line"
    """Nothing can be said before the line is complete."""


class EventParser:
    """The event handling that all parsers share.

    Attributes:
        next_hunk: Id of the next hunk.
    """

    def __init__(self, first_hunk: int = 0) -> None:
        self.next_hunk = first_hunk
        self._events: list[Event] = []
        self._hunk: int | None = None
        """The hunk that is open."""
        self._number: int = 0
        """Number of the line being read, 0-based."""

    def _begin_hunk(self) -> int:
        """Take the next id for the hunk that is open from now on."""
        self._hunk = hunk = self.next_hunk
        self.next_hunk += 1
        return hunk

    def _new(self, text: str) -> None:
        if text and self._hunk is not None:
            self._events.append(NewText(self._hunk, text))

    def _prose(self, text: str) -> None:
        if text:
            self._events.append(Prose(text))

    def _problem(self, message: str, *, fatal: bool = False) -> None:
        hunk = None if fatal else self._hunk
        self._events.append(Problem(message, self._number, hunk, fatal))

    def _cut(self, message: str, *, fatal: bool = False) -> None:
        """The reply has ended before its format does."""
        hunk = None if fatal else self._hunk
        self._events.append(Problem(message, self._number, hunk, fatal, unfinished=True))

    def _taken(self) -> list[Event]:
        events, self._events = self._events, []
        return events


class LineEnds:
    """Which lines of a text end with CRLF, in any chunking."""

    def __init__(self) -> None:
        self._crlf: list[bool] = []
        self._ending = ""

    def feed(self, text: str) -> None:
        """Take the next part of the text."""
        text = self._ending + text
        self._ending = "\r" if text.endswith("\r") else ""
        ends = _END.findall(text.removesuffix("\r") if self._ending else text)
        self._crlf += [end == "\r\n" for end in ends]

    def crlf(self, line: int) -> bool:
        """Whether a line, counted from 0, ends with CRLF."""
        return line < len(self._crlf) and self._crlf[line]

    def all_crlf(self) -> bool:
        """Whether there are lines, and all of them end with CRLF."""
        return bool(self._crlf) and all(self._crlf)


class LineParser(EventParser, ABC):
    """Base of parsers that read lines and may show the line being written."""

    _closes_lines = False
    """Whether the end of the reply also ends its last line (in formats of lines)."""

    def __init__(self, first_hunk: int = 0) -> None:
        super().__init__(first_hunk)
        self._newlines = NewlineFolder()
        self._buffer = ""
        self._unfinished: list[str] = []  # the rest of a line that waits for its end
        self._wait = Wait.MORE
        self._passing = False
        self._ends = LineEnds()
        self._new_ends: set[bool] = set()

    def feed(self, text: str) -> list[Event]:
        """Take the next part of the reply."""
        self._ends.feed(text)
        text = self._newlines.feed(text)
        if text:
            self._take(text)
        return self._taken()

    def finish(self) -> list[Event]:
        """The reply has ended."""
        rest = self._newlines.finish()
        if rest:
            self._take(rest)
        if self._passing:
            self._passing = False
            self._passed("", ended=self._closes_lines)
        elif self._buffer:
            self._line(self._whole(""), ended=self._closes_lines)
        self._end()
        return self._taken()

    def _new(self, text: str) -> None:
        if text.endswith("\n"):
            self._new_ends.add(self._ends.crlf(self._number))
        super()._new(text)

    def _newline_of_file(self) -> str | None:
        """The line end of the new lines since the last call, if they have one of their own.

        In a reply that has CRLF throughout it says nothing: that is how the reply came.
        """
        ends, self._new_ends = self._new_ends, set()
        return "\r\n" if ends == {True} and not self._ends.crlf(0) else None

    @abstractmethod
    def _line(self, line: str, *, ended: bool) -> None:
        """Take a complete line that was not reported in pieces; ``ended`` by a newline."""

    @abstractmethod
    def _start(self, start: str) -> str | Wait:
        """The text to report of an unfinished line, or why to wait.

        Once this returns text, that and the rest of the line go to ``_passed`` as they come.
        """

    def _passed(self, text: str, *, ended: bool) -> None:
        """Take more of a line whose start was reported; ``ended`` with its newline."""
        self._new(text + ("\n" if ended else ""))

    @abstractmethod
    def _end(self) -> None:
        """The reply has ended, after its last line."""

    def _take(self, text: str) -> None:
        first, *others = text.split("\n")
        if not others:
            self._more(first)
            return
        if self._passing:
            self._passing = False
            self._passed(first, ended=True)
        else:
            self._line(self._whole(first), ended=True)
        self._number += 1
        last = others.pop()
        for line in others:
            self._line(line, ended=True)
            self._number += 1
        if last:
            self._more(last)

    def _more(self, text: str) -> None:
        if self._passing:
            self._passed(text, ended=False)
            return
        if self._wait is Wait.LINE:
            self._unfinished.append(text)
            return
        self._buffer += text
        ready = self._start(self._buffer)
        if isinstance(ready, Wait):
            self._wait = ready
            return
        self._buffer = ""
        self._passing = True
        self._passed(ready, ended=False)

    def _whole(self, end: str) -> str:
        """The complete line whose last piece is ``end``."""
        line = "".join((self._buffer, *self._unfinished, end))
        self._buffer = ""
        self._unfinished.clear()
        self._wait = Wait.MORE
        return line


MARKDOWN_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
"""A line that opens or closes a code fence; its groups are the mark and the info string."""


class OpenFence:
    """The code fence that a parser is in.

    The info string and the length of the outer mark distinguish fences inside it: ``` ```python ``
    opens one, a bare fence closes the one opened last.
    """

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._depth = 0

    def start(self, start: str) -> str | Wait:
        """The start of a line as ``LineParser._start`` returns it: it may become a fence."""
        stripped = start.lstrip(" ")
        if len(start) - len(stripped) > 3:
            return start
        mark = self._mark[0] * 3
        if not stripped or mark.startswith(stripped):
            return Wait.MORE
        return Wait.LINE if stripped.startswith(mark) else start

    def passes(self, fence: re.Match[str]) -> bool:
        """Take a fence inside; False if it may be the end of this one."""
        if fence[1][0] != self._mark[0] or len(fence[1]) < len(self._mark):
            return True
        if fence[2].strip():
            self._depth += 1
        elif self._depth:
            self._depth -= 1
        else:
            return False
        return True

    def closed_by(self, fence: re.Match[str]) -> bool:
        """Whether a fence that may be the end is long enough."""
        return len(fence[1]) >= len(self._mark)


_FENCE = re.compile(
    r"\s*(`{3,}|~{3,}|</?(?:source|code|pre|codename|sourcecode|diff|content)>)(.*)$"
)
_SHELL = re.compile(
    r"\s*(?:`{3,}|~{3,})\s*(?:bash|sh|shell|zsh|fish|ksh|csh|cmd|bat|batch|powershell|ps1|console|"
    r"shell-?session|terminal)\s*$"
)
_MENTION = re.compile(r"`([^`\s]+)`")
_TAG = re.compile(r"<(?:file_?)?path>(.*?)</(?:file_?)?path>")
_LABEL = re.compile(r"(?:file(?:name|path)?|path)\s*:\s*(?=\S)", re.IGNORECASE)
_COMMENT = re.compile(r"(?://|--|;|%|/\*|<!--)\s+")
_NUMBERED = re.compile(r"(?:\d{1,3}[.)]|[-*+])\s+")
_ATTRIBUTE = re.compile(r"\{?(?:title|name|path|file(?:_?(?:name|path))?)=", re.IGNORECASE)
_EXTENSION = re.compile(r"\.[A-Za-z0-9_+-]{1,12}$")
_BARE: Final = frozenset(
    {
        *("Makefile", "Dockerfile", "Containerfile", "Justfile", "Procfile", "Gemfile", "Rakefile"),
        *("Jenkinsfile", "Vagrantfile", "Pipfile", "Brewfile", "LICENSE", "README", "CHANGELOG"),
        *("AUTHORS", "CODEOWNERS"),
    }
)


def is_fence(line: str) -> bool:
    """Whether the line opens or closes a fence: Markdown's, or a tag that some models use."""
    return _FENCE.match(line) is not None


def is_shell(line: str) -> bool:
    """Whether the line opens a fence of shell commands, which are to be run and not saved."""
    return _SHELL.match(line) is not None


def mentioned_file(line: str) -> str | None:
    """The last file that a sentence mentions as code."""
    names = [name for name in _MENTION.findall(line) if file_name(name) is not None]
    return names[-1] if names else None


def file_name(line: str) -> str | None:
    """The file that a line names, if it says nothing else."""
    tag = _TAG.search(line)
    if tag:
        return tag[1].strip() or None
    fence = _FENCE.match(line)
    text = fence[2].strip() if fence else line.strip()
    if fence:
        # "```src/a.py", "```python:src/a.py", "```python src/a.py", "```python title="src/a.py""
        text = _ATTRIBUTE.sub("", re.split(r"[:\s]", text)[-1]).rstrip("}") if text else ""
    text = _COMMENT.sub("", text.strip().lstrip("#").strip(), count=1)
    text = _NUMBERED.sub("", text, count=1).rstrip(":").strip("`*\"'= ").rstrip(":")
    text = _LABEL.sub("", text, count=1).strip("`*\"' ")
    if not text or text == "..." or text.endswith(("/", "\\")):
        return None
    if text in _BARE and not fence:
        return text
    if (
        _EXTENSION.search(text)
        and not re.search(r"[,;!?\"<>|]|\.\s", text)
        and text.count(" ") <= 2
    ):
        return text
    return text if "/" in text and " " not in text else None


def name_before(lines: Sequence[str]) -> str | None:
    """The file named in the last three lines before a block, over fences and blank lines only."""
    apart = False
    for line in reversed(lines[-3:]):
        name = file_name(line)
        if name is not None and not (apart and " " in name):
            return name
        apart = apart or not line.strip()
        if line.strip() and not is_fence(line):
            return None
    return None


_DELETES: Final = re.compile(r"\*\*\* Delete File: *(?P<path>\S.*)")
_MOVES: Final = re.compile(r"\*\*\* Move File: *(?P<path>\S.*?) +(?:->|to) +(?P<new>\S.*)")


def file_operation(line: str) -> list[Event]:
    """The events of a line that deletes or moves a file; none for any other line.

    ``*** Delete File: old.py`` and ``*** Move File: old.py -> new.py``, as patches spell it, stand
    for themselves in formats that have no spelling of their own.
    """
    text = line.strip()
    if (found := _DELETES.fullmatch(text)) is not None:
        path = found["path"].strip("`")
        return [FileSectionOpened(FileOp.DELETE, path), FileSectionClosed(path)]
    if (found := _MOVES.fullmatch(text)) is not None:
        path, new = found["path"].strip("`"), found["new"].strip("`")
        return [FileSectionOpened(FileOp.UPDATE, path), FileSectionClosed(path, new)]
    return []


def is_remark(line: str) -> bool:
    """Whether a line outside a fence is more likely addressed to a person than meant as code."""
    text = line.strip()
    if line[:1].isspace() or text.startswith(("## ", "### ", "**")):
        return not line[:1].isspace()
    if not text[0].isupper() or re.search(
        r"[=(){}\[\];<>]|::|->|\w_\w", re.sub(r"`[^`]*`", "", text)
    ):
        return False
    return text.endswith((".", ":", "!", "?", ",")) or len(text.split()) >= 6
