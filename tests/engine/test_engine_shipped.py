"""The shipped model in the engine: drafts change nothing, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from midstream.bench.reference_edits import REFERENCE_EDITS, edit_requests
from midstream.edits.request import RegionRequest, render_follow_up, render_request
from midstream.engine.folder import Drafting, read_folder
from midstream.engine.inspect import check
from midstream.engine.model import OnnxModel
from midstream.engine.types import FinishReason, GenerateRequest, Message
from midstream.resources import model_folders, models_dir

BROOK = models_dir() / "brook-4m"

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not model_folders(), reason="no model has been exported yet"),
]


def test_it_passes_the_check() -> None:
    results = {result.name: result for result in check(BROOK, threads=1)}
    assert all(result.ok for result in results.values())
    assert results["cache"].detail == "drafting is exact"


def test_drafted_edits_are_the_undrafted_ones() -> None:
    model = OnnxModel(read_folder(BROOK), threads=1)
    forwards = tokens = 0
    for request in edit_requests():
        texts: set[str] = set()
        for drafting in (None, Drafting(), Drafting(4), Drafting(16)):
            model.drafting = drafting
            generation = model.start(request)
            texts.add("".join(piece.text for piece in generation))
            assert generation.finish_reason in (FinishReason.STOP, FinishReason.LENGTH)
            if drafting == Drafting():
                forwards += generation.usage.forwards
                tokens += generation.usage.output_tokens
        assert len(texts) == 1
    assert forwards < 0.75 * tokens


def test_a_redirect_that_was_read_ahead_reads_what_came_since() -> None:
    model = OnnxModel(read_folder(BROOK), threads=1)
    request = edit_requests()[0]
    answer = iter(model.start(request))
    lines = "".join(piece.text for piece in model.start(request)).splitlines(keepends=True)

    def redirected(count: int, *, generate: bool = True) -> GenerateRequest:
        said = Message("user", render_follow_up("rename `result` to `outcome`"))
        kept = Message("assistant", "".join(lines[:count]))
        return replace(request, messages=(*request.messages, kept, said), generate=generate)

    whole = "".join(piece.text for piece in model.start(redirected(3)))
    model.cache.clear()
    next(answer)
    assert list(model.start(redirected(2, generate=False))) == []
    next(answer)
    answer.close()  # pyright: ignore[reportAttributeAccessIssue]
    generation = model.start(redirected(3))
    assert "".join(piece.text for piece in generation) == whole
    assert generation.usage.input_tokens - generation.usage.cached_tokens <= 8


def test_an_answer_that_was_begun_ahead_is_the_same() -> None:
    model = OnnxModel(read_folder(BROOK), threads=1)
    requests = edit_requests()
    for request, other in pairwise(requests):
        plain = model.start(request)
        whole = "".join(piece.text for piece in plain)
        before = "".join(piece.text for piece in model.start(other))
        model.cache.clear()
        running = iter(model.start(other))
        text = next(running).text
        assert list(model.start(replace(request, generate=False))) == []
        assert text + "".join(piece.text for piece in running) == before
        runs = model.decoder.runtime_s
        begun = iter(answer := model.start(request))
        text = next(begun).text
        assert model.decoder.runtime_s == runs, "its first run was done ahead"
        text += "".join(piece.text for piece in begun)
        assert text == whole
        assert answer.finish_reason is plain.finish_reason
        assert answer.usage.confidence == plain.usage.confidence is not None
        assert answer.usage.output_tokens == plain.usage.output_tokens
        assert answer.usage.cached_tokens == answer.usage.input_tokens


def test_what_was_begun_ahead_is_taken_up_once_and_by_its_own_request() -> None:
    model = OnnxModel(read_folder(BROOK), threads=1)
    one, other, *_ = edit_requests()
    for asked in (other, one, one):
        assert list(model.start(replace(one, generate=False))) == []
        assert "".join(p.text for p in model.start(asked)) == "".join(
            p.text for p in model.start(asked)
        )
    ahead = model.start(replace(one, generate=False))
    ahead.stop()
    assert list(ahead) == []
    assert ahead.finish_reason is FinishReason.STOPPED
    assert "".join(piece.text for piece in model.start(one))


def every_edit() -> Iterator[GenerateRequest]:
    """Every reference instruction for every reference function, in three wordings."""
    functions = dict.fromkeys(region for _, region in REFERENCE_EDITS)
    for instruction, _ in REFERENCE_EDITS:
        for region in functions:
            for words in (instruction, f"please {instruction}", f"{instruction} everywhere"):
                text = render_request(RegionRequest(instruction=words, region=region))
                yield GenerateRequest((Message("user", text),), max_output_tokens=512)


@pytest.mark.slow
def test_drafts_change_nothing_on_hundreds_of_prompts() -> None:
    model = OnnxModel(read_folder(BROOK), threads=1)
    count = 0
    for request in every_edit():
        model.drafting = None
        plain = "".join(piece.text for piece in model.start(request))
        model.drafting = Drafting()
        assert "".join(piece.text for piece in model.start(request)) == plain
        count += 1
    assert count == 216
