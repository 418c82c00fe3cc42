"""The example project of ``midstream demo``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from midstream.demo import make_demo
from midstream.workspace.repo import read_status


def test_the_copy_is_a_clean_repository_whose_tests_pass(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    status = read_status(demo.root)
    assert status is not None
    assert (status.branch, status.dirty, status.untracked) == ("main", 0, 0)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=demo.root, check=False
    )
    assert run.returncode == 0


def test_without_git_there_is_a_copy_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    demo = make_demo(tmp_path)
    assert (demo.root / "tally" / "money.py").is_file()
    assert not (demo.root / ".git").exists()


def test_suggestions_are_about_files_of_the_project(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    assert demo.suggestions
    for suggestion in demo.suggestions:
        assert (demo.root / suggestion.path).is_file()
