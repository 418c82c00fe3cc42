"""A process that reads one Python text from its input and says where it stops being Python."""

from __future__ import annotations

import os
import sys
from typing import Final

from midstream.edits.syntax import syntax_error

_MODEST: Final = 10


def main() -> None:
    """Print ``syntax_error`` of the text, at a low priority."""
    if hasattr(os, "nice"):
        os.nice(_MODEST)
    text = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
    sys.stdout.buffer.write(syntax_error(text).encode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    main()
