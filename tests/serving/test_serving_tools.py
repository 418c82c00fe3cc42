"""Tools: a model's text becomes calls, however it is cut; and the description for the model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_serving_sdk import validate

from midstream.engine.types import GenerateRequest
from midstream.serving.replay import ReplayModel
from midstream.serving.tools import (
    CallEnd,
    CallInput,
    CallSplitter,
    CallStart,
    Choice,
    Step,
    TextStep,
    read_tools,
    tool_instructions,
)
from tests.helpers.wire import peer, running

PATCH = {"type": "custom", "name": "apply_patch", "description": "Edits files."}
NOTE = {"type": "custom", "name": "note", "description": "Takes a note."}
SHELL = {"type": "function", "name": "shell", "parameters": {"type": "object"}}
TOOLS: list[dict[str, Any]] = [PATCH, NOTE, SHELL]
TYPES = {"apply_patch": "custom", "note": "custom", "shell": "function"}

PATCH_TEXT = "*** Begin Patch\n*** Update File: a.py\n-x\n+y\n*** End Patch\n"
SHELL_CALL = '<tool_call>\n{"name": "shell", "arguments": {"command": "ls"}}\n</tool_call>\n'


def split(pieces: list[str], tools: dict[str, str] = TYPES) -> list[Step]:
    """The steps, with neighbours of one kind joined."""
    splitter = CallSplitter(tools)
    found = [step for piece in pieces for step in splitter.feed(piece)] + splitter.finish()
    joined: list[Step] = []
    for step in found:
        last = joined[-1] if joined else None
        if isinstance(step, TextStep | CallInput) and type(last) is type(step):
            assert isinstance(last, TextStep | CallInput)
            joined[-1] = type(step)(last.text + step.text)
        else:
            joined.append(step)
    return joined


def test_a_message_a_patch_and_a_function_call() -> None:
    assert split([f"Here:\n{PATCH_TEXT}\n{SHELL_CALL}done"]) == [
        TextStep("Here:\n"),
        CallStart("apply_patch", True),
        CallInput(PATCH_TEXT),
        CallEnd(),
        TextStep("\n"),
        CallStart("shell", False),
        CallInput('{"command":"ls"}'),
        CallEnd(),
        TextStep("done"),
    ]


def test_the_input_of_a_custom_tool_is_what_stands_between_its_tags() -> None:
    assert split(['<tool_call name="note">\na\n  b\n</tool_call>']) == [
        CallStart("note", True),
        CallInput("a\n  b\n"),
        CallEnd(),
    ]


@pytest.mark.parametrize("name", ["arguments", "parameters"])
@pytest.mark.parametrize(
    "form",
    [
        "<tool_call>{}</tool_call>\n",
        "<tool_call> {} </tool_call>",
        "<tool_call>\n{}</tool_call>\n",
        "<tool_call>{}\n</tool_call>\n",
    ],
)
def test_a_function_call_may_stand_on_one_line(form: str, name: str) -> None:
    call = f'{{"name": "shell", "{name}": {{"command": "ls"}}}}'
    text = form.replace("{}", call)
    expected = [CallStart("shell", False), CallInput('{"command":"ls"}'), CallEnd()]
    for size in (1, 7, len(text)):
        assert split([text[at : at + size] for at in range(0, len(text), size)]) == expected
    assert split([text.rstrip() * 2]) == expected * 2


def test_what_is_no_call_of_a_tool_on_offer_stays_text() -> None:
    for text in (
        '<tool_call name="other">\nx\n</tool_call>\n',
        "<tool_call>\nnot json\n</tool_call>\n",
        '<tool_call>\n{"name": "other", "arguments": {}}\n</tool_call>\n',
        '<tool_call>{"name": "other"}</tool_call>\n',
        '<tool_call>{"name": "shell"',
        "say <tool_call> in a line\n",
        "<tool_call>\nnever ends",
        "<tool_calling\n",
    ):
        assert split([text]) == [TextStep(text)]
    assert split([PATCH_TEXT], {"shell": "function"}) == [TextStep(PATCH_TEXT)]


def test_text_is_passed_on_at_once_unless_it_could_begin_a_call() -> None:
    splitter = CallSplitter(TYPES)
    assert splitter.feed("Hello") == [TextStep("Hello")]
    assert splitter.feed(" <tool_call>") == [TextStep(" <tool_call>")]
    assert splitter.feed("\n<to") == [TextStep("\n")]
    assert splitter.feed("ast>") == [TextStep("<toast>")]


LINES = st.sampled_from(
    [
        *PATCH_TEXT.splitlines(keepends=True),
        *SHELL_CALL.splitlines(keepends=True),
        '<tool_call name="note">\n',
        "plain\n",
        "\n",
        "*** Begin",
        "<tool",
        "a\u2028b\rc\n",
    ]
)


@given(st.lists(LINES, max_size=20), st.data())
def test_the_pieces_make_no_difference_and_no_text_is_lost(
    lines: list[str], data: st.DataObject
) -> None:
    text = "".join(lines)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=12)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole = split([text])
    assert split(pieces) == whole
    if not any(isinstance(step, CallStart) for step in whole):
        assert "".join(step.text for step in whole if isinstance(step, TextStep)) == text


def test_a_chat_model_is_told_of_its_tools() -> None:
    def instructions(tools: list[dict[str, Any]], choice: Choice) -> str:
        return tool_instructions(tools, read_tools(tools, choice))

    told = instructions(TOOLS, "auto")
    assert '"name":"shell"' in told
    assert "*** Begin Patch" in told
    assert '<tool_call name="note">' in told
    assert instructions(TOOLS, "none") == instructions([], None) == ""
    forced = instructions(TOOLS, {"type": "function", "name": "shell"})
    assert "Call shell now" in forced
    assert "note" not in forced
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [NOTE]}
    assert "shell" not in instructions(TOOLS, allowed)


async def test_calls_are_items_of_their_own_and_the_conversation_goes_on_from_them() -> None:
    seen: list[GenerateRequest] = []

    def script(request: GenerateRequest) -> str:
        seen.append(request)
        return f"I patch.\n{PATCH_TEXT}\n{SHELL_CALL}" if len(seen) == 1 else "Thanks."

    model = ReplayModel(script, rate=2000, facts={"prompt": "chat"})
    async with running(model) as port, peer(port) as client:
        await client.create("go", tools=TOOLS)
        response = (await client.terminal())["response"]
        validate(client.seen)
        kinds = [item["type"] for item in response["output"]]
        assert kinds == ["message", "custom_tool_call", "function_call"]
        assert response["output"][1]["input"] == PATCH_TEXT
        assert response["output"][2]["arguments"] == '{"command":"ls"}'
        done = [e["item"] for e in client.seen if e["type"] == "response.output_item.done"]
        assert done == response["output"]
        results = [
            {"type": f"{item['type']}_output", "call_id": item["call_id"], "output": "ok"}
            for item in response["output"][1:]
        ]
        await client.create(results, previous_response_id=response["id"], tools=TOOLS)
        assert (await client.terminal())["response"]["output"][0]["type"] == "message"
    assert "# Tools" in seen[0].instructions
    assert [m.role for m in seen[1].messages] == ["user", "assistant", "tool", "tool"]
    assert seen[1].messages[1].text == f"I patch.\n{PATCH_TEXT}\n{SHELL_CALL}"


async def test_one_call_at_a_time_if_the_client_wants_it() -> None:
    async with running(SHELL_CALL * 50, rate=500) as port, peer(port) as client:
        await client.create("go", tools=TOOLS, parallel_tool_calls=False)
        response = (await client.terminal())["response"]
    assert [item["type"] for item in response["output"]] == ["function_call"]
    assert response["status"] == "completed"
    assert response["usage"]["output_tokens"] < 200


async def test_an_interrupt_drops_the_open_item_and_keeps_the_whole_ones() -> None:
    text = SHELL_CALL + "word " * 5000
    async with running(text, rate=500) as port, peer(port) as client:
        await client.create("go", tools=TOOLS)
        created = await client.until("response.created")
        await client.until("response.output_text.delta")
        await client.send(type="response.interrupt", response_id=created["response"]["id"])
        dropped = await client.until("response.output_item.interrupted")
        ended = (await client.terminal())["response"]
    assert dropped["output_index"] == 1
    assert dropped["response_id"] == ended["id"]
    assert [item["type"] for item in ended["output"]] == ["function_call"]
