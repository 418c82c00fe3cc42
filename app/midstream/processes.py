"""What the system says about a running process (Linux; elsewhere nothing is known)."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def resident_bytes(pid: int | str = "self") -> int:
    """Resident memory of a process; 0 where the system does not report it."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0
