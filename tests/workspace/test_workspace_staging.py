"""Staging takes the accepted change and nothing else; commits run as git's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from midstream.workspace.errors import GitError
from midstream.workspace.repo import recent_subjects
from midstream.workspace.staging import (
    AcceptedChange,
    IndexState,
    commit_staged,
    compare_changes,
    stage_changes,
)
from tests.helpers.repositories import git


def staged(folder: Path, path: str) -> bytes:
    return git(folder, "show", f":{path}").encode()


def staged_paths(folder: Path) -> list[str]:
    return sorted(filter(None, git(folder, "diff", "--cached", "--name-only", "-z").split("\0")))


LINES = [f"line {n}\n".encode() for n in range(12)]
BEFORE = b"".join(LINES)


def with_line(content: bytes, number: int, text: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    lines[number] = text + b"\n"
    return b"".join(lines)


@pytest.fixture
def long_file(repository: Path) -> Path:
    (repository / "src/long.py").write_bytes(BEFORE)
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "long")
    return repository


async def test_a_change_is_staged_and_the_work_tree_left_alone(long_file: Path) -> None:
    after = with_line(BEFORE, 3, b"accepted")
    (long_file / "src/long.py").write_bytes(b"something else entirely\n")
    (long_file / "a.py").write_bytes(b"other edit\n")
    stage_changes(long_file, [AcceptedChange("src/long.py", BEFORE, after)])
    assert staged(long_file, "src/long.py") == after
    assert staged_paths(long_file) == ["src/long.py"]
    assert (long_file / "src/long.py").read_bytes() == b"something else entirely\n"


async def test_unstaged_edits_of_the_user_stay_out(long_file: Path) -> None:
    user = with_line(BEFORE, 10, b"user, not staged")
    after = with_line(user, 1, b"accepted")
    stage_changes(long_file / "src", [AcceptedChange("long.py", user, after)])
    assert staged(long_file, "src/long.py") == with_line(BEFORE, 1, b"accepted")


async def test_staged_edits_of_the_user_stay_in(long_file: Path) -> None:
    user = with_line(BEFORE, 10, b"user, staged")
    (long_file / "src/long.py").write_bytes(user)
    git(long_file, "add", ".")
    stage_changes(
        long_file, [AcceptedChange("src/long.py", BEFORE, with_line(BEFORE, 1, b"accepted"))]
    )
    assert staged(long_file, "src/long.py") == with_line(user, 1, b"accepted")


@pytest.mark.parametrize(("mark", "tag"), [("--skip-worktree", "S"), ("--assume-unchanged", "h")])
async def test_what_git_was_told_to_pass_over_stays_so(
    long_file: Path, mark: str, tag: str
) -> None:
    git(long_file, "update-index", mark, "src/long.py")
    after = with_line(BEFORE, 3, b"accepted")
    stage_changes(long_file, [AcceptedChange("src/long.py", BEFORE, after)])
    assert staged(long_file, "src/long.py") == after
    assert git(long_file, "ls-files", "-v", "src/long.py") == f"{tag} src/long.py\n"


async def test_a_conflict_stages_nothing(long_file: Path) -> None:
    (long_file / "src/long.py").write_bytes(with_line(BEFORE, 1, b"user"))
    git(long_file, "add", ".")
    index = (long_file / ".git/index").read_bytes()
    changes = [
        AcceptedChange("a.py", b"a = 1\n", b"a = 2\n"),
        AcceptedChange("src/long.py", BEFORE, with_line(BEFORE, 1, b"accepted")),
    ]
    with pytest.raises(GitError, match="git add -p"):
        stage_changes(long_file, changes)
    with pytest.raises(GitError, match="git add -p"):
        stage_changes(long_file, [AcceptedChange("src/long.py", BEFORE, None)])
    assert (long_file / ".git/index").read_bytes() == index


@pytest.mark.parametrize("accepted", [b"accepted", b""])
async def test_what_another_program_has_committed_with_other_lines_is_no_conflict(
    long_file: Path, accepted: bytes
) -> None:
    after = BEFORE.replace(BEFORE.splitlines(keepends=True)[1], accepted + b"\n" * bool(accepted))
    (long_file / "src/long.py").write_bytes(with_line(after, 2, b"theirs"))
    git(long_file, "commit", "-qam", "theirs")
    change = AcceptedChange("src/long.py", BEFORE, after)
    (place,) = compare_changes(long_file, [change]).files
    assert (place.state, place.commit) == ("committed", None)
    (long_file / "src/long.py").write_bytes(with_line(BEFORE, 2, b"another"))
    git(long_file, "commit", "-qam", "another")
    (place,) = compare_changes(long_file, [change]).files
    assert place.state == "conflict"


@pytest.mark.parametrize("own", [b"one\nmine\n", b"two\none\n", b""])
async def test_a_new_file_does_not_replace_what_the_user_staged(
    repository: Path, own: bytes
) -> None:
    """The user may have staged other lines, another order, or a link."""
    path = repository / "new.py"
    path.write_bytes(own) if own else path.symlink_to("a.py")
    git(repository, "add", "new.py")
    index = (repository / ".git/index").read_bytes()
    with pytest.raises(GitError, match="git add -p"):
        stage_changes(repository, [AcceptedChange("new.py", None, b"one\ntwo\n")])
    assert (repository / ".git/index").read_bytes() == index


async def test_a_new_file_replaces_an_earlier_form_of_it(repository: Path) -> None:
    (repository / "new.py").write_bytes(b"one\n")
    git(repository, "add", "new.py")
    stage_changes(repository, [AcceptedChange("new.py", None, b"zero\none\ntwo\n")])
    assert staged(repository, "new.py") == b"zero\none\ntwo\n"


async def test_a_moved_file_whose_lines_were_changed_since_is_staged(repository: Path) -> None:
    git(repository, "mv", "a.py", "moved.py")
    stage_changes(repository, [AcceptedChange("moved.py", None, b"a = 2\n")])
    assert staged(repository, "moved.py") == b"a = 2\n"


async def test_new_deleted_and_executable_files(repository: Path) -> None:
    (repository / "tool").write_bytes(b"#!\n")
    (repository / "tool").chmod(0o755)
    odd = 'x "é\n[a-z]*.py'
    changes = [
        AcceptedChange("tool", None, b"#!\n"),
        AcceptedChange("a.py", b"a = 1\n", None),
        AcceptedChange("never-there", b"x", None),
        AcceptedChange(odd, None, b"odd"),
    ]
    stage_changes(repository, changes)
    assert staged_paths(repository) == ["a.py", "tool", odd]
    assert git(repository, "ls-files", "-s", "tool").startswith("100755 ")
    assert staged(repository, odd) == b"odd"


async def test_line_ending_filters_apply(repository: Path) -> None:
    (repository / ".gitattributes").write_text("*.py text eol=crlf\n")
    stage_changes(repository, [AcceptedChange("a.py", b"a = 1\r\n", b"a = 2\r\n")])
    blob = git(repository, "ls-files", "-s", "a.py").split()[1]
    assert git(repository, "cat-file", "blob", blob) == "a = 2\n"


async def test_a_sha256_repository(root: Path) -> None:
    git(root, "init", "-q", "--object-format=sha256")
    stage_changes(root, [AcceptedChange("f", None, b"1\n")])
    stage_changes(root, [AcceptedChange("f", b"1\n", None)])
    assert staged_paths(root) == []


async def test_a_locked_index_is_waited_for_and_then_named(repository: Path) -> None:
    (repository / ".git/index.lock").write_bytes(b"")
    with pytest.raises(GitError, match=r"index\.lock"):
        stage_changes(repository, [AcceptedChange("a.py", b"a = 1\n", b"a = 2\n")])


async def test_outside_a_repository(root: Path) -> None:
    with pytest.raises(GitError, match="git init"):
        stage_changes(root, [AcceptedChange("f", None, b"x")])
    with pytest.raises(GitError):
        commit_staged(root, "x")


async def test_a_filter_that_is_not_installed_is_named(repository: Path) -> None:
    (repository / ".gitattributes").write_text("*.bin filter=big\n")
    git(repository, "config", "filter.big.process", "no-such-filter process")
    git(repository, "config", "filter.big.required", "true")
    with pytest.raises(GitError, match="no-such-filter: not found; "):
        stage_changes(repository, [AcceptedChange("a.bin", None, b"x")])


def test_to_compare_runs_nothing_that_the_repository_names(
    repository: Path, evil: Path, ran: Path
) -> None:
    """The staged content of a filtered file is known after staging, which runs the filter."""
    git(repository, "config", "filter.own.clean", str(evil))
    (repository / ".gitattributes").write_text("a.py filter=own diff=own\n")
    for name in ("core.fsmonitor", "diff.external", "diff.own.command", "diff.own.textconv"):
        git(repository, "config", name, str(evil))
    before, after = b"a = 1\n", b"a = 2\n"
    (repository / "a.py").write_bytes(after)
    change = AcceptedChange("a.py", before, after)

    def state(change: AcceptedChange) -> str:
        ran.unlink(missing_ok=True)
        compare_changes(repository, [change], amend=True)
        (place,) = compare_changes(repository, [change]).files
        assert not ran.exists()
        return place.state

    assert state(change) == IndexState.UNSTAGED
    (done,) = stage_changes(repository, [change])
    assert ran.exists()
    assert git(repository, "cat-file", "blob", ":a.py").encode() == after
    change = AcceptedChange("a.py", before, after, parts=((done.after, after),))
    assert state(change) == IndexState.STAGED
    git(repository, "config", "--unset", "core.fsmonitor")  # The monitor would consume the message.
    commit_staged(repository, "Two")
    assert state(change) == IndexState.COMMITTED


async def test_a_message_is_committed_as_it_was_typed(repository: Path) -> None:
    """Settings for the clean-up of comments in an editor do not matter."""
    git(repository, "config", "commit.cleanup", "strip")
    git(repository, "config", "i18n.commitEncoding", "latin1")
    stage_changes(repository, [AcceptedChange("new.py", None, b"x = 1\n")])
    commit_staged(repository, "#12 Prüfe €\n\n# Why\nfor X\n")
    log = git(repository, "log", "-1", "--encoding=UTF-8", "--format=%B")
    assert log.strip() == "#12 Prüfe €\n\n# Why\nfor X"


@pytest.mark.parametrize("name", ["LITERAL", "GLOB", "NOGLOB", "ICASE"])
async def test_paths_mean_what_they_say_whatever_the_environment_asks_for(
    repository: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(f"GIT_{name}_PATHSPECS", "1")
    stage_changes(repository, [AcceptedChange("[n]ew*.py", None, b"x = 1\n")])
    commit_staged(repository, "Add it")
    monkeypatch.undo()
    assert git(repository, "show", "HEAD:[n]ew*.py") == "x = 1\n"


async def test_commit_takes_what_is_staged_only(repository: Path) -> None:
    (repository / "src/b.py").write_text("not staged\n")
    stage_changes(repository, [AcceptedChange("a.py", b"a = 1\n", b"a = 2\n")])
    commit = commit_staged(repository, "Change a\n\n# a line that looks like a comment\n")
    assert commit == git(repository, "rev-parse", "HEAD").strip()
    assert git(repository, "show", "--name-only", "--format=%B").split("\n")[:3] == [
        "Change a",
        "",
        "# a line that looks like a comment",
    ]
    assert staged_paths(repository) == []
    with pytest.raises(GitError, match="Nothing is staged"):
        commit_staged(repository, "again")
    with pytest.raises(GitError, match="message"):
        commit_staged(repository, " \n")


async def test_a_hook_that_refuses_is_quoted_without_its_escape_codes(repository: Path) -> None:
    hook = repository / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nprintf 'not \\033[31mtoday\\n' >&2; exit 1\n")
    hook.chmod(0o755)
    head = git(repository, "rev-parse", "HEAD")
    stage_changes(repository, [AcceptedChange("a.py", b"a = 1\n", b"a = 2\n")])
    with pytest.raises(GitError, match="today") as caught:
        commit_staged(repository, "x")
    assert "\x1b" not in str(caught.value)
    assert git(repository, "rev-parse", "HEAD") == head


def test_a_commit_that_git_made_before_it_was_killed_is_one(repository: Path) -> None:
    """The kernel may kill git for its memory; here the hook kills git, its parent."""
    hook = repository / ".git/hooks/post-commit"
    hook.write_text("#!/bin/sh\nkill -9 $PPID\n")
    hook.chmod(0o755)
    (repository / "a.py").write_text("a = 2\n")
    stage_changes(repository, [AcceptedChange("a.py", b"a = 1\n", b"a = 2\n")])
    before = git(repository, "rev-parse", "HEAD")
    commit = commit_staged(repository, "second")
    assert commit != before.strip()
    assert git(repository, "rev-parse", "HEAD").strip() == commit


async def test_a_hook_that_wants_a_terminal_ends_with_the_way_out(repository: Path) -> None:
    hook = repository / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nread answer < /dev/tty\n")
    hook.chmod(0o755)
    stage_changes(repository, [AcceptedChange("new.py", None, b"x = 1\n")])
    with pytest.raises(GitError, match=r"/dev/tty.*run git commit in a terminal"):
        commit_staged(repository, "No")
    assert staged_paths(repository) == ["new.py"]


async def test_a_signing_program_finds_no_terminal(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not find the terminal that the environment names, either."""
    ours, theirs = os.openpty()
    monkeypatch.setenv("GPG_TTY", os.ttyname(theirs))
    signs = tmp_path / "signs"
    signs.write_text('#!/bin/sh\necho "Passphrase:" > "${GPG_TTY:-/dev/tty}"; exit 2\n')
    signs.chmod(0o755)
    git(repository, "config", "gpg.program", str(signs))
    git(repository, "config", "commit.gpgsign", "true")
    stage_changes(repository, [AcceptedChange("new.py", None, b"x = 1\n")])
    with pytest.raises(GitError, match=r"failed to sign.*run git commit in a terminal"):
        commit_staged(repository, "No")
    os.set_blocking(ours, False)
    with pytest.raises(BlockingIOError):
        os.read(ours, 1)
    os.close(ours)
    os.close(theirs)


