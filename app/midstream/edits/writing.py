"""Where a live reply writes: the few things it does to proposals, so that a caller can follow them.

A session notes each of them in its journal and has them watched; a library user takes ``Writer`` as
it is.
"""

from __future__ import annotations

from midstream.edits.proposal import FileProposal
from midstream.edits.segment import Segment


class Writer:
    """Opens, feeds and ends the rewrites of a reply; a subclass may look on."""

    def begin(
        self, proposal: FileProposal, start: int, stop: int, level: int, *, tight: bool
    ) -> Segment:
        """Open a rewrite of base lines ``[start, stop)`` that was found at a rung of the ladder.

        ``tight``: what was inserted at its ends before is not part of it.
        """
        return proposal.begin(start, stop, match_level=level, tight=tight)

    def feed(self, proposal: FileProposal, text: str) -> None:
        """More text of the open rewrite."""
        proposal.feed(text)

    def finish(self, proposal: FileProposal) -> None:
        """The open rewrite is complete."""
        proposal.finish()

    def abandon(self, proposal: FileProposal) -> None:
        """The open rewrite was cut short."""
        proposal.abandon()

    def withdraw(self, proposal: FileProposal, segment: Segment) -> bool:
        """A rewrite stands in the wrong place; whether it could be taken back."""
        return proposal.withdraw(segment)

    def fold(self, proposal: FileProposal) -> None:
        """Take accepted hunks into the base, so that later blocks are looked up in them."""
        proposal.advance(proposal.composed())
