"""What we last knew to be on disk, by content: tells own writes from the user's.

The rule has no timers and no "ignore the next event": an event about a path is the user's exactly
when the bytes on disk differ from the bytes last seen or written there.
"""

from __future__ import annotations

import hashlib
import threading


def content_digest(data: bytes) -> str:
    """Digest that names file content everywhere in Midstream: blake2b with 128 bits, in hex."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class Ledger:
    """Digests by relative path; ``None`` stands for "no file".

    ``lock`` is held by a writer from its last look at the disk until the new digest is recorded,
    and by the watcher from its look until it has asked :meth:`observe`, so neither sees half of the
    other's step.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._known: dict[str, str | None] = {}
        self._written: dict[str, str | None] = {}
        self._opened: set[str] = set()

    def record(self, rel: str, digest: str | None) -> None:
        """We have just put this content on disk."""
        with self.lock:
            self._known[rel] = self._written[rel] = digest
            self._opened.add(rel)

    def owns(self, rel: str, digest: str | None) -> bool:
        """Whether our last write of ``rel`` left exactly this content."""
        with self.lock:
            return rel in self._written and self._written[rel] == digest

    def observe(self, rel: str, digest: str | None) -> bool:
        """Note what the disk holds now; True when that is news, that is, neither ours nor already
        told.
        """
        with self.lock:
            news = rel not in self._known or self._known[rel] != digest
            self._known[rel] = digest
            return news

    def open(self, rel: str) -> None:
        """Somebody works with this file: the watcher reports it even where ignore rules hide it."""
        with self.lock:
            self._opened.add(rel)

    def opened(self) -> frozenset[str]:
        """Every path that was read or written through the workspace."""
        with self.lock:
            return frozenset(self._opened)
