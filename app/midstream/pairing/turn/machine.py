"""The parts that carry out turns and word requests, put together when first needed.

It imports a third of the program: request builder, edit modes, parsers and checks of answers.  A
session that only shows a review has no use for them, and must not wait until they are loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from midstream.errors import UserError
from midstream.pairing.request.builder import Conversation, RequestBuilder
from midstream.pairing.turn.factory import AnswerFactory
from midstream.pairing.turn.finished import Reviewer
from midstream.pairing.turn.reply_files import DryRunFiles
from midstream.pairing.turn.responses import ResponseReader
from midstream.pairing.turn.runner import TurnRunner
from midstream.pairing.turn.writer import AnswerWriter

if TYPE_CHECKING:
    from midstream.pairing.chat.tool_loop import ToolLoop
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.guard import Guard
    from midstream.pairing.models.server import ServerLink
    from midstream.pairing.request.effort import Effort
    from midstream.pairing.request.question import Question
    from midstream.pairing.request.sent import SentLog
    from midstream.pairing.turn.answer import Answer
    from midstream.pairing.turn.log import TurnLog
    from midstream.settings import Settings


class TurnMachine:
    """The parts that a turn goes through.

    Attributes:
        builder: Finds places and words requests.
        answers: Begins turns and makes their answers.
        runner: The coroutine in which turns run.
        ahead: Has requests read before they are sent.
    """

    def __init__(
        self,
        settings: Settings,
        files: OpenFiles,
        server: ServerLink,
        log: TurnLog,
        effort: Effort,
        guard: Guard,
        sent: SentLog,
        *,
        allowed: set[str],
        failure: Callable[[], str],
        conversation: Callable[[], str],
        tool_loop: ToolLoop | None,
    ) -> None:
        self.builder = RequestBuilder(
            files,
            server,
            allowed=allowed,
            failure=failure,
            conversation=conversation,
            related_code=settings.related_code,
        )
        self.answers = AnswerFactory(files, server, self.builder, log, guard)
        responses = ResponseReader(server, log, guard, sent, tool_loop)
        self._writer = AnswerWriter(effort, responses, log, DryRunFiles(files))
        reviewer = Reviewer(files, server, log, effort)
        self.runner = TurnRunner(log, self.answers, self._writer, reviewer, guard)
        self.ahead = ReadAhead(self.answers, server, log, effort)
        self.apply(settings)

    def apply(self, settings: Settings) -> None:
        """Take over settings from the next instruction on."""
        self._writer.test_command = settings.check_command
        self.builder.project_instructions = settings.project_instructions

    async def close(self) -> None:
        """End the coroutine that runs turns, and searches."""
        await self.runner.close()
        if self.builder.related is not None:
            await self.builder.related.close()


class ReadAhead:
    """Has the server prefill the likely request, while an instruction is typed.

    Most of the request is known before Enter, so the first token comes sooner.  Nothing begins
    here, and nothing is reported; errors in an instruction are reported when it is sent.  Only a
    server of our own on this machine is asked: others charge for what they read, and unsent text
    stays here.
    """

    def __init__(
        self,
        answers: AnswerFactory,
        server: ServerLink,
        log: TurnLog,
        effort: Effort,
    ) -> None:
        self._answers = answers
        self._server = server
        self._log = log
        self._effort = effort
        self._last: Conversation | None = None

    async def read(self, question: Question) -> None:
        """Prefill what would be sent if the user pressed Enter now.

        Without words that is the region, where the model reads it before the instruction.
        """
        client = self._server.reader
        if client is None or self._effort.candidates:
            return
        answer = self._log.current
        # A background turn gives way to an instruction and is not redirected.
        redirects = answer is not None and answer.live and not answer.turn.background
        region_only = self._server.model_info.reads_region_first and not redirects
        if not question.text.strip() and not region_only:
            return
        try:
            if answer is not None and redirects:
                conversation = self._redirect(answer, question.text.strip())
            else:
                conversation = (await self._answers.rehearse(question))[0].conversation
            if conversation is None or conversation == self._last:
                return
            self._last = conversation
            await client.read_ahead(
                messages=conversation.messages, instructions=conversation.system
            )
        except UserError:
            self._last = None  # The error is reported on Enter.

    def _redirect(self, answer: Answer, said: str) -> Conversation | None:
        """A redirect after the lines that are complete by now.

        ``None`` for a chat model: it has read all but the new words, and would be delayed.
        """
        mode, exchange = answer.region, answer.exchange
        if mode is None or not mode.is_open or self._server.model_info.is_chat:
            return None
        builder = self._answers.builder
        with builder.rehearsal():
            follow_up = mode.redirect(exchange, said, mode.written, self._log.hunks, builder)
            return mode.conversation(exchange, follow_up, builder)
