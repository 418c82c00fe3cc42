"""The walk through a review: groups that are decided at once, and the order to read in."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path

import pytest

from midstream.edits.hunks import HoldReason, HunkState
from midstream.edits.kinds import ChangedFile, ChangeKind, HunkFacts
from midstream.pairing.files import put_backs
from midstream.pairing.files.attention import Sighting
from midstream.pairing.review import walk as walk_of_session
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.pairing import Witness, make_repo

FILES = {
    "a.py": "def total(x):\n    return x\n",
    **{f"use{n}.py": f"import a\n\nprint({n}, a.total({n}) > 0)\n" for n in range(4)},
    "check.py": "def check(user):\n    if not user:\n        raise ValueError\n    return user\n",
}
RENAMED = {path: text.replace("total", "amount") for path, text in FILES.items()}


class Walker(Witness):
    """A session that reviews a folder."""

    async def write(self, files: dict[str, str]) -> None:
        """Another program writes files; returns when the walk knows them."""
        for path, text in files.items():
            (self.session.root / path).write_text(text)
        await self.session.review.changed(set(files))
        await self.known()

    async def known(self) -> None:
        await self.until(lambda: not self.session.walk.busy)

    def read(self, hunk_id: int) -> None:
        """The user looks at a hunk for long enough."""
        for _ in range(3):
            self.session.attention.look([Sighting(self.session.hunks.get(hunk_id))], 1.0)


@pytest.fixture
async def walker(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Walker]:
    monkeypatch.setattr(put_backs, "QUIET_S", 0.0)
    root = make_repo(tmp_path / "work", FILES)
    async with await PairingSession.open(
        root, settings=Settings(), endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=True)
        yield Walker(session)


async def test_only_hunks_that_wait_are_told_as_decided_together(walker: Walker) -> None:
    await walker.write(RENAMED)
    session, walk = walker.session, walker.session.walk
    (group,) = walk.walk.groups
    first, *others = [session.hunks.get(hunk_id) for hunk_id in group.hunks]
    count = len(others)
    assert f"decided together with {count} other hunks" in walk.told(first)
    gone = others.pop()
    assert await session.decisions.accept(gone.id)
    assert f"decided together with {count - 1} other hunks" in walk.told(first)
    assert gone.path not in walk.told(first)
    assert "together" not in walk.told(gone)
    for hunk in others:
        assert await session.decisions.accept(hunk.id)
    assert "together" not in walk.told(first)


async def test_a_rename_is_one_decision_after_its_example(walker: Walker) -> None:
    await walker.write(RENAMED)
    session, walk = walker.session, walker.session.walk
    (group,) = walk.walk.groups
    assert group.kind is ChangeKind.RENAME
    assert session.hunks.get(group.hunks[0]).path == "a.py"
    assert not walk.example_read(group)
    walker.read(group.hunks[0])
    assert walk.example_read(group)
    ids, alone = walk.together(group)
    assert not alone
    assert walk.decisions == 1
    assert await session.decisions.accept_all(ids) == 5
    assert walk.decisions == 0
    session.attention.accepted_together(group.key, ids)
    assert session.attention.summary(session.hunks) == (
        "4 hunks accepted unread in 1 group after one of its hunks was read."
    )
    assert session.attention.trailer(session.hunks).endswith(
        "\nAccepted-In-Groups: 4 hunks in 1 group"
    )
    # Each can be put back by itself, and the group by one step.
    await session.decisions.reject(group.hunks[1])
    assert (session.root / session.hunks.get(group.hunks[1]).path).read_text() in FILES.values()
    await session.decisions.undo()
    assert len(await session.decisions.undo()) == 5
    assert len(session.hunks.undecided()) == 5


async def test_putting_a_group_back_is_one_step(walker: Walker) -> None:
    await walker.write(RENAMED)
    session = walker.session
    (group,) = session.walk.walk.groups
    assert await session.decisions.reject_together(group.hunks) == 5
    assert {path: (session.root / path).read_text() for path in FILES} == FILES
    assert len(await session.decisions.undo()) == 5


async def test_an_exception_is_decided_by_itself_and_comes_first(walker: Walker) -> None:
    odd = RENAMED["use2.py"].replace("> 0", ">= 0")
    taken = FILES["check.py"].replace("    if not user:\n        raise ValueError\n", "")
    await walker.write({**RENAMED, "use2.py": odd, "check.py": taken})
    session, walk = walker.session, walker.session.walk
    first, second, *rest = [session.hunks.get(hunk_id) for hunk_id in walk.order]
    assert first.path == "use2.py"
    assert walk.evidence(first)[0].kind is ChangeKind.EXCEPTION
    assert second.path == "check.py"
    assert walk.evidence(second)[0].why == "1 error handler, 1 branch less"
    assert walk.group_of(first) is None
    assert [walk.group_of(hunk) for hunk in rest] == [walk.walk.groups[0]] * 4


async def test_what_is_flagged_is_not_decided_with_its_group(walker: Walker) -> None:
    await walker.write(RENAMED)
    session = walker.session
    (group,) = session.walk.walk.groups
    session.hunks.hold_back(group.hunks[2], HoldReason("rule", "why"))
    ids, alone = session.walk.together(group)
    assert group.hunks[2] not in ids
    assert [hunk.id for hunk, _ in alone] == [group.hunks[2]]
    assert session.walk.order[0] == group.hunks[2]
    await session.decisions.accept_all(group.hunks)
    assert session.hunks.get(group.hunks[2]).state is HunkState.HELD


async def test_what_is_risky_is_not_decided_with_its_group(walker: Walker) -> None:
    runs = {path: f"{text}a.login()\n" for path, text in FILES.items() if "use" in path}
    await walker.write(runs)
    (group,) = walker.session.walk.walk.groups
    ids, alone = walker.session.walk.together(group)
    assert not ids
    assert [why for _, why in alone] == ["is about authentication"] * 4
    hunks = [walker.session.hunks.get(hunk_id) for hunk_id in group.hunks]
    assert [walker.session.walk.alike(hunk) for hunk in hunks] == [0] * 4
    assert walker.session.walk.decisions == 4


async def test_what_has_changed_since_it_was_compared_is_decided_by_itself(walker: Walker) -> None:
    await walker.write(RENAMED)
    session, walk = walker.session, walker.session.walk
    (group,) = walk.walk.groups
    example, changed = (session.hunks.get(hunk_id) for hunk_id in group.hunks[:2])
    assert walk.alike(example) == 4
    session.hunks.edit(changed.id, [f"{changed.new[0]}  # TODO"])
    ids, alone = walk.together(group)
    assert changed.id not in ids
    assert alone == [(changed, "has changed since it was compared")]
    assert (walk.alike(example), walk.alike(changed)) == (3, 0)
    walk.look([changed.path])
    await walker.known()
    assert walk.group_of(changed) is None
    assert walk.alike(example) == 3


async def test_hunks_that_nobody_could_read_are_shown(
    walker: Walker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_answer(files: Sequence[ChangedFile]) -> AsyncGenerator[list[HunkFacts]]:
        for _ in files[:0]:
            yield []

    monkeypatch.setattr(walk_of_session, "find_facts", no_answer)
    await walker.write(RENAMED)
    session = walker.session
    assert sorted(session.walk.order) == sorted(hunk.id for hunk in session.hunks.undecided())
    assert all(not session.walk.evidence(hunk) for hunk in session.hunks if hunk.path == "a.py")


async def test_what_was_visited_keeps_its_place(walker: Walker) -> None:
    await walker.write(RENAMED)
    walk = walker.session.walk
    first = walk.beyond(None, 1)
    assert first is not None
    walk.visit(first)
    second = walk.beyond(first, 1)
    assert second is not None
    walk.visit(second)
    await walker.write({"check.py": "def check(user):\n    return user\n"})
    assert walk.order[:2] == [first.id, second.id]
    third = walk.beyond(second, 1)
    assert third is not None
    assert third.path == "check.py"  # it takes behaviour away
    assert walk.beyond(third, -1) is second


async def test_a_later_write_is_read_again_by_itself(
    walker: Walker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await walker.write(RENAMED)
    walk = walker.session.walk
    before = dict(walk._facts)
    await walker.write({"use1.py": RENAMED["use1.py"].replace("> 0", "< 0")})
    again = [path for path, facts in walk._facts.items() if facts is not before.get(path)]
    assert again == ["use1.py"]
    assert len(walk.walk.groups[0].hunks) == 4


async def test_decisions_do_not_change_the_groups(walker: Walker) -> None:
    await walker.write(RENAMED)
    walk = walker.session.walk
    groups = walk.walk.groups
    await walker.session.decisions.accept(groups[0].hunks[1])
    await walker.known()
    assert walk.walk.groups == groups
    assert len(walk.left(groups[0].hunks)) == 4
