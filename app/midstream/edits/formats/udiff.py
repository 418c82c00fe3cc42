"""Unified diffs as git writes them, and as models do (line numbers wrong or none).

Line numbers are hints; the text of a hunk decides where it belongs.
"""

from __future__ import annotations

import re
from typing import Final

from midstream.edits.events import (
    ContextLine,
    FileOp,
    FileSectionClosed,
    FileSectionOpened,
    HunkClosed,
    HunkOpened,
    OldLine,
)
from midstream.edits.formats import ApplyPolicy, FormatSpec, Sniff, register
from midstream.edits.parsing import LineParser, Wait

_GIT: Final = "diff --git "
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$")
_TIME = re.compile(r"\s+\d{4}-\d\d-\d\d[ T]\d\d:\d\d\S*.*$")
_LOOSE = re.compile(r"@@(?: (.*?))?(?: ?@@)?\s*$")
_EXTENDED = re.compile(
    r"(index|old mode|new mode|new file mode|deleted file mode|(?:dis)?similarity index|"
    r"rename (?:from|to)|copy (?:from|to)|Index:|=+$)"
)
_SOURCE = re.compile(r"(?:rename|copy) from (.*)$")
_MODE = re.compile(r"new (?:file )?mode (\d{6})$")
_BINARY = re.compile(r"GIT binary patch$|Binary files .* differ$")


