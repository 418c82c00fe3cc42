"""Edits as JSON, read while the JSON is still incomplete: ``str_replace`` tools and their kin.

Reads the arguments of Anthropic's text editor (``command``, ``old_str``, ``new_str``,
``file_text``, ``insert_line``), the spellings ``old_string``/``new_string``/``replace_all`` and
``old_text``/``new_text``, lists of such edits, and a V4A patch in a string.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from midstream.edits.documents import NewlineFolder
from midstream.edits.events import (
    Event,
    FileOp,
    FileSectionClosed,
    FileSectionOpened,
    HunkClosed,
    HunkOpened,
    OldLine,
)
from midstream.edits.formats import ApplyPolicy, FormatSpec, Sniff, register
from midstream.edits.formats.v4a import V4AParser, operation_events
from midstream.edits.parsing import EventParser, LineEnds

_OLD: Final = frozenset({"old_str", "old_string", "old_text", "oldText", "search", "old"})
_NEW: Final = frozenset({"new_str", "new_string", "new_text", "newText", "replace", "new"})
_WHOLE: Final = frozenset({"file_text", "content", "contents"})
_INSERTED: Final = frozenset({"insert_text"})
_PATH: Final = frozenset({"path", "file_path", "filepath", "file", "filename", "target_file"})
_PATCH: Final = frozenset({"input", "patch"})
_COMMAND: Final = frozenset({"cmd", "command", "script"})
_ALL: Final = frozenset({"replace_all", "replaceAll"})
_SPECIAL = re.compile(r'["\\\x00-\x1f]')
_SCALAR = re.compile(r"[^\s,\]}]+")
_ESCAPES: Final = dict(zip('ntrbf"\\/', '\n\t\r\b\f"\\/', strict=True))


class _JsonMode(Enum):
    PROSE = "prose"
    VALUE = "value"  # between tokens
    STRING = "string"
    SCALAR = "scalar"


@dataclass(slots=True)
class _Object:
    is_list: bool = False
    key: str | None = None
    strings: dict[str, str] = field(default_factory=dict[str, str])
    scalars: dict[str, str] = field(default_factory=dict[str, str])
    hunk: int | None = None


class JsonEditParser(EventParser):
    """Reads JSON edits; new text is reported as it comes once its old text is complete."""

    def __init__(self, first_hunk: int = 0) -> None:
        super().__init__(first_hunk)
        self._mode = _JsonMode.PROSE
        self._stack: list[_Object] = []
        self._pieces: list[str] = []  # of the string or scalar being read
        self._escape = ""  # an escape sequence that is not complete
        self._surrogate = ""  # the first half of a pair
        self._is_key = False
        self._folder = NewlineFolder()
        self._ends = LineEnds()  # of the new text of the file
        self._patch: V4AParser | None = None
        self._pending: list[_Object] = []  # edits whose file is not named yet
        self._path: str | None = None
        self._edits = 0
        self._fresh = True  # only spaces so far in a line outside JSON

    def feed(self, text: str) -> list[Event]:
        """Take the next part of the reply."""
        at = 0
        while at < len(text):
            if self._mode is _JsonMode.STRING:
                at = self._string(text, at)
            elif self._mode is _JsonMode.SCALAR:
                at = self._scalar(text, at)
            elif self._mode is _JsonMode.VALUE:
                at = self._token(text, at)
            else:
                at = self._outside(text, at)
        self._number += text.count("\n")
        return self._taken()

    def finish(self) -> list[Event]:
        """The reply has ended; return the remaining events."""
        if self._stack:
            self._cut("the JSON ends before it is complete", fatal=True)
        elif not self._edits:
            self._problem("the reply has no edit in its JSON", fatal=True)
        elif self._pending:
            for edit in self._pending:
                self._whole_edit(edit, "")
        self._open_file(None)
        return self._taken()

    def _outside(self, text: str, at: int) -> int:
        stop = at
        if self._fresh:
            stop += len(text) - at - len(text[at:].lstrip())
            if stop < len(text):
                self._fresh = False
                if text[stop] in "{[":
                    self._mode = _JsonMode.VALUE
        else:
            newline = text.find("\n", at)
            stop = len(text) if newline < 0 else newline + 1
            self._fresh = newline >= 0
        self._prose(text[at:stop])
        return stop

    def _token(self, text: str, at: int) -> int:
        char = text[at]
        top = self._stack[-1] if self._stack else None
        if char in "{[":
            self._stack.append(_Object(is_list=char == "["))
        elif char in "}]":
            self._close_container()
        elif char == '"':
            self._mode = _JsonMode.STRING
            self._is_key = top is not None and not top.is_list and top.key is None
            if not self._is_key:
                self._begin_value()
        elif char == ",":
            if top is not None:
                top.key = None
        elif not char.isspace() and char != ":":
            self._mode = _JsonMode.SCALAR
            return at
        return at + 1

    def _scalar(self, text: str, at: int) -> int:
        match = _SCALAR.match(text, at)
        if match:
            self._pieces.append(match[0])
            at = match.end()
        if at < len(text):
            value = "".join(self._pieces)
            self._pieces.clear()
            self._mode = _JsonMode.VALUE
            top = self._stack[-1] if self._stack else None
            if top is not None and top.key is not None:
                top.scalars[top.key] = value
            elif top is not None and not top.is_list:
                self._not_json()
        return at

    def _string(self, text: str, at: int) -> int:
        if self._escape:
            return self._escaped(text, at)
        match = _SPECIAL.search(text, at)
        stop = len(text) if match is None else match.start()
        if stop > at:
            self._piece(text[at:stop])
        if match is None:
            return stop
        char = match[0]
        if char == '"':
            self._end_string()
        elif char == "\\":
            self._escape = "\\"
        else:
            self._piece(char)  # a raw newline or tab, which models do write
        return stop + 1

    def _escaped(self, text: str, at: int) -> int:
        self._escape += text[at]
        if self._escape[1] != "u":
            self._piece(_ESCAPES.get(self._escape[1], self._escape))
            self._escape = ""
        elif len(self._escape) == 6:
            try:
                char = chr(int(self._escape[2:], 16))
            except ValueError:
                char = self._escape
            self._escape = ""
            if "\ud800" <= char <= "\udbff":
                self._flush_surrogate()
                self._surrogate = char
            elif "\udc00" <= char <= "\udfff" and self._surrogate:
                pair = (self._surrogate + char).encode("utf-16", "surrogatepass").decode("utf-16")
                self._surrogate = ""
                self._piece(pair)
            else:
                self._piece(char)
        return at + 1

    def _flush_surrogate(self) -> None:
        if self._surrogate:
            self._surrogate = ""
            self._emit("\ufffd")

    def _piece(self, text: str) -> None:
        self._flush_surrogate()
        self._emit("\ufffd" if len(text) == 1 and "\ud800" <= text <= "\udfff" else text)

    def _emit(self, text: str) -> None:
        if self._hunk is not None:
            self._ends.feed(text)
            self._new(self._folder.feed(text))
        elif self._patch is not None:
            self._events += self._patch.feed(text)
        else:
            self._pieces.append(text)

    def _begin_value(self) -> None:
        """Find out whether the string that starts can be reported as it comes."""
        top = self._stack[-1] if self._stack else None
        if top is None or top.key is None:
            return
        if top.key in _PATCH and len(self._stack) == 1 and not top.strings:
            self._patch = V4AParser(self.next_hunk)
            return
        path = self._file_of()
        if path is None or not self._is_new_text(top):
            return
        self._hunk = top.hunk = self._open_hunk(top, path)
        self._folder = NewlineFolder()

    def _is_new_text(self, edit: _Object) -> bool:
        key, strings = edit.key, edit.strings
        if key in _INSERTED or (key in _NEW and strings.get("command") == "insert"):
            return "insert_line" in edit.scalars
        if key in _NEW:
            return bool(_OLD & strings.keys())
        return key in _WHOLE and strings.get("command", "create") in ("create", "write")

    def _end_string(self) -> None:
        self._flush_surrogate()
        self._mode = _JsonMode.VALUE
        text = "".join(self._pieces)
        self._pieces.clear()
        top = self._stack[-1] if self._stack else None
        if self._hunk is not None:
            self._new(self._folder.finish())
            self._hunk = None
            return
        if self._patch is not None:
            self._end_patch(self._patch)
            self._patch = None
            return
        if top is None:
            return
        command = top.is_list or top.key in _COMMAND | _PATCH
        if command and not self._is_key and "*** Begin Patch" in text:
            patch = V4AParser(self.next_hunk)
            self._events += patch.feed(text)
            self._end_patch(patch)
            return
        if not self._is_key and top.key == "arguments" and text.lstrip().startswith("{"):
            self._nested(text)
        elif self._is_key:
            top.key = text
        elif top.key is not None:
            top.strings[top.key] = text

    def _nested(self, text: str) -> None:
        """JSON in a string: the arguments of a recorded tool call."""
        inner = JsonEditParser(self.next_hunk)
        events = [*inner.feed(text), *inner.finish()]
        if inner._edits:
            self._open_file(None)
            self._events += events
            self.next_hunk, self._edits = inner.next_hunk, self._edits + inner._edits

    def _end_patch(self, patch: V4AParser) -> None:
        self._events += patch.finish()
        self.next_hunk = patch.next_hunk
        self._edits += 1

    def _close_container(self) -> None:
        if not self._stack:
            self._leave()
            return
        closed = self._stack.pop()
        if not closed.is_list:
            self._close_object(closed)
        if not self._stack:
            self._leave()
            # The file may be named after the edits of a list.
            path = _first(closed.strings, _PATH)
            for edit in self._pending if path is not None else ():
                self._whole_edit(edit, path or "")
            if path is not None:
                self._pending.clear()

    def _close_object(self, edit: _Object) -> None:
        if edit.hunk is not None:
            self._close_hunk(edit, edit.hunk)
            return
        kind, path = edit.strings.get("type"), edit.strings.get("path")
        if (kind == "create_file" or kind == "update_file" or kind == "delete_file") and path:
            self._open_file(None)
            events = operation_events(kind, path, edit.strings.get("diff", ""), self.next_hunk)
            self._events += events
            self.next_hunk += sum(isinstance(event, HunkOpened) for event in events)
            self._edits += 1
            return
        command = edit.strings.get("command", "")
        complete = (
            (_OLD & edit.strings.keys() and (_NEW & edit.strings.keys() or command))
            or (_WHOLE & edit.strings.keys())
            or ("insert_line" in edit.scalars and (_NEW | _INSERTED) & edit.strings.keys())
        )
        if not complete or command in ("view", "undo_edit"):
            return
        self._stack.append(edit)
        path = self._file_of()
        self._stack.pop()
        if path is None:
            self._pending.append(edit)
        else:
            self._whole_edit(edit, path)

    def _whole_edit(self, edit: _Object, path: str) -> None:
        """Report an edit whose new text came before what it depends on."""
        edit.hunk = self._hunk = self._open_hunk(edit, path)
        folder = NewlineFolder()
        text = _first(edit.strings, _NEW | _INSERTED | _WHOLE) or ""
        self._ends.feed(text)
        self._new(folder.feed(text) + folder.finish())
        self._hunk = None
        self._close_hunk(edit, edit.hunk)

    def _close_hunk(self, edit: _Object, hunk: int) -> None:
        everywhere = _first(edit.scalars, _ALL) == "true"
        self._events.append(HunkClosed(hunk, everywhere=everywhere))
        self._edits += 1

    def _open_hunk(self, edit: _Object, path: str) -> int:
        hunk = self.next_hunk
        self.next_hunk += 1
        old = _first(edit.strings, _OLD)
        line = edit.scalars.get("insert_line")
        whole = old is None and line is None
        self._open_file(path, FileOp.WRITE if whole else FileOp.UPDATE)
        if line is not None and old is None:
            number = int(line) if line.isdigit() else 0
            self._events.append(HunkOpened(hunk, line=number, old_first=True))
            return hunk
        opened = HunkOpened(hunk, characters=True, create_only=not whole, old_first=True)
        self._events.append(opened)
        if old:
            folder = NewlineFolder()
            lines = (folder.feed(old) + folder.finish()).split("\n")
            self._events += (OldLine(hunk, line) for line in lines)
        return hunk

    def _file_of(self) -> str | None:
        for item in reversed(self._stack):
            path = _first(item.strings, _PATH)
            if path is not None:
                return path
        return None

    def _open_file(self, path: str | None, op: FileOp = FileOp.UPDATE) -> None:
        if path == self._path and op is FileOp.UPDATE:
            return
        if self._path is not None:
            newline = "\r\n" if self._ends.all_crlf() else None
            self._events.append(FileSectionClosed(self._path, newline=newline))
        self._path = path
        self._ends = LineEnds()
        if path is not None:
            self._events.append(FileSectionOpened(op, path))

    def _not_json(self) -> None:
        """It is not JSON but prose with a brace."""
        self._stack.clear()
        self._leave()

    def _leave(self) -> None:
        self._mode = _JsonMode.PROSE
        self._fresh = True


def _first(values: dict[str, str], keys: frozenset[str]) -> str | None:
    return next((values[key] for key in values if key in keys), None)


_OPENING = re.compile(r"\s*(?:[\[{]\s*$|\[?\s*\{\s*\"|\[\s*[\[\"])")
_MARKER = re.compile(
    r"\"(?:(?:old|new)(?:_str|_string|_text|Text)|file_text|insert_(?:line|text))\"\s*:"
    r"|\"command\"\s*:\s*\"(?:str_replace|create|insert|view|undo_edit)\""
    r"|\"type\"\s*:\s*\"(?:create|update|delete)_file\""
    r"|\"file_path\"\s*:|\"arguments\"\s*:\s*\"\s*\{"
    r"|\*\*\* (?:Begin Patch|(?:Add|Delete|Update) File:)"
)

_PROMPT: Final = """\
Write your edits as one JSON object and nothing else:

{"edits": [{"path": "file.py", "old_str": "text as it is", "new_str": "text as it shall be"}]}

Each old_str must be copied character by character from the file and occur there exactly once. A new
file is {"path": "file.py", "file_text": "..."}, a file to delete {"type": "delete_file", "path":
"file.py"}.
"""

register(
    FormatSpec(
        "str-replace",
        JsonEditParser,
        sniff=Sniff(_MARKER.search, opening=_OPENING.match),
        prompt=_PROMPT,
        policy=ApplyPolicy(sequential=True),
    )
)
