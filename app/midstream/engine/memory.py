"""How much memory a longer cache may take: what the system says is free.

The cache grows with what it holds, so a context is never paid for before it is used; a request that
cannot fit is refused beforehand instead of ending the process.
"""

from __future__ import annotations

from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")

SPARE_BYTES = 256 << 20
"""Left for what else a run needs: attention's scratch, activations, logits."""


def available_bytes() -> int | None:
    """Return how much memory this process may still take; None where the system does not say.

    The smaller one of Linux' `MemAvailable` and what the control group leaves.
    """
    found: list[int] = []
    for line in _lines(MEMINFO):
        if line.startswith("MemAvailable:"):
            found.append(1024 * int(line.split()[1]))
    limit, used = _lines(CGROUP / "memory.max"), _lines(CGROUP / "memory.current")
    if limit and used and limit[0].isdigit() and used[0].isdigit():
        found.append(max(0, int(limit[0]) - int(used[0])))
    return min(found) if found else None


def rows_that_fit(row_bytes: int) -> int | None:
    """Return how many more cache rows of this size fit into what is free; None if nobody knows."""
    free = available_bytes()
    return None if free is None else max(0, free - SPARE_BYTES) // row_bytes


def spelled(size: int) -> str:
    """Return a number of bytes for people: "812 MiB", "12.3 GiB"."""
    return f"{size / 2**20:.0f} MiB" if size < 2**30 else f"{size / 2**30:.1f} GiB"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except OSError:
        return []
