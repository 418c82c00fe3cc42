"""What has really happened, asked of the disk: an event only means "look at this path".

Events are incomplete and in no order: an editor's save may arrive as a deletion, our own write as a
modification, a half-written file as a finished one.  So each path is looked at (status, bytes,
digest) and compared with the ledger. What looks unfinished (missing, empty, shrunk to a tenth,
still open for writing) is looked at again a moment later.

Everything here blocks and belongs to the watcher's own thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from midstream.workspace import atomic
from midstream.workspace.boundary import is_git_name, resolve_inside
from midstream.workspace.errors import OutsideWorkspaceError
from midstream.workspace.files import MAX_FILE_BYTES, Workspace
from midstream.workspace.gitcmd import RepositoryPlace
from midstream.workspace.ignore import GENERATED_FOLDERS, IGNORE_FILE, IgnoreRules
from midstream.workspace.ledger import content_digest

REPO_CHANGED = ".git"
"""Stands in a set of changes for "HEAD, the index or the branch has changed"; no file has this
name.
"""

DELETED = 3
"""The event type of a deletion (:class:`watchfiles.Change`)."""

SETTLE_S = 0.05
_SETTLE_ROUNDS = 4
_NEW_FOLDER_FILES = 2000

Signature = tuple[int, int, int]


class Looker:
    """Turns raw events into news about files.

    Args:
        workspace: whose files and ledger are compared.
        place: the repository around it, if any.
        deliver: takes each non-empty set of news: relative paths, and :data:`REPO_CHANGED`.
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

    def handle(self, events: Iterable[tuple[int, str]]) -> None:
        """Look at what a batch of raw events ``(type, absolute path)`` points to, and deliver the
        news.
        """
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
            if rel in followed:
                look.add(rel)
                signature = _signature(Path(path))
                if signature and self._ledger.saved_before_reading(rel, signature[0]):
                    heard.add(rel)
                continue
            if not Path(path).is_file():
                # A folder that moved or went takes the files below with it.
                look.update(name for name in followed if name.startswith(f"{rel}/"))
            news.update(self._unfollowed(rel, kinds))
        self._tell(news | self._repo_news())
        self._settle(look, followed, heard)

    def check(self) -> None:
        """Look at every followed file whose status has changed, and at the repository: catches what
        events missed.
        """
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
                    and entry.name not in GENERATED_FOLDERS
                    and not self.rules.ignores(entry.name, folder=True)
                )
        except OSError:
            return []

    def new_folder(self, path: str) -> None:
        """Deliver the files of a folder that appeared, since they may be older than its watch."""
        rel = os.path.relpath(path, self._root)
        self._tell(set(self._files_below(rel)))

    # -- inside ----------------------------------------------------------------------------------

    def _tell(self, news: set[str]) -> None:
        if news:
            self._deliver(frozenset(news))

    def _relative(self, path: str, canonical: dict[str, str | None]) -> str | None:
        """The one name of a path, None when it is outside, git's, or one of our temporary files."""
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

    def _unfollowed(self, rel: str, kinds: set[int]) -> Iterator[str]:
        """News about a path nobody works with: its status is enough."""
        if _is_litter(rel.rpartition("/")[2]):
            return
        path = Path(self._root, rel)
        if path.is_dir():
            if path.is_symlink() or self.rules.ignores(rel, folder=True):
                return
            if rel not in self._signatures:
                self._signatures[rel] = None
                yield from self._files_below(rel)
            return
        if self.rules.ignores(rel):
            return
        signature = _signature(path)
        if signature is None:
            # A path that came and went in one batch was somebody's temporary file.
            if self._signatures.pop(rel, None) is not None or kinds == {DELETED}:
                yield rel
        elif self._signatures.get(rel) != signature:
            self._signatures[rel] = signature
            yield rel

    def _files_below(self, rel: str) -> Iterator[str]:
        count = 0
        for folder, folders, names in os.walk(Path(self._root, rel)):
            inside = os.path.relpath(folder, self._root)
            folders[:] = [
                name
                for name in folders
                if name not in GENERATED_FOLDERS
                and not is_git_name(name)
                and not self.rules.ignores(f"{inside}/{name}", folder=True)
            ]
            for name in names:
                path = f"{inside}/{name}"
                if not (_is_litter(name) or atomic.is_temporary(name) or self.rules.ignores(path)):
                    self._signatures[path] = _signature(Path(self._root, path))
                    yield path
            count += len(names)
            if count > _NEW_FOLDER_FILES:
                return

    def _settle(self, look: set[str], sizes: dict[str, int], heard: Collection[str] = ()) -> None:
        """Look at followed files; those that seem unfinished once more, up to a few times.

        Those in ``heard`` are news even with the content that is known.
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
                    digest, size, writing = self._look(rel)
                    small = digest is None or size * 10 < sizes.get(rel, 0) or size == 0
                    # What was here before is not unfinished, however small it is.
                    unfinished = writing or (small and round_number == 0)
                    if unfinished and not last and self._ledger.differs(rel, digest):
                        again.add(rel)
                    elif self._ledger.observe(rel, digest, size) or rel in heard:
                        news.add(rel)
            self._tell(news)
            look = again

    def _look(self, rel: str) -> tuple[str | None, int, bool]:
        """Digest, size and whether somebody is writing it; digest None where there is no readable
        file.
        """
        path = f"{self._root.rstrip('/')}/{rel}"
        self._signatures[rel] = _signature(Path(path))
        try:
            data, _ = atomic.read_regular(path, MAX_FILE_BYTES)
        except (OSError, atomic.NotRegularError):
            return None, 0, False
        except atomic.TooLargeError:
            return f"larger than {MAX_FILE_BYTES}", MAX_FILE_BYTES + 1, False
        return content_digest(data), len(data), atomic.open_for_writing(path)

    def _signature_changed(self, rel: str) -> bool:
        signature = _signature(Path(self._root, rel))
        return rel not in self._signatures or self._signatures[rel] != signature

    def _repo_news(self) -> set[str]:
        signature = self._look_at_repo()
        if signature == self._repo_signature:
            return set()
        self._repo_signature = signature
        return {REPO_CHANGED}

    def _look_at_repo(self) -> tuple[Signature | None, ...]:
        """Changes with every commit, checkout and staging, and with nothing Midstream does by
        itself.
        """
        if self._place is None:
            return ()
        own, common = self._place.git_dir, self._place.common_dir
        files = [own / "HEAD", own / "index", own / "logs/HEAD", common / "packed-refs"]
        ref = current_ref(self._place)
        if ref is not None:
            files.append(common / ref)
        return tuple(map(_signature, files))


def current_ref(place: RepositoryPlace) -> str | None:
    """Full name of the branch that HEAD points to; None when detached or not kept in files."""
    try:
        head = (place.git_dir / "HEAD").read_text(errors="replace")
    except OSError:
        return None
    return head.removeprefix("ref: ").strip() if head.startswith("ref: refs/") else None


def _signature(path: Path) -> Signature | None:
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _is_litter(name: str) -> bool:
    """Whether an editor made this file for itself (vim, Emacs, JetBrains, GNOME)."""
    return (
        name.endswith(("~", ".swp", ".swx", ".swo", "___jb_tmp___", "___jb_old___"))
        or name.startswith((".#", ".goutputstream-"))
        or (name.startswith("#") and name.endswith("#"))
        or name == "4913"
    )
