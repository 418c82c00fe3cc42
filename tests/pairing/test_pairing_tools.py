"""What a model may look at by itself: inside the folder, nothing ignored, so much, no writing."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.pairing import tools
from midstream.pairing.conversation import QuestionState, Speech, ToolUse, exchanges
from midstream.pairing.session import PairingSession
from midstream.pairing.tools import ReadOnlyTools
from midstream.responses.conversation import ToolCall
from midstream.responses.profiles import Profile
from midstream.settings import Settings
from midstream.workspace.files import Workspace
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import Witness, git, make_repo
from tests.helpers.processes import running
from tests.helpers.property import examples
from tests.helpers.scripted_http import ScriptedHttp

SECRET = "CANARY-outside-of-the-folder"
FILES = {
    "app.py": (
        "def one():\n    return 1\n\n\nclass Two:\n    def three(self):\n        return one()\n"
    ),
    "pkg/more.py": "from app import one\n\nkey = 'ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5'\n",
    ".gitignore": "secret.txt\n",
    ".env": "TOKEN=1\n",
    "bin.dat": "a\0b",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside.txt").write_text(SECRET)
    root = make_repo(tmp_path / "work", FILES)
    (root / "secret.txt").write_text("one hidden thing\n")
    (root / "link").symlink_to(tmp_path / "outside.txt")
    (root / "up").symlink_to(tmp_path)
    return root


@pytest.fixture
def looking(root: Path) -> ReadOnlyTools:
    found = ReadOnlyTools(Workspace(root), frozenset)
    found.begin(tools.MOST_ALL)
    return found


async def look(looking: ReadOnlyTools, name: str, given: str = "") -> str:
    looked = await looking.run(ToolCall("c1", name, given))
    return looked.text


async def test_files_are_read_with_numbers(looking: ReadOnlyTools) -> None:
    assert await look(looking, "read_file", "app.py:1-2") == (
        "1 def one():\n2     return 1\n(5 more lines, up to 7)"
    )
    looked = await looking.run(ToolCall("c", "read_file", "pkg/more.py"))
    assert looked.title == "read pkg/more.py"
    assert looked.path == "pkg/more.py"
    assert "ghp_" in looked.text
    assert "aB3dE5fG7hI9" not in looked.text, "credentials are masked"
    assert await look(looking, "read_file", "app.py:90-99") == "(nothing there)"


async def test_definitions_files_and_git(looking: ReadOnlyTools, root: Path) -> None:
    assert await look(looking, "symbols", "app.py") == (
        "1-2 function one\n5-7 class Two\n6-7 function Two.three"
    )
    assert (await look(looking, "list_files")).splitlines() == sorted(
        [".env", ".gitignore", "app.py", "bin.dat", "link", "pkg/more.py", "up"]
    )
    assert await look(looking, "list_files", "pkg") == "pkg/more.py"
    assert ": start" in await look(looking, "git_log", "app.py")
    (root / "app.py").write_text("one = 1\n")
    (root / ".env").write_text("TOKEN=2\n")
    changed = await look(looking, "git_diff")
    assert "+one = 1" in changed
    assert "TOKEN" not in changed
    assert "+one = 1" in await look(looking, "git_diff", "app.py")
    assert await look(looking, "git_diff", "HEAD..HEAD") == "No changes."


@pytest.mark.parametrize("program", [True, False])
async def test_searches(
    looking: ReadOnlyTools, monkeypatch: pytest.MonkeyPatch, program: bool, tmp_path: Path
) -> None:
    if not program:
        monkeypatch.setenv("PATH", str(tmp_path))
    elif shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed")
    found = await look(looking, "search", "one")
    assert "app.py:1:def one():" in found
    assert "hidden" not in found
    assert "TOKEN" not in await look(looking, "search", "TOKEN")
    assert "app.py" not in await look(looking, "search", "one\nin: pkg")
    assert (await look(looking, "search", "nowhere")).startswith("Nothing was found.")


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("read_file", "../outside.txt", "outside"),
        ("read_file", "link", "outside"),
        ("read_file", "up/outside.txt", "outside"),
        ("read_file", "/etc/passwd", "outside"),
        ("read_file", ".git/config", "git"),
        ("read_file", "secret.txt", "ignored by git"),
        ("read_file", ".env", "may hold credentials"),
        ("read_file", "bin.dat", "not text"),
        ("read_file", "pkg", "no file"),
        ("read_file", "", "no file"),
        ("symbols", "../outside.txt", "outside"),
        ("list_files", "../", "outside"),
        ("search", "CANARY\nin: ../", "outside"),
        ("git_log", "../", "outside"),
        ("git_diff", "--output=x", "Name a file"),
        ("git_diff", "-O/etc/passwd", "Name a file"),
        ("write_file", "app.py", "no tool"),
    ],
)
async def test_what_is_not_shown(
    looking: ReadOnlyTools, root: Path, name: str, given: str, why: str
) -> None:
    looked = await looking.run(ToolCall("c", name, given))
    assert looked.refused
    assert why in looked.text
    assert SECRET not in looked.text


@examples(120)
@given(
    name=st.sampled_from([*tools.DECLARATIONS]),
    given_=st.one_of(
        st.text(max_size=40),
        st.lists(
            st.sampled_from(["..", "up", "link", "/", "pkg", "app.py", "outside.txt", "\0"])
        ).map("/".join),
        st.sampled_from(["CANARY", "-e CANARY ..", "CANARY\nin: up", "--no-index ../outside.txt"]),
    ),
)
def test_nothing_outside_is_ever_shown(
    tmp_path_factory: pytest.TempPathFactory, name: dict[str, str], given_: str
) -> None:
    base = tmp_path_factory.mktemp("tools")
    (base / "outside.txt").write_text(SECRET)
    root = base / "work"
    root.mkdir()
    (root / "app.py").write_text("one = 1\n")
    (root / "link").symlink_to(base / "outside.txt")
    (root / "up").symlink_to(base)
    looking = ReadOnlyTools(Workspace(root), frozenset)
    looking.begin(tools.MOST_ALL)
    before = sorted(root.iterdir()), (root / "app.py").read_text()
    looked = asyncio.run(looking.run(ToolCall("c", name["name"], given_)))
    assert SECRET not in looked.text
    assert "\x1b" not in looked.text
    assert (sorted(root.iterdir()), (root / "app.py").read_text()) == before


async def test_one_question_may_read_so_much(looking: ReadOnlyTools) -> None:
    for _ in range(tools.MOST_CALLS):
        assert not (await looking.run(ToolCall("c", "read_file", "app.py"))).refused
    looked = await looking.run(ToolCall("c", "read_file", "app.py"))
    assert looked.refused
    assert "No more calls" in looked.text
    looking.begin(60)
    looked = await looking.run(ToolCall("c", "read_file", "app.py"))
    assert looked.text.endswith("(cut; ask for less)")
    assert looking.spent


async def test_a_repositorys_own_programs_do_not_run(
    looking: ReadOnlyTools, root: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "diff.external", "core.pager", "diff.mine.textconv"):
        git(root, "config", key, str(program))
    (root / ".gitattributes").write_text("*.py diff=mine\n")
    (root / "app.py").write_text("one = 1\n")
    await look(looking, "git_diff")
    await look(looking, "git_log")
    assert not ran.exists()


# In a conversation


async def test_a_model_looks_once_it_is_allowed(root: Path) -> None:
    hosted = Hosted()
    async with hosted.running() as url:
        settings = hosted.settings(url)
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            chat, witness = session.chat, Witness(session)
            hosted.say("Let me see.")
            hosted.call("app.py:1-2", "read_file")
            hosted.end()
            await chat.ask("what is one?")
            await witness.until(lambda: chat.question is not None)
            assert chat.asking
            assert len(hosted.creates) == 1, "nothing was looked at"
            chat.allow(on=True)
            await witness.until(lambda: len(hosted.creates) == 2)
            hosted.call("pkg/more.py", "read_file")
            hosted.end()
            await witness.until(lambda: len(hosted.creates) == 3)
            assert chat.question is None, "it is asked once in a session"
            hosted.say("It is 1.")
            hosted.end()
            await chat.finished()
    assert ("output", "1 def one():\n2     return 1\n(5 more lines, up to 7)") in hosted.messages
    first, *uses = [entry for entry in chat.entries if isinstance(entry, ToolUse)]
    assert first.call.title == "read app.py:1-2"
    assert first.call.paths == ("app.py",)
    assert first.call.status == "completed"
    assert first.question is QuestionState.ALLOWED
    assert [use.call.title for use in uses] == ["read pkg/more.py"]
    assert exchanges(chat.entries)[0].answered == "Let me see.\n\nIt is 1."
    assert "app.py:1-2" not in exchanges(chat.entries)[0].answered, "input of tools is no prose"


async def test_a_model_that_may_not_look_answers_without(root: Path) -> None:
    hosted = Hosted()
    async with hosted.running() as url:
        settings = hosted.settings(url)
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            chat, witness = session.chat, Witness(session)
            hosted.call("app.py", "read_file")
            hosted.end()
            await chat.ask("what is one?")
            await witness.until(lambda: chat.question is not None)
            chat.allow(on=False)
            await witness.until(lambda: len(hosted.creates) == 2)
            assert not hosted.creates[1].get("tools"), "it is not offered again"
            hosted.say("I do not know.")
            hosted.end()
            await chat.finished()
    assert "does not want you to look" in dict(hosted.messages)["output"]
    assert exchanges(chat.entries)[0].answered == "I do not know."


async def test_a_stop_while_it_asks(root: Path) -> None:
    hosted = Hosted()
    async with hosted.running() as url:
        settings = hosted.settings(url)
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            chat, witness = session.chat, Witness(session)
            hosted.call("app.py", "read_file")
            hosted.end()
            await chat.ask("what is one?")
            await witness.until(lambda: chat.question is not None)
            await chat.stop()
            assert not chat.busy
            assert chat.question is None
            assert len(hosted.creates) == 1
            hosted.call("app.py", "read_file")
            hosted.end()
            await chat.ask("again")
            await witness.until(lambda: chat.question is not None)


async def test_a_stop_ends_what_a_tool_has_started(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    begun = tmp_path / "begun"
    slow = programs / "rg"
    slow.write_text(f"#!/bin/sh\necho $$ > {begun}.new; mv {begun}.new {begun}; exec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    hosted = Hosted()
    async with hosted.running() as url:
        settings = hosted.settings(url)
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            chat, witness = session.chat, Witness(session)
            chat.allow(on=True)
            hosted.call("one", "search")
            hosted.end()
            await chat.ask("where is one?")
            await witness.until(begun.exists)
            await chat.stop()
            assert not chat.busy
            await witness.until(lambda: not running(int(begun.read_text())))
            (use,) = [entry for entry in chat.entries if isinstance(entry, ToolUse)]
            assert use.call.status == "failed"
            assert len(hosted.creates) == 1


async def test_endless_calls_come_to_an_end(root: Path) -> None:
    hosted = Hosted()
    async with hosted.running() as url:
        settings = hosted.settings(url)
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            chat, witness = session.chat, Witness(session)
            chat.allow(on=True)
            for _ in range(tools.MOST_CALLS):
                hosted.call("../outside.txt", "read_file")
                hosted.end()
            await chat.ask("read on and on")
            await witness.until(lambda: len(hosted.creates) == tools.MOST_CALLS + 1)
            assert hosted.creates[-2].get("tools")
            assert not hosted.creates[-1].get("tools"), "it has to answer"
            hosted.say("Enough.")
            hosted.end()
            await chat.finished()
    assert chat.entries[-1] == Speech("agent", "Enough.")
    assert all(SECRET not in text for _, text in hosted.messages)


class Looking(ScriptedHttp):
    """A server whose model makes two calls at once before it answers."""

    async def events(self, api: str, request: dict[str, Any]) -> AsyncGenerator[bytes]:
        if "call_2" not in json.dumps(request):
            for event in CALLS[api]():
                yield f"data: {json.dumps(event)}\n\n".encode()
            return
        without = {name: value for name, value in request.items() if name != "tools"}
        async for event in super().events(api, without):
            yield event


MADE = [("call_1", "app.py:1-1"), ("call_2", "app.py:5-5")]


def _responses_calls() -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": {"id": "r1", "status": "in_progress"}}
    items: list[dict[str, Any]] = []
    for call_id, said in MADE:
        item = {"id": f"fc_{call_id}", "type": "function_call", "call_id": call_id}
        item |= {"name": "read_file", "arguments": ""}
        yield {"type": "response.output_item.added", "item": item}
        written = json.dumps({"input": said})
        delta = "response.function_call_arguments.delta"
        yield {"type": delta, "item_id": item["id"], "delta": written}
        items.append({**item, "arguments": written})
        yield {"type": "response.output_item.done", "item": items[-1]}
    done = {"id": "r1", "status": "completed", "output": items}
    yield {"type": "response.completed", "response": done}


def _chat_calls() -> Iterator[dict[str, Any]]:
    for index, (call_id, said) in enumerate(MADE):
        function = {"name": "read_file", "arguments": json.dumps({"input": said})}
        call = {"index": index, "id": call_id, "type": "function", "function": function}
        yield {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}
    yield {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}


def _messages_calls() -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": {"id": "m"}}
    for index, (call_id, said) in enumerate(MADE):
        block = {"type": "tool_use", "id": call_id, "name": "read_file", "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": block}
        delta = {"type": "input_json_delta", "partial_json": json.dumps({"input": said})}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
    yield {"type": "message_stop"}


CALLS = {"responses": _responses_calls, "chat": _chat_calls, "messages": _messages_calls}


@pytest.mark.parametrize("link", CALLS)
async def test_over_every_link(link: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    server = Looking(apis=(link,), answer="It is 1.")
    async with server.running() as url:
        profile = Profile("far", "custom", url, "m", transport=cast("Any", link))
        settings = Settings(endpoints=(profile,), endpoint="far", guard=False)
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            session.chat.allow(on=True)
            await session.chat.ask("what is one?")
            await session.chat.finished()
            assert exchanges(session.chat.entries)[0].answered.strip() == "It is 1."
            uses = [entry for entry in session.chat.entries if isinstance(entry, ToolUse)]
            assert [use.call.title for use in uses] == ["read app.py:1-1", "read app.py:5-5"]
    first, second = server.bodies
    told = json.dumps(first["tools"])
    assert '"read_file"' in told
    assert '"function"' in told or link == "messages"
    assert "1 def one():" in json.dumps(second)
    assert "5 class Two:" in json.dumps(second)
