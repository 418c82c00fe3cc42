"""A process that tells what kinds of change the hunks of files are.

Reads one JSON list of files from its input and prints the facts of one file a line, each as soon as
it is found (see ``codebase.kinds``).
"""

from __future__ import annotations

import os
import sys
from typing import Final

import msgspec

from midstream.codebase.kinds import ChangedFile, facts_in

_MODEST: Final = 5


def main() -> None:
    """Print the facts of each file, at a low priority."""
    if hasattr(os, "nice"):
        os.nice(_MODEST)
    for file in msgspec.json.decode(sys.stdin.buffer.read(), type=list[ChangedFile]):
        sys.stdout.buffer.write(msgspec.json.encode(facts_in(file)) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
