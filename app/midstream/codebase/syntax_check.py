"""Whether a file still parses.

Python's parser holds the GIL for as long as it runs, 20 us a line.  Long texts are parsed in a
child process, so that the screen keeps answering keys.
"""

from __future__ import annotations

import asyncio
import json
from typing import Final

from midstream import processes
from midstream.code.syntax import has_syntax, is_python, newly_broken

AT_ONCE: Final = 10_000
"""Characters that are parsed here, within some 3 ms; a process takes 50 ms to begin."""


async def breaks(path: str, before: str, after: str) -> str:
    """What ``newly_broken`` says, without holding the loop up.

    A text that takes the parser too long counts as one without errors.

    Args:
        path: The file; ``""`` comes back for a language without a parser here.
        before: Its text before.
        after: Its text after.
    """
    if not has_syntax(path):
        return ""
    if max(len(before), len(after)) <= AT_ONCE:
        return newly_broken(path, before, after)
    return await asyncio.to_thread(_ask_child, path, before, after)


async def where_broken(path: str, text: str) -> str:
    """Say where a text breaks the syntax of its language, ``""`` if it does not."""
    return await breaks(path, "", text)


def _ask_child(path: str, before: str, after: str) -> str:
    asked = json.dumps({"path": path, "before": before, "after": after})
    try:
        done = processes.run(
            processes.python("midstream.codebase.syntax_child"),
            environ=processes.python_environment(),
            stdin=asked.encode(),
            timeout=10.0,
        )
    except TimeoutError:
        return ""
    except OSError:  # No process can be started; then it has to be done here.
        return newly_broken(path, before, after)
    # The parser can bring down its process by a text that is nested too deeply.
    if done.code != 0:
        return "it cannot be read as Python" if is_python(path) else "it cannot be read"
    return done.output.decode()
