"""Calls that a client forces: made in the form that was asked for, or refused in a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError
from test_serving_sdk import validate

from midstream.edits.apply import apply_reply
from midstream.edits.request import RegionRequest, parse_request, render_follow_up, render_request
from midstream.engine.types import GenerateRequest
from midstream.serving.replay import ReplayModel
from midstream.serving.rewrites import fenced_request
from tests.helpers.wire import TOKEN, peer, running

PATCH = {"type": "custom", "name": "apply_patch", "description": "Edits files."}
NOTE = {"type": "custom", "name": "note"}
SHELL = {"type": "function", "name": "shell", "parameters": {"type": "object"}}
FORCE_SHELL = {"type": "function", "name": "shell"}
FORCE_PATCH = {"type": "custom", "name": "apply_patch"}

REGION = RegionRequest(
    "rename total to amount",
    "def f(values):\n    total = sum(values)\n    return total\n",
    path="src/sums.py",
    before="import os\n\n\n",
    after="\n\nprint(f([1]))\n",
)


def rename(request: GenerateRequest) -> str:
    """What an edit model does: it rewrites the last region as the last instruction says."""
    region = parse_request(request.messages[-1].text)
    if region is None:
        return ""  # An edit model goes on after what it has written, and it has written all.
    _, old, _, new = region.instruction.split()
    return region.region.replace(old, new)


def editor() -> ReplayModel:
    return ReplayModel(rename, facts={"prompt": "edit-region", "edit_format": "region"})


def chat(text: str) -> ReplayModel:
    return ReplayModel(text, facts={"prompt": "chat"})


def sdk(port: int) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=TOKEN, max_retries=0)


@pytest.mark.parametrize("choice", [FORCE_PATCH, "required"])
async def test_an_edit_model_answers_a_forced_apply_patch_with_a_patch(choice: Any) -> None:
    async with running(editor()) as port, peer(port) as client:
        tools = [PATCH] if choice == "required" else [SHELL, PATCH]
        await client.create(render_request(REGION), tools=tools, tool_choice=choice)
        response = (await client.terminal())["response"]
        validate(client.seen)
    (call,) = response["output"]
    assert (call["type"], call["name"]) == ("custom_tool_call", "apply_patch")
    assert call["input"] == (
        "*** Begin Patch\n*** Update File: src/sums.py\n@@\n import os\n \n \n def f(values):\n"
        "-    total = sum(values)\n-    return total\n+    amount = sum(values)\n"
        "+    return amount\n \n \n print(f([1]))\n*** End Patch\n"
    )
    deltas = [e["delta"] for e in client.seen if "custom_tool_call_input.delta" in e["type"]]
    assert "".join(deltas) == call["input"]
    before = REGION.before + REGION.region + REGION.after
    result = apply_reply(call["input"], {"src/sums.py": before.encode()}.get)
    assert result.changes == {"src/sums.py": before.replace("total", "amount").encode()}


@pytest.mark.parametrize(
    ("region", "sentence"),
    [
        (RegionRequest("rename total to amount", REGION.region), "does not say which file"),
        (RegionRequest("rename x to x", REGION.region, path="a.py"), "changed nothing"),
    ],
)
async def test_a_patch_that_cannot_be_made_is_refused_in_a_sentence(
    region: RegionRequest, sentence: str
) -> None:
    async with running(editor()) as port, sdk(port) as client:
        with pytest.raises(BadRequestError, match=sentence):
            await client.responses.create(
                input=render_request(region),
                tools=[PATCH],
                tool_choice=FORCE_PATCH,  # type: ignore[list-item]
            )


async def test_an_edit_model_refuses_a_forced_function_before_it_begins() -> None:
    async with running(editor()) as port, sdk(port) as client, peer(port) as socket:
        for choice in (FORCE_SHELL, "required"):
            with pytest.raises(BadRequestError, match="only rewrites marked regions and cannot"):
                await client.responses.create(
                    input=render_request(REGION),
                    tools=[SHELL],
                    tool_choice=choice,  # type: ignore[list-item]
                )
        await socket.create(render_request(REGION), tools=[SHELL], tool_choice=FORCE_SHELL)
        assert (await socket.until("error"))["error"]["param"] == "tool_choice"
        assert "response.created" not in socket.types


@pytest.mark.parametrize(
    "text",
    [
        'Sure:\n<tool_call>\n{"name": "shell", "arguments": {"command": "ls"}}\n</tool_call>\n',
        '{"command": "ls"}',
        '```json\n{"command": "ls"}\n```',
        '{"name": "shell", "arguments": {"command": "ls"}}',
        '{"name": "shell", "parameters": {"command": "ls"}}',
        '{"name": "shell", "arguments": "{\\"command\\": \\"ls\\"}"}',
        '{"type": "function", "function": {"name": "shell", "arguments": {"command": "ls"}}}',
        '<tool_call>{"name": "shell", "parameters": {"command": "ls"}}</tool_call>',
    ],
)
async def test_a_chat_model_makes_a_forced_function_call(text: str) -> None:
    async with running(chat(text)) as port, peer(port) as client:
        await client.create("go", tools=[SHELL, NOTE], tool_choice=FORCE_SHELL)
        response = (await client.terminal())["response"]
        validate(client.seen)
    (call,) = response["output"]
    assert (call["type"], call["arguments"]) == ("function_call", '{"command":"ls"}')


@pytest.mark.parametrize(
    ("tools", "choice", "wanted"),
    [
        ([SHELL], FORCE_SHELL, "shell"),
        ([PATCH], FORCE_PATCH, "apply_patch"),
        ([SHELL, PATCH], "required", "a tool"),
    ],
)
async def test_a_chat_model_that_does_not_call_fails_with_the_way_out(
    tools: list[Any], choice: Any, wanted: str
) -> None:
    async with running(chat("I would rather talk.")) as port, sdk(port) as client:
        with pytest.raises(BadRequestError, match=f"without calling {wanted}; ask again"):
            await client.responses.create(input="go", tools=tools, tool_choice=choice)


@pytest.mark.parametrize(
    ("tools", "choice", "sentence"),
    [
        ([SHELL], {"type": "function", "name": "other"}, "wants the tool 'other'.*offered: shell"),
        ([SHELL], {"type": "custom", "name": "shell"}, "wants the tool 'shell'"),
        ([{"type": "web_search"}], {"type": "web_search"}, "wants the tool 'web_search'"),
        ([], "required", "no function and no custom tool"),
        ([SHELL], "always", "must be"),
    ],
)
async def test_a_choice_of_a_tool_that_is_not_there_is_refused(
    tools: list[Any], choice: Any, sentence: str
) -> None:
    async with running(chat("x")) as port, sdk(port) as client:
        with pytest.raises(BadRequestError, match=sentence):
            await client.responses.create(input="go", tools=tools, tool_choice=choice)


@pytest.mark.parametrize("words", ["rename f to g", render_follow_up("rename f to g")])
async def test_a_follow_up_to_a_finished_rewrite_changes_its_result(words: str) -> None:
    async with running(editor()) as port, sdk(port) as client, peer(port) as socket:
        first = await client.responses.create(input=render_request(REGION))
        then = await client.responses.create(input=words, previous_response_id=first.id)
        assert then.output_text == REGION.region.replace("total", "amount").replace("f", "g")
        # The same with the whole conversation, as clients without stored responses send it.
        items = [item.model_dump() for item in first.output]
        asked = {"role": "user", "content": render_request(REGION)}
        said = {"role": "user", "content": words}
        again = await client.responses.create(input=[asked, *items, said], store=False)  # type: ignore[list-item]
        assert again.output_text == then.output_text
        third = await client.responses.create(
            input="rename amount to rate", previous_response_id=then.id
        )
        assert third.output_text == then.output_text.replace("amount", "rate")
        # What was stopped is continued and not begun again.
        await socket.create([asked, {"role": "assistant", "content": "def f(v"}, said])
        await socket.terminal()
        assert socket.text() == ""


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("rename total to amount\n\n```python\nCODE```\n", ""),
        ("```python src/sums.py\nCODE```\nrename total to amount", "src/sums.py"),
        ("~~~~ src/sums.py\nCODE~~~~\nrename total to amount\n", "src/sums.py"),
    ],
)
async def test_an_instruction_with_fenced_code_is_carried_out(text: str, path: str) -> None:
    code = REGION.region
    async with running(editor()) as port, sdk(port) as client:
        asked = text.replace("CODE", code)
        made = await client.responses.create(input=asked)
        assert made.output_text == code.replace("total", "amount")
        then = await client.responses.create(
            input="rename amount to rate", previous_response_id=made.id
        )
        assert then.output_text == code.replace("total", "rate")
        if path:
            forced = await client.responses.create(
                input=asked,
                tools=[PATCH],  # type: ignore[list-item]
                tool_choice=FORCE_PATCH,  # type: ignore[arg-type]
            )
            call: Any = forced.output[0]
            assert f"*** Update File: {path}\n" in call.input


async def test_words_alone_and_several_blocks_are_left_to_the_model() -> None:
    for text in ("rename a to b", "```\nx\n```\n", "use\n```\na\n```\nfor\n```\nb\n```\n"):
        assert fenced_request(text) is None


async def test_a_follow_up_to_a_patch_is_a_patch_of_its_result() -> None:
    options: dict[str, Any] = {"tools": [PATCH], "tool_choice": FORCE_PATCH}
    async with running(editor()) as port, sdk(port) as client:
        first = await client.responses.create(input=render_request(REGION), **options)
        call: Any = first.output[0]
        done: Any = {
            "type": "custom_tool_call_output",
            "call_id": call.call_id,
            "output": "Done!",
        }
        # A client that runs tools asks again with nothing but the result.
        told = await client.responses.create(input=[done], previous_response_id=first.id, **options)
        assert told.output_text == "The tool answered: Done!"
        said: Any = {"role": "user", "content": "rename amount to rate"}
        third = await client.responses.create(
            input="rename amount to rate", previous_response_id=told.id
        )
        assert third.output_text == REGION.region.replace("total", "rate")
        second = await client.responses.create(
            **options, input=[done, said], previous_response_id=first.id
        )
        again: Any = second.output[0]
    assert "-    amount = sum(values)\n" in again.input
    assert "+    rate = sum(values)\n" in again.input
