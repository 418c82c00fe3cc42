"""SmolLM2 in the layouts of published models, written by the tools that people publish with.

Run by `-m clients`, with what `install.sh` installs. 20 prompts are continued greedily by other
runtimes and by Midstream, token for token; each layout answers on a server and ends an edit.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
import pytest

from midstream.bench.terminal import TerminalProgram
from midstream.engine.decoder import Array, Decoder
from midstream.engine.folder import read_folder
from midstream.engine.loop import ModelGeneration, Runtime
from midstream.engine.model import OnnxModel
from midstream.engine.plan import TextDecoder
from midstream.engine.prompts import load_tokenizer
from midstream.engine.sampling import Sampler
from midstream.engine.types import GenerateRequest, Message
from midstream.responses.client import Client
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import Delta, Failed, Finished
from midstream.tui.review.steer import LATE_S
from tests.clients.test_clients import SCRIPTS, ended, environment, installed
from tests.helpers.waiting import PATIENCE_S
from tests.helpers.wire import TOKEN, running

pytestmark = [pytest.mark.clients, pytest.mark.timeout(3600)]

LAYOUTS: Final = {
    "genai-int4": ("genai", "model.onnx", {2}),
    "genai-fp32": ("genai", "model.onnx", {2}),
    "optimum": ("optimum", "model.onnx", {2}),
    "transformers-js": ("transformers.js", "model_q4.onnx", {2}),
}
"""Folders; the layout, the graph and the end tokens that are found in them."""

SMALL: Final = ("genai-int4", "transformers-js")
"""Folders whose model answers quickly enough for a whole program."""

AREA: Final = "def area(width, height):\n    return width * height\n"

NEAR_TIE: Final = 0.5
"""Difference of two logits that rounding may turn round; the logits' standard deviation is 3.5."""

HEADS, WIDTH = 3, 64
"""Key/value heads of SmolLM2, and how many numbers each keeps of a token."""

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
    return GenerateRequest((Message("user", question),), max_output_tokens=TOKENS)


def opened(layouts: Path, name: str, graph: str | None = None, *, drafts: bool = True) -> OnnxModel:
    folder = read_folder(layouts / name)
    if graph is not None:
        folder = replace(folder, graph=folder.graph.with_name(graph))
    return OnnxModel(folder if drafts else replace(folder, drafting=None))


def greedy(model: OnnxModel, question: str) -> list[int]:
    """The tokens that the engine writes."""
    plan = model.plan(asked(question))
    log = TokenLog(plan.decoder)
    runtime = Runtime(model.decoder, model.cache, model.drafting, exact=model.exact)
    list(ModelGeneration(replace(plan, decoder=log), runtime, Sampler(), limit=TOKENS))
    return log.ids


def agreed(ours: list[int], theirs: list[int], model: OnnxModel) -> bool:
    """Whether two texts are the same; not every runtime returns the end token."""
    ended_alike = len(ours) == len(theirs) or ours[-1] in model.folder.eos_ids
    return ours == theirs[: len(ours)] and ended_alike


def one_by_one(
    run: Callable[[list[int], int], Array], prompt: list[int], ends: AbstractSet[int]
) -> tuple[list[int], list[Array]]:
    """A plain loop: the prompt in one run, then every token alone; its tokens and their logits."""
    tokens: list[int] = []
    logits: list[Array] = []
    given, past = prompt, 0
    while len(tokens) < TOKENS and not (tokens and tokens[-1] in ends):
        logits.append(run(given, past)[-1].copy())
        past += len(given)
        tokens.append(int(logits[-1].argmax()))
        given = tokens[-1:]
    return tokens, logits


class PlainRuntime:
    """A graph with a growing cache in nothing but ONNX Runtime and numpy."""

    def __init__(self, graph: Path) -> None:
        self._session: Any = onnxruntime.InferenceSession(
            str(graph), providers=["CPUExecutionProvider"]
        )
        self._inputs = {info.name for info in self._session.get_inputs()}
        self._outputs = [info.name for info in self._session.get_outputs()]
        self._cache: dict[str, Array] = {}

    def run(self, ids: list[int], past: int) -> Array:
        if past == 0:
            names = {name for name in self._inputs if name.startswith("past_key_values")}
            self._cache = dict.fromkeys(names, np.zeros((1, HEADS, 0, WIDTH), np.float32))
        total = past + len(ids)
        feeds = {
            "input_ids": np.array([ids]),
            "attention_mask": np.ones((1, total), np.int64),
            "position_ids": np.arange(past, total)[None],
            **self._cache,
        }
        made = self._session.run(
            self._outputs, {name: value for name, value in feeds.items() if name in self._inputs}
        )
        found = dict(zip(self._outputs, made, strict=True))
        logits: Array = found.pop("logits")[0]
        self._cache = {
            name.replace("present", "past_key_values"): value for name, value in found.items()
        }
        return logits


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
    assert (folder.layout, folder.graph.name, folder.eos_ids) == LAYOUTS[name]
    model = OnnxModel(folder)
    assert model.decoder.vocab == 49_152
    assert {(pair.heads, pair.width) for pair in model.decoder.io.cache} == {(HEADS, WIDTH)}
    assert ("position_ids" in model.decoder.io.extras) == (folder.layout != "genai")
    prompt = load_tokenizer(folder).decode(
        model.plan(asked("Hello")).prompt_ids, skip_special_tokens=False
    )
    assert prompt == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
        "<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize(("name", "drafts"), [("genai-fp32", True), ("genai-int4", False)])
