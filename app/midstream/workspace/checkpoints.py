"""Checkpoints: the bytes of files before each batch of writes, so that a batch can be undone.

A store only remembers; ``Workspace`` decides and writes.  Order
matters: a batch is saved before its first file is touched, and forgotten if it did not happen.
``CheckpointLog`` uses the repository where there is one (``GitStore``), and copies in the
state folder where there is none or where git fails (``FolderStore``).
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from midstream.resources import open_regular, read_json
from midstream.workspace import atomic
from midstream.workspace.content import LinkTarget
from midstream.workspace.paths import make_private, root_key
from midstream.workspace.repo import GitFailedError, find_repository, run_git

KEPT_SESSIONS = 20
"""Chains of checkpoints kept per root; older ones are dropped when a new one begins."""

_NAMESPACE = "refs/midstream"
_DESCRIPTION = "checkpoint.json"


@dataclass(frozen=True, slots=True)
class SavedFile:
    """The effect of one batch on one file."""

    rel: str
    before: bytes | None
    """Content before the batch; None when there was no file."""
    after: str | None
    """Digest after the batch; None when the batch deletes the file."""
    mode: int = 0o644
    """Permission bits before the batch."""
    folders: tuple[str, ...] = ()
    """Folders that the batch creates, relative, outermost first."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state before one batch of writes."""

    id: str
    """Sorts by time; ``""`` for a batch that changed nothing."""
    label: str
    time: float
    """Seconds since the epoch."""
    paths: tuple[str, ...]


def new_session_id() -> str:
    """Name of one chain of checkpoints or one journal: UTC time and a random part, so it sorts."""
    now = time.time_ns()
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now // 10**9))
    return f"{stamp}-{now % 10**9 // 1000:06d}-{secrets.token_hex(3)}"


def _new_checkpoint(label: str, changes: Sequence[SavedFile]) -> Checkpoint:
    # Nanoseconds since the epoch in fixed width, then a random part: ids sort by time.
    checkpoint_id = f"{time.time_ns():020d}-{secrets.token_hex(3)}"
    return Checkpoint(checkpoint_id, label, time.time(), tuple(change.rel for change in changes))


def _describe(checkpoint: Checkpoint, changes: Sequence[SavedFile]) -> dict[str, Any]:
    return {
        "version": 1,
        "id": checkpoint.id,
        "label": checkpoint.label,
        "time": checkpoint.time,
        "files": [
            {
                "path": change.rel,
                "existed": change.before is not None,
                "after": change.after,
                "mode": change.mode,
                "link": isinstance(change.before, LinkTarget),
                "folders": list(change.folders),
            }
            for change in changes
        ],
    }


def _parse_description(data: Mapping[str, Any]) -> Checkpoint:
    """Inverse of ``_describe`` as far as the checkpoint itself goes."""
    paths = tuple(str(file["path"]) for file in data["files"])
    return Checkpoint(str(data["id"]), str(data["label"]), float(data["time"]), paths)


def _parse_change(file: Mapping[str, Any], before: bytes | None) -> SavedFile:
    """One file of ``_describe``, with its content."""
    folders = tuple(str(folder) for folder in file["folders"])
    after = file["after"]
    if before is not None and file.get("link"):
        before = LinkTarget(before)
    return SavedFile(
        str(file["path"]), before, None if after is None else str(after), int(file["mode"]), folders
    )


class CheckpointLog:
    """All checkpoints of one root, in the repository or the state folder."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._copies = FolderStore(folder)
        self._git: GitStore | None = None
        self._reason = ""
        place = find_repository(root)
        if place is None:
            self._reason = "no git repository"
        else:
            self._git = GitStore(root)
        self._saved_in: dict[str, FolderStore | GitStore] = {}

    @property
    def mode(self) -> str:
        """Where new checkpoints go: ``"git"`` or ``"copies: why"``."""
        return f"copies: {self._reason}" if self._reason else "git"

    def save(self, label: str, changes: Sequence[SavedFile]) -> Checkpoint:
        """Remember ``changes``; OSError when not even a copy can be made."""
        if self._git is not None and not self._reason:
            try:
                return self._note(self._git.save(label, changes), self._git)
            except GitFailedError as error:
                # One failure is enough: a broken repository would slow every write down.
                self._reason = str(error)
        return self._note(self._copies.save(label, changes), self._copies)

    def forget(self, checkpoint: Checkpoint) -> None:
        """Drop the newest checkpoint, because its batch did not happen."""
        with contextlib.suppress(GitFailedError):
            self._saved_in.pop(checkpoint.id).forget(checkpoint)

    def load(self, checkpoint_id: str) -> list[SavedFile]:
        """The changes of one checkpoint; KeyError when it is nowhere."""
        for store in self._stores():
            with contextlib.suppress(KeyError, GitFailedError):
                return store.load(checkpoint_id)
        raise KeyError(checkpoint_id)

    def checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint of this root, oldest first, earlier sessions included."""
        found: list[Checkpoint] = []
        for store in self._stores():
            with contextlib.suppress(GitFailedError):
                found += store.checkpoints()
        return sorted(found, key=lambda checkpoint: checkpoint.id)

    def _stores(self) -> list[FolderStore | GitStore]:
        return [self._copies] if self._git is None else [self._git, self._copies]

    def _note(self, checkpoint: Checkpoint, store: FolderStore | GitStore) -> Checkpoint:
        self._saved_in[checkpoint.id] = store
        return checkpoint


