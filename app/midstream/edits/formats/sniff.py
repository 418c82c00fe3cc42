"""Which format a reply is in, found from its first lines, and a parser that follows the answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

from midstream.edits.formats.base import Parser
from midstream.edits.formats.events import Event
from midstream.edits.formats.json_edits import JsonEditParser
from midstream.edits.formats.names import file_name, is_fence, is_shell
from midstream.edits.formats.region import RegionParser, is_remark
from midstream.edits.formats.search_replace import SEARCH, SearchReplaceParser
from midstream.edits.formats.udiff import UnifiedDiffParser
from midstream.edits.formats.v4a import V4AParser
from midstream.edits.formats.whole import WholeFileParser
from midstream.edits.newlines import NewlineFolder


class Format(StrEnum):
    """The edit formats, by the names that commands and settings use."""

    REGION = "region"
    V4A = "v4a"
    SEARCH_REPLACE = "search-replace"
    STR_REPLACE = "str-replace"
    UDIFF = "udiff"
    WHOLE = "whole"


_PARSERS: dict[Format, Callable[[], Parser]] = {
    Format.REGION: RegionParser,
    Format.V4A: V4AParser,
    Format.SEARCH_REPLACE: SearchReplaceParser,
    Format.STR_REPLACE: JsonEditParser,
    Format.UDIFF: UnifiedDiffParser,
    Format.WHOLE: lambda: WholeFileParser(bare=True),
}

_V4A = re.compile(r"\s*\*\*\* (?:Begin Patch\s*$|(?:Add|Delete|Update) File:)")
_UDIFF = re.compile(r"diff --git |@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|\+\+\+ \S")
_JSON = re.compile(r"\s*(?:[\[{]\s*$|\[?\s*\{\s*\"|\[\s*[\[\"])")
_JSON_KEY = re.compile(
    r"\"(?:(?:old|new)(?:_str|_string|_text|Text)|file_text|insert_(?:line|text))\"\s*:"
    r"|\"command\"\s*:\s*\"(?:str_replace|create|insert|view|undo_edit)\""
    r"|\"type\"\s*:\s*\"(?:create|update|delete)_file\""
    r"|\"file_path\"\s*:|\"arguments\"\s*:\s*\"\s*\{"
    r"|\*\*\* (?:Begin Patch|(?:Add|Delete|Update) File:)"
)
_MOST_AHEAD = 4_096
"""Characters of an unfinished line that are searched for the keys of an edit."""
_REGION = re.compile(r"\s*<region(?:-\d+)?(?:\s[^>]*)?>")


def parser_for(edit_format: Format) -> Parser:
    """A parser of the given format."""
    return _PARSERS[edit_format]()


class _Clues:
    """Looks for the one line that gives a format away."""

    def __init__(self) -> None:
        self.json_lines = 0

    def look(self, line: str) -> Format | None:
        """What a line says about the format; None if it says nothing."""
        if _V4A.match(line):
            return Format.V4A
        if SEARCH.match(line.strip()):
            return Format.SEARCH_REPLACE
        if _UDIFF.match(line):
            return Format.UDIFF
        if _REGION.match(line):
            return Format.REGION
        self.json_lines += _JSON.match(line) is not None
        return Format.STR_REPLACE if self.json_lines and _JSON_KEY.search(line) else None


def sniff(reply: str) -> Format | None:
    """The format of a complete reply; None if it has none of the markers."""
    clues = _Clues()
    folder = NewlineFolder()
    lines = (folder.feed(reply) + folder.finish()).split("\n")
    return next((found for line in lines if (found := clues.look(line)) is not None), None)


class SniffingParser:
    """Holds a reply back until its format is known, then reads it as that.

    Attributes:
        format: The format found, None before.
    """

    def __init__(self, fallback: Callable[[], Parser], fallback_format: Format) -> None:
        """Start sniffing.

        Args:
            fallback: Makes the parser of a reply that has none of the markers.
            fallback_format: Its format.
        """
        self.format: Format | None = None
        self._fallback = fallback
        self._fallback_format = fallback_format
        self._parser: Parser | None = None
        self._held: list[str] = []
        self._partial: list[str] = []
        self._too_long = False  # the line is not searched any more before it is complete
        self._newlines = NewlineFolder()
        self._clues = _Clues()
        self._fence = ""  # the line that opened the fence we are in
        self._fenced_lines = 0

    def feed(self, text: str) -> list[Event]:
        """Take the next part of the reply."""
        if self._parser is not None:
            return self._parser.feed(text)
        first, *others = self._newlines.feed(text).split("\n")
        self._partial.append(first)
        for number, start in enumerate(others):
            line = "".join(self._partial)
            self._partial = [start]
            self._too_long = False
            self._held.append(line + "\n")
            found = self._look(line)
            if found is not None:
                self._partial.clear()
                rest = "\n".join(others[number:])
                return self._become(found, rest + self._newlines.release())
        return self._look_ahead()

    def finish(self) -> list[Event]:
        """The reply has ended."""
        if self._parser is not None:
            return self._parser.finish()
        rest = "".join(self._partial) + self._newlines.finish()
        found = self._look(rest) if rest else None
        if found is None and self._clues.json_lines and not self._fence:
            found = Format.STR_REPLACE
        return self._become(found or self._fallback_format, rest) + self.finish()

    def _look_ahead(self) -> list[Event]:
        """JSON is mostly one long line, which need not be complete to be known."""
        if self._fence or self._too_long:
            return []
        start = "".join(self._partial)
        self._partial = [start]
        self._too_long = len(start) > _MOST_AHEAD
        if self._too_long or not (_JSON.match(start) and _JSON_KEY.search(start)):
            return []
        self._partial = [""]
        return self._become(Format.STR_REPLACE, start + self._newlines.release())

    def _become(self, found: Format, rest: str) -> list[Event]:
        self.format = found
        is_fallback = found is self._fallback_format
        self._parser = self._fallback() if is_fallback else parser_for(found)
        held = "".join(self._held)
        self._held.clear()
        return self._parser.feed(held + rest)

    def _look(self, line: str) -> Format | None:
        """The format, once a line has given it away or a fence has turned out to be text."""
        found = self._clues.look(line)
        if found is not None:
            return found
        if is_fence(line):
            text = self._clues.json_lines and self._fence  # JSON without the keys of an edit
            self._fence = "" if self._fence else line
            self._fenced_lines = 0
            return self._fallback_format if text else None
        if not self._fence or is_shell(self._fence) or self._clues.json_lines:
            return None
        if line.strip() and not line.startswith("--- "):
            self._fenced_lines += 1
            # The first line in a fence may name a file, or be the only one of a small example.
            if self._fenced_lines > 1 or file_name(line) is None:
                return self._fallback_format
        return None


class PreferringParser:
    """Reads a reply as the format that was asked for, unless its first line is a marker of another.

    Attributes:
        format: The format found, None before.
    """

    def __init__(self, preferred: Callable[[], Parser], preferred_format: Format) -> None:
        """Start a reply.

        Args:
            preferred: Makes the parser of the format that was asked for.
            preferred_format: That format.
        """
        self.format: Format | None = None
        self._preferred = preferred
        self._preferred_format = preferred_format
        self._parser: Parser | None = None
        self._held: list[str] = []
        self._newlines = NewlineFolder()
        self._clues = _Clues()

    def feed(self, text: str) -> list[Event]:
        """Take the next part of the reply."""
        if self._parser is not None:
            return self._parser.feed(text)
        self._held.append(self._newlines.feed(text))
        if "\n" not in self._held[-1]:
            return []
        return self._decide(last=False)

    def finish(self) -> list[Event]:
        """The reply has ended."""
        events: list[Event] = []
        if self._parser is None:
            self._held.append(self._newlines.finish())
            events = self._decide(last=True)
        return [*events, *(self._parser.finish() if self._parser is not None else ())]

    def _decide(self, *, last: bool) -> list[Event]:
        held = "".join(self._held)
        lines = held.split("\n")
        found: Format | None = None
        for line in lines if last else lines[:-1]:
            found = self._clues.look(line)
            if found is None and (not line.strip() or _leads_in(line)):
                continue
            found = found or self._preferred_format
            break
        if found is None and last:
            found = self._preferred_format
        if found is None:
            self._held = [held]
            self._clues = _Clues()
            return []
        self.format = found
        same = found is self._preferred_format
        self._parser = self._preferred() if same else parser_for(found)
        return self._parser.feed(held + self._newlines.release())


def _leads_in(line: str) -> bool:
    """Whether a line may stand before an edit of any format."""
    return is_fence(line) or is_remark(line) or file_name(line) is not None
