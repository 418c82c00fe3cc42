"""Sends the request of an answer, and streams its response into proposals.

Text counts while the answer is live, which is looked at between two pieces.  After that the
response is read to its end for its token counts only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from midstream.counting import counted
from midstream.edits.events import FileOp, FileSectionClosed, FileSectionOpened
from midstream.errors import UnavailableError, UserError
from midstream.pairing.chat.tool_loop import TOOL_NAMES, ToolLoop
from midstream.pairing.chat.tools import DECLARATIONS, TOOL_INSTRUCTIONS
from midstream.pairing.request.context import CHARACTERS_PER_TOKEN, estimate, limit_of
from midstream.pairing.request.sent import SentKind, SentLog
from midstream.pairing.status import FollowUpKind, SessionState, Turn, TurnStatus
from midstream.responses.conversation import Entry, ToolCall
from midstream.responses.endings import FILTER, LENGTH

if TYPE_CHECKING:
    from midstream.pairing.guard import Guard
    from midstream.pairing.models.server import ServerLink
    from midstream.pairing.turn.answer import Answer
    from midstream.pairing.turn.log import TurnLog
    from midstream.responses.events import Failed, Finished
    from midstream.responses.stream import Stream

AT_ONCE: Final = 2_048
"""Characters that are taken in one go; a backlog must not hold up keys."""
WAITING_S: Final = 2.0
"""Seconds after which a request without an answer is mentioned."""
_LOST: Final = "\ufffd"
"""Replaces bytes that are no characters."""
_EARLY_ENDS: Final = {
    LENGTH: "the answer reached its length limit",
    "repetition": "it kept repeating itself",
    FILTER: "the endpoint's content filter stopped it",
}
"""The wire's reasons for an early end, in words."""


@dataclass(frozen=True, slots=True)
class AnswerEnd:
    """How the writing of an answer ended.

    Attributes:
        offline: Whether the server is lost.
        refused: Why the request could not be sent.
        review: Whether a complete answer is looked at.
    """

    offline: bool = False
    refused: UserError | None = None
    review: bool = True


