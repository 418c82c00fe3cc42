"""Who may use the server: the bearer token and the ``Origin`` rule, checked before anything else,
and how many requests at a time.

A browser page can open ``ws://127.0.0.1`` and post forms there, and always says where it comes
from; programs do not send ``Origin``. So a request with an origin that was not allowed by name is
refused, even with a token. A page whose name was pointed at this machine afterwards reads without
saying so; against it, a server without a token answers only to ``localhost`` and to addresses.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

_OPEN_PATHS = frozenset({"/healthz"})


class AccessControl:
    """ASGI middleware that refuses with 401 or 403.

    Args:
        app: The application behind it.
        token: Token that every request needs, except for ``/healthz``; None needs none.
        origins: Values of ``Origin`` that are welcome.
    """

    def __init__(self, app: ASGIApp, token: str | None, origins: Collection[str] = ()) -> None:
        self._app = app
        self._expected = None if token is None else f"Bearer {token}".encode()
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http" or "websocket.http.response" in scope.get("extensions", {}):
            await refusal(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            return refusal_response(403, "forbidden_origin", "This origin may not use the server.")
        if scope["path"] in _OPEN_PATHS:
            return None
        if self._expected is None:
            return None if _is_address(headers.get("host", "")) else _FOREIGN_HOST
        given = headers.get("authorization", "").encode("utf-8", "replace")
        if hmac.compare_digest(given, self._expected):
            return None
        sentence = "The bearer token is missing or wrong; check the endpoint's token."
        return refusal_response(401, "invalid_api_key", sentence)


def _is_address(host: str) -> bool:
    """Whether a ``Host`` is not a name that DNS could point at this machine."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or bool(ipaddress.ip_address(name))
    except ValueError:
        return False


class Limited:
    """ASGI middleware that lets ``most`` requests in at a time and refuses the rest with 503."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._running >= self._most:
            sentence = "Too many requests are open; try again shortly."
            await refusal_response(503, "too_many_connections", sentence)(scope, receive, send)
            return
        self._running += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running -= 1


def refusal_response(status: int, code: str, message: str) -> Response:
    kind = "invalid_request_error" if status < 500 else "server_error"
    error = {"type": kind, "code": code, "message": message, "param": None}
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse({"error": error}, status_code=status, headers=headers)


_FOREIGN_HOST = refusal_response(
    403,
    "forbidden_host",
    "Without a token this server answers to localhost and to addresses; start it with a token.",
)
