"""A model folder as the product asks it: requests as text, through the engine, drafted for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from midstream.edits.request import RegionRequest, render_follow_up, render_request
from midstream.engine.edit_request import EditRequest
from midstream.engine.model import load_model
from midstream.engine.types import GenerateRequest, Message
from midstream.errors import UserError


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one request.

    Attributes:
        text: the rewrite, kept lines included; the region where the engine turned the request down.
        tokens: generated tokens.
        forwards: runs of the model that they took.
        cached: prompt tokens that were in the cache.
        prompt: prompt tokens in all.
        first_s: seconds until the prompt was read.
        seconds: seconds of the whole.
        refused: the sentence with which the engine turned the request down, or "".
    """

    text: str
    tokens: int = 0
    forwards: int = 0
    cached: int = 0
    prompt: int = 0
    first_s: float = 0.0
    seconds: float = 0.0
    refused: str = ""

    @property
    def gave_up(self) -> bool:
        """Whether the model said that it cannot do this: the answer is its one token for that."""
        return self.tokens == 1


class Asker:
    """Asks one loaded model folder."""

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        """Load the folder."""
        self._model = load_model(folder, threads=threads)

    def ask(self, request: EditRequest) -> Outcome:
        """Have the model rewrite a region."""
        first = request.earlier[0] if request.earlier else request.instruction
        region = RegionRequest(instruction=first, region=request.region, language="python")
        messages = [Message("user", render_request(region))]
        if request.kept:
            messages.append(Message("assistant", request.kept))
        if request.earlier:
            later = [*request.earlier[1:], request.instruction]
            messages += [Message("user", render_follow_up(text)) for text in later]
        began = time.perf_counter()
        try:
            generation = self._model.start(GenerateRequest(tuple(messages)))
            text = request.kept + "".join(piece.text for piece in generation)
        except UserError as error:
            return Outcome(request.region, refused=str(error))
        usage = generation.usage
        return Outcome(
            text,
            usage.output_tokens,
            usage.forwards,
            usage.cached_tokens,
            usage.input_tokens,
            usage.prefill_s,
            time.perf_counter() - began,
        )

    def close(self) -> None:
        """Free the model."""
        self._model.close()
