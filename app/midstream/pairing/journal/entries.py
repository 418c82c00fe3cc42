"""Every kind of journal entry of a session: what is written, and how it is replayed.

To journal another action, add a ``SessionEntry`` to this file, and pass it to
``SessionJournal.add`` where the action happens.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, cast

from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import replace

from midstream.edits.documents import NO_FILE, SourceText
from midstream.edits.hunk_store import HunkStore
from midstream.edits.hunks import HoldReason, HunkState
from midstream.edits.stand_ins import FileProperties, StandIn
from midstream.pairing.status import Turn
from midstream.workspace.content import Entry, LinkTarget

if TYPE_CHECKING:
    from typing import Self

    from midstream.edits.proposal import FileProposal
    from midstream.workspace.baseline import BaselineRecord


KINDS: Final[dict[str, type[SessionEntry]]] = {}
"""The entries of a journal by kind; every entry class registers itself."""
MAX_RECORDED: Final = 4_000_000
"""More bytes of a file that is no text are not recorded."""
MAX_UNPACKED: Final = 256 << 20
"""A file of more bytes is never recorded."""


class SeenHunk(NamedTuple):
    """How long the lines of a hunk were on screen, and which lines these were."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    seconds: list[float]


class ReadSoFar(Struct):
    """How far the reader of a session has come.

    Attributes:
        at: The hunk under the cursor, -1 before there was one.
        walk: Whether the walk is followed.
        visited: The hunks that the reader has come to on it, in order.
        seen: How long hunks were on screen.
        accepted: How far hunks were read when they were accepted.
        together: The groups that hunks were accepted with.
        titles: What the model called groups, by their keys.
    """

    at: int = -1
    walk: bool = False
    visited: list[int] = field(default_factory=list[int])
    seen: dict[int, SeenHunk] = field(default_factory=dict[int, SeenHunk])
    accepted: dict[int, str] = field(default_factory=dict[int, str])
    together: dict[int, str] = field(default_factory=dict[int, str])
    titles: dict[str, str] = field(default_factory=dict[str, str])


class Replayed:
    """The state that a journal leads to.

    Attributes:
        hunks: All hunks and decisions.
        files: Proposals by path.
        digests: What each file had on disk when last read or written.
        modes: Permissions of files that a decision has deleted.
        executable: Whether files may be run, as far as it is known.
        turns: All turns, oldest first.
        released: Hunks that the guard held back and the user released.
        baseline: What files held before the last review, if it was kept.
        agent: The last coding agent with all of its conversation, if there was one.
        chat: What was said in the last conversation with the model, packed.
        plan: Its plan, if there is one.
        provenance: Who wrote the hunks of other programs, by hunk.
        reading: How far the reader has come.
        open_step: Kind of the last step if nothing says that its files were written, else ``""``.
    """

    def __init__(self) -> None:
        self.hunks: HunkStore = HunkStore()
        self.files: dict[str, FileProposal] = {}
        self.digests: dict[str, str | None] = {}
        self.modes: dict[str, int] = {}
        self.executable: dict[str, bool] = {}
        self.turns: list[Turn] = []
        self.released: set[int] = set()
        self.baseline: BaselineRecord | None = None
        self.agent: AgentEntry | None = None
        self.chat: list[dict[str, str]] = []
        self.plan: PlanEntry | None = None
        self.provenance: dict[int, ProvenanceEntry] = {}
        self.reading = ReadSoFar()
        self.open_step = ""


