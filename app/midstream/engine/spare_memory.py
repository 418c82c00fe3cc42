"""Gives memory back that nothing needs, and arranges that of a loaded model (Linux).

Loading a model reads its weights through a mapping of their files and packs them for the
processor. ONNX Runtime unmaps what it has packed as a whole, but not what goes into a packed matrix
beside others, such as the scales of 4-bit blocks (62 MB of a 317 MB folder), although it does not
look at them again. A dropped page is read from the file again when it is needed.

The C library keeps freed memory for later; after loading that is up to 100 MB.
"""

from __future__ import annotations

import ctypes
import re
import sys
import threading
from collections.abc import Collection, Iterable, Iterator
from mmap import MADV_DONTNEED
from pathlib import Path

from midstream.engine.huge_pages import SMAPS, collapse
from midstream.processes import return_freed

LATER_S = 5.0
"""Seconds until the memory of a model that was just loaded is arranged: it would slow down the
first answer, which is waited for, and a program that asks once ends before it gains anything."""

_MAPPED = re.compile(r"([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \d+ *(.*)")


def arrange_later(files: Collection[Path]) -> None:
    """Do what ``arrange`` does in a thread, soon; the process can use its memory meanwhile."""
    later = threading.Timer(LATER_S, arrange, (files,))
    later.name, later.daemon = "memory", True
    later.start()


def arrange(files: Collection[Path]) -> None:
    """Give back what loading a model from files has left; move the rest into huge pages."""
    drop_read(files)
    return_freed()
    collapse()


def drop_read(files: Collection[Path]) -> None:
    """Take what was read of mapped files out of this process's memory; it stays mapped."""
    if sys.platform != "linux":
        return
    names = {str(file.resolve()) for file in files}
    try:
        ranges = list(unwritten_ranges(SMAPS.read_text("utf-8", "replace").splitlines(), names))
        madvise = ctypes.CDLL(None).madvise
    except (OSError, AttributeError):
        return
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for begin, end in ranges:
        madvise(begin, end - begin, MADV_DONTNEED)


def unwritten_ranges(smaps: Iterable[str], names: Collection[str]) -> Iterator[tuple[int, int]]:
    """Read where files are mapped.

    Args:
        smaps: Lines of ``/proc/PID/smaps`` (proc_pid_smaps(5)).
        names: Absolute paths.

    Yields:
        First and last address of mappings of these files. Those that were written to are left out,
        because what was written would be lost.
    """
    begin = end = 0
    for line in smaps:
        if found := _MAPPED.match(line):
            begin, end = int(found[1], 16), int(found[2], 16)
            if found[3] not in names:
                begin = end
        elif line.startswith("Anonymous:") and begin < end and line.split()[1] == "0":
            yield begin, end
