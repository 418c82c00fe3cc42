"""Programs in a repository's configuration do not run when it is read: the rarer ways.

Each way is tried with git as the user would run it as well, where the program does run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from midstream.workspace import repo
from midstream.workspace.files import Workspace
from midstream.workspace.repo import (
    GitFailedError,
    checked_out_files,
    files_diff,
    find_repository,
    recent_subjects,
    repo_status,
    repository_trouble,
    run_git,
    work_tree_changes,
)
from tests.helpers.pairing import make_repo
from tests.helpers.repositories import git

pytestmark = pytest.mark.system

LOG = ["log", "-n", "30", "--format=%h %s"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "work", {"a.txt": "one\n", "b.txt": "two\n"})


def looked_at(root: Path) -> None:
    """Everything that asks git about a folder."""
    workspace = Workspace(root)
    workspace.files()
    workspace.ignores("a.txt")
    repo_status(root)
    recent_subjects(root)
    files_diff(root, ["a.txt"])
    for look in (
        lambda: work_tree_changes(root),
        lambda: run_git(root, LOG),
        lambda: run_git(root, ["diff", "HEAD"]),
        lambda: run_git(root, ["show", "HEAD:./a.txt"]),
        lambda: checked_out_files(root, "HEAD", ["a.txt", "b.txt"], limit=1000),
    ):
        with contextlib.suppress(GitFailedError):  # It cannot tell without the program.
            look()


def check(root: Path, ran: Path, usual: Callable[[], object]) -> None:
    looked_at(root)
    assert not ran.exists()
    with contextlib.suppress(GitFailedError):
        usual()
    assert ran.exists(), "the program is one that git would run"


def test_a_signature_is_not_checked(root: Path, evil: Path, ran: Path) -> None:
    unsigned = run_git(root, ["cat-file", "commit", "HEAD"]).decode()
    head, _, message = unsigned.partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    signed = f"{head}\n{signature}\n\n{message}".encode()
    made = run_git(root, ["hash-object", "-t", "commit", "-w", "--stdin"], stdin=signed)
    git(root, "update-ref", "HEAD", made.decode().strip())
    git(root, "config", "log.showSignature", "true")
    git(root, "config", "gpg.program", str(evil))
    check(root, ran, lambda: run_git(root, LOG, programs=True))


@pytest.mark.parametrize("transport", ["ext", "file"])
def test_an_object_that_is_missing_is_not_fetched(
    root: Path, evil: Path, ran: Path, transport: str
) -> None:
    """A partial clone fetches what it lacks by itself, and a transport is a program."""
    blob = run_git(root, ["rev-parse", "HEAD:a.txt"]).decode().strip()
    (root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    (root / "a.txt").write_text("changed\n")
    settings = {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{evil}" if transport == "ext" else str(root),
        "remote.origin.uploadpack": str(evil),
        f"protocol.{transport}.allow": "always",
        "protocol.allow": "always",
    }
    for name, value in settings.items():
        git(root, "config", name, value)
    asked = ["cat-file", "-p", blob]
    check(root, ran, lambda: run_git(root, asked, programs=True, timeout=10))


@pytest.mark.parametrize("shown", ["short", "log", "diff"])
def test_the_configuration_of_a_submodule_runs_nothing(
    root: Path, tmp_path: Path, evil: Path, ran: Path, shown: str
) -> None:
    inner = make_repo(tmp_path / "inner", {"c.txt": "one\n"})
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    git(root, "commit", "-qm", "A submodule")
    (root / "sub/c.txt").write_text("more\n")
    git(root / "sub", "commit", "-qam", "Another commit, which git may compare with the first")
    for setting in ("core.fsmonitor", "diff.external", "filter.x.clean"):
        git(root / "sub", "config", setting, str(evil))
    (root / "sub/.gitattributes").write_text("* filter=x\n")
    (root / "sub/c.txt").write_text("two\n")
    git(root, "config", "diff.submodule", shown)
    git(root, "config", "status.submoduleSummary", "true")
    git(root, "config", "submodule.recurse", "true")
    ran.unlink(missing_ok=True)
    check(root, ran, lambda: run_git(root, ["status"], programs=True))


def test_a_folder_that_poses_as_a_repository_is_none(root: Path, tmp_path: Path) -> None:
    """Git takes a folder with the right names in it for a repository, wherever it comes from."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / ".git").rename(root / "fixture")
    git(root / "fixture", "config", "core.bare", "false")
    git(root / "fixture", "config", "core.worktree", str(elsewhere))
    assert run_git(root / "fixture", ["rev-parse", "--show-toplevel"], programs=True)
    assert find_repository(root / "fixture") is None


def test_an_order_of_files_that_never_ends_is_not_read(root: Path) -> None:
    git(root, "config", "diff.orderFile", "/dev/zero")
    (root / "a.txt").write_text("changed\n")
    assert "+changed" in files_diff(root, ["a.txt"])
    assert work_tree_changes(root)[1] == {"a.txt"}


def test_a_configuration_that_takes_long_to_read_is_named_and_not_read(root: Path) -> None:
    with (root / ".git/config").open("a") as config:
        config.write("#" * repo.MAX_CONFIG)
    assert repo_status(root) is None
    assert recent_subjects(root) == []
    assert "config has 4 MB, which every command of git would read" in repository_trouble(root)
    assert Workspace(root).read("a.txt") == b"one\n"


def test_no_filter_runs_unless_all_are_known(
    root: Path, evil: Path, ran: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repo, "MAX_CONFIG", 1000)
    settings = "[x]\n" + "a = b\n" * 1000 + f'[filter "x"]\nclean = {evil}\n'
    (root / ".git/more").write_text(settings)
    git(root, "config", "include.path", "more")
    (root / ".gitattributes").write_text("* filter=x\n")
    (root / "a.txt").write_text("changed\n")
    ran.unlink(missing_ok=True)
    with pytest.raises(GitFailedError, match="its configuration is listed as more than"):
        work_tree_changes(root, find_repository(root))
    check(root, ran, lambda: run_git(root, ["status"], programs=True))


def test_what_runs_no_filter_does_not_ask_for_them(
    root: Path, evil: Path, ran: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking takes a process; a file that is called like an option changes nothing."""
    (root / "--cached").write_text("one\n")
    git(root, "add", ".")
    git(root, "config", "filter.x.clean", str(evil))
    git(root, "config", "filter.x.smudge", str(evil))
    (root / ".gitattributes").write_text("* filter=x\n")
    (root / "--cached").write_text("two\n")
    assert "two" in files_diff(root, ["--cached"])
    assert not ran.exists()
    monkeypatch.setattr(repo, "_local_filters", None)
    assert run_git(root, ["diff", "--cached", "--name-only"]) == b"--cached\n"
    blob = run_git(root, ["hash-object", "--no-filters", "-w", "--stdin"], stdin=b"three\n")
    assert run_git(root, ["cat-file", "blob", blob.decode().strip()]) == b"three\n"
    assert not ran.exists()
    git(root, "add", "--renormalize", ".")
    assert ran.exists(), "the program is one that git would run"
