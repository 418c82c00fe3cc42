"""Speculative decoding on real graphs: drafts change the cost of a text and never the text."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from midstream.engine import departure
from midstream.engine.decoder import Decoder
from midstream.engine.folder import Drafting
from midstream.engine.loop import PREFILL_CHUNK, ModelGeneration, Runtime
from midstream.engine.plan import EncodedRequest
from midstream.engine.prefix_cache import PrefixCache
from midstream.engine.sampling import Sampler
from midstream.engine.types import FinishReason, Usage
from tests.helpers.decoders import DecoderShape
from tests.helpers.folders import bare_folder
from tests.helpers.tiny import build, build_integer, make_shape, random_weights


class Spelled:
    """A text decoder that writes token ids as words."""

    def feed(self, token_id: int) -> str:
        return f"{token_id} "

    def finish(self) -> str:
        return "."


def spelled(tokens: Sequence[int]) -> str:
    return "".join(f"{token} " for token in tokens)


class Bench:
    """A decoder with its cache, and generations from bare token lists."""

    def __init__(
        self, folder: Path, shape: DecoderShape, bits: int, seed: int, **more: Any
    ) -> None:
        dialect, weights = more.pop("dialect", "mask"), random_weights(shape, seed)
        integer = dialect == "integer"
        graph = build_integer(shape, weights) if integer else build(shape, weights, bits, dialect)
        self.decoder = Decoder(bare_folder(folder, shape, graph, **more), threads=1)
        self.cache = PrefixCache(self.decoder)

    def start(
        self,
        prompt: list[int],
        draft: list[int],
        *,
        drafting: Drafting | None,
        limit: int = 40,
        stop_ids: frozenset[int] = frozenset(),
        stop: tuple[str, ...] = (),
        sampler: Sampler | None = None,
        fresh: bool = True,
        must_change: bool = False,
    ) -> ModelGeneration:
        if fresh:
            self.cache.clear()
        return ModelGeneration(
            EncodedRequest(prompt, draft, stop_ids, Spelled(), text_of=spelled),
            Runtime(self.decoder, self.cache, drafting, exact=True),
            sampler or Sampler(),
            limit=limit,
            stop=stop,
            must_change=must_change,
        )

    def generate(self, prompt: list[int], draft: list[int], **how: Any) -> tuple[list[int], Usage]:
        generation = self.start(prompt, draft, **how)
        text = "".join(piece.text for piece in generation)
        # However a text ends, its decoder is told.
        tokens = [int(word) for word in text.removesuffix(".").split()]
        assert text.endswith(".")
        ended = tokens[-1] in how.get("stop_ids", ())
        assert generation.finish_reason is (FinishReason.STOP if ended else FinishReason.LENGTH)
        return tokens, generation.usage


def damaged(tokens: list[int], rng: np.random.Generator, vocab: int) -> list[int]:
    """A source that the output is an edit of: some tokens replaced, dropped, put in."""
    out: list[int] = []
    for token in tokens:
        chance = rng.random()
        if chance < 0.05:
            out.append(int(rng.integers(vocab)))
        elif chance < 0.1:
            out += [int(rng.integers(vocab)), token]
        elif chance > 0.05 + 0.9:
            continue
        else:
            out.append(token)
    return out or [0]


GRAPHS = [
    (32, make_shape(), {}),
    (4, make_shape(vocab=500, width=128, layers=3, heads=4, kv_heads=1, hidden=256), {}),
    (8, make_shape(vocab=500, width=128, layers=2, heads=2, kv_heads=2, hidden=192), {}),
    (32, make_shape(), {"shares_cache": False}),
    (4, make_shape(), {"dialect": "positions"}),
    (8, make_shape(vocab=500, width=128, hidden=192), {"dialect": "integer"}),
]


_DEAR = pytest.mark.system
"""A second of processor time and more."""


@pytest.mark.parametrize(
    ("bits", "shape", "more"),
    [GRAPHS[0], *(pytest.param(*graph, marks=_DEAR) for graph in GRAPHS[1:5]), GRAPHS[5]],
)
def test_drafted_text_is_the_undrafted_text(
    tmp_path: Path, bits: int, shape: DecoderShape, more: dict[str, Any]
) -> None:
    bench = Bench(tmp_path, shape, bits, seed=5, **more)
    rng = np.random.default_rng(7)
    forwards = plain_forwards = accepted = refused = 0
    for _ in range(60):
        prompt = [int(i) for i in rng.integers(0, shape.vocab, int(rng.integers(2, 60)))]
        plain, plain_usage = bench.generate(prompt, [0], drafting=None)
        source = damaged(plain, rng, shape.vocab)
        for drafting in (Drafting(), Drafting(3)):
            drafted, usage = bench.generate(prompt, source, drafting=drafting)
            assert drafted == plain
            assert usage.output_tokens == len(plain)
        forwards += usage.forwards
        accepted += usage.accepted_tokens
        refused += usage.drafted_tokens - usage.accepted_tokens
        plain_forwards += plain_usage.forwards
    # The comparison means something only if drafts were taken and refused.
    assert refused > 100
    assert accepted > 0.3 * plain_forwards
    assert forwards < 0.7 * plain_forwards


@pytest.mark.parametrize("temperature", [0.0, 2.0])
def test_text_without_a_source_is_drafted_from_what_was_said_before(
    tmp_path: Path, temperature: float
) -> None:
    bits, shape, _ = GRAPHS[0]
    bench = Bench(tmp_path, shape, bits, seed=5)
    rng = np.random.default_rng(8)
    drafted_tokens = accepted = 0
    for seed in range(20):
        stem = [int(i) for i in rng.integers(0, shape.vocab, 9)]

        def written(drafting: Drafting | None, prompt: list[int]) -> tuple[list[int], Usage]:
            sampler = Sampler(temperature=temperature, seed=seed)  # noqa: B023
            return bench.generate(prompt, [], drafting=drafting, sampler=sampler)

        # The prompt holds an answer and ends as that began: it may go on likewise.
        answer, _ = written(None, stem)
        prompt = [*stem, *answer, *stem]
        plain, _ = written(None, prompt)
        drafted, usage = written(Drafting(), prompt)
        assert drafted == plain
        accepted += usage.accepted_tokens
        drafted_tokens += usage.drafted_tokens
    assert 5 < accepted < drafted_tokens


def test_a_cached_prefix_gives_the_same_text(tmp_path: Path) -> None:
    bits, shape, _ = GRAPHS[1]
    bench = Bench(tmp_path, shape, bits, seed=2)
    rng = np.random.default_rng(3)
    stem = [int(i) for i in rng.integers(0, shape.vocab, 90)]
    for length in range(1, 90, 3):
        prompt = stem[:length] + [int(i) for i in rng.integers(0, shape.vocab, 7)]
        cold, _ = bench.generate(prompt, [0], drafting=Drafting())
        bench.generate([*stem, 1], [0], drafting=Drafting())
        warm, usage = bench.generate(prompt, [0], drafting=Drafting(), fresh=False)
        assert usage.cached_tokens >= length
        assert warm == cold


def test_a_long_prompt_says_how_much_of_it_is_read(tmp_path: Path) -> None:
    bits, shape, _ = GRAPHS[1]
    bench = Bench(tmp_path, shape, bits, seed=2)
    rng = np.random.default_rng(3)
    prompt = [int(i) for i in rng.integers(0, shape.vocab, 2 * PREFILL_CHUNK + 40)]
    generation = bench.start(prompt, [], drafting=None, limit=4)
    read: list[int] = []
    for piece in generation:
        if piece.tokens:
            break
        assert piece.text == ""
        read.append(generation.usage.read_tokens)
    assert read == [PREFILL_CHUNK, 2 * PREFILL_CHUNK]
    generation.stop()


def test_a_draft_ends_at_a_stop_token(tmp_path: Path) -> None:
    bits, shape, _ = GRAPHS[0]
    bench = Bench(tmp_path, shape, bits, seed=5)
    prompt = [3, 1, 4, 1, 5]
    plain, _ = bench.generate(prompt, [0], drafting=None)
    stop_ids = frozenset({plain[9]})
    first = plain.index(plain[9])
    for drafting in (None, Drafting(16)):
        drafted, _ = bench.generate(prompt, plain, drafting=drafting, stop_ids=stop_ids)
        assert drafted == plain[: first + 1]


def test_a_stop_string_ends_a_draft_where_it_ends_plain_text(tmp_path: Path) -> None:
    bits, shape, _ = GRAPHS[0]
    bench = Bench(tmp_path, shape, bits, seed=5)
    rng = np.random.default_rng(11)
    for _ in range(20):
        prompt = [int(i) for i in rng.integers(0, shape.vocab, 9)]
        plain, _ = bench.generate(prompt, [0], drafting=None)
        at = int(rng.integers(2, len(plain) - 2))
        # It starts inside a token's text and goes on into the next two.
        stop = (f"{plain[at]}"[-1] + f" {plain[at + 1]} {plain[at + 2]}"[:-1], "never")
        text = " ".join(map(str, plain)) + " "
        expected = text[: text.index(stop[0])]
        results: set[tuple[str, int, int]] = set()
        for drafting in (None, Drafting(3), Drafting(16)):
            generation = bench.start(prompt, plain, drafting=drafting, stop=stop)
            pieces = list(generation)
            usage = generation.usage
            assert generation.finish_reason is FinishReason.STOP
            assert sum(piece.tokens for piece in pieces) == usage.output_tokens
            assert usage.accepted_tokens <= usage.output_tokens
            results.add(("".join(p.text for p in pieces), usage.output_tokens, usage.input_tokens))
        assert len(results) == 1
        assert results.pop()[0] == expected


def test_a_cut_gives_back_what_might_have_become_a_stop_string(tmp_path: Path) -> None:
    bits, shape, _ = GRAPHS[0]
    bench = Bench(tmp_path, shape, bits, seed=5)
    plain, _ = bench.generate([3, 1, 4], [0], drafting=None, limit=6)
    text = " ".join(map(str, plain)) + " "
    stop = (text[-5:] + "?",)
    cut = list(bench.start([3, 1, 4], [0], drafting=None, limit=6, stop=stop))
    assert "".join(piece.text for piece in cut[:-1]) == text[:-5]
    assert (cut[-1].text, cut[-1].tokens) == (text[-5:] + ".", 0)
    stopped = bench.start([3, 1, 4], [0], drafting=None, limit=99, stop=stop)
    pieces = iter(stopped)
    written = "".join(next(pieces).text for _ in plain)
    stopped.stop()
    assert written + "".join(piece.text for piece in pieces) == text + "."
    assert stopped.finish_reason is FinishReason.STOPPED


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 16])
def test_a_draft_does_not_pass_the_limit(tmp_path: Path, limit: int) -> None:
    bits, shape, _ = GRAPHS[0]
    bench = Bench(tmp_path, shape, bits, seed=5)
    plain, _ = bench.generate([3, 1, 4], [0], drafting=None)
    drafted, _ = bench.generate([3, 1, 4], plain, drafting=Drafting(8), limit=limit)
    assert drafted == plain[:limit]


def test_the_context_can_be_filled_to_its_end(tmp_path: Path) -> None:
    shape = make_shape(context=48)
    bench = Bench(tmp_path, shape, 32, seed=5)
    plain, _ = bench.generate([3, 1, 4], [0], drafting=None, limit=44)
    drafted, usage = bench.generate([3, 1, 4], plain, drafting=Drafting(8), limit=44)
    assert drafted == plain
    assert usage.output_tokens == 44


def test_sampled_text_with_a_seed_does_not_depend_on_drafts(tmp_path: Path) -> None:
    bits, shape, _ = GRAPHS[0]
    bench = Bench(tmp_path, shape, bits, seed=5)
    texts: set[tuple[int, ...]] = set()
    taken = 0
    for seed in range(20):
        plain, _ = bench.generate(
            [3, 1, 4], [0], drafting=None, sampler=Sampler(temperature=3.0, seed=seed)
        )
        drafted, usage = bench.generate(
            [3, 1, 4], plain, drafting=Drafting(), sampler=Sampler(temperature=3.0, seed=seed)
        )
        assert drafted == plain
        texts.add(tuple(plain))
        taken += usage.accepted_tokens
    assert len(texts) == 20
    assert taken > 100


@pytest.mark.parametrize("sizes", [{}, {"width": 128, "layers": 5, "hidden": 512}])
@pytest.mark.parametrize(("at", "reading"), [(1, True), (3, True), (1, False), (4, False)])
def test_a_stop_ends_the_run_in_progress_and_lets_none_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int], at: int, reading: bool
) -> None:
    bench = Bench(tmp_path, make_shape(context=1024, **sizes), 32, seed=5)
    generation = bench.start(list(range(299)) * 3, [0], drafting=Drafting(), limit=60)
    name = "fill" if reading else "run"
    original = getattr(bench.decoder, name)
    begun: list[int] = []

    def counting(*arguments: Any, **more: Any) -> Any:
        begun.append(bench.decoder.written)
        if len(begun) == at:
            other = threading.Thread(target=generation.stop)
            other.start()
            other.join()
        return original(*arguments, **more)

    monkeypatch.setattr(bench.decoder, name, counting)
    rows = len(bench.cache.tokens)
    for _ in generation:
        rows = len(bench.cache.tokens)
    assert generation.finish_reason is FinishReason.STOPPED
    assert len(begun) == at
    # What the cut run computed does not count: the cache is as the last whole run left it.
    assert len(bench.cache.tokens) == (128 * (at - 1) if reading else rows)
    assert generation.usage.forwards == (0 if reading else at - 1)
    monkeypatch.undo()
    again, usage = bench.generate([3, 1, 4], [0], drafting=None, limit=4, fresh=False)
    assert len(again) == usage.output_tokens == 4


@pytest.mark.parametrize("drafting", [None, Drafting(most=6)])
@pytest.mark.parametrize(("bits", "shape", "more"), GRAPHS)
def test_an_answer_that_must_change_leaves_its_draft_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bits: int,
    shape: DecoderShape,
    more: dict[str, Any],
    drafting: Drafting | None,
) -> None:
    monkeypatch.setattr(departure, "MIN_CHANCE", 0.0)
    bench = Bench(tmp_path, shape, bits, 3, **more)
    rng = np.random.default_rng(3)
    prompt, draft = rng.integers(shape.vocab, size=50).tolist(), rng.integers(20, size=45).tolist()
    tokens, _ = bench.generate(prompt, draft, drafting=drafting, limit=60, must_change=True)
    kept = next(n for n, pair in enumerate(zip(tokens, draft, strict=False)) if len(set(pair)) > 1)
    assert tokens[:kept] == draft[:kept]
    # What follows is what the model writes behind this beginning.
    begun = [*prompt, *tokens[: kept + 1]]
    behind, _ = bench.generate(begun, [], drafting=None, limit=60 - kept - 1)
    assert tokens[kept + 1 :] == behind
    # No other place had a likelier token.
    logits = bench.decoder.run([*prompt, *draft[:-1]], 0, exact=True)[len(prompt) - 1 :]
    chances = np.exp(logits - logits.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    left = float(chances[kept, tokens[kept]])
    chances[np.arange(len(draft)), draft] = 0
    assert left == pytest.approx(float(chances.max()), rel=1e-3)


def test_an_answer_without_another_idea_repeats_its_draft(tmp_path: Path) -> None:
    shape = make_shape()
    bench = Bench(tmp_path, shape, 32, 3)
    draft = [5, 6, 7, 8]
    generation = bench.start([1, 2, 3], draft, drafting=Drafting(most=4), must_change=True)
    assert "".join(piece.text for piece in generation) == f"{spelled(draft)}."
    assert generation.finish_reason is FinishReason.STOP
    # Where it may not be as long as its draft, it is an answer like any other.
    short, _ = bench.generate([1, 2, 3], draft, drafting=None, limit=4)
    assert bench.generate([1, 2, 3], draft, drafting=None, limit=4, must_change=True)[0] == short
    # Without a draft there is nothing to leave.
    plain, _ = bench.generate([1, 2, 3], [], drafting=None)
    assert bench.generate([1, 2, 3], [], drafting=None, must_change=True)[0] == plain
