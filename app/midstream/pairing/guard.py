"""The guard in a running session: every finished line is scanned, dangerous ones are reported.

Scanning runs beside the stream, which never waits for it: one scan at a time, always of the newest
text; each finding names its own line.  A finding that halts is reported to
the runner (``GuardStop``), which ends the answer, has the hunk held back (``hold``) and the model
write it again, twice at most; then the user decides.  Findings that warn mark their hunk.  Which
lines are dangerous is decided in ``midstream.guard``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from msgspec import Struct, field

from midstream.code.syntax import is_python
from midstream.edits.hunks import HoldReason, HunkState
from midstream.guard.correction import Correction, CorrectionRequest
from midstream.guard.findings import Finding, Level
from midstream.pairing.journal.entries import HoldEntry, ReleaseEntry
from midstream.pairing.slices import pause
from midstream.pairing.status import HunkDecided

if TYPE_CHECKING:
    from midstream.edits.hunk_store import HunkStore
    from midstream.edits.hunks import Hunk
    from midstream.edits.proposal import FileProposal, Segment
    from midstream.guard.scanner import Scanner
    from midstream.guard.stream import StreamScan
    from midstream.pairing.journal.journal import SessionJournal
    from midstream.pairing.status import SessionStatus

CORRECTIONS: Final = 2
"""How often the model is told to write one hunk again before the user decides."""
MAX_CORRECTIONS: Final = 6
"""How often in one turn, over all its hunks."""
VERDICT_S: Final = 6.0
"""How long a decision waits for a verdict that has not come."""
LOOK_EVERY_S: Final = 0.008
"""Least time between two looks: each wakes the scanner's child, for one line or for several."""
FAST_LOOK_EVERY_S: Final = 0.02
"""The same where more than ``_MAX_SMALL_CHANGE_LINES`` lines have come since the last one."""
_MAX_SMALL_CHANGE_LINES: Final = 2
"""Lines, together in all files that stream in."""

_HELD: Final = "held back"
_WAITING: Final = ("settled", _HELD)
"""States of hunks that are not decided (the enumeration itself would have to be imported)."""


class LightState(StrEnum):
    """How far the guard covers a file."""

    OFF = "off"
    IDLE = "idle"
    """Nothing has streamed into this file, so nothing is scanned."""
    GUARDED = "guarded"
    UNGUARDED = "unguarded"


class Light(Struct, frozen=True):
    """The state of the guard for a file, and why it is not guarded."""

    state: LightState
    why: str = ""

    @property
    def words(self) -> str:
        """The state in words."""
        if self.state is LightState.IDLE:
            return "scanning nothing"
        return f"unguarded: {self.why}" if self.why else self.state.value


class FoundLine(NamedTuple):
    """Where in a hunk something was found.

    Attributes:
        finding: What was found.
        line: The new line of the hunk, counted from its first.
    """

    finding: Finding
    line: int


class _MarkedHunk(NamedTuple):
    """What is known of the lines of a hunk, as of a number of findings in its file.

    Attributes:
        version: That of all hunks, which tells cheaply that the lines are still the same.
        findings: How many there were.
        new: The lines.
        spots: What was found in them.
    """

    version: int
    findings: int
    new: tuple[str, ...]
    spots: tuple[FoundLine, ...]


class WatchedRewrite(Protocol):
    """One rewrite of one range of lines, as far as the guard knows it."""

    @property
    def proposal(self) -> FileProposal:
        """The file."""
        ...

    @property
    def segment(self) -> Segment:
        """What is written."""
        ...

    @property
    def instruction(self) -> str:
        """What the user asked for."""
        ...

    @property
    def live(self) -> bool:
        """Whether text may still come."""
        ...

    def mute(self) -> None:
        """Take no further text."""
        ...


