"""Speculative decoding: which tokens to draft, and how many.

An edit mostly repeats its source, so the best guess is the source behind a pointer. A replacement
that the model writes is noted, and expected wherever the replaced part comes up again: a name of
several tokens that becomes another one, a mark that is put behind a line. Without a source, or
where the pointer is lost, the guess is what followed when the last tokens stood somewhere before,
in the prompt or in the output so far (prompt lookup). How many tokens to try weighs what one more
row of a run costs, as measured, against how often drafts were right. A wrong draft costs time,
never text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

STEP = 0.05
"""Largest relative step of an estimate after many measurements. It converges to the median, so that
runs delayed by other work on the machine weigh no more than others.
"""

FORGETTING = 0.6
"""Weight of earlier drafts against the newest one: edits go from copied to new text abruptly."""

MIN_SHARE = 0.01
"""Lower bound: no row is free."""

FREE_ROWS = 2
"""Rows of a run without drafts where drafting may be used (see ``decoder.Decoder.run``)."""


class RowCost:
    """The cost of one more row in a forward pass, as a share of the smallest pass.

    Where products take rows one or two at a time, a row of small weights, which are computed with
    and not waited for, costs a good part of a step more. Integer products take many rows in the
    time of a few; and of large weights the reading takes the time.
    """

    def __init__(self, share: float = 0.15) -> None:
        self._share = _Typical(share)
        self._narrow = _Typical(0.0)

    @property
    def share(self) -> float:
        return self._share.value

    def note(self, rows: int, seconds: float) -> None:
        """Record a run that returned logits."""
        if rows <= FREE_ROWS:
            self._narrow.note(seconds)
        elif self._narrow.value:
            share = (seconds / self._narrow.value - 1) / (rows - FREE_ROWS)
            self._share.note(max(MIN_SHARE, share))


class _Typical:
    """A running median of positive numbers, which follows them where they drift."""

    def __init__(self, value: float) -> None:
        self.value = value
        self._count = 0

    def note(self, measured: float) -> None:
        self._count += 1
        step = 1 + max(STEP, 1 / self._count)
        known = self.value or measured
        self.value = min(max(measured, known / step), known * step)


class DraftLength:
    """Chooses how many tokens to draft, for one generation.

    With every drafted token right with chance q, independently, n of them give 1 + q + ... + q^n
    tokens (Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding"); the
    n is taken that gives the most per time.
    """

    def __init__(self, cost: RowCost, most: int) -> None:
        """Draft at most ``most`` tokens; start as if three of four had been right."""
        self._cost = cost
        self._most = most
        self._right, self._wrong = 3.0, 1.0

    def length(self, given: int = 1) -> int:
        """How many tokens to draft next after ``given`` known ones."""
        chance = self._right / (self._right + self._wrong)
        share = self._cost.share
        best, length = 0.0, 1
        tokens = whole = 1.0
        for count in range(1, self._most + 1):
            whole *= chance
            tokens += whole
            rows = count + given
            if rows % 2:
                # Rows run by twos: the next token costs nothing more.
                continue
            rate = tokens / (1 + share * (rows - FREE_ROWS))
            if rate < best:
                # The rate only falls from here on.
                break
            best, length = rate, count
        return length

    def learn(self, proposed: int, accepted: int) -> None:
        """Record a verification."""
        if proposed:
            self._right = FORGETTING * self._right + accepted
            self._wrong = FORGETTING * self._wrong + (accepted < proposed)


MAX_MATCH = 6
"""Longest run of tokens that is compared to find the place where the output goes on."""

SURE_MATCH = 4
"""Length of a match that resets the pointer even while new text is being written."""

CANDIDATES = 8
"""Latest earlier occurrences of the last two tokens that are compared."""

MAX_OLD_LENGTH = 8
"""Most tokens of the source that a departure is taken to replace."""

MAX_NEW_LENGTH = 48
"""New tokens without a match in the source after which the pointer is lost."""


@dataclass(slots=True)
class _Departure:
    """Where the output left the source, what it wrote instead, and where it may have come back."""

    start: int
    new: list[int]
    end: int | None = None


class Drafter:
    """Proposes the next tokens and learns from what became of them.

    Its text is the prompt, in which the draft is found, and behind it the output.
    """

    def __init__(self, draft: Sequence[int], prompt: Sequence[int]) -> None:
        """Start in front of the draft.

        Args:
            draft: What the output would be if nothing changed; may be empty.
            prompt: What the model reads.
        """
        self._text, self._begin = _lay_out(draft, prompt)
        self._end = self._begin + len(draft)
        self._output = len(self._text)
        self._at: int | None = self._begin if draft else None
        self._inside = 0
        self._departure: _Departure | None = None
        self._replaced: dict[int, tuple[list[int], list[int]]] = {}
        self._pairs: dict[tuple[int, ...], list[int]] = {}
        for place, pair in enumerate(pairwise(self._text), 1):
            self._pairs.setdefault(pair, []).append(place)

    def propose(self, most: int) -> list[int]:
        """Up to ``most`` tokens; fewer or none without anything to go by."""
        at, inside = self._at, self._inside
        departure = self._departure
        if departure is not None and departure.end is None:
            _, at = self._match()
            if at is None and len(departure.new) == 1:
                # One token for another is the commonest change.
                at = departure.start + 1
        return list(islice(self._ahead(at, inside), max(0, most)))

    def learn(self, output: Sequence[int]) -> None:
        """Record tokens that the model has written."""
        text, pairs = self._text, self._pairs
        for token in output:
            self._follow(token)
            pair = (text[-1], token) if text else (token,)
            text.append(token)
            pairs.setdefault(pair, []).append(len(text) - 1)
            if self._at is None:
                self._find_again()

    def _ahead(self, at: int | None, inside: int) -> Iterator[int]:
        """Yield the text from a place on, with the expected changes applied."""
        if at is None:
            return
        limit = self._limit(at)
        while at < limit:
            old, new = self._change(at)
            yield from new[inside:]
            at, inside = at + old, 0

    def _limit(self, at: int) -> int:
        """Where the text that continues at a place ends: the draft, the prompt, the output."""
        if at < self._end:
            return self._end
        return self._output if at < self._output else len(self._text)

    def _change(self, at: int) -> tuple[int, Sequence[int]]:
        """How many tokens of the text are replaced at a place, and by what."""
        old, new = self._replaced.get(self._text[at], ((), ()))
        if old and at < self._end and self._text[at : at + len(old)] == old:
            return len(old), new
        return 1, (self._text[at],)

    def _follow(self, token: int) -> None:
        departure = self._departure
        if departure is not None and departure.end is None:
            self._cross(departure, token)
        elif self._at is not None and self._advance(self._at, token):
            if departure is not None:
                self._note(departure)
        elif departure is not None:
            # The source was met by chance only; what looked like it is new text as well.
            departure.new.append(self._text[-1])
            departure.end = None
            self._at = None
            self._cross(departure, token)
        elif self._at is not None:
            inside, self._inside = self._inside, 0
            at, self._at = self._at, None
            if not inside and self._begin <= at < self._end:
                self._departure = _Departure(at, [])
                self._cross(self._departure, token)

    def _advance(self, at: int, token: int) -> bool:
        """Move the pointer past a token if it is there; returns whether it is."""
        limit = self._limit(at)
        place = at
        while place < limit:
            old, new = self._change(place)
            if new:
                if self._inside < len(new) and new[self._inside] == token:
                    self._inside += 1
                    self._at = place
                    if self._inside == len(new):
                        self._at, self._inside = place + old, 0
                    return True
                break
            place += old
        if self._inside:
            return False
        if at < limit and self._text[at] == token:
            # A change that was expected is not made.
            self._replaced.pop(token, None)
            self._at = at + 1
            return True
        return False

    def _cross(self, departure: _Departure, token: int) -> None:
        """Check whether a token is the source again, after something new."""
        start = departure.start
        for place in range(start, min(start + MAX_OLD_LENGTH + 1, self._end)):
            if self._text[place] == token:
                departure.end, self._at = place, place + 1
                return
        departure.new.append(token)
        if len(departure.new) > MAX_NEW_LENGTH:
            self._departure = None

    def _note(self, departure: _Departure) -> None:
        """Expect the same change wherever the source has the same text again."""
        old = self._text[departure.start : departure.end]
        if old:
            self._replaced[old[0]] = (old, departure.new)
        self._departure = None

    def _find_again(self) -> None:
        """Set the lost pointer to where the output's last tokens occurred before."""
        length, place = self._match()
        if self._departure is None:
            self._at = place
        elif length >= SURE_MATCH and place is not None and self._begin <= place < self._end:
            self._departure, self._at = None, place

    def _match(self) -> tuple[int, int | None]:
        """Return length and end of the longest run of two and more tokens with which the text ends
        and that stood in it before; the latest of several.
        """
        text = self._text
        best, found = 0, None
        for place in self._pairs.get(tuple(text[-2:]), ())[-CANDIDATES - 1 : -1]:
            length = 2
            while (
                length < MAX_MATCH and length <= place and text[place - length] == text[-1 - length]
            ):
                length += 1
            if length >= best:
                best, found = length, place + 1
        return best, found


def _lay_out(draft: Sequence[int], prompt: Sequence[int]) -> tuple[list[int], int]:
    """Return the text to copy from and where in it the draft begins.

    A draft that is no stretch of the prompt is put in front of it.
    """
    size = len(draft)
    for start, token in enumerate(prompt):
        if size and token == draft[0] and list(prompt[start : start + size]) == list(draft):
            return list(prompt), start
    return [*draft, *prompt], 0
