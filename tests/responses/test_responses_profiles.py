"""Endpoint profiles: what a person writes, the key, the price, and which transport is used."""

from __future__ import annotations

import sys
from http import HTTPStatus
from pathlib import Path
from types import ModuleType

import pytest

from midstream.errors import UnavailableError, UsageError
from midstream.responses.client import Client
from midstream.responses.dialect import DIALECTS, EFFORTS, Dialect, EndpointKind, kind_of
from midstream.responses.endpoint import Endpoint, is_address
from midstream.responses.model_info import ModelInfo
from midstream.responses.profiles import BUILT_IN, Price, Profile
from midstream.settings import Settings, load_settings
from tests.helpers.scripted_endpoint import Scripted

FILE = """
endpoint = "fast"
[endpoints.fast]
kind = "openai"
model = "quick"
context = 128_000
price_in = 2
price_out = 8.0
price_cached = 0.5
effort = ["low", "high"]
[endpoints.cerebras]
url = "https://llm.example/v1"
key_env = "CEREBRAS_KEY"
edit_format = "search-replace"
transport = "sse"
[endpoints.lab]
kind = "local"
"""


def read(tmp_path: Path, toml: str, **environ: str) -> Settings:
    config = tmp_path / "config.toml"
    config.write_text(toml, encoding="utf-8")
    return load_settings(environ={"MIDSTREAM_CONFIG": str(config), **environ})


def test_profiles_have_the_defaults_of_their_kind(tmp_path: Path) -> None:
    settings = read(tmp_path, FILE)
    fast, cerebras, lab = settings.endpoints
    assert settings.profile == fast
    assert fast == Profile(
        "fast",
        "openai",
        "wss://api.openai.com/v1",
        "quick",
        "OPENAI_API_KEY",
        edit_format="v4a",
        context=128_000,
        price=Price(2.0, 8.0, 0.5),
        efforts=("low", "high"),
    )
    known = fast.configured(ModelInfo(declared_format="region", max_region_lines=9))
    assert known == ModelInfo(declared_format="v4a", max_region_lines=9, context_length=128_000)
    assert lab.configured(known) == known
    assert (cerebras.kind, cerebras.key_env, cerebras.transport) == (
        "custom",
        "CEREBRAS_KEY",
        "sse",
    )
    assert (lab.url, lab.key_env, lab.price) == ("ws://127.0.0.1:8042/v1", None, None)
    assert set(lab.efforts) < set(EFFORTS)


def test_the_choice_by_variable_and_by_name(tmp_path: Path) -> None:
    chosen = read(tmp_path, FILE, MIDSTREAM_ENDPOINT="cerebras", MIDSTREAM_ENDPOINT_MODEL="m2")
    assert chosen.profile is not None
    assert (chosen.profile.name, chosen.profile.model) == ("cerebras", "m2")
    assert read(tmp_path, FILE, MIDSTREAM_ENDPOINT=BUILT_IN).profile is None
    by_address = read(tmp_path, FILE, MIDSTREAM_ENDPOINT_URL="wss://api.x.ai/v1").profile
    assert by_address is not None
    assert (by_address.name, by_address.kind, by_address.key_env) == ("", "xai", "XAI_API_KEY")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[(text, True) for text in ("localhost", "localhost/v1", "box:8080", "api.openai.com")],
        *[(text, True) for text in ("api.x.ai/v1", "10.0.0.7", "[::1]:80", "http://box/v1")],
        *[(text, False) for text in ("openai", "openai/gpt-5", "gpt-5.1", "./model", "a..b")],
        *[(text, False) for text in ("http:/x", "qwen2.5-coder:7b", ":80", "", "/", "[")],
    ],
)
def test_addresses_and_names_are_told_apart(text: str, expected: bool) -> None:
    assert is_address(text) is expected


@pytest.mark.parametrize(("kind", "dialect"), DIALECTS.items())
def test_every_kind_is_recognised_by_its_hosts(kind: EndpointKind, dialect: Dialect) -> None:
    hosts = [f"name{domain}" if domain.startswith(".") else domain for domain in dialect.domains]
    assert [kind_of(f"wss://{host}/v1") for host in hosts] == [kind] * len(hosts)
    if dialect.hosted and dialect.url:
        assert kind_of(dialect.url) == kind


