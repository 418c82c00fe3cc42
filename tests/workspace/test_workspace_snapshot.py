"""Snapshots: the files of a range of commits beside the user's repository, which stays as it is."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from midstream.errors import UsageError, UserError
from midstream.workspace.files import Workspace
from midstream.workspace.repo import GitFailedError
from midstream.workspace.snapshot import STAGED, Snapshot, find_range
from tests.helpers.repositories import git

OLD = {
    b"a.py": b"x = 1\n",
    b"od d\nname\t\xc3\xa4": b"old\n",
    b"\xff.txt": b"no UTF-8\n",
    b"dos.txt": b"one\r\ntwo\r\n",
    b"[b]/-c": b"\0\1",
    b"empty": b"",
}


@pytest.fixture
def repo(root: Path) -> Path:
    """Two branches: ``topic`` changes, adds, deletes and moves files of every kind."""
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "core.autocrlf", "true")
    _write(root, OLD)
    (root / "link").symlink_to("a.py")
    _commit(root)
    git(root, "checkout", "-q", "-b", "topic")
    _write(root, {b"a.py": b"x = 2\n", b"[b]/-c": b"\0\2", b"new/run.sh": b"#!/bin/sh\n"})
    (root / "new/run.sh").chmod(0o755)
    (root / "empty").rename(root / "moved")
    (root / "link").unlink()
    (root / "link").symlink_to("nowhere")
    _commit(root)
    git(root, "checkout", "-q", "main")
    return root


def _write(root: Path, files: dict[bytes, bytes]) -> None:
    for name, data in files.items():
        path = root / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)


def _commit(root: Path) -> str:
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "x")
    return git(root, "rev-parse", "HEAD").strip()


def _files(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """The files below a folder without git's: what each holds, and whether it may be run."""
    found: dict[str, tuple[bytes, bool]] = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if name == ".git" or name.startswith(".git/"):
            continue
        if path.is_symlink():
            found[name] = os.fsencode(path.readlink()), False
        elif path.is_file():
            found[name] = path.read_bytes(), bool(path.stat().st_mode & stat.S_IXUSR)
    return found


def _all_of(folder: Path) -> dict[str, tuple[bytes, float]]:
    """Everything below a folder, git's own files included, with the times of the last writes."""
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime)
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def _stored(repo: Path, tree: str) -> dict[str, tuple[bytes, bool]]:
    """What git has stored of a commit."""
    found: dict[str, tuple[bytes, bool]] = {}
    for line in filter(None, git(repo, "ls-tree", "-rz", tree).split("\0")):
        facts, _, path = line.partition("\t")
        mode, _, blob = facts.split(" ")
        found[path] = os.fsencode(git(repo, "cat-file", "blob", blob)), mode == "100755"
    return found


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("main..topic", "main", "topic"),
        ("topic..main", "topic", "main"),
        ("..topic", "main", "topic"),
        ("topic", "topic", "main"),
        ("topic^!", "main", "topic"),
        ("main^!", "", "main"),
        ("main...topic", "main", "topic"),
        ("topic~1^{tree}..topic^{tree}", "main^{tree}", "topic^{tree}"),
    ],
)
def test_a_snapshot_has_what_git_has_stored(repo: Path, text: str, old: str, new: str) -> None:
    before = _all_of(repo)
    span = find_range(repo, text)
    empty = git(repo, "hash-object", "-t", "tree", "/dev/null").strip()
    assert span.old == (git(repo, "rev-parse", old).strip() if old else empty)
    with Snapshot(repo, span) as snapshot:
        assert snapshot.root.name == repo.name
        assert _files(snapshot.root) == _stored(repo, new)
        assert git(snapshot.root, "status", "--porcelain") == ""
        assert Workspace(snapshot.root).files()
    assert not snapshot.root.exists()
    assert _all_of(repo) == before


def test_the_index_as_it_is_staged(repo: Path) -> None:
    _write(repo, {b"a.py": b"staged\n", b"new": b"staged\n", b"meant": b"later\n"})
    git(repo, "add", "a.py", "new")
    git(repo, "add", "--intent-to-add", "meant")
    git(repo, "update-index", "--split-index")
    (repo / "a.py").write_text("on disk\n")
    before = _all_of(repo)
    span = find_range(repo, STAGED)
    with Snapshot(repo, span) as snapshot:
        expected = _stored(repo, "main")
        expected |= {"a.py": (b"staged\n", False), "new": (b"staged\n", False)}
        assert _files(snapshot.root) == expected
    assert _all_of(repo) == before


def test_the_index_before_the_first_commit(root: Path) -> None:
    git(root, "init", "-q")
    _write(root, {b"a": b"1\n"})
    git(root, "add", "a")
    span = find_range(root, STAGED)
    with Snapshot(root, span) as snapshot:
        assert _files(snapshot.root) == {"a": (b"1\n", False)}
    with pytest.raises(UsageError, match="no commit yet"):
        find_range(root, "..")


def test_no_program_of_the_repository_runs(repo: Path) -> None:
    git(repo, "config", "filter.evil.smudge", "touch ran; cat")
    git(repo, "config", "filter.evil.clean", "touch ran; cat")
    _write(repo, {b".gitattributes": b"*.py filter=evil text eol=crlf\n"})
    git(repo, "-c", "filter.evil.clean=cat", "add", "-A")
    git(repo, "commit", "-q", "-m", "x")
    (repo / "ran").unlink(missing_ok=True)
    hooks = repo / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-checkout").write_text(f"#!/bin/sh\ntouch {repo}/ran\n")
    (hooks / "post-checkout").chmod(0o755)
    span = find_range(repo, "HEAD~1..HEAD")
    with Snapshot(repo, span) as snapshot:
        assert (snapshot.root / "a.py").read_bytes() == b"x = 1\n"
        assert not (snapshot.root / "ran").exists()
    assert not (repo / "ran").exists()


