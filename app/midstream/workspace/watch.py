"""Watches a workspace for files changed by other programs.

The kernel's events come through watchfiles.  Folders are watched, never single files (a watch on a
file dies when an editor saves by rename), and of the root only its direct children and the folders
that are not ignored, because ignored ones (``node_modules``) may hold most of a machine's watches.
The repository's own folder is watched apart, without its objects.  Where events cannot be had the
open files are polled, and ``Watcher.mode`` says why; a slow poll of the open files runs in any
case, since a full event queue drops events.

An event only means "look at this path", because events are incomplete and unordered: an editor's
save may arrive as a deletion, our own write as a modification, a half-written file as a finished
one.  ``Inspector`` therefore looks at each path (status, bytes, digest), compares it with the
ledger, and looks again a moment later where a file seems unfinished (missing, empty, shrunk to a
tenth, still open for writing).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from midstream.resources import read_small
from midstream.workspace import atomic
from midstream.workspace.atomic import filesystem_of, is_shared
from midstream.workspace.boundary import inner_repository, is_git_name, resolve_inside
from midstream.workspace.content import content_digest
from midstream.workspace.errors import OutsideWorkspaceError
from midstream.workspace.files import MAX_FILE_BYTES, Workspace
from midstream.workspace.listing import GENERATED_FOLDERS, IGNORE_FILE, IgnoreRules
from midstream.workspace.paths import folders_of, shown
from midstream.workspace.repo import (
    GitFailedError,
    RepositoryPlace,
    find_repository,
    recorded_files,
)

REPO_CHANGED = ".git"
"""In a set of changes: HEAD, the index or the branch has changed; no file has this name."""

DELETED = 3
"""The event type of a deletion (``watchfiles.Change``)."""

SETTLE_S = 0.05
_SETTLE_ROUNDS = 4
"""Pause before an unfinished file is inspected again, and how often it is."""

Signature = tuple[int, int, int, bool]
"""Modified when, size, inode, whether it may be run."""

STEP_MS: Final = 20
"""How often a watching thread wakes; a change is reported after one to two quiet steps."""
IDLE_STEP_MS: Final = 50
"""The same when nothing has changed for ``IDLE_MS``; a wake-up costs some 60 µs, in two threads."""
IDLE_MS: Final = 5_000
"""Quiet time after which a watching thread wakes less often."""
DEBOUNCE_MS: Final = 200
"""How long events are gathered at most."""
RETRY_S: Final = 0.1
"""How soon watches that ended by themselves are made again."""
LOST_S: Final = 3.0
"""Files that changed within this time before are looked for where events were lost."""
CHECK_S: Final = 2.0
"""Interval of the poll of open files that backs up events."""
POLL_S: Final = 0.4
"""Interval of the poll where there are no events."""

_HOPES = 10
"""Attempts to find a repository after its folder appeared; ``git init`` takes a moment."""

Events = set[tuple[int, str]]


class _Lost(NamedTuple):
    """Events were lost: why, and when."""

    why: str
    at: float


_Message = Events | list[str] | _Lost | None
"""Raw events, or new folders whose watch stands now, or that events were lost, or the end."""


class Watcher:
    """Reports which files of a workspace other programs changed.  One ``changes`` at a time.

    Args:
        workspace: The files.
        on_mode: Called in the event loop when ``mode`` has changed.
        on_trouble: Called in the event loop with a sentence about what cannot be followed, while
            the rest goes on.
    """

    def __init__(
        self,
        workspace: Workspace,
        on_mode: Callable[[], None] = lambda: None,
        on_trouble: Callable[[str], None] = lambda trouble: None,
    ) -> None:
        self._workspace = workspace
        self._on_mode = on_mode
        self._on_trouble = on_trouble
        self._mode = "off: not started"

    @property
    def mode(self) -> str:
        """``"native"``, ``"polling: why"`` or ``"off: why"``, for display."""
        return self._mode

    async def changes(self) -> AsyncGenerator[frozenset[str]]:
        """Sets of relative paths whose content changed, appeared or went; ends when the root is
        gone.

        The workspace's own writes are left out.  ``REPO_CHANGED`` stands in a set when a
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

        def set_mode(mode: str) -> None:
            self._mode = mode
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._on_mode)

        def tell(trouble: str) -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._on_trouble, trouble)

        self._mode = "off: starting"
        thread = _WatchThread(self._workspace, deliver, set_mode, tell)
        thread.start()
        try:
            while not ended or news:
                await wake.wait()
                wake.clear()
                batch = frozenset(news)
                news.clear()
                if batch:
                    yield batch
        finally:
            thread.stop()
            self._mode = self._mode if self._mode.startswith("off") else "off: stopped"


