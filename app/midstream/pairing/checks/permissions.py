"""Permissions: the commands that a folder suggests and the user has confirmed, by folder.

They are kept in a file of their own in the state folder. A command that it does not list is asked
about again, never taken for granted.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import msgspec

from midstream.resources import read_small
from midstream.workspace import atomic
from midstream.workspace.paths import root_key, state_dir

if TYPE_CHECKING:
    from pathlib import Path

FILE: Final = "permissions.json"


def is_permitted(root: Path, command: str) -> bool:
    """Whether a command may run in a folder (blocking); not if the file is missing or damaged."""
    return command in _read().get(root_key(root), [])


def permit(root: Path, command: str) -> None:
    """Keep that a command may run in a folder, and in no other (blocking).

    A failed write is ignored: it is asked for again then.
    """
    permitted = _read()
    commands = permitted.setdefault(root_key(root), [])
    if command not in commands:
        commands.append(command)
        with contextlib.suppress(OSError):
            atomic.overwrite(state_dir() / FILE, msgspec.json.encode(permitted))


def _read() -> dict[str, list[str]]:
    try:
        data = read_small(state_dir() / FILE)
        return msgspec.json.decode(data, type=dict[str, list[str]])
    except (OSError, msgspec.DecodeError, RecursionError):
        return {}
