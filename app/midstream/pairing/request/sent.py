"""What this session has sent to models and agents, request by request, as it went out."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from midstream.pairing.request.context import Context, Part, estimate
from midstream.pairing.request.prompts import forms_of
from midstream.responses.conversation import RequestContent, ToolCall, ToolOutput

if TYPE_CHECKING:
    from midstream.responses.conversation import Entry
    from midstream.responses.stream import Stream

KEPT: Final = 24
"""The latest requests that are kept."""
SYSTEM_TEXT: Final = "system text"
"""Title of the part of a request that holds the model's standing instructions."""
_NONE: Final = Context()


class SentKind(StrEnum):
    """What a request was for, in the words of the screen."""

    INSTRUCTION = "instruction"
    REDIRECT = "redirect"
    AGAIN = "second try"
    """The model had left everything as it was."""
    CORRECTION = "correction"
    """The guard, the checks or edits that did not match made it."""
    SUGGESTION = "suggestion"
    """Midstream asked by itself."""
    QUESTION = "question"
    PLAN = "plan"
    SUMMARY = "summary"
    """The model was to sum up the conversation so far."""
    TITLES = "titles"
    """The model was to name groups of a walk."""
    MESSAGE = "message"
    """To a coding agent, which makes its own requests of it."""


@dataclass(frozen=True, slots=True)
class SentPart:
    """A piece of a request.

    Attributes:
        name: Its name on screen.
        text: The piece as it went out.
        inside: Whether it is a piece of the message before it.
        facts: What is missing, and why it goes along, in words.
    """

    name: str
    text: str
    inside: bool = False
    facts: str = ""

    @property
    def tokens(self) -> int:
        """About how many tokens it takes."""
        return estimate(self.text)


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """A request.

    Attributes:
        kind: What it was for.
        said: What the user wrote.
        recipient: Who got it.
        asked: Its content, or the response, which has what went out in the end.
        context: What went along with what the user wrote.
        target: The lines that were to be changed, where the request has them.
        at: When it was sent, in seconds since the epoch; ``None`` if it was not.
        about: The object that several requests share; the last of them has everything.
    """

    kind: SentKind
    said: str
    recipient: str
    asked: RequestContent | Stream
    context: Context = _NONE
    target: Part | None = None
    at: float | None = None
    about: object = None

    @property
    def content(self) -> RequestContent:
        """What went out, or would."""
        asked = self.asked
        return asked if isinstance(asked, RequestContent) else asked.asked

    @property
    def tokens(self) -> int:
        """About how many tokens it takes."""
        return sum(part.tokens for part in self.parts if not part.inside)

    @property
    def counted(self) -> int:
        """Tokens as the server has counted them, 0 if it did not say."""
        return 0 if isinstance(self.asked, RequestContent) else self.asked.input_tokens

    @property
    def parts(self) -> tuple[SentPart, ...]:
        """Its pieces in the order in which they were sent."""
        return tuple(self._parts())

    def _parts(self) -> Iterator[SentPart]:
        content = self.content
        if content.instructions:
            yield SentPart(SYSTEM_TEXT, content.instructions)
        parts, target = self.context.parts, self.target
        if target is not None:
            parts = (target, *(part for part in parts if part.name != target.name))
        along = list(parts)
        last = max((n for n, entry in enumerate(content.messages) if _is_users(entry)), default=0)
        for number, entry in enumerate(content.messages):
            name, text = _named(entry)
            if _is_users(entry):
                name = (
                    f"{self.kind}, with its context" if number == last else "your earlier message"
                )
            yield SentPart(name, text)
            for part in list(along) if _is_users(entry) else ():
                sent = next((form for form in forms_of(part) if form in text), "")
                if sent:
                    along.remove(part)
                    yield SentPart(part.name, sent, inside=True, facts=part.words)
        if content.tools:
            names = ", ".join(str(tool.get("name", "")) for tool in content.tools)
            text = "\n".join(json.dumps(tool, indent=2) for tool in content.tools)
            yield SentPart("tools", text, facts=names)


def _is_users(entry: Entry) -> bool:
    return isinstance(entry, tuple) and entry[0] == "user"


def _named(entry: Entry) -> tuple[str, str]:
    """The name and the text of a message, a call or its output."""
    if isinstance(entry, ToolCall):
        return f"the model called {entry.name}", entry.input
    if isinstance(entry, ToolOutput):
        return "what the tool said", entry.output
    role, text = entry
    return ("the model, before" if role == "assistant" else role), text


class SentLog:
    """The latest requests of a session; kept in memory only."""

    def __init__(self) -> None:
        self._kept: deque[Sent] = deque(maxlen=KEPT)

    def __iter__(self) -> Iterator[Sent]:
        """From the latest one on."""
        return reversed(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def note(
        self,
        kind: SentKind,
        said: str,
        recipient: str,
        asked: RequestContent | Stream,
        *,
        context: Context = _NONE,
        target: Part | None = None,
        about: object = None,
    ) -> None:
        """Keep a request that has just been sent; fields as those of ``Sent``."""
        sent = Sent(kind, said, recipient, asked, context, target, time.time(), about)
        for place, other in enumerate(self._kept):
            if about is not None and other.about is about:
                self._kept[place] = sent
                return
        self._kept.append(sent)
