"""Keys: presets, the user's own keys, conflicts between them, Textual bindings, escape sequences.

The actions themselves are in ``midstream.actions``; presets and the user's keys replace key strings
by action id.
"""

from __future__ import annotations

import difflib
import string
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, cast

from textual import _ansi_sequences
from textual.binding import Binding
from textual.keys import Keys

from midstream.actions import ACTIONS, BY_ID, PAGES, Place, actions_on

_PLAIN: Final = ("up", "pgup")
"""Keys that an action is left with where a preset takes its letter; they go without saying."""
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
        "page.down": "ctrl+f,pagedown,space",
        "page.up": "ctrl+b,pageup,b",
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


def preset_in_words(preset: str) -> str:
    """The first keys that a preset changes, in a line: ``y accept, n reject and 5 more``."""
    keys, usual = keys_of(preset), keys_of("default")
    changed = [
        f"{first_key(keys, action_id)} {BY_ID[action_id].short}"
        for action_id in PRESETS[preset]
        if first_key(keys, action_id) not in (first_key(usual, action_id), *_PLAIN)
    ]
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    return ", ".join(changed[:3]) + more


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
    return {id_: named(changed.get(id_, action.keys)) for id_, action in BY_ID.items()}


def _split(keys: Mapping[str, str], action_id: str) -> list[str]:
    return [key for key in keys[action_id].split(",") if key]


def named(keys: str) -> str:
    """Comma separated keys with characters by name, as key events have them (``]`` and such)."""
    parts = [part.strip() for part in keys.split(",")] if keys.strip() else []
    return ",".join(_name_of(part) if len(part) == 1 else part for part in parts)


@cache
def _name_of(character: str) -> str:
    return next(iter(Binding.make_bindings([Binding(character, "")]))).key


def clashes(keys: Mapping[str, str]) -> list[str]:
    """One sentence for every key that two actions of one place claim."""
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
    """Groups of action ids whose keys are active at the same time."""
    for place in (Place.REVIEW, Place.COMPOSER):
        yield [action.id for action in ACTIONS if action.place in (place, Place.ANYWHERE)]
    for page in PAGES:
        yield [action.id for action in actions_on(page)]


def bindings(*places: Place) -> list[Binding]:
    """Textual bindings for the review actions of some places; ids are the action ids."""
    return [
        Binding(
            action.keys,
            f"screen.key('{action.id}')",
            action.help,
            show=False,
            id=action.id,
            # Priority bindings act as soon as the key arrives, not after it has bubbled through the
            # widgets: in a burst of keys, those after "i" must already reach the composer.
            priority=action.place is not Place.COMPOSER or action.id == "composer.leave",
        )
        for action in ACTIONS
        if action.place in places
    ]


def page_bindings(page: Place) -> list[Binding]:
    """Textual bindings for a page, and the number keys that answer a question."""
    return [
        *(
            Binding(a.keys, f"page('{a.id}')", a.help, show=False, priority=True, id=a.id)
            for a in actions_on(page)
        ),
        *(Binding(str(n), f"answer({n})", show=False, priority=True) for n in range(1, 10)),
    ]


_MODIFIERS: Final = ("ctrl", "alt", "shift", "super", "hyper", "meta")
_NAMES: Final = frozenset(key.value for key in Keys)
_SHOWN: Final = {
    "question_mark": "?",
    "slash": "/",
    "exclamation_mark": "!",
    "full_stop": ".",
    "colon": ":",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "equals_sign": "=",
    "plus": "+",
    "minus": "-",
    "backslash": "\\",
    "underscore": "_",
    "comma": ",",
    "escape": "esc",
    "pagedown": "pgdn",
    "pageup": "pgup",
}


def show_key(key: str) -> str:
    """One key as shown to the user: ``ctrl+c``, ``?``, ``esc``."""
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


def own_keys(pairs: Iterable[tuple[str, str]]) -> tuple[dict[str, str], list[str]]:
    """The keys that can be used, by action id, and a sentence for every one that cannot.

    Args:
        pairs: Action ids and keys, comma separated (``a,y``, ``ctrl+y``, ``?``); no keys at all
            leave an action to the palette.
    """
    keys: dict[str, str] = {}
    sentences: list[str] = []
    known = sorted(BY_ID)
    for action, text in pairs:
        if action not in known:
            near = difflib.get_close_matches(action, known, n=1, cutoff=0.4)
            hint = f'did you mean "{near[0]}"?' if near else "F1 lists the actions."
            sentences.append(f'[keys.bind] names no action "{action}"; {hint}')
            continue
        names = [_name(part.strip()) for part in text.split(",")] if text.strip() else []
        if None in names:
            wrong = [p.strip() for p in text.split(",")][names.index(None)]
            sentences.append(
                f'[keys.bind] "{action}": there is no key "{wrong}"; write keys as in "a,ctrl+y,?".'
            )
            continue
        keys[action] = ",".join(name for name in names if name)
    return keys, sentences


def key_troubles(preset: str, pairs: Iterable[tuple[str, str]]) -> list[str]:
    """A sentence for every mistake in the user's own keys under a preset."""
    own, wrong = own_keys(pairs)
    return [*wrong, *left_without(preset, own), *clashes(keys_of(preset, own))]


def _name(key: str) -> str | None:
    """A key as key events name it, ``None`` if there is no such key."""
    *modifiers, name = key.split("+") if key != "+" else [key]
    if not name or any(modifier not in _MODIFIERS for modifier in modifiers):
        return None
    name = key_name(name)
    if len(name) > 1 and name not in _NAMES and name not in _SHOWN and not _is_character(name):
        return None
    return "+".join([*modifiers, named(name)])


def _is_character(name: str) -> bool:
    """Whether a name is that of a character, such as ``left_square_bracket``."""
    try:
        unicodedata.lookup(name.replace("_", " "))
    except KeyError:
        return False
    return True


_BEGINNINGS: Final = frozenset("[]OPNX_^\\")
"""Characters that continue longer key sequences."""
_WORDS: Final = frozenset("bf")
"""ESC b and ESC f are what some terminals send for a move by words."""


class _Key(NamedTuple):
    value: str


def teach_sequences(own: Iterable[str] = ()) -> None:
    """Make ESC CR ``alt+enter``, and ESC and a character two keys; checked by contract tests.

    A terminal without the kitty keyboard protocol (and tmux) sends ESC CR for Alt+Enter.  Textual
    reads that as plain Enter, which would redirect the model instead of queueing.  It also sends
    ESC and a character for Escape and that key, if the program was too busy to read in between;
    Textual takes the two for Alt and the key, or drops the Escape.

    Args:
        own: Bound keys, in Textual's names; those with Alt are not split into two keys.
    """
    sequences = cast("dict[str, Any]", _ansi_sequences.ANSI_SEQUENCES_KEYS)
    sequences["\x1b\r"] = (_Key("alt+enter"),)
    bound = set(own)
    for character in string.ascii_letters + string.digits + string.punctuation:
        name = "comma" if character == "," else named(character)
        taken = {f"alt+{name}", f"alt+shift+{name.lower()}"} & bound
        if taken:
            sequences.pop(f"\x1b{character}", None)
        elif character not in _BEGINNINGS | _WORDS:
            sequences[f"\x1b{character}"] = (_Key("escape"), _Key(name))
