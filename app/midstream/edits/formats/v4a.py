"""V4A, the format of ``apply_patch``: as reply text, as custom-tool input, as hosted operations.

The grammar is OpenAI's; leniency follows what its own applier forgives and what models do: spaces
around markers, a heredoc or a fence around the patch, an empty line for an empty context line, no
``@@`` before the first hunk, stacked ``@@`` lines, unified ``@@ -1,2 +1,2 @@`` headers, a missing
``*** Begin Patch``.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, Literal

from midstream.edits.documents import NewlineFolder
from midstream.edits.events import (
    ContextLine,
    Event,
    FileOp,
    FileSectionClosed,
    FileSectionOpened,
    HunkClosed,
    HunkOpened,
    OldLine,
)
from midstream.edits.formats import ApplyPolicy, EditTool, FormatSpec, Sniff, register
from midstream.edits.parsing import LineParser, Wait

_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_END_OF_FILE: Final = "*** End of File"
_MOVE: Final = "*** Move to:"
_ENVIRONMENT: Final = "*** Environment ID:"
_FILE = re.compile(r"\*\*\* (Add|Delete|Update) File:\s*(\S.*)$")
_UNIFIED = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@(.*)$")
_OPS: Final = {"Add": FileOp.ADD, "Delete": FileOp.DELETE, "Update": FileOp.UPDATE}
_PREFIXES: Final = "'+' (added), '-' (removed) or ' ' (context)"


class _PatchMode(Enum):
    PROSE = "prose"
    PATCH = "patch"  # between files
    ADD = "add"
    UPDATE = "update"


class V4AParser(LineParser):
    """Reads one or more patches, with or without prose around them."""

    _closes_lines = True

    def __init__(self, first_hunk: int = 0) -> None:
        super().__init__(first_hunk)
        self._mode = _PatchMode.PROSE
        self._begun = False
        self._explicit = False  # whether "*** Begin Patch" was there, so that the end must be
        self._path = ""
        self._context: list[str] = []
        self._line_hint: int | None = None
        self._header = False  # "@@" came and no line of its hunk yet
        self._hunks_of_file = 0
        self._new_path: str | None = None
        self._at_end = False
        self._spoiled = False
        self._blanks = 0  # empty lines of an added file which may only separate
        self._maybe_end: list[str] = []  # an indented end marker, and blanks after it

    def _start(self, start: str) -> str | Wait:
        if start.startswith("+") and not self._maybe_end and not self._spoiled:
            if self._mode is _PatchMode.ADD:
                self._add_blanks()
                return start[1:]
            if self._mode is _PatchMode.UPDATE and not self._at_end:
                self._body()
                return start[1:]
        return Wait.LINE

    def _line(self, line: str, *, ended: bool) -> None:
        if self._mode is _PatchMode.PROSE:
            self._prose_line(line + ("\n" if ended else ""))
        elif self._mode is _PatchMode.UPDATE:
            self._held_end(line)
        elif not self._marker(line.strip()):
            if self._mode is _PatchMode.ADD:
                self._added_line(line)
            elif line.strip():
                self._bad_header(line)

    def _end(self) -> None:
        if self._maybe_end:
            self._maybe_end.clear()
            self._end_patch()
        if self._mode is not _PatchMode.PROSE:
            if self._explicit:
                self._cut(f"the patch ends without a line '{_END}'", fatal=True)
            else:
                self._end_patch()
        elif not self._begun:
            self._problem(f"the reply has no line '{_BEGIN}'", fatal=True)

    def _prose_line(self, text: str) -> None:
        stripped = text.strip()
        if stripped == _BEGIN:
            self._explicit = True
        elif not _FILE.match(stripped):
            self._prose(text)
            return
        else:
            self._explicit = False
        self._begun = True
        self._mode = _PatchMode.PATCH
        if stripped != _BEGIN:
            self._marker(stripped)

    def _marker(self, line: str) -> bool:
        """Take a marker that may stand anywhere in a patch; False if it is none."""
        if not line.startswith("***"):
            return False
        if line == _END:
            self._end_patch()
            return True
        if line == _BEGIN:
            return True
        file = _FILE.match(line)
        if file is None:
            return self._mode is _PatchMode.PATCH and line.startswith(_ENVIRONMENT)
        self._close_file()
        self._path = file[2].strip().strip("`\"'")
        op = _OPS[file[1]]
        self._events.append(FileSectionOpened(op, self._path))
        self._hunks_of_file = 0
        self._new_path = None
        if op is FileOp.DELETE:
            self._events.append(FileSectionClosed(self._path))
            self._mode = _PatchMode.PATCH
            self._path = ""
        else:
            self._mode = _PatchMode.ADD if op is FileOp.ADD else _PatchMode.UPDATE
            if op is FileOp.ADD:
                self._open_hunk()
        return True

    def _held_end(self, line: str) -> None:
        """Lines of an update; an indented end marker is content unless the patch ends with it."""
        if self._maybe_end:
            stripped = line.strip()
            if not stripped:
                self._maybe_end.append(line)
                return
            lines = self._maybe_end
            self._maybe_end = []
            if stripped == "EOF" or stripped.startswith("```"):
                self._end_patch()
                self._prose_line(line + "\n")
                return
            for earlier in lines:
                self._update_line(earlier)
        if line[:1] == " " and line.strip() == _END:
            self._maybe_end.append(line)
        else:
            self._update_line(line)

    def _update_line(self, line: str) -> None:
        stripped = line.rstrip()
        if self._marker(stripped):
            return
        if stripped.startswith("@@"):
            self._header_line(stripped)
        elif stripped == _END_OF_FILE:
            self._at_end = True
        elif stripped.startswith(_MOVE) and not self._hunks_of_file and self._hunk is None:
            self._new_path = stripped[len(_MOVE) :].strip()
        elif self._spoiled or (self._at_end and not stripped):
            return
        elif self._at_end:
            self._spoil(f"after '{_END_OF_FILE}' a hunk must start with '@@', not '{line}'")
        elif not line:
            self._events.append(ContextLine(self._body(), ""))
        elif line[0] == " ":
            self._events.append(ContextLine(self._body(), line[1:]))
        elif line[0] == "-":
            self._events.append(OldLine(self._body(), line[1:]))
        elif line[0] == "+":
            self._body()
            self._new(line[1:] + "\n")
        else:
            self._spoil(f"'{line}' is not a line of a hunk, which starts with {_PREFIXES}")

    def _header_line(self, line: str) -> None:
        if self._hunk is not None:
            self._close_hunk()
        self._spoiled = False
        self._header = True
        unified = _UNIFIED.match(line)
        if unified:
            self._line_hint = max(0, int(unified[1]) - 1)
            return
        context = line[2:].removesuffix("@@").strip() and line[2:].removeprefix(" ")
        if context:
            self._context.append(context.removesuffix("@@").rstrip())

    def _added_line(self, line: str) -> None:
        if line.startswith("+"):
            self._add_blanks()
            self._new(line[1:] + "\n")
        elif not line.strip():
            self._blanks += 1
        elif not self._spoiled:
            self._spoil(f"'{line}' is not a line of a new file, which starts with '+'")

    def _add_blanks(self) -> None:
        if self._blanks:
            self._new("\n" * self._blanks)
            self._blanks = 0

    def _bad_header(self, line: str) -> None:
        self._problem(f"'{line.strip()}' is not a file header of a patch", fatal=True)
        self._mode = _PatchMode.PROSE

    def _body(self) -> int:
        return self._open_hunk() if self._hunk is None else self._hunk

    def _open_hunk(self) -> int:
        hunk = self._begin_hunk()
        self._hunks_of_file += 1
        self._events.append(HunkOpened(hunk, tuple(self._context), self._line_hint))
        self._header = False
        self._context.clear()
        self._line_hint = None
        return hunk

    def _close_hunk(self) -> None:
        if self._hunk is not None:
            self._events.append(HunkClosed(self._hunk, at_end=self._at_end))
        self._hunk = None
        self._at_end = False
        self._spoiled = False
        self._blanks = 0

    def _close_file(self) -> None:
        if not self._path:
            return
        no_lines = self._header or not (self._hunks_of_file or self._new_path)
        if self._mode is _PatchMode.UPDATE and self._hunk is None and no_lines:
            self._open_hunk()
            self._problem("the hunk has no lines")
        self._close_hunk()
        newline = self._newline_of_file()
        self._events.append(FileSectionClosed(self._path, self._new_path, newline=newline))
        self._path = ""

    def _end_patch(self) -> None:
        self._close_file()
        self._mode = _PatchMode.PROSE

    def _spoil(self, message: str) -> None:
        self._body()
        self._problem(message)
        self._spoiled = True


def operation_events(
    kind: Literal["create_file", "update_file", "delete_file"],
    path: str,
    diff: str = "",
    first_hunk: int = 0,
) -> list[Event]:
    """Events of one whole operation of the hosted ``apply_patch`` tool.

    Args:
        kind: The operation's type.
        path: The file.
        diff: Its V4A diff without file headers; for a new file only ``+`` lines.  As in OpenAI's
            reference, a new file ends with a newline only if the last ``+`` line is empty, and a
            file without lines takes the line ends of the diff.
        first_hunk: Id of the first hunk.
    """
    folder = NewlineFolder()
    body = folder.feed(diff) + folder.finish()
    body = body.removesuffix("\n")
    headers = {"create_file": "Add", "update_file": "Update", "delete_file": "Delete"}
    text = f"{_BEGIN}\n*** {headers[kind]} File: {path}\n"
    final_newline: bool | None = None
    if kind == "create_file":
        final_newline = body.endswith("\n+") or body == "+"
        body = body.removesuffix("+").removesuffix("\n") if final_newline else body
    if body and kind != "delete_file":
        text += body + "\n"
    newline = "\r\n" if "\r\n" in diff else None
    parser = V4AParser(first_hunk)
    events = parser.feed(f"{text}{_END}\n") + parser.finish()
    return [
        FileSectionClosed(path, None, final_newline, newline)
        if isinstance(event, FileSectionClosed)
        else event
        for event in events
    ]


_MARKER = re.compile(r"\s*\*\*\* (?:Begin Patch\s*$|(?:Add|Delete|Update) File:)")

_PROMPT: Final = """\
Write your edits as one patch in this format, {where}:

