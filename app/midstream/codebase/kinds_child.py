"""A process that tells what kinds of change the hunks of files are.

Reads one file a line, as JSON, and prints what its hunks are in one line, in the same order (see
``codebase.kinds``).  It imports little: the first answer waits for its imports.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Final

import msgspec

from midstream.edits.kinds import ChangedFile, facts_in

_GARBAGE: Final = 100_000
"""Objects between two collections: trees are freed without, and are made of many objects."""


def main() -> None:
    """Print the facts of each file, at a low priority."""
    if hasattr(os, "nice"):
        os.nice(5)
    gc.freeze()
    gc.set_threshold(_GARBAGE)
    decoder = msgspec.json.Decoder(ChangedFile)
    for line in sys.stdin.buffer:
        facts = facts_in(decoder.decode(line))
        answer = [(hunk.kinds, hunk.changes, hunk.partial, hunk.bound) for hunk in facts]
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
