"""A paced model says the same, later, and stops as quickly."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Iterator

import pytest

from midstream.engine.types import FinishReason, GenerateRequest, Generation, Message, Piece
from midstream.serving.pace import PacedModel
from midstream.serving.replay import ReplayModel
from midstream.wafer.errors import WaferError
from midstream.wafer.paces import Imitation, imitation
from midstream.wafer.pacing import Pace

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


def paced(text: str) -> Imitation:
    found = imitation(text)
    assert found is not None
    return found


def timed(model: PacedModel) -> tuple[list[float], str, int]:
    """Seconds from the start at which each piece came, the whole text, and its tokens."""
    began = time.perf_counter()
    times: list[float] = []
    text, tokens = "", 0
    for piece in model.start(REQUEST):
        times.append(time.perf_counter() - began)
        text += piece.text
        tokens += piece.tokens
    return times, text, tokens


def test_tokens_come_when_the_imitated_machine_would_have_them() -> None:
    gpus = paced("gpu")
    model = PacedModel(ReplayModel(TEXT), gpus)
    times, text, tokens = timed(model)
    assert text == TEXT
    assert tokens == len(times), "one token at a time, also where the model drafts"
    due = [gpus.pace.due(number) for number in range(tokens)]
    assert all(at >= moment for at, moment in zip(times, due, strict=True))
    late = sorted(at - moment for at, moment in zip(times, due, strict=True))
    assert late[len(late) // 2] < 0.02


def test_a_wafer_feels_an_order_faster_than_gpus_on_the_same_text() -> None:
    gpu, _, count = timed(PacedModel(ReplayModel(TEXT), paced("gpu")))
    wafer, _, _ = timed(PacedModel(ReplayModel(TEXT), paced("wafer")))
    assert wafer[-1] < gpu[-1] / 4
    assert 50 < (count - 1) / (gpu[-1] - gpu[0]) < 90


class Drafting(ReplayModel):
    """Eight tokens at a time, as a model whose drafts are right."""

    def start(self, request: GenerateRequest):
        pieces = list(super().start(request))
        generation = super().start(request)
        groups = [pieces[at : at + 8] for at in range(0, len(pieces), 8)]
        joined = [Piece("".join(p.text for p in g), sum(p.tokens for p in g)) for g in groups]
        return Listed(generation, joined)


class Listed:
    def __init__(self, inner: Generation, pieces: list[Piece]) -> None:
        self.usage, self._inner, self._pieces = inner.usage, inner, pieces

    @property
    def finish_reason(self) -> FinishReason | None:
        return self._inner.finish_reason

    def __iter__(self) -> Iterator[Piece]:
        yield from self._pieces

    def stop(self) -> None:
        self._inner.stop()


def test_drafted_tokens_are_let_out_one_by_one() -> None:
    gpus = paced("gpu")
    times, text, tokens = timed(PacedModel(Drafting(TEXT), gpus))
    assert text == TEXT
    assert len(times) == tokens == sum(p.tokens for p in ReplayModel(TEXT).start(REQUEST))
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert max(gaps) < 5 * gpus.pace.seconds_per_step, "not eight at a time"


def test_a_model_slower_than_the_wafer_is_passed_through_whole() -> None:
    slow = paced("wafer:kimi-k2.6")
    fast = dataclasses.replace(slow, pace=Pace("wafer", 1e-6, 0.0))
    times, text, tokens = timed(PacedModel(Drafting(TEXT), fast))
    assert text == TEXT
    assert len(times) < tokens, "nothing is cut where nothing waits"
    assert times[-1] < 0.5


def test_facts_say_what_is_imitated() -> None:
    facts = PacedModel(ReplayModel(TEXT), paced("gpu:llama3.1-8b")).facts
    assert facts["pacing"] == "gpu"
    assert facts["pacing_model"] == "llama3.1-8b"
    assert "H100" in facts["pacing_machine"]
    assert float(facts["pacing_rate"]) > 100
    assert "pacing" not in PacedModel(ReplayModel(TEXT), 40.0).facts


def test_a_pace_that_nobody_knows_is_refused() -> None:
    assert imitation("off") is None
    for text in ("tpu", "off:llama3.1-8b", "gpu:nosuch", "wafer:/no/such/folder", ""):
        with pytest.raises(WaferError):
            imitation(text)
