"""Finding the file that an instruction is about when none was named."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from midstream.edits.syntax import is_python
from midstream.errors import UserError
from midstream.pairing.targets import TargetUnclearError, find_in_files

if TYPE_CHECKING:
    from midstream.workspace.files import Workspace

LONGEST_BYTES = 2_000_000
"""Larger files are not searched."""


async def search_workspace(workspace: Workspace, instruction: str) -> str:
    """The one Python file of the workspace that defines what ``instruction`` names.

    Raises:
        TargetUnclearError: None is named, or several are, or there is no Python file.
    """
    return await asyncio.to_thread(_search, workspace, instruction)


def _search(workspace: Workspace, instruction: str) -> str:
    paths = [path for path in workspace.files() if is_python(path)]
    if not paths:
        raise TargetUnclearError(
            f"There is no Python file in {workspace.root}; open a folder with code or name a file."
        )
    return find_in_files(_texts(workspace, paths), instruction=instruction)[0]


def _texts(workspace: Workspace, paths: list[str]) -> Iterator[tuple[str, str]]:
    for path in paths:
        try:
            data = workspace.read(path)
        except UserError:
            continue  # Unreadable files cannot be edited either.
        if len(data) <= LONGEST_BYTES:
            yield path, data.decode("utf-8", "replace").replace("\r\n", "\n")
