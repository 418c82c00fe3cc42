"""A pairing session: everything a person can do with the model on one folder, without a screen.

It knows the other rooms and is the only one that does: edits (proposals and hunks), workspace
(files, git, watcher, journal), responses (the wire) and serving (the embedded server).  It imports
no Textual.  All methods belong to one event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.pairing.events import Notice, SessionEvent
from midstream.pairing.meter import Meter
from midstream.pairing.turns import SessionState, Turn, TurnStatus

if TYPE_CHECKING:
    from midstream.edits.hunks import HunkStore
    from midstream.edits.proposal import FileProposal
    from midstream.responses.endpoint import Endpoint
    from midstream.settings import Settings
    from midstream.workspace.files import Workspace
    from midstream.workspace.repo import RepoStatus

__all__ = ["PairingSession", "SessionState", "Turn", "TurnStatus"]


class PairingSession:
    """One person, one model, one folder.

    Attributes:
        root: The folder; no file outside it is read or written.
        workspace: The files.
        hunks: Every hunk of the session and its decision.
        files: Open proposals by path relative to the root.
        state: What the session is doing.
        repo: Branch and dirty state, or ``None`` where there is no repository.
        meter: Rates and token counts.
        turn: The running or last turn.
        turns: All turns, oldest first.
        model_name: What the server calls its model, ``""`` before it is known.
        facts: What the server says about the model (edit format, longest region, languages, ...).
        notices: Sentences for the person, oldest first.
        queued: Instructions that run when the current turn ends.
    """

    root: Path
    workspace: Workspace
    hunks: HunkStore
    files: dict[str, FileProposal]
    state: SessionState
    repo: RepoStatus | None
    meter: Meter
    turn: Turn | None
    turns: list[Turn]
    model_name: str
    facts: Mapping[str, str]
    notices: list[Notice]
    queued: list[str]

    @classmethod
    async def open(
        cls,
        root: Path,
        *,
        settings: Settings,
        endpoint: Endpoint | None = None,
        replay: Path | None = None,
        journal: bool = True,
        resume: Path | None = None,
    ) -> PairingSession:
        """Open a session on a folder and return at once; the server starts in the background.

        Args:
            root: The folder.
            settings: What the person configured.
            endpoint: A server to use instead of the configured or embedded one.
            replay: A script for the embedded server to play instead of running a model.
            journal: Whether to keep a journal; ``settings.journal`` must allow it as well.
            resume: The journal of an earlier session of this root to take up again.

        Raises:
            UserError: ``root`` is not a folder that can be read.
        """
        raise NotImplementedError

    @property
    def version(self) -> int:
        """Grows with everything a screen could show; while it stays, there is nothing to paint."""
        raise NotImplementedError

    def subscribe(self, listener: Callable[[SessionEvent], None]) -> Callable[[], None]:
        """Call ``listener`` on the loop with every event from now on; returns how to stop that."""
        raise NotImplementedError

    async def open_file(self, rel: str) -> FileProposal:
        """The proposal of a file, opening it when needed.

        Raises:
            UserError: The file is missing, unreadable, too large, not text, or outside the root.
        """
        raise NotImplementedError

    async def instruct(
        self,
        text: str,
        *,
        path: str | None = None,
        cursor: int | None = None,
        selection: tuple[int, int] | None = None,
    ) -> Turn:
        """Ask for a change; returns when the request is on its way.

        Args:
            text: The instruction.
            path: The file it is about; without it the instruction must name a symbol.
            cursor: 0-based line of the cursor.
            selection: 0-based half-open line range that overrides the search for the region.

        Raises:
            TargetUnclearError: The sentence is a question with candidates.
            UserError: A turn is running, the file or the region does not fit the model, or no
                model can be reached.
        """
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop the model now: complete lines stay decidable, the unread rest of the file stays."""
        raise NotImplementedError

    async def redirect(self, text: str) -> Turn:
        """Stop, keep what has come, and go on with a new instruction in the same region.

        Raises:
            UserError: No turn is running.
        """
        raise NotImplementedError

    def queue(self, text: str) -> None:
        """Run ``text`` on the current file when the turn ends, or at once if none runs."""
        raise NotImplementedError

    async def accept(self, hunk_id: int) -> bool:
        """Accept a settled hunk and write the file; ``False`` with a notice if it could not be."""
        raise NotImplementedError

    async def reject(self, hunk_id: int, note: str = "") -> bool:
        """Reject a settled hunk; nothing is written unless it had been accepted."""
        raise NotImplementedError

    async def accept_rest(self, path: str) -> int:
        """Accept every decidable undecided hunk of a file in one write; returns how many."""
        raise NotImplementedError

    async def reject_rest(self, path: str) -> int:
        """Reject every decidable undecided hunk of a file; returns how many."""
        raise NotImplementedError

    async def undo(self) -> tuple[int, ...]:
        """Take the last decision back and rewrite what it had written; ids of the hunks changed."""
        raise NotImplementedError

    async def redo(self) -> tuple[int, ...]:
        """Decide again what ``undo`` took back; ids of the hunks changed."""
        raise NotImplementedError

    async def close(self) -> None:
        """End the turn, the server, the watcher and the journal."""
        raise NotImplementedError
