"""The decoder of the edit codec: generated tokens become text as soon as the text is certain."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from midstream.engine.codec_lines import Layout, deeper, shallower
from midstream.engine.codec_spans import without_span
from midstream.engine.line_check import inside, may_stand
from midstream.engine.slots import SlotTable

if TYPE_CHECKING:
    from midstream.engine.codec import EditCodec


@dataclass(slots=True)
class StreamDecoder:
    """Turns generated tokens into text as soon as the text is certain.

    `feed` returns what became certain with a token; the concatenation of all of it and of `finish`
    is the rewrite after the kept lines. A token that makes no sense where it stands (an anchor out
    of order) adds nothing.
    """

    codec: EditCodec
    layout: Layout
    table: SlotTable
    used: int
    gave_up: bool = field(default=False, init=False)
    """Whether the model has said that it cannot do what was asked."""
    _open: str = field(default="none", init=False)  # none, anchor, line, new, swap, cut
    _swap: list[int] = field(default_factory=list[int], init=False)
    _utf8: Any = field(default=None, init=False)
    _ended: bool = field(default=False, init=False)

    def feed(self, token_id: int) -> str:
        """Take one generated token; return the text that it makes certain ("" if none)."""
        if self._ended:
            return ""
        codec = self.codec
        name = codec.special_name(token_id)
        if self._open in ("swap", "cut") and (name is None or name[1:-1].lstrip("inqv").isdigit()):
            self._swap.append(token_id)
            return ""
        if name is None:
            return self._text(token_id)
        if name[:2] == "<L":
            number = token_id - codec.anchor_0 - self.layout.first_anchor
            if number == len(self.layout.lines):
                text = self._close()
                self._ended = True
                return text
            if number < self.used or number > len(self.layout.lines):
                return ""
            text = self._close()
            self.used = number + 1
            self._open = "anchor"
            return text
        if name == "<new>":
            return self._close() + self._begin()
        if name == "<end>":
            text = self._close() + "".join(line + "\n" for line in self.layout.lines[self.used :])
            self._ended = self.gave_up = True
            return text
        if name in ("<ind>", "<ded>"):
            if self._open != "anchor":
                return ""
            line = self.layout.lines[self.used - 1]
            moved = deeper(self.layout, line) if name == "<ind>" else shallower(self.layout, line)
            self._open = "none"
            return (line if moved is None else moved) + "\n"
        if name in ("<swap>", "<cut>"):
            if self._open == "anchor":
                self._open, self._swap = name[1:-1], []
            return ""
        if name == "<blank>":
            if self._open != "anchor":
                return ""
            self._open = "none"
            return "\n"
        if name == "<raw>":
            return self._start(margin=False)
        if name[:3] == "<in" and name[3:-1].isdigit():
            return self._start() + self._flush() + "    " * int(name[3:-1])
        text = self.table.text_of(name)
        return "" if text is None else self._start() + self._flush() + text

    def finish(self) -> str:
        """End the answer. Adds nothing: a stop token (fed like any other) has closed the last line,
        and of an answer that was cut, a line still open is not certain.
        """
        self._ended = True
        return ""

    def _start(self, *, margin: bool = True) -> str:
        """Make sure that a line is open for content; return what opening it writes."""
        if self._open == "line":
            return ""
        self._open = "line"
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        return self.layout.margin if margin else ""

    def _begin(self) -> str:
        self._open = "new"
        return ""

    def _flush(self) -> str:
        return str(self._utf8.decode(b"", True)) if self._utf8 is not None else ""

    def _text(self, token_id: int) -> str:
        text = self._start()
        return text + str(self._utf8.decode(self.codec.bytes_of(token_id)))

    def _close(self) -> str:
        state, self._open = self._open, "none"
        if state == "anchor":
            return self.layout.lines[self.used - 1] + "\n"
        if state in ("swap", "cut"):
            return self._swapped(cut=state == "cut") + "\n"
        if state == "line":
            return self._flush() + "\n"
        return "\n" if state == "new" else ""

    def _swapped(self, *, cut: bool) -> str:
        """Return the open line with the content of its `<swap>` or `<cut>`; as it was where that
        would leave no line of Python.
        """
        line = self.layout.lines[self.used - 1]
        if len(self._swap) < 1 + cut:
            return line
        ids = self.codec.content(self.layout, self.table, line)
        if cut:
            ids = without_span(ids, self._swap[0], self._swap[1], self._swap[2:])
        else:
            ids = self.codec.replaced(ids, self._swap[0], self._swap[1:])
        margin = "" if line and not line.startswith(self.layout.margin) else self.layout.margin
        text = margin + self.codec.text_of(self.table, ids)
        before = self.layout.lines[: self.used - 1]
        return text if may_stand(text, line, inside=inside(before)) else line
