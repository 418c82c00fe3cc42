"""Fixtures of the workspace tests: a state folder of their own, plain folders and git
repositories.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.workspace.files import Workspace
from tests.helpers.pairing import commit_files


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads the developer's git configuration or writes the developer's state folder."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("MIDSTREAM_STATE_DIR", str(tmp_path / "state"))
    # A temporary folder may itself lie in a repository.
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty folder outside any repository."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def workspace(root: Path) -> Workspace:
    """A workspace on ``root``."""
    return Workspace(root)


@pytest.fixture
def repository(root: Path) -> Path:
    """A repository with one commit: ``a.py``, ``src/b.py`` and an ignore file."""
    commit_files(
        root,
        {"a.py": "a = 1\n", "src/b.py": "b = 1\n", ".gitignore": "build/\n*.log\n"},
        "first",
    )
    with (root / ".git" / "config").open("a") as config:
        config.write("[user]\n\tname = Ann\n\temail = ann@example.org\n")
    return root


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """What the program of ``evil`` leaves behind."""
    return tmp_path / "RAN"


@pytest.fixture
def evil(tmp_path: Path, ran: Path) -> Path:
    """A program that a repository names, and that is not to run."""
    program = tmp_path / "evil.sh"
    program.write_text(f"#!/bin/sh\necho ran >> {ran}\ncat\n")
    program.chmod(0o755)
    return program
