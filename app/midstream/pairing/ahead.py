"""Reading ahead: while an instruction is typed, the model server reads what would be asked.

A model reads before it writes: the lines, and what goes along.  Most of that is known before Enter,
so the first token comes sooner.  Nothing begins here, nothing is told and nothing is shown; what is
wrong with an instruction is said when it is sent.  Only a server of our own on this machine is
asked: others charge for what they read, and what is not sent yet is nobody else's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.errors import UserError
from midstream.pairing.asking import Asker, Question
from midstream.pairing.desk import Desk
from midstream.pairing.effort import Effort
from midstream.pairing.link import Link

if TYPE_CHECKING:
    from midstream.pairing.answer import Answer
    from midstream.pairing.generation import Conversation


class ReadingAhead:
    """Has conversations read that have not been held yet."""

    def __init__(self, asker: Asker, desk: Desk, link: Link, effort: Effort) -> None:
        self._asker = asker
        self._desk = desk
        self._link = link
        self._effort = effort
        self._last: Conversation | None = None

    async def read(self, question: Question, last: str | None, live: Answer | None) -> None:
        """Have read what would be sent if the person pressed Enter now.

        Args:
            question: What is typed, and where.
            last: The file of the turn before.
            live: The answer that is being written, which it would redirect.
        """
        client = self._link.reader
        if client is None or not question.text.strip() or self._effort.chooses(self._link):
            return
        try:
            if live is None:
                conversation = await self._asked(question, last)
            else:
                conversation = self._redirected(live, question.text)
            if conversation is None or conversation == self._last:
                return
            self._last = conversation
            await client.read_ahead(
                messages=conversation.messages, instructions=conversation.system
            )
        except UserError:
            self._last = None  # Whoever presses Enter is told.

    async def _asked(self, question: Question, last: str | None) -> Conversation:
        path = await self._asker.find_path(question, last)
        async with self._desk.lock:
            place = await self._asker.locate(path, question, None)
            context = await self._asker.context(place, question)
            with self._asker.rehearsed():
                self._asker.begin()
                if not place.by_region:
                    return self._asker.block_request(place, question, context).conversation
                start, stop = place.proposal.cover(place.target.start, place.target.stop)
                request = self._asker.region_request(place, question, context, start, stop)
        return request.conversation

    def _redirected(self, live: Answer, said: str) -> Conversation | None:
        """A redirect behind the lines that are complete by now.

        ``None`` for a chat model: it has read all but the new words, and would be held up.
        """
        region = live.region
        if region is None or region is not live.proposal.current or self._link.model_info.is_chat:
            return None
        if (again := self._asker.renamed_again(live, said)) is not None:
            return live.renamed(again)
        with self._asker.rehearsed():
            said = self._asker.with_rejections(said.strip(), live.proposal.path)
        return live.followed(live.kept, said)
