"""The catalogue: a few published coder models that are known to load, with facts for choosing."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

SPEED_SHARE = 0.6
"""Share of the memory's bandwidth that a decoder reaches with 4-bit weights, roughly."""

WORKING_MEMORY = 400_000_000
"""Bytes beside the weights, for a context of some 2,000 tokens."""


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A model of the catalogue.

    Attributes:
        name: What it is called here, and the folder's name.
        title: What it is good for.
        repository: Where it is, ``OWNER/NAME``.
        variant: The graph or folder there that suits a CPU; see ``offer.look_up``.
        license: The licence that its authors state.
        languages: What it was made for.
        parameters: In thousands of millions.
        size: Bytes to download.
        read: Bytes of weights that writing one token reads.
        context: Tokens that it reads and writes at most.
    """

    name: str
    title: str
    repository: str
    variant: str
    license: str
    languages: tuple[str, ...]
    parameters: float
    size: int
    read: int
    context: int

    @property
    def memory(self) -> int:
        """Bytes of memory that it takes, estimated."""
        return self.size + WORKING_MEMORY

    def speed(self, bandwidth: float) -> float:
        """Tokens per second to expect one by one, estimated.

        Args:
            bandwidth: What this machine reads of its memory, in GB/s.
        """
        return SPEED_SHARE * bandwidth * 1e9 / self.read


@cache
def published_models() -> tuple[PublishedModel, ...]:
    """The catalogue, smallest first."""
    text = (Path(__file__).parent / "published_models.toml").read_text("utf-8")
    entries: list[dict[str, Any]] = tomllib.loads(text)["model"]
    for entry in entries:
        entry["languages"] = tuple(entry["languages"])
        entry |= {key: 1_000_000 * entry[key] for key in ("size", "read")}
    return tuple(PublishedModel(**entry) for entry in entries)


def published_model(name: str) -> PublishedModel | None:
    """The model of that name or repository in the catalogue."""
    wanted = name.lower()
    known = published_models()
    return next((m for m in known if wanted in (m.name, m.repository.lower())), None)
