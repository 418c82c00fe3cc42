"""How long hunks were on screen: the basis of "accept the rest" and of the summary.

A hunk counts as read once each of its lines was on screen, in focus, for a time that grows with the
hunk up to ``MAX_LINE_S``.  Time counts per line: a hunk read in two halves is read, and the bottom
of a long one is unread until it was scrolled to.  That measures opportunity only, not review, and
no text of the program claims otherwise.  Pure: no clock, no screen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    from midstream.edits.hunk_store import HunkStore
    from midstream.edits.hunks import Hunk
    from midstream.pairing.journal.entries import ReadSoFar

PER_LINE_S: Final = 0.1
"""Seconds on screen per changed line."""
MIN_LINE_S: Final = 0.4
"""Seconds on screen for the smallest hunk."""
MAX_LINE_S: Final = 1.5
"""Seconds on screen after which no line counts as unread, however large its hunk.

A warning has to be right: 0.5 s per line and no limit fired for hunks that had been in full view
for two seconds, and users learnt to press the key twice.
"""
MAX_STEP_S: Final = 1.0
"""Cap on the time credited between two samples."""

_CHECK: Final = re.compile(
    r"^\s*(?:assert\b|raise\b|(?:async\s+)?def test_|@pytest\b|self\.assert\w+\("
    r"|(?:expect|it|test)\(|(?:check|verify|validate|require|ensure)_?\w*\()",
    re.IGNORECASE,
)
_RISKS: Final = tuple(
    (what, re.compile(pattern, re.IGNORECASE))
    for what, pattern in (
        (
            "authentication",
            r"\b(?:auth|authn|authz|oauth\w*|authenticat\w*|authoriz\w*|login|logout|is_admin"
            r"|permissions?|csrf|jwt|password\w*|credentials?)\b",
        ),
        (
            "SQL",
            r"\b(?:select\s.+\sfrom|insert\s+into|update\s+\w+\s+set|delete\s+from|drop\s+table)\b"
            r"|\.execute(?:many)?\(",
        ),
        (
            "running programs",
            r"\bsubprocess\b|\bos\.(?:system|popen|exec\w*)\b|\bPopen\b|\bchild_process\b"
            r"|\b(?:eval|exec)\(",
        ),
    )
)


class Reading(StrEnum):
    """How long a hunk was on screen, measured against its size."""

    UNSEEN = "unseen"
    """Some of its lines were never on screen."""
    GLIMPSED = "glimpsed"
    READ = "read"


class Sighting(NamedTuple):
    """A hunk on screen, and which share of it, from the top: 0.0 to 1.0 where it is all there."""

    hunk: Hunk
    first: float = 0.0
    last: float = 1.0


class _Sight(Struct):
    new: tuple[str, ...]
    old: tuple[str, ...]
    seconds: list[float]
    """For each changed line, how long it was on screen."""
    risk: str | None = None
    """The answer of ``risk_of``, once it was asked."""


class Bulk(Struct, frozen=True):
    """What "accept the rest" does with hunks.

    Attributes:
        read: Accepted at the first press.
        unread: Accepted at the second press.
        risky: Accepted one by one only, each with the reason.
    """

    read: tuple[int, ...]
    unread: tuple[int, ...]
    risky: tuple[tuple[int, str], ...]


class Numbers(Struct, frozen=True):
    """How much was accepted, and how much of it unread; lines are added plus deleted ones."""

    hunks: int
    lines: int
    unread_hunks: int
    unread_lines: int


class Attention:
    """Seconds on screen by hunk.

    Args:
        on: Whether to measure; if not, every hunk counts as read.
        flagged: Why a hunk should be reviewed by itself, or ``""``.
        resumed: How far the reader of an earlier session had come, which is gone on with.
    """

    def __init__(self, on: bool, flagged: Callable[[Hunk], str], resumed: ReadSoFar) -> None:
        self.on = on
        self._flagged = flagged
        self._sights = {
            hunk_id: _Sight(seen.new, seen.old, seen.seconds)
            for hunk_id, seen in resumed.seen.items()
            if len(seen.seconds) == max(1, len(seen.new) + len(seen.old))
        }
        self._accepted = {hunk_id: Reading(how) for hunk_id, how in resumed.accepted.items()}
        self._together = resumed.together
        """By hunk, the group that it was accepted with."""
        self._news: tuple[set[int], set[int]] = set(), set()
        """The hunks that were on screen, and those that were accepted, since ``news``."""

    def look(self, shown: Iterable[Sighting], seconds: float) -> None:
        """Credit hunks with time on screen and in focus.

        Args:
            shown: The hunks on screen.
            seconds: For how long.
        """
        step = min(max(seconds, 0.0), MAX_STEP_S)
        for hunk, first, last in shown:
            credit = self._sight(hunk).seconds
            begin, end = math.ceil(first * len(credit)), math.floor(last * len(credit))
            # Seconds beyond the limit say nothing new: a hunk left on screen is not written again.
            if any(value < MAX_LINE_S for value in credit[begin:end]):
                self._news[0].add(hunk.id)
            for line in range(begin, end):
                credit[line] += step

    def reading(self, hunk: Hunk) -> Reading:
        """Whether a hunk was on screen long enough to be read."""
        if not self.on:
            return Reading.READ
        seconds = min(self._sight(hunk).seconds)
        if seconds >= needed_s(hunk):
            return Reading.READ
        return Reading.GLIMPSED if seconds > 0 else Reading.UNSEEN

    def accepted_all(self, store: HunkStore, hunk_ids: Iterable[int]) -> None:
        """Record how far hunks were read when they were accepted, for the summary."""
        known = {hunk.id: hunk for hunk in store}
        for hunk_id in hunk_ids:
            self._together.pop(hunk_id, None)  # it may have been accepted before, and undone
            if hunk_id in known:
                self._accepted[hunk_id] = self.reading(known[hunk_id])
                self._news[1].add(hunk_id)

    def accepted_together(self, group: str, hunk_ids: Iterable[int]) -> None:
        """Record that hunks were accepted as one decision, after one of them was read."""
        self._together |= {
            hunk_id: group for hunk_id in hunk_ids if self._accepted.get(hunk_id) != Reading.READ
        }
        self._news[1].update(i for i in hunk_ids if i in self._accepted)

    def news(
        self,
    ) -> tuple[
        list[tuple[int, list[tuple[float, int]]]], list[tuple[int, str]], list[tuple[int, str]]
    ]:
        """What is new since the last call, as a ``ReadingEntry`` has it."""
        seen, accepted = self._news
        self._news = set(), set()
        return (
            [(hunk_id, _runs(self._sights[hunk_id].seconds)) for hunk_id in sorted(seen)],
            [(hunk_id, str(self._accepted[hunk_id])) for hunk_id in sorted(accepted)],
            [(i, self._together[i]) for i in sorted(accepted) if i in self._together],
        )

    def was_unread(self, hunk: Hunk) -> bool:
        """Whether a hunk was accepted by itself before it was read."""
        reading = self._accepted.get(hunk.id, Reading.READ)
        return reading is not Reading.READ and hunk.id not in self._together

    def in_groups(self, hunks: Iterable[Hunk]) -> tuple[int, int]:
        """How many of some hunks were accepted in groups, and how many groups these are."""
        mine = [hunk.id for hunk in hunks if hunk.state == "accepted" and hunk.id in self._together]
        return len(mine), len({self._together[hunk_id] for hunk_id in mine})

    def numbers(self, hunks: Iterable[Hunk]) -> Numbers:
        """How many of some hunks were accepted, and how many of these unread."""
        accepted = [hunk for hunk in hunks if hunk.state == "accepted"]
        unread = [hunk for hunk in accepted if self.was_unread(hunk)]
        return Numbers(
            len(accepted),
            sum(hunk.added + hunk.deleted for hunk in accepted),
            len(unread),
            sum(hunk.added + hunk.deleted for hunk in unread),
        )

    def trailer(self, hunks: Iterable[Hunk]) -> str:
        """A commit message trailer about ``hunks``; ``""`` if none was accepted or it is off."""
        hunks = list(hunks)
        numbers = self.numbers(hunks)
        if not self.on or not numbers.hunks:
            return ""
        words = (
            f"Accepted-Unread: {numbers.unread_hunks} of {_many(numbers.hunks, 'hunk')}, "
            f"{numbers.unread_lines} of {_many(numbers.lines, 'line')}"
        )
        together, groups = self.in_groups(hunks)
        if together:
            words += f"\nAccepted-In-Groups: {_many(together, 'hunk')} in {_many(groups, 'group')}"
        return words

    def brief(self, hunks: Iterable[Hunk]) -> str:
        """How many hunks were accepted unread and in groups, in a few words; ``""`` for nothing."""
        hunks = list(hunks)
        unread, together = self.numbers(hunks).unread_hunks, self.in_groups(hunks)[0]
        if not self.on or not (unread or together):
            return ""
        if not unread:
            return f"{_many(together, 'hunk')} in groups"
        return f"{_many(unread, 'hunk')} unread" + (f", {together} in groups" if together else "")

    def bulk(self, hunks: Iterable[Hunk]) -> Bulk:
        """Sort undecided hunks by whether they may be accepted together."""
        read: list[int] = []
        unread: list[int] = []
        risky: list[tuple[int, str]] = []
        for hunk in hunks:
            if why := self.why_alone(hunk):
                risky.append((hunk.id, why))
            elif self.reading(hunk) is Reading.READ:
                read.append(hunk.id)
            else:
                unread.append(hunk.id)
        return Bulk(tuple(read), tuple(unread), tuple(risky))

    def any_together(self, hunks: Iterable[Hunk]) -> bool:
        """Whether any of these may be accepted with others; cheap enough for every frame."""
        return any(not self.why_alone(hunk) for hunk in hunks)

    def why_alone(self, hunk: Hunk) -> str:
        """Why a hunk is not accepted together with others, ``""`` if it may be."""
        if why := self._flagged(hunk):
            return why
        if not self.on:
            return ""
        sight = self._sight(hunk)
        if sight.risk is None:
            sight.risk = risk_of(hunk)
        return sight.risk

    def summary(self, hunks: Iterable[Hunk]) -> str:
        """What was accepted unread or in groups; ``""`` for nothing, or when it is off."""
        hunks = list(hunks)
        numbers = self.numbers(hunks)
        sentences: list[str] = []
        if self.on and numbers.unread_hunks:
            sentences.append(
                f"{numbers.unread_hunks} of {_many(numbers.hunks, 'hunk')} "
                f"({_many(numbers.unread_lines, 'line')}) accepted without having been on screen "
                "long enough to be read."
            )
        together, groups = self.in_groups(hunks)
        if self.on and together:
            many = _many(groups, "group") + ", each" * (groups > 1)
            sentences.append(
                f"{_many(together, 'hunk')} accepted unread in {many} after "
                "one of its hunks was read."
            )
        return " ".join(sentences)

    def _sight(self, hunk: Hunk) -> _Sight:
        sight = self._sights.get(hunk.id)
        new, old = hunk.new, hunk.old
        if sight is None or sight.new != new or sight.old != old:
            seconds = [0.0] * max(1, len(new) + len(old))
            if sight is None:
                whole = self._sights.get(hunk.rank[0])
                if whole is not None and set(new) <= {*whole.new} and set(old) <= {*whole.old}:
                    # Part of a hunk that was split: its lines have been on screen before.
                    seconds = [min(whole.seconds)] * len(seconds)
            elif new[: len(sight.new)] == sight.new and old[: len(sight.old)] == sight.old:
                # The stream has added lines below.
                seconds[: len(sight.seconds)] = sight.seconds
            sight = self._sights[hunk.id] = _Sight(new, old, seconds)
        return sight


def _runs(seconds: list[float]) -> list[tuple[float, int]]:
    """Seconds on screen, and of how many lines one after the other."""
    rounded = (round(min(value, MAX_LINE_S), 2) for value in seconds)
    return [(value, len(list(lines))) for value, lines in groupby(rounded)]


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def needed_s(hunk: Hunk) -> float:
    """Seconds that each line has to be on screen for the hunk to count as read."""
    return min(MAX_LINE_S, max(MIN_LINE_S, PER_LINE_S * (hunk.added + hunk.deleted)))


def risk_of(hunk: Hunk) -> str:
    """Why the content of a hunk asks for a review by itself, ``""`` for no reason."""
    gone = sum(bool(_CHECK.search(line)) for line in hunk.old)
    if gone > sum(bool(_CHECK.search(line)) for line in hunk.new):
        return "takes a test or a check away"
    changed = [*hunk.old, *hunk.new]
    for what, pattern in _RISKS:
        if any(pattern.search(line[:1000]) for line in changed):
            return f"is about {what}"
    return ""
