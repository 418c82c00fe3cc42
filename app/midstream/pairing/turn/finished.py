"""Review of a finished answer: notices about it, and any follow-up that it needs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from midstream.code.outline import outline
from midstream.code.syntax import is_python
from midstream.edits.documents import join_lines
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
    from midstream.edits.hunks import Hunk
    from midstream.edits.signs import Signs
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


@dataclass(frozen=True, slots=True)
class _Wish:
    """What a rewrite is compared with.

    Attributes:
        said: The instruction that it answers.
        all_said: The same with those that the kept part of it answers.
        before: The lines that the instruction is about, each ended by a newline.
        file: The same lines as the file has them.
    """

    said: str
    all_said: str
    before: str
    file: str

    @classmethod
    def of(cls, answer: Answer, region: RegionMode) -> _Wish:
        """The wish behind an answer.

        An instruction may be about the file or about what was proposed for it: the text and the
        words must belong to the same one.
        """
        conversation = answer.exchange.conversation
        file = "".join(f"{line}\n" for line in region.old_lines)
        if answer.in_full:
            return cls(answer.in_full, answer.in_full, file, file)
        if region.before is not None and region.before != file:
            said = conversation.instruction or answer.turn.instruction
            return cls(said, said, region.before, file)
        said = answer.turn.instruction
        if answer.turn.follows is FollowUpKind.RENAME:
            said = conversation.instruction
        if answer.turn.follows is FollowUpKind.REDIRECT:
            all_said = "\n".join((*conversation.instructions[:-1], said))
            return cls(said, all_said, file, file)
        return cls(said, said, file, file)

    def signs(self, after: str, *, python: bool) -> Signs:
        """What speaks against a rewrite."""
        from midstream.edits.signs import read_signs

        signs = read_signs(self.said, self.before, after, python=python)
        if self.before != self.file:
            whole = read_signs(self.said, self.file, after, python=python)
            signs = replace(signs, broken=whole.broken, unbound=whole.unbound)
        if self.all_said != self.said:  # A change that was wished for before is no fault.
            every = read_signs(self.all_said, self.before, after, python=python)
            borrowed = tuple(name for name in signs.borrowed if name in every.borrowed)
            signs = replace(signs, deleted=every.deleted, lost=every.lost, borrowed=borrowed)
        return signs


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
            answer.turn.next = await self._next(answer)
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
        before = join_lines(base)
        after = "".join(
            (
                join_lines(base[: region.segment.start]),
                region.new_text,
                join_lines(base[region.segment.stop :]),
            )
        )
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
    from midstream.edits.signs import Signs, overwritten, strangers, vanished

    confidence, turn = answer.confidence.get(answer.text), answer.turn
    region = answer.region
    if region is None:
        if emptied := _emptied(answer):
            turn.unsure = f"The answer empties {', '.join(emptied)}. Look closely."
            turn.doubted = tuple(answer.hunk_ids)
            status.warn(turn.unsure)
        return
    new_text = region.new_text
    if turn.unsure:  # It was doubtful before it was written.
        turn.doubted = tuple(answer.hunk_ids)
        status.warn(turn.unsure)
        return
    wish = _Wish.of(answer, region)
    before, python = wish.before, is_python(turn.path)
    signs = wish.signs(new_text, python=python)
    # The kept lines and the lines after them answer two different instructions.
    torn = () if turn.redirected_from is None else signs.unbound
    grave = Signs(unbound=() if torn else signs.unbound)
    wrong = [] if answer.given is not None else [*seen_in(grave), *_slips(answer, region, wish)]
    if lost:
        wrong.append(f"imports {_quoted(lost)}, which the project does not have")
    loose = _undefined(answer, region, wish.file)
    if confidence is None:
        if python and (gone := vanished(wish.all_said, before, new_text)):
            wrong.append(f"no longer defines {_quoted(gone)}")
        if wrong:
            out = way_out(server.others, implied=turn.implied)
            what = f"it {joined(wrong[:MAX_SIGNS])}"
            turn.unsure = elsewise(server.name_or_the_model, what, out)
            turn.doubted = tuple(answer.hunk_ids)
            if aloud:
                status.warn(turn.unsure, LARGER_MODEL)
        elif loose:
            _tell_undefined(answer, loose, status, aloud=aloud)
        return
    wrong = [*seen_in(Signs(broken=signs.broken)), *wrong]
    turn.confidence = round(confidence.probability, 3)
    unsure = confidence.unsure and not is_renamed(wish.said, before, new_text)
    wrote = frozenset(re.findall(r"\w+", new_text))
    ignored = [n for n in new_names(wish.said) if n.rpartition(".")[2] not in wrote]
    gone = vanished(wish.all_said, before, new_text) if python else ()
    twice = overwritten(before, new_text) if python else ()
    if not (unsure or ignored or gone or twice or torn or wrong):
        if loose:
            _tell_undefined(answer, loose, status, aloud=aloud)
        return
    odd = ()
    if python and not signs.broken and not loose:
        file = "\n".join(region.proposal.base.lines)
        odd = strangers(wish.all_said, file, new_text)
    rest = replace(signs, broken=False, unbound=torn)
    seen = [*wrong, *seen_in(rest, gone, odd)]
    if loose:
        seen.append(f"uses {_quoted(loose)} and does not define {_them(loose)}")
    if twice:
        seen.append(f"made {_quoted(twice)} a parameter, which the function assigns")
    out = way_out(server.others, implied=turn.implied)
    about = f"its change of {turn.path}" if turn.background else "this change"
    if ignored:
        are = "is" if len(ignored[:2]) == 1 else "are"
        what = f"{_quoted(ignored)} {are} nowhere in its answer"
        turn.unsure = elsewise(server.name_or_the_model, what, out)
    elif twice and not gone and not unsure:
        turn.unsure = (
            f"{_quoted(twice)} is a parameter now, and the function assigns a variable of that "
            "name, too. Look closely."
        )
    elif torn and not gone and not unsure:
        are = "is" if len(torn[:2]) == 1 else "are"
        turn.unsure = (
            f"What was kept and what came after the redirect do not fit: {_quoted(torn)} {are} "
            f"still used and no longer defined. Look closely, {out}"
        )
    elif not unsure:
        what = f"it no longer defines {_quoted(gone)}" if gone else f"it {joined(wrong[:2])}"
        turn.unsure = elsewise(server.name_or_the_model, what, out)
    else:
        turn.unsure = unsure_of(server.name_or_the_model, seen, out, about)
    turn.doubted = tuple(answer.hunk_ids)
    if aloud:
        status.warn(turn.unsure, LARGER_MODEL)


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


def _slips(answer: Answer, region: RegionMode, wish: _Wish) -> list[str]:
    """What is wrong with a rewrite whatever the model's confidence, see ``edits.slips``."""
    from midstream.edits.losses import losses
    from midstream.edits.slips import neighbours_again, slips, slips_of_addition

    found: list[str] = []
    lines, segment, new_text = region.proposal.base.lines, region.segment, region.new_text
    if region.addition is None and neighbours_again(lines, segment.start, segment.stop, new_text):
        found.append("wrote the lines around the region again, which are in the file already")
    if region.addition is None:
        # As they are proposed: models leave the margin of a method out.
        after = [*lines[: segment.start], *segment.new_lines, *lines[segment.stop :]]
        said = [m.name for m in find_mentions(wish.said).sure if not m.fresh]
        before = [*lines[: segment.start], *wish.before.split("\n")[:-1], *lines[segment.stop :]]
        texts = wish.before, new_text
        found += losses(wish.said, said, texts, before, after, answer.turn.path)
    if not is_python(answer.turn.path):
        return found
    if isinstance(region.addition, FileAddition):  # It changes nothing that is there.
        new = region.addition.new
        name, tests = ("", False) if new is None else (new.name, new.tests)
        known = region.addition.known
        return slips_of_addition(wish.before, new_text, name=name, tests=tests, subject=known)
    return [*found, *slips(wish.said, wish.before, new_text, "\n".join(lines))]


