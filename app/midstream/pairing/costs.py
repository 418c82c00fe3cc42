"""What answers have cost the server, as it says at their end: for telemetry, never for decisions.

Only Midstream's own server tells more than token counts; what nobody has measured is ``None`` and
stays so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from midstream.responses.model_info import METADATA_PREFIX

if TYPE_CHECKING:
    from midstream.responses.events import Usage
from midstream.responses.profiles import Price


@dataclass(frozen=True, slots=True)
class Cost:
    """Counts and times of one answer, or of several together.

    Attributes:
        input_tokens: Tokens of the prompt.
        cached_tokens: Those of them that the server had in its cache.
        output_tokens: Generated tokens.
        prefill_s: Seconds the server read the prompt.
        decode_s: Seconds the server generated.
        forwards: Passes of the model that produced output.
        drafted: Tokens proposed from the source text.
        accepted: Proposed tokens that the model would have written itself.
        due_s: Simulated seconds it takes on a machine whose speed is imitated.
        passed_s: Seconds it took here, beside ``due_s``.
        dollars: What it costs at the prices of the endpoint's profile; ``None`` without prices.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    prefill_s: float | None = None
    decode_s: float | None = None
    forwards: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    dollars: float | None = None
    due_s: float | None = None
    passed_s: float | None = None

    @classmethod
    def of(cls, usage: Usage, metadata: Mapping[str, str], price: Price | None = None) -> Cost:
        """Read the end of a response that was made at a price."""
        return cls(
            usage.input_tokens,
            usage.cached_tokens,
            usage.output_tokens,
            _seconds(metadata, "prefill_ms"),
            _seconds(metadata, "decode_ms"),
            _count(metadata, "forwards"),
            _count(metadata, "drafted_tokens"),
            _count(metadata, "accepted_tokens"),
            None
            if price is None
            else price.of(
                input_tokens=usage.input_tokens,
                cached_tokens=usage.cached_tokens,
                output_tokens=usage.output_tokens,
            ),
            _seconds(metadata, "due_ms"),
            _seconds(metadata, "passed_ms"),
        )

    def __add__(self, other: Cost) -> Cost:
        """Both together; what only one of them knows is that one's."""
        pairs = [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        return Cost(*(b if a is None else a if b is None else a + b for a, b in pairs))

    @property
    def cached_share(self) -> float | None:
        """Share of the prompt that was cached, ``None`` without a prompt."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else None

    @property
    def accepted_share(self) -> float | None:
        """Share of the drafted tokens that were accepted, ``None`` where nothing was drafted."""
        return self.accepted / self.drafted if self.drafted and self.accepted is not None else None

    @property
    def tokens_per_forward(self) -> float | None:
        """Output tokens for each pass of the model, ``None`` where passes are not counted."""
        return self.output_tokens / self.forwards if self.forwards else None


def shown_dollars(dollars: float | None) -> str:
    """An amount as a person reads it: ``$0.0123``, ``$2.40``, ``-`` where it is not known."""
    return "-" if dollars is None else f"${dollars:,.{2 if dollars >= 1 else 4}f}"


def _seconds(metadata: Mapping[str, str], name: str) -> float | None:
    milliseconds = _number(metadata, name)
    return None if milliseconds is None else milliseconds / 1000


def _number(metadata: Mapping[str, str], name: str) -> float | None:
    try:
        return float(metadata[METADATA_PREFIX + name])
    except (KeyError, ValueError):
        return None


def _count(metadata: Mapping[str, str], name: str) -> int | None:
    number = _number(metadata, name)
    return None if number is None else int(number)
