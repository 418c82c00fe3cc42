"""The pieces in which the text of a message comes, and the new part of each.

A piece holds what was not said before. Some servers send all so far with every piece, and some
gateways send everything once more at the end, in the field for what is new; then only what is new
in it counts.
"""

from __future__ import annotations

from typing import Final

_MIN_REPEATED: Final = 40
"""Characters of a text that nothing but a repetition brings a second time."""
_MIN_PIECES: Final = 3
"""Pieces of an answer before which none counts as a repetition."""
_OUTLIER: Final = 2
"""How many times longer than every earlier piece a repetition is."""


class TextPieces:
    """Tells what is new in the pieces of one message.

    Attributes:
        contradict: Whether a piece of a server that sends all so far was something else.
    """

    def __init__(self) -> None:
        self.contradict = False
        self._said = ""
        self._pending = ""
        self._count = self._longest = 0
        self._whole = False

    def new(self, piece: str) -> str:
        """What is new in a piece."""
        if not piece:
            return ""
        pending, self._pending = self._pending, ""
        if pending:
            # The second piece began as the first, which can be chance; a third that begins as the
            # second cannot.
            self._whole = len(piece) > len(pending) and piece.startswith(pending)
            piece = piece if self._whole else pending + piece
        elif self._may_be_whole(piece):
            self._pending = piece
            return ""
        if self._whole:
            if not piece.startswith(self._said):
                self.contradict = self.contradict or not self._said.startswith(piece)
                return ""
            piece = piece[len(self._said) :]
        elif self._repeats(piece):
            return ""
        self._said += piece
        self._count += 1
        self._longest = max(self._longest, len(piece))
        return piece

    def end(self) -> str:
        """End the text; returns the new part of a piece that was held back."""
        pending, self._pending = self._pending, ""
        if pending and len(self._said) >= _MIN_REPEATED:
            pending = pending[len(self._said) :]
        self._said += pending
        return pending

    def _may_be_whole(self, piece: str) -> bool:
        """Whether the second piece holds the first."""
        longer = self._count == 1 and len(piece) > len(self._said)
        return longer and bool(self._said.strip()) and piece.startswith(self._said)

    def _repeats(self, piece: str) -> bool:
        """Whether a piece is all that was said, once more."""
        return (
            self._count >= _MIN_PIECES
            and len(piece) >= max(_MIN_REPEATED, _OUTLIER * self._longest)
            and piece.strip() == self._said.strip()
        )
