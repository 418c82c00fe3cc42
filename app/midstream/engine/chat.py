"""Prompts for models with a chat template: the folder's own jinja2 text, rendered in a sandbox.

If the last user message carries a region, its tokens are offered as a draft: whatever the model
    writes around them,
the unchanged part of the region is then verified instead of generated.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from midstream.edits.request import parse_request
from midstream.engine.folder import ModelFolder, ModelFolderError
from midstream.engine.plan import Plan, PromptError
from midstream.engine.types import GenerateRequest

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class ChatPrompt:
    """Renders conversations with a folder's chat template; a `prompts.PromptStyle`."""

    def __init__(self, folder: ModelFolder, tokenizer: Tokenizer) -> None:
        """Compile the template.

        Raises:
            ModelFolderError: there is none, or it is no valid template.
        """
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        if folder.chat_template is None:
            raise ModelFolderError(
                f"{folder.path / 'tokenizer_config.json'} holds no chat template, nor is there a "
                "chat_template.jinja; put the model's own template there."
            )
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        # What transformers offers to templates beyond jinja2 itself.
        offered: dict[str, Any] = {"raise_exception": _refuse, "strftime_now": time.strftime}
        try:
            self._template: Any = environment.from_string(folder.chat_template, globals=offered)
        except TemplateError as error:
            raise ModelFolderError(
                f"The chat template of {folder.path} is no valid jinja2: {error}; copy the "
                "model's own again."
            ) from error
        self._tokenizer = tokenizer
        self.vocab_size = tokenizer.get_vocab_size()
        self._special = dict(folder.special_tokens)
        self._stop_ids = folder.eos_ids

    def plan(self, request: GenerateRequest) -> Plan:
        """Encode a conversation.

        Raises:
            PromptError: the template refuses it.
        """
        prompt = self._tokenizer.encode(self.render(request), add_special_tokens=False).ids
        draft: list[int] = []
        if request.messages and request.messages[-1].role == "user":
            region = parse_request(request.messages[-1].text)
            if region is not None:
                draft = self._tokenizer.encode(region.region, add_special_tokens=False).ids
        if not prompt:
            raise PromptError("The conversation is empty.")
        return Plan(prompt, draft, self._stop_ids, ChatDecoder(self._tokenizer, self._stop_ids))

    def render(self, request: GenerateRequest) -> str:
        """Return the conversation as the template writes it, up to where the answer begins.

        Raises:
            PromptError: the template refuses it.
        """
        messages = [{"role": m.role, "content": m.text} for m in request.messages]
        if request.instructions:
            messages.insert(0, {"role": "system", "content": request.instructions})
        try:
            return str(
                self._template.render(
                    messages=messages, add_generation_prompt=True, **self._special
                )
            )
        except Exception as error:
            # A template is a program of somebody else's; whatever goes wrong in it is its refusal.
            raise PromptError(
                f"The model's chat template refuses the conversation: {error}."
            ) from error


def _refuse(message: str) -> None:
    from jinja2 import TemplateError

    raise TemplateError(message)


class ChatDecoder:
    """Turns a chat model's tokens into text, without special tokens or unfinished characters."""

    def __init__(self, tokenizer: Tokenizer, stop_ids: frozenset[int]) -> None:
        """Start at the beginning of an answer."""
        from tokenizers.decoders import DecodeStream

        self._tokenizer = tokenizer
        self._stop_ids = stop_ids
        self._stream = DecodeStream(skip_special_tokens=True)

    def feed(self, token_id: int) -> str:
        """Take one token; return the text that it makes certain."""
        if token_id in self._stop_ids:
            return ""
        return self._stream.step(self._tokenizer, token_id) or ""

    def finish(self) -> str:
        """Return nothing: an unfinished character at the end of an answer is dropped."""
        return ""
