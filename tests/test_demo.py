"""The example project of ``midstream demo``."""

from __future__ import annotations

import ast
import subprocess
import sys
from difflib import ndiff
from pathlib import Path

import pytest

from midstream.demo import make_demo
from midstream.workspace.repo import repo_status


def test_the_copy_is_a_clean_repository_whose_tests_pass(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    status = repo_status(demo.root)
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


WRITTEN = {
    "Rename a variable": ["matches = []", "matches.append(entry)", "return matches"],
    "Guard clause": ["if not entries:", "raise ValueError"],
    "Add a parameter": ["def for_client(entries, client, limit=None):"],
    "Name a number": ["WEEK = 7", "wait = WEEK - late % WEEK"],
    "Un-nest": ["return 0"],
}
"""What the shipped model is expected to write for each suggestion."""


@pytest.mark.system
def test_the_shipped_model_does_what_is_suggested(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    assert [suggestion.title for suggestion in demo.suggestions] == list(WRITTEN)
    for suggestion in demo.suggestions:
        before = (demo.root / suggestion.path).read_text()
        command = ["edit", suggestion.path, "-m", suggestion.instruction, "--apply"]
        run = subprocess.run(
            [sys.executable, "-m", "midstream", *command],
            cwd=demo.root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        after = (demo.root / suggestion.path).read_text()
        ast.parse(after)
        added = [line for line in ndiff(before.splitlines(), after.splitlines()) if line[0] == "+"]
        for line in WRITTEN[suggestion.title]:
            assert any(line in new for new in added), suggestion.instruction
