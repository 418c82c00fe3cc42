"""Names and parts of sentences, put together for a remark."""

from __future__ import annotations

from collections.abc import Sequence


def joined(parts: Sequence[str]) -> str:
    """Parts with commas and one ``and``."""
    return " and ".join((", ".join(parts[:-1]), parts[-1])) if len(parts) > 1 else parts[0]


def quoted(names: Sequence[str]) -> str:
    """The first two of some names, as code."""
    return joined([f"`{name}`" for name in names[:2]])


def one_of(names: Sequence[str], one: str, several: str) -> str:
    """A word for some names: one for a single name, another for several."""
    return one if len(names) == 1 else several
