"""Whole files: a file name, then a fence with the file's complete text; one file or several."""

from __future__ import annotations

import re
from typing import Final

from midstream.edits.events import (
    FileClosed,
    FileOp,
    FileOpened,
    HunkClosed,
    HunkOpened,
    Prose,
)
from midstream.edits.formats import FormatSpec, register
from midstream.edits.parsing import LineParser, Wait, is_shell, mentioned_file, name_before

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
_TAG = re.compile(r"\s*<(content|file_content|file_text)>\s*$")


class WholeFileParser(LineParser):
    """Reads fenced files.

    Fences inside a file are recognised by their info strings (``` ```python `` opens, a bare fence
    closes the one opened last) and by the length of the outer fence.
    """

    _closes_lines = True

    def __init__(self, *, bare: bool = False) -> None:
        """Start a parser; if ``bare``, a reply without any fence is the text of one file."""
        super().__init__()
        self._bare = bare
        self._recent: list[str] = []
        self._held: list[str] = []  # everything, while no fence was seen and the reply may be bare
        self._fence = ""
        self._tag = ""  # the line that ends a file given between tags
        self._depth = 0
        self._mentioned: str | None = None
        self._commands = False  # in a fence of shell commands
        self._path = ""
        self._hunks = 0

    def _start(self, start: str) -> str | Wait:
        if self._tag:
            stripped = start.lstrip()
            return Wait.LINE if not stripped or self._tag.startswith(stripped[:1]) else start
        if not self._fence or self._commands:
            return Wait.LINE
        stripped = start.lstrip(" ")
        if len(start) - len(stripped) > 3:
            return start
        mark = self._fence[0] * 3
        if not stripped or mark.startswith(stripped):
            return Wait.MORE
        return Wait.LINE if stripped.startswith(mark) else start

    def _line(self, line: str, *, ended: bool) -> None:
        fence = _FENCE.match(line)
        if self._tag:
            if line.strip() == self._tag:
                self._tag = ""
                self._close()
            else:
                self._new(line + "\n")
        elif self._fence:
            self._file_line(line, fence)
        elif (tag := _TAG.match(line)) and (name := name_before(self._named())):
            self._lead_in()
            self._tag = f"</{tag[1]}>"
            self._begin(name, mentioned=False)
            self._mentioned = None
        elif fence:
            self._open(fence)
        elif self._bare and not self._hunks:
            self._held.append(line + "\n")
        else:
            self._mentioned = mentioned_file(line) or self._mentioned
            self._recent.append(line + "\n")
            if len(self._recent) > 3:
                self._prose(self._recent.pop(0))

    def _end(self) -> None:
        if (self._fence or self._tag) and not self._commands:
            message = "the reply ends inside the fence of a file"
            self._problem(message)
        elif self._bare and not self._hunks and self._held:
            self._begin("", mentioned=False)
            self._new("".join(self._held))
            self._close()
        elif not self._hunks:
            self._events += map(Prose, self._recent)
            message = "the reply has no edit: no fenced file and no marker of another format"
            self._problem(message, fatal=True)
        else:
            self._events += map(Prose, self._recent)

    def _file_line(self, line: str, fence: re.Match[str] | None) -> None:
        if fence and fence[1][0] == self._fence[0]:
            if fence[2].strip():
                self._depth += 1
            elif self._depth:
                self._depth -= 1
            elif len(fence[1]) >= len(self._fence):
                self._close()
                return
        if self._commands:
            self._prose(line + "\n")
        else:
            self._new(line + "\n")

    def _open(self, fence: re.Match[str]) -> None:
        recent = self._named()
        self._lead_in()
        self._fence = fence[1]
        self._depth = 0
        name = name_before([*recent, fence[0]])
        self._commands = name is None and is_shell(fence[0])
        if self._commands:
            self._prose(fence[0] + "\n")
        else:
            self._begin(name or self._mentioned or "", mentioned=name is None)
        self._mentioned = None

    def _named(self) -> list[str]:
        """The lines before a file, which may name it."""
        return [text.rstrip("\n") for text in self._held[-3:] or self._recent]

    def _lead_in(self) -> None:
        """The held-back lines were not a bare file."""
        self._events += map(Prose, self._held)
        self._held.clear()
        self._recent.clear()

    def _begin(self, path: str, *, mentioned: bool) -> None:
        self._path = path
        opened = FileOpened(FileOp.WRITE, path, mentioned and bool(path))
        self._hunk, self._hunks = self._hunks, self._hunks + 1
        self._events += (opened, HunkOpened(self._hunk))

    def _close(self) -> None:
        self._fence = ""
        if self._commands:
            self._commands = False
            self._prose("```\n")
            return
        if self._hunk is not None:
            self._events += (HunkClosed(self._hunk), FileClosed(self._path))
            self._hunk = None


_PROMPT: Final = """\
Write every file that changes completely: its path in a line of its own, then its whole new text in
a code fence. Leave nothing out; a comment such as "rest of the code" would delete the rest.
"""

register(FormatSpec("whole", WholeFileParser, lambda: WholeFileParser(bare=True), prompt=_PROMPT))
