"""Writes answers: as they stream, or several candidates of which the best is shown.

``low`` is one greedy pass.  ``medium`` checks the answer (does the file still parse, did ruff's F
and E9 find anything new) and has it corrected once.  ``high`` and ``xhigh`` have several candidates
written, rank them by those checks and by the user's own quick test command, and stream the best.
A hosted endpoint gets the effort as a request parameter.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from midstream import processes
from midstream.edits.documents import join_lines
from midstream.errors import UserError
from midstream.pairing.status import TurnStatus
from midstream.pairing.turn.checks import Lines, Verdict, look_at, tell_unread
from midstream.pairing.turn.responses import AnswerEnd, ResponseReader
from midstream.workspace.copies import CopyStoppedError, make_copy

if TYPE_CHECKING:
    from midstream.pairing.request.effort import Effort
    from midstream.pairing.turn.answer import Answer
    from midstream.pairing.turn.log import TurnLog
    from midstream.pairing.turn.reply_files import DryRunFiles

TEMPERATURE: Final = 0.7
"""Of the candidates: without chance they would all be the same."""
TESTS_S: Final = 60.0
"""How long the test command may take for one candidate."""


class AnswerWriter:
    """Has the text of answers written: as it streams, or out of sight to be judged first.

    Attributes:
        test_command: Runs on candidates, if the user's settings name one.
    """

    def __init__(
        self, effort: Effort, responses: ResponseReader, log: TurnLog, files: DryRunFiles
    ) -> None:
        self._effort = effort
        self._responses = responses
        self._log = log
        self._files = files
        self.test_command: str | None = None
        self._trouble = ""
        """Why the test command did not run on candidates."""

    async def write(self, answer: Answer) -> AnswerEnd:
        """Write an answer to its end."""
        try:
            reason = answer.reason
            if answer.given is not None:
                answer.resolve()
                await self._responses.show_text(answer, answer.given)
                return AnswerEnd()
            if reason is None and self._effort.candidates:
                answer.resolve()
                return await self._choose(answer)
            if reason is not None and reason.verdict is not None and answer.region is None:
                return await self._amend(answer, reason.verdict)
            return await self._responses.stream(answer, self._effort.passed_on())
        except UserError as error:
            if answer.live:
                self._log.cut(answer, TurnStatus.FAILED, str(error))
                self._log.status.fail(str(error))
        except Exception as error:
            self._log.broke(answer, error)
        finally:
            self._responses.look(answer)
        return AnswerEnd()

    async def _choose(self, answer: Answer) -> AnswerEnd:
        """Have candidates written, and show the best as the answer."""
        count = self._effort.candidates
        found: list[tuple[str, Verdict]] = []
        self._trouble = ""
        try:
            for number in range(count):
                self._effort.show_progress(number, count)
                text = await self._candidate(answer, number)
                if not answer.live:
                    break
                if text is not None and text not in [known for known, _ in found]:
                    found.append((text, await self._judge(answer, text, test=True)))
        finally:
            self._effort.show_progress()
        if self._trouble:
            self._log.status.warn(f"The test command did not run: {self._trouble}.")
        if not answer.live:
            return AnswerEnd()
        if not found:
            raise UserError("No candidate was written", "ask again, or use a lower effort")
        best = min(range(len(found)), key=lambda i: found[i][1].rank)
        answer.turn.tried = _chosen_because(count, found, best)
        self._log.status.inform(f"{answer.turn.tried[:1].upper()}{answer.turn.tried[1:]}.")
        await self._responses.show_text(answer, found[best][0])
        return AnswerEnd()

    async def _amend(self, answer: Answer, first: Verdict) -> AnswerEnd:
        """Have a correction of edits written, and show it if it is one.

        Args:
            answer: The follow-up to the answer that is corrected.
            first: What is wrong with that answer.
        """
        text = await self._candidate(answer, 0)
        verdict = None
        if answer.live and text is not None:
            verdict = await self._judge(answer, text, correction=True)
        if not answer.live:
            return AnswerEnd()
        better = verdict is not None and verdict.rank < first.rank
        said = "was cut off" if verdict is None else "helped" if better else "did not help"
        about = "" if verdict is None else f" ({verdict.words})"
        answer.turn.tried = f"2 passes: the first {first.words}; its correction {said}{about}"
        if not better:
            answer.turn.tried += ", so the first stands"
        self._log.status.inform(f"{answer.turn.tried}.")
        if text is not None and better:
            await self._responses.show_text(answer, text)
            return AnswerEnd()
        answer.close(TurnStatus.DONE)
        return AnswerEnd(review=False)

    async def _candidate(self, answer: Answer, number: int) -> str | None:
        return await self._responses.read_text(answer, sample=number, temperature=TEMPERATURE)

    async def _judge(
        self, answer: Answer, text: str, *, correction: bool = False, test: bool = False
    ) -> Verdict:
        run = await answer.mode.dry_run(text, self._files, correction=correction)
        verdict = await look_at(run.before, run.after, run.misplaced)
        tell_unread([verdict], self._log.status)
        if not test or not self.test_command or self._trouble or verdict.broken:
            return verdict
        return replace(verdict, tests=await asyncio.to_thread(self._passes, answer, run.after))

    def _passes(self, answer: Answer, files: Lines) -> bool | None:
        """Whether the test command succeeds in a copy of the folder with these files (blocking).

        Returns:
            ``None`` if it cannot run.
        """
        changes = {path: join_lines(lines).encode() for path, lines in files.items()}
        root, command = self._files.workspace.root, self.test_command or ""
        try:
            copy = make_copy(root, changes, lambda: not answer.live)
        except CopyStoppedError:
            return None
        except UserError as error:
            self._trouble = error.problem
            return None
        try:
            words, environ = shlex.split(command), copy.environment()
            done = processes.run(words, cwd=copy.root, environ=environ, timeout=TESTS_S)
        except TimeoutError:
            return False
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            self._trouble = f"{command} cannot be started ({why})"
            return None
        finally:
            copy.remove()
        return done.code == 0 and not done.cut


def _chosen_because(count: int, found: Sequence[tuple[str, Verdict]], best: int) -> str:
    verdict = found[best][1]
    clean = sum(v.clean for _, v in found)
    same = f", {len(found)} different" if len(found) < count else ""
    why = verdict.words
    if clean > 1:
        why += f", the first of {clean} without findings"
    return f"{count} candidates{same}: number {best + 1} won ({why})"