class GuardWatch(Struct, eq=False):
    """One segment that is scanned while it streams.

    Attributes:
        rewrite: The rewrite that writes it now; a redirect replaces it.
        scan: The state of its scan.
        above: Lines above the segment, as the model left them.
        region: What the region was before the first turn of the chain.
        below: Lines below it.
        asked: The user's instruction.
        offset: Lines of the region that earlier segments of the chain hold.
        tries: How often the model has corrected the hunk that begins at a line of the region.
        given_up: Whether the user decides from here on.
        handed: Lines that the scan was given.
        reported: Rules and lines of what was found.
    """

    rewrite: WatchedRewrite
    scan: StreamScan
    above: list[str]
    region: Sequence[str]
    below: Sequence[str]
    asked: str
    offset: int = 0
    tries: dict[int, int] = field(default_factory=dict[int, int])
    given_up: bool = False
    handed: int = 0
    reported: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    @property
    def path(self) -> str:
        """The file."""
        return self.rewrite.proposal.path

    @property
    def segment(self) -> Segment:
        """What is written."""
        return self.rewrite.segment

    @property
    def lag(self) -> int:
        """Lines without a verdict."""
        return len(self.segment.new_lines) - self.scan.seen

    @property
    def behind(self) -> bool:
        """Whether there are any."""
        return self.lag > 0


class GuardStop(Struct, frozen=True, eq=False):
    """The guard found lines that must not be written.

    Attributes:
        watch: Where.
        findings: What halts, by line; the model is asked to correct the first.
        statement: Line of the segment at which the statement of the first begins.
    """

    watch: GuardWatch
    findings: tuple[Finding, ...]
    statement: int


class RewritePlace(Struct, frozen=True):
    """Where a rewrite begins.

    Attributes:
        start: Base line.
        carried: First line of the segment that is fed again.
        lines: Lines of the segment that count as written.
    """

    start: int
    carried: int
    lines: int

    @classmethod
    def of(cls, hunks: HunkStore, segment: Segment, line: int) -> RewritePlace:
        """The place from which a segment is written again, so that ``line`` is the first."""
        offset, hunk_id = 0, None
        for row in segment.settled:
            if row.new is None:
                continue
            if row.hunk != hunk_id or row.hunk is None:
                offset, hunk_id = 0, row.hunk
            if row.new - segment.start == line and row.text == segment.new_lines[line]:
                if row.hunk is None:
                    return cls(segment.start if row.old is None else row.old, line, line)
                hunk = hunks.get(row.hunk)
                if hunk.decided:
                    end = line - offset + hunk.added
                    return cls(hunk.stop, end, end)
                return cls(hunk.start, line - offset, line)
            offset += 1
        return cls(segment.start, 0, min(line, len(segment.new_lines)))

    @classmethod
    def beginning(cls, start: int) -> RewritePlace:
        """The place of a rewrite that begins anew."""
        return cls(start, 0, 0)


class Held(Struct, frozen=True):
    """A rewrite that is held back, and how the model is asked to correct it.

    Attributes:
        watch: Where.
        request: The correction that is sent.
        place: Where it is written again.
        held_back: Whether its hunk is held back; one that was accepted before cannot be.
    """

    watch: GuardWatch
    request: CorrectionRequest
    place: RewritePlace
    held_back: bool

    @property
    def where(self) -> str:
        """The line and what is wrong with it, in words."""
        correction = self.request.correction
        line = f"line {correction.line} of {self.watch.path}"
        return f"{line}: {correction.message} ({correction.rule})"


