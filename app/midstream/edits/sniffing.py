"""Detects the format of a reply from its lines, and parses it accordingly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from midstream.edits.documents import NewlineFolder
from midstream.edits.events import Event
from midstream.edits.formats import format_spec, format_specs
from midstream.edits.parsing import ReplyParser, file_name, is_fence, is_remark, is_shell

_MAX_AHEAD: Final = 4_096
"""Characters of an unfinished line that are searched for the markers of a format."""

format_specs()  # whatever sniffs needs them all, so load them with this module


class _Clues:
    def __init__(self) -> None:
        marked = [(s, s.sniff) for s in format_specs() if s.sniff is not None]
        self._plain = [(s.name, f.marker) for s, f in marked if f.opening is None]
        self._opened = [(s.name, f.marker, f.opening) for s, f in marked if f.opening is not None]
        self._seen: set[str] = set()

    @property
    def possible(self) -> str | None:
        return next((name for name, *_ in self._opened if name in self._seen), None)

    def look(self, line: str) -> str | None:
        """The format that a line tells, if it tells one."""
        for name, marker in self._plain:
            if marker(line):
                return name
        for name, marker, opening in self._opened:
            if opening(line):
                self._seen.add(name)
            if name in self._seen and marker(line):
                return name
        return None

    def look_ahead(self, start: str) -> str | None:
        """The same for the start of a line that may be very long, as JSON is."""
        for name, marker, opening in self._opened:
            if opening(start) and marker(start):
                return name
        return None


def sniff(reply: str) -> str | None:
    """The format of a complete reply; None if it has none of the markers."""
    clues = _Clues()
    folder = NewlineFolder()
    lines = (folder.feed(reply) + folder.finish()).split("\n")
    return next((found for line in lines if (found := clues.look(line)) is not None), None)


class _DecidingParser(ABC):
    """Holds a reply back until its format is known, then reads it as that.

    Attributes:
        format: The format found, None before.
    """

    def __init__(self) -> None:
        self.format: str | None = None
        self._parser: ReplyParser | None = None
        self._reply: list[str] = []  # as it came, until the format is known
        self._newlines = NewlineFolder()
        self._clues = _Clues()

    def feed(self, text: str) -> list[Event]:
        """Take the next part of the reply."""
        if self._parser is not None:
            return self._parser.feed(text)
        self._reply.append(text)
        return self._sniff(text)

    @abstractmethod
    def _sniff(self, text: str) -> list[Event]:
        """Take text while the format is not known."""

    def _become(self, found: str, parser: ReplyParser) -> list[Event]:
        self.format, self._parser = found, parser
        reply = "".join(self._reply)
        self._reply.clear()
        return parser.feed(reply)


class SniffingParser(_DecidingParser):
    """Finds the format of a reply that may be in any."""

    def __init__(self, fallback: str) -> None:
        """Start sniffing; a reply without any of the markers is in the format ``fallback``."""
        super().__init__()
        self._fallback = fallback
        self._partial: list[str] = []
        self._too_long = False  # the line is not searched any more before it is complete
        self._fence = ""  # the line that opened the fence we are in
        self._fenced_lines = 0

    def _sniff(self, text: str) -> list[Event]:
        first, *others = self._newlines.feed(text).split("\n")
        self._partial.append(first)
        for start in others:
            line = "".join(self._partial)
            self._partial = [start]
            self._too_long = False
            found = self._look(line)
            if found is not None:
                return self._found(found)
        return self._look_ahead()

    def finish(self) -> list[Event]:
        """The reply has ended."""
        if self._parser is not None:
            return self._parser.finish()
        rest = "".join(self._partial) + self._newlines.finish()
        found = self._look(rest) if rest else None
        if found is None and not self._fence:
            found = self._clues.possible
        return self._found(found or self._fallback) + self.finish()

    def _look_ahead(self) -> list[Event]:
        if self._fence or self._too_long:
            return []
        start = "".join(self._partial)
        self._partial = [start]
        self._too_long = len(start) > _MAX_AHEAD
        found = None if self._too_long else self._clues.look_ahead(start)
        return [] if found is None else self._found(found)

    def _found(self, found: str) -> list[Event]:
        return self._become(found, format_spec(found).parser())

    def _look(self, line: str) -> str | None:
        """The format, once a line has given it away or a fence has turned out to be plain text."""
        found = self._clues.look(line)
        if found is not None:
            return found
        if is_fence(line):
            text = self._clues.possible and self._fence  # such as JSON without the keys of an edit
            self._fence = "" if self._fence else line
            self._fenced_lines = 0
            return self._fallback if text else None
        if not self._fence or is_shell(self._fence) or self._clues.possible:
            return None
        if line.strip() and not line.startswith("--- "):
            self._fenced_lines += 1
            # The first line in a fence may name a file, or be the only one of a small example.
            if self._fenced_lines > 1 or file_name(line) is None:
                return self._fallback
        return None


class PreferringParser(_DecidingParser):
    """Reads a reply as the format asked for, unless its first line is a marker of another."""

    def __init__(self, preferred: str, make: Callable[[], ReplyParser]) -> None:
        """Start a reply that was asked for in the format ``preferred``, whose parser ``make``
        makes.
        """
        super().__init__()
        self._pending: list[str] = []
        self._preferred = preferred
        self._make = make

    def _sniff(self, text: str) -> list[Event]:
        self._pending.append(self._newlines.feed(text))
        if "\n" not in self._pending[-1]:
            return []
        return self._decide(last=False)

    def finish(self) -> list[Event]:
        """The reply has ended."""
        events: list[Event] = []
        if self._parser is None:
            self._pending.append(self._newlines.finish())
            events = self._decide(last=True)
        return [*events, *(self._parser.finish() if self._parser is not None else ())]

    def _decide(self, *, last: bool) -> list[Event]:
        pending = "".join(self._pending)
        lines = pending.split("\n")
        found: str | None = None
        for line in lines if last else lines[:-1]:
            found = self._clues.look(line)
            if found is None and (not line.strip() or _leads_in(line)):
                continue
            found = found or self._preferred
            break
        if found is None and last:
            found = self._preferred
        if found is None:
            self._pending = [pending]
            self._clues = _Clues()
            return []
        parser = self._make() if found == self._preferred else format_spec(found).parser()
        return self._become(found, parser)


def _leads_in(line: str) -> bool:
    """Whether a line may stand before an edit of any format."""
    return is_fence(line) or is_remark(line) or file_name(line) is not None
