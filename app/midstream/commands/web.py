"""Serve the screen to a browser on this machine.

The page and its WebSocket are on loopback and need the token of the address that is printed; pages
of other sites are refused.  Each tab is a Midstream of its own, which ends with the tab.  What
serves is textual-serve, of the extra ``web``.
"""

from __future__ import annotations

import argparse
import secrets
import socket
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from midstream import processes
from midstream.arguments import whole
from midstream.errors import UnavailableError, UsageError

if TYPE_CHECKING:
    from aiohttp import web

HOST: Final = "127.0.0.1"
PORT: Final = 8710
"""The port, unless the command line names another one."""
SHUTDOWN_S: Final = 5.0
"""How long the programs of open tabs get to end."""
MAX_TABS: Final = 8
"""Open tabs; each is a process with a model of its own."""
OPENERS: Final = ("agent", "demo", "review")
"""Commands that open the screen."""
NAMES: Final = (HOST, "localhost", "::1")
"""What this machine is called from itself, also through a tunnel of ssh."""
POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; form-action 'none'; base-uri 'none'"
)
"""The page loads nothing from elsewhere and stands in no frame."""

FOCUS: Final = """\
<style>body { overflow: hidden; }</style>
<script>
  const waiting = setInterval(() => {
    const keys = document.querySelector(".xterm-helper-textarea");
    if (keys && document.body.classList.contains("-first-byte")) {
      keys.focus();
      clearInterval(waiting);
    }
  }, 50);
</script>
"""
"""Sends the keys to the terminal without a click, once it is connected."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``midstream web``."""
    parser.add_argument(
        "--port",
        type=whole(0),
        default=PORT,
        help=f"port on this machine; 0 takes a free one (default: {PORT})",
    )
    parser.add_argument(
        "arguments",
        nargs=argparse.REMAINDER,
        metavar="...",
        help=(
            "what to open: the arguments that would follow `midstream` (a path, agent, demo or "
            "review, with options)"
        ),
    )


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl+C.

    Raises:
        UsageError: There is no such path.
        UnavailableError: The extra is missing, or the port is taken.
    """
    arguments: list[str] = options.arguments
    first = next((word for word in arguments if not word.startswith("-")), ".")
    if first not in OPENERS and not Path(first).exists():
        raise UsageError(f"There is no file or folder {first}; name one that exists.")
    try:
        import_module("textual_serve.server")
    except ImportError:
        raise UnavailableError(
            "The browser needs more packages: pip install 'midstream[web]'."
        ) from None
    from aiohttp import web

    listener = _listener(options.port)
    port = listener.getsockname()[1]
    token = secrets.token_urlsafe(24)

    def announce(*_: object) -> None:
        print(f"Midstream is at http://{HOST}:{port}/?token={token}", flush=True)
        print("Ctrl+C ends it.", flush=True)

    web.run_app(
        token_app(arguments, port, token),
        sock=listener,
        print=announce,
        access_log=None,
        shutdown_timeout=SHUTDOWN_S,
    )
    return 0


def _listener(port: int) -> socket.socket:
    """A socket on the port, or on a free one for 0.

    Raises:
        UnavailableError: Another program has it.
    """
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise UnavailableError(
            f"Port {port} cannot be used ({error.strerror}); choose another with --port."
        ) from None
    return listener


async def token_app(arguments: list[str], port: int, token: str) -> web.Application:
    """The page, its files and its WebSocket, which starts ``midstream ARGUMENTS``.

    Args:
        arguments: Arguments of the program that each tab starts.
        port: Port on loopback.
        token: What the first request of a browser has to name; a cookie names it from then on.
    """
    from aiohttp import web
    from textual_serve.server import Server

    cookie = f"midstream-{port}"
    tabs = 0

    def refusal(request: web.Request) -> str:
        """Why a request is refused, ``""`` if it is not."""
        host = urlsplit(f"//{request.host}")
        if host.hostname not in NAMES:
            return "This server answers to this machine only."
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"http://{request.host}":
            return "Pages of other sites may not use this server."
        known = request.query.get("token") or request.cookies.get(cookie) or ""
        if not secrets.compare_digest(known.encode(), token.encode()):
            return "Open the address that `midstream web` has printed: it has the token."
        return ""

    @web.middleware
    async def guarded(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        nonlocal tabs
        if why := refusal(request):
            return web.Response(status=403, text=f"{why}\n")
        if "token" in request.query:
            # Out of the address: it would be in the history and in bookmarks.
            response = web.HTTPFound(str(request.rel_url.without_query_params("token")))
            response.set_cookie(cookie, token, httponly=True, samesite="Strict")
            raise response
        if request.path != "/ws":
            response = await handler(request)
            response.headers["Content-Security-Policy"] = POLICY
            response.headers["Referrer-Policy"] = "no-referrer"
            return response
        if tabs >= MAX_TABS:
            return web.Response(status=503, text=f"{MAX_TABS} tabs are open; close one.\n")
        tabs += 1
        try:
            return await handler(request)
        finally:
            tabs -= 1

    class PageServer(Server):
        """Write the host that the browser used into the page; otherwise the browser sends no
        cookie.
        """

        async def app(self) -> web.Application:
            """The application, with the guard before it."""
            app = await self._make_app()
            app.middlewares.append(guarded)
            return app

        async def on_startup(self, app: web.Application) -> None:
            """Print nothing: the address is printed once it is open."""

        async def handle_index(self, request: web.Request) -> web.StreamResponse:  # pyright: ignore[reportIncompatibleMethodOverride]
            self.public_url = f"http://{request.host}"
            page = cast("web.Response", await super().handle_index(request))
            page.text = (page.text or "").replace("</body>", f"{FOCUS}</body>")
            return page

    command = processes.shell_command("midstream", *arguments)
    return await PageServer(command, host=HOST, port=port, title="Midstream").app()