class Guard:
    """Watches what streams into a session.

    Attributes:
        on: Whether it is switched on.
    """

    def __init__(
        self,
        *,
        on: bool,
        levels: Sequence[tuple[str, str]],
        hunks: HunkStore,
        status: SessionStatus,
        journal: SessionJournal,
    ) -> None:
        self.on = on
        self._levels = {rule: Level(level) for rule, level in levels}
        self._hunks = hunks
        self._status = status
        self._journal = journal
        self._report: Callable[[GuardStop], None] | None = None
        self._scanner: Scanner | None = None
        self._worker: asyncio.Task[None] | None = None
        self._due: set[str] = set()
        """Files to look at soon."""
        self._looking: asyncio.Task[None] | None = None
        self._closed = False
        self._news = asyncio.Event()
        self._progress = asyncio.Event()
        self._working = False
        self._failure = ""
        self._watches: list[GuardWatch] = []
        self._found: dict[str, list[Finding]] = {}
        self._marks: dict[int, _MarkedHunk] = {}
        self._released: dict[int, frozenset[tuple[str, str]]] = {}
        """Keys of the findings in hunks that the user released, by hunk."""
        self._advised: set[str] = set()
        self._off: set[str] = set()
        """Files for which the user has switched it off."""

    def connect(self, report: Callable[[GuardStop], None]) -> None:
        """Report what halts to ``report``, which ends the answer."""
        self._report = report

    # What the stream tells

    def watch(self, rewrite: WatchedRewrite, after: Held | None = None) -> None:
        """Scan a rewrite from now on.

        Args:
            rewrite: It begins now, or continues under another turn.
            after: What was held back, where it writes that again.
        """
        if not self.on:
            return  # A file for which it is off may be switched on while the answer comes.
        asked, segment = rewrite.instruction, rewrite.segment
        if after is not None:
            old, carried = after.watch, after.place.carried
            self._begin(
                rewrite,
                above=[*old.above, *old.segment.new_lines[:carried]],
                region=old.region,
                below=old.below,
                asked=old.asked,
                offset=old.offset + carried,
                tries=old.tries,
            )
            return
        last = self._watches[-1] if self._watches else None
        if last is not None and last.segment is segment:
            last.rewrite, last.asked, last.tries = rewrite, asked, {}
            self._scan_again(last)
            return
        base = rewrite.proposal.base.lines
        self._begin(
            rewrite,
            above=list(base[: segment.start]),
            region=base[segment.start : segment.stop],
            below=base[segment.stop :],
            asked=asked,
        )
        self._advise(rewrite.proposal.path)

    def look(self, rewrite: WatchedRewrite) -> None:
        """Text has come; costs next to nothing while no line has ended."""
        if self._watches and (watch := self._watches[-1]).rewrite is rewrite and watch.behind:
            self._news.set()

    def look_soon(self, files: Mapping[str, FileProposal], path: str) -> None:
        """Judge the hunks of a file that did not stream in; calls at the same time are one look."""
        if not self._covers(path) or self._closed:
            return
        self._due.add(path)
        if self._looking is None or self._looking.done():
            self._looking = task = asyncio.create_task(self._look_at_due(files))
            task.add_done_callback(self._ended)

    async def _look_at_due(self, files: Mapping[str, FileProposal]) -> None:
        while self._due:
            paths, self._due = self._due, set()
            await self.look_again(files, paths=paths)

    async def caught_up(self) -> None:
        """Wait until every line that is there now has its verdict, and what follows is done."""
        wanted = [(watch, len(watch.segment.new_lines)) for watch in self._watches]

        def due() -> bool:
            return self._working or any(watch.scan.seen < count for watch, count in wanted)

        loop = asyncio.get_running_loop()
        deadline = loop.time() + VERDICT_S
        while not self._failure and due() and (left := deadline - loop.time()) > 0:
            self._progress.clear()
            self._news.set()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._progress.wait(), left)
        if not self._failure and due():
            self._status.warn_once(
                f"The guard has not answered within {VERDICT_S:g} s, so what is decided now is not "
                "checked in full."
            )

    async def close(self) -> None:
        """End the worker and the scanner's child."""
        self._closed = True
        for task in (self._worker, self._looking):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        if self._scanner is not None:
            await self._scanner.close()

    # What a screen reads

    def light(self, path: str) -> Light:
        """The state of the guard for a file (``""``: none is open)."""
        if not self.on:
            return Light(LightState.OFF, "the guard is switched off")
        if path in self._off:
            return Light(LightState.OFF, "off for this file")
        if self._failure:
            return Light(LightState.UNGUARDED, self._failure)
        if not path:
            return Light(LightState.IDLE)
        from midstream.guard.pack import has_pack  # takes 50 ms, so not before a file is open

        if not (is_python(path) or has_pack(path)):
            return Light(LightState.UNGUARDED, "only credentials are looked for here")
        if self._scanner is not None and self._scanner.problem and is_python(path):
            return Light(LightState.UNGUARDED, self._scanner.problem.rstrip("."))
        watches = [w for w in self._watches if w.path == path]
        if not watches:
            return Light(LightState.IDLE)
        why = watches[-1].scan.problem
        return Light(LightState.UNGUARDED if why else LightState.GUARDED, why)

    def unread(self, path: str) -> str:
        """Why ruff has not looked at lines of a file that it should have, ``""`` if it has."""
        if not self._covers(path) or not is_python(path) or self._scanner is None:
            return ""
        scans = [watch.scan for watch in self._watches if watch.path == path and watch.scan.unread]
        return self._scanner.problem.rstrip(".") or (scans[0].problem if scans else "")

    def findings(self, hunk: Hunk) -> tuple[Finding, ...]:
        """What was found in the lines that a hunk brings, released findings included."""
        return tuple(spot.finding for spot in self._spots(hunk))

    def _spots(self, hunk: Hunk) -> tuple[FoundLine, ...]:
        """What was found in the lines that a hunk brings, and on which of them."""
        found = self._found.get(hunk.path)
        if not found or hunk.path in self._off:
            return ()
        version, known = self._hunks.version, self._marks.get(hunk.id)
        if known is None or (known.version, known.findings) != (version, len(found)):
            new = hunk.new
            if known is None or (known.findings, known.new) != (len(found), new):
                spots = _found_lines(found, new)
            else:
                spots = known.spots
            known = self._marks[hunk.id] = _MarkedHunk(version, len(found), new, spots)
        return known.spots

    def spot(self, hunk: Hunk) -> FoundLine | None:
        """The line of a hunk to mark: that of the finding that holds it back, else of the first."""
        spots = self._spots(hunk)
        held = hunk.hold
        mine = (spot for spot in spots if held is not None and spot.finding.rule == held.rule)
        return next(mine, spots[0] if spots else None)

    def reason(self, hunk: Hunk) -> str:
        """What was found in a hunk, in a few words, or ``""``."""
        found = self.findings(hunk)
        return f"{found[0].message} ({found[0].rule})" if found else ""

    def on_disk(self) -> list[Hunk]:
        """Undecided changes of other programs with a finding that has not been released."""
        return [
            hunk
            for hunk in self._hunks
            if hunk.external
            and hunk.live
            and hunk.waits
            and (hunk.held_on_disk or self._open(hunk))
        ]

    def _open(self, hunk: Hunk) -> bool:
        if not (found := self.findings(hunk)):
            return False
        released = self._let_go(hunk.path)
        return any(finding.key not in released for finding in found)

    def _halting(self, path: str, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Those that halt, without the ones in hunks that the user released."""
        halting = tuple(finding for finding in findings if finding.level is Level.HALT)
        released = self._let_go(path) if halting else ()
        return tuple(finding for finding in halting if finding.key not in released)

    def _let_go(self, path: str) -> frozenset[tuple[str, str]]:
        """Keys of the findings of a file that halt no more, since the user released their hunks."""
        return frozenset[tuple[str, str]]().union(
            *(
                keys
                for hunk_id, keys in self._released.items()
                if (hunk := self._hunks.get(hunk_id)).path == path and hunk.hold is None
            )
        )

    # What the user does

    def switch(self, files: Mapping[str, FileProposal], path: str) -> bool:
        """Switch it off for a file until the session ends, or on again.

        Off, it releases what is held back there; on, it judges what waits there, and what streams
        there from its beginning.

        Returns:
            Whether it is on now.
        """
        if path in self._off:
            self._off.discard(path)
            for watch in self._watches:
                if watch.path == path and watch.rewrite.live:
                    self._from_beginning(watch)
            self.look_soon(files, path)
            self._status.touch()
            return self.on
        self._off.add(path)
        self.release_unguarded({path})
        self._status.touch()
        return False

    def release_unguarded(self, paths: Set[str]) -> None:
        """Release what is held back in files for which it is off, which an undo can have led to."""
        for path in paths & self._off:
            for hunk in self._hunks.for_path(path):
                if hunk.state == _HELD:
                    self._hunks.release(hunk.id, note := "the guard is off for this file")
                    # It was not the user who released it: switched on again, the guard judges it.
                    self._released.pop(hunk.id, None)
                    self._journal.add(ReleaseEntry(hunk.id, note))
                    self._status.emit(HunkDecided(path, hunk.id))

    def _covers(self, path: str) -> bool:
        return self.on and path not in self._off

    def released(self, hunk: Hunk) -> None:
        """The user has released a hunk: its findings do not halt until that is undone."""
        self._released[hunk.id] = frozenset(finding.key for finding in self.findings(hunk))

    async def look_again(
        self,
        files: Mapping[str, FileProposal],
        let_go: Set[int] = frozenset(),
        *,
        paths: Set[str] | None = None,
    ) -> None:
        """Judge hunks that did not stream in by what their files hold now.

        Dangerous hunks are held back unless the user released them; one that is no longer dangerous
        is released.

        Args:
            files: Proposals by path.
            let_go: Hunks that the user released in a session that is taken up.
            paths: The files to look at (default: all).
        """
        due = sorted((files.keys() if paths is None else paths & files.keys()) - self._off)
        due = [p for p in due if any(h.state in _WAITING for h in self._hunks.for_path(p))]
        if not self.on or not due:
            return
        # To read its rules takes 30 ms, in which no key would be answered.
        await asyncio.to_thread(import_module, "midstream.guard.scanner")
        scanner = self._ready()
        for number, path in enumerate(due):
            if number:
                await pause()
            unread = scanner.unread
            found = await _findings_by_hunk(scanner, files[path])
            self._tell_unread(scanner)
            self._found.setdefault(path, []).extend(f for each in found.values() for f in each)
            for hunk in self._hunks.for_path(path):
                halting = self._halting(path, found.get(hunk.id, ()))
                if hunk.id in let_go:
                    self._released[hunk.id] = frozenset(finding.key for finding in halting)
                elif halting and hunk.state in _WAITING:
                    self._hold_back(hunk, halting[0])
                elif hunk.state == _HELD and scanner.guards(path, unread) and not _masked(hunk):
                    self._hunks.release(hunk.id, note := "the guard no longer finds anything in it")
                    self._journal.add(ReleaseEntry(hunk.id, note))

    # The worker

    def _ready(self) -> Scanner:
        from midstream.guard.scanner import Scanner

        if self._scanner is None:
            self._scanner = Scanner(self._levels)
        return self._scanner

    def _begin(self, rewrite: WatchedRewrite, above: list[str], **about: Any) -> None:
        from midstream.guard.stream import StreamScan

        scanner, path = self._ready(), rewrite.proposal.path
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
            self._worker.add_done_callback(self._ended)
        scan = StreamScan(scanner, path, above, about["region"], about["below"])
        watch = GuardWatch(rewrite, scan, above, **about)
        self._watches = [w for w in self._watches if w.behind or w.path != path]
        self._watches.append(watch)
        self._working = True  # The scan is prepared while the first token is awaited.
        self._news.set()

    def _scan_again(self, watch: GuardWatch) -> None:
        """Read a rewrite from its beginning, if lines that were read have been taken back."""
        kept = len(watch.segment.new_lines)
        if watch.handed > kept:
            watch.reported = {(rule, line) for rule, line in watch.reported if line < kept}
            self._from_beginning(watch)

    def _from_beginning(self, watch: GuardWatch) -> None:
        from midstream.guard.stream import StreamScan

        watch.scan = StreamScan(self._ready(), watch.path, watch.above, watch.region, watch.below)
        watch.handed = 0
        self._working = True
        self._news.set()

    async def _work(self) -> None:
        clock = asyncio.get_running_loop().time
        next_look = clock()
        while True:
            await self._news.wait()
            if (early := next_look - clock()) > 0:
                await asyncio.sleep(early)
            many = sum(watch.lag for watch in self._watches) > _MAX_SMALL_CHANGE_LINES
            next_look = clock() + (FAST_LOOK_EVERY_S if many else LOOK_EVERY_S)
            self._news.clear()
            self._working = True
            for watch in list(self._watches):
                await self._scan(watch)
            self._working = False
            self._progress.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = f"the guard itself failed ({error!r})"
            self._working = False
            self._status.warn(
                f"The guard has stopped, so lines are not checked any more: {self._failure}."
            )
        self._progress.set()

    async def _scan(self, watch: GuardWatch) -> None:
        before = self._troubles(watch)
        scan, lines = watch.scan, list(watch.segment.new_lines)
        watch.handed = len(lines)
        found = await scan.look(lines)
        self._tell_unread(self._ready())
        if scan is not watch.scan:
            return  # It was begun again meanwhile.
        if watch.path in self._off:
            return
        found = [f for f in found if (f.rule, f.line) not in watch.reported]
        watch.reported |= {(f.rule, f.line) for f in found}
        if found:
            self._found.setdefault(watch.path, []).extend(found)
        if found or self._troubles(watch) != before:
            self._status.touch()
        if halting := self._halting(watch.path, found):
            statement = watch.scan.statement_at(halting[0].line)
            if self._report is not None:
                self._report(GuardStop(watch, halting, statement))

    def _tell_unread(self, scanner: Scanner) -> None:
        """Say that ruff does not look at Python, once for each reason."""
        if scanner.problem:
            self._status.warn_once(
                f"{scanner.problem.rstrip('.')}, so of Python only credentials and queries are "
                "checked."
            )

    def _troubles(self, watch: GuardWatch) -> tuple[str, str]:
        """The part of the light that a look can change: why the guard sees less than it should."""
        return watch.scan.problem, "" if self._scanner is None else self._scanner.problem

    # What the runner does about a report

    def hold(self, stop: GuardStop) -> Held:
        """Hold back the hunks with what was found; the answer has ended."""
        watch, first = stop.watch, stop.findings[0]
        segment = watch.segment
        correction = Correction.of(first, segment.start + first.line + 1)
        place = RewritePlace.of(self._hunks, segment, stop.statement)
        held_back = [self._hold(segment, finding) for finding in stop.findings]
        request = CorrectionRequest(watch.asked, correction)
        return Held(watch, request, place, held_back[0])

    def next_attempt(self, held: Held) -> int | None:
        """Count one more attempt at writing it again; ``None`` if the user is to decide."""
        watch = held.watch
        line = watch.offset + held.place.carried
        tried = watch.tries.get(line, 0)
        often = tried >= CORRECTIONS or sum(watch.tries.values()) >= MAX_CORRECTIONS
        if watch.given_up or often:
            return None
        watch.tries[line] = tried + 1
        return tried + 1

    def give_up(self, held: Held) -> None:
        """Have nothing of this segment written again."""
        held.watch.given_up = True

    def _hold(self, segment: Segment, finding: Finding) -> bool:
        """Hold back the hunk with a finding; whether that was possible."""
        lines = range(finding.line, finding.stop)
        wanted = set(segment.new_lines[lines.start : lines.stop])
        added = [
            (row.new - segment.start, row.hunk)
            for row in segment.settled
            if row.hunk is not None and row.new is not None and row.text in wanted
        ]
        if not added:
            return False
        exact = [hunk_id for line, hunk_id in added if line in lines]
        hunk = self._hunks.get(exact[0] if exact else added[0][1])
        return hunk.state == _HELD or self._hold_back(hunk, finding)

    def _hold_back(self, hunk: Hunk, finding: Finding) -> bool:
        """Hold a hunk back; False if it was accepted before the verdict."""
        why = HoldReason(finding.rule, finding.message)
        if hunk.state == _HELD and hunk.hold == why:
            return True
        try:
            self._hunks.hold_back(hunk.id, why)
        except ValueError:
            return False
        self._journal.add(HoldEntry(hunk.id, why.rule, why.message))
        self._status.emit(HunkDecided(hunk.path, hunk.id))
        return True

    def _advise(self, path: str) -> None:
        from midstream.guard.secrets import sensitive_part

        if path not in self._advised and (part := sensitive_part(path)):
            self._advised.add(path)
            self._status.inform(
                f'{path} looks security-sensitive ("{part}" in its path): use a stronger model '
                "for it, and review carefully."
            )


def switch_in_words(
    guard: Guard, files: Mapping[str, FileProposal], path: str, how: str = ""
) -> str:
    """Switch the guard off for a file, or on again.

    Args:
        guard: The guard.
        files: Proposals by path.
        path: The file.
        how: How it is switched on again, as a clause.

    Returns:
        What to tell the user.
    """
    if not guard.on:
        return "The guard is off in your settings, for every file."
    if guard.switch(files, path):
        return f"The guard checks {path} again."
    return f"The guard is off for {path} until you quit{how and f'; {how}'}."


def _masked(hunk: Hunk) -> bool:
    """Whether it was held back for a credential, which a journal keeps only masked."""
    from midstream.guard.secrets import RULES

    return hunk.hold is not None and hunk.hold.rule in RULES


async def _findings_by_hunk(scanner: Scanner, proposal: FileProposal) -> dict[int, list[Finding]]:
    """Return the findings in the lines that hunks bring, by hunk.

    Undecided and held-back hunks count as they are proposed, decided ones as they are decided.
    What the reviewed text has already is not found again.
    """
    lines: list[str] = []
    reviewed: list[str] = []
    places: list[tuple[int, int, int]] = []
    at = 0
    base = proposal.base.lines
    for hunk in proposal.hunks.for_path(proposal.path):
        if hunk.state in (HunkState.SETTLED, HunkState.HELD):
            wanted = hunk.new
        elif (edit := hunk.edit()) is not None:
            wanted = tuple(edit.lines)
        else:
            continue
        if hunk.start < at:
            continue
        lines += base[at : hunk.start]
        reviewed += base[at : hunk.start]
        places.append((hunk.id, len(lines), len(lines) + len(wanted)))
        lines += wanted
        reviewed += hunk.base_lines if hunk.decided else hunk.old
        at = hunk.stop
    lines += base[at:]
    reviewed += base[at:]
    known = Counter(finding.key for finding in await scanner.scan(reviewed, proposal.path))
    found: dict[int, list[Finding]] = {}
    for finding in await scanner.scan(lines, proposal.path):
        if known[finding.key]:
            known[finding.key] -= 1
            continue
        for hunk_id, start, stop in places:
            if start < finding.stop and finding.line < stop:
                found.setdefault(hunk_id, []).append(finding)
    return found


def _found_lines(found: Iterable[Finding], new: Sequence[str]) -> tuple[FoundLine, ...]:
    """The findings that are about one of these lines, each with the first such line."""
    from midstream.guard.secrets import mask

    lines: dict[str, int] = {}
    for number, line in enumerate(new):
        lines.setdefault(mask(line.strip()), number)
    spots = {f.key: FoundLine(f, lines[f.evidence]) for f in found if f.evidence in lines}
    return tuple(spots.values())
