"""The state of a session and the record of one turn.

A turn is one instruction and the stream that answers it.  A redirect starts a new turn which goes
on in the same region with the text kept so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

UNSURE: Final = "model unsure"
"""The reason to look closely at a hunk of an answer that the model doubts."""


class SessionState(StrEnum):
    """What the session is doing, as the state light shows it."""

    STARTING = "starting"
    """The model server is being started or reached; instructions wait for it."""
    READY = "ready"
    WAITING = "waiting"
    """An instruction was sent, no token has come yet."""
    STREAMING = "streaming"
    STOPPING = "stopping"
    """The view is frozen, the server's last word is awaited."""
    OFFLINE = "offline"
    """No model server; the next instruction tries again."""


class TurnStatus(StrEnum):
    """How far a turn has come."""

    STREAMING = "streaming"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


class FollowUpKind(StrEnum):
    """Why a turn goes on from another one."""

    REDIRECT = "redirect"
    """The user gave another instruction."""
    RENAME = "rename"
    """The user wants another name for what the rewrite brings in."""
    GUARD = "guard"
    """The guard stopped a line."""
    MISPLACED = "misplaced"
    """Edits did not match the file."""
    CHECKS = "checks"
    """The checks found an error."""


_CORRECTIVE: Final = (FollowUpKind.GUARD, FollowUpKind.MISPLACED, FollowUpKind.CHECKS)


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure a model was of an answer.

    Attributes:
        probability: Calibrated probability that it is right.
        threshold: Below it the answer is one to look at closely.
        gave_up: Whether the model took the request to be beyond it.
    """

    probability: float
    threshold: float
    gave_up: bool = False

    @property
    def unsure(self) -> bool:
        """Whether the person should hear of it."""
        return self.probability < self.threshold

    @classmethod
    def read(cls, metadata: Mapping[str, str]) -> Confidence | None:
        """Take it from the metadata of a finished response; ``None`` where nothing is said."""
        try:
            return cls(
                float(metadata["midstream.confidence"]),
                float(metadata["midstream.confidence_threshold"]),
                metadata.get("midstream.gave_up") == "1",
            )
        except (KeyError, ValueError):
            return None


@dataclass(slots=True)
class Turn:
    """One instruction and what became of it.

    Attributes:
        id: The generation id; text of an older generation is dropped.
        instruction: What the person asked for.
        path: The file, relative to the root.
        start: First line of the region, 0-based, in the base text the turn began with.
        stop: End of the region, exclusive.
        symbol: Dotted name of the function or class the region is, or ``""``.
        why: How the region was found, in words for the person.
        status: How far it has come.
        tokens: Tokens received so far; a server that does not count them sends one per delta.
        ttft_s: Seconds from sending to the first text, or ``None`` before it.
        elapsed_s: Seconds from sending to the end, or ``None`` while it runs.
        error: The sentence to show when the status is ``failed``.
        again: What the next instruction does about that, such as "connects again"; ``""`` where it
            does nothing.
        redirected_from: The id of the turn this one goes on from, or ``None``.
        follows: Why it goes on from that one.
        background: Whether the session asked by itself; a screen shows it without moving.
        implied: Whether nobody said the instruction: it was made of a change that somebody made.
        words: Whether an answer in words was wanted and no change.
        edit_format: How the model was asked to write; ``region`` is a rewrite of the lines above,
            in any other it names the places itself.
        failures: Why edits of the answer found no place: a sentence each, and below it what was
            quoted and what the file has.
        confidence: Calibrated probability that the answer is right, ``None`` where the model does
            not say.
        unsure: The sentence to show where that is too little; ``""`` elsewhere.
        doubted: The hunks of such an answer.
        hunks: The hunks of the answer, once it has ended.
        tried: What effort was spent on it and why this answer won, in words; ``""`` for one pass.
    """

    id: int
    instruction: str
    path: str
    start: int
    stop: int
    symbol: str = ""
    why: str = ""
    status: TurnStatus = TurnStatus.STREAMING
    tokens: int = 0
    ttft_s: float | None = None
    elapsed_s: float | None = None
    error: str = ""
    again: str = ""
    redirected_from: int | None = None
    follows: FollowUpKind | None = None
    background: bool = False
    implied: bool = False
    words: bool = False
    edit_format: str = "region"
    failures: tuple[str, ...] = ()
    tried: str = ""
    confidence: float | None = None
    unsure: str = ""
    doubted: tuple[int, ...] = ()
    hunks: tuple[int, ...] = ()

    @property
    def place(self) -> str:
        """The region in words."""
        if self.symbol:
            return f"`{self.symbol}`"
        if self.start == self.stop:
            return f"the place before line {self.start + 1}"
        if self.stop - self.start == 1:
            return f"line {self.stop}"
        return f"lines {self.start + 1}-{self.stop}"

    @property
    def correction(self) -> bool:
        """Whether the session went on by itself, to have an answer corrected."""
        return self.follows in _CORRECTIVE

    @property
    def running(self) -> bool:
        """Whether text may still come."""
        return self.status is TurnStatus.STREAMING
