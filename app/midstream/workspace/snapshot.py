"""The files of a commit or of the index, checked out apart from the work tree, to be read only.

A range of commits is reviewed in such a folder, so that everything that reads files (the review,
the search for uses, the checks) sees the project as it is at the end of the range, and nothing of
the user's repository or work tree is touched.  The folder is a repository of its own that borrows
the objects of the user's; it is removed when it is closed.

Git's filters and conversions are off in it, on both sides of the comparison: a file is what git has
stored, and no program runs.  Everything blocks.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shlex
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from midstream.counting import counted
from midstream.errors import UsageError, UserError
from midstream.workspace.baseline import BaselineRecord
from midstream.workspace.paths import make_private, root_key, shown, state_dir
from midstream.workspace.repo import (
    GIT_TIMEOUT_S,
    GitFailedError,
    RepositoryPlace,
    find_repository,
    repository_trouble,
    run_git,
)

STAGED: Final = "--staged"
"""The word for the index in place of revisions."""
_AS_STORED: Final = "* -filter -text -eol -ident -working-tree-encoding\n"
_NOBODY: Final = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "midstream"), ("EMAIL", ""), ("DATE", "@0 +0000"))
}
"""Author and committer of the commit that holds an index; the same files are the same commit."""
_SUBMODULE: Final = "160000"
_CHECK_OUT_S: Final = 900.0
"""How long writing all files of a large repository may take."""
MANY_FILES: Final = 5_000
"""So many files take long enough for the user to wonder."""
_LOCK_WAIT_S: Final = 1.0
"""How long to wait for a process that only looks for abandoned snapshots."""


@dataclass(frozen=True, slots=True)
class RevisionRange:
    """What is compared.

    Attributes:
        label: How it is named on screen.
        argument: How it is named on the command line.
        old: Id of the commit or tree that there was.
        new: Id of what there is in its place; ``""`` is the index.
        note: What else it shows than the work on the new side, as a sentence.
    """

    label: str
    argument: str
    old: str
    new: str
    note: str = ""


def find_range(folder: Path, text: str) -> RevisionRange:
    """Look up ``A..B``, ``A...B``, ``A^!`` (one commit) or ``A``, which means ``A..HEAD``.

    Args:
        folder: A folder in the repository.
        text: The range; ``STAGED`` compares the index with the last commit.

    Raises:
        UsageError: There is no repository, a revision is unknown, or git fails.
    """
    _repository(folder)
    if text == STAGED:
        head = _object(folder, "HEAD^{commit}")
        return RevisionRange("staged changes", STAGED, head or _empty_tree(folder), "")
    if text.endswith("^!"):
        commit = text.removesuffix("^!")
        new = _revision(folder, commit)
        return RevisionRange(text, text, _object(folder, f"{new}^1") or _empty_tree(folder), new)
    first, dots, last = text.partition("...")
    if not dots:
        first, dots, last = text.partition("..")
    old, new = (_revision(folder, name or "HEAD") for name in (first, last))
    if dots == "...":
        try:
            old = run_git(folder, ["merge-base", old, new]).decode().strip()
        except GitFailedError as error:
            raise UsageError(
                f"{shown(first or 'HEAD')} and {shown(last or 'HEAD')} have no commit in common",
                "write two dots to compare them all the same",
            ) from error
    name = text if dots else f"{text}..HEAD"
    span = RevisionRange(name, name, old, new)
    if dots != "..." and (count := _taken_away(folder, span)):
        show, them = ("shows", "it") if count == 1 else ("show", "them")
        first, last = shown(first or "HEAD"), shown(last or "HEAD")
        note = f"{counted(count, 'commit')} of {first} {show} as taken away; "
        return replace(span, note=f"{note}{first}...{last} leaves {them} out.")
    return span


def _taken_away(folder: Path, span: RevisionRange) -> int:
    """The number of commits on the old side since the branches have parted."""
    with contextlib.suppress(GitFailedError):  # Trees have no commits, some branches no common one.
        run_git(folder, ["merge-base", span.old, span.new])
        return int(run_git(folder, ["rev-list", "--count", span.old, f"^{span.new}"]))
    return 0


class Snapshot:
    """The new side of a range as a folder, for as long as it is open.

    Attributes:
        label: How the range was named.
        note: ``RevisionRange.note``.
        folder: The user's folder that is reviewed.
        root: The reviewed folder in it.
        record: What was there before.
        command: The command that reviews it.
        submodules: Submodules that are at another commit, and from where to where.
    """

    def __init__(
        self,
        folder: Path,
        span: RevisionRange,
        *,
        state: Path | None = None,
        when_many: Callable[[int], None] | None = None,
    ) -> None:
        """Check it out.

        Args:
            folder: The folder of the user's work tree to review.
            span: What is compared.
            state: Midstream's state folder, by default ``state_dir()``.
            when_many: Is told the number of files if writing them may take long.

        Raises:
            UsageError: There is no repository.
            UserError: It cannot be checked out, or is open already.
        """
        place = _repository(folder)
        above = os.path.relpath(os.path.realpath(folder), os.path.realpath(place.top))
        key = "\0".join((os.fspath(place.top), above, span.old, span.label))
        name = hashlib.blake2b(os.fsencode(key), digest_size=8).hexdigest()
        snapshots = (state or state_dir()) / "snapshots"
        self.label, self.note = span.label, span.note
        self.folder = folder.resolve()
        here = Path(os.path.realpath(folder)) == Path.cwd()
        words = ["midstream", "review", span.argument, *(() if here else [os.fspath(folder)])]
        self.command = shlex.join(words)
        self.record = BaselineRecord(span.old, 0, {})
        self.submodules: dict[str, str] = {}
        self._around = snapshots / name
        # Named as the project: its name is on screen.
        self._top = self._around / root_key(place.top).rpartition("-")[0]
        self.root = self._top / above
        self._when_many = when_many
        self._lock: int | None = None
        try:
            make_private(snapshots)
            self._lock = _locked(self._around, _LOCK_WAIT_S)
            if self._lock is None:
                raise UserError(
                    f"Another Midstream reviews {shown(span.label)} here", "end that one first"
                )
            _remove_abandoned(snapshots)
            self._check_out(place, span)
        except GitFailedError as error:
            self.close()
            raise UserError(
                f"The files of {shown(span.label)} cannot be read ({shown(str(error))})",
                "look at it with git first",
            ) from error
        except OSError as error:
            self.close()
            raise UserError(
                f"The files of {shown(span.label)} cannot be checked out in {shown(snapshots)} "
                f"({error.strerror or error})",
                "make room there, or set MIDSTREAM_STATE_DIR to another folder",
            ) from error
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """The snapshot itself; it is removed when the block is left."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove it."""
        self.close()

    def close(self) -> None:
        """Remove the folder."""
        if self._lock is not None:
            _remove(self._around, self._lock)
            self._lock = None

    def _check_out(self, place: RepositoryPlace, span: RevisionRange) -> None:
        shutil.rmtree(self._around, ignore_errors=True)
        make_private(self._around)
        kind = run_git(place.top, ["rev-parse", "--show-object-format"]).decode().strip()
        options = ["--quiet", "--template=", f"--object-format={kind}"]
        run_git(self._around, ["init", *options, self._top.name])
        git = self._top / ".git"
        objects = os.fsencode(place.common_dir / "objects")
        for path, content in (
            (git / "objects/info/alternates", _quoted(objects) + b"\n"),
            (git / "info/attributes", _AS_STORED.encode()),
        ):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        with contextlib.suppress(FileNotFoundError):  # The history of a shallow clone has an end.
            shutil.copyfile(place.common_dir / "shallow", git / "shallow")
        new = span.new or self._commit_of_index(place, span)
        self._run("read-tree", new, timeout=_CHECK_OUT_S)
        count = self._run("ls-files", "-z").count("\0")
        if self._when_many is not None and count >= MANY_FILES:
            self._when_many(count)
        self._run("checkout-index", "--all", "--quiet", "--index", timeout=_CHECK_OUT_S)
        self.root.mkdir(parents=True, exist_ok=True)
        commit = _object(self._top, f"{new}^{{commit}}") or self._commit(new)
        self._run("-c", "core.logAllRefUpdates=false", "update-ref", "--no-deref", "HEAD", commit)
        self._note_submodules(span.old, new)

    def _commit_of_index(self, place: RepositoryPlace, span: RevisionRange) -> str:
        """Make a tree of the files that are staged, in this repository."""
        git = self._top / ".git"
        for file in (place.git_dir / "index", *place.git_dir.glob("sharedindex.*")):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(file, git / file.name)
        try:
            tree = self._run("write-tree")
        except GitFailedError as error:
            if self._run("ls-files", "--unmerged"):
                raise GitFailedError("files in it are in conflict") from error
            raise
        old = _object(self._top, f"{span.old}^{{commit}}")
        return self._commit(tree, *(("-p", old) if old else ()))

    def _commit(self, tree: str, *options: str) -> str:
        """A commit of a tree, the same one for the same tree."""
        words = ["commit-tree", *options, "-m", self.label, tree]
        return run_git(self._top, words, environment=_NOBODY).decode().strip()

    def _note_submodules(self, old: str, new: str) -> None:
        options = ["-r", "-z", "--raw", "--abbrev=8", "--no-renames", "--relative"]
        answer = os.fsdecode(run_git(self.root, ["diff-tree", *options, old, new, "--", "."]))
        fields = answer.split("\0")
        for facts, path in zip(fields[::2], fields[1::2], strict=False):
            modes, ids = facts.lstrip(":").split(" ")[:2], facts.split(" ")[2:4]
            if _SUBMODULE in modes:
                was, now = (
                    commit if mode == _SUBMODULE else "none"
                    for mode, commit in zip(modes, ids, strict=True)
                )
                self.submodules[path] = f"{was} → {now}"

    def _run(self, *words: str, timeout: float = GIT_TIMEOUT_S) -> str:
        return os.fsdecode(run_git(self._top, words, timeout=timeout)).strip()