class _KernelWatches(threading.Thread):
    """One set of kernel watches; passes on raw events until it is stopped."""

    def __init__(
        self,
        paths: list[str],
        *,
        recursive: bool,
        take: Callable[[Events], None],
        started: Callable[[str], object],
        failed: Callable[[str], None],
    ) -> None:
        super().__init__(name="watch", daemon=True)
        self._paths = paths
        self._recursive = recursive
        self._take = take
        self._report = started
        self._failed = failed
        self._stop_event = threading.Event()

    def stop(self) -> None:
        self._stop_event.set()

    def run(self) -> None:
        while self._watch_on():
            pass  # A name that is not UTF-8 ends the watches (watchfiles 1.1): make them again.

    def _watch_on(self) -> bool:
        """Watch until it is stopped; True if the watches ended by themselves."""
        # The public generators of watchfiles do not say when (or why not) watches are in place.
        try:
            from watchfiles._rust_notify import RustNotify

            notify = RustNotify(self._paths, False, False, 0, self._recursive, True)
        except FileNotFoundError:
            # A folder went between listing and watching; its deletion is an event of the root.
            self._report("")
            return False
        except Exception as error:
            self._report(_reason(error))
            return False
        self._report("")
        with notify:
            step, patience = IDLE_STEP_MS, 0  # 0 waits for ever.
            while True:
                try:
                    events = notify.watch(DEBOUNCE_MS, step, patience, self._stop_event)
                except Exception as error:
                    self._failed(str(error))
                    return not self._stop_event.wait(RETRY_S)
                if isinstance(events, set):
                    self._take(events)
                    step, patience = STEP_MS, IDLE_MS
                elif events == "timeout":
                    step, patience = IDLE_STEP_MS, 0
                else:
                    return False


