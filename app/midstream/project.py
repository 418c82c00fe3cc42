"""The project that a path on the command line belongs to."""

from __future__ import annotations

from pathlib import Path

from midstream.settings import PROJECT_FILE


def project_of(folder: Path) -> Path:
    """The project around a folder: the nearest one with a ``.git`` or a project file.

    The folder itself where there is none.  A home folder kept in git does not count as a project:
    it contains everything.
    """
    home = Path.home()
    for around in (folder, *folder.parents):
        if (around / PROJECT_FILE).exists() or ((around / ".git").exists() and around != home):
            return around
    return folder


def opened_by(path: Path) -> tuple[Path, str | None]:
    """The folder and file that a path opens: a folder itself, or a file in its project.

    Returns:
        The folder, and the file relative to it, ``None`` without one.
    """
    if not path.is_file():
        return path, None
    folder = path.parent.resolve()
    root = project_of(folder)
    return root, (folder / path.name).relative_to(root).as_posix()
