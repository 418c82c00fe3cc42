"""Answers that are cut or begin with a thought: their lines, their rows, and the notices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from midstream.edits.rows import RowKind
from midstream.errors import UnavailableError
from midstream.pairing.headless import EditFailedError, Job, Outcome, run_job
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.pairing.status import Turn, TurnStatus
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.quirky import Asked, Quirky, Reply, quirky_socket
from tests.helpers.reading import answer

OLD = """\
def total(items):
    result = 0
    for item in items:
        result += item
    return result
"""
NEW = OLD.replace("+= item", "+= item.price")
API = {"/v1/responses": "responses", "/v1/chat/completions": "chat", "/v1/messages": "messages"}
TRANSPORTS: dict[str, Any] = {
    "websocket": "responses",
    "sse": "responses",
    "chat": "chat",
    "messages": "messages",
}
DRAFT = f"I could write\n\n```python\n{OLD.replace('0', '1')}```\n\nbut no.\n"


class Quiet:
    """Ignores the reports of a job."""

    def started(self, turn: Turn, base: Any, model: str) -> None: ...
    def reading(self, progress: object) -> None: ...

    def waiting(self, sentence: str) -> None: ...
    def disclosed(self, sentence: str) -> None: ...
    def text(self, text: str) -> None: ...
    def file(self, path: str, base: Any) -> None: ...
    def hunk(self, hunk: Any) -> None: ...
    def passed(self, line: int) -> None: ...


async def edit(
    folder: Path,
    transport: Any,
    chunks: Sequence[bytes],
    *,
    breaks: bool = False,
    old: str = OLD,
    cursor: int = 2,
) -> Outcome:
    (folder / "shop.py").write_text(old)
    job = Job(folder, Question("add the price in total", "shop.py", cursor), apply=True)
    http = Quirky(lambda asked: Reply(chunks, breaks=breaks)).running()
    served = quirky_socket(chunks, breaks=breaks) if transport == "websocket" else http
    async with served as url:
        endpoint = Endpoint(url, None, "m", "custom", transport)
        return await run_job(job, Quiet(), settings=Settings(), endpoint=endpoint)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    ("text", "word", "why"),
    [
        (f"<region>\n{NEW}", None, "the reply ended before </region>"),
        (f"```python\n{NEW}", None, "the reply ended inside its code fence"),
        (f"<region>\n{NEW}</region>\n", "max_tokens", "the answer reached its length limit"),
        (f"<region>\n{NEW}</region>\n", "", "without saying that it is complete"),
        (f"<region>\n{NEW}</region>\n", "odd_reason", "odd_reason"),
        ("<region>\n# \ufffd\n" + NEW + "</region>\n", None, "characters were damaged"),
        (NEW.removesuffix("    return result\n"), None, "in no code block"),
        (json.dumps({"region": NEW})[:-9], None, "the reply ended inside its JSON"),
    ],
)  # fmt: skip
async def test_an_answer_that_is_cut_is_never_written(
    transport: str, text: str, word: str | None, why: str, tmp_path: Path
) -> None:
    if (word, transport) == ("", "websocket"):
        pytest.skip("a WebSocket on which nothing more is said stays open")
    with pytest.raises(EditFailedError) as caught:
        await edit(tmp_path, transport, answer(TRANSPORTS[transport], text, word))
    assert why in str(caught.value)
    assert (tmp_path / "shop.py").read_text() == OLD


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    "thought",
    [
        f"<think>\n{DRAFT}</think>\n\n", f"{DRAFT}</think>\n\n", f"[THINK]{DRAFT}[/THINK]",
        f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>",
        f"<region>\n{OLD}</region>\nNo: that is the same.\n</think>\n",
        "shop.py\n<<<<<<< SEARCH\n    result = 0\n=======\n    result = 1\n"
        ">>>>>>> REPLACE\n</think>\n",
    ],
)  # fmt: skip
async def test_the_draft_in_a_thought_is_no_edit(
    transport: str, thought: str, tmp_path: Path
) -> None:
    text = f"{thought}<region>\n{NEW}</region>\n"
    outcome = await edit(tmp_path, transport, answer(TRANSPORTS[transport], text))
    assert (outcome.hunks, outcome.added, outcome.deleted) == (1, 1, 1)
    assert (tmp_path / "shop.py").read_text() == NEW


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("cut", [2, 3, 6])
async def test_what_a_lost_connection_leaves_is_a_cut_answer(
    transport: str, cut: int, tmp_path: Path
) -> None:
    chunks = answer(TRANSPORTS[transport], f"<region>\n{NEW}</region>\n")[:-cut]
    with pytest.raises(EditFailedError):
        await edit(tmp_path, transport, chunks, breaks=True)
    assert (tmp_path / "shop.py").read_text() == OLD


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_connection_that_is_lost_before_any_text_is_no_answer(
    transport: str, tmp_path: Path
) -> None:
    with pytest.raises(UnavailableError):
        await edit(tmp_path, transport, answer(TRANSPORTS[transport], "")[:1], breaks=True)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    "text",
    [
        NEW, json.dumps({"region": NEW}), f"shop.py\n```python\n{NEW}```\n",
        f"Here is the whole file:\n\n```python\nTAX = 0.19\n\n\n{NEW}\n\ntotal([])\n```\n",
        f"<updated_code>\n{NEW}</updated_code>\n", f"<answer>\n{NEW}</answer>",
        f"```python\n{NEW.replace('    result = 0', '    # ... existing code ...')}```\n",
    ],
)  # fmt: skip
async def test_code_is_taken_out_of_what_models_put_around_it(
    transport: str, text: str, tmp_path: Path
) -> None:
    around = "TAX = 0.19\n\n\n{}\n\ntotal([])\n".format
    chunks = answer(TRANSPORTS[transport], text)
    outcome = await edit(tmp_path, transport, chunks, old=around(OLD), cursor=5)
    assert (outcome.hunks, outcome.added, outcome.deleted) == (1, 1, 1)
    assert (tmp_path / "shop.py").read_text() == around(NEW)


LEFT_OUT = "# ... existing code ..."


@pytest.mark.parametrize(
    "short",
    [
        f"```python\n{LEFT_OUT}\n        count(item)\n{LEFT_OUT}\n```\n",
        "```python\n...\n```\n",
    ],
)
async def test_a_model_that_leaves_code_out_is_asked_for_all_of_it(
    short: str, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(OLD)
    told: list[Asked] = []

    def reply(asked: Asked) -> Reply:
        told.extend([asked] if asked.body else [])
        return Reply(answer("chat", f"```python\n{NEW}```\n" if told[1:] else short))

    async with Quirky(reply).running() as url:
        endpoint = Endpoint(url, None, "m", "custom", "chat")
        job = Job(tmp_path, Question("add the price in total", "shop.py", 2), apply=True)
        await run_job(job, Quiet(), settings=Settings(), endpoint=endpoint)
    assert "leave nothing out" in told[1].body["messages"][-1]["content"]
    assert (tmp_path / "shop.py").read_text() == NEW


async def test_three_dots_delete_nothing(tmp_path: Path) -> None:
    with pytest.raises(EditFailedError, match="before any change"):
        await edit(tmp_path, "chat", answer("chat", "..."))
    assert (tmp_path / "shop.py").read_text() == OLD


@pytest.mark.parametrize("form", ["search-replace", "v4a", "str-replace"])
async def test_a_block_that_is_cut_is_never_written(form: str, tmp_path: Path) -> None:
    line, new = "        result += item", "        result += item.price"
    text = {
        "search-replace": f"shop.py\n<<<<<<< SEARCH\n{line}\n=======\n{new}\n",
        "v4a": f"*** Begin Patch\n*** Update File: shop.py\n@@\n-{line}\n+{new}\n",
        "str-replace": json.dumps({"path": "shop.py", "old_string": line, "new_string": new})[:-3],
    }[form]
    with pytest.raises(EditFailedError, match="stopped early"):
        await edit(tmp_path, "chat", answer("chat", text))
    assert (tmp_path / "shop.py").read_text() == OLD


async def test_what_came_of_a_cut_answer_is_flagged_and_can_be_decided(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(OLD)
    chunks = answer("chat", f"<region>\n{NEW}", "abort")
    async with Quirky(lambda asked: Reply(chunks)).running() as url:
        endpoint = Endpoint(url, None, "m", "custom", "chat")
        opened = await PairingSession.open(
            tmp_path, settings=Settings(), endpoint=endpoint, journal=False, watch=False
        )
        async with opened as session:
            turn = await session.turns.instruct(Question("add the price", path="shop.py", cursor=2))
            await session.turns.finished()
            assert turn.status is TurnStatus.FAILED
            assert "stopped early (the server aborted it) after 1 change" in turn.error
            hunks = session.hunks.undecided()
            assert hunks
            assert all(session.turns.doubts(hunk) for hunk in hunks)
            assert {session.reason(hunk) for hunk in hunks} == {"answer cut short"}
            rows = [row for each in session.files["shop.py"].segments for row in each.settled]
            assert all(row.kind is not RowKind.PENDING for row in rows)
    assert (tmp_path / "shop.py").read_text() == OLD


async def test_reasoning_that_used_up_the_tokens_is_named(tmp_path: Path) -> None:
    from tests.helpers.reading import chat_chunk, sse

    thoughts = [sse(chat_chunk(reasoning_content="hmm ")) for _ in range(9)]
    with pytest.raises(EditFailedError, match="its reasoning used up all of the tokens"):
        await edit(tmp_path, "chat", [*thoughts, sse(chat_chunk(finish="length"))])


async def test_a_server_that_takes_no_tools_is_asked_without(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(OLD)
    told: list[Asked] = []

    def reply(asked: Asked) -> Reply:
        told.append(asked)
        if "tools" in asked.body:
            return Reply([b'{"error":{"message":"m does not support tools"}}'], 400)
        return Reply(answer("chat", f"<region>\n{NEW}</region>\n"))

    async with Quirky(reply).running() as url:
        endpoint = Endpoint(url, None, "m", "custom", "chat")
        opened = await PairingSession.open(
            tmp_path, settings=Settings(), endpoint=endpoint, journal=False, watch=False
        )
        async with opened as session:
            session.chat.allow(on=True)
            turn = await session.turns.instruct(Question("add the price", path="shop.py", cursor=2))
            await session.turns.finished()
            assert turn.status is TurnStatus.DONE
            notices = [notice.text for notice in session.status.notices]
    assert ["tools" in each.body for each in told if each.body] == [True, False]
    assert any("takes no tools" in text for text in notices)
