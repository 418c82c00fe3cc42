"""The client of the Agent Client Protocol against an agent that plays scripts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.agents import acp
from midstream.agents.acp import AgentError, AgentProcess, LineBuffer, LoginNeededError
from midstream.agents.messages import (
    ALLOW_ONCE,
    MAX_LISTED,
    AgentChoice,
    AgentPlan,
    AgentSession,
    AgentText,
    AgentToolCall,
    AgentUpdate,
    AgentUsage,
    ChoicesChanged,
    PermissionOption,
    PermissionQuestion,
    ToolDiff,
    UnknownUpdate,
    read_agent,
    read_choices,
    read_question,
    read_update,
)
from tests.helpers.scripted_agent import BEGIN, SESSION, command, sent
from tests.helpers.waiting import until

Script = dict[str, list[dict[str, Any]]]

QUESTION = {
    "toolCall": {"toolCallId": "t1", "title": "Edit a.py", "kind": "edit"},
    "options": [
        {"optionId": "always", "name": "Always", "kind": "allow_always"},
        {"optionId": "x7", "name": "Allow", "kind": "allow_once"},
        {"optionId": "x8", "name": "Reject", "kind": "reject_once"},
    ],
}
END = {"result": {"stopReason": "end_turn"}}
MODE = AgentChoice("mode", "Mode", "mode", "a", (), "session/set_mode")


def says(text: str) -> dict[str, Any]:
    """A step: a piece of a message."""
    content = {"type": "text", "text": text}
    return {"update": {"sessionUpdate": "agent_message_chunk", "content": content}}


class Ear:
    """Hears an agent; answers questions with what ``answer`` returns."""

    def __init__(self) -> None:
        self.updates: list[AgentUpdate] = []
        self.questions: list[PermissionQuestion] = []
        self.asked = asyncio.Event()
        self.answer: Callable[[PermissionQuestion], Awaitable[PermissionOption | None]] = self.allow

    @staticmethod
    async def allow(question: PermissionQuestion) -> PermissionOption | None:
        return question.option(ALLOW_ONCE)

    @staticmethod
    async def think(question: PermissionQuestion) -> PermissionOption | None:
        await asyncio.Event().wait()
        return None

    def agent_updated(self, session_id: str, update: AgentUpdate) -> None:
        assert session_id == SESSION
        self.updates.append(update)

    async def agent_asks(self, question: PermissionQuestion) -> PermissionOption | None:
        self.questions.append(question)
        self.asked.set()
        return await self.answer(question)

    @property
    def text(self) -> str:
        return "".join(u.text for u in self.updates if isinstance(u, AgentText))


async def launched(name: str, program: str, notes: Path) -> AgentProcess:
    """An agent with a program of its own, which is given a file to note something in."""
    started = [sys.executable, "-c", program, str(notes)]
    return await AgentProcess.launch(name, started, notes.parent, Ear())


@asynccontextmanager
async def agent(folder: Path, ear: Ear, script: Script) -> AsyncIterator[AgentProcess]:
    process = await AgentProcess.launch("Scripted", command(folder, script), folder, ear)
    try:
        yield process
    finally:
        await process.close()


async def prompted(folder: Path, ear: Ear, steps: list[dict[str, Any]]) -> str:
    """The end of a turn with these steps."""
    async with agent(folder, ear, {**BEGIN, "session/prompt": steps}) as process:
        await process.initialize()
        session = await process.new_session(folder)
        return await process.prompt(session.session_id, "do it")


async def test_a_turn(tmp_path: Path) -> None:
    """Updates arrive in order, the question is answered by its kind, the turn ends."""
    ear = Ear()
    pieces = [f"{number} " for number in range(200)]
    steps = [*map(says, pieces), {"ask": QUESTION}, says("done"), END]
    assert await prompted(tmp_path, ear, steps) == "end_turn"
    assert ear.text == "".join(pieces) + "done"
    outcome = next(m["result"]["outcome"] for m in sent(tmp_path) if "result" in m)
    assert outcome == {"outcome": "selected", "optionId": "x7"}
    begun = sent(tmp_path)[0]["params"]
    assert begun["clientCapabilities"] == {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": False,
    }


@pytest.mark.parametrize("number", ["3f-uuid", 0, 7, "7", -1, 2**53])
async def test_ids_go_back_as_they_came(tmp_path: Path, number: object) -> None:
    await prompted(tmp_path, Ear(), [{"ask": QUESTION, "id": number}, END])
    reply = next(m for m in sent(tmp_path) if "result" in m)
    assert reply["id"] == number
    assert type(reply["id"]) is type(number)


async def test_cancel_answers_open_questions_and_takes_late_updates(tmp_path: Path) -> None:
    ear = Ear()
    ear.answer = ear.think
    steps = [
        {"ask": QUESTION},
        says("late"),
        {"result": {"stopReason": "cancelled"}},
    ]
    async with agent(tmp_path, ear, {**BEGIN, "session/prompt": steps}) as process:
        await process.initialize()
        session = await process.new_session(tmp_path)
        turn = asyncio.create_task(process.prompt(session.session_id, "do it"))
        await ear.asked.wait()
        process.cancel(session.session_id)
        assert await turn == "cancelled"
    assert ear.text == "late"
    replies = [m for m in sent(tmp_path) if "result" in m]
    assert [reply["result"] for reply in replies] == [{"outcome": {"outcome": "cancelled"}}]
    methods = [m.get("method") for m in sent(tmp_path)]
    assert methods.index("session/cancel") < len(methods) - 1


async def test_a_question_that_is_cancelled_before_it_was_heard_is_answered(tmp_path: Path) -> None:
    """The question and its withdrawal arrive in one piece."""
    ear = Ear()
    ask = {"jsonrpc": "2.0", "id": "q", "method": "session/request_permission", "params": QUESTION}
    withdraw = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "q"}}
    raw = json.dumps(ask) + "\n" + json.dumps(withdraw) + "\n"
    assert await prompted(tmp_path, ear, [{"raw": raw}, {"until": None}, END]) == "end_turn"
    reply = next(m for m in sent(tmp_path) if m.get("id") == "q")
    assert reply["error"]["code"] == -32800
    assert not ear.questions


async def test_a_defect_in_answering_allows_nothing(tmp_path: Path) -> None:
    ear = Ear()

    async def fail(question: PermissionQuestion) -> PermissionOption | None:
        raise ValueError("ours")

    ear.answer = fail
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    await prompted(tmp_path, ear, [{"ask": QUESTION}, END])
    reply = next(m for m in sent(tmp_path) if "result" in m)
    assert reply["result"] == {"outcome": {"outcome": "cancelled"}}
    assert isinstance(reported[0]["exception"], ValueError)


async def test_files_and_terminals_are_refused(tmp_path: Path) -> None:
    request = {"jsonrpc": "2.0", "id": "r", "method": "fs/write_text_file", "params": {"path": "x"}}
    await prompted(tmp_path, Ear(), [{"raw": json.dumps(request) + "\n"}, {"until": None}, END])
    reply = next(m for m in sent(tmp_path) if m.get("id") == "r")
    assert reply["error"]["code"] == -32601


async def test_noise_is_skipped(tmp_path: Path) -> None:
    """A banner, broken JSON, other JSON, deep JSON, a long line and a full log do no harm."""
    ear = Ear()
    steps = [
        {"log": "x" * (1 << 20)},
        {"raw": "Welcome to the agent!\n\n{]\n[1]\nnull\n" + "[" * 5000 + "\n"},
        {"raw": '{"jsonrpc":"2.0","id":[],"result":{}}\n{"id":99,"result":{}}\n'},
        {"raw": '{"method":"session/update"}\n{"method":"session/update","params":[]}\n'},
        {"raw": '{"method":"unheard/of","params":{}}\r\n'},
        says("y" * (5 << 20)),
        {"update": {"sessionUpdate": "dance", "steps": 3}},
        END,
    ]
    assert await prompted(tmp_path, ear, steps) == "end_turn"
    assert len(ear.text) == 5 << 20
    assert ear.updates[-1] == UnknownUpdate("dance", {"sessionUpdate": "dance", "steps": 3})


@pytest.mark.parametrize("method", ["initialize", "session/new", "session/prompt"])
@pytest.mark.parametrize("before", ["nothing", "half a line", "a question"])
async def test_an_agent_that_dies(tmp_path: Path, method: str, before: str) -> None:
    steps: list[dict[str, Any]] = [{"log": "starting\nno such model: gpt-0\n"}]
    if before == "half a line":
        steps.append({"raw": '{"jsonrpc":"2.0","id":1,"resu'})
    elif before == "a question":
        ask = {"jsonrpc": "2.0", "id": "q", "method": "session/request_permission"}
        steps.append({"raw": json.dumps({**ask, "params": QUESTION}) + "\n"})
    ear = Ear()
    ear.answer = ear.think
    async with agent(tmp_path, ear, {**BEGIN, method: [*steps, {"exit": 3}]}) as process:
        with pytest.raises(AgentError) as failed:  # noqa: PT012
            await process.initialize()
            session = await process.new_session(tmp_path)
            await process.prompt(session.session_id, "do it")
        assert str(failed.value) == (
            "Scripted ended (exit code 3); its last words: no such model: gpt-0."
        )
        with pytest.raises(AgentError):  # and at once from then on
            await process.prompt(SESSION, "again")


async def test_an_agent_that_writes_without_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acp, "MAX_TURN_BYTES", 10_000)
    with pytest.raises(AgentError, match="was ended: it wrote more than"):
        await prompted(tmp_path, Ear(), [*[says("x" * 1_000)] * 20, {"until": "never"}])


async def test_the_limit_of_a_turn_is_one_of_each_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acp, "MAX_TURN_BYTES", 10_000)
    ear = Ear()
    async with agent(tmp_path, ear, {**BEGIN, "session/prompt": [says("x" * 6_000), END]}) as one:
        await one.initialize()
        for _ in range(3):
            await one.prompt(SESSION, "go on")
    assert len(ear.text) == 18_000


class Clock:
    """A clock that moves only when code sleeps, or says that it works."""

    def __init__(self) -> None:
        self.now = self.slept = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock, sleep = Clock(), asyncio.sleep

    async def sleep_at_once(seconds: float) -> None:
        clock.now += seconds
        clock.slept += seconds
        await sleep(0)

    monkeypatch.setattr(acp, "time", clock)
    monkeypatch.setattr(asyncio, "sleep", sleep_at_once)
    return clock


async def test_an_agent_that_floods_is_read_at_a_pace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(acp, "BYTES_A_SECOND", 1_000_000)
    monkeypatch.setattr(acp, "MAX_BURST_BYTES", 100_000)
    ear = Ear()
    await prompted(tmp_path, ear, [*[says("x" * 10_000)] * 50, END])
    assert len(ear.text) == 500_000
    assert clock.slept >= 0.4


async def test_others_have_as_much_time_as_what_an_agent_says_takes(
    tmp_path: Path, clock: Clock
) -> None:
    class Slow(Ear):
        def agent_updated(self, session_id: str, update: AgentUpdate) -> None:
            super().agent_updated(session_id, update)
            clock.now += 0.005

    ear = Slow()
    await prompted(tmp_path, ear, [*[says("x")] * 100, END])
    assert len(ear.text) == 100
    assert clock.slept == pytest.approx(0.5)


async def test_a_line_that_never_ends_ends_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acp, "MAX_LINE_BYTES", 10_000)
    with pytest.raises(AgentError, match="was ended: it wrote more than 0 MB in one line"):
        await prompted(tmp_path, Ear(), [*[{"raw": "x" * 1_000}] * 200, {"until": "never"}])


async def test_a_large_message_is_read_in_a_thread_and_in_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_at: dict[bool, set[threading.Thread]] = {False: set(), True: set()}
    read = acp._read_message

    def watched(line: bytes) -> object:
        read_at[len(line) >= acp.LARGE_BYTES].add(threading.current_thread())
        return read(line)

    monkeypatch.setattr(acp, "_read_message", watched)
    ear = Ear()
    large = "y" * acp.LARGE_BYTES
    await prompted(tmp_path, ear, [says("before"), says(large), says("after"), END])
    assert ear.text == f"before{large}after"
    assert read_at[False] == {threading.main_thread()}
    assert read_at[True]
    assert threading.main_thread() not in read_at[True]


async def test_an_update_that_is_too_large_is_left_out_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acp, "MAX_MESSAGE_BYTES", 1_400_000)
    ear = Ear()
    await prompted(tmp_path, ear, [says("before"), says("y" * 1_500_000), says("after"), END])
    assert ear.text.split("\n\n") == [
        "before",
        "A message of 2 MB is left out: it is too large to be read.",
        "after",
    ]


async def test_an_update_of_very_many_values_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes are few, but an object for each takes long to make."""
    monkeypatch.setattr(acp, "MAX_MESSAGE_VALUES", 20_000)
    ear = Ear()
    many = {"update": {"sessionUpdate": "plan", "entries": [[]] * 20_000}}
    await prompted(tmp_path, ear, [many, says(" word" * 20_000), END])
    assert "A message of 0 MB is left out" in ear.text
    assert ear.text.endswith(" word" * 20_000)