async def test_greedy_tokens_are_those_of_onnxruntime_genai(
    layouts: Path, name: str, drafts: bool
) -> None:
    model = opened(layouts, name, drafts=drafts)
    prompts = [model.plan(asked(question)).prompt_ids for question in QUESTIONS]
    expected = await continued(layouts / name, prompts)
    for question, theirs in zip(QUESTIONS, expected, strict=True):
        assert agreed(greedy(model, question), theirs, model), question


def test_drafts_in_4_bits_decide_near_ties_only(layouts: Path) -> None:
    """With drafts, several rows run at once, and 6 of the 20 texts part from onnxruntime-genai's.

    Measured in single operators: MatMulNBits gives a row the same bits alone and among others, and
    GroupQueryAttention gives a row alone others, by 2e-7. Where activations are rounded to 8 bits
    before each product (`accuracy_level` 4, the builder's default), 30 layers make 0.1 to 0.4 of
    that in the logits; in 32 bits it stays where it is, and all 20 texts agree. So wherever texts
    part, two tokens have to be nearly equally likely, and a run of all rows at once, without the
    loop, its drafts and its cache, has to choose as Midstream did.
    """
    model = opened(layouts, "genai-int4")
    assert model.drafting is not None
    alone = Decoder(model.folder)
    same = 0
    for question in QUESTIONS:
        prompt = model.plan(asked(question)).prompt_ids
        theirs, logits = one_by_one(alone.run, prompt, model.folder.eos_ids)
        ours = greedy(model, question)
        if agreed(ours, theirs, model):
            same += 1
            continue
        at = next(at for at, pair in enumerate(zip(ours, theirs, strict=False)) if len({*pair}) > 1)
        margin = float(logits[at][theirs[at]] - logits[at][ours[at]])
        together = alone.run([*prompt, *theirs[:at]], 0, exact=True)[-1]
        print(f"{question!r} parts at token {at}: {margin:.2f} of {logits[at].std():.2f}")
        assert margin < NEAR_TIE, question
        assert together.argmax() == ours[at], question
    print(f"{same} of {len(QUESTIONS)}")


@pytest.mark.parametrize(
    ("name", "graph"), [("optimum", "model.onnx"), ("transformers-js", "model_q4.onnx")]
)
def test_greedy_tokens_are_those_of_a_plain_loop(layouts: Path, name: str, graph: str) -> None:
    model = opened(layouts, name, graph)
    assert model.drafting is not None
    plain = PlainRuntime(model.folder.graph)
    for question in QUESTIONS:
        prompt = model.plan(asked(question)).prompt_ids
        theirs, _ = one_by_one(plain.run, prompt, model.folder.eos_ids)
        assert agreed(greedy(model, question), theirs, model), question


def test_8_bits_with_one_scale_for_all_rows(layouts: Path) -> None:
    """transformers.js's `model_quantized.onnx` rounds activations with one scale for all rows of a
    run, so a text depends on how runs are cut: cut alike, the tokens are those of a plain loop.
    """
    model = opened(layouts, "transformers-js", "model_quantized.onnx")
    assert not model.decoder.causal
    assert model.drafting is None
    assert greedy(model, QUESTIONS[0])
    plain = PlainRuntime(model.folder.graph)
    for question in QUESTIONS[:5]:  # What is fed is checked here, not rounding.
        prompt = model.plan(asked(question)).prompt_ids
        theirs, _ = one_by_one(plain.run, prompt, model.folder.eos_ids)
        ours, _ = one_by_one(model.decoder.run, prompt, model.folder.eos_ids)
        assert ours == theirs, question


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
    file.write_text(AREA)
    command = ("-m", "midstream", "edit", f"{file}:1-2", "-m", "add a docstring", "--json")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, "--model", str(layouts / name), stdout=PIPE, stderr=STDOUT
    )
    said: list[dict[str, Any]] = []
    try:
        assert process.stdout is not None
        async for line in process.stdout:
            said.append(json.loads(line))
            if name not in SMALL and "text" in said[-1]:
                break
        assert any("text" in event for event in said)
        if name in SMALL:
            # A model of this size rarely edits well; it has to come to an end and say which.
            failed = await process.wait()
            end = said[-1]["error"]["code"] if failed else said[-1]["event"]
            assert (failed, end) in ((0, "finished"), (1, "edit-failed")), said[-1]
            assert file.read_text() == AREA
    finally:
        await ended(process)


@pytest.mark.parametrize("name", SMALL)
def test_the_screen_with_it(layouts: Path, name: str, tmp_path: Path) -> None:
    file = tmp_path / "area.py"
    file.write_text(AREA)
    command = (sys.executable, "-m", "midstream", str(file), "--model", str(layouts / name))
    environment = {"MIDSTREAM_STATE_DIR": str(tmp_path / "state"), "NO_COLOR": "1"}
    with TerminalProgram(command, size=(120, 36), environment=environment) as program:
        program.wait_for("ready", PATIENCE_S)
        program.write("add a docstring\r")
        program.wait_for("writing", PATIENCE_S)
        program.wait_for("ready", 5 * PATIENCE_S, since=len(program.output))
        assert file.read_text() == AREA, "nothing is written without an accept"
        program.drain(LATE_S)  # An earlier key would stop the answer that has just ended.
        program.write("\x03")
        program.wait_for("again quits", PATIENCE_S)
        program.write("\x03")
        assert program.exit_code(PATIENCE_S) == 0
