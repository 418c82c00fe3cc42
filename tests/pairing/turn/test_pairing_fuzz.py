"""Random interleavings of a stream, saves from outside, decisions, stops, redirects and crashes.

What must hold whenever nothing is being written: a line that the person saved is on disk until the
person takes it away, no line of the model is on disk unless it was accepted, and a line of the
original that is gone was taken away by the person or by an accepted hunk.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from pathlib import Path

import pytest

from midstream.edits.hunks import HunkState
from midstream.errors import UserError
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession, TurnStatus
from midstream.pairing.status import HunkDecided, SessionEvent
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace.journal import sessions
from midstream.workspace.paths import state_dir
from tests.helpers.pairing import Witness
from tests.helpers.property import thorough
from tests.helpers.stepped import SteppedModel

LENGTH = 40


class Person:
    """Edits and saves the file behind the session's back, one line at a time.

    Like an editor, a person works on what was loaded, and loads again before another change.
    """

    def __init__(self, path: Path, rng: random.Random) -> None:
        self.path = path
        self.mine: set[str] = set()
        self.taken: set[str] = set()
        self._rng = rng
        self._count = 0
        self._lines: list[str] = []

    def load(self) -> None:
        """Read the file."""
        self._lines = self.path.read_text().splitlines()

    def save(self) -> None:
        """Change one line and save: by rename or in place, as editors do."""
        lines = self._lines
        at = self._rng.randrange(0, len(lines) + 1)
        kind = self._rng.random()
        self._count += 1
        fresh = f"    person_{self._count} = 1"
        if kind < 0.5 or at == len(lines):
            lines.insert(at, fresh)
            self.mine.add(fresh)
        else:
            self.taken.add(lines[at])
            self.mine.discard(lines[at])
            if kind < 0.8:
                lines[at] = fresh
                self.mine.add(fresh)
            else:
                del lines[at]
        text = "".join(f"{line}\n" for line in lines)
        if self._rng.random() < 0.5:
            other = self.path.with_suffix(".tmp")
            other.write_text(text)
            other.rename(self.path)
        else:
            self.path.write_text(text)


class Case:
    """One session under random actions."""

    def __init__(
        self,
        rng: random.Random,
        root: Path,
        model: SteppedModel,
        endpoint: Endpoint,
        session: PairingSession,
    ) -> None:
        self.rng = rng
        self.root = root
        self.endpoint = endpoint
        self.path = root / "run.py"
        self.model = model
        self.session = session
        self.original = [f"    line_{n} = {n}" for n in range(LENGTH)]
        self.path.write_text("".join(f"{line}\n" for line in self.original))
        self.person = Person(self.path, rng)
        self.accepted: set[str] = set()
        self.deletable: set[str] = set()
        self.script: list[str] = []
        self._fresh = 0
        self._asked = ""
        self._witness = Witness(session)
        session.status.subscribe(self.hear)

    def rewrite(self, region: str) -> list[str]:
        """A rewrite of a region in pieces of any length, with lines nobody else has."""
        out: list[str] = []
        for line in region.splitlines(keepends=True):
            chance = self.rng.random()
            self._fresh += 1
            if chance < 0.15:
                out.append(f"    model_{self._fresh} = 1\n")
            elif chance < 0.25:
                out += [line, f"    model_{self._fresh} = 1\n"]
            elif chance < 0.85:
                out.append(line)
        text = "".join(out)
        pieces: list[str] = []
        while text:
            size = self.rng.randrange(1, 60)
            pieces.append(text[:size])
            text = text[size:]
        return pieces

    def hear(self, event: SessionEvent) -> None:
        """Note what was ever accepted, however shortly."""
        if isinstance(event, HunkDecided):
            hunk = self.session.hunks.get(event.hunk_id)
            if hunk.state is HunkState.ACCEPTED:
                self.accepted.update(hunk.new)
                self.deletable.update(hunk.old)
                # A stopped rewrite can propose a line that stands below it already; once accepted,
                # nobody can tell the two, and taking the hunk back may take either.
                self.deletable.update(line for line in hunk.new if "model_" not in line)

    def check(self) -> None:
        on_disk = self.path.read_text().splitlines()
        present = set(on_disk)
        assert self.person.mine <= present | self.deletable, self.person.mine - present
        model = {line for line in on_disk if line.startswith("    model_")}
        assert model <= self.accepted, model - self.accepted
        gone = set(self.original) - present
        assert gone <= self.person.taken | self.deletable, gone - self.deletable

    async def act(self) -> None:
        """One random action; what cannot be done now is refused with a sentence."""
        session, rng = self.session, self.rng
        kind = rng.choice(
            ["text"] * 8
            + ["save"] * 3
            + ["accept"] * 4
            + ["race", "reject", "instruct"] * 2
            + ["undo", "redo", "rest", "refresh", "stop", "redirect", "end", "crash"]
        )
        every = [hunk.id for hunk in session.hunks]
        ids = [hunk.id for hunk in session.hunks if hunk.decidable] if rng.random() < 0.8 else every
        if kind == "text":
            if self.script:
                self.model.give(self.script.pop(0))
            await asyncio.sleep(rng.choice([0, 0, 0.001]))
        elif kind == "save":
            self.person.load()
            self.person.save()
        elif kind == "accept" and ids:
            await session.decisions.accept(rng.choice(ids))
        elif kind == "race" and ids:
            await self.race([rng.choice(ids) for _ in range(3)])
        elif kind == "reject" and ids:
            await session.decisions.reject(rng.choice(ids))
        elif kind == "undo":
            await session.decisions.undo()
        elif kind == "redo":
            await session.decisions.redo()
        elif kind == "rest":
            await session.decisions.accept_rest("run.py")
        elif kind == "refresh":
            await session.external.refresh()
        elif kind == "stop":
            await session.turns.stop_turn()
        elif kind == "end":
            self.script = []
            self.model.end()
        elif kind == "redirect" and self.running:
            await session.turns.redirect(self.instruction())
            await self.running_model()
        elif kind == "crash":
            await self.crash()
        elif kind == "instruct" and not self.running:
            await self.instruct()

    async def race(self, hunk_ids: list[int]) -> None:
        """Decisions and undo at once, with saves while they are being written."""
        calls = [
            self.session.decisions.accept(hunk_ids[0]),
            self.session.decisions.accept(hunk_ids[1]),
        ]
        calls += [self.session.decisions.reject(hunk_ids[2]), self.session.decisions.undo()]
        self.rng.shuffle(calls)
        self.person.load()
        tasks = [asyncio.ensure_future(call) for call in calls]
        for _ in range(self.rng.randrange(1, 4)):
            await asyncio.sleep(self.rng.choice([0, 0.0005, 0.002]))
            self.person.save()
        # No look in between: two names are exchanged and, after a save in that moment, exchanged
        # back, so for some microseconds the file has the text that was about to be written.
        await asyncio.gather(*tasks)

    async def crash(self) -> None:
        """Go on from the journal as a killed process would have left it just now."""
        state = state_dir()
        live = [info.path for info in sessions(state, self.root) if info.live]
        if not live:
            return
        left = state / "left.jsonl"
        shutil.copyfile(live[0], left)
        shown = self.path.read_bytes()
        await self.session.close()
        live[0].unlink()
        left.replace(live[0])
        self.session = await PairingSession.open(
            self.root, settings=Settings(), endpoint=self.endpoint, watch=False, resume=live[0]
        )
        assert self.path.read_bytes() == shown, "taking up a session writes nothing"
        assert "is back" in self.session.status.notices[-1].text, self.session.status.notices
        self._witness = Witness(self.session)
        self.session.status.subscribe(self.hear)
        self.script = []
        self.model.drop()

    @property
    def running(self) -> bool:
        return self.session.turns.last is not None and self.session.turns.last.running

    async def instruct(self) -> None:
        length = len(self.path.read_text().splitlines())
        start = self.rng.randrange(0, length + 1)
        stop = min(length, start + self.rng.randrange(1, LENGTH))
        self.model.drop()
        try:
            await self.session.turns.instruct(
                Question(self.instruction(), path="run.py", selection=(start, stop))
            )
        except UserError:
            return  # The person made the file shorter in between.
        await self.running_model()
        self.script = self.rewrite(self.model.region)

    def instruction(self) -> str:
        self._asked = f"change {len(self.session.turns)}"
        return self._asked

    async def running_model(self) -> None:
        """Wait until the model answers the last instruction, so that it gets what is given."""
        await self._witness.until(lambda: not self.running or self.model.asked == self._asked)

    async def finish(self) -> None:
        for piece in self.script:
            self.model.give(piece)
        self.model.end()
        async with asyncio.timeout(20):
            await self.session.turns.finished()
        self.check()
        await self.session.external.refresh()
        self.check()
        composed = self.session.files["run.py"].composed() if self.session.files else None
        if composed is not None:
            assert composed.to_bytes() == self.path.read_bytes()


async def run_case(seed: int, endpoint: Endpoint, model: SteppedModel) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        root = Path(folder)
        model.drop()
        model.requests.clear()
        session = await PairingSession.open(
            root, settings=Settings(), endpoint=endpoint, watch=seed % 25 == 0
        )
        case = Case(rng, root, model, endpoint, session)
        try:
            await case.instruct()
            for _ in range(rng.randrange(10, 60)):
                await case.act()
                case.check()
            await case.finish()
            assert all(turn.status is not TurnStatus.STREAMING for turn in case.session.turns)
        except (AssertionError, TimeoutError, ValueError, KeyError) as error:
            error.add_note(f"seed {seed}; notices: {case.session.status.notices}")
            raise
        finally:
            await case.session.close()


@pytest.mark.fuzz
@pytest.mark.parametrize("block", range(4))
async def test_interleavings(block: int, endpoint: Endpoint, model: SteppedModel) -> None:
    count = 10 if thorough() else 3
    for seed in range(block * count, (block + 1) * count):
        await run_case(seed, endpoint, model)


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_ten_thousand_interleavings(endpoint: Endpoint, model: SteppedModel) -> None:
    for seed in range(10_000):
        await run_case(seed, endpoint, model)
