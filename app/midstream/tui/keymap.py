# ruff: noqa: E501 (the table is read by columns)
"""Every action of the review screen as data: id, keys, words.

Bindings, the key bar, the help screen and the palette are all made from this one table, so that
none of them can promise a key that does nothing.  Presets and the user's own keys only replace key
strings by id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from textual.binding import Binding

from midstream.tui.page_keys import PAGE_ACTIONS, PAGE_BY_ID, Page, PageAction, actions_of


class Place(StrEnum):
    """Where an action's keys hold."""

    ANYWHERE = "anywhere"
    REVIEW = "review"
    """Wherever keys are not text: the code, the file rail."""
    COMPOSER = "composer"


class Group(StrEnum):
    """Headings of the help screen, in this order."""

    DECIDE = "Decide"
    STEER = "Steer the model"
    MOVE = "Move"
    VIEW = "View"
    PROGRAM = "Program"


@dataclass(frozen=True, slots=True)
class Action:
    """Something a person can do.

    Attributes:
        id: Name for the user's key settings; never changes.
        keys: Default keys, comma separated, in Textual's names.
        call: Textual action of the review screen that does it.
        short: One or two words for the key bar.
        help: A sentence for the help screen and the palette.
        group: Heading in the help screen.
        place: Where the keys hold.
        priority: Whether the keys win over a text field.
    """

    id: str
    keys: str
    call: str
    short: str
    help: str
    group: Group
    place: Place = Place.REVIEW
    priority: bool = False


_D, _S, _M, _V, _P = Group.DECIDE, Group.STEER, Group.MOVE, Group.VIEW, Group.PROGRAM
_C, _A = Place.COMPOSER, Place.ANYWHERE

