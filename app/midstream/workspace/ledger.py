"""What was last known to be on disk, to tell our own writes from the user's.

There are no timers and no "ignore the next event": an event about a path is the user's exactly when
what is on disk differs from what was last seen or written there: its bytes, or whether it may be
run.
"""

from __future__ import annotations

import threading
import time
from typing import Final

MOMENT_NS: Final = 2_000_000_000
"""Longest delay of an event."""


class Ledger:
    """Digests and permission to run by relative path; a digest of ``None`` stands for "no file".

    ``lock`` is held by a writer from its last look at the disk until the new digest is recorded,
    and by the watcher from its look until it has asked ``observe``, so neither sees half of the
    other's step.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._known: dict[str, tuple[str | None, bool]] = {}
        self._sizes: dict[str, int] = {}
        self._first_read: dict[str, int] = {}  # when, on the files' clock

    def opened(self, rel: str, digest: str, size: int, executable: bool) -> None:
        """A file was read to work with it; the watcher follows it from now on.

        If it differs from what was known, the next look is news in any case, since other
        readers may still have the old state.
        """
        with self.lock:
            if rel not in self._sizes:
                self._first_read[rel] = time.time_ns()
            if self._known.setdefault(rel, (digest, executable)) != (digest, executable):
                del self._known[rel]
            self._sizes[rel] = size

    def record(self, rel: str, digest: str | None, size: int, executable: bool) -> None:
        """Midstream has just written this."""
        with self.lock:
            self._known[rel] = digest, executable
            self._sizes[rel] = size
            self._first_read.pop(rel, None)

    def observe(self, rel: str, digest: str | None, size: int, executable: bool) -> bool:
        """Note what the disk holds now; True if that is news: neither ours nor reported before."""
        with self.lock:
            news = self.differs(rel, digest, executable)
            self._known[rel] = digest, executable
            self._sizes[rel] = size
            return news

    def differs(self, rel: str, digest: str | None, executable: bool) -> bool:
        """Whether ``observe`` would call this news."""
        with self.lock:
            return self._known.get(rel) != (digest, executable)

    def saved_before_reading(self, rel: str, modified_ns: int) -> bool:
        """Whether an event may be about a save shortly before the first read; True once per path.

        That is news, although its content has been read already.

        Args:
            rel: The path.
            modified_ns: When the file was modified, in nanoseconds since the epoch.
        """
        with self.lock:
            read = self._first_read.pop(rel, None)
            return read is not None and 0 <= read - modified_ns < MOMENT_NS

    def followed(self) -> dict[str, int]:
        """Paths that were read or written through the workspace, with their last known sizes."""
        with self.lock:
            return dict(self._sizes)
