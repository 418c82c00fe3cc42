"""A look at a finished answer: does the file still parse, if it did before?

Python's parser holds the interpreter for as long as it reads, 20 us a line, in a thread as well.
So a long text is read by a process of its own, while keys go on being answered here.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Final

from midstream.edits.documents import join_lines
from midstream.edits.proposal import FileProposal
from midstream.edits.syntax import is_python, syntax_error

AT_ONCE: Final = 10_000
"""Characters that are read here, within some 3 ms; a process takes 50 ms to begin."""
_MOST_LINES: Final = 5_000
"""Longer files are not checked: the end of the answer would wait for it."""
_LONGEST_S: Final = 10.0


async def newly_broken(proposal: FileProposal) -> str:
    """Say where a Python file stops parsing if all open hunks are accepted.

    Returns:
        ``"line 12: invalid syntax"``, or ``""`` where nothing is wrong, the file did not parse
        before either, or it is not checked.
    """
    lines = proposal.base.lines
    if not is_python(proposal.path) or len(lines) > _MOST_LINES:
        return ""
    after = await where_broken(proposal.proposed_region(0, len(lines)))
    return after if after and not await where_broken(join_lines(lines)) else ""


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
            timeout=_LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    except OSError:  # No process can be started; then it has to be done here.
        return syntax_error(text)
    # The parser can bring down its process by a text that is nested too deeply.
    return done.stdout.decode() if done.returncode == 0 else "it cannot be read as Python"
