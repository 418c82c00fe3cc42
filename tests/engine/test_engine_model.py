"""Whole generations on tiny models: what they write, stopping, limits, what is remembered."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import onnxruntime
import pytest

from midstream.edits.request import RegionRequest, render_follow_up, render_request
from midstream.engine import model as models
from midstream.engine.folder import read_folder
from midstream.engine.loading import load_model
from midstream.engine.loop import ModelGeneration
from midstream.engine.model import OnnxModel, Preparation, PromptTooLongError
from midstream.engine.types import FinishReason, GenerateRequest, Message
from midstream.errors import UserError
from tests.helpers.endless_graph import make_endless
from tests.helpers.folders import SAMPLE, write_folder
from tests.helpers.tiny import random_weights, reference_logits
from tests.helpers.waiting import PATIENCE_S

REGION = SAMPLE.lstrip("\n")


def ask(instruction: str = "rename `items` to `goods`", **options: object) -> GenerateRequest:
    text = render_request(RegionRequest(instruction=instruction, region=REGION, path="shop.py"))
    return GenerateRequest(messages=(Message("user", text),), **options)  # type: ignore[arg-type]


def open_model(folder: Path) -> OnnxModel:
    return OnnxModel(read_folder(folder), threads=1)


def tokens_of(model: OnnxModel, request: GenerateRequest) -> list[int]:
    """The generated tokens: what the cache holds behind the prompt."""
    generation = model.start(request)
    for _ in generation:
        pass
    return model.cache.tokens[generation.usage.input_tokens :]


def test_greedy_text_is_the_reference_models(tmp_path: Path) -> None:
    shape = write_folder(tmp_path)
    model = open_model(tmp_path)
    generation = model.start(ask(max_output_tokens=20))
    pieces = list(generation)
    assert generation.usage.output_tokens == sum(piece.tokens for piece in pieces)
    weights = random_weights(shape)
    sequence = model.cache.tokens
    count = generation.usage.input_tokens
    logits = reference_logits(shape, weights, sequence)
    assert len(sequence) > count
    for row in range(count - 1, len(sequence) - 1):
        assert logits[row].argmax() == sequence[row + 1]


def test_other_work_is_done_while_the_graph_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path)
    may_open, opened = threading.Event(), []
    begin = onnxruntime.InferenceSession

    def session(*arguments: object, **options: object) -> object:
        assert may_open.wait(PATIENCE_S)
        opened.append(begin(*arguments, **options))
        return opened[-1]

    def meanwhile() -> None:
        assert not opened
        may_open.set()

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    model = load_model(tmp_path, threads=1, meanwhile=meanwhile)
    assert opened
    assert sum(piece.tokens for piece in model.start(ask(max_output_tokens=3))) == 3


def test_the_interface_is_what_the_server_knows(tmp_path: Path) -> None:
    write_folder(
        tmp_path, card='edit_format = "region"\nmax_region_lines = 25\nlanguages = ["python"]\n'
    )
    model = load_model(tmp_path, threads=1)
    assert model.name == "tiny"
    assert dict(model.facts) == {
        "edit_format": "region",
        "max_region_lines": "25",
        "languages": "python",
        "prompt": "edit-rewrite",
        "context_length": "512",
        "provider": "cpu",
        "must_change": "1",
    }
    generation = model.start(ask(max_output_tokens=3))
    assert generation.finish_reason is None
    assert sum(piece.tokens for piece in generation) == 3
    assert generation.finish_reason is FinishReason.LENGTH
    model.close()


def test_a_simulated_wafer_computes_the_same_and_counts_its_own_time(tmp_path: Path) -> None:
    write_folder(tmp_path)
    expected = open_model(tmp_path).start(ask(max_output_tokens=10))
    text = [piece.text for piece in expected]
    assert expected.usage.wafer_s is None
    model = OnnxModel(read_folder(tmp_path), provider="wafer", threads=1)
    generation = model.start(ask(max_output_tokens=10))
    assert [piece.text for piece in generation] == text
    assert generation.usage.wafer_s is not None
    assert 0 < generation.usage.wafer_s < 1
    assert model.facts["provider"] == "wafer"


def test_a_second_reading_comes_from_the_cache(tmp_path: Path) -> None:
    write_folder(tmp_path)
    model = open_model(tmp_path)
    warm = model.start(ask(generate=False))
    assert list(warm) == []
    assert warm.finish_reason is FinishReason.STOP
    assert warm.usage.output_tokens == 0
    again = model.start(ask(max_output_tokens=5))
    list(again)
    assert again.usage.cached_tokens == again.usage.input_tokens - 1


def redirected(first: GenerateRequest, kept: str) -> GenerateRequest:
    return GenerateRequest(
        messages=(
            *first.messages,
            Message("assistant", kept),
            Message("user", render_follow_up("rename `tax` to `rate`")),
        ),
        max_output_tokens=5,
    )


def test_a_redirect_goes_on_behind_the_kept_lines(tmp_path: Path) -> None:
    write_folder(tmp_path)
    model = open_model(tmp_path)
    first = ask("rename `items` to `goods`", max_output_tokens=5)
    kept = "def total(goods, tax):\n    result = 0\n"
    plan = model.plan(redirected(first, kept + "    for it"))
    assert plan.prompt_ids == model.plan(redirected(first, kept)).prompt_ids
    # What is drafted is the rest of the region: copying it all completes the kept lines.
    rest = "".join(plan.decoder.feed(token) for token in plan.draft_ids) + plan.decoder.finish()
    assert kept + rest == REGION.replace("total(items", "total(goods")


def test_a_redirect_reads_only_what_is_new(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat", context=2048)
    model = open_model(tmp_path)
    first = ask(max_output_tokens=8)
    generation = model.start(first)
    text = "".join(piece.text for piece in generation)
    second = model.start(redirected(first, text))
    list(second)
    assert second.usage.cached_tokens >= generation.usage.input_tokens - 1


def test_stop_before_during_and_after(tmp_path: Path) -> None:
    write_folder(tmp_path)
    model = open_model(tmp_path)
    early = model.start(ask())
    early.stop()
    assert list(early) == []
    assert early.finish_reason is FinishReason.STOPPED
    running = model.start(ask())
    pieces = iter(running)
    next(pieces)
    running.stop()
    assert list(pieces) == []
    assert running.finish_reason is FinishReason.STOPPED
    assert running.usage.forwards == 1
    running.stop()
    after = model.start(ask(max_output_tokens=4))
    assert sum(piece.tokens for piece in after) == 4


def test_stop_from_another_thread_while_the_prompt_is_read(tmp_path: Path) -> None:
    write_folder(tmp_path, width=256, layers=8, hidden=1024, context=4096, prompt="chat")
    model = open_model(tmp_path)
    request = GenerateRequest(messages=(Message("user", REGION * 12),))
    generation = model.start(request)
    timer = threading.Timer(0.03, generation.stop)
    timer.start()
    started = time.perf_counter()
    assert not any(piece.tokens for piece in generation)
    assert generation.finish_reason is FinishReason.STOPPED
    assert generation.usage.prefill_s == 0
    stopped_after = time.perf_counter() - started
    started = time.perf_counter()
    again = model.start(request)
    assert next(piece.tokens for piece in again if piece.tokens) == 1
    assert stopped_after < time.perf_counter() - started


def test_an_abandoned_generation_lets_the_next_one_run(tmp_path: Path) -> None:
    write_folder(tmp_path)
    model = open_model(tmp_path)
    pieces = iter(model.start(ask()))
    next(pieces)
    pieces.close()  # type: ignore[attr-defined]
    assert sum(piece.tokens for piece in model.start(ask(max_output_tokens=2))) == 2


def test_close_ends_what_runs(tmp_path: Path) -> None:
    write_folder(tmp_path)
    model = open_model(tmp_path)
    generation = model.start(ask())
    reasons: list[FinishReason | None] = []

    def work() -> None:
        for _ in generation:
            time.sleep(0.001)
        reasons.append(generation.finish_reason)

    thread = threading.Thread(target=work)
    thread.start()
    model.close()
    thread.join(5)
    assert not thread.is_alive()
    assert reasons[0] in (FinishReason.STOPPED, FinishReason.STOP)


def test_what_cannot_be_asked(tmp_path: Path) -> None:
    write_folder(tmp_path, context=60)
    model = open_model(tmp_path)
    with pytest.raises(PromptTooLongError, match=r"\d+ tokens and tiny reads at most 58"):
        model.start(ask())
    with pytest.raises(UserError, match="only rewrites a marked region"):
        model.start(GenerateRequest(messages=(Message("user", "Hello!"),)))
    with pytest.raises(UserError, match="no region"):
        model.start(GenerateRequest(messages=()))


def test_limits_of_the_model_hold(tmp_path: Path) -> None:
    write_folder(tmp_path, card="[limits]\nmax_prompt_tokens = 120\nmax_output_tokens = 4\n")
    model = open_model(tmp_path)
    assert sum(piece.tokens for piece in model.start(ask(max_output_tokens=99))) == 4
    with pytest.raises(
        PromptTooLongError, match=r"\d+ tokens and tiny reads at most 120; .* shorten"
    ):
        model.start(ask("rename `items` to `goods` " * 9))


def test_a_cut_answer_is_all_that_its_tokens_make_certain(tmp_path: Path) -> None:
    write_folder(tmp_path)
    model = open_model(tmp_path)
    known = tokens_of(model, ask(max_output_tokens=13))
    for limit in range(1, 13):
        request = ask(max_output_tokens=limit)
        generation = model.start(request)
        pieces = list(generation)
        decoder = model.plan(request).decoder
        text = "".join(decoder.feed(token) for token in known[:limit]) + decoder.finish()
        assert "".join(piece.text for piece in pieces) == text
        assert sum(piece.tokens for piece in pieces) == limit
        assert generation.finish_reason is FinishReason.LENGTH


def test_stop_strings_end_an_answer(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat")
    model = open_model(tmp_path)
    plain = ask(max_output_tokens=30)
    text = "".join(piece.text for piece in model.start(plain))
    stop = text[9:13]
    generation = model.start(ask(max_output_tokens=30, stop=(stop,)))
    assert "".join(piece.text for piece in generation) == text[: text.index(stop)]
    assert generation.finish_reason is FinishReason.STOP
    with pytest.raises(UserError, match="empty"):
        model.start(ask(stop=("",)))


def test_prompts_are_read_between_the_runs_of_an_answer(tmp_path: Path) -> None:
    write_folder(tmp_path)
    model = open_model(tmp_path)
    text = "".join(piece.text for piece in model.start(ask()))
    model.cache.clear()
    pieces: list[str] = []
    for number, piece in enumerate(model.start(ask())):
        pieces.append(piece.text)
        other = ask(f"add {'very ' * (number % 20)}good comments", generate=False)
        ahead = model.start(other)
        assert list(ahead) == []
        assert ahead.finish_reason is FinishReason.STOP
    assert number > 3
    assert "".join(pieces) == text
    generation = model.start(replace(other, generate=True))
    next(iter(generation))
    assert generation.usage.cached_tokens >= generation.usage.input_tokens - 2


def test_stopping_an_answer_leaves_what_is_read_ahead_alone(tmp_path: Path) -> None:
    """A stop ends the run of the answer itself and no other."""
    write_folder(tmp_path)
    model = open_model(tmp_path)
    answer = iter(generation := model.start(ask()))
    next(answer)
    ahead = model.start(ask("rename `items` to `wares`", generate=False))
    generation.stop()
    assert list(ahead) == []
    assert ahead.finish_reason is FinishReason.STOP
    assert list(answer) == []
    assert generation.finish_reason is FinishReason.STOPPED
    again = model.start(ask("rename `items` to `wares`"))
    next(iter(again))
    assert again.usage.cached_tokens >= again.usage.input_tokens - 2


def test_what_was_read_ahead_is_not_stopped_with_its_reading(tmp_path: Path) -> None:
    """Whoever asks stops the reading first, which may be over just then."""
    write_folder(tmp_path)
    model = open_model(tmp_path)
    text = "".join(piece.text for piece in model.start(ask()))
    for _ in range(2):
        ahead = model.start(ask(generate=False))
        assert list(ahead) == []
        generation = model.start(ask())
        ahead.stop()
        assert ahead.finish_reason is FinishReason.STOP
        assert "".join(piece.text for piece in generation) == text
        assert generation.finish_reason is not FinishReason.STOPPED
    ahead = model.start(ask(generate=False))
    ahead.stop()
    assert list(ahead) == []
    assert ahead.finish_reason is FinishReason.STOPPED
    assert "".join(piece.text for piece in model.start(ask())) == text


def endless_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[OnnxModel, threading.Event]:
    """A model that reads no prompt to its end, and an event that is set once it reads."""
    write_folder(folder)
    make_endless(folder, above=16)
    model, reads = open_model(folder), threading.Event()
    fill = model.decoder.fill

    def watched(*given: object, **named: object) -> object:
        reads.set()
        return fill(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(model.decoder, "fill", watched)
    return model, reads


def stop_once_it_reads(generation: ModelGeneration | Preparation, reads: threading.Event) -> None:
    """Stop a generation of an endless model while it reads, and see that it ends."""
    thread = threading.Thread(target=lambda: list(generation), daemon=True)
    thread.start()
    assert reads.wait(60)
    generation.stop()
    thread.join(60)
    assert not thread.is_alive()
    assert generation.finish_reason is FinishReason.STOPPED


def test_what_reads_without_end_gives_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "YIELD_SECONDS", 0.05)
    model, reads = endless_model(tmp_path, monkeypatch)
    ahead = model.start(ask(generate=False))
    stop_once_it_reads(ahead, reads)


def test_what_nobody_asks_about_is_not_read_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "READ_SECONDS", 0.2)
    model, _ = endless_model(tmp_path, monkeypatch)
    ahead = model.start(ask(generate=False))
    assert list(ahead) == []
    assert ahead.finish_reason is FinishReason.STOPPED


def test_a_stop_ends_a_run_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, reads = endless_model(tmp_path, monkeypatch)
    generation = model.start(ask())
    stop_once_it_reads(generation, reads)
