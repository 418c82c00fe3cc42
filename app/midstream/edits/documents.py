"""Text files as lines with their own terminators, encoding and byte order mark.

Converts bytes to lines and back without loss, and replaces ranges of lines so that every other line
keeps its bytes.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

_TERMINATOR = re.compile(r"\r\n|\n|\r")
_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")  # PEP 263

_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    # UTF-32 first: its little-endian mark starts with UTF-16's.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


LINE_ENDS = {"\n": "LF", "\r\n": "CRLF", "\r": "CR"}
"""Names of the terminators of lines."""


class NotTextError(ValueError):
    """The bytes are not text that can be edited line by line; the message names why."""


class UnencodableError(ValueError):
    """New text has a character that the file's encoding lacks; the message names both."""


@dataclass(frozen=True, slots=True)
class LineEdit:
    """Replace base lines ``[start, stop)`` by ``lines`` (0-based, without terminators)."""

    start: int
    stop: int
    lines: tuple[str, ...]


def split_lines(text: str) -> tuple[list[str], list[str]]:
    r"""Split at ``\n``, ``\r\n`` and ``\r`` only (not at form feeds or U+2028).

    Returns:
        The lines and their terminators, of equal number; the last terminator is ``""`` if the text
        does not end with one.  The empty text has no lines.
    """
    if "\r" not in text:
        lines = text.split("\n")
        ends = ["\n"] * len(lines)
        if lines[-1]:
            ends[-1] = ""
        else:
            lines.pop()
            ends.pop()
        return lines, ends
    lines = _TERMINATOR.split(text)
    ends = _TERMINATOR.findall(text)
    if lines[-1]:
        ends.append("")
    else:
        lines.pop()
    return lines, ends


