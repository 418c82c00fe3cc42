"""Writes of others are checked like an answer of the model: guard, syntax, names left behind."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from midstream.agents.hooks import BEFORE_TOOL, HookAnswer, HookEvent
from midstream.edits.hunks import Hunk, HunkState
from midstream.pairing.files import put_backs
from midstream.pairing.session import PairingSession
from midstream.plain.loop import PlainLoop
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.pairing import Witness, make_repo

BILL = """\
def tax(amount):
    share = amount * 0.2
    # in cents
    # and rounded
    return round(share, 2)
"""
SHOP = "from bill import tax\n\n\ndef price(net):\n    return net + tax(net)\n"
RENAMED = BILL.replace("tax", "levy")
SECRET = 'TOKEN = "ghp_' + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8" + '"\n'


class Checked(Witness):
    """A session that reviews a folder with two files."""

    @property
    def root(self) -> Path:
        return self.session.root

    async def write(self, name: str, text: str) -> list[Hunk]:
        """Another program writes a file; the hunks that wait in it."""
        (self.root / name).write_text(text)
        await self.session.review.changed({name})
        return self.session.hunks.undecided(name)

    async def ask(self, name: str, text: str) -> asyncio.Task[HookAnswer | None]:
        """An agent asks to write a file."""
        given = {"file_path": name, "content": text}
        event = HookEvent(BEFORE_TOOL, "Claude Code", str(self.root), "s", "Write", given, False)
        asked = asyncio.create_task(self.session.gate.answer(event))
        await self.until(lambda: bool(self.session.gate.waiting))
        return asked

    def told(self, word: str) -> list[str]:
        return [n.text for n in self.session.status.notices if word in n.text]


@pytest.fixture
async def checked(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Checked]:
    monkeypatch.setattr(put_backs, "QUIET_S", 0.0)
    root = make_repo(tmp_path / "work", {"bill.py": BILL, "shop.py": SHOP})
    async with await PairingSession.open(
        root, settings=Settings(), endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=True)
        yield Checked(session)


async def test_uses_that_a_kept_rename_leaves_behind(checked: Checked) -> None:
    (hunk,) = await checked.write("bill.py", RENAMED)
    await checked.session.decisions.accept(hunk.id)
    await checked.until(lambda: checked.told("still used in shop.py"))
    assert checked.told("`tax`")
    assert checked.session.status.notices[-1].action == "hunk.elsewhere"
    assert await checked.session.background.elsewhere(hunk.id) == 1
    await checked.session.background.finished()
    assert await checked.session.decisions.accept_rest("shop.py") == 2
    assert (checked.root / "shop.py").read_text() == SHOP.replace("tax", "levy")


async def test_a_deleted_file_that_is_still_used(checked: Checked) -> None:
    (checked.root / "bill.py").unlink()
    await checked.session.review.changed({"bill.py"})
    (hunk,) = checked.session.hunks.undecided()
    await checked.session.decisions.accept(hunk.id)
    await checked.until(lambda: checked.told("still used in shop.py"))


async def test_what_an_agent_completes_in_its_turn_is_not_told(checked: Checked) -> None:
    writers = checked.session.agent._writes
    writers.begin("Agent")
    (first,) = await checked.write("bill.py", RENAMED)
    await checked.session.decisions.accept(first.id)
    await asyncio.sleep(0.5)  # time in which it would be told
    for hunk in await checked.write("shop.py", SHOP.replace("tax", "levy") + "\n\nx = unheard\n"):
        await checked.session.decisions.accept(hunk.id)
    assert not checked.told("`")
    writers.end()
    await checked.until(lambda: checked.told("`unheard`"))
    assert not checked.told("still used")


async def test_half_of_a_change_by_another_program(checked: Checked) -> None:
    text = BILL.replace("share", "part")
    first, second = await checked.write("bill.py", text)
    await checked.session.decisions.accept(first.id)
    await checked.session.decisions.reject(second.id)
    await checked.until(lambda: checked.told("`share`"))
    (sentence,) = checked.told("`share`")
    assert "is no longer defined: only part of the change was accepted" in sentence


async def test_half_of_an_edit_that_waits_has_to_parse(checked: Checked) -> None:
    session = checked.session
    text = BILL.replace("share = amount", "share = (\n        amount").replace(
        "    return round", "    )\n    return round"
    )
    asked = await checked.ask("bill.py", text)
    first, second = session.hunks.undecided()
    assert await session.decisions.reject(second.id)
    assert not await session.decisions.accept(first.id)
    assert "would not parse any more" in checked.notice
    assert not asked.done()
    assert await session.decisions.accept(first.id), "asked again, it is done"
    answer: Any = await asked
    assert "share = (" in answer["hookSpecificOutput"]["updatedInput"]["content"]
    assert (checked.root / "bill.py").read_text() == BILL


async def test_uses_that_a_written_edit_leaves_behind(checked: Checked) -> None:
    """The notice comes once the edit is written and the agent has stopped."""
    asked = await checked.ask("bill.py", RENAMED)
    (hunk,) = checked.session.hunks.undecided()
    await checked.session.decisions.accept(hunk.id)
    await asked
    assert not await checked.write("bill.py", RENAMED)
    await checked.until(lambda: checked.told("still used in shop.py"))


async def test_an_edit_that_waits_is_held_back_for_what_the_guard_finds(
    checked: Checked,
) -> None:
    session = checked.session
    asked = await checked.ask("bill.py", BILL + SECRET)
    await checked.until(lambda: any(hunk.state is HunkState.HELD for hunk in session.hunks))
    (hunk,) = [hunk for hunk in session.hunks if hunk.state is HunkState.HELD]
    assert not await session.decisions.accept(hunk.id)
    assert not asked.done()
    assert await session.decisions.reject(hunk.id, "no tokens in code")
    answer: Any = await asked
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "no tokens in code" in answer["hookSpecificOutput"]["permissionDecisionReason"]


async def test_what_the_checks_find_is_flagged_before_the_decision(checked: Checked) -> None:
    """Like findings of the guard: quitting asks about them, and no bulk accept takes them."""
    session = checked.session
    first, second = await checked.write("bill.py", RENAMED + "\n\nrate = unheard\n")
    await checked.until(lambda: session.flagged_on_disk() == [first, second])
    assert session.reason(first) == "`tax` is still used in shop.py:1, shop.py:5"
    assert session.reason(second) == "`unheard` (line 8) is not defined"
    assert second.new[session.flags.line(second) or 0] == "rate = unheard"
    assert session.flags.line(first) is None, "the uses are elsewhere"
    assert checked.told("Flagged in bill.py")
    assert [h for h, _ in session.attention.bulk([first, second]).risky] == [first.id, second.id]
    # A completing change in another file, or a decision, removes the flag.
    await checked.write("shop.py", SHOP.replace("tax", "levy"))
    await checked.until(lambda: session.flagged_on_disk() == [second])
    assert await session.decisions.reject(second.id)
    assert not session.flagged_on_disk()


async def test_flags_of_many_files_are_told_together(checked: Checked) -> None:
    session = checked.session
    names = [f"new_{number:02}.py" for number in range(30)]
    for name in names:
        (checked.root / name).write_text("rate = unheard\n")
    await session.review.changed(names)
    await checked.until(lambda: len(session.flagged_on_disk()) == len(names))

    def told() -> list[int]:
        """How many files each notice is about."""
        texts = [n.text for n in session.status.notices if n.text.startswith("Flagged in")]
        others = [re.search(r"Flagged in (\d+) other file", text) for text in texts]
        return [1 + int(found[1]) if found else 1 for found in others]

    await checked.until(lambda: sum(told()) == len(names))
    assert len(told()) < len(names) / 2


@pytest.mark.parametrize("terminal", [True, False])
async def test_quitting_tells_all_that_is_left_each_time(checked: Checked, terminal: bool) -> None:
    """It names all hunks, not only flagged ones; another command in between cancels the consent."""
    session = checked.session
    flagged = await checked.write("bill.py", RENAMED)
    await checked.until(lambda: session.flagged_on_disk() == flagged)
    await checked.write("fresh.py", "rate = 1\n")
    said: list[str] = []
    lines = io.StringIO("quit\nhelp\nquit\nquit\nhunks\n")
    await PlainLoop(session, lines, said.append, terminal=terminal).run()
    asked = [line for line in said if "quit again leaves." in line]
    assert len(asked) == 2
    for line in asked:
        assert "2 hunks undecided in bill.py, fresh.py, 1 of them flagged (`tax` is" in line
        assert "they stay on disk" in line
        assert "on disk already" not in line, "said once"


async def test_uses_of_a_deleted_file_are_flagged(checked: Checked) -> None:
    (checked.root / "bill.py").unlink()
    await checked.session.review.changed({"bill.py"})
    (hunk,) = checked.session.hunks.undecided()
    await checked.until(lambda: checked.session.flagged_on_disk() == [hunk])
    assert "shop.py" in checked.session.reason(hunk)
    assert await checked.session.decisions.accept(hunk.id)
    assert not checked.session.flagged_on_disk()


async def test_a_text_of_others_that_does_not_parse_is_flagged(checked: Checked) -> None:
    (hunk,) = await checked.write("bill.py", BILL.replace("amount * 0.2", "(amount"))
    await checked.until(lambda: checked.session.flagged_on_disk() == [hunk])
    assert "does not parse" in checked.session.reason(hunk)
    await checked.write("bill.py", BILL.replace("amount * 0.2", "amount * 2"))
    await checked.until(lambda: not checked.session.flagged_on_disk())


async def test_a_text_that_did_not_parse_before_is_not_flagged_for_that(checked: Checked) -> None:
    await checked.write("bill.py", BILL.replace("amount * 0.2", "(amount"))
    assert await checked.session.decisions.accept_rest("bill.py", anyway=True)
    (hunk,) = await checked.write("bill.py", BILL.replace("amount * 0.2", "(amount") + "x = 1\n")
    await checked.session.background.finished()
    await asyncio.sleep(0.3)  # time in which it would be flagged
    assert not checked.session.reason(hunk)
