"""A request as tokens, and the reader of its answer: all that the loop knows of prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from midstream.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from midstream.engine.types import GenerateRequest


class PromptError(UserError):
    """The conversation cannot be put to this model."""

    code = "prompt"


class TextDecoder(Protocol):
    """Turns generated tokens into text."""

    def feed(self, token_id: int) -> str:
        """Take one token; return the text that it makes certain."""
        ...

    def finish(self) -> str:
        """End the answer, complete or cut; return what of the text held back is certain."""
        ...


class Proposer(Protocol):
    """Drafts the next tokens of one answer."""

    def propose(self, most: int) -> list[int]:
        """Return up to ``most`` tokens; fewer or none without anything to go by."""
        ...

    def learn(self, output: Sequence[int]) -> None:
        """Take tokens that the model has written."""
        ...


class Judge(Protocol):
    """Says how sure a model may be of one answer; made for that answer."""

    def take(self, logits: np.ndarray[Any, Any], tokens: Sequence[int]) -> None:
        """Take the answer's next tokens, and the rows that they were chosen from.

        Args:
            logits: float32 [len(tokens) or more, vocab], valid during the call only.
            tokens: What was chosen.
        """
        ...

    def confidence(self) -> float:
        """Return the probability that the answer, which is complete, is right."""
        ...


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    """A request in tokens.

    Attributes:
        prompt_ids: What the model reads.
        draft_ids: What its answer would be if it changed nothing; may be empty.
        stop_ids: Tokens that end the answer.
        decoder: Turns the answer's tokens into text.
        most: Tokens after which an answer is surely a loop; None for no limit.
        drafter: Drafts the answer; None drafts by ``draft_ids`` and what the prompt repeats.
        judge: Estimates confidence; None if the folder has no calibration.
        text_of: The text of some tokens of the draft, and of others in their place.
    """

    prompt_ids: list[int]
    draft_ids: list[int]
    stop_ids: frozenset[int]
    decoder: TextDecoder
    most: int | None = None
    drafter: Proposer | None = None
    judge: Judge | None = None
    text_of: Callable[[Sequence[int]], str] | None = None


class StopStrings:
    """A text decoder that ends the text of another one in front of the first stop string.

    Attributes:
        hit: Whether a stop string was met; nothing comes out any more.
    """

    def __init__(self, decoder: TextDecoder, stops: Sequence[str]) -> None:
        """Watch a decoder's text for any of these strings.

        Raises:
            PromptError: A stop string is empty.
        """
        if not all(stops):
            raise PromptError("A stop string is empty; leave it out or give it some text.")
        self.hit = False
        self._decoder = decoder
        self._stops = tuple(stops)
        self._longest = max(map(len, stops), default=0)
        self._pending: str = ""

    def feed(self, token_id: int) -> str:
        return self._take(self._decoder.feed(token_id))

    def finish(self) -> str:
        text = self._take(self._decoder.finish())
        pending, self._pending = self._pending, ""
        return text + pending

    def _take(self, text: str) -> str:
        if self.hit or not self._stops:
            return "" if self.hit else text
        text = self._pending + text
        # Of several stop strings the one that is complete first counts, the longer one of two.
        found = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self.hit, self._pending = True, ""
            return text[: min(found)[1]]
        cut = len(text) - self._unsure(text)
        self._pending = text[cut:]
        return text[:cut]

    def _unsure(self, text: str) -> int:
        """Length of the longest suffix that begins a stop string."""
        for length in range(min(self._longest - 1, len(text)), 0, -1):
            if any(stop.startswith(text[-length:]) for stop in self._stops):
                return length
        return 0


class PromptStyle(Protocol):
    """How requests are encoded for a model.

    Attributes:
        vocab_size: How many tokens its tokenizer knows.
    """

    vocab_size: int

    def plan(self, request: GenerateRequest) -> EncodedRequest:
        """Encode a request.

        Raises:
            UserError: The model cannot be asked this.
        """
        ...