def _described(file: Path) -> Any:
    """The description of a copy; KeyError if it cannot be read."""
    try:
        return read_json(file)
    except (OSError, ValueError):
        raise KeyError(file.parent.name) from None


def _saved(file: Path) -> bytes:
    """A copy; KeyError if it cannot be read."""
    try:
        with open_regular(file) as copy:
            return copy.read()
    except OSError:
        raise KeyError(file.parent.name) from None


class FolderStore:
    """Copies in the state folder: ``<session>/<checkpoint id>/{checkpoint.json,0,1,…}``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._session = new_session_id()
        self._started = False

    def save(self, label: str, changes: Sequence[SavedFile]) -> Checkpoint:
        """Remember ``changes``; the folder appears under its name only when it is complete."""
        checkpoint = _new_checkpoint(label, changes)
        session = self._session_folder()
        half = session / f"{checkpoint.id}.half"
        half.mkdir(mode=0o700)
        try:
            for number, change in enumerate(changes):
                if change.before is not None:
                    (half / str(number)).write_bytes(change.before)
            (half / "checkpoint.json").write_text(json.dumps(_describe(checkpoint, changes)))
            atomic.rename_whole(half, session / checkpoint.id)
        except OSError:
            shutil.rmtree(half, ignore_errors=True)  # A full disk gets no fuller by each try.
            raise
        return checkpoint

    def forget(self, checkpoint: Checkpoint) -> None:
        """Drop a checkpoint whose batch did not happen."""
        shutil.rmtree(self._session_folder() / checkpoint.id, ignore_errors=True)

    def load(self, checkpoint_id: str) -> list[SavedFile]:
        """The changes of one checkpoint; KeyError when it is not there."""
        for folder in self._folder.glob(f"*/{checkpoint_id}"):
            data: Any = _described(folder / "checkpoint.json")
            return [
                _parse_change(file, _saved(folder / str(number)) if file["existed"] else None)
                for number, file in enumerate(data["files"])
            ]
        raise KeyError(checkpoint_id)

    def checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint of this root, oldest first."""
        found: list[Checkpoint] = []
        for file in self._folder.glob("*/*/checkpoint.json"):
            if file.parent.suffix != ".half":
                with contextlib.suppress(KeyError, TypeError, ValueError):
                    found.append(_parse_description(_described(file)))
        return sorted(found, key=lambda checkpoint: checkpoint.id)

    def _session_folder(self) -> Path:
        session = make_private(self._folder / self._session)
        if not self._started:
            self._started = True
            for old in sorted(self._folder.iterdir())[:-KEPT_SESSIONS]:
                shutil.rmtree(old, ignore_errors=True)
        return session