*** Begin Patch
*** Update File: app.py
@@ def function_that_contains_the_change
 a line of context, exactly as in the file
-a line to take away
+a line to put in its place
 a line of context
*** End Patch

A new file is "*** Add File: path" with every line after a "+", a file to remove is "*** Delete
File: path", and "*** Move to: path" after "*** Update File: path" renames it. Give three lines of
context before and after each change, copied character by character, indentation included. Where
they occur several times, name the function or class in "@@" lines, outermost first. Paths are
relative. Never use line numbers.
"""

V4A_GRAMMAR: Final = r"""
start: begin_patch section+ end_patch
begin_patch: "*** Begin Patch" NEWLINE
end_patch: "*** End Patch" NEWLINE?

section: added | deleted | updated
added: "*** Add File: " PATH NEWLINE new_line+
deleted: "*** Delete File: " PATH NEWLINE
updated: "*** Update File: " PATH NEWLINE moved? change?
moved: "*** Move to: " PATH NEWLINE
change: (place | changed_line)+ file_end?
place: ("@@" | "@@ " TEXT) NEWLINE
new_line: "+" TEXT? NEWLINE
changed_line: ("+" | "-" | " ") TEXT? NEWLINE
file_end: "*** End of File" NEWLINE

PATH: /[^\r\n]+/
TEXT: /[^\r\n]+/
NEWLINE: /\r?\n/
""".lstrip()
"""The published patch language, in Lark's notation."""

_TOOL: Final = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files. The input is one patch from *** Begin Patch to *** End Patch.",
    "format": {"type": "grammar", "syntax": "lark", "definition": V4A_GRAMMAR},
}
"""The tool through which OpenAI's models stream a patch."""

register(
    FormatSpec(
        "v4a",
        V4AParser,
        sniff=Sniff(_MARKER.match),
        prompt=_PROMPT.format(where="between these two marker lines and nowhere else"),
        tool=EditTool(_TOOL, _PROMPT.format(where="as the input of the tool apply_patch")),
        policy=ApplyPolicy(creates_files=False, one_newline=True, terminates_last_line=True),
    )
)
