"""Reviews of ranges of commits and of what is staged: walked like any other, and read-only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from midstream.agents.catalogue import KnownAgent
from midstream.edits.hunks import HunkState
from midstream.edits.kinds import ChangeKind
from midstream.pairing.files.attention import Reading, Sighting
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.tui.review.about import who_and_why
from midstream.workspace.errors import SnapshotError
from midstream.workspace.paths import state_dir
from midstream.workspace.snapshot import STAGED, Snapshot, find_range
from tests.helpers.pairing import Witness, git, make_repo

OLD = {
    "a.py": "def total(x):\n    return x\n",
    **{f"use{n}.py": f"import a\n\nprint({n}, a.total({n}) > 0)\n" for n in range(3)},
    "gone.txt": "".join(f"line {n}\n" for n in range(9)),
}
NEW = {path: text.replace("total", "amount") for path, text in OLD.items()}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """``main`` and ``topic``, which carries a rename through and moves a file."""
    root = make_repo(tmp_path / "work", OLD)
    git(root, "checkout", "-q", "-b", "topic")
    _commit(root, NEW, "gone.txt", "there.txt")
    git(root, "checkout", "-q", "-")
    return root


def _commit(root: Path, files: dict[str, str], *moved: str) -> None:
    for path, text in files.items():
        (root / path).write_text(text)
    if moved:
        (root / moved[0]).rename(root / moved[1])
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "x")


@asynccontextmanager
async def reviewing(
    repo: Path, text: str, endpoint: Endpoint, *, resume: bool = False
) -> AsyncIterator[Witness]:
    """A review of a range; returns when its hunks and its walk are known."""
    from midstream.workspace.journal import Journal

    with Snapshot(repo, find_range(repo, text)) as snapshot:
        journal = Journal.latest(state_dir(), snapshot.root) if resume else None
        assert (journal is not None) == resume
        async with await PairingSession.open(
            snapshot.root,
            settings=Settings(),
            endpoint=endpoint,
            review=True,
            snapshot=snapshot,
            resume=journal,
        ) as session:
            witness = Witness(session)
            await session.review.begun()
            await witness.until(lambda: not session.walk.busy)
            yield witness


def _disk(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_a_branch_is_walked_and_kept(repo: Path, endpoint: Endpoint) -> None:
    before = _disk(repo)
    async with reviewing(repo, "main..topic", endpoint) as witness:
        session = witness.session
        (group,) = (g for g in session.walk.walk.groups if g.kind is ChangeKind.RENAME)
        assert len(group.hunks) == 4
        assert await session.decisions.accept_all(group.hunks) == 4
        (gone, made) = session.hunks.waiting()
        assert session.files.moves.of_id(gone.id) is not None
        assert await session.decisions.accept(made.id)
        assert not session.hunks.waiting()
        await session.decisions.undo()
        assert {hunk.state for hunk in (gone, made)} == {HunkState.SETTLED}
    assert _disk(repo) == before


async def test_nothing_is_put_back_written_or_committed(repo: Path, endpoint: Endpoint) -> None:
    before = _disk(repo)
    async with reviewing(repo, "main..topic", endpoint) as witness:
        session = witness.session
        files = _disk(session.root)
        hunk = session.hunks.waiting()[0]
        refused = "A review of main..topic is read-only: keeping a hunk marks it as read; nothing"
        assert not await session.decisions.reject(hunk.id)
        assert witness.notice.startswith(refused)
        assert not await session.decisions.edit(hunk.id, ["x"])
        assert not await session.decisions.decide_lines(hunk.id, 0, 1, accept=False)
        assert await session.decisions.reject_all() == 0
        assert await session.decisions.accept(hunk.id)
        assert not await session.decisions.reject(hunk.id)
        assert hunk.state is HunkState.ACCEPTED
        for refusing in (
            session.commit.look(),
            session.commit.stage("a.py"),
            session.turns.instruct(Question("rename it", "a.py", 0)),
            session.turns.run_in_background(Question("rename it", "a.py", 0)),
            session.background.elsewhere(hunk.id),
            session.agent.begin(KnownAgent("", "Agent", ("no-such-program",))),
            session.review.switch_on(since_commit=False),
        ):
            with pytest.raises(SnapshotError, match=refused):
                await refusing
        with pytest.raises(SnapshotError):
            session.workspace.write("a.py", b"", expected=session.workspace.digest("a.py"))
        with pytest.raises(SnapshotError):
            session.workspace.set_executable("a.py", True)
        assert session.flagged_on_disk() == []
        assert not session.agent.on
        assert _disk(session.root) == files
    assert _disk(repo) == before


@pytest.mark.parametrize(
    ("text", "label"), [("main..topic", "main..topic"), (STAGED, "staged changes")]
)
async def test_a_hunk_is_from_the_range(
    repo: Path, endpoint: Endpoint, text: str, label: str
) -> None:
    (repo / "use0.py").write_text(NEW["use0.py"])
    git(repo, "add", "use0.py")
    async with reviewing(repo, text, endpoint) as witness:
        (hunk,) = witness.session.hunks.undecided("use0.py")
        assert list(who_and_why(hunk, witness.session)) == [f"From {label}."]


async def test_what_is_staged(repo: Path, endpoint: Endpoint) -> None:
    (repo / "a.py").write_text("staged\n")
    git(repo, "add", "a.py")
    (repo / "a.py").write_text("on disk\n")
    async with reviewing(repo, STAGED, endpoint) as witness:
        (hunk,) = witness.session.hunks.waiting()
        assert hunk.new == ("staged",)


async def test_resumed_after_new_commits_shows_only_what_is_new(
    repo: Path, endpoint: Endpoint
) -> None:
    async with reviewing(repo, "main..topic", endpoint) as witness:
        waiting = witness.session.hunks.waiting()
        kept = [hunk.id for hunk in waiting if hunk.path in ("a.py", "use0.py")]
        assert await witness.session.decisions.accept_all(kept) == 2
    git(repo, "checkout", "-q", "topic")
    _commit(repo, {"a.py": NEW["a.py"] + "\n\nMORE = 1\n"})
    git(repo, "checkout", "-q", "-")
    async with reviewing(repo, "main..topic", endpoint, resume=True) as witness:
        hunks = witness.session.hunks
        assert [hunk.new for hunk in hunks.undecided("a.py")] == [("", "", "MORE = 1")]
        assert not hunks.undecided("use0.py")
        assert len(hunks.waiting()) == 5


async def test_a_range_without_changes_says_so(repo: Path, endpoint: Endpoint) -> None:
    async with reviewing(repo, "main..main", endpoint) as witness:
        assert witness.notice == "main..main: no file differs that can be reviewed here."


async def test_a_range_that_is_read_says_so(repo: Path, endpoint: Endpoint) -> None:
    async with reviewing(repo, "main..topic", endpoint) as witness:
        hunks = [hunk.id for hunk in witness.session.hunks.waiting()]
        assert await witness.session.decisions.accept_all(hunks) == len(hunks)
    async with reviewing(repo, "main..topic", endpoint, resume=True) as witness:
        assert witness.notice == "main..topic: everything is read."


async def test_more_files_than_are_opened_by_themselves(repo: Path, endpoint: Endpoint) -> None:
    _commit(repo, {f"many{n}.txt": f"{n}\n" for n in range(210)})
    async with reviewing(repo, "HEAD^!", endpoint) as witness:
        assert len(witness.session.hunks.waiting()) == 210


async def test_reading_goes_on_where_it_stopped(repo: Path, endpoint: Endpoint) -> None:
    async with reviewing(repo, "main..topic", endpoint) as witness:
        session = witness.session
        session.walk.on = True
        first, second, third, *_ = (session.hunks.get(i) for i in session.walk.order)
        for hunk in (first, second):
            session.walk.visit(hunk)
        for _ in range(3):
            session.place.look([Sighting(first)], 1.0, first)
        session.place.look([Sighting(second)], 0.1, second)
        assert await session.decisions.accept_all([first.id, second.id]) == 2
        said = session.attention.summary(session.hunks)
        assert said.startswith("1 of 2 hunks")
        session.place.look([Sighting(third, 0.0, 0.5)], 0.3, third)
    async with reviewing(repo, "main..topic", endpoint, resume=True) as witness:
        session, attention = witness.session, witness.session.attention
        assert session.place.hunk is session.hunks.get(third.id)
        assert session.walk.on
        assert session.walk.order[:2] == [first.id, second.id]
        assert attention.summary(session.hunks) == said
        assert attention.reading(session.place.hunk) is Reading.UNSEEN
        session.place.look([Sighting(session.place.hunk, 0.5, 1.0)], 0.3, session.place.hunk)
        assert attention.reading(session.place.hunk) is Reading.GLIMPSED


async def test_what_was_read_counts_for_the_lines_that_were_read(
    repo: Path, endpoint: Endpoint
) -> None:
    async with reviewing(repo, "main..topic", endpoint) as witness:
        read = [hunk for hunk in witness.session.hunks.waiting() if hunk.path.startswith("use")]
        for _ in range(2):
            witness.session.place.look(map(Sighting, read), 1.0, read[0])
        ids = [hunk.id for hunk in read]
    git(repo, "checkout", "-q", "topic")
    _commit(repo, {"use0.py": NEW["use0.py"].replace("> 0", "< 0")})
    git(repo, "checkout", "-q", "-")
    async with reviewing(repo, "main..topic", endpoint, resume=True) as witness:
        session = witness.session
        assert session.place.hunk is None
        (new,) = session.hunks.undecided("use0.py")
        assert session.attention.reading(new) is Reading.UNSEEN
        for hunk_id in ids[1:]:
            assert session.attention.reading(session.hunks.get(hunk_id)) is Reading.READ
