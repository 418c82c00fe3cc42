"""``midstream bench commits``: what is left to decide of a commit, and edits slipped into it."""

from __future__ import annotations

import json
import os
import sys
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


GO = """package a

func f%d() bool {
	return len("a>b") > 0 && %s(true) // 1 > 0
}
"""


def test_a_slipped_in_edit_of_another_language(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    for name in ("check", "verify"):
        (tmp_path / "a.go").write_text(f"package a\n\nfunc {name}(x bool) bool {{ return x }}\n")
        for n in range(12):
            (tmp_path / f"use{n}.go").write_text(GO % (n, name))
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-q", "-m", f"Call it {name}")
    figures = commits.measure(tmp_path, "HEAD", slips=12, seed=1)
    assert (figures.hunks, figures.single, figures.groups) == (13, 0, 1)
    # The definition has no condition.
    assert (figures.slips, figures.apart, figures.place) == (12, 12, 1)


def test_the_table_and_json(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert commits.run([str(repository), "HEAD", "HEAD~1..HEAD", "--slips", "1"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len({row.count("|") for row in rows}) == 1
    assert "| HEAD Call it amount | 32 | 65 | 33 | 2 + 1 | 94 % |" in rows[2]
    assert commits.run([str(repository), "HEAD", "--slips", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["hunks"] == 33


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are UTF-8 elsewhere")
def test_names_and_a_subject_that_are_not_utf_8(repository: Path) -> None:
    Path(os.fsdecode(bytes(repository) + b"/caf\xe9.py")).write_text("x = 1\n")
    git(repository, "add", "--", "*.py")
    git(repository, "commit", "-q", "-m", "Add a caf\xe9")
    git(repository, "config", "i18n.logOutputEncoding", "ISO-8859-1")
    figures = commits.measure(repository, "HEAD", slips=1, seed=1)
    assert (figures.subject, figures.files, figures.lines) == ("Add a caf\ufffd", 1, 1)


def test_a_renamed_file_is_counted_like_its_hunks(repository: Path) -> None:
    git(repository, "mv", "a.py", "b.py")
    git(repository, "commit", "-q", "-m", "Move a.py")
    figures = commits.measure(repository, "HEAD", slips=0, seed=1)
    assert (figures.files, figures.lines) == (2, 4)
    assert figures.unmoved == 4  # too short to be a block


@pytest.mark.parametrize("revision", ["HEAD", None])
def test_files_behind_a_submodule_are_read(repository: Path, revision: str | None) -> None:
    commit = git(repository, "rev-parse", revision).strip() if revision else "1" * 40
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{commit},library")
    (repository / "use7.py").write_text("x = 1\n")
    git(repository, "commit", "-q", "-m", "Take a library", "--", "use7.py")
    git(repository, "update-index", "--cacheinfo", f"160000,{commit},library")
    (repository / "use8.py").write_text(USE.format(8))
    git(repository, "add", "use8.py")
    git(repository, "commit", "-q", "-m", "Change both")
    figures = commits.measure(repository, "HEAD~2..HEAD", slips=0, seed=1)
    # One line stands for the library.
    assert (figures.files, figures.lines) == (3, 1 + 8 + 2)
