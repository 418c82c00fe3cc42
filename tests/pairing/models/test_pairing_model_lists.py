"""Lists of models: who is asked, what is kept, and what choosing a listed model means."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from midstream.pairing.models.choosing import chosen_id, keep_choice, model_choices, with_choice
from midstream.pairing.models.lists import FILE, ask_everybody, kept_lists
from midstream.responses.profiles import Price, Profile
from midstream.settings import OWN_EFFORTS, Settings, load_settings


@contextmanager
def engine(
    *entries: Mapping[str, object], signs: Mapping[str, object] | None = None
) -> Iterator[tuple[int, list[str | None]]]:
    """A server with a list of models; yields its port and the keys that came.

    Args:
        entries: The models.
        signs: What it answers elsewhere, by path.
    """
    keys: list[str | None] = []
    answers = {"/v1/models": {"object": "list", "data": entries}, **(signs or {})}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            keys.append(self.headers.get("Authorization"))
            data = json.dumps(answers.get(self.path, {})).encode()
            self.send_response(200 if self.path in answers else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1], keys
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIDSTREAM_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("MIDSTREAM_CONFIG", str(tmp_path / "config.toml"))
    return tmp_path / "state"


def test_everybody_is_asked_once_and_the_answers_are_kept(state: Path) -> None:
    assert kept_lists() == {}
    with engine({"id": "b"}, {"id": "a", "context_length": 9000}) as (port, keys):
        settings = Settings(
            endpoints=(
                Profile("desk", "custom", f"http://127.0.0.1:{port}/v1", "a", "DESK_KEY"),
                Profile("gone", "custom", "http://127.0.0.1:1/v1"),
                Profile("team", "custom", "https://team.example/v1", "x", "TEAM_KEY"),
            )
        )
        asked = ask_everybody(settings, {"DESK_KEY": "secret"}, ports=())
    assert keys == ["Bearer secret"]
    assert asked.found == (("desk", 2),)
    assert len(asked.troubles) == 2
    assert "gone: 127.0.0.1 cannot be reached" in asked.words
    assert "team: TEAM_KEY is not set; choosing it here asks for the key." in asked.words
    assert "secret" not in (state / FILE).read_text()
    kept = kept_lists()
    assert kept == asked.lists
    choices = {c.id: c for c in model_choices(settings, {}, kept)}
    assert "endpoint:desk#a" not in choices, "it is the endpoint's own model"
    assert choices["endpoint:desk#b"].group == "desk, asked just now"
    assert choices["endpoint:desk#b"].price is None


def test_nobody_beyond_this_machine_is_asked_for_its_engines() -> None:
    with engine({"id": "b"}) as (port, _), engine({"id": "c"}) as (other, keys):
        settings = Settings(
            endpoints=(
                Profile("desk", "custom", f"http://127.0.0.1:{port}/v1"),
                # A name of another machine, wherever it leads.
                Profile("team", "custom", f"http://team.invalid:{other}/v1"),
            )
        )
        asked = ask_everybody(settings, {}, here=True, ports=())
    assert asked.found == (("desk", 1),)
    assert not asked.troubles
    assert not keys


def test_a_failure_leaves_what_was_known() -> None:
    with engine({"id": "b"}) as (port, _):
        profile = Profile("desk", "custom", f"http://127.0.0.1:{port}/v1")
        settings = Settings(endpoints=(profile,))
        ask_everybody(settings, {}, ports=())
    again = ask_everybody(settings, {}, ports=())
    assert not again.found
    assert [m.id for m in again.lists[profile.url].models] == ["b"]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"u": {"at": 1}}', b"\xff" * 9])
def test_a_damaged_file_is_no_list(state: Path, damage: bytes) -> None:
    state.mkdir()
    (state / FILE).write_bytes(damage)
    assert kept_lists() == {}


def test_engines_on_this_machine_are_found_used_and_kept(tmp_path: Path) -> None:
    entry = {"id": "qwen3:8b", "owned_by": "library", "context_length": 40960}
    with engine(entry, {"id": "nomic-embed"}) as (port, keys), engine({"no": "id"}) as (other, _):
        settings = Settings()
        ports = (port, other, 1)
        asked = ask_everybody(settings, {}, ports=ports)
        assert set(keys) == {None}, "no key goes to whoever listens there"
        assert ("ollama", 1) in asked.found, "it says itself who it is"
        choices = model_choices(settings, {}, asked.lists)
        (choice,) = [c for c in choices if c.name == "qwen3:8b"]
        assert choice.group == "ollama, found here, asked just now"
        assert choice.price == Price(0.0, 0.0, 0.0)
        used = with_choice(settings, choice)
        assert used.profile is not None
        assert (used.profile.name, used.profile.model) == ("ollama", "qwen3:8b")
        assert used.profile.context == 40960
        keep_choice(choice)
        again = load_settings()
        assert again.profile == used.profile
        assert chosen_id(again) == "endpoint:ollama"
        known = ask_everybody(again, {}, ports=ports)
        assert known.found[0] == ("ollama", 1)
        ids = [c.id for c in model_choices(again, {}, known.lists) if c.kind == "ollama"]
        assert ids == ["endpoint:ollama"], "not once more as one that was found"
    gone = ask_everybody(Settings(), {}, ports=ports)
    assert not gone.found
    assert f"http://127.0.0.1:{port}/v1" not in gone.lists, "an engine that ended is not shown"


@pytest.mark.parametrize(
    ("name", "path", "answer"),
    [
        ("ollama", "/api/version", {"version": "0.13.3"}),
        ("llama-cpp", "/props", {"default_generation_settings": {}}),
        ("lm-studio", "/api/v0/models", {"data": []}),
        ("sglang", "/get_model_info", {"model_path": "m"}),
        ("koboldcpp", "/api/extra/version", {"result": "KoboldCpp"}),
        ("litellm", "/health/readiness", {"status": "ok", "litellm_version": "1.83.0"}),
        ("vllm", "/version", {"version": "0.12"}),
        ("engine-PORT", "/elsewhere", {}),
    ],
)
def test_an_engine_is_named_by_what_it_says_whatever_its_port(
    name: str, path: str, answer: dict[str, object]
) -> None:
    with engine({"id": "m"}, signs={path: answer}) as (port, _):
        asked = ask_everybody(Settings(), {}, ports=(port,))
    assert asked.found == ((name.replace("PORT", str(port)), 1),)


def test_a_listed_model_has_its_own_price_and_context(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    price = {"prompt": "0.000002", "completion": "0.000004"}
    with engine({"id": "other", "context_length": 8000, "pricing": price}) as (port, _):
        config.write_text(
            f'# mine\n[endpoints.desk]\nurl = "http://127.0.0.1:{port}/v1"\nmodel = "first"\n'
            'price_in = 9\nprice_out = 9\ncontext = 100\nedit_format = "udiff"\n'
        )
        settings = load_settings()
        asked = ask_everybody(settings, {}, ports=())
    (choice,) = [c for c in model_choices(settings, {}, asked.lists) if c.group]
    used = with_choice(settings, choice)
    assert used.profile is not None
    assert used.profile.price == Price(2.0, 4.0, 2.0)
    assert (used.profile.model, used.profile.context) == ("other", 8000)
    assert used.profile.edit_format == "udiff", "what holds for the endpoint stays"
    keep_choice(choice)
    again = load_settings()
    assert again.profile == used.profile
    assert config.read_text().startswith("# mine\n")


def test_efforts_are_those_of_the_profile() -> None:
    settings = Settings(
        endpoints=(
            Profile("hosted", "openai", "wss://api.openai.com/v1", "m", efforts=("none", "max")),
            Profile("unknown", "xai", "wss://api.x.ai/v1", "m"),
            Profile("own", "local", "ws://127.0.0.1:8042/v1", efforts=("low", "medium")),
        )
    )
    found = {c.id: c.efforts for c in model_choices(settings, {})}
    assert found["endpoint:hosted"] == ("auto", "none", "max")
    assert found["endpoint:unknown"][1:] == (
        "none", "minimal", "low", "medium", "high", "xhigh", "max",
    )  # fmt: skip
    assert found["endpoint:own"] == ("auto", "low", "medium")
    built_in = [c for c in model_choices(settings, {}) if c.here]
    assert all(c.efforts == OWN_EFFORTS for c in built_in)