def test_a_folder_and_a_linked_work_tree(repo: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    git(repo, "worktree", "add", "-q", str(tree), "topic")
    (tree / "new/run.sh").write_text("staged\n")
    git(tree, "add", "-A")
    span = find_range(tree / "new", STAGED)
    with Snapshot(tree / "new", span) as snapshot:
        assert snapshot.root.name == "new"
        assert _files(snapshot.root) == {"run.sh": (b"staged\n", True)}


def test_submodules_are_named(repo: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    first, second = _commit(inner), _commit(inner)
    for commit in (first, second):
        git(repo, "update-index", "--add", "--cacheinfo", f"160000,{commit},sub")
        git(repo, "commit", "-q", "--allow-empty", "-m", commit)
    for text, was in (("HEAD~1..HEAD", first[:8]), ("HEAD~2..HEAD", "none")):
        span = find_range(repo, text)
        with Snapshot(repo, span) as snapshot:
            assert snapshot.submodules == ({"sub": f"{was} → {second[:8]}"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nope..topic", "Git knows no revision nope; name commits, branches or tags"),
        ("main..nope", "Git knows no revision nope"),
        ("nope", "Git knows no revision nope"),
        ("--output=x..topic", "Git knows no revision --output=x"),
        ("main:a.py..topic", "Git knows no revision main:a.py"),
    ],
)
def test_an_unknown_revision_is_one_sentence(repo: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        find_range(repo, text)
    assert raised.value.exit_code == 2
    assert "\n" not in str(raised.value)


def test_what_cannot_be_compared(repo: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(UsageError, match="is in no git repository, so it has no revisions"):
        find_range(plain, "a..b")
    git(repo, "checkout", "-q", "--orphan", "apart")
    git(repo, "commit", "-q", "-m", "apart")
    with pytest.raises(UsageError, match="have no commit in common"):
        find_range(repo, "main...apart")
    span = find_range(repo, "main..apart")
    Snapshot(repo, span).close()


def test_an_index_in_conflict_is_refused(repo: Path) -> None:
    _write(repo, {b"a.py": b"x = 3\n"})
    _commit(repo)
    with pytest.raises(Exception, match="merge"):
        git(repo, "merge", "topic")
    span = find_range(repo, STAGED)
    with pytest.raises(UserError, match="cannot be read \\(files in it are in conflict\\)"):
        Snapshot(repo, span)


def test_a_range_tells_what_the_old_side_has_had_since(repo: Path) -> None:
    assert find_range(repo, "main..topic").note == ""
    _write(repo, {b"since.py": b"since\n"})
    git(repo, "add", "since.py")
    git(repo, "commit", "-qm", "since")
    told = "1 commit of main shows as taken away; main...topic leaves it out."
    assert find_range(repo, "main..topic").note == told
    assert find_range(repo, "main...topic").note == ""
    assert find_range(repo, "main^{tree}..topic").note == ""


def test_one_at_a_time_and_nothing_is_left(repo: Path) -> None:
    span = find_range(repo, "main..topic")
    killed = Snapshot(repo, span)
    with pytest.raises(UserError, match=r"Another Midstream reviews main\.\.topic here"):
        Snapshot(repo, span)
    killed.close()
    shutil.copytree(repo, killed.root, symlinks=True)  # as a process that was killed leaves it
    other = find_range(repo, "topic..main")
    with Snapshot(repo, other):
        assert not killed.root.exists()
    with Snapshot(repo, span) as again:
        assert again.root == killed.root
        assert _files(again.root) == _stored(repo, "topic")


def test_nothing_of_a_snapshot_is_left(repo: Path, tmp_path: Path) -> None:
    span = find_range(repo, "main..topic")
    killed = Snapshot(repo, span, state=tmp_path)
    killed.close()
    shutil.copytree(repo, killed.root, symlinks=True)
    (killed.root.parents[1] / "0.lock").touch()  # a process was killed before it made its folder
    other = find_range(repo, "topic..main")
    Snapshot(repo, other, state=tmp_path).close()
    assert not list((tmp_path / "snapshots").iterdir())


def test_a_state_folder_that_cannot_be_used_is_one_sentence(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "snapshots").touch()
    span = find_range(repo, "main..topic")
    with pytest.raises(UserError, match=r"cannot be checked out in .*; make room there"):
        Snapshot(repo, span, state=tmp_path)


def test_git_that_fails_is_one_sentence(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(root, "init", "-q")

    def fail(*_: object, **__: object) -> bytes:
        raise GitFailedError("git took longer than 30 s")

    monkeypatch.setattr("midstream.workspace.snapshot.run_git", fail)
    with pytest.raises(UsageError, match="cannot read this repository \\(git took longer"):
        find_range(root, STAGED)


def test_many_files_are_announced(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    span = find_range(repo, "main..topic")
    told: list[int] = []
    Snapshot(repo, span, when_many=told.append).close()
    assert not told
    files = len(_stored(repo, "topic"))
    monkeypatch.setattr("midstream.workspace.snapshot.MANY_FILES", files)
    Snapshot(repo, span, when_many=told.append).close()
    assert told == [files]


def test_objects_are_found_whatever_the_name_of_the_folder(root: Path) -> None:
    odd = root / '"odd\nna\\me'
    odd.mkdir()
    git(odd, "init", "-q")
    _write(odd, {b"a": b"1\n"})
    _commit(odd)
    span = find_range(odd, "HEAD^!")
    with Snapshot(odd, span) as snapshot:
        assert _files(snapshot.root) == {"a": (b"1\n", False)}
