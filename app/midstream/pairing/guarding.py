"""The guard in a running session: every finished line is scanned, a dangerous one stops the model.

Scanning goes on beside the stream, which never waits for it: one scan at a time, always of the
newest text, and each finding names its own line all the same.  A finding that halts quarantines the
hunk that holds it and has the model write it again, twice at most; then the person decides.
Findings that warn mark their hunk.  Which lines are dangerous is the guard room's to say, and how a
generation is cut and gone on with is ``steering``'s; where it goes on, ``places``'; what a screen
shows of all this, ``lights``'.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from midstream.edits.syntax import is_python
from midstream.errors import UsageError
from midstream.guard.correction import Correction, CorrectionRequest
from midstream.guard.findings import Finding, Level
from midstream.guard.secrets import mask
from midstream.pairing.events import HunkDecided
from midstream.pairing.lights import Light, LightState, looks_sensitive
from midstream.pairing.places import Place, holder

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk, HunkStore
    from midstream.edits.proposal import FileProposal
    from midstream.guard.scanner import Scanner
    from midstream.guard.second_opinion import SecondOpinion
    from midstream.guard.stream import StreamScan
    from midstream.pairing.board import Board
    from midstream.pairing.generation import Generation
    from midstream.pairing.recorder import Recorder
    from midstream.pairing.steering import Steering

CORRECTIONS: Final = 2
"""How often the model is told to write one hunk again before the person decides."""
MOST_CORRECTIONS: Final = 6
"""How often in one turn, over all its hunks."""
REVIEW_EVERY_S: Final = 0.1
"""Seconds between two looks whether a hunk has settled or the answer is complete."""
VERDICT_S: Final = 6.0
"""How long a decision waits for a verdict that has not come."""
LOOK_EVERY_S: Final = 0.008
"""Least time between two looks: each wakes the scanner's child, for one line or for several."""
FAST_LOOK_EVERY_S: Final = 0.02
"""The same where more than :data:`_FEW_LINES` lines have come since the last one."""
_FEW_LINES: Final = 2

_STREAMING: Final = "streaming"
_HELD: Final = "quarantined"
_WAITING: Final = ("settled", _HELD)
"""States of hunks that are not decided (the enumeration itself would have to be imported)."""


@dataclass(slots=True)
class _Watch:
    """One segment that is scanned while it streams.

    Attributes:
        generation: The generation that writes it now; a person's redirect replaces it.
        scan: The state of its scan.
        above: Lines above the segment, as the model left them.
        region: What the region was before the first turn of the chain.
        below: Lines below it.
        asked: The person's instruction.
        offset: Lines of the region that earlier segments of the chain hold.
        tries: How often the model has corrected the hunk that begins at a line of the region.
        given_up: Whether the person decides from here on.
    """

    generation: Generation
    scan: StreamScan
    above: list[str]
    region: Sequence[str]
    below: Sequence[str]
    asked: str
    offset: int = 0
    tries: dict[int, int] = field(default_factory=dict[int, int])
    given_up: bool = False

    @property
    def lag(self) -> int:
        """Lines without a verdict."""
        return len(self.generation.segment.new_lines) - self.scan.seen

    @property
    def behind(self) -> bool:
        """Whether there are any."""
        return self.lag > 0


