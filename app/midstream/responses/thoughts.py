"""Tells the thoughts of a model from its answer, where the server leaves them in the text.

Engines with a reasoning parser send thoughts in fields of their own; all others send what the model
wrote, in many dresses: between tags, in the channels of the harmony format, and often without the
opening tag, which the chat template has put into the prompt. Only the closing tag then shows that
all before it was a thought, so what was taken for the answer is taken back (``Told.retracts``).

Tags that the request itself holds are text: someone edits a file about them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

_NAMES: Final = (
    *("<think>", "<thinking>", "<thought>", "<thoughts>", "<seed:think>"),
    *("<reasoning>", "<reflection>", "<scratchpad>", "<analysis>"),
)
_INTERCHANGEABLE: Final = _NAMES[:4]
"""Models open with one of these and close with another."""
_TAGS: Final = {opening: f"</{opening[1:]}" for opening in _NAMES} | {
    "<|thinking|>": "<|/thinking|>",
    "[think]": "[/think]",
    "◁think▷": "◁/think▷",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|start_thinking|>": "<|end_thinking|>",
    "<|channel>thought": "<channel|>",
}
"""Openings and their closings, in lower case and without blanks; models write them in any case, and
some with blanks or attributes."""


def _loose(*tags: str) -> re.Pattern[str]:
    """One of these tags; it may hold blanks, and an opening one attributes."""
    found: list[str] = []
    for tag in tags:
        *parts, last = map(re.escape, re.findall(r"[<>\[\]/]|[^<>\[\]/]+", tag))
        attributes = r"(?:\s[\w-]+=[^<>\n]{0,40})?" if tag in _NAMES else ""
        found.append(r"\s{0,2}".join((*parts, attributes + last)))
    return re.compile("|".join(found), re.IGNORECASE)


def _bare(tag: str) -> str:
    """A tag as it stands in the tables."""
    return re.sub(r"\s+(?:[\w-]+=[^>]*)?", "", tag).lower()


_WITH_ATTRIBUTE: Final = re.compile(r"<\s{0,2}(?P<name>[\w:]+)\s[\w-]+(?:=[^<>\n]{0,40})?")
_CLOSING: Final = _loose(*_TAGS.values())
_OPENING: Final = _loose(*_TAGS)
_CLOSINGS: Final = {
    opening: _loose(*(_TAGS[name] for name in _INTERCHANGEABLE))
    if opening in _INTERCHANGEABLE
    else _loose(closing)
    for opening, closing in _TAGS.items()
}
"""The mark that closes each of them."""
_HEADER: Final = re.compile(
    r"(?:<\|start\|>[^<]{0,40})?<\|channel\|>\s*(?P<name>\w*)[^<]{0,80}"
    r"(?:<\|constrain\|>[^<]{0,40})?<\|message\|>"
)
"""The header of a message in the harmony format; all channels but "final" are thoughts."""
_MESSAGE_END: Final = re.compile(r"<\|(?:end|return|call|channel|start)\|>")
_HARMONY: Final = ("<|start|>", "<|channel|>", "analysis")
"""How an answer in that format begins."""
_BARE_OPENING: Final = re.compile(r"analysis(?=[A-Z])")
_BARE_CLOSING: Final = re.compile("assistantfinal", re.IGNORECASE)
"""The remains of harmony's headers where an engine drops control tokens."""
_WRAPPINGS: Final = (
    *("<answer>", "<response>", "<|begin_of_solution|>", "<|start_response|>", "<|start_text|>"),
    *("<|im_start|>assistant", "<|start_header_id|>assistant<|end_header_id|>", "<|assistant|>"),
    *("<|begin_of_text|>", "<|fim_middle|>", "<bos>", "\ufeff", "\u200b"),
)
"""Marks that some models put in front of the answer."""
_END_TOKENS: Final = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|return|>", "<|endoftext|>"),
    *("<|end_of_text|>", "<|eos|>", "<|end_of_solution|>", "<|end_response|>", "<|end_text|>"),
    *("<end_of_turn>", "</s>", "<｜end▁of▁sentence｜>", "</answer>", "</response>"),
)
"""Control tokens after an answer, in lower case, which some engines leave in it."""
_ENDS: Final = re.compile(rf"(?:(?:{'|'.join(map(re.escape, _END_TOKENS))})\s*)+\Z", re.IGNORECASE)
_MARKS: Final = (*_TAGS, *_TAGS.values(), *_END_TOKENS, "<|start|>", "<|channel|>")
_MAX_MARK: Final = max(map(len, _MARKS)) + 48
"""With blanks and attributes."""
_MAX_HEADER: Final = 300
"""Characters of the header of a message in the harmony format."""
_QUOTES: Final = frozenset("\"'`\\")
_STARTS: Final = "<[◁"


