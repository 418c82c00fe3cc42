"""The content of files before a review, and the moves of HEAD that it follows."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from midstream.workspace import baseline as baselines
from midstream.workspace.baseline import Baseline
from midstream.workspace.content import Entry
from midstream.workspace.errors import UnknownFormerError
from midstream.workspace.files import Workspace
from midstream.workspace.repo import checked_out_files, work_tree_changes
from tests.helpers.repositories import git


def test_changes_of_the_work_tree_below_a_folder(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD").strip()
    assert work_tree_changes(repository) == (head, frozenset(), frozenset(), frozenset())

    (repository / "a.py").write_text("a = 2\n")
    (repository / "src/b.py").unlink()
    (repository / "src/new é\n.txt").write_text("x")
    (repository / "noise.log").write_text("ignored")
    (repository / "nested").mkdir()
    git(repository / "nested", "init", "-q")
    (repository / "nested/x").write_text("x")
    changed, new = {"a.py", "src/b.py"}, {"src/new é\n.txt"}
    assert work_tree_changes(repository) == (head, changed, new, {"nested"})
    assert work_tree_changes(repository / "src")[:3] == (head, {"b.py"}, {"new é\n.txt"})


def test_there_are_no_changes_without_a_repository_and_no_commit_before_the_first(
    tmp_path: Path,
) -> None:
    (tmp_path / "x").write_text("x")
    assert work_tree_changes(tmp_path)[:3] == ("", frozenset(), frozenset())
    git(tmp_path, "init", "-q")
    assert work_tree_changes(tmp_path)[:3] == ("", frozenset(), {"x"})


def test_a_file_that_is_staged_and_changed_back_differs_from_the_index(repository: Path) -> None:
    """Unstaged changes wait for a decision, even where the work tree equals the commit."""
    before = (repository / "a.py").read_bytes()
    (repository / "a.py").write_text("a = 2\n")
    git(repository, "add", "a.py")
    (repository / "a.py").write_bytes(before)
    baseline = Baseline(Workspace(repository), since_commit=True)
    assert baseline.changed == {"a.py"}
    assert baseline.read("a.py") == Entry(b"a = 2\n", executable=False)


def test_a_checkout_is_followed_and_a_commit_is_not(repository: Path) -> None:
    baseline = Baseline(Workspace(repository), since_commit=False)
    (repository / "a.py").write_text("a = 2\n")
    git(repository, "commit", "-aqm", "two")
    assert not baseline.follow_head({"a.py"})
    git(repository, "checkout", "-q", "HEAD^")
    assert baseline.follow_head({"a.py"}) == {"a.py"}


def test_what_was_read_ahead_of_one_commit_does_not_stand_for_another(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HEAD is followed in one thread while another one reads."""
    (repository / "a.py").write_text("a = 2\n")
    git(repository, "commit", "-aqm", "two")
    baseline = Baseline(Workspace(repository), since_commit=False)

    def read_and_move(*args: Any, **options: Any) -> dict[str, bytes]:
        files = checked_out_files(*args, **options)
        git(repository, "checkout", "-q", "HEAD^")
        assert baseline.follow_head({"a.py"}) == {"a.py"}
        return files

    monkeypatch.setattr(baselines, "checked_out_files", read_and_move)
    baseline.read_ahead({"a.py"})
    held = baseline.read("a.py")
    assert held is not None
    assert held.data == (repository / "a.py").read_bytes() != b"a = 2\n"


def test_after_a_merge_that_stops_the_former_text_is_unknown(repository: Path) -> None:
    """From there on the text of git counts, with its marks."""
    git(repository, "checkout", "-qb", "side")
    (repository / "a.py").write_text("a = 2\n")
    git(repository, "commit", "-aqm", "two")
    git(repository, "checkout", "-q", "-")
    (repository / "a.py").write_text("a = 3\n")
    git(repository, "commit", "-aqm", "three")
    baseline = Baseline(Workspace(repository), since_commit=True)
    with pytest.raises(subprocess.CalledProcessError):
        git(repository, "merge", "-q", "side")
    marked = (repository / "a.py").read_bytes()
    assert b"<<<<<<<" in marked
    with pytest.raises(UnknownFormerError, match="in conflict"):
        baseline.read("a.py")
    assert baseline.read("a.py") == Entry(marked, executable=False)
    assert baseline.read("src/b.py") is not None


@pytest.fixture
def diverged(repository: Path) -> Path:
    """A repository whose branch ``side`` conflicts with its own in ``a.py`` and ``src/b.py``."""
    git(repository, "checkout", "-qb", "side")
    for text in ("theirs", "ours"):
        for name in ("a.py", "src/b.py"):
            (repository / name).write_text(f"{text}\n")
        git(repository, "commit", "-aqm", text)
        if text == "theirs":
            git(repository, "checkout", "-q", "-B", "own", "HEAD^")
    return repository


