"""The journal of a session: how it is written and how it is replayed.

The journal holds the inputs of the edits part (base texts, streamed text, decisions), not its
state.  Replaying them in order leads to the same hunks with the same ids.

Its entries are defined in ``pairing.journal.entries``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from midstream.edits.documents import UnencodableError
from midstream.edits.stand_ins import is_whole
from midstream.errors import UserError
from midstream.pairing.contents import wanted_digest
from midstream.pairing.journal.entries import (
    KINDS,
    AbandonEntry,
    AbsentEntry,
    AgentEntry,
    BaseEntry,
    BaselineEntry,
    DropCallEntry,
    EndEntry,
    RedoEntry,
    Replayed,
    SegmentStep,
    TextEntry,
    UndoEntry,
    WithdrawEntry,
    WritingEntry,
    WroteEntry,
)
from midstream.pairing.status import TurnStatus
from midstream.workspace.paths import shown, state_dir

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk
    from midstream.edits.proposal import FileProposal
    from midstream.guard.secrets import SecretReader
    from midstream.pairing.journal.entries import (
        AskEntry,
        BeginEntry,
        SegmentEntry,
        SessionEntry,
    )
    from midstream.workspace.journal import Journal, JournalEntry
    from midstream.workspace.journal import SessionInfo as SessionInfo  # what the screen may name


MAX_COMPARED: Final = 10
"""Ended sessions with which a new review is compared."""
MAX_REPLAYED_BYTES: Final = 2_000_000
"""Longer journals are not replayed unasked."""


class ResumeError(UserError):
    """The journal cannot be replayed; the session starts without it."""

    code = "resume"


def unreadable_journal(path: Path, error: OSError) -> ResumeError:
    """The error for a journal that the system does not read."""
    return ResumeError(
        f"The journal {path} cannot be read ({error.strerror}); starting without it."
    )


# Writing


class SessionJournal:
    """Writes entries from the first turn or reviewed change on; without one it leaves no journal.

    Args:
        create: Makes the journal when it is needed; ``None`` to keep none.
        journal: A journal to continue.
    """

    def __init__(
        self, create: Callable[[], Journal] | None, journal: Journal | None = None
    ) -> None:
        self._create = create
        self._journal = journal
        self._failed = ""
        self._on_trouble: Callable[[], None] | None = None
        self._early: dict[tuple[str, str], BaseEntry | AbsentEntry | BaselineEntry] = {}
        self._known: dict[str, frozenset[str]] = {}
        self._unfinished: dict[str, str] = {}
        self._readers: dict[str, SecretReader] = {}

    @property
    def path(self) -> Path | None:
        """The journal's first file, ``None`` while there is none."""
        return None if self._journal is None else self._journal.path

    @property
    def trouble(self) -> str:
        """Why it cannot be made or written, in the system's words; ``""`` if it can."""
        return self._failed if self._journal is None else self._journal.trouble

    def watch(self, on_trouble: Callable[[], None]) -> None:
        """Call a function, in any thread, when the journal cannot be made or written any more."""
        self._on_trouble = on_trouble
        if self._journal is not None:
            self._journal.on_trouble = on_trouble

    def add(self, entry: SessionEntry) -> None:
        """Write an entry; before the journal is begun, what files held waits for that.

        Raises:
            OSError: A ``WritingEntry`` is not on the device: the disk is full or gone.
        """
        if self._journal is not None:
            self._append(self._journal, entry)
        elif self._create is not None and isinstance(entry, (BaseEntry, AbsentEntry)):
            self._early[entry.kind, entry.path] = entry
        elif self._create is not None and isinstance(entry, BaselineEntry):
            self._early[entry.kind, ""] = entry

    def begin(self, entry: BeginEntry | AskEntry, known: frozenset[str] = frozenset()) -> None:
        """Write the start of a turn, making the journal if this is the first.

        Args:
            entry: The start.
            known: Lines that are in the file already and are not masked.
        """
        self._known[entry.turn.path] = known
        self.write(entry)

    def write(self, entry: SessionEntry) -> None:
        """Write an entry, making the journal if this is the first."""
        self.make()
        self.add(entry)

    def make(self) -> None:
        """Make the journal, unless it is there or none is kept.

        Where that fails, the session goes on without one: a journal that began later would lack
        what its entries refer to.
        """
        if self._journal is None and self._create is not None:
            try:
                self._journal = self._create()
            except (UserError, OSError) as error:
                why = error.strerror if isinstance(error, OSError) else None
                self._create, self._failed = None, why or str(error)
                if self._on_trouble is not None:
                    self._on_trouble()
                return
            self._journal.on_trouble = self._on_trouble
            for early in self._early.values():
                self.add(early)
            self._early.clear()

    def segment(self, entry: SegmentEntry, known: frozenset[str]) -> None:
        """Write the start of a segment; ``known`` as for ``begin``."""
        self._known[entry.path] = known
        self.add(entry)

    def text(self, path: str, text: str) -> None:
        """Write streamed text by whole lines, so that credentials in them can be masked."""
        lines = (self._unfinished.pop(path, "") + text).split("\n")
        self._unfinished[path] = lines.pop()
        if lines:
            self.add(TextEntry(path, "".join(f"{self._masked(path, line)}\n" for line in lines)))

    def _append(self, journal: Journal, entry: SessionEntry) -> None:
        if isinstance(entry, SegmentStep):
            if rest := self._unfinished.pop(entry.path, ""):
                self.add(TextEntry(entry.path, self._masked(entry.path, rest)))
        elif isinstance(entry, WithdrawEntry):
            self._unfinished.pop(entry.path, None)
        if entry.later:
            journal.append_later(entry.kind, entry.written)
        else:
            journal.append(entry.kind, **entry.written())
        if isinstance(entry, WritingEntry):
            self.flush()

    def flush(self) -> None:
        """Return when every entry is on the device; OSError when the disk is full or gone."""
        if self._journal is not None:
            self._journal.flush(sync=True)

    def close(self) -> None:
        """End the journal."""
        self._create = None
        if self._journal is not None:
            self._journal.close()

    def _masked(self, path: str, line: str) -> str:
        from midstream.guard.secrets import SecretReader

        reader = self._readers.get(path)
        if reader is None:
            reader = self._readers[path] = SecretReader()
        masked = reader.mask(line)
        return line if line.rstrip("\r") in self._known.get(path, ()) else masked


