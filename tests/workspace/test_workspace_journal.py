"""The journal survives being killed, resumed, filled up and read by others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.workspace import journal as module
from midstream.workspace.journal import (
    Journal,
    JournalInUseError,
    JournalVersionError,
    sessions,
)
from tests.helpers.property import examples
from tests.helpers.waiting import PATIENCE_S, until


def kinds(path: Path) -> list[str]:
    return [entry.kind for entry in Journal.read(path)]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_entries_come_back_in_order_with_their_data(state: Path, root: Path) -> None:
    journal = Journal.create(state, root)
    journal.append("turn", text="ünï\u2028\x00 \ud800", n=1, nested={"a": [None, 1.5]})
    journal.append("write", path="a.py")
    journal.close()
    journal.append("late", ignored=True)
    first, second = Journal.read(journal.path)
    assert (first.kind, first.data) == (
        "turn",
        {"text": "ünï\u2028\x00 \ud800", "n": 1, "nested": {"a": [None, 1.5]}},
    )
    assert abs(first.time - time.time()) < 60
    assert second.data == {"path": "a.py"}
    assert journal.path.stat().st_mode & 0o777 == 0o600


def test_an_entry_is_on_disk_within_a_tenth_of_a_second(state: Path, root: Path) -> None:
    journal = Journal.create(state, root)
    journal.append("a")
    deadline = time.monotonic() + PATIENCE_S
    while not kinds(journal.path) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert kinds(journal.path) == ["a"]
    assert module.FLUSH_S <= 0.1
    journal.append("b")
    journal.flush()
    assert kinds(journal.path) == ["a", "b"]
    journal.close()


def test_what_was_written_reaches_the_device_without_being_asked_for(
    state: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut loses a second of a session, not everything since its last write to a file."""
    monkeypatch.setattr(module, "SYNC_S", 0.0)
    journal = Journal.create(state, root)
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: flushed.append(os.fstat(fd).st_ino))
    journal.append("a")
    until(lambda: journal.path.stat().st_ino in flushed)
    journal.close()


def test_an_entry_that_is_made_later_keeps_its_place_and_its_time(state: Path, root: Path) -> None:
    journal = Journal.create(state, root)
    makers: list[str] = []

    def make() -> dict[str, str]:
        makers.append(threading.current_thread().name)
        return {"text": "made"}

    journal.append("first")
    journal.append_later("second", make)
    journal.append("third")
    until(lambda: makers)
    journal.close()
    entries = [*Journal.read(journal.path)]
    assert [entry.kind for entry in entries] == ["first", "second", "third"]
    assert entries[1].data == {"text": "made"}
    assert entries[0].time <= entries[1].time <= entries[2].time
    assert makers == ["journal"]