def _repository(folder: Path) -> RepositoryPlace:
    if not folder.is_dir():
        raise UsageError(f"There is no folder {shown(folder)}", "name one that exists")
    if (place := find_repository(folder)) is not None:
        return place
    if trouble := repository_trouble(folder):
        raise UsageError(trouble)
    raise UsageError(
        f"{shown(folder.resolve())} is in no git repository, so it has no revisions",
        "leave them out to review its files",
    )


def _object(folder: Path, name: str) -> str:
    """Id of an object, ``""`` if there is none of this name."""
    words = ["rev-parse", "--verify", "--quiet", "--end-of-options", name]
    with contextlib.suppress(GitFailedError):
        return run_git(folder, words).decode().strip()
    return ""


def _revision(folder: Path, name: str) -> str:
    """Id of a commit, or of a tree that is in no commit.

    Raises:
        UsageError: There is none of this name.
    """
    if found := _object(folder, f"{name}^{{commit}}") or _object(folder, f"{name}^{{tree}}"):
        return found
    if name == "HEAD":
        raise UsageError("This repository has no commit yet", f"`midstream review {STAGED}` works")
    raise UsageError(
        f"Git knows no revision {shown(name)}", "name commits, branches or tags, as in main..topic"
    )


def _empty_tree(folder: Path) -> str:
    """Id of a tree without files; every repository knows it.

    Raises:
        UsageError: Git fails.
    """
    try:
        return run_git(folder, ["hash-object", "-t", "tree", "--stdin"]).decode().strip()
    except GitFailedError as error:
        raise UsageError(
            f"Git cannot read this repository ({shown(str(error))})", "look at it with git first"
        ) from error


