"""The tables ``[endpoints.NAME]`` of the user's file, read into endpoint profiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from midstream import values
from midstream.edits.formats import names
from midstream.errors import UsageError
from midstream.responses.dialect import DIALECTS, EndpointKind, kind_of
from midstream.responses.endpoint import Transport
from midstream.responses.profiles import BUILT_IN, Price, Profile

EDIT_FORMATS = ("auto", *names())
"""How a model may be asked to write its edits; "auto" depends on what is asked for."""


def read_profiles(value: object, where: str) -> list[Profile]:
    """The endpoints of a table ``[endpoints.NAME]``, with the defaults of their kinds.

    Raises:
        UsageError: A key or value is not known, or something that has no default is missing.
    """
    if not isinstance(value, dict):
        raise UsageError(f'{where}: "endpoints" is a table: write [endpoints.NAME].')
    profiles: list[Profile] = []
    for name, table in cast("dict[str, Any]", value).items():
        place = f"{where}: endpoints.{name}"
        if not isinstance(table, dict):
            raise UsageError(f"{place} must be a table of settings.")
        if name == BUILT_IN or not name.strip() or "://" in name:
            raise UsageError(f'{place} needs another name than an address or "{BUILT_IN}".')
        profiles.append(_profile(name, cast("dict[str, Any]", table), place))
    return profiles


def _profile(name: str, table: Mapping[str, Any], where: str) -> Profile:
    for key in table:
        if key in ("key", "api_key", "token", "secret"):
            raise UsageError(
                f"{where}: a key does not belong in a file; name its variable as key_env, or its "
                "service in the system's keyring as keyring."
            )
        if key not in _PROFILE_CHECKS:
            values.unknown(key, list(_PROFILE_CHECKS), where)
    given = {key: _PROFILE_CHECKS[key](item, f"{where}.{key}") for key, item in table.items()}
    url = cast("str | None", given.get("url"))
    kind = cast("EndpointKind", given.get("kind") or kind_of(url or ""))
    defaults = DIALECTS[kind]
    if not (url or defaults.url):
        raise UsageError(f'{where} has no address; write url = "https://HOST/v1".')
    prices = {key: cast("float", given[key]) for key in _PRICES if key in given}
    if prices and not {"price_in", "price_out"} <= prices.keys():
        raise UsageError(f"{where} needs both price_in and price_out, in dollars per million.")
    key_env = given.get("key_env", None if "keyring" in given else defaults.key_env)
    return Profile(
        name,
        kind,
        url or defaults.url,
        cast("str", given.get("model", "")),
        cast("str | None", key_env),
        cast("str | None", given.get("keyring")),
        cast("str | None", given.get("edit_format", defaults.edit_format)),
        cast("int | None", given.get("context")),
        Price(
            prices["price_in"], prices["price_out"], prices.get("price_cached", prices["price_in"])
        )
        if prices
        else None,
        cast("tuple[str, ...]", given.get("effort", defaults.efforts)),
        cast("Transport", given.get("transport", "auto")),
    )


_PRICES = ("price_in", "price_out", "price_cached")
_PROFILE_CHECKS: Mapping[str, Callable[[object, str], object]] = {
    "kind": values.one_of(tuple(DIALECTS)),
    "url": values.url,
    "model": values.text,
    "key_env": values.text,
    "keyring": values.text,
    "edit_format": values.one_of(EDIT_FORMATS),
    "context": values.whole,
    **dict.fromkeys(_PRICES, values.dollars),
    "effort": values.efforts,
    "transport": values.one_of(("auto", "websocket", "sse")),
}
