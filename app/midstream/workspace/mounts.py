"""Which kind of file system a path lies on, where the system says so (Linux)."""

from __future__ import annotations

import contextlib
from pathlib import Path

# Shared with another machine or a host: events and leases there speak for this machine only.
_SHARED = ("nfs", "cifs", "smb", "9p", "fuse.", "vboxsf", "drvfs", "virtiofs", "fakeowner", "afs")


def filesystem_of(path: str) -> str:
    """Type of the file system that holds ``path`` (a real path), such as ``ext4``; empty if
    unknown.
    """
    best, kind = "", ""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            left, _, right = line.partition(" - ")
            # Octal escapes stand for spaces; such a mount point is taken for the one above it.
            point = left.split(" ")[4].rstrip("/")
            if f"{path}/".startswith(f"{point}/") and len(point) >= len(best):
                best, kind = point, right.split(" ")[0]
    return kind


def is_shared(kind: str) -> bool:
    """Whether others than this machine's kernel can change files on a file system of this type."""
    return kind.startswith(_SHARED)