class UnifiedDiffParser(LineParser):
    """Reads one or more file diffs, with or without prose and fences around them."""

    _closes_lines = True

    def __init__(self) -> None:
        super().__init__()
        self._minus: str | None = None  # a "---" line that may be a header
        self._blanks = 0  # empty lines that may end the hunk or be context
        self._source: str | None = None
        self._path: str | None = None
        self._git: tuple[str, str] | None = None
        self._new_path: str | None = None
        self._copied = False  # the new path is a copy; the old file stays
        self._final_newline: bool | None = None
        self._last_side = ""
        self._old_left = self._new_left = 0
        self._counted = False
        self._any = False
        self._created = False  # "new file mode" came
        self._executable: bool | None = None
        self._headed = False  # the header of a file came and nothing of a hunk yet

    def _start(self, start: str) -> str | Wait:
        counted_out = self._counted and not self._new_left
        if self._hunk is not None and self._minus is None and start[0] == "+" and not counted_out:
            if start.startswith("+++"):
                return Wait.LINE
            if len(start) < 4 and not start.strip("+"):
                return Wait.MORE
            self._flush_blanks()
            self._new_left -= 1
            self._last_side = "+"
            return start[1:]
        return Wait.LINE

    def _line(self, line: str, *, ended: bool) -> None:
        if self._minus is not None:
            minus, self._minus = self._minus, None
            if line.startswith("+++ "):
                self._header(minus, line)
                return
            self._deleted(minus[1:])
        if self._hunk is not None and self._body(line):
            return
        if line.startswith("--- "):
            self._close_hunk()
            self._minus = line
        elif hunk := _HUNK.match(line):
            self._open_hunk(hunk)
        elif self._path is not None and line.startswith("@@") and (loose := _LOOSE.match(line)):
            self._open_loose(loose[1])
        elif self._headed and line[:1] in ("+", "-", " "):
            self._open_loose(None)  # some models leave the "@@" line out
            self._body(line)
        elif git := _git_names(line):
            self._close_file()
            self._git = git
        elif (source := _SOURCE.match(line)) and self._git is not None:
            self._git = (_unquoted(source[1]), self._git[1])
        elif line.startswith("rename to ") and self._git is not None:
            self._rename(_unquoted(line.removeprefix("rename to ")))
        elif line.startswith("copy to ") and self._git is not None:
            self._rename(_unquoted(line.removeprefix("copy to ")))
            self._copied = True
        elif line.startswith("deleted file mode") and self._git is not None:
            self._source = self._git[0]
        elif self._git is not None and (mode := _MODE.match(line)):
            self._created = line.startswith("new file")  # an empty file has no header of its own
            self._take_mode(mode[1])
        elif self._git is not None and _BINARY.match(line):
            self._refuse(f"{self._git[1]} is binary here; apply that part with git apply")
        elif self._git is None or not _EXTENDED.match(line):
            self._close_hunk()
            self._prose(line + "\n")

    def _end(self) -> None:
        if self._minus is not None:
            minus, self._minus = self._minus, None
            if self._hunk is not None:
                self._deleted(minus[1:])
            else:
                self._prose(minus)
        self._close_file()
        if not self._any:
            self._problem("the reply has no diff", fatal=True)

    def _body(self, line: str) -> bool:
        """Take a line of the open hunk; False if it ends the hunk."""
        if line.startswith("\\"):
            if self._last_side == "+" or self._last_side == " ":
                self._final_newline = False
            elif self._final_newline is None:
                self._final_newline = True
            return True
        if self._counted and self._old_left <= 0 and self._new_left <= 0:
            signature = line.rstrip() == "--"  # of a mail, after a complete hunk
            if line[:1] not in ("+", "-", " ") or line.startswith(("--- ", "+++ ")) or signature:
                self._close_hunk()
                return False
            self._counted = False  # the numbers were wrong: the hunk continues
        if not line:
            self._blanks += 1
            return True
        side, text = line[0], line[1:]
        if line.startswith("--- ") and not (self._counted and self._old_left > 0):
            self._minus = line  # a header or a deleted line; the next line decides
            return True
        if side not in "+- ":
            self._close_hunk()
            return False
        self._flush_blanks()
        self._last_side = side
        if side == "+":
            self._new_left -= 1
            self._new(text + "\n")
        elif side == "-":
            self._deleted(text)
        else:
            self._context(text)
        return True

    def _deleted(self, text: str) -> None:
        if self._hunk is None:
            self._prose(f"-{text}\n")
            return
        self._flush_blanks()
        self._last_side = "-"
        self._old_left -= 1
        self._events.append(OldLine(self._hunk, text))

    def _context(self, text: str) -> None:
        if self._hunk is not None:
            self._old_left -= 1
            self._new_left -= 1
            self._events.append(ContextLine(self._hunk, text))

    def _flush_blanks(self) -> None:
        for _ in range(self._blanks):
            self._context("")
        self._blanks = 0

    def _header(self, minus: str, plus: str) -> None:
        self._close_hunk()
        git, copied, executable = self._git, self._copied, None
        old, new = _paths_of(minus, plus, renamed=self._new_path is not None)
        if old == self._source or self._new_path is None:
            self._source = None  # this header says the same, with hunks to follow
        if git is not None and (old == git[0] or new == git[1]):
            executable, self._executable, self._created = self._executable, None, False
        self._close_file()
        self._git = None
        self._any = self._headed = True
        self._executable = executable
        if new is None:
            self._path = old or (git[0] if git else "")
            self._events.append(FileSectionOpened(FileOp.DELETE, self._path))
        elif old is None:
            self._path = new
            self._events.append(FileSectionOpened(FileOp.ADD, new))
        else:
            self._path = old
            self._new_path = new if new != old else None
            self._copied = copied
            self._events.append(FileSectionOpened(FileOp.UPDATE, old))

    def _rename(self, new: str) -> None:
        """A rename without changes has no ``---`` line; one with changes gets it next."""
        if self._git is not None:
            self._source = self._git[0]
            self._new_path = new

    def _take_mode(self, mode: str) -> None:
        """A file's mode as git has it: ``100755`` is executable, ``100644`` is not."""
        if mode.startswith("100"):
            self._executable = mode == "100755"
        elif self._git is not None:
            kind = "a symbolic link" if mode == "120000" else "no plain file"
            # Fatal: as a plain file it would contain the name that it points to.
            self._refuse(f"{self._git[1]} is {kind} here; use git apply", fatal=True)

    def _refuse(self, message: str, *, fatal: bool = False) -> None:
        self._any = True
        self._problem(message, fatal=fatal)

    def _open_hunk(self, match: re.Match[str]) -> None:
        self._close_hunk()
        self._counted = True
        self._old_left = int(match[2] or 1)
        self._new_left = int(match[4] or 1)
        line = int(match[1]) - (1 if self._old_left else 0)
        context = (match[5],) if match[5].strip() else ()
        self._opened(HunkOpened(self.next_hunk, context, max(0, line)))

    def _open_loose(self, context: str | None) -> None:
        self._close_hunk()
        self._counted = False
        loose = context is not None and re.fullmatch(r"[.\s\-+,\d]*", context) is None
        self._opened(HunkOpened(self.next_hunk, (context,) if context and loose else ()))

    def _opened(self, event: HunkOpened) -> None:
        if self._path is None:
            self._path = ""
            self._any = True
            self._events.append(FileSectionOpened(FileOp.UPDATE, ""))
        self._begin_hunk()
        self._headed = False
        self._events.append(event)

    def _close_hunk(self) -> None:
        if self._hunk is None:
            return
        if self._counted and self._blanks and self._old_left > 0:
            self._blanks = min(self._blanks, self._old_left)
            self._flush_blanks()
        self._blanks = 0
        self._events.append(HunkClosed(self._hunk))
        self._hunk = None

    def _open_bare(self, git: tuple[str, str]) -> None:
        """Open a file that has only a header in git's diff: empty, renamed, deleted, or with a new
        mode.
        """
        if self._created:
            op, path = FileOp.ADD, git[1]
        elif self._source is not None:
            op, path = FileOp.UPDATE if self._new_path else FileOp.DELETE, self._source
        elif self._executable is not None:
            op, path = FileOp.UPDATE, git[1]
        else:
            return
        self._any = True
        self._path = path
        self._events.append(FileSectionOpened(op, path))

    def _close_file(self) -> None:
        self._close_hunk()
        if self._path is None and self._git is not None:
            self._open_bare(self._git)
        if self._path is not None:
            closed = FileSectionClosed(
                self._path,
                self._new_path,
                self._final_newline,
                copied=self._copied,
                executable=self._executable,
                newline=self._newline_of_file(),
            )
            self._events.append(closed)
        self._path = self._new_path = self._source = self._git = None
        self._created = self._headed = self._copied = False
        self._final_newline = self._executable = None


