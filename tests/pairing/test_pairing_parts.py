"""Small parts of the room: the meter, which endpoint is meant, what is sent to the model."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from midstream.edits.documents import SourceText
from midstream.edits.request import parse_request
from midstream.errors import UsageError
from midstream.pairing import status as status_module
from midstream.pairing.models.server import configured_endpoint
from midstream.pairing.request.mentions import Sureness, find_mentions
from midstream.pairing.request.prompts import language_of, region_message
from midstream.pairing.request.scope import WrongLanguageError, check_language
from midstream.pairing.status import HISTORY, WRITTEN_PER_TOKEN, Meter
from midstream.responses.events import Finished, TokenUsage
from midstream.responses.model_info import ModelInfo
from midstream.settings import Settings


def test_meter_counts_and_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(status_module, "time", SimpleNamespace(monotonic=lambda: now))
    meter = Meter()
    assert (meter.tokens_per_second, meter.ttft_s, meter.turn_rate) == (0.0, None, None)
    meter.start_turn()
    now += 0.02
    meter.add("x", 10)
    assert meter.ttft_s == pytest.approx(0.02)
    now += 0.02
    meter.add("x", 30)
    assert meter.turn_tokens == meter.output_tokens == 40
    # The first ten were written before the clock began.
    assert meter.turn_rate == pytest.approx(30 / 0.02)
    assert meter.tokens_per_second == 30 / 0.05, "the window is never shorter than 50 ms"
    meter.finish_turn()
    assert list(meter.history) == [40 / 0.25]
    meter.add_usage(input_tokens=100, cached_tokens=90, missed=2)
    assert (meter.input_tokens, meter.cached_tokens, meter.output_tokens) == (100, 90, 42)
    meter.start_turn()
    assert (meter.ttft_s, meter.turn_tokens, meter.output_tokens) == (None, 0, 42)
    meter.add("x", 10)
    meter.add("x", 10)
    assert meter.turn_rate is None, "a moment has no rate"


def test_a_pause_of_the_answer_is_part_of_its_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("midstream.pairing.status.time.monotonic", lambda: now[0])
    meter = Meter()
    meter.start_turn()
    meter.add("x", 5)
    assert meter.samples == ()
    now[0] += 1.05
    assert meter.samples == (20.0, 0.0, 0.0, 0.0)
    meter.finish_turn()
    assert len(meter.samples) == 1, "what has ended does not pause"


def test_a_rate_that_is_estimated_is_true_from_the_second_second_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A token or a word at a time, from servers that count nothing; the first after a long wait."""
    now = [100.0]
    monkeypatch.setattr("midstream.pairing.status.time.monotonic", lambda: now[0])
    words = [
        f"{word} "
        for word in ["the", "function", "finds", "a", "user", "of", "the", "shop", "by", "name"]
    ] * 5
    tokens = sum(map(len, words)) / WRITTEN_PER_TOKEN
    for pieces in (words, list("".join(words))):
        every_s = 0.15 * len(words) / len(pieces)
        meter = Meter()
        meter.start_turn()
        now[0] += 4.0
        for number, piece in enumerate(pieces):
            meter.add(piece, 0)
            now[0] += every_s
            if number * every_s > 2.0:
                true = tokens / len(pieces) / every_s
                assert meter.tokens_per_second == pytest.approx(true, rel=0.2)
                assert meter.turn_rate == pytest.approx(true, rel=0.2)
        assert meter.estimated
        assert meter.turn_tokens == meter.output_tokens == -(-tokens // 1)


def test_what_the_server_counts_in_the_end_replaces_an_estimate() -> None:
    meter = Meter()
    meter.start_turn()
    heard = meter.add("x" * 40, 0)
    assert (heard, meter.output_estimated) == (10, True)
    assert (
        meter.count(
            Finished("completed", None, TokenUsage(7, 0, 13), ""), None, current=True, heard=heard
        )
        == 3
    )
    assert (meter.output_tokens, meter.output_estimated, meter.estimated) == (13, False, True)
    meter.start_turn()
    meter.add("x" * 40, 0)
    assert (
        meter.count(Finished("completed", None, TokenUsage(), ""), None, current=True, heard=10)
        == 0
    )
    meter.start_turn()
    meter.add("x" * 40, 8)
    meter.add("x" * 40, 0)
    assert (meter.turn_tokens, meter.estimated) == (8, False), "the server counts in this turn"
    assert meter.output_estimated, "one answer of the session was"


def test_meter_forgets() -> None:
    meter = Meter()
    for _ in range(HISTORY + 20):
        meter.start_turn()
        meter.add("x", 1)
        meter.finish_turn()
    assert len(meter.history) == HISTORY


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("wss://api.openai.com/v1", "openai"),
        ("https://api.x.ai/v1", "xai"),
        ("https://mine.openai.azure.com/openai/v1", "azure"),
        ("ws://127.0.0.1:8042/v1", "custom"),
        ("https://api.openai.com.evil.example/v1", "custom"),
    ],
)
def test_endpoints_are_known_by_their_host(url: str, kind: str) -> None:
    settings = Settings(endpoint_url=url, endpoint_model="m", endpoint_token_env="KEY")
    endpoint = configured_endpoint(settings, {"KEY": "secret"})
    assert endpoint is not None
    assert (endpoint.kind, endpoint.token, endpoint.model) == (kind, "secret", "m")


def test_endpoints_that_are_not_complete() -> None:
    assert configured_endpoint(Settings(), {}) is None
    with pytest.raises(UsageError, match="KEY is not set"):
        configured_endpoint(
            Settings(endpoint_url="wss://a.example/v1", endpoint_token_env="KEY"), {}
        )
    with pytest.raises(UsageError, match="No model is named"):
        configured_endpoint(Settings(endpoint_url="wss://api.openai.com/v1"), {})


def test_the_message_holds_the_region_and_what_is_around_it() -> None:
    text = SourceText.from_text("".join(f"line {n}\n" for n in range(200)))
    message = region_message("a/b.py", text, 100, 103, "new\nregion\n", "do it")
    request = parse_request(message)
    assert request is not None
    assert (request.instruction, request.region) == ("do it", "new\nregion\n")
    assert (request.path, request.language) == ("a/b.py", "python")
    assert request.before.splitlines() == [f"line {n}" for n in range(40, 100)]
    assert request.after.splitlines() == [f"line {n}" for n in range(103, 133)]


def test_languages() -> None:
    assert language_of("a/b.PY") == "python"
    assert language_of("bin/tool", "#!/usr/bin/env python3") == "python"
    assert language_of("Makefile") == ""
    text = SourceText.from_text("x\n")
    check_language("a.md", text, ModelInfo())
    check_language("a.md", text, ModelInfo().updated({"languages": "any"}))
    known = ModelInfo().updated({"languages": "python, go"})
    check_language("a.py", text, known)
    with pytest.raises(
        WrongLanguageError, match=r"edits Python and Go only, and a\.md is markdown"
    ):
        check_language("a.md", text, known)


def test_mentions_know_places_new_names_and_verbs() -> None:
    found = {m.name: m for m in find_mentions("add a parameter `limit` to Cart.add").all}
    assert "add" not in found
    assert found["limit"].fresh
    assert found["Cart.add"].place
    assert found["Cart.add"].sureness is Sureness.SHAPED
    renamed = find_mentions("rename the variable total to `grand_total` in load()")
    assert renamed.renamed == "total"
    assert {m.name: m.fresh for m in renamed.all}["grand_total"]
    assert {m.name: m.place for m in renamed.all}["load"]
