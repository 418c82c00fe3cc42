"""``midstream guard`` without the rest of Midstream."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> int:
    """Run it; returns its exit code."""
    sys.path.insert(0, str(Path(__file__).parent / "_parts"))
    from midstream.cli import main as run

    return run(["guard", *sys.argv[1:]])