async def test_a_question_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acp, "MAX_MESSAGE_BYTES", 10_000)
    ear = Ear()
    call = {**QUESTION["toolCall"], "title": "x" * 20_000}
    ask = {**QUESTION, "toolCall": call}
    await prompted(tmp_path, ear, [{"ask": ask, "id": "q7"}, END])
    reply = next(message for message in sent(tmp_path) if message.get("id") == "q7")
    assert "cannot be read" in reply["error"]["message"]
    assert not ear.questions


async def test_an_answer_that_is_too_large_ends_the_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acp, "MAX_MESSAGE_BYTES", 10_000)
    steps = [{"result": {"stopReason": "x" * 20_000}}]
    with pytest.raises(AgentError, match=r"sent an answer of 0 MB, too large to be read\."):
        await prompted(tmp_path, Ear(), steps)


async def test_questions_beyond_the_limit_are_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acp, "MAX_QUESTIONS", 2)
    ask = {"jsonrpc": "2.0", "method": "session/request_permission", "params": QUESTION}
    asked = "".join(json.dumps({**ask, "id": number}) + "\n" for number in range(4))
    ear = Ear()
    ear.answer = ear.think
    await prompted(tmp_path, ear, [{"raw": asked}, {"until": None}, {"until": None}, END])
    answers = [reply for reply in sent(tmp_path) if reply.get("id") in (2, 3) and "result" in reply]
    assert [reply["result"]["outcome"]["outcome"] for reply in answers] == ["cancelled"] * 2
    assert len(ear.questions) == 2