def _quoted(path: bytes) -> bytes:
    """A path for a file of git that has one on each line."""
    if b"\n" not in path and not path.startswith(b'"'):
        return path
    for plain, escaped in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n")):
        path = path.replace(plain, escaped)
    return b'"%b"' % path


def _locked(folder: Path, wait_s: float = 0.0) -> int | None:
    """Lock the name of a snapshot.

    Args:
        folder: The snapshot.
        wait_s: How long to try.

    Returns:
        A descriptor; ``None`` if another process has the lock.

    Raises:
        OSError: The file system refuses the lock file.
    """
    path = f"{folder}.lock"
    end = time.monotonic() + wait_s
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The process that had the lock may have removed the file since it was opened here.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):  # noqa: PTH116
                    return descriptor
        except BlockingIOError:
            if time.monotonic() >= end:
                os.close(descriptor)
                return None
            time.sleep(0.02)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _remove(folder: Path, lock: int) -> None:
    """Remove a snapshot and its lock file, and give the lock up."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        Path(f"{folder}.lock").unlink()
    os.close(lock)


def _remove_abandoned(snapshots: Path) -> None:
    """Remove what processes that were killed have left."""
    for name in {path.name.removesuffix(".lock") for path in snapshots.iterdir()}:
        with contextlib.suppress(OSError):  # A folder that is left behind does no harm.
            if (lock := _locked(snapshots / name)) is not None:
                _remove(snapshots / name, lock)