# Replaying


class Replay(Replayed):
    """The state that a journal leads to, and how it is read."""

    @classmethod
    def read(cls, path: Path) -> Replay:
        """Replay a journal (blocking).

        Raises:
            ResumeError: It is damaged, was cut, or belongs to an incompatible version.
        """
        from midstream.workspace.journal import Journal

        replay = cls()
        try:
            replay.follow(Journal.read(path))
        except OSError as error:
            raise unreadable_journal(path, error) from None
        return replay

    def follow(self, entries: Iterable[JournalEntry]) -> None:
        """Replay entries in order.

        Raises:
            ResumeError: An entry does not fit the state before it.
        """
        for number, entry in enumerate(entries):
            try:
                kind = KINDS.get(entry.kind)
                if kind is None:
                    raise ValueError(f"unknown entry {entry.kind!r}")
                kind.read(entry.data).replay(self)
            except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
                raise ResumeError(
                    f"The last session cannot be resumed: its journal breaks at entry {number} "
                    f"({shown(str(error))}). Accepted hunks are on disk; undecided ones are lost."
                ) from None

    def finish(self, journal: SessionJournal, on_disk: Mapping[str, str | None]) -> None:
        """Complete what a crash cut off.

        Args:
            journal: Records what is done, so that the journal can be replayed again.
            on_disk: Digest of every file of ``files`` now.
        """
        wanted = self._unwritten() if self.open_step else {}
        if wanted and all(on_disk.get(path) == digest for path, digest in wanted.items()):
            self.digests.update(wanted)
            journal.add(WroteEntry(wanted))
        elif wanted and self.open_step == "undo":
            self.hunks.redo()
            journal.add(RedoEntry())
        elif wanted:
            self.hunks.undo()
            journal.add(UndoEntry())
        for path, proposal in self.files.items():
            if proposal.current is not None:
                proposal.abandon()
                journal.add(AbandonEntry(path, settle_tail=False))
        for call in {hunk.call for hunk in self.hunks if hunk.call and not hunk.due}:
            self.hunks.drop_call(call)  # the agent was told that the review ended
            journal.add(DropCallEntry(call))
        for turn in self.turns:
            if turn.running:
                turn.status = TurnStatus.STOPPED
                journal.add(EndEntry(turn))

    def _unwritten(self) -> dict[str, str | None]:
        """Files that the last step changes, with the digests they should get."""
        wanted: dict[str, str | None] = {}
        for path, proposal in self.files.items():
            wanted[path] = _digest(proposal, self.digests[path])
        return {path: digest for path, digest in wanted.items() if digest != self.digests[path]}


def _digest(proposal: FileProposal, now: str | None) -> str | None:
    try:
        return wanted_digest(proposal.composed(), now)
    except UnencodableError:
        return ""  # It cannot have been written.