def _undefined(answer: Answer, region: RegionMode, before: str) -> list[str]:
    """The names that a rewrite uses and nothing in the file defines."""
    from midstream.edits.slips import undefined_names

    if answer.given is not None or not is_python(answer.turn.path):
        return []
    return undefined_names(before, region.new_text, "\n".join(region.proposal.base.lines))


def _tell_undefined(
    answer: Answer, names: Sequence[str], status: SessionStatus, *, aloud: bool
) -> None:
    """Flag an answer that is fine but for names that the file does not have yet."""
    turn = answer.turn
    are = "is" if len(names[:2]) == 1 else "are"
    turn.unsure = (
        f"{_quoted(names)} {are} neither defined nor imported in {turn.path}. Add "
        f"{_them(names)}, or ask for that next."
    )
    turn.doubted = tuple(answer.hunk_ids)
    if aloud:
        status.warn(turn.unsure)


def _withheld(answer: Answer, server: ServerLink, status: SessionStatus) -> bool:
    """Take an answer back that is nonsense, and say so; not if part of it is decided."""
    from midstream.edits.slips import nonsense

    region, turn = answer.region, answer.turn
    if region is None or answer.given is not None or not is_python(turn.path):
        return False
    known = "\n".join(region.proposal.base.lines)
    wish = _Wish.of(answer, region)
    why = nonsense(wish.said, wish.before, region.new_text, known)
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


