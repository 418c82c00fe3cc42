"""Staging what was accepted, and committing what is staged.

Only the accepted change goes into the index, not whatever else the user has edited in the same
file: the change is merged into the index's own version of the file.  The work tree is never
touched.  Staging runs the repository's filters as ``git add`` would, and commits run its hooks and
signing; to compare with the index runs none of them.  Everything blocks.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path

from midstream.resources import open_regular
from midstream.scratch import scratch_folder
from midstream.workspace.atomic import is_executable
from midstream.workspace.content import LinkTarget
from midstream.workspace.errors import GitError
from midstream.workspace.paths import folders_of, shown
from midstream.workspace.repo import (
    FilterSkippedError,
    GitFailedError,
    GitStoppedError,
    RepositoryPlace,
    find_repository,
    repository_trouble,
    run_git,
)

_PROGRAM = "100755"
_LINK = "120000"
_REPOSITORY = "160000"
_COMMIT_TIMEOUT_S = 300.0
"""How long a commit may take, with the repository's hooks."""
_LOCK_PATIENCE_S = 1.0
"""How long another git may hold the index."""


class IndexState(StrEnum):
    """Whether the index has an accepted change."""

    UNSTAGED = "unstaged"
    PARTLY = "partly"
    """The index has part of it, or another change of the same file."""
    STAGED = "staged"
    COMMITTED = "committed"
    CONFLICT = "conflict"
    """It cannot be staged by itself."""


