"""An edit model behind a client that reads and patches its own files, as Codex does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from test_serving_forced_calls import PATCH, editor, rename
from test_serving_sdk import validate

from midstream.edits.apply import apply_reply
from midstream.engine.types import GenerateRequest
from midstream.serving.replay import ReplayGeneration, ReplayModel
from tests.helpers.wire import Peer, peer, running

COMMAND: Final = {"type": "function", "name": "exec_command", "parameters": {"type": "object"}}
EXEC: Final = {"type": "custom", "name": "exec", "description": "await tools.exec_command(...)"}
SOURCE: Final = "def f(values):\n    total = sum(values)\n    return total\n"
ASK: Final = "rename total to amount"
"""What `rename` reads; the file is named before it."""


def words(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


FIRST: Final = [words("<environment_context>\n  <cwd>/x.py</cwd>\n</environment_context>")]


def in_words(request: GenerateRequest) -> str:
    """`rename`, of an instruction that also names the file."""
    asked = request.messages[-1].text.replace(f"{ASK} in sums.py", ASK)
    return rename(GenerateRequest((type(request.messages[-1])("user", asked),)))


def edit_model() -> ReplayModel:
    facts = {"prompt": "edit-rewrite", "edit_format": "region", "languages": "python"}
    return ReplayModel(in_words, facts={**facts, "max_region_lines": "200"})


def result(call: dict[str, Any], text: str) -> dict[str, Any]:
    kind = f"{call['type']}_output"
    return {"type": kind, "call_id": call["call_id"], "output": f"Output:\n{text}"}


def shell(command: str, folder: Path) -> str:
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, check=False)
    return (done.stdout + done.stderr).decode()


def patched(call: dict[str, Any]) -> str:
    """SOURCE after a call of any form."""
    text = call["input"] if call["type"] == "custom_tool_call" else json.loads(call["arguments"])
    if isinstance(text, dict):
        head, _, text = text["cmd"].partition("\n")
        assert head == "apply_patch <<'END_OF_PATCH'"
        text = text.removesuffix("END_OF_PATCH\n")
    elif call["name"] == "exec":
        text = json.loads(text.partition("tools.apply_patch(")[2].partition(");\n")[0])
    return apply_reply(text, {"sums.py": SOURCE.encode()}.get).changes["sums.py"].decode()


def command_of(call: dict[str, Any]) -> str:
    if call["type"] == "function_call":
        return json.loads(call["arguments"])["cmd"]
    return json.loads(call["input"].partition("tools.exec_command(")[2].partition(");\n")[0])["cmd"]


async def asked(client: Peer, items: list[Any], **fields: Any) -> dict[str, Any]:
    await client.create(items, **fields)
    response = (await client.terminal())["response"]
    validate(client.seen)
    client.seen.clear()
    return response


@pytest.mark.parametrize("continued", [False, True])
@pytest.mark.parametrize(
    ("tools", "first"),
    [
        ([COMMAND], []),
        ([COMMAND, PATCH], []),
        (
            None,
            [
                {
                    "type": "additional_tools",
                    "role": "developer",
                    "tools": [{"type": "namespace", "name": "functions", "tools": [EXEC]}],
                }
            ],
        ),
    ],
    ids=["command", "custom", "script"],
)
async def test_it_reads_the_file_and_answers_with_a_patch(
    tmp_path: Path, tools: Any, first: list[Any], continued: bool
) -> None:
    (tmp_path / "sums.py").write_text(SOURCE)
    seen: list[Any] = [*first, *FIRST, words(f"{ASK} in sums.py")]
    known = ""
    async with running(edit_model()) as port, peer(port) as client:

        async def step(*items: dict[str, Any]) -> dict[str, Any]:
            nonlocal known
            seen.extend(items)
            fields: dict[str, Any] = {"tools": tools} if tools is not None else {}
            if continued and known:
                response = await asked(client, list(items), previous_response_id=known, **fields)
            else:
                response = await asked(client, list(seen), **fields)
            known = response["id"]
            (item,) = response["output"]
            if not continued:
                seen.append(item)
            return item

        read = await step()
        if tools is None:
            assert (read["name"], read["namespace"]) == ("exec", "functions")
        call = await step(result(read, shell(command_of(read), tmp_path)))
        assert patched(call) == SOURCE.replace("total", "amount")
        last = await step(result(call, "Success. Updated the following files:\nM sums.py"))
    assert last["content"][0]["text"] == (
        "The tool answered: Success. Updated the following files: M sums.py"
    )


async def one_answer(
    items: list[Any], model: ReplayModel | None = None, tools: Any = (COMMAND, PATCH)
) -> Any:
    async with running(model or edit_model()) as port, peer(port) as client:
        response = await asked(client, items, tools=list(tools))
    (item,) = response["output"]
    return item


@pytest.mark.parametrize(
    ("named", "read"),
    [
        ("sums.py", "sums.py"), ("./sums.py", "sums.py"), ("@sums.py", "sums.py"),
        ("`@./src/sums.py`", "src/sums.py"), ("/home/me/sums.py", "/home/me/sums.py"),
    ],
)  # fmt: skip
async def test_a_file_is_found_however_it_is_named(named: str, read: str) -> None:
    for text in (f"in {named}, {ASK}", f"{named}: {ASK}", f"{ASK} in {named}."):
        assert f"&& cat {read} &&" in json.dumps(await read_call(text))


async def text_of(items: list[Any], model: ReplayModel | None = None) -> str:
    return (await one_answer(items, model))["content"][0]["text"]


async def read_call(request: str) -> Any:
    return await one_answer([words(request)])


@pytest.mark.parametrize(
    ("request_text", "sentence"),
    [
        ("What is a monad?", "Name the file to change"),
        ("rename a to b in web/app.js", "edits Python only, and web/app.js is something else"),
    ],
)
async def test_what_it_cannot_do_is_said_in_a_sentence(request_text: str, sentence: str) -> None:
    assert sentence in await text_of([words(request_text)])


@pytest.mark.parametrize(
    ("printed", "sentence"),
    [
        ("cat: sums.py: No such file or directory", "could not be read. The tool answered: cat: s"),
        ("*** File, 900 bytes\nx = 1\n…9 tokens truncated…\n\n*** End of file", "did not arrive"),
        ("*** File, 7 bytes\nx = 1\r\n\n*** End of file", "CRLF line endings"),
        (
            f"*** File, {len(SOURCE) * 99} bytes\n{SOURCE * 99}\n*** End of file",
            "name the function or class to change (up to 200 lines)",
        ),
    ],
)
async def test_a_file_that_it_cannot_take_is_not_patched(printed: str, sentence: str) -> None:
    ask = f"{ASK} in sums.py"
    call = await read_call(ask)
    assert sentence in await text_of([words(ask), call, result(call, printed)])


async def test_only_the_named_definition_of_a_long_file_is_rewritten() -> None:
    other = "".join(f"def f{n}(values):\n    total = 1\n    return total\n\n\n" for n in range(99))
    source, ask = f"{other}{SOURCE}", f"in sums.py, for f: {ASK}"
    request: list[str] = []

    def note(asked: GenerateRequest) -> str:
        request.append(asked.messages[-1].text)
        return SOURCE.replace("total", "amount")

    model = ReplayModel(note, facts=edit_model().facts)
    call = await read_call(ask)
    printed = f"*** File, {len(source)} bytes\n{source}\n*** End of file\n"
    made = await one_answer([words(ask), call, result(call, printed)], model)
    result_ = apply_reply(made["input"], {"sums.py": source.encode()}.get)
    assert result_.changes["sums.py"].decode() == other + SOURCE.replace("total", "amount")
    assert f'<region path="sums.py" language="python">\n{SOURCE}</region>' in request[0]


class Unsure(ReplayModel):
    """Says that its answer is probably wrong."""

    def start(self, request: GenerateRequest) -> ReplayGeneration:
        generation = super().start(request)
        generation.usage.confidence = 0.4
        return generation


async def test_a_doubtful_patch_is_shown_and_applied_on_demand() -> None:
    model = Unsure(in_words, facts={**edit_model().facts, "confidence_threshold": "0.85"})
    ask = f"{ASK} in sums.py"
    call = await read_call(ask)
    printed = f"*** File, {len(SOURCE)} bytes\n{SOURCE}\n*** End of file\n"
    so_far = [words(ask), call, result(call, printed)]
    message = await one_answer(so_far, model)
    assert message["type"] == "message"
    assert "40% likely to be right" in message["content"][0]["text"]
    applied = await one_answer([*so_far, message, words("Yes, apply it.")], model)
    assert applied["name"] == "apply_patch"
    assert patched(applied) == SOURCE.replace("total", "amount")


async def test_marked_code_is_rewritten_in_words_all_the_same() -> None:
    item = await one_answer([words(f"{ASK}\n```python sums.py\n{SOURCE}```")])
    assert item["content"][0]["text"] == SOURCE.replace("total", "amount")


async def test_one_model_under_several_names() -> None:
    model = editor()
    async with (
        running({"gpt-5.5": model, "gpt-6.1-sol": model}) as port,
        peer(port) as client,
    ):
        for name, shown in (("gpt-6.1-sol", "gpt-6.1-sol"), ("", "gpt-5.5")):
            await client.send(type="response.create", model=name, input="x", generate=False)
            assert (await client.terminal())["response"]["model"] == shown
        await client.send(type="response.create", model="gpt-4", input="x")
        error = await client.until("error")
    assert "available: gpt-5.5, gpt-6.1-sol" in error["error"]["message"]
