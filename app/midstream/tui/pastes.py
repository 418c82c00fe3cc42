"""Chips: a few words that stand for a long pasted block, or for a hunk, until the text is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

MANY_LINES: Final = 10
LONG: Final = 1_000
"""Characters; a paste of more of them, or of more than ``MANY_LINES`` lines, becomes a chip."""

CHIP: Final = re.compile(
    r"\[(?:pasted [\d,]+ (?:lines|characters)(?: #\d+)?|hunk at line [\d,]+)\]"
)


class Pastes:
    """The blocks that chips stand for."""

    def __init__(self) -> None:
        self._blocks: dict[str, str] = {}

    def shorten(self, block: str) -> str:
        """The text to insert for a pasted block: the block itself, or its chip."""
        lines = block.count("\n") + (not block.endswith("\n"))
        if lines <= MANY_LINES and len(block) <= LONG:
            return block
        words = f"{lines:,} lines" if lines > MANY_LINES else f"{len(block):,} characters"
        chip, number = f"[pasted {words}]", 1
        while self._blocks.get(chip, block) != block:
            number += 1
            chip = f"[pasted {words} #{number}]"
        self._blocks[chip] = block
        return chip

    def name(self, chip: str, block: str) -> None:
        """Let a chip with a given text stand for a block."""
        self._blocks[chip] = block

    def expand(self, text: str) -> str:
        """The text with every chip as its block."""
        return CHIP.sub(lambda match: self._blocks.get(match[0], match[0]), text)

    def collapse(self, text: str) -> str:
        """The text with chips in place of pasted blocks: the inverse of ``expand``."""
        for chip, block in sorted(self._blocks.items(), key=lambda item: -len(item[1])):
            text = text.replace(block, chip)
            # An instruction that was sent has lost the space at its ends.
            first, last = block.lstrip(), block.rstrip()
            if text.startswith(first):
                text = chip + text.removeprefix(first)
            elif text.endswith(last):
                text = text.removesuffix(last) + chip
            elif text == block.strip():
                text = chip
        return text

    def used(self, text: str) -> list[str]:
        """The blocks of the chips in a text."""
        chips = dict.fromkeys(match[0] for match in CHIP.finditer(text))
        return [self._blocks[chip] for chip in chips if chip in self._blocks]

    def block(self, chip: str) -> str | None:
        """The text that a chip stands for."""
        return self._blocks.get(chip)

    def chips(self, line: str) -> Iterator[tuple[int, int]]:
        """Where the chips of a line are."""
        for match in CHIP.finditer(line):
            if match[0] in self._blocks:
                yield match.span()

    def chip_at(self, line: str, column: int) -> tuple[int, int] | None:
        """The chip that a column is in or at the end of."""
        return next((span for span in self.chips(line) if span[0] < column <= span[1]), None)
