"""How long each undecided hunk has been on screen."""

from __future__ import annotations

import time
from typing import Final

from textual.timer import Timer

from midstream.edits.hunks import HunkState
from midstream.pairing.files.attention import Sighting
from midstream.tui.review.controller import Controller, Shared

_WATCHED: Final = (HunkState.STREAMING, HunkState.SETTLED)


class OnScreenTimer(Controller):
    """Samples which hunks are on screen and reports it to the session.

    Bulk acceptance leaves out hunks that were not there long enough to read.
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._screen = shared.panes.screen
        self._timer: Timer | None = None
        self._sampling = False
        self._sampled_at = 0.0

    def start(self) -> None:
        """Sample for the session that was just attached."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if self._state.session.attention.on:
            self._sampled_at = time.monotonic()
            self._timer = self._screen.set_interval(0.2, self.sample)
            self._sampling = True

    def resume(self) -> None:
        """Sample again: there may be undecided hunks, of an undone decision as well."""
        if self._timer is not None and not self._sampling:
            self._sampling = True
            self._sampled_at = time.monotonic()
            self._timer.resume()

    def sample(self) -> None:
        """Credit the time since the last sample to the lines of hunks that are on screen."""
        now, before = time.monotonic(), self._sampled_at
        self._sampled_at = now
        session, view, pane = self._state.session, self._state.view, self._pane
        if not (self._state.running or session.hunks.counts().waiting):
            self._sampling = False
            if self._timer is not None:
                self._timer.pause()
            return
        visible = self._screen.is_current and self._services.has_terminal_focus
        if not visible or not pane.is_on_screen:
            return
        top, bottom = pane.top, pane.bottom
        shown = [
            Sighting(
                hunk,
                (max(first, top) - first) / (stop - first),
                (min(stop, bottom) - first) / (stop - first),
            )
            for first, stop, hunk in view.places()
            if hunk.state in _WATCHED and first < bottom and stop > top and first < stop
        ]
        session.place.look(shown, now - before, pane.hunk)
