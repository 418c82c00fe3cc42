"""Nothing outside the root and nothing of git's is ever resolved."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.workspace.boundary import (
    inner_repository,
    is_git_name,
    resolve_entry,
    resolve_inside,
)
from midstream.workspace.files import MissingFileError, OutsideWorkspaceError, Workspace
from tests.helpers.property import examples
from tests.helpers.repositories import git


@pytest.fixture
def crowded(root: Path) -> Workspace:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (root / "src").mkdir()
    (root / "src/real.py").write_text("x\n")
    (root / "link.py").symlink_to("src/real.py")
    (root / "way-out").symlink_to(outside)
    (root / "dangling-out").symlink_to(outside / "new-file")
    (root / "dangling-in").symlink_to("src/new.py")
    (root / "loop").symlink_to("loop")
    return Workspace(root)


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret",
        "src/../../outside/secret",
        "/etc/passwd",
        "way-out/secret",
        "way-out/../outside/secret",
        "dangling-out",
        "src/../way-out/new",
        "..",
        "nul\0byte",
        "../project-twin/file",
        "deep/" * 1000 + "file",
    ],
)
def test_paths_that_leave_the_root_are_refused(crowded: Workspace, path: str) -> None:
    with pytest.raises(OutsideWorkspaceError):
        crowded.relative(path)
    with pytest.raises(OutsideWorkspaceError):
        crowded.read(path)
    with pytest.raises(OutsideWorkspaceError):
        crowded.write(path, b"x", expected=None)
    assert not (crowded.root.parent / "outside/new-file").exists()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("src/real.py", "src/real.py"),
        ("./src//real.py", "src/real.py"),
        ("src/../src/real.py", "src/real.py"),
        ("link.py", "src/real.py"),
        ("dangling-in", "src/new.py"),
        ("src/not/yet/there.py", "src/not/yet/there.py"),
        (".", "."),
        ("", "."),
        (".github/workflows/ci.yml", ".github/workflows/ci.yml"),
        (".gitignore", ".gitignore"),
        ("~", "~"),
    ],
)
def test_one_file_has_one_name(crowded: Workspace, path: str, name: str) -> None:
    assert crowded.relative(path) == name
    assert crowded.relative(crowded.root / path) == name


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".GIT/config",
        ".Git",
        "sub/.git/hooks/pre-commit",
        "sub/.gIt",
        ".git/../a.py",
        ".g\u200cit/config",
        ".git /config",
        ".git./config",
        "git~1/config",
        ".\uff47\uff49\uff54/config",
        ".git::$INDEX_ALLOCATION/config",
    ],
)
def test_git_itself_is_refused_in_every_spelling(workspace: Workspace, path: str) -> None:
    with pytest.raises(OutsideWorkspaceError, match="git"):
        workspace.write(path, b"x", expected=None)
    assert list(workspace.root.rglob("*")) == []


def test_an_entry_is_judged_as_the_file_that_it_leads_to(crowded: Workspace) -> None:
    """Only a link in last place stands for itself, and none that belongs to git."""
    root = str(crowded.root)
    assert resolve_entry(root, "link.py") == "link.py"
    assert resolve_entry(root, "dangling-out") == "dangling-out"
    (crowded.root / "folder").symlink_to("src")
    assert resolve_entry(root, "folder") == "folder"
    assert resolve_entry(root, "folder/") == "src"
    assert resolve_entry(root, "folder/real.py") == "src/real.py"
    assert resolve_entry(root, "folder/.") == "src"
    assert resolve_entry(root, "x" * 300) == "x" * 300
    git(crowded.root, "init", "-q", "--bare", "bare")
    (crowded.root / "bare/link").symlink_to("HEAD")
    (crowded.root / ".git").symlink_to("bare")
    odd = ("a\0b", "\ud800", f"src/{'deep/' * 1000}f")
    for path in ("bare/HEAD", "bare/link", ".git", "src/.GIT", "way-out/x", *odd):
        with pytest.raises(OutsideWorkspaceError):
            resolve_entry(root, path)


def test_a_repository_within_counts_itself(root: Path) -> None:
    (root / "a/b/.git").mkdir(parents=True)
    assert inner_repository(str(root), "a/b") == "a/b"
    assert inner_repository(str(root), "a/b/c") == "a/b"
    assert inner_repository(str(root), "a") is None


def test_a_symlink_into_git_is_refused(repository: Path) -> None:
    (repository / "innocent").symlink_to(".git/hooks")
    with pytest.raises(OutsideWorkspaceError, match="git"):
        Workspace(repository).write("innocent/pre-commit", b"x", expected=None)


def test_the_git_file_of_a_work_tree_and_a_renamed_git_folder_are_refused(
    repository: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    git(repository, "worktree", "add", "-q", str(tree))
    with pytest.raises(OutsideWorkspaceError):
        Workspace(tree).read(".git")

    apart = tmp_path / "apart"
    apart.mkdir()
    git(apart, "init", "-q", "--separate-git-dir", str(apart / "store"))
    with pytest.raises(OutsideWorkspaceError, match="git"):
        Workspace(apart).read("store/config")
    git(apart, "init", "-q", "--bare", "fixtures/bare.git")
    with pytest.raises(OutsideWorkspaceError, match="git"):
        Workspace(apart).write("fixtures/bare.git/hooks/update", b"x", expected=None)


def test_a_root_inside_git_or_missing_is_refused(repository: Path) -> None:
    with pytest.raises(OutsideWorkspaceError):
        Workspace(repository / ".git" / "hooks")
    with pytest.raises(MissingFileError):
        Workspace(repository / "nowhere")


def test_a_root_reached_through_a_symlink_is_resolved_once(root: Path) -> None:
    (root / "a").write_bytes(b"1")
    alias = root.parent / "alias"
    alias.symlink_to(root)
    workspace = Workspace(alias)
    assert workspace.root == root
    assert workspace.relative(alias / "a") == "a"


def test_error_sentences_carry_no_control_characters(workspace: Workspace) -> None:
    with pytest.raises(MissingFileError) as caught:
        workspace.read("a\x1b[31m\n.py")
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)


parts = st.sampled_from(
    ["..", ".", "a", "b", "link", "out", ".git", ".GIT", "/", "x\u200b", "c.py"]
)


@examples(100)
@given(st.lists(parts, max_size=8), st.booleans())
def test_whatever_is_resolved_ends_inside(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], absolute: bool
) -> None:
    base = tmp_path_factory.getbasetemp() / "resolved"
    root = base / "root"
    if not root.exists():
        (root / "a" / "b").mkdir(parents=True)
        (root / "link").symlink_to("a/b")
        (root / "out").symlink_to("..")
    path = "/".join(names)
    given_path = f"{root}/{path}" if absolute else path
    try:
        rel = resolve_inside(str(root), given_path)
    except OutsideWorkspaceError:
        return
    real = (root / rel).resolve()
    assert real == root or root in real.parents
    assert not any(is_git_name(part) for part in real.relative_to(root).parts)
    assert real == Path(root, given_path).resolve()
