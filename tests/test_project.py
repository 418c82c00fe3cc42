"""Which folder a path on the command line opens."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.project import opened_by, project_of


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("home/code/pkg/deep/a.py", "home/notes.py", "home/code/vendor/b.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    (tmp_path / "home" / "code" / ".git").mkdir()
    return tmp_path / "home"


def test_a_file_opens_its_repository(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened_by(tree / "code/pkg/deep/a.py") == (tree / "code", "pkg/deep/a.py")
    monkeypatch.chdir(tree / "code" / "pkg")
    assert opened_by(Path("deep/a.py")) == (tree / "code", "pkg/deep/a.py")
    assert opened_by(Path("../vendor/b.py")) == (tree / "code", "vendor/b.py")


def test_a_folder_is_opened_as_it_is(tree: Path) -> None:
    assert opened_by(tree / "code/pkg") == (tree / "code/pkg", None)
    assert opened_by(tree / "missing.py") == (tree / "missing.py", None)


def test_the_nearest_project_counts(tree: Path) -> None:
    (tree / "code/vendor/.git").write_text("gitdir: elsewhere\n")  # as submodules have it
    assert opened_by(tree / "code/vendor/b.py") == (tree / "code/vendor", "b.py")
    (tree / "code/pkg/.midstream.toml").write_text("")
    assert opened_by(tree / "code/pkg/deep/a.py") == (tree / "code/pkg", "deep/a.py")


def test_a_home_folder_in_git_is_no_project(tree: Path) -> None:
    (tree / ".git").mkdir()
    assert opened_by(tree / "notes.py") == (tree, "notes.py")
    other = tree / "scripts"
    other.mkdir()
    assert project_of(other) == other


def test_a_link_is_opened_where_it_lies(tree: Path) -> None:
    link = tree / "code" / "pkg" / "link.py"
    link.symlink_to(tree / "notes.py")
    assert opened_by(link) == (tree / "code", "pkg/link.py")
