"""One instruction without a screen: ``midstream edit``.

Polls a session as the screen does, and reports what has settled to a ``Sink``.  Arguments and
printing belong to the command line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from midstream.code.syntax import is_python
from midstream.codebase.references import MAX_LISTED, ReferencesError, listed, uses_left
from midstream.codebase.syntax_check import breaks
from midstream.counting import counted
from midstream.edits.documents import join_lines
from midstream.edits.hunks import HunkState
from midstream.errors import UnavailableError, UserError
from midstream.pairing.session import PairingSession, SessionState
from midstream.pairing.status import (
    NoticePosted,
    PromptReading,
    SessionEvent,
    Turn,
    TurnStatus,
    marked,
)
from midstream.pairing.turn.checks import look_at_each

if TYPE_CHECKING:
    from midstream.edits.documents import SourceText
    from midstream.edits.hunks import Hunk
    from midstream.pairing.models.server import ServerLink
    from midstream.pairing.request.question import Question
    from midstream.responses.endpoint import Endpoint
    from midstream.settings import Settings

TICK_S = 0.02
"""Seconds between two polls of a running session."""
READING_TICK_S = 0.2
"""The same for how much of a prompt has been read."""


class EditFailedError(UserError):
    """The model returned nothing usable, or it could not be written."""

    code = "edit-failed"


class NothingToChangeError(UserError):
    """The model returned the region unchanged."""

    code = "nothing-to-change"


@dataclass(frozen=True, slots=True)
class Job:
    """One instruction.

    Attributes:
        root: The folder.
        question: What should change.
        apply: Whether to write the result.
        unsure: Whether to write an answer that is flagged as doubtful.
        anyway: Whether to write a file that does not parse any more.
        everywhere: Whether the change is repeated where else it is needed.
    """

    root: Path
    question: Question
    apply: bool = False
    unsure: bool = False
    anyway: bool = False
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a job.

    Attributes:
        hunks: Number of hunks.
        added: Lines added.
        deleted: Lines deleted.
        tokens: Tokens the model wrote.
        tokens_per_second: Mean rate from the first text to the last, or ``None``.
        estimated: Whether the server does not say how many tokens it wrote.
        rate_estimated: Whether it does not say so while it writes.
        written: Whether the file was written.
        confidence: Calibrated probability that it is right, ``None`` if unknown.
        unsure: A warning where that is too low, ``""`` elsewhere.
        left: A sentence about names that are still used elsewhere, or that nothing defines, or why
            that is not known; ``""`` for none.
        refused: Why it was not written although that was asked for, ``""`` elsewhere.
        later: A sentence about what of the instruction was not asked for yet, ``""`` for nothing.
    """

    hunks: int
    added: int
    deleted: int
    tokens: int
    tokens_per_second: float | None
    estimated: bool
    rate_estimated: bool
    written: bool
    confidence: float | None = None
    unsure: str = ""
    refused: str = ""
    left: str = ""
    later: str = ""

    @property
    def size(self) -> str:
        """How much the model wrote, for display."""
        if not self.tokens:
            return "without the model"
        return marked(counted(self.tokens, "token"), estimated=self.estimated)

    @property
    def rate(self) -> str:
        """How fast, for display; ``""`` if unknown."""
        rate = self.tokens_per_second
        return marked(f"{rate:,.0f} tokens/s", estimated=self.rate_estimated) if rate else ""


class Sink(Protocol):
    """Receives a job's progress; does nothing with what a subclass does not take."""

    def started(self, turn: Turn, base: SourceText, model: str) -> None:
        """The request is on its way."""

    def waiting(self, sentence: str) -> None:
        """Nothing has come for a while (may be told before ``started``)."""

    def reading(self, progress: PromptReading | None) -> None:
        """The server has read a part of a long prompt; ``None``: it reads no more."""

    def disclosed(self, sentence: str) -> None:
        """The sentence about what the endpoint receives, shown the first time that it is used."""

    def text(self, text: str) -> None:
        """More text of the region has arrived."""

    def file(self, path: str, base: SourceText) -> None:
        """The hunks that follow belong to this file (if an answer may change several)."""

    def hunk(self, hunk: Hunk) -> None:
        """A hunk has settled (in order of position)."""

    def passed(self, line: int) -> None:
        """Base lines before ``line`` are settled."""


