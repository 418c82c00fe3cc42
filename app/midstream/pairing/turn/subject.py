"""A commit message from the instructions that led to what was accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from midstream.pairing.request.renaming import with_other_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from midstream.edits.hunks import Hunk
    from midstream.pairing.status import Turn

SUBJECT: Final = 50
"""Characters of the first line of a message that every tool shows whole."""
MAX_SUBJECT: Final = 72
"""Characters of the longest first line that is proposed; GitHub cuts longer ones."""


def asked(turns: Sequence[Turn], hunks: Iterable[Hunk]) -> tuple[str, ...]:
    """The instructions that led to the newest accepted change, oldest first.

    More than one where a later answer rewrote an earlier one: what the last of them names may never
    have been in the repository. An instruction that only corrects a name is merged into the one
    before it.
    """
    known = tuple(hunks)
    accepted = {hunk.rank[0] for hunk in known if hunk.state == "accepted"}
    change: list[Turn] = []
    for turn in reversed(turns):
        if not change:
            if accepted.intersection(turn.hunks):
                change.append(turn)
        elif _rewritten(turn, change[-1], known):
            change.append(turn)
    words: list[str] = []
    for turn in reversed(change):
        said = turn.instruction
        if turn.correction or said in words:
            continue
        if words and (again := with_other_name(words[-1], said)):
            words[-1] = again
        else:
            words.append(said)
    return tuple(words)


def commit_message(turns: Sequence[Turn], hunks: Iterable[Hunk]) -> str:
    """A commit message begun with those instructions, ``""`` where the first is too long.

    The others are part of the subject where they fit, else they stand below it.
    """
    first, *others = [" ".join(words.split()) for words in asked(turns, hunks)] or [""]
    if not first or len(first) > MAX_SUBJECT:
        return ""
    one = "; ".join((first, *others))
    text = one if len(one) <= SUBJECT or not others else "\n".join((first, "", *others))
    return text[:1].upper() + text[1:]


def _rewritten(turn: Turn, later: Turn, hunks: Sequence[Hunk]) -> bool:
    """Whether a later turn continued a turn, superseded hunks of it, or only names anew."""
    if later.redirected_from == turn.id:
        return True
    ids = set(turn.hunks)
    over = any(hunk.state == "superseded" for hunk in hunks if hunk.rank[0] in ids)
    over = over or bool(with_other_name(turn.instruction, later.instruction))
    same = turn.symbol == later.symbol if turn.symbol and later.symbol else False
    meet = turn.start < later.stop and later.start < turn.stop
    return over and turn.path == later.path and (same or meet)