class SessionEntry(Struct, eq=False, forbid_unknown_fields=True):
    """One entry of the journal: its fields are what is written.

    ``written`` and ``read`` are the two directions.

    Attributes:
        kind: Its name in the file.
        later: Whether ``written`` takes a while; then the fields do not change any more.
        masked: The fields in which credentials are masked.
    """

    kind: ClassVar[str] = ""
    later: ClassVar[bool] = False
    masked: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **_: bool) -> None:
        if cls.kind:
            KINDS[cls.kind] = cls

    def written(self) -> dict[str, Any]:
        """The fields as JSON data."""
        data = to_builtins(self)
        return data | {name: _mask(data[name]) for name in self.masked if data[name]}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of ``written``; ValueError for missing or unknown fields, or other types."""
        return convert(data, cls)

    def replay(self, state: Replayed) -> None:
        """Do to ``state`` what happened when this entry was written."""
        raise NotImplementedError


def _check_names(*paths: str) -> None:
    """Raise ValueError for a path that no file below a folder can have."""
    from midstream.workspace.boundary import is_file_name

    for path in paths:
        if not is_file_name(path):
            raise ValueError(f"no file can be named {path!r}")


def _mask(words: Any) -> Any:
    """The same text, or the same list or table of texts, without credentials."""
    from midstream.guard.secrets import mask_text

    if isinstance(words, list):
        return [_mask(word) for word in cast("list[Any]", words)]
    if isinstance(words, dict):
        return {name: _mask(word) for name, word in cast("dict[str, Any]", words).items()}
    return mask_text(words)


def _decompressed(data: bytes) -> bytes:
    """Inverse of ``zlib.compress``; ValueError for anything else."""
    reader = zlib.decompressobj()
    try:
        found = reader.decompress(data, MAX_UNPACKED)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not reader.eof:
        raise ValueError("a file in it is cut or too large")
    return found


def _each(
    change: Callable[[bytes], bytes], kept: Mapping[str, bytes | None]
) -> dict[str, bytes | None]:
    return {path: None if data is None else change(data) for path, data in kept.items()}


class BaseEntry(SessionEntry, omit_defaults=True):
    """A file was opened, or its base replaced by what is on disk; no digest means no file.

    Attributes:
        path: The file.
        data: Its bytes; none if they are too many to be recorded.
        digest: Their digest.
        review: Whether what another program changed waits for a decision.
        executable: Whether it may be run, if that is known.
        by_lines: Whether a missing file is decided line by line from now on.
        whole: The line that stands for a file which is decided as a whole.
        recorded: Whether ``data`` is what the file held.
        link: Whether it is a symbolic link; then ``data`` is where it points.
    """

    kind = "base"
    later = True
    path: str
    data: bytes
    digest: str | None
    review: bool = False
    executable: bool | None = None
    by_lines: bool = False
    whole: str = ""
    recorded: bool = True
    link: bool = False

    @classmethod
    def of(
        cls,
        path: str,
        text: SourceText,
        entry: Entry | None,
        digest: str | None,
        *,
        review: bool = False,
    ) -> Self:
        """The entry of a text that was read, or stands for what was read."""
        data, executable = (b"", None) if entry is None else entry
        if digest is None or not isinstance(text, StandIn):
            lines = digest is None and not isinstance(text, StandIn)
            return cls(path, data, digest, review, executable, lines)
        recorded = len(data) <= MAX_RECORDED
        whole, link = text.lines[0], text.properties.link
        kept = data if recorded else b""
        return cls(path, kept, digest, review, executable, False, whole, recorded, link)

    def written(self) -> dict[str, Any]:
        return to_builtins(replace(self, data=zlib.compress(self.data)))

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        entry = super().read(data)
        entry.data = _decompressed(entry.data)
        return entry

    def replay(self, state: Replayed) -> None:
        from midstream.edits.proposal import FileProposal
        from midstream.pairing.contents import content_part

        _check_names(self.path)
        proposal = state.files.get(self.path)
        if self.whole:
            former = () if proposal is None else proposal.known_texts()
            data = self.data if self.recorded else None
            digest = content_part(self.digest) or ""
            properties = FileProperties(data, self.executable, self.link, digest)
            text = StandIn.named(self.whole, properties, former, state.executable.get(self.path))
        elif self.digest is not None or self.data:
            text = SourceText.from_bytes(self.data)
        elif proposal is None or (self.by_lines and isinstance(proposal.base, StandIn)):
            text = NO_FILE
        else:
            text = proposal.base.gone()
        if proposal is not None:
            known = state.executable.get(self.path)
            programs = (known, known if self.executable is None else self.executable)
            proposal.advance(text, review=self.review, programs=programs)
        else:
            state.files[self.path] = FileProposal(self.path, text, state.hunks)
        state.digests[self.path] = self.digest
        if self.digest is not None:
            state.modes.pop(self.path, None)
        if self.executable is not None:
            state.executable[self.path] = self.executable


class AbsentEntry(SessionEntry):
    """From now on a decision that leaves no line of this file leaves no file."""

    kind = "absent"
    path: str

    def replay(self, state: Replayed) -> None:
        if self.path in state.files:  # Else it is made without a file, and knows it from that.
            state.files[self.path].vanishes = True


class BaselineEntry(SessionEntry):
    """What files held before a review; replaces an earlier one.  See ``BaselineRecord``.

    Attributes:
        head: As in the record, and so is ``log``.
        kept: What files held, or where links pointed; ``None`` for no file.
        links: Which of them are links.
        executable: Which of them may be run.
    """

    kind = "baseline"
    later = True
    head: str
    log: int
    kept: dict[str, bytes | None]
    links: list[str]
    executable: dict[str, bool | None]

    @classmethod
    def of(cls, record: BaselineRecord) -> Self:
        """The entry of a record."""
        there = {path: entry for path, entry in record.kept.items() if entry is not None}
        kept = dict.fromkeys(record.kept) | {path: entry.data for path, entry in there.items()}
        links = [path for path, entry in there.items() if isinstance(entry.data, LinkTarget)]
        executable = {path: entry.executable for path, entry in there.items()}
        return cls(record.head, record.log, kept, links, executable)

    def written(self) -> dict[str, Any]:
        return to_builtins(replace(self, kept=_each(zlib.compress, self.kept)))

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        entry = super().read(data)
        entry.kept = _each(_decompressed, entry.kept)
        return entry

    def replay(self, state: Replayed) -> None:
        from midstream.workspace.baseline import BaselineRecord

        _check_names(*self.kept)
        links = set(self.links)
        kept = {
            path: data
            if data is None
            else Entry(LinkTarget(data) if path in links else data, self.executable.get(path))
            for path, data in self.kept.items()
        }
        state.baseline = BaselineRecord(self.head, self.log, kept)


class ReviewedEntry(SessionEntry):
    """A commit contains a file as it is: nothing in it needs a decision any longer."""

    kind = "reviewed"
    path: str

    def replay(self, state: Replayed) -> None:
        state.files[self.path].committed()


class _TurnEntry(SessionEntry):
    turn: Turn

    def replay(self, state: Replayed) -> None:
        state.turns.append(self.turn)


class BeginEntry(_TurnEntry):
    """A turn opened a segment over the current base; ``repair``: its indentation is corrected."""

    kind = "begin"
    repair: bool = False

    def replay(self, state: Replayed) -> None:
        turn = self.turn
        state.files[turn.path].begin(turn.start, turn.stop, repair_indentation=self.repair)
        super().replay(state)


class AskEntry(_TurnEntry):
    """A turn began in which the model names the places itself."""

    kind = "ask"


class RedirectEntry(_TurnEntry):
    """The frozen segment continues under another turn."""

    kind = "redirect"


class EndEntry(_TurnEntry):
    """A turn ended."""

    kind = "end"

    def replay(self, state: Replayed) -> None:
        state.turns = [self.turn if known.id == self.turn.id else known for known in state.turns]


class SegmentEntry(SessionEntry):
    """An answer that names its places itself opened a segment."""

    kind = "segment"
    path: str
    start: int
    stop: int
    level: int
    tight: bool

    def replay(self, state: Replayed) -> None:
        state.files[self.path].begin(
            self.start, self.stop, match_level=self.level, tight=self.tight
        )


class WithdrawEntry(SessionEntry):
    """A segment was taken back."""

    kind = "withdraw"
    path: str
    serial: int

    def replay(self, state: Replayed) -> None:
        proposal = state.files[self.path]
        for segment in [s for s in proposal.segments if s.serial == self.serial]:
            proposal.withdraw(segment)


class TextEntry(SessionEntry):
    """Whole lines of a segment; written by ``SessionJournal.text``."""

    kind = "text"
    path: str
    text: str

    def replay(self, state: Replayed) -> None:
        state.files[self.path].feed(self.text)


class SegmentStep(SessionEntry):
    """A step of a segment, after all of the text that came before it."""

    path: str

    def replay(self, state: Replayed) -> None:
        getattr(state.files[self.path], self.kind)()  # The kind is the method's name.


class FreezeEntry(SegmentStep):
    """A segment was frozen."""

    kind = "freeze"


class ResumeEntry(SegmentStep):
    """A frozen segment goes on."""

    kind = "resume"


class FinishEntry(SegmentStep):
    """The text of a segment is complete."""

    kind = "finish"


class AbandonEntry(SegmentStep):
    """A segment ended before its text did.

    Attributes:
        settle_tail: See ``FileProposal.abandon``.
    """

    kind = "abandon"
    settle_tail: bool

    def replay(self, state: Replayed) -> None:
        state.files[self.path].abandon(settle_tail=self.settle_tail)


class DecideEntry(SessionEntry):
    """Hunks were decided in one step."""

    kind = "decide"
    ids: list[int]
    state: str
    note: str

    def replay(self, state: Replayed) -> None:
        state.hunks.decide(self.ids, HunkState(self.state), self.note)
        state.open_step = self.kind


class ReadingEntry(SessionEntry):
    """How far the reader has come, as changes since the last such entry.

    Attributes:
        at: As in ``ReadSoFar``, and so are ``walk`` and the further ones.
        seen: For each hunk, seconds on screen and of how many lines, from the first line to the
            last.
        together: For hunks in ``accepted`` that were accepted as part of a group, that group.
    """

    kind = "reading"
    at: int
    walk: bool
    visited: list[int]
    seen: list[tuple[int, list[tuple[float, int]]]]
    accepted: list[tuple[int, str]]
    together: list[tuple[int, str]]

    def replay(self, state: Replayed) -> None:
        reading = state.reading
        reading.at, reading.walk = self.at, self.walk
        reading.visited += self.visited
        for hunk_id, runs in self.seen:
            with suppress(KeyError):
                hunk = state.hunks.get(hunk_id)
                each = chain.from_iterable(repeat(value, lines) for value, lines in runs)
                seconds = list(islice(each, hunk.added + hunk.deleted))
                reading.seen[hunk_id] = SeenHunk(hunk.old, hunk.new, seconds)
        for hunk_id, how in self.accepted:
            reading.together.pop(hunk_id, None)
            reading.accepted[hunk_id] = how
        reading.together |= dict(self.together)


class TitlesEntry(SessionEntry):
    """The model was asked what to call groups of hunks, by their keys."""

    kind = "titles"
    titles: dict[str, str]

    def replay(self, state: Replayed) -> None:
        state.reading.titles |= self.titles


class PostponeEntry(SessionEntry):
    """External hunks will be put back once writing has stopped; ``None``: they will not."""

    kind = "postpone"
    ids: list[int]
    note: str | None

    def replay(self, state: Replayed) -> None:
        state.hunks.postpone(self.ids, self.note)


class AgentEntry(SessionEntry):
    """A turn of a coding agent has ended.

    Attributes:
        agent: Its name in the catalogue, or its command.
        session_id: What it calls the conversation.
        said: What was said and used in the turn, as ``conversation.packed`` has it.
    """

    kind = "agent"
    masked = ("said",)
    agent: str
    session_id: str
    said: list[dict[str, str]]

    def replay(self, state: Replayed) -> None:
        before = state.agent
        again = before is not None and before.session_id == self.session_id
        earlier = before.said if before is not None and again else []
        state.agent = AgentEntry(self.agent, self.session_id, [*earlier, *self.said])


class ProvenanceEntry(SessionEntry):
    """Who wrote some hunks of another program, as far as it is known.

    Attributes:
        ids: The hunks.
        seen: When they were noticed, in seconds since the epoch.
        earlier: Whether they were there when the review began.
        author: The agent; ``""`` if it is unknown.
        proven: Whether edits that it reported have every line of the hunks; otherwise it was at
            work when they were noticed.
        turn: The turn of the conversation with it, from 1; 0 for none.
        asked: What it was asked in that turn.
        said: What it said last before.
        tool: The edit; without proof, the last command that it ran in that turn.
    """

    kind = "provenance"
    masked = ("asked", "said", "tool")
    ids: list[int]
    seen: float
    earlier: bool = False
    author: str = ""
    proven: bool = False
    turn: int = 0
    asked: str = ""
    said: str = ""
    tool: str = ""

    def replay(self, state: Replayed) -> None:
        state.provenance |= dict.fromkeys(self.ids, self)


class ChatEntry(SessionEntry):
    """A question to the model was answered, or a new conversation begins.

    Attributes:
        said: What was said, as ``conversation.packed`` has it.
        fresh: Whether a new conversation begins here.
    """

    kind = "chat"
    masked = ("said",)
    said: list[dict[str, str]]
    fresh: bool

    def replay(self, state: Replayed) -> None:
        state.chat = [*([] if self.fresh else state.chat), *self.said]


class PlanEntry(SessionEntry):
    """The plan has these steps from now on; none: there is no plan.

    Attributes:
        texts: What each step asks for.
        turns: The turn that carries each out, 0 for none.
    """

    kind = "plan"
    masked = ("texts",)
    texts: list[str]
    turns: list[int]

    def replay(self, state: Replayed) -> None:
        state.plan = self


class ProposeEntry(SessionEntry):
    """A call of an agent's tool that waits for decisions would leave a file like this."""

    kind = "propose"
    path: str
    call: int
    after: list[str]

    def replay(self, state: Replayed) -> None:
        state.files[self.path].propose(self.after, self.call)


