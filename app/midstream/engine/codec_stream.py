"""The decoder of the edit codec: generated tokens become text as soon as the text is certain."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from midstream.engine.codec_lines import Layout, deeper, next_line, shallower, split_lines
from midstream.engine.codec_spans import without_span
from midstream.engine.line_check import fitted, may_come
from midstream.engine.slots import SlotTable

if TYPE_CHECKING:
    from midstream.engine.codec import EditCodec


@dataclass(slots=True)
class StreamDecoder:
    """Turns generated tokens into text as soon as the text is certain.

    `feed` returns what became certain with a token, lines as they end; the concatenation of all of
    it and of `finish` is the rewrite after the kept lines. A token that makes no sense where it
    stands (an anchor out of order) adds nothing, and a line that is no line of Python is not
    written.
    """

    codec: EditCodec
    layout: Layout
    table: SlotTable
    used: int
    kept: tuple[str, ...] = ()
    """The lines that are already written."""
    gave_up: bool = field(default=False, init=False)
    """Whether the model has said that it cannot do what was asked."""
    lines: list[str] = field(default_factory=list[str], init=False)
    """The lines that are certain, the kept ones included."""
    _open: str = field(default="none", init=False)  # none, anchor, line, new, swap, cut
    _swap: list[int] = field(default_factory=list[int], init=False)
    _utf8: Any = field(default=None, init=False)
    _pending: str = field(default="", init=False)
    _anchored: bool = field(default=False, init=False)
    _raw: bool = field(default=False, init=False)
    _ended: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.lines = list(self.kept)

    def feed(self, token_id: int) -> str:
        """Take one generated token; return the text that it makes certain ("" if none)."""
        text = "" if self._ended else self._fed(token_id)
        self.lines += split_lines(text)
        return text

    def _fed(self, token_id: int) -> str:
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
            text = self._close()
            self._open = "new"
            return text
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
            self._start(raw=True)
        elif name[:3] == "<in" and name[3:-1].isdigit():
            self._start()
            self._pending += self._flush() + "    " * int(name[3:-1])
        elif (text := self.table.text_of(name)) is not None:
            self._start()
            self._pending += self._flush() + text
        return ""

    def finish(self) -> str:
        """End the answer. Adds nothing: a stop token (fed like any other) has closed the last line,
        and of an answer that was cut, a line still open is not certain.
        """
        self._ended = True
        return ""

    def _start(self, *, raw: bool = False) -> None:
        """Make sure that a line is open for content."""
        if self._open == "line":
            return
        self._anchored, self._raw = self._open == "anchor", raw
        self._open = "line"
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = "" if raw else self.layout.margin

    def _flush(self) -> str:
        return str(self._utf8.decode(b"", True)) if self._utf8 is not None else ""

    def _text(self, token_id: int) -> str:
        self._start()
        self._pending += str(self._utf8.decode(self.codec.bytes_of(token_id)))
        return ""

    def _close(self) -> str:
        text, old = self.ending()
        state, self._open = self._open, "none"
        if text is None:
            return ""
        if state not in ("line", "swap", "cut") or (state == "line" and self._raw):
            return text + "\n"
        if not self.stands(text, old):
            return "" if old is None else old + "\n"
        return text + "\n"

    def ending(self) -> tuple[str | None, str | None]:
        """Return the line that is open, as it would be if it ended now, and the source line that it
        replaces; None where there is none.
        """
        source, at = self.layout.lines, self.used
        if self._open in ("anchor", "swap", "cut"):
            return self._changed(source[at - 1]), source[at - 1]
        if self._open == "new":
            return "", None
        if self._open != "line":
            return None, None
        text = self._pending
        if self._utf8 is not None:  # told without taking it: the line may go on
            state = self._utf8.getstate()
            text += self._flush()
            self._utf8.setstate(state)
        if self._raw or self._anchored:
            return text, source[at - 1] if self._anchored else None
        return fitted(text, self.lines, next_line(source[at:])), None

    def _changed(self, line: str) -> str:
        """Return a source line with the content of its `<swap>` or `<cut>`."""
        if len(self._swap) < 1 + (self._open == "cut") or self._open == "anchor":
            return line
        ids = self.codec.content(self.layout, self.table, line)
        if self._open == "cut":
            ids = without_span(ids, self._swap[0], self._swap[1], self._swap[2:])
        else:
            ids = self.codec.replaced(ids, self._swap[0], self._swap[1:])
        margin = "" if line and not line.startswith(self.layout.margin) else self.layout.margin
        return margin + self.codec.text_of(self.table, ids)

    def stands(self, text: str, old: str | None) -> bool:
        """Whether a line may come next, in place of the line come past last or anew (None)."""
        return may_come(text, old, above=self.lines, source=self.layout.lines, used=self.used)