ACTIONS: Final = (
    Action("hunk.accept", "a", "accept", "accept", "Accept the hunk under the cursor, go on to the next", _D),
    Action("hunk.reject", "r", "reject", "reject", "Reject the hunk under the cursor, go on to the next", _D),
    Action("hunk.accept_rest", "A", "accept_rest", "accept rest", "Accept the hunks of this file that were read; again: the others, except risky ones", _D),
    Action("hunk.reject_rest", "R", "reject_rest", "reject rest", "Reject every undecided hunk of this file", _D),
    Action("hunk.reject_why", "X", "reject_why", "reject, why", "Reject the hunk and say why; the model hears it", _D),
    Action("hunk.split", "s", "split", "split", "Split the hunk at the cursor, or around the marked rows", _D),
    Action("hunk.edit", "e", "edit", "edit", "Edit the new lines of the hunk yourself", _D),
    Action("hunk.release", "L", "release", "release", "Let a quarantined hunk be decided after all, with a reason", _D),
    Action("decision.undo", "u", "undo", "undo", "Take the last decision back, on disk as well", _D),
    Action("decision.redo", "U", "redo", "redo", "Make the decision again that was taken back", _D),
    Action("changes.stage", "S", "stage", "stage", "Stage what was accepted in this file; nothing else of it", _D),
    Action("commit", "C", "commit", "commit", "Commit what was accepted: choose files, write the message", _D),
    Action("hunk.comment", "c", "comment", "comment", "Tell the model about this hunk; it goes on from there", _S),
    Action("hunk.elsewhere", "E", "elsewhere", "elsewhere", "Ask for the same change in the other places where it is wanted", _S),
    Action("effort", "m", "effort", "effort", "Choose how much is done for an answer: one pass, checks, candidates", _S),
    Action("failures", "exclamation_mark", "failures", "what failed", "The edits of answers that found no place, and why", _S),
    Action("context", "f3", "context", "what is sent", "What goes along with the instruction, and what of it is cut", _S, _A, True),
    Action("continuous", "F", "continuous", "follow-on", "Continuous mode: propose the follow-on edits whenever you save a change", _S),
    Action("compose", "i", "compose", "instruct", "Write an instruction for the marked lines", _S),
    Action("choose", "enter", "choose", "instruct", "Write an instruction; in the file list: open the file", _S),
    Action("model.stop", "ctrl+c", "stop", "stop", "Stop the model, keep what is settled; when idle, twice quits", _S, _A, True),
    Action("composer.send", "enter", "send", "send", "Send; while the model writes: redirect it, what is settled stays", _S, _C),
    Action("composer.queue", "alt+enter", "queue", "queue", "Send after the current answer has ended", _S, _C),
    Action("composer.newline", "ctrl+j", "newline", "new line", "Break the line", _S, _C),
    Action("composer.expand", "ctrl+t", "expand", "open paste", "Write out the pasted block that a chip stands for", _S, _C),
    Action("composer.recall", "up", "recall", "recall", "In the first line: earlier instructions", _S, _C),
    Action("composer.leave", "escape", "leave", "back", "Back to the code; the text stays", _S, _C),
    Action("row.down", "j,down", "down", "down", "Next row", _M),
    Action("row.up", "k,up", "up", "up", "Row above", _M),
    Action("hunk.next_undecided", "]", "next_undecided", "next", "Next undecided hunk", _M),
    Action("hunk.previous_undecided", "[", "previous_undecided", "previous", "Undecided hunk above", _M),
    Action("hunk.next", "J,shift+down", "next_hunk", "next hunk", "Next hunk, decided or not", _M),
    Action("hunk.previous", "K,shift+up", "previous_hunk", "previous hunk", "Hunk above, decided or not", _M),
    Action("file.next", "}", "next_file", "next file", "Next open file", _M),
    Action("file.previous", "{", "previous_file", "previous file", "Open file before this one", _M),
    Action("page.down", "space,pagedown", "page_down", "page down", "One page down", _M),
    Action("page.up", "b,pageup", "page_up", "page up", "One page up", _M),
    Action("half.down", "d,ctrl+d", "half_down", "half down", "Half a page down", _M),
    Action("half.up", "ctrl+u", "half_up", "half up", "Half a page up", _M),
    Action("top", "g,home", "top", "top", "First row", _M),
    Action("bottom", "G,end", "bottom", "bottom", "Last row", _M),
    Action("row.left", "h,left", "left", "left", "Show columns further left", _M),
    Action("row.right", "l,right", "right", "right", "Show columns further right", _M),
    Action("follow", "f", "follow", "follow", "Follow the writing, or stop following", _V),
    Action("select", "v", "select", "mark lines", "Mark lines from here, to decide, split, copy or instruct exactly these", _V),
    Action("fold", "z", "fold", "fold", "Show only the changes and some lines around, or everything", _V),
    Action("layout", "t", "layout", "layout", "Layout: automatic, unified, or old and new side by side", _V),
    Action("search", "slash", "search", "search", "Search in this file", _V),
    Action("search.next", "n", "search_next", "next match", "Next match", _V),
    Action("search.previous", "N", "search_previous", "match above", "Match above", _V),
    Action("copy", "y", "copy", "copy", "Copy the marked lines, or the hunk, without the gutter", _V),
    Action("open", "o", "open_file", "open", "Open a file by name", _V),
    Action("rail", "ctrl+e", "rail", "files", "Show or hide the file list", _V),
    Action("suggestions", "x", "suggestions", "examples", "Show or hide the example instructions", _V),
    Action("wrap", "w", "wrap", "wrap", "Wrap long lines, or scroll them sideways with h and l", _V),
    Action("telemetry", "W", "telemetry", "rates, wafer", "Rates measured here, beside what a simulated wafer would do", _V),
    Action("telemetry.anywhere", "f2", "telemetry", "rates, wafer", "Rates and wafer, also while writing", _V, _A, True),
    Action("models", "M", "models", "model", "Choose the model: built-in ones and endpoints", _V),
    Action("theme", "T", "theme", "theme", "Choose a theme", _V),
    Action("pane.next", "tab", "next_pane", "next pane", "Next pane", _P, _A, True),
    Action("pane.previous", "shift+tab", "previous_pane", "previous pane", "Pane before", _P, _A, True),
    Action("palette", "colon", "palette", "palette", "Every action, by name", _P),
    Action("palette.anywhere", "ctrl+p", "palette", "palette", "Every action, by name, also while writing", _P, _A, True),
    Action("help", "question_mark", "help", "keys", "The keys of this place", _P),
    Action("help.anywhere", "f1", "help", "keys", "The keys, also while writing", _P, _A, True),
    Action("sessions", "H", "sessions", "sessions", "Earlier sessions of this folder: take one up again, or delete it", _P),
    Action("settings", "comma", "settings", "settings", "Every setting: its value, where that comes from, and changing it", _P),
    Action("close", "escape", "close", "close", "Close what is open; never stops or sends anything", _P),
    Action("repaint", "ctrl+l", "repaint", "repaint", "Paint the whole screen again", _P, _A, True),
    Action("suspend", "ctrl+z", "suspend", "suspend", "Back to the shell for a while; fg there goes on here", _P),
    Action("quit.twice", "q", "quit_twice", "quit", "Quit, when pressed twice", _P),
    Action("quit", "ctrl+q", "quit", "quit", "Quit; accepted hunks are on disk, the rest is in the journal", _P, _A, True),
)  # fmt: skip
BY_ID: Final = {action.id: action for action in ACTIONS}

PRESETS: Final[Mapping[str, Mapping[str, str]]] = {
    "default": {},
    "git": {
        "hunk.accept": "y",
        "hunk.reject": "n",
        "hunk.accept_rest": "a",
        "hunk.reject_rest": "d",
        "row.down": "j,down",
        "row.up": "k,up",
        "hunk.next": "J",
        "hunk.previous": "K",
        "half.down": "ctrl+d",
        "search.next": "ctrl+n",
        "search.previous": "N",
        "copy": "Y",
    },
    "vim": {
        "page.down": "ctrl+f,pagedown",
        "page.up": "pageup",
        "half.down": "ctrl+d",
        "hunk.next": "J,shift+down",
    },
    "emacs": {
        "row.down": "ctrl+n,down,j",
        "row.up": "up,k",
        "page.down": "ctrl+v,pagedown,space",
        "page.up": "alt+v,pageup,b",
        "top": "alt+less_than_sign,home,g",
        "bottom": "alt+greater_than_sign,end,G",
        "search": "ctrl+s,slash",
        "close": "ctrl+g,escape",
        "decision.undo": "ctrl+underscore,u",
    },
}
"""Key strings by preset and action id."""


