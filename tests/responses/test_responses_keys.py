"""Keys in the keyring, with the package itself and backends that keep, lose and refuse them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import keyring
import keyring.backend
import keyring.errors
import pytest
from keyring.backends.fail import Keyring as FailKeyring
from keyring.backends.null import Keyring as NullKeyring

from midstream.errors import UsageError
from midstream.responses.keys import NoKeyringError, read_key, store_key
from tests.helpers.keyrings import LockedKeyring, MemoryKeyring


@pytest.fixture(autouse=True)
def _former_backend() -> Iterator[None]:
    former = keyring.get_keyring()
    yield
    keyring.set_keyring(former)


def test_a_key_that_is_stored_is_read_again() -> None:
    keyring.set_keyring(MemoryKeyring())
    assert store_key("team", "secret-1") == "keyrings MemoryKeyring"
    assert read_key("midstream", "team", "the endpoint team") == "secret-1"
    with pytest.raises(UsageError, match="`keyring set midstream other`"):
        read_key("midstream", "other", "the endpoint other")


def test_a_keyring_that_keeps_nothing_is_none() -> None:
    keyring.set_keyring(NullKeyring())
    with pytest.raises(NoKeyringError, match="did not keep the key"):
        store_key("team", "secret-2")


def test_without_a_backend() -> None:
    keyring.set_keyring(FailKeyring())
    with pytest.raises(NoKeyringError, match="has no keyring that Midstream can use"):
        store_key("team", "secret-3")
    with pytest.raises(UsageError, match="cannot be read"):
        read_key("midstream", "team", "the endpoint team")


def test_a_failing_keyring_is_told_without_its_words() -> None:
    keyring.set_keyring(LockedKeyring())
    with pytest.raises(NoKeyringError) as failed:
        store_key("team", "secret-4")
    assert "KeyringLocked" in str(failed.value)
    assert "secret-4" not in str(failed.value)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(NoKeyringError, match="pip install keyring in"):
        store_key("team", "secret-5")
