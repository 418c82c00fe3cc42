"""What a large model does, over every kind of link: tools, several files, prose, mistakes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from midstream.edits.hunks import HunkState
from midstream.pairing.chat.entries import ToolUse, exchanges
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.pairing.status import TurnStatus
from tests.helpers.pairing import Witness
from tests.helpers.scripted_links import LINKS, Call, Cut, Flood, Hold, Limit, Say, ScriptedLink
from tests.helpers.several_files import AFTER, FILES, accept_all_and_undo, on_disk

COMMITTED = FILES


def block(path: str, old: str, new: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n\n"


RUN = block("run.py", "import old\n", "import new\n")
UTIL = block("util.js", "export const b = 2\n", "export const b = 3\n")
FRESH = block("pkg/fresh.go", "", AFTER["pkg/fresh.go"])
REST = "*** Delete File: gone.txt\n*** Move File: old.py -> new.py\n"
ANSWER = f"I change several files.\n\n{RUN}{UTIL}{FRESH}{REST}"
PATCH = """\
*** Begin Patch
*** Update File: run.py
@@
-import old
+import new
*** Update File: util.js
@@
-export const b = 2
+export const b = 3
*** End Patch
"""
MALFORMED = ['{"input": "run.py', '{"path": "run.py", "lines": [1, 2]}', "[[[", ""]
"""Arguments of a call that no schema allows; the first has the path, and no end."""


@pytest.fixture(params=LINKS)
def far(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ScriptedLink:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return ScriptedLink(link=request.param)


@asynccontextmanager
async def opened(
    far: ScriptedLink, root: Path, edit_format: str = "search-replace"
) -> AsyncIterator[PairingSession]:
    async with far.running() as url:
        settings = far.settings(url, edit_format)
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            session.chat.allow(on=True)
            yield session


async def instruct(session: PairingSession, text: str = "rework it") -> TurnStatus:
    await session.turns.instruct(Question(text, path="run.py"))
    await session.turns.finished()
    assert session.turns.last is not None
    return session.turns.last.status


async def works(session: PairingSession, far: ScriptedLink) -> None:
    """Check that the next instruction is answered as usual."""
    far.reply(Say(block("run.py", "last = 2\n", "last = 3\n")))
    assert await instruct(session, "raise last") is TurnStatus.DONE
    assert any(hunk.new == ("last = 3",) for hunk in session.hunks.undecided("run.py"))


def looked(session: PairingSession) -> list[tuple[str, str]]:
    uses = (entry for entry in session.chat.entries if isinstance(entry, ToolUse))
    return [(use.call.title, use.call.status) for use in uses]


# Prose


async def test_a_question_with_calls_of_tools(far: ScriptedLink, root: Path) -> None:
    far.reply(Say("I look."), Call("read_file", "run.py:1-1"), Call("symbols", "old.py"))
    far.reply(Call("run_shell", "rm -rf ."), *(Call("read_file", arguments=a) for a in MALFORMED))
    far.reply(Say("It *runs* (run.py:3).\n"))
    async with opened(far, root) as session:
        await session.chat.ask_question(Question("what does it do?", path="run.py", cursor=0))
        await session.chat.finished()
        (said,) = exchanges(session.chat.entries)
        assert said.answered == "I look.\n\nIt *runs* (run.py:3).\n"
        assert not session.turns
        assert looked(session)[:2] == [
            ("read run.py:1-1", "completed"),
            ("symbols of old.py", "completed"),
        ]
        assert "1 import old" in far.told(1)
        assert "1-2 function helper" in far.told(1)
        assert "There is no tool run_shell" in far.told(2)
        assert "There is no file" in far.told(2)
        assert [status for _, status in looked(session)[-3:]] == ["failed"] * 3
        far.reply()
        await session.chat.ask_question(Question("and?"))
        await session.chat.finished()
        assert len(exchanges(session.chat.entries)) == 1, "an empty answer is none"
        far.reply(Say("Half an ans"), Cut())
        await session.chat.ask_question(Question("and?"))
        await session.chat.finished()
        far.reply(Say("Half of it"), Limit())
        await session.chat.ask_question(Question("and?"))
        await session.chat.finished()
        assert [said.answered for said in exchanges(session.chat.entries)[1:]] == [
            "Half an ans",
            "Half of it",
        ]
        far.reply(Say("Yes."))
        await session.chat.ask_question(Question("sure?"))
        await session.chat.finished()
        assert exchanges(session.chat.entries)[-1].answered.strip() == "Yes."
    assert on_disk(root) == FILES


# Edits


async def test_it_looks_and_then_writes_several_files(far: ScriptedLink, root: Path) -> None:
    far.reply(Say("I look first.\n"), Call("search", "old"), Call("list_files"))
    far.reply(Call("read_file", "util.js"))
    far.reply(Say(ANSWER))
    async with opened(far, root) as session:
        assert await instruct(session) is TurnStatus.DONE
        assert len(far.bodies) == 3
        assert [title.partition(":")[0] for title, _ in looked(session)] == [
            "search old",
            "list (4 files)",
            "read util.js",
        ]
        await accept_all_and_undo(session, root)


async def test_a_patch_tool_beside_the_tools_that_look(far: ScriptedLink, root: Path) -> None:
    """A custom tool where the link has these, else text."""
    far.reply(Call("read_file", "run.py"))
    has_tool = far.link == "websocket"
    far.reply(Call("apply_patch", PATCH) if has_tool else Say(PATCH))
    async with opened(far, root, "v4a") as session:
        assert await instruct(session) is TurnStatus.DONE
        assert len(session.hunks.undecided()) == 2
        assert ('"apply_patch"' in far.told(0)) == has_tool
        await works_as_patch(session, far)


async def works_as_patch(session: PairingSession, far: ScriptedLink) -> None:
    far.reply(
        Say("*** Begin Patch\n*** Update File: run.py\n@@\n-last = 2\n+last = 3\n*** End Patch\n")
    )
    assert await instruct(session, "raise last") is TurnStatus.DONE
    assert len(session.hunks.undecided()) == 3


async def test_a_file_that_is_only_proposed_is_asked_about_and_changed(
    far: ScriptedLink, root: Path
) -> None:
    far.reply(Say(FRESH))
    async with opened(far, root) as session:
        assert await instruct(session) is TurnStatus.DONE
        far.reply(Say("It returns 1.\n"))
        await session.chat.ask_question(
            Question("what does it return?", path="pkg/fresh.go", cursor=2)
        )
        await session.chat.finished()
        assert exchanges(session.chat.entries)[-1].answered == "It returns 1.\n"
        assert "func Fresh() int" in far.told(1)
        far.reply(Say(block("pkg/fresh.go", "func Fresh() int { return 1 }\n", "var fresh = 2\n")))
        turn = await session.turns.instruct(
            Question("make it a variable", path="pkg/fresh.go", cursor=2)
        )
        await session.turns.finished()
        assert turn.status is TurnStatus.DONE, turn.error
        assert on_disk(root) == FILES
        assert await session.decisions.accept_rest("pkg/fresh.go")
        assert on_disk(root) == FILES | {"pkg/fresh.go": "package pkg\n\nvar fresh = 2\n"}
        assert await session.decisions.undo()
        assert on_disk(root) == FILES


# Mistakes


@pytest.mark.parametrize("arguments", MALFORMED)
async def test_calls_that_make_no_sense(far: ScriptedLink, root: Path, arguments: str) -> None:
    far.reply(Call("read_file", arguments=arguments), Call("run_shell", "touch ran"))
    far.reply(Call("write_file", arguments='{"path": "run.py", "content": ""}'))
    far.reply(Say(RUN))
    async with opened(far, root) as session:
        assert await instruct(session) is TurnStatus.DONE
        assert len(far.bodies) == 3
        assert "There is no tool run_shell" in far.told(1)
        assert "There is no tool write_file" in far.told(2)
        (hunk,) = session.hunks
        assert hunk.new == ("import new",)
    assert on_disk(root) == FILES


async def test_an_edit_that_does_not_match_is_asked_for_again(
    far: ScriptedLink, root: Path
) -> None:
    far.reply(Say(RUN + block("util.js", "export let q = 9\nexport let r = 8\n", "x\n")))
    far.reply(Say(UTIL))
    async with opened(far, root) as session:
        assert await instruct(session) is TurnStatus.DONE
        assert len(far.bodies) == 2
        assert "export let q = 9" in far.told(1)
        assert {hunk.path: hunk.new for hunk in session.hunks.undecided()} == {
            "run.py": ("import new",),
            "util.js": ("export const b = 3",),
        }
        await works(session, far)


@pytest.mark.parametrize("said", ["", "I would rather not.", "```\n```\n"])
async def test_an_answer_without_an_edit(far: ScriptedLink, root: Path, said: str) -> None:
    far.reply(*([Say(said)] if said else []))
    async with opened(far, root) as session:
        assert await instruct(session) is TurnStatus.FAILED
        assert session.turns.last is not None
        assert "The model returned no" in session.turns.last.error
        assert not session.hunks.undecided()
        await works(session, far)


@pytest.mark.parametrize("how", [Cut(), Limit()])
async def test_an_answer_that_is_cut_off_in_the_second_file(
    far: ScriptedLink, root: Path, how: Cut | Limit
) -> None:
    far.reply(Say(RUN + UTIL[: UTIL.index("b = 3")]), how)
    async with opened(far, root) as session:
        assert await instruct(session) is TurnStatus.FAILED
        (hunk,) = session.hunks.undecided("run.py")
        assert hunk.new == ("import new",)
        assert not session.hunks.undecided("util.js")
        await works(session, far)
        assert await session.decisions.accept_rest("run.py") == 2
    assert on_disk(root) == FILES | {"run.py": "import new\n\nstep = 1\nlast = 3\n"}


@pytest.mark.parametrize("how", [Cut(), Limit()])
async def test_a_call_that_is_cut_off_is_not_carried_out(
    far: ScriptedLink, root: Path, how: Cut | Limit
) -> None:
    far.reply(Call("read_file", arguments='{"input": "run.p'), how)
    async with opened(far, root) as session:
        assert await instruct(session) is TurnStatus.FAILED
        assert not looked(session)
        assert len(far.bodies) == 1
        await works(session, far)


# Stops and redirects


@pytest.mark.parametrize("redirect", [False, True])
async def test_in_the_middle_of_a_call(far: ScriptedLink, root: Path, redirect: bool) -> None:
    far.reply(Say("I look.\n"), Call("read_file", "run.py:1-1", holds=True))
    async with opened(far, root) as session:
        await session.turns.instruct(Question("rework it", path="run.py"))
        await far.holding.wait()
        if redirect:
            far.reply(Say(RUN))
            await session.turns.redirect("only the import")
            await session.turns.finished()
            assert "only the import" in far.told(1)
            assert [hunk.new for hunk in session.hunks.undecided()] == [("import new",)]
        else:
            await session.turns.stop_turn()
            assert not session.turns.busy
        assert not looked(session), "half a call is none"
        await works(session, far)


@pytest.mark.parametrize("redirect", [False, True])
async def test_in_the_middle_of_the_third_file(
    far: ScriptedLink, root: Path, redirect: bool
) -> None:
    at = FRESH.index("func")
    far.reply(Say(RUN + UTIL + FRESH[:at]), Hold(), Say(FRESH[at:] + REST))
    async with opened(far, root) as session:
        witness = Witness(session)
        await session.turns.instruct(Question("rework it", path="run.py"))
        await far.holding.wait()
        await witness.until(lambda: (session.turns.writing or ("", 0))[0] == "pkg/fresh.go")
        assert await session.decisions.accept_rest("run.py") == 1
        if redirect:
            far.reply(Say(block("gone.txt", "two\n", "three\n")))
            await session.turns.redirect("no new file, count on in gone.txt")
            await session.turns.finished()
            (hunk,) = session.hunks.undecided("gone.txt")
            assert hunk.new == ("three",)
        else:
            await session.turns.stop_turn()
            assert not session.turns.busy
        assert [hunk.state for hunk in session.hunks if hunk.path == "util.js"] == [
            HunkState.SETTLED
        ]
        assert set(session.files) <= {"run.py", "util.js", "pkg/fresh.go", "gone.txt"}
        await works(session, far)
    assert on_disk(root) == FILES | {"run.py": AFTER["run.py"]}


# Answers without an end


ENDLESS = [
    Flood(begins="\n"),
    Flood("read_file", '{"input": "'),
    Flood("run_shell", '{"input": "'),
    Flood("read_file", "[["),
    Flood(reasons=True),
]


@pytest.mark.parametrize(
    "flood", ENDLESS, ids=["text", "look", "unknown", "malformed", "reasoning"]
)
async def test_an_answer_without_an_end(far: ScriptedLink, root: Path, flood: Flood) -> None:
    far.reply(Say(RUN), flood)
    async with opened(far, root) as session:
        assert await instruct(session) is TurnStatus.FAILED
        assert session.turns.last is not None
        error = session.turns.last.error
        assert "more than" in error
        assert "lost" not in error
        if flood.reasons:
            assert "it reasoned for more than 1,000,000 characters" in error
        assert len(session.hunks.undecided("run.py")) == 1
        far.reply(flood)
        await session.chat.ask_question(Question("why?"))
        await session.chat.finished()
        assert "more than" in str(session.chat.entries[-1])
        await works(session, far)
    assert not looked(session)


async def test_hundreds_of_calls_at_once(far: ScriptedLink, root: Path) -> None:
    far.reply(*[Call("read_file", "run.py")] * 300)
    far.reply(Say(RUN))
    async with opened(far, root) as session:
        assert await instruct(session) is TurnStatus.DONE
        assert len(looked(session)) <= 25
        assert len(far.bodies) == 2
