"""The runner's inbox: typed messages in order of arrival."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from midstream.pairing.guard import GuardStop
    from midstream.pairing.request.builder import Question
    from midstream.pairing.status import Turn
    from midstream.pairing.turn.answer import Answer


def _future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


@dataclass(slots=True, eq=False)
class AskMessage:
    """An instruction of the user, or of the session itself.

    Attributes:
        question: What is asked, and where.
        begun: Resolved with the turn when its request is on its way.
        stopped: Whether it is to end before anything is sent.
    """

    question: Question
    begun: asyncio.Future[Turn] = field(default_factory=_future)
    stopped: bool = False


@dataclass(slots=True, eq=False)
class StopMessage:
    """End the running turn.

    Attributes:
        answer: The answer that was live then.
        done: Resolved when the server has stopped.
    """

    answer: Answer | None
    done: asyncio.Future[None] = field(default_factory=_future)

    def acknowledge(self) -> None:
        """Release the caller, unless it was cancelled meanwhile."""
        if not self.done.done():
            self.done.set_result(None)


@dataclass(slots=True, eq=False)
class RedirectMessage:
    """Stop, keep what was written, and continue with another instruction.

    Attributes:
        answer: The answer that was live then.
        text: The instruction.
        begun: Resolved with the new turn when its request is on its way.
    """

    answer: Answer
    text: str
    begun: asyncio.Future[Turn] = field(default_factory=_future)


Message: TypeAlias = "AskMessage | StopMessage | RedirectMessage | GuardStop"


class Inbox:
    """The messages of one session's runner.

    Attributes:
        idle: Set while no message waits and the runner has nothing to do.
    """

    def __init__(self) -> None:
        self.idle = asyncio.Event()
        self.idle.set()
        self._messages: deque[Message] = deque()
        self._news: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, message: Message) -> None:
        """Add a message; from now on no text of the answer that it ends is taken."""
        self.idle.clear()
        match message:
            case AskMessage():
                pass
            case StopMessage() | RedirectMessage():
                if message.answer is not None:
                    message.answer.live = False
            case _:
                message.watch.rewrite.mute()
        self._messages.append(message)
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def get(self) -> Message:
        """The next message."""
        while not self._messages:
            self.idle.set()
            self._news = _future()
            await self._news
        return self._messages.popleft()

    def put_back(self, message: Message) -> None:
        """Make a message the next one again."""
        self._messages.appendleft(message)

    async def next_before(self, task: asyncio.Task[Any]) -> Message | None:
        """The next message, or ``None`` once ``task`` has ended and no message waits."""
        while not self._messages:
            if task.done():
                return None
            self._news = _future()
            await asyncio.wait({task, self._news}, return_when=asyncio.FIRST_COMPLETED)
        return self._messages.popleft()
