# ruff: noqa: E501 (the table is read by columns)
"""The tables ``[endpoints.NAME]`` of the user's file: their fields, declared once, and their
reader.

The settings page and ``docs/settings.md`` are made from ``ENDPOINT_FIELDS`` as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from midstream.edits.formats import names as edit_formats
from midstream.errors import UsageError
from midstream.responses.dialect import DIALECTS, EFFORTS, EndpointKind, kind_of
from midstream.responses.endpoint import TRANSPORTS, Transport
from midstream.responses.profiles import BUILT_IN, Price, Profile
from midstream.settings.value_types import (
    DOLLARS,
    TEXT,
    TOKENS,
    URL,
    ValueType,
    list_of,
    one_of,
    unknown_setting,
)


@dataclass(frozen=True, slots=True)
class EndpointField:
    """One key of an endpoint's table."""

    key: str
    type: ValueType
    help: str
    read: Callable[[Profile], object]

    def format(self, profile: Profile) -> str:
        """The value in a profile, as a user would type it."""
        value = self.read(profile)
        if value is None:
            return ""
        if isinstance(value, tuple):
            return ", ".join(cast("tuple[str, ...]", value))
        return f"{value:g}" if isinstance(value, float) else str(value)


# fmt: off
ENDPOINT_FIELDS: Final = (
    EndpointField("kind", one_of(DIALECTS), "the kind of server", lambda p: p.kind),
    EndpointField("url", URL, "address, including the version", lambda p: p.url),
    EndpointField("model", TEXT, "the model to request", lambda p: p.model),
    EndpointField("key_env", TEXT, "the environment variable with the key", lambda p: p.key_env),
    EndpointField("keyring", TEXT, "the service in the system's keyring that holds the key", lambda p: p.keyring),
    EndpointField("edit_format", one_of(("auto", *edit_formats())), "the edit format that the model is asked to use",
                  lambda p: p.edit_format),
    EndpointField("context", TOKENS, "context length in tokens", lambda p: p.context),
    EndpointField("price_in", DOLLARS, "dollars per million input tokens", lambda p: p.price and p.price.input),
    EndpointField("price_out", DOLLARS, "dollars per million output tokens", lambda p: p.price and p.price.output),
    EndpointField("price_cached", DOLLARS, "dollars per million cached input tokens",
                  lambda p: p.price and p.price.cached),
    EndpointField("effort", list_of(EFFORTS), "efforts to offer: low, high", lambda p: p.efforts),
    EndpointField("transport", one_of(TRANSPORTS), "transport", lambda p: p.transport),
)
# fmt: on
FIELD_BY_KEY: Final[Mapping[str, EndpointField]] = {field.key: field for field in ENDPOINT_FIELDS}
_KEYS_THEMSELVES: Final = ("key", "api_key", "token", "secret")


def read_profiles(value: object, where: str) -> dict[str, Profile | str]:
    """The endpoints of a table ``[endpoints.NAME]``, with the defaults of their kinds.

    Returns:
        By name the endpoint, or a sentence about what is wrong with it: a key or value is not
        known, or a value without a default is missing. The others can be used all the same.

    Raises:
        UsageError: It is no table.
    """
    if not isinstance(value, dict):
        raise UsageError(f'{where}: "endpoints" is a table: write [endpoints.NAME].')
    found: dict[str, Profile | str] = {}
    for name, table in cast("dict[str, Any]", value).items():
        try:
            found[name] = _profile(name, table, f"{where}: endpoints.{name}")
        except UsageError as error:
            found[name] = str(error)
    return found


def _profile(name: str, value: object, where: str) -> Profile:
    if not isinstance(value, dict):
        raise UsageError(f"{where} must be a table of settings.")
    if name == BUILT_IN or not name.strip() or "://" in name:
        raise UsageError(f'{where} needs a name other than an address or "{BUILT_IN}".')
    table = cast("dict[str, Any]", value)
    for key in table:
        if key in _KEYS_THEMSELVES:
            raise UsageError(
                f"{where}: a key does not belong in a file; set key_env to its variable, or "
                "keyring to its service in the system's keyring."
            )
        if key not in FIELD_BY_KEY:
            unknown_setting(key, list(FIELD_BY_KEY), where)
    given = {key: FIELD_BY_KEY[key].type.check(v, f"{where}.{key}") for key, v in table.items()}
    url = cast("str | None", given.get("url"))
    kind = cast("EndpointKind", given.get("kind") or kind_of(url or ""))
    defaults = DIALECTS[kind]
    if not (url or defaults.url):
        raise UsageError(f'{where} has no address; write url = "https://HOST/v1".')
    return Profile(
        name,
        kind,
        url or defaults.url,
        model=cast("str", given.get("model", "")),
        key_env=cast(
            "str | None", given.get("key_env", None if "keyring" in given else defaults.key_env)
        ),
        keyring=cast("str | None", given.get("keyring")),
        edit_format=cast("str | None", given.get("edit_format", defaults.edit_format)),
        context=cast("int | None", given.get("context")),
        price=_price({k: cast("float", v) for k, v in given.items() if "price" in k}, where),
        efforts=cast("tuple[str, ...]", given.get("effort", defaults.efforts)),
        transport=cast("Transport", given.get("transport", "auto")),
    )


def _price(given: Mapping[str, float], where: str) -> Price | None:
    if not given:
        return None
    if not {"price_in", "price_out"} <= given.keys():
        raise UsageError(f"{where} needs both price_in and price_out, in dollars per million.")
    cached = given.get("price_cached", given["price_in"])
    return Price(given["price_in"], given["price_out"], cached)
