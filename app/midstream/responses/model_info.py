"""A server's description of its model, parsed once where the metadata arrives.

On the wire these are strings: ``/v1/models`` of a Midstream server has them as ``metadata``, and
the ``metadata`` of its responses has them again as ``midstream.<name>``. Other servers say none of
this; there the profile supplies what is configured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

METADATA_PREFIX: Final = "midstream."
"""Marks the metadata of a response that a Midstream server adds."""
REGION_FORMATS: Final = ("region", "auto")
"""Edit formats in which a model rewrites one region, where the lines are known."""


@dataclass(frozen=True, slots=True)
class Pacing:
    """The machine that a paced server imitates, and its simulated rate.

    ``mode`` is "replay" if the whole answer is generated first, else the kind of machine.
    """

    mode: str
    model: str = "?"
    machine: str = ""
    tokens_per_second: float | None = None

    @property
    def replayed(self) -> bool:
        """Whether an answer is complete before its first token is shown."""
        return self.mode == "replay"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The known facts about a model; the defaults describe an unknown one.

    Attributes:
        prompt: Prompt style: "chat", "edit-..." (trained to rewrite regions), or another.
        declared_format: Edit format that the server or the profile names.
        max_region_lines: The most lines that it rewrites at once.
        languages: Languages that it edits; empty means any.
        context_length: Tokens of prompt and output together.
        pacing: What the server imitates, if it is paced.
        reads_region_first: Whether the region stands before the instruction in what it reads, so
            that it can be read before there are any words.
        reading_rate: Tokens of a prompt that it reads in a second; ``None`` where that is not
            known, as of servers that read far faster than one waits for.
        takes_must_change: Whether a request may say that the region must not come back as it is.
    """

    prompt: str = "chat"
    declared_format: str | None = None
    max_region_lines: int | None = None
    languages: tuple[str, ...] = ()
    context_length: int | None = None
    pacing: Pacing | None = None
    reads_region_first: bool = False
    reading_rate: float | None = None
    takes_must_change: bool = False

    @property
    def is_chat(self) -> bool:
        """Whether the request has to say how to answer."""
        return self.prompt == "chat"

    @property
    def is_edit_model(self) -> bool:
        """Whether it was trained to write the region and nothing else."""
        return self.prompt.startswith("edit-")

    @property
    def edit_format(self) -> str:
        """Format to ask for.

        "auto" (chat models of which nothing is configured) is a region rewrite where the lines are
        known and SEARCH/REPLACE elsewhere.
        """
        return self.declared_format or ("auto" if self.is_chat else "region")

    @property
    def finds_places(self) -> bool:
        """Whether it can be left to find the lines to change."""
        return self.is_chat and self.edit_format != "region"

    def updated(self, values: Mapping[str, str]) -> ModelInfo:
        """Parse the strings of a server; what they leave out or garble stays as it is."""
        languages = values.get("languages")
        return ModelInfo(
            prompt=values.get("prompt", self.prompt),
            declared_format=values.get("edit_format") or self.declared_format,
            max_region_lines=_count(values, "max_region_lines") or self.max_region_lines,
            languages=self.languages if languages is None else _languages(languages),
            context_length=_count(values, "context_length") or self.context_length,
            pacing=_pacing(values) or self.pacing,
            reads_region_first=_flag(values, "region_first", self.reads_region_first),
            reading_rate=_rate(values, "reading_rate") or self.reading_rate,
            takes_must_change=_flag(values, "must_change", self.takes_must_change),
        )

    def learned(self, metadata: Mapping[str, str]) -> ModelInfo:
        """The same for the metadata of a response, where the names have a prefix."""
        return self.updated(
            {
                name.removeprefix(METADATA_PREFIX): value
                for name, value in metadata.items()
                if name.startswith(METADATA_PREFIX)
            }
        )


def _flag(values: Mapping[str, str], name: str, known: bool) -> bool:
    return values.get(name, str(int(known))) == "1"


def _count(values: Mapping[str, str], name: str) -> int | None:
    text = values.get(name, "")
    return int(text) or None if text.isdecimal() else None


def _languages(text: str) -> tuple[str, ...]:
    names = tuple(text.replace(",", " ").split())
    return () if "any" in names else names


def _rate(values: Mapping[str, str], name: str) -> float | None:
    try:
        rate = float(values[name])
    except (KeyError, ValueError):
        return None
    return rate if 0 < rate < math.inf else None


def _pacing(values: Mapping[str, str]) -> Pacing | None:
    mode = values.get("pacing")
    if mode is None:
        return None
    rate = _rate(values, "pacing_rate")
    return Pacing(mode, values.get("pacing_model", "?"), values.get("pacing_machine", mode), rate)