async def test_only_the_first_of_questions_with_one_id_is_asked(tmp_path: Path) -> None:
    """One answer would count for all of them, and there could be any number."""
    ask = {"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": QUESTION}
    ear = Ear()
    ear.answer = ear.think
    steps = [{"raw": (json.dumps(ask) + "\n") * 3}, {"until": None}, {"until": None}, END]
    await prompted(tmp_path, ear, steps)
    assert len(ear.questions) == 1


async def test_a_question_after_a_stop_is_answered_with_no(tmp_path: Path) -> None:
    ear = Ear()
    script: Script = {
        **BEGIN,
        "session/prompt": [{"until": "session/cancel"}, {"ask": QUESTION, "id": "late"}, END],
        "session/prompt 2": [{"ask": QUESTION, "id": "next"}, END],
    }
    async with agent(tmp_path, ear, script) as process:
        await process.initialize()
        turn = asyncio.create_task(process.prompt(SESSION, "do it"))
        await asyncio.sleep(0)
        process.cancel(SESSION)
        await turn
        assert not ear.questions
        await process.prompt(SESSION, "again")
    outcomes = {m["id"]: m["result"]["outcome"]["outcome"] for m in sent(tmp_path) if "result" in m}
    assert outcomes == {"late": "cancelled", "next": "selected"}


