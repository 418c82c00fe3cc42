"""Files that an instruction names with ``@``: ``@app.py``, ``@src/util.py:10-40``, ``@"my file"``.

A word with an ``@`` that is no file and does not look like one (``@property``) is left alone.
Finds and judges names; reading is ``sources``'s.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from midstream.errors import UserError

if TYPE_CHECKING:
    from midstream.workspace.files import Workspace

_MENTION = re.compile(
    r"(?<![\w@`])@(?:\"(?P<quoted>[^\"\n]+)\"|(?P<bare>[\w.~/\\-]*[\w/]))"
    r"(?::(?P<first>\d+)(?:-(?P<last>\d+))?)?"
)
_LIKE_A_FILE = re.compile(r"/|\.[A-Za-z][A-Za-z0-9]{0,5}$")


class UnknownFileError(UserError):
    """An instruction names a file that is not there."""

    code = "unknown-file"
    exit_code = 2


class NeedsConsentError(UserError):
    """An instruction names files that git ignores; they go out only if the person says so.

    Attributes:
        paths: The files, relative to the root.
    """

    code = "needs-consent"

    def __init__(self, paths: tuple[str, ...]) -> None:
        names = ", ".join(paths)
        it = "it" if len(paths) == 1 else "them"
        super().__init__(
            f"{names} {'is' if len(paths) == 1 else 'are'} ignored by git and may hold secrets; "
            f"allow sending {it}, or take the @ away."
        )
        self.paths = paths


@dataclass(frozen=True, slots=True)
class AtPath:
    """One named file.

    Attributes:
        path: Relative to the root.
        lines: 0-based half-open range of lines that is meant, ``None`` for all.
    """

    path: str
    lines: tuple[int, int] | None = None


def without_mentions(instruction: str) -> str:
    """The instruction with ``@`` names taken out, so that their parts are no names of code."""
    return _MENTION.sub(
        lambda m: "" if _name(m) and _LIKE_A_FILE.search(_name(m)) else m[0], instruction
    )


def find_at_paths(
    instruction: str, workspace: Workspace, allowed: Collection[str] = ()
) -> tuple[AtPath, ...]:
    """The files that an instruction names, in its order (blocking).

    Args:
        instruction: What the person wrote.
        workspace: The folder.
        allowed: Ignored files that the person lets go out.

    Raises:
        UnknownFileError: A name that looks like a file's is none.
        NeedsConsentError: A file is ignored by git.
        UserError: A name leaves the folder.
    """
    found: dict[AtPath, None] = {}
    ignored: list[str] = []
    for match in _MENTION.finditer(instruction):
        name = _name(match)
        path = workspace.relative(name) if _LIKE_A_FILE.search(name) or match["quoted"] else name
        if not (workspace.root / path).is_file():
            if match["quoted"] or _LIKE_A_FILE.search(name):
                raise UnknownFileError(f"There is no file {name}{_nearest(name, workspace)}.")
            continue
        if path not in allowed and workspace.ignores(path):
            ignored.append(path)
            continue
        lines = None
        if match["first"]:
            first = max(1, int(match["first"]))
            lines = (first - 1, max(first, int(match["last"] or first)))
        found[AtPath(path, lines)] = None
    if ignored:
        raise NeedsConsentError(tuple(dict.fromkeys(ignored)))
    return tuple(found)


def _name(match: re.Match[str]) -> str:
    return match["quoted"] or match["bare"]


def _nearest(name: str, workspace: Workspace) -> str:
    paths = workspace.files()
    by_name = {path.rpartition("/")[2]: path for path in paths}
    near = difflib.get_close_matches(name, paths, n=1, cutoff=0.6) or [
        by_name[n] for n in difflib.get_close_matches(name.rpartition("/")[2], by_name, n=1)
    ]
    return f"; did you mean @{near[0]}?" if near else "; name one that exists, or drop the @"