class _WatchThread(threading.Thread):
    """The watcher's thread: keeps the sources up to date and inspects what they report."""

    def __init__(
        self,
        workspace: Workspace,
        deliver: Callable[..., None],
        set_mode: Callable[[str], None],
        tell: Callable[[str], None],
    ) -> None:
        super().__init__(name="thread", daemon=True)
        self._workspace = workspace
        self._root = str(workspace.root)
        self._deliver = deliver
        self._set_mode = set_mode
        self._tell = tell
        self._told: set[str] = set()
        self._inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._sources: dict[str, _KernelWatches] = {}
        self._starting = 0
        self._polling = ""
        self._lock = threading.Lock()

    def stop(self) -> None:
        self._inbox.put(None)

    def run(self) -> None:
        try:
            self._polling = _why_no_events(self._workspace.root)
            place = find_repository(self._workspace.root)
            inspector = Inspector(self._workspace, place, self._deliver)
            folders = inspector.top_folders()
            # Held until all sources have started, or the first would report for the others.
            self._starting = 1
            if not os.environ.get("WATCHFILES_FORCE_POLLING"):
                self._watch("near", [self._root, *_git_folders(place)], recursive=False)
                self._watch("below", folders, recursive=True)
            self._source_started("", None, [])
            self._rounds(inspector, place, folders)
        except Exception as error:
            # A watcher that stopped must never look like one without news.
            self._set_mode(f"off: watching failed ({error})")
            self._deliver(frozenset(), True)
        finally:
            for source in self._sources.values():
                source.stop()

    def _rounds(
        self, inspector: Inspector, place: RepositoryPlace | None, folders: list[str]
    ) -> None:
        checked = time.monotonic()
        hopes = 0
        while True:
            pause = POLL_S if self._polling or hopes else CHECK_S
            message: _Message = set()
            try:
                message = self._inbox.get(timeout=max(0.0, checked + pause - time.monotonic()))
            except queue.Empty:
                checked = time.monotonic()
                self._survive(inspector.check)
            if not Path(self._root).is_dir():
                self._set_mode("off: the folder is gone")
                self._deliver(frozenset(self._workspace.ledger.followed()), True)
                return
            if message is None:
                return
            if isinstance(message, list):
                for folder in message:
                    self._survive(inspector.new_folder, folder)
                self._survive(inspector.check)
                continue
            if isinstance(message, _Lost):
                # The watches stand again; look for the changes that they missed.
                time.sleep(RETRY_S)
                self._survive(inspector.search, message.at - LOST_S)
                continue
            events = message
            if place is None and any(is_git_name(Path(path).name) for _, path in events):
                hopes = _HOPES
            if place is None and hopes:
                hopes -= 1
                place = find_repository(self._workspace.root)
                if place is not None:
                    hopes = 0
                    inspector = Inspector(self._workspace, place, self._deliver)
                    self._watch("near", [self._root, *_git_folders(place)], recursive=False)
                    self._deliver(frozenset({REPO_CHANGED}))
            if not self._survive(inspector.handle, events):
                for event in events:  # All but the one that it cannot take.
                    self._survive(inspector.handle, {event})
            if any(path.rpartition("/")[0] == self._root for _, path in events):
                now = inspector.top_folders()
                if now != folders:
                    new = [folder for folder in now if folder not in folders]
                    self._watch("below", now, recursive=True, new=new)
                    folders = now

    def _survive(self, step: Callable[..., None], *arguments: object) -> bool:
        """Take a step; if it fails, say so, and go on with the rest.  Whether it succeeded."""
        try:
            step(*arguments)
        except Exception as error:
            trouble = f"Some changes by other programs cannot be followed: {shown(str(error))}."
            if trouble not in self._told:
                self._told.add(trouble)
                self._tell(trouble)
            return False
        return True

    def _watch(
        self, name: str, paths: list[str], *, recursive: bool, new: Sequence[str] = ()
    ) -> None:
        """Replace a source by one on ``paths``; the old one runs until the new one is in place."""
        old = self._sources.pop(name, None)
        if not paths:
            if old is not None:
                old.stop()
            return
        with self._lock:
            self._starting += 1
        source = _KernelWatches(
            paths,
            recursive=recursive,
            take=self._inbox.put,
            started=lambda failure: self._source_started(failure, old, new),
            failed=lambda trouble: self._inbox.put(_Lost(trouble, time.time())),
        )
        self._sources[name] = source
        source.start()

    def _source_started(self, failure: str, old: _KernelWatches | None, new: Sequence[str]) -> None:
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
    """The folders whose direct children change with commits, checkouts and staging."""
    if place is None:
        return []
    own, common = place.git_dir, place.common_dir
    folders = [own, own / "logs", common, common / "refs/heads"]
    ref = current_ref(place)
    if ref is not None:
        folders.append((common / ref).parent)
    return sorted({str(folder) for folder in folders if folder.is_dir()})


def _reason(error: Exception) -> str:
    """Why there are no events, with a remedy where there is one."""
    text = str(error)
    if "limit" in text or "os error 28" in text:
        return "the system's limit of file watches is reached (raise fs.inotify.max_user_watches)"
    if "os error 24" in text:
        return "the system's limit of watchers is reached (raise fs.inotify.max_user_instances)"
    return f"the system refused to watch ({text[:120]})"


