"""What is read from git, and what happens where there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from midstream.workspace.files import Workspace
from midstream.workspace.repo import (
    GitFailedError,
    RepoStatus,
    checked_out_files,
    find_repository,
    repo_status,
    repository_trouble,
    run_git,
)
from tests.helpers.repositories import git


async def test_status_of_a_clean_then_busy_repository(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD").strip()
    assert repo_status(repository) == RepoStatus("main", False, 0, 0, head)

    (repository / "a.py").write_text("a = 2\n")
    git(repository, "mv", "src/b.py", "src/c d.py")
    (repository / "neu é.txt").write_text("x")
    (repository / "new\nline").write_text("x")
    (repository / "noise.log").write_text("ignored")
    marks = {"a.py": "M", "src/c d.py": "R", "neu é.txt": "?", "new\nline": "?"}
    assert repo_status(repository) == RepoStatus("main", False, 2, 2, head, marks=marks)
    below = {"c d.py": "R"}
    assert repo_status(repository / "src") == RepoStatus("main", False, 2, 2, head, marks=below)

    git(repository, "checkout", "-q", "--detach")
    status = repo_status(repository)
    assert status is not None
    assert (status.branch, status.detached) == (head[:8], True)


async def test_status_before_the_first_commit(root: Path) -> None:
    git(root, "init", "-q", "-b", "feature/x")
    (root / "f").write_text("1")
    assert repo_status(root) == RepoStatus("feature/x", False, 0, 1, "", marks={"f": "?"})


async def test_marks_of_new_deleted_and_staged_files(repository: Path) -> None:
    (repository / "a.py").unlink()
    (repository / "staged.py").write_text("x = 1\n")
    git(repository, "add", "staged.py")
    (repository / "src" / "new" / "deep").mkdir(parents=True)
    (repository / "src" / "new" / "deep" / "f.py").write_text("x = 1\n")
    status = repo_status(repository)
    assert status is not None
    assert status.marks == {"a.py": "D", "staged.py": "A", "src/new/": "?"}
    inside = repo_status(repository / "src" / "new" / "deep")
    assert inside is not None
    assert inside.marks == {"": "?"}


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("merge", "merging"),
        ("rebase", "rebasing"),
        ("cherry-pick", "cherry-picking"),
        ("rebase --apply", "rebasing"),
    ],
)
async def test_status_of_a_conflict(repository: Path, command: str, word: str) -> None:
    git(repository, "checkout", "-q", "-b", "other")
    (repository / "a.py").write_text("a = 'other'\n")
    git(repository, "commit", "-qam", "other")
    git(repository, "checkout", "-q", "main")
    (repository / "a.py").write_text("a = 'main'\n")
    git(repository, "commit", "-qam", "main")
    with pytest.raises(Exception, match=command.split()[0]):
        git(repository, *command.split(), "other")
    status = repo_status(repository / "src")
    assert status is not None
    assert (status.detached, status.dirty) == (word == "rebasing", 1)
    assert (repo_status(repository) or status).marks == {"a.py": "!"}
    assert status.begun == word
    git(repository, command.split()[0], "--abort")
    status = repo_status(repository)
    assert status is not None
    assert (status.branch, status.begun) == ("main", "")


async def test_a_merge_in_another_work_tree_is_not_this_ones(
    repository: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other tree"
    git(repository, "worktree", "add", "-q", "-b", "other", str(other))
    (other / "a.py").write_text("a = 'other'\n")
    git(other, "commit", "-qam", "other")
    (repository / "a.py").write_text("a = 'main'\n")
    git(repository, "commit", "-qam", "main")
    with pytest.raises(Exception, match="merge"):
        git(other, "merge", "main")
    mine, theirs = repo_status(repository), repo_status(other)
    assert mine is not None
    assert theirs is not None
    assert (mine.begun, theirs.begun) == ("", "merging")


async def test_no_repository_and_no_git(
    root: Path, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "plain"
    elsewhere.mkdir()
    assert repo_status(elsewhere) is None
    assert repo_status(tmp_path / "missing") is None
    monkeypatch.setenv("PATH", str(elsewhere))
    assert repo_status(repository) is None


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    assert repository_trouble(tmp_path / "gone").endswith("gone; open the folder where it is now.")


def test_a_path_may_have_a_line_break(tmp_path: Path) -> None:
    root = tmp_path / "two\nlines"
    root.mkdir()
    git(root, "init", "-q")
    place = find_repository(root)
    assert place is not None
    assert (place.top, place.git_dir, place.common_dir) == (root, root / ".git", root / ".git")


async def test_a_foreign_git_environment_is_not_followed(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere.git"))
    status = repo_status(repository)
    assert status is not None
    assert status.branch == "main"


def test_status_leaves_the_index_alone(repository: Path) -> None:
    index = repository / ".git/index"
    # A file newer than the index makes a plain `git status` write the index anew.
    (repository / "a.py").touch()
    before = (index.stat().st_mtime_ns, index.read_bytes())
    repo_status(repository)
    assert (index.stat().st_mtime_ns, index.read_bytes()) == before


def test_files_of_a_repository(repository: Path) -> None:
    (repository / "new.py").write_text("")
    (repository / "noise.log").write_text("")
    (repository / "build").mkdir()
    (repository / "build/out").write_text("")
    (repository / "a.py").unlink()
    (repository / "ü b.txt").write_text("")
    (repository / ".midstream-0123.part").write_text("")
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "x").write_text("")
    assert Workspace(repository).files() == [".gitignore", "new.py", "src/b.py", "ü b.txt"]
    assert Workspace(repository / "src").files() == ["b.py"]


def test_submodules_are_not_files(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "x").write_text("")
    git(other, "add", ".")
    git(other, "commit", "-qm", "x")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    assert Workspace(repository).files() == [".gitignore", ".gitmodules", "a.py", "src/b.py"]


def test_files_without_a_repository(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "b.py",
        "a/x.py",
        "node_modules/m/i.js",
        ".venv/lib/y.py",
        ".env",
        "a/.git/config",
    ):
        (workspace.root / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace.root / name).write_text("")
    assert workspace.files() == [".env", "a/x.py", "b.py"]
    monkeypatch.setattr("midstream.workspace.listing.MAX_FILES", 2)
    assert workspace.files() == [".env", "a/x.py"]


def broken_head(top: Path) -> None:
    (top / ".git" / "HEAD").write_text("nonsense\n")


def broken_index(top: Path) -> None:
    (top / ".git" / "index").write_bytes(b"DIRC nonsense")


def broken_configuration(top: Path) -> None:
    (top / ".git" / "config").write_text("[core\n")


def missing_commit(top: Path) -> None:
    (top / ".git" / "refs" / "heads" / "main").write_text("1" * 40 + "\n")


def link_to_nothing(top: Path) -> None:
    (top / ".git").rename(top / "moved")
    (top / ".git").write_text("gitdir: nowhere\n")


@pytest.mark.parametrize(
    "harm", [broken_head, broken_index, broken_configuration, missing_commit, link_to_nothing]
)
def test_a_repository_that_cannot_be_read_is_not_taken_for_none(
    repository: Path, harm: Callable[[Path], None]
) -> None:
    assert repository_trouble(repository) == ""
    assert repository_trouble(repository / "src") == ""
    harm(repository)
    for folder in (repository, repository / "src"):
        trouble = repository_trouble(folder)
        assert f"The git repository in {repository} cannot be read (" in trouble
        assert trouble.count(".\n") == 0


def test_a_broken_repository_inside_another_is_not_taken_for_the_outer(repository: Path) -> None:
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    assert repository_trouble(inner) == ""
    broken_head(inner)
    assert f"The git repository in {inner} cannot be read" in repository_trouble(inner)


def test_where_there_is_no_repository_nothing_is_said(root: Path) -> None:
    assert repository_trouble(root) == ""
    (root / ".git").mkdir()
    assert repository_trouble(root) == ""


@pytest.mark.parametrize("below", ["", "src"])
@pytest.mark.parametrize("tree", ["", "HEAD"])
async def test_files_read_together_are_as_git_checks_each_out(
    repository: Path, tree: str, below: str
) -> None:
    folder = repository / below
    contents = {
        "empty.py": b"",
        "lines.py": b"a\nb\n",
        "no_end.py": b"a",
        "ident.txt": b"$Id$\n",
        "inner/lines.txt": b"a\nb\n",
        "liar.txt": b"end-0 missing\n\nHEAD:./liar.txt missing\n",
        "neu \u00e9.py": b"white space\n",
        "n\u00e9.py": b"n\n",
    }
    (repository / ".gitattributes").write_text("*.py eol=crlf\nsrc/*.py eol=lf\n*.txt ident\n")
    for path, data in contents.items():
        file = folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "Files")
    alone = {
        path: run_git(folder, ["cat-file", "--filters", f"{tree}:./{path}"]) for path in contents
    }
    assert alone["lines.py"] == (b"a\nb\n" if below else b"a\r\nb\r\n")
    del alone["neu \u00e9.py"]
    found = checked_out_files(folder, tree, [*contents, "gone.py", "inner"], limit=1 << 20)
    assert found == alone
    cut = checked_out_files(folder, tree, contents, limit=150)
    assert cut
    assert cut.items() < alone.items()


def test_git_that_takes_longer_than_it_may_is_ended(repository: Path) -> None:
    slow = ["-c", "alias.slow=!exec sleep 600", "slow"]
    with pytest.raises(GitFailedError, match="git took longer than 0 s"):
        run_git(repository, slow, programs=True, timeout=0.1)
