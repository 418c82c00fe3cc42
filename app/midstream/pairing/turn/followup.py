"""The reason for a further turn, and what it starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from midstream.pairing.status import FollowUpKind

if TYPE_CHECKING:
    from midstream.pairing.guard import Held
    from midstream.pairing.request.builder import Question
    from midstream.pairing.turn.checks import Verdict


@dataclass(frozen=True, slots=True)
class FollowUp:
    """The reason for a further turn.

    Attributes:
        kind: The reason.
        instruction: What the turn shows as asked for.
        message: Text of the next user message.
        why: The reason in words, for the user.
        kept: Text of the region that counts as written; ``None`` where the model names the places
            itself.
        start: Base line from which the region is rewritten; ``None`` to continue the open rewrite.
        carried: Text that a new rewrite takes over as its beginning.
        question: A request to make anew, in place of a further message.
        verdict: What the checks found, for ``CHECKS``.
        held: What the guard held back, where a region is written again.
        notice: Posted when it begins.
    """

    kind: FollowUpKind
    instruction: str
    message: str
    why: str
    kept: str | None = None
    start: int | None = None
    carried: str = ""
    question: Question | None = None
    verdict: Verdict | None = None
    held: Held | None = None
    notice: str = ""

    @property
    def continues_rewrite(self) -> bool:
        """Whether it continues the open rewrite."""
        return self.kept is not None and self.start is None