async def test_a_missing_author_is_explained(repository: Path) -> None:
    git(repository, "config", "--unset", "user.name")
    git(repository, "config", "--unset", "user.email")
    git(repository, "config", "user.useConfigOnly", "true")
    stage_changes(repository, [AcceptedChange("a.py", b"a = 1\n", b"a = 2\n")])
    with pytest.raises(GitError, match=r"user\.name"):
        commit_staged(repository, "x")


async def test_recent_subjects(repository: Path, tmp_path: Path) -> None:
    git(repository, "switch", "-qc", "side")
    (repository / "side.py").write_text("s = 1\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "second: a body follows\n\nThis is it.")
    git(repository, "switch", "-q", "-")
    git(repository, "merge", "-q", "--no-ff", "-m", "merge of side", "side")
    # Both were made within one second, so their order is git's.
    assert sorted(recent_subjects(repository)) == ["first", "second: a body follows"]
    assert len(recent_subjects(repository / "src", limit=1)) == 1
    plain = tmp_path / "plain"
    plain.mkdir()
    assert recent_subjects(plain) == []
    git(plain, "init", "-q")
    assert recent_subjects(plain) == []


def test_recent_subjects_without_git(repository: Path, tmp_path: Path) -> None:
    program = (
        "import pathlib, sys\n"
        "from midstream.workspace.repo import recent_subjects\n"
        "print(recent_subjects(pathlib.Path(sys.argv[1])))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(repository)],
        env={"PATH": str(tmp_path / "nowhere")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_a_repository_of_another_user_is_named_with_the_way_out(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    change = AcceptedChange("a.py", b"a = 1\n", b"a = 2\n")
    trouble = compare_changes(repository, [change]).trouble
    assert "belongs to another user" in trouble
    assert "git config --global --add safe.directory" in trouble
