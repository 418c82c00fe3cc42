"""Endpoint keys in the system's keyring, through the optional package ``keyring``.

Reading and writing may open a window of the system's, so both are called from a thread. Nothing
else of Midstream keeps a key.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Final

from midstream.errors import UnavailableError, UsageError

SERVICE: Final = "midstream"
"""Service under which Midstream stores keys itself; the user is the endpoint's name."""
_INSTALL: Final = "pip install keyring in Midstream's environment"


class NoKeyringError(UnavailableError):
    """There is no keyring that keeps a key."""

    code = "no-keyring"


def read_key(service: str, user: str, called: str) -> str:
    """A key from the keyring (blocking).

    Args:
        service: The service.
        user: The user of it.
        called: The endpoint, for the middle of a sentence.

    Raises:
        UsageError: It is not there, or the keyring cannot be read.
    """
    try:
        keyring, errors = _modules()
    except ImportError:
        raise UsageError(
            f"The key of {called} is in the keyring, which needs the package keyring: {_INSTALL}."
        ) from None
    try:
        found = keyring.get_password(service, user)
    except errors.KeyringError as error:
        raise UsageError(
            f"The keyring that holds the key of {called} cannot be read: {error}."
        ) from None
    if not found:
        raise UsageError(
            f"The keyring has no key for {called}; store it with `keyring set {service} {user}`."
        )
    return found


def store_key(user: str, key: str) -> str:
    """Keep a key in the keyring, and read it back (blocking); returns the keyring's name.

    Raises:
        NoKeyringError: The package or a keyring is missing, or it did not keep the key.
    """
    try:
        keyring, errors = _modules()
    except ImportError:
        raise NoKeyringError("The package keyring is not installed", _INSTALL) from None
    try:
        keyring.set_password(SERVICE, user, key)
        kept = keyring.get_password(SERVICE, user)
    except errors.NoKeyringError:
        raise NoKeyringError("This system has no keyring that Midstream can use") from None
    except Exception as error:  # Backends raise what their libraries raise.
        # Only the kind: the text of a backend's error may quote the key.
        raise NoKeyringError(f"The keyring has failed ({type(error).__name__})") from None
    if kept != key:  # The backend "null" takes everything and keeps nothing.
        raise NoKeyringError("The keyring did not keep the key")
    return str(keyring.get_keyring().name)


def _modules() -> tuple[ModuleType, ModuleType]:
    # Optional packages come by name: the type checker runs without them.
    return importlib.import_module("keyring"), importlib.import_module("keyring.errors")
