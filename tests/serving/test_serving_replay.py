"""Scripted replies, and the JSON files they come from."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.request import RegionRequest, render_follow_up, render_request
from midstream.engine.types import FinishReason, GenerateRequest, Message
from midstream.serving.replay import NoAnswerError, ReplayModel, ReplayScript, ReplayScriptError
from tests.helpers.waiting import PATIENCE_S

REGION = "def old():\n    return old\n    # end\n"


def ask(*texts: str, roles: str = "uau") -> GenerateRequest:
    names = {"u": "user", "a": "assistant"}
    return GenerateRequest(
        tuple(Message(names[role], text) for role, text in zip(roles, texts, strict=False))
    )


def say(model: ReplayModel, request: GenerateRequest) -> str:
    return "".join(piece.text for piece in model.start(request))


def script(path: Path, *entries: object) -> ReplayModel:
    file = path / "script.json"
    file.write_text(json.dumps(entries))
    return ReplayModel(ReplayScript.load(file))


@given(st.text(max_size=200))
def test_the_text_comes_out_as_it_is(text: str) -> None:
    assert say(ReplayModel(text), ask("x")) == text


def test_the_first_fitting_entry_answers_the_instruction(tmp_path: Path) -> None:
    model = script(
        tmp_path,
        {"match": "^Rename", "edit": [["old", "new"]]},
        {"match": "docs?", "text": "docs"},
        {"match": "", "text": "else"},
    )
    region = render_request(RegionRequest(instruction="rename old", region=REGION))
    assert say(model, ask(region)) == REGION.replace("old", "new")
    assert say(model, ask("add DOCS")) == "docs"
    assert say(model, ask("a region named Rename is not the instruction")) == "else"


def test_the_answer_goes_on_after_the_kept_lines(tmp_path: Path) -> None:
    model = script(
        tmp_path,
        {"match": "rename", "edit": [["old", "new"]]},
        {"match": "other", "edit": [["old", "other"]]},
    )
    region = render_request(RegionRequest(instruction="rename", region=REGION))
    request = ask(region, "def new():\n", render_follow_up("other"))
    assert say(model, request) == "    return other\n    # end\n"


def test_what_has_no_answer_says_so(tmp_path: Path) -> None:
    model = script(tmp_path, {"match": "rename", "edit": [["old", "new"]]})
    with pytest.raises(NoAnswerError, match="no answer to 'poem'"):
        model.start(ask("poem"))
    with pytest.raises(NoAnswerError, match="holds none"):
        model.start(ask("rename"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read"),
        ("{", "not usable"),
        ('[{"match": "("}]', "not usable"),
        ('[{"match": "x"}]', "either text or edit"),
        ('[{"match": "x", "text": "a", "edit": []}]', "either text or edit"),
        ('[{"text": "a", "speed": 3}]', "speed"),
    ],
)
def test_a_script_that_cannot_be_used_is_named(
    tmp_path: Path, content: str | None, reason: str
) -> None:
    path = tmp_path / "script.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ReplayScriptError, match=reason) as caught:
        ReplayScript.load(path)
    assert str(path) in str(caught.value)


def test_the_pace_is_kept() -> None:
    model = ReplayModel("word " * 100, rate=1000, delay=0.05)
    began = time.perf_counter()
    generation = model.start(ask("x"))
    list(generation)
    taken = time.perf_counter() - began
    assert 0.15 <= taken < PATIENCE_S
    assert generation.usage.prefill_s >= 0.05
    assert generation.usage.output_tokens == 101
    assert generation.finish_reason is FinishReason.STOP


def test_it_stops_while_it_waits() -> None:
    generation = ReplayModel("word", delay=10 * PATIENCE_S).start(ask("x"))
    timer = threading.Timer(0.05, generation.stop)
    timer.start()
    began = time.perf_counter()
    assert list(generation) == []
    assert time.perf_counter() - began < PATIENCE_S
    assert generation.finish_reason is FinishReason.STOPPED
