"""Review of a finished answer: notices about it, and any follow-up that it needs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from midstream.code.outline import outline
from midstream.code.syntax import is_python
from midstream.edits.documents import join_lines
from midstream.edits.doubt.wording import joined, one_of, quoted
from midstream.edits.events import FileOp
from midstream.edits.outcome import FailureReason
from midstream.edits.proposal import Overlay
from midstream.pairing.request.additions import ask_for_tests
from midstream.pairing.request.mentions import find_mentions, missing_names, new_names
from midstream.pairing.request.new_code import FileAddition
from midstream.pairing.request.renaming import is_renamed
from midstream.pairing.status import LARGER_MODEL, FollowUpKind
from midstream.pairing.turn.checks import look_at, newly_broken, tell_unread
from midstream.pairing.turn.modes import FollowUp

if TYPE_CHECKING:
    from midstream.edits.doubt.rewrite import JudgedRewrite
    from midstream.edits.hunks import Hunk
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.models.server import ServerLink
    from midstream.pairing.request.effort import Effort
    from midstream.pairing.status import SessionStatus
    from midstream.pairing.turn.answer import Answer
    from midstream.pairing.turn.checks import Verdict
    from midstream.pairing.turn.log import TurnLog
    from midstream.pairing.turn.modes import RegionMode

MAX_SIGNS: Final = 2
"""Signs that a sentence names."""
MAX_ENDPOINTS: Final = 3
"""Endpoints that it names."""
_LEAVE_NOTHING_OUT: Final = (
    "Answer again with the complete edited code in one code block, and leave nothing out."
)
_WHOLE_ADDITION: Final = "Answer again with the complete new code alone, in one code block."
_LAST_KINDS: Final = (FollowUpKind.UNCHANGED, FollowUpKind.CHECKS)
"""Follow-ups after which an unchanged answer stands: it was asked for twice, or the checks took it
back."""
MAX_MENDINGS: Final = 1
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
        if answer.hunk_ids and _withheld(answer, self._server, status):
            return None
        answer.turn.failures = tuple(each.words for each in (*reply.failures, *reply.refused))
        if reply.refused:
            reason = reply.refused[0].error.message
            more = f" (and {len(reply.refused) - 1} more)" if reply.refused[1:] else ""
            status.warn(f"An edit was left out: {reason}; decide first, then ask again.{more}")
        if reply.failures:
            if answer.attempts(FollowUpKind.MISPLACED) < MAX_MENDINGS:
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
        if not (answer.hunk_ids or reply.failures or reply.refused):
            if (again := self._likeliest_change(answer)) is not None:
                return again
            tell_unchanged(answer, self._server, status)
        else:
            lost = await self._lost_imports(answer)
            same = tell_same(answer, self._log.hunks, self._server, status)
            if same and answer.region is not None and answer.region.repeats:
                answer.region.withdraw(answer.reply)  # The hunks stay those of whoever made them.
                return None
            tell_doubt(answer, self._server, status, lost, aloud=not same)
            if same and not answer.turn.doubted:
                answer.turn.unsure, answer.turn.doubted = same, tuple(answer.hunk_ids)
        if answer.turn.left_out:
            answer.turn.next = answer.turn.next or await self._next(answer)
            status.inform(answer.turn.later)
        return None

    async def _next(self, answer: Answer) -> str:
        """The instruction for what was left out, if it can be told what that is about."""
        proposal = self._files[answer.turn.path]
        texts = proposal.base.lines, Overlay(proposal).source.lines
        before, after = [
            (await asyncio.to_thread(outline, lines, proposal.path)).definitions for lines in texts
        ]
        known = {d.name for d in before}
        new = [d for d in after if d.name not in known and d.kind != "assignment"]
        outer = [d.name for d in new if not any(other.encloses(d) for other in new)]
        words = re.findall(r"\w+", answer.turn.instruction)
        said = [name for name in outer if name.rpartition(".")[2] in words]
        about = said or outer or [answer.turn.symbol]
        return ask_for_tests(answer.turn.left_out, about[0]) if len(about) == 1 and about[0] else ""

    async def _lost_imports(self, answer: Answer) -> list[str]:
        """The imports of a rewrite that lead nowhere."""
        from midstream.codebase.imports import lost_imports

        region, path, workspace = answer.region, answer.turn.path, self._files.workspace
        if region is None or answer.given is not None or not is_python(path):
            return []
        base = region.proposal.base.lines
        before, start, stop = join_lines(base), region.segment.start, region.segment.stop
        after = join_lines(base[:start]) + region.new_text + join_lines(base[stop:])
        root, files = workspace.root, workspace.files
        return await asyncio.to_thread(lost_imports, root, files, path, before, after)

    async def _check(self, answer: Answer) -> FollowUp | None:
        """Check an answer; the correction of one that has an error."""
        first = answer.reason.verdict if answer.reason is not None else None
        files = [self._files[path] for path in answer.mode.checked_paths(answer.paths)]
        if not files or (first is not None and answer.region is None):
            return None  # A correction of edits was checked before it was shown.
        before = {proposal.path: proposal.base.lines for proposal in files}
        after = {proposal.path: Overlay(proposal).source.lines for proposal in files}
        verdict = await look_at(before, after)
        tell_unread([verdict], self._log.status)
        if first is not None:
            self._compare(answer, first, verdict)
            return None
        if not verdict.wrong:
            answer.turn.tried = f"1 pass, checked: {verdict.words}"
            return None
        notice = f"The checks found an error ({verdict.words}). Asking the model once to fix it."
        return replace(answer.mode.correct(answer.turn, verdict), notice=notice)

    def _likeliest_change(self, answer: Answer) -> FollowUp | None:
        """Ask once for the likeliest change of a region that the model left as it was."""
        region, turn = answer.region, answer.turn
        if (
            region is None
            or answer.given is not None
            or turn.background
            or not self._server.model_info.takes_must_change
            or region.kept_before  # Only what follows that was asked for.
            or any(each.kind in _LAST_KINDS for each in answer.history)
            or region.addition is not None
            or missing_names(turn.instruction, region.old_lines)
        ):
            return None
        model, how = self._server.name_or_the_model, _as_before(turn.place)
        return region.anew(
            FollowUp(
                FollowUpKind.UNCHANGED,
                turn.instruction,
                "",
                "writes the likeliest change",
                doubt=(
                    f"{model} first left {turn.place} {how}; this is the change that it found "
                    "likeliest when it was asked once more. "
                    "Read it before you accept it, "
                    f"{way_out(self._server.others, implied=turn.implied)}"
                ),
                notice=(
                    f"{model} left {turn.place} of {turn.path} {how}. It is asked once more, for "
                    "the change that it finds likeliest."
                ),
            )
        )

    def _compare(self, answer: Answer, first: Verdict, verdict: Verdict) -> None:
        """Tell whether the correction of a region helped; one that did not is taken back."""
        better = verdict.rank < first.rank
        said = "helped" if better else "did not help"
        answer.turn.tried = (
            f"2 passes: the first {first.words}; its correction {said} ({verdict.words})"
        )
        region = answer.region
        if not better and region is not None and region.withdraw(answer.reply):
            answer.turn.tried += ", so the first stands"
        self._log.status.inform(f"{answer.turn.tried}.")


def _mend(answer: Answer) -> FollowUp:
    """Ask once more for the edits that did not match, saying why."""
    failures, region = answer.reply.failures, answer.region
    count = len(failures)
    elided = all(failure.error.reason is FailureReason.ELIDED for failure in failures)
    if elided and region is not None and region.by_chat:
        message = failures[0].error.message
        return region.anew(
            FollowUp(
                FollowUpKind.MISPLACED,
                answer.turn.instruction,
                f"{message} {_LEAVE_NOTHING_OUT if region.addition is None else _WHOLE_ADDITION}",
                "writes all of the code",
                notice=f"{message} Asking the model once for all of it.",
            )
        )
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


# Remarks


def tell_unchanged(answer: Answer, server: ServerLink, status: SessionStatus) -> None:
    """Report an answer that changes nothing."""
    turn = answer.turn
    whole = turn.place if answer.region is not None else "everything"
    what = f"{whole} of {turn.path}"
    out = way_out(server.others, implied=turn.implied)
    adds = answer.region is not None and answer.region.addition is not None
    missing = () if adds else missing_names(turn.instruction, answer.mode.old_lines)
    if missing:
        status.inform(f"Nothing to change: {missing[0]} does not occur in {what}.")
    elif old := find_mentions(turn.instruction).renamed:
        status.warn(
            f"{server.name_or_the_model} did not change {what}, and `{old}` is still there: "
            f"{'' if turn.implied else 'change it by hand, '}{out}",
            LARGER_MODEL,
        )
    else:
        status.inform(unchanged(server.name_or_the_model, what, out), LARGER_MODEL)


def tell_same(
    answer: Answer, hunks: Iterable[Hunk], server: ServerLink, status: SessionStatus
) -> str:
    """Report an answer that only repeats earlier proposals; returns the sentence, if it does."""
    said = repeated(answer, hunks)
    if not said:
        return ""
    sentence = f"{said}; {way_out(server.others, implied=answer.turn.implied)}"
    status.inform(sentence, LARGER_MODEL)
    return sentence


def repeated(answer: Answer, hunks: Iterable[Hunk]) -> str:
    """What an answer repeats, in words: hunks that are open already, or ones that were rejected.

    Args:
        answer: It is complete and has hunks.
        hunks: Every hunk of the session.
    """
    region, turn = answer.region, answer.turn
    if region is not None and region.repeats:
        same = f"{turn.place} of {turn.path} came back with the same hunks as before"
        return f"Nothing new is proposed: {same}"
    mine = set(answer.hunk_ids)
    here = {_change(h) for h in hunks if h.id in mine}
    down = {_change(h) for h in hunks if h.state == "rejected"}
    return "The change that you rejected is proposed again" if here and here <= down else ""


def _change(hunk: Hunk) -> tuple[str, int, tuple[str, ...], tuple[str, ...]]:
    """What a hunk does; blank lines make no difference."""
    old, new = (tuple(filter(str.strip, lines)) for lines in (hunk.old, hunk.new))
    return hunk.path, hunk.start, old, new


def tell_doubt(
    answer: Answer,
    server: ServerLink,
    status: SessionStatus,
    lost: Sequence[str] = (),
    *,
    aloud: bool = True,
) -> None:
    """Report an answer that the model is unsure of, and note its hunks in the turn.

    Args:
        answer: It is complete and has hunks.
        server: Who wrote it.
        status: Where the notice is posted.
        lost: Its imports that lead nowhere.
        aloud: Whether a notice is posted; the turn is marked either way.
    """
    turn, region, action = answer.turn, answer.region, ""
    if region is None:
        emptied = ", ".join(_emptied(answer))
        said, aloud = f"The answer empties {emptied}. Look closely." if emptied else "", True
    elif turn.unsure:  # It was doubtful before it was written.
        said, aloud = turn.unsure, True
    else:
        said, action = _doubt(answer, region, server, lost)
    if said:
        turn.unsure, turn.doubted = said, tuple(answer.hunk_ids)
        if aloud:
            status.warn(said, action)


def _doubt(
    answer: Answer, region: RegionMode, server: ServerLink, lost: Sequence[str]
) -> tuple[str, str]:
    """The notice about a rewrite that is in doubt, and the action that the notice offers."""
    from midstream.edits.doubt.judge import judged

    turn, confidence = answer.turn, answer.confidence.get(answer.text)
    rewrite = _judged_rewrite(answer, region)
    found = judged(rewrite)
    by_model = answer.given is None
    wrong = [*found.wrong] if by_model else []
    gone, twice, torn = found.gone, found.overwritten, found.torn
    ignored, unsure = list[str](), False
    if lost:
        wrong.append(f"imports {quoted(lost)}, which the project does not have")
    if confidence is None:
        wrong += [f"no longer defines {quoted(gone)}"] if gone else []
        gone = twice = torn = ()
    else:
        turn.confidence = round(confidence.probability, 3)
        if found.broken:
            wrong.insert(0, "wrote invalid Python")
        unsure = confidence.unsure and not is_renamed(rewrite.said, rewrite.before, rewrite.after)
        wrote = frozenset(re.findall(r"\w+", rewrite.after))
        ignored = [n for n in new_names(rewrite.said) if n.rpartition(".")[2] not in wrote]
    model, out = server.name_or_the_model, way_out(server.others, implied=turn.implied)
    if ignored:
        are = one_of(ignored, "is", "are")
        said = elsewise(model, f"{quoted(ignored)} {are} nowhere in its answer", out)
    elif unsure:
        about = f"its change of {turn.path}" if turn.background else "this change"
        said = unsure_of(model, [*wrong, *found.signs], out, about)
    elif gone:
        said = elsewise(model, f"it no longer defines {quoted(gone)}", out)
    elif twice:
        said = (
            f"{quoted(twice)} is a parameter now, and the function assigns a variable of that "
            "name, too. Look closely."
        )
    elif torn:
        said = (
            f"What was kept and what came after the redirect do not fit: {quoted(torn)} "
            f"{one_of(torn, 'is', 'are')} still used and no longer defined. Look closely, {out}"
        )
    elif wrong:
        said = elsewise(model, f"it {joined(wrong[:MAX_SIGNS])}", out)
    elif found.undefined and by_model:
        are, them = one_of(found.undefined, "is", "are"), one_of(found.undefined, "it", "them")
        names = f"{quoted(found.undefined)} {are} neither defined nor imported in {turn.path}"
        return f"{names}. Add {them}, or ask for that next.", ""
    else:
        return "", ""
    return said, LARGER_MODEL


def _judged_rewrite(answer: Answer, region: RegionMode) -> JudgedRewrite:
    """The rewrite of an answer, and what it answers.

    An instruction may be about the file or about what was proposed for it: the text and the words
    must belong to the same one.
    """
    from midstream.edits.doubt.rewrite import JudgedRewrite, WantedCode

    turn, conversation = answer.turn, answer.exchange.conversation
    before = own = join_lines(region.old_lines)
    said = all_said = turn.instruction
    if answer.in_full:
        said = all_said = answer.in_full
    elif region.before is not None and region.before != own:
        said = all_said = conversation.instruction or turn.instruction
        before = region.before
    elif turn.follows is FollowUpKind.RENAME:
        said = all_said = conversation.instruction
    elif turn.follows is FollowUpKind.REDIRECT:
        all_said = "\n".join((*conversation.instructions[:-1], said))
    wanted, addition = None, region.addition
    if isinstance(addition, FileAddition):
        new = ("", False) if addition.new is None else (addition.new.name, addition.new.tests)
        wanted = WantedCode(*new, addition.known)
    return JudgedRewrite(
        said,
        before,
        region.new_text,
        turn.path,
        region.proposal.base.lines,
        region.segment.start,
        region.segment.stop,
        region.segment.new_lines,
        all_said,
        torn=turn.redirected_from is not None,
        names=[m.name for m in find_mentions(said).sure if not m.fresh],
        adds=addition is not None,
        wanted=wanted,
    )


def _emptied(answer: Answer) -> list[str]:
    """The files of which an answer leaves no line of code, without asking for their deletion."""
    reply = answer.reply
    named = (*reply.deletions, *(old for old, _ in reply.moves))
    meant = [answer.files.lookup(path, FileOp.UPDATE) for path in named]
    return [
        proposal.path
        for proposal in {id(each.proposal): each.proposal for each in answer.rewrites}.values()
        if proposal not in meant
        and any(map(str.strip, proposal.base.lines))
        and not any(map(str.strip, Overlay(proposal).source.lines))
    ]


def _withheld(answer: Answer, server: ServerLink, status: SessionStatus) -> bool:
    """Take an answer back that is nonsense, and say so; not if part of it is decided."""
    from midstream.edits.doubt.slips import nonsense

    region, turn = answer.region, answer.turn
    if region is None or answer.given is not None or not is_python(turn.path):
        return False
    why = nonsense(_judged_rewrite(answer, region))
    if not why or not region.withdraw(answer.reply):
        return False
    out = way_out(server.others, implied=turn.implied)
    status.warn(
        f"Nothing is proposed: {server.name_or_the_model} {why}. {out[0].upper()}{out[1:]}",
        LARGER_MODEL,
    )
    return True


def way_out(endpoints: Sequence[str], *, implied: bool = False) -> str:
    """Advice on an answer that misses what was meant; the larger model comes last.

    Args:
        endpoints: Other endpoints that can be asked now.
        implied: Whether the session wrote the instruction itself.
    """
    named = ", ".join(endpoints[:MAX_ENDPOINTS])
    first = "change it by hand, ask there in your own words" if implied else "say it in other words"
    return f"{first}, or ask a larger model{f': {named}' if named else ''}."


def unsure_of(model: str, seen: Sequence[str], out: str, about: str = "this change") -> str:
    """The sentence about an answer that the model is unsure of.

    Args:
        model: Its name.
        seen: What speaks against the answer, as sentences without their "it", the worst first.
        out: What to do about it, see ``way_out``.
        about: Which answer it is.
    """
    if seen:
        what = f"may have got {about} wrong: it {joined(seen[:MAX_SIGNS])}"
    else:
        what = f"was not sure of {about} while writing it, so it may be wrong"
    return f"{model} {what}. Read it before you accept it, {out}"


def elsewise(model: str, what: str, out: str) -> str:
    """The sentence about an answer whose text shows that it did something else."""
    return f"{model} did something else: {what}. Look closely, {out}"


def unchanged(model: str, what: str, out: str) -> str:
    """The sentence about an answer that changes nothing.

    The answer does not say why, so both reasons that a model has are named, and the next step.

    Args:
        model: The name of the model.
        what: The code that it left unchanged.
        out: What to do about it, see ``way_out``.
    """
    return (
        f"{model} left {what} {_as_before(what)}: it found nothing to change, or did not "
        f"understand the instruction. If something should change, {out}"
    )


def _as_before(what: str) -> str:
    return "as they are" if what.startswith("lines ") else "as it is"
