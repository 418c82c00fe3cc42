"""What a model is told, and one rewrite that it writes for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from midstream.pairing.turns import Turn

if TYPE_CHECKING:
    from midstream.edits.proposal import FileProposal, Segment
    from midstream.guard.correction import CorrectionRequest
    from midstream.pairing.answer import Answer
    from midstream.responses.conversation import Entry

_TOLD_LAST = "What became of it is told with the last call."


@dataclass(slots=True)
class Conversation:
    """What the model is told.

    Attributes:
        system: System text.
        messages: Pairs of role and text, calls of a tool and their outputs; the last is the user's
            or an output.
        correction: What the last message asks for, if the guard wrote it.
    """

    system: str
    messages: Sequence[Entry]
    correction: CorrectionRequest | None = None

    def followed(
        self, kept: str, instruction: str, correction: CorrectionRequest | None = None
    ) -> Conversation:
        """The conversation after the model wrote ``kept`` and the person said ``instruction``."""
        from midstream.edits.request import render_follow_up

        messages: list[Entry] = list(self.messages)
        if kept:
            messages.append(("assistant", kept))
        messages.append(("user", render_follow_up(instruction)))
        return Conversation(self.system, messages, correction)

    def answered(self, written: Sequence[Entry], output: str) -> Conversation:
        """The conversation after the model called a tool, with what became of the last call."""
        from midstream.responses.conversation import ToolCall, ToolOutput

        calls = [entry.call_id for entry in written if isinstance(entry, ToolCall)]
        outputs = [ToolOutput(call_id, _TOLD_LAST) for call_id in calls[:-1]]
        return Conversation(
            self.system, [*self.messages, *written, *outputs, ToolOutput(calls[-1], output)]
        )


@dataclass(frozen=True, slots=True)
class Generation:
    """One rewrite of one range, as the guard watches it; an answer has one or several.

    Attributes:
        answer: What it is a part of.
        proposal: The file.
        segment: The rewrite.
    """

    answer: Answer
    proposal: FileProposal
    segment: Segment

    @property
    def turn(self) -> Turn:
        """The turn that it belongs to."""
        return self.answer.turn
