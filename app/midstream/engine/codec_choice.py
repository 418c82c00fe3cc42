"""Which token comes next in an answer of the edit codec: the likeliest one that makes sense there,
with a second look where a line is about to be kept.

The chances of changing a line are shared by all the ways in which it can change, the chance of
keeping it is in one token. So a line is changed where its changes together are likelier than
keeping it. What is known of the answer so far is enough to tell which tokens mean something: a slot
that stands for nothing, an anchor out of order or a `<cut>` of what the line does not have are
passed over, and a line does not end with brackets open that were not open before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from midstream.engine.codec_lines import Layout
from midstream.engine.codec_spans import without_span
from midstream.engine.line_check import inside, may_stand
from midstream.engine.slots import SlotTable

if TYPE_CHECKING:
    from midstream.engine.codec import EditCodec

Array = np.ndarray[Any, Any]
MOST_REFUSED: Final = 2
"""After so many refused ends of a line it may end as it is."""
CANDIDATES: Final = 24
"""So many of the likeliest tokens are tried before the likeliest one is taken as it is."""
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
    """

    codec: EditCodec
    layout: Layout
    table: SlotTable
    used: int
    _open: str = field(default="start", init=False)
    _count: int = field(default=0, init=False)
    _line: list[int] = field(default_factory=list[int], init=False)
    _first: int = field(default=0, init=False)
    _tokens: list[int] = field(default_factory=list[int], init=False)
    _old: str | None = field(default=None, init=False)
    _refused: int = field(default=0, init=False)
    _raw: bool = field(default=False, init=False)

    def pick(self, logits: Array) -> int:
        """Return the next token for float32 logits `[vocab]`."""
        token = int(logits.argmax())
        if self._open == "anchor" and token == self._kept():
            return self._changed_or(token, logits)
        if self.allows(token):
            return token
        self._refused += 1
        return self._best(logits)

    def _kept(self) -> int:
        """Return the token that keeps the line: the next line's anchor."""
        return self.codec.anchor_0 + self.layout.first_anchor + self.used

    def _changed_or(self, keep: int, logits: Array) -> int:
        rest = logits.copy()
        rest[keep] = -np.inf
        high = float(rest.max())
        if high + FAR_BEHIND < float(logits[keep]):
            return keep
        others = high + float(np.log(np.exp(rest - high).sum()))
        return self._best(rest) if others > float(logits[keep]) else keep

    def _best(self, logits: Array) -> int:
        order = np.argsort(-logits)[:CANDIDATES]
        return next((int(token) for token in order if self.allows(int(token))), int(order[0]))

    def allows(self, token: int) -> bool:
        """Whether a token means something where the answer stands."""
        name = self.codec.special_name(token)
        state = self._open
        if state == "cut" and self._count < 2:
            line = self._line
            return token in (line[line.index(self._first) :] if self._count else line)
        content = state in ("line", "new", "anchor", "swap", "cut")
        if name is None:
            return content
        kind = _kind(name)
        if kind in ("i", "q", "v"):
            return content and self.table.text_of(name) is not None
        if kind in ("L", "new"):
            number = token - self.codec.anchor_0 - self.layout.first_anchor
            in_order = kind == "new" or self.used <= number <= len(self.layout.lines)
            open_ = state in ("swap", "cut", "line") and self._refused < MOST_REFUSED
            return in_order and not (open_ and not self._whole())
        if kind in ("swap", "cut") and not self._old:
            return False
        return state in _WHERE.get(kind, ())

    def _whole(self) -> bool:
        """Whether the line that is open may end as it is."""
        tokens = self._tokens
        if self._open == "line" and self._raw:
            return True
        if self._open == "swap":
            tokens = self.codec.replaced(self._line, tokens[0], tokens[1:]) if tokens else []
        elif self._open == "cut":
            if len(tokens) < 2:
                return True
            tokens = without_span(self._line, tokens[0], tokens[1], tokens[2:])
        text = self.codec.text_of(self.table, tokens)
        before = self.layout.lines[: self.used - (self._old is not None)]
        return may_stand(text, self._old, inside=inside(before))

    def feed(self, token: int) -> None:
        """Take the token that was chosen."""
        name = self.codec.special_name(token)
        kind = "" if name is None else _kind(name)
        if kind in ("L", "new"):
            self._begin(token if kind == "L" else None)
        elif kind in ("ind", "ded", "blank", "end"):
            self._open = "moved"
        elif kind in ("swap", "cut"):
            line = self.layout.lines[self.used - 1]
            self._line = self.codec.content(self.layout, self.table, line)
            # In an empty line there is nothing to replace: what follows is the line.
            self._open, self._count = kind if self._line else "line", 0
        else:
            if self._open in ("swap", "cut"):
                if not self._count:
                    self._first = token if token in self._line else self._line[0]
                self._count += 1
            elif self._open != "line":
                self._open, self._raw = "line", kind == "raw"
            self._tokens.append(token)

    def _begin(self, anchor: int | None) -> None:
        """Begin a line: the one of an anchor, or a new one."""
        self._open = "new" if anchor is None else "anchor"
        self._tokens, self._refused, self._old = [], 0, None
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


def _kind(name: str) -> str:
    """Return a special token's name without brackets and number."""
    return name[1:-1].rstrip("0123456789")