def keys_of(preset: str, own: Mapping[str, str] | None = None) -> dict[str, str]:
    """The key string of every action under a preset and the user's own keys.

    A key of the user's own is taken away from the actions that have it by the preset.
    """
    keys = _claimed(preset, own or {})
    for ids in _together():
        taken = {
            key for action_id in ids if own and action_id in own for key in _split(keys, action_id)
        }
        for action_id in ids:
            if taken and action_id not in (own or {}):
                left = [key for key in _split(keys, action_id) if key not in taken]
                keys[action_id] = ",".join(left)
    return keys


def left_without(preset: str, own: Mapping[str, str]) -> list[str]:
    """One sentence for every action whose last key the user's own keys took away."""
    before, after = keys_of(preset), keys_of(preset, own)
    sentences: list[str] = []
    for action_id, keys in before.items():
        if keys and not after[action_id] and action_id not in own:
            key = keys.split(",")[0]
            taker = next(taker for taker in own if key in _split(after, taker))
            sentences.append(
                f'The key {show_key(key)} is "{taker}" now, and "{action_id}" has none; '
                f"give it another in [keys.bind]."
            )
    return sentences


def _claimed(preset: str, own: Mapping[str, str]) -> dict[str, str]:
    changed = {**PRESETS.get(preset, {}), **own}
    everything: tuple[Action | PageAction, ...] = (*ACTIONS, *PAGE_ACTIONS)
    return {action.id: named(changed.get(action.id, action.keys)) for action in everything}


def _split(keys: Mapping[str, str], action_id: str) -> list[str]:
    return [key for key in keys[action_id].split(",") if key]


def named(keys: str) -> str:
    """Comma separated keys with characters by name, as key events have them (``]`` and such)."""
    parts = [part.strip() for part in keys.split(",")] if keys.strip() else []
    return ",".join(
        next(iter(Binding.make_bindings([Binding(part, "")]))).key if len(part) == 1 else part
        for part in parts
    )


def clashes(keys: Mapping[str, str]) -> list[str]:
    """One sentence for every key that two actions of one place claim.

    Args:
        keys: Keys by action id, as ``keys_of`` has them.
    """
    sentences: list[str] = []
    for ids in _together():
        owner: dict[str, str] = {}
        for action_id in ids:
            for key in _split(keys, action_id):
                other = owner.setdefault(key, action_id)
                if other != action_id:
                    sentences.append(
                        f'The key {show_key(key)} is claimed by "{other}" and "{action_id}"; '
                        f"give one of them another key in [keys.bind]."
                    )
    return sentences


def _together() -> Iterator[list[str]]:
    """Ids of the actions whose keys hold at the same time, for every place."""
    for place in (Place.REVIEW, Place.COMPOSER):
        yield [
            action.id
            for action in ACTIONS
            if action.place is place
            or (action.place is Place.ANYWHERE and (place is Place.REVIEW or action.priority))
        ]
    for page in Page:
        if page is not Page.ANY:
            yield [action.id for action in actions_of(page)]


def known_ids() -> frozenset[str]:
    """The id of every action, for the user's key settings."""
    return frozenset(BY_ID) | frozenset(PAGE_BY_ID)


def bindings(*places: Place) -> list[Binding]:
    """Textual bindings, with ids, for the actions of some places."""
    return [
        Binding(
            action.keys,
            f"screen.{action.call}" if action.place is Place.COMPOSER else f"key('{action.id}')",
            action.help,
            show=False,
            id=action.id,
            # A key that is not text acts when it arrives and not after a way through the widgets:
            # in a burst of keys, the ones after "i" must already go to the composer.
            # Leaving the text must come before the keys that follow it as well.
            priority=action.priority
            or action.place is Place.REVIEW
            or action.id == "composer.leave",
        )
        for action in ACTIONS
        if action.place in places
    ]


_SHOWN: Final = {
    "question_mark": "?",
    "slash": "/",
    "exclamation_mark": "!",
    "colon": ":",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "underscore": "_",
    "comma": ",",
    "escape": "esc",
    "pagedown": "pgdn",
    "pageup": "pgup",
}


def show_key(key: str) -> str:
    """One key as people write it: ``ctrl+c``, ``?``, ``esc``."""
    *modifiers, name = key.strip().split("+")
    return "+".join([*modifiers, _SHOWN.get(name, name)])


def key_name(shown: str) -> str:
    """Inverse of ``show_key`` for a key without modifiers; other names come back as they are."""
    return next((name for name, short in _SHOWN.items() if short == shown), shown)


def first_key(keys: Mapping[str, str], action_id: str) -> str:
    """The key the key bar shows for an action."""
    return show_key(keys[action_id].split(",")[0])


def all_keys(keys: Mapping[str, str], action_id: str) -> str:
    """Every key of an action, for the help screen."""
    return " ".join(show_key(key) for key in keys[action_id].split(","))
