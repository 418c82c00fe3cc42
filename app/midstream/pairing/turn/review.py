"""Review of a finished answer: notices about it, and the follow-up that it needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from midstream.pairing.status import FollowUpKind
from midstream.pairing.turn.checks import look_at, newly_broken
from midstream.pairing.turn.doubt import tell_doubt, tell_same, tell_unchanged
from midstream.pairing.turn.followup import FollowUp

if TYPE_CHECKING:
    from midstream.pairing.files import OpenFiles
    from midstream.pairing.server import ServerLink
    from midstream.pairing.turn.answer import Answer
    from midstream.pairing.turn.checks import Verdict
    from midstream.pairing.turn.effort import Effort
    from midstream.pairing.turn.log import TurnLog

MOST_MENDINGS: Final = 1
"""How often the model is asked again for edits of one instruction that did not match."""


class Reviewer:
    """Reviews finished answers."""

    def __init__(self, files: OpenFiles, server: ServerLink, log: TurnLog, effort: Effort) -> None:
        self._files = files
        self._server = server
        self._log = log
        self._effort = effort

    async def review(self, answer: Answer) -> FollowUp | None:
        """Post notices about an answer; the follow-up that it needs, if any."""
        reply, status = answer.reply, self._log.status
        if reply.failures:
            answer.turn.failures = tuple(failure.words for failure in reply.failures)
            if answer.attempts(FollowUpKind.MISPLACED) < MOST_MENDINGS:
                return _mend(answer)
            errors = [failure.error.message for failure in reply.failures]
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            status.warn(f"An edit did not match the file: {errors[0]}{more}")
        if reply.problems:
            status.warn(f"Look closely at this answer: {reply.problems[0].message}.")
        for path in answer.paths:
            if broken := await newly_broken(self._files[path]):
                status.warn(f"With all of these changes {path} does not parse ({broken}).")
        checked = self._effort.checks and answer.given is None
        if checked and (follow_up := await self._check(answer)) is not None:
            return follow_up
        if not answer.hunk_ids and not reply.failures:
            tell_unchanged(answer, self._server, status)
        else:
            same = tell_same(answer, self._log.hunks, self._server, status)
            tell_doubt(answer, self._server, status, aloud=not same)
        return None

    async def _check(self, answer: Answer) -> FollowUp | None:
        """Check an answer; the correction of one that has an error."""
        from midstream.edits.proposal import Overlay

        first = answer.reason.verdict if answer.reason is not None else None
        files = [self._files[path] for path in answer.mode.checked_paths(answer.paths)]
        if not files or (first is not None and answer.mode.segment is None):
            return None  # A correction of edits was checked before it was shown.
        before = {proposal.path: proposal.base.lines for proposal in files}
        after = {proposal.path: Overlay(proposal).source.lines for proposal in files}
        verdict = await look_at(before, after)
        if first is not None:
            self._compare(answer, first, verdict)
            return None
        if verdict.clean:
            answer.turn.tried = f"1 pass, checked: {verdict.words}"
            return None
        notice = f"The checks found an error ({verdict.words}). Asking the model once to fix it."
        return replace(answer.mode.correct(answer.turn, verdict), notice=notice)

    def _compare(self, answer: Answer, first: Verdict, verdict: Verdict) -> None:
        """Tell whether the correction of a region helped; one that did not is taken back."""
        better = verdict.rank < first.rank
        said = "helped" if better else "did not help"
        answer.turn.tried = (
            f"2 passes: the first {first.words}; its correction {said} ({verdict.words})"
        )
        if not better and answer.mode.withdraw(answer.reply):
            answer.turn.tried += ", so the first stands"
        self._log.status.inform(f"{answer.turn.tried}.")


def _mend(answer: Answer) -> FollowUp:
    """Ask once more for the edits that did not match, saying why."""
    failures = answer.reply.failures
    count = len(failures)
    return FollowUp(
        FollowUpKind.MISPLACED,
        answer.turn.instruction,
        answer.reply.outcome(answer.mode.edit_format).message(),
        f"corrects {count} edit{'s' * (count != 1)} that did not match",
        notice=(
            f"{count} edit{'s' * (count != 1)} did not match the file "
            f"({failures[0].error.message}). Asking the model once to fix "
            f"{'them' if count != 1 else 'it'}."
        ),
    )
