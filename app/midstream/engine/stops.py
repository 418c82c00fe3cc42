"""Stop strings: texts that end an answer and are not part of it.

A stop string may be spread over several tokens, so the end of the text that could still become one
is held back until more is known. What comes out does not depend on how the text was cut into
tokens. Tokens that end an answer are the loop's business.
"""

from __future__ import annotations

from collections.abc import Sequence

from midstream.engine.plan import PromptError, TextDecoder


class StopStrings:
    """A text decoder that ends the text of another one in front of the first stop string.

    Attributes:
        hit: whether a stop string was met; nothing comes out any more.
    """

    def __init__(self, decoder: TextDecoder, stops: Sequence[str]) -> None:
        """Watch a decoder's text for any of these strings.

        Raises:
            PromptError: a stop string is empty.
        """
        if not all(stops):
            raise PromptError("A stop string is empty; leave it out or give it some text.")
        self.hit = False
        self._decoder = decoder
        self._stops = tuple(stops)
        self._longest = max(map(len, stops), default=0)
        self._held: str = ""

    def feed(self, token_id: int) -> str:
        """Take one token; return the text that it makes certain."""
        return self._take(self._decoder.feed(token_id))

    def finish(self) -> str:
        """Return the text that is held back, at the end of an answer."""
        text = self._take(self._decoder.finish())
        held, self._held = self._held, ""
        return text + held

    def _take(self, text: str) -> str:
        if self.hit or not self._stops:
            return "" if self.hit else text
        text = self._held + text
        # Of several stop strings the one that is complete first counts, the longer one of two.
        found = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self.hit, self._held = True, ""
            return text[: min(found)[1]]
        cut = len(text) - self._unsure(text)
        self._held = text[cut:]
        return text[:cut]

    def _unsure(self, text: str) -> int:
        """Return the length of the longest end of a text with which a stop string begins."""
        for length in range(min(self._longest - 1, len(text)), 0, -1):
            if any(stop.startswith(text[-length:]) for stop in self._stops):
                return length
        return 0
