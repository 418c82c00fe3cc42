"""A model server that lists its models to those who have the key, on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class KeyServer:
    """One server.

    Attributes:
        key: The key that it takes; ``""`` for everybody.
        models: What it lists, ``None`` for no list.
        public_list: Whether the list needs no key, and only ``/key`` does.
        bearer: Whether the key comes as a bearer token; else as ``x-api-key``.
        refusal: The status for another key.
        asked: Path and key of all requests, in order.
    """

    key: str = ""
    models: tuple[str, ...] | None = ("small-1", "large-1")
    public_list: bool = False
    bearer: bool = True
    refusal: int = 401
    asked: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @contextmanager
    def running(self) -> Iterator[KeyServer]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def _answer(self, path: str, key: str) -> tuple[int, object]:
        self.asked.append((path, key))
        needs_key = not (self.public_list and path == "/v1/models")
        if needs_key and key != self.key:
            return self.refusal, {"error": {"message": "Incorrect API key provided."}}
        if path == "/v1/key" and self.public_list:
            return 200, {"data": {"label": "mine"}}
        if path == "/v1/models" and self.models is not None:
            return 200, {"data": [{"id": name, "object": "model"} for name in self.models]}
        return 404, {"error": {"message": "nothing here"}}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = "Authorization" if owner.bearer else "x-api-key"
                key = self.headers.get(name, "").removeprefix("Bearer ")
                status, value = owner._answer(self.path, key)
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
