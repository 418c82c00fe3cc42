"""A look at a finished answer: does the file still parse, if it did before?"""

from __future__ import annotations

from midstream.edits.documents import join_lines
from midstream.edits.proposal import FileProposal
from midstream.edits.syntax import is_python, syntax_error

_MOST_LINES = 5_000
"""Longer files are not checked: parsing them would hold up the screen."""


def newly_broken(proposal: FileProposal) -> str:
    """Say where a Python file stops parsing if all open hunks are accepted.

    Returns:
        ``"line 12: invalid syntax"``, or ``""`` where nothing is wrong, the file did not parse
        before either, or it is not checked.
    """
    lines = proposal.base.lines
    if not is_python(proposal.path) or len(lines) > _MOST_LINES:
        return ""
    after = syntax_error(proposal.proposed_region(0, len(lines)))
    return after if after and not syntax_error(join_lines(lines)) else ""