class ResponseReader:
    """Sends requests and reads responses.

    Args:
        server: The server.
        log: Hears what comes.
        guard: Looks at it.
        sent: Keeps what goes out.
        tool_loop: Carries out calls of tools that only look; ``None`` to offer none.
    """

    def __init__(
        self,
        server: ServerLink,
        log: TurnLog,
        guard: Guard,
        sent: SentLog,
        tool_loop: ToolLoop | None = None,
    ) -> None:
        self._sent = sent
        self._tool_loop = tool_loop
        self._server = server
        self._log = log
        self._guard = guard

    async def stream(self, answer: Answer, effort: str | None) -> AnswerEnd:
        """Send the request of an answer and put its text where it belongs as it comes.

        Args:
            answer: Its request is sent.
            effort: ``reasoning.effort`` of the request.
        """
        waiting = asyncio.get_running_loop().call_later(WAITING_S, self._say_waiting, answer)
        try:
            if self._tool_loop is None:
                return AnswerEnd(await self._ask(answer, effort, waiting, offered=False))
            return AnswerEnd(await self._converse(answer, effort, waiting, self._tool_loop))
        except UserError as error:
            if answer.turn.running:
                self._log.cut(answer, TurnStatus.FAILED, str(error))
            return AnswerEnd(isinstance(error, UnavailableError), error)
        finally:
            waiting.cancel()

    async def _ask(
        self, answer: Answer, effort: str | None, waiting: asyncio.TimerHandle, *, offered: bool
    ) -> bool:
        """Send the request of an answer and read its response; whether the server was lost."""
        stream = await self._send(answer, effort=effort, offered=offered)
        if stream is None:
            return False
        answer.resolve()
        return await self._read(answer, stream, waiting)

    async def _converse(
        self,
        answer: Answer,
        effort: str | None,
        waiting: asyncio.TimerHandle,
        tool_loop: ToolLoop,
    ) -> bool:
        """The same for a model that may look at files first."""
        await self._server.ready()
        if not answer.history:
            tool_loop.begin(self._room_beside(answer))
        offline = False

        async def ask(messages: list[Entry]) -> Sequence[Entry]:
            nonlocal offline
            if len(messages) > len(answer.conversation.messages):
                answer.carry(messages)
                if answer.text and not answer.text.endswith("\n"):
                    await self._show(answer, "\n")
                    answer.carry(messages)
            # A request that the session makes by itself asks the user nothing.
            offered = tool_loop.offered and not answer.turn.background
            offline = await self._ask(answer, effort, waiting, offered=offered)
            return answer.calls

        answer.on_end = tool_loop.stop
        await tool_loop.converse(
            answer.conversation.messages,
            lambda: answer.live,
            ask,
            asks_user=not answer.turn.background,
        )
        return offline

    def _room_beside(self, answer: Answer) -> int:
        """Characters that there is room for beside the request of an answer."""
        said = "".join(each[1] for each in answer.conversation.messages if isinstance(each, tuple))
        room = limit_of(self._server.model_info.context_length) - estimate(said)
        return int(room * CHARACTERS_PER_TOKEN)

    def _say_waiting(self, answer: Answer) -> None:
        if not answer.live or answer.turn.background:
            return
        stream = answer.stream
        reason = "it may be loading the model or reading the prompt"
        if (reading := self._log.status.meter.reading) is not None:
            reason = f"it has read {reading}"
        elif stream is not None and stream.reasons:
            reason = "it is reasoning"
        elif stream is not None and (ahead := stream.queue_ahead):
            reason = f"{counted(ahead, 'request')} before it"
        self._log.status.inform(
            f"Still waiting for {self._server.place}: no text after {WAITING_S:.0f} s ({reason}).",
            passing=True,
        )

    async def _send(
        self,
        answer: Answer,
        effort: str | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        *,
        offered: bool = False,
    ) -> Stream | None:
        client = await self._server.ready()
        self._log.status.disclose(self._server.disclosure())
        if not answer.live:
            return None
        answer.calls = ()
        stream = await client.create(
            messages=answer.conversation.messages,
            instructions=answer.conversation.system,
            correction=answer.conversation.correction,
            must_change=answer.conversation.must_change,
            tools=answer.mode.tools,
            optional_tools=DECLARATIONS if offered else (),
            optional_instructions=TOOL_INSTRUCTIONS,
            silent=TOOL_NAMES if offered else (),
            effort=effort,
            temperature=temperature,
            seed=seed,
        )
        answer.stream = stream
        turn = answer.turn
        self._sent.note(
            _kind_of(turn),
            turn.instruction,
            self._server.recipient,
            stream,
            context=answer.context,
            target=answer.target,
            about=turn,
        )
        if answer.live:  # again after a tool was called
            self._log.status.enter(SessionState.WAITING)
        else:
            await stream.interrupt()
        return stream

    async def _read(self, answer: Answer, stream: Stream, waiting: asyncio.TimerHandle) -> bool:
        """Read a response to its end; whether the server was lost.

        Args:
            answer: Takes the text.
            stream: The response.
            waiting: Cancelled at the first sign of life.
        """
        from midstream.responses import events

        offline, written = False, 0
        async for event in stream:
            match event:
                case events.Started():
                    self._server.learn(event.metadata)
                    self._log.status.meter.taken()
                    if said := self._server.remark():
                        self._log.status.inform(said, passing=True)
                    if self._server.own:  # Others say that they have begun and then load a model.
                        waiting.cancel()
                case events.Progress():
                    self._log.note_progress(answer, event)
                case events.Delta():
                    waiting.cancel()
                    if answer.live:
                        self._log.arrived(answer, event)
                        await self._show(answer, event.text)
                    written += len(event.text)
                case events.Retracted():
                    if answer.live and not answer.restart():
                        self._cut(answer, "was stopped (what it wrote was a thought)")
                        await stream.interrupt()
                case events.Unheard():
                    waiting.cancel()
                    written += event.characters
                case events.Reasoned():
                    if answer.live:
                        self._log.status.enter(SessionState.THINKING)
                    if answer.live and event.endless:
                        self._cut(answer, f"was stopped ({event.endless})")
                        await stream.interrupt()
                case events.Finished():
                    self._log.count(answer, event, self._server.price)
                    if self._tool_loop is not None and _is_to_go_on(answer, event):
                        # Its calls are answered first; what it wrote is kept as text until then.
                        answer.calls = event.output
                        continue
                    answer.output = event.output
                    if answer.live and not self._ended_early(answer, event):
                        await self.complete(answer)
                case events.Failed():
                    offline = event.offline
                    if offline and answer is self._log.current:
                        self._log.status.enter(SessionState.OFFLINE)
                    if answer.live:
                        self._failed(answer, event)
            if answer.live and answer.rambles(written):
                await self._end_ramble(answer)
                await stream.interrupt()
        return offline

    async def read_text(self, answer: Answer, *, sample: int, temperature: float) -> str | None:
        """One response to the request of an answer, out of sight.

        Args:
            answer: Its request is sent.
            sample: 0 for the greedy response, else the seed of a sampled one.
            temperature: Of a sampled one.

        Returns:
            Its text; ``None`` if it was cut off.

        Raises:
            UserError: The server cannot be reached, refuses, or fails.
        """
        from midstream.responses import events

        drawn = temperature if sample else None
        stream = await self._send(answer, temperature=drawn, seed=sample or None)
        if stream is None:
            return None
        text: list[str] = []
        async for event in stream:
            match event:
                case events.Started():
                    self._server.learn(event.metadata)
                    self._log.status.meter.taken()
                case events.Progress():
                    self._log.note_progress(answer, event)
                case events.Retracted():
                    text.clear()
                case events.Unheard():
                    pass  # No tools are offered here.
                case events.Reasoned():
                    if event.endless:
                        await stream.interrupt()
                case events.Delta():
                    text.append(event.text)
                    self._log.arrived(answer, event)
                    if answer.rambles(sum(map(len, text))):
                        await stream.interrupt()
                case events.Finished():
                    self._log.count(answer, event, self._server.price)
                    if event.status != "completed":
                        return None
                case events.Failed():
                    if answer.live:
                        raise UserError(event.message)
                    return None
        return "".join(text)

    async def show_text(self, answer: Answer, text: str) -> None:
        """Put a whole text where it belongs, line by line, and complete the answer with it."""
        for line in text.splitlines(keepends=True):
            if not answer.live:
                return
            await self._show(answer, line)
            await asyncio.sleep(0)
        if answer.live:
            await self.complete(answer)

    async def _show(self, answer: Answer, text: str) -> None:
        self._log.status.enter(SessionState.STREAMING)
        answer.add_text(text)
        for start in range(0, len(text), AT_ONCE):
            if start:
                await asyncio.sleep(0)  # Keys are answered between two pieces.
            if answer.live:
                await self._take(answer, answer.reply.steps(text[start : start + AT_ONCE]))
        if answer.live:
            self._log.shown(answer)
        self.look(answer)

    async def _take(
        self, answer: Answer, steps: Iterator[FileSectionOpened | FileSectionClosed]
    ) -> None:
        for step in steps:
            if isinstance(step, FileSectionClosed):
                await answer.files.closed(answer.reply)
            elif step.op is not FileOp.REGION:
                await answer.files.open(step.path, step.op)
            if not answer.live:
                return

    def look(self, answer: Answer) -> None:
        """Have the guard look at what came last."""
        for rewrite in answer.rewrites[-1:]:
            self._guard.look(rewrite)

    async def complete(self, answer: Answer) -> None:
        """The text of a live answer has come to its end."""
        await self._take(answer, answer.reply.last_steps())
        if not answer.live:
            return  # Stopped while a file was opened.
        if why := answer.reply.unfinished or _damage(answer):
            self._cut(answer, f"stopped early ({why})")
            return
        answer.reply.end()
        if answer.region is not None:
            answer.mode = answer.region.placed(answer.reply)
        if not answer.is_empty:
            self._log.complete(answer)
        else:
            turn = answer.turn
            missing = "edit" if answer.region is None else f"code for {turn.place} of {turn.path}"
            why = f" ({answer.reply.problems[0].message})" if answer.reply.problems else ""
            error = f"The model returned no {missing}{why}; nothing was changed."
            if said := answer.prose:
                error = f'The model returned no {missing} but said: "{said[:200]}"'
            self._log.cut(answer, TurnStatus.FAILED, error)
            self._log.status.fail(error)

    def _ended_early(self, answer: Answer, finished: Finished) -> bool:
        """Cut an answer that the server ended early; whether it did."""
        if finished.status == "completed":
            return False
        reason = _EARLY_ENDS.get(finished.reason or "", finished.reason or "no reason given")
        reasons = answer.stream is not None and answer.stream.reasons
        if finished.reason == LENGTH and reasons and not answer.text:
            reason = "its reasoning used up all of the tokens that it may write"
        self._cut(answer, f"stopped early ({reason})")
        return True

    async def _end_ramble(self, answer: Answer) -> None:
        region = answer.region
        if region is not None and region.is_written:  # Text after the region is prose.
            await self.complete(answer)
        else:
            self._cut(answer, "was stopped (it wrote far more than this change can need)")

    def _cut(self, answer: Answer, how: str) -> None:
        changes = counted(len(answer.hunk_ids), "change")
        came = f"after {changes}" if answer.hunk_ids else "before any change"
        rest = "everything else" if answer.region is None else f"the rest of {answer.turn.place}"
        error = f"The model {how} {came}; {rest} stays as it was."
        self._log.cut(answer, TurnStatus.FAILED, error)
        self._flag(answer)
        self._log.status.warn(error)

    @staticmethod
    def _flag(answer: Answer) -> None:
        """Nothing of an answer that was cut is written without a person who looks at it."""
        answer.turn.unsure = answer.turn.error
        answer.turn.doubted = tuple(answer.hunk_ids)

    def _failed(self, answer: Answer, failed: Failed) -> None:
        turn, status = answer.turn, self._log.status
        if failed.offline:
            turn.again = "connects again" if self._server.server is None else "starts it again"
        self._log.cut(answer, TurnStatus.FAILED, failed.message)
        self._flag(answer)
        if turn.again:
            status.fail(
                f"{failed.message.rstrip('.')}; what has arrived can still be decided, and the "
                f"next instruction {turn.again}."
            )
        else:
            status.fail(failed.message)


