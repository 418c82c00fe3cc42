"""Chat models: templates in a sandbox, special tokens, drafts from a region in the message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from midstream.edits.request import RegionRequest, render_chat_follow_up, render_chat_request
from midstream.engine.confidence import weighed
from midstream.engine.folder import CHAT_CALIBRATION, Calibration, ModelFolderError, read_folder
from midstream.engine.model import OnnxModel
from midstream.engine.plan import PromptError
from midstream.engine.prompts import ChatDecoder, ChatPrompt, load_tokenizer
from midstream.engine.types import FinishReason, GenerateRequest, Message
from tests.helpers.folders import write_folder

OWN = "[confidence]\nthreshold = 0.25\nbias = 1\nweights = { size = 2 }\n"
HELLO = GenerateRequest(messages=(Message("user", "Hello!"),), instructions="Be brief.")


def prompt_of(path: Path, template: str | None = None) -> ChatPrompt:
    write_folder(path, prompt="chat")
    if template is not None:
        config = {"chat_template": template, "bos_token": {"content": "<pad>"}}
        (path / "tokenizer_config.json").write_text(json.dumps(config))
    folder = read_folder(path)
    return ChatPrompt(folder, load_tokenizer(folder))


def test_the_template_writes_the_prompt(tmp_path: Path) -> None:
    prompt = prompt_of(tmp_path)
    assert prompt.render(HELLO) == "<system>Be brief.<user>Hello!<assistant>"
    plan = prompt.plan(HELLO)
    tokenizer = load_tokenizer(read_folder(tmp_path))
    assert plan.prompt_ids[0] == tokenizer.token_to_id("<system>")
    assert plan.prompt_ids[-1] == tokenizer.token_to_id("<assistant>")
    assert plan.draft_ids == []
    assert plan.stop_ids == {tokenizer.token_to_id("<eos>")}


def test_special_tokens_are_known_to_the_template(tmp_path: Path) -> None:
    prompt = prompt_of(
        tmp_path, "{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}"
    )
    assert prompt.render(HELLO) == "<pad>Be brief.Hello!"


def test_templates_have_what_transformers_offers(tmp_path: Path) -> None:
    template = (
        "{% for m in messages %}{% if m.role == 'user' %}{% break %}{% endif %}"
        "{% generation %}{{ m | tojson }}{% endgeneration %}{% endfor %}"
        "{{ strftime_now('%Y')[:2] }}"
    )
    request = GenerateRequest(messages=HELLO.messages, instructions="<ä & 'b'>")
    said = prompt_of(tmp_path, template).render(request)
    assert said == '{"role": "system", "content": "<ä & \'b\'>"}20'


def test_the_tokenizers_end_token_ends_a_text_as_well(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat")
    texts = json.loads((tmp_path / "tokenizer_config.json").read_text())
    texts["eos_token"] = {"content": "<user>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(texts))
    folder = read_folder(tmp_path)
    tokenizer = load_tokenizer(folder)
    ends = {tokenizer.token_to_id(token) for token in ("<eos>", "<user>")}
    assert ChatPrompt(folder, tokenizer).plan(HELLO).stop_ids == ends


def test_a_template_may_refuse(tmp_path: Path) -> None:
    prompt = prompt_of(tmp_path, "{{ raise_exception('no system role') }}")
    with pytest.raises(PromptError, match="no system role"):
        prompt.plan(HELLO)


@pytest.mark.parametrize(
    "attack",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.popen('true').read() }}",
        "{% for m in messages %}{{ m.clear() }}{% endfor %}",
    ],
)
def test_a_template_is_kept_in_its_box(tmp_path: Path, attack: str) -> None:
    with pytest.raises(PromptError):
        prompt_of(tmp_path, attack).plan(HELLO)


def test_missing_and_broken_templates_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match="not valid jinja2"):
        prompt_of(tmp_path, "{% for %}")
    (tmp_path / "tokenizer_config.json").unlink()
    folder = read_folder(tmp_path)
    with pytest.raises(ModelFolderError, match="has no chat template"):
        ChatPrompt(folder, load_tokenizer(folder))


def test_a_region_is_the_draft(tmp_path: Path) -> None:
    prompt = prompt_of(tmp_path)
    region = "def total(items):\n    return 0\n"
    text = render_chat_request(RegionRequest("add a docstring", region))
    asked = Message("user", text)
    again = Message("user", render_chat_follow_up("shorter"))
    for messages in ((asked,), (asked, Message("assistant", "```\ndef"), again)):
        plan = prompt.plan(GenerateRequest(messages))
        drafted = "".join(plan.decoder.feed(token) for token in plan.draft_ids)
        assert drafted == f"```\n{region}```\n"


def test_a_rewrite_is_judged_and_nothing_else(tmp_path: Path) -> None:
    write_folder(tmp_path / "chat", prompt="chat")
    folder = read_folder(tmp_path / "chat")
    assert folder.confidence == CHAT_CALIBRATION
    assert folder.facts["confidence_threshold"] == str(CHAT_CALIBRATION.threshold)
    text = render_chat_request(RegionRequest("add a docstring", "x = 1\n"))
    model = OnnxModel(folder, threads=1)
    for asked, judged in ((text, True), ("Hello!", False)):
        generation = model.start(
            GenerateRequest((Message("user", asked),), max_output_tokens=40, stop=("e",))
        )
        list(generation)
        assert generation.finish_reason is FinishReason.STOP
        assert (generation.usage.confidence is not None) is judged
    write_folder(tmp_path / "own", prompt="chat", card=OWN)
    assert read_folder(tmp_path / "own").confidence == Calibration(0.25, 1.0, {"size": 2.0})


def test_longer_doubt_means_less_confidence() -> None:
    sure, unsure = ({"doubt": doubt, "size": 2.0} for doubt in (-1.0, 3.0))
    assert weighed(CHAT_CALIBRATION, sure) > CHAT_CALIBRATION.threshold
    assert weighed(CHAT_CALIBRATION, unsure) < CHAT_CALIBRATION.threshold


def test_text_comes_out_whole_characters_only(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat")
    tokenizer = load_tokenizer(read_folder(tmp_path))
    eos = tokenizer.token_to_id("<eos>")
    ids = tokenizer.encode("naïve €5 🙂 done", add_special_tokens=False).ids
    decoder = ChatDecoder(tokenizer, frozenset({eos}))
    pieces = [decoder.feed(token) for token in [*ids, eos]]
    assert "".join(pieces) == "naïve €5 🙂 done"
    assert all("�" not in piece for piece in pieces)
    assert "" in pieces


def test_a_chat_model_talks(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat")
    model = OnnxModel(read_folder(tmp_path), threads=1)
    generation = model.start(
        GenerateRequest(messages=HELLO.messages, max_output_tokens=12, temperature=1.0, seed=4)
    )
    pieces = list(generation)
    assert sum(piece.tokens for piece in pieces) == generation.usage.output_tokens
    assert "".join(piece.text for piece in pieces)


def test_control_tokens_in_texts_are_text(tmp_path: Path) -> None:
    prompt = prompt_of(tmp_path)
    tokenizer = load_tokenizer(read_folder(tmp_path))
    marks = [t.content for t in tokenizer.get_added_tokens_decoder().values() if t.special]
    assert marks
    region = "".join(f"mark = '{mark}'\n" for mark in marks)
    text = render_chat_request(RegionRequest("rename mark", region))
    plain = prompt.plan(GenerateRequest((Message("user", text.replace(region, "mark\n")),)))
    plan = prompt.plan(GenerateRequest((Message("user", text),)))
    for mark in marks:
        token = tokenizer.token_to_id(mark)
        assert plan.prompt_ids.count(token) == plain.prompt_ids.count(token)
    written = "".join(plan.decoder.feed(token) for token in plan.draft_ids)
    assert written == f"```\n{region}```\n", "byte for byte"
