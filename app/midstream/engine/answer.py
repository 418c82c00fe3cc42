"""An answer of the edit codec during generation: the text that is certain, and the next token.

``StreamDecoder`` turns tokens into text as soon as the text is certain. ``AnswerChoice`` picks the
likeliest token that makes sense at its place, with a second look where a line is about to be kept:
the chances of changing a line are spread over all the ways in which it can change, the chance of
keeping it is in one token, so the line is changed where its changes together are likelier.

What is known of the answer so far tells which tokens make sense. Passed over are a slot that stands
for nothing, an anchor out of order, a ``<cut>`` of what the line does not have, and a name of
another line that was not asked for. A line does not end where it is no line of Python, and no line
follows another that brackets, strings and blocks (``python_lines``) keep apart: an answer does not
end behind ``else:``.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np

from midstream.engine.layout import Layout, deeper, next_line, shallower, split_lines, without_span
from midstream.engine.python_lines import LineState, fitted, may_come
from midstream.engine.slots import SlotTable
from midstream.engine.vocabulary import Vocabulary


@dataclass(slots=True)
class StreamDecoder:
    """Turns generated tokens into text as soon as the text is certain.

    ``feed`` returns what became certain with a token, lines as they end; the concatenation of all
    of it and of ``finish`` is the rewrite after the kept lines. A token that makes no sense at its
    place (an anchor out of order) adds nothing, and a line that is not valid Python is not written.
    """

    vocab: Vocabulary
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
        vocab = self.vocab
        name = vocab.special_name(token_id)
        if self._open in ("swap", "cut") and (name is None or name[1:-1].lstrip("inqv").isdigit()):
            self._swap.append(token_id)
            return ""
        if name is None:
            return self._text(token_id)
        if name[:2] == "<L":
            number = token_id - vocab.anchor_0 - self.layout.first_anchor
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
        """End the answer. Adds nothing: a stop token has closed the last line, and the open line of
        an answer that was cut is not certain.
        """
        self._ended = True
        return ""

    def _start(self, *, raw: bool = False) -> None:
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
        self._pending += str(self._utf8.decode(self.vocab.bytes_of(token_id)))
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
        """Return a source line with the content of its ``<swap>`` or ``<cut>``."""
        if len(self._swap) < 1 + (self._open == "cut") or self._open == "anchor":
            return line
        ids = self.vocab.content(self.layout, self.table, line)
        if self._open == "cut":
            ids = without_span(ids, self._swap[0], self._swap[1], self._swap[2:])
        else:
            ids = self.vocab.replaced(ids, self._swap[0], self._swap[1:])
        margin = "" if line and not line.startswith(self.layout.margin) else self.layout.margin
        return margin + self.vocab.text_of(self.table, ids)

    def stands(self, text: str, old: str | None) -> bool:
        """Whether a line may follow, replacing ``old`` or as a new line (None)."""
        return may_come(text, old, above=self.lines, source=self.layout.lines, used=self.used)


Array = np.ndarray[Any, Any]
MAX_REFUSED: Final = 2
"""Refused line ends after which a line may end anyway."""
CANDIDATES: Final = 24
"""Likeliest tokens to try before the likeliest one is taken regardless."""
MAX_SCRIPT_LINES: Final = 80
"""A line with this many tokens more than the old one has letters is a loop."""
IN_THIS_LINE: Final = 0.1
"""A line is kept if the part to replace is in it with less than this probability."""
GIVES_UP_FROM: Final = 0.7
"""Probability needed to give up (measured: ``models/training/README.md``)."""
FAR_BEHIND: Final = 8.0
"""Difference of logits at which the rest of the vocabulary weighs less than one token."""


@dataclass(slots=True)
class AnswerChoice:
    """The state of one answer, fed token by token; a ``plan.Choice``.

    Attributes:
        vocab: The tokens.
        layout: The region's lines.
        table: What slots stand for.
        used: Source lines that the answer has passed.
        kept: Lines of the answer that are already written.
    """

    vocab: Vocabulary
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
        self._reader = StreamDecoder(self.vocab, self.layout, self.table, self.used, self.kept)
        self._source = self.layout.states()

    def pick(self, logits: Array) -> int:
        """Return the next token for float32 logits ``[vocab]``."""
        token = int(logits.argmax())
        if self._length > MAX_SCRIPT_LINES + len(self._old or ""):
            return self._kept()
        if token == self.vocab.end_id and self._open == "start":
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
        """The token that keeps the line: the next line's anchor."""
        return self.vocab.anchor_0 + self.layout.first_anchor + self.used

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
        """Whether what the model wants to replace is not in this line."""
        chances = np.exp(logits - logits.max())
        here = float(chances[sorted(set(self._line))].sum() / chances.sum())
        return here < IN_THIS_LINE

    def _best(self, logits: Array) -> int:
        top = np.argpartition(logits, -CANDIDATES)[-CANDIDATES:]
        likely = [int(token) for token in top[np.argsort(-logits[top])]]
        for token in likely:
            if self.allows(token):
                return token
        ends = np.argsort(-logits[: self.vocab.first_text_id])
        return next((int(token) for token in ends if self.allows(int(token))), likely[0])

    def allows(self, token: int) -> bool:
        """Whether a token makes sense at this point of the answer."""
        name = self.vocab.special_name(token)
        state = self._open
        if state == "cut" and self._count < 2:
            line = self._line
            return token in (line[line.index(self._first) :] if self._count else line)
        if state == "swap" and not self._count:
            return token in self._line
        content = state in ("line", "new", "anchor", "swap", "cut")
        if name is None:
            word = self.vocab.bytes_of(token).decode("utf-8", "replace").strip()
            return content and (self._old is None or not self.table.strange_to(word, self._old))
        kind = _kind(name)
        if kind in ("i", "q", "v"):
            return content and self._has(name)
        if kind in ("L", "new"):
            number = token - self.vocab.anchor_0 - self.layout.first_anchor
            in_order = kind == "new" or self.used <= number <= len(self.layout.lines)
            return in_order and self._may_end(number if kind == "L" else None)
        if kind in ("swap", "cut") and not self._old:
            return False
        return state in _WHERE.get(kind, ()) and self._may_move(kind)

    def _has(self, slot: str) -> bool:
        """Whether a slot stands for something; what the instruction does not name stays in its
        line.
        """
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
        """Whether the open line may end, followed by a source line (or a new one)."""
        if self._refused >= MAX_REFUSED and self._open in ("line", "swap", "cut"):
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
        """What is open after the lines that are certain."""
        lines = self._reader.lines
        for line in lines[self._read :]:
            self._state = self._state.after(line)
        self._read = len(lines)
        return self._state

    def feed(self, token: int) -> None:
        self._reader.feed(token)
        name = self.vocab.special_name(token)
        kind = "" if name is None else _kind(name)
        self._length += 1
        if kind in ("L", "new"):
            self._begin(token if kind == "L" else None)
        elif kind in ("ind", "ded", "blank", "end"):
            self._open = "moved"
        elif kind in ("swap", "cut"):
            line = self.layout.lines[self.used - 1]
            self._line = self.vocab.content(self.layout, self.table, line)
            # In an empty line there is nothing to replace: what follows is the line.
            self._open, self._count = kind if self._line else "line", 0
        elif self._open in ("swap", "cut"):
            if not self._count:
                self._first = token if token in self._line else self._line[0]
            self._count += 1
        elif self._open != "line":
            self._open, self._raw = "line", kind == "raw"

    def _begin(self, anchor: int | None) -> None:
        self._open = "new" if anchor is None else "anchor"
        self._refused, self._length, self._old, self._raw = 0, 0, None, False
        if anchor is not None:
            at = anchor - self.vocab.anchor_0 - self.layout.first_anchor
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
    return name[1:-1].rstrip("0123456789")
