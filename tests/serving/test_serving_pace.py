"""A paced model says the same, later, and stops as quickly."""

from __future__ import annotations

import dataclasses
import itertools
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from midstream.engine.types import FinishReason, GenerateRequest, Generation, Message, Piece
from midstream.errors import UserError
from midstream.pairing.status import Cost
from midstream.responses.client import Client
from midstream.responses.events import Finished
from midstream.serving.embedded import EmbeddedServer
from midstream.serving.pace import CHARS_PER_TOKEN, PacedModel
from midstream.serving.replay import ReplayModel
from midstream.serving.source import ModelSource
from midstream.wafer.errors import WaferError
from midstream.wafer.imitations import DEFAULT_MODEL, Imitation, imitation
from midstream.wafer.pacing import Pace
from tests.helpers.waiting import PATIENCE_S

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
    generation = PacedModel(ReplayModel(TEXT), 0.001).start(REQUEST)
    pieces = iter(generation)
    next(pieces)
    generation.stop()
    began = time.perf_counter()
    assert list(pieces) == []
    assert time.perf_counter() - began < PATIENCE_S
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


def test_text_comes_when_the_imitated_machine_would_have_it() -> None:
    gpus = paced("gpu")
    times, text, tokens = timed(PacedModel(ReplayModel(TEXT), gpus))
    assert text == TEXT
    assert tokens == sum(piece.tokens for piece in ReplayModel(TEXT).start(REQUEST))
    assert times[0] >= gpus.pace.first_seconds
    due = gpus.pace.due((len(TEXT) - 1) // CHARS_PER_TOKEN)
    assert due <= times[-1] < due + 1.0


def test_usage_says_when_it_was_due_and_when_it_came() -> None:
    for text, slow in (("gpu", False), ("wafer", True)):
        model = ReplayModel(TEXT, delay=0.3 if slow else 0.0)
        generation = PacedModel(model, paced(text)).start(REQUEST)
        list(generation)
        usage = generation.usage
        assert usage.due_s is not None
        assert usage.passed_s is not None
        assert usage.passed_s >= usage.due_s
        if slow:
            assert usage.passed_s > 1.5 * usage.due_s
    plain = ReplayModel(TEXT).start(REQUEST)
    list(plain)
    assert plain.usage.due_s is None


def test_a_wafer_feels_an_order_faster_than_gpus_on_the_same_text() -> None:
    gpu, _, _ = timed(PacedModel(ReplayModel(TEXT), paced("gpu")))
    wafer, _, _ = timed(PacedModel(ReplayModel(TEXT), paced("wafer")))
    assert wafer[-1] < gpu[-1] / 4


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


def test_drafted_text_is_let_out_bit_by_bit() -> None:
    gpus = paced("gpu")
    for pace, gap in ((gpus, gpus.pace.seconds_per_token), (200.0, 1 / 200)):
        times, text, tokens = timed(PacedModel(Drafting(TEXT), pace))
        assert text == TEXT
        assert tokens == sum(p.tokens for p in ReplayModel(TEXT).start(REQUEST))
        gaps = sorted(after - before for before, after in itertools.pairwise(times))
        assert gap / 2 < gaps[len(gaps) // 2] < 4 * gap, "not eight at a time"


def test_a_model_slower_than_the_wafer_is_passed_through_whole() -> None:
    slow = paced("wafer:kimi-k2.6")
    fast = dataclasses.replace(slow, pace=Pace("wafer", 1e-6, 0.0))
    times, text, tokens = timed(PacedModel(Drafting(TEXT), fast))
    assert text == TEXT
    assert len(times) < tokens, "nothing is cut where nothing waits"
    assert times[-1] < 0.5


def test_a_slow_machine_replays_at_the_wafers_speed() -> None:
    replay = paced("replay:llama3.1-405b")
    assert replay.replayed
    assert replay.pace == paced("wafer:llama3.1-405b").pace
    slow = ReplayModel(TEXT, rate=25.0)  # a fortieth of the simulated rate
    model = PacedModel(slow, replay)
    assert model.facts["pacing"] == "replay"
    began = time.perf_counter()
    generation = model.start(REQUEST)
    times = [(time.perf_counter() - began, piece) for piece in generation]
    assert "".join(piece.text for _, piece in times) == TEXT
    computing = generation.usage.output_tokens / 25.0
    assert times[0][0] >= 0.9 * computing + replay.pace.first_seconds, "the whole answer first"
    assert times[-1][0] - times[0][0] < computing, "and then faster than it was computed"
    usage = generation.usage
    assert usage.due_s is not None
    assert usage.passed_s is not None
    assert usage.passed_s >= usage.due_s
    passed_through = PacedModel(slow, paced("wafer:llama3.1-405b")).start(REQUEST)
    list(passed_through)
    assert passed_through.usage.passed_s is not None
    assert passed_through.usage.passed_s > 2 * usage.passed_s


def test_a_replay_stops_at_once_and_says_so() -> None:
    gpus = dataclasses.replace(paced("gpu"), replayed=True)
    generation = PacedModel(ReplayModel(TEXT), gpus).start(REQUEST)
    pieces = iter(generation)
    next(pieces)
    generation.stop()
    began = time.perf_counter()
    assert list(pieces) == []
    assert time.perf_counter() - began < PATIENCE_S
    assert generation.finish_reason is FinishReason.STOPPED, "the text is not whole"
    unread = PacedModel(ReplayModel(TEXT, rate=100.0), gpus).start(REQUEST)
    stopper = threading.Timer(0.1, unread.stop)
    stopper.start()
    assert list(unread) == []
    assert unread.finish_reason is FinishReason.STOPPED


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


async def test_the_child_process_paces_and_tells_the_client(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"match": "", "text": TEXT}]))
    server = EmbeddedServer(ModelSource(replay=script, pacing="gpu"), state_dir=tmp_path)
    try:
        client = Client(await server.start())
        pacing = server.model_info.pacing
        assert pacing is not None
        assert (pacing.mode, pacing.model) == ("gpu", DEFAULT_MODEL)
        stream = await client.create(messages=[("user", "go")])
        end = [event async for event in stream][-1]
        assert isinstance(end, Finished)
        assert end.text == TEXT
        cost = Cost.of(end.usage, end.metadata)
        assert cost.due_s == pytest.approx(paced("gpu").pace.due((len(TEXT) - 1) // 4), rel=1e-3)
        assert cost.passed_s is not None
        assert cost.passed_s >= cost.due_s
        await client.close()
    finally:
        await server.close()
    refused = EmbeddedServer(ModelSource(replay=script, pacing="gpu:nosuch"), state_dir=tmp_path)
    with pytest.raises(UserError, match="Pacing is not possible"):
        await refused.start()
    await refused.close()
