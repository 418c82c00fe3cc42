"""Titles for the groups of a walk, in a model's words and only when the user asks for them.

They stand beside what was computed; nothing is sorted, decided or hidden by them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from midstream.errors import UserError
from midstream.pairing.journal.entries import TitlesEntry
from midstream.pairing.request.context import hunk_lines
from midstream.pairing.request.prompts import TITLE_INSTRUCTIONS
from midstream.pairing.request.sent import SentKind, SentLog

if TYPE_CHECKING:
    from midstream.edits.groups import HunkGroup
    from midstream.edits.hunks import Hunk
    from midstream.pairing.journal.entries import ReadSoFar
    from midstream.pairing.journal.journal import SessionJournal
    from midstream.pairing.models.server import ServerLink
    from midstream.pairing.status import SessionStatus
    from midstream.workspace.files import Workspace

MAX_GROUPS: Final = 40
"""Groups that one request is about."""
MAX_LENGTH: Final = 70
"""Characters of a title; a longer one is cut."""
_TITLE: Final = re.compile(r"\W{0,3}(\d{1,3})\W{1,4}(\S.*)")


class GroupTitles:
    """The titles that the session's model gave to groups, by their keys."""

    def __init__(
        self,
        workspace: Workspace,
        server: ServerLink,
        status: SessionStatus,
        journal: SessionJournal,
        sent: SentLog,
        resumed: ReadSoFar,
    ) -> None:
        self._workspace = workspace
        self._server = server
        self._status = status
        self._journal = journal
        self._sent = sent
        self._titles = dict(resumed.titles)

    def of(self, group: HunkGroup) -> str:
        """The title of a group, ``""`` if it has none."""
        return self._titles.get(group.key, "")

    async def ask(self, groups: Sequence[tuple[HunkGroup, Hunk]]) -> int:
        """Have the model title groups that have no title yet.

        Args:
            groups: Groups, each with an example.  Those whose example may not leave this machine
                unasked are left out.

        Returns:
            How many have got one.

        Raises:
            NotAnEditError: The model answers no questions.
            UserError: No model can be reached, or it has not answered.
        """
        from midstream.pairing.request.kinds import check_answers

        await self._server.ready()
        check_answers(self._server.model_info)
        named = [each for each in groups if not self.of(each[0])]
        sent = [each for each in named if not await self._is_withheld(each[1].path)][:MAX_GROUPS]
        if not sent:
            return 0
        titles = titles_in(await self._answer(_message(sent)), [group.key for group, _ in sent])
        self._titles |= titles
        self._journal.write(TitlesEntry(titles))
        self._status.touch()
        return len(titles)

    async def _is_withheld(self, path: str) -> bool:
        from midstream.guard.secrets import holds_secrets

        if self._server.local:
            return False
        return holds_secrets(path) or await asyncio.to_thread(self._workspace.ignores, path)

    async def _answer(self, message: str) -> str:
        from midstream.responses.events import Failed, Finished, Reasoned

        client = await self._server.ready_beside()
        self._status.disclose(self._server.disclosure())
        stream = await client.create(
            messages=[("user", message)], instructions=TITLE_INSTRUCTIONS, prose=True
        )
        self._sent.note(SentKind.TITLES, "title the groups", self._server.recipient, stream)
        ended = False
        try:
            async for event in stream:
                if isinstance(event, Failed):
                    raise UserError(event.message)
                if isinstance(event, Reasoned) and event.endless:
                    break
                if isinstance(event, Finished):
                    ended = True
                    self._status.meter.count(event, self._server.price, current=False)
        finally:
            if not ended:
                await stream.interrupt()
        return stream.text


def _message(groups: Sequence[tuple[HunkGroup, Hunk]]) -> str:
    parts: list[str] = []
    for number, (group, example) in enumerate(groups, 1):
        parts.append(f"{number}: {group.kind.value}, {group.why}; for example in {example.path}:")
        parts += hunk_lines(example)
    return "".join(f"{line}\n" for line in parts)


def titles_in(answer: str, keys: Sequence[str]) -> dict[str, str]:
    """The titles of an answer, by key; lines that are no title of one of them mean nothing.

    Args:
        answer: Lines such as ``2: Rename the setting``.
        keys: What the numbers, from 1, stand for.
    """
    from midstream.guard.secrets import mask

    found: dict[str, str] = {}
    for line in answer.splitlines():
        match = _TITLE.fullmatch(line.strip())
        if match is None or not 1 <= int(match[1]) <= len(keys):
            continue
        words = "".join(c for c in mask(match[2].strip(" *\"'`.")) if c.isprintable())
        if words:
            short = words if len(words) <= MAX_LENGTH else f"{words[: MAX_LENGTH - 1]}…"
            found.setdefault(keys[int(match[1]) - 1], short)
    return found
