"""How sure a model may be: values against a plain softmax, and the same however tokens came."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from midstream.bench.reference_edits import edit_requests
from midstream.edits.request import RegionRequest, render_request
from midstream.engine.confidence import CHUNK, EditJudge, TokenTrace, features, weighed
from midstream.engine.decoder import Array, Decoder
from midstream.engine.folder import Calibration, Drafting, ModelFolderError, read_folder
from midstream.engine.model import OnnxModel
from midstream.engine.types import FinishReason, GenerateRequest, Message
from tests.helpers.folders import SAMPLE, write_folder

CARD = """
[confidence]
threshold = 0.6
bias = 2
weights = { doubt = -1.5, size = -2.0 }
"""
TABLE = Calibration(0.6, 2.0, {"doubt": -1.5, "size": -2.0})


def asked(instruction: str, region: str = SAMPLE) -> GenerateRequest:
    text = render_request(RegionRequest(instruction=instruction, region=region))
    return GenerateRequest((Message("user", text),), max_output_tokens=60)


@pytest.mark.parametrize("count", [1, 5, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7])
def test_log_probabilities_are_those_of_a_softmax(count: int) -> None:
    rng = np.random.default_rng(count)
    logits = (rng.standard_normal((count, 300)) * 6).astype(np.float32)
    tokens = rng.integers(0, 300, count).tolist()
    trace = TokenTrace()
    trace.take(logits, tokens)
    exact = logits.astype(np.float64)
    exact = np.exp(exact - exact.max(axis=1, keepdims=True))
    chances = exact[np.arange(count), tokens] / exact.sum(axis=1)
    found = trace.read()
    assert found.shape == (count,)
    assert np.allclose(found, np.log(chances), rtol=0, atol=2e-5)


def test_values_do_not_depend_on_how_the_tokens_came() -> None:
    rng = np.random.default_rng(3)
    logits = rng.standard_normal((200, 301)).astype(np.float32)
    tokens = rng.integers(0, 301, 200).tolist()
    kept = logits.copy()
    found: list[bytes] = []
    for most in (1, 2, 17, 200):
        trace, at = TokenTrace(), 0
        while at < 200:
            size = min(int(rng.integers(1, most + 1)), 200 - at)
            # More rows than tokens: drafts that were not taken.
            trace.take(logits[at:], tokens[at : at + size])
            at += size
        found.append(trace.read().tobytes())
    assert len(set(found)) == 1
    assert np.array_equal(logits, kept)
    assert TokenTrace().read().shape == (0,)


def test_features_and_what_they_weigh() -> None:
    chances = np.log(np.array([0.9, 0.5, 1.0, 0.25]))
    # The second and the last token are not in the draft.
    found = features(chances, [1, 70, 2, 71], [1, 2, 3])
    assert math.isclose(found["mean"], math.log(0.9 * 0.5 * 0.25) / 4)
    assert math.isclose(found["doubt"], math.log(1e-3 - math.log(0.9 * 0.5 * 0.25)))
    assert math.isclose(found["changes"], math.log(1e-3 - math.log(0.5 * 0.25)))
    assert math.isclose(found["size"], math.log(3))
    total = 2 - 1.5 * found["doubt"] - 2 * found["size"]
    assert math.isclose(weighed(TABLE, found), 1 / (1 + math.exp(-total)))
    assert weighed(TABLE, {"doubt": -1e9}) == pytest.approx(1.0)
    assert weighed(TABLE, {"doubt": 1e9}) == pytest.approx(0.0)


def test_a_folder_says_how_answers_are_judged(tmp_path: Path) -> None:
    write_folder(tmp_path / "with", card=CARD)
    folder = read_folder(tmp_path / "with")
    assert folder.confidence == TABLE
    assert folder.facts["confidence_threshold"] == "0.6"
    write_folder(tmp_path / "without")
    assert read_folder(tmp_path / "without").confidence is None
    assert "confidence_threshold" not in read_folder(tmp_path / "without").facts


@pytest.mark.parametrize(
    "card",
    [
        "[confidence]\nbias = 1\nweights = {}\n",
        '[confidence]\nthreshold = "low"\nbias = 1\nweights = {}\n',
        "[confidence]\nthreshold = 0.5\nbias = 1\n",
        "[confidence]\nthreshold = 0.5\nbias = true\nweights = {}\n",
        '[confidence]\nthreshold = 0.5\nbias = 1\nweights = { doubt = "a" }\n',
    ],
)
def test_a_calibration_that_is_none(tmp_path: Path, card: str) -> None:
    write_folder(tmp_path, card=card)
    with pytest.raises(ModelFolderError, match=r"\[confidence\] should hold numbers"):
        read_folder(tmp_path)


def test_a_model_without_calibration_is_not_judged(tmp_path: Path) -> None:
    write_folder(tmp_path, card="[drafting]\nenabled = false\n")
    model = OnnxModel(read_folder(tmp_path), threads=1)
    generation = model.start(asked("rename result to price"))
    assert "".join(piece.text for piece in generation) is not None
    assert getattr(generation, "judge", None) is None
    assert generation.usage.confidence is None


class Witness(EditJudge):
    """A judge that also keeps the rows it was shown."""

    rows: list[Any]
    chosen: list[int]

    def take(self, logits: Any, tokens: Any) -> None:
        self.rows += [row.copy() for row in logits[: len(tokens)]]
        self.chosen += tokens
        super().take(logits, tokens)


@pytest.fixture
def judged(copyist: Path) -> OnnxModel:
    return OnnxModel(replace(read_folder(copyist), confidence=TABLE), threads=1)


def test_the_loop_shows_the_row_that_each_token_came_from(judged: OnnxModel) -> None:
    model = judged
    for drafting in (None, Drafting()):
        model.drafting = drafting
        generation = model.start(asked("rename `result` to `amount`"))
        judge = getattr(generation, "judge", None)
        assert isinstance(judge, EditJudge)
        judge.__class__ = Witness
        assert isinstance(judge, Witness)
        judge.rows, judge.chosen = [], []
        assert "amount" in "".join(piece.text for piece in generation)
        assert len(judge.chosen) == generation.usage.output_tokens
        rows = np.array(judge.rows, np.float64)
        exact = rows - rows.max(axis=1, keepdims=True)
        exact -= np.log(np.exp(exact).sum(axis=1, keepdims=True))
        doubt = -exact[np.arange(len(rows)), judge.chosen].sum()
        assert judge.features()["doubt"] == pytest.approx(math.log(1e-3 + doubt), abs=2e-3)


def test_drafts_do_not_change_how_sure_a_model_is(judged: OnnxModel) -> None:
    model = judged
    seen: set[float] = set()
    for request in edit_requests():
        found: set[float | None] = set()
        for drafting in (None, Drafting(), Drafting(3)):
            model.drafting = drafting
            generation = model.start(request)
            for _ in generation:
                assert generation.usage.confidence is None  # not before its end
            ended = generation.finish_reason is FinishReason.STOP
            assert (generation.usage.confidence is not None) == ended
            found.add(generation.usage.confidence)
        assert len(found) == 1
        seen |= {value for value in found if value is not None}
    assert len(seen) > 3
    assert all(0 < value < 1 for value in seen)


def test_an_answer_that_is_cut_is_not_judged(judged: OnnxModel) -> None:
    generation = judged.start(replace(asked("rename `result` to `amount`"), max_output_tokens=3))
    list(generation)
    assert generation.finish_reason is FinishReason.LENGTH
    assert generation.usage.confidence is None


class _Reading:
    """In place of the lock: once it is let go, another generation's run overwrites the logits."""

    def __init__(self, decoder: Decoder, *, really: bool) -> None:
        self._decoder = decoder
        self._really = really
        self._logits: list[Array] = []

    def run(self, ids: Sequence[int], past: int, *, exact: bool = False) -> Array:
        self._logits.append(Decoder.run(self._decoder, ids, past, exact=exact))
        return self._logits[-1]

    def __enter__(self) -> None:
        self._logits.clear()

    def __exit__(self, *_: object) -> None:
        for logits in self._logits:
            if self._really:
                logits.fill(0.0)


def test_what_is_read_between_two_runs_does_not_change_how_sure_a_model_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path)
    model = OnnxModel(replace(read_folder(tmp_path), confidence=TABLE), threads=1)
    found: list[float] = []
    for really in (False, True):
        step = _Reading(model.decoder, really=really)
        monkeypatch.setattr(model.decoder, "run", step.run)
        monkeypatch.setattr(model, "_step", step)
        generation = model.start(asked("rename result to price"))
        judge = getattr(generation, "judge", None)
        assert isinstance(judge, EditJudge)
        assert sum(piece.tokens for piece in generation) > 5
        found.append(judge.features()["doubt"])
    assert found[0] == found[1]
