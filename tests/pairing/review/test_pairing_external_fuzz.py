"""Any order of writes by others, saves of the user, a model's edits, decisions, undo and kills.

What must hold: a line that somebody wrote stays until a decision takes it away; a decision changes
its own lines only, at once or later, and only where they are; what is put back as a whole is the
text that was reviewed; a session that was killed comes back with the same hunks, decisions and
marks, and coming back writes nothing but what was to be put back.

A case is one such order. ``pytest -m slow -n 2
tests/pairing/review/test_pairing_external_fuzz.py`` plays 10,000; ``MIDSTREAM_FUZZ_CASES`` sets
how many instead, and ``MIDSTREAM_FUZZ_SEED`` the seed of the first.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from midstream.edits.documents import join_lines
from midstream.edits.hunk_store import HunkStore
from midstream.edits.hunks import Hunk, HunkState
from midstream.errors import UserError
from midstream.pairing.files import put_backs
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.pairing import Witness, git, make_repo
from tests.helpers.property import thorough
from tests.helpers.stepped import SteppedModel
from tests.helpers.strategies import code, mutate
from tests.helpers.waiting import PATIENCE_S

FILES = ("one.py", "two.py")
NEW = "three.py"
BLOCKS = 20
"""The 10,000 cases are played in so many tests, side by side."""


class Folder:
    """Files that a reviewer and other programs change in turn."""

    def __init__(
        self,
        session: PairingSession,
        root: Path,
        rng: random.Random,
        endpoint: Endpoint,
        model: SteppedModel,
    ) -> None:
        self.session = session
        self.root = root
        self.rng = rng
        self.endpoint = endpoint
        self.model = model
        self.instructed = False
        """Whether the model has written: lines that others write over its own are not reviewed."""
        self._least = 6
        """Lines at the beginning of the journal that a kill never loses: the reviewed texts."""

    async def save(self) -> None:
        """The user's editor saves what it has loaded, with a change, by a rename."""
        path = self.root / self.rng.choice(FILES)
        if path.exists():
            beside = path.with_suffix(".saving")
            lines = path.read_text().splitlines()
            beside.write_text(join_lines(mutate(self.rng, lines, 1)))
            beside.replace(path)
            if self.rng.random() < 0.5:
                await self.notice()

    async def instruct(self) -> None:
        """The session's own model rewrites some lines; its hunks wait, too."""
        path = self.root / self.rng.choice(FILES)
        if not path.exists() or not (length := len(path.read_text().splitlines())):
            return
        start = self.rng.randrange(length)
        stop = min(length, start + self.rng.randint(1, 6))
        before, self.instructed = self.texts(), True
        self.model.drop()
        with contextlib.suppress(UserError):  # it is about lines that wait
            await self.session.turns.instruct(
                Question("change", path=path.name, selection=(start, stop))
            )
            lines = path.read_text().splitlines()[start:stop]
            self.model.give(join_lines(mutate(self.rng, lines, 2)))
            self.model.end()
            async with asyncio.timeout(PATIENCE_S):
                await self.session.turns.finished()
        assert self.texts() == before, "an answer writes nothing"

    async def kill(self) -> None:
        """Go on from the journal, of which the last lines may not have reached the disk."""
        old = self.session
        if (journal := old.journal.path) is None:
            return
        lost = self.rng.choice([0, 0, 1, 2])
        if noticed := not lost:
            await self.notice()
        old.journal.flush()
        left = journal.with_name("left")
        kept = journal.read_bytes().splitlines(keepends=True)
        lost = min(lost, max(0, len(kept) - self._least))
        left.write_bytes(b"".join(kept[: len(kept) - lost]) + b'{"k":"de' * bool(lost))
        marked, state, before = old.hunks.postponed(), self.state(old.hunks), self.texts()
        await old.close()
        assert self.texts() == before, "closing writes nothing"
        journal.unlink()
        left.replace(journal)
        self.session = session = await PairingSession.open(
            self.root,
            settings=Settings(),
            endpoint=self.endpoint,
            watch=False,
            resume=journal,
            review=True,
        )
        assert any("is back" in n.text for n in session.status.notices), session.status.notices
        await Witness(session).until(lambda: session.review.on)
        await session.decisions.put_backs.finish()
        if not lost and not marked:
            assert self.texts() == before, "coming back writes nothing"
            now = self.state(session.hunks)
            assert now == state or not noticed, (
                [f"{i}: {v}" for i, v in state.items() if now.get(i) != v],
                [f"{i}: {v}" for i, v in now.items() if state.get(i) != v],
            )
        elif not lost:
            self._assert_gone(before, [session.hunks.get(hunk.id) for hunk in marked])
        await self.notice()

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
        if not hunk.external:
            await self._decide_own(hunk, before)
            return
        if self.rng.random() < 0.5:
            await self.session.decisions.accept(hunk.id)
            assert self.texts() == before, "keeping writes nothing"
            return
        old, new = list(hunk.old), list(hunk.new)
        done = await self.session.decisions.reject(hunk.id)
        after = self.texts()
        if hunk.postponed is not None:
            assert (done, after) == (True, before), "a mark writes nothing"
            return
        if not done or (after == before and after[hunk.path] is None):  # It had been deleted.
            assert after == before
            return
        _assert_replaced(before, after, hunk.path, new, old)

    async def _decide_own(self, hunk: Hunk, before: dict[str, str | None]) -> None:
        """A hunk of the model's reaches the disk by being accepted, and not otherwise."""
        old, new = list(hunk.old), list(hunk.new)
        if self.rng.random() < 0.3:
            await self.session.decisions.reject(hunk.id)
            assert self.texts() == before
        elif await self.session.decisions.accept(hunk.id):
            after = self.texts()
            if after == before:  # somebody else has just written the same
                _assert_replaced(before, after, hunk.path, new, new)
            else:
                _assert_replaced(before, after, hunk.path, old, new)
        else:
            assert self.texts() == before

    async def put_back(self) -> None:
        """Put the marked hunks back: exactly their lines, as far as these are still there."""
        marked, before = self.session.hunks.postponed(), self.texts()
        count = await self.session.decisions.put_backs.apply()
        assert count == sum(hunk.state is HunkState.REJECTED for hunk in marked)
        assert not self.session.hunks.postponed()
        self._assert_gone(before, marked)

    def _assert_gone(self, before: dict[str, str | None], marked: list[Hunk]) -> None:
        """The rejected ones of the marked hunks went back, and nothing else changed."""
        gone = [hunk for hunk in marked if hunk.state is HunkState.REJECTED]
        wanted = {name: Counter((text or "").splitlines()) for name, text in before.items()}
        for hunk in gone:
            if before[hunk.path] is not None or hunk.old:
                wanted[hunk.path].subtract(hunk.new)
                wanted[hunk.path].update(hunk.old)
        after = {name: Counter((text or "").splitlines()) for name, text in self.texts().items()}
        assert after == {name: +lines for name, lines in wanted.items()}

    async def pause(self) -> None:
        """From now on another program writes, or none does."""
        put_backs.QUIET_S = self.rng.choice([0.0, 600.0])
        if not put_backs.QUIET_S:
            await self.notice()

    async def travel(self) -> None:
        await (
            self.session.decisions.undo()
            if self.rng.random() < 0.6
            else self.session.decisions.redo()
        )

    def put_backable(self) -> list[Hunk]:
        return [hunk for hunk in self.session.hunks.undecided() if hunk.external]

    def state(self, hunks: HunkStore) -> dict[int, tuple[object, ...]]:
        live = [hunk for hunk in hunks if hunk.live]
        return {h.id: (h.path, h.old, h.new, h.state, h.external, h.postponed) for h in live}


