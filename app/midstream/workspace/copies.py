"""Temporary copies of a folder, for commands that should see other texts than those on disk.

A copy has the files that git lists, and the ignored ones that lie beside them (a generated version
file, a built extension module). Folders of installed dependencies are linked: they are large, and
commands only read them. Other ignored folders (caches, build outputs) are left out, as is ``.git``.
"""

from __future__ import annotations

import ast
import contextlib
import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from midstream import processes
from midstream.errors import UserError
from midstream.resources import read_small
from midstream.scratch import make_scratch, scratch_place
from midstream.workspace.errors import WorkspaceError
from midstream.workspace.listing import list_files
from midstream.workspace.paths import shown
from midstream.workspace.repo import GitFailedError, run_git

PREFIX: Final = "midstream-copy-"
MAX_BYTES: Final = 1_000_000_000
"""Most bytes of a copy."""
DEPENDENCIES: Final = ("node_modules", ".venv", "venv", "vendor", ".yarn")
"""Ignored folders that are linked."""


class CopyRefusedError(WorkspaceError):
    """The folder cannot be copied."""

    code = "copy-refused"


class CopyStoppedError(UserError):
    """The copy was no longer wanted."""

    code = "copy-stopped"


@dataclass(frozen=True, slots=True)
class FolderCopy:
    """A copy.

    Attributes:
        root: Its folder, without links in its path.
        python_path: Folders of it that Python has to look in first, because the environment was
            told to import the project from where it really is.
    """

    root: Path
    python_path: tuple[Path, ...]

    def environment(self) -> dict[str, str]:
        """The environment of this process, in which Python looks in the copy first."""
        environ = dict(os.environ)
        if first := [str(path) for path in self.python_path]:
            then = environ.get("PYTHONPATH")
            environ["PYTHONPATH"] = os.pathsep.join([*first, *([then] if then else ())])
        return environ

    def remove(self) -> None:
        """Remove it (blocking); the targets of its links stay."""
        remove(self.root)


def make_copy(
    root: Path, changes: Mapping[str, bytes | None], unwanted: Callable[[], bool] = lambda: False
) -> FolderCopy:
    """Copy a folder (blocking).

    Args:
        root: The folder, without links in its path.
        changes: What files have in the copy instead, by relative path; ``None``: no such file.
        unwanted: Asked now and then; once it says so, the copy is removed and given up.

    Raises:
        CopyRefusedError: There are too many files, too large ones or too little room, or the system
            refuses.
        CopyStoppedError: It is unwanted.
        ScratchError: No temporary folder can be made.
    """
    remove_stale(scratch_place(), PREFIX)
    listed, cut = list_files(root)
    if cut:
        raise CopyRefusedError(
            "This folder has too many files to copy", "accept the hunks and run the tests here"
        )
    names = sorted({*listed, *_ignored_files(root)})
    into = make_scratch(f"{PREFIX}{os.getpid()}-")
    try:
        _check_room(root, names, into)
        for name in names:
            if unwanted():
                raise CopyStoppedError("The copy was stopped")
            if name not in changes:
                _copy_file(root, into, name)
        for name, data in changes.items():
            if data is not None:
                _write(root, into, name, data)
        _link_dependencies(root, into, names)
        return FolderCopy(into, tuple(_python_path(root, into)))
    except OSError as error:
        remove(into)
        raise _refused(error) from error
    except BaseException:
        remove(into)
        raise


def remove(folder: Path) -> None:
    """Remove a copy (blocking), also where a command took permissions away."""
    with contextlib.suppress(OSError):
        shutil.rmtree(folder)
        return
    for at, folders, _ in os.walk(folder):
        for path in map(Path(at).joinpath, folders):
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _refused(error: OSError) -> CopyRefusedError:
    return CopyRefusedError(
        f"The folder cannot be copied ({error.strerror})", "accept the hunks and run the tests here"
    )


def remove_stale(place: Path, prefix: str) -> None:
    """Remove folders of killed processes, whose number follows the prefix."""
    for folder in place.glob(f"{prefix}*"):
        pid = folder.name.removeprefix(prefix).partition("-")[0]
        with contextlib.suppress(OSError):
            ours = not hasattr(os, "getuid") or folder.lstat().st_uid == os.getuid()
            if ours and pid.isdecimal() and not processes.runs(int(pid)):
                remove(folder)


