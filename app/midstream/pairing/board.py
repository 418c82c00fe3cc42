"""What a session shows of itself: its state, its notices, and the events that announce changes."""

from __future__ import annotations

from collections.abc import Callable

from midstream.pairing.events import (
    Notice,
    NoticeLevel,
    NoticePosted,
    SessionEvent,
    StateChanged,
)
from midstream.pairing.turns import SessionState

Listener = Callable[[SessionEvent], None]


class Board:
    """Keeps state and notices, and delivers events to listeners, in order, on the event loop.

    Attributes:
        state: What the session is doing.
        notices: Every notice so far, oldest first.
        version: Grows with every event and every ``touch``.
    """

    def __init__(self) -> None:
        self.state = SessionState.STARTING
        self.notices: list[Notice] = []
        self.version = 0
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Deliver every event from now on to ``listener``; returns how to stop that."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def touch(self) -> None:
        """Something a screen could show has changed."""
        self.version += 1

    def emit(self, event: SessionEvent) -> None:
        """Deliver an event."""
        self.touch()
        for listener in tuple(self._listeners):
            listener(event)

    def enter(self, state: SessionState) -> None:
        """The session is in ``state`` from now on."""
        if state is not self.state:
            self.state = state
            self.emit(StateChanged(state))

    def inform(self, sentence: str, action: str = "") -> None:
        """Post a notice that needs no action."""
        self._notice(NoticeLevel.INFO, sentence, action)

    def warn(self, sentence: str, action: str = "") -> None:
        """Post a notice about something that did not go as asked."""
        self._notice(NoticeLevel.WARNING, sentence, action)

    def fail(self, sentence: str) -> None:
        """Post a notice about a failure."""
        self._notice(NoticeLevel.ERROR, sentence)

    def _notice(self, level: NoticeLevel, sentence: str, action: str = "") -> None:
        notice = Notice(level, sentence, action)
        self.notices.append(notice)
        self.emit(NoticePosted(notice))
