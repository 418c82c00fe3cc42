"""What the tests of the pairing room share: folders with code, waiting."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import itertools
import os
import struct
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from midstream.edits.request import parse_follow_up
from midstream.engine.types import GenerateRequest
from midstream.pairing.session import PairingSession
from midstream.pairing.status import SessionEvent
from tests.helpers.waiting import PATIENCE_S


def numbered(lines: int = 40) -> str:
    """A function whose lines all differ, so that every place in it can be told."""
    body = "".join(f"    step_{n:02d} = work({n})\n" for n in range(1, lines - 1))
    return f"def run():\n{body}    return step_01\n"


def git(root: Path, *arguments: str) -> str:
    """Run git in ``root``, unaffected by the user's configuration."""
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(root)]
    return subprocess.run(
        [*command, *arguments], check=True, capture_output=True, text=True, timeout=20
    ).stdout


def save(path: Path, text: str) -> None:
    """Replace a file in one step, as editors do: a reader sees the old text or the new one."""
    fresh = path.with_name(f".{path.name}.tmp")
    fresh.write_text(text)
    fresh.replace(path)


def make_repo(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """A git repository with one commit that holds ``files``, in a folder that is new or empty."""
    root.mkdir(parents=True, exist_ok=True)
    assert not any(root.iterdir())
    commit_files(root, files)
    return root


def commit_files(root: Path, files: Mapping[str, str | bytes], subject: str = "start") -> None:
    """Make a folder that has nothing but ``files``, or nothing yet, a repository with a commit."""
    for file in _repository(tuple(files.items()), subject):
        path = root / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(file.mode)
    for empty in ("hooks", "objects/info"):
        (root / ".git" / empty).mkdir()
    _refresh_index(root)


def _refresh_index(root: Path) -> None:
    """Write the times and inodes of the files into the index, by which git tells them.

    The same as ``git update-index --refresh``, without a process for each of the hundreds of
    repositories of a run; the format is in gitformat-index(5).
    """
    index = root / ".git" / "index"
    data = bytearray(index.read_bytes()[:-20])
    version, entries = struct.unpack_from(">4xII", data)
    assert version == 2
    at = 12
    for _ in range(entries):
        path = data[at + 62 : data.index(0, at + 62)]
        told = (root / os.fsdecode(bytes(path))).lstat()
        times = (divmod(ns, 10**9) for ns in (told.st_ctime_ns, told.st_mtime_ns))
        struct.pack_into(
            ">6I",
            data,
            at,
            *itertools.chain(*times),
            told.st_dev & 0xFFFFFFFF,
            told.st_ino & 0xFFFFFFFF,
        )
        struct.pack_into(">3I", data, at + 28, told.st_uid, told.st_gid, told.st_size)
        at += (62 + len(path) + 8) // 8 * 8
    index.write_bytes(data + hashlib.sha1(data).digest())


class _File(NamedTuple):
    path: Path
    mode: int
    data: bytes


@functools.cache
def _repository(files: tuple[tuple[str, str | bytes], ...], subject: str) -> list[_File]:
    """All files of a repository but the sample hooks, made by git once in a process."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for path, text in files:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text.encode() if isinstance(text, str) else text)
        git(root, "init", "-q", "-b", "main")
        git(root, "add", ".")
        git(root, "commit", "-qm", subject)
        return [
            _File(path.relative_to(root), path.stat().st_mode, path.read_bytes())
            for path in root.rglob("*")
            if path.is_file() and path.suffix != ".sample"
        ]


def follow_ups(request: GenerateRequest) -> list[str]:
    """Redirects in a request, oldest first."""
    return [text for m in request.messages if (text := parse_follow_up(m.text))]


class Witness:
    """Keeps a session's events and waits for what they announce."""

    def __init__(self, session: PairingSession) -> None:
        self.session = session
        self.events: list[SessionEvent] = []
        self._news = asyncio.Event()
        session.status.subscribe(self._hear)

    def _hear(self, event: SessionEvent) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, reached: Callable[[], object]) -> None:
        """Wait until ``reached`` holds; looks at every event, and in between as a screen does."""
        async with asyncio.timeout(PATIENCE_S):
            while not reached():
                self._news.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), 0.005)

    async def seen(self, kind: type[SessionEvent], count: int = 1) -> None:
        """Wait until ``count`` events of a kind have come since the session began."""
        await self.until(lambda: sum(isinstance(e, kind) for e in self.events) >= count)

    async def decidable(self, count: int) -> list[int]:
        """Wait until so many hunks can be decided; their ids by position in the store."""
        hunks = self.session.hunks
        await self.until(lambda: sum(h.decidable for h in hunks) >= count)
        return [h.id for h in hunks if h.decidable]

    def count(self, kind: type[SessionEvent]) -> int:
        """How many events of a kind have come."""
        return sum(isinstance(event, kind) for event in self.events)

    @property
    def notice(self) -> str:
        """Text of the last notice."""
        return self.session.status.notices[-1].text if self.session.status.notices else ""
