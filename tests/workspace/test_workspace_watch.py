"""The watcher with real files and the ways editors save them."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from watchfiles import Change

from midstream.workspace import watch
from midstream.workspace import watch as module
from midstream.workspace.atomic import filesystem_of, is_shared
from midstream.workspace.files import Workspace, content_digest
from midstream.workspace.repo import find_repository
from midstream.workspace.watch import REPO_CHANGED, Inspector, Watcher
from tests.helpers.repositories import git
from tests.helpers.waiting import PATIENCE_S

QUIET_S = 0.3


class Log:
    """Collects the reports of a watcher."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self.batches: list[tuple[float, frozenset[str]]] = []
        self.ended = False

    async def run(self) -> None:
        async for batch in self.watcher.changes():
            self.batches.append((time.monotonic(), batch))
        self.ended = True

    def seen(self) -> set[str]:
        return {path for _, batch in self.batches for path in batch}

    def count(self, path: str) -> int:
        return sum(path in batch for _, batch in self.batches)

    async def until(self, *paths: str) -> set[str]:
        await eventually(lambda: set(paths) <= self.seen())
        return self.seen()

    async def quiet(self) -> set[str]:
        """Wait until nothing has come for a while, then say what came since the last call."""
        size = -1
        while size != len(self.batches):
            size = len(self.batches)
            await asyncio.sleep(QUIET_S)
        seen = self.seen()
        self.batches.clear()
        return seen


async def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        await asyncio.sleep(0.005)


