"""The interface of a text model: requests in, pieces of text out.

Only plain types, no heavy imports: the server, replayed models and tests share them with the
engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from midstream.guard.correction import CorrectionRequest


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation: ``role`` is "user", "assistant" or "system"."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """A request to a model.

    Attributes:
        messages: The conversation, oldest first.
        instructions: A system text in front of it ("" for none).
        max_output_tokens: Model tokens to generate at most; None for as many as the context holds.
        temperature: 0 is greedy.
        top_p: Nucleus sampling; 1 keeps everything.
        top_k: Sample among the k likeliest tokens only; 0 keeps everything.
        min_p: Drop tokens less likely than this share of the likeliest one; 0 keeps everything.
        seed: Makes sampling repeatable; None draws a fresh one.
        stop: Texts that end the answer where they would begin; none of them may be empty.
        generate: False only reads the prompt into the cache.
        prose: The answer is words for a person, which may follow from rows that were read behind
            turns since dropped (``prefix_cache``); where it is False, as for edits, the text never
            depends on what was cached.
        correction: What the last message asks for, where the guard wrote it.
        must_change: The answer to a region request may not repeat the region: it is the likeliest
            one that changes something (``departure``).
    """

    messages: tuple[Message, ...]
    instructions: str = ""
    max_output_tokens: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    generate: bool = True
    prose: bool = False
    correction: CorrectionRequest | None = None
    must_change: bool = False


@dataclass(slots=True)
class Piece:
    """A piece of generated text; ``tokens`` model tokens were spent on it (``text`` may be
    empty).
    """

    text: str
    tokens: int


@dataclass(slots=True)
class Usage:
    """The cost of a generation so far.

    Attributes:
        input_tokens: Tokens of the prompt.
        cached_tokens: How many of them were in the cache before.
        read_tokens: How many of them are in the cache by now.
        output_tokens: Generated tokens, the stop token included.
        forwards: Forward passes that produced output tokens (prefill not counted).
        drafted_tokens: Tokens proposed from the source text.
        accepted_tokens: Proposed tokens that the model would have written itself.
        prefill_s: Seconds until the prompt was read.
        decode_s: Seconds spent generating.
        wafer_s: Simulated seconds of the whole on a wafer; None where nothing is simulated.
        due_s: Simulated seconds until the text so far is out on a machine whose speed is imitated;
            None without pacing.
        passed_s: Measured seconds until it was passed on; later than ``due_s`` where this machine
            is the slower one.
        confidence: Calibrated probability that the complete answer is right; None before its end,
            and for models that are not calibrated.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    read_tokens: int = 0
    output_tokens: int = 0
    forwards: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    wafer_s: float | None = None
    due_s: float | None = None
    passed_s: float | None = None
    confidence: float | None = None

    def take(self, other: Usage) -> None:
        """Copy what another generation has cost and how it was judged."""
        for name in _TAKEN:
            setattr(self, name, getattr(other, name))


_TAKEN = (
    "input_tokens",
    "cached_tokens",
    "read_tokens",
    "output_tokens",
    "forwards",
    "drafted_tokens",
    "accepted_tokens",
    "prefill_s",
    "decode_s",
    "wafer_s",
    "confidence",
)
"""Fields of ``Usage`` that a model fills in; others are about how its answer is passed on."""


class FinishReason(StrEnum):
    """Why a generation ended."""

    STOP = "stop"
    LENGTH = "length"
    REPETITION = "repetition"
    STOPPED = "stopped"


class Generation(Protocol):
    """One running generation: a blocking iterable of pieces, to be read in one worker thread."""

    usage: Usage

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why it ended; None while it runs."""
        ...

    def __iter__(self) -> Iterator[Piece]:
        """Read the prompt and generate; may be called once."""
        ...

    def stop(self) -> None:
        """End it within one forward pass; callable from any thread, at any time, more than once."""
        ...


class TextModel(Protocol):
    """A loaded model."""

    @property
    def name(self) -> str:
        """The name that requests use."""
        ...

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts for clients.

        edit_format, max_region_lines, languages, context_length, provider, prompt, must_change.
        """
        ...

    def start(self, request: GenerateRequest) -> Generation:
        """Check and encode a request; the work happens while the generation is iterated.

        Raises:
            UserError: The request does not fit this model; the sentence says how.
        """
        ...

    def close(self) -> None:
        """Free the model; a running generation is stopped first."""
        ...