@dataclass(frozen=True, slots=True)
class Told:
    """What a piece of text turned out to be.

    Attributes:
        answer: Text of the answer, after what is taken back.
        thought: Characters that are a thought.
        retracts: All that was told as the answer before was a thought.
    """

    answer: str = ""
    thought: int = 0
    retracts: bool = False


class _ReaderState(Enum):
    START = "start"
    TAGGED = "tagged"
    CHANNEL = "channel"
    BETWEEN = "between"
    ANSWER = "answer"


class ThoughtSplitter:
    """Reads the text of one message as it streams.

    Args:
        is_text: Whether a tag counts as text, because the request holds it.
    """

    def __init__(self, is_text: Callable[[str], bool] = lambda tag: False) -> None:
        self._is_text = is_text
        self._state = _ReaderState.START
        self._pending: str = ""
        self._close = _BARE_CLOSING
        self._weak = False
        self._preceded = False
        self._final = False
        self._last = "\n"
        self._back = _ReaderState.START
        self._out: str = ""
        self._answered = 0
        self._characters = 0
        self._retracts = False

    def feed(self, text: str) -> Told:
        """Take the next piece of text."""
        self._pending += text
        while self._step():
            pass
        return self._told()

    def end(self) -> Told:
        """There is no more text; returns the rest."""
        pending, self._pending = self._pending, ""
        match self._state:
            case _ReaderState.TAGGED if not self._weak:
                self._characters += len(pending)
            case _ReaderState.CHANNEL if not self._final:
                self._characters += len(pending)
            case _ReaderState.BETWEEN:
                pass
            case _:
                self._pending = pending
                if (tag := self._closing(ended=True)) is not None:
                    self._take_back(tag)
                ends = _ENDS.search(self._pending)
                if ends is not None and not self._is_text(ends.group().strip()):
                    self._pending = self._pending[: ends.start()]
                self._out += self._pending
                self._pending = ""
        return self._told()

    def _told(self) -> Told:
        self._answered += len(self._out)
        told = Told(self._out, self._characters, self._retracts)
        self._out, self._characters, self._retracts = "", 0, False
        return told

    def _step(self) -> bool:
        """Take what can be taken of the text; whether there may be more."""
        match self._state:
            case _ReaderState.START:
                return self._start()
            case _ReaderState.TAGGED:
                return self._tagged()
            case _ReaderState.CHANNEL:
                return self._channel()
            case _ReaderState.BETWEEN:
                return self._between()
            case _ReaderState.ANSWER:
                return self._answer()

    def _start(self) -> bool:
        start = self._pending.lstrip()
        if not start:
            return False
        low = start.lower()
        if tag := _OPENING.match(start):
            return self._open(start, tag.group(), _CLOSINGS[_bare(tag.group())])
        if header := _HEADER.match(start):
            return self._open_channel(start, header)
        if _BARE_OPENING.match(start):
            return self._open(start, "", _BARE_CLOSING, weak=True)
        wrapping = next((m for m in _WRAPPINGS if low.startswith(m)), "")
        if wrapping and not self._is_text(wrapping):
            self._pending, self._preceded = start[len(wrapping) :], True
            return True
        if _may_be(low, (*_TAGS, *_WRAPPINGS, *_HARMONY)) or (
            low.startswith(_HARMONY[:2]) and len(start) < _MAX_HEADER
        ):
            return False
        self._state = _ReaderState.ANSWER
        if self._preceded:
            # The blank lines after what came before it are no part of the answer either.
            self._pending = self._pending.lstrip("\n")
        return True

    def _open(self, start: str, tag: str, close: re.Pattern[str], *, weak: bool = False) -> bool:
        self._state, self._pending = _ReaderState.TAGGED, start[len(tag) :]
        self._close, self._weak, self._back = close, weak, _ReaderState.START
        return True

    def _tagged(self) -> bool:
        if (closed := self._close.search(self._pending)) is not None:
            self._characters += closed.start()
            self._pending = self._pending[closed.end() :]
            self._state, self._preceded = self._back, True
            return True
        if not self._weak:  # Else it may be the answer after all.
            taken = max(0, len(self._pending) - _MAX_MARK)
            self._characters += taken
            self._pending = self._pending[taken:]
        return False

    def _open_channel(self, start: str, header: re.Match[str]) -> bool:
        self._pending = start[header.end() :]
        self._state, self._final = _ReaderState.CHANNEL, header["name"].lower() == "final"
        return True

    def _channel(self) -> bool:
        end = _MESSAGE_END.search(self._pending)
        at = end.start() if end is not None else self._safe()
        text, self._pending = self._pending[:at], self._pending[at:]
        if self._final:
            self._out += text
        else:
            self._characters += len(text)
        if end is None:
            return False
        self._preceded, self._state = True, _ReaderState.BETWEEN
        return True

    def _between(self) -> bool:
        """Look for the next message of the harmony format."""
        if header := _HEADER.search(self._pending):
            return self._open_channel(self._pending, header)
        self._pending = self._pending[-_MAX_HEADER:]
        return False

    def _kept(self) -> int:
        """Where a mark may begin at the end of what is pending, or its end."""
        low = self._pending.lower()
        for at in range(max(0, len(low) - _MAX_MARK), len(low)):
            if low[at] in _STARTS and _may_be(low[at:], _MARKS):
                return at
        return len(low)

    def _answer(self) -> bool:
        closed, opened = self._closing(ended=False), self._opening()
        if opened is not None and (closed is None or opened.start() < closed.start()):
            self._say(opened.start())
            self._open(self._pending, opened.group(), _CLOSINGS[_bare(opened.group())])
            self._back = _ReaderState.ANSWER
            return True
        if closed is not None:
            self._take_back(closed)
            return True
        self._say(self._safe())
        return False

    def _say(self, count: int) -> None:
        text, self._pending = self._pending[:count], self._pending[count:]
        if text:
            self._out += text
            self._last = text[-1]

    def _safe(self) -> int:
        """How much of what is pending cannot be part of a mark."""
        pending = self._pending
        kept = self._kept()
        if (ends := _ENDS.search(pending[:kept])) is not None:
            return ends.start()
        low = pending.lower()
        at = max(low.rfind("<|start|>"), low.rfind("<|channel|>"))
        if at >= 0 and len(pending) - at < _MAX_HEADER:
            return min(at, kept)
        return kept

    def _opening(self) -> re.Match[str] | None:
        """A thought that begins on a line of its own, after text of the answer."""
        for tag in _OPENING.finditer(self._pending):
            before = self._pending[tag.start() - 1] if tag.start() else self._last
            after = self._pending[tag.end() : tag.end() + 1]
            if before == "\n" and after == "\n" and not self._names_text(tag):
                return tag
        return None

    def _closing(self, *, ended: bool) -> re.Match[str] | None:
        """The end of a thought that was never opened."""
        for header in _HEADER.finditer(self._pending):
            if header["name"].lower() == "final" and not self._is_text("<|channel|>"):
                return header
        for tag in _CLOSING.finditer(self._pending):
            before = self._pending[tag.start() - 1] if tag.start() else self._last
            after = self._pending[tag.end() : tag.end() + 1]
            if not after and not ended:
                continue
            quoted = before in _QUOTES or (before != "\n" and after and after in "\"'`\\),;|")
            if not quoted and not self._names_text(tag):
                return tag
        return None

    def _names_text(self, tag: re.Match[str]) -> bool:
        return self._is_text(tag.group()) or self._is_text(_bare(tag.group()))

    def _take_back(self, tag: re.Match[str]) -> None:
        self._characters += self._answered + len(self._out) + tag.start()
        self._answered = 0
        self._out, self._retracts, self._preceded = "", True, True
        self._pending = self._pending[tag.end() :]
        self._last = "\n"
        if tag.re is _HEADER:
            self._state, self._final = _ReaderState.CHANNEL, True
        else:
            self._state = _ReaderState.START


def _may_be(low: str, marks: tuple[str, ...]) -> bool:
    """Whether a text in lower case may be the beginning of a mark."""
    if (begun := _WITH_ATTRIBUTE.fullmatch(low)) is not None:
        return f"<{begun['name']}>" in _NAMES
    return any(mark.startswith((low, _bare(low) or low)) for mark in marks)


def without_thoughts(text: str, is_text: Callable[[str], bool] = lambda tag: False) -> str:
    """The answer in a whole text."""
    splitter = ThoughtSplitter(is_text)
    told = [splitter.feed(text), splitter.end()]
    if told[1].retracts:
        return told[1].answer
    return told[0].answer + told[1].answer
