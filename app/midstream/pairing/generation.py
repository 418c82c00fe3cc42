"""What a model is told, and one rewrite that it writes for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from midstream.pairing.turns import Turn

if TYPE_CHECKING:
    from midstream.edits.proposal import FileProposal, Segment
    from midstream.pairing.answer import Answer


@dataclass(slots=True)
class Conversation:
    """What the model is told.

    Attributes:
        system: System text.
        messages: Pairs of role and text; the last is the user's.
    """

    system: str
    messages: list[tuple[str, str]]

    def followed(self, kept: str, instruction: str) -> Conversation:
        """The conversation after the model wrote ``kept`` and the person said ``instruction``."""
        from midstream.edits.request import render_follow_up

        messages = list(self.messages)
        if kept:
            messages.append(("assistant", kept))
        messages.append(("user", render_follow_up(instruction)))
        return Conversation(self.system, messages)


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
