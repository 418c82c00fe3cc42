"""The sessions page: earlier sessions of this folder, to resume or delete.

Counts are read from the journals in a thread, newest first, while the list is already there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text

from midstream.actions import Place
from midstream.counting import counted
from midstream.edits.hunks import HunkState
from midstream.pairing.journal.journal import (
    SessionSummary,
    earlier_sessions,
    summarize,
)
from midstream.resources import tilde
from midstream.tui.clock import span, when
from midstream.tui.keymap import page_bindings
from midstream.tui.pages.page import PageScreen
from midstream.tui.services import AppServices
from midstream.tui.visible import visible
from midstream.tui.widgets.row_list import ListRow, Piece

if TYPE_CHECKING:
    from midstream.pairing.journal.journal import SessionInfo
    from midstream.pairing.session import PairingSession

MAX_READ_BYTES: Final = 24_000_000
"""Journals with more bytes are listed, but not followed for their counts."""
MAX_LISTED: Final = 40
"""Instructions of one session that are shown."""
_WHEN: Final = 19
"""Cells of the column of times."""


class SessionsScreen(PageScreen):
    """Earlier sessions.

    Args:
        services: The application.
        session: The session that is open.
        on_deleted: Is told the journal of each session that is deleted.
    """

    PAGE = Place.SESSIONS
    TITLE_WORDS = "Sessions"
    CHOOSE = "sessions.resume"
    WIDE = 150  # An instruction needs room between the time and the counts.
    BINDINGS: ClassVar = page_bindings(Place.SESSIONS)

    def __init__(
        self, services: AppServices, session: PairingSession, on_deleted: Callable[[Path], None]
    ) -> None:
        super().__init__(services)
        self.session = session
        self._on_deleted = on_deleted
        self.infos: list[SessionInfo] = []
        self.summaries: dict[str, SessionSummary] = {}
        self.read = False

    def on_mount(self) -> None:
        super().on_mount()
        self.work.beside(self._read, "journals")

    async def _read(self) -> None:
        self.infos = await asyncio.to_thread(earlier_sessions, self.services.root)
        self.read = True
        self.show_all()
        for info in self.infos:
            if info.path.name not in self.summaries and info.size <= MAX_READ_BYTES:
                found = await asyncio.to_thread(summarize, info.path)
                self.summaries[info.path.name] = found
                self.show_all()

    @property
    def info(self) -> SessionInfo | None:
        """The session under the cursor."""
        value = self.list.value
        return next((info for info in self.infos if info.path.name == value), None)

    def is_this(self, info: SessionInfo) -> bool:
        """Whether it is the session on screen."""
        return self.session.journal.path == info.path

    # showing

    def show_all(self) -> None:
        if not self.is_mounted:
            return
        count = len(self.infos)
        self.title_row.show(
            (tilde(self.services.users_folder), "foreground"),
            (counted(count, "session") if self.read else "reading", "muted"),
        )
        if not self.read:
            return
        heading = ListRow(None, ((f" {'last used':<{_WHEN}}asked for", "muted"),))
        states = [self._state(info) for info in self.infos]
        width = max((len(words) for words, _ in states), default=0)
        rows = [
            self._row(info, state, width) for info, state in zip(self.infos, states, strict=True)
        ]
        self.show_rows([heading, *rows] if rows else [])
        self.show_detail()
        self.show_keys()

    def _row(self, info: SessionInfo, state: Piece, width: int) -> ListRow:
        """The row of a session.

        Args:
            info: The session.
            state: What state it is in.
            width: Cells of the column of states.
        """
        summary = self.summaries.get(info.path.name)
        left: list[Piece] = [(f" {when(info.changed):<{_WHEN}}", "foreground")]
        right: list[Piece] = []
        if summary is not None and not summary.trouble:
            marks = self.glyphs.states
            accepted, rejected = marks[HunkState.ACCEPTED], marks[HunkState.REJECTED]
            right = [
                (f"  {accepted} {summary.accepted:<3}", _role(summary.accepted, "success")),
                (f"{rejected} {summary.rejected:<3}", _role(summary.rejected, "error")),
            ]
        right.append((f"  {state[0]:>{width}}", state[1]))
        words = "reading" if summary is None else (summary.trouble or _first(summary))
        quiet = summary is None or bool(summary.trouble)
        left.append((visible(words), "muted" if quiet else "foreground"))
        return ListRow(info.path.name, tuple(left), tuple(right))

    def _state(self, info: SessionInfo) -> Piece:
        summary = self.summaries.get(info.path.name)
        if self.is_this(info):
            return "this session", "accent"
        if info.live:
            return "open elsewhere", "muted"
        if summary is None:
            return "" if info.size <= MAX_READ_BYTES else "large", "muted"
        if summary.trouble:
            return "damaged", "error"
        if summary.undecided:
            return f"{summary.undecided} to decide", "warning"
        if summary.unfinished:
            return "answer cut off", "warning"
        return "done", "muted"

    def show_detail(self) -> None:
        info, palette = self.info, self.palette
        text = Text(no_wrap=False, overflow="fold")
        muted, plain = palette.style("muted"), palette.style("foreground")
        if info is None:
            text.append("No sessions of this folder are kept yet.\n\n", plain)
            text.append(
                "A journal begins with the first instruction; the newest twenty are kept. "
                "With journal = false in the settings, none is written.",
                muted,
            )
            self.detail.show(text)
            return
        summary = self.summaries.get(info.path.name)
        lasted = max(0.0, info.changed - info.started)
        text.append(f"{span(lasted)}, journal of {info.size / 1000:,.0f} kB\n", muted)
        if summary is None:
            words = "reading" if info.size <= MAX_READ_BYTES else "too large to preview"
            text.append(f"\n{words}", muted)
        elif summary.trouble:
            text.append(f"\n{visible(summary.trouble)}", palette.style("error"))
        else:
            self._tell(text, summary)
        self.detail.show(text, f"begun {when(info.started)}")

    def _tell(self, text: Text, summary: SessionSummary) -> None:
        palette = self.palette
        muted, plain = palette.style("muted"), palette.style("foreground")
        text.append(f"\n{summary.accepted} accepted", plain)
        text.append(f", {summary.rejected} rejected", plain)
        waiting = palette.style("warning" if summary.undecided else "foreground")
        text.append(f", {summary.undecided} to decide\n", waiting)
        if summary.unfinished:
            text.append("The last answer was cut off.\n", palette.style("warning"))
        text.append("\nInstructions\n", palette.style("muted", bold=True))
        shown = summary.instructions[-MAX_LISTED:]
        if len(shown) < len(summary.instructions):
            left_out = len(summary.instructions) - len(shown)
            text.append(f"  {counted(left_out, 'earlier instruction')}\n", muted)
        outcomes = summary.outcomes[-MAX_LISTED:]
        for words, outcome in zip_longest(shown or ("none",), outcomes):
            text.append(f"  {visible(' '.join(words.split()))}\n", plain)
            if outcome is not None:
                role = "warning" if outcome[2] else "muted"
                text.append(f"    {_outcome(*outcome)}\n", palette.style(role))
        text.append("\nFiles\n", palette.style("muted", bold=True))
        for path in summary.files or ("none",):
            text.append(f"  {visible(path)}\n", plain)

    def hidden_hints(self) -> frozenset[str]:
        if self.info is None:
            return frozenset({"sessions.resume", "sessions.delete"})
        return frozenset()

    # doing

    def action_resume(self) -> None:
        info, session = self.info, self.session
        if info is None:
            return
        summary = self.summaries.get(info.path.name)
        if self.is_this(info):
            self.notices.say("info", "This is the current session; esc goes back to it.")
        elif info.live:
            self.notices.say(
                "warning", "This session is open in another Midstream; close it there."
            )
        elif summary is not None and summary.trouble:
            self.notices.say("error", summary.trouble)
        elif self.services.running:
            key = self.services.key_for("model.stop")
            self.notices.say("warning", f"The model is writing; stop it first: esc, then {key}.")
        elif session.hunks.undecided() and session.journal.path is None:
            count = len(session.hunks.undecided())
            self.notices.ask(
                f"{counted(count, 'undecided hunk')} of this session would be lost, because it "
                f"has no journal.",
                ("resume anyway", lambda: self._resume(info)),
                ("stay here", self.notices.clear),
            )
        else:
            self._resume(info)

    def _resume(self, info: SessionInfo) -> None:
        async def work() -> None:
            await self.services.take_up(info.path)
            self.dismiss(None)

        self.work.run(work)

    def action_delete(self) -> None:
        info = self.info
        if info is None:
            return
        if info.live or self.is_this(info):
            self.notices.say("warning", "That session is open; close it before deleting it.")
            return
        summary = self.summaries.get(info.path.name)
        waiting = 0 if summary is None else summary.undecided
        lost = f" with {counted(waiting, 'undecided hunk')}" if waiting else ""
        self.notices.ask(
            f"Delete the session of {when(info.changed)}{lost}? Your files stay as they are.",
            ("delete it", lambda: self._delete(info)),
            ("keep it", self.notices.clear),
        )

    def _delete(self, info: SessionInfo) -> None:
        async def work() -> None:
            await self.session.delete_earlier(info.path)
            self.infos = [other for other in self.infos if other.path != info.path]
            self._on_deleted(info.path)
            self.show_all()
            self.notices.say("info", f"The session of {when(info.changed)} is deleted.")

        self.work.run(work)


def _outcome(accepted: int, rejected: int, undecided: int) -> str:
    """What became of the hunks of an instruction."""
    parts = ((accepted, "accepted"), (rejected, "rejected"), (undecided, "to decide"))
    return ", ".join(f"{count} {words}" for count, words in parts if count) or "no change"


def _role(count: int, role: str) -> str:
    return role if count else "muted"


def _first(summary: SessionSummary) -> str:
    asked = summary.instructions
    if not asked:
        return "nothing was asked"
    first = " ".join(asked[0].split())
    return first if len(asked) == 1 else f"{first}  (+{len(asked) - 1})"