def _damage(answer: Answer) -> str:
    """What was lost of an answer on its way, in words, or ``""``."""
    if _LOST not in answer.text:
        return ""
    for rewrite in answer.rewrites:
        before = any(_LOST in line for line in rewrite.proposal.base.lines)
        if _LOST in rewrite.segment.new_text and not before:
            return "some of its characters were damaged on the way"
    return ""


def _kind_of(turn: Turn) -> SentKind:
    if turn.follows in (FollowUpKind.REDIRECT, FollowUpKind.RENAME):
        return SentKind.REDIRECT
    if turn.follows is FollowUpKind.UNCHANGED:
        return SentKind.AGAIN
    if turn.follows is not None:
        return SentKind.CORRECTION
    return SentKind.SUGGESTION if turn.implied else SentKind.INSTRUCTION


def _is_to_go_on(answer: Answer, finished: Finished) -> bool:
    """Whether a response has ended with calls that wait for answers, and brings no edit by one.

    A call of an unknown tool may have been meant as an edit: its text is then taken as one.
    """
    calls = [entry for entry in finished.output if isinstance(entry, ToolCall)]
    if not calls or finished.status != "completed":
        return False
    if all(call.name in TOOL_NAMES for call in calls):
        return True
    own = {tool["name"] for tool in answer.mode.tools}
    return answer.is_empty and not any(call.name in own for call in calls)
