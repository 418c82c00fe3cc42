"""Walking through a large change: its page, its order, and decisions about groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.counting import counted
from midstream.edits.external import outcome
from midstream.edits.hunks import HunkState
from midstream.tui.review.attention import OnScreenTimer
from midstream.tui.review.controller import Controller, Shared
from midstream.tui.review.navigate import Navigate
from midstream.tui.services import NotNowError

if TYPE_CHECKING:
    from midstream.edits.groups import HunkGroup
    from midstream.tui.pages.walk import ToHunk


class Walk(Controller):
    """Actions on the walk and on groups."""

    def __init__(self, shared: Shared, navigate: Navigate, on_screen: OnScreenTimer) -> None:
        super().__init__(shared)
        self._navigate = navigate
        self._on_screen = on_screen

    def show(self) -> None:
        """Open the page."""
        from midstream.tui.pages.walk import WalkScreen

        session = self._state.session
        self._on_screen.sample()

        def left(result: ToHunk | None) -> None:
            if result is not None:
                self._navigate.go_to_hunk(result.hunk)

        self._services.open_screen(WalkScreen(self._services, session, self.decide), left)

    def switch(self) -> None:
        """Follow the walk, or the order of the files."""
        session = self._state.session
        session.walk.on = not session.walk.on
        key = self._services.key_for("hunk.next_undecided")
        order = "the walk, risky hunks first" if session.walk.on else "the files"
        self._notices.say("info", f"{key} follows {order}.")

    def accept(self) -> None:
        self._decide_here(accept=True)

    def reject(self) -> None:
        self._decide_here(accept=False)

    def _decide_here(self, *, accept: bool) -> None:
        """Decide the group of the hunk under the cursor."""
        session, hunk = self._state.session, self._pane.hunk
        self._navigate.refuse_if_just_arrived()
        group = None if hunk is None else session.walk.group_of(hunk)
        if hunk is None or group is None:
            words = "No other hunk is proven to be the same as this one."
            raise NotNowError(words if hunk else "Put the cursor on a hunk first.")
        self._navigate.refuse_if_unseen(hunk)
        self._on_screen.sample()

        async def work() -> None:
            level, sentence = await self.decide(group, accept=accept)
            if level == "info":
                self._navigate.walk_on(1, hunk, quietly=True)
            self._pane.sync()
            self._notices.say(level, sentence)

        self._work.run(work)

    async def decide(self, group: HunkGroup, *, accept: bool) -> tuple[str, str]:
        """Decide what waits of a group, once one of it was read.

        Returns:
            The level and the text of what to say.
        """
        session, key_for = self._state.session, self._services.key_for
        through = session.walk
        if not through.example_read(group):
            many = counted(len(group.hunks), "hunk")
            return "warning", f"Read one of them first; it decides all {many}: {group.title}."
        ids, alone = through.together(group)
        hunks = [session.hunks.get(hunk_id) for hunk_id in ids]
        words = outcome(hunks, accept=accept)
        notices = session.status.notices
        said = len(notices)
        count = 0
        if ids and accept:
            count = await session.decisions.accept_all(ids)
            accepted = [hunk.id for hunk in hunks if hunk.state is HunkState.ACCEPTED]
            session.attention.accepted_together(group.key, accepted)
        elif ids:
            count = await session.decisions.reject_together(ids)
        if ids and not count:
            why = notices[-1].text if len(notices) > said else "Nothing was decided."
            return "warning", why
        if any(hunk.postponed is not None for hunk in hunks):
            return "info", notices[-1].text  # when they will be put back
        parts = [f"{counted(count, 'hunk')} {words}: {group.title}"] if count else []
        if alone:
            parts.append(f"{counted(len(alone), 'hunk')} to decide one by one ({alone[0][1]})")
        if not parts:
            return "info", "Every hunk of this group is decided."
        if count:
            parts.append(f"{key_for('decision.undo')} undoes it")
        return ("warning" if alone else "info"), f"{'; '.join(parts)}."
