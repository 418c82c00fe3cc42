"""Which token comes next in an answer of the edit codec: the likeliest one that makes sense there,
with a second look where a line is about to be kept.

The chances of changing a line are shared by all the ways in which it can change, the chance of
keeping it is in one token. So a line is changed where its changes together are likelier than
keeping it. What is known of the answer so far is enough to tell which tokens mean something: a slot
that stands for nothing, an anchor out of order, a `<cut>` of what the line does not have or a name
of another line that nobody asked for are passed over. A line does not end where it is no line of
Python, and no line follows another that brackets, strings and blocks (`line_state`) keep apart: an
answer does not end behind `else:`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from midstream.engine.codec_lines import Layout, deeper, shallower
from midstream.engine.codec_stream import StreamDecoder
from midstream.engine.line_state import LineState
from midstream.engine.slots import SlotTable

if TYPE_CHECKING:
    from midstream.engine.codec import EditCodec

Array = np.ndarray[Any, Any]
MOST_REFUSED: Final = 2
"""After so many refused ends of a line it may end as it is."""
CANDIDATES: Final = 24
"""So many of the likeliest tokens are tried before the likeliest one is taken as it is."""
LONGEST: Final = 80
"""A line that has so many tokens more than the one it replaces has letters runs in circles."""
IN_THIS_LINE: Final = 0.1
"""A line is kept where what is to be replaced in it stands there with a smaller chance."""
GIVES_UP_FROM: Final = 0.7
"""The model gives up only where it is so sure of that (measured: `models/training/README.md`)."""
FAR_BEHIND: Final = 8.0
"""A vocabulary of thousands of tokens that are so much less likely than one weighs less than it."""


@dataclass(slots=True)
class AnswerChoice:
    """The state of one answer, told token by token; a `plan.Choice`.

    Attributes:
        codec: how the answer is written.
        layout: the region's lines.
        table: what slots stand for.
        used: source lines that the answer has come past.
        kept: lines of the answer that are already written.
    """

    codec: EditCodec
    layout: Layout
    table: SlotTable
    used: int
    kept: tuple[str, ...] = ()
    _reader: StreamDecoder = field(init=False)
    _open: str = field(default="start", init=False)
    _count: int = field(default=0, init=False)
    _line: list[int] = field(default_factory=list[int], init=False)
    _first: int = field(default=0, init=False)
    _old: str | None = field(default=None, init=False)
    _refused: int = field(default=0, init=False)
    _raw: bool = field(default=False, init=False)
    _length: int = field(default=0, init=False)
    _source: list[LineState] = field(init=False)
    _state: LineState = field(default_factory=LineState, init=False)
    _read: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._reader = StreamDecoder(self.codec, self.layout, self.table, self.used, self.kept)
        self._source = self.layout.states()

    def pick(self, logits: Array) -> int:
        """Return the next token for float32 logits `[vocab]`."""
        token = int(logits.argmax())
        if self._length > LONGEST + len(self._old or ""):
            return self._kept()
        if token == self.codec.end_id and self._open == "start":
            return self._gives_up_or(token, logits)
        if self._open == "anchor" and token == self._kept() and self.allows(token):
            return self._changed_or(token, logits)
        if self.allows(token):
            return token
        if self._open in ("swap", "cut") and not self._count and self._elsewhere(logits):
            return self._kept()
        self._refused += 1
        return self._best(logits)

    def _kept(self) -> int:
        """Return the token that keeps the line: the next line's anchor."""
        return self.codec.anchor_0 + self.layout.first_anchor + self.used

    def _changed_or(self, keep: int, logits: Array) -> int:
        highest = logits[keep]
        logits[keep] = -np.inf  # the quickest way to the second highest
        second = logits.max()
        logits[keep] = highest
        if float(second) + FAR_BEHIND < float(highest):
            return keep
        rest, odds = _apart(keep, logits)
        return keep if odds >= 0 else self._best(rest)

    def _gives_up_or(self, end: int, logits: Array) -> int:
        rest, odds = _apart(end, logits)
        return end if odds >= np.log(GIVES_UP_FROM / (1 - GIVES_UP_FROM)) else self._best(rest)

    def _elsewhere(self, logits: Array) -> bool:
        """Whether what the model wants to replace does not stand in this line."""
        chances = np.exp(logits - logits.max())
        here = float(chances[sorted(set(self._line))].sum() / chances.sum())
        return here < IN_THIS_LINE

    def _best(self, logits: Array) -> int:
        top = np.argpartition(logits, -CANDIDATES)[-CANDIDATES:]
        likely = [int(token) for token in top[np.argsort(-logits[top])]]
        for token in likely:
            if self.allows(token):
                return token
        ends = np.argsort(-logits[: self.codec.first_text_id])
        return next((int(token) for token in ends if self.allows(int(token))), likely[0])

    def allows(self, token: int) -> bool:
        """Whether a token means something where the answer stands."""
        name = self.codec.special_name(token)
        state = self._open
        if state == "cut" and self._count < 2:
            line = self._line
            return token in (line[line.index(self._first) :] if self._count else line)
        if state == "swap" and not self._count:
            return token in self._line
        content = state in ("line", "new", "anchor", "swap", "cut")
        if name is None:
            word = self.codec.bytes_of(token).decode("utf-8", "replace").strip()
            return content and (self._old is None or not self.table.strange_to(word, self._old))
        kind = _kind(name)
        if kind in ("i", "q", "v"):
            return content and self._has(name)
        if kind in ("L", "new"):
            number = token - self.codec.anchor_0 - self.layout.first_anchor
            in_order = kind == "new" or self.used <= number <= len(self.layout.lines)
            return in_order and self._may_end(number if kind == "L" else None)
        if kind in ("swap", "cut") and not self._old:
            return False
        return state in _WHERE.get(kind, ()) and self._may_move(kind)

    def _has(self, slot: str) -> bool:
        """Whether a slot stands for something; what nobody named stays in its line."""
        text = self.table.text_of(slot)
        if text is None or slot[1] != "v" or self._old is None:
            return text is not None
        return text in self._old or slot in self.table.asked_for

    def _may_move(self, kind: str) -> bool:
        """Whether the line may stand as it is, further in or out."""
        if kind not in ("ind", "ded") or not self._source or self._old is None:
            return True
        moved = (deeper if kind == "ind" else shallower)(self.layout, self._old)
        return moved is not None and self._behind().may_follow(moved)

    def _may_end(self, number: int | None) -> bool:
        """Whether the line that is open may end, with a source line (or a new one) behind it."""
        if self._refused >= MOST_REFUSED and self._open in ("line", "swap", "cut"):
            return True
        text, old = self._reader.ending()
        written = self._open in ("line", "swap", "cut")
        ready = text is None or (text != old and self._reader.stands(text, old))
        if written and not self._raw and not ready:
            return False
        if not self._source or self._raw:
            return True
        state = self._behind()
        if text is not None:
            if not state.may_follow(text):
                return False
            state = state.after(text)
        if number is None:
            return True
        done = number == len(self.layout.lines)
        return state.open_like(self._source[number]) and not (done and state.unfinished)

    def _behind(self) -> LineState:
        """Return what is open behind the lines that are certain."""
        lines = self._reader.lines
        for line in lines[self._read :]:
            self._state = self._state.after(line)
        self._read = len(lines)
        return self._state

    def feed(self, token: int) -> None:
        """Take the token that was chosen."""
        self._reader.feed(token)
        name = self.codec.special_name(token)
        kind = "" if name is None else _kind(name)
        self._length += 1
        if kind in ("L", "new"):
            self._begin(token if kind == "L" else None)
        elif kind in ("ind", "ded", "blank", "end"):
            self._open = "moved"
        elif kind in ("swap", "cut"):
            line = self.layout.lines[self.used - 1]
            self._line = self.codec.content(self.layout, self.table, line)
            # In an empty line there is nothing to replace: what follows is the line.
            self._open, self._count = kind if self._line else "line", 0
        elif self._open in ("swap", "cut"):
            if not self._count:
                self._first = token if token in self._line else self._line[0]
            self._count += 1
        elif self._open != "line":
            self._open, self._raw = "line", kind == "raw"

    def _begin(self, anchor: int | None) -> None:
        """Begin a line: the one of an anchor, or a new one."""
        self._open = "new" if anchor is None else "anchor"
        self._refused, self._length, self._old, self._raw = 0, 0, None, False
        if anchor is not None:
            at = anchor - self.codec.anchor_0 - self.layout.first_anchor
            self.used = at + 1
            self._old = self.layout.lines[at] if at < len(self.layout.lines) else None


_WHERE: Final[dict[str, tuple[str, ...]]] = {
    "end": ("start",),
    "ind": ("anchor",),
    "ded": ("anchor",),
    "swap": ("anchor",),
    "cut": ("anchor",),
    "blank": ("anchor",),
    "in": ("anchor", "new", "cut"),
    "raw": ("anchor", "new"),
}
"""In which state of an answer the other special tokens may come."""


def _apart(token: int, logits: Array) -> tuple[Array, float]:
    """Return logits without a token, and its log-odds against all others together."""
    rest = logits.copy()
    rest[token] = -np.inf
    high = float(rest.max())
    return rest, float(logits[token]) - high - float(np.log(np.exp(rest - high).sum()))


@cache
def _kind(name: str) -> str:
    """Return a special token's name without brackets and number."""
    return name[1:-1].rstrip("0123456789")