@asynccontextmanager
async def watching(workspace: Workspace) -> AsyncIterator[Log]:
    log = Log(Watcher(workspace))
    task = asyncio.create_task(log.run())
    await eventually(lambda: not log.watcher.mode.startswith("off") or log.ended)
    try:
        yield log
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def in_place(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def truncate_then_write(path: Path, data: bytes) -> None:
    with path.open("wb", buffering=0) as file:
        for at in range(0, len(data), 1 + len(data) // 3):
            time.sleep(0.02)
            file.write(data[at : at + 1 + len(data) // 3])


def rename_over(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.tmp123")
    temporary.write_bytes(data)
    temporary.replace(path)


def sed(path: Path, data: bytes) -> None:
    path.with_name("program").write_bytes(b"")
    path.with_name("program").unlink()
    subprocess.run(
        ["sed", "-i", f"1c {data.decode().strip()}", path.name], cwd=path.parent, check=True
    )


def vim(path: Path, data: bytes) -> None:
    probe = path.with_name("4913")
    probe.write_bytes(b"")
    probe.unlink()
    backup = path.with_name(f"{path.name}~")
    path.rename(backup)
    path.write_bytes(data)
    time.sleep(0.01)
    backup.unlink()


def jetbrains(path: Path, data: bytes) -> None:
    new, old = (path.with_name(f"{path.name}___jb_{part}___") for part in ("tmp", "old"))
    new.write_bytes(data)
    path.rename(old)
    new.rename(path)
    old.unlink()


def emacs(path: Path, data: bytes) -> None:
    lock = path.with_name(f".#{path.name}")
    lock.symlink_to("ann@host.1:1")
    shutil.copy2(path, path.with_name(f"{path.name}~"))
    path.write_bytes(data)
    lock.unlink()


SAVES = [in_place, truncate_then_write, rename_over, sed, vim, jetbrains, emacs]


@pytest.mark.parametrize("folder", ["", "src/deep/"])
@pytest.mark.parametrize("save", SAVES)
async def test_every_way_to_save_is_reported_once_and_complete(
    workspace: Workspace, save: Callable[[Path, bytes], None], folder: str
) -> None:
    path = workspace.root / folder / "f.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"old content\n")
    workspace.read(f"{folder}f.py")
    async with watching(workspace) as log:
        await asyncio.to_thread(save, path, b"new content\n")
        await log.until(f"{folder}f.py")
        assert workspace.digest(f"{folder}f.py") == content_digest(b"new content\n")
        batches = log.count(f"{folder}f.py")
        seen = await log.quiet()
        assert batches == 1
        # Editors' own files may flash up, but not the well-known ones.
        assert {name for name in seen if not name.startswith(f"{folder}.f.py")} == {f"{folder}f.py"}
        assert log.watcher.mode == "native"
        await asyncio.to_thread(save, path, b"and again\n")
        await log.until(f"{folder}f.py")


def test_a_file_of_ours_that_is_made_during_a_look_is_no_news(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: set[str] = set()
    inspector = Inspector(workspace, None, told.update)
    (workspace.root / "new").mkdir()
    files_below = inspector._files_below

    def written_meanwhile(rel: str) -> Iterator[str]:
        workspace.write("new/ours", b"n", expected=None)
        (workspace.root / "new/theirs").write_bytes(b"t")
        return files_below(rel)

    monkeypatch.setattr(inspector, "_files_below", written_meanwhile)
    inspector.handle([(Change.added, str(workspace.root / "new"))])
    assert told == {"new", "new/theirs"}


async def test_own_writes_are_left_out_and_the_users_are_not(workspace: Workspace) -> None:
    path = workspace.root / "f"
    path.write_bytes(b"0")
    workspace.read("f")
    async with watching(workspace) as log:
        digest = content_digest(b"0")
        for number in range(10):
            digest = await asyncio.to_thread(
                workspace.write, "f", b"ours %d" % number, expected=digest
            )
        await asyncio.to_thread(workspace.write, "new/g", b"n", expected=None)
        await asyncio.to_thread(workspace.undo_write)
        # The watcher no longer follows a file that was taken back, so it may report its end.
        assert await log.quiet() <= {"new", "new/g"}
        path.write_bytes(b"user")
        await log.until("f")
        # Back to exactly our bytes, but by the user.
        log.batches.clear()
        path.write_bytes(b"ours 9")
        await log.until("f")


async def test_touch_chmod_and_reading_are_no_news(workspace: Workspace) -> None:
    path = workspace.root / "f"
    path.write_bytes(b"0")
    workspace.read("f")
    async with watching(workspace) as log:
        path.touch()
        path.chmod(0o600)
        path.read_bytes()
        path.write_bytes(b"0")
        assert await log.quiet() == set()


async def test_a_half_written_file_is_never_shown(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest at the moment of the report is that of a finished save, however slow the
    writer.
    """
    monkeypatch.setattr(watch, "SETTLE_S", 1.0)  # The machine may be slow, too.
    path = workspace.root / "f"
    old, new = b"o" * 10_000, b"n" * 10_000
    path.write_bytes(old)
    workspace.read("f")
    seen: list[str | None] = []

    def slow() -> None:
        with path.open("wb", buffering=0) as file:
            for _ in range(5):
                file.write(new[:2000])
                time.sleep(0.012)

    async with watching(workspace) as log:
        writer = threading.Thread(target=slow)
        writer.start()
        await log.until("f")
        seen.append(workspace.digest("f"))
        writer.join()
        await log.quiet()
    assert seen == [content_digest(new)]


async def test_deleting_and_moving_folders_concerns_the_files_below(workspace: Workspace) -> None:
    for name in ("a/b/f", "a/g", "c/h"):
        (workspace.root / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace.root / name).write_bytes(b"1")
        workspace.read(name)
    async with watching(workspace) as log:
        shutil.rmtree(workspace.root / "a/b")
        await log.until("a/b/f")
        (workspace.root / "c").rename(workspace.root / "d")
        await log.until("c/h", "d/h")
        log.batches.clear()
        # The folder that appeared is watched too.
        (workspace.root / "d/new").write_bytes(b"x")
        await log.until("d/new")


async def test_ignored_paths_are_silent_unless_open(repository: Path) -> None:
    (repository / "build/deep").mkdir(parents=True)
    (repository / "node_modules").mkdir()
    (repository / "src/build").mkdir()
    (repository / "src/open.log").write_bytes(b"1")
    (repository / "build/open.txt").write_bytes(b"1")
    workspace = Workspace(repository)
    workspace.read("src/open.log")
    workspace.read("build/open.txt")
    async with watching(workspace) as log:
        for name in ("build/x", "build/deep/x", "src/build/x", "src/x.log", "node_modules/x"):
            (repository / name).write_bytes(b"1")
        (repository / "src/open.log").write_bytes(b"2")
        (repository / "build/open.txt").write_bytes(b"2")
        (repository / "src/seen").write_bytes(b"2")
        # An open file in an ignored folder has no events; the slow poll finds it.
        await log.until("build/open.txt")
        assert await log.quiet() == {"src/open.log", "src/seen", "build/open.txt"}
        (repository / ".gitignore").write_text("src/\n")
        await log.until(".gitignore")
        await log.quiet()
        (repository / "src/now-hidden").write_bytes(b"1")
        (repository / "build/now-seen").write_bytes(b"1")
        await log.until("build/now-seen")
        assert "src/now-hidden" not in log.seen()


def test_files_that_git_knows_and_rules_that_hide_themselves_are_news(repository: Path) -> None:
    """A tracked file may have the name of an editor's backup, and an ignore file ignore itself."""
    for name in ("src/kept~", "src/new~", "src/.gitignore", ".gitignore", "gen/.gitignore"):
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_text("*\n")
        if name == "src/kept~":
            git(repository, "add", "-f", name)
    told: set[str] = set()
    inspector = Inspector(Workspace(repository), find_repository(repository), told.update)
    inspector.handle(
        (Change.added, str(repository / name))
        for name in ("src/kept~", "src/new~", "src/.gitignore", ".gitignore", "gen/.gitignore")
    )
    assert told - {REPO_CHANGED} == {"src/kept~", "src/.gitignore", ".gitignore"}


async def test_commits_checkouts_and_staging_are_reported_apart(repository: Path) -> None:
    workspace = Workspace(repository / "src")
    async with watching(workspace) as log:
        for command in (
            ("commit", "--allow-empty", "-qm", "second"),
            ("checkout", "-qb", "feature/deep/branch"),
            ("commit", "--allow-empty", "-qm", "third"),
            ("reset", "-q", "--soft", "HEAD~1"),
            ("checkout", "-q", "--detach"),
        ):
            log.batches.clear()
            git(repository, *command)
            await log.until(REPO_CHANGED)
            await log.quiet()
        (repository / "a.py").write_text("staged\n")
        git(repository, "add", "a.py")
        await log.until(REPO_CHANGED)
        await log.quiet()
        git(repository, "status")
        (repository / ".git/COMMIT_EDITMSG").write_text("x")
        digest = await asyncio.to_thread(workspace.digest, "b.py")
        await asyncio.to_thread(workspace.write, "b.py", b"ours", expected=digest)
        assert await log.quiet() == set()


async def test_a_repository_made_later_is_noticed(workspace: Workspace) -> None:
    async with watching(workspace) as log:
        # The folder exists for a moment before it is a repository.
        (workspace.root / ".git").mkdir()
        await asyncio.sleep(0.1)
        git(workspace.root, "init", "-q")
        await log.until(REPO_CHANGED)
        await log.quiet()
        git(workspace.root, "commit", "--allow-empty", "-qm", "x")
        await log.until(REPO_CHANGED)


async def test_new_names_of_a_file_reach_its_one_name(workspace: Workspace) -> None:
    root = workspace.root
    (root / "real").mkdir()
    (root / "real/f").write_bytes(b"1")
    (root / "alias").symlink_to("real")
    assert workspace.read("alias/f") == b"1"
    async with watching(workspace) as log:
        (root / "alias/f").write_bytes(b"2")
        assert "real/f" in await log.until("real/f")
        assert not any(name.startswith("alias") for name in await log.quiet())


async def test_many_files_at_once_all_arrive(workspace: Workspace) -> None:
    (workspace.root / "d").mkdir()
    async with watching(workspace) as log:
        names = {f"d/f{number}" for number in range(1500)}
        for name in names:
            (workspace.root / name).write_bytes(b"1")
        await log.until(*names)
        assert len(log.batches) < 100


async def test_the_end_of_the_root_ends_the_watch(workspace: Workspace) -> None:
    (workspace.root / "f").write_bytes(b"1")
    workspace.read("f")
    async with watching(workspace) as log:
        shutil.rmtree(workspace.root)
        await eventually(lambda: log.ended)
        assert "f" in log.seen()
        assert log.watcher.mode == "off: the folder is gone"


@pytest.mark.parametrize(
    ("failure", "word"),
    [
        (OSError('OS file watch limit reached. about ["/x"]'), "max_user_watches"),
        (OSError("Too many open files (os error 24)"), "max_user_instances"),
        (RuntimeError("something else"), "something else"),
    ],
)
async def test_without_events_open_files_are_polled_and_the_reason_is_shown(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, failure: Exception, word: str
) -> None:
    def refuse(*_: object) -> None:
        raise failure

    monkeypatch.setattr("watchfiles._rust_notify.RustNotify", refuse)
    monkeypatch.setattr(module, "CHECK_S", 0.05)
    monkeypatch.setattr(module, "POLL_S", 0.05)
    (workspace.root / "f").write_bytes(b"1")
    workspace.read("f")
    async with watching(workspace) as log:
        await eventually(lambda: log.watcher.mode.startswith("polling: "))
        assert word in log.watcher.mode
        (workspace.root / "f").write_bytes(b"2")
        await log.until("f")
        log.batches.clear()
        (workspace.root / "f").unlink()
        await log.until("f")


async def test_a_library_that_cannot_be_loaded_is_told_too(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles._rust_notify", None)
    async with watching(workspace) as log:
        await eventually(lambda: log.watcher.mode.startswith("polling: "))
        assert "watchfiles" in log.watcher.mode


async def test_forced_polling(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "1")
    monkeypatch.setattr(module, "POLL_S", 0.05)
    (workspace.root / "f").write_bytes(b"1")
    workspace.read("f")
    async with watching(workspace) as log:
        assert log.watcher.mode == "polling: WATCHFILES_FORCE_POLLING is set"
        rename_over(workspace.root / "f", b"2")
        await log.until("f")


async def test_a_watch_that_ends_leaves_no_thread(workspace: Workspace) -> None:
    before = threading.active_count()
    async with watching(workspace):
        assert threading.active_count() > before
    await eventually(lambda: threading.active_count() <= before)


async def test_two_workspaces_see_each_others_writes(workspace: Workspace) -> None:
    (workspace.root / "f").write_bytes(b"1")
    workspace.read("f")
    other = Workspace(workspace.root)
    async with watching(workspace) as log:
        await asyncio.to_thread(other.write, "f", b"2", expected=content_digest(b"1"))
        assert await log.until("f") == {"f"}
        assert not list(workspace.root.glob(".midstream*"))


async def test_a_file_read_in_passing_is_not_followed(repository: Path) -> None:
    (repository / "src/x.log").write_bytes(b"1")
    workspace = Workspace(repository)
    assert workspace.peek("src/x.log") == b"1"
    async with watching(workspace) as log:
        (repository / "src/x.log").write_bytes(b"2")
        (repository / "src/b.py").write_bytes(b"2")
        await log.until("src/b.py")
        assert await log.quiet() == {"src/b.py"}


async def test_a_network_file_system_is_polled_too(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "filesystem_of", lambda _: "nfs4")
    async with watching(workspace) as log:
        assert log.watcher.mode == (
            "polling: the folder is on nfs4, which does not report changes made elsewhere"
        )


def test_the_file_system_of_a_path() -> None:
    assert filesystem_of("/proc/self") == "proc"
    assert filesystem_of("/") != ""
    assert not is_shared(filesystem_of("/proc"))
    assert is_shared("fuse.sshfs")
    assert not is_shared("fuseblk")


async def test_a_save_is_told_though_the_file_is_first_read_right_after_it(
    workspace: Workspace,
) -> None:
    path = workspace.root / "f"
    path.write_bytes(b"old\n")
    async with watching(workspace) as log:
        await log.quiet()
        path.write_bytes(b"saved\n")
        assert workspace.read("f") == b"saved\n"  # before the watcher has heard of it
        await log.until("f")
        assert await log.quiet() == {"f"}
        assert workspace.read("f") == b"saved\n"
        assert await log.quiet() == set()
