"""``midstream bench commits``: what is left to decide of a commit, and edits slipped into it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from midstream.bench import commits
from tests.helpers.repositories import git

OLD = "def total(x):\n    return x\n"
USE = "import a\n\n\ndef f{0}():\n    return a.total({0}) > 0 and not a.done\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A commit that renames a function in thirty files and changes one of them besides."""
    git(tmp_path, "init", "-q", "-b", "main")
    files = {"a.py": OLD} | {f"use{n}.py": USE.format(n) for n in range(30)}
    for new in ("total", "amount"):
        for path, text in files.items():
            (tmp_path / path).write_text(text.replace("total", new))
        (tmp_path / "use7.py").write_text(USE.format(7).replace("total", new) + f"\n# {new}\n")
        (tmp_path / "data.bin").write_bytes(b"\0" + new.encode())
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-q", "-m", f"Call it {new}")
    return tmp_path


def test_a_slipped_in_edit_is_in_no_group(repository: Path) -> None:
    figures = commits.measure(repository, "HEAD", slips=10, seed=1)
    assert figures.subject == "Call it amount"
    assert (figures.files, figures.hunks, figures.single) == (32, 33, 2)
    assert figures.groups == 1  # not the name in a comment
    assert (figures.slips, figures.apart, figures.place) == (10, 10, 1)
    assert figures.unmoved == 64
    assert figures.mechanical == 94


def test_the_table_and_json(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert commits.run([str(repository), "HEAD", "HEAD~1..HEAD", "--slips", "1"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len({row.count("|") for row in rows}) == 1
    assert "| HEAD Call it amount | 32 | 65 | 33 | 2 + 1 | 94 % |" in rows[2]
    assert commits.run([str(repository), "HEAD", "--slips", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["hunks"] == 33
