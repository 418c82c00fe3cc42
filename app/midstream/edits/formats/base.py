"""The interface of all streaming parsers, and the line driver that most of them share.

The laws: events do not depend on the chunking; hunk ids only grow and a closed hunk never changes;
nothing that could be the start of a marker is reported; cost is constant per character, amortised.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from midstream.edits.formats.events import Event
from midstream.edits.newlines import NewlineFolder


class Parser(Protocol):
    """Reads a reply as it streams.  Pure: no files, no clock."""

    def feed(self, text: str) -> list[Event]:
        """Take the next part of the reply, in any chunking; return what it makes known."""
        ...

    def finish(self) -> list[Event]:
        """The reply has ended; return what was held back, and problems of an unfinished reply."""
        ...


class Wait(Enum):
    """Why the start of a line cannot be reported yet."""

    MORE = "more"
    """It may be a marker; ask again when there is more of it."""
    LINE = "line"
    """Nothing can be said before the line is complete."""


class LineParser:
    """Base of parsers that read lines and may show the line being written.

    A subclass implements ``_line`` (a complete line), and ``_start`` which looks at the start of an
    unfinished line and answers whether its text can be reported already.
    """

    _closes_lines = False
    """Whether the end of the reply also ends its last line (in formats of lines)."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._number = 0
        """Number of the line being read, 0-based."""
        self._newlines = NewlineFolder()
        self._buffer = ""
        self._held: list[str] = []  # the rest of a line that waits for its end
        self._wait = Wait.MORE
        self._passing = False

    def feed(self, text: str) -> list[Event]:
        """Take the next part of the reply."""
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

    def _line(self, line: str, *, ended: bool) -> None:
        """A complete line that was not reported in pieces.  ``ended``: a newline followed it."""
        raise NotImplementedError

    def _start(self, start: str) -> str | Wait:
        """The text to report now of an unfinished line that starts so, or why to wait.

        Once it answers a text, that and the rest of the line go to ``_passed`` as they come.
        """
        raise NotImplementedError

    def _passed(self, text: str, *, ended: bool) -> None:
        """More of a line whose start was reported; ``ended`` with its newline."""
        raise NotImplementedError

    def _end(self) -> None:
        """The reply has ended, after the last line."""
        raise NotImplementedError

    def _taken(self) -> list[Event]:
        events, self._events = self._events, []
        return events

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
            self._held.append(text)
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
        """The complete line, of which ``end`` is the last piece."""
        line = "".join((self._buffer, *self._held, end))
        self._buffer = ""
        self._held.clear()
        self._wait = Wait.MORE
        return line