@dataclass(frozen=True, slots=True)
class SourceText:
    r"""The text of a file as lines; ``from_bytes(data).to_bytes() == data`` for every text.

    Attributes:
        lines: The lines without terminators.
        ends: A terminator for each line: ``"\n"``, ``"\r\n"``, ``"\r"``; the last may be ``""``.
        encoding: Python codec name, without the byte order mark.
        bom: Whether the file starts with a byte order mark.
        missing: Whether it stands for no file; an empty file has no lines either.
    """

    lines: tuple[str, ...]
    ends: tuple[str, ...]
    encoding: str = "utf-8"
    bom: bool = False
    missing: bool = False

    @classmethod
    def from_bytes(cls, data: bytes) -> SourceText:
        """Decode by byte order mark, then by a PEP 263 declaration, then as UTF-8.

        Raises:
            NotTextError: The bytes have a NUL, cannot be decoded, or would not be written back
                unchanged.
        """
        for mark, encoding in _BOMS:
            if data.startswith(mark):
                return cls._decode(data, encoding, mark)
        if b"\0" in data:
            raise NotTextError(f"it has a NUL byte at offset {data.index(0)}")
        declared = _declared_encoding(data)
        if declared is not None:
            try:
                return cls._decode(data, declared)
            except NotTextError:
                pass  # A wrong declaration must not make a readable UTF-8 file unreadable.
        return cls._decode(data, "utf-8")

    @classmethod
    def _decode(cls, data: bytes, encoding: str, mark: bytes = b"") -> SourceText:
        body = data[len(mark) :]
        try:
            text = body.decode(encoding)
        except UnicodeDecodeError as error:
            raise NotTextError(
                f"byte 0x{body[error.start]:02x} at offset {error.start} is not {encoding}"
            ) from None
        lines, ends = split_lines(text)
        source = cls(tuple(lines), tuple(ends), encoding, bool(mark))
        # Strict UTF-8 always round-trips; other codecs may not.
        if encoding != "utf-8" and source.to_bytes() != data:
            raise NotTextError(f"its {encoding} text would not be written back byte for byte")
        return source

    @classmethod
    def from_text(cls, text: str) -> SourceText:
        """A UTF-8 document with the given text."""
        lines, ends = split_lines(text)
        return cls(tuple(lines), tuple(ends))

    def to_bytes(self) -> bytes:
        """The file's bytes.

        Raises:
            UnencodableError: A line has a character outside the file's encoding.
        """
        text = "".join(part for pair in zip(self.lines, self.ends, strict=True) for part in pair)
        try:
            body = text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise UnencodableError(
                f"the character {text[error.start]!a} cannot be written in {self.encoding}"
            ) from None
        if not self.bom:
            return body
        return next(mark for mark, encoding in _BOMS if encoding == self.encoding) + body

    def replace(self, edits: Sequence[LineEdit], newline: str | None = None) -> SourceText:
        """Apply edits; untouched lines keep their terminators, new lines take their neighbour's.

        The k-th new line of an edit takes the terminator of the k-th line it replaces, further ones
        that of the line before.  A file without a final newline stays without one when its last
        line is new or gone; the line before a new one gets one.

        Args:
            edits: Ascending, not overlapping; insertions at one place keep their order.
            newline: Terminator of all new lines instead of their neighbours'.

        Raises:
            ValueError: Edits overlap, are out of order or out of range, or a new line has a
                terminator in it.
        """
        if not edits:
            return self
        default = self.newline
        lines: list[str] = []
        ends: list[str] = []
        at = 0
        for edit in edits:
            if not at <= edit.start <= edit.stop <= len(self.lines):
                raise ValueError(
                    f"edit of lines {edit.start}-{edit.stop} overlaps or is out of range"
                )
            lines += self.lines[at : edit.start]
            ends += self.ends[at : edit.start]
            for offset, line in enumerate(edit.lines):
                if "\n" in line or "\r" in line:
                    raise ValueError("a new line has a line terminator in it")
                end = ""
                if newline is not None:
                    end = newline
                elif edit.start + offset < edit.stop:
                    end = self.ends[edit.start + offset]
                elif ends:
                    end = ends[-1]
                elif edit.stop < len(self.ends):
                    end = self.ends[edit.stop]
                lines.append(line)
                ends.append(end or default)
            at = edit.stop
        reaches_end = at == len(self.lines)
        lines += self.lines[at:]
        ends += self.ends[at:]
        for index in range(len(ends) - 1):
            ends[index] = ends[index] or default
        if reaches_end and ends and not self.final_newline:
            ends[-1] = ""
        missing = self.missing and not lines
        return replace(self, lines=tuple(lines), ends=tuple(ends), missing=missing)

    def gone(self, missing: bool = True) -> SourceText:
        """The text of this file after it is deleted, or emptied; it still has its encoding."""
        return replace(self, lines=(), ends=(), missing=missing)

    def with_final_newline(self, wanted: bool) -> SourceText:
        """The same text with or without a terminator on its last line."""
        if not self.ends or self.final_newline == wanted:
            return self
        return replace(self, ends=(*self.ends[:-1], self.newline if wanted else ""))

    def with_newline(self, newline: str) -> SourceText:
        """The same lines with another terminator."""
        return replace(self, ends=tuple(end and newline for end in self.ends))

    @property
    def newline(self) -> str:
        r"""The terminator most lines have (the first seen if tied, ``"\n"`` if none)."""
        counts = Counter(end for end in self.ends if end)
        return counts.most_common(1)[0][0] if counts else "\n"

    @property
    def final_newline(self) -> bool:
        """Whether the last line is terminated (true of an empty file)."""
        return not self.ends or self.ends[-1] != ""

    def text(self, start: int = 0, stop: int | None = None) -> str:
        r"""Lines ``[start, stop)``, each terminated by ``"\n"``."""
        return join_lines(self.lines[start:stop])


NO_FILE = SourceText((), (), missing=True)
"""The text of a file that does not exist."""


def join_lines(lines: Iterable[str]) -> str:
    r"""The lines, each terminated by ``"\n"``."""
    return "".join(f"{line}\n" for line in lines)


def _declared_encoding(data: bytes) -> str | None:
    for line in re.split(rb"\r\n|\n|\r", data[:400], maxsplit=2)[:2]:
        if match := _CODING.match(line):
            try:
                name = codecs.lookup(match[1].decode("ascii", "replace")).name
            except LookupError:
                return None
            return None if name in ("utf-8", "utf-8-sig") else name
    return None


class NewlineFolder:
    r"""Folds ``"\r\n"`` and lone ``"\r"`` to ``"\n"``, across chunk borders.

    >>> folder = NewlineFolder()
    >>> folder.feed("a\r") + folder.feed("\nb") + folder.finish()
    'a\nb'
    """

    __slots__ = ("_return",)

    def __init__(self) -> None:
        self._return = False

    def feed(self, text: str) -> str:
        r"""The folded text; a final ``"\r"`` is held back until the next character is known."""
        if not self._return and "\r" not in text:
            return text
        if self._return:
            if not text:
                return text
            text = "\r" + text
        self._return = text.endswith("\r")
        if self._return:
            text = text[:-1]
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def finish(self) -> str:
        r"""``"\n"`` if a ``"\r"`` waits at the end, else ``""``."""
        returned, self._return = self._return, False
        return "\n" if returned else ""
