"""Adapts a model that only rewrites marked regions to the requests of other clients.

Such a model is asked with a region, and its answer is the region's new text. A client of the
Responses API asks with an instruction and a fenced code block, goes on from the answer in words,
and may want it as a patch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from midstream.edits.request import (
    RegionRequest,
    parse_follow_up,
    parse_request,
    render_request,
)
from midstream.engine.types import Message
from midstream.errors import UserError
from midstream.serving.requests import FinishedAnswer

_OPENING = re.compile(r"(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_CONTEXT_LINES = 3
"""Unchanged lines around the region in a patch, as the patch format recommends."""


_MAX_REPORT_LENGTH = 200
"""Characters of a tool's result that are repeated."""


class NoPatchError(UserError):
    """A rewrite that cannot be written as a patch; the sentence says why."""

    code = "no_patch"


def as_edits(messages: Iterable[Message]) -> tuple[Message, ...]:
    """A conversation as an edit model is asked: every request holds its region.

    Instructions with one fenced code block are about that block, and instructions after a finished
    rewrite about its result. What follows an unfinished rewrite (a redirect) continues it and stays
    as it is.
    """
    found: list[Message] = []
    region: RegionRequest | None = None
    answer, finished = "", False
    for message in messages:
        if message.role == "assistant" and not finished:
            answer += message.text
            finished = isinstance(message, FinishedAnswer)
        elif message.role == "user":
            asked: RegionRequest | None = parse_request(message.text)
            if asked is None and (asked := fenced_request(message.text)) is not None:
                message = Message("user", render_request(asked))
            if asked is None and region is not None and finished:
                instruction = parse_follow_up(message.text) or message.text
                asked = replace(
                    region, instruction=instruction, region=_lines(answer) or region.region
                )
                message = Message("user", render_request(asked))
            if asked is not None:
                region, answer, finished = asked, "", False
        found.append(message)
    return tuple(found)


def fenced_request(text: str) -> RegionRequest | None:
    """Read an instruction with one fenced code block; None if the text is anything else.

    The fence may name the language and the file: ``python src/sums.py``.
    """
    words: list[str] = []
    code: list[str] = []
    fence, info, blocks = "", "", 0
    for line in text.splitlines(keepends=True):
        opening = _OPENING.match(line.rstrip())
        if fence:
            closing = line.rstrip()
            if closing.startswith(fence) and not closing.strip(fence[0]):
                fence = ""
            else:
                code.append(line)
        elif opening is not None:
            fence, info = opening["fence"], opening["info"]
            blocks += 1
        else:
            words.append(line)
    instruction, region = "".join(words).strip(), "".join(code)
    if blocks != 1 or fence or not instruction or not region.strip():
        return None
    named = info.split()
    path = next((word for word in named if "." in word or "/" in word), "")
    language = named[0] if named and named[0] != path else ""
    return RegionRequest(instruction, region, path, language)


def last_region(messages: Sequence[Message]) -> RegionRequest | None:
    """The region that a conversation is about; None if it holds none."""
    asked = (
        parse_request(message.text) for message in reversed(messages) if message.role == "user"
    )
    return next((region for region in asked if region is not None), None)


def tool_report(messages: Sequence[Message]) -> str:
    """What to say where only a tool's result follows a rewrite, "" elsewhere.

    A client that runs tools asks again with their results, and takes an empty answer for a fault.
    """
    if not messages or messages[-1].role != "tool" or last_region(messages) is None:
        return ""
    first = messages[-1].text.strip().partition("\n")[0][:_MAX_REPORT_LENGTH]
    return f"The tool answered: {first or 'nothing'}"


def rewrite_patch(request: RegionRequest, answer: str) -> str:
    """A rewrite as the input of ``apply_patch``.

    Raises:
        NoPatchError: The request names no file, or nothing changed.
    """
    if not request.path:
        raise NoPatchError(
            'The region does not say which file it is from; write <region path="FILE">, or ask '
            "without tool_choice for the bare text."
        )
    old, new = request.region.splitlines(), answer.splitlines()
    if old == new:
        raise NoPatchError(
            "The model changed nothing, so there is no patch to apply; ask for one small, exact "
            "change, or use a larger model."
        )
    body = [f" {line}" for line in request.before.splitlines()[-_CONTEXT_LINES:]]
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            body += (f" {line}" for line in old[a:b])
        else:
            body += (f"-{line}" for line in old[a:b])
            body += (f"+{line}" for line in new[c:d])
    body += (f" {line}" for line in request.after.splitlines()[:_CONTEXT_LINES])
    lines = ("*** Begin Patch", f"*** Update File: {request.path}", "@@", *body, "*** End Patch")
    return "\n".join(lines) + "\n"


def _lines(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
