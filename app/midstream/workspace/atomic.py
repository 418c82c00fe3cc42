"""Replacing a file without a moment in which its old or new content is lost.

``replace``, ``create`` and ``remove`` are for user files, which others may save at any
time.  The new bytes are written and flushed beside the target.  Then the two names are *exchanged*
(Linux ``renameat2``), so the old file still exists under the temporary name.  Only now is the
compare of compare-and-swap made, on the file that was really replaced: if a save slipped in, or
another program still has that file open for writing (a file lease shows it), the names are
exchanged back.  A check before a plain rename would leave a window in which a save is lost.

Where the file system cannot exchange names, a hard link keeps the old file reachable instead; there
a save by rename within a few microseconds can still be overwritten.

``overwrite`` is for Midstream's own files (settings, drafts, lists): the last writer wins.

This module knows nothing of workspaces, checkpoints or journals.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import functools
import os
import secrets
import shutil
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path

from midstream.workspace.content import MAX_FILE_BYTES, LinkTarget, content_digest
from midstream.workspace.paths import make_private, sync_file, sync_folder

TEMPORARY_PREFIX = ".midstream-"
PART_SUFFIX = ".part"
"""New bytes, perhaps incomplete; never holds user data."""
SWAP_SUFFIX = ".swap"
"""Complete new bytes before the exchange, the replaced file after it."""

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
"""``linux/fcntl.h`` and ``linux/fs.h``."""
_NO_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}
_MAX_EXCHANGES = 8
"""Saves in quick succession that are followed."""
_BUSY_PATIENCE_S = 0.1
"""How long another program may take to close a file before it is replaced."""
_READ_CHUNK = 1 << 20
"""Bytes of one read."""
# Shared with another machine or a host: events and leases there speak for this machine only.
_SHARED = ("nfs", "cifs", "smb", "9p", "fuse.", "vboxsf", "drvfs", "virtiofs", "fakeowner", "afs")


class ChangedOnDiskError(Exception):
    """The target was not what the caller expected; its content is unchanged."""


class OpenForWritingError(ChangedOnDiskError):
    """Another program has the target open for writing; its content is unchanged."""


class NotRegularError(Exception):
    """The path is no regular file."""


class TooLargeError(Exception):
    """The file is larger than the limit given."""


def is_temporary(name: str) -> bool:
    """Whether ``name`` (no folders) is one of our temporary files."""
    return name.startswith(TEMPORARY_PREFIX) and name.endswith((PART_SUFFIX, SWAP_SUFFIX))


def read_regular(path: str, limit: int) -> tuple[bytes, os.stat_result]:
    """Bytes and status of a regular file; never blocks on a pipe or a device.

    Raises:
        NotRegularError: A folder, device, pipe or socket, or a symlink put there meanwhile.
        TooLargeError: More than ``limit`` bytes.
        OSError: As the system says, ``FileNotFoundError`` included.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        # A socket answers ENXIO, a symlink ELOOP.
        if error.errno in {errno.ENXIO, errno.ELOOP, errno.ENODEV}:
            raise NotRegularError(path) from error
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotRegularError(path)
        if status.st_size > limit:
            raise TooLargeError(path)
        chunks: list[bytes] = []
        total = 0
        while chunk := os.read(descriptor, _READ_CHUNK):
            chunks.append(chunk)
            total += len(chunk)
            if total > limit:
                raise TooLargeError(path)
        return b"".join(chunks), status
    finally:
        os.close(descriptor)


def read_entry(path: str, limit: int) -> tuple[bytes, os.stat_result]:
    """As ``read_regular``; of a symlink, a ``LinkTarget`` and the link's own status."""
    try:
        return read_regular(path, limit)
    except NotRegularError:
        status = Path(path).lstat()
        if not stat.S_ISLNK(status.st_mode):
            raise
        return LinkTarget(os.fsencode(Path(path).readlink())), status


def may_run(status: os.stat_result) -> bool:
    """Whether the owner of a file may run it; git tells files apart by that."""
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & stat.S_IXUSR)


def is_executable(path: str) -> bool:
    """Whether there is a file that its owner may run; a symlink is none."""
    try:
        return may_run(Path(path).lstat())
    except OSError:
        return False


