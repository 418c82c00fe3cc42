"""Watching a workspace: which files somebody else has changed.

The kernel's events come through watchfiles.  Folders are watched, never single files (a watch on a
file dies when an editor saves by rename), and of the root only its direct children and the folders
that are not ignored, because ignored ones (``node_modules``) may hold most of a machine's watches.
The repository's own folder is watched apart, without its objects.  Where events cannot be had the
open files are polled, and :attr:`Watcher.mode` says why; a slow poll of the open files runs in any
case, since a full event queue drops events.

What an event means is decided in :mod:`midstream.workspace.looking`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Final

from midstream.workspace.boundary import is_git_name
from midstream.workspace.files import Workspace
from midstream.workspace.gitcmd import RepositoryPlace, find_repository
from midstream.workspace.looking import REPO_CHANGED, Looker, current_ref
from midstream.workspace.mounts import filesystem_of, is_shared

__all__ = ["REPO_CHANGED", "Watcher"]

STEP_MS: Final = 20
"""How often the watching thread wakes; a change is told after one to two steps of silence."""
DEBOUNCE_MS: Final = 200
CHECK_S: Final = 2.0
"""How often open files are looked at although no event came."""
POLL_S: Final = 0.4
"""The same where there are no events."""

_HOPES = 10
"""Looks for a repository after its folder appeared: ``git init`` takes a moment to finish it."""

Events = set[tuple[int, str]]

_Message = Events | list[str] | None
"""Raw events, or new folders whose watch stands now, or the end."""


class Watcher:
    """Says which files of a workspace were changed by somebody else.  One :meth:`changes` at a
    time.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._mode = "off: not started"

    @property
    def mode(self) -> str:
        """``"native"``, ``"polling: why"`` or ``"off: why"``, for people."""
        return self._mode

    async def changes(self) -> AsyncGenerator[frozenset[str]]:
        """Sets of relative paths whose content changed, appeared or went; ends when the root is
        gone.

        The workspace's own writes are left out.  :data:`REPO_CHANGED` stands in a set when a
        commit, checkout or staging happened.  A path is reported when it was never looked at
        before, so compare digests before you act.
        """
        loop = asyncio.get_running_loop()
        news: set[str] = set()
        wake = asyncio.Event()
        ended = False

        def take(paths: frozenset[str], end: bool = False) -> None:
            nonlocal ended
            news.update(paths)
            ended = ended or end
            wake.set()

        def deliver(paths: frozenset[str], end: bool = False) -> None:
            # The loop may have been closed while the thread was looking.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(take, paths, end)

        patrol = _Patrol(self._workspace, deliver, self._set_mode)
        patrol.start()
        try:
            while not ended or news:
                await wake.wait()
                wake.clear()
                batch = frozenset(news)
                news.clear()
                if batch:
                    yield batch
        finally:
            patrol.stop()
            self._mode = self._mode if self._mode.startswith("off") else "off: stopped"

    def _set_mode(self, mode: str) -> None:
        self._mode = mode


class _Source(threading.Thread):
    """One set of kernel watches; hands raw events on until it is stopped."""

    def __init__(
        self,
        paths: list[str],
        *,
        recursive: bool,
        take: Callable[[Events], None],
        started: Callable[[str], None],
    ) -> None:
        super().__init__(name="watch", daemon=True)
        self._paths = paths
        self._recursive = recursive
        self._take = take
        self._report = started
        self._stop_event = threading.Event()

    def stop(self) -> None:
        self._stop_event.set()

    def run(self) -> None:
        # The public generators of watchfiles say neither when their watches stand nor why they do
        # not.
        try:
            from watchfiles._rust_notify import RustNotify

            notify = RustNotify(self._paths, False, False, 0, self._recursive, True)
        except FileNotFoundError:
            # A folder went between listing and watching; its deletion is an event of the root.
            self._report("")
            return
        except Exception as error:
            self._report(_reason(error))
            return
        self._report("")
        with notify:
            while True:
                events = notify.watch(DEBOUNCE_MS, STEP_MS, 0, self._stop_event)
                if isinstance(events, str):
                    return
                self._take(events)


