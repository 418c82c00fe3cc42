"""What was accepted goes into git, over any number of decisions about the same lines."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from midstream.edits.hunk_store import HunkStore
from midstream.edits.hunks import Hunk, HunkState
from midstream.pairing.files.staged import Standing
from midstream.pairing.leaving import summary
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace import staging
from midstream.workspace.errors import GitError
from midstream.workspace.journal import Journal
from tests.helpers.pairing import git, make_repo
from tests.helpers.property import examples
from tests.helpers.waiting import until

TEXT = "x = 1\n\n\n\n\n\n\n\ny = 1\n"
pytestmark = pytest.mark.usefixtures("quiet_at_once")
COMMITTED = {"run.py": TEXT}


async def _opened(
    root: Path, endpoint: Endpoint, *, review: bool, resume: Journal | None = None
) -> PairingSession:
    session = await PairingSession.open(
        root, settings=Settings(), endpoint=endpoint, watch=False, resume=resume
    )
    if review:
        await session.review.switch_on(since_commit=True)
    return session


async def _proposed(session: PairingSession, line: int, new: str, lines: int = 1) -> int:
    """A new hunk: written by another program in a review, streamed by a model otherwise."""
    if session.files.follower.reviewing:
        place = session.root / "run.py"
        text = place.read_text().splitlines(keepends=True)
        text[line : line + lines] = [new] if new else []
        place.write_text("".join(text))
        await session.review.changed({"run.py"})
    else:
        proposal = await session.files.open_text("run.py")
        proposal.begin(line, line + lines)
        proposal.feed(new)
        proposal.finish()
    (hunk,) = session.hunks.undecided()
    return hunk.id


def _index(root: Path) -> str:
    return git(root, "show", ":run.py")


@pytest.mark.parametrize("between", ["nothing", "stage", "commit"])
@pytest.mark.parametrize("review", [True, False])
async def test_the_same_line_is_accepted_twice(
    root: Path, endpoint: Endpoint, review: bool, between: str
) -> None:
    session = await _opened(root, endpoint, review=review)
    async with session:
        await session.decisions.accept(await _proposed(session, 0, "x = 2\n"))
        if between != "nothing":
            await session.commit.stage("run.py")
        if between == "commit":
            await session.commit.commit("Two")
            await session.review.changed({"run.py"})
        before = _index(root)
        await session.decisions.accept(await _proposed(session, 0, "x = 3\n"))
        (change,) = (await session.commit.look()).files
        assert change.state == ("partly" if between == "stage" else "unstaged"), change.trouble
        await session.commit.stage("run.py")
        assert _index(root) == TEXT.replace("x = 1", "x = 3")
        assert git(root, "diff") == ""
        await session.commit.unstage("run.py")
        assert _index(root) == (before if between == "commit" else TEXT)


async def test_a_kept_change_still_counts_when_the_next_one_is_put_back(
    root: Path, endpoint: Endpoint
) -> None:
    async with await _opened(root, endpoint, review=True) as session:
        await session.decisions.accept(await _proposed(session, 0, "x = 2\nz = 2\n"))
        await session.decisions.reject(await _proposed(session, 0, "x = 3\n", lines=2))
        assert (root / "run.py").read_text().startswith("x = 2\nz = 2\n")
        await session.commit.stage("run.py")
        assert git(root, "diff") == ""


async def test_a_line_of_a_kept_hunk_that_is_changed_waits_alone(
    root: Path, endpoint: Endpoint
) -> None:
    """The rest of the kept hunk is staged, and the whole hunk once the line is kept as well."""
    async with await _opened(root, endpoint, review=True) as session:
        await session.decisions.accept(await _proposed(session, 1, "a\nb\nc\n"))
        hunk = await _proposed(session, 2, "B\n")
        await session.commit.stage("run.py")
        assert _index(root).startswith("x = 1\na\nb\nc\n")
        await session.decisions.accept(hunk)
        await session.commit.stage("run.py")
        assert _index(root) == (root / "run.py").read_text()


async def test_a_line_that_the_user_changed_stays_out(root: Path, endpoint: Endpoint) -> None:
    """Also beside lines that were accepted in two rounds, with a commit in between."""
    async with await _opened(root, endpoint, review=False) as session:
        await session.decisions.accept(await _proposed(session, 0, "x = 2\n"))
        await session.commit.stage("run.py")
        await session.commit.commit("Two")
        place = root / "run.py"
        place.write_text(place.read_text().replace("y = 1", "own = 1"))
        await session.files.changed(["run.py"])
        await session.decisions.accept(await _proposed(session, 0, "x = 3\n"))
        await session.commit.stage("run.py")
        assert _index(root) == TEXT.replace("x = 1", "x = 3")
        place.write_text(place.read_text().replace("x = 3\n", "x = 3\nown = 2\n"))
        await session.files.changed(["run.py"])
        await session.decisions.accept(await _proposed(session, 0, "x = 4\n"))
        (change,) = (await session.commit.look()).files
        if change.state != "conflict":
            await session.commit.stage("run.py")
        assert "own" not in _index(root)


async def test_what_was_kept_before_is_known_after_a_resume(
    root: Path, endpoint: Endpoint, state: Path
) -> None:
    async with await _opened(root, endpoint, review=True) as session:
        await session.decisions.accept(await _proposed(session, 0, "x = 2\n"))
        await session.decisions.accept(await _proposed(session, 0, "x = 3\n"))
        waits = await _proposed(session, 8, "y = 2\n")
    journal = Journal.latest(state, root)
    async with await _opened(root, endpoint, review=False, resume=journal) as session:
        assert session.hunks.get(waits).state is HunkState.SETTLED
        await session.commit.stage("run.py")
        assert _index(root) == TEXT.replace("x = 1", "x = 3")


@pytest.mark.parametrize("review", [True, False])
@pytest.mark.parametrize("commit", [True, False])
async def test_what_is_undone_after_it_was_staged_is_a_change_as_well(
    root: Path, endpoint: Endpoint, review: bool, commit: bool
) -> None:
    async with await _opened(root, endpoint, review=review) as session:
        await session.decisions.accept(await _proposed(session, 0, "x = 2\n"))
        await session.commit.stage("run.py")
        if commit:
            await session.commit.commit("Two")
        await session.decisions.undo()
        await session.decisions.reject_all()
        assert (root / "run.py").read_text() == TEXT
        (change,) = (await session.commit.look()).files
        assert change.state == ("unstaged" if commit else "partly")
        await session.commit.stage("run.py")
        assert _index(root) == TEXT


async def test_changed_line_ends_stay_out_until_nothing_waits(
    root: Path, endpoint: Endpoint
) -> None:
    async with await _opened(root, endpoint, review=True) as session:
        place = root / "run.py"
        place.write_bytes(TEXT.replace("= 1", "= 2").replace("\n", "\r\n").encode())
        await session.review.changed({"run.py"})
        first, second = session.hunks.undecided()
        await session.decisions.accept(first.id)
        await session.commit.stage("run.py")
        assert git(root, "diff", "--cached", "--numstat") == "1\t1\trun.py\n"
        await session.decisions.accept(second.id)
        await session.commit.stage("run.py")
        assert git(root, "diff") == ""


@pytest.mark.parametrize("decided", ["waits", "put back"])
async def test_what_another_program_stages_is_committed_once_it_is_kept(
    root: Path, endpoint: Endpoint, decided: str
) -> None:
    async with await _opened(root, endpoint, review=True) as session:
        (root / "new.py").write_text("n = 1\n")
        await session.review.changed({"new.py"})
        await session.decisions.accept_rest("new.py")
        hunk = await _proposed(session, 0, "x = 2\n")
        git(root, "add", "run.py")
        if decided == "put back":
            await session.decisions.reject(hunk)
        await session.commit.stage("new.py")
        with pytest.raises(GitError, match=r"git restore --staged run\.py"):
            await session.commit.commit("New")
        if decided == "waits":
            await session.decisions.accept(hunk)
        else:
            git(root, "restore", "--staged", "run.py")
        await session.commit.commit("New")
        changed = git(root, "show", "--name-only", "--format=", "HEAD").split()
        assert changed == (["new.py", "run.py"] if decided == "waits" else ["new.py"])


async def test_what_is_staged_and_on_disk_nowhere_is_not_committed(
    root: Path, endpoint: Endpoint
) -> None:
    async with await _opened(root, endpoint, review=True) as session:
        (root / "new.py").write_text("n = 1\n")
        await session.review.changed({"new.py"})
        await session.decisions.accept_rest("new.py")
        (root / "run.py").write_text(TEXT.replace("y = 1", "y = 'theirs'"))
        git(root, "add", "run.py")
        (root / "run.py").write_text(TEXT)
        (other,) = (await session.commit.look()).others
        assert (other.path, other.standing) == ("run.py", Standing.UNKEPT)
        with pytest.raises(GitError, match="were not kept"):
            await session.commit.commit("New")
        await session.commit.forget_staged("run.py")
        await session.commit.stage("new.py")
        await session.commit.commit("New")
        assert git(root, "show", "--name-only", "--format=", "HEAD").split() == ["new.py"]


async def test_the_kept_part_of_a_file_may_be_staged_by_others(
    root: Path, endpoint: Endpoint
) -> None:
    async with await _opened(root, endpoint, review=True) as session:
        await session.decisions.accept(await _proposed(session, 0, "x = 2\n"))
        git(root, "add", "run.py")
        await _proposed(session, 8, "y = 'waits'\n")
        (file,) = (await session.commit.look()).files
        assert not file.unkept
        git(root, "add", "run.py")
        (file,) = (await session.commit.look()).files
        assert file.unkept
        await session.commit.forget_staged("run.py")
        await session.commit.stage("run.py")
        await session.commit.commit("Kept")
        assert git(root, "show", "HEAD:run.py") == TEXT.replace("x = 1", "x = 2")


async def test_a_permission_that_others_staged_is_not_committed_once_it_is_put_back(
    root: Path, endpoint: Endpoint
) -> None:
    async with await _opened(root, endpoint, review=True) as session:
        (root / "run.py").chmod(0o755)
        git(root, "add", "run.py")
        await session.review.changed({"run.py"})
        (hunk,) = session.hunks.undecided()
        await session.decisions.reject(hunk.id)
        with pytest.raises(GitError, match="were not kept"):
            await session.commit.commit("Run it")


async def test_a_file_that_others_moved_with_git_and_then_edited_is_committed_as_kept(
    root: Path, endpoint: Endpoint
) -> None:
    async with await _opened(root, endpoint, review=True) as session:
        git(root, "mv", "run.py", "go.py")
        (root / "go.py").write_text(TEXT + "z = 1\n")
        await session.review.changed({"run.py", "go.py"})
        for hunk in session.hunks.undecided():
            await session.decisions.accept(hunk.id)
        await session.commit.stage(*(await session.commit.look()).stageable)
        await session.commit.commit("Move")
        assert git(root, "show", "HEAD:go.py") == TEXT + "z = 1\n"
        assert git(root, "status", "--porcelain") == ""


def pre_commit(root: Path, commands: str) -> None:
    hook = root / ".git/hooks/pre-commit"
    hook.write_text(f"#!/bin/sh\n{commands}\n")
    hook.chmod(0o755)


async def test_it_is_said_what_a_hook_added_to_a_commit(root: Path, endpoint: Endpoint) -> None:
    pre_commit(root, "git add run.py")
    async with await _opened(root, endpoint, review=True) as session:
        await session.decisions.accept(await _proposed(session, 0, "x = 2\n"))
        await session.commit.stage("run.py")
        await session.commit.commit("Kept")
        assert not session.commit.from_hooks
        await session.decisions.accept(await _proposed(session, 0, "x = 3\n"))
        await _proposed(session, 8, "y = 'waits'\n")
        await session.commit.stage("run.py")
        await session.commit.commit("And what waits")
        assert "A hook changed what is committed of run.py, so" in session.commit.from_hooks


async def test_few_of_the_files_that_a_hook_added_are_named(root: Path, endpoint: Endpoint) -> None:
    pre_commit(root, "touch new1 new2 new3 new4 new5\ngit add -A")
    async with await _opened(root, endpoint, review=True) as session:
        await session.decisions.accept(await _proposed(session, 0, "x = 2\n"))
        await session.commit.stage("run.py")
        await session.commit.commit("Kept")
        assert "of new1, new2, new3 and 2 more, so" in session.commit.from_hooks


async def test_what_was_staged_before_a_review_is_committed(root: Path, endpoint: Endpoint) -> None:
    (root / "run.py").write_text(TEXT.replace("y = 1", "y = 'own'"))
    git(root, "add", "run.py")
    async with await _opened(root, endpoint, review=True) as session:
        await session.decisions.reject(await _proposed(session, 0, "x = 2\n"))
        await session.commit.commit("Own")
        assert git(root, "show", "HEAD:run.py") == TEXT.replace("y = 1", "y = 'own'")


@pytest.mark.parametrize("also_kept", [False, True])
async def test_what_the_user_took_out_of_the_file_leaves_the_index_when_staged_again(
    root: Path, endpoint: Endpoint, also_kept: bool
) -> None:
    """A hunk that a save has reverted waits again, so the index must not have its lines."""
    async with await _opened(root, endpoint, review=False) as session:
        if also_kept:
            await session.decisions.accept(await _proposed(session, 0, "x = 2\n"))
        await session.decisions.accept(await _proposed(session, 8, "y = 2\n"))
        await session.commit.stage("run.py")
        place = root / "run.py"
        place.write_text(place.read_text().replace("y = 2", "y = 1"))
        await session.files.changed(["run.py"])
        assert [hunk.new for hunk in session.hunks.undecided()] == [("y = 2",)]
        await session.commit.stage("run.py")
        assert _index(root) == place.read_text()


@pytest.mark.parametrize("mark", ["assume-unchanged", "skip-worktree"])
async def test_own_lines_of_a_file_that_git_passes_over_stay_own(
    root: Path, endpoint: Endpoint, mark: str
) -> None:
    git(root, "update-index", f"--{mark}", "run.py")
    own = TEXT.replace("x = 1", "x = 'own'")
    (root / "run.py").write_text(own)
    async with await _opened(root, endpoint, review=True) as session:
        assert not session.hunks.waiting()
        await session.decisions.reject(await _proposed(session, 8, "y = 2\n"))
        assert (root / "run.py").read_text() == own
        await session.decisions.accept(await _proposed(session, 8, "y = 3\n"))
        await session.commit.stage("run.py")
        assert _index(root) == TEXT.replace("y = 1", "y = 3")
        assert (root / "run.py").read_text() == own.replace("y = 1", "y = 3")


@pytest.mark.parametrize("undone", [False, True])
async def test_a_last_newline_that_was_kept_counts_while_later_lines_wait(
    root: Path, endpoint: Endpoint, undone: bool
) -> None:
    async with await _opened(root, endpoint, review=True) as session:
        place = root / "run.py"
        await session.decisions.accept(await _proposed(session, 0, "x = 2\n"))
        place.write_text(TEXT.replace("x = 1", "x = 3").removesuffix("\n"))
        await session.review.changed({"run.py"})
        (kept,) = session.hunks.undecided()
        await session.decisions.accept(kept.id)
        await _proposed(session, 8, "y = 2\n")
        if undone:
            await session.decisions.undo()
        await session.commit.stage("run.py")
        ours = TEXT.replace("x = 1", "x = 2" if undone else "x = 3")
        assert _index(root) == (ours if undone else ours.removesuffix("\n"))


@pytest.mark.system
@pytest.mark.fuzz
@given(seed=st.integers(0, 2**32))
@example(seed=78848663)
@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("review", [True, False])
async def test_only_what_was_accepted_is_staged(
    review: bool, seed: int, tmp_path_factory: pytest.TempPathFactory, endpoint: Endpoint
) -> None:
    """In any order of changes, decisions, saves, stagings and commits.

    Lines are told apart by their numbers.  In a review everything that is on disk is decided, so
    nothing can be in the way of staging it; lines that the user saves beside a model can be.
    """
    rng = random.Random(seed)
    start = [f"line {n}\n" for n in range(rng.randint(0, 12))]
    root = make_repo(tmp_path_factory.mktemp("commit"), {"run.py": "".join(start)})
    place = root / "run.py"
    numbers = iter(range(100, 1000))
    saved = False  # whether the user has changed the file
    done: list[str] = []

    def changed(lines: list[str], kind: str) -> tuple[int, int, list[str]]:
        at = rng.randint(0, len(lines))
        stop = min(len(lines), at + rng.choice([0, 0, 1, 1, 2, 4]))
        return at, stop, [f"{kind} {next(numbers)}\n" for _ in range(rng.choice([0, 1, 1, 2, 3]))]

    async with await _opened(root, endpoint, review=review) as session:

        async def write() -> None:
            """Another program writes; beside a model that is the user."""
            lines = place.read_text().splitlines(keepends=True)
            for _ in range(rng.randint(1, 2)):
                at, stop, new = changed(lines, "new" if review else "own")
                lines[at:stop] = new
            place.write_text("".join(lines))
            nonlocal saved
            saved = saved or not review
            changes = session.review.changed if review else session.files.changed
            await changes({"run.py"})

        async def answer() -> None:
            proposal = await session.files.open_text("run.py")
            at, stop, new = changed([*proposal.base.lines], "new")
            async with session.files.lock:
                proposal.begin(*proposal.cover(at, stop))
                proposal.feed("".join(new))
                proposal.finish()

        async def decide() -> None:
            waits = session.hunks.undecided()
            for hunk in rng.sample(waits, min(len(waits), 2)):
                accept = rng.random() < 0.7
                await (session.decisions.accept if accept else session.decisions.reject)(hunk.id)

        async def travel() -> None:
            await rng.choice([session.decisions.undo, session.decisions.redo])()

        async def stage() -> None:
            before = _index(root)
            try:
                await session.commit.stage("run.py")
            except GitError:
                assert saved, "nothing but lines of the user is in the way"
                assert _index(root) == before
                return
            check()

        async def unstage() -> None:
            if any(f.state == "staged" for f in (await session.commit.look()).files):
                await session.commit.unstage("run.py")
                assert _index(root) == git(root, "show", "HEAD:run.py")

        async def commit() -> None:
            await stage()
            if git(root, "diff", "--cached", "--name-only"):
                await session.commit.commit("More")
                await session.review.changed({"run.py"})

        def check() -> None:
            staged = set(_index(root).splitlines(keepends=True))
            assert not [line for line in staged if line.startswith("own")]
            for hunk in session.hunks.undecided():
                waits = {f"{line}\n" for line in hunk.new}
                there = set(git(root, "show", "HEAD:run.py").splitlines(keepends=True))
                assert not waits & staged - there, "what waits stays out"
            if not (saved or session.hunks.undecided()):
                assert _index(root) == place.read_text(), "all that is kept goes in"

        turn = write if review else answer
        steps = [write, turn, turn, decide, decide, decide, travel, stage, unstage, commit]
        try:
            await session.files.open("run.py")
            for _ in range(rng.randint(3, 20)):
                step = rng.choice(steps)
                done.append(step.__name__)
                await step()
            for hunk in session.hunks.undecided():
                await rng.choice([session.decisions.accept, session.decisions.reject])(hunk.id)
            await stage()
        except BaseException as error:
            notices = [notice.text for notice in session.status.notices]
            error.add_note(f"seed {seed}: {done}; {notices}")
            raise


async def test_a_commit_waits_for_a_review_that_starts(root: Path, endpoint: Endpoint) -> None:
    """Hunks that an earlier session kept may wait again once the review has started."""
    async with await _opened(root, endpoint, review=True) as session:
        await session.decisions.accept(await _proposed(session, 0, "x = 2\n"))
    async with await PairingSession.open(
        root, settings=Settings(), endpoint=endpoint, watch=False, review=True
    ) as session:
        changes = await session.commit.look()
        assert not changes.stageable
        assert [hunk.path for hunk in session.hunks.undecided()] == ["run.py"]


async def test_the_owner_of_staged_changes_is_known_while_an_agent_writes(
    root: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git, the disk and the comparison run in threads; the loop alone reads its own state."""
    readers: set[int] = set()
    async with await _opened(root, endpoint, review=True) as session:
        await _proposed(session, 0, "x = 2\n")
        git(root, "add", "run.py")
        iterate = HunkStore.__iter__

        def noted(store: HunkStore) -> Iterator[Hunk]:
            readers.add(threading.get_ident())
            return iterate(store)

        monkeypatch.setattr(HunkStore, "__iter__", noted)
        (other,) = (await session.commit.look()).others
        assert other.standing is Standing.UNKEPT
    assert readers == {threading.get_ident()}