@dataclass(frozen=True, slots=True)
class BlobChange:
    """A commit's change of one file, in git's own form; ``b""`` where it does not exist."""

    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A file in the index: its mode and the id of its content, as git writes them."""

    mode: str
    blob: str


@dataclass(frozen=True, slots=True)
class Staged:
    """A file that was staged, and what the index had of it before and has since."""

    rel: str
    before: IndexEntry | None
    after: IndexEntry | None


@dataclass(frozen=True, slots=True)
class AcceptedChange:
    """One file before and after an accepted change, as work tree bytes; None: no such file.

    ``programs`` says whether it may be run before and after; None: as git has it.  ``parts`` are
    what earlier parts of the change left in the index, each with the bytes after it: while the
    index has one of these, only what came since is merged into it.  ``undone`` is what was staged
    of a change that was undone in the work tree since: the index is to have what it had before.
    ``trouble`` says why the bytes of ``before``, or of both, are unknown and therefore None.
    """

    rel: str
    before: bytes | None
    after: bytes | None
    programs: tuple[bool | None, bool | None] = (None, None)
    parts: tuple[tuple[IndexEntry | None, bytes | None], ...] = ()
    undone: Staged | None = None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class ChangePlace:
    """State of one accepted change in the index.

    ``trouble`` is why there is a conflict; ``own`` is how many lines of the work tree's file differ
    from both the index and the accepted change: the user's own, which stay out; ``new`` means that
    no commit has the file yet.  ``commit`` is what the next commit changes in the file, once the
    change is staged if nothing of it is; ``None`` if it changes nothing.  ``entry`` is what the
    index has of the file.
    """

    rel: str
    state: IndexState
    trouble: str = ""
    own: int = 0
    new: bool = False
    commit: BlobChange | None = None
    entry: IndexEntry | None = None


@dataclass(frozen=True, slots=True)
class LastCommit:
    """The commit that an amended one replaces; ``published`` names the remote branches with it."""

    id: str
    message: str
    published: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StagingView:
    """State of all accepted changes in the index.

    ``others`` are further paths that a commit changes, relative to the top of the repository, each
    with the same path relative to the workspace root; ``branch`` is where it would go; ``trouble``
    is why nothing can be staged.
    """

    files: tuple[ChangePlace, ...]
    others: Mapping[str, str] = field(default_factory=dict[str, str])
    branch: str = ""
    trouble: str = ""


def committed_file(root: Path, rel: str) -> bytes:
    """A file as of the last commit, empty if it has none."""
    try:
        return run_git(root, ["show", f"HEAD:./{rel}"])
    except GitFailedError:
        return b""


def stored_contents(root: Path, rel: str, *, programs: bool) -> Iterator[bytes]:
    """What the index and then the last commit have of a file, as git would check it out.

    Nothing where that takes a filter of the repository's own, unless ``programs`` may run.
    """
    for tree in ("", "HEAD"):
        with contextlib.suppress(GitFailedError):
            yield run_git(root, ["cat-file", "--filters", f"{tree}:./{rel}"], programs=programs)


def last_clean(root: Path, paths: Iterable[str]) -> dict[str, float]:
    """When files were last seen to be as the index has them, in seconds since the epoch.

    Git notes the time of a file whose content it has checked out, staged or compared: one that a
    checkout or a reset has written is newer there than what it replaced.  Files that are not in the
    index, and all of them if git fails, are left out.
    """
    command = ["ls-files", "--debug", "-z", "--", *(f":(literal){path}" for path in paths)]
    times: dict[str, float] = {}
    with contextlib.suppress(GitFailedError):
        path = ""
        for line in os.fsdecode(run_git(root, command)).splitlines():
            name, nul, rest = line.partition("\0")
            path = name if nul else path
            fact, _, value = (rest if nul else line).strip().partition(": ")
            if fact == "mtime":
                seconds, _, nanoseconds = value.partition(":")
                times[path] = int(seconds) + int(nanoseconds) / 1e9
    return times


def stage_changes(root: Path, changes: Sequence[AcceptedChange]) -> list[Staged]:
    """Put accepted changes into the index, all or none.

    Raises:
        GitError: No repository, a conflict with what is staged already, or git's own message.
    """
    place = _repository(root)
    staged = [
        _staged_change(
            root,
            place,
            change,
            _index_entry(place.top, _inside(place, root, change.rel)),
            programs=True,
        )
        for change in changes
    ]
    room = _Room(root, place, changes)
    for file in staged:
        room.check(file)
    _update_index(root, place, staged)
    return staged


class _Room:
    """Whether the index can have a file where it, or a change beside it, has a folder.

    Git itself drops a file silently where another one gets the name of its folder.
    """

    def __init__(
        self, root: Path, place: RepositoryPlace, changes: Sequence[AcceptedChange]
    ) -> None:
        self._root = root
        self._place = place
        known = [change for change in changes if not change.trouble]
        paths = {_inside(place, root, change.rel): change.after for change in known}
        self._made = {path for path, after in paths.items() if after is not None}
        self._gone = paths.keys() - self._made
        self._names: frozenset[str] | None = None

    def check(self, file: Staged) -> None:
        """Raise GitError if a file is in the way of a new one."""
        if file.after is None or file.before is not None:
            return
        if self._names is None:
            listed = os.fsdecode(_asked(self._place.top, ["ls-files", "-z"])).split("\0")
            self._names = frozenset((*listed, *self._made)) - self._gone - {""}
        path = _inside(self._place, self._root, file.rel)
        below = f"{path}/"
        above = self._names.intersection(folders_of(path))
        if meets := sorted(above.union(n for n in self._names if n.startswith(below))):
            raise GitError(
                f"{shown(path)} cannot be staged beside {shown(meets[0])}, whose place it takes",
                "decide about that one, too",
            )


def _repository(root: Path) -> RepositoryPlace:
    place = find_repository(root)
    if place is None:
        raise GitError(f"{shown(root)} is not in a git repository", "run git init to stage changes")
    return place


def _update_index(root: Path, place: RepositoryPlace, files: Sequence[Staged]) -> None:
    """Bring files of the index to new states; waits for another program that has the lock."""
    lines = b""
    for file in files:
        if file.after != file.before:
            gone = IndexEntry("0", "0" * len(file.before.blob)) if file.before else None
            entry = file.after or gone
            assert entry is not None
            path = os.fsencode(_inside(place, root, file.rel))
            lines += f"{entry.mode} {entry.blob}\t".encode() + path + b"\0"
    if not lines:
        return
    kept = _marks(place, [_inside(place, root, file.rel) for file in files if file.after])
    deadline = time.monotonic() + _LOCK_PATIENCE_S
    while True:
        try:
            # Git compares files that were written in the same second, through their filters.  A
            # file system monitor would share its input, and could take it away.
            command = ["-c", "core.fsmonitor=false", "update-index"]
            run_git(place.top, [*command, "-z", "--index-info"], stdin=lines, programs=True)
            for mark, paths in kept.items():
                run_git(place.top, [*command, mark, "--", *paths], programs=True)
            return
        except GitFailedError as error:
            if "index.lock" not in str(error) or time.monotonic() > deadline:
                raise _not_staged(error) from error
        time.sleep(0.05)


def _marks(place: RepositoryPlace, paths: Sequence[str]) -> dict[str, list[str]]:
    """Which files git was told to take as unchanged, by the option that says so.

    Git forgets that where an entry of the index is replaced.
    """
    marks: dict[str, list[str]] = {}
    if not paths:
        return marks
    listing = ["--literal-pathspecs", "ls-files", "-v", "-z", "--", *paths]
    for line in os.fsdecode(_asked(place.top, listing)).split("\0"):
        tag, path = line[:1], line[2:]
        if tag.islower():
            marks.setdefault("--assume-unchanged", []).append(path)
        if tag in ("S", "s"):
            marks.setdefault("--skip-worktree", []).append(path)
    return marks


def stage_whole(root: Path, rel: str) -> Staged | None:
    """Put a file into the index as it is in the work tree, the user's own lines included.

    Returns:
        What takes that back; ``None`` where the index had no such file, but a merge conflict.

    Raises:
        GitError: No repository, or git's own message.
    """
    place = _repository(root)
    path = _inside(place, root, rel)
    before, known = None, False
    with contextlib.suppress(GitError):
        before, known = _index_entry(place.top, path), True
    _asked(root, ["add", "--", f":(literal){rel}"], programs=True)
    return Staged(rel, before, _index_entry(place.top, path)) if known else None


def is_staged(root: Path, staged: Staged) -> bool:
    """Whether the index still has of a file what was staged."""
    place = _repository(root)
    return _index_entry(place.top, _inside(place, root, staged.rel)) == staged.after


def unstage(root: Path, staged: Staged) -> None:
    """Restore the index entry that a file had before it was staged.

    Raises:
        GitError: The index has changed since, or git's own message.
    """
    if not is_staged(root, staged):
        raise GitError(
            f"{shown(staged.rel)} has been staged again since",
            "take lines out with git restore --staged -p",
        )
    back = Staged(staged.rel, staged.after, staged.before)
    _update_index(root, _repository(root), [back])


def compare_changes(
    root: Path, changes: Sequence[AcceptedChange], *, amend: bool = False
) -> StagingView:
    """Compare accepted changes with the index; changes nothing but git's object store.

    What a filter that only the repository names would make of a change is not known, as it does not
    run: such a change counts as staged once it was staged here.

    Args:
        root: The workspace root.
        changes: The accepted changes.
        amend: Whether the commit is to replace the last one.
    """
    place = find_repository(root)
    if place is None:
        untouched = tuple(ChangePlace(c.rel, IndexState.UNSTAGED) for c in changes)
        return StagingView(untouched, trouble=_why_no_repository(root))
    ours = {_inside(place, root, change.rel) for change in changes}
    parent = _parent(place.top, amend=amend)
    staged = _staged(place.top, _parent(place.top) if amend else parent)
    taken = _staged(place.top, parent) if amend else staged
    room = _Room(root, place, changes)
    return StagingView(
        tuple(_compare_one(root, place, change, staged, taken, parent, room) for change in changes),
        {path: _outside(place, root, path) for path in sorted(taken.keys() - ours)},
        _branch(place.top),
    )


def staged_change(root: Path, path: str, *, amend: bool = False) -> BlobChange:
    """What a commit changes in a file that is staged, by its path from the top of the repository.

    Raises:
        GitError: No repository, or git's own message.
    """
    place = _repository(root)
    parent = _parent(place.top, amend=amend)
    return BlobChange(_content(place.top, f"{parent}:{path}"), _content(place.top, f":{path}"))


def last_commit(root: Path) -> LastCommit | None:
    """The commit at HEAD, ``None`` where there is none."""
    try:
        commit, _, message = os.fsdecode(run_git(root, ["log", "-1", "--format=%H%n%B"])).partition(
            "\n"
        )
        remote = run_git(root, ["branch", "-r", "--contains", "HEAD", "--format=%(refname:short)"])
    except GitFailedError:
        return None
    return LastCommit(commit, message.strip(), tuple(os.fsdecode(remote).split()))


def _parent(top: Path, *, amend: bool = False) -> str:
    """The commit that the next one follows, or the empty tree before the first one."""
    revision = "HEAD^" if amend else "HEAD"
    try:
        return os.fsdecode(run_git(top, ["rev-parse", "--verify", "--quiet", revision])).strip()
    except GitFailedError:
        return os.fsdecode(_asked(top, ["hash-object", "-t", "tree", "--stdin"])).strip()


def _staged(top: Path, parent: str) -> dict[str, str]:
    """Letter of each change that a commit on top of ``parent`` makes, by path."""
    command = ["diff", "--cached", "--name-status", "--no-renames", "-z", parent]
    parts = iter(os.fsdecode(_asked(top, command)).split("\0"))
    return {path: letter for letter, path in zip(parts, parts, strict=False)}


def staged_entries(root: Path) -> dict[str, IndexEntry | None]:
    """What the next commit has of each file it changes, by path from a folder.

    Files beside the folder have a path with ``..``.  Nothing where git fails.
    """
    place = find_repository(root)
    found: dict[str, IndexEntry | None] = {}
    if place is None:
        return found
    command = ["diff", "--cached", "--raw", "--no-renames", "--no-abbrev", "-z"]
    with contextlib.suppress(GitFailedError):
        parts = iter(os.fsdecode(run_git(place.top, command)).split("\0"))
        for facts, path in zip(parts, parts, strict=False):
            _, mode, _, blob, letter = facts.split(" ")
            if letter != "U":  # In conflict: it cannot be committed.
                entry = IndexEntry(mode, blob) if blob.strip("0") else None
                found[_outside(place, root, path)] = entry
    return found


def is_repository(entry: IndexEntry | None) -> bool:
    """Whether the index has a repository of its own there (a submodule)."""
    return entry is not None and entry.mode == _REPOSITORY


def is_part(
    root: Path,
    rel: str,
    staged: IndexEntry | None,
    text: bytes | None,
    *,
    program: bool | None,
    programs: bool,
) -> bool:
    """Whether what is staged of a file changes nothing but what a text changes, too.

    Args:
        root: The workspace root.
        rel: The file.
        staged: What is staged of it.
        text: The text, as bytes of the work tree; ``None`` for no file.
        program: Whether the file may be run; ``None``: as in the last commit.
        programs: Whether the repository's filters may run.

    Raises:
        GitError: Git's own message.
    """
    place = _repository(root)
    path = _inside(place, root, rel)
    if staged is None or text is None:
        return staged is None and text is None
    last = _committed_entry(place.top, path)
    mode = _mode(text, program=program) or (last.mode if last else "")
    if mode and mode != staged.mode:
        return False
    whole = _store(place.top, path, text, programs=programs)
    if staged.blob == whole or (last is not None and staged.blob == last.blob):
        return True
    if _LINK in (staged.mode, _mode(text)):
        return False
    try:
        return _merge(place.top, path, staged.blob, last and last.blob, whole) == whole
    except GitError:
        return False


def forget_staged(root: Path, rel: str) -> Staged:
    """Give the index what the last commit has of a file.

    Returns:
        What was done to the index, for ``unstage``.

    Raises:
        GitError: No repository, or git's own message.
    """
    place = _repository(root)
    path = _inside(place, root, rel)
    back = Staged(rel, _index_entry(place.top, path), _committed_entry(place.top, path))
    _update_index(root, place, [back])
    return back


def _committed_entry(top: Path, path: str) -> IndexEntry | None:
    """The entry of a file in the last commit, ``None`` for none."""
    command = ["--literal-pathspecs", "ls-tree", "-z", _parent(top), "--", path]
    facts, _, name = os.fsdecode(_asked(top, command)).rstrip("\0").partition("\t")
    if name != path or facts.startswith("040000"):  # A folder has that name.
        return None
    mode, _, blob = facts.split(" ")
    return IndexEntry(mode, blob)


def _content(top: Path, name: str) -> bytes:
    """The bytes of a blob, by its id or as ``TREE:PATH``; ``b""`` where there is none."""
    try:
        return run_git(top, ["cat-file", "blob", name])
    except GitFailedError:
        return b""


def _why_no_repository(root: Path) -> str:
    none = f"{shown(root)} is not in a git repository; run `git init` there to stage and commit."
    return repository_trouble(root) or none


def _branch(top: Path) -> str:
    try:
        return os.fsdecode(run_git(top, ["symbolic-ref", "--short", "HEAD"])).strip()
    except GitFailedError:
        return "a detached HEAD"


def _compare_one(
    root: Path,
    place: RepositoryPlace,
    change: AcceptedChange,
    staged: Mapping[str, str],
    taken: Mapping[str, str],
    parent: str,
    room: _Room,
) -> ChangePlace:
    top, path = place.top, _inside(place, root, change.rel)
    before = _content(top, f"{parent}:{path}")
    there = BlobChange(before, _content(top, f":{path}")) if path in taken else None
    entry = None
    try:
        entry = _index_entry(top, path)
        change_there = _staged_change(root, place, change, entry, programs=False)
        room.check(change_there)
        wanted = change_there.after
    except _UnknownBlobError:
        whole = (entry, change.after) in change.parts
        state = _state(whole=whole, staged=path in staged)
        return ChangePlace(change.rel, state, new=entry is None, commit=there, entry=entry)
    except GitError as error:
        if entry is None or path in staged or not _is_committed(top, path, change, entry):
            state, why = IndexState.CONFLICT, str(error)
            return ChangePlace(change.rel, state, why, commit=there, entry=entry)
        wanted = entry  # Another program has committed it, with lines beside it.
    state = _state(whole=wanted == entry, staged=path in staged)
    if state is IndexState.UNSTAGED:
        there = BlobChange(before, b"" if wanted is None else _content(top, wanted.blob))
    own = 0 if wanted is None else _own_lines(root, top, change.rel, path, wanted.blob)
    new = wanted is not None and (entry is None if path not in staged else staged[path] == "A")
    return ChangePlace(change.rel, state, own=own, new=new, commit=there, entry=entry)


def _is_committed(top: Path, path: str, change: AcceptedChange, entry: IndexEntry) -> bool:
    """Whether a file as committed has each line that a change added, and none that it deleted."""
    if change.before is None or change.after is None:
        return False
    before, after = (
        Counter(_content(top, _store(top, path, content, programs=False)).splitlines())
        for content in (change.before, change.after)
    )
    there = Counter(_content(top, entry.blob).splitlines())
    added, deleted = after - before, before - after
    return (
        bool(added or deleted)
        and all(there[line] >= after[line] for line in added)
        and all(there[line] <= after[line] for line in deleted)
    )


def _state(*, whole: bool, staged: bool) -> IndexState:
    """The state of a change.

    Args:
        whole: Whether the index has all of it.
        staged: Whether the index has any change of the file.
    """
    if whole:
        return IndexState.STAGED if staged else IndexState.COMMITTED
    return IndexState.PARTLY if staged else IndexState.UNSTAGED


def _own_lines(root: Path, top: Path, rel: str, path: str, blob: str) -> int:
    """How many lines of a file in the work tree differ from a blob."""
    try:
        there = _store(top, path, _work_tree_bytes(root / rel), programs=False)
    except (OSError, _UnknownBlobError):
        return 0
    if there == blob:
        return 0
    added, deleted = os.fsdecode(_asked(top, ["diff", "--numstat", blob, there])).split("\t")[:2]
    return int(added) + int(deleted) if added.isdigit() and deleted.isdigit() else 1


def _staged_change(
    root: Path,
    place: RepositoryPlace,
    change: AcceptedChange,
    entry: IndexEntry | None,
    *,
    programs: bool,
) -> Staged:
    """The index entry of a file, ``entry``, and the one with an accepted change."""
    path = _inside(place, root, change.rel)
    if change.undone is not None:
        return Staged(change.rel, entry, _without(place.top, path, entry, change.undone))
    known = [content for part, content in change.parts if part == entry]
    store = partial(_store, place.top, path, programs=programs)
    blob = None if change.after is None else store(change.after)
    is_there = entry is not None and entry.blob == blob
    if change.trouble and (blob is None or not (known or is_there)):
        raise GitError(
            f"The accepted change to {shown(path)} cannot be staged by itself: {change.trouble}",
            "stage the whole file",
        )
    content = known[0] if known else change.before
    before = None
    if content is not None and entry is not None and not is_there:
        before = store(content)
    if change.after is None or blob is None:
        if entry is not None and entry.blob != before and not known:
            raise _conflict(path)
        return Staged(change.rel, entry, None)
    if entry is None and content and not known:
        raise GitError(
            f"Git does not know {shown(path)} yet, so its change cannot be staged by itself",
            "stage the whole file",
        )
    if entry is not None and not is_there and entry.blob != before:
        if _LINK in (entry.mode, _mode(content), _mode(change.after)):
            raise _conflict(path)
        if content is not None or not _loses_nothing(place.top, entry.blob, blob):
            blob = _merge(place.top, path, entry.blob, before, blob)
    mode = _mode(change.after, program=change.programs[1])
    if not mode and entry is not None and entry.mode != _LINK:
        mode = entry.mode
    mode = mode or _work_tree_mode(Path(os.path.realpath(root)) / change.rel)
    return Staged(change.rel, entry, IndexEntry(mode, blob))


def _loses_nothing(top: Path, staged: str, new: str) -> bool:
    """Whether a new file may replace what was staged of it, by the ids of the two blobs.

    It may if it has each staged line, in that order, or if the last commit has the same blob, as
    after ``git mv``.  Otherwise lines that the user staged would leave the index.
    """
    lines = iter(_content(top, new).splitlines())
    if all(line in lines for line in _content(top, staged).splitlines()):
        return True
    return f" blob {staged}\t".encode() in _asked(top, ["ls-tree", "-r", "-z", _parent(top)])


def _without(top: Path, path: str, entry: IndexEntry | None, undone: Staged) -> IndexEntry | None:
    """The index entry of a file in place of ``entry``, without the staged change."""
    if entry in (undone.before, undone.after):
        return undone.before
    if entry is None or undone.before is None or undone.after is None:
        raise _conflict(path)
    if _LINK in (entry.mode, undone.before.mode, undone.after.mode):
        raise _conflict(path)
    blob = _merge(top, path, entry.blob, undone.after.blob, undone.before.blob)
    return IndexEntry(entry.mode, blob)


def _inside(place: RepositoryPlace, root: Path, rel: str) -> str:
    """The path from the top of the repository of a file below the root."""
    return os.path.relpath(Path(os.path.realpath(root)) / rel, os.path.realpath(place.top))


def _outside(place: RepositoryPlace, root: Path, path: str) -> str:
    """The path from the root of a file, by that from the top of the repository."""
    return os.path.relpath(Path(os.path.realpath(place.top)) / path, os.path.realpath(root))


def _index_entry(top: Path, path: str) -> IndexEntry | None:
    answer = _asked(top, ["ls-files", "--stage", "-z", "--", f":(literal){path}"])
    # The files of a folder of that name match as well.
    lines = (line.partition("\t") for line in os.fsdecode(answer).split("\0"))
    entries = [facts for facts, _, name in lines if name == path]
    if not entries:
        return None
    mode, blob, stage = entries[0].split(" ")
    if stage != "0":
        raise GitError(f"{shown(path)} has an unresolved merge conflict", "resolve it first")
    if not mode.startswith(("100", _LINK)):
        raise GitError(f"{shown(path)} is not a regular file in git", "stage it with git add")
    return IndexEntry(mode, blob)


def _store(top: Path, path: str, content: bytes, *, programs: bool) -> str:
    """Id of ``content`` as git would store it at ``path``, with line ending and other filters.

    Raises:
        _UnknownBlobError: That takes a filter of the repository's own, and no ``programs`` may run.
        GitError: Git's own message.
    """
    filters = "--no-filters" if isinstance(content, LinkTarget) else f"--path={path}"
    command = ["hash-object", filters, "-w", "--stdin"]
    return _asked(top, command, content, programs=programs).decode().strip()


def _merge(top: Path, path: str, ours: str, base: str | None, theirs: str) -> str:
    """Id of the index's version with the accepted change merged in."""
    with scratch_folder() as folder:
        names: list[str] = []
        for name, blob in (("ours", ours), ("base", base), ("theirs", theirs)):
            content = b"" if blob is None else _asked(top, ["cat-file", "blob", blob])
            (folder / name).write_bytes(content)
            names.append(str(folder / name))
        try:
            merged = run_git(top, ["merge-file", "--stdout", "--quiet", *names])
        except GitFailedError as error:
            raise _conflict(path) from error
    # The merged parts have passed the filters already.
    return _asked(top, ["hash-object", "-w", "--stdin"], merged).decode().strip()


