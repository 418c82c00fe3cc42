"""Any order of writes by other programs, decisions, put-backs that wait, undo and kills.

What must hold: a write of another program stays until one of its hunks is put back; a decision
changes its own lines only, at once or later; what is put back as a whole is the text that was
reviewed; and a session that was killed comes back with the same hunks, decisions and marks.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from midstream.edits.documents import join_lines
from midstream.edits.hunks import HunkState, HunkStore
from midstream.pairing import put_backs
from midstream.pairing.journal import Replay
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.pairing import git, make_repo
from tests.helpers.property import examples
from tests.helpers.strategies import code, mutate

FILES = ("one.py", "two.py")
NEW = "three.py"


class Folder:
    """Files that a reviewer and other programs change in turn."""

    def __init__(self, session: PairingSession, root: Path, rng: random.Random) -> None:
        self.session = session
        self.root = root
        self.rng = rng

    def texts(self) -> dict[str, str | None]:
        names = [*FILES, NEW]
        return {n: p.read_text() if (p := self.root / n).exists() else None for n in names}

    async def write(self) -> None:
        """Another program writes, creates or deletes a file; it may be noticed only later."""
        name = self.rng.choice([*FILES, NEW])
        path = self.root / name
        if path.exists() and self.rng.random() < 0.15:
            path.unlink()
        else:
            lines = path.read_text().splitlines() if path.exists() else code(self.rng, 5)
            path.write_text(join_lines(mutate(self.rng, lines, self.rng.randint(1, 3))))
        if self.rng.random() < 0.8:
            await self.notice()

    async def notice(self) -> None:
        before = self.texts()
        await self.session.review.changed([*FILES, NEW])
        assert self.texts() == before, "looking writes nothing"

    async def decide(self) -> None:
        undecided = self.session.hunks.undecided()
        if not undecided:
            return
        hunk = self.rng.choice(undecided)
        before = self.texts()
        if self.rng.random() < 0.5:
            await self.session.files.accept(hunk.id)
            assert self.texts() == before, "keeping writes nothing"
            return
        old, new = list(hunk.old), list(hunk.new)
        done = await self.session.files.reject(hunk.id)
        after = self.texts()
        if hunk.postponed is not None:
            assert (done, after) == (True, before), "a mark writes nothing"
            return
        if not done or (after == before and after[hunk.path] is None):  # It had been deleted.
            assert after == before
            return
        text, now = before.pop(hunk.path), after.pop(hunk.path)
        assert after == before, "other files are not touched"
        lines, rest = (text or "").splitlines(), (now or "").splitlines()
        places = range(len(lines) - len(new) + 1)
        assert any(
            lines[at : at + len(new)] == new
            and [*lines[:at], *old, *lines[at + len(new) :]] == rest
            for at in places
        ), "exactly these lines went back"

    async def put_back(self) -> None:
        """What waits goes back: exactly these lines, as far as they are still there."""
        marked, before = self.session.hunks.postponed(), self.texts()
        count = await self.session.files.put_backs.apply()
        gone = [hunk for hunk in marked if hunk.state is HunkState.REJECTED]
        assert count == len(gone)
        assert not self.session.hunks.postponed()
        wanted = {name: Counter((text or "").splitlines()) for name, text in before.items()}
        for hunk in gone:
            if before[hunk.path] is not None or hunk.old:
                wanted[hunk.path].subtract(hunk.new)
                wanted[hunk.path].update(hunk.old)
        after = {name: Counter((text or "").splitlines()) for name, text in self.texts().items()}
        assert after == {name: +lines for name, lines in wanted.items()}

    async def pause(self) -> None:
        """Another program is in the middle of its work from now on, or it is not."""
        put_backs.QUIET_S = self.rng.choice([0.0, 600.0])
        if not put_backs.QUIET_S:
            await self.notice()

    async def travel(self) -> None:
        await (self.session.files.undo() if self.rng.random() < 0.6 else self.session.files.redo())

    def state(self, hunks: HunkStore) -> dict[int, tuple[object, ...]]:
        live = [hunk for hunk in hunks if hunk.live]
        return {
            h.id: (h.path, h.start, h.stop, h.old, h.new, h.state, h.external, h.postponed)
            for h in live
        }


@pytest.mark.fuzz
@given(seed=st.integers(0, 2**32))
@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_nothing_is_lost_in_any_order(
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
    endpoint: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(put_backs, "QUIET_S", rng.choice([0.0, 600.0]))
    root = tmp_path_factory.mktemp("review")
    make_repo(root, {name: join_lines(code(rng, 12)) for name in FILES})
    committed = git(root, "ls-files", "-s")
    session = await PairingSession.open(root, settings=Settings(), endpoint=endpoint, watch=False)
    async with session:
        await session.review.start(since_commit=True)
        folder = Folder(session, root, rng)
        for _ in range(rng.randint(2, 16)):
            steps = [folder.write, folder.write, folder.decide, folder.decide, folder.travel]
            await rng.choice([*steps, folder.put_back, folder.pause])()
        await folder.notice()
        session.journal.flush()
        if (path := session.journal.path) is not None:
            killed = root.parent / f"{root.name}-killed.jsonl"
            shutil.copy(path, killed)
            assert folder.state(Replay.read(killed).hunks) == folder.state(session.hunks)
        await folder.put_back()
        for hunk in session.hunks.undecided():
            for _ in range(2):  # It may not parse afterwards: asked again, it is done.
                if hunk.state is HunkState.SETTLED:
                    await session.files.reject(hunk.id)
                    await folder.put_back()
        undecided = session.hunks.undecided()
        assert not undecided, "every hunk can be put back"
        rejected = HunkState.REJECTED
        if all(hunk.state in (rejected, HunkState.SUPERSEDED) for hunk in session.hunks):
            if folder.texts()[NEW] == "":  # A new file without a line has no hunk.
                (root / NEW).unlink()
            assert git(root, "status", "--porcelain") == "", "nothing was kept"
    assert git(root, "ls-files", "-s") == committed
