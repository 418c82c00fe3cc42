"""Feedback to agents about decisions: their rejected lines, and the reasons.

A call that waits at the gate (``pairing.review.gate``) is answered with the verdict on its hunks.
What is put back after an agent has written it is collected here until the agent can be told: with
the answer to its next call, when it is about to stop, with the next prompt, or by the user, who
pastes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from midstream.counting import counted
from midstream.pairing.status import HunkDecided, SessionEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from midstream.agents.messages import AgentToolCall
    from midstream.edits.hunk_store import HunkStore
    from midstream.edits.hunks import Hunk
    from midstream.pairing.status import SessionStatus

AUTOMATIC: Final = "automatic"
ASK: Final = "ask"
OFF: Final = "off"

_PUT_BACK = (
    "The user reviewed what you wrote and put these changes back. Read the files again before you "
    "edit them, and do not write the same again:"
)

NOTHING_TO_TELL: Final = "No put-back waits to be told to an agent."
"""Also true where there is no agent, or nothing was put back."""


class Feedback:
    """The put-backs that agents do not know of yet.

    Args:
        hunks: The decisions.
        status: Tells of decisions, and is told that there is something to tell.
        mode: See below.

    Attributes:
        mode: ``"off"``, ``"ask"`` (once ``approve`` was called) or ``"automatic"``.
    """

    def __init__(self, hunks: HunkStore, status: SessionStatus, mode: str) -> None:
        self._hunks = hunks
        self._status = status
        self._at_work: Callable[[], bool] | None = None
        self.mode = mode
        self._untold: set[int] = set()
        self._written: set[int] = set()
        self._approved = False
        status.subscribe(self._hear)

    def connect(self, at_work: Callable[[], bool]) -> None:
        """Have the user asked about a put-back while ``at_work`` says that an agent can be told."""
        self._at_work = at_work

    @property
    def waiting(self) -> int:
        """The number of put-backs that no agent has been told of."""
        return len(self._untold)

    @property
    def message(self) -> str:
        """What to tell the agent, ``""`` if there is nothing."""
        hunks = sorted((self._hunks.get(i) for i in self._untold), key=lambda h: (h.path, h.order))
        if not hunks:
            return ""
        return "\n".join([_PUT_BACK, *(_item(hunk, "put back") for hunk in hunks)])

    def note_written(self, hunk_ids: Iterable[int]) -> None:
        """An agent is about to write these hunks; taking them out again is to be told."""
        self._written.update(hunk_ids)

    def approve(self) -> None:
        """Allow the pending feedback to be sent at the next opportunity."""
        self._approved = bool(self._untold)

    def take(self) -> str:
        """The message, if it may be told without a question; from then on it counts as told."""
        if self.mode != AUTOMATIC and not self._approved:
            return ""
        return self.tell()

    def tell(self) -> str:
        """The message, which the user has asked for; from now on it counts as told."""
        text = self.message
        self._untold.clear()
        self._approved = False
        return text

    def refused(self, calls: Sequence[AgentToolCall]) -> str:
        """What is told of uses of tools that were not allowed, ``""`` if nothing is to be told."""
        if not calls or self.mode == OFF:
            return ""
        items = (f"- {', '.join(_files(call)) or call.title[:80] or call.kind}" for call in calls)
        return "\n".join(["The user did not allow this, and none of it was done:", *items])

    def standing(self, waiting: Sequence[Hunk], *, tell: bool) -> str:
        """The state of the review, for an agent that asks.

        Args:
            waiting: The hunks of agents that wait for a decision.
            tell: Whether what is put back counts as told from now on.
        """
        if waiting:
            files = ", ".join(dict.fromkeys(hunk.path for hunk in waiting))
            wait = "waits" if len(waiting) == 1 else "wait"
            head = f"{counted(len(waiting), 'hunk')} of yours {wait} for the user: {files}."
        else:
            head = "None of your changes is waiting for a decision."
        if self.mode == OFF:
            return f"{head}\nThis tool does not report what was put back; read the files again."
        back = self.tell() if tell else self.message
        return f"{head}\n{back or 'Nothing new was put back.'}"

    def _hear(self, event: SessionEvent) -> None:
        if not isinstance(event, HunkDecided) or self.mode == OFF:
            return
        hunk = self._hunks.get(event.hunk_id)
        if hunk.external:
            gone = hunk.state == "rejected"
        else:
            gone = hunk.id in self._written and not hunk.call and hunk.state != "accepted"
        if gone and hunk.live:
            at_work = self._at_work is not None and self._at_work()
            if at_work and not self._untold and self.mode == ASK:
                self._status.inform("The agent does not know what was put back", "feedback.tell")
            self._untold.add(hunk.id)
        else:
            self._untold.discard(hunk.id)


def verdict(hunks: Sequence[Hunk]) -> str:
    """The answer to an agent's call that waited for decisions: what was accepted, what was not."""
    kept = [hunk for hunk in hunks if hunk.state == "accepted"]
    items = [
        _item(hunk, "not written")
        if hunk not in kept
        else _item(hunk, "written with other text, as the user changed it")
        if hunk.own
        else _item(hunk, "written as you proposed")
        for hunk in hunks
    ]
    if not kept:
        head = "The user rejected this edit; nothing was written."
        return "\n".join([head, *(items if len(hunks) > 1 or _reasons(hunks) else [])])
    head = (
        f"The user kept {len(kept)} of {counted(len(hunks), 'hunk')} of this edit, and only "
        "that is written. Read the file again before you go on, and do not write the rest again:"
    )
    return "\n".join([head, *items])


def _files(call: AgentToolCall) -> dict[str, None]:
    return dict.fromkeys([*(diff.path for diff in call.diffs), *call.paths])


def _reasons(hunks: Iterable[Hunk]) -> bool:
    return any(hunk.note for hunk in hunks)


def _item(hunk: Hunk, what: str) -> str:
    first, last = hunk.start + 1, max(hunk.start + 1, hunk.stop)
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    reason = f". Reason: {hunk.note}" if hunk.note and hunk.state == "rejected" else ""
    return f"- {hunk.path} {lines}, `{hunk.headline[:80]}`: {what}{reason}"
