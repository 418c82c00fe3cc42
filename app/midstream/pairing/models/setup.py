"""Setting up an endpoint: keys in the environment, pasted addresses, and checking a key first.

A key is stored in the system's keyring or nowhere; the configuration file only says where it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from midstream.pairing.models.lists import free_name
from midstream.responses.catalogue import ListedModel, check_key
from midstream.responses.dialect import DIALECTS
from midstream.responses.endpoint import complete_address
from midstream.responses.keys import SERVICE, NoKeyringError, store_key
from midstream.responses.profiles import Profile
from midstream.settings import Settings

_typed: Final[dict[str, str]] = {}
"""Keys that were typed and could not be saved, by the variable that has them in this process."""


def is_typed(variable: str | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a variable has a key that was typed and is forgotten when the program ends."""
    return variable in _typed and environ.get(variable or "") == _typed[variable]


def hosted_apis(settings: Settings) -> tuple[Profile, ...]:
    """An endpoint for each company's service that none is configured for."""
    used = {profile.key_env for profile in settings.endpoints}
    return tuple(
        named(Profile.at(dialect.url), settings)
        for dialect in DIALECTS.values()
        if dialect.hosted and dialect.url and dialect.key_env not in used
    )


def keys_found(settings: Settings, environ: Mapping[str, str] = os.environ) -> tuple[Profile, ...]:
    """Those of them whose key is in the environment."""
    return tuple(
        profile
        for profile in hosted_apis(settings)
        if environ.get(profile.key_env or "", "").strip()
    )


def pasted(text: str, settings: Settings) -> Profile:
    """The endpoint at an address as people paste it: with a method's path, without a scheme, or a
    host alone.

    Raises:
        UsageError: It is no address.
    """
    return named(Profile.at(complete_address(text)), settings)


def named(profile: Profile, settings: Settings) -> Profile:
    """An endpoint under a name that no other one has."""
    host = urlsplit(profile.url).hostname or ""
    name: str = profile.kind
    if profile.kind == "custom":
        name = "localhost" if profile.loopback else re.sub(r"^(api|www)\.", "", host)
    taken = [one.name for one in settings.endpoints] + [one for one, _ in settings.broken_endpoints]
    return replace(profile, name=free_name(name, taken))


def key_variable(profile: Profile) -> str:
    """The environment variable for an endpoint's key; no variable begins with a digit."""
    words = re.sub(r"\W", "_", profile.name).upper()
    return profile.key_env or re.sub(r"^(?=\d)", "HOST_", words) + "_API_KEY"


def models_at(
    profile: Profile, key: str = "", environ: Mapping[str, str] = os.environ
) -> tuple[ListedModel, ...]:
    """The models of a new endpoint; a list shows that its key is valid.

    Args:
        profile: The endpoint.
        key: A key to check, in place of the one that the endpoint has.
        environ: Where its key may be.

    Raises:
        KeyRefusedError: It needs a key, or another one.
        NoListError: It has no list of models.
        UserError: It cannot be reached, or the key cannot be sent.
    """
    called = replace(profile, model="any")  # A list needs no model.
    if key:
        variable = key_variable(profile)
        called, environ = replace(called, key_env=variable, keyring=None), {variable: key}
    return check_key(called.endpoint(environ))


def keep_key(
    profile: Profile, key: str, environ: MutableMapping[str, str] = os.environ
) -> tuple[Profile, str]:
    """Store a key in the system's keyring, or else hold it for this process alone (blocking).

    Returns:
        The endpoint with the place of its key, and a sentence about that place.
    """
    try:
        ring = store_key(profile.name, key)
    except NoKeyringError as error:
        variable = key_variable(profile)
        environ[variable] = _typed[variable] = key
        why = error.problem + (f" ({error.remedy})" if error.remedy else "")
        return (
            replace(profile, key_env=variable, keyring=None),
            f"{why.rstrip('.')}, so the key is not saved and is forgotten when you quit; export "
            f"{variable} to use it next time.",
        )
    return (
        replace(profile, key_env=None, keyring=SERVICE),
        f"The key is in the keyring ({ring}), not in your settings.",
    )
