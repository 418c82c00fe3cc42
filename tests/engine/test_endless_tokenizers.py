"""A tokenizer of any content ends, and says one sentence."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from midstream.engine import bounded_prompt
from midstream.engine.folder import ModelFolderError, read_folder
from midstream.engine.plan import PromptStyle
from midstream.engine.prompts import prompt_style
from midstream.engine.types import GenerateRequest, Message
from tests.helpers.folders import write_folder

FAILS = "(a+)+$"
"""The library gives this up and panics."""
TAKES_LONG = "(a*)(a*)(a*)(a*)[xy]"


def style(path: Path, pattern: str) -> PromptStyle:
    write_folder(path, prompt="chat")
    file = path / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}
    tokenizer["pre_tokenizer"] = {**split, "invert": False}
    file.write_text(json.dumps(tokenizer))
    return prompt_style(read_folder(path))


def asked(text: str) -> GenerateRequest:
    return GenerateRequest((Message("user", text),))


def test_a_panic_is_a_sentence(tmp_path: Path) -> None:
    prompt = style(tmp_path, FAILS)
    with pytest.raises(ModelFolderError, match=r"tokenizer\.json fails for this request"):
        prompt.plan(asked("a" * 60 + "!"))
    assert prompt.plan(asked("b")).prompt_ids


def test_what_takes_too_long_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prompt: Any = style(tmp_path, TAKES_LONG)
    monkeypatch.setattr(bounded_prompt, "ENCODE_S", 0.2)
    for _ in range(2):
        with pytest.raises(ModelFolderError, match="takes longer than"):
            prompt.plan(asked("a" * 110 + "!x"))
    # The thread that hangs keeps the prompt, and with it the process of its template.
    prompt._style._template._process.end()


def test_a_file_of_gigabytes_is_not_read(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat")
    os.truncate(tmp_path / "tokenizer.json", 8 << 30)
    with pytest.raises(ModelFolderError, match=r"tokenizer\.json has 8,590 MB, and no tokenizer"):
        read_folder(tmp_path)


def test_half_a_character_of_a_template_is_no_traceback(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat")
    (tmp_path / "tokenizer_config.json").write_text("{}")
    (tmp_path / "chat_template.jinja").write_text("{{ '\\ud800' }}{{ messages[0].content }}")
    prompt = prompt_style(read_folder(tmp_path))
    assert prompt.plan(asked("b")).prompt_ids == prompt.plan(asked("b")).prompt_ids
