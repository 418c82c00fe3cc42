"""SmolLM2 in the layouts of published models, written by the tools that people publish with.

Run by `-m clients`, with what `install.sh` installs. 20 prompts are continued greedily by
onnxruntime-genai and by Midstream, token for token; each layout answers on a server and in `edit`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from midstream.engine.folder import read_folder
from midstream.engine.loop import ModelGeneration, Runtime
from midstream.engine.model import OnnxModel
from midstream.engine.plan import TextDecoder
from midstream.engine.sampling import Sampler
from midstream.engine.types import GenerateRequest, Message
from midstream.responses.client import Client
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import Delta, Failed, Finished
from tests.clients.test_clients import SCRIPTS, ended, environment, installed
from tests.helpers.wire import TOKEN, running

pytestmark = [pytest.mark.clients, pytest.mark.timeout(3600)]

LAYOUTS: Final = {
    "genai-int4": ("genai", "model.onnx"),
    "genai-fp32": ("genai", "model.onnx"),
    "optimum": ("optimum", "model.onnx"),
    "transformers-js": ("transformers.js", "model_q4.onnx"),
}
"""Folders, and the layout and graph that are found in them."""

TOKENS: Final = 16
"""How many tokens of each answer are compared."""

QUESTIONS: Final = (
    "Write a Python function that adds two numbers.",
    "What does this print?\n\nprint(sum(range(4)))",
    "Rename the variable total to amount: total = 3\nprint(total)",
    "Explain recursion in one sentence.",
    "Add a docstring.\n\ndef area(width, height):\n    return width * height",
    "Which keyword defines a class in Python?",
    "Turn this into a list comprehension: for x in xs: ys.append(x * 2)",
    "What is the capital of France?",
    "Write a shell command that lists files by size.",
    "Fix the bug: def mean(values): return sum(values) / len(value)",
    "Name three sorting algorithms.",
    "What is a key/value cache?",
    "Write SQL that counts the rows of a table named users.",
    "Is 91 a prime number?",
    "Write a haiku about compilers.",
    "Convert 255 to hexadecimal.",
    "What does git rebase do?",
    "Write a regular expression for a year.",
    "Add type hints: def half(x): return x / 2",
    "Say goodbye.",
)


class TokenLog:
    """A text decoder that keeps the tokens that it is given."""

    def __init__(self, decoder: TextDecoder) -> None:
        self.ids: list[int] = []
        self._decoder = decoder

    def feed(self, token_id: int) -> str:
        self.ids.append(token_id)
        return self._decoder.feed(token_id)

    def finish(self) -> str:
        return self._decoder.finish()


def asked(question: str) -> GenerateRequest:
    return GenerateRequest((Message("user", question),))


def greedy(model: OnnxModel, question: str) -> list[int]:
    """The tokens that the engine writes, as it does it: drafted, several rows at once."""
    plan = model.plan(asked(question))
    log = TokenLog(plan.decoder)
    runtime = Runtime(model.decoder, model.cache, model.drafting, exact=True)
    list(ModelGeneration(replace(plan, decoder=log), runtime, Sampler(), limit=TOKENS))
    return log.ids


async def continued(folder: Path, prompts: Sequence[list[int]]) -> list[list[int]]:
    """The tokens that onnxruntime-genai writes."""
    python = installed() / "engines" / "bin" / "python"
    script = str(SCRIPTS / "genai_greedy.py")
    process = await asyncio.create_subprocess_exec(
        str(python), script, str(folder), str(TOKENS), stdin=PIPE, stdout=PIPE, env=environment()
    )
    said, _ = await process.communicate(json.dumps(prompts).encode())
    assert process.returncode == 0
    return [json.loads(line) for line in said.splitlines()]


@pytest.fixture(scope="module")
def layouts() -> Path:
    folder = installed() / "layouts"
    missing = [name for name in LAYOUTS if not (folder / name).is_dir()]
    if missing:
        pytest.skip(f"{', '.join(missing)} are not in {folder}; see tests/clients/install.sh")
    return folder


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_layout_is_recognised_and_works(layouts: Path, name: str) -> None:
    folder = read_folder(layouts / name)
    assert (folder.layout, folder.graph.name) == LAYOUTS[name]
    assert len(folder.eos_ids) >= 1
    model = OnnxModel(folder)
    assert model.decoder.vocab == 49_152
    assert {(pair.heads, pair.width) for pair in model.decoder.io.cache} == {(3, 64)}


@pytest.mark.parametrize(("name", "least"), [("genai-fp32", 20), ("genai-int4", 12)])
async def test_greedy_tokens_are_those_of_onnxruntime_genai(
    layouts: Path, name: str, least: int
) -> None:
    """In 4 bits a row among others is rounded differently from a row alone (see `engine.loop`), so
    near ties may fall to the other side."""
    model = OnnxModel(read_folder(layouts / name))
    prompts = [model.plan(asked(question)).prompt_ids for question in QUESTIONS]
    expected = await continued(layouts / name, prompts)
    agreed = 0
    for question, theirs in zip(QUESTIONS, expected, strict=True):
        ours = greedy(model, question)
        ended_alike = len(ours) == len(theirs) or ours[-1] in model.folder.eos_ids
        agreed += ours == theirs[: len(ours)] and ended_alike
    print(f"{name}: {agreed} of {len(QUESTIONS)}")
    assert agreed >= least


@pytest.mark.parametrize("name", LAYOUTS)
async def test_a_server_and_an_edit_with_it(layouts: Path, name: str, tmp_path: Path) -> None:
    async with running({name: OnnxModel(read_folder(layouts / name))}) as port:
        client = Client(Endpoint(f"http://127.0.0.1:{port}/v1", TOKEN, name, "local"))
        text, end = "", None
        try:
            stream = await client.create(messages=[("user", "Name a colour.")], max_output_tokens=8)
            async for event in stream:
                if isinstance(event, Delta):
                    text += event.text
                elif isinstance(event, Finished | Failed):
                    end = event
        finally:
            await client.close()
    assert text
    assert isinstance(end, Finished)
    file = tmp_path / "area.py"
    file.write_text("def area(width, height):\n    return width * height\n")
    command = ("-m", "midstream", "edit", f"{file}:1-2", "-m", "add a docstring", "--json")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, "--model", str(layouts / name), stdout=PIPE, stderr=STDOUT
    )
    said: list[str] = []
    try:
        assert process.stdout is not None
        async for line in process.stdout:
            said.append(line.decode())
            # A model of this size rarely edits well and may find no end; that it answers counts.
            if json.loads(line).get("event") == "text":
                break
        else:
            raise AssertionError("".join(said))
    finally:
        await ended(process)
