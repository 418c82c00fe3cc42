"""Reads one streamed answer: from the bytes that come to the events that they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from midstream.responses.events import TEXT_DELTAS, ServerEvent
from midstream.responses.frames import Frame, FrameReader
from midstream.responses.http_api import AnswerReader
from midstream.responses.liberal import loads
from midstream.responses.refusals import error_of


class CutOffError(OSError):
    """The connection was there, and ended before the answer did."""


class AnswerReading:
    """Reads one answer.

    Attributes:
        reader: Of the API.
        heard: Whether any frame has come.
        writes: Whether text of the answer has come.
        said: What came in place of an answer.
        running: Id of the response.
    """

    def __init__(self, reader: AnswerReader, deliver: Callable[[ServerEvent], None]) -> None:
        self.reader = reader
        self.heard = self.writes = False
        self.said = b""
        self.running = ""
        self._events = 0
        self._frames = FrameReader()
        self._deliver = deliver

    def take(self, chunk: bytes) -> bool:
        """Take what has come; whether it was more than a sign of life."""
        before = self._events
        self._read(self._frames.feed(chunk))
        return self._events > before

    def end(self) -> None:
        """The answer has ended.

        Raises:
            CutOffError: It ended within a frame.
        """
        self._read(self._frames.end())
        self.said = self.said or (b"" if self.heard else self._frames.said.strip())
        if self._frames.cut and self.heard and not self.reader.finished:
            raise CutOffError("the answer ended early")
        for event in self.reader.end():
            self._tell(event)

    def _read(self, frames: list[Frame]) -> None:
        for frame in frames:
            if not frame.framed and not self.heard and _is_refusal(frame):
                self.said = frame.data
                continue
            self.heard = True
            for event in self.reader.take(frame):
                self._tell(event)

    def _tell(self, event: ServerEvent) -> None:
        if event.type == "response.created" and event.response is not None:
            self.running = event.response.id
        self._events += 1
        self.writes = self.writes or event.type in TEXT_DELTAS
        self._deliver(event)


def _is_refusal(frame: Frame) -> bool:
    """Whether JSON that is in no event is an error in place of an answer."""
    try:
        value = loads(frame.data)
    except ValueError:
        return False
    if not isinstance(value, dict):
        return error_of(value) is not None
    fields = cast("dict[str, Any]", value)
    return not fields.keys() & {"choices", "content", "output"} and error_of(fields) is not None