async def run_job(
    job: Job,
    sink: Sink,
    *,
    settings: Settings,
    endpoint: Endpoint | None = None,
    replay: Path | None = None,
    server: ServerLink | None = None,
) -> Outcome:
    """Run one instruction to its end; arguments are those of ``PairingSession.open``.

    Raises:
        UserError: It failed; nothing was written.
    """
    session = await PairingSession.open(
        job.root,
        settings=settings,
        endpoint=endpoint,
        replay=replay,
        server=server,
        journal=False,
        watch=False,
    )

    def hear(event: SessionEvent) -> None:
        if not isinstance(event, NoticePosted):
            return
        if event.notice.discloses:
            sink.disclosed(event.notice.text)
        elif event.notice.passing:
            sink.waiting(event.notice.text)

    session.chat.allow(on=False)  # There is no user to ask.
    session.status.subscribe(hear)
    async with session:
        turn = await session.turns.instruct(job.question)
        proposal = session.files[turn.path]
        sink.started(turn, proposal.base, session.server.model_name)
        told = asyncio.create_task(_tell_reading(session, sink))
        try:
            await _follow(session, turn, sink, streams=not job.everywhere)
        finally:
            told.cancel()
            sink.reading(None)
        turn = session.turns.last or turn  # The guard may have had the model write it again.
        if turn.status is not TurnStatus.DONE:
            # An answer whose server was lost counts as cut.
            lost = session.status.state is SessionState.OFFLINE and not turn.tokens
            error = UnavailableError if lost else EditFailedError
            said = (
                session.status.notices[-1].text
                if session.status.notices
                else "The model was stopped."
            )
            raise error(turn.error or said)
        if job.everywhere:
            await _go_everywhere(session, turn, sink)
        await session.guard.caught_up()
        hunks = session.hunks.undecided()
        if turn.failures:
            raise EditFailedError(session.status.notices[-1].text)
        if not hunks:
            raise NothingToChangeError(session.status.notices[-1].text)
        left = await _left_behind(session, hunks, job)
        refused = await _objection(session, hunks, job, left) if job.apply else ""
        writes = job.apply and not refused
        if writes:
            ids = {hunk.id for hunk in hunks}
            if await session.decisions.accept_all(ids, anyway=True) != len(ids):
                raise EditFailedError(session.status.notices[-1].text)
        return Outcome(
            hunks=len(hunks),
            added=sum(hunk.added for hunk in hunks),
            deleted=sum(hunk.deleted for hunk in hunks),
            tokens=turn.tokens,
            tokens_per_second=session.status.meter.turn_rate,
            estimated=turn.estimated,
            rate_estimated=session.status.meter.estimated,
            written=writes,
            confidence=turn.confidence,
            unsure=turn.unsure,
            refused=refused,
            later=turn.later,
            left="" if not left.found or refused.startswith(left.found) else f"{left.found}.",
        )


async def _tell_reading(session: PairingSession, sink: Sink) -> None:
    """Report how much of a prompt has been read until cancelled."""
    told: PromptReading | None = None
    while True:
        await asyncio.sleep(READING_TICK_S)
        if (reading := session.status.meter.reading) != told:
            told = reading
            sink.reading(reading)


class _Left(NamedTuple):
    """Names that an answer leaves behind or brings undefined.

    Attributes:
        found: What was found, without a full stop; ``""`` for nothing.
        way_out: How to write the answer all the same; ``""`` if it may be written.
    """

    found: str = ""
    way_out: str = ""