def merge(repository: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        git(repository, "merge", "-q", "side")


def test_a_conflict_is_new_once_and_only_where_the_file_is_as_git_left_it(diverged: Path) -> None:
    baseline = Baseline(Workspace(diverged), since_commit=False)
    below = Baseline(Workspace(diverged / "src"), since_commit=False)
    assert not baseline.new_conflicts()
    merge(diverged)
    (diverged / "a.py").write_text("resolved\n")
    assert baseline.new_conflicts() == {"src/b.py"}
    assert not baseline.new_conflicts()
    assert below.new_conflicts() == {"b.py"}


def test_where_git_fails_no_conflict_is_new(
    diverged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old conflicts are not new to the next call either: their files may have pending edits."""
    without = tmp_path / "without-git"
    without.mkdir()
    baseline = Baseline(Workspace(diverged), since_commit=False)
    merge(diverged)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(without))
        assert not baseline.new_conflicts()
        later = Baseline(Workspace(diverged), since_commit=False)
    assert not later.new_conflicts(), "they were there before"
    assert baseline.new_conflicts() == {"a.py", "src/b.py"}
    git(diverged, "add", "src/b.py")  # This changes the index.
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(without))
        assert not baseline.new_conflicts()
    assert not baseline.new_conflicts()


@pytest.mark.parametrize("since_commit", [False, True])
def test_a_file_that_only_the_index_has_lost_counts_as_it_is(
    repository: Path, since_commit: bool
) -> None:
    """Else it would be a new file, and putting that back would delete the user's."""
    before = (repository / "a.py").read_bytes()
    git(repository, "rm", "-q", "--cached", "a.py")
    baseline = Baseline(Workspace(repository), since_commit=since_commit)
    assert "a.py" in baseline.unknown
    assert "a.py" not in baseline.changed
    (repository / "a.py").write_text("agent\n")
    assert baseline.read("a.py") == Entry(before, executable=False)


def test_the_former_text_in_an_ignored_folder_is_unknown(repository: Path) -> None:
    (repository / ".git/info/exclude").write_text("scratch/\n")
    (repository / "scratch/below").mkdir(parents=True)
    (repository / "scratch/below/x").write_text("mine\n")
    baseline = Baseline(Workspace(repository / "scratch"), since_commit=True)
    assert baseline.ignored
    (repository / "scratch/below/x").write_text("agent\n")
    with pytest.raises(UnknownFormerError, match="ignored"):
        baseline.read("below/x")


def test_a_reflog_that_was_cut_is_no_move(repository: Path) -> None:
    """Git rewrites the log when old entries expire; the remaining ones are not new."""
    for number in range(5):
        git(repository, "commit", "-q", "--allow-empty", "-m", f"empty {number}")
    git(repository, "checkout", "-q", "--detach")
    baseline = Baseline(Workspace(repository), since_commit=False)
    log = repository / ".git/logs/HEAD"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[-2:]))
    assert not baseline.follow_head({"a.py"})
    git(repository, "checkout", "-q", "main")
    assert baseline.follow_head({"a.py"}) == {"a.py"}


@pytest.fixture
def filtered(repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A repository in which ``a.py`` has a filter and was changed; the user's configuration."""
    (repository / ".gitattributes").write_text("*.py filter=lfs\n")
    git(repository, "add", ".gitattributes")
    git(repository, "commit", "-qm", "Filter")
    (repository / "a.py").write_text("a = 2\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "own"))
    return tmp_path / "own"


def set_filter(config: Path, **programs: str) -> None:
    for what, program in {"required": "true", **programs}.items():
        git(config.parent, "config", "--file", str(config), f"filter.lfs.{what}", program)


def test_a_filter_of_the_repository_alone_is_named_as_the_reason(
    repository: Path, filtered: Path
) -> None:
    set_filter(repository / ".git/config", clean="cat", smudge="cat")
    baseline = Baseline(Workspace(repository), since_commit=True)
    assert baseline.changed == {"a.py"}
    with pytest.raises(UnknownFormerError, match=r"this repository alone.*`git lfs install`"):
        baseline.read("a.py")


@pytest.mark.parametrize("local", [{}, {"process": "no-such-program"}])
def test_a_filter_that_both_configurations_name_is_the_users(
    repository: Path, filtered: Path, local: dict[str, str]
) -> None:
    set_filter(repository / ".git/config", clean="false", smudge="false", **local)
    set_filter(filtered, clean="cat", smudge="tr 1 7")
    baseline = Baseline(Workspace(repository), since_commit=True)
    assert baseline.changed == {"a.py"}
    if local:  # The user's own filter cannot be run in place of the repository's.
        with pytest.raises(UnknownFormerError, match="this repository alone"):
            baseline.read("a.py")
    else:
        assert baseline.read("a.py") == Entry(b"a = 7\n", executable=False)


def test_a_filter_of_the_user_that_fails_is_told_by_git(repository: Path, filtered: Path) -> None:
    set_filter(filtered, clean="cat", smudge="false")
    with pytest.raises(UnknownFormerError, match="smudge filter lfs failed"):
        Baseline(Workspace(repository), since_commit=True).read("a.py")


def test_nobody_can_tell_of_files_that_were_in_a_repository_of_their_own(repository: Path) -> None:
    """Their folder may lose its ``.git`` during the review; putting back would delete them."""
    inner = repository / "src/inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "x").write_text("x\n")
    baseline = Baseline(Workspace(repository), since_commit=True)
    shutil.rmtree(inner / ".git")
    (inner / "x").write_text("y\n")
    with pytest.raises(UnknownFormerError, match="repository of its own when the review began"):
        baseline.read("src/inner/x")
    assert baseline.read("src/inner/x") == Entry(b"y\n", executable=False)
