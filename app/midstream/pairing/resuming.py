"""Taking up an earlier session from its journal.

The entries are fed into a fresh hunk store in their order, which gives the same hunks with the same
ids.  Whether the last write reached the disk is seen from the disk.  Opens no file but the journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from midstream.edits.documents import SourceText, UnencodableError
from midstream.edits.hunks import HunkState, HunkStore, Quarantine
from midstream.edits.proposal import FileProposal
from midstream.errors import UserError
from midstream.pairing.recorder import Recorder, unpack
from midstream.pairing.turns import Turn, TurnStatus
from midstream.workspace.files import content_digest

if TYPE_CHECKING:
    from midstream.workspace.journal import JournalEntry


class ResumeError(UserError):
    """The journal cannot be followed; the session starts without it."""

    code = "resume"


class Replay:
    """The state that a journal leads to.

    Attributes:
        hunks: All hunks and decisions.
        files: Proposals by path.
        digests: What each file had on disk when last read or written.
        absent: Files of which an empty text means that there is no such file.
        turns: All turns, oldest first.
        released: Hunks that a person let go which the guard held back.
    """

    def __init__(self) -> None:
        self.hunks = HunkStore()
        self.files: dict[str, FileProposal] = {}
        self.digests: dict[str, str | None] = {}
        self.absent: set[str] = set()
        self.turns: list[Turn] = []
        self.released: set[int] = set()
        self._open_step = ""

    @classmethod
    def read(cls, path: Path) -> Replay:
        """Follow a journal to its end.

        Raises:
            ResumeError: It is damaged, was cut, or belongs to a version that worked otherwise.
        """
        from midstream.workspace.journal import Journal

        replay = cls()
        try:
            replay.follow(Journal.read(path))
        except OSError as error:
            raise ResumeError(
                f"The journal {path} cannot be read ({error.strerror}); starting without it."
            ) from None
        return replay

    def follow(self, entries: Iterable[JournalEntry]) -> None:
        """Apply entries in order.

        Raises:
            ResumeError: One of them does not fit.
        """
        for number, entry in enumerate(entries):
            try:
                self._apply(entry.kind, entry.data)
            except (KeyError, ValueError, TypeError, IndexError) as error:
                raise ResumeError(
                    f"The last session cannot be taken up: its journal breaks at entry {number} "
                    f"({error}). Accepted hunks are on disk; undecided ones are lost."
                ) from None

    def _apply(self, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "base":
            self._base(data["path"], unpack(data["data"]), data["digest"])
        elif kind in ("begin", "ask", "redirect", "end"):
            self._turn(kind, read_turn(data["turn"]), repair=bool(data.get("repair")))
        elif kind == "segment":
            self.files[data["path"]].begin(
                data["start"], data["stop"], match_level=data["level"], tight=data["tight"]
            )
        elif kind == "withdraw":
            proposal = self.files[data["path"]]
            for segment in [s for s in proposal.segments if s.serial == data["serial"]]:
                proposal.withdraw(segment)
        elif kind == "absent":
            self.absent.add(data["path"])
        elif kind == "text":
            self.files[data["path"]].feed(data["text"])
        elif kind in ("freeze", "resume", "finish", "abandon"):
            getattr(self.files[data["path"]], kind)()
        elif kind == "decide":
            self.hunks.decide(data["ids"], HunkState(data["state"]), data["note"])
            self._step(kind)
        elif kind == "decide_lines":
            state = HunkState(data["state"])
            self.hunks.decide_lines(data["id"], data["start"], data["stop"], state, data["note"])
            self._step(kind)
        elif kind == "split":
            self.hunks.split(data["id"], [(old, new) for old, new in data["cuts"]])
        elif kind == "edit":
            self.hunks.edit(data["id"], data["new"])
        elif kind == "quarantine":
            self.hunks.quarantine(data["id"], Quarantine(data["rule"], data["message"]))
        elif kind == "release":
            self.hunks.release(data["id"], data["note"])
            self.released.add(data["id"])
        elif kind == "undo":
            self.hunks.undo()
            self._step(kind)
        elif kind == "redo":
            self.hunks.redo()
            self._step(kind)
        elif kind == "writing":
            pass  # Whether it was done is seen from the disk.
        elif kind == "wrote":
            self.digests.update(data["digests"])
            self._open_step = ""
        else:
            raise ValueError(f"unknown entry {kind!r}")

    def _base(self, path: str, data: bytes, digest: str | None) -> None:
        text = SourceText.from_bytes(data)
        if path in self.files:
            self.files[path].advance(text)
        else:
            self.files[path] = FileProposal(path, text, self.hunks)
        self.digests[path] = digest

    def _turn(self, kind: str, turn: Turn, *, repair: bool) -> None:
        if kind == "end":
            self.turns = [turn if known.id == turn.id else known for known in self.turns]
            return
        if kind == "begin":
            self.files[turn.path].begin(turn.start, turn.stop, repair_indentation=repair)
        self.turns.append(turn)

    def _step(self, kind: str) -> None:
        self._open_step = kind

    def tidy(self, recorder: Recorder, on_disk: Mapping[str, str | None]) -> None:
        """Bring what was cut off to an end.

        Args:
            recorder: Notes what is done, so that the journal can be followed once more.
            on_disk: Digest of every file of ``files`` now.
        """
        wanted = self._unwritten() if self._open_step else {}
        if wanted and all(on_disk.get(path) == digest for path, digest in wanted.items()):
            self.digests.update(wanted)
            recorder.wrote(wanted)
        elif wanted:
            back = "redo" if self._open_step == "undo" else "undo"
            (self.hunks.redo if back == "redo" else self.hunks.undo)()
            recorder.travel(back)
        for path, proposal in self.files.items():
            if proposal.current is not None:
                proposal.abandon()
                recorder.mark("abandon", path)
        for turn in self.turns:
            if turn.running:
                turn.status = TurnStatus.STOPPED
                recorder.end(turn)

    def _unwritten(self) -> dict[str, str | None]:
        """Files that the last step changes, with the digests they should get."""
        wanted = {
            path: _digest(proposal, absent=path in self.absent)
            for path, proposal in self.files.items()
        }
        return {path: digest for path, digest in wanted.items() if digest != self.digests[path]}


def _digest(proposal: FileProposal, *, absent: bool) -> str | None:
    text = proposal.composed()
    if absent and not text.lines:
        return None
    try:
        return content_digest(text.to_bytes())
    except UnencodableError:
        return ""  # It cannot have been written.


def read_turn(data: Mapping[str, Any]) -> Turn:
    """A turn as it stands in an entry.

    Raises:
        TypeError: A field is missing.
        ValueError: The status is not known.
    """
    known = {field.name for field in fields(Turn)}
    turn = Turn(**{name: value for name, value in data.items() if name in known})
    turn.status = TurnStatus(turn.status)
    return turn