class _Patrol(threading.Thread):
    """The watcher's thread: keeps the sources right and looks at what they report."""

    def __init__(
        self,
        workspace: Workspace,
        deliver: Callable[..., None],
        set_mode: Callable[[str], None],
    ) -> None:
        super().__init__(name="patrol", daemon=True)
        self._workspace = workspace
        self._root = str(workspace.root)
        self._deliver = deliver
        self._set_mode = set_mode
        self._inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._sources: dict[str, _Source] = {}
        self._starting = 0
        self._polling = ""
        self._lock = threading.Lock()

    def stop(self) -> None:
        self._inbox.put(None)

    def run(self) -> None:
        try:
            self._set_mode("off: starting")
            self._polling = _why_no_events(self._workspace.root)
            place = find_repository(self._workspace.root)
            looker = Looker(self._workspace, place, self._deliver)
            folders = looker.top_folders()
            # Held until all sources have begun, or the first to stand would speak for the others.
            self._starting = 1
            if not os.environ.get("WATCHFILES_FORCE_POLLING"):
                self._watch("near", [self._root, *_git_folders(place)], recursive=False)
                self._watch("below", folders, recursive=True)
            self._source_started("", None, [])
            self._rounds(looker, place, folders)
        except Exception as error:
            # A watcher that stopped must never look like one that has nothing to say.
            self._set_mode(f"off: watching failed ({error})")
            self._deliver(frozenset(), True)
        finally:
            for source in self._sources.values():
                source.stop()

    def _rounds(self, looker: Looker, place: RepositoryPlace | None, folders: list[str]) -> None:
        checked = time.monotonic()
        hopes = 0
        while True:
            pause = POLL_S if self._polling or hopes else CHECK_S
            message: _Message = set()
            try:
                message = self._inbox.get(timeout=max(0.0, checked + pause - time.monotonic()))
            except queue.Empty:
                checked = time.monotonic()
                looker.check()
            if not Path(self._root).is_dir():
                self._set_mode("off: the folder is gone")
                self._deliver(frozenset(self._workspace.ledger.followed()), True)
                return
            if message is None:
                return
            if isinstance(message, list):
                for folder in message:
                    looker.new_folder(folder)
                looker.check()
                continue
            events = message
            if place is None and any(is_git_name(Path(path).name) for _, path in events):
                hopes = _HOPES
            if place is None and hopes:
                hopes -= 1
                place = find_repository(self._workspace.root)
                if place is not None:
                    hopes = 0
                    looker = Looker(self._workspace, place, self._deliver)
                    self._watch("near", [self._root, *_git_folders(place)], recursive=False)
                    self._deliver(frozenset({REPO_CHANGED}))
            looker.handle(events)
            if any(path.rpartition("/")[0] == self._root for _, path in events):
                now = looker.top_folders()
                if now != folders:
                    new = [folder for folder in now if folder not in folders]
                    self._watch("below", now, recursive=True, new=new)
                    folders = now

    def _watch(
        self, name: str, paths: list[str], *, recursive: bool, new: Sequence[str] = ()
    ) -> None:
        """Replace a source by one on ``paths``; the old one goes on until the new one stands."""
        old = self._sources.pop(name, None)
        if not paths:
            if old is not None:
                old.stop()
            return
        with self._lock:
            self._starting += 1
        source = _Source(
            paths,
            recursive=recursive,
            take=self._inbox.put,
            started=lambda failure: self._source_started(failure, old, new),
        )
        self._sources[name] = source
        source.start()

    def _source_started(self, failure: str, old: _Source | None, new: Sequence[str]) -> None:
        if old is not None:
            old.stop()
        self._inbox.put(list(new))
        with self._lock:
            self._starting -= 1
            self._polling = self._polling or failure
            if self._polling:
                self._set_mode(f"polling: {self._polling}")
            elif self._starting == 0:
                self._set_mode("native")


def _git_folders(place: RepositoryPlace | None) -> list[str]:
    """The folders whose direct children tell of commits, checkouts and staging."""
    if place is None:
        return []
    own, common = place.git_dir, place.common_dir
    folders = [own, own / "logs", common, common / "refs/heads"]
    ref = current_ref(place)
    if ref is not None:
        folders.append((common / ref).parent)
    return sorted({str(folder) for folder in folders if folder.is_dir()})


def _reason(error: Exception) -> str:
    """Why there are no events, in words that lead somewhere."""
    text = str(error)
    if "limit" in text or "os error 28" in text:
        return "the system's limit of file watches is reached (raise fs.inotify.max_user_watches)"
    if "os error 24" in text:
        return "the system's limit of watchers is reached (raise fs.inotify.max_user_instances)"
    return f"the system refused to watch ({text[:120]})"


def _why_no_events(root: Path) -> str:
    """Why events would be missing on this file system; empty where they can be trusted."""
    if os.environ.get("WATCHFILES_FORCE_POLLING"):
        return "WATCHFILES_FORCE_POLLING is set"
    kind = filesystem_of(str(root))
    if is_shared(kind):
        return f"the folder is on {kind}, which does not report changes made elsewhere"
    return ""