async def _left_behind(session: PairingSession, hunks: Sequence[Hunk], job: Job) -> _Left:
    """What the names of a change say about it, over all its files."""
    before: dict[str, Sequence[str]] = {}
    after: dict[str, Sequence[str]] = {}
    for path in dict.fromkeys(hunk.path for hunk in hunks):
        proposal = session.files[path]
        before[path] = proposal.base.lines
        after[path] = proposal.proposed_region(0, len(proposal.base.lines)).split("\n")[:-1]
    files = await asyncio.to_thread(session.workspace.files)
    outside = session.workspace.files_outside
    try:
        left = await uses_left(session.root, files, before, after, outside=outside)
    except ReferencesError as error:
        return _Left(str(error).removesuffix("."))
    if left:
        renamed = all(use.new for use in left) and not job.everywhere
        everywhere = "--everywhere changes that as well, " if renamed else ""
        return _Left(listed(left), f"{everywhere}--unsure writes it as it is")
    verdicts = await look_at_each(before, after)
    undefined = list(
        dict.fromkeys(
            f"`{finding.undefined}` ({path}, line {finding.line})"
            for path, verdict in verdicts.items()
            for finding in verdict.undefined
        )
    )
    if not undefined:
        for path, verdict in verdicts.items():
            if why := verdict.unread or session.guard.unread(path):
                return _Left(f"{why}, so {path} is not checked", "--unsure writes it")
        return _Left()
    return _Left(f"Nothing defines {' and '.join(undefined[:MAX_LISTED])}", "--unsure writes it")


async def _objection(session: PairingSession, hunks: Sequence[Hunk], job: Job, left: _Left) -> str:
    """Why an answer should not be written without a person, ``""`` for no reason."""
    for hunk in session.hunks:
        if hunk.live and hunk.state is HunkState.HELD:
            return f"lines of {hunk.path} are held back by the guard: {session.reason(hunk)}"
    if not job.unsure and any(session.turns.doubts(hunk) for hunk in hunks):
        return "the answer is flagged; --unsure writes it"
    for path in dict.fromkeys(hunk.path for hunk in hunks) if not job.anyway else ():
        proposal = session.files[path]
        lines = proposal.base.lines
        if broken := await breaks(path, join_lines(lines), proposal.proposed_region(0, len(lines))):
            return f"{path} would no longer parse ({broken}); --anyway writes it"
    return f"{left.found}; {left.way_out}" if left.way_out and not job.unsure else ""


async def _go_everywhere(session: PairingSession, turn: Turn, sink: Sink) -> None:
    """Repeat the change of a turn where else it is needed, and report all hunks."""
    made = [hunk.id for hunk in session.hunks.undecided(turn.path)]
    if made and await session.background.elsewhere(*made):
        await session.background.finished()
        await session.turns.finished()
    _report(session, turn, sink)


def _report(session: PairingSession, turn: Turn, sink: Sink) -> None:
    for hunk in sorted(session.hunks.undecided(), key=lambda h: h.path != turn.path):
        sink.file(hunk.path, session.files[hunk.path].base)
        sink.hunk(hunk)


async def _follow(session: PairingSession, turn: Turn, sink: Sink, *, streams: bool) -> None:
    if turn.edit_format != "region" or not streams:  # The hunks may be in any order.
        await session.turns.finished()
        if streams:
            _report(session, turn, sink)
        return
    segment = next(s for s in session.files[turn.path].segments if s.start == turn.start)
    # An answer that is nonsense is taken back at its end, and one of a chat model may be mended.
    may_be_withheld = is_python(turn.path) or session.server.model_info.is_chat
    characters = 0
    told: set[int] = set()
    ended = asyncio.create_task(session.turns.finished())
    while True:
        over = ended.done()
        text = segment.new_text
        if len(text) > characters:
            sink.text(text[characters:])
            characters = len(text)
        for hunk_id in segment.hunk_ids if over or not may_be_withheld else ():
            hunk = session.hunks.get(hunk_id)
            if hunk_id not in told and hunk.decidable:
                told.add(hunk_id)
                sink.hunk(hunk)
        if len(told) == len(segment.hunk_ids):
            sink.passed(segment.unread.start)
        if over:
            for hunk in session.hunks.undecided(turn.path):
                if hunk.id not in told:  # It was written again.
                    sink.hunk(hunk)
            return
        await asyncio.wait({ended}, timeout=TICK_S)
