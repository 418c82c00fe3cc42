"""A hunk's new lines in the person's own editor."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath


def editor_command() -> list[str] | None:
    """The editor that ``VISUAL`` or ``EDITOR`` names, ``None`` where neither does."""
    for name in ("VISUAL", "EDITOR"):
        if words := shlex.split(os.environ.get(name, "")):
            return words
    return None


async def edited_text(command: Sequence[str], lines: Sequence[str], path: str) -> list[str] | None:
    """Some lines as the editor left them, ``None`` where it failed.

    Args:
        command: The editor; it gets a file as its last argument, and the terminal.
        lines: The lines to begin with.
        path: Where they belong, for the ending of the file's name.
    """
    with tempfile.TemporaryDirectory(prefix="midstream-") as folder:
        file = Path(folder) / f"hunk{PurePosixPath(path).suffix}"
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        try:
            done = await asyncio.to_thread(subprocess.run, [*command, str(file)], check=False)
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        return text.splitlines() if done.returncode == 0 else None
