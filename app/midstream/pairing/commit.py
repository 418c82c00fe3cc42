"""Staging and committing what was accepted, in this session or an earlier one.

Which change of a file came from a session is worked out here; where the index stands with it, and
changing the index, is ``workspace.staging``'s.  Whatever else the user has edited in the same file,
or has staged, stays as it is.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from midstream.edits.documents import LineEdit, NotTextError, SourceText, UnencodableError
from midstream.edits.lcs import line_map, matching_pairs
from midstream.errors import UserError
from midstream.pairing.events import FileChangedOnDisk, FileOpened
from midstream.pairing.unified import UnifiedDiff

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk, HunkStore
    from midstream.edits.proposal import FileProposal
    from midstream.pairing.attention import Attention
    from midstream.pairing.events import SessionEvent
    from midstream.pairing.journal import Replay
    from midstream.pairing.turns import Turn
    from midstream.workspace.staging import AcceptedChange, IndexState


MOST_READ: Final = 24_000_000
"""Bytes of journals that are followed, the newest first."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """What was accepted in one file.

    Attributes:
        path: The file, relative to the root.
        state: How far the index has it.
        added: Lines that it brings.
        deleted: Lines that it takes away.
        undecided: Hunks of the file that still wait for a decision.
        diff: The change as lines of a patch, without the two lines that name the file.
        trouble: Why it cannot be staged, ``""`` if it can.
        own: Lines of the file that the person changed and that stay out of a commit.
        new: Whether a commit brings the whole file, because git does not have it yet.
        earlier: Whether it was accepted in an earlier session.
    """

    path: str
    state: IndexState
    added: int
    deleted: int
    undecided: int
    diff: tuple[str, ...]
    trouble: str = ""
    own: int = 0
    new: bool = False
    earlier: bool = False


@dataclass(frozen=True, slots=True)
class Changes:
    """Where the index stands with everything that was accepted.

    Attributes:
        files: Files with an accepted change, by path.
        others: Further paths that are staged already, relative to the repository; a commit takes
            them along.
        branch: Where a commit would go.
        trouble: Why nothing can be staged at all, ``""`` if it can.
    """

    files: tuple[FileChange, ...] = ()
    others: tuple[str, ...] = ()
    branch: str = ""
    trouble: str = ""

    @property
    def staged(self) -> int:
        """How many files a commit would take, those that were staged elsewhere included."""
        return sum(file.state in ("staged", "partly") for file in self.files) + len(self.others)


class AcceptedChanges:
    """The accepted changes of a session.

    Args:
        root: The folder.
        files: Open proposals by path.
        hunks: Every hunk.
        attention: What was read, for the trailer.
    """

    def __init__(
        self, root: Path, files: Mapping[str, FileProposal], hunks: HunkStore, attention: Attention
    ) -> None:
        self._root = root
        self._files = files
        self._hunks = hunks
        self._attention = attention
        self._earlier = EarlierChanges(root)
        self._origins: dict[str, SourceText | None] = {}
        self._brought: set[str] = set()
        """Files that the index did not have before they were staged here."""

    def hear(self, event: SessionEvent) -> None:
        """Follow which files nobody but the session has changed."""
        if isinstance(event, FileOpened) and event.path not in self._origins:
            self._origins[event.path] = self._files[event.path].base
        elif isinstance(event, FileChangedOnDisk):
            self._origins[event.path] = None

    def texts(self, path: str) -> tuple[SourceText, SourceText] | None:
        """A file without and with what was accepted in it; ``None`` if that is the same."""
        return self._own_texts(path) or self._earlier.texts(path)

    def _own_texts(self, path: str) -> tuple[SourceText, SourceText] | None:
        """As ``texts``, of this session alone."""
        proposal = self._files.get(path)
        if proposal is None:
            return None
        after, before = proposal.composed(), self._origins.get(path)
        if before is None:  # Somebody else has changed the file as well.
            before = proposal.without_accepted()
        return None if before == after else (before, after)

    def _changes(self, paths: Mapping[str, object]) -> list[AcceptedChange]:
        from midstream.workspace.staging import AcceptedChange

        changes: list[AcceptedChange] = []
        for path in sorted(paths):
            if texts := self.texts(path):
                try:
                    encoded = [text.to_bytes() for text in texts]
                except UnencodableError:
                    continue  # It cannot have been written either.
                changes.append(AcceptedChange(path, *encoded))
        return changes

    async def look(self) -> Changes:
        """Where the index stands with every accepted change, those of earlier sessions included.

        Of these only what no commit has yet.
        """
        from midstream.workspace.staging import compare_changes

        own = {path for path in self._files if self._own_texts(path) is not None}
        await asyncio.to_thread(self._earlier.look, own)
        paths = dict.fromkeys((*own, *self._earlier.paths))
        view = await compare_changes(self._root, self._changes(paths))
        files: list[FileChange] = []
        for place in view.files:
            earlier = place.rel not in own
            if earlier and place.state == "committed":
                continue
            if texts := self.texts(place.rel):
                before, after = texts
                diff, added, deleted = _diff(SourceText((), ()) if place.new else before, after)
                counts = added, deleted, len(self._hunks.undecided(place.rel))
                known = place.trouble, place.own, place.new, earlier
                files.append(FileChange(place.rel, place.state, *counts, diff, *known))
        return Changes(tuple(files), view.others, view.branch, view.trouble)

    def asked(self, turns: Sequence[Turn]) -> tuple[str, ...]:
        """The instructions that led to the newest change that was accepted, oldest first.

        More than one where a later answer rewrote what an earlier one had brought: what the last
        of them names may never have been in the repository.
        """
        accepted = {hunk.rank[0] for hunk in self._hunks if hunk.state == "accepted"}
        change: list[Turn] = []
        for turn in reversed(turns):
            if not change:
                if accepted.intersection(turn.hunks):
                    change.append(turn)
            elif self._rewritten(turn, change[-1]):
                change.append(turn)
        words = [turn.instruction for turn in reversed(change) if not turn.correction]
        return tuple(dict.fromkeys(words))

    def _rewritten(self, turn: Turn, later: Turn) -> bool:
        """Whether a later turn went on from a turn, or over hunks of it that were undecided."""
        if later.redirected_from == turn.id:
            return True
        ids = set(turn.hunks)
        own = [hunk for hunk in self._hunks if hunk.rank[0] in ids]
        over = bool(own) and all(hunk.state == "superseded" for hunk in own)
        same = turn.symbol == later.symbol if turn.symbol and later.symbol else False
        meet = turn.start < later.stop and later.start < turn.stop
        return over and turn.path == later.path and (same or meet)

    async def recent(self) -> list[str]:
        """Subjects of the newest commits, newest first: how messages are worded here."""
        from midstream.workspace.repo import recent_subjects

        return await recent_subjects(self._root)

    async def stage(self, *paths: str) -> None:
        """Put the accepted change of files into the index, all or none.

        Raises:
            GitError: No repository, a conflict with what is staged already, or git's own words.
        """
        from midstream.workspace.staging import IndexState, compare_changes, stage_changes

        changes = self._changes(dict.fromkeys(paths))
        view = await compare_changes(self._root, changes)
        await stage_changes(self._root, changes)
        unstaged = [place for place in view.files if place.state is IndexState.UNSTAGED]
        self._brought.update(place.rel for place in unstaged if place.new)

    async def stage_whole(self, path: str) -> None:
        """Put a file into the index as it is on disk, the person's own lines included.

        Raises:
            GitError: Git's own words.
        """
        from midstream.workspace.staging import stage_whole

        await stage_whole(self._root, path)

    async def unstage(self, path: str) -> None:
        """Take the accepted change of a file out of the index again; the file stays as it is.

        Raises:
            GitError: As ``stage``.
        """
        from midstream.workspace.staging import AcceptedChange, stage_changes

        back = [
            AcceptedChange(c.rel, c.after, None if c.rel in self._brought else c.before)
            for c in self._changes({path: None})
        ]
        await stage_changes(self._root, back)
        self._brought.discard(path)

    async def commit(self, message: str, *, trailer: bool = False) -> str:
        """Commit what is staged, with the person's hooks.

        Args:
            message: The message.
            trailer: Whether to say at its end how many hunks were accepted unread.

        Returns:
            The id of the commit.

        Raises:
            GitError: Nothing is staged, the message is empty, or a hook refused; its ``output`` is
                everything that git wrote.
        """
        from midstream.workspace.staging import commit_staged

        words = self.trailer if trailer else ""
        text = message.rstrip()
        return await commit_staged(
            self._root, f"{text}\n\n{words}\n" if words and text else f"{text}\n"
        )

    @property
    def trailer(self) -> str:
        """The line that says how much of what was accepted was not on screen long enough."""
        return self._attention.trailer(self._hunks)


def _diff(before: SourceText, after: SourceText) -> tuple[tuple[str, ...], int, int]:
    """A patch without its head, and how many lines it adds and deletes."""
    patch = UnifiedDiff("", before)
    lines: list[str] = []
    added = deleted = at = at_new = 0
    ends = (len(before.lines), len(after.lines))
    for i, j in [*matching_pairs(before.lines, after.lines), ends]:
        if i > at or j > at_new:
            lines += patch.add(LineEdit(at, i, after.lines[at_new:j]))
            added, deleted = added + j - at_new, deleted + i - at
        at, at_new = i + 1, j + 1
    lines += patch.finish()
    return tuple(line.rstrip("\r\n") for line in lines[2:]), added, deleted


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
    accepted = {h.id for h in replay.hunks if h.path == path and h.state == "accepted"}
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
