"""Drafts for speculative decoding: which tokens the model will probably write next, taken from text
at hand.

An edit mostly repeats its source, so the best guess is the source behind a pointer. When the model
departs from it, the pointer is set anew behind the longest run of tokens that both share, nearest
to where it was. While the source has nothing to offer, the prompt is searched in the same way.
Nothing here touches the model: a wrong draft costs time, never text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

LONGEST_MATCH = 4
"""Longest run of tokens that is looked up to set a pointer anew."""


class CopyPointer:
    """A place in a text that the output follows.

    Attributes:
        at: index of the token expected next; None when the output left the text.
    """

    def __init__(self, text: Sequence[int], at: int | None, shortest: int = 1) -> None:
        """Follow `text` from `at` on; matches of less than `shortest` tokens do not count."""
        self.text = list(text)
        self.at = at
        self._last = at or 0
        self._shortest = shortest
        self._places: dict[int, list[int]] = defaultdict(list)
        for index, token in enumerate(self.text):
            self._places[token].append(index)

    def occurrences(self, token: int) -> int:
        """Return how often a token occurs in the text."""
        return len(self._places.get(token, ()))

    def place(self, token: int) -> int:
        """Return the first index of a token that occurs."""
        return self._places[token][0]

    def follow(self, output: Sequence[int]) -> None:
        """Move with the last token of the output; look for a new place if it was not expected."""
        token = output[-1]
        if self.at is not None and self.at < len(self.text) and self.text[self.at] == token:
            self.at += 1
            self._last = self.at
            return
        self.at = self._resync(output)
        if self.at is not None:
            self._last = self.at

    def _resync(self, output: Sequence[int]) -> int | None:
        """Return the index behind the longest match with the output's end, the nearest one.

        A match at the very end of the text leads nowhere and does not count.
        """
        best: tuple[int, int] | None = None
        found: int | None = None
        for index in self._places.get(output[-1], ()):
            if index + 1 == len(self.text):
                continue
            length = 1
            while (
                length < LONGEST_MATCH
                and length < len(output)
                and index >= length
                and self.text[index - length] == output[-1 - length]
            ):
                length += 1
            rank = (length, -abs(index + 1 - self._last))
            if length >= self._shortest and (best is None or rank > best):
                best, found = rank, index + 1
        return found


class Drafter:
    """Proposes the next tokens and learns from what became of them.

    The draft length starts at `first`, doubles while drafts are taken whole and falls back on a
    miss.
    """

    def __init__(
        self, source: Sequence[int], prompt: Sequence[int], *, first: int = 4, most: int = 16
    ) -> None:
        """Draft from a source that the output is expected to repeat, else from the prompt."""
        self._source = CopyPointer(source, 0 if source else None)
        self._prompt = CopyPointer(prompt, None, shortest=2)
        self._first = first
        self._most = most
        self._length = first
        # The last few tokens are all that a match looks at.
        self._output: list[int] = list(prompt[-LONGEST_MATCH:])

    def propose(self, room: int) -> list[int]:
        """Return up to `room` tokens, fewer or none where there is nothing to go by."""
        length = min(self._length, room)
        if self._source.at is not None and self._source.at < len(self._source.text):
            return self._source.text[self._source.at : self._source.at + length]
        if self._prompt.at is None:
            return []
        return self._from_prompt(self._prompt.at, length)

    def _from_prompt(self, at: int, length: int) -> list[int]:
        """Copy from the prompt up to a token with one place in the source; go on from there."""
        draft: list[int] = []
        for index in range(at, min(at + length, len(self._prompt.text))):
            token = self._prompt.text[index]
            draft.append(token)
            if self._source.occurrences(token) == 1:
                place = self._source.place(token) + 1
                return draft + self._source.text[place : place + length - len(draft)]
        return draft

    def learn(self, proposed: int, accepted: int, output: Sequence[int]) -> None:
        """Take note of a verification.

        Args:
            proposed: how many tokens were drafted.
            accepted: how many of them the model agreed with.
            output: the tokens that the run produced (the accepted ones and the model's own next).
        """
        if proposed:
            whole = accepted == proposed
            self._length = min(2 * self._length, self._most) if whole else self._first
        for token in output:
            self._output.append(token)
            self._source.follow(self._output)
            self._prompt.follow(self._output)
        del self._output[:-LONGEST_MATCH]
