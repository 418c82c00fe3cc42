"""What a live reply does to proposals, and who hears of it.

A library user needs no observer; a session writes every step to its journal and has the guard watch
each rewrite.
"""

from __future__ import annotations

from midstream.edits.proposal import FileProposal
from midstream.edits.segment import Segment


class ReplyObserver:
    """Hears of every step right after it was taken; a subclass overrides what it needs."""

    def began(self, proposal: FileProposal, segment: Segment, *, tight: bool) -> None:
        """A rewrite was opened; ``tight`` leaves out what was inserted at its ends before."""

    def fed(self, proposal: FileProposal, text: str) -> None:
        """Text was added to the open rewrite."""

    def finished(self, proposal: FileProposal) -> None:
        """The open rewrite is complete."""

    def abandoned(self, proposal: FileProposal) -> None:
        """The open rewrite was cut short."""

    def withdrawn(self, proposal: FileProposal, segment: Segment, *, done: bool) -> None:
        """A rewrite was to be taken back; not ``done`` where part of it is decided."""

    def folded(self, proposal: FileProposal) -> None:
        """Accepted hunks became part of the base."""


class Writer:
    """Opens, feeds and ends rewrites, and notifies an observer."""

    def __init__(self, observer: ReplyObserver | None = None) -> None:
        self._observer = observer or ReplyObserver()

    def begin(
        self, proposal: FileProposal, start: int, stop: int, level: int, *, tight: bool
    ) -> Segment:
        """Open a rewrite of base lines ``[start, stop)``, matched at a level of the ladder.

        ``tight``: what was inserted at its ends before is not part of it.
        """
        segment = proposal.begin(start, stop, match_level=level, tight=tight)
        self._observer.began(proposal, segment, tight=tight)
        return segment

    def feed(self, proposal: FileProposal, text: str) -> None:
        """Add text to the open rewrite."""
        proposal.feed(text)
        self._observer.fed(proposal, text)

    def finish(self, proposal: FileProposal) -> None:
        """End the open rewrite, which is complete."""
        proposal.finish()
        self._observer.finished(proposal)

    def abandon(self, proposal: FileProposal) -> None:
        """End the open rewrite, which was cut short."""
        proposal.abandon()
        self._observer.abandoned(proposal)

    def withdraw(self, proposal: FileProposal, segment: Segment) -> bool:
        """Take a rewrite back, if nothing of it is decided; whether that was possible."""
        done = proposal.withdraw(segment)
        self._observer.withdrawn(proposal, segment, done=done)
        return done

    def fold(self, proposal: FileProposal) -> None:
        """Take accepted hunks into the base, so that later blocks are looked up in them."""
        proposal.advance(proposal.composed())
        self._observer.folded(proposal)
