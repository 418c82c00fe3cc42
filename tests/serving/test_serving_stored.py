"""Stored responses: retrieved, listed, deleted, and run and cancelled in the background."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.responses import Response, ResponseItemList

from midstream.engine.types import GenerateRequest
from midstream.errors import UserError
from midstream.serving.limits import Limits
from midstream.serving.replay import ReplayModel
from tests.helpers.wire import TOKEN, eventually, peer, running


@asynccontextmanager
async def serving(**options: Any) -> AsyncGenerator[AsyncOpenAI]:
    async with (
        running(options.pop("model", "alpha beta"), **options) as port,
        AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=TOKEN, max_retries=0) as client,
    ):
        yield client


async def test_a_response_is_retrieved_as_it_was() -> None:
    async with serving() as client:
        made = await client.responses.create(input="go", metadata={"a": "b"}, instructions="brief")
        found = await client.responses.retrieve(made.id)
        assert found == made
        Response.model_validate(found.model_dump(), strict=True)
        stream = await client.responses.create(input="go", stream=True)
        ids = [event.response.id async for event in stream if event.type == "response.completed"]
        assert (await client.responses.retrieve(ids[0])).output_text == "alpha beta"


async def test_a_response_of_a_socket_is_retrieved_over_http() -> None:
    async with running() as port, peer(port) as socket:
        await socket.create(store=False)
        hidden = (await socket.terminal())["response"]["id"]
        await socket.create()
        made = (await socket.terminal())["response"]
        async with AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=TOKEN) as client:

            async def stored() -> bool:  # The end is sent before the response is stored.
                try:
                    found = await client.responses.retrieve(made["id"])
                except openai.NotFoundError:
                    return False
                return found.output_text == "one two three"

            await eventually(stored)
            with pytest.raises(openai.NotFoundError, match="was made with store: false"):
                await client.responses.retrieve(hidden)


async def test_a_deleted_response_is_gone_and_nothing_goes_on_from_it() -> None:
    async with serving() as client:
        made = await client.responses.create(input="go")
        await client.responses.delete(made.id)
        for gone in (client.responses.retrieve, client.responses.delete):
            with pytest.raises(openai.NotFoundError, match="not found"):
                await gone(made.id)
        with pytest.raises(openai.BadRequestError, match="not found"):
            await client.responses.create(input="x", previous_response_id=made.id)


async def test_input_items_are_listed_in_pages() -> None:
    items: list[Any] = [
        "text",
        [{"type": "input_text", "text": "parts"}],
    ]
    messages: list[Any] = [{"role": "user", "content": content} for content in items]
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "id": "fc_1"}
    output = {"type": "function_call_output", "call_id": "c", "output": "ok"}
    async with serving() as client:
        made = await client.responses.create(input=[*messages, call, output])
        listed = client.responses.input_items.list
        newest = await listed(made.id)
        ResponseItemList.model_validate(newest.model_dump(exclude_none=True), strict=True)
        assert [item.type for item in newest.data] == [
            "function_call_output",
            "function_call",
            "message",
            "message",
        ]
        oldest = await listed(made.id, order="asc", limit=3)
        texts = [item.content[0].text for item in oldest.data[:2]]  # type: ignore[union-attr]
        assert texts == ["text", "parts"]
        assert oldest.data[2].id == "fc_1"
        rest = [item async for item in listed(made.id, order="asc", limit=1)]
        assert [item.id for item in rest] == [item.id for item in reversed(newest.data)]
        alone = await listed((await client.responses.create(input="only")).id)
        assert alone.data[0].content[0].text == "only"  # type: ignore[union-attr]
        for wrong in ({"limit": 0}, {"limit": 101}, {"order": "up"}, {"after": "none"}):
            with pytest.raises(openai.BadRequestError):
                await listed(made.id, **wrong)  # type: ignore[arg-type]
        with pytest.raises(openai.NotFoundError):
            await listed("resp_none")


async def test_a_background_response_is_polled_until_it_is_there() -> None:
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()

    def script(request: GenerateRequest) -> str:
        asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()
        if request.messages[-1].text == "fail":
            raise UserError("No region.")
        return "alpha beta"

    async with serving(model=ReplayModel(script)) as client:
        made = await client.responses.create(input="go", background=True)
        assert made.status in ("queued", "in_progress")
        assert made.background is True
        assert (await client.responses.retrieve(made.id)).status in ("queued", "in_progress")
        assert (await client.responses.input_items.list(made.id)).data
        failing = await client.responses.create(input="fail", background=True)
        gate.set()
        for response_id, status in ((made.id, "completed"), (failing.id, "failed")):

            async def ended(response_id: str = response_id, status: str = status) -> bool:
                return (await client.responses.retrieve(response_id)).status == status

            await eventually(ended)
        assert (await client.responses.retrieve(made.id)).output_text == "alpha beta"
        error = (await client.responses.retrieve(failing.id)).error
        assert error is not None
        assert error.message == "No region."
        # The response can be continued like any other, and a cancel changes nothing now.
        then = await client.responses.create(input="x", previous_response_id=made.id)
        assert then.status == "completed"
        assert (await client.responses.cancel(made.id)).status == "completed"


async def test_a_background_response_is_cancelled_and_generates_no_more() -> None:
    model = ReplayModel("word " * 100_000, rate=500)
    async with serving(model=model) as client:
        made = await client.responses.create(input="go", background=True)
        waiting = await client.responses.create(input="go", background=True)
        assert (await client.responses.cancel(waiting.id)).status == "cancelled"
        assert (await client.responses.cancel(made.id)).status == "cancelled"
        assert (await client.responses.retrieve(made.id)).output == []
        running_on = await client.responses.create(input="go", background=True)
        await client.responses.delete(running_on.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(running_on.id)
        finished = await client.responses.create(input="go", max_output_tokens=1)
        assert finished.output_text == "word"
        with pytest.raises(openai.BadRequestError, match="Only a response with background: true"):
            await client.responses.cancel(finished.id)


async def test_what_background_cannot_do_is_refused() -> None:
    limits = Limits(background=1)
    model = ReplayModel("word " * 100_000, rate=100)
    async with serving(model=model, limits=limits) as client:
        for fields in ({"stream": True}, {"store": False}):
            with pytest.raises(openai.BadRequestError, match="leave out stream and store"):
                await client.responses.create(input="go", background=True, **fields)  # type: ignore[call-overload]
        await client.responses.create(input="go", background=True)
        with pytest.raises(openai.RateLimitError, match="run in the background"):
            await client.responses.create(input="go", background=True)
        made = client.base_url.port
        async with peer(made or 0) as socket:
            await socket.create(background=True)
            error = (await socket.until("error"))["error"]
            assert error["param"] == "background"
    # Leaving the block ends the server while the response still runs.


async def test_only_so_many_responses_are_kept() -> None:
    async with serving(limits=Limits(stored_responses=2)) as client:
        made = [(await client.responses.create(input=str(n))).id for n in range(3)]
        with pytest.raises(openai.NotFoundError, match="gave way to newer ones"):
            await client.responses.retrieve(made[0])
        assert (await client.responses.retrieve(made[1])).id == made[1]
