"""What a session leaves behind, as lines for the terminal when it has ended."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.counting import counted
from midstream.edits.hunks import Hunk, HunkState
from midstream.workspace.paths import few_shown

if TYPE_CHECKING:
    from midstream.pairing.session import PairingSession
    from midstream.workspace.snapshot import Snapshot


def resuming(root: Path, snapshot: Snapshot | None = None) -> str:
    """The command that goes on with the last session of a folder, or of a range of commits."""
    if snapshot is not None:
        return f"{snapshot.command} --resume"
    folder = "" if root.resolve() == Path.cwd() else f" {shlex.quote(str(root))}"
    return f"midstream{folder} --resume"


def summary(session: PairingSession, resuming: str, *, placed: bool = True) -> Iterator[str]:
    """What was decided, written, committed and left.

    Args:
        session: It has ended.
        resuming: The command that goes on with it, ``""`` where no journal keeps it.
        placed: Whether to say where the files are, if that is not the current folder.
    """
    hunks = [hunk for hunk in session.hunks if hunk.decided and hunk.postponed is None]
    done = [
        _outcome(hunks, HunkState.ACCEPTED, "accepted and written to", external=False),
        _outcome(hunks, HunkState.ACCEPTED, "kept in", external=True),
        _outcome(hunks, HunkState.REJECTED, "rejected in", external=False),
        _outcome(hunks, HunkState.REJECTED, "put back in", external=True),
    ]
    if any(done):
        there = placed and session.root != Path.cwd()
        where = f" The files are in {session.root}." if there else ""
        yield f"{'; '.join(filter(None, done))}.{where}"
    if unread := session.attention.summary(session.hunks):
        yield unread
    if commits := session.commit.made:
        yield f"Committed: {', '.join(commit[:8] for commit in commits)}."
    if session.commit.cut_off:
        yield "The last commit was stopped before it was made; what was staged for it stays."
    if left := left_behind(session, resuming):
        yield left
    if resuming and (again := _asked_again(session)):
        yield f"{again}; `{resuming}` does not."
    if session.journal.path is not None and (trouble := session.journal.trouble):
        yield f"The journal could not be written ({trouble}): what came last is not in it."


def _asked_again(session: PairingSession) -> str:
    """What the next review of the folder asks about once more, ``""`` for nothing."""
    kept = any(hunk.external and hunk.state is HunkState.ACCEPTED for hunk in session.hunks)
    if not kept or session.workspace.read_only or session.commit.made or session.journal.trouble:
        return ""
    return "Until it is committed, a new review asks about what you have kept as well"


def left_behind(session: PairingSession, resuming: str) -> str:
    """What is undecided and what becomes of it, as a sentence; ``""`` if nothing is.

    Args:
        session: The session.
        resuming: The command that goes on with it, ``""`` where no journal keeps it.
    """
    waiting, left = session.hunks.waiting(), _undecided(session)
    if not left:
        return ""
    if session.journal.trouble:
        resuming = ""
    them = "it" if len(waiting) == 1 else "them"
    fate = f"`{resuming}` brings {them} back" if resuming else f"no journal keeps {them}"
    if stays := _stays_on_disk(session):
        fate = f"{stays}, and `{resuming}` asks again" if resuming else stays
    flagged = 0 if stays else len(session.flagged_on_disk())
    be = "is" if flagged == 1 else "are"
    on_disk = f" {counted(flagged, 'flagged hunk')} {be} on disk already." if flagged else ""
    return f"{left}; {fate}.{on_disk}"


def asking(session: PairingSession) -> str:
    """The agent whose question waits for an answer, as a clause; ``""`` if none does."""
    agent = session.agent
    return f"{agent.title} waits for your answer" if agent.asking else ""


def behind(session: PairingSession | None, resuming: str) -> str:
    """What quitting means at this moment, to follow "quits".

    Args:
        session: The session, if there is one.
        resuming: The command that goes on with it, ``""`` where no journal keeps it.
    """
    if session is None:
        return "; accepted hunks are on disk"
    left, asks = left_behind(session, resuming).removesuffix("."), asking(session)
    more = f"; {asks}" if asks else ""
    return f" and leaves {left}{more}" if left else more or "; accepted hunks are on disk"


def _stays_on_disk(session: PairingSession) -> str:
    """Words for undecided changes that are on disk, ``""`` where some are not."""
    waiting = session.hunks.waiting()
    if session.workspace.snapshot_of or not all(
        hunk.external and not hunk.call for hunk in waiting
    ):
        return ""
    return "it stays on disk" if len(waiting) == 1 else "they stay on disk"


def _undecided(session: PairingSession) -> str:
    waiting = session.hunks.waiting()
    if not waiting:
        return ""
    left = f"{counted(len(waiting), 'hunk')} undecided in {_files(waiting)}"
    reasons = [reason for hunk in waiting if (reason := session.reason(hunk))]
    if reasons:
        many = "" if len(waiting) == 1 else f"{len(reasons)} of them "
        left += f", {many}flagged ({reasons[0]})"
    return left


def _outcome(hunks: Iterable[Hunk], state: HunkState, words: str, *, external: bool) -> str:
    found = [h for h in hunks if h.state is state and h.external is external]
    return f"{counted(len(found), 'hunk')} {words} {_files(found)}" if found else ""


def _files(hunks: Iterable[Hunk]) -> str:
    return few_shown(list(dict.fromkeys(hunk.path for hunk in hunks)))