async def test_an_agent_that_does_not_read_is_not_read_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unread answers to its requests would fill the memory; stopping it still works."""
    monkeypatch.setattr(acp, "MAX_UNREAD_BYTES", 100_000)
    far = tmp_path / "far"
    program = (
        "import json, pathlib, sys\n"
        "for number in range(10**9):\n"
        "    asked = {'jsonrpc': '2.0', 'id': 'x' * 1000, 'method': f'fs/{number}'}\n"
        "    print(json.dumps(asked), flush=True)\n"
        "    pathlib.Path(sys.argv[1]).write_text(str(number))\n"
    )

    def stands() -> bool:
        before = far.read_text() if far.exists() else ""
        time.sleep(0.5)
        return bool(before) and far.read_text() == before

    process = await launched("Deaf", program, far)
    await asyncio.to_thread(until, stands)
    await process.close()


async def test_what_the_agent_started_ends_with_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    await prompted(tmp_path, Ear(), [{"spawn": str(pid)}, END])

    def gone() -> bool:
        try:
            os.kill(int(pid.read_text()), 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{pid.read_text()}/stat")
        return status.exists() and status.read_text().split()[2] == "Z"

    await asyncio.to_thread(until, gone)


async def test_a_request_ends_with_an_agent_whose_output_others_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acp, "GRACE_S", 0.2)
    noted = tmp_path / "pid"
    program = (
        "import pathlib, subprocess, sys\n"
        "sys.stdin.readline()\n"
        "daemon = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "pathlib.Path(sys.argv[1]).write_text(f'{daemon.pid}\\n')\n"
        "sys.stdin.read()\n"
    )
    process = await launched("Holder", program, noted)
    asked = asyncio.create_task(process.initialize())
    await asyncio.to_thread(until, lambda: noted.exists() and noted.read_text().endswith("\n"))
    try:
        await process.close()
        await asyncio.sleep(0)
        assert asked.done()
        with pytest.raises(AgentError, match="Holder was ended"):
            await asked
    finally:
        os.kill(int(noted.read_text()), signal.SIGKILL)


async def test_a_program_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"Nobody cannot be started: no-such-agent: No such file"):
        await AgentProcess.launch("Nobody", ["no-such-agent"], tmp_path, Ear())


async def test_another_version_is_named(tmp_path: Path) -> None:
    script: Script = {"initialize": [{"result": {"protocolVersion": 2}}]}
    async with agent(tmp_path, Ear(), script) as process:
        with pytest.raises(AgentError, match="speaks version 2"):
            await process.initialize()


async def test_a_login_happens_elsewhere(tmp_path: Path) -> None:
    error = {"error": {"code": -32000, "message": "Authentication required"}}
    async with agent(tmp_path, Ear(), {**BEGIN, "session/new": [error]}) as process:
        await process.initialize()
        with pytest.raises(LoginNeededError, match=r"\(A website\).*separate terminal"):
            await process.new_session(tmp_path)


async def test_a_refusal_gives_its_details(tmp_path: Path) -> None:
    data = {"details": "Model gpt-0\nis not known."}
    error = {"error": {"code": -32603, "message": "Internal error", "data": data}}
    async with agent(tmp_path, Ear(), {**BEGIN, "session/new": [error]}) as process:
        await process.initialize()
        with pytest.raises(AgentError) as failed:
            await process.new_session(tmp_path)
    assert str(failed.value) == ("Scripted refused: Internal error: Model gpt-0 is not known.")


@pytest.mark.parametrize(
    "refusal",
    [
        {"code": "E42", "message": "no"},
        {"code": 1.5, "message": ["no"]},
        {"message": None, "data": 3},
        "no",
        7,
    ],
)
async def test_an_odd_error_counts_as_a_refusal(tmp_path: Path, refusal: object) -> None:
    script = {**BEGIN, "session/prompt": [{"error": refusal}]}
    async with agent(tmp_path, Ear(), script) as process:
        await process.initialize()
        with pytest.raises(AgentError, match="refused: "):
            await process.prompt(SESSION, "go")


async def test_reasons_and_names_without_end_are_cut(tmp_path: Path) -> None:
    long = "so long\n" * 1_000
    error = {"code": -32000, "message": long, "data": {"details": long}}
    info = {"protocolVersion": 1, "agentInfo": {"name": long, "version": long}}
    script: Script = {
        "initialize": [{"result": {**info, "authMethods": [{"name": long}] * 20}}],
        "session/new": [{"error": error}],
        "session/set_mode": [{"error": {**error, "code": 1}}],
        "session/prompt": [{"result": {"stopReason": long}}],
    }
    async with agent(tmp_path, Ear(), script) as process:
        said = await process.initialize()
        with pytest.raises(LoginNeededError) as wanted:
            await process.new_session(tmp_path)
        with pytest.raises(AgentError) as refused:
            await process.choose(AgentSession(SESSION, ()), MODE, "x")
        texts = [said.name, said.version, str(wanted.value), str(refused.value)]
        texts.append(await process.prompt(SESSION, "go"))
    assert [text for text in texts if len(text) > 2_000 or "\n" in text] == []


async def test_an_answer_that_cannot_be_read_ends_the_request(tmp_path: Path) -> None:
    lines = "".join(f'{{"id":{number},"result":{{"a":1e400}}}}\n' for number in range(9))
    with pytest.raises(AgentError, match="Scripted sent an answer that cannot be read"):
        await prompted(tmp_path, Ear(), [{"raw": lines}, says("late")])


@pytest.mark.parametrize("number", [10**400, -1, True, None, "7", 1e300])
def test_an_odd_number_counts_as_absent(number: object) -> None:
    data = {"sessionUpdate": "usage_update", "used": number, "cost": {"amount": number}}
    assert read_update({**data, "size": 200_000.0}) == AgentUsage(0, 200_000)


async def test_choices_are_set_the_way_they_were_offered(tmp_path: Path) -> None:
    option = {"id": "effort", "name": "Effort", "type": "select", "currentValue": "low"}
    values = [{"group": "g", "name": "G", "options": [{"value": "high", "name": "High"}]}]
    begun = {
        "sessionId": SESSION,
        "configOptions": [{**option, "options": values}],
        "modes": {"currentModeId": "ask", "availableModes": [{"id": "yolo", "name": "Yolo"}]},
        "models": {"currentModelId": "m1", "availableModels": [{"modelId": "m2", "name": "M2"}]},
    }
    changed = {**option, "currentValue": "high", "options": values}
    script: Script = {
        **BEGIN,
        "session/new": [{"result": begun}],
        "session/set_config_option": [{"result": {"configOptions": [changed]}}],
        "session/set_mode": [{"result": {}}],
        "session/set_model": [{"result": None}],
    }
    async with agent(tmp_path, Ear(), script) as process:
        await process.initialize()
        session = await process.new_session(tmp_path)
        effort, mode, model = session.choices
        assert [value.value for value in effort.values] == ["high"]
        session = await process.choose(session, mode, "yolo")
        session = await process.choose(session, model, "m2")
        assert [choice.current for choice in session.choices] == ["low", "yolo", "m2"]
        session = await process.choose(session, effort, "high")
        assert [choice.current for choice in session.choices] == ["high", "yolo", "m2"]
    parameters = [m["params"] for m in sent(tmp_path)[2:]]
    assert parameters == [
        {"sessionId": SESSION, "modeId": "yolo"},
        {"sessionId": SESSION, "modelId": "m2"},
        {"sessionId": SESSION, "configId": "effort", "value": "high"},
    ]


def test_an_update_replaces_what_it_names() -> None:
    """As Claude's adapter does: an empty call, then its content, then its end without content."""
    diff = {"type": "diff", "path": "/p/a.py", "oldText": None, "newText": "x"}
    text = {"type": "content", "content": {"type": "text", "text": "ok"}}
    messages = (
        {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Edit", "content": []},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "content": [diff, text]},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": None, "content": None},
    )
    call = AgentToolCall("t")
    for message in messages:
        update = read_update(message)
        assert isinstance(update, AgentToolCall)
        call = call.updated(update)
    assert call.diffs == (ToolDiff("/p/a.py", None, "x"),)
    assert (call.title, call.status, call.text) == ("Edit", "completed", "ok")


