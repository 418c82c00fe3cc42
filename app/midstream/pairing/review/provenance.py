"""Who wrote the hunks of other programs and why, as far as lines and the time say it.

An agent is the author of a hunk if the edits that it reported have every line of it.  Otherwise
the author is unknown; the entry has the time of the notice and the agent that was at work then: a
command that an agent runs reports no lines.  What is known goes to the journal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from midstream.pairing.chat.entries import ToolUse
from midstream.pairing.journal.entries import ProvenanceEntry
from midstream.pairing.review.agent_edits import AgentEdit, Authors
from midstream.pairing.status import ConversationHeard, ExternalHunksAdded, SessionEvent

if TYPE_CHECKING:
    from midstream.edits.hunk_store import HunkStore
    from midstream.edits.hunks import Hunk
    from midstream.pairing.files.put_backs import RecentWrites
    from midstream.pairing.journal.journal import SessionJournal
    from midstream.pairing.review.agent import AgentPartner
    from midstream.pairing.review.agent_conversation import AgentConversation
    from midstream.pairing.review.external import ExternalReview

MAX_WORDS: Final = 600
"""Characters that are kept of an instruction and of what an agent said."""


class Provenances:
    """Keeps what is known of each hunk.

    Args:
        root: The folder of the session.
        hunks: Its hunks.
        known: What an earlier session has known; added to.
        review: Says whether a review is starting.
        agent: The agent of the session.
        writes: Says whose the writes are that are noticed now.
        journal: Gets what is known.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        root: Path,
        hunks: HunkStore,
        known: dict[int, ProvenanceEntry],
        review: ExternalReview,
        agent: AgentPartner,
        writes: RecentWrites,
        journal: SessionJournal,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._hunks = hunks
        self._known = known
        self._review = review
        self._agent = agent
        self._writes = writes
        self._journal = journal
        self._clock = clock
        self._authors = Authors(root)
        self._unproven: dict[int, None] = {}
        """Hunks that came while an agent worked which may still report their lines."""
        self._edits = 0

    def of(self, hunk: Hunk) -> ProvenanceEntry | None:
        """What is known of a hunk, ``None`` for a hunk of the session's model."""
        return self._known.get(hunk.id) or self._known.get(hunk.rank[0])  # it was split

    def author_of(self, hunk: Hunk) -> str:
        """The agent and its turn, ``""`` where its edits do not tell."""
        known = self.of(hunk)
        if known is None or not known.proven:
            return ""
        return f"{known.author}, turn {known.turn}" if known.turn else known.author

    def proposed(self, hunks: Iterable[Hunk], agent: str, tool: str) -> None:
        """An agent has asked whether it may write these hunks."""
        now = self._clock()
        self._keep(
            self._written(hunk, now)
            or ProvenanceEntry([hunk.id], now, author=agent, proven=True, tool=tool)
            for hunk in hunks
        )

    def hear(self, event: SessionEvent) -> None:
        """Note whose new hunks are, and what an agent says of those before."""
        if isinstance(event, ExternalHunksAdded):
            fresh = [hunk for hunk in map(self._hunks.get, event.hunk_ids) if hunk.external]
            now = self._clock()
            self._keep(self._written(hunk, now) or self._seen(hunk, now) for hunk in fresh)
        elif isinstance(event, ConversationHeard) and self._unproven:
            self._look_again()

    def _look_again(self) -> None:
        """Look again for the authors of hunks whose lines no agent had reported."""
        conversation = self._agent.conversation
        edits = 0 if conversation is None else conversation.edits
        if edits != self._edits:
            self._edits = edits
            now = self._clock()
            found = (self._written(self._hunks.get(i), now) for i in self._unproven)
            self._keep([entry for entry in found if entry is not None])
        if not self._agent.busy:
            self._unproven.clear()

    def _written(self, hunk: Hunk, now: float) -> ProvenanceEntry | None:
        """The entry of a hunk that edits of the agent explain; it may have been seen before."""
        conversation = self._agent.conversation
        edit = None if conversation is None else self._authors.edit_of(hunk, conversation)
        if conversation is None or edit is None:
            return None
        known = self._known.get(hunk.id)
        return _entry(hunk, now if known is None else known.seen, conversation, edit)

    def _seen(self, hunk: Hunk, now: float) -> ProvenanceEntry:
        """The entry of a hunk that was found on disk."""
        begins = self._review.begins
        author = "" if begins else self._writes.author
        entry = ProvenanceEntry([hunk.id], now, earlier=begins, author=author)
        conversation = self._agent.conversation
        if author and conversation is not None and author == conversation.title:
            self._unproven[hunk.id] = None
            entry.turn, entry.asked, entry.tool = _at_work(conversation)
        return entry

    def _keep(self, entries: Iterable[ProvenanceEntry]) -> None:
        """Keep entries, those of the same write as one."""
        together: dict[tuple[object, ...], ProvenanceEntry] = {}
        for entry in entries:
            who = entry.author, entry.proven, entry.turn
            alike = (entry.seen, entry.earlier, *who, entry.said, entry.tool)
            if (first := together.setdefault(alike, entry)) is not entry:
                first.ids += entry.ids
        for entry in together.values():
            self._known |= dict.fromkeys(entry.ids, entry)
            self._journal.add(entry)
            if entry.proven:
                for hunk_id in entry.ids:
                    self._unproven.pop(hunk_id, None)


def _entry(
    hunk: Hunk, seen: float, conversation: AgentConversation, edit: AgentEdit
) -> ProvenanceEntry:
    return ProvenanceEntry(
        [hunk.id],
        seen,
        author=conversation.title,
        proven=True,
        turn=edit.turn,
        asked=_short(edit.asked),
        said=_short(edit.said),
        tool=_short(_named(edit.use)),
    )


def _at_work(conversation: AgentConversation) -> tuple[int, str, str]:
    """The number of the last turn, what was asked in it, and the last command that ran in it."""
    turn, asked, command = 0, "", ""
    for entry in conversation.entries:
        if isinstance(entry, ToolUse):
            command = _named(entry) if entry.call.kind == "execute" else command
        elif entry.role == "user":
            turn, asked, command = turn + 1, entry.text, ""
    return turn, _short(asked), _short(command)


def _named(use: ToolUse) -> str:
    return use.call.title or use.call.kind


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= MAX_WORDS else f"{text[:MAX_WORDS].rstrip()}…"
