"""Turns a request into tokens: the rewriting codec for edit models, a chat template for others.

Nothing is run here. A chat template is the folder's own jinja2 text, rendered in a sandbox. If the
last user message has a region, its tokens are offered as a draft: whatever the model writes around
them, the unchanged part of the region is verified instead of generated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from midstream.edits.request import RegionRequest, code_block, parse_follow_up, parse_request
from midstream.engine.bounded_prompt import BoundedPrompt
from midstream.engine.confidence import EditJudge
from midstream.engine.control_tokens import ControlTokens
from midstream.engine.edit_request import EditRequest, without_locator
from midstream.engine.folder import Calibration, ModelFolder, ModelFolderError
from midstream.engine.patch_drafting import PatchDrafter
from midstream.engine.plan import EncodedRequest, PromptError, PromptStyle
from midstream.engine.rewrite_codec import RewriteCodec
from midstream.engine.types import GenerateRequest, Message
from midstream.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from midstream.guard.correction import CorrectionRequest


SPARE_TOKENS = 64
"""Tokens that a tokenizer may know and the graph may not: those of images."""


# Reading ahead, stopping and redirecting repeat the same few texts.
_parsed = lru_cache(maxsize=16)(parse_request)
_shortened = lru_cache(maxsize=16)(without_locator)


def load_tokenizer(folder: ModelFolder) -> Tokenizer:
    """Load a folder's tokenizer.json.

    Raises:
        ModelFolderError: The file is no tokenizer.
    """
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(folder.tokenizer))
    except Exception as error:
        raise ModelFolderError(f"{folder.tokenizer} cannot be loaded: {error}") from error


def require_vocabulary(folder: ModelFolder, style: PromptStyle, vocab: int) -> None:
    """Compare a tokenizer with a graph's vocabulary.

    Raises:
        ModelFolderError: The tokenizer is another model's.
    """
    if style.vocab_size > vocab + SPARE_TOKENS:
        raise ModelFolderError(
            f"{folder.tokenizer} knows {style.vocab_size} tokens and {folder.graph.name} only "
            f"{vocab}; they belong to different models."
        )


class EditPrompt:
    """Region requests for a model that rewrites marked regions and does nothing else."""

    def __init__(self, codec: RewriteCodec, confidence: Calibration | None = None) -> None:
        self._codec = codec
        self._confidence = confidence
        self.vocab_size = codec.vocab_size

    def plan(self, request: GenerateRequest) -> EncodedRequest:
        """Encode the conversation's last region, with what was kept and asked since."""
        edit = read_edit(request.messages, request.correction)
        encoded = self._codec.encode(edit)
        if self._confidence is None:
            return encoded
        return replace(encoded, judge=EditJudge(self._confidence, encoded.draft_ids))


def read_edit(
    messages: Iterable[Message], correction: CorrectionRequest | None = None
) -> EditRequest:
    """Read an edit out of a conversation: region request, kept text, follow-up instructions.

    Assistant messages after the region request are, one behind the other, the kept start of the
    rewrite; a line that was cut off does not count. ``correction`` is what the last message asks
    for, where the guard wrote it.

    Raises:
        PromptError: There is no region, or the last message asks nothing.
    """
    region: RegionRequest | None = None
    instructions: list[str] = []
    kept = ""
    for message in messages:
        if message.role == "assistant":
            kept += message.text
            continue
        if message.role != "user":
            continue
        found = _parsed(message.text)
        if found is not None:
            region, instructions, kept = found, [found.instruction], ""
            continue
        follow_up = parse_follow_up(message.text)
        if region is None or follow_up is None:
            raise PromptError(
                "This model only rewrites a marked region; name a function, mark lines, "
                "or use a chat model."
            )
        instructions.append(follow_up)
        kept = kept[: kept.rfind("\n") + 1]
    if region is None:
        raise PromptError("There is nothing to rewrite: the conversation holds no region.")
    if correction is not None:
        correction = replace(correction, asked=_shortened(correction.asked, region.region))
    return EditRequest(
        instruction=_shortened(instructions[-1], region.region),
        region=region.region,
        kept=kept[: kept.rfind("\n") + 1],
        earlier=tuple(_shortened(text, region.region) for text in instructions[:-1]),
        correction=correction,
        language=region.language,
    )