def _unquoted(name: str) -> str:
    """The plain form of a name that git may have quoted like a C string."""
    if len(name) < 2 or name[0] != '"' or name[-1] != '"':
        return name

    def byte(match: re.Match[bytes]) -> bytes:
        code = match[1]
        return bytes([int(code, 8) & 255]) if code.isdigit() else _ESCAPED.get(code, code)

    data = re.sub(rb"\\([0-7]{1,3}|.)", byte, name[1:-1].encode("utf-8", "surrogateescape"))
    return data.decode("utf-8", "surrogateescape")


def _git_names(line: str) -> tuple[str, str] | None:
    """Both names of a ``diff --git`` line without their prefixes; ``None`` for any other line.

    Names with spaces are not quoted: then the line is cut where both halves name the same file.
    """
    if not line.startswith(_GIT):
        return None
    rest = line.removeprefix(_GIT)
    if (quoted := _QUOTED_FIRST.fullmatch(rest)) or (quoted := _QUOTED_SECOND.fullmatch(rest)):
        pair = (quoted[1], quoted[2])
    else:
        cuts = [at for at, char in enumerate(rest) if char == " "]
        pairs = [(rest[:at], rest[at + 1 :]) for at in cuts]
        same = [pair for pair in pairs if _bare(*pair)[0] == _bare(*pair)[1]]
        usual = [pair for pair in pairs if _PREFIX.match(pair[0]) and _PREFIX.match(pair[1])]
        if not (found := same or usual or pairs[:1]):
            return None
        pair = found[0]
    return _bare(_unquoted(pair[0]), _unquoted(pair[1]))


def _bare(old: str, new: str) -> tuple[str, str]:
    """Two names of one file without the prefixes that tell its sides apart, ``a/`` and ``b/``.

    A folder that both names begin with is part of the name (``git diff --no-prefix``).
    """
    if old[:2] != new[:2] and _PREFIX.match(old) and _PREFIX.match(new):
        return old[2:], new[2:]
    return old, new


def _paths_of(minus: str, plus: str, *, renamed: bool) -> tuple[str | None, str | None]:
    """The names of a ``---`` and a ``+++`` line; ``None`` for ``/dev/null``."""
    old, new = (_name_of(header) for header in (minus, plus))
    if old == "/dev/null" or new == "/dev/null":
        sides = [None if name == "/dev/null" else _PREFIX.sub("", name) for name in (old, new)]
        return sides[0], sides[1]
    old, new = _bare(old, new)
    if not renamed and old != new:
        # Only git moves files: two folders that were compared, old/x.py and new/x.py.
        parts, parts_new = old.split("/"), new.split("/")
        same = 0
        while same < min(len(parts), len(parts_new)) and parts[-1 - same] == parts_new[-1 - same]:
            same += 1
        if same:
            return "/".join(parts[-same:]), "/".join(parts[-same:])
        if old.startswith(new) or new.startswith(old):  # x.py.orig and x.py
            return min(old, new, key=len), min(old, new, key=len)
    return old, new


def _name_of(header: str) -> str:
    """The name of a ``---`` or ``+++`` line, with its prefix."""
    name = header[4:]
    if name.startswith('"') and (end := _QUOTED.match(name)):
        return _unquoted(end[0])
    return _TIME.sub("", name.split("\t")[0]).strip()


_PREFIX = re.compile(r"\A[abciow]/")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_QUOTED_FIRST = re.compile(rf"({_QUOTED.pattern}) (.+)")
_QUOTED_SECOND = re.compile(rf"(.+?) ({_QUOTED.pattern})")
_ESCAPED: Final = {
    b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r",
}  # fmt: skip

_MARKER = re.compile(r"diff --git |@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|\+\+\+ \S")

_PROMPT: Final = """\
Write your edits as one unified diff, as `diff -U3` would: "--- a/path", "+++ b/path", and hunks
that start with "@@ ... @@". Line numbers are not needed. Lines of context and removed lines must be
copied character by character from the file. Make hunks of whole blocks rather than of single lines.
"""

register(
    FormatSpec(
        "udiff",
        UnifiedDiffParser,
        sniff=Sniff(_MARKER.match),
        prompt=_PROMPT,
        policy=ApplyPolicy(creates_files=False),
    )
)