# Earlier sessions


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """What a journal says about its session.

    Attributes:
        instructions: What the user asked for, oldest first.
        outcomes: What became of the hunks of each instruction and of its corrections: accepted,
            rejected and undecided.
        files: Files of the turns, in order.
        accepted: Accepted hunks.
        rejected: Rejected hunks.
        undecided: Hunks that wait for a decision.
        unfinished: The last answer was cut off, by a crash or by closing.
        trouble: Why the journal cannot be replayed, ``""`` if it can.
    """

    instructions: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    accepted: int = 0
    rejected: int = 0
    undecided: int = 0
    unfinished: bool = False
    trouble: str = ""
    outcomes: tuple[tuple[int, int, int], ...] = ()

    @property
    def used(self) -> bool:
        """Whether something was asked for or decided in it, or its contents are unknown."""
        return bool(self.instructions or self.accepted or self.rejected or self.trouble)


def earlier_sessions(root: Path) -> list[SessionInfo]:
    """The journals of a folder, newest first (blocking)."""
    from midstream.workspace.journal import sessions

    return sessions(state_dir(), root)


@dataclass(frozen=True, slots=True)
class EarlierReview:
    """An ended session in which hunks were kept that wait again.

    Attributes:
        path: Its journal.
        changed: When something was last written to it, seconds since the epoch.
        kept: How many of the hunks were kept.
        of: How many wait.
    """

    path: Path
    changed: float
    kept: int
    of: int

    def __str__(self) -> str:
        if self.of == 1:
            return "This hunk was kept"
        return (
            f"{self.kept:,} of these {self.of:,} hunks {'was' if self.kept == 1 else 'were'} kept"
        )


def earlier_review(root: Path, waiting: Collection[Hunk]) -> EarlierReview | None:
    """The one of the last ended sessions in which most of some hunks were kept (blocking).

    Files that are decided as a whole do not count: their line may stand for other contents.
    """
    wait = Counter((hunk.path, hunk.old, hunk.new) for hunk in waiting)
    ended = [i for i in earlier_sessions(root) if not i.live and i.size <= MAX_REPLAYED_BYTES]
    best: EarlierReview | None = None
    for info in ended[:MAX_COMPARED] if wait else ():
        with suppress(UserError):
            earlier = Replay.read(info.path)
            kept = Counter(
                (hunk.path, hunk.old, hunk.new)
                for hunk in earlier.hunks
                if hunk.external
                and hunk.state == "accepted"
                and not is_whole(earlier.files[hunk.path].base)
            )
            if (again := (wait & kept).total()) > (0 if best is None else best.kept):
                best = EarlierReview(info.path, info.changed, again, len(waiting))
    return best


def session_to_resume(root: Path, agent: str | None = None) -> Path | None:
    """The journal that ``--resume`` means, ``None`` for none (blocking).

    The newest session in which something was asked for or decided: a review without decisions has
    nothing that the next one would not show again.  Without one, the newest.

    Args:
        root: The folder.
        agent: The name in the catalogue, or the command, of the session's last agent.
    """
    newest = None
    for path in (info.path for info in earlier_sessions(root) if not info.live):
        if agent is not None and _last_agent(path) != agent:
            continue
        if summarize(path).used:
            return path
        newest = newest or path
    return newest


def _last_agent(path: Path) -> str:
    from midstream.workspace.journal import Journal

    last = ""
    with suppress(UserError, OSError):
        for entry in Journal.read(path):
            if entry.kind == AgentEntry.kind:
                last = str(entry.data.get("agent", ""))
    return last


def summarize(path: Path) -> SessionSummary:
    """Replay a journal and count what is in it (blocking)."""
    try:
        replay = Replay.read(path)
    except UserError as error:
        return SessionSummary(trouble=str(error))
    states = {hunk.id: str(hunk.state) for hunk in replay.hunks}
    waiting = {hunk.id for hunk in replay.hunks.undecided()}
    last = replay.turns[-1] if replay.turns else None
    said = replay.chat + ([] if replay.agent is None else replay.agent.said)
    in_words = (entry["text"] for entry in said if entry.get("role") == "user")
    asked: list[tuple[str, set[int]]] = []
    for turn in replay.turns:
        if asked and turn.correction:
            asked[-1][1].update(turn.hunks)
        else:
            asked.append((turn.instruction, set(turn.hunks)))
    return SessionSummary(
        instructions=(*(instruction for instruction, _ in asked), *in_words),
        files=tuple(dict.fromkeys(turn.path for turn in replay.turns)),
        accepted=list(states.values()).count("accepted"),
        rejected=list(states.values()).count("rejected"),
        undecided=len(waiting),
        unfinished=last is not None and last.running,
        outcomes=tuple(
            (
                sum(states.get(hunk_id) == "accepted" for hunk_id in hunks),
                sum(states.get(hunk_id) == "rejected" for hunk_id in hunks),
                len(waiting.intersection(hunks)),
            )
            for _, hunks in asked
        ),
    )
