"""Writes answers: as they stream, or several candidates of which the best is shown.

``low`` is one greedy pass.  ``medium`` checks the answer (does the file still parse, did ruff's F
and E9 find anything new) and has it corrected once.  ``high`` and ``xhigh`` have several candidates
written, rank them by those checks and by the user's own quick test command, and stream the best.
A hosted endpoint gets the effort as a request parameter.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from midstream import processes
from midstream.errors import UserError
from midstream.pairing.status import TurnStatus
from midstream.pairing.turn.checks import Lines, Verdict, look_at
from midstream.pairing.turn.responses import AnswerEnd, ResponseReader

if TYPE_CHECKING:
    from midstream.pairing.request.effort import Effort
    from midstream.pairing.turn.answer import Answer
    from midstream.pairing.turn.log import TurnLog
    from midstream.pairing.turn.reply_files import DryRunFiles
    from midstream.workspace.files import Workspace

TEMPERATURE: Final = 0.7
TESTS_S: Final = 60.0
"""How long the test command may take for one candidate."""
MAX_FILES: Final = 2_000
MAX_BYTES: Final = 50_000_000
"""A folder with more than that is not copied."""


class AnswerWriter:
    """Has the text of answers written: as it streams, or out of sight to be judged first."""

    def __init__(
        self,
        effort: Effort,
        responses: ResponseReader,
        log: TurnLog,
        files: DryRunFiles,
        test_command: str | None,
    ) -> None:
        self._effort = effort
        self._responses = responses
        self._log = log
        self._files = files
        self._test_command = test_command

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
            if reason is not None and reason.verdict is not None and answer.mode.segment is None:
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
        try:
            with self._trial() as trial:
                for number in range(count):
                    self._effort.show_progress(number, count)
                    text = await self._candidate(answer, number)
                    if not answer.live:
                        break
                    if text is not None and text not in [known for known, _ in found]:
                        found.append((text, await self._judge(answer, text, trial)))
        finally:
            self._effort.show_progress()
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
            verdict = await self._judge(answer, text, None, correction=True)
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
        self, answer: Answer, text: str, trial: Trial | None, *, correction: bool = False
    ) -> Verdict:
        run = await answer.mode.dry_run(text, self._files, correction=correction)
        verdict = await look_at(run.before, run.after, run.misplaced)
        if trial is None or verdict.broken:
            return verdict
        return replace(verdict, tests=await asyncio.to_thread(trial.passes, run.after))

    @contextlib.contextmanager
    def _trial(self) -> Generator[Trial | None]:
        if self._test_command is None:
            yield None
            return
        trial = Trial(self._files.workspace, self._test_command)
        try:
            yield trial if trial.ready else None
            if not trial.ready:
                self._log.status.warn(f"The test command did not run: {trial.trouble}.")
        finally:
            trial.close()


def _chosen_because(count: int, found: Sequence[tuple[str, Verdict]], best: int) -> str:
    verdict = found[best][1]
    clean = sum(v.clean for _, v in found)
    same = f", {len(found)} different" if len(found) < count else ""
    why = verdict.words
    if clean > 1:
        why += f", the first of {clean} without findings"
    return f"{count} candidates{same}: number {best + 1} won ({why})"


class Trial:
    """A temporary copy of the folder in which the user's test command runs.

    Attributes:
        trouble: Why it cannot, ``""`` if it can.
    """

    def __init__(self, workspace: Workspace, command: str) -> None:
        self.trouble = ""
        self._command = shlex.split(command)
        self._folder: Path | None = None
        paths = workspace.files()
        size = 0
        if len(paths) > MAX_FILES:
            self.trouble = f"the folder has more than {MAX_FILES:,} files"
            return
        folder = Path(tempfile.mkdtemp(prefix="midstream-trial-"))
        self._folder = folder
        for path in paths:
            source, target = workspace.root / path, folder / path
            with contextlib.suppress(OSError):
                size += source.stat().st_size
                if size > MAX_BYTES:
                    self.trouble = f"the folder has more than {MAX_BYTES // 1_000_000} MB"
                    return
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)

    @property
    def ready(self) -> bool:
        """Whether the command can run."""
        return not self.trouble and bool(self._command)

    def passes(self, files: Lines) -> bool | None:
        """Whether the command succeeds with these versions of files; ``None`` if it cannot run."""
        if self._folder is None:
            return None
        former: dict[Path, bytes | None] = {}
        try:
            for path, lines in files.items():
                target = self._folder / path
                former[target] = target.read_bytes() if target.is_file() else None
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text("".join(f"{line}\n" for line in lines), "utf-8")
            return self._run()
        except OSError as error:
            self.trouble = f"the copy of the folder cannot be written ({error.strerror})"
            return None
        finally:
            # The next candidate starts from the folder as it is.
            for target, data in former.items():
                with contextlib.suppress(OSError):
                    if data is None:
                        target.unlink(missing_ok=True)
                    else:
                        target.write_bytes(data)

    def _run(self) -> bool | None:
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = processes.run(self._command, cwd=self._folder, environ=env, timeout=TESTS_S)
        except TimeoutError:
            return False
        except OSError as error:
            self.trouble = f"{self._command[0]} cannot be started ({error.strerror})"
            return None
        return done.code == 0 and not done.cut

    def close(self) -> None:
        """Remove the copy."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
