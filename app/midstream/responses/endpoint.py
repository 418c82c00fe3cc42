"""Where a model is served, and which kind of server serves it.

Holds facts only: no connection, no key lookup (settings do that) and no model list.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args
from urllib.parse import SplitResult, urlsplit, urlunsplit

from midstream.errors import UsageError
from midstream.responses.dialect import (
    ANTHROPIC_VERSION,
    DIALECTS,
    Dialect,
    EndpointKind,
    WireApi,
    kind_of,
)

Transport = Literal["auto", "websocket", "sse", "chat", "messages"]
"""How a server is spoken to: the Responses API over a WebSocket or HTTP (sse), Chat Completions, or
Anthropic's Messages; "auto" tries what its kind may have.
"""
TRANSPORTS: Final[tuple[Transport, ...]] = get_args(Transport)

_API_PATHS: Final[Mapping[str, WireApi | None]] = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/messages": "messages",
    "/completions": None,
    "/models": None,
}
"""Ends of addresses that name one API, as documentation shows them."""
_VERSION: Final = re.compile(r"/v\d+(?:beta\d*|alpha\d*)?$")
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_SCHEMES = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server, and the model to ask for there.

    Attributes:
        url: Base address up to and including the version, such as ``ws://127.0.0.1:8042/v1``;
            ``http`` and ``https`` mean the same server as ``ws`` and ``wss``.
        token: Its key, or None. Never part of ``repr``.
        model: The name that a request gives.
        kind: Whose dialect is spoken; decides how a response is stopped and when a connection is
            renewed.
        transport: How the server is spoken to.
    """

    url: str
    token: str | None = field(repr=False)
    model: str
    kind: EndpointKind = "custom"
    transport: Transport = "auto"

    def _split(self) -> SplitResult:
        parts = urlsplit(self.url)
        if parts.scheme not in _SCHEMES or not parts.hostname:
            raise UsageError(
                f"The endpoint address {self.url!r} is not usable; "
                "write it like ws://127.0.0.1:8042/v1 or https://api.openai.com/v1."
            )
        return parts

    @property
    def _named_api(self) -> str:
        """The end of the address, if it is that of one API."""
        path = self._split().path.rstrip("/")
        return next((end for end in _API_PATHS if path.endswith(end)), "")

    @property
    def websocket_url(self) -> str:
        parts = self._split()
        path = self.path + "/responses"
        return urlunsplit((_SCHEMES[parts.scheme], parts.netloc, path, parts.query, ""))

    @property
    def http_url(self) -> str:
        """Base address for plain HTTP requests."""
        parts = self._split()
        scheme = "https" if _SCHEMES[parts.scheme] == "wss" else "http"
        return urlunsplit((scheme, parts.netloc, self.path, parts.query, ""))

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Base addresses to ask as well if there is nothing at this one.

        People leave the version out, paste it twice, or add it where a server has none.
        """
        path = self.path
        if (version := _VERSION.search(path)) is None:
            paths = [f"{path}/v1"]
        else:
            shorter = path[: version.start()]
            paths = [shorter]
        parts = urlsplit(self.http_url)
        return tuple(urlunsplit(parts._replace(path=each)) for each in paths)

    @property
    def dialect(self) -> Dialect:
        return DIALECTS[self.kind]

    @property
    def apis(self) -> tuple[WireApi, ...]:
        """The APIs to speak, in the order in which they are asked for."""
        if self.transport == "auto":
            named, known = _API_PATHS.get(self._named_api), self.dialect.apis
            return known if named not in known else (named, *(api for api in known if api != named))
        return (self.transport if self.transport in ("chat", "messages") else "responses",)

    @property
    def tries_websocket(self) -> bool:
        """Whether a WebSocket is asked for first."""
        return self.transport == "websocket" or (
            self.transport == "auto" and self.dialect.websocket and self.apis[0] == "responses"
        )

    @property
    def key_headers(self) -> dict[str, str]:
        """The headers of every request that depend on whose server it is, its key among them."""
        if self.dialect.bearer:
            return {"Authorization": f"Bearer {self.token}"} if self.token else {}
        version = {"anthropic-version": ANTHROPIC_VERSION}
        return version | ({"x-api-key": self.token} if self.token else {})

    @property
    def secure(self) -> bool:
        return _SCHEMES[self._split().scheme] == "wss"

    @property
    def host(self) -> str:
        return self._split().hostname or ""

    @property
    def path(self) -> str:
        """Path of the base address, such as "/v1"; "" for none."""
        return self._split().path.rstrip("/").removesuffix(self._named_api).rstrip("/")

    @property
    def loopback(self) -> bool:
        """Whether the server runs on this machine; proxies and compression are off then."""
        return self.host in _LOOPBACK


def is_address(text: str) -> bool:
    """Whether a word is an address or a host, rather than the name of an endpoint or a model."""
    if "://" in text:
        return True
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if host == "localhost" or port is not None:
        return bool(host)
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(host))
    *labels, last = host.split(".")
    return bool(labels) and all(labels) and last[:1].isalpha()


def complete_address(text: str) -> str:
    """The base address in what a person has: an address of one method, or a host alone.

    Raises:
        UsageError: It is no address.
    """
    text = text.strip()
    wrong = UsageError("That is not an address; give one such as https://HOST/v1.")
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
    if not host or not all(host.rstrip(".").split(".")):
        raise wrong
    if parts.scheme not in _SCHEMES:
        raise UsageError(f"{parts.scheme}:// is not the address of a model server; use https://.")
    if "@" in parts.netloc:
        raise UsageError("Leave the name and password out of the address; a key is asked for.")
    path = parts.path.rstrip("/")
    for method in _API_PATHS:
        path = path.removesuffix(method)
    url = urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
    if path:
        return url
    return DIALECTS[kind_of(url)].url or urlunsplit(
        (parts.scheme, parts.netloc, "/v1", parts.query, "")
    )


def _is_near(host: str) -> bool:
    """Whether a host is on this machine or in its network, where few servers have TLS."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or "." not in host