def test_nobody_who_adds_an_entry_waits_for_the_disk(
    state: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SYNC_S", 0.0)
    journal = Journal.create(state, root)
    waits, added = threading.Event(), threading.Event()
    in_time: list[bool] = []

    def slow(fd: int) -> None:
        waits.set()
        in_time.append(added.wait(PATIENCE_S))

    monkeypatch.setattr(os, "fsync", slow)
    journal.append("a")
    assert waits.wait(PATIENCE_S)
    journal.append("b")
    added.set()
    journal.close()
    assert all(in_time)
    assert kinds(journal.path) == ["a", "b"]


@examples(25)
@given(st.integers(0, 60))
def test_a_torn_last_line_costs_only_itself(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("torn")
    journal = Journal.create(folder / "state", folder)
    journal.append("first", n=1)
    journal.append("second", n=2)
    journal.close()
    data = journal.path.read_bytes()
    last = len(data) - data.rstrip(b"\n").rfind(b"\n") - 1
    cut = min(cut, last - 1)
    journal.path.write_bytes(data[: len(data) - cut])
    whole = ["first", "second"] if cut <= 1 else ["first"]
    assert kinds(journal.path) == whole

    again = Journal.open(journal.path)
    again.append("third")
    again.close()
    assert kinds(journal.path) == [*whole, "third"]


@pytest.mark.parametrize("junk", [b"\x00\xff\n", b"[]\n", b"{}\n", b"\n", b'{"k": "a"\n'])
def test_junk_lines_are_skipped(state: Path, root: Path, junk: bytes) -> None:
    journal = Journal.create(state, root)
    journal.close()
    with journal.path.open("ab") as file:
        file.write(junk + b'{"k":"good","t":1,"d":{}}\n')
    assert kinds(journal.path) == ["good"]


def test_a_newer_version_is_refused(state: Path, root: Path) -> None:
    journal = Journal.create(state, root)
    journal.close()
    journal.path.write_text('{"midstream": 99, "t": 1}\n{"k": "future", "t": 2, "d": {}}\n')
    with pytest.raises(JournalVersionError, match="update"):
        kinds(journal.path)


def test_one_writer_at_a_time(state: Path, root: Path) -> None:
    journal = Journal.create(state, root)
    with pytest.raises(JournalInUseError):
        Journal.open(journal.path)
    assert Journal.latest(state, root) is None
    journal.close()
    assert Journal.latest(state, root) == journal.path
    Journal.open(journal.path).close()


def test_sessions_of_a_root_newest_first_and_bounded(
    state: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT_SESSIONS", 3)
    names = iter(f"20260101T00000{n}-aaaaaa" for n in range(9))
    monkeypatch.setattr(module, "new_session_id", lambda: next(names))
    live = Journal.create(state, root)
    for _ in range(5):
        journal = Journal.create(state, root)
        journal.append("x")
        journal.close()
    elsewhere = Journal.create(state, root.parent)
    elsewhere.close()
    found = sessions(state, root)
    assert [info.path.name[14] for info in found] == ["5", "4", "3", "0"]
    assert [info.live for info in found] == [False, False, False, True]
    assert all(info.size > 0 and info.started <= info.changed + 1 for info in found)
    assert Journal.latest(state, root) == journal.path
    live.close()
    assert sessions(state, root.parent / "unknown") == []


def test_a_journal_is_bounded(state: Path, root: Path) -> None:
    journal = Journal.create(state, root, max_bytes=2000, max_parts=3)
    for number in range(200):
        journal.append("delta", n=number, text="x" * 50)
        journal.flush()
    journal.close()
    files = list(journal.path.parent.iterdir())
    assert len(files) == 3
    assert sum(file.stat().st_size for file in files) <= 3 * 2000
    entries = list(Journal.read(journal.path))
    numbers = [entry.data["n"] for entry in entries if entry.kind == "delta"]
    gap = [entry.kind for entry in entries].index(module.TRUNCATED)
    assert numbers[:gap] == list(range(gap))
    assert numbers[gap:] == list(range(numbers[gap], 200))
    assert len(sessions(state, root)) == 1
    again = Journal(journal.path, max_bytes=2000, max_parts=3)
    again.append("delta", n=200)
    again.close()
    assert list(Journal.read(journal.path))[-1].data == {"n": 200}


def test_many_threads_tear_no_line(state: Path, root: Path) -> None:
    journal = Journal.create(state, root)

    def work(name: int) -> None:
        for number in range(200):
            journal.append("e", name=name, number=number)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    entries = list(Journal.read(journal.path))
    assert len(entries) == 800
    for name in range(4):
        own = [entry.data["number"] for entry in entries if entry.data["name"] == name]
        assert own == list(range(200))


CHILD = """
import sys, time
from pathlib import Path
from midstream.workspace.journal import Journal
journal = Journal.create(Path(sys.argv[1]), Path(sys.argv[2]))
number = 0
while True:
    journal.append("n", n=number, t_mono=time.monotonic())
    print(number, flush=True)
    number += 1
    time.sleep(0.001)
"""


def test_a_killed_writer_loses_at_most_the_last_moment(state: Path, root: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(state), str(root)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    last = 0
    while last < 400:
        last = int(child.stdout.readline())
    killed = time.monotonic()
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    path = Journal.latest(state, root)
    assert path is not None
    entries = list(Journal.read(path))
    assert [entry.data["n"] for entry in entries] == list(range(len(entries)))
    # 100 ms of promise, the rest for a machine that is busy with other things.
    assert killed - entries[-1].data["t_mono"] < 0.5


def test_a_full_disk_keeps_the_entries_for_later(
    state: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal.create(state, root)
    real = os.write

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    journal.append("kept")
    with pytest.raises(OSError, match="No space"):
        journal.flush()
    monkeypatch.setattr(os, "write", real)
    journal.close()
    assert kinds(journal.path) == ["kept"]
    assert json.loads(journal.path.read_text().splitlines()[0])["root"] == str(root)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_meanwhile_does_not_keep_a_closed_journal_locked(
    state: Path, root: Path
) -> None:
    """Between fork and exec every child has the parent's descriptors, close-on-exec or not."""
    journal = Journal.create(state, root)
    may_end, end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end)
        os.read(may_end, 1)
        os._exit(0)
    try:
        assert Journal.latest(state, root) is None
        journal.close()
        assert Journal.latest(state, root) == journal.path
        Journal.open(journal.path).close()
    finally:
        os.close(end)
        os.close(may_end)
        os.waitpid(child, 0)
