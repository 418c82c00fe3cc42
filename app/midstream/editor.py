"""The user's own editor, as named by ``VISUAL`` or ``EDITOR``."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
from collections.abc import Generator, Sequence

from midstream import processes
from midstream.scratch import scratch_folder


def editor_command() -> list[str] | None:
    """The editor that ``VISUAL`` or ``EDITOR`` names, ``None`` where neither does."""
    for name in ("VISUAL", "EDITOR"):
        if words := shlex.split(os.environ.get(name, "")):
            return words
    return None


@contextlib.contextmanager
def interrupts_ignored() -> Generator[None]:
    """Leave Ctrl+C to the editor, as git does; to be used in the main thread.

    The terminal interrupts the program as well as its editor.  The editor does not inherit a
    handler, as it would ``SIG_IGN``.
    """
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def edit_text(command: Sequence[str], text: str, name: str) -> str | None:
    """Open a text in an editor and wait for it (blocking).

    Args:
        command: The editor; it gets a file as its last argument.
        text: The text to start with.
        name: Name of the temporary file; editors choose the language by it.

    Returns:
        The text as the editor left it, ``None`` if the editor failed.

    Raises:
        ScratchError: No temporary folder can be made.
    """
    with scratch_folder() as folder:
        file = folder / name
        file.write_text(text, encoding="utf-8")
        try:
            code = processes.hand_over([*command, str(file)])
            edited = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        return edited if code == 0 else None
