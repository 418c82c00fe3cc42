"""A model hub on loopback: repositories from folders, and the faults that real ones have."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

REVISION = "a" * 40


@dataclass
class HubRepository:
    """What a hub has of one repository.

    Attributes:
        files: Contents by path.
        large: Paths that are kept in Git LFS and have a SHA-256.
        card: The model card's table.
        gated: Whether its terms must be accepted first.
    """

    files: dict[str, bytes]
    large: frozenset[str] = frozenset()
    card: dict[str, Any] = field(default_factory=dict[str, Any])
    gated: bool = False

    def listing(self, name: str) -> dict[str, Any]:
        """The hub's description of it."""
        siblings: list[dict[str, Any]] = []
        for path, content in self.files.items():
            blob = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
            entry: dict[str, Any] = {"rfilename": path, "size": len(content), "blobId": blob}
            if path in self.large:
                sha = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"sha256": sha, "size": len(content), "pointerSize": 134}
            siblings.append(entry)
        return {
            "id": name,
            "sha": REVISION,
            "siblings": siblings,
            "cardData": self.card,
            "tags": [],
        }


@dataclass
class ModelHub:
    """A hub and what it is to do wrong.

    Attributes:
        repositories: By name.
        cut: Bytes of a file after which its connection is closed, by path; each is used once.
        damaged: Paths whose content comes changed; each is used once.
        held: Paths that stop after the first bytes until `release` is set.
        forgetful: Whether the whole of a file comes whatever part is asked for.
        requests: Method, path and range of every request.
    """

    repositories: dict[str, HubRepository] = field(default_factory=dict[str, HubRepository])
    cut: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    damaged: set[str] = field(default_factory=set[str])
    held: set[str] = field(default_factory=set[str])
    forgetful: bool = False
    release: threading.Event = field(default_factory=threading.Event)
    waiting: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    url: str = ""

    def fetched(self, path: str) -> list[str]:
        """The ranges that were asked for of a file."""
        return [given for _, name, given in self.requests if name.endswith(f"/{path}")]


@contextmanager
def serving_hub(hub: ModelHub) -> Iterator[ModelHub]:
    """Serve a hub on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.requests.append(("GET", path, self.headers.get("Range", "")))
            for name, repository in hub.repositories.items():
                if path.startswith(f"/api/models/{name}"):
                    return self.send(json.dumps(repository.listing(name)).encode())
                prefix = f"/{name}/resolve/{REVISION}/"
                if path.startswith(prefix):
                    if repository.gated:
                        return self.send(b"", 403, {"X-Error-Code": "GatedRepo"})
                    return self.send_file(path.removeprefix(prefix), repository)
            return self.send(b"", 404, {"X-Error-Code": "RepoNotFound"})

        def send(self, body: bytes, status: int = 200, more: dict[str, str] | None = None) -> None:
            headers = dict(more or {})
            if "gzip" in self.headers.get("Accept-Encoding", ""):
                body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
            self.send_response(status)
            for key, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)

        def send_file(self, path: str, repository: HubRepository) -> None:
            content = repository.files[path]
            if path in hub.damaged:
                hub.damaged.remove(path)
                content = bytes([content[0] ^ 1]) + content[1:]
            given = "" if hub.forgetful else self.headers.get("Range", "")
            start = int(given.removeprefix("bytes=").rstrip("-")) if given else 0
            body = content[start:]
            self.send_response(206 if given else 200)
            self.send_header("Content-Length", str(len(body)))
            if given:
                whole = f"bytes {start}-{len(content) - 1}/{len(content)}"
                self.send_header("Content-Range", whole)
            self.end_headers()
            if cuts := hub.cut.get(path):
                self.wfile.write(body[: cuts.pop(0)])
                self.close_connection = True
                return
            if path in hub.held:
                self.wfile.write(body[:1000])
                self.wfile.flush()
                hub.waiting.set()
                hub.release.wait(60)
                self.close_connection = True
                return
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        hub.release.set()
        server.shutdown()
        server.server_close()
        thread.join()