def _why_no_events(root: Path) -> str:
    """Why events would be missing on this file system; empty where they are reliable."""
    if os.environ.get("WATCHFILES_FORCE_POLLING"):
        return "WATCHFILES_FORCE_POLLING is set"
    kind = filesystem_of(str(root))
    if is_shared(kind):
        return f"the folder is on {kind}, which does not report changes made elsewhere"
    return ""


class Inspector:
    """Turns raw events into news about files.

    Args:
        workspace: Its files are compared with its ledger.
        place: The repository around it, if any.
        deliver: Receives each non-empty set of news: relative paths, and ``REPO_CHANGED``.
    """

    def __init__(
        self,
        workspace: Workspace,
        place: RepositoryPlace | None,
        deliver: Callable[[frozenset[str]], None],
    ) -> None:
        self._workspace = workspace
        self._root = str(workspace.root)
        self._ledger = workspace.ledger
        self._place = place
        self._deliver = deliver
        self.rules = IgnoreRules(workspace.root, place)
        self._signatures: dict[str, Signature | None] = {}
        self._repo_signature = self._look_at_repo()
        self._tracked: frozenset[str] = frozenset()
        """Files that git knows, and their folders: no ignore rule applies to them."""
        self._submodules: frozenset[str] = frozenset()
        self._ask_git()

    def handle(self, events: Iterable[tuple[int, str]]) -> None:
        """Inspect the paths of raw events ``(type, absolute path)`` and deliver the news."""
        followed = self._ledger.followed()
        news: set[str] = set()
        look: set[str] = set()
        heard: set[str] = set()
        canonical: dict[str, str | None] = {}
        by_path: dict[str, set[int]] = {}
        for kind, path in events:
            by_path.setdefault(path, set()).add(kind)
        for path, kinds in by_path.items():
            rel = self._relative(path, canonical)
            if rel is None:
                continue
            if rel.rpartition("/")[2] == IGNORE_FILE:
                self.rules.forget()
            if (inner := self._inner_repository(rel)) is not None:
                news.add(inner)  # The change is not reviewed, and the user must be told.
                continue
            if rel in followed:
                look.add(rel)
                signature = signature_of(Path(path))
                if signature and self._ledger.saved_before_reading(rel, signature[0]):
                    heard.add(rel)
                continue
            if not _is_file(Path(path)):
                # A folder that moved or went takes the files below with it.
                look.update(name for name in followed if name.startswith(f"{rel}/"))
            news.update(self._unfollowed(rel, kinds))
        # One of our own writers made it meanwhile; it holds the lock until the file is followed.
        made = news & self._ledger.followed().keys()
        self._tell((news - made) | self._repo_news())
        self._settle(look | made, followed, heard)

    def check(self) -> None:
        """Inspect followed files whose status has changed, and the repository, as a backup."""
        followed = self._ledger.followed()
        changed = {rel for rel in followed if self._signature_changed(rel)}
        self._tell(self._repo_news())
        self._settle(changed, followed)

    def top_folders(self) -> list[str]:
        """Absolute paths of the folders in the root that are worth watching."""
        try:
            with os.scandir(self._root) as entries:
                return sorted(
                    entry.path
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False)
                    and not is_git_name(entry.name)
                    and not self._ignores(entry.name, folder=True)
                )
        except OSError:
            return []

    def new_folder(self, path: str) -> None:
        """Deliver the files of a folder that appeared, since they may be older than its watch."""
        rel = os.path.relpath(path, self._root)
        self._tell(set(self._files_below(rel)))

    def search(self, since: float) -> None:
        """Deliver the files that changed since a time, as the files' clock has it, or are gone."""
        found = set(self._files_below("."))
        recent = {
            path
            for path in found
            if (changed := _changed_at(Path(self._root, path))) is None or changed >= since
        }
        gone = {path for path in self._tracked if _changed_at(Path(self._root, path)) is None}
        self.check()
        self._tell(recent | gone)

    # -- inside ----------------------------------------------------------------------------------

    def _tell(self, news: set[str]) -> None:
        if news:
            self._deliver(frozenset(news))

    def _relative(self, path: str, canonical: dict[str, str | None]) -> str | None:
        """The one name of a path; None if it is outside, git's, or one of our temporary files."""
        folder, _, name = path.rpartition("/")
        if is_git_name(name) or atomic.is_temporary(name):
            return None
        if folder not in canonical:
            try:
                canonical[folder] = resolve_inside(self._root, folder)
            except OutsideWorkspaceError:
                canonical[folder] = None
        inside = canonical[folder]
        if inside is None:
            return None
        return name if inside == "." else f"{inside}/{name}"

    def _ignores(self, rel: str, *, folder: bool = False) -> bool:
        """Whether nothing is reviewed there: it is ignored or generated, and git knows none of it.

        A file that git knows is never ignored, whatever the rules say; nor is an ignore file that
        ignores itself beside such files.
        """
        above, _, name = rel.rpartition("/")
        if rel in self._tracked:
            return False
        if name == IGNORE_FILE and (not above or above in self._tracked):
            return False
        generated = name in GENERATED_FOLDERS if folder else _is_litter(name)
        return generated or self.rules.ignores(rel, folder=folder)

    def _inner_repository(self, rel: str) -> str | None:
        """The folder on the way to a path that is a repository of its own."""
        for folder in (*folders_of(rel), rel):
            if folder in self._submodules:
                return folder
        return inner_repository(self._root, rel)

    def _unfollowed(self, rel: str, kinds: set[int]) -> Iterator[str]:
        """News about a path that is not followed: its status is enough."""
        path = Path(self._root, rel)
        if path.is_dir() and not path.is_symlink():
            if not self._ignores(rel, folder=True) and rel not in self._signatures:
                self._signatures[rel] = None
                yield rel  # It may have taken the place of a file.
                yield from self._files_below(rel)
            return
        if self._ignores(rel):
            return
        signature = signature_of(path)
        if signature is None:
            for name in [name for name in self._signatures if name.startswith(f"{rel}/")]:
                del self._signatures[name]
            # A path that came and went in one batch was a temporary file.
            known = rel in self._signatures or rel in self._tracked
            self._signatures.pop(rel, None)
            if known or kinds == {DELETED}:
                yield rel
        elif self._signatures.get(rel) != signature:
            self._signatures[rel] = signature
            yield rel

    def _files_below(self, rel: str) -> Iterator[str]:
        for folder, folders, names in os.walk(Path(self._root, rel)):
            inside = os.path.relpath(folder, self._root)
            inside = "" if inside == "." else inside
            prefix = f"{inside}/" if inside else ""
            if inside and (inner := self._inner_repository(inside)) is not None:
                folders.clear()
                yield inner
                continue
            names += [name for name in folders if Path(folder, name).is_symlink()]
            folders[:] = [
                name
                for name in folders
                if name not in names
                and not is_git_name(name)
                and not self._ignores(f"{prefix}{name}", folder=True)
            ]
            self._signatures.update(dict.fromkeys(f"{prefix}{name}" for name in folders))
            for name in names:
                path = f"{prefix}{name}"
                own = is_git_name(name) or atomic.is_temporary(name)
                if not (own or self._ignores(path)):
                    self._signatures[path] = signature_of(Path(self._root, path))
                    yield path

    def _settle(self, look: set[str], sizes: dict[str, int], heard: Collection[str] = ()) -> None:
        """Inspect followed files, again a few times where one seems unfinished.

        Those in ``heard`` are news even if their content is known.
        """
        for round_number in range(_SETTLE_ROUNDS + 1):
            if not look:
                return
            if round_number:
                time.sleep(SETTLE_S)
            last = round_number == _SETTLE_ROUNDS
            news: set[str] = set()
            again: set[str] = set()
            for rel in look:
                with self._ledger.lock:
                    digest, size, executable, writing = self._look(rel)
                    small = digest is None or size * 10 < sizes.get(rel, 0) or size == 0
                    # A file that was known before is not unfinished, however small it is.
                    unfinished = writing or (small and round_number == 0)
                    if unfinished and not last and self._ledger.differs(rel, digest, executable):
                        again.add(rel)
                    elif self._ledger.observe(rel, digest, size, executable) or rel in heard:
                        news.add(rel)
            self._tell(news)
            look = again

    def _look(self, rel: str) -> tuple[str | None, int, bool, bool]:
        """Digest (None: no readable file), size, and whether it may be run and is being written."""
        path = f"{self._root.rstrip('/')}/{rel}"
        self._signatures[rel] = signature_of(Path(path))
        try:
            data, status = atomic.read_entry(path, MAX_FILE_BYTES)
        except (OSError, atomic.NotRegularError):
            return None, 0, False, False
        except atomic.TooLargeError:
            return f"larger than {MAX_FILE_BYTES}", MAX_FILE_BYTES + 1, False, False
        writing = atomic.open_for_writing(path)
        return content_digest(data), len(data), atomic.may_run(status), writing

    def _signature_changed(self, rel: str) -> bool:
        signature = signature_of(Path(self._root, rel))
        return rel not in self._signatures or self._signatures[rel] != signature

    def _repo_news(self) -> set[str]:
        signature = self._look_at_repo()
        if signature == self._repo_signature:
            return set()
        self._repo_signature = signature
        self._ask_git()
        return {REPO_CHANGED}

    def _ask_git(self) -> None:
        """Learn again which files git knows; if that fails, the former list holds."""
        if self._place is None:
            return
        with contextlib.suppress(GitFailedError):
            modes = recorded_files(self._workspace.root).modes
            folders = {folder for path in modes for folder in folders_of(path)}
            self._tracked = frozenset(folders.union(modes))
            self._submodules = frozenset(p for p, mode in modes.items() if mode == "160000")

    def _look_at_repo(self) -> tuple[Signature | None, ...]:
        """Changes with every commit, checkout and staging, but not with our own checkpoints."""
        if self._place is None:
            return ()
        own, common = self._place.git_dir, self._place.common_dir
        files = [own / "HEAD", own / "index", own / "logs/HEAD", common / "packed-refs"]
        ref = current_ref(self._place)
        if ref is not None:
            files.append(common / ref)
        return tuple(map(signature_of, files))


def current_ref(place: RepositoryPlace) -> str | None:
    """Full name of the branch that HEAD points to; None when detached or not kept in files."""
    try:
        head = read_small(place.git_dir / "HEAD").decode(errors="replace")
    except OSError:
        return None
    return head.removeprefix("ref: ").strip() if head.startswith("ref: refs/") else None


def signature_of(path: Path) -> Signature | None:
    """A mark that changes when a file is written; ``None`` if it is gone or cannot be looked at."""
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, atomic.may_run(status)


def _changed_at(path: Path) -> float | None:
    try:
        return path.lstat().st_ctime
    except OSError:
        return None


def _is_file(path: Path) -> bool:
    """Whether a name stands for a file, and not for a link to one."""
    return path.is_file() and not path.is_symlink()


def _is_litter(name: str) -> bool:
    """Whether an editor made this file for itself (vim, Emacs, JetBrains, GNOME)."""
    return (
        name.endswith(("~", ".swp", ".swx", ".swo", "___jb_tmp___", "___jb_old___"))
        or name.startswith((".#", ".goutputstream-"))
        or (name.startswith("#") and name.endswith("#"))
        or name == "4913"
    )
