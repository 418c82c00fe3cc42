"""Whether a file still parses.

Python's parser holds the GIL for as long as it runs, 20 us a line.  Long texts are parsed in a
child process, so that the screen keeps answering keys.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from midstream.edits.documents import join_lines
from midstream.edits.syntax import is_python, syntax_error

AT_ONCE: Final = 10_000
"""Characters that are parsed here, within some 3 ms; a process takes 50 ms to begin."""
_PARSER_S: Final = 10.0


async def breaks(path: str, before: Sequence[str], after: str) -> str:
    """Say where a file stops parsing; ``""`` if it does not, did not before, or is not Python.

    Args:
        path: The file; nothing but Python has a parser here.
        before: Its lines before.
        after: Its text after.
    """
    if not is_python(path) or not (broken := await where_broken(after)):
        return ""
    return "" if await where_broken(join_lines(before)) else broken


async def where_broken(text: str) -> str:
    """What :func:`~midstream.edits.syntax.syntax_error` says, without holding the loop up.

    A text that takes the parser too long counts as one without errors.
    """
    if len(text) <= AT_ONCE:
        return syntax_error(text)
    return await asyncio.to_thread(_ask_child, text)


def _ask_child(text: str) -> str:
    command = [sys.executable, "-P", "-m", "midstream.pairing.syntax_child"]
    try:
        done = subprocess.run(
            command,
            input=text.encode("utf-8", "surrogatepass"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PARSER_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    except OSError:  # No process can be started; then it has to be done here.
        return syntax_error(text)
    # The parser can bring down its process by a text that is nested too deeply.
    return done.stdout.decode() if done.returncode == 0 else "it cannot be read as Python"