def _ignored_files(root: Path) -> list[str]:
    """Ignored files that lie in folders that are not ignored; none without a repository."""
    try:
        answer = run_git(
            root,
            ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"],
        )
    except GitFailedError:
        return []
    names = filter(None, os.fsdecode(answer).split("\0"))
    return [name for name in names if not name.endswith("/")]


def _check_room(root: Path, names: Iterable[str], into: Path) -> None:
    size = 0
    for name in names:
        with contextlib.suppress(OSError):
            size += os.lstat(root / name).st_size
    if size > MAX_BYTES:
        raise CopyRefusedError(
            f"The files of this folder have {size / 1e6:,.0f} MB, and at most "
            f"{MAX_BYTES / 1e6:,.0f} MB are copied",
            "open a subfolder, or accept the hunks and run the tests here",
        )
    if size > shutil.disk_usage(into).free:
        raise CopyRefusedError(
            f"There is no room for a copy of {size / 1e6:,.0f} MB in {into.parent}",
            "free some space, or set TMPDIR to another folder",
        )


def _copy_file(root: Path, into: Path, name: str) -> None:
    source, target = root / name, into / name
    try:
        mode = source.lstat().st_mode
    except FileNotFoundError:  # It went after it was listed.
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISLNK(mode):
        to = source.readlink()
        # A link to a file of the folder must not lead back to it.
        inside = to.is_absolute() and to.is_relative_to(root)
        target.symlink_to(into / to.relative_to(root) if inside else to)
    elif stat.S_ISREG(mode):
        shutil.copy2(source, target)


def _write(root: Path, into: Path, name: str, data: bytes) -> None:
    target = into / name
    # A link in the folder may lead out of its copy.
    inside = Path(os.path.realpath(into / PurePosixPath(name).parent))
    if ".." in PurePosixPath(name).parts or not inside.is_relative_to(into):
        raise OSError(errno.EXDEV, f"{shown(name)} lies outside of it")
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink():
        target.unlink()
    target.write_bytes(data)
    with contextlib.suppress(FileNotFoundError):
        shutil.copymode(root / name, target)


def _link_dependencies(root: Path, into: Path, names: Iterable[str]) -> None:
    folders = {"", *(name.rpartition("/")[0] for name in names)}
    folders |= {str(parent) for folder in folders for parent in Path(folder).parents}
    for folder in folders:
        for name in DEPENDENCIES:
            there, here = root / folder / name, into / folder / name
            if there.is_dir() and not here.exists() and here.parent.is_dir():
                here.unlink(missing_ok=True)  # A relative link that leads nowhere from here.
                here.symlink_to(there.resolve(), target_is_directory=True)


def _python_path(root: Path, into: Path) -> Iterator[Path]:
    """Where the copy has what the environment's editable installs take from the folder.

    Installers write these as paths in ``*.pth`` (the ``site`` module), setuptools also as a
    ``MAPPING`` in a finder; both are searched behind PYTHONPATH.
    """
    found = [root / "src"] if (root / "src").is_dir() else []
    for environment in (".venv", "venv"):
        for packages in _site_packages(root / environment):
            for file in packages.glob("*.pth"):
                found += [path for path in map(Path, _lines(file)) if path.is_absolute()]
            for file in packages.glob("__editable__*finder.py"):
                found += [Path(path).parent for path in _mapped(file)]
    for path in dict.fromkeys(Path(os.path.realpath(path)) for path in found):
        if path.is_relative_to(root) and (into / path.relative_to(root)).is_dir():
            yield into / path.relative_to(root)


def _site_packages(environment: Path) -> list[Path]:
    return [*environment.glob("lib/python*/site-packages"), *environment.glob("Lib/site-packages")]


def _lines(file: Path) -> list[str]:
    try:
        return read_small(file).decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def _mapped(file: Path) -> list[str]:
    found = re.search(r"^MAPPING[^=\n]*= (\{.*\})$", "\n".join(_lines(file)), re.MULTILINE)
    with contextlib.suppress(ValueError, SyntaxError):
        mapping: dict[str, object] = ast.literal_eval(found[1]) if found else {}
        return [path for path in mapping.values() if isinstance(path, str)]
    return []
