"""Temporary folders where none can be written: nothing is made in the folder that is open."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from midstream.editor import edit_text
from midstream.pairing.trial.requests import load_requests
from midstream.pairing.trial.run import run_trial
from midstream.scratch import ScratchError, make_scratch, scratch_folder, scratch_place
from midstream.settings import Settings
from midstream.workspace.copies import make_copy
from tests.helpers.pairing import make_repo

NOWHERE = "No folder for temporary files can be written; set TMPDIR to one outside of this folder."


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, which is Python's last resort."""
    root = make_repo(tmp_path / "opened", {"a.py": "x = 1\n"})
    monkeypatch.chdir(root)
    monkeypatch.setattr(tempfile, "tempdir", os.path.realpath(root))
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    return root


def everything(root: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in (root, *root.rglob("*"))}


async def trial(_: Path) -> None:
    async for _result in run_trial(load_requests(1), Settings(), None):
        pass


@pytest.mark.parametrize(
    "use",
    [
        lambda root: make_copy(root, {}),
        lambda root: edit_text([sys.executable, "-c", ""], "text", "name.py"),
        lambda root: asyncio.run(trial(root)),
        lambda root: make_scratch("x-"),
    ],
)
def test_nothing_is_made_in_the_folder_that_is_open(
    opened: Path, use: Callable[[Path], object]
) -> None:
    before = everything(opened)
    with pytest.raises(ScratchError) as refused:
        use(opened)
    assert str(refused.value) == NOWHERE
    assert everything(opened) == before


def test_what_python_takes_as_its_last_resort_is_not_taken(tmp_path: Path) -> None:
    """With Python's own search, in a process in which only the working folder can be written."""
    program = (
        "import builtins, os, tempfile\n"
        "here, real = os.getcwd(), os.open\n"
        "def only_here(path, *rest, **more):\n"
        "    if os.path.dirname(os.path.realpath(path)) != here:\n"
        "        raise PermissionError(13, 'no', path)\n"
        "    return real(path, *rest, **more)\n"
        "os.open = tempfile._os.open = only_here\n"
        "assert tempfile.gettempdir() == here, tempfile.gettempdir()\n"
        "from midstream.scratch import scratch_place\n"
        "try:\n"
        "    print(scratch_place())\n"
        "except Exception as error:\n"
        "    print(error)\n"
    )
    environment = {key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=os.path.realpath(tmp_path),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == (NOWHERE, "")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_the_user_names_is_taken(
    opened: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(opened / "tmp"))
    (opened / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert scratch_place() == opened / "tmp"


def test_a_relative_name_is_not(opened: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "tmp")
    (opened / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    with pytest.raises(ScratchError):
        scratch_place()


def test_a_folder_without_room_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(ScratchError, match=r"gone \(No such file or directory\); make room"):
        make_scratch("x-")


def test_it_is_removed_at_the_end() -> None:
    with scratch_folder() as folder:
        (folder / "below").mkdir()
    assert not folder.exists()