def change_mode(path: str, mode: int) -> None:
    """Set the permissions of a file, never of what a link leads to.

    Raises:
        OSError: As the system says, or it has further names, which may lie anywhere.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags)
    try:
        if os.fstat(descriptor).st_nlink > 1:
            raise OSError(errno.EMLINK, "it has more than one name")
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


def digest_of(path: str) -> str | None:
    """Digest of what a name holds; None when there is nothing.

    What is never read or written (a folder, a pipe, a file that is too large) or may not be read
    has a digest that no content has.

    Raises:
        OSError: The system fails.
    """
    try:
        return content_digest(read_entry(path, MAX_FILE_BYTES)[0])
    except FileNotFoundError:
        return None
    except (PermissionError, NotADirectoryError, NotRegularError, TooLargeError):
        return "unknown"


def write_part(
    part: str,
    data: bytes,
    like: os.stat_result | None,
    source: str | None,
    *,
    mode: int = 0o666,
) -> None:
    """Write ``data`` to the new file ``part`` and flush it to the device.

    Args:
        part: Must not exist.
        data: The whole content; a ``LinkTarget`` makes a symlink, which has no mode or owner.
        like: Status whose mode and owner the new file takes, if any.
        source: File whose extended attributes (access control lists among them) are copied as far
            as allowed.
        mode: Mode of the new file without ``like``, before the umask.
    """
    if isinstance(data, LinkTarget):
        Path(part).symlink_to(os.fsdecode(data))
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(part, flags, mode if like is None else 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if like is not None:
            mine = os.fstat(descriptor)
            if (mine.st_uid, mine.st_gid) != (like.st_uid, like.st_gid):
                # Only root may give files away; other users can keep the group at most.
                try:
                    os.fchown(descriptor, like.st_uid, like.st_gid)
                except OSError:
                    with contextlib.suppress(OSError):
                        os.fchown(descriptor, -1, like.st_gid)
            if source is not None:
                _copy_attributes(source, descriptor)
            os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def overwrite(path: Path, data: bytes) -> None:
    """Replace a file of Midstream's own as a whole (blocking).

    Readers see the old content or the new.  An existing file keeps its mode and owner; a new one is
    readable by the user only.  A symlink is followed.

    Raises:
        OSError: It cannot be written, or is no regular file; the old content stays.
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)  # noqa: PTH120
    make_private(Path(folder))
    part = f"{folder}/{TEMPORARY_PREFIX}{secrets.token_hex(6)}{PART_SUFFIX}"
    try:
        status = os.stat(target)  # noqa: PTH116
    except FileNotFoundError:
        status = None
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", target)
    try:
        write_part(part, data, status, target if status else None, mode=0o600)
        Path(part).replace(target)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def rename_whole(folder: Path, target: Path) -> None:
    """Give a folder of Midstream's own its name once all that it holds is on the device (blocking).

    After a power cut there is the whole folder under that name, or none.
    """
    for top, _, files in os.walk(folder):
        for name in files:
            sync_file(f"{top}/{name}")
        sync_folder(Path(top))
    folder.rename(target)
    sync_folder(target.parent)


def replace(swap: str, target: str, expected: str, new: str) -> None:
    """Put ``swap`` at ``target``; afterwards ``swap`` names the file that was replaced.

    Args:
        swap: Complete new file in the same folder.
        target: Existing file.
        expected: Digest the replaced file must have.
        new: Digest of ``swap``.

    Raises:
        ChangedOnDiskError: The replaced file's digest is not ``expected``, or there is none.
        OpenForWritingError: Another program may still write into the replaced file.
    """
    deadline = time.monotonic() + _BUSY_PATIENCE_S
    while True:
        while open_for_writing(target) and time.monotonic() < deadline:
            time.sleep(0.01)
        try:
            _exchange(swap, target)
        except FileNotFoundError as error:
            raise ChangedOnDiskError(target) from error
        busy = open_for_writing(swap)
        if not busy and digest_of(swap) == expected:
            return
        _give_back(swap, target, new)
        if not busy:
            raise ChangedOnDiskError(target)
        if time.monotonic() > deadline:
            raise OpenForWritingError(target)


def create(swap: str, target: str) -> None:
    """Put ``swap`` at ``target``, where nothing may exist; ``swap`` is gone afterwards.

    Raises:
        ChangedOnDiskError: Something is there already.
    """
    try:
        os.link(swap, target, follow_symlinks=False)
    except FileExistsError as error:
        raise ChangedOnDiskError(target) from error
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):
            raise ChangedOnDiskError(target) from error
        if stat.S_ISDIR(os.lstat(swap).st_mode):  # Another program's; it has no links.
            Path(swap).rename(target)
            return
        aside = _aside(swap)
        shutil.copy2(swap, aside, follow_symlinks=False)
        Path(aside).rename(target)
    Path(swap).unlink()


