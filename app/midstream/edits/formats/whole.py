"""Whole files: a file name, then a fence with the file's complete text; one file or several."""

from __future__ import annotations

import re
from html import unescape
from typing import Final

from midstream.edits.events import (
    FileOp,
    FileSectionClosed,
    FileSectionOpened,
    HunkClosed,
    HunkOpened,
    Prose,
)
from midstream.edits.formats import FormatSpec, register
from midstream.edits.parsing import (
    MARKDOWN_FENCE,
    LineParser,
    OpenFence,
    Wait,
    file_operation,
    is_shell,
    mentioned_file,
    name_before,
)

_TAG = re.compile(r"\s*<(content|file_content|file_text)>\s*$")
_ECHO = re.compile(r"\s*<(file(?:-\d+)?) path=\"([^\"]*)\">\s*$")
"""The tag in which a request gives a whole file; models copy it along with the file."""


class WholeFileParser(LineParser):
    """Reads fenced files."""

    _closes_lines = True

    def __init__(self, *, bare: bool = False) -> None:
        """Start a parser; if ``bare``, a reply without any fence is the text of one file."""
        super().__init__()
        self._bare = bare
        self._recent: list[str] = []
        # Everything, while no fence was seen and the reply may be bare.
        self._pending: list[str] = []
        self._fence: OpenFence | None = None
        self._tag = ""  # the line that ends a file given between tags
        self._first = False  # the next line is the first one in a fence
        self._echo = ""  # the line that ends a file given between tags in a fence
        self._mentioned: str | None = None
        self._commands = False  # in a fence of shell commands
        self._path = ""
        self._operated = False  # a file is deleted or moved

    def _start(self, start: str) -> str | Wait:
        if self._tag:
            stripped = start.lstrip()
            return Wait.LINE if not stripped or self._tag.startswith(stripped[:1]) else start
        if self._fence is None or self._commands:
            return Wait.LINE
        if (self._first or self._echo) and start.lstrip()[:1] in ("", "<"):
            return Wait.LINE
        return self._fence.start(start)

    def _passed(self, text: str, *, ended: bool) -> None:
        self._first = False
        super()._passed(text, ended=ended)

    def _line(self, line: str, *, ended: bool) -> None:
        fence = MARKDOWN_FENCE.match(line)
        if self._tag:
            if line.strip() == self._tag:
                self._tag = ""
                self._close()
            else:
                self._new(line + "\n")
        elif self._fence:
            self._file_line(line, fence, self._fence)
        elif (tag := _TAG.match(line)) and (name := name_before(self._named())):
            self._open_tag(tag[1], name)
        elif tag := _ECHO.match(line):
            self._open_tag(tag[1], unescape(tag[2]))
        elif fence:
            self._open(fence)
        elif (operation := file_operation(line)) and not "".join(self._pending).strip():
            self._pending.clear()
            self._events += (*map(Prose, self._recent), *operation)
            self._recent.clear()
            self._mentioned, self._operated = None, True
        elif self._bare and not self.next_hunk and not self._operated:
            self._pending.append(line + "\n")
        else:
            self._mentioned = mentioned_file(line) or self._mentioned
            self._recent.append(line + "\n")
            if len(self._recent) > 3:
                self._prose(self._recent.pop(0))

    def _end(self) -> None:
        if (self._fence or self._tag) and not self._commands:
            self._cut("the reply ends inside the fence of a file")
        elif self._bare and not self.next_hunk and self._pending:
            self._begin("", mentioned=False)
            self._new("".join(self._pending))
            self._close()
        elif not self.next_hunk and not self._operated:
            self._events += map(Prose, self._recent)
            message = "the reply has no edit: no fenced file and no marker of another format"
            self._problem(message, fatal=True)
        else:
            self._events += map(Prose, self._recent)

    def _open_tag(self, tag: str, name: str) -> None:
        self._lead_in()
        self._tag = f"</{tag}>"
        self._begin(name, mentioned=False)
        self._mentioned = None

    def _file_line(self, line: str, fence: re.Match[str] | None, outer: OpenFence) -> None:
        first, self._first = self._first, False
        if first and (tag := _ECHO.match(line)) and self._path in ("", unescape(tag[2])):
            self._echo = f"</{tag[1]}>"
            return
        if self._echo and line.strip() == self._echo:
            self._echo = ""
            return
        if fence and not outer.passes(fence) and outer.closed_by(fence):
            self._close()
            return
        if self._commands:
            self._prose(line + "\n")
        else:
            self._new(line + "\n")

    def _open(self, fence: re.Match[str]) -> None:
        recent = self._named()
        self._lead_in()
        self._fence, self._first, self._echo = OpenFence(fence[1]), True, ""
        name = name_before([*recent, fence[0]])
        self._commands = name is None and is_shell(fence[0])
        if self._commands:
            self._prose(fence[0] + "\n")
        else:
            self._begin(name or self._mentioned or "", mentioned=name is None)
        self._mentioned = None

    def _named(self) -> list[str]:
        """The lines before a file, which may name it."""
        return [text.rstrip("\n") for text in self._pending[-3:] or self._recent]

    def _lead_in(self) -> None:
        """The held-back lines were not a bare file."""
        self._events += map(Prose, self._pending)
        self._pending.clear()
        self._recent.clear()

    def _begin(self, path: str, *, mentioned: bool) -> None:
        self._path = path
        opened = FileSectionOpened(FileOp.WRITE, path, mentioned and bool(path))
        self._events += (opened, HunkOpened(self._begin_hunk()))

    def _close(self) -> None:
        self._fence = None
        if self._commands:
            self._commands = False
            self._prose("```\n")
            return
        if self._hunk is not None:
            closed = FileSectionClosed(self._path, newline=self._newline_of_file())
            self._events += (HunkClosed(self._hunk), closed)
            self._hunk = None


_PROMPT: Final = """\
Write every file that changes completely: its path in a line of its own, then its whole new text in
a code fence. Leave nothing out; a comment such as "rest of the code" would delete the rest. The
line "*** Delete File: path" deletes a file, and "*** Move File: old/path -> new/path" renames it.
"""

register(FormatSpec("whole", WholeFileParser, lambda: WholeFileParser(bare=True), prompt=_PROMPT))
