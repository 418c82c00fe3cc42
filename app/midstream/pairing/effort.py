"""Effort: what a session does to get a better answer out of a model of its own.

``low`` is one greedy pass.  ``medium`` looks at the answer (does the file still parse, did ruff's
F and E9 find anything that was not there before) and has it corrected once.  ``high`` and ``xhigh``
have several candidates written, rank them by those checks and by the person's own quick test
command, and stream the best.  A hosted endpoint is told the effort and does with it what it does.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from midstream.errors import UsageError, UserError
from midstream.pairing.trial import Trial
from midstream.pairing.turns import TurnStatus
from midstream.pairing.verdicts import Lines, Verdict, look_at
from midstream.settings import SESSION_EFFORTS

if TYPE_CHECKING:
    from midstream.edits.documents import SourceText
    from midstream.edits.parsing import Parser
    from midstream.edits.proposal import FileProposal
    from midstream.pairing.answer import Answer
    from midstream.pairing.answering import Answering
    from midstream.pairing.board import Board
    from midstream.pairing.link import Link
    from midstream.workspace.files import Workspace

EFFORTS: Final = SESSION_EFFORTS
"""Values of the setting; ``auto`` is low here and leaves a hosted endpoint to its own choice."""
_OWN: Final = {"none": "low", "minimal": "low", "max": "xhigh"}
"""What levels that only hosted models have come to with a model of our own."""
CANDIDATES: Final = {"high": 4, "xhigh": 8}
"""Answers that are written, the greedy one included."""
TEMPERATURE: Final = 0.7


class Effort:
    """The effort of a session, and what it takes.

    Attributes:
        level: One of ``EFFORTS``.
        trying: Candidate that is being written and how many there will be, ``None`` otherwise.
    """

    def __init__(
        self,
        level: str,
        *,
        workspace: Workspace,
        files: Mapping[str, FileProposal],
        board: Board,
        check_command: str | None,
    ) -> None:
        self._level = level
        self._files = files
        self.trying: tuple[int, int] | None = None
        self._workspace = workspace
        self._board = board
        self._command = check_command

    @property
    def level(self) -> str:
        """One of ``EFFORTS``."""
        return self._level

    @level.setter
    def level(self, level: str) -> None:
        if level not in EFFORTS:
            raise UsageError(f"There is no effort {level!r}; choose one of {', '.join(EFFORTS)}.")
        self._level = level
        self._board.touch()

    def passed_on(self, link: Link) -> str | None:
        """``reasoning.effort`` of a request; a server of our own leaves effort to the session.

        A hosted model is never told a level that its profile does not name, but the nearest one.
        """
        if link.own or self._level == "auto":
            return None
        offered = link.profile.efforts if link.profile is not None else ()
        if not offered or self._level in offered:
            return self._level
        wanted = EFFORTS.index(self._level)
        return min(offered, key=lambda level: abs(EFFORTS.index(level) - wanted))

    def chooses(self, link: Link) -> bool:
        """Whether candidates are written first."""
        return link.own and self._own in CANDIDATES

    def checks(self, link: Link) -> bool:
        """Whether a finished answer is looked at and corrected."""
        return link.own and self._own == "medium"

    @property
    def _own(self) -> str:
        return _OWN.get(self._level, self._level)

    # Candidates

    async def choose(
        self, link: Link, answering: Answering, answer: Answer, parser: Callable[[], Parser]
    ) -> None:
        """Have candidates written, out of sight, and stream the best as the answer.

        Args:
            link: The model.
            answering: Takes what is streamed.
            answer: The answer that has begun.
            parser: Makes a parser of its format.
        """
        count = CANDIDATES[self._own]
        found: list[tuple[str, Verdict]] = []
        try:
            with self._trial() as trial:
                for number in range(count):
                    self.trying = (number + 1, count)
                    self._board.touch()
                    text = await self._candidate(link, answering, answer, number)
                    if text is None or not answer.live:
                        break
                    if text in [known for known, _ in found]:
                        continue
                    verdict = await self._judge(answer, text, parser(), trial)
                    found.append((text, verdict))
        finally:
            self.trying = None
            self._board.touch()
        if not answer.live:
            return
        if not found:
            raise UserError("No candidate was written; ask again, or use a lower effort.")
        best = min(range(len(found)), key=lambda i: found[i][1].rank)
        text, verdict = found[best]
        answer.turn.tried = _told(count, found, best)
        self._board.inform(f"{answer.turn.tried[:1].upper()}{answer.turn.tried[1:]}.")
        await answering.show_text(answer, text)

    async def amend(
        self, link: Link, answering: Answering, answer: Answer, parser: Callable[[], Parser]
    ) -> None:
        """Have a correction of edits written, out of sight, and stream it if it is one.

        Arguments are those of ``choose``; ``answer.corrects`` is what is wrong.
        """
        first = answer.corrects
        assert first is not None
        text = await self._candidate(link, answering, answer, 0)
        if not answer.live:
            return
        verdict = None if text is None else await self._judge(answer, text, parser(), None)
        if not answer.live:
            return
        better = verdict is not None and verdict.rank < first.rank
        said = "was cut off" if verdict is None else "helped" if better else "did not help"
        about = "" if verdict is None else f" ({verdict.words})"
        answer.turn.tried = f"2 passes: the first {first.words}; its correction {said}{about}"
        if not better:
            answer.turn.tried += ", so the first stands"
        self._board.inform(f"{answer.turn.tried}.")
        if text is not None and better:
            await answering.show_text(answer, text)
        else:
            answer.close(TurnStatus.DONE)

    async def _candidate(
        self, link: Link, answering: Answering, answer: Answer, number: int
    ) -> str | None:
        """One answer, the first greedy and the others sampled; ``None`` if it was cut off."""
        from midstream.responses.events import Delta, Failed, Finished, Started

        client = await link.ready()
        stream = await client.create(
            messages=answer.conversation.messages,
            instructions=answer.conversation.system,
            correction=answer.conversation.correction,
            tools=answer.tools,
            temperature=TEMPERATURE if number else None,
            seed=number if number else None,
        )
        answer.stream = stream
        if not answer.live:
            await stream.interrupt()
        text: list[str] = []
        async for event in stream:
            match event:
                case Started():
                    link.learn(event.metadata)
                    answering.taken()
                case Delta():
                    text.append(event.text)
                    answering.counted(answer, event)
                case Finished():
                    answering.count(answer, event)
                    if event.status != "completed":
                        return None
                case Failed():
                    if answer.live:
                        raise UserError(event.message)
                    return None
        return "".join(text)

    async def _judge(
        self, answer: Answer, text: str, parser: Parser, trial: Trial | None
    ) -> Verdict:
        if answer.region is None:
            before, after, misplaced = await self._blocks(answer, text, parser)
        else:
            lines = list(answer.proposal.base.lines)
            start, stop = answer.region.start, answer.region.stop
            new = await asyncio.to_thread(_region_lines, text, lines[start:stop])
            path, misplaced = answer.proposal.path, 0
            before, after = {path: lines}, {path: [*lines[:start], *new, *lines[stop:]]}
        verdict = await look_at(before, after, misplaced)
        if trial is None or verdict.broken:
            return verdict
        return replace(verdict, tests=await asyncio.to_thread(trial.passes, after))

    async def _blocks(self, answer: Answer, text: str, parser: Parser) -> tuple[Lines, Lines, int]:
        """Files before and after an answer in which the model names the places."""
        from midstream.edits.proposal import Overlay
        from midstream.pairing.rehearsal import rehearse

        main = answer.proposal.path
        # What the first answer wrote to belongs to a correction as well.
        corrected = answer.corrects is not None
        now = {
            path: Overlay(proposal).source
            for path, proposal in self._files.items()
            if path == main or PurePosixPath(path).name in text or corrected
        }
        base = {path: self._files[path].base.lines for path in now}

        def find(path: str) -> SourceText | None:
            if path not in now and (found := self._read(path)) is not None:
                now[path], base[path] = found, found.lines
            return now.get(path)

        done = await asyncio.to_thread(rehearse, text, parser, main, find)
        after: dict[str, Sequence[str]] = {
            path: source.lines for path, source in now.items() if corrected
        }
        after.update(done.after)
        return {path: base.get(path, ()) for path in after}, after, done.misplaced

    def _read(self, path: str) -> SourceText | None:
        """A file of the folder that git does not ignore (blocking)."""
        from midstream.edits.documents import NotTextError, SourceText

        try:
            path = self._workspace.relative(path)
            if self._workspace.ignores(path) or not (self._workspace.root / path).is_file():
                return None
            return SourceText.from_bytes(self._workspace.peek(path))
        except (UserError, NotTextError):
            return None

    @contextlib.contextmanager
    def _trial(self) -> Generator[Trial | None]:
        if self._command is None:
            yield None
            return
        trial = Trial(self._workspace, self._command)
        try:
            yield trial if trial.ready else None
            if not trial.ready:
                self._board.warn(f"The test command did not run: {trial.trouble}.")
        finally:
            trial.close()

    # Checks

    def correction(self, verdict: Verdict) -> str:
        """What the model is told about an answer that is not clean."""
        what = verdict.broken or "; ".join(verdict.introduced[:3])
        return f"The result must not have this error: {what}."


def _told(count: int, found: Sequence[tuple[str, Verdict]], best: int) -> str:
    """What was tried and why one won."""
    verdict = found[best][1]
    clean = sum(v.clean for _, v in found)
    same = f", {len(found)} different" if len(found) < count else ""
    why = verdict.words
    if clean > 1:
        why += f", the first of {clean} without findings"
    return f"{count} candidates{same}: number {best + 1} won ({why})"


def _region_lines(text: str, old: Sequence[str]) -> list[str]:
    from midstream.edits.events import NewText
    from midstream.edits.formats.region import RegionParser

    parser = RegionParser(old, bare="<region" not in text and "```" not in text)
    events = [*parser.feed(text), *parser.finish()]
    new = "".join(event.text for event in events if isinstance(event, NewText))
    return new.removesuffix("\n").split("\n") if new else []
