"""Setting up an endpoint: keys in the environment, pasted addresses, and checking a key first.

A key is stored in the system's keyring or nowhere; the configuration file only says where it is.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from midstream.errors import UsageError
from midstream.pairing.models.lists import free_name
from midstream.responses.catalogue import ListedModel, check_key
from midstream.responses.dialect import DIALECTS, kind_of
from midstream.responses.keys import SERVICE, NoKeyringError, store_key
from midstream.responses.profiles import Profile
from midstream.settings import Settings

_METHODS: Final = ("/chat/completions", "/completions", "/responses", "/messages", "/models")
"""What examples and documentation append to the address of an API."""


def hosted_apis(settings: Settings) -> tuple[Profile, ...]:
    """An endpoint for each company's service that none is configured for."""
    used = {profile.key_env for profile in settings.endpoints}
    return tuple(
        _new(dialect.url, settings)
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
    """The endpoint at an address as a person has it: of a method, without a scheme, a host alone.

    Raises:
        UsageError: It is no address.
    """
    text = text.strip()
    wrong = UsageError("That is not an address; paste one such as https://HOST/v1.")
    if not text or " " in text or not text.isprintable():
        raise wrong
    try:
        if "://" not in text:
            near = _is_near(urlsplit(f"//{text}").hostname or "")
            text = f"{'http' if near else 'https'}://{text}"
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise wrong from None
    if not host:
        raise wrong
    if parts.scheme not in ("http", "https", "ws", "wss"):
        raise UsageError(f"{parts.scheme}:// is not the address of a model server; use https://.")
    if "@" in parts.netloc:
        raise UsageError("Leave the name and password out of the address; a key is asked for.")
    path = parts.path.rstrip("/")
    for method in _METHODS:
        path = path.removesuffix(method)
    url = urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
    known = DIALECTS[kind_of(url)].url
    if not path:
        url = known or urlunsplit((parts.scheme, parts.netloc, "/v1", parts.query, ""))
    return _new(url, settings)


def _is_near(host: str) -> bool:
    """Whether a host is on this machine or in its network, where few servers have TLS."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or "." not in host


def _new(url: str, settings: Settings) -> Profile:
    kind = kind_of(url)
    host = urlsplit(url).hostname or ""
    name: str = kind
    if kind == "custom":
        name = re.sub(r"^(api|www)\.", "", host) if re.search("[a-z]", host) else "server"
    taken = [one.name for one in settings.endpoints] + [one for one, _ in settings.broken_endpoints]
    return replace(Profile.at(url), name=free_name(name, taken))


def key_variable(profile: Profile) -> str:
    """The environment variable for an endpoint's key."""
    return profile.key_env or re.sub(r"\W", "_", profile.name).upper() + "_API_KEY"


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
        environ[variable] = key
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
