"""Journal files: append-only JSON Lines, from which ``midstream --resume`` restores a session.

The first line of every file is a header; each further line is ``{"k": kind, "t": seconds,
"d": data}``.  Lines are gathered for at most ``FLUSH_S`` and then handed to the system in one
write, so a killed process loses no more than that; once a second they are also flushed to the
device.  The reader skips torn lines, at the end or where a killed writer was resumed.

A journal is a few files (``<name>.jsonl``, ``<name>.1.jsonl``, …) of at most ``max_bytes`` each;
when there are too many, the oldest after the first is deleted.  The kinds of entries are defined in
``pairing.journal.journal``.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from midstream.resources import open_regular
from midstream.workspace.checkpoints import new_session_id
from midstream.workspace.errors import WorkspaceError
from midstream.workspace.paths import make_private, root_state_dir, sync_folder

VERSION: Final = 1
"""Version of the format; newer ones are not read."""
FLUSH_S: Final = 0.1
"""How long an entry may wait until it is handed to the system."""
SYNC_S: Final = 1.0
"""How long it may be in the hands of the system before it is made to last."""
MAX_BYTES: Final = 16_000_000
"""Bytes of a part, after which the next one is begun."""
MAX_HEADER: Final = 65_536
"""Bytes of the first line."""
MAX_TIME: Final = 1e12
"""Limit on seconds since the epoch; a larger number is invalid."""
MAX_PARTS: Final = 4
"""Parts of a journal; then the oldest is deleted."""
KEPT_SESSIONS: Final = 20
"""Journals of one folder that are kept."""
TRUNCATED: Final = "journal.truncated"
"""Kind of the entry that the reader inserts where old parts were deleted."""

_encoded: Final = json.JSONEncoder(separators=(",", ":")).encode


class JournalInUseError(WorkspaceError):
    """Another running Midstream writes this journal."""

    code = "journal-in-use"


class JournalVersionError(WorkspaceError):
    """The journal was written by a newer Midstream."""

    code = "journal-version"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One line of a journal."""

    kind: str
    time: float
    """Seconds since the epoch."""
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One journal of a root."""

    path: Path
    started: float
    """Seconds since the epoch."""
    changed: float
    """Last write, seconds since the epoch."""
    size: int
    """Bytes, all parts."""
    live: bool
    """A running process is writing it."""


class Journal:
    """Writer of one journal; safe to use from several threads.

    Attributes:
        path: Its first file.
        trouble: Why it cannot be written at the moment, in the system's words; ``""`` if it can.
        on_trouble: Called in a thread of the journal's own when it cannot be written any more.
    """

    def __init__(
        self, path: Path, *, max_bytes: int = MAX_BYTES, max_parts: int = MAX_PARTS
    ) -> None:
        self.path = path
        self.trouble = ""
        self.on_trouble: Callable[[], None] | None = None
        self._max_bytes = max_bytes
        self._max_parts = max(2, max_parts)
        self._lock = threading.Condition()
        """Held for a moment only, as the event loop adds entries: guards the two that follow."""
        self._lines: list[Callable[[], bytes]] = []
        self._closed = False
        self._file_lock = threading.RLock()
        """Held while the disk is waited for: guards the rest, and is taken before the other."""
        self._unwritten: bytes = b""
        """Lines that were taken from the queue and are not written yet."""
        self._lock_descriptor = _open_for_append(path)
        try:
            fcntl.flock(self._lock_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock_descriptor)
            raise JournalInUseError(
                "That session is still open in another Midstream", "close it there first"
            ) from error
        number, part = _parts(path)[-1]
        self._part_number = number
        self._descriptor = _open_for_append(part)
        self._size = os.fstat(self._descriptor).st_size
        if self._size and not _ends_with_newline(part):
            self._unwritten = b"\n"
        self._torn = False
        """Whether the end of a line is still to be written."""
        self._synced = time.monotonic()
        self._named = False  # On the device, as the file's bytes are.
        self._thread = threading.Thread(target=self._flush_in_time, name="journal", daemon=True)
        self._thread.start()

    @classmethod
    def create(
        cls, state: Path, root: Path, *, max_bytes: int = MAX_BYTES, max_parts: int = MAX_PARTS
    ) -> Journal:
        """A new journal for a session on ``root``; only ``KEPT_SESSIONS`` are kept."""
        folder = make_private(_folder(state, root))
        for old in sessions(state, root)[KEPT_SESSIONS - 1 :]:
            if not old.live:
                for _, part in _parts(old.path):
                    part.unlink(missing_ok=True)
        journal = cls(
            folder / f"{new_session_id()}.jsonl", max_bytes=max_bytes, max_parts=max_parts
        )
        with journal._file_lock:
            journal._unwritten = _header(root=os.path.realpath(root))
        try:
            journal.flush()
        except OSError:
            journal.close()
            journal.path.unlink(missing_ok=True)
            raise
        return journal

    @classmethod
    def open(cls, path: Path) -> Journal:
        """Continue an existing journal.

        Raises:
            JournalInUseError: A running process is writing it.
        """
        return cls(path)

    def append(self, kind: str, /, **data: Any) -> None:
        """Add an entry with JSON data; it is on disk within ``FLUSH_S``."""
        line = _line(kind, time.time(), data)
        self._add(lambda: line)

    def append_later(self, kind: str, make: Callable[[], Mapping[str, Any]]) -> None:
        """Add an entry whose data takes a while to make: that is done when it is written.

        Args:
            kind: Its kind.
            make: Makes the data, in any thread, from what does not change any more.
        """
        now = time.time()
        self._add(lambda: _line(kind, now, make()))

    def _add(self, line: Callable[[], bytes]) -> None:
        with self._lock:
            if self._closed:
                return
            if not self._lines:
                self._lock.notify()
            self._lines.append(line)

    def flush(self, *, sync: bool = False) -> None:
        """Hand everything to the system now; with ``sync`` also to the device.

        Raises:
            OSError: The disk is full or gone; the entries are kept for the next attempt.
        """
        with self._file_lock:
            if self._descriptor < 0:
                return
            try:
                self._write()
                if sync:
                    self._sync()
            except OSError as error:
                self.trouble = error.strerror or str(error)
                raise
            self.trouble = ""

    def close(self) -> None:
        """Write what is left and close the file; further entries are ignored."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._lock.notify()
        with contextlib.suppress(OSError):
            self.flush(sync=True)
        self._thread.join()
        with self._file_lock:
            os.close(self._descriptor)
            _unlock_and_close(self._lock_descriptor)
            self._descriptor = -1

    @staticmethod
    def read(path: Path) -> Iterator[JournalEntry]:
        """Entries of a journal in order, without headers and torn lines.

        Raises:
            JournalVersionError: Written by a newer version.
            OSError: The file cannot be read.
        """
        expected = 0
        for number, part in _parts(path):
            if number != expected:
                yield JournalEntry(TRUNCATED, 0.0, {"parts": number - expected})
            expected = number + 1
            with open_regular(part) as stream:
                for line in _lines(stream):
                    record = _parse_line(line)
                    if record is None:
                        continue
                    if "midstream" in record:
                        if record["midstream"] > VERSION:
                            raise JournalVersionError(
                                "A newer Midstream wrote that session", "update to resume it"
                            )
                        continue
                    yield JournalEntry(str(record["k"]), float(record["t"]), record["d"])

    @staticmethod
    def latest(state: Path, root: Path) -> Path | None:
        """The newest journal of ``root`` that no running process is writing."""
        return next((info.path for info in sessions(state, root) if not info.live), None)

    def _write(self) -> None:
        with self._lock:
            lines, self._lines = self._lines, []
        self._unwritten += b"".join([line() for line in lines])
        data = self._unwritten
        if not data:
            return
        if self._size and self._size + len(data) > self._max_bytes and not self._torn:
            self._next_part()
        while data:
            written = os.write(self._descriptor, data)
            self._size += written
            self._torn = data[written - 1 : written] != b"\n"
            data = data[written:]
            # If the disk is full for the rest, what is written stays written.
            self._unwritten = data

    def _sync(self) -> None:
        os.fsync(self._descriptor)
        if not self._named:
            sync_folder(self.path.parent)
            self._named = True
        self._synced = time.monotonic()

    def _next_part(self) -> None:
        fresh = self.path.with_suffix(f".{self._part_number + 1}.jsonl")
        descriptor = _open_for_append(fresh)
        try:
            os.ftruncate(descriptor, 0)  # The rest of an earlier try.
            header = _header(part=self._part_number + 1)
            if os.write(descriptor, header) < len(header):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(fresh))
            os.fsync(self._descriptor)
        except OSError:
            os.close(descriptor)
            raise
        os.close(self._descriptor)
        self._descriptor, self._size = descriptor, len(header)
        self._named = False
        self._part_number += 1
        # The first part stays: the session starts from it, and its lock marks the journal as live.
        for _, old in _parts(self.path)[1 : 1 - self._max_parts]:
            old.unlink(missing_ok=True)

    def _flush_in_time(self) -> None:
        while True:
            with self._lock:
                while not (self._lines or self._unwritten or self._closed):
                    self._lock.wait()
                if self._closed:
                    return
                self._lock.wait(FLUSH_S / 2)
            known = self.trouble
            # A full disk must not end the session; the lines stay for the next attempt.
            with contextlib.suppress(OSError):
                self.flush(sync=time.monotonic() - self._synced > SYNC_S)
                continue
            if not known and self.on_trouble is not None:
                self.on_trouble()
            time.sleep(SYNC_S)