class AnswerEntry(SessionEntry):
    """The call was answered."""

    kind = "answer"
    call: int

    def replay(self, state: Replayed) -> None:
        state.hunks.answer(self.call)


class DropCallEntry(SessionEntry):
    """The undecided hunks of a call will not be written."""

    kind = "drop_call"
    call: int

    def replay(self, state: Replayed) -> None:
        state.hunks.drop_call(self.call)


class DecideLinesEntry(SessionEntry):
    """Some lines of a hunk were decided in one step."""

    kind = "decide_lines"
    id: int
    start: int
    stop: int
    state: str
    note: str

    def replay(self, state: Replayed) -> None:
        decision = HunkState(self.state)
        state.hunks.decide_lines(self.id, self.start, self.stop, decision, self.note)
        state.open_step = self.kind


class SplitEntry(SessionEntry):
    """A hunk was split."""

    kind = "split"
    id: int
    cuts: list[tuple[int, int]]

    def replay(self, state: Replayed) -> None:
        state.hunks.split(self.id, [(old, new) for old, new in self.cuts])


class EditEntry(SessionEntry):
    """The user wrote the new lines of a hunk."""

    kind = "edit"
    id: int
    new: list[str]

    def replay(self, state: Replayed) -> None:
        state.hunks.edit(self.id, self.new)


