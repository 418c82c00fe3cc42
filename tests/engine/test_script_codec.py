"""Models that write edit scripts, through ONNX Runtime: exported, read ahead, drafted, stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from midstream.edits.request import render_follow_up
from midstream.engine.edit_request import EditRequest
from midstream.engine.folder import Calibration, Drafting, read_folder
from midstream.engine.inspect import check
from midstream.engine.model import OnnxModel
from midstream.engine.prompts import load_tokenizer
from midstream.engine.script_codec import ScriptCodec
from midstream.engine.types import GenerateRequest, Message
from models.training.edit_script import export, rounding
from models.training.graphs import BlockFormat, QuantisedBlocks, quantise_range
from tests.helpers.scripts import REGION, asked, folder_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory.mktemp("script"))


@pytest.fixture
def model(folder: Path) -> Iterator[OnnxModel]:
    model = OnnxModel(read_folder(folder), threads=1)
    yield model
    model.close()


def text_of(model: OnnxModel, request: GenerateRequest) -> str:
    return "".join(piece.text for piece in model.start(request))


@pytest.mark.parametrize("recipe", sorted(export.RECIPES))
def test_every_recipe_runs_and_drafting_is_exact(tmp_path: Path, recipe: str) -> None:
    results = list(check(folder_of(tmp_path, recipe), threads=1))
    assert all(result.ok for result in results), results
    assert {r.name: r for r in results}["cache"].detail == "drafting is exact"


def test_quantised_tables_compute_what_the_weights_do(tmp_path: Path) -> None:
    ids = list(range(5, 45))
    rows: dict[str, Any] = {}
    for recipe in ("float32", "int8", "mixed"):
        model = OnnxModel(read_folder(folder_of(tmp_path / recipe, recipe)), threads=1)
        rows[recipe] = model.decoder.run(ids, 0).copy()
    spread = rows["float32"].std()
    assert np.abs(rows["int8"] - rows["float32"]).max() < 0.2 * spread
    assert np.abs(rows["mixed"] - rows["float32"]).mean() < 0.3 * spread


def test_rounding_by_examples_changes_outputs_less(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((64, 48)).astype(np.float32)
    rows = (rng.standard_normal((500, 8)) @ rng.standard_normal((8, 64))).astype(np.float32)
    form = BlockFormat(4)

    def error(parts: QuantisedBlocks) -> float:
        return float(np.square(rows @ (values_of(parts) - matrix)).mean())

    nearest = quantise_range(matrix, form)
    assert error(rounding.rounded(matrix, rows.T @ rows, form)) < 0.5 * error(nearest)
    assert read_folder(folder_of(tmp_path, rounds=True)).prompt == "edit-script"


def values_of(parts: QuantisedBlocks) -> Any:
    """The float32 matrix [inputs, outputs] that 4-bit blocks stand for."""
    stored = np.stack([parts.stored & 15, parts.stored >> 4], -1).reshape(
        *parts.stored.shape[:2], -1
    )
    outputs, blocks, _ = stored.shape
    points = parts.zeros.reshape(outputs, -1)
    zeros = np.stack([points & 15, points >> 4], -1).reshape(outputs, -1)[:, :blocks]
    scales = parts.scales.astype(np.float32).reshape(outputs, blocks, 1)
    return ((stored - zeros[..., None].astype(np.float32)) * scales).reshape(outputs, -1).T


def test_an_answer_is_whole_lines_of_the_region_or_changes_to_it(model: OnnxModel) -> None:
    for instruction in ("rename result to amount", "return early", "use sum"):
        text = text_of(model, asked(instruction))
        assert text.endswith("\n") or not text


def test_drafted_answers_are_the_undrafted_ones(model: OnnxModel) -> None:
    for instruction in ("rename result to amount", "add `pass`", "drop the tax", "x"):
        texts: set[str] = set()
        for drafting in (None, Drafting(), Drafting(3)):
            model.drafting = drafting
            model.cache.clear()
            texts.add(text_of(model, asked(instruction)))
        assert len(texts) == 1


def test_the_region_is_read_before_the_first_word_and_serves_every_request(
    model: OnnxModel,
) -> None:
    before = replace(asked(""), generate=False)
    region = len(model.plan(before).prompt_ids)
    assert list(model.start(before)) == []
    for request in (asked("rename result to amount"), asked("use sum")):
        generation = model.start(request)
        assert "".join(piece.text for piece in generation) is not None
        assert generation.usage.cached_tokens >= region - 1
        assert generation.usage.input_tokens > region


def test_a_redirect_reads_the_request_and_what_stays(model: OnnxModel) -> None:
    text_of(model, asked("rename result to amount"))
    first = model.plan(asked("rename result to amount")).prompt_ids
    kept = "".join(line + "\n" for line in REGION.split("\n")[:2]).replace("0", "1")
    redirected = asked(
        "rename result to amount",
        REGION,
        Message("assistant", kept),
        Message("user", render_follow_up("start at one")),
    )
    generation = model.start(redirected)
    text = "".join(piece.text for piece in generation)
    region = len(model.plan(replace(asked(""), generate=False)).prompt_ids)
    assert generation.usage.cached_tokens >= region
    prompt = model.plan(redirected).prompt_ids
    assert prompt[:region] == first[:region]
    said = load_tokenizer(model.folder).decode(prompt[region:], skip_special_tokens=False)
    assert said.replace(" ", "") == "<|im_start|>startatone<|im_end|>2|result=1\n"
    assert not text.startswith("    def")


def test_marks_in_the_code_are_text(model: OnnxModel) -> None:
    end = load_tokenizer(model.folder).token_to_id("<|im_end|>")
    plan = model.plan(asked("call it `<|im_end|>`", 'x = "<|im_end|>"\n'))
    assert plan.prompt_ids.count(end) == 1
    assert text_of(model, asked("", "")) is not None


def test_a_stop_ends_it_and_the_next_answer_is_the_same(model: OnnxModel) -> None:
    whole = text_of(model, asked("rename result to amount"))
    generation = model.start(asked("rename result to amount"))
    for _ in generation:
        generation.stop()
    assert text_of(model, asked("rename result to amount")) == whole


def chosen(codec: ScriptCodec, instruction: str, wanted: str) -> tuple[str, list[int]]:
    """The text of an answer whose likeliest tokens are those of a script; the rest is random."""
    plan = codec.encode(EditRequest(instruction, REGION))
    assert plan.choice is not None
    rng = np.random.default_rng(2)
    vocab = codec._vocab  # pyright: ignore[reportPrivateUsage]
    tokens, text = list[int](), ""
    for token in [*vocab.encode(wanted), vocab.end]:
        logits = rng.standard_normal(codec.vocab_size).astype(np.float32)
        logits[token] += 20
        picked = plan.choice.pick(logits)
        plan.choice.feed(picked)
        tokens.append(picked)
        text += plan.decoder.feed(picked)
        if picked in plan.stop_ids:
            break
    return text, tokens


@pytest.mark.parametrize(
    ("script", "old", "new"),
    [
        ("2|    result = 1", "result = 0", "result = 1"),
        ("*result=>amount", "result", "amount"),
        ("5-", "\n\n", "\n"),
        ("=", "", ""),
    ],
)
def test_scripts_become_the_text_of_the_region(
    folder: Path, script: str, old: str, new: str
) -> None:
    text, _ = chosen(ScriptCodec.load(folder), "whatever", script)
    assert text == REGION.replace(old, new)


@pytest.mark.parametrize("script", ["9|x", "2|a\n1|b", "2:", "hello", "*nowhere=>x", "=2", "12|"])
def test_what_is_no_script_is_not_chosen(folder: Path, script: str) -> None:
    codec = ScriptCodec.load(folder)
    _, tokens = chosen(codec, "whatever", script)
    vocab = codec._vocab  # pyright: ignore[reportPrivateUsage]
    assert b"".join(map(vocab.bytes_of, tokens)).decode("utf-8", "replace") != script


def test_drafts_repeat_the_old_line_and_go_on_behind_a_change(folder: Path) -> None:
    codec = ScriptCodec.load(folder)
    vocab = codec._vocab  # pyright: ignore[reportPrivateUsage]
    plan = codec.encode(EditRequest("start `result` at one", REGION))
    assert plan.drafter is not None
    line = vocab.encode("4|        result += item.price * item.count")
    plan.drafter.learn(line[:1])
    assert plan.drafter.propose(99) == [*line[1:], vocab.end]
    plan.drafter.learn(line[1:4])
    assert plan.drafter.propose(99) == [*line[4:], vocab.end]
    plan.drafter.learn(vocab.encode("-")[:1])
    assert plan.drafter.propose(99)[-3:] == [*line[-2:], vocab.end]


def test_drafts_expect_one_line_behind_the_other_where_lines_are_put_in(folder: Path) -> None:
    codec = ScriptCodec.load(folder)
    vocab = codec._vocab  # pyright: ignore[reportPrivateUsage]
    plan = codec.encode(EditRequest("say so", REGION))
    assert plan.drafter is not None

    def drafted(written: str) -> str:
        assert plan.drafter is not None
        plan.drafter.learn(vocab.encode(written))
        return b"".join(map(vocab.bytes_of, plan.drafter.propose(99))).decode()

    # Of the indentation, the last space is part of the next word's token.
    assert drafted("3+").rstrip(" ") == "|"
    assert drafted("|    if tax:").startswith("\n3+|    ")
    assert drafted("\n").startswith("3+|    ")
    assert drafted("3").startswith("+|    ")
    assert drafted("+|        raise ValueError\n").startswith("3+|    ")
    assert not drafted("5|x\n").startswith("3")


def test_declining_and_confidence_are_told(folder: Path) -> None:
    weights = {"opening": 1.0, "mean": 0.5, "least": 0.1, "places": 0.1, "text": 0.1}
    judged = replace(read_folder(folder), confidence=Calibration(0.5, 0.0, weights))
    model = OnnxModel(judged, threads=1)
    generation = model.start(asked("rename result to amount"))
    list(generation)
    assert generation.usage.confidence is None or 0 <= generation.usage.confidence <= 1
    plan = model.plan(asked("write a compiler"))
    codec = ScriptCodec.load(folder)
    vocab = codec._vocab  # pyright: ignore[reportPrivateUsage]
    judge, tokens = plan.judge, [vocab.marks["?"], vocab.end]
    assert judge is not None
    rows = np.zeros((2, codec.vocab_size), np.float32)
    rows[[0, 1], tokens] = 9
    text = "".join(plan.decoder.feed(token) for token in tokens)
    judge.take(rows, tokens, text)
    assert text == REGION
    assert judge.gave_up
    assert 0 < judge.confidence() < 1
    model.close()
