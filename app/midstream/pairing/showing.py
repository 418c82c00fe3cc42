"""What a session tells a screen about itself.  Nothing here changes anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.pairing.events import Notice, SessionEvent
from midstream.pairing.request.context import Context
from midstream.pairing.turns import UNSURE, SessionState, Turn

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk, HunkStore
    from midstream.edits.proposal import FileProposal
    from midstream.pairing.board import Board
    from midstream.pairing.guard import Guard
    from midstream.pairing.journal import SessionJournal
    from midstream.pairing.link import Link
    from midstream.pairing.turn.answers import Answers
    from midstream.pairing.turn.effort import Effort
    from midstream.pairing.turn.log import TurnLog
    from midstream.pairing.turn.runner import TurnRunner
    from midstream.responses.model_info import ModelInfo
    from midstream.responses.profiles import Profile


class Showing:
    """The part of a session that a screen reads.

    Attributes:
        hunks: Every hunk of the session and its decision.
        files: Open proposals by path relative to the root.
    """

    guard: Guard
    hunks: HunkStore
    files: dict[str, FileProposal]
    _board: Board
    _effort: Effort
    _link: Link
    _answers: Answers
    _recorder: SessionJournal
    _runner: TurnRunner
    _turns: TurnLog

    @property
    def state(self) -> SessionState:
        """What the session is doing."""
        return self._board.state

    @property
    def notices(self) -> list[Notice]:
        """Sentences for the person, oldest first."""
        return self._board.notices

    @property
    def turn(self) -> Turn | None:
        """The running or last turn."""
        return self.turns[-1] if self.turns else None

    @property
    def turns(self) -> list[Turn]:
        """All turns, oldest first."""
        return self._turns.turns

    @property
    def model_name(self) -> str:
        """What the server calls its model, ``""`` before it is known."""
        return self._link.model_name

    @property
    def model_info(self) -> ModelInfo:
        """What the server says about the model (edit format, longest region, languages, ...)."""
        return self._link.model_info

    @property
    def profile(self) -> Profile | None:
        """The configured endpoint in use, ``None`` for the built-in server."""
        return self._link.profile

    @property
    def journal_path(self) -> Path | None:
        """The journal of this session, ``None`` while there is none."""
        return self._recorder.path

    @property
    def version(self) -> int:
        """Grows with everything a screen could show; while it stays, there is nothing to paint."""
        proposals = sum(proposal.version for proposal in self.files.values())
        return self._board.version + self.hunks.version + proposals

    def subscribe(self, listener: Callable[[SessionEvent], None]) -> Callable[[], None]:
        """Call ``listener`` on the loop with every event from now on; returns how to stop that."""
        return self._board.subscribe(listener)

    @property
    def in_background(self) -> bool:
        """Whether the running turn is one that the session asked for by itself."""
        turn = self.turn
        return turn is not None and turn.running and turn.background

    @property
    def context(self) -> Context:
        """What went along with the last instruction."""
        return self._answers.context

    def reason(self, hunk: Hunk) -> str:
        """Why a hunk should be looked at by itself: what the guard has found in it, or, until it is
        decided or the person has written it anew, that the model is unsure of it; ``""`` for none.
        """
        found = self.guard.reason(hunk)
        if found or hunk.decided or hunk.own:
            return found
        doubted = any(hunk.rank[0] in turn.doubted for turn in self.turns)
        return UNSURE if doubted else ""

    def told_change(self, path: str) -> str:
        """The sentence about a save of a file by somebody else."""
        moved = bool(self.hunks.undecided(path))
        then = "open hunks were moved onto the new text" if moved else "this is the new text"
        return f"{path} changed on disk; {then}."

    @property
    def trying(self) -> tuple[int, int] | None:
        """The candidate that is being written and how many there will be, ``None`` otherwise."""
        return self._effort.trying

    @property
    def writing(self) -> tuple[str, int] | None:
        """File and base line at which the model writes now, ``None`` while it does not."""
        return self._runner.writing
