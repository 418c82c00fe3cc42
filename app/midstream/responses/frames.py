"""The frames of a streamed answer: server-sent events, and what servers send in their place.

One reader for every HTTP API. It is liberal in what it takes: any line end, a byte order mark,
comments, spaces, empty data, events without the blank line between or after them, an ``error``
field, and JSON outside of any frame, which is what a server sends that does not stream, or that
fails. What the frames mean is up to the reader of an API.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

import msgspec

from midstream.responses.liberal import is_whole_json, loads

MAX_FRAME_BYTES: Final = 16 * 1024 * 1024
"""A final event repeats the instructions and the whole output; nothing is larger."""
MAX_SAID_BYTES: Final = 65_536
"""Characters of text outside any frame that are kept for an error message."""

_BOM: Final = b"\xef\xbb\xbf"
_OPENINGS: Final = (b"{", b"[")
_CLOSINGS: Final = (b"}", b"]")


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream.

    Attributes:
        name: Its ``event`` field; ``"error"`` also for data in an ``error`` field.
        data: Its data, without surrounding blanks.
        framed: Whether it was an event; JSON outside of frames is none.
    """

    name: str
    data: bytes
    framed: bool = True

    @property
    def closes(self) -> bool:
        """Whether it only says that no more events follow."""
        return self.data.strip(b'"').upper() == b"[DONE]"


def _listed(frame: Frame) -> list[Frame]:
    """The events in a list, which some servers stream in place of frames."""
    if frame.closes or not frame.data.startswith(b"["):
        return [frame]
    value = loads(frame.data)
    if not isinstance(value, list) or not value:
        return [frame]
    items = cast("list[object]", value)
    return [Frame("", msgspec.json.encode(item), framed=False) for item in items]


class FrameReader:
    """Splits a byte stream into frames; chunk boundaries do not matter.

    Attributes:
        said: The beginning of the text that is in no frame, such as a web page.
        cut: Whether the stream ended within a frame (known after ``end``).
    """

    def __init__(self) -> None:
        self.said = b""
        self.cut = False
        self._begun = False
        self._after_return = False
        self._line: list[bytes] = []
        self._size = 0
        self._name = ""
        self._data: list[bytes] = []
        self._loose: list[bytes] = []
        self._frames: list[Frame] = []

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that this chunk completes.

        Raises:
            ValueError: A frame is too large.
        """
        if not self._begun:
            chunk = b"".join((*self._line, chunk))
            self._line = []
            if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
                self._line = [chunk]
                return []
            self._begun = True
            chunk = chunk.removeprefix(_BOM)
        if self._after_return and chunk:
            self._after_return = False
            chunk = chunk.removeprefix(b"\n")
        if chunk:
            self._after_return = chunk.endswith(b"\r")
            for piece in chunk.splitlines(keepends=True):
                line = piece.rstrip(b"\r\n")
                self._line.append(line)
                self._size += len(line)
                if self._size > MAX_FRAME_BYTES:
                    raise ValueError(f"a frame has more than {MAX_FRAME_BYTES:,} bytes")
                if len(line) < len(piece):
                    self._end_line()
        return self._taken()

    def end(self) -> list[Frame]:
        """The stream has ended; the frames that had only lacked their end."""
        if self._line:
            self._end_line()
        if self._data and not (Frame("", self._joined).closes or is_whole_json(self._joined)):
            self.cut = True
            self._data = []
        self._end_frame()
        if self._loose:
            frame = Frame("", b"\n".join(self._loose).strip(), framed=False)
            if is_whole_json(frame.data):
                self._frames += _listed(frame)
            else:
                self._quote(*self._loose)
                self.cut = True
        return self._taken()

    @property
    def _joined(self) -> bytes:
        return b"\n".join(self._data).strip()

    def _taken(self) -> list[Frame]:
        frames, self._frames = self._frames, []
        return frames

    def _end_line(self) -> None:
        line = b"".join(self._line)
        self._line = []
        if self._loose and not line.startswith(b"data:"):
            self._add_loose(line)
            return
        if self._loose:
            self._quote(*self._loose)
        line = line.lstrip(b" ")
        name, colon, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name.strip().lower():
            case b"" if colon or not line:
                if not line:
                    self._end_frame()
            case b"data":
                while value.startswith(b"data:"):  # From a proxy that wraps frames in frames.
                    value = value[5:].removeprefix(b" ")
                if self._begins_anew(value):
                    self._end_frame()
                self._data.append(value)
            case b"event" if colon:
                self._end_frame()
                self._name = value.strip().decode("utf-8", "replace")
            case b"error" if colon:
                self._end_frame()
                self._frames.append(Frame("error", value.strip()))
            case b"id" | b"retry" if colon:
                pass
            case _ if self._data and not is_whole_json(self._joined):
                self._data.append(line)  # JSON with line ends in it.
            case _:
                self._end_frame()
                self._add_loose(line)
        if not self._data and not self._loose:
            self._size = 0

    def _end_frame(self) -> None:
        data = self._joined
        if data or self._name == "error":
            self._frames.append(Frame(self._name, data))
        self._name, self._data, self._size = "", [], 0

    def _begins_anew(self, value: bytes) -> bool:
        """Whether this data is of another event: some servers leave out the blank line between."""
        return (
            bool(self._data)
            and value.lstrip().startswith(_OPENINGS)
            and self._data[-1].rstrip().endswith(_CLOSINGS)
            and is_whole_json(self._joined)
        )

    def _add_loose(self, line: bytes) -> None:
        """Take a line that is of no event: JSON, perhaps on several lines, or anything else."""
        self._loose.append(line)
        if not self._loose[0].startswith(_OPENINGS):
            self._quote(line)
        elif len(self._loose) == 1 or line.startswith(_CLOSINGS) or not line:
            frame = Frame("", b"\n".join(self._loose).strip(), framed=False)
            if frame.closes or is_whole_json(frame.data):
                self._frames += _listed(frame)
                self._loose = []
            elif len(self._loose) == 1 and line.rstrip().endswith(_CLOSINGS):
                self._quote(line)

    def _quote(self, *lines: bytes) -> None:
        self.said = b"\n".join((*filter(None, (self.said,)), *lines))[:MAX_SAID_BYTES]
        self._loose = []