class ChatPrompt:
    """Renders conversations with a folder's chat template; a ``prompts.PromptStyle``."""

    def __init__(self, folder: ModelFolder, tokenizer: Tokenizer) -> None:
        """Compile the template.

        Raises:
            ModelFolderError: There is none, or it is no valid template.
        """
        from midstream.engine.chat_template import ChatTemplate, ChatTemplateError

        if folder.chat_template is None:
            raise ModelFolderError(
                f"{folder.path / 'tokenizer_config.json'} has no chat template and "
                "there is no chat_template.jinja; add the model's own template."
            )
        try:
            self._template = ChatTemplate(folder.chat_template)
        except ChatTemplateError as error:
            raise ModelFolderError(
                f"The chat template of {folder.path} is not valid jinja2: {error}; copy "
                "the model's original template again."
            ) from error
        self._tokenizer = tokenizer
        self._control = ControlTokens(tokenizer)
        self.vocab_size = tokenizer.get_vocab_size()
        self._confidence = folder.confidence
        self._special = dict(folder.special_tokens)
        # Configurations of exports often name the base model's end and not the conversation's.
        end = tokenizer.token_to_id(self._special.get("eos_token", ""))
        self._stop_ids = folder.eos_ids | ({end} if end is not None else frozenset[int]())

    def plan(self, request: GenerateRequest) -> EncodedRequest:
        """Encode a conversation.

        Raises:
            PromptError: The template refuses it.
        """
        control = self._control
        texts = [request.instructions, *(message.text for message in request.messages)]
        spelled = frozenset[int]().union(*map(control.spelled, texts))
        joint = control.joint(texts) if spelled else ""
        prompt = control.encode(self.render(request, joint), joint)
        draft: list[int] = []
        if (region := _region_asked(request.messages)) is not None:
            draft = control.encode(control.apart(code_block(region), joint), joint)
        if not prompt:
            raise PromptError("The conversation is empty.")
        decoder = ChatDecoder(self._tokenizer, self._stop_ids, control.ids - spelled)
        drafter = judge = None
        if draft and self._confidence is not None:
            judge = EditJudge(self._confidence, draft)
        if not draft:
            source = "\n".join(message.text for message in request.messages)
            drafter = PatchDrafter(source, self._tokenizer, prompt)
        return EncodedRequest(
            prompt,
            draft,
            self._stop_ids,
            decoder,
            drafter=drafter,
            judge=judge,
            text_of=self._tokenizer.decode,
        )

    def render(self, request: GenerateRequest, joint: str = "") -> str:
        """Return the conversation as the template writes it, up to where the answer begins.

        Args:
            request: The conversation.
            joint: Put within control tokens that texts spell, so that they can be told apart.

        Raises:
            PromptError: The template refuses it.
        """
        from midstream.engine.chat_template import ChatTemplateError

        said = [(message.role, message.text) for message in request.messages]
        if request.instructions:
            said.insert(0, ("system", request.instructions))
        apart = self._control.apart
        messages = [{"role": role, "content": apart(text, joint)} for role, text in said]
        try:
            return self._template.render(
                {**self._special, "messages": messages, "add_generation_prompt": True}
            )
        except ChatTemplateError as error:
            raise PromptError(
                f"The model's chat template refuses the conversation: {error}."
            ) from error


def _region_asked(messages: Sequence[Message]) -> RegionRequest | None:
    """The region that the last message asks to rewrite, be it after a redirect."""
    for number, message in enumerate(reversed(messages)):
        if message.role != "user":
            continue
        if (region := _parsed(message.text)) is not None:
            return region
        if number == 0 and parse_follow_up(message.text) is None:
            return None
    return None


class ChatDecoder:
    """Turns a chat model's tokens into text, without unfinished characters."""

    def __init__(
        self, tokenizer: Tokenizer, stop_ids: frozenset[int], silent: frozenset[int] = frozenset()
    ) -> None:
        """Start an answer.

        Args:
            tokenizer: The model's.
            stop_ids: Tokens that end an answer.
            silent: Tokens that are no text either.
        """
        from tokenizers.decoders import DecodeStream

        self._tokenizer = tokenizer
        self._silent = stop_ids | silent
        self._stream = DecodeStream(skip_special_tokens=False)

    def feed(self, token_id: int) -> str:
        if token_id in self._silent:
            return ""
        return self._stream.step(self._tokenizer, token_id) or ""

    def finish(self) -> str:
        """Nothing: an unfinished character at the end of an answer is dropped."""
        return ""


def prompt_style(folder: ModelFolder) -> PromptStyle:
    """Return the prompt style that a folder asks for.

    Raises:
        ModelFolderError: The folder lacks what the style needs.
    """
    return BoundedPrompt(folder.tokenizer, lambda: _style(folder))


def _style(folder: ModelFolder) -> PromptStyle:
    if not folder.is_edit_model:
        return ChatPrompt(folder, load_tokenizer(folder))
    try:
        codec = RewriteCodec.load(folder.path)
    except UserError as error:
        raise ModelFolderError(f"{folder.path}: {error}") from error
    except Exception as error:
        raise ModelFolderError(f"{folder.tokenizer} cannot be loaded: {error}") from error
    return EditPrompt(codec, folder.confidence)
