"""A disk that fails at any system call: a true sentence, and files are whole, or are repaired."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
from pathlib import Path

import pytest

from midstream.workspace.content import content_digest
from midstream.workspace.errors import WorkspaceError
from midstream.workspace.files import Workspace
from tests.helpers.system_calls import between_system_calls

pytestmark = pytest.mark.system

OLD = {"a": b"old a", "sub/b": b"old b", "gone": b"old gone", "new/n": None}
NEW = {"a": b"new a", "sub/b": b"new b", "gone": None, "new/n": b"new n"}
DIGESTS = {name: None if data is None else content_digest(data) for name, data in OLD.items()}


def prepare(root: Path, state: Path) -> None:
    for folder in (root, state):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    for name, data in OLD.items():
        if data is not None:
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_bytes(data)


def held(root: Path) -> dict[str, bytes | None]:
    return {n: (root / n).read_bytes() if (root / n).exists() else None for n in OLD}


@pytest.mark.parametrize("ever_after", [False, True])
def test_a_batch_is_whole_or_undone_where_the_disk_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ever_after: bool
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    root, state = tmp_path / "project", tmp_path / "state"
    refused = 0
    for step in itertools.count():
        prepare(root, state)
        workspace, reached, error = Workspace(root, state=state), False, ""

        def fail(number: int, step: int = step) -> None:
            nonlocal reached
            if number == step or (ever_after and number > step):
                reached = True
                raise OSError(errno.EIO, os.strerror(errno.EIO))

        with between_system_calls(fail):
            try:
                workspace.write_all(NEW, DIGESTS, "batch")
            except WorkspaceError as raised:  # Any other exception is a defect.
                error = str(raised)
        if not ever_after:
            assert held(root) == (OLD if error else NEW), f"step {step}: {error}"
        elif not error:
            assert held(root) == NEW, f"step {step}"
        again = Workspace(root, state=state)
        assert held(root) in (OLD, NEW), f"step {step}"
        assert not [*root.rglob(".midstream-*"), *root.rglob("*-kept-*")], f"step {step}"
        assert os.listdir(again.state / "pending") == ["lock"] if error == "" else True  # noqa: PTH208
        refused += error != ""
        if not reached:
            break
    assert refused > 20