def _assert_replaced(
    before: dict[str, str | None],
    after: dict[str, str | None],
    path: str,
    given: list[str],
    wanted: list[str],
) -> None:
    """One file has some lines in place of others, and nothing else has changed."""
    others = {name: text for name, text in before.items() if name != path}
    assert others == {name: after[name] for name in others}, "other files are not touched"
    lines, rest = (before[path] or "").splitlines(), (after[path] or "").splitlines()
    size = len(given)
    assert any(
        lines[at : at + size] == given and [*lines[:at], *wanted, *lines[at + size :]] == rest
        for at in range(len(lines) - size + 1)
    ), "exactly these lines changed"


async def run_case(seed: int, endpoint: Endpoint, model: SteppedModel) -> None:
    rng = random.Random(seed)
    put_backs.QUIET_S = rng.choice([0.0, 600.0])
    with tempfile.TemporaryDirectory(prefix="review-") as name:
        root = make_repo(Path(name), {file: join_lines(code(rng, 12)) for file in FILES})
        committed = git(root, "ls-files", "-s")
        session = await PairingSession.open(
            root, settings=Settings(), endpoint=endpoint, watch=False
        )
        folder = Folder(session, root, rng, endpoint, model)
        done: list[str] = []
        try:
            await session.review.switch_on(since_commit=True)
            steps = [*[folder.write] * 4, *[folder.decide] * 6, *[folder.travel] * 2, folder.save]
            steps += [folder.instruct, folder.put_back, folder.pause, folder.kill]
            for _ in range(rng.randint(2, 24)):
                step = rng.choice(steps)
                done.append(step.__name__)
                await step()
            done.append("end")
            await folder.notice()
            await put_all_back(folder)
        except BaseException as error:
            error.add_note(f"seed {seed}; {done}; {folder.session.status.notices}")
            raise
        finally:
            await folder.session.close()
        assert git(root, "ls-files", "-s") == committed


async def put_all_back(folder: Folder) -> None:
    """Whatever has happened, every hunk can be put back; then the reviewed text is on disk."""
    await folder.put_back()
    session = folder.session
    for hunk in session.hunks.undecided():
        for _ in range(2):  # It may not parse afterwards: asked again, it is done.
            if hunk.state is HunkState.SETTLED:
                await session.decisions.reject(hunk.id)
                await folder.put_back()
    assert not session.hunks.undecided(), "every hunk can be put back"
    gone = (HunkState.REJECTED, HunkState.SUPERSEDED)
    if not folder.instructed and all(hunk.state in gone for hunk in session.hunks):
        assert git(folder.root, "diff") == "", "nothing was kept"
        left = folder.root / NEW
        if left.exists() and not left.read_bytes():
            left.unlink()  # an empty new file has no lines to put back
        assert git(folder.root, "status", "--porcelain") == ""


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the limit that a case changes."""
    monkeypatch.setattr(put_backs, "QUIET_S", put_backs.QUIET_S)


@pytest.mark.fuzz
@pytest.mark.parametrize("block", range(4))
async def test_nothing_is_lost_in_any_order(
    block: int, endpoint: Endpoint, model: SteppedModel
) -> None:
    count = 25 if thorough() else 2
    for seed in range(block * count, (block + 1) * count):
        await run_case(seed, endpoint, model)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("block", range(BLOCKS))
async def test_nothing_is_lost_in_ten_thousand_orders(
    block: int, endpoint: Endpoint, model: SteppedModel
) -> None:
    first = int(os.environ.get("MIDSTREAM_FUZZ_SEED", "0"))
    cases = int(os.environ.get("MIDSTREAM_FUZZ_CASES", "10000"))
    for seed in range(first + block, first + cases, BLOCKS):
        await run_case(seed, endpoint, model)
