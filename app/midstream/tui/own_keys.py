"""Keys of the person's own, from ``[keys.bind]``: read as people write them, mistakes named."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from typing import Final

from textual.keys import Keys

from midstream.tui.keymap import clashes, key_name, keys_of, known_ids, left_without, named

_MODIFIERS: Final = ("ctrl", "alt", "shift", "super", "hyper", "meta")
_NAMES: Final = frozenset(key.value for key in Keys)


def own_keys(pairs: Iterable[tuple[str, str]]) -> tuple[dict[str, str], list[str]]:
    """The keys that can be used, by action id, and a sentence for every one that cannot.

    Args:
        pairs: Action ids and keys, comma separated (``a,y``, ``ctrl+y``, ``?``); no keys at all
            leave an action to the palette.
    """
    keys: dict[str, str] = {}
    sentences: list[str] = []
    known = known_ids()
    for action, text in pairs:
        if action not in known:
            near = difflib.get_close_matches(action, sorted(known), n=1, cutoff=0.4)
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
    """A sentence for everything that is wrong with the person's own keys under a preset."""
    own, wrong = own_keys(pairs)
    return [*wrong, *left_without(preset, own), *clashes(keys_of(preset, own))]


def _name(key: str) -> str | None:
    """A key as key events name it, ``None`` if there is no such key."""
    *modifiers, name = key.split("+") if key != "+" else [key]
    if not name or any(modifier not in _MODIFIERS for modifier in modifiers):
        return None
    name = key_name(name)
    if len(name) > 1 and name not in _NAMES and not _is_character(name):
        return None
    return "+".join([*modifiers, named(name)])


def _is_character(name: str) -> bool:
    """Whether a name is that of a character, such as ``left_square_bracket``."""
    try:
        unicodedata.lookup(name.replace("_", " "))
    except KeyError:
        return False
    return True
