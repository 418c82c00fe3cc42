"""Texts and edits that look like code: repeated, blank, short and unique lines."""

from __future__ import annotations

import random

from hypothesis import strategies as st

VOCABULARY = [
    "",
    "}",
    "    return x",
    "    else:",
    "def first(a):",
    "def second(b):",
    "    total = total + value",
    "    pass",
    "import os",
    "        raise ValueError(name)",
]

LINES = st.lists(st.sampled_from(VOCABULARY) | st.text("ab ", max_size=3), max_size=24)


def code(rng: random.Random, size: int) -> list[str]:
    """``size`` lines, about half of them unique."""
    return [
        rng.choice(VOCABULARY) if rng.random() < 0.5 else f"    value_{number} = call({number})"
        for number in range(size)
    ]


def mutate(rng: random.Random, lines: list[str], changes: int) -> list[str]:
    """Lines after some local insertions, deletions and replacements."""
    result = list(lines)
    for number in range(changes):
        at = rng.randint(0, len(result))
        size = rng.randint(0, 4)
        new = [f"    changed_{number}_{k} = {k}" for k in range(rng.randint(0, 4))]
        result[at : at + size] = new
    return result


def chunks(rng: random.Random, text: str) -> list[str]:
    """The text cut at random places."""
    cuts = sorted(rng.randint(0, len(text)) for _ in range(rng.randint(0, 1 + len(text) // 3)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