def sessions(state: Path, root: Path) -> list[SessionInfo]:
    """Journals of ``root``, newest first."""
    found: list[SessionInfo] = []
    with contextlib.suppress(FileNotFoundError):
        for path in _folder(state, root).iterdir():
            if path.name.count(".") != 1 or path.suffix != ".jsonl":
                continue
            with contextlib.suppress(OSError):
                statuses = [part.stat() for _, part in _parts(path)]
                first = _first_line(path)
                started = float(first.get("t") or statuses[0].st_mtime)
                changed = max(status.st_mtime for status in statuses)
                size = sum(status.st_size for status in statuses)
                found.append(SessionInfo(path, started, changed, size, _is_live(path)))
    return sorted(found, key=lambda info: info.path.name, reverse=True)


def delete_journal(path: Path) -> None:
    """Delete a journal with all its parts, if it exists.

    Raises:
        JournalInUseError: A running process is writing it.
        WorkspaceError: The system refuses.
    """
    try:
        if _is_live(path):
            raise JournalInUseError(
                "That session is still open in a Midstream", "close it there first"
            )
        for _, part in _parts(path):
            part.unlink(missing_ok=True)
    except FileNotFoundError:
        return
    except OSError as error:
        raise WorkspaceError(
            f"The journal {path} cannot be deleted ({error.strerror})", "delete it by hand"
        ) from error


