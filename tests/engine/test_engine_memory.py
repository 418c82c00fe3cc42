"""Long contexts: what they take is said beforehand, and what does not fit is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from midstream.engine import cache_memory as memory
from midstream.engine.decoder import Decoder
from midstream.engine.folder import read_folder
from midstream.engine.inspect import check, describe
from midstream.engine.model import MemoryShortError, OnnxModel, PromptTooLongError
from midstream.engine.prefix_cache import PrefixCache
from midstream.engine.types import FinishReason, GenerateRequest, Message
from tests.helpers.folders import bare_folder, write_folder
from tests.helpers.tiny import build, make_shape, random_weights, reference_logits

LONG = 131_072
WIDE = {"context": LONG, "layers": 3, "heads": 4, "kv_heads": 4, "width": 128}
"""A token takes 3 KiB of cache, a full context 384 MiB."""


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place that tells what is free: MEMINFO's and the control group's files."""
    place = tmp_path / "system"
    place.mkdir()
    monkeypatch.setattr(memory, "MEMINFO", place / "meminfo")
    monkeypatch.setattr(memory, "CGROUP", place)
    return place


def set_free(system: Path, mib: int) -> None:
    (system / "meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable:  {mib * 1024} kB\n")


def ask(letters: int, limit: int | None = None) -> GenerateRequest:
    return GenerateRequest((Message("user", "0" * letters),), max_output_tokens=limit)


def test_what_is_free_is_the_smaller_one_of_system_and_control_group(system: Path) -> None:
    assert memory.available_bytes() is None
    assert memory.rows_that_fit(1024) is None
    set_free(system, 1000)
    assert memory.available_bytes() == 1000 << 20
    (system / "memory.max").write_text("max\n")
    (system / "memory.current").write_text("5\n")
    assert memory.available_bytes() == 1000 << 20
    (system / "memory.max").write_text(f"{300 << 20}\n")
    assert memory.available_bytes() == (300 << 20) - 5
    assert memory.rows_that_fit(1 << 20) == 43
    (system / "memory.max").write_text("1\n")
    assert memory.available_bytes() == 0
    assert memory.rows_that_fit(1 << 20) == 0


def test_sizes_are_spelled() -> None:
    assert memory.spelled(812 << 20) == "812 MiB"
    assert memory.spelled(12_300 << 20) == "12.0 GiB"


def test_this_machine_says_what_is_free() -> None:
    assert memory.available_bytes() is None or memory.available_bytes() > 0


@pytest.mark.system
def test_a_long_context_is_paid_for_as_it_is_used(tmp_path: Path) -> None:
    shape = make_shape(context=LONG, layers=1)
    weights = random_weights(shape)
    decoder = Decoder(bare_folder(tmp_path, shape, build(shape, weights)), threads=1)
    ids = [int(i) for i in np.random.default_rng(2).integers(0, shape.vocab, 2600)]
    for at in range(0, 2560, 128):
        decoder.fill(ids[at : at + 128], at)
    assert decoder.written == 2560
    assert 2560 * decoder.row_bytes <= decoder.cache_bytes < LONG * decoder.row_bytes / 8
    expected = reference_logits(shape, weights, ids)[2560:]
    np.testing.assert_allclose(decoder.run(ids[2560:], 2560), expected, atol=1e-3)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_what_a_long_prompt_took_is_given_back(tmp_path: Path, device: str | None) -> None:
    shape = make_shape(context=LONG, layers=1)
    weights = random_weights(shape)
    folder = bare_folder(tmp_path, shape, build(shape, weights))
    decoder = Decoder(folder, threads=1, device=device)
    cache = PrefixCache(decoder, budget=0)
    small = decoder.cache_bytes
    ids = [int(i) for i in np.random.default_rng(2).integers(0, shape.vocab, 2560)]

    def read(prompt: list[int]) -> None:
        past = cache.open(prompt)
        for at in range(past, len(prompt), 128):
            decoder.fill(prompt[at : at + 128], at)
        cache.extend(prompt[past:])

    read(ids)
    large = decoder.cache_bytes
    read(ids[:1000])
    assert decoder.cache_bytes == large > 4 * small, "it still fills a part of what there is"
    read(ids[:40] + ids[::-1][:60])
    assert small <= decoder.cache_bytes < large / 4
    expected = reference_logits(shape, weights, [*cache.tokens, 1, 2])[-2:]
    np.testing.assert_allclose(decoder.run([1, 2], 100), expected, atol=1e-3)


def test_the_memory_is_said_beforehand(tmp_path: Path, system: Path) -> None:
    write_folder(tmp_path, **WIDE)
    info = describe(tmp_path)
    assert (info.context_length, info.cache_bytes) == (LONG, 384 << 20)
    set_free(system, 5000)
    details = {step.name: step.detail for step in check(tmp_path, threads=1)}
    assert details["memory"] == f"384 MiB of KV cache for {LONG} tokens, 4.9 GiB are free"


def test_a_prompt_that_does_not_fit_into_memory_is_refused(tmp_path: Path, system: Path) -> None:
    write_folder(tmp_path, prompt="chat", **WIDE)
    model = OnnxModel(read_folder(tmp_path), threads=1)
    set_free(system, 256 + 1)
    with pytest.raises(MemoryShortError, match=r"1202 tokens.* takes 4 MiB, and 257 MiB of memory"):
        model.start(ask(1200))
    set_free(system, 256 + 4)
    assert sum(piece.tokens for piece in model.start(ask(1200, 2))) == 2


def test_an_answer_ends_where_memory_does(tmp_path: Path, system: Path) -> None:
    write_folder(tmp_path, prompt="chat", **WIDE)
    model = OnnxModel(read_folder(tmp_path), threads=1)
    set_free(system, 256 + 1)
    generation = model.start(ask(300))
    # 341 rows of 3 KiB fit into the one MiB that is left.
    assert sum(piece.tokens for piece in generation) == 341 - 302 - 1
    assert generation.finish_reason is FinishReason.LENGTH


def test_a_prompt_longer_than_the_context_names_both_lengths(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat", **WIDE)
    model = OnnxModel(read_folder(tmp_path), threads=1)
    with pytest.raises(PromptTooLongError, match=r"200002 tokens and tiny reads at most 131070"):
        model.start(ask(200_000))