def test_a_folder_chooses_among_the_endpoints(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'{FILE}\n[projects."{tmp_path / "secret"}"]\nendpoint = "lab"\n')
    environ = {"MIDSTREAM_CONFIG": str(config)}
    profile = load_settings(tmp_path / "secret" / "src", environ=environ).profile
    assert profile is not None
    assert profile.name == "lab"


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ('endpoint = "fats"\n[endpoints.fast]\nkind = "openai"', 'did you mean "fast"'),
        ('endpoint = "fast"', r"add \[endpoints\.fast\] to .*config\.toml"),
        ('[endpoints.a]\nkind = "opnai"', r'endpoints\.a\.kind cannot be .* mean "openai"'),
        ('[endpoints.a]\nkind = "azure"', r"endpoints\.a has no address"),
        ('[endpoints.a]\nurll = "x"', r'no setting "urll"; did you mean "url"'),
        ('[endpoints.a]\nkind = "xai"\nprice_in = 1', "needs both price_in and price_out"),
        ('[endpoints.a]\nkind = "xai"\nprice_in = "1"', "must be dollars per million tokens"),
        ('[endpoints.a]\nkind = "xai"\neffort = ["hihg"]', 'did you mean "high"'),
        ('[endpoints.a]\nkind = "xai"\ncontext = 1.5', "must be a whole number of tokens"),
        ('[endpoints.a]\nurl = "https://key@h/v1"', "must not contain a name or a key"),
        *(
            (f'[endpoints.a]\n{name} = "sk-1"', "a key does not belong in a file")
            for name in ("key", "api_key", "token", "secret")
        ),
        ('[endpoints.built-in]\nkind = "xai"', "needs a name other than"),
        ("endpoints = 3", r"write \[endpoints\.NAME\]"),
    ],
)
def test_mistakes_name_the_way_out(tmp_path: Path, toml: str, sentence: str) -> None:
    def choose() -> None:
        for _, reason in read(tmp_path, toml).broken_endpoints:  # Unused, it does no harm.
            raise UsageError(reason)

    with pytest.raises(UsageError, match=sentence):
        choose()


def test_the_key_comes_from_its_variable(tmp_path: Path) -> None:
    profile = read(tmp_path, FILE).profile
    assert profile is not None
    assert (profile.has_key({}), profile.has_key({"OPENAI_API_KEY": "k"})) == (False, True)
    endpoint = profile.endpoint({"OPENAI_API_KEY": "sk-secret\n"})
    assert endpoint.token == "sk-secret"
    assert "sk-secret" not in repr(endpoint)
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set, and the endpoint fast needs"):
        profile.endpoint({})
    with pytest.raises(UsageError, match="contains a space") as caught:
        profile.endpoint({"OPENAI_API_KEY": "sk-secret sk-other"})
    assert "sk-" not in str(caught.value)


def test_an_endpoint_is_sent_no_key_of_another(tmp_path: Path) -> None:
    keys = {dialect.key_env: "k" for dialect in DIALECTS.values() if dialect.key_env}
    assert Profile.at("https://host.example/v1", "m").endpoint(keys).token is None
    profile = read(tmp_path, FILE).profile
    assert profile is not None
    del keys["OPENAI_API_KEY"]
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        profile.endpoint(keys)


def test_a_hosted_key_never_travels_in_the_open() -> None:
    with pytest.raises(UsageError, match="needs an address with wss:// or https://"):
        Profile.at("ws://api.openai.com/v1", "m").endpoint({"OPENAI_API_KEY": "k"})


def test_the_key_comes_from_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    held = {("midstream", "home"): "from-the-ring"}
    ring, errors = ModuleType("keyring"), ModuleType("keyring.errors")
    ring.get_password = lambda service, user: held.get((service, user))  # type: ignore[attr-defined]
    errors.KeyringError = RuntimeError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", ring)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    profile = Profile("home", "custom", "wss://h.example/v1", keyring="midstream")
    assert profile.has_key({}) is None
    assert profile.endpoint({}).token == "from-the-ring"
    held.clear()
    with pytest.raises(UsageError, match="`keyring set midstream home`"):
        profile.endpoint({})
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(UsageError, match="pip install keyring in"):
        profile.endpoint({})


def test_the_keyring_is_not_opened_for_a_key_that_the_environment_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That can open a window of the system's."""
    monkeypatch.setitem(sys.modules, "keyring", None)
    profile = Profile("home", "custom", "wss://h.example/v1", key_env="KEY", keyring="midstream")
    assert profile.endpoint({"KEY": "k1"}).token == "k1"
    with pytest.raises(UsageError, match="keyring"):
        profile.endpoint({"KEY": "  "})


def test_cached_tokens_have_their_own_price() -> None:
    price = Price(input=2.0, output=8.0, cached=0.5)
    cost = price.of(input_tokens=1_000_000, cached_tokens=400_000, output_tokens=100_000)
    assert cost == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.1 * 8)


async def test_a_forced_websocket_does_not_fall_back() -> None:
    async with Scripted(status=HTTPStatus.UPGRADE_REQUIRED).running() as url:
        client = Client(Endpoint(url, None, "m", "custom", "websocket"))
        with pytest.raises(UnavailableError, match="did not open a WebSocket"):
            await client.connect()
        await client.close()


async def test_a_forced_sse_asks_for_no_upgrade() -> None:
    server = Scripted()
    async with server.running() as url:
        client = Client(Endpoint(url, None, "m", "custom", "sse"))
        await client.connect()
        assert (client.transport, server.connections) == ("sse", 0)
        await client.close()