class Guard:
    """Watches what streams into a session.

    Attributes:
        on: Whether the person wants it.
    """

    def __init__(
        self,
        *,
        on: bool,
        levels: Sequence[tuple[str, str]],
        hunks: HunkStore,
        board: Board,
        recorder: Recorder,
    ) -> None:
        self.on = on
        self._levels = {rule: Level(level) for rule, level in levels}
        self._hunks = hunks
        self._board = board
        self._recorder = recorder
        self._steering: Steering | None = None
        self._scanner: Scanner | None = None
        self._worker: asyncio.Task[None] | None = None
        self._second: SecondOpinion | None = None
        self._reviews: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._progress = asyncio.Event()
        self._working = False
        self._failure = ""
        self._watches: list[_Watch] = []
        self._found: dict[str, list[Finding]] = {}
        self._marks: dict[int, tuple[int, tuple[str, ...], tuple[Finding, ...]]] = {}
        self._released: set[tuple[str, tuple[str, str]]] = set()
        self._advised: set[str] = set()

    def serve(self, steering: Steering) -> None:
        """Stop and redirect the generations of ``steering``."""
        self._steering = steering

    # What the stream tells

    def begin(self, generation: Generation) -> None:
        """A generation is about to write."""
        if not self.on:
            return
        last = self._watches[-1] if self._watches else None
        if last is not None and last.generation.segment is generation.segment:
            last.generation = generation
            last.asked = generation.turn.instruction
            last.tries = {}
            return
        base, segment = generation.proposal.base.lines, generation.segment
        self._watch(
            generation,
            above=list(base[: segment.start]),
            region=base[segment.start : segment.stop],
            below=base[segment.stop :],
            asked=generation.turn.instruction,
        )
        self._advise(generation.proposal.path)

    def look(self, generation: Generation) -> None:
        """Text has come; costs next to nothing while no line has ended."""
        if self._watches and (watch := self._watches[-1]).generation is generation and watch.behind:
            self._news.set()

    async def caught_up(self) -> None:
        """Wait until every line that is there now has its verdict, and what follows is done."""
        wanted = [(watch, len(watch.generation.segment.new_lines)) for watch in self._watches]

        def due() -> bool:
            return self._working or any(watch.scan.seen < count for watch, count in wanted)

        loop = asyncio.get_running_loop()
        deadline = loop.time() + VERDICT_S
        while not self._failure and due() and (left := deadline - loop.time()) > 0:
            self._progress.clear()
            self._news.set()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._progress.wait(), left)

    async def close(self) -> None:
        """End the worker and the scanner's child."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.wait({self._worker})
        for review in self._reviews:
            review.cancel()
        if self._reviews:
            await asyncio.wait(self._reviews)
        if self._second is not None:
            await self._second.close()
        if self._scanner is not None:
            await self._scanner.close()

    # What a screen reads

    def light(self, path: str) -> Light:
        """The state of the guard for a file (``""``: none is open)."""
        from midstream.guard.pack import has_pack

        if not self.on:
            return Light(LightState.OFF, "the guard is switched off")
        if self._failure:
            return Light(LightState.UNGUARDED, self._failure)
        if not path:
            return Light(LightState.IDLE)
        if not (is_python(path) or has_pack(path)):
            return Light(LightState.UNGUARDED, "no rules for this kind of file, only for secrets")
        if self._scanner is not None and self._scanner.problem and is_python(path):
            return Light(LightState.UNGUARDED, self._scanner.problem.rstrip("."))
        watches = [w for w in self._watches if w.generation.proposal.path == path]
        if not watches:
            return Light(LightState.IDLE)
        why = watches[-1].scan.problem
        return Light(LightState.UNGUARDED if why else LightState.GUARDED, why)

    def findings(self, hunk: Hunk) -> tuple[Finding, ...]:
        """What was found in the lines that a hunk brings, released findings included."""
        found = self._found.get(hunk.path)
        if not found:
            return ()
        new = hunk.new
        known = self._marks.get(hunk.id)
        if known is None or known[:2] != (len(found), new):
            lines = {mask(line.strip()) for line in new}
            unique = {finding.key: finding for finding in found if finding.evidence in lines}
            known = self._marks[hunk.id] = (len(found), new, tuple(unique.values()))
        return known[2]

    def reason(self, hunk: Hunk) -> str:
        """What was found in a hunk, in a few words, or ``""``."""
        found = self.findings(hunk)
        return f"{found[0].message} ({found[0].rule})" if found else ""

    # What a person does

    def release(self, hunk_id: int, reason: str) -> None:
        """Let a quarantined hunk be decided; its findings do not halt in this session any more.

        Raises:
            UsageError: No reason is given, or the hunk is not quarantined.
        """
        reason = " ".join(reason.split())
        if not reason:
            raise UsageError("Releasing a quarantined hunk needs a reason; say it in a few words.")
        try:
            self._hunks.release(hunk_id, reason)
        except (KeyError, ValueError):
            raise UsageError(f"Hunk {hunk_id} is not quarantined.") from None
        hunk = self._hunks.get(hunk_id)
        self._released |= {(hunk.path, finding.key) for finding in self.findings(hunk)}
        self._recorder.release(hunk_id, mask(reason))
        self._board.emit(HunkDecided(hunk.path, hunk_id))

    async def look_again(self, files: Mapping[str, FileProposal], let_go: Set[int]) -> None:
        """Judge the hunks of a session that is taken up by what their files hold now.

        A hunk that is dangerous is held back, unless a person has let it go; one that was held back
        and is dangerous no more can be decided.

        Args:
            files: Proposals by path.
            let_go: Hunks that a person has released.
        """
        from midstream.pairing.rescanning import judged

        waiting = {h.path for h in self._hunks if h.state in _WAITING and h.anchored}
        if not self.on or not waiting:
            return
        scanner = self._ready()
        for path in sorted(waiting & files.keys()):
            found = await judged(scanner, files[path])
            self._found.setdefault(path, []).extend(f for each in found.values() for f in each)
            for hunk in self._hunks.for_path(path):
                halting = [f for f in found.get(hunk.id, ()) if f.level is Level.HALT]
                if hunk.id in let_go:
                    self._released |= {(path, finding.key) for finding in halting}
                elif halting and hunk.state in _WAITING:
                    self._quarantine(hunk, halting[0])
                elif hunk.state == _HELD and self._sees(path) and not _masked(hunk):
                    self._hunks.release(hunk.id, note := "the guard finds nothing in it any more")
                    self._recorder.release(hunk.id, note)

    def _sees(self, path: str) -> bool:
        """Whether what the guard does not find in a file can be taken for not being there."""
        return self._scanner is not None and self._scanner.guards(path)

    # The worker

    def _ready(self) -> Scanner:
        from midstream.guard.scanner import Scanner

        if self._scanner is None:
            self._scanner = Scanner(self._levels)
        return self._scanner

    def _watch(self, generation: Generation, **about: Any) -> _Watch:
        from midstream.guard.stream import StreamScan

        scanner = self._ready()
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
            self._worker.add_done_callback(self._ended)
        path = generation.proposal.path
        scan = StreamScan(scanner, path, about["above"], about["region"], about["below"])
        watch = _Watch(generation, scan, **about)
        self._watches = [w for w in self._watches if w.behind or w.generation.proposal.path != path]
        self._watches.append(watch)
        self._working = True  # The scan is made ready while the first token is awaited.
        self._news.set()
        self._review_later(watch)
        return watch

    def _review_later(self, watch: _Watch) -> None:
        """Have bandit look at a file whenever a hunk of it has settled."""
        from midstream.guard.policy import BANDIT
        from midstream.guard.second_opinion import SecondOpinion, has_bandit

        wanted = self._levels.get(BANDIT) is not Level.OFF
        if not wanted or not is_python(watch.generation.proposal.path) or not has_bandit():
            return
        if self._second is None:
            self._second = SecondOpinion(self._levels)
        if not self._second.problem:
            task = asyncio.create_task(self._review(watch, self._second))
            self._reviews.add(task)
            task.add_done_callback(self._reviews.discard)

    async def _review(self, watch: _Watch, second: SecondOpinion) -> None:
        path, segment = watch.generation.proposal.path, watch.generation.segment
        before = [*watch.above, *watch.region, *watch.below]
        seen, writing = 0, True
        while writing and not second.problem:
            # Nothing tells the end of an answer and of its scan alike; nobody waits for this.
            writing = watch.generation.answer.live or watch.behind
            settled = sum(h.state != _STREAMING for h in self._hunks.for_path(path))
            if writing and settled == seen:
                await asyncio.sleep(REVIEW_EVERY_S)
                continue
            seen = settled
            below = () if writing else watch.below
            after = [*watch.above, *segment.new_lines, *below]
            found = await second.new_findings(before, after, self._found.get(path, ()))
            if found:
                self._found.setdefault(path, []).extend(found)
                self._board.touch()
        if second.problem:
            self._board.warn(f"{second.problem}; the guard's own rules and ruff go on.")

    async def _work(self) -> None:
        clock = asyncio.get_running_loop().time
        next_look = clock()
        while True:
            await self._news.wait()
            if (early := next_look - clock()) > 0:
                await asyncio.sleep(early)
            many = sum(watch.lag for watch in self._watches) > _FEW_LINES
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
            self._board.warn(f"Nothing is guarded any more: {self._failure}.")
        self._progress.set()

    async def _scan(self, watch: _Watch) -> None:
        path, before = watch.generation.proposal.path, self._troubles(watch)
        found = await watch.scan.look(list(watch.generation.segment.new_lines))
        if found:
            self._found.setdefault(path, []).extend(found)
        if found or self._troubles(watch) != before:
            self._board.touch()
        halting = [
            finding
            for finding in found
            if finding.level is Level.HALT and (path, finding.key) not in self._released
        ]
        if halting:
            await self._halt(watch, halting)

    def _troubles(self, watch: _Watch) -> tuple[str, str]:
        """What a look can change of the light: why it sees less than it should."""
        return watch.scan.problem, "" if self._scanner is None else self._scanner.problem

    async def _halt(self, watch: _Watch, findings: Sequence[Finding]) -> None:
        """Cut the generation, hold the hunks back, and go on from the line before the statement.

        Args:
            watch: The segment.
            findings: What halts, by line; the first is what the model is told of.
        """
        finding = findings[0]
        generation, steering = watch.generation, self._steering
        if steering is None:
            return
        steering.cut(generation)
        segment, path = generation.segment, generation.proposal.path
        correction = Correction.of(finding, segment.start + finding.line + 1)
        what = f"line {correction.line} of {path}: {finding.message} ({finding.rule})"
        place = Place.of(self._hunks, segment, watch.scan.statement_at(finding.line))
        hunk, *_ = [self._hold(segment, each) for each in findings]
        tried = watch.tries.get(watch.offset + place.carried, 0)
        again = (
            not watch.given_up
            and tried < CORRECTIONS
            and sum(watch.tries.values()) < MOST_CORRECTIONS
            and steering.may_rewrite(generation)
        )
        if not again:
            watch.given_up = True
            await steering.interrupt(generation)
            held = "it is quarantined" if hunk is not None else "look at it before you accept"
            self._board.fail(f"Stopped at {what}; {held}. {correction.advice}")
            return
        watch.tries[watch.offset + place.carried] = tried + 1
        above = [*watch.above, *segment.new_lines[: place.carried]]
        new = steering.rewrite(
            generation,
            place.lines,
            place.carried,
            place.start,
            CorrectionRequest(watch.asked, correction),
        )
        self._watch(
            new,
            above=above,
            region=watch.region,
            below=watch.below,
            asked=watch.asked,
            offset=watch.offset + place.carried,
            tries=watch.tries,
        )
        self._board.warn(
            f"Stopped at {what}. The model writes it again ({tried + 1} of {CORRECTIONS}): "
            f"{correction.advice}"
        )
        await steering.resend(generation, new)

    def _hold(self, segment: Any, finding: Finding) -> Hunk | None:
        """Quarantine the hunk that holds a finding."""
        from midstream.edits.hunks import HunkState

        hunk = holder(self._hunks, segment, range(finding.line, finding.stop))
        if hunk is None:
            return None
        if hunk.state is HunkState.QUARANTINED or self._quarantine(hunk, finding):
            return hunk
        return None

    def _quarantine(self, hunk: Hunk, finding: Finding) -> bool:
        """Hold a hunk back; False if it was accepted before the verdict."""
        from midstream.edits.hunks import Quarantine

        why = Quarantine(finding.rule, finding.message)
        if hunk.state == _HELD and hunk.quarantine == why:
            return True
        try:
            self._hunks.quarantine(hunk.id, why)
        except ValueError:
            return False
        self._recorder.quarantine(hunk.id, why)
        self._board.emit(HunkDecided(hunk.path, hunk.id))
        return True

    def _advise(self, path: str) -> None:
        if looks_sensitive(path) and path not in self._advised:
            self._advised.add(path)
            self._board.inform(
                f"{path} looks security-sensitive; use a deeper model for it and read slowly."
            )


def _masked(hunk: Hunk) -> bool:
    """Whether it was held back for a credential, which a journal keeps only masked."""
    from midstream.guard.secrets import RULES

    return hunk.quarantine is not None and hunk.quarantine.rule in RULES
