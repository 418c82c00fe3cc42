"""The base of the review screen's controllers."""

from __future__ import annotations

from msgspec import Struct

from midstream.tui.notices import Notices, ScreenWork
from midstream.tui.review.panes import ReviewPanes
from midstream.tui.review.state import ReviewState
from midstream.tui.services import AppServices


class Shared(Struct, frozen=True):
    """The objects that every controller works with."""

    state: ReviewState
    panes: ReviewPanes
    notices: Notices
    work: ScreenWork
    services: AppServices


class Controller:
    """One group of actions of the review screen."""

    def __init__(self, shared: Shared) -> None:
        self._state = shared.state
        self._panes = shared.panes
        self._pane = shared.panes.pane
        self._composer = shared.panes.composer
        self._notices = shared.notices
        self._work = shared.work
        self._services = shared.services