def remove(swap: str, target: str, expected: str) -> None:
    """Take ``target`` away; afterwards ``swap`` names the file that was removed.

    Raises:
        ChangedOnDiskError: Its digest was not ``expected``, or there was none.
        OpenForWritingError: Another program may still write into it.
    """
    try:
        Path(target).rename(swap)
    except FileNotFoundError as error:
        raise ChangedOnDiskError(target) from error
    busy = open_for_writing(swap)
    if digest_of(swap) == expected and not busy:
        return
    put_back(swap, target)
    raise OpenForWritingError(target) if busy else ChangedOnDiskError(target)


def put_back(swap: str, target: str) -> bool:
    """Undo ``remove`` unless something new stands at ``target``; True when it was put back."""
    try:
        create(swap, target)
    except ChangedOnDiskError:
        return False
    return True


def _give_back(swap: str, target: str, new: str) -> None:
    """Exchange back, again for each save over ``target`` in between: the newest save wins."""
    standing = new
    with contextlib.suppress(FileNotFoundError):
        for exchanges in range(_MAX_EXCHANGES):
            held = digest_of(swap)
            _exchange(swap, target)
            unchanged = digest_of(swap) == standing
            if unchanged and (exchanges or not open_for_writing(swap)):
                return
            if standing != new and Path(swap).stat().st_mtime_ns < Path(target).stat().st_mtime_ns:
                return  # The write that finished late is older than the save in place.
            standing = held or ""


def _exchange(first: str, second: str) -> None:
    """Exchange two names; both must exist."""
    rename = _renameat2()
    if rename is not None:
        code = rename(first, second)
        if code == 0:
            return
        if code == errno.ENOENT:
            raise FileNotFoundError(code, os.strerror(code), second)
        if code not in _NO_EXCHANGE:
            raise OSError(code, os.strerror(code), second)
    aside = _aside(first)
    try:
        os.link(second, aside, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(second, aside, follow_symlinks=False)
    try:
        Path(first).replace(second)
    except OSError:
        Path(aside).unlink()
        raise
    Path(aside).replace(first)


def _aside(swap: str) -> str:
    return f"{swap.removesuffix(SWAP_SUFFIX)}b{SWAP_SUFFIX}"


@functools.cache
def _renameat2() -> Callable[[str, str], int] | None:
    """``exchange(first, second) -> errno`` (0 when done); None if the C library has none."""
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None
    path, number = ctypes.c_char_p, ctypes.c_int
    function.argtypes = [number, path, number, path, ctypes.c_uint]
    function.restype = number

    def exchange(first: str, second: str) -> int:
        old, new = os.fsencode(first), os.fsencode(second)
        if function(_AT_FDCWD, old, _AT_FDCWD, new, _RENAME_EXCHANGE) == 0:
            return 0
        return ctypes.get_errno()

    return exchange


def open_for_writing(path: str) -> bool:
    """Whether any process has the file open for writing; False where the system cannot tell.

    A read lease is granted only while no process has it open for writing (fcntl(2), "Leases").
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if not _leases_tell(os.fstat(descriptor).st_dev, path):
            return False
        # A lease broken in these microseconds sends SIGIO, which would end the process; SIGURG is
        # ignored by default.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        os.close(descriptor)
    return False


_lease_devices: dict[int, bool] = {}


def _leases_tell(device: int, path: str) -> bool:
    """Whether a refused lease means a writer; NFS and CIFS refuse leases for other reasons."""
    if device not in _lease_devices:
        shared = is_shared(filesystem_of(os.path.realpath(path)))
        _lease_devices[device] = hasattr(fcntl, "F_SETLEASE") and not shared
    return _lease_devices[device]


def _copy_attributes(source: str, descriptor: int) -> None:
    if not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError):
        for name in os.listxattr(source):
            with contextlib.suppress(OSError):
                os.setxattr(descriptor, name, os.getxattr(source, name))


def filesystem_of(path: str) -> str:
    """Type of the file system of a real path, such as ``ext4``; empty if unknown (Linux only)."""
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
    """Whether another machine can change files on a file system of this type."""
    return kind.startswith(_SHARED)
