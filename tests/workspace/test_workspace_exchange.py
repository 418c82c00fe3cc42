"""The two moments in a write at which somebody else's save could be lost, met exactly."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from midstream.workspace import atomic
from midstream.workspace.content import content_digest


@pytest.fixture
def pair(root: Path) -> tuple[Path, Path]:
    """Our complete new file, and the file that it shall replace."""
    swap, target = root / ".swap", root / "a.py"
    swap.write_bytes(b"ours\n")
    target.write_bytes(b"base\n")
    return swap, target


def test_a_save_in_the_last_moment_before_the_exchange_is_not_lost(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    swap, target = pair
    looks = atomic.open_for_writing
    saves = [b"saved by the user\n"]

    def look_then_save(path: str) -> bool:
        seen = looks(path)
        if saves and path == str(target):
            other = target.with_name("editor")
            other.write_bytes(saves.pop())
            other.replace(target)
        return seen

    monkeypatch.setattr(atomic, "open_for_writing", look_then_save)
    with pytest.raises(atomic.ChangedOnDiskError):
        atomic.replace(str(swap), str(target), content_digest(b"base\n"), content_digest(b"ours\n"))
    assert target.read_bytes() == b"saved by the user\n"
    assert swap.read_bytes() == b"ours\n"


def test_what_is_typed_into_our_bytes_while_they_are_taken_back_stays(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file had changed, so the names are exchanged back; an editor has ours open."""
    swap, target = pair
    target.write_bytes(b"changed before\n")
    exchange = atomic._exchange
    editor: list[io.BufferedRandom] = []
    calls = 0

    def open_before_the_second(first: str, second: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            editor.append(target.open("r+b"))
        exchange(first, second)

    monkeypatch.setattr(atomic, "_exchange", open_before_the_second)
    with pytest.raises(atomic.ChangedOnDiskError):
        atomic.replace(str(swap), str(target), content_digest(b"base\n"), content_digest(b"ours\n"))
    with editor[0] as handle:
        handle.truncate()
        handle.write(b"typed\n")
    assert target.read_bytes() == b"typed\n", "the newest save wins"


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("by_rename", [False, True])
def test_the_newest_save_stays_whenever_it_meets_an_undo(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, count: int, by_rename: bool
) -> None:
    swap, target = pair
    target.write_bytes(b"changed before\n")
    exchange = atomic._exchange
    saves = [b"save %d\n" % number for number in range(count)]
    done: list[bytes] = []

    def exchange_then_save(first: str, second: str) -> None:
        exchange(first, second)
        if not saves:
            return
        done.append(saves.pop(0))
        if by_rename:
            other = target.with_name("editor")
            other.write_bytes(done[-1])
            other.replace(target)
        else:
            target.write_bytes(done[-1])

    monkeypatch.setattr(atomic, "_exchange", exchange_then_save)
    with pytest.raises(atomic.ChangedOnDiskError):
        atomic.replace(str(swap), str(target), content_digest(b"base\n"), content_digest(b"ours\n"))
    assert len(done) >= min(count, 3)
    assert target.read_bytes() == done[-1]


def test_what_was_saved_before_a_removal_is_put_back(pair: tuple[Path, Path]) -> None:
    swap, target = pair
    swap.unlink()
    target.write_bytes(b"saved by the user\n")
    with pytest.raises(atomic.ChangedOnDiskError):
        atomic.remove(str(swap), str(target), content_digest(b"base\n"))
    assert target.read_bytes() == b"saved by the user\n"
    assert not swap.exists()


def test_a_file_that_another_program_writes_is_not_removed(pair: tuple[Path, Path]) -> None:
    """The text of that program would be lost with the file."""
    swap, target = pair
    swap.unlink()
    with target.open("r+b") as handle:
        with pytest.raises(atomic.OpenForWritingError):
            atomic.remove(str(swap), str(target), content_digest(b"base\n"))
        handle.write(b"more\n")
    assert target.read_bytes() == b"more\n"


def test_a_folder_that_took_the_place_of_a_file_is_not_removed(pair: tuple[Path, Path]) -> None:
    swap, target = pair
    swap.unlink()
    target.unlink()
    target.mkdir()
    (target / "theirs").write_bytes(b"theirs")
    with pytest.raises(atomic.ChangedOnDiskError):
        atomic.remove(str(swap), str(target), content_digest(b"base\n"))
    assert (target / "theirs").read_bytes() == b"theirs"
    assert not swap.exists()


def test_a_file_that_grew_without_end_is_not_read(pair: tuple[Path, Path]) -> None:
    """Another program may make a file huge just when it is replaced."""
    swap, target = pair
    with target.open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(atomic.ChangedOnDiskError):
        atomic.replace(str(swap), str(target), content_digest(b"base\n"), content_digest(b"ours\n"))
    assert target.stat().st_size == 1 << 40
    assert swap.read_bytes() == b"ours\n"


def test_a_file_that_was_made_meanwhile_is_not_replaced_by_a_new_one(
    pair: tuple[Path, Path],
) -> None:
    swap, target = pair
    with pytest.raises(atomic.ChangedOnDiskError):
        atomic.create(str(swap), str(target))
    assert target.read_bytes() == b"base\n"
    assert swap.read_bytes() == b"ours\n"
