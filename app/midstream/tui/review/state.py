"""The state of the review screen: the session, the open files and the user's place in each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from midstream.code.lexing import meet
from midstream.edits.hunk_store import HunkStore
from midstream.pairing.activity import Activity, activity_of
from midstream.pairing.status import RUNNING, SessionState
from midstream.tui.diff.syntax import FileSyntax
from midstream.tui.diff.view import FileView, MatchFinder, NoFile
from midstream.tui.services import StillOpeningError

if TYPE_CHECKING:
    from midstream.pairing.request.suggesting import Suggestion
    from midstream.pairing.session import PairingSession
    from midstream.pairing.status import Turn
    from midstream.tui.notices import Work
    from midstream.tui.widgets.welcome import Recent

MET_LINES: Final = 60
"""Lines of a file from which the rules of its language are read before it is shown."""
LIST_PAUSE_S: Final = 0.5
"""Least time between two listings of the folder, however often it changes."""


class ReviewState:
    """Shared by the controllers of the review screen; each writes only what it is about.

    Args:
        refresh: Shows in the surrounding rows what has changed.
    """

    def __init__(self, refresh: Callable[[], None]) -> None:
        self.refresh = refresh
        self.opened: PairingSession | None = None
        """The session, for what is also shown before there is one."""
        self.path = ""
        """The open file, or ``""``."""
        self._no_rows = FileView(NoFile(), HunkStore())
        self.views: dict[str, FileView] = {}
        self.syntaxes: dict[str, FileSyntax] = {}
        self.places: dict[str, tuple[int, int]] = {}
        """Cursor and first visible row of files that were left, the last one last."""
        self.finder: MatchFinder | None = None
        """The search in the open file."""
        self.shown_turn = 0
        """The newest turn whose place was shown, or deliberately not shown."""
        self.files: tuple[str, ...] = ()
        """Files of the folder."""
        self.listed = False
        """Whether the folder has been read."""
        self.suggested: tuple[Suggestion, ...] = ()
        """Edits that suit the code of this folder."""
        self.recent: tuple[Recent, ...] = ()
        """Earlier sessions of this folder, for the welcome."""
        self.examples_hidden = False
        self.sending = 0
        """Texts of the user that are on their way to the session."""
        self.tried: set[str] = set()
        """Example instructions that were sent."""

    def reset(self) -> None:
        """Forget the session and its files, before another one is attached."""
        self.opened, self.path, self.finder = None, "", None
        self.views, self.syntaxes, self.places = {}, {}, {}

    @property
    def session(self) -> PairingSession:
        """The session.

        Raises:
            StillOpeningError: It is not open yet; the caller of the action reports that.
        """
        if self.opened is None:
            raise StillOpeningError
        return self.opened

    @property
    def view(self) -> FileView:
        """The rows of the open file."""
        return self.views.get(self.path, self._no_rows)

    @property
    def turn(self) -> Turn | None:
        """The running or last turn."""
        return None if self.opened is None else self.opened.turns.last

    @property
    def doing(self) -> Activity:
        """What is waited for."""
        doing = Activity.LOADING if self.opened is None else activity_of(self.opened)
        return Activity.SENDING if self.sending and doing is Activity.READY else doing

    @property
    def status(self) -> SessionState:
        """The state of the model."""
        return SessionState.STARTING if self.opened is None else self.opened.status.state

    @property
    def running(self) -> bool:
        """Whether a turn runs."""
        return self.status in RUNNING

    @property
    def offline(self) -> bool:
        """Whether there is no model to send anything to."""
        return self.status is SessionState.OFFLINE

    @property
    def read_only(self) -> bool:
        """Whether nothing can be put back or written: a range of commits is looked at."""
        return self.opened is not None and self.opened.workspace.read_only

    @property
    def reviewing(self) -> bool:
        """Whether all hunks are kept or put back."""
        return self.opened is not None and self.opened.only_reviews

    @property
    def heading(self) -> bool:
        """Whether the view is still on its way to where the turn writes."""
        turn = self.turn
        return turn is not None and not turn.background and turn.id > self.shown_turn

    @property
    def written_path(self) -> str:
        """The file the model is writing in, or ``""``."""
        if (turn := self.turn) is None or not self.running:
            return ""
        writing = self.session.turns.writing
        return turn.path if writing is None else writing[0]

    @property
    def waiting_by_path(self) -> dict[str, int]:
        """How many hunks wait, by file; of a file that was moved, those of its new name."""
        return {} if self.opened is None else self.opened.files.moves.waiting_by_path()

    @property
    def failed_edits(self) -> int:
        """Edits of the last answer that did not match the file."""
        turn = self.turn
        return 0 if turn is None or turn.running else len(turn.failures)

    def forget(self, journal: Path) -> None:
        """Leave out the earlier session of a journal that was deleted."""
        self.recent = tuple(each for each in self.recent if each.path != journal)
        self.refresh()

    @property
    def recent_paths(self) -> list[str]:
        """Files the user has looked at, the open one first."""
        return list(dict.fromkeys(filter(None, (self.path, *reversed(self.places)))))

    async def open_path(self, path: str) -> str:
        """Open a file in the session and prepare its rows.

        Returns:
            The path as the session names it.

        Raises:
            UserError: The file cannot be opened, or there is no session.
        """
        session = self.session
        proposal = await session.files.open(path)
        view = self.views.get(proposal.path)
        if view is None:
            await asyncio.to_thread(meet, proposal.path, proposal.base.lines[:MET_LINES])
            view = self.views.get(proposal.path)
        if view is None or view.proposal is not proposal:
            view = self.views[proposal.path] = FileView(proposal, session.hunks)
            self.syntaxes[proposal.path] = FileSyntax(view)
        return proposal.path


class FolderListing:
    """Keeps the list of files up to date in the background."""

    def __init__(
        self,
        state: ReviewState,
        root: Path,
        start: Callable[[Work], object],
        changed: Callable[[], None],
    ) -> None:
        self._state = state
        self._root = root
        self._start = start
        self._changed = changed
        self._known: frozenset[str] = frozenset()
        self._running = False
        self._again = False

    def update(self) -> None:
        """Read the folder, or once more if it is being read."""
        self._again = True
        if not self._running:
            self._running = True
            self._start(self._read)

    async def _read(self) -> None:
        state = self._state
        try:
            while self._again:
                self._again = False
                files = tuple(await asyncio.to_thread(state.session.workspace.files))
                if files != state.files or not state.listed:
                    state.files, self._known, state.listed = files, frozenset(files), True
                    self._changed()
                await asyncio.sleep(LIST_PAUSE_S)
        finally:
            self._running = False

    def touched(self, paths: Iterable[str]) -> None:
        """Files were created, changed or removed: read the folder if the list may differ."""
        if any(self._differs(path) for path in paths):
            self.update()

    def _differs(self, path: str) -> bool:
        there = self._root / path
        if there.name == ".gitignore" or there.is_file() != (path in self._known):
            return True
        # A moved folder takes the files below it along, and no event names those.
        below = f"{path}/"
        return not there.exists() and any(name.startswith(below) for name in self._state.files)
