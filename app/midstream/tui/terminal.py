"""What terminals send that Textual reads otherwise, without the kitty keyboard protocol.

Such a terminal (and tmux) sends ESC CR for Alt+Enter.  Textual reads that as plain Enter, which
would redirect the model where the person asked to queue; so the sequence gets its own key name.

It also sends ESC and a character where somebody presses Escape and then that key, and the program
was too busy to read in between.  Textual takes the two for Alt and the key, or drops the Escape;
nothing here is on Alt and a character, so they are two keys.  Contract tests hold both to Textual's
parser.
"""

from __future__ import annotations

import string
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, cast

from textual import _ansi_sequences

from midstream.tui.keymap import named

_BEGINNINGS: Final = frozenset("[]OPNX_^\\")
"""Characters with which longer sequences go on."""
_WORDS: Final = frozenset("bf")
"""ESC b and ESC f are what some terminals send for a move by words."""


class _Key(NamedTuple):
    value: str


def teach_sequences(own: Iterable[str] = ()) -> None:
    """Make ESC CR ``alt+enter``, and ESC and a character two keys.

    Args:
        own: Keys that are bound, in Textual's names; with Alt they stay what they are.
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
