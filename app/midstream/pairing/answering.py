"""Running answers: sending a request, reading what comes, and every way in which that ends.

One answer is live at a time.  What a person does takes effect here at once, before the server has
heard of it.  How requests come about is ``asking``'s, what is to follow an answer ``steering``'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING

from midstream.errors import UnavailableError, UserError
from midstream.pairing.answer import Answer
from midstream.pairing.board import Board
from midstream.pairing.costs import Cost
from midstream.pairing.events import TurnFinished, TurnStarted
from midstream.pairing.link import Link
from midstream.pairing.meter import Meter
from midstream.pairing.recorder import Recorder
from midstream.pairing.turns import SessionState, Turn, TurnStatus
from midstream.pairing.unsure import Sureness

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from midstream.edits.hunks import HunkStore
    from midstream.pairing.guarding import Guard
    from midstream.responses.events import Delta, Failed, Finished
    from midstream.responses.stream import Stream

_WHY = {
    "max_output_tokens": "it wrote as much as it may at a time",
    "content_filter": "the endpoint's filter ended it",
}
"""The wire's reasons for an early end, in words."""


class Answering:
    """Runs answers.

    Attributes:
        turns: All turns, oldest first.
        current: The running or last answer.
        idle: Set while nothing is prepared, live or being drained.
        follow: Called when an answer has come to its end by itself; whether another one that it
            began takes its place.
        effort: ``reasoning.effort`` of the next request, ``None`` to leave it to the server.
    """

    def __init__(
        self,
        *,
        hunks: HunkStore,
        link: Link,
        board: Board,
        meter: Meter,
        recorder: Recorder,
        guard: Guard,
        turns: list[Turn],
        on_end: Callable[[Turn], None],
        follow: Callable[[Answer], Awaitable[bool]],
    ) -> None:
        self.turns = turns
        self.current: Answer | None = None
        self.idle = asyncio.Event()
        self.idle.set()
        self.follow = follow
        self.effort: Callable[[], str | None] = lambda: None
        self._hunks = hunks
        self._link = link
        self._board = board
        self._meter = meter
        self._recorder = recorder
        self._guard = guard
        self._on_end = on_end

    @property
    def streaming(self) -> bool:
        """Whether an answer is live."""
        return self.current is not None and self.current.live

    def enter(self, answer: Answer) -> None:
        """An answer is the current one from now on."""
        self.idle.clear()
        self.current = answer
        self.turns.append(answer.turn)
        self._meter.start_turn()
        self._board.enter(SessionState.WAITING)
        self._board.emit(TurnStarted(answer.turn))

    async def send(self, answer: Answer, tools: tuple[Mapping[str, Any], ...] = ()) -> None:
        """Send the request and start reading the answer.

        Raises:
            UserError: The server cannot be reached or refuses; the turn has failed.
        """
        try:
            client = await self._link.ready()
            if not answer.live:
                self.conclude(answer)
                return
            stream = await client.create(
                messages=answer.conversation.messages,
                instructions=answer.conversation.system,
                correction=answer.conversation.correction,
                effort=self.effort(),
                tools=tools,
            )
        except UserError as error:
            if answer.live:
                self.cut(answer, TurnStatus.FAILED, str(error))
            self.conclude(answer, offline=isinstance(error, UnavailableError))
            raise
        answer.stream = stream
        answer.task = asyncio.create_task(self._read(answer, stream))
        if not answer.live:
            await stream.interrupt()

    def cut(self, answer: Answer, status: TurnStatus, error: str = "") -> None:
        """End a live answer before its text is complete."""
        answer.close(status, error)
        answer.reply.stop()
        if answer.region is not None and answer.proposal.current is answer.region:
            answer.proposal.abandon()  # No text has come for it yet.
            self._recorder.mark("abandon", answer.proposal.path)
        answer.announce(self._hunks, self._board)

    async def interrupt(self, answer: Answer, *, keep: bool) -> None:
        """Tell the server of an answer that was cut, and wait for its last word."""
        if answer.stream is None:
            self.conclude(answer)
            return
        await answer.stream.interrupt(keep=keep)
        if answer.task is not None and answer.task is not asyncio.current_task():
            await asyncio.wait({answer.task})

    def report(self, answer: Answer) -> None:
        """Tell how a turn ended."""
        answer.reported = True
        answer.turn.hunks = tuple(answer.hunk_ids)
        self._recorder.end(answer.turn)
        self._board.emit(TurnFinished(answer.turn))

    def conclude(self, answer: Answer, *, offline: bool = False) -> None:
        """The server's last word has come."""
        current = answer is self.current
        if current:
            self._meter.finish_turn()
            self._board.enter(SessionState.OFFLINE if offline else SessionState.READY)
        if not answer.reported:
            self.report(answer)
            if current:
                self._on_end(answer.turn)
        if current:
            self.idle.set()

    def work(self, answer: Answer, work: Coroutine[Any, Any, None]) -> None:
        """Let ``work`` bring the text of an answer, by ``show``, instead of its stream."""
        answer.task = asyncio.create_task(self._work(answer, work))

    async def show(self, answer: Answer, delta: Delta) -> None:
        """Put text of a live answer where it belongs."""
        self._board.enter(SessionState.STREAMING)
        await answer.receive(delta)
        answer.announce(self._hunks, self._board)
        self._look(answer)

    async def show_text(self, answer: Answer, text: str) -> None:
        """Put the whole text of a live answer there, line by line."""
        from midstream.responses.events import Delta

        for line in text.splitlines(keepends=True):
            if not answer.live:
                return
            await self.show(answer, Delta(line, 0))
            await asyncio.sleep(0)

    def taken(self) -> None:
        """The server has taken a request."""
        self._meter.taken()

    def counted(self, answer: Answer, delta: Delta) -> None:
        """Text has come."""
        self._meter.add(answer.counted(delta))

    def count(self, answer: Answer, finished: Finished) -> None:
        """A response has ended: what the server counted."""
        usage = finished.usage
        missed = usage.output_tokens - answer.stream_tokens if usage.output_tokens else 0
        answer.stream_tokens = 0
        self._meter.add_usage(
            input_tokens=usage.input_tokens, cached_tokens=usage.cached_tokens, missed=missed
        )
        if (sureness := Sureness.read(finished.metadata)) is not None:
            answer.sureness[finished.text] = sureness
        cost = Cost.of(usage, finished.metadata, self._link.price)
        self._meter.add_cost(cost, current=answer is self.current)

    # Reading

    async def _work(self, answer: Answer, work: Coroutine[Any, Any, None]) -> None:
        followed = False
        try:
            await work
            if answer.live:
                await self._complete(answer)
                followed = await self._followed(answer)
        except UserError as error:
            if answer.live:
                self.cut(answer, TurnStatus.FAILED, str(error))
                self._board.fail(str(error))
        except Exception as error:
            self._broke(answer, error)
        finally:
            self._look(answer)
            if not followed:
                self.conclude(answer)

    async def _followed(self, answer: Answer) -> bool:
        """Whether another answer takes the place of one that is complete."""
        if answer.turn.status is not TurnStatus.DONE:
            return False
        try:
            return await self.follow(answer)
        except UserError:
            return True  # The answer that was begun has failed, and has said so.

    def _broke(self, answer: Answer, error: Exception) -> None:
        if answer.live:
            self.cut(answer, TurnStatus.FAILED, f"Midstream failed: {error!r}")
        self._board.fail(
            f"Midstream itself failed in this turn ({error!r}); your files are as decided."
        )

    async def _read(self, answer: Answer, stream: Stream) -> None:
        from midstream.responses.events import Delta, Failed, Finished, Started

        offline = False
        followed = False
        try:
            async for event in stream:
                match event:
                    case Started():
                        self._link.learn(event.metadata)
                        self._meter.taken()
                    case Delta():
                        if answer.live:
                            self.counted(answer, event)
                            await self.show(answer, event)
                    case Finished():
                        self.count(answer, event)
                        answer.output = event.output
                        if answer.live and not self._early(answer, event):
                            await self._complete(answer)
                            followed = await self._followed(answer)
                    case Failed():
                        offline = event.offline
                        if answer.live:
                            self._failed(answer, event)
        except Exception as error:
            self._broke(answer, error)
        finally:
            self._look(answer)
            if not followed:
                self.conclude(answer, offline=offline)

    def _look(self, answer: Answer) -> None:
        for generation in answer.generations[-1:]:
            self._guard.look(generation)

    def _early(self, answer: Answer, finished: Finished) -> bool:
        """Cut an answer that the server ended early; whether it did."""
        if finished.status == "completed" or (answer.region is not None and answer.empty):
            return False
        reason = _WHY.get(finished.reason or "", finished.reason or "no reason given")
        rest = "everything else" if answer.region is None else f"the rest of {answer.turn.place}"
        came = "what came can be decided" if answer.hunk_ids else "no change had come"
        error = f"The model stopped early ({reason}); {came}, and {rest} stays as it was."
        self.cut(answer, TurnStatus.FAILED, error)
        self._board.warn(error)
        return True

    async def _complete(self, answer: Answer) -> None:
        path, what = answer.turn.path, answer.turn.place
        await answer.complete()
        if not answer.live:
            return  # Stopped while a file was opened.
        if answer.empty:
            if answer.turn.words and answer.prose:
                self.cut(answer, TurnStatus.DONE)
                return
            where = f"code for {what} of {path}" if answer.region is not None else "edit"
            error = f"The model returned no {where}; nothing was changed."
            if said := answer.prose:
                error = f'The model returned no {where} but said: "{said[:200]}"'
            self.cut(answer, TurnStatus.FAILED, error)
            self._board.fail(error)
            return
        if answer.region is not None and answer.proposal.current is answer.region:
            answer.proposal.finish()
            self._recorder.mark("finish", answer.proposal.path)
        answer.close(TurnStatus.DONE)
        answer.announce(self._hunks, self._board)

    def _failed(self, answer: Answer, failed: Failed) -> None:
        if failed.offline:
            answer.turn.again = "connects again" if self._link.server is None else "starts it again"
        self.cut(answer, TurnStatus.FAILED, failed.message)
        if again := answer.turn.again:
            self._board.fail(
                f"{failed.message.rstrip('.')}; what had come can be decided, and the next "
                f"instruction {again}."
            )
        else:
            self._board.fail(failed.message)
