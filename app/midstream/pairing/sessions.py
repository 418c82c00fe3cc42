"""The earlier sessions of a folder, from their journals: what was asked, what became of it.

A session is read by following its journal as resuming would, so that the counts are those it would
come back with.  Reading is blocking and can take a moment; nothing here changes a session, apart
from ``delete_session``, which removes its journal.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from midstream.edits.hunks import HunkState
from midstream.errors import UserError
from midstream.workspace.journal import SessionInfo, delete_journal, sessions
from midstream.workspace.paths import state_dir

__all__ = ["SessionInfo", "SessionSummary", "delete_session", "earlier_sessions", "summarize"]


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """What a journal says about its session.

    Attributes:
        instructions: What was asked, oldest first.
        files: Files that were open, in the order they were opened.
        accepted: Accepted hunks.
        rejected: Rejected hunks.
        undecided: Hunks that wait for a decision.
        unfinished: The last answer was cut off, by a crash or by closing.
        trouble: Why the journal cannot be followed, ``""`` if it can.
    """

    instructions: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    accepted: int = 0
    rejected: int = 0
    undecided: int = 0
    unfinished: bool = False
    trouble: str = ""


def earlier_sessions(root: Path) -> list[SessionInfo]:
    """The journals of a folder, newest first (blocking)."""
    return sessions(state_dir(), root)


def summarize(path: Path) -> SessionSummary:
    """Follow a journal to its end (blocking)."""
    from midstream.pairing.resuming import Replay

    try:
        replay = Replay.read(path)
    except UserError as error:
        return SessionSummary(trouble=str(error))
    states = [hunk.state for hunk in replay.hunks]
    last = replay.turns[-1] if replay.turns else None
    return SessionSummary(
        instructions=tuple(turn.instruction for turn in replay.turns),
        files=tuple(dict.fromkeys(turn.path for turn in replay.turns)),
        accepted=states.count(HunkState.ACCEPTED),
        rejected=states.count(HunkState.REJECTED),
        undecided=len(replay.hunks.undecided()),
        unfinished=last is not None and last.running,
    )


def delete_session(path: Path) -> None:
    """Remove a journal with all its parts (blocking).

    Raises:
        JournalInUseError: A running Midstream writes it.
        WorkspaceError: The system does not let it go.
    """
    delete_journal(path)
