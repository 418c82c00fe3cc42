"""What earlier sessions of a folder accepted that no commit has yet, from their journals.

A journal is followed as resuming would, and its hunks are moved to the file as it is on disk: only
lines that still stand as they were accepted count.  Nothing here writes, and no file is opened;
staging such a change is ``committing``'s.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from midstream.edits.documents import NotTextError, SourceText
from midstream.edits.hunks import Hunk, HunkState
from midstream.edits.lcs import line_map
from midstream.errors import UserError

if TYPE_CHECKING:
    from midstream.pairing.journal import Replay

MOST_READ: Final = 24_000_000
"""Bytes of journals that are followed, the newest first."""


class EarlierChanges:
    """Changed files with lines that an earlier session accepted.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._texts: dict[str, SourceText] = {}
        self._found: dict[str, tuple[SourceText, SourceText]] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        """Those files, relative to the root."""
        return tuple(sorted(self._found))

    def texts(self, path: str) -> tuple[SourceText, SourceText] | None:
        """A file without and with what was accepted in it, ``None`` for any other file."""
        return self._found.get(path)

    def look(self, apart: Collection[str]) -> None:
        """Find them anew, if a file has changed since (blocking).

        Args:
            apart: Files that the session on screen accepted something in itself.
        """
        from midstream.workspace.staging import changed_files, committed_file

        tracked, new = changed_files(self._root)
        texts = {
            path: text
            for path in (tracked | new).difference(apart)
            if (text := self._read(path)) is not None
        }
        if texts == self._texts:
            return
        before = dict(texts)
        for replay in _sessions(self._root, tuple(texts)):
            for path in texts.keys() & replay.files.keys():
                committed = committed_file(self._root, path) if path in tracked else b""
                before[path] = _without(replay, path, before[path], _lines(committed))
        self._texts = texts
        # A file that git does not have goes into a commit whole: only if all of it was accepted.
        self._found = {
            path: (before[path], text)
            for path, text in texts.items()
            if before[path] != text and (path in tracked or not before[path].lines)
        }

    def _read(self, path: str) -> SourceText | None:
        place = self._root / path
        try:
            return None if place.is_symlink() else SourceText.from_bytes(place.read_bytes())
        except (OSError, NotTextError):
            return None


def _sessions(root: Path, paths: Collection[str]) -> list[Replay]:
    """The finished sessions whose journals name one of the files, last used first."""
    from midstream.pairing.journal import Replay, earlier_sessions

    names = [json.dumps(path).encode() for path in paths]
    found: list[Replay] = []
    left = MOST_READ
    for info in sorted(earlier_sessions(root), key=lambda info: info.changed, reverse=True):
        if not names or info.live or info.size > left:
            continue
        try:
            data = info.path.read_bytes()
            # A journal in parts may name it in any of them.
            if len(data) == info.size and not any(name in data for name in names):
                continue
            left -= info.size
            found.append(Replay.read(info.path))
        except (OSError, UserError):
            continue
    return found


def _without(replay: Replay, path: str, text: SourceText, committed: tuple[str, ...]) -> SourceText:
    """A text without what a session accepted in it and ``committed`` lines do not have."""
    accepted = {h.id for h in replay.hunks if h.path == path and h.state is HunkState.ACCEPTED}
    if not accepted:
        return text
    proposal = replay.files[path]
    if proposal.current is not None:
        proposal.abandon()
    proposal.advance(text)
    moves = line_map(text.lines, committed)

    def counts(hunk: Hunk) -> bool:
        """Also what was accepted before the move and not what only looks like it since."""
        return hunk.id in accepted and not _has(moves, len(committed), hunk.start, hunk.stop)

    return proposal.without_accepted(counts)


def _has(moves: Collection[int], total: int, start: int, stop: int) -> bool:
    """Whether lines ``[start, stop)`` stand in the other text, too; if none, their neighbours."""
    ends = [-1, *moves, total]
    if start < stop:
        return all(line >= 0 for line in ends[start + 1 : stop + 1])
    return ends[start] + 1 == ends[start + 1]


def _lines(data: bytes) -> tuple[str, ...]:
    try:
        return SourceText.from_bytes(data).lines
    except NotTextError:
        return ()
