"""Reading and writing: exact bytes, compare-and-swap, what survives a write, what a failure
leaves.
"""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from midstream.workspace import atomic
from midstream.workspace.content import LinkTarget
from midstream.workspace.files import (
    BusyFileError,
    FileTooLargeError,
    MissingFileError,
    NotAFileError,
    OutsideWorkspaceError,
    ReadOnlyFileError,
    StaleFileError,
    StateFolderError,
    Workspace,
    WriteFailedError,
    content_digest,
)
from tests.helpers.property import examples
from tests.helpers.system_calls import between_system_calls


def litter(root: Path) -> list[str]:
    return [path.name for path in root.rglob(".midstream-*")]


@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.binary(max_size=300), st.binary(max_size=300))
def test_any_bytes_are_written_as_they_are(workspace: Workspace, old: bytes, new: bytes) -> None:
    (workspace.root / "f").write_bytes(old)
    digest = workspace.write("f", new, expected=content_digest(old))
    assert (workspace.root / "f").read_bytes() == new == workspace.read("f")
    assert digest == content_digest(new) == workspace.digest("f")
    assert litter(workspace.root) == []


def test_a_new_file_in_new_folders_takes_the_usual_mode(workspace: Workspace) -> None:
    workspace.write("x/y/z.py", b"z\n", expected=None)
    path = workspace.root / "x/y/z.py"
    mask = os.umask(0)
    os.umask(mask)
    assert path.read_bytes() == b"z\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    assert workspace.undo_write() == ["x/y/z.py"]
    assert list(workspace.root.iterdir()) == []


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o664, 0o4755])
def test_the_mode_survives(workspace: Workspace, mode: int) -> None:
    path = workspace.root / "tool"
    path.write_bytes(b"1")
    path.chmod(mode)
    workspace.write("tool", b"2", expected=content_digest(b"1"))
    assert stat.S_IMODE(path.stat().st_mode) == mode
    workspace.undo_write()
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"1", mode)


