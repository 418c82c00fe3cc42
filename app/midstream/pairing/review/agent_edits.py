"""Attributes hunks to the edits of a coding agent, by comparing lines, never by time."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from midstream.edits.lcs import line_edits
from midstream.pairing.chat.entries import QuestionState, ToolUse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from midstream.agents.messages import ToolDiff
    from midstream.edits.hunks import Hunk
    from midstream.pairing.review.agent_conversation import AgentConversation

SignedLine: TypeAlias = tuple[str, str]
"""``-`` or ``+``, and a line."""


_MAX_LINES: Final = 4_000
"""Lines that are compared of each text: keys wait for that, and an agent may send any number."""
_MAX_CHARACTERS: Final = 200_000
"""The same in characters."""


class ChangedLines(NamedTuple):
    """The lines that an edit takes away and adds, in order, each with its sign.

    Attributes:
        lines: The lines; of a large edit the first ones.
        whole: Whether these are all.
    """

    lines: tuple[SignedLine, ...]
    whole: bool


@lru_cache(256)  # it is looked up for each hunk, whenever the agent says anything
def changed_lines(old: str, new: str) -> ChangedLines:
    """The lines that an edit changes, as far as they are found quickly."""
    texts = _parts_that_differ(old, new)
    before, after = (text[:_MAX_CHARACTERS].splitlines() for text in texts)
    whole = max(map(len, texts)) <= _MAX_CHARACTERS and max(len(before), len(after)) <= _MAX_LINES
    before, after = before[:_MAX_LINES], after[:_MAX_LINES]
    edits = line_edits(before, after)
    if not whole and len(edits) > 1:
        edits.pop()  # Its lines may be among those that were left out.
    changed: list[SignedLine] = []
    for edit in edits:
        changed += (("-", line) for line in before[edit.start : edit.stop])
        changed += (("+", line) for line in edit.lines)
    return ChangedLines(tuple(changed), whole)


def place_of_edit(lines: Sequence[str], old: str, new: str) -> int | None:
    """The line of a file at which an edit begins, if its old text is there once (blocking)."""
    before, after = old.splitlines(), new.splitlines()
    if not before or before == after:
        return None
    text, wanted = ("\n".join(("", *part, "")) for part in (lines, before))
    at = text.find(wanted)
    if at < 0 or text.find(wanted, at + 1) >= 0:
        return None
    pairs = enumerate(zip(before, after, strict=False))
    same = next((n for n, (one, other) in pairs if one != other), min(len(before), len(after)))
    return min(text.count("\n", 0, at) + same, len(lines) - 1)


def _parts_that_differ(old: str, new: str) -> tuple[str, str]:
    """Two texts without the lines that both begin with and those that both end with."""
    shared = _shared(old, new, min(len(old), len(new)))
    start = old.rfind("\n", 0, shared) + 1
    shared = _shared(old, new, min(len(old), len(new)) - start, at_end=True)
    stop = old.find("\n", len(old) - shared) + 1 or len(old)
    return old[start:stop], new[start : len(new) - len(old) + stop]


def _shared(old: str, new: str, most: int, *, at_end: bool = False) -> int:
    """How many characters two texts have in common at their beginning or end, at most ``most``."""
    known = 0
    while known < most:
        middle = (known + most + 1) // 2
        part = slice(-middle, -known or None) if at_end else slice(known, middle)
        if old[part] == new[part]:
            known = middle
        else:
            most = middle - 1
    return known


def files_of(use: ToolUse) -> tuple[str, ...]:
    """The files that a use of a tool is about, as the agent names them."""
    return use.call.paths or tuple(dict.fromkeys(diff.path for diff in use.call.diffs))


def relative_to(root: Path, path: str) -> str:
    """A path of an agent relative to the folder, ``""`` if it is not in it."""
    root = root.resolve()
    try:
        # `Path.resolve` fails for links in a circle, before Python 3.13.
        return Path(os.path.realpath(root / path)).relative_to(root).as_posix()
    except ValueError:
        return ""


def shared_lines(diff: ToolDiff, hunk: Hunk) -> frozenset[SignedLine]:
    """The changed lines that an edit and a hunk have in common; a large edit is not searched."""
    changed = changed_lines(diff.old or "", diff.new)
    return _changes_of(hunk).intersection(changed.lines if changed.whole else ())


def _changes_of(hunk: Hunk) -> frozenset[SignedLine]:
    """The lines that a hunk takes away and adds; blank ones tell nothing."""
    lines = [*(("-", line) for line in hunk.old), *(("+", line) for line in hunk.new)]
    return frozenset(line for line in lines if line[1].strip())


class AgentEdit(NamedTuple):
    """An edit in a conversation, and what led to it.

    Attributes:
        use: The use of a tool.
        diff: One of its edits.
        turn: The turn of the conversation, from 1.
        asked: What the agent was asked in it.
        said: What it said last before the edit.
    """

    use: ToolUse
    diff: ToolDiff
    turn: int
    asked: str
    said: str


class Authors:
    """Finds the edits of an agent that explain hunks.

    Args:
        root: The folder of the session.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._paths: dict[str, str] = {}
        self._read: tuple[AgentConversation | None, int] = (None, -1)
        self._edits: dict[str, list[AgentEdit]] = {}

    def edit_of(self, hunk: Hunk, conversation: AgentConversation) -> AgentEdit | None:
        """The last edit that shares lines with a hunk, ``None`` unless all lines are explained."""
        if self._read != (conversation, conversation.edits):
            self._read = conversation, conversation.edits
            self._edits = self._by_file(conversation)
        left = set(_changes_of(hunk))
        last: AgentEdit | None = None
        for edit in self._edits.get(hunk.path, ()):
            use, diff = edit.use, edit.diff
            if use.call.status == "failed" or use.question is QuestionState.REJECTED:
                continue
            if shared := shared_lines(diff, hunk):
                last = edit
                left -= shared
            if diff.old is None:  # The agent does not report what it overwrote.
                left = {line for line in left if line[0] == "+"}
        return None if left else last

    def _by_file(self, conversation: AgentConversation) -> dict[str, list[AgentEdit]]:
        edits: dict[str, list[AgentEdit]] = {}
        turn, asked, said = 0, "", ""
        for entry in conversation.entries:
            if isinstance(entry, ToolUse):
                for diff in entry.call.diffs:
                    edit = AgentEdit(entry, diff, turn, asked, said)
                    edits.setdefault(self._relative(diff.path), []).append(edit)
            elif entry.role == "user":
                turn, asked, said = turn + 1, entry.text, ""
            elif entry.role == "agent":
                said = entry.text
        return edits

    def _relative(self, path: str) -> str:
        if path not in self._paths:
            self._paths[path] = relative_to(self._root, path)
        return self._paths[path]
