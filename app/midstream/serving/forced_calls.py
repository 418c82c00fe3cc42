"""Tool calls that a request makes mandatory.

What the model writes is read as the call's input, or refused in a sentence: a client that forces a
call must never get something else in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from midstream.engine.types import Message
from midstream.errors import UserError
from midstream.responses.model_info import ModelInfo
from midstream.serving.requests import RequestError
from midstream.serving.rewrites import last_region, rewrite_patch
from midstream.serving.tools import (
    APPLY_PATCH,
    CallInput,
    CallSplitter,
    CallStart,
    OfferedTools,
    read_call,
)

_FENCED = re.compile(r"\s*```\w*\n(?P<inside>.*)\n```\s*", re.DOTALL)
_object_decoder = msgspec.json.Decoder(dict[str, object])


class NotCalledError(UserError):
    """The model was to call a tool and did not.

    Args:
        wanted: The tool's name, or "a tool".
    """

    code = "tool_not_called"

    def __init__(self, wanted: str) -> None:
        super().__init__(
            f"The model answered without calling {wanted}; ask again, put the request in other "
            "words, or leave out tool_choice."
        )


@dataclass(frozen=True, slots=True)
class ForcedCall:
    """The call that everything a model writes belongs to.

    Attributes:
        name: The tool.
        custom: Whether it is a custom tool, else a function.
        read: Makes the input of the model's whole text; None where the text is the input as it
            comes. Raises ``UserError`` if it cannot.
    """

    name: str
    custom: bool
    read: Callable[[str], str] | None = None


def forced_call(
    use: OfferedTools, model: ModelInfo, messages: Sequence[Message]
) -> ForcedCall | None:
    """The call that a request forces; None if the model may choose.

    Raises:
        RequestError: The model cannot make such a call.
    """
    name = use.forced
    if model.is_edit_model and use.required:
        if APPLY_PATCH in use.offered:
            name = APPLY_PATCH
        if use.offered.get(name) != "custom":
            wanted = use.named or name or "a function"
            raise RequestError(
                f"This model only rewrites marked regions and cannot call {wanted}; leave out "
                "tool_choice, offer the custom tool apply_patch, or use a chat model.",
                param="tool_choice",
            )
    if not name:
        return None
    custom = use.offered[name] == "custom"
    if model.is_edit_model:
        region = last_region(messages)
        if name != APPLY_PATCH or region is None:
            return ForcedCall(name, custom)
        return ForcedCall(name, custom, lambda text: rewrite_patch(region, text))
    if custom and not model.is_chat:
        return ForcedCall(name, custom)
    return ForcedCall(name, custom, lambda text: _input(name, custom, text))


def _input(name: str, custom: bool, text: str) -> str:
    """The input of a call in the text of a chat model, which may have written the bare input.

    Raises:
        NotCalledError: There is neither.
    """
    splitter = CallSplitter({name: "custom" if custom else "function"})
    steps = [*splitter.feed(text), *splitter.finish()]
    starts = [index for index, step in enumerate(steps) if isinstance(step, CallStart)]
    if starts:
        first = steps[starts[0] + 1 : starts[1] if len(starts) > 1 else None]
        return "".join(step.text for step in first if isinstance(step, CallInput))
    fenced = _FENCED.fullmatch(text)
    bare = fenced["inside"] if fenced else text
    if custom and name != APPLY_PATCH:
        return bare
    if not custom:
        call = read_call(bare)
        if call is not None and call.name == name:  # The call, and not only its arguments.
            bare = call.input_of("function")
        try:
            return msgspec.json.encode(_object_decoder.decode(bare)).decode()
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            pass
    raise NotCalledError(name)
