"""The runner of a session: the one coroutine in which every turn starts, runs and ends.

Instructions, stops, redirects and guard findings are messages in its inbox.  A message that ends
the running answer takes effect as soon as it is posted: the answer is no longer live, so no further
text is taken.  The runner then cuts the answer, tells the server, and begins what follows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from midstream.errors import UnavailableError, UsageError, UserError
from midstream.pairing.guard import CORRECTIONS, Guard, GuardStop
from midstream.pairing.status import SessionState, Turn, TurnStatus
from midstream.pairing.turn.answer import Answer, Rewrite
from midstream.pairing.turn.factory import AnswerFactory
from midstream.pairing.turn.finished import Reviewer
from midstream.pairing.turn.log import TurnLog
from midstream.pairing.turn.responses import AnswerEnd

if TYPE_CHECKING:
    from midstream.pairing.request.question import Question
    from midstream.pairing.turn.modes import FollowUp
    from midstream.pairing.turn.writer import AnswerWriter

_T = TypeVar("_T")


class TurnRunningError(UserError):
    """A turn is running already."""

    code = "turn-running"

    def __init__(self) -> None:
        super().__init__("The model is still at work", "redirect it, queue this, or stop it first")


class NoTurnError(UserError):
    """No turn is running."""

    code = "no-turn"

    def __init__(self) -> None:
        super().__init__("The model is not writing", "send this as a new instruction")


# The inbox


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


# The runner


class TurnRunner:
    """Runs the turns of a session, one at a time."""

    def __init__(
        self,
        log: TurnLog,
        answers: AnswerFactory,
        writer: AnswerWriter,
        reviewer: Reviewer,
        guard: Guard,
    ) -> None:
        self._inbox = Inbox()
        self._log = log
        self._answers = answers
        self._writer = writer
        self._reviewer = reviewer
        self._guard = guard
        self._asks = 0
        self._running: asyncio.Task[None] | None = None
        self._children: set[asyncio.Task[Any]] = set()

    # Called from outside

    @property
    def preparing(self) -> bool:
        """Whether an instruction waits or is being prepared."""
        return self._asks > 0

    @property
    def streaming(self) -> bool:
        """Whether an answer is being written."""
        return self._log.current is not None and self._log.current.turn.running

    @property
    def busy(self) -> bool:
        """Whether an instruction is being prepared or answered."""
        return self.preparing or self.streaming

    @property
    def writing(self) -> tuple[str, int] | None:
        """File and base line at which the model writes now, ``None`` while it does not."""
        answer = self._log.current
        if answer is None or not answer.live or not answer.rewrites:
            return None
        last = answer.rewrites[-1]
        return last.proposal.path, last.segment.unread.start

    async def instruct(self, question: Question) -> Turn:
        """Ask for a change; returns when the request is on its way.

        Raises:
            UserError: See ``Turns.instruct``.
        """
        question = replace(question, text=question.text.strip())
        if not question.text:
            raise UsageError("The instruction is empty", "say what should change")
        if self.busy:
            raise TurnRunningError
        ask = AskMessage(question)
        self._asks += 1
        self._put(ask)
        return await ask.begun

    async def stop(self) -> None:
        """End the running turn at once; returns when the server has stopped."""
        answer = self._log.current
        if answer is not None and answer.turn.running:
            self._log.cut(answer, TurnStatus.STOPPED)
        elif not self.preparing:
            return
        stop = StopMessage(answer)
        self._put(stop)
        await stop.done

    async def redirect(self, text: str) -> Turn:
        """Stop, keep what was written, and continue with another instruction.

        Raises:
            UserError: No turn is running, it asks for no edit, or the model cannot be reached any
                more.
        """
        text = text.strip()
        if not text:
            raise UsageError("The instruction is empty", "say what the model should do instead")
        answer = self._log.current
        if answer is None or not answer.turn.running:
            raise NoTurnError
        self._answers.check(text)
        redirect = RedirectMessage(answer, text)
        self._put(redirect)
        return await redirect.begun

    def report(self, stop: GuardStop) -> None:
        """Take what the guard found; from now on no text of that answer is taken."""
        self._inbox.put(stop)

    async def finished(self) -> None:
        """Wait until nothing is prepared, written or read, and the guard has seen all."""
        while True:
            await self._inbox.idle.wait()
            count = len(self._log.turns)
            await self._guard.caught_up()
            # A correction that began meanwhile may have ended by now, too.
            if self._inbox.idle.is_set() and len(self._log.turns) == count:
                return

    async def close(self) -> None:
        """Stop, and end the coroutine."""
        await self.stop()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    def _put(self, message: AskMessage | StopMessage | RedirectMessage) -> None:
        self._inbox.put(message)
        if self._running is None:
            self._running = asyncio.create_task(self.run())

    # The coroutine

    async def run(self) -> None:
        """Handle messages until cancelled."""
        answer: Answer | None = None
        while True:
            try:
                if answer is None:
                    answer = await self._begin(await self._inbox.get())
                else:
                    answer = await self._write(answer)
            except Exception as error:
                answer, failed = None, answer or self._log.current
                if failed is not None:
                    self._log.broke(failed, error)
                    self._conclude(failed, AnswerEnd())

    async def _begin(self, message: Message) -> Answer | None:
        """Handle a message while nothing is written; the answer that it begins, if any."""
        match message:
            case AskMessage():
                return await self._ask(message)
            case GuardStop():
                return await self._hold(message)
            case _:
                self._refuse(message)
        return None

    def _refuse(self, message: AskMessage | StopMessage | RedirectMessage) -> None:
        """Answer a message that has no effect now."""
        match message:
            case AskMessage():
                self._asks -= 1
                _reject(message.begun, TurnRunningError())
            case RedirectMessage():
                _reject(message.begun, NoTurnError())
            case StopMessage():
                message.acknowledge()

    async def _ask(self, ask: AskMessage) -> Answer | None:
        """Prepare an instruction; its answer, ``None`` if it could not be begun."""
        preparing = self._child(self._answers.ask(ask.question, lambda: ask.stopped))
        # The caller may be cancelled while it waits.
        ask.begun.add_done_callback(lambda begun: begun.cancelled() and preparing.cancel())
        try:
            while (message := await self._inbox.next_before(preparing)) is not None:
                if isinstance(message, GuardStop):
                    await self._hold(message, decline=True)
                    continue
                if isinstance(message, StopMessage):
                    ask.stopped = True
                self._refuse(message)
        except BaseException as error:
            # Preparing goes on: a server that is just being started ends when its link is closed.
            closed = UnavailableError("This session is closed.")
            _reject(ask.begun, error if isinstance(error, Exception) else closed)
            raise
        finally:
            self._asks -= 1
        try:
            answer = preparing.result()
        except (Exception, asyncio.CancelledError) as error:
            _reject(ask.begun, error)
            return None
        answer.begun = ask.begun
        if ask.stopped:  # It came too late to keep the turn from beginning.
            self._log.cut(answer, TurnStatus.STOPPED)
            self._conclude(answer, AnswerEnd())
            return None
        return answer

    async def _write(self, answer: Answer) -> Answer | None:
        """Write and review an answer; its follow-up, or the next answer."""
        writing = self._child(self._writer.write(answer))
        while (message := await self._inbox.next_before(writing)) is not None:
            match message:
                case StopMessage():
                    try:
                        return await self._end(answer, writing)
                    finally:
                        message.acknowledge()
                case RedirectMessage() if answer.turn.running:
                    return await self._redirect(answer, message)
                case GuardStop() if _answer(message) is answer and answer.turn.running:
                    return await self._hold(message, writing)
                case GuardStop() if writing.done():
                    self._inbox.put_back(message)
                    break
                case GuardStop():
                    await self._hold(message, decline=True)
                case _:
                    self._refuse(message)
        return await self._review(answer, await writing)

    async def _review(self, answer: Answer, end: AnswerEnd) -> Answer | None:
        """Review an answer that has ended; its follow-up, or the next answer."""
        if answer.turn.running:  # The response has broken off without a word.
            self._log.cut(answer, TurnStatus.STOPPED)
        if answer.turn.status is not TurnStatus.DONE or not end.review:
            self._conclude(answer, end)
            return None
        reviewing = self._child(self._reviewer.review(answer))
        if (new := await self._until(reviewing, answer)) is not None:
            return new
        try:
            follow_up = reviewing.result()
            if follow_up is not None and not self.preparing:
                return await self._follow(answer, follow_up)
        except UserError as error:
            self._log.status.fail(str(error))
        except Exception as error:
            self._log.broke(answer, error)
        self._conclude(answer, end)
        return None

    async def _redirect(self, answer: Answer, redirect: RedirectMessage) -> Answer | None:
        kept = "" if answer.region is None else answer.region.pause(answer.reply)
        follow_up = answer.mode.redirect(
            answer.exchange, redirect.text, kept, self._log.hunks, self._answers.builder
        )
        if follow_up.continues_rewrite:
            answer.close(TurnStatus.STOPPED)
        else:
            self._log.cut(answer, TurnStatus.STOPPED)
        try:
            new = await self._follow(answer, follow_up)
        except Exception as error:
            _reject(redirect.begun, error)
            raise
        new.begun = redirect.begun
        return new

    async def _hold(
        self,
        stop: GuardStop,
        writing: asyncio.Task[AnswerEnd] | None = None,
        *,
        decline: bool = False,
    ) -> Answer | None:
        """Hold back what the guard found; the answer that corrects it, or the next answer.

        Args:
            stop: What was found.
            writing: Writes the answer, if that runs.
            decline: Leave it to the user at once.
        """
        answer = _answer(stop)
        if answer.turn.running:  # A finding has to be in a hunk to be held back.
            self._log.cut(answer, TurnStatus.STOPPED, settle_tail=True)
        held = self._guard.hold(stop)
        may_follow = answer is self._log.current and not self.preparing and not decline
        follow_up = answer.mode.rewrite(answer.exchange, held) if may_follow else None
        attempt = None if follow_up is None else self._guard.next_attempt(held)
        advice = held.request.correction.advice
        if follow_up is not None and attempt is not None:
            notice = (
                f"Stopped at {held.where}. The model writes it again "
                f"({attempt} of {CORRECTIONS}): {advice}"
            )
            return await self._follow(answer, replace(follow_up, notice=notice))
        self._guard.give_up(held)
        new = None if writing is None else await self._end(answer, writing)
        then = "it is held back" if held.held_back else "look at it before you accept"
        self._log.status.fail(f"Stopped at {held.where}; {then}. {advice}")
        return new

    async def _follow(self, old: Answer, follow_up: FollowUp) -> Answer:
        """Begin the follow-up to an answer that was cut or has ended."""
        new = await self._answers.follow(old, follow_up)
        old.resolve()
        if follow_up.notice:
            self._log.status.warn(follow_up.notice)
        if old.stream is not None:
            await old.stream.interrupt(keep=True)
        return new

    async def _end(self, answer: Answer, writing: asyncio.Task[AnswerEnd]) -> Answer | None:
        """Tell the server about an answer that was cut, and wait for its last word.

        Returns:
            The answer that came after it meanwhile, if any.
        """
        self._log.status.enter(SessionState.STOPPING)
        if answer.stream is None:
            self._conclude(answer, AnswerEnd())
            return None
        await answer.stream.interrupt()
        if (new := await self._until(writing, answer)) is not None:
            return new
        self._conclude(answer, writing.result())
        return None

    async def _until(self, task: asyncio.Task[Any], answer: Answer) -> Answer | None:
        """Wait for a task at the end of an answer; a new answer abandons it.

        Returns:
            The new answer, if one begins before ``task`` ends.
        """
        while (message := await self._inbox.next_before(task)) is not None:
            if (new := await self._begin(message)) is not None:
                task.add_done_callback(lambda _: self._log.report(answer))
                return new
        return None

    def _conclude(self, answer: Answer, end: AnswerEnd) -> None:
        """Nothing more comes of an answer."""
        self._log.conclude(answer, offline=end.offline)
        if end.refused is not None and answer.begun is None:
            self._log.status.fail(str(end.refused))
        answer.resolve(end.refused)

    def _child(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        task = asyncio.create_task(work)
        self._children.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._children.discard(task)
        if not task.cancelled():
            task.exception()  # Retrieved, in case the task was left behind.


def _answer(stop: GuardStop) -> Answer:
    """The answer that wrote what the guard found."""
    rewrite = stop.watch.rewrite
    assert isinstance(rewrite, Rewrite)
    return rewrite.answer


def _reject(begun: asyncio.Future[Turn], error: BaseException) -> None:
    if not begun.done():
        begun.set_exception(error)