class HoldEntry(SessionEntry):
    """The guard holds a hunk back."""

    kind = "hold"
    id: int
    rule: str
    message: str

    def replay(self, state: Replayed) -> None:
        state.hunks.hold_back(self.id, HoldReason(self.rule, self.message))


class ReleaseEntry(SessionEntry):
    """A hunk that was held back was released: by the user, which can be undone, or by the guard."""

    kind = "release"
    id: int
    note: str
    undoable: bool = False

    def replay(self, state: Replayed) -> None:
        state.hunks.release(self.id, self.note, undoable=self.undoable)
        state.released.add(self.id)


class UndoEntry(SessionEntry):
    """The last step was undone."""

    kind = "undo"

    def replay(self, state: Replayed) -> None:
        getattr(state.hunks, self.kind)()  # The kind is the method's name.
        state.open_step = self.kind


class RedoEntry(UndoEntry):
    """The last undone step was redone."""

    kind = "redo"


class WritingEntry(SessionEntry):
    """Files are about to be written so that they have these digests.

    Replay writes nothing: whether it happened is seen from the disk (``Replay.finish``).
    """

    kind = "writing"
    digests: dict[str, str | None]
    modes: Mapping[str, int] | None = None

    def replay(self, state: Replayed) -> None:
        state.modes |= {path: mode & 0o7777 for path, mode in (self.modes or {}).items()}


class WroteEntry(SessionEntry):
    """Those files were written."""

    kind = "wrote"
    digests: dict[str, str | None]

    def replay(self, state: Replayed) -> None:
        state.digests.update(self.digests)
        state.open_step = ""