@pytest.mark.parametrize("open_file", [True, False])
async def test_what_cannot_be_compared_is_committed_only_where_nothing_is_reviewed(
    root: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, open_file: bool
) -> None:
    def refuse(*_: object, **__: object) -> bool:
        raise GitError("git has no room left")

    async with await _opened(root, endpoint, review=True) as session:
        if open_file:
            await session.decisions.accept(await _proposed(session, 0, "x = 2\n"))
        else:
            (root / ".gitignore").write_text("*.log\n")
            (root / "own.log").write_text("mine\n")
        git(root, "add", "--force", "run.py" if open_file else "own.log")
        monkeypatch.setattr(staging, "is_part", refuse)
        if open_file:
            with pytest.raises(GitError, match=r"run\.py cannot be compared .*: git has no room"):
                await session.commit.commit("New")
        else:
            await session.commit.commit("New")
            assert git(root, "show", "HEAD:own.log") == "mine\n"


@pytest.fixture
def begun(root: Path) -> Path:
    """A file made by a hook that then does not end."""
    begun = root.parent / "begun"
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch '{begun}'\nsleep 601\n")
    hook.chmod(0o755)
    return begun


@pytest.mark.parametrize("how", ["stopped", "closed"])
async def test_a_commit_that_is_stopped_leaves_nothing_half_made(
    root: Path, endpoint: Endpoint, begun: Path, how: str
) -> None:
    async with await _opened(root, endpoint, review=True) as session:
        await session.decisions.accept(await _proposed(session, 0, "x = 2\n"))
        await session.commit.stage("run.py")
        head, index = git(root, "rev-parse", "HEAD"), _index(root)
        committing = asyncio.create_task(session.commit.commit("New"))
        await asyncio.to_thread(until, begun.exists)
        assert session.commit.committing
        if how == "stopped":
            session.commit.stop_git()
        else:
            committing.cancel()  # as a page that closes
            await session.close()
            assert session.commit.cut_off
            assert any("stopped before it was made" in line for line in summary(session, ""))
        with pytest.raises(GitError if how == "stopped" else asyncio.CancelledError):
            await committing
        assert not session.commit.committing
        assert (git(root, "rev-parse", "HEAD"), _index(root)) == (head, index)
        assert not list((root / ".git").glob("*.lock"))
        if how == "stopped":
            (root / ".git" / "hooks" / "pre-commit").unlink()
            await session.commit.commit("New")
            assert git(root, "show", "HEAD:run.py") == TEXT.replace("x = 1", "x = 2")


