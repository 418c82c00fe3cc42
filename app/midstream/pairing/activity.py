"""What a session does or waits for at this moment: a word for the screen, a line for plain mode."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from midstream.pairing.status import RUNNING, SessionState

if TYPE_CHECKING:
    from midstream.pairing.session import PairingSession


class Activity(StrEnum):
    """The words of the status row."""

    CONNECTING = "connecting"
    LOADING = "loading"
    """The model server on this machine is started and loads its model."""
    READY = "ready"
    SENDING = "sending"
    """The typed text is being prepared: its place and its context are found."""
    READING = "reading"
    """The model has the request and has written nothing yet."""
    THINKING = "thinking"
    WRITING = "writing"
    STOPPING = "stopping"
    OFFLINE = "offline"
    YOU = "your turn"
    """The model or an agent has asked something, and waits for the answer."""
    AGENT = "working"
    """An agent works, and the model does nothing."""
    HOOKS = "git hooks"
    """A commit waits for the hooks of the repository."""
    CHECKS = "checking"
    """The checks of the project run."""


OF_STATE: Final = {
    SessionState.STARTING: Activity.LOADING,
    SessionState.READY: Activity.READY,
    SessionState.WAITING: Activity.READING,
    SessionState.THINKING: Activity.THINKING,
    SessionState.STREAMING: Activity.WRITING,
    SessionState.STOPPING: Activity.STOPPING,
    SessionState.OFFLINE: Activity.OFFLINE,
}
"""What the states of the model are called."""


WORDLESS: Final = frozenset(
    {
        Activity.CONNECTING, Activity.LOADING, Activity.SENDING, Activity.READING,
        Activity.THINKING, Activity.AGENT, Activity.HOOKS, Activity.CHECKS,
    }
)  # fmt: skip
"""Waits with little or nothing to see; their seconds are counted."""


def at_work(session: PairingSession) -> bool:
    """Whether the model has an instruction or a question."""
    return session.status.state in RUNNING or session.chat.busy


def activity_of(session: PairingSession) -> Activity:
    """The one thing that the user should know of: what waits for them first, then the model."""
    agent, chat, state = session.agent, session.chat, session.status.state
    if agent.asking or chat.asking or session.gate.waiting:
        return Activity.YOU
    if state is SessionState.STARTING or agent.starting:
        local = session.server.embedded and not agent.starting
        return Activity.LOADING if local else Activity.CONNECTING
    if state not in (SessionState.READY, SessionState.OFFLINE):
        return OF_STATE[state]
    if chat.busy:
        return OF_STATE[chat.state]
    if session.commit.committing:
        return Activity.HOOKS
    if agent.busy:
        return Activity.AGENT
    if session.check.running:
        return Activity.CHECKS
    return OF_STATE[state]


def told(session: PairingSession, activity: Activity) -> str:
    """An activity that has begun, as a sentence; ``""`` where another line says so."""
    match activity:
        case Activity.CONNECTING:
            return f"Connecting to {session.agent.starting or session.server.place}."
        case Activity.LOADING:
            return "Loading the model."
        case Activity.THINKING:
            return "The model is thinking."
        case Activity.WRITING:
            return "The model is writing."
        case Activity.YOU:
            return "Your turn: it waits for your answer."
        case Activity.AGENT:
            return f"{session.agent.title} is working."
        case Activity.HOOKS:
            return "Committing; git and its hooks run."
        case Activity.READING if session.chat.busy:
            return "The model reads the question."
        case _:
            return ""
