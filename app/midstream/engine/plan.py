"""A request in tokens: all that the generation loop needs to know of prompts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from midstream.errors import UserError


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


@dataclass(frozen=True, slots=True)
class Plan:
    """A request in tokens.

    Attributes:
        prompt_ids: what the model reads.
        draft_ids: what its answer would be if it changed nothing; empty where nothing can be
        guessed.
        stop_ids: tokens that end the answer.
        decoder: turns the answer's tokens into text.
        most: tokens after which an answer has surely gone astray; None where it can be any length.
    """

    prompt_ids: list[int]
    draft_ids: list[int]
    stop_ids: frozenset[int]
    decoder: TextDecoder
    most: int | None = None
