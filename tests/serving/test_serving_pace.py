"""A paced model says the same, later, and stops as quickly."""

from __future__ import annotations

import time

import pytest

from midstream.engine.types import FinishReason, GenerateRequest, Message
from midstream.serving.pace import PacedModel
from midstream.serving.replay import ReplayModel

TEXT = "".join(f"line {number}\n" for number in range(20))
REQUEST = GenerateRequest((Message("user", "go"),))


def test_the_same_text_not_faster_than_the_pace() -> None:
    generation = PacedModel(ReplayModel(TEXT), 400.0).start(REQUEST)
    began = time.perf_counter()
    text = "".join(piece.text for piece in generation)
    elapsed = time.perf_counter() - began
    assert text == TEXT
    assert elapsed >= (generation.usage.output_tokens - 2) / 400.0
    assert generation.finish_reason is FinishReason.STOP


def test_stop_ends_a_wait() -> None:
    generation = PacedModel(ReplayModel(TEXT), 0.5).start(REQUEST)
    pieces = iter(generation)
    next(pieces)
    generation.stop()
    began = time.perf_counter()
    assert list(pieces) == []
    assert time.perf_counter() - began < 0.5
    assert generation.finish_reason is FinishReason.STOPPED


def test_a_pace_must_be_positive() -> None:
    with pytest.raises(ValueError, match="more than 0"):
        PacedModel(ReplayModel(TEXT), 0.0)