def test_the_beginning_of_an_endless_plan_is_read() -> None:
    plan = read_update({"sessionUpdate": "plan", "entries": [{}] * 100_000})
    assert isinstance(plan, AgentPlan)
    assert len(plan.steps) == MAX_LISTED


def test_changed_choices_are_read() -> None:
    update = read_update({"sessionUpdate": "config_option_update", "configOptions": []})
    assert update == ChoicesChanged(())


@given(st.data())
def test_lines_come_out_whole_however_they_are_split(data: st.DataObject) -> None:
    lines = data.draw(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b""))))
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    buffer = LineBuffer()
    got: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got += buffer.feed(stream[start:end])
    assert got == [line for line in lines if line]
    assert buffer.unended == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
KINDS = (
    "agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "tool_call",
    "tool_call_update", "plan", "usage_update", "available_commands_update",
    "config_option_update", "current_mode_update", "other",
)  # fmt: skip
NAMES = (
    "content", "toolCallId", "title", "kind", "status", "locations", "rawInput", "entries", "used",
    "size", "cost", "availableCommands", "configOptions", "options", "modes", "models", "toolCall",
    "availableModes", "availableModels", "currentModeId", "sessionId", "agentInfo", "authMethods",
    "agentCapabilities", "type", "text", "path", "oldText", "newText", "amount", "value", "name",
)  # fmt: skip
FIELDS = st.recursive(
    JSON,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(NAMES), FIELDS), st.sampled_from(KINDS) | JSON)
def test_nothing_that_an_agent_sends_is_an_error(data: dict[str, Any], kind: object) -> None:
    assert read_update({"sessionUpdate": kind, **data}) is not None
    read_choices(data)
    read_question(data)
    read_agent(data)
