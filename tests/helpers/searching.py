"""Search programs in place of ripgrep."""

from __future__ import annotations

import os
from pathlib import Path


def with_search(folder: Path, script: str) -> str:
    """Make a ``rg`` of a shell script; a ``PATH`` on which it comes first."""
    folder.mkdir(exist_ok=True)
    (folder / "rg").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "rg").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def with_reckless_search(folder: Path) -> str:
    """One that knows nothing of ignored files, and shows whatever it is pointed at."""
    return with_search(
        folder,
        'while [ "$1" != -e ]; do shift; done\nexec grep -rnHZ --exclude-dir=.git -e "$2" -- "$4"',
    )


def with_configured_search(folder: Path) -> str:
    """One that does what its configuration says, which ripgrep is told to leave aside."""
    return with_search(
        folder,
        'for given; do [ "$given" != --no-config ] || exit 1; done\n. "$RIPGREP_CONFIG_PATH"',
    )


def with_slow_search(folder: Path, begun: Path) -> str:
    """One that notes its process in ``begun``, and does not end."""
    return with_search(folder, f"echo $$ > {begun}.part; mv {begun}.part {begun}; exec sleep 600")