def seen_in(signs: Signs, gone: Sequence[str] = (), odd: Sequence[str] = ()) -> list[str]:
    """Evidence against a rewrite, as sentences without their subject "it", worst first.

    Args:
        signs: What its lines show.
        gone: Functions that it no longer defines and the instruction does not mention.
        odd: Names that neither the file nor the instruction has.
    """
    found: list[str] = []
    if signs.broken:
        found.append("wrote invalid Python")
    if signs.missing:
        found.append(f"left out {_quoted(signs.missing)}")
    if signs.lost:
        found.append(f"took {_counted(signs.lost)} away")
    if signs.unbound:
        them = _them(signs.unbound)
        found.append(f"still uses {_quoted(signs.unbound)} and no longer defines {them}")
    if gone:
        found.append(f"no longer defines {_quoted(gone)}")
    if odd:
        found.append(f"uses {_quoted(odd)}, which nothing defines")
    if signs.deleted:
        found.append(f"deleted {signs.deleted} line{'s' * (signs.deleted != 1)}")
    if signs.untouched:
        found.append(f"did not change {_quoted(signs.untouched)}")
    if signs.borrowed:
        one = len(signs.borrowed) == 1
        found.append(
            f"took the word{'' if one else 's'} {_quoted(signs.borrowed)} for "
            f"{'a name' if one else 'names'}"
        )
    return found


def _as_before(what: str) -> str:
    return "as they are" if what.startswith("lines ") else "as it is"


def joined(parts: Sequence[str]) -> str:
    """Parts with commas and one ``and``."""
    return " and ".join((", ".join(parts[:-1]), parts[-1])) if len(parts) > 1 else parts[0]


def _quoted(names: Sequence[str]) -> str:
    return joined([f"`{name}`" for name in names[:2]])


def _them(names: Sequence[str]) -> str:
    return "it" if len(names[:2]) == 1 else "them"


def _counted(kinds: Sequence[str]) -> str:
    counts = {kind: kinds.count(kind) for kind in kinds}
    return joined([f"{n} {kind}{'s' * (n != 1)}" for kind, n in counts.items()])
