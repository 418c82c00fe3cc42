"""The suite's own edit model in the engine: what it answers, and that drafts change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from midstream.bench.reference_edits import REFERENCE_EDITS, edit_requests
from midstream.edits.request import RegionRequest, render_follow_up, render_request
from midstream.engine.folder import Drafting, read_folder
from midstream.engine.inspect import check
from midstream.engine.model import OnnxModel
from midstream.engine.prefix_cache import WORTH_SAVING
from midstream.engine.types import FinishReason, GenerateRequest, Message

REGION = """\
    def total(self, items):
        result = 0
        for item in items:
            result += item.price * item.count  # `ü`

        return result
"""


@pytest.fixture
def model(copyist: Path) -> OnnxModel:
    return OnnxModel(read_folder(copyist), threads=1)


def text_of(model: OnnxModel, request: GenerateRequest) -> str:
    return "".join(piece.text for piece in model.start(request))


def asked(instruction: str, region: str = REGION, *more: Message) -> GenerateRequest:
    text = render_request(RegionRequest(instruction, region, language="python"))
    return GenerateRequest((Message("user", text), *more))


def test_it_passes_the_check(copyist: Path) -> None:
    results = {result.name: result for result in check(copyist, threads=1)}
    assert all(result.ok for result in results.values())
    assert results["cache"].detail == "drafting is exact"


@pytest.mark.parametrize(
    ("instruction", "written"),
    [
        ("rename `result` to `amount`", REGION.replace("result", "amount")),
        (
            "call `items` `things`, and `total` `found`, please",
            REGION.replace("items", "things").replace("total", "found"),
        ),
        ("put `@cached(1)  # twice` on top", f"    @cached(1)  # twice\n{REGION}"),
        ("make it better", REGION),
    ],
)
def test_it_does_what_is_between_backticks(
    model: OnnxModel, instruction: str, written: str
) -> None:
    assert text_of(model, asked(instruction)) == written
    generation = model.start(asked(instruction))
    assert list(generation)
    assert generation.finish_reason is FinishReason.STOP
    assert generation.usage.confidence is not None


def test_a_redirect_goes_on_behind_what_is_kept(model: OnnxModel) -> None:
    renamed = REGION.replace("result", "amount").splitlines(keepends=True)
    more = (
        Message("assistant", "".join(renamed[:3])),
        Message("user", render_follow_up("rename `count` to `number`")),
    )
    rest = "".join(REGION.splitlines(keepends=True)[3:]).replace("count", "number")
    assert text_of(model, asked("rename `result` to `amount`", REGION, *more)) == rest


def test_drafted_edits_are_the_undrafted_ones(model: OnnxModel) -> None:
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


def test_a_redirect_that_was_read_ahead_reads_what_came_since(model: OnnxModel) -> None:
    request = edit_requests()[0]
    answer = iter(model.start(request))
    lines = text_of(model, request).splitlines(keepends=True)

    def redirected(count: int, *, generate: bool = True) -> GenerateRequest:
        said = Message("user", render_follow_up("rename `result` to `outcome`"))
        kept = Message("assistant", "".join(lines[:count]))
        return replace(request, messages=(*request.messages, kept, said), generate=generate)

    whole = text_of(model, redirected(3))
    model.cache.clear()
    next(answer)
    assert list(model.start(redirected(2, generate=False))) == []
    next(answer)
    answer.close()  # pyright: ignore[reportAttributeAccessIssue]
    generation = model.start(redirected(3))
    assert "".join(piece.text for piece in generation) == whole
    added = len(model.plan(redirected(3)).prompt_ids) - len(model.plan(redirected(2)).prompt_ids)
    read = generation.usage.input_tokens - generation.usage.cached_tokens
    assert read <= added + WORTH_SAVING, "behind the region stand the request and what is kept"


def test_an_answer_that_was_begun_ahead_is_the_same(model: OnnxModel) -> None:
    for request, other in pairwise(edit_requests()):
        plain = model.start(request)
        whole = "".join(piece.text for piece in plain)
        before = text_of(model, other)
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


def test_what_was_begun_ahead_is_taken_up_once_and_by_its_own_request(model: OnnxModel) -> None:
    one, other, *_ = edit_requests()
    for request in (other, one, one):
        assert list(model.start(replace(one, generate=False))) == []
        assert text_of(model, request) == text_of(model, request)
    ahead = model.start(replace(one, generate=False))
    ahead.stop()
    assert list(ahead) == []
    assert ahead.finish_reason is FinishReason.STOPPED
    assert text_of(model, one)


def every_edit() -> Iterator[GenerateRequest]:
    """Every reference instruction for every reference function, in three wordings."""
    functions = dict.fromkeys(region for _, region in REFERENCE_EDITS)
    for instruction, _ in REFERENCE_EDITS:
        for region in functions:
            for words in (instruction, f"please {instruction}", f"{instruction} everywhere"):
                yield replace(asked(words, region), max_output_tokens=512)


@pytest.mark.slow
def test_drafts_change_nothing_on_hundreds_of_prompts(model: OnnxModel) -> None:
    count = 0
    for request in every_edit():
        model.drafting = None
        plain = text_of(model, request)
        model.drafting = Drafting()
        assert text_of(model, request) == plain
        count += 1
    assert count == 216