class GitStore:
    """Keeps checkpoints of ``root`` in the repository around it, on a private ref.

    A session's checkpoints are a chain of commits ``refs/midstream/<root>/<session>``.  Each
    commit's tree holds ``checkpoint.json`` and the bytes before the batch as ``before/<number>``;
    it stands alone and does not descend from the user's history.  The index, HEAD, branches, the
    stash and the work tree are never touched.  One ``git fast-import`` writes a checkpoint,
    whatever the size of the repository, the object format or the way refs are stored.

    Removing everything: ``git for-each-ref --format='delete %(refname)' refs/midstream | git
    update-ref --stdin``.  Every method raises ``GitFailedError`` when git does.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._refs = f"{_NAMESPACE}/{root_key(root)}"
        self._ref = f"{self._refs}/{new_session_id()}"
        self._chain: list[str] = []
        self._commits: dict[str, str] = {}

    def save(self, label: str, changes: Sequence[SavedFile]) -> Checkpoint:
        """Remember ``changes`` in a new commit."""
        if not self._chain:
            self._drop_old_sessions()
        checkpoint = _new_checkpoint(label, changes)
        description = json.dumps(_describe(checkpoint, changes), indent=1).encode()
        stream = [
            f"commit {self._ref}\nmark :1\n".encode(),
            f"committer Midstream <midstream@localhost> {int(checkpoint.time)} +0000\n".encode(),
            _data(label.encode(errors="replace")),
        ]
        if self._chain:
            stream.append(f"from {self._chain[-1]}\ndeleteall\n".encode())
        stream += [f"M 100644 inline {_DESCRIPTION}\n".encode(), _data(description)]
        for number, change in enumerate(changes):
            if change.before is not None:
                stream += [f"M 100644 inline before/{number}\n".encode(), _data(change.before)]
        stream.append(b"get-mark :1\n")
        # By default git leaves loose objects unflushed: after a power cut the ref would name a
        # broken one, which stops git in the whole repository.
        flushed = ["-c", "core.fsync=committed,reference"]
        command = [*flushed, "fast-import", "--quiet"]
        answer = run_git(self._root, command, stdin=b"".join(stream))
        self._chain.append(answer.decode().strip())
        self._commits[checkpoint.id] = self._chain[-1]
        return checkpoint

    def forget(self, checkpoint: Checkpoint) -> None:
        """Drop the newest checkpoint, because its batch did not happen."""
        self._chain.remove(self._commits.pop(checkpoint.id))
        if self._chain:
            run_git(self._root, ["update-ref", self._ref, self._chain[-1]])
        else:
            run_git(self._root, ["update-ref", "-d", self._ref])

    def load(self, checkpoint_id: str) -> list[SavedFile]:
        """The changes of one checkpoint; KeyError when it is not there."""
        if checkpoint_id not in self._commits:
            self.checkpoints()
        commit = self._commits[checkpoint_id]
        (description,) = self._blobs([f"{commit}:{_DESCRIPTION}"])
        files: list[dict[str, Any]] = json.loads(description)["files"]
        wanted = [f"{commit}:before/{n}" for n, file in enumerate(files) if file["existed"]]
        contents = iter(self._blobs(wanted))
        return [_parse_change(file, next(contents) if file["existed"] else None) for file in files]

    def checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint of this root, oldest first."""
        commits = run_git(self._root, ["rev-list", f"--glob={self._refs}/*"]).decode().split()
        found: list[Checkpoint] = []
        for commit, blob in zip(
            commits, self._blobs([f"{commit}:{_DESCRIPTION}" for commit in commits]), strict=True
        ):
            # A commit of a newer version, or one from elsewhere, is not ours to read.
            with contextlib.suppress(ValueError, KeyError, TypeError):
                checkpoint = _parse_description(json.loads(blob))
                self._commits[checkpoint.id] = commit
                found.append(checkpoint)
        return sorted(found, key=lambda checkpoint: checkpoint.id)

    def _blobs(self, names: Sequence[str]) -> list[bytes]:
        """Contents by object name, in order; an object that is missing reads as empty."""
        if not names:
            return []
        answer = run_git(
            self._root,
            ["cat-file", "--batch"],
            stdin="".join(f"{name}\n" for name in names).encode(),
        )
        contents: list[bytes] = []
        position = 0
        for _ in names:
            end = answer.index(b"\n", position)
            header = answer[position:end].split(b" ")
            position = end + 1
            if header[-1] == b"missing":
                contents.append(b"")
                continue
            size = int(header[-1])
            contents.append(answer[position : position + size])
            position += size + 1
        return contents

    def _drop_old_sessions(self) -> None:
        refs = os.fsdecode(
            run_git(self._root, ["for-each-ref", "--format=%(refname)", f"{self._refs}/"])
        ).split()
        old = sorted(refs)[: -(KEPT_SESSIONS - 1)]
        if old:
            # Another Midstream may be dropping them at the same time.
            with contextlib.suppress(GitFailedError):
                stdin = "".join(f"delete {ref}\n" for ref in old).encode()
                run_git(self._root, ["update-ref", "--stdin"], stdin=stdin)


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)
