"""A model that is asked for an edit looks at files first; it can be stopped at every point."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from midstream.pairing.chat import tools
from midstream.pairing.chat.entries import QuestionState, ToolUse
from midstream.pairing.chat.tool_loop import MAX_FAILED_ROUNDS
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.pairing.status import TurnStatus
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import Witness
from tests.helpers.processes import running
from tests.helpers.searching import with_slow_search

APP = "def one():\n    return 1\n"
COMMITTED = {"app.py": APP, "more.py": "limit = 2\n"}
EDIT = """\
app.py
<<<<<<< SEARCH
    return 1
=======
    return 2
>>>>>>> REPLACE
"""
PATCH = """\
*** Begin Patch
*** Update File: app.py
@@
 def one():
-    return 1
+    return 2
*** End Patch
"""
LOOKS = ["read_file", "search", "list_files", "symbols", "git_log", "git_diff"]


@asynccontextmanager
async def opened(
    hosted: Hosted,
    root: Path,
    edit_format: str | None = "search-replace",
    allowed: bool = True,
    when: str = "always",
) -> AsyncIterator[tuple[PairingSession, Witness]]:
    async with hosted.running() as url:
        settings = hosted.settings(url, edit_format, tools=when)
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            if allowed:
                session.chat.allow(on=True)
            yield session, Witness(session)


def offered(hosted: Hosted, number: int) -> list[str]:
    """The read-only tools of a request."""
    names = [tool["name"] for tool in hosted.creates[number].get("tools", ())]
    return [name for name in names if name != "apply_patch"]


def uses(session: PairingSession) -> list[ToolUse]:
    return [entry for entry in session.chat.entries if isinstance(entry, ToolUse)]


async def test_it_looks_once_it_is_allowed_and_then_edits(hosted: Hosted, root: Path) -> None:
    async with opened(hosted, root, allowed=False) as (session, witness):
        hosted.say("Let me see.")
        hosted.call("more.py", "read_file")
        hosted.end()
        await session.turns.instruct(Question("return the limit", path="app.py", cursor=0))
        await witness.until(lambda: session.chat.question is not None)
        assert offered(hosted, 0) == LOOKS
        assert "With the tools you can look" in hosted.creates[0]["instructions"]
        assert len(hosted.creates) == 1, "nothing was looked at"
        session.chat.allow(on=True)
        await witness.until(lambda: len(hosted.creates) == 2)
        assert ("output", "1 limit = 2") in hosted.messages
        hosted.call("one", "search")
        hosted.end()
        await witness.until(lambda: len(hosted.creates) == 3)
        assert session.chat.question is None, "it is asked once in a session"
        hosted.say(EDIT)
        hosted.end()
        await session.turns.finished()
        (hunk,) = session.hunks
        assert hunk.new == ("    return 2",)
        assert (root / "app.py").read_text() == APP, "hunks are the only path to disk"
        assert session.turns.last is not None
        assert session.turns.last.status is TurnStatus.DONE
    titles = [(use.call.title, use.call.status) for use in uses(session)]
    assert titles[0] == ("read more.py", "completed")
    assert titles[1][0].startswith("search one")
    assert uses(session)[0].question is QuestionState.ALLOWED


async def test_what_it_calls_is_no_text_of_the_patch(hosted: Hosted, root: Path) -> None:
    async with opened(hosted, root, edit_format=None) as (session, witness):
        hosted.call("*** Begin Patch", "search")
        hosted.end()
        await session.turns.instruct(Question("return 2", path="app.py", cursor=0))
        await witness.until(lambda: len(hosted.creates) == 2)
        hosted.call(PATCH)
        hosted.end()
        await session.turns.finished()
        (hunk,) = session.hunks
        assert hunk.new == ("    return 2",)
        # The next request needs a conversation in which every call has its output.
        hosted.say("no")
        hosted.end()
        await session.turns.instruct(Question("and now?", path="app.py", cursor=0))
        await session.turns.finished()


async def test_one_region_is_rewritten_after_a_look(hosted: Hosted, root: Path) -> None:
    async with opened(hosted, root, edit_format="region") as (session, witness):
        hosted.say("Let me see.")
        hosted.call("more.py", "read_file")
        hosted.end()
        await session.turns.instruct(Question("return the limit", path="app.py", cursor=0))
        await witness.until(lambda: len(hosted.creates) == 2)
        hosted.say("<region>\ndef one():\n    return 2\n</region>\n")
        hosted.end()
        await session.turns.finished()
        (hunk,) = session.hunks
        assert hunk.new == ("    return 2",)


async def test_it_goes_on_without_looking_where_it_may_not(hosted: Hosted, root: Path) -> None:
    async with opened(hosted, root, allowed=False) as (session, witness):
        hosted.call("more.py", "read_file")
        hosted.end()
        await session.turns.instruct(Question("return the limit", path="app.py", cursor=0))
        await witness.until(lambda: session.chat.question is not None)
        session.chat.allow(on=False)
        await witness.until(lambda: len(hosted.creates) == 2)
        assert not offered(hosted, 1), "it is not offered again"
        assert "does not want you to look" in dict(hosted.messages)["output"]
        hosted.say(EDIT)
        hosted.end()
        await session.turns.finished()
        assert len(session.hunks) == 1


async def test_a_stop_while_it_asks(hosted: Hosted, root: Path) -> None:
    async with opened(hosted, root, allowed=False) as (session, witness):
        hosted.call("more.py", "read_file")
        hosted.end()
        await session.turns.instruct(Question("return the limit", path="app.py", cursor=0))
        await witness.until(lambda: session.chat.question is not None)
        await session.turns.stop_turn()
        assert session.chat.question is None
        assert not session.turns.busy
        assert len(hosted.creates) == 1
        hosted.say(EDIT)
        hosted.end()
        await session.turns.instruct(Question("again", path="app.py", cursor=0))
        await session.turns.finished()
        assert len(session.hunks) == 1


@pytest.mark.parametrize("redirect", [False, True])
async def test_a_stop_or_a_redirect_ends_what_a_tool_has_started(
    hosted: Hosted, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redirect: bool
) -> None:
    begun = tmp_path / "begun"
    monkeypatch.setenv("PATH", with_slow_search(tmp_path / "bin", begun))
    async with opened(hosted, root) as (session, witness):
        hosted.say("Let me see.\n")
        hosted.call("one", "search")
        hosted.end()
        await session.turns.instruct(Question("return the limit", path="app.py", cursor=0))
        await witness.until(begun.exists)
        if redirect:
            hosted.say(EDIT)
            hosted.end()
            await session.turns.redirect("just return 2")
            await session.turns.finished()
            assert [hunk.new for hunk in session.hunks] == [("    return 2",)]
            said = [text for role, text in hosted.messages if role == "user"]
            assert "just return 2" in said[-1]
            assert ("assistant", "Let me see.\n") in hosted.messages
        else:
            await session.turns.stop_turn()
            assert not session.turns.busy
        await witness.until(lambda: not running(int(begun.read_text())))
        (use,) = uses(session)
        await witness.until(lambda: use.call.status == "failed")


async def test_endless_calls_come_to_an_end(hosted: Hosted, root: Path) -> None:
    async with opened(hosted, root) as (session, witness):
        await session.server.ready()
        for _ in range(tools.MAX_CALLS):
            hosted.call("more.py", "read_file")
            hosted.end()
        await session.turns.instruct(Question("return the limit", path="app.py", cursor=0))
        await witness.until(lambda: len(hosted.creates) == tools.MAX_CALLS + 1)
        assert not offered(hosted, -1)
        hosted.call("more.py", "read_file")
        hosted.end()
        await witness.until(lambda: len(hosted.creates) == tools.MAX_CALLS + 2)
        assert "No more calls for this instruction" in hosted.messages[-1][1]
        hosted.say(EDIT)
        hosted.end()
        await session.turns.finished()
        assert len(session.hunks) == 1


async def test_a_model_that_does_nothing_but_call_is_ended(hosted: Hosted, root: Path) -> None:
    async with opened(hosted, root, allowed=False) as (session, _):
        session.chat.allow(on=False)
        for _ in range(MAX_FAILED_ROUNDS + 1):
            hosted.call("more.py", "read_file")
            hosted.end()
        await session.turns.instruct(Question("return the limit", path="app.py", cursor=0))
        await session.turns.finished()
        last = session.turns.last
        assert last is not None
        assert last.status is TurnStatus.FAILED
        assert "only calls tools" in last.error
        assert not session.hunks


@pytest.mark.parametrize(("when", "asked"), [("questions", LOOKS), ("off", [])])
async def test_the_setting(hosted: Hosted, root: Path, when: str, asked: list[str]) -> None:
    async with opened(hosted, root, when=when) as (session, _):
        for _ in range(2):
            hosted.say("no")
            hosted.end()
        await session.turns.instruct(Question("return the limit", path="app.py", cursor=0))
        await session.turns.finished()
        assert not offered(hosted, 0)
        await session.chat.ask_question(Question("what is one?"))
        await session.chat.finished()
        assert offered(hosted, 1) == asked


async def test_a_question_and_an_instruction_ask_one_after_the_other(
    hosted: Hosted, root: Path
) -> None:
    async with opened(hosted, root, allowed=False) as (session, witness):
        hosted.call("more.py", "read_file")
        hosted.end()
        await session.turns.instruct(Question("return the limit", path="app.py", cursor=0))
        await witness.until(lambda: session.chat.question is not None)
        first = session.chat.question
        hosted.call("app.py", "read_file")
        hosted.end()
        await session.chat.ask_question(Question("what is one?"))
        await witness.until(lambda: len(uses(session)) == 2)
        assert session.chat.question is first
        await session.turns.stop_turn()
        await witness.until(lambda: session.chat.question not in (None, first))
        await session.chat.stop_answer()
        assert session.chat.question is None


@pytest.fixture
def hidden(root: Path) -> Path:
    """The folder with a file that git ignores, and one that has the name of credentials."""
    (root / ".gitignore").write_text("notes/\n")
    (root / "notes").mkdir()
    (root / "notes" / "plan.txt").write_text("ship it on Monday\n")
    (root / ".env").write_text("MODE=fast\n")
    return root


async def test_a_file_that_is_not_shown_is_asked_for(hosted: Hosted, hidden: Path) -> None:
    async with opened(hosted, hidden) as (session, witness):
        chat = session.chat
        hosted.call("./notes/plan.txt:1-1", "read_file")
        hosted.end()
        await chat.ask_question(Question("when is it due?"))
        await witness.until(lambda: chat.question is not None)
        assert chat.question is not None
        assert chat.question.path == "notes/plan.txt"
        assert chat.question.text == "wants to read notes/plan.txt, which is ignored by git"
        assert len(hosted.creates) == 1, "nothing was sent"
        chat.allow(on=True)
        assert not chat.question.answered.is_set(), "a yes to looking is none to this file"
        chat.answer(chat.question, yes=True)
        await witness.until(lambda: len(hosted.creates) == 2)
        assert ("output", "1 ship it on Monday") in hosted.messages
        # The question comes once for each file.
        hosted.call("notes/plan.txt", "read_file")
        hosted.say("And")
        hosted.call(".env", "read_file")
        hosted.end()
        await witness.until(lambda: chat.question is not None)
        assert chat.question is not None
        assert (
            chat.question.text
            == "wants to read .env, which has the name of a file with credentials"
        )
        chat.answer(chat.question, yes=False)
        await witness.until(lambda: len(hosted.creates) == 3)
        hosted.call(".env", "read_file")
        hosted.end()
        await witness.until(lambda: len(hosted.creates) == 4)
        assert "does not want you to read it" in hosted.messages[-1][1]
        hosted.say("On Monday.")
        hosted.end()
        await chat.finished()
        assert [(use.question, use.call.status) for use in uses(session)] == [
            (QuestionState.ALLOWED, "completed"),
            (QuestionState.NONE, "completed"),
            (QuestionState.REJECTED, "failed"),
            (QuestionState.NONE, "failed"),
        ]
        assert "MODE=fast" not in str(hosted.creates)
        # An instruction sends the allowed file; another question asks again about the refused one.
        hosted.call("notes/plan.txt", "read_file")
        hosted.say("And")
        hosted.call(".env", "symbols")
        hosted.end()
        await session.turns.instruct(Question("return the day", path="app.py", cursor=0))
        await witness.until(lambda: chat.question is not None)
        assert chat.question is not None
        assert chat.question.path == ".env"
        await session.turns.stop_turn()
        assert chat.question is None
        assert "MODE=fast" not in str(hosted.creates)


async def test_searches_and_diffs_ask_for_no_file(hosted: Hosted, hidden: Path) -> None:
    async with opened(hosted, hidden) as (session, _):
        for name, given in (
            ("search", "ship|fast"),
            ("search", "ship\nin: notes/plan.txt"),
            ("search", "fast\nin: .env"),
            ("git_diff", ".env"),
            ("git_diff", ""),
        ):
            hosted.call(given, name)
            hosted.say("And")
        hosted.end()
        hosted.say("I do not know.")
        hosted.end()
        await session.chat.ask_question(Question("when is it due?"))
        await session.chat.finished()
        sent = str([text for role, text in hosted.messages if role == "output"])
        assert "Monday" not in sent
        assert "MODE" not in sent
        assert "read_file asks the user" in sent


async def test_a_no_to_looking_ends_the_question_about_a_file(hosted: Hosted, hidden: Path) -> None:
    async with opened(hosted, hidden) as (session, witness):
        hosted.call(".env", "read_file")
        hosted.end()
        await session.chat.ask_question(Question("how fast is it?"))
        await witness.until(lambda: session.chat.question is not None)
        session.chat.allow(on=False)
        await witness.until(lambda: len(hosted.creates) == 2)
        assert not offered(hosted, 1)
        hosted.say("I do not know.")
        hosted.end()
        await session.chat.finished()
        assert "MODE=fast" not in str(hosted.messages)
