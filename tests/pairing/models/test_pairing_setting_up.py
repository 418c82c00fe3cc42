"""Setting up an endpoint: what is found, what a pasted address means, checked and kept keys."""

from __future__ import annotations

from dataclasses import replace

import keyring
import pytest
from keyring.backends.fail import Keyring as FailKeyring

from midstream.errors import UnavailableError, UsageError
from midstream.pairing.models.choosing import keep_choice, listed_choice, with_choice
from midstream.pairing.models.setup import (
    keep_key,
    key_variable,
    keys_found,
    models_at,
    pasted,
)
from midstream.responses.catalogue import KeyRefusedError, ListedModel, NoListError
from midstream.responses.profiles import Profile
from midstream.settings import Settings, load_settings
from tests.helpers.key_server import KeyServer
from tests.helpers.keyrings import MemoryKeyring


def test_keys_in_the_environment_become_endpoints() -> None:
    environ = {"MISTRAL_API_KEY": "k", "OPENAI_API_KEY": "k", "GROQ_API_KEY": " "}
    found = keys_found(Settings(), environ)
    assert [(one.name, one.key_env) for one in found] == [
        ("openai", "OPENAI_API_KEY"),
        ("mistral", "MISTRAL_API_KEY"),
    ]
    configured = Settings(
        endpoints=(Profile("mine", "mistral", "https://h/v1", "m", "MISTRAL_API_KEY"),)
    )
    assert [one.name for one in keys_found(configured, environ)] == ["openai"]


@pytest.mark.parametrize(
    ("text", "url", "name", "kind"),
    [
        ("api.mistral.ai", "https://api.mistral.ai/v1", "mistral", "mistral"),
        (
            "https://api.openai.com/v1/chat/completions",
            "https://api.openai.com/v1",
            "openai",
            "openai",
        ),
        (
            "https://api.anthropic.com/v1/messages",
            "https://api.anthropic.com/v1",
            "anthropic",
            "anthropic",
        ),
        ("https://openrouter.ai", "https://openrouter.ai/api/v1", "openrouter", "openrouter"),
        (" localhost:8080 ", "http://localhost:8080/v1", "localhost", "custom"),
        ("192.168.1.5:8000/v1/", "http://192.168.1.5:8000/v1", "192-168-1-5", "custom"),
        ("llm.example.com/team/v1", "https://llm.example.com/team/v1", "llm-example-com", "custom"),
        ("[::1]:8000", "http://[::1]:8000/v1", "localhost", "custom"),
    ],
)
def test_pasted_addresses(text: str, url: str, name: str, kind: str) -> None:
    profile = pasted(text, Settings())
    assert (profile.url, profile.name, profile.kind) == (url, name, kind)
    assert key_variable(profile).isidentifier()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not an address"),
        ("two words", "not an address"),
        ("https://", "not an address"),
        ("http://[::1/v1", "not an address"),
        ("http://h:port/v1", "not an address"),
        ("ftp://host/v1", "ftp:// is not the address of a model server"),
        ("https://me:secret@host/v1", "Leave the name and password out"),
    ],
)
def test_what_is_no_address(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as wrong:
        pasted(text, Settings())
    assert "secret" not in str(wrong.value)


@pytest.mark.parametrize(
    ("kind", "server"),
    [
        ("openai", KeyServer(key="good")),
        ("gemini", KeyServer(key="good", refusal=400)),
        ("anthropic", KeyServer(key="good", bearer=False)),
        ("openrouter", KeyServer(key="good", public_list=True)),
    ],
)
def test_a_key_is_checked_with_a_list_of_models(kind: str, server: KeyServer) -> None:
    with server.running():
        profile = replace(Profile.at("https://x.example/v1"), name="x", kind=kind, url=server.url)
        assert [one.id for one in models_at(profile, "good")] == ["large-1", "small-1"]
        with pytest.raises(KeyRefusedError, match=rf"refused the key \(HTTP {server.refusal}\)"):
            models_at(profile, "bad")
        assert {path for path, _ in server.asked} <= {"/v1/models", "/v1/key"}


def test_servers_without_a_key_a_list_or_an_answer() -> None:
    with KeyServer().running() as server:
        assert len(models_at(pasted(server.url, Settings()))) == 2
    with KeyServer(models=None).running() as server, pytest.raises(NoListError, match="HTTP 404"):
        models_at(pasted(server.url, Settings()))
    with pytest.raises(UnavailableError, match="cannot be reached"):
        models_at(pasted("http://127.0.0.1:1/v1", Settings()))
    with pytest.raises(UsageError, match="contains a space"):
        models_at(pasted("http://127.0.0.1:1/v1", Settings()), "two words")


def test_a_kept_key_is_in_the_keyring_and_not_in_the_file(state) -> None:
    former = keyring.get_keyring()
    ring = MemoryKeyring()
    keyring.set_keyring(ring)
    try:
        profile, said = keep_key(pasted("llm.example.com", Settings()), "secret-6", environ := {})
        choice = listed_choice(profile, ListedModel("large-1", 32_000), group="x")
        keep_choice(choice)
        written = (state / "config.toml").read_text()
        assert "secret-6" not in written
        assert not environ
        assert "in the keyring (keyrings MemoryKeyring)" in said
        read = load_settings().profile
        assert read is not None
        assert (read.model, read.context, read.keyring) == ("large-1", 32_000, "midstream")
        assert read.endpoint({}).token == "secret-6"
        assert with_choice(Settings(), choice).profile == choice.profile
    finally:
        keyring.set_keyring(former)


def test_without_a_keyring_a_key_is_held_until_the_end(state) -> None:
    former = keyring.get_keyring()
    keyring.set_keyring(FailKeyring())
    try:
        profile, said = keep_key(pasted("llm.example.com", Settings()), "secret-7", environ := {})
        keep_choice(listed_choice(profile, ListedModel("large-1"), environ, group="x"))
    finally:
        keyring.set_keyring(former)
    assert environ == {"LLM_EXAMPLE_COM_API_KEY": "secret-7"}
    assert "not saved" in said
    assert "export LLM_EXAMPLE_COM_API_KEY" in said
    written = (state / "config.toml").read_text()
    assert "secret-7" not in written
    assert 'key_env = "LLM_EXAMPLE_COM_API_KEY"' in written
    read = load_settings().profile
    assert read is not None
    assert read.has_key({}) is False