def _conflict(path: str) -> GitError:
    return GitError(
        f"The accepted change to {shown(path)} cannot be staged by itself: lines that you changed, "
        "staged or committed stand in the same place",
        "stage the whole file, or use git add -p",
    )


def _mode(content: bytes | None, *, program: bool | None = None) -> str:
    """The mode that git should have for a file, ``""`` where nothing says it."""
    if isinstance(content, LinkTarget):
        return _LINK
    return "" if program is None else _PROGRAM if program else "100644"


def _work_tree_mode(path: Path) -> str:
    return _PROGRAM if is_executable(str(path)) else "100644"


def _work_tree_bytes(path: Path) -> bytes:
    if path.is_symlink():
        return LinkTarget(os.fsencode(path.readlink()))
    with open_regular(path) as file:
        return file.read()


class _UnknownBlobError(GitError):
    """The bytes that git would store of a file depend on a filter of the repository's own."""


def _asked(
    top: Path, arguments: Sequence[str], stdin: bytes = b"", *, programs: bool = False
) -> bytes:
    """The output of git; arguments as for ``run_git``."""
    try:
        return run_git(top, arguments, stdin=stdin, programs=programs)
    except FilterSkippedError as error:
        raise _UnknownBlobError(f"Git did not compare the change: {error}") from error
    except GitFailedError as error:
        raise _not_staged(error) from error


