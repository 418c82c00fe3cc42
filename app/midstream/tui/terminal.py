"""What terminals send that Textual does not know: Alt+Enter without the kitty keyboard protocol.

Such a terminal (and tmux) sends ESC CR.  Textual reads that as plain Enter, which would redirect
the model where the person asked to queue; so the sequence gets its own key name.  A contract test
holds it to Textual's parser.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from textual import _ansi_sequences


class _Key(NamedTuple):
    value: str


def teach_alt_enter() -> None:
    """Make ESC CR the key ``alt+enter``."""
    sequences = cast("dict[str, Any]", _ansi_sequences.ANSI_SEQUENCES_KEYS)
    sequences["\x1b\r"] = (_Key("alt+enter"),)
