"""A process that parses two versions of a file and reports where the second breaks its syntax."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, cast

from midstream.code.syntax import newly_broken


def main() -> None:
    """Print what ``newly_broken`` says of ``{"path", "before", "after"}``, at a low priority."""
    if hasattr(os, "nice"):
        os.nice(10)
    asked = cast("dict[str, Any]", json.loads(sys.stdin.buffer.read()))
    said = newly_broken(asked["path"], asked["before"], asked["after"])
    sys.stdout.buffer.write(said.encode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    main()
