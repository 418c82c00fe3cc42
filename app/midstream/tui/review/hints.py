"""Which keys the key bar shows: those that are useful at the moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from midstream.actions import ACTIONS, BY_ID
from midstream.edits.hunks import HunkState
from midstream.tui.keymap import first_key
from midstream.tui.widgets.key_bar import KeyHint


@dataclass(frozen=True, slots=True)
class Moment:
    """The facts the choice depends on.

    Attributes:
        background: The running turn is the session's own; an instruction takes its place.
        hunk: State of the hunk under the cursor.
        undecided: Undecided hunks in all files.
        together: Several hunks of this file are undecided, and some may be accepted together.
        partly: Some of the marked lines belong to an undecided hunk.
        cut: The row under the cursor does not fit.
        choosing: A list of mentions is open.
        pasted: A chip stands for a pasted block.
        failed: Edits of the last answer did not match.
    """

    composing: bool = False
    in_rail: bool = False
    typed: bool = False
    running: bool = False
    background: bool = False
    following: bool = False
    file: bool = False
    hunk: HunkState | None = None
    undecided: int = 0
    together: bool = False
    decided: bool = False
    undoable: bool = False
    marked: bool = False
    partly: bool = False
    searching: bool = False
    recallable: bool = False
    rail: bool = False
    cut: bool = False
    choosing: bool = False
    pasted: bool = False
    failed: bool = False


def hints(moment: Moment, keys: dict[str, str]) -> tuple[KeyHint, ...]:
    """The hints, most useful first; help is always the last."""
    chosen: list[KeyHint] = []
    seen: set[str] = set()
    for item in _wanted(moment):
        action_id, _, words = item.partition(":")
        action = BY_ID[action_id]
        if keys[action_id] and action_id not in seen:
            seen.add(action_id)
            key = first_key(keys, action_id)
            if moment.choosing and action_id == "composer.recall":
                key = f"{key}/down"
            chosen.append(KeyHint(key, words or action.short, action.call))
    help_id = "help.anywhere" if moment.composing else "help"
    chosen.append(KeyHint(first_key(keys, help_id), "keys", BY_ID[help_id].call))
    return tuple(chosen)


def _wanted(moment: Moment) -> Iterator[str]:
    if moment.composing:
        yield from _composing(moment)
        return
    if moment.in_rail:
        yield "choose:open"
        yield "open:find file"
        yield "pane.next"
        yield "close:back"
        return
    if moment.hunk is HunkState.SETTLED and not moment.marked:
        yield "hunk.accept"
        yield "hunk.reject"
    if moment.hunk is HunkState.QUARANTINED:
        yield "hunk.release"
        yield "hunk.reject"
    if moment.hunk is HunkState.CONFLICT:
        yield "hunk.reject:dismiss"
    if moment.hunk is HunkState.REJECTED and not moment.marked:
        yield "fold:fold"
        yield "hunk.accept:accept after all"
    if moment.hunk is HunkState.ACCEPTED and not moment.marked:
        yield "hunk.reject:reject after all"
    if moment.partly:
        yield "hunk.accept:accept lines"
        yield "hunk.reject:reject lines"
        yield "hunk.split"
    if moment.undecided and not moment.marked:
        yield (
            "hunk.next_undecided:next hunk"
            if moment.hunk is not HunkState.SETTLED
            else "hunk.next_undecided"
        )
    if moment.running:
        yield "model.stop"
        yield "compose" if moment.background else "compose:redirect"
        if not moment.following:
            yield "follow"
    if moment.failed and not moment.marked:
        yield "failures"
    if moment.together and not moment.marked:
        yield "hunk.accept_rest:accept all"
    if moment.undoable:
        yield "decision.undo"
    if moment.decided and not moment.undecided and not moment.running:
        yield "commit"
    if moment.marked:
        yield "compose:instruct"
        yield "copy"
        yield "close:unmark"
    elif not moment.running:
        yield "compose"
    if moment.hunk is not None and not moment.marked:
        yield from (action.id for action in ACTIONS if moment.hunk in action.offered)
    if moment.cut:
        yield "row.right:rest of line"
    if moment.searching:
        yield "search.next"
        yield "search.previous"
    if moment.file and not moment.marked and not moment.running:
        yield "select"
    yield "open"
    yield "palette"
    if not moment.marked:
        if moment.decided and (moment.undecided or moment.running):
            yield "commit"
        yield "models"
        yield "settings"
        yield "sessions"


def _composing(moment: Moment) -> Iterator[str]:
    if moment.choosing:
        yield "pane.next:take"
        yield "composer.recall:choose"
        yield "composer.leave:close the list"
        return
    if moment.running:
        yield "composer.send" if moment.background else "composer.send:redirect now"
        yield "composer.queue"
        yield "model.stop"
    elif moment.typed:
        yield "composer.send"
    if moment.recallable and not moment.typed:
        yield "composer.recall"
    if moment.rail and not moment.file and not moment.typed:
        yield "pane.next:files"
    if moment.pasted:
        yield "composer.expand"
    yield "composer.newline"
    yield "composer.leave:back to code" if moment.file else "composer.leave"
    yield "palette.anywhere"
