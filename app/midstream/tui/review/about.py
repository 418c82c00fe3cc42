"""What is known about a hunk, in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Final

from midstream.counting import counted
from midstream.edits.hunks import HunkState
from midstream.pairing.status import CUT, UNSURE, FollowUpKind, Turn
from midstream.tui.clock import when
from midstream.tui.visible import visible

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk
    from midstream.pairing.journal.entries import ProvenanceEntry
    from midstream.pairing.session import PairingSession

_BOLD: Final = re.compile(r"\*\*(?=\S)([^*]+)(?<=\S)\*\*")
"""Markdown, which these rows are not."""


def why_marked(hunk: Hunk, session: PairingSession) -> str:
    """Why a hunk is marked, in full; ``""`` if it is not."""
    if hunk.state is HunkState.HELD:
        return f"Held back by the guard: {hunk.note}."
    if hunk.state in (HunkState.CONFLICT, HunkState.REJECTED):
        return f"{hunk.outcome.capitalize()}{f': {hunk.note}' if hunk.note else ''}."
    if hunk.postponed is not None:
        return f"It will be put back{f': {hunk.postponed}' if hunk.postponed else ''}."
    reason = session.reason(hunk)
    if reason in (UNSURE, CUT):
        asked = session.turns.of(hunk)
        return (asked.unsure or asked.error if asked else "") or f"Flagged: {reason}."
    return f"Flagged: {reason}." if reason else ""


def who_and_why(hunk: Hunk, session: PairingSession) -> Iterator[str]:
    """Who wrote a hunk, what was asked, and what was said about it."""
    if hunk.external and (revisions := session.workspace.snapshot_of):
        yield f"From {visible(revisions)}."
    elif (known := session.provenance.of(hunk)) is not None:
        yield from _of_another(known)
    elif (turn := session.turns.of(hunk)) is not None:
        yield from _of_the_model(turn, session)
    if hunk.own:
        yield "You have changed its new lines."


def _of_another(known: ProvenanceEntry) -> Iterator[str]:
    seen, turn = when(known.seen), f"turn {known.turn}" if known.turn else ""
    if known.proven:
        yield f"{', '.join(filter(None, (known.author, turn)))}, noticed {seen}"
    elif known.earlier:
        yield (
            f"It was there when the review began, {seen}: it is not staged, or was written while "
            "Midstream did not run."
        )
    elif known.author:
        yield (
            f"Written on disk, noticed {seen} while {known.author} worked"
            f"{f' ({turn})' if turn else ''}; no edit that it reported has all of these lines."
        )
    else:
        yield f"Written on disk by another program or your editor, noticed {seen}."
    if known.asked:
        yield f"asked: {_in_one_line(known.asked)}"
    if known.said:
        yield "said:  " + _BOLD.sub(r"\1", _in_one_line(known.said))
    if known.tool:
        yield f"{'by:   ' if known.proven else 'last command:'} {_in_one_line(known.tool)}"


def _of_the_model(turn: Turn, session: PairingSession) -> Iterator[str]:
    yield f"The model, for {turn.path}" + (", asked by Midstream itself" if turn.background else "")
    chain = [turn]
    by_id = {each.id: each for each in session.turns}
    while (before := by_id.get(chain[0].redirected_from or 0)) is not None:
        chain.insert(0, before)
    for instruction, turns in groupby(chain, key=lambda each: each.instruction):
        first, *more = turns
        yield f"{_how_asked(first)}: {_in_one_line(instruction)}"
        for how, again in groupby(more, key=_how_asked):
            yield f"{how}, {counted(len(list(again)), 'time')}"
    if turn.tried:
        yield f"{turn.tried}."


def _how_asked(turn: Turn) -> str:
    if turn.follows is FollowUpKind.UNCHANGED:
        return "asked again"
    return "corrected" if turn.correction else "implied" if turn.implied else "asked"


def _in_one_line(text: str) -> str:
    return " ".join(text.split())
