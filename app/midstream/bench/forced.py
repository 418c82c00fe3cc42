"""Edits whose outcome is given, for `midstream bench engine`: the reference renames, written out as
plain text whatever the model would have liked to write.

The model runs in full and drafts come from the source, but the next token is always the target's.
So the figures say what the loop makes of a text of ordinary tokens, with any weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from midstream.bench.reference_edits import REFERENCE_EDITS
from midstream.engine.loop import ModelGeneration, Runtime
from midstream.engine.model import OnnxModel
from midstream.engine.plan import Plan
from midstream.engine.prompts import load_tokenizer
from midstream.engine.sampling import Sampler
from midstream.engine.types import Usage


class _Forced(Sampler):
    """Picks the tokens of a given text, one after the other."""

    def __init__(self, tokens: Sequence[int]) -> None:
        super().__init__()
        self._tokens = iter(tokens)

    def pick(self, logits: np.ndarray[Any, Any]) -> int:
        # What a greedy choice costs is part of the step.
        super().pick(logits)
        return next(self._tokens)


class _Unread:
    """A text decoder for text that is known already."""

    def feed(self, token_id: int) -> str:
        """Return nothing."""
        return ""

    def finish(self) -> str:
        """Return nothing."""
        return ""


def renames() -> Iterator[tuple[str, str, str]]:
    """Yield the reference edits that are renames: instruction, source and outcome."""
    for instruction, region in REFERENCE_EDITS:
        names = re.fullmatch(r"rename `(\w+)` to `(\w+)`", instruction)
        if names:
            yield instruction, region, re.sub(rf"\b{names[1]}\b", names[2], region)


def forced_plans(model: OnnxModel) -> list[tuple[Plan, list[int], str]]:
    """Return every rename as a plan, with the tokens and the text of its outcome."""
    tokenizer = load_tokenizer(model.folder)

    def ids(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False).ids)

    plans: list[tuple[Plan, list[int], str]] = []
    for instruction, source, outcome in renames():
        draft = ids(source)
        plan = Plan([*ids(instruction), *draft], draft, frozenset(), _Unread())
        plans.append((plan, ids(outcome), outcome))
    return plans


def write_forced(model: OnnxModel, plan: Plan, tokens: Sequence[int]) -> Usage:
    """Write an outcome, with nothing in the cache; return what it cost."""
    generation = _start(model, plan, tokens)
    for _ in generation:
        pass
    return generation.usage


def python_share(model: OnnxModel, plan: Plan, tokens: Sequence[int]) -> float:
    """Write an outcome token by token; return which part of the time is spent outside ONNX Runtime:
    the loop's, the sampler's, the decoder's.
    """
    drafting, model.drafting = model.drafting, None
    generation = _start(model, plan, tokens)
    model.drafting = drafting
    pieces = iter(generation)
    next(pieces)
    # The prompt is read by now.
    inside, spent = model.decoder.runtime_s, generation.usage.decode_s
    for _ in pieces:
        pass
    inside, spent = model.decoder.runtime_s - inside, generation.usage.decode_s - spent
    return 1 - inside / spent


def _start(model: OnnxModel, plan: Plan, tokens: Sequence[int]) -> ModelGeneration:
    model.cache.clear()
    return ModelGeneration(
        plan,
        Runtime(model.decoder, model.cache, model.drafting, exact=True),
        _Forced(tokens),
        limit=len(tokens),
    )
