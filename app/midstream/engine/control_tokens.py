"""Control tokens of a tokenizer, and texts that spell them.

A template marks turns with control tokens. Where the text of a file or of a user spells one, it is
text like any other: it must neither end a turn nor begin one.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final

from midstream.engine.bounded_prompt import token_ids

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_JOINTS: Final = range(0xE000, 0xF900)
"""Private characters, of which no text has all."""


class ControlTokens:
    """Tells the control tokens of a template from texts that spell them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        added = tokenizer.get_added_tokens_decoder()
        self._ids = {token.content: number for number, token in added.items() if token.special}
        spelled = sorted(map(re.escape, filter(None, self._ids)), key=len, reverse=True)
        self._spelled = re.compile("|".join(spelled)) if spelled else None
        self._tokenizer = tokenizer

    @property
    def ids(self) -> frozenset[int]:
        """The ids of all control tokens."""
        return frozenset(self._ids.values())

    def spelled(self, text: str) -> frozenset[int]:
        """The ids of the control tokens that a text spells."""
        found = self._spelled.findall(text) if self._spelled is not None else ()
        return frozenset(self._ids[name] for name in found)

    def joint(self, texts: list[str]) -> str:
        """A character that no text has, to take control tokens apart with."""
        used = set(chain.from_iterable(texts))
        return next(joint for number in _JOINTS if (joint := chr(number)) not in used)

    def apart(self, text: str, joint: str) -> str:
        """The text with a joint within whatever spells a control token."""
        if self._spelled is None:
            return text
        return self._spelled.sub(lambda found: found[0][:1] + joint + found[0][1:], text)

    def encode(self, text: str, joint: str) -> list[int]:
        """The tokens of a text, without the joints in it."""
        pieces = text.split(joint) if joint and joint in text else [text]
        return token_ids(self._tokenizer, pieces)
