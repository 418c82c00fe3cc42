"""The entries of a conversation, with a coding agent or with the session's model, in order."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from midstream.agents.messages import AgentToolCall


class Speech(Struct):
    """Consecutive words of one speaker, as Markdown; grows while they are spoken."""

    role: Literal["agent", "thought", "user"]
    text: str


class QuestionState(StrEnum):
    """The state of a question."""

    NONE = "none"
    OPEN = "open"
    ALLOWED = "allowed"
    REJECTED = "rejected"
    CANCELLED = "cancelled"


class ToolUse(Struct):
    """One use of a tool, and what became of the question about it."""

    call: AgentToolCall
    question: QuestionState = QuestionState.NONE


Entry: TypeAlias = "Speech | ToolUse"
"""One thing in a conversation."""


def packed(entries: Sequence[Entry]) -> list[dict[str, str]]:
    """What a journal stores of a conversation: the words, and the outcomes of tool calls."""
    return [
        {"role": entry.role, "text": entry.text}
        if isinstance(entry, Speech)
        else {
            "tool": entry.call.title or entry.call.kind,
            "status": entry.call.status,
            "path": next(iter(entry.call.paths), ""),
            "question": entry.question.value,
        }
        for entry in entries
    ]


def unpacked(kept: Sequence[Mapping[str, str]]) -> list[Entry]:
    """Inverse of ``packed``; entries of unknown kinds or shapes are left out."""
    from midstream.agents.messages import AgentToolCall

    entries: list[Entry] = []
    for number, data in enumerate(kept):
        role = data.get("role")
        if role in ("agent", "thought", "user"):
            entries.append(Speech(role, data.get("text", "")))
        elif "tool" in data:
            paths = (data["path"],) if data.get("path") else ()
            call = AgentToolCall(
                f"earlier {number}", data["tool"], status=data.get("status", ""), paths=paths
            )
            known = data.get("question", "") in set(QuestionState)
            state = QuestionState(data["question"]) if known else QuestionState.NONE
            entries.append(ToolUse(call, state))
    return entries


class AnsweredQuestion(Struct, frozen=True):
    """A question, and what was answered to it in words."""

    asked: str
    answered: str


def exchanges(entries: Sequence[Entry]) -> list[AnsweredQuestion]:
    """The questions that were answered, oldest first."""
    found: list[AnsweredQuestion] = []
    asked, answered = "", ""
    for entry in (*entries, Speech("user", "")):
        if not isinstance(entry, Speech) or entry.role == "thought":
            continue
        if entry.role == "agent":
            answered = f"{answered}\n\n{entry.text}" if answered else entry.text
            continue
        if asked and answered.strip():
            found.append(AnsweredQuestion(asked, answered))
        asked, answered = entry.text, ""
    return found


def last_answer(entries: Sequence[Entry]) -> str:
    """What was answered last, in words; ``""`` if nothing was."""
    spoken = [entry for entry in entries if isinstance(entry, Speech)]
    words: list[str] = []
    for speech in reversed(spoken):
        if speech.role == "agent":
            words.insert(0, speech.text)
        elif speech.role == "user" and words:
            break
    return "\n\n".join(words)


PLACE: Final = re.compile(
    r"(?<![\w/.-])(?P<path>(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.\w+)(?::(?P<line>\d{1,6})(?:[-:]\d+)?)?(?![\w/])"
)
"""A file in a text, perhaps with a line: ``src/app.py:12``."""


class NamedPlace(Struct, frozen=True):
    """A place that a text names.

    Attributes:
        path: The file, as it is named.
        line: 0-based line, ``None`` if none is named.
    """

    path: str
    line: int | None

    def __str__(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line + 1}"


def named_places(text: str, exists: Callable[[str], bool]) -> list[NamedPlace]:
    """The files that a text names, in order, each place once.

    Args:
        text: Any text.
        exists: Whether there is a file with this path.
    """
    found: dict[NamedPlace, None] = {}
    for match in PLACE.finditer(text):
        if exists(match["path"]):
            line = match["line"]
            found[NamedPlace(match["path"], None if line is None else max(0, int(line) - 1))] = None
    return list(found)


class Herald:
    """Announces new text, but not for every piece: a model may send hundreds a second.

    Args:
        tell: Called on the event loop.
    """

    EVERY_S: Final = 0.05

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def heard(self) -> None:
        """Notify observers soon."""
        if self._timer is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(self.EVERY_S, self._now)

    def close(self) -> None:
        """Stop notifying observers."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _now(self) -> None:
        self._timer = None
        self._tell()
