"""Reading ahead: while an instruction is typed, the server prefills what would be asked.

Most of the request is known before Enter, so the first token comes sooner.  Nothing begins here,
and nothing is reported; errors in an instruction are reported when it is sent.  Only a
server of our own on this machine is asked: others charge for what they read, and unsent text stays
here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.errors import UserError
from midstream.pairing.files import OpenFiles
from midstream.pairing.request.builder import Conversation, Question, RequestBuilder
from midstream.pairing.server import ServerLink
from midstream.pairing.turn.modes import RegionMode

if TYPE_CHECKING:
    from midstream.pairing.turn.answer import Answer
    from midstream.pairing.turn.effort import Effort
    from midstream.pairing.turn.log import TurnLog


class ReadAhead:
    """Has conversations prefilled that the server does not hold yet."""

    def __init__(
        self,
        builder: RequestBuilder,
        files: OpenFiles,
        server: ServerLink,
        log: TurnLog,
        effort: Effort,
    ) -> None:
        self._builder = builder
        self._files = files
        self._server = server
        self._log = log
        self._effort = effort
        self._last: Conversation | None = None

    async def read(self, question: Question) -> None:
        """Prefill what would be sent if the user pressed Enter now."""
        client = self._server.reader
        if client is None or not question.text.strip() or self._effort.candidates:
            return
        answer = self._log.current
        # A background turn gives way to an instruction and is not redirected.
        redirects = answer is not None and answer.live and not answer.turn.background
        try:
            if answer is not None and redirects:
                conversation = self._redirect(answer, question.text.strip())
            else:
                conversation = await self._request(question)
            if conversation is None or conversation == self._last:
                return
            self._last = conversation
            await client.read_ahead(
                messages=conversation.messages, instructions=conversation.system
            )
        except UserError:
            self._last = None  # The error is reported on Enter.

    async def _request(self, question: Question) -> Conversation:
        last = self._log.turns[-1].path if self._log.turns else None
        path = await self._builder.find_path(question, last)
        async with self._files.lock:
            scope = await self._builder.locate(path, question)
            context = await self._builder.context(scope, question)
            with self._builder.rehearsal():
                self._builder.start_conversation()
                return self._builder.request(scope, question, context).conversation

    def _redirect(self, answer: Answer, said: str) -> Conversation | None:
        """A redirect after the lines that are complete by now.

        ``None`` for a chat model: it has read all but the new words, and would be held up.
        """
        mode, exchange = answer.mode, answer.exchange
        if not (isinstance(mode, RegionMode) and mode.is_open) or self._server.model_info.is_chat:
            return None
        with self._builder.rehearsal():
            follow_up = mode.redirect(exchange, said, mode.written, self._log.hunks, self._builder)
            return mode.conversation(exchange, follow_up, self._builder)
