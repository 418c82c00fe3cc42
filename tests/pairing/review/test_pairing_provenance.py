"""Who wrote the hunks of other programs: the agent and its words, or somebody else on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from midstream.agents.catalogue import KnownAgent
from midstream.edits.hunks import Hunk
from midstream.pairing.review.agent_edits import relative_to
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.scripted_agent import BEGIN, command
from tests.helpers.waiting import PATIENCE_S

OLD = "def tax(amount):\n    return amount * 0.2\n"
COMMITTED = {"bill.py": OLD, "other.py": "x = 1\n"}
NEW = "def tax(amount):\n    return amount * 0.25\n"
END = {"result": {"stopReason": "end_turn"}}
SAID = {
    "update": {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "The rate is in bill.py."},
    }
}


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for is another process's
            await asyncio.sleep(0.01)


def scripted(folder: Path, steps: list[dict[str, Any]]) -> KnownAgent:
    return KnownAgent("", "Agent", tuple(command(folder, {**BEGIN, "session/prompt": steps})))


def tool(title: str, kind: str, **fields: Any) -> dict[str, Any]:
    call = {"sessionUpdate": "tool_call", "toolCallId": title, "title": title, "kind": kind}
    return {"update": {**call, **fields}}


def edit_of(path: Path) -> dict[str, Any]:
    diff = {"type": "diff", "path": str(path), "oldText": OLD, "newText": NEW}
    return tool("Edit bill.py", "edit", content=[diff])


async def opened(root: Path, endpoint: Endpoint, **options: Any) -> PairingSession:
    session = await PairingSession.open(root, settings=Settings(), endpoint=endpoint, **options)
    await until(lambda: session.external.watching == "native")
    return session


async def only_hunk(session: PairingSession) -> Hunk:
    await until(session.hunks.undecided)
    (hunk,) = session.hunks.undecided()
    return hunk


async def asked_for(session: PairingSession, tmp_path: Path, steps: list[dict[str, Any]]) -> Hunk:
    """The one hunk that an agent writes when it is asked to raise the tax."""
    await session.agent.begin(scripted(tmp_path, steps))
    session.agent.send("raise the tax")
    return await only_hunk(session)


async def test_an_edit_of_an_agent_has_its_instruction_and_its_words_also_when_resumed(
    endpoint: Endpoint, root: Path, tmp_path: Path
) -> None:
    bill = root / "bill.py"
    steps = [SAID, edit_of(bill), {"write": {str(bill): NEW}}, {"until": "session/cancel"}, END]
    async with await opened(root, endpoint) as session:
        hunk = await asked_for(session, tmp_path, steps)
        known = session.provenance.of(hunk)
        assert known is not None
        assert known.proven
        assert (known.author, known.turn, known.tool) == ("Scripted", 1, "Edit bill.py")
        assert (known.asked, known.said) == ("raise the tax", "The rate is in bill.py.")
        parts = session.hunks.split(hunk.id, [(1, 0)])
        assert {session.provenance.author_of(part) for part in parts} == {"Scripted, turn 1"}
        seen, journal = known.seen, session.journal.path
    async with await opened(root, endpoint, resume=journal) as again:
        known = again.provenance.of(again.hunks.get(hunk.id))
        assert known is not None
        assert known.proven
        assert (known.asked, known.said) == ("raise the tax", "The rate is in bill.py.")
        assert known.seen == seen


async def test_an_edit_that_is_reported_after_the_write_is_found(
    endpoint: Endpoint, root: Path, tmp_path: Path
) -> None:
    bill = root / "bill.py"
    other = {"until": "session/cancel"}
    steps = [{"write": {str(bill): NEW}}, other, edit_of(bill), END]
    async with await opened(root, endpoint) as session:
        hunk = await asked_for(session, tmp_path, steps)
        known = session.provenance.of(hunk)
        assert known is not None
        assert not known.proven
        assert (known.author, session.provenance.author_of(hunk)) == ("Scripted", "")
        session.agent.stop_working()
        await until(lambda: session.provenance.author_of(hunk) == "Scripted, turn 1")
        later = session.provenance.of(hunk)
        assert later is not None
        assert later.seen == known.seen


async def test_hunks_that_one_edit_explains_keep_their_times(
    endpoint: Endpoint, root: Path, tmp_path: Path
) -> None:
    bill, other = root / "bill.py", root / "other.py"
    diffs = [
        {"type": "diff", "path": str(bill), "oldText": OLD, "newText": NEW},
        {"type": "diff", "path": str(other), "oldText": "x = 1\n", "newText": "x = 2\n"},
    ]
    edit = tool("Edit both", "edit", content=diffs)
    steps = [{"write": {str(bill): NEW}}, {"until": "session/cancel"}, edit, END]
    async with await opened(root, endpoint) as session:
        hunks = [await asked_for(session, tmp_path, steps)]
        other.write_text("x = 2\n")
        await until(lambda: len(session.hunks.undecided()) == 2)
        hunks += session.hunks.undecided("other.py")
        before = [session.provenance.of(hunk) for hunk in hunks]
        session.agent.stop_working()
        await until(lambda: all(map(session.provenance.author_of, hunks)))
        after = [session.provenance.of(hunk) for hunk in hunks]
        assert [each and each.seen for each in after] == [each and each.seen for each in before]
        assert len({each.seen for each in after if each}) == 2


async def test_what_a_command_of_an_agent_writes_is_not_said_to_be_the_agents(
    endpoint: Endpoint, root: Path, tmp_path: Path
) -> None:
    ran = tool("sed -i s/0.2/0.25/ bill.py", "execute")
    steps = [ran, {"write": {str(root / "bill.py"): NEW}}, {"until": "session/cancel"}, END]
    async with await opened(root, endpoint) as session:
        hunk = await asked_for(session, tmp_path, steps)
        known = session.provenance.of(hunk)
        assert known is not None
        assert not known.proven
        assert (known.author, known.asked) == ("Scripted", "raise the tax")
        assert known.tool == "sed -i s/0.2/0.25/ bill.py"
        assert session.provenance.author_of(hunk) == ""


async def test_what_others_write_has_its_time_and_what_was_there_before_says_so(
    endpoint: Endpoint, root: Path
) -> None:
    (root / "bill.py").write_text(NEW)
    async with await opened(root, endpoint, review=True) as session:
        await session.review.begun()
        before = session.provenance.of(await only_hunk(session))
        assert before is not None
        assert before.earlier
        assert before.author == ""
        (root / "other.py").write_text("x = 2\n")
        await until(lambda: len(session.hunks.undecided()) == 2)
        (hunk,) = session.hunks.undecided("other.py")
        after = session.provenance.of(hunk)
        assert after is not None
        assert not after.earlier
        assert after.author == ""
        assert after.seen >= before.seen


def test_a_path_of_an_agent_that_leads_nowhere_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "out").symlink_to("/")
    named = ("a.py", "circle/a.py", "out/a.py", "../a.py", "/a.py", "a\0.py", "")
    found = [relative_to(tmp_path, path) for path in named]
    assert found == ["a.py", "circle/a.py", "", "", "", "", "."]
