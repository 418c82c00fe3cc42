"""Huge pages: which memory is chosen, and that its contents stay the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from midstream.engine import huge_pages
from midstream.engine.huge_pages import HUGE_BYTES, large_ranges

MIB = 1 << 20


def mapping(begin: int, size: int, kind: str = "rw-p", inode: int = 0, *, resident: int) -> str:
    name = "/usr/lib/weights.bin" if inode else "[heap]"
    return (
        f"{begin:x}-{begin + size:x} {kind} 00000000 00:00 {inode}    {name}\n"
        f"Size:  {size >> 10} kB\nRss:   {resident >> 10} kB\nAnonHugePages:  0 kB\n"
    )


def test_only_large_private_memory_without_a_file_is_chosen() -> None:
    base = 0x7F00_0010_0000  # not at the beginning of a huge page
    text = (
        mapping(base, 9 * MIB, resident=9 * MIB)
        + mapping(base + 16 * MIB, 2 * MIB, resident=2 * MIB)
        + mapping(base + 32 * MIB, 8 * MIB, "r--p", resident=8 * MIB)
        + mapping(base + 48 * MIB, 8 * MIB, "rw-s", resident=8 * MIB)
        + mapping(base + 64 * MIB, 8 * MIB, inode=77, resident=8 * MIB)
        + mapping(base + 80 * MIB, 64 * MIB, resident=32 * MIB)
        + mapping(base + 160 * MIB, 64 * MIB, resident=60 * MIB)
    )
    chosen = list(large_ranges(text.splitlines()))
    assert chosen == [
        (base + MIB, base + 9 * MIB),
        (base + 161 * MIB, base + 223 * MIB),
    ]
    assert all(at % HUGE_BYTES == 0 for pair in chosen for at in pair)


COLLAPSE = """
import mmap
from pathlib import Path

from midstream.engine import huge_pages


def huge():
    lines = Path("/proc/self/smaps_rollup").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("AnonHugePages:"))


memory = mmap.mmap(-1, 32 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
expected = bytes(range(256)) * (len(memory) // 256)
memory[:] = expected
huge_pages._wanted = lambda: True
before = huge()
huge_pages.collapse()
assert memory[:] == expected
print(huge() - before)
"""
"""In a process of its own: the neighbours of its memory would decide which parts are chosen."""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's system call")
def test_memory_is_moved_and_its_contents_stay_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLLAPSE], capture_output=True, text=True, check=True
    )
    moved = int(done.stdout)
    if not moved:
        pytest.skip("this kernel makes no huge pages on request")
    assert moved >= 16 << 10


@pytest.mark.parametrize(
    ("setting", "calls"),
    [("always [madvise] never", 1), ("[always] madvise never", 0), ("always madvise [never]", 0)],
)
@pytest.mark.skipif(sys.platform != "linux", reason="Linux's setting")
def test_the_system_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, calls: int
) -> None:
    switch, smaps = tmp_path / "enabled", tmp_path / "smaps"
    switch.write_text(setting)
    smaps.write_text("")
    monkeypatch.setattr(huge_pages, "SWITCH", switch)
    monkeypatch.setattr(huge_pages, "SMAPS", smaps)
    read: list[object] = []

    def noted(lines: object) -> list[tuple[int, int]]:
        read.append(lines)
        return []

    monkeypatch.setattr(huge_pages, "large_ranges", noted)
    huge_pages.collapse()
    assert len(read) == calls
    switch.unlink()
    huge_pages.collapse()
    assert len(read) == calls