async def test_a_commit_goes_on_when_its_page_closes(
    root: Path, endpoint: Endpoint, begun: Path
) -> None:
    hook = root / ".git" / "hooks" / "pre-commit"
    endless = hook.read_text()
    hook.write_text(endless.replace("sleep 601", f"while [ -e '{begun}' ]; do :; done"))
    async with await _opened(root, endpoint, review=True) as session:
        await session.decisions.accept(await _proposed(session, 0, "x = 2\n"))
        await session.commit.stage("run.py")
        committing = asyncio.create_task(session.commit.commit("New"))
        await asyncio.to_thread(until, begun.exists)
        committing.cancel()
        await asyncio.wait({committing})
        begun.unlink()  # noqa: ASYNC240
        assert await session.commit.finished()
        (commit,) = session.commit.made
        assert git(root, "rev-parse", "HEAD").strip() == commit
        assert session.status.notices[-1].text == f"Committed {commit[:8]}."


async def test_one_commit_is_made_at_a_time(root: Path, endpoint: Endpoint, begun: Path) -> None:
    async with await _opened(root, endpoint, review=True) as session:
        await session.decisions.accept(await _proposed(session, 0, "x = 2\n"))
        await session.commit.stage("run.py")
        committing = asyncio.create_task(session.commit.commit("New"))
        await asyncio.sleep(0)
        with pytest.raises(GitError, match="being made already"):  # still checking the first
            await session.commit.commit("Second")
        await asyncio.to_thread(until, begun.exists)
        committing.cancel()
        await asyncio.wait({committing})
        with pytest.raises(GitError, match="being made already"):
            await session.commit.commit("Second")
        assert session.commit.committing
        session.commit.stop_git()
        assert not await session.commit.finished()


async def test_no_commit_begins_once_the_session_closes(
    root: Path, endpoint: Endpoint, begun: Path
) -> None:
    async with await _opened(root, endpoint, review=True) as session:
        await session.decisions.accept(await _proposed(session, 0, "x = 2\n"))
        await session.commit.stage("run.py")
        committing = asyncio.create_task(session.commit.commit("New"))
        await asyncio.sleep(0)
        await session.commit.close()
        with pytest.raises(GitError, match="was stopped"):
            await committing
        with pytest.raises(GitError, match="session has ended"):
            await session.commit.commit("New")
        assert not begun.exists()  # noqa: ASYNC240
