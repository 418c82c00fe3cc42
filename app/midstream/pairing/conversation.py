"""What is said in a conversation, with a coding agent or with the session's model, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from midstream.agents.messages import ToolCall


@dataclass(slots=True)
class Speech:
    """Consecutive words of one speaker, as Markdown; grows while they are spoken."""

    role: Literal["agent", "thought", "user"]
    text: str


class QuestionState(StrEnum):
    """What became of a question."""

    NONE = "none"
    OPEN = "open"
    ALLOWED = "allowed"
    REJECTED = "rejected"
    CANCELLED = "cancelled"


@dataclass(slots=True)
class ToolUse:
    """One use of a tool, and what became of the question about it."""

    call: ToolCall
    question: QuestionState = QuestionState.NONE


Entry: TypeAlias = Speech | ToolUse
"""One thing in a conversation."""


def packed(entries: Sequence[Entry]) -> list[dict[str, str]]:
    """What a journal keeps of a conversation: words, and what became of the uses of tools."""
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
    """Inverse of ``packed``, as far as that goes; what is not understood is left out."""
    entries: list[Entry] = []
    for number, data in enumerate(kept):
        role = data.get("role")
        if role in ("agent", "thought", "user"):
            entries.append(Speech(role, data.get("text", "")))
        elif "tool" in data:
            paths = (data["path"],) if data.get("path") else ()
            call = ToolCall(
                f"earlier {number}", data["tool"], status=data.get("status", ""), paths=paths
            )
            known = data.get("question", "") in set(QuestionState)
            state = QuestionState(data["question"]) if known else QuestionState.NONE
            entries.append(ToolUse(call, state))
    return entries
