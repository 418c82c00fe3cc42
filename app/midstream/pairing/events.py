"""What a pairing session tells its listeners: coarse facts, never one per token.

A listener (the screen, a test, a headless command) learns here that something worth reacting to has
happened; what it then shows, it reads from the session.  Nothing in this module acts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from midstream.pairing.turns import SessionState, Turn


class NoticeLevel(StrEnum):
    """How loud a notice is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Notice:
    """One sentence for the person, which names the thing and the way out.

    Attributes:
        level: How loud it is.
        text: The sentence.
        action: Name of the screen's action that is the way out at its end, ``""`` for none.
    """

    level: NoticeLevel
    text: str
    action: str = ""


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The session's state is now ``state``."""

    state: SessionState


@dataclass(frozen=True, slots=True)
class FileOpened:
    """``path`` has joined ``PairingSession.files``."""

    path: str


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """An instruction was sent to the model."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class HunkSettled:
    """A hunk will not change any more and can be decided."""

    path: str
    hunk_id: int


@dataclass(frozen=True, slots=True)
class HunkDecided:
    """A hunk's decision changed: accepted, rejected, undone, redone, or lost to a conflict."""

    path: str
    hunk_id: int


@dataclass(frozen=True, slots=True)
class FileWritten:
    """The session wrote ``path``."""

    path: str


@dataclass(frozen=True, slots=True)
class FileChangedOnDisk:
    """Somebody else changed ``path``; the proposal has been moved onto the new text."""

    path: str


@dataclass(frozen=True, slots=True)
class FilesTouched:
    """Others made, changed or took away files of the folder, open ones or not."""

    paths: frozenset[str]


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """A turn ended: see its ``status`` and ``error``."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class NoticePosted:
    """A sentence for the person; it is also the last of ``PairingSession.notices``."""

    notice: Notice


@dataclass(frozen=True, slots=True)
class RepoChanged:
    """``PairingSession.repo`` was read again and differs."""


@dataclass(frozen=True, slots=True)
class BackgroundDone:
    """Nothing is left of what the session asks by itself."""


SessionEvent = (
    StateChanged
    | FileOpened
    | TurnStarted
    | HunkSettled
    | HunkDecided
    | FileWritten
    | FileChangedOnDisk
    | FilesTouched
    | TurnFinished
    | NoticePosted
    | RepoChanged
    | BackgroundDone
)