def _not_staged(error: GitFailedError) -> GitError:
    """The error with what a filter and git said; advice that follows is left out."""
    before, fatal, _ = error.output.partition("\nfatal: ")
    said = before.splitlines() if fatal else []
    why = "; ".join([*(line.removeprefix("error: ") for line in said), str(error)])
    return GitError(f"Git could not stage the change: {shown(why)}")


def commit_staged(
    root: Path, message: str, *, amend: bool = False, stop: threading.Event | None = None
) -> str:
    """Commit what is staged, with the user's hooks.

    Args:
        root: The workspace root.
        message: The message.
        amend: Whether to replace the last commit; then nothing needs to be staged.
        stop: Ends git and its hooks once it is set.

    Returns:
        The new commit's id, also if git or a hook was ended after it.

    Raises:
        GitError: It was stopped, nothing is staged, the message is empty, no author is set, or a
            hook refused; then ``output`` is everything that git and the hook wrote.
    """
    if not message.strip():
        raise GitError("A commit needs a message", "write one line that says what changed")
    if not amend and not _has_staged(root):
        raise GitError("Nothing is staged", "stage accepted changes first")
    # A line that begins with "#" is part of a message that no editor has been open on.
    before = _parent(root)
    how = ["--quiet", "--cleanup=whitespace", "--file=-", *(["--amend"] if amend else [])]
    try:
        run_git(
            root,
            ["-c", "i18n.commitEncoding=UTF-8", "commit", *how],
            stdin=message.encode(errors="replace"),
            programs=True,
            timeout=_COMMIT_TIMEOUT_S,
            stop=stop,
        )
        return _parent(root)
    except (GitFailedError, GitStoppedError) as error:
        if (after := _parent(root)) != before:
            return after
        if isinstance(error, GitStoppedError):
            raise GitError(
                "The commit was stopped: nothing is committed", "what is staged stays"
            ) from error
        if "tell me who you are" in error.output or "empty ident" in error.output:
            raise GitError(
                "Git does not know who you are", "set user.name and user.email with git config"
            ) from error
        why = shown("; ".join(_said(error.output)) or str(error))
        remedy = ""
        if "/dev/tty" in error.output or "not a tty" in error.output.lower():
            remedy = "run git commit in a terminal, which a hook wants; what is staged stays"
        elif "failed to sign" in error.output:  # The signing program may have wanted to ask.
            remedy = "run git commit in a terminal to see why; what is staged stays"
        raise GitError(f"Git did not commit: {why}", remedy, output=error.output) from error


def staged_tree(root: Path) -> str:
    """Id of the tree that the next commit is to have, ``""`` if there can be none."""
    try:
        return os.fsdecode(run_git(root, ["write-tree"])).strip()
    except GitFailedError:
        return ""


def changed_by_hooks(root: Path, tree: str, commit: str) -> list[str]:
    """Paths, from the top of the repository, that a commit does not have as a tree has them.

    Hooks may stage more while git commits.  Nothing where git fails.
    """
    command = ["diff-tree", "-r", "--name-only", "--no-renames", "-z", tree, f"{commit}^{{tree}}"]
    try:
        return os.fsdecode(run_git(root, command)).split("\0")[:-1] if tree else []
    except GitFailedError:
        return []


def _said(output: str) -> list[str]:
    """The whole message of git itself; only the last line of a hook, whose output is shown
    beside.
    """
    words = [line.partition(": ") for line in output.splitlines()]
    own = [text for mark, _, text in words if mark in ("error", "fatal")]
    return own or output.splitlines()[-1:]


def _has_staged(root: Path) -> bool:
    try:
        run_git(root, ["diff", "--cached", "--quiet"])
    except GitFailedError:
        return True
    return False
