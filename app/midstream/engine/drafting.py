"""Drafts for speculative decoding: tokens that the model will probably write, from text at hand.

An edit mostly repeats its source, so the best guess is the source behind a pointer. Where the model
departs from it, a replaced token is assumed first (and guessed again wherever the old one comes
up), and one token put in behind a line is expected behind the next. If that fails, the pointer is
set anew behind the longest run of tokens that output and text share, nearest to where it was.
Nothing here touches the model: a wrong draft costs time, never text.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

LONGEST_MATCH = 4
"""Longest run of tokens that is looked up to set the pointer anew."""

NEAR = 12
"""A single token that is not unique sets the pointer anew only so near to its last place."""


class Drafter:
    """Proposes the next tokens and learns from what became of them.

    The text is the prompt, with the draft's tokens found in it. Stretches of the prompt between two
    draft tokens are skipped, because the draft says that the output will, unless something in them
    has been replaced before: a line that contains a renamed name will be written out.
    """

    def __init__(
        self, draft: Sequence[int], prompt: Sequence[int], *, first: int = 3, most: int = 16
    ) -> None:
        """Start in front of the draft.

        Args:
            draft: what the output would be if nothing changed; may be empty.
            prompt: what the model reads.
            first: tokens proposed at the start, and at least after a draft was taken in part.
            most: tokens proposed at most; the number doubles while drafts are taken whole and falls
                to one when nothing of a draft is taken.
        """
        self._text, places = _lay_out(draft, prompt)
        self._at: int | None = places[0] if places else None
        self._end = places[-1] + 1 if places else len(self._text)
        self._skips = {a + 1: b for a, b in pairwise(places) if b > a + 1}
        # Where a draft token stands that the draft has once: it can mean no other place.
        counts = Counter(draft)
        self._landmarks = {place for place in places if counts[self._text[place]] == 1}
        self._mark = -1
        self._behind: list[int] = []
        self._habit: int | None = None
        self._last = self._at or 0
        self._first = first
        self._most = most
        self._length = first
        self._output: list[int] = []
        self._swaps: dict[int, int] = {}
        self._doubt: tuple[int, int] | None = None
        self._index: dict[int, list[int]] = defaultdict(list)
        for place, token in enumerate(self._text):
            self._index[token].append(place)

    def propose(self, room: int) -> list[int]:
        """Return up to `room` tokens, fewer or none where there is nothing to go by."""
        if self._habit is not None and self._behind in ([], [self._habit]):
            tokens = self._repeating(self._habit)
        else:
            tokens = self._following()
        return list(islice(tokens, max(0, min(self._length, room))))

    def _following(self) -> Iterator[int]:
        """Yield the text behind the pointer."""
        at = self._at
        while at is not None:
            at = self._next(at)
            if at >= len(self._text):
                return
            yield self._swaps.get(self._text[at], self._text[at])
            at += 1
            if at == self._end:
                return

    def _repeating(self, habit: int) -> Iterator[int]:
        """Yield the landmarks to come, with the token that was put in behind the last one."""
        if not self._behind:
            yield habit
        for place in sorted(place for place in self._landmarks if place > self._mark):
            yield self._text[place]
            if place + 1 < self._end:
                yield habit

    def learn(self, proposed: int, accepted: int, output: Sequence[int]) -> None:
        """Take note of a verification.

        Args:
            proposed: how many tokens were drafted.
            accepted: how many of them the model agreed with.
            output: the tokens that the run produced (the accepted ones and the model's own next).
        """
        if proposed and accepted == proposed:
            self._length = min(2 * self._length + 1, self._most)
        elif proposed:
            self._length = max(self._first, accepted) if accepted else 1
        for token in output:
            self._output.append(token)
            self._follow(token)
            self._note_habit(token)
        del self._output[:-LONGEST_MATCH]

    def _next(self, at: int) -> int:
        """Return where the token expected at a place stands: behind a stretch that is left out."""
        end = self._skips.get(at)
        if end is None or (self._swaps and not self._swaps.keys().isdisjoint(self._text[at:end])):
            return at
        return end

    def _follow(self, token: int) -> None:
        """Move the pointer with a token of the output."""
        at = self._at
        if at is not None:
            for place in (self._next(at), at, self._skips.get(at, at)):
                if place < len(self._text) and self._is(token, place):
                    self._settle(place + 1, confirmed=True)
                    return
        length, place = self._match()
        lost = at is None or self._doubt is not None
        sure = length > 1 or (place is not None and place - 1 in self._landmarks)
        if place is not None and (sure or (lost and abs(place - self._last) <= NEAR)):
            self._settle(place, confirmed=False)
        elif at is not None and not lost and at < len(self._text):
            self._doubt = (self._text[at], token)
            self._at = self._last = at + 1
        else:
            self._at = self._doubt = None

    def _note_habit(self, token: int) -> None:
        """See whether one token was put in between two landmarks that the draft has in a row."""
        at = -1 if self._at is None else self._at - 1
        if at not in self._landmarks or self._text[at] != token:
            self._behind.append(token)
            return
        between = self._behind if self._skips else []
        self._habit = between[0] if len(between) == 1 and self._mark >= 0 else None
        self._mark = at
        self._behind = []

    def _is(self, token: int, place: int) -> bool:
        expected = self._text[place]
        return token == expected or token == self._swaps.get(expected)

    def _settle(self, at: int, *, confirmed: bool) -> None:
        """Set the pointer; if the text went on as expected, the assumed replacement is one."""
        if confirmed and self._doubt:
            self._swaps[self._doubt[0]] = self._doubt[1]
        self._doubt = None
        self._at = self._last = at

    def _match(self) -> tuple[int, int | None]:
        """Return length and end of the text's longest match with the output's end, the nearest one.

        A match at the very end of the text leads nowhere and does not count.
        """
        output = self._output
        best, found = (0, 0), None
        for place in self._index[output[-1]]:
            if place + 1 == len(self._text):
                continue
            length = 1
            while (
                length < min(LONGEST_MATCH, len(output), place + 1)
                and self._text[place - length] == output[-1 - length]
            ):
                length += 1
            rank = (length, -abs(place + 1 - self._last))
            if found is None or rank > best:
                best, found = rank, place + 1
        return best[0], found


def _lay_out(draft: Sequence[int], prompt: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the text to copy from and where in it the draft's tokens stand, in order.

    The draft may be a stretch of the prompt, or a selection of its tokens (line anchors, say), each
    of them once; anything else is put in front of the prompt.
    """
    size = len(draft)
    for start, token in enumerate(prompt):
        if size and token == draft[0] and list(prompt[start : start + size]) == list(draft):
            return list(prompt), list(range(start, start + size))
    if len(set(draft)) == size:
        places: list[int] = []
        for token in draft:
            place = _find(prompt, token, places[-1] + 1 if places else 0)
            if place is None:
                break
            places.append(place)
        if len(places) == size:
            return list(prompt), places
    return [*draft, *prompt], list(range(size))


def _find(tokens: Sequence[int], token: int, start: int) -> int | None:
    for place in range(start, len(tokens)):
        if tokens[place] == token:
            return place
    return None
