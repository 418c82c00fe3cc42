"""What the review screen does with the guard and with attention: releasing, watching, the rest."""

from __future__ import annotations

import time
from typing import Final

from textual import on
from textual.timer import Timer

from midstream.edits.hunks import HunkState
from midstream.tui.screens.reason import ReleaseBar
from midstream.tui.screens.reworking import ReworkActions

LOOK_EVERY_S: Final = 0.2
"""How often it is noted which hunks are on screen."""


class GuardActions(ReworkActions):
    """Releasing quarantined hunks, noting what is on screen, and accepting the rest with care."""

    _looker: Timer | None = None
    _looking = False
    """Whether there may be hunks on screen that wait."""
    _looked_at = 0.0
    _offered: frozenset[int] = frozenset()

    def start_looking(self) -> None:
        """Note from now on which hunks are on screen."""
        session = self.session
        if session is None:
            return
        self.pane.note_of = session.reason
        if self._looker is not None:
            self._looker.stop()  # of the session before
        if session.attention.on:
            self._looked_at = time.monotonic()
            self._looker = self.set_interval(LOOK_EVERY_S, self.look)
            self._looking = True

    def keep_looking(self) -> None:
        """Something has happened: there may be hunks to look at again."""
        if self._looker is not None and not self._looking:
            self._looking = True
            self._looked_at = time.monotonic()
            self._looker.resume()

    def look(self) -> None:
        """Hunks that are on screen in full were so since the last time."""
        now, before = time.monotonic(), self._looked_at
        self._looked_at = now
        session, view, pane = self.session, self.view, self.pane
        if session is None or view is None or not self._in_focus or not pane.is_on_screen:
            return
        if not self.running and not session.hunks.undecided():
            self._looking = False
            if self._looker is not None:
                self._looker.pause()
            return
        top, height = pane.top, pane.bottom - pane.top
        shown = [
            (hunk, min(height, stop - first) / (stop - first))
            for first, stop, hunk in view.places()
            if hunk.state is HunkState.SETTLED
            and max(0, min(stop, top + height) - max(first, top)) == min(height, stop - first)
        ]
        session.attention.look(shown, now - before)

    @property
    def _in_focus(self) -> bool:
        return self.program.screen is self and self.program.app_focus

    def action_release(self) -> None:
        """Ask why the quarantined hunk under the cursor may be decided after all."""
        hunk = self.hunk
        if hunk is None or hunk.state is not HunkState.QUARANTINED:
            if not self.to_held(1):
                self.say("info", "Only a quarantined hunk needs releasing.")
            return
        self._in_sight(hunk)
        self.query_one(ReleaseBar).open(hunk.id)
        self.show_keys()

    @on(ReleaseBar.Given)
    def _release_given(self, event: ReleaseBar.Given) -> None:
        session = self.session
        self.set_focus(self.pane)
        if session is None:
            return

        async def work() -> None:
            session.release(event.hunk_id, event.text)
            self.pane.sync()
            self.say("info", "Released; it can be accepted now, and waits for your decision.")

        self.in_order(work)

    @on(ReleaseBar.Left)
    def _release_left(self) -> None:
        self.set_focus(self.pane)

    def action_accept_rest(self) -> None:
        """Accept what was read; with the key again, what was not; never what is risky."""
        session, path = self.session, self.path
        if session is None or not path or self.just_arrived:
            return

        async def work() -> None:
            waiting = session.hunks.undecided(path)
            bulk = session.attention.bulk(waiting)
            unread = frozenset(bulk.unread)
            again = bool(unread) and unread <= self._offered
            count = await session.accept_rest(path, {*bulk.read, *(bulk.unread if again else ())})
            self._offered = frozenset() if again else unread
            key, undo = self.program.key_for("hunk.accept_rest"), self.program.key_for
            parts = [f"{_many(count)} accepted and written"] if count else []
            if again and count:
                parts[0] += f", {len(unread)} of them unread"
            elif unread:
                was = "was" if len(unread) == 1 else "were"
                parts.append(
                    f"{_many(len(unread))} {was} not on screen long enough to be read; "
                    f"{key} again accepts {'it' if len(unread) == 1 else 'them'} all the same"
                )
            if bulk.risky:
                why = bulk.risky[0][1]
                parts.append(f"{_many(len(bulk.risky))} to decide one by one ({why})")
            if count:
                parts.append(f"{undo('decision.undo')} takes it back")
            sentence = "; ".join(parts) or "No hunk waits for a decision here"
            self.say("info" if count and not unread else "warning", f"{sentence}.")

        self.in_order(work)


def _many(count: int) -> str:
    return f"{count} hunk{'s' * (count != 1)}"
