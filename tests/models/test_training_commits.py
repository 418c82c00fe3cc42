"""Edits from commits: what is mined from a real repository, and what of it is chosen."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from models.training import mine_commits, select_commits
from models.training import script_format as fmt

START = '''import os


def load(path):
    """Load it."""
    with open(path) as file:
        return file.read()


def save(path, text):
    with open(path, "w") as file:
        file.write(text)
'''
LICENCE = (
    "Permission is hereby granted, free of charge, to deal in the Software without restriction"
)
COMMITS = (
    ("Read the file as UTF-8", "open(path) as", 'open(path, encoding="utf-8") as'),
    ("Fix typo in docstring of load", "Load it.", "Load a file."),
    ("Merge branch of somebody", '"w"', '"wb"'),
    ("Return the number of characters written", "        file.write", "        return file.write"),
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()

    def git(*command: str) -> None:
        who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
        subprocess.run(["git", "-C", folder, *who, *command], check=True, capture_output=True)

    git("init", "-q")
    text = START
    (folder / "LICENSE").write_text(LICENCE)
    (folder / "io.py").write_text(text)
    git("add", ".")
    git("commit", "-q", "-m", "Start")
    for subject, old, new in COMMITS:
        assert old in text
        text = text.replace(old, new, 1)
        (folder / "io.py").write_text(text)
        git("commit", "-q", "-a", "-m", subject)
    return folder


def run(monkeypatch: pytest.MonkeyPatch, main: object, *options: object) -> None:
    monkeypatch.setattr(sys, "argv", ["step", *map(str, options)])
    assert callable(main)
    main()


def test_commits_become_edits_of_a_function(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mined, held = tmp_path / "mined", tmp_path / "held"
    run(
        monkeypatch,
        mine_commits.main,
        *("--out", mined, "--held-out", held),
        *(f"{repository / '.git'}=ann/{name}" for name in ("files", "flask")),
    )
    assert [path.name for path in held.glob("*.jsonl")] == ["ann+flask.jsonl"]
    rows = [json.loads(line) for line in (mined / "ann+files.jsonl").read_text().splitlines()]
    assert {row["edits"][0][1] for row in rows} == {COMMITS[0][0], COMMITS[3][0]}
    for row in rows:
        assert row["region"].startswith("def ")
        assert fmt.apply(row["region"], row["edits"][0][2]) != row["region"]

    (tmp_path / "heldout.jsonl").write_text("")
    out = tmp_path / "commits.jsonl"
    run(
        monkeypatch,
        select_commits.main,
        *("--mined", mined, "--held-out", held, "--snippets", tmp_path / "heldout.jsonl"),
        *("--out", out, "--score", 0.5),
    )
    chosen = [json.loads(line) for line in out.read_text().splitlines()]
    assert {row["edits"][0][1] for row in chosen} == {COMMITS[0][0], COMMITS[3][0]}
