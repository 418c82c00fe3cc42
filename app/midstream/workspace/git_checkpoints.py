"""Checkpoints in the repository, on a private ref and beside everything that is the user's.

A session's checkpoints are a chain of commits ``refs/midstream/<root>/<session>``.  Each commit's
tree holds ``checkpoint.json`` and the bytes before the batch as ``before/<number>``; it stands
alone and is no descendant of the user's history.  The index, HEAD, branches, the stash and the work
tree are never touched.  One ``git fast-import`` writes a checkpoint, whatever the size of the
repository, the object format or the way refs are stored.

Removing everything: ``git for-each-ref --format='delete %(refname)' refs/midstream | git update-ref
--stdin``.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from midstream.workspace.checkpoints import (
    KEPT_SESSIONS,
    Checkpoint,
    FileChange,
    describe,
    new_checkpoint_id,
    new_session_id,
    parse_change,
    parse_description,
)
from midstream.workspace.gitcmd import GitFailedError, run_git
from midstream.workspace.paths import root_key

_NAMESPACE = "refs/midstream"
_DESCRIPTION = "checkpoint.json"


class GitStore:
    """Keeps checkpoints of ``root`` in the repository around it.

    Every method raises :class:`~midstream.workspace.gitcmd.GitFailedError` when git does.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._refs = f"{_NAMESPACE}/{root_key(root)}"
        self._ref = f"{self._refs}/{new_session_id()}"
        self._chain: list[str] = []
        self._commits: dict[str, str] = {}

    def save(self, label: str, changes: Sequence[FileChange]) -> Checkpoint:
        """Remember ``changes`` in a new commit."""
        if not self._chain:
            self._drop_old_sessions()
        checkpoint = Checkpoint(
            new_checkpoint_id(), label, time.time(), tuple(change.rel for change in changes)
        )
        description = json.dumps(describe(checkpoint, changes), indent=1).encode()
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
        answer = run_git(self._root, ["fast-import", "--quiet"], stdin=b"".join(stream))
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

    def load(self, checkpoint_id: str) -> list[FileChange]:
        """The changes of one checkpoint; KeyError when it is not there."""
        if checkpoint_id not in self._commits:
            self.checkpoints()
        commit = self._commits[checkpoint_id]
        (description,) = self._blobs([f"{commit}:{_DESCRIPTION}"])
        files: list[dict[str, Any]] = json.loads(description)["files"]
        wanted = [f"{commit}:before/{n}" for n, file in enumerate(files) if file["existed"]]
        contents = iter(self._blobs(wanted))
        return [parse_change(file, next(contents) if file["existed"] else None) for file in files]

    def checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint of this root, oldest first."""
        commits = run_git(self._root, ["rev-list", f"--glob={self._refs}/*"]).decode().split()
        found: list[Checkpoint] = []
        for commit, blob in zip(
            commits, self._blobs([f"{commit}:{_DESCRIPTION}" for commit in commits]), strict=True
        ):
            # A commit of a newer version, or one that somebody put there, is not ours to read.
            with contextlib.suppress(ValueError, KeyError, TypeError):
                checkpoint = parse_description(json.loads(blob))
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
