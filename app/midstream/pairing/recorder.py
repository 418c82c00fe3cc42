"""The journal's interface for turns until they write entries themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.pairing import journal

if TYPE_CHECKING:
    from midstream.edits.hunks import Quarantine
    from midstream.pairing.turns import Turn


class Recorder(journal.SessionJournal):
    """Writes the entries of turns and of the guard."""

    # pyright: reportIncompatibleMethodOverride=false

    def begin(  # type: ignore[override]
        self, turn: Turn, known: frozenset[str] = frozenset(), *, repair: bool = False
    ) -> None:
        super().begin(journal.Begin(turn, repair), known)

    def ask(self, turn: Turn) -> None:
        super().begin(journal.Ask(turn))

    def segment(  # type: ignore[override]
        self,
        path: str,
        start: int,
        stop: int,
        level: int,
        *,
        tight: bool,
        known: frozenset[str] = frozenset(),
    ) -> None:
        super().segment(journal.Segment(path, start, stop, level, tight), known)

    def withdraw(self, path: str, serial: int) -> None:
        self.add(journal.Withdraw(path, serial))

    def redirect(self, turn: Turn) -> None:
        self.add(journal.Redirect(turn))

    def mark(self, kind: str, path: str) -> None:
        marks = (journal.Freeze, journal.Resume, journal.Finish, journal.Abandon)
        self.add(next(mark for mark in marks if mark.kind == kind)(path))

    def end(self, turn: Turn) -> None:
        self.add(journal.End(turn))

    def quarantine(self, hunk_id: int, why: Quarantine) -> None:
        self.add(journal.Quarantined(hunk_id, why.rule, why.message))

    def release(self, hunk_id: int, reason: str) -> None:
        self.add(journal.Release(hunk_id, reason))