def _folder(state: Path, root: Path) -> Path:
    return root_state_dir(state, root) / "journals"


def _line(kind: str, time_: float, data: Mapping[str, Any]) -> bytes:
    return _encoded({"k": kind, "t": round(time_, 4), "d": data}).encode() + b"\n"


def _header(**facts: Any) -> bytes:
    return json.dumps({"midstream": VERSION, "t": round(time.time(), 4), **facts}).encode() + b"\n"


def _parts(path: Path) -> list[tuple[int, Path]]:
    """``(number, file)`` of a journal in order; the first need not exist."""
    stem = path.name.removesuffix(".jsonl")
    numbers = sorted(
        int(middle)
        for other in path.parent.glob(f"{stem}.*.jsonl")
        if (middle := other.name[len(stem) + 1 : -len(".jsonl")]).isdigit()
    )
    return [(0, path), *((number, path.with_suffix(f".{number}.jsonl")) for number in numbers)]


def _open_for_append(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return descriptor


def _ends_with_newline(path: Path) -> bool:
    with open_regular(path) as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) == b"\n"


def _parse_line(line: bytes) -> dict[str, Any] | None:
    """A header or an entry; ``None`` for a line that is neither, torn or made by others."""
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    record = cast("dict[str, Any]", value)
    time_ = record.get("t")
    timed = isinstance(time_, int | float) and abs(time_) < MAX_TIME
    if "midstream" in record:
        version = record["midstream"]
        return record if isinstance(version, int) and (timed or time_ is None) else None
    known = isinstance(record.get("k"), str) and isinstance(record.get("d"), dict)
    return record if known and timed else None


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of a part; one that is longer than a part may be is left out."""
    while line := stream.readline(2 * MAX_BYTES):
        if line.endswith(b"\n") or len(line) < 2 * MAX_BYTES:
            yield line


def _first_line(path: Path) -> dict[str, Any]:
    with open_regular(path) as stream:
        return _parse_line(stream.readline(MAX_HEADER)) or {}


def _is_live(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        _unlock_and_close(descriptor)
    return False


def _unlock_and_close(descriptor: int) -> None:
    """Release a lock at once: a forked child has the descriptor until its exec, and closing alone
    would leave the file locked for as long.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)