def test_a_file_that_was_deleted_comes_back_with_its_mode(workspace: Workspace) -> None:
    path = workspace.root / "tool"
    path.write_bytes(b"1")
    path.chmod(0o750)
    workspace.write_all({"tool": None}, {"tool": content_digest(b"1")}, "x")
    assert workspace.undo_write() == ["tool"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o750


def test_execute_permission_follows_read_permission(workspace: Workspace) -> None:
    path = workspace.root / "tool"
    path.write_bytes(b"1")
    path.chmod(0o640)
    workspace.set_executable("tool", True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    workspace.set_executable("tool", False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_to_nothing_is_replaced(workspace: Workspace) -> None:
    path = workspace.root / "link"
    path.symlink_to("nothing")
    expected = {"link": workspace.digest("link")}
    workspace.write_all({"link": LinkTarget(b"nothing else")}, expected, "x")
    assert str(path.readlink()) == "nothing else"


def test_nobody_reads_the_new_bytes_of_a_private_file_meanwhile(workspace: Workspace) -> None:
    path = workspace.root / "key"
    path.write_bytes(b"1")
    path.chmod(0o600)
    modes: set[int] = set()

    def look(_: int) -> None:
        modes.update(entry.stat().st_mode & 0o777 for entry in workspace.root.iterdir())

    with between_system_calls(look):
        workspace.write("key", b"2", expected=content_digest(b"1"))
    assert modes == {0o600}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_survives(workspace: Workspace) -> None:
    path = workspace.root / "f"
    path.write_bytes(b"1")
    os.chown(path, 12_345, 54_321)
    workspace.write("f", b"2", expected=content_digest(b"1"))
    assert (path.stat().st_uid, path.stat().st_gid) == (12_345, 54_321)


def test_what_has_the_name_of_a_temporary_file_is_not_written_to(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = workspace.root.parent / "outside"
    outside.write_bytes(b"theirs")
    (workspace.root / ".midstream-abc.part").symlink_to(outside)
    monkeypatch.setattr("secrets.token_hex", lambda _=0: "abc")
    with pytest.raises(WriteFailedError):
        workspace.write("f", b"ours", expected=None)
    assert outside.read_bytes() == b"theirs"


def test_a_system_that_takes_a_few_bytes_at_a_time_is_given_all(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    workspace.write("f", b"a whole sentence", expected=None)
    assert (workspace.root / "f").read_bytes() == b"a whole sentence"
    assert Workspace(workspace.root).recovery == []


def test_extended_attributes_survive(workspace: Workspace) -> None:
    path = workspace.root / "f"
    path.write_bytes(b"1")
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("no extended attributes on this file system")
    workspace.write("f", b"2", expected=content_digest(b"1"))
    assert os.getxattr(path, "user.note") == b"kept"


def test_an_inside_symlink_is_followed_and_stays(workspace: Workspace) -> None:
    (workspace.root / "d").mkdir()
    (workspace.root / "d/real").write_bytes(b"1")
    (workspace.root / "link").symlink_to("d/real")
    workspace.write("link", b"2", expected=content_digest(b"1"))
    assert (workspace.root / "link").is_symlink()
    assert (workspace.root / "d/real").read_bytes() == b"2"


def test_a_write_over_anything_unexpected_is_refused(workspace: Workspace) -> None:
    path = workspace.root / "f"
    path.write_bytes(b"user")
    with pytest.raises(StaleFileError):
        workspace.write("f", b"ours", expected=content_digest(b"old"))
    with pytest.raises(StaleFileError):
        workspace.write("f", b"ours", expected=None)
    with pytest.raises(StaleFileError):
        workspace.write("missing", b"ours", expected=content_digest(b"old"))
    assert path.read_bytes() == b"user"
    assert not (workspace.root / "missing").exists()
    assert workspace.undo_write() == []


def test_a_save_between_check_and_swap_survives(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user saves after the last check and before the exchange, in each way an editor may."""
    path = workspace.root / "f"
    real_replace = atomic.replace

    def in_place() -> None:
        path.write_bytes(b"user")

    def rename_over() -> None:
        path.with_suffix(".tmp").write_bytes(b"user")
        path.with_suffix(".tmp").replace(path)

    def gone() -> None:
        path.unlink()

    for save, left in ((in_place, b"user"), (rename_over, b"user"), (gone, None)):
        path.write_bytes(b"1")

        def late(swap: str, target: str, expected: str, new: str, save=save) -> None:
            save()
            real_replace(swap, target, expected, new)

        monkeypatch.setattr(atomic, "replace", late)
        with pytest.raises(StaleFileError):
            workspace.write("f", b"ours", expected=content_digest(b"1"))
        assert (path.read_bytes() if path.exists() else None) == left
        assert litter(workspace.root) == []
        assert workspace.log.checkpoints() == []


def test_a_file_open_for_writing_elsewhere_is_not_replaced(workspace: Workspace) -> None:
    path = workspace.root / "f"
    path.write_bytes(b"12345")
    with path.open("r+b") as user:
        with pytest.raises(BusyFileError):
            workspace.write("f", b"ours", expected=content_digest(b"12345"))
        user.write(b"USER")
    assert path.read_bytes() == b"USER5"
    workspace.write("f", b"ours", expected=content_digest(b"USER5"))
    assert path.read_bytes() == b"ours"


def test_a_writer_that_finishes_soon_is_waited_for(workspace: Workspace) -> None:
    path = workspace.root / "f"
    path.write_bytes(b"1")
    user = path.open("r+b")
    threading.Timer(0.03, user.close).start()
    workspace.write("f", b"2", expected=content_digest(b"1"))
    assert path.read_bytes() == b"2"


def test_without_exchange_the_old_file_stays_reachable(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "_renameat2", lambda: None)
    path = workspace.root / "f"
    path.write_bytes(b"1")
    workspace.write("f", b"2", expected=content_digest(b"1"))
    assert path.read_bytes() == b"2"
    real_replace = atomic.replace

    def late(swap: str, target: str, expected: str, new: str) -> None:
        path.write_bytes(b"user")
        real_replace(swap, target, expected, new)

    monkeypatch.setattr(atomic, "replace", late)
    with pytest.raises(StaleFileError):
        workspace.write("f", b"3", expected=content_digest(b"2"))
    assert path.read_bytes() == b"user"
    assert litter(workspace.root) == []


def test_things_that_are_no_files(workspace: Workspace) -> None:
    root = workspace.root
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(root)
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        for name in ("folder", "pipe", "socket", "."):
            with pytest.raises(NotAFileError):
                workspace.read(name)
            with pytest.raises(NotAFileError):
                workspace.write(name, b"x", expected=None)
    with pytest.raises(MissingFileError):
        workspace.read("folder/nothing")
    (root / "plain").write_bytes(b"")
    with pytest.raises(MissingFileError):
        workspace.read("plain/below")
    with pytest.raises(WriteFailedError):
        workspace.write("plain/below", b"x", expected=None)
    assert workspace.digest("nothing") is None


def test_a_device_is_no_file(workspace: Workspace) -> None:
    try:
        os.mknod(workspace.root / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except OSError:
        pytest.skip("only root may make devices")
    with pytest.raises(NotAFileError):
        workspace.read("zero")
    with pytest.raises(NotAFileError):
        workspace.write("zero", b"x", expected=None)


def test_too_large_both_ways(workspace: Workspace) -> None:
    with (workspace.root / "big").open("wb") as file:
        file.truncate(20_000_001)
    with pytest.raises(FileTooLargeError):
        workspace.read("big")
    with pytest.raises(FileTooLargeError):
        workspace.write("new", bytes(20_000_001), expected=None)


def test_read_only_files_are_left_alone(workspace: Workspace) -> None:
    path = workspace.root / "f"
    path.write_bytes(b"1")
    path.chmod(0o444)
    with pytest.raises(ReadOnlyFileError, match="chmod"):
        workspace.write("f", b"2", expected=content_digest(b"1"))
    assert path.read_bytes() == b"1"


def test_a_full_disk_leaves_the_old_bytes(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workspace.root / "f"
    path.write_bytes(b"1")

    def full(descriptor: int) -> None:
        # Midstream's own folder is on another disk.
        if path.parent in Path(f"/proc/self/fd/{descriptor}").readlink().parents:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteFailedError, match="No space left"):
        workspace.write("f", b"2", expected=content_digest(b"1"))
    assert path.read_bytes() == b"1"
    assert litter(workspace.root) == []


def test_a_state_folder_that_cannot_be_used_is_named(root: Path, tmp_path: Path) -> None:
    (tmp_path / "occupied").write_text("a file, not a folder")
    workspace = Workspace(root, state=tmp_path / "occupied")
    with pytest.raises(StateFolderError, match="MIDSTREAM_STATE_DIR"):
        workspace.write("f", b"1", expected=None)
    assert list(root.iterdir()) == []


# -- batches -----------------------------------------------------------------------------------


def test_a_batch_creates_changes_and_deletes(workspace: Workspace) -> None:
    root = workspace.root
    (root / "change").write_bytes(b"1")
    (root / "delete").write_bytes(b"d")
    (root / "delete").chmod(0o755)
    checkpoint = workspace.write_all(
        {"change": b"2", "new/file": b"n", "delete": None, "moved": b"d"},
        {
            "change": content_digest(b"1"),
            "new/file": None,
            "delete": content_digest(b"d"),
            "moved": None,
        },
        "a batch",
        modes_from={"moved": "delete"},
    )
    assert checkpoint.label == "a batch"
    assert sorted(checkpoint.paths) == ["change", "delete", "moved", "new/file"]
    assert (root / "change").read_bytes() == b"2"
    assert (root / "new/file").read_bytes() == b"n"
    assert not (root / "delete").exists()
    assert stat.S_IMODE((root / "moved").stat().st_mode) == 0o755
    assert workspace.undo_write() == ["change", "delete", "moved", "new/file"]
    assert sorted(path.name for path in root.rglob("*")) == ["change", "delete"]
    assert (root / "change").read_bytes() == b"1"
    assert (root / "delete").read_bytes() == b"d"
    assert stat.S_IMODE((root / "delete").stat().st_mode) == 0o755


def test_one_stale_file_stops_the_whole_batch(workspace: Workspace) -> None:
    root = workspace.root
    (root / "a").write_bytes(b"a")
    (root / "b").write_bytes(b"user")
    with pytest.raises(StaleFileError, match="b "):
        workspace.write_all(
            {"a": b"A", "b": b"B", "new/c": b"C"},
            {"a": content_digest(b"a"), "b": content_digest(b"b"), "new/c": None},
            "x",
        )
    assert {path.name: path.read_bytes() for path in root.iterdir()} == {"a": b"a", "b": b"user"}


@pytest.mark.parametrize("failing", [0, 1, 2, 3])
def test_a_failure_in_the_middle_rolls_everything_back(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    root = workspace.root
    before = {"a": b"a", "b": b"b", "gone": b"g"}
    for name, data in before.items():
        (root / name).write_bytes(data)
    done: list[str] = []
    for name in ("replace", "create", "remove"):
        real = getattr(atomic, name)

        def failing_step(swap: str, target: str, *rest: str, real=real) -> None:
            if len(done) == failing:
                done.append("failed")
                raise OSError(5, "Input/output error")
            done.append(target)
            real(swap, target, *rest)

        monkeypatch.setattr(atomic, name, failing_step)
    with pytest.raises(WriteFailedError):
        workspace.write_all(
            {"a": b"A", "dir/new": b"n", "gone": None, "b": b"B"},
            {
                "a": content_digest(b"a"),
                "dir/new": None,
                "gone": content_digest(b"g"),
                "b": content_digest(b"b"),
            },
            "x",
        )
    assert {path.name: path.read_bytes() for path in root.iterdir()} == before
    assert workspace.log.checkpoints() == []
    assert workspace.undo_write() == []


@pytest.mark.parametrize("again", [False, True])
def test_what_cannot_be_taken_back_now_is_taken_back_later(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """By the next session, or before the next write of this one."""
    root, real, done = workspace.root, atomic.replace, list[str]()
    before = {"a": b"a", "b": b"b"}
    for name, data in before.items():
        (root / name).write_bytes(data)

    def only_once(swap: str, target: str, expected: str, new: str) -> None:
        if done:
            raise OSError(5, "Input/output error")
        done.append(target)
        real(swap, target, expected, new)

    digests = {name: content_digest(data) for name, data in before.items()}
    with monkeypatch.context() as set_:
        set_.setattr(atomic, "replace", only_once)
        with pytest.raises(WriteFailedError):
            workspace.write_all({"a": b"A", "b": b"B"}, digests, "x")
    assert (root / "a").read_bytes() == b"A"
    if again:
        assert Workspace(root).recovery == []
    else:
        before["b"] = b"next"
        workspace.write("b", b"next", expected=digests["b"])
    assert {path.name: path.read_bytes() for path in root.iterdir()} == before


def test_a_roll_back_keeps_what_the_user_saved_meanwhile(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = workspace.root
    (root / "a").write_bytes(b"a")

    def fails(*_: str) -> None:
        (root / "a").write_bytes(b"user on top of ours")
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(atomic, "create", fails)
    with pytest.raises(WriteFailedError):
        workspace.write_all({"a": b"A", "n": b"n"}, {"a": content_digest(b"a"), "n": None}, "x")
    assert (root / "a").read_bytes() == b"user on top of ours"
    (kept,) = workspace.log.checkpoints()
    assert workspace.log.load(kept.id)[0].before == b"a"


def test_one_file_named_twice_is_refused(workspace: Workspace) -> None:
    (workspace.root / "real").write_bytes(b"1")
    (workspace.root / "link").symlink_to("real")
    with pytest.raises(OutsideWorkspaceError, match="same file"):
        workspace.write_all({"real": b"2", "link": b"3"}, {"real": None, "link": None}, "x")


def test_a_batch_that_changes_nothing_leaves_no_checkpoint(workspace: Workspace) -> None:
    (workspace.root / "f").write_bytes(b"1")
    inode = (workspace.root / "f").stat().st_ino
    assert workspace.write_all({"f": b"1"}, {"f": content_digest(b"1")}, "same").id == ""
    assert (workspace.root / "f").stat().st_ino == inode
    assert workspace.undo_write() == []


# -- undo --------------------------------------------------------------------------------------


def test_undo_goes_back_step_by_step(workspace: Workspace) -> None:
    path = workspace.root / "f"
    path.write_bytes(b"0")
    for old, new in ((b"0", b"1"), (b"1", b"2"), (b"2", b"3")):
        workspace.write("f", new, expected=content_digest(old))
    for left in (b"2", b"1", b"0"):
        assert workspace.undo_write() == ["f"]
        assert path.read_bytes() == left
    assert workspace.undo_write() == []


def test_undo_never_overwrites_the_user(workspace: Workspace) -> None:
    path = workspace.root / "f"
    path.write_bytes(b"0")
    (workspace.root / "g").write_bytes(b"0")
    workspace.write_all({"f": b"1", "g": b"1"}, dict.fromkeys("fg", content_digest(b"0")), "x")
    path.write_bytes(b"user")
    with pytest.raises(StaleFileError):
        workspace.undo_write()
    assert path.read_bytes() == b"user"
    assert (workspace.root / "g").read_bytes() == b"1"
    path.write_bytes(b"0")
    assert workspace.undo_write() == ["f", "g"]
    assert (workspace.root / "g").read_bytes() == b"0"


def test_a_hard_link_outside_keeps_its_content_and_mode(workspace: Workspace) -> None:
    outside = workspace.root.parent / "outside"
    outside.write_bytes(b"1")
    os.link(outside, workspace.root / "f")
    with pytest.raises(WriteFailedError, match="more than one name"):
        workspace.set_executable("f", True)
    assert not outside.stat().st_mode & 0o111
    workspace.write("f", b"2", expected=content_digest(b"1"))
    assert outside.read_bytes() == b"1"
    assert (workspace.root / "f").read_bytes() == b"2"


def test_a_refused_lease_on_a_network_file_system_says_nothing(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS refuses leases when it holds no delegation; that must not block every write."""
    (workspace.root / "f").write_bytes(b"1")
    monkeypatch.setattr(atomic, "_lease_devices", {})
    monkeypatch.setattr(atomic, "filesystem_of", lambda _: "nfs4")
    with (workspace.root / "f").open("r+b"):
        workspace.write("f", b"2", expected=content_digest(b"1"))
    assert (workspace.root / "f").read_bytes() == b"2"
