"""Crash reports: a report that is safe to share, and the message that the user sees.

A report contains the stack and nothing that the code was working on: no locals, no file contents,
no paths outside the program, and one masked line of the error's message.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from midstream import __version__
from midstream.errors import UserError
from midstream.resources import tilde

MAX_MESSAGE: Final = 160
"""Characters of an error's message that are kept."""
MAX_FRAMES: Final = 60
"""Calls listed per error; of a deeper stack, the outermost and innermost ones."""
_LIBRARIES: Final = ("textual", "rich", "websockets", "onnxruntime")
_QUOTED: Final = re.compile(r"(['\"])(?:(?!\1).){25,}\1")
"""Longer quotations may be file contents."""
_PACKAGE: Final = Path(__file__).resolve().parent


class DefectError(UserError):
    """The program itself failed; ``str(error)`` names the report."""

    code = "defect"


def brief(error: BaseException) -> str:
    """What failed and where, in a few words: ``IndexError in tui/widgets/rail.py, line 12``."""
    error = _origin(error)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _place(frame.filename).startswith("midstream/")]
    kind = type(error).__name__
    if not frames:
        return kind
    frame = (own or list(frames))[-1]
    return f"{kind} in {_place(frame.filename).removeprefix('midstream/')}, line {frame.lineno}"


def report(error: BaseException) -> str:
    """The report of a defect, as text."""
    lines = [
        f"Midstream {__version__}: {brief(error)}",
        f"Python {platform.python_version()} on {platform.system()} {platform.release()} "
        f"({platform.machine()})",
        ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES),
        "terminal "
        + ", ".join(f"{name}={os.environ.get(name, '')}" for name in ("TERM", "COLORTERM", "LANG")),
        "",
        "The calls that led there, the innermost last; this report contains no file contents.",
    ]
    for link in _chain(error):
        lines += ["", *_frames(link)]
    return "\n".join(lines) + "\n"


def keep_report(error: BaseException) -> Path | None:
    """Write the report of a defect to a new private file, beside the journals.

    Returns:
        The file, or ``None`` where nothing can be written.
    """
    from midstream.workspace.paths import make_private, state_dir

    folder = state_dir()
    name = time.strftime("crash-%Y%m%d-%H%M%S")
    try:
        make_private(folder)
        for number in range(1, 100):
            path = folder / (f"{name}.txt" if number == 1 else f"{name}-{number}.txt")
            try:
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                continue
            with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
                file.write(report(error))
            return path
    except OSError:
        return None
    return None


def sentence(error: BaseException, path: Path | None, *, kept: str) -> str:
    """The sentence for a user whose program had to stop.

    Args:
        error: The unexpected error.
        path: The report.
        kept: What happened to the user's work, and how to continue.
    """
    where = f"A report is in {tilde(path)}" if path else "No report could be written"
    return f"Midstream stopped because of a defect: {brief(error)}. {where}; {kept}."


def _origin(error: BaseException) -> BaseException:
    """The error inside a background task's wrapper."""
    inner = getattr(error, "error", None)
    return inner if isinstance(inner, BaseException) else error


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what caused it, the cause first."""
    found: list[BaseException] = []
    link: BaseException | None = _origin(error)
    while link is not None and link not in found:
        found.insert(0, link)
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return iter(found)


def _frames(error: BaseException) -> Iterator[str]:
    frames = traceback.extract_tb(error.__traceback__, limit=None)
    half = MAX_FRAMES // 2
    for number, frame in enumerate(frames):
        if half <= number < len(frames) - half:
            if number == half:
                yield f"  … {len(frames) - 2 * half} more"
            continue
        yield f"  {_place(frame.filename)}, line {frame.lineno}, in {frame.name}"
    words = _words(error)
    yield f"{type(error).__name__}: {words}" if words else type(error).__name__


def _words(error: BaseException) -> str:
    """The error's message: one line, shortened, without credentials."""
    from midstream.guard.secrets import mask

    try:
        text = " ".join(str(error).split())
    except Exception:  # a defect while reporting a defect
        return ""
    text = "".join(c if c.isprintable() else "\ufffd" for c in mask(text))
    text = _QUOTED.sub(r"\1…\1", text.replace(str(Path.home()), "~"))
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"


def _place(filename: str) -> str:
    """A file of the program or of a library, without the folders above it on this machine."""
    path = Path(filename)
    if path.is_relative_to(_PACKAGE):
        return f"midstream/{path.relative_to(_PACKAGE).as_posix()}"
    for folder in sorted({Path(entry) for entry in sys.path if entry}, key=lambda p: -len(p.parts)):
        if path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    return path.name


def _version(name: str) -> str:
    from importlib import metadata  # the program starts faster without

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"
