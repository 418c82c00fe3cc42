"""Turns a request into tokens: the edit codec for region models, a chat template for all others.

Nothing is run here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from midstream.edits.request import RegionRequest, parse_follow_up, parse_request
from midstream.engine.codec import EditCodec, EditRequest
from midstream.engine.confidence import EditJudge
from midstream.engine.folder import Confidence, ModelFolder, ModelFolderError
from midstream.engine.locators import without_locator
from midstream.engine.plan import Plan, PromptError
from midstream.engine.types import GenerateRequest, Message
from midstream.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from midstream.guard.correction import CorrectionRequest


SPARE_TOKENS = 64
"""Tokenizers of text models may know so many tokens that the graph does not: those of images."""


# What is read ahead, stopped and redirected is the same few texts again.
_parsed = lru_cache(maxsize=16)(parse_request)
_shortened = lru_cache(maxsize=16)(without_locator)


class PromptStyle(Protocol):
    """A way of putting requests to a model.

    Attributes:
        vocab_size: how many tokens its tokenizer knows.
    """

    vocab_size: int

    def plan(self, request: GenerateRequest) -> Plan:
        """Encode a request.

        Raises:
            UserError: the model cannot be asked this.
        """
        ...


def prompt_style(folder: ModelFolder) -> PromptStyle:
    """Return the prompt style that a folder asks for.

    Raises:
        ModelFolderError: the folder lacks what the style needs.
    """
    if folder.prompt == "edit-codec":
        return EditPrompt(_load_codec(folder), folder.confidence)
    from midstream.engine.chat import ChatPrompt

    return ChatPrompt(folder, load_tokenizer(folder))


def load_tokenizer(folder: ModelFolder) -> Tokenizer:
    """Load a folder's tokenizer.json.

    Raises:
        ModelFolderError: the file is no tokenizer.
    """
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(folder.tokenizer))
    except Exception as error:
        raise ModelFolderError(f"{folder.tokenizer} cannot be loaded: {error}") from error


def _load_codec(folder: ModelFolder) -> EditCodec:
    try:
        return EditCodec.load(folder.path)
    except UserError as error:
        raise ModelFolderError(f"{folder.path}: {error}") from error
    except Exception as error:
        raise ModelFolderError(f"{folder.tokenizer} cannot be loaded: {error}") from error


def require_vocabulary(folder: ModelFolder, style: PromptStyle, vocab: int) -> None:
    """Compare a tokenizer with a graph's vocabulary.

    Raises:
        ModelFolderError: the tokenizer is another model's.
    """
    if style.vocab_size > vocab + SPARE_TOKENS:
        raise ModelFolderError(
            f"{folder.tokenizer} knows {style.vocab_size} tokens and {folder.graph.name} only "
            f"{vocab}; they are not of the same model."
        )


class EditPrompt:
    """Region requests for a model that rewrites marked regions and does nothing else."""

    def __init__(self, codec: EditCodec, confidence: Confidence | None = None) -> None:
        """Use a codec that belongs to the model, and its calibration if it has one."""
        self._codec = codec
        self._confidence = confidence
        self.vocab_size = codec.vocab_size

    def plan(self, request: GenerateRequest) -> Plan:
        """Encode the conversation's last region, with what was kept and asked since."""
        edit = read_edit(request.messages, request.correction)
        encoded = self._codec.encode(edit)
        judge = None
        if self._confidence is not None:
            judge = EditJudge(edit, self._codec, self._confidence)
        return Plan(
            encoded.prompt_ids,
            encoded.draft_ids,
            encoded.stop_ids,
            encoded.decoder,
            # A rewrite that says more than the whole region and its instruction repeats itself.
            most=len(encoded.prompt_ids) + 64,
            choice=encoded.choice,
            judge=judge,
        )


def read_edit(
    messages: Iterable[Message], correction: CorrectionRequest | None = None
) -> EditRequest:
    """Read an edit out of a conversation: region request, kept text, follow-up instructions.

    Assistant messages after the region request are, one behind the other, the kept start of the
    rewrite; a line that was cut off does not count. `correction` is what the last message asks for,
    where the guard wrote it.

    Raises:
        PromptError: there is no region, or the last message asks nothing.
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
                "This model only rewrites a marked region; name a function, select lines, "
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
        before=region.before,
        after=region.after,
        path=region.path,
        kept=kept[: kept.rfind("\n") + 1],
        earlier=tuple(_shortened(text, region.region) for text in instructions[:-1]),
        correction=correction,
    )
