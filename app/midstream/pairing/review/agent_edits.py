"""Attributes hunks to the edits of a coding agent, by comparing lines, never by time."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from midstream.edits.lcs import line_edits
from midstream.pairing.chat.entries import QuestionState, ToolUse

if TYPE_CHECKING:
    from midstream.agents.messages import ToolDiff
    from midstream.edits.hunks import Hunk
    from midstream.pairing.review.agent_conversation import AgentConversation

SignedLine: TypeAlias = tuple[str, str]
"""``-`` or ``+``, and a line."""


@lru_cache(8)  # it is asked for as often as anything is said
def changed_lines(old: str, new: str) -> tuple[SignedLine, ...]:
    """The lines that an edit takes away and adds, in order, each with its sign."""
    before = old.splitlines()
    changed: list[SignedLine] = []
    for edit in line_edits(before, new.splitlines()):
        changed += (("-", line) for line in before[edit.start : edit.stop])
        changed += (("+", line) for line in edit.lines)
    return tuple(changed)


def files_of(use: ToolUse) -> tuple[str, ...]:
    """The files that a use of a tool is about, as the agent names them."""
    return use.call.paths or tuple(dict.fromkeys(diff.path for diff in use.call.diffs))


def relative_to(root: Path, path: str) -> str:
    """A path of an agent relative to the folder, ``""`` if it is not in it."""
    root = root.resolve()
    try:
        return (root / path).resolve().relative_to(root).as_posix()
    except (ValueError, OSError):
        return ""


def shared_lines(diff: ToolDiff, hunk: Hunk) -> frozenset[SignedLine]:
    """The changed lines that an edit and a hunk have in common."""
    return _changes_of(hunk).intersection(changed_lines(diff.old or "", diff.new))


def _changes_of(hunk: Hunk) -> frozenset[SignedLine]:
    """The lines that a hunk takes away and adds; blank ones tell nothing."""
    lines = [*(("-", line) for line in hunk.old), *(("+", line) for line in hunk.new)]
    return frozenset(line for line in lines if line[1].strip())


class Authors:
    """Names the agent, and its turn, that wrote a hunk; nobody where the lines do not tell.

    Args:
        root: The folder of the session.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[int, tuple[int, str]] = {}
        self._paths: dict[str, str] = {}

    def forget(self) -> None:
        """Begin anew, with another conversation."""
        self._known.clear()

    def of(self, hunk: Hunk, conversation: AgentConversation) -> str:
        """The agent and its turn, ``""`` unless its edits explain every line of the hunk."""
        heard, author = self._known.get(hunk.id, (-1, ""))
        if author or heard == conversation.edits:
            return author
        author = self._find(hunk, conversation)
        self._known[hunk.id] = conversation.edits, author
        return author

    def _find(self, hunk: Hunk, conversation: AgentConversation) -> str:
        left = set(_changes_of(hunk))
        turn = last = 0
        for entry in conversation.entries:
            if not isinstance(entry, ToolUse):
                turn += entry.role == "user"
                continue
            if entry.call.status == "failed" or entry.question is QuestionState.REJECTED:
                continue
            for diff in entry.call.diffs:
                if self._relative(diff.path) != hunk.path:
                    continue
                if shared := shared_lines(diff, hunk):
                    last = turn
                    left -= shared
                if diff.old is None:  # What was overwritten is not told.
                    left = {line for line in left if line[0] == "+"}
        return f"{conversation.title}, turn {last}" if last and not left else ""

    def _relative(self, path: str) -> str:
        if path not in self._paths:
            self._paths[path] = relative_to(self._root, path)
        return self._paths[path]
