"""SIGKILL at any moment: every file is old or new, a batch is whole or undone, nothing is left
lying around.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from midstream.workspace.content import LinkTarget
from midstream.workspace.files import Workspace, content_digest
from tests.helpers.system_calls import between_system_calls

pytestmark = pytest.mark.system

OLD: dict[str, bytes | None] = {
    "a": b"old a",
    "sub/b": b"old b",
    "gone": b"old gone",
    "new/n": None,
}
NEW: dict[str, bytes | None] = {
    "a": b"new a",
    "sub/b": b"new b",
    "gone": None,
    "new/n": b"new n",
}
OLD_LINKS = {"a": b"old", "link": LinkTarget(b"a"), "was": LinkTarget(b"a"), "file": b"old file"}
NEW_LINKS = {"a": b"new", "link": LinkTarget(b"b"), "was": b"new file", "file": LinkTarget(b"a")}


def digests(state: Mapping[str, bytes | None]) -> dict[str, str | None]:
    return {name: None if data is None else content_digest(data) for name, data in state.items()}


def prepare(root: Path, state: Mapping[str, bytes | None] = OLD) -> None:
    for name, data in state.items():
        path = root / name
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        if isinstance(data, LinkTarget):
            path.symlink_to(os.fsdecode(data))
        elif data is not None:
            path.write_bytes(data)
        elif path.parent != root:
            path.parent.rmdir()


def state_of(root: Path, names: Iterable[str] = OLD) -> dict[str, bytes | None]:
    return {name: held(root / name) for name in names}


def kinds(state: Mapping[str, bytes | None]) -> dict[str, type]:
    """Whether names are files or links; their content may compare equal."""
    return {name: type(data) for name, data in state.items()}


def held(path: Path) -> bytes | None:
    """The content of a file or link, ``None`` for neither."""
    if path.is_symlink():
        return LinkTarget(os.fsencode(path.readlink()))
    return path.read_bytes() if path.exists() else None


def unexpected(root: Path) -> list[str]:
    known = {*OLD, *OLD_LINKS, "sub", "new"}
    return [name for path in root.rglob("*") if (name := str(path.relative_to(root))) not in known]


def in_child(work: Callable[[], None]) -> bool:
    """Run ``work`` in a forked child; True when it came to its end, False when it was killed."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return False
    assert os.waitstatus_to_exitcode(status) == 0
    return True


def kill_at(step: int) -> Callable[[int], None]:
    def at_step(number: int) -> None:
        if number == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return at_step


@pytest.mark.parametrize(("old", "new"), [(OLD, NEW), (OLD_LINKS, NEW_LINKS)])
def test_a_batch_killed_between_any_two_system_calls(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    old: dict[str, bytes | None],
    new: dict[str, bytes | None],
) -> None:
    # The disk's own cache is no part of a killed process.
    monkeypatch.setattr(os, "fsync", lambda _: None)
    outcomes: set[str] = set()
    workspace = Workspace(root)
    assert workspace.log.mode.startswith("copies")
    for step in itertools.count():
        prepare(root, old)

        def write_killed(step: int = step) -> None:
            with between_system_calls(kill_at(step)):
                workspace.write_all(new, digests(old), "batch")

        finished = in_child(write_killed)
        raw = state_of(root, old)
        for name, data in raw.items():
            assert data in {old[name], new[name]}, f"torn at step {step}"
        survivor = Workspace(root)
        assert survivor.recover() == []
        state = state_of(root, old)
        assert state in (old, new), f"half a batch after step {step}"
        assert kinds(state) in (kinds(old), kinds(new))
        assert unexpected(root) == [], f"litter after step {step}"
        if (survivor.state / "pending").exists():
            assert [path.name for path in (survivor.state / "pending").iterdir()] == ["lock"]
        outcomes.add("old" if state == old else "new")
        if raw not in (old, new):
            outcomes.add("rolled back")
        if finished:
            assert state == new
            break
    assert outcomes == {"old", "new", "rolled back"}
    assert step > 50


def user_saves_in_place(path: Path) -> None:
    path.write_bytes(b"USER")


def user_saves_by_rename(path: Path) -> None:
    temporary = path.with_name(f".{path.name}.user")
    temporary.write_bytes(b"USER")
    temporary.replace(path)


def kill_after_save(root: Path, seed: int) -> None:
    """One case: the user saves at one step, the process is killed at a later one."""
    random_ = random.Random(seed)
    save = random_.choice([user_saves_in_place, user_saves_by_rename])
    name = random_.choice(["a", "sub/b"])
    first = random_.randrange(200)
    last = first + random_.randrange(40)
    prepare(root)
    workspace = Workspace(root)
    assert workspace.log.mode.startswith("copies")
    saved_marker = root.parent / "saved"
    saved_marker.unlink(missing_ok=True)

    def work() -> None:
        def at_step(number: int) -> None:
            if number == first:
                save(root / name)
                saved_marker.write_bytes(b"")
            elif number == last:
                os.kill(os.getpid(), signal.SIGKILL)

        with between_system_calls(at_step):
            try:
                workspace.write_all(NEW, digests(OLD), "batch")
            except Exception:
                os.kill(os.getpid(), signal.SIGKILL)

    in_child(work)
    kept = Workspace(root).recover()
    if saved_marker.exists():
        contents = [(root / name).read_bytes(), *(Path(path).read_bytes() for path in kept)]
        assert b"USER" in contents, f"seed {seed}: the user's save is lost"
        if not kept:
            assert contents[0] == b"USER"
    for path in kept:
        Path(path).unlink()
    assert [name for name in unexpected(root) if not name.endswith(".user")] == []


def run_cases(root: Path, seeds: range) -> None:
    for seed in seeds:
        kill_after_save(root, seed)


def test_a_save_before_the_kill_is_not_lost(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    run_cases(root, range(40))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_save_before_the_kill_is_not_lost_at_length(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    run_cases(root, range(1000, 6000))


CHILD = """
import sys
from pathlib import Path
from midstream.workspace.files import Workspace
root = Path(sys.argv[1])
workspace = Workspace(root)
names = ["f0", "f1", "f2"]
generation = 0
while True:
    generation += 1
    data = (b"%08d" % generation) * 40_000
    expected = {name: workspace.digest(name) for name in names}
    workspace.write_all(dict.fromkeys(names, data), expected, "all")
    print(generation, flush=True)
"""


def test_a_process_killed_at_random_leaves_whole_generations(root: Path) -> None:
    """Real files of some size, real flushes, real signals from outside."""
    random_ = random.Random(7)
    for name in ("f0", "f1", "f2"):
        (root / name).write_bytes(b"%08d" % 0 * 40_000)
    for _ in range(5):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(root)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(random_.random() * 0.08)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        raw = [(root / name).read_bytes() for name in ("f0", "f1", "f2")]
        assert all(data == data[:8] * 40_000 for data in raw), "torn"
        assert Workspace(root).recover() == []
        assert len({(root / name).read_bytes() for name in ("f0", "f1", "f2")}) == 1
        assert sorted(path.name for path in root.iterdir()) == ["f0", "f1", "f2"]


def test_recovery_leaves_a_running_process_alone(root: Path) -> None:
    """Another Midstream on the same folder must not roll back what this one is writing."""
    prepare(root)
    workspace = Workspace(root)
    other = Workspace(root)

    def at_step(number: int) -> None:
        if number % 10 == 0:
            assert other.recover() == []

    with between_system_calls(at_step):
        workspace.write_all(NEW, digests(OLD), "batch")
    assert state_of(root) == NEW
