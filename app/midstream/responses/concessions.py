"""Fields that a server refuses are left out, and remembered for the session.

Servers refuse requests for a field that they do not know, or a role that their chat template does
not have. Where the request can do without, it is sent again; the sentence of the refusal says what
is meant. What is left out changes how the server is asked, never what is asked for: tools, which
do, are the business of ``midstream.responses.client``.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from midstream.responses.refusals import Refusal

Body = dict[str, Any]
_STATUSES: Final = frozenset({400, 404, 415, 422, 500, 501})


@dataclass(frozen=True, slots=True)
class Concession:
    """Something that a request can do without.

    Attributes:
        what: What is left out, as a person calls it; or what is done, for a sentence about the
            server: "takes no ...".
        words: What a refusal for it says.
        make: Takes it out of a body; whether it was there.
        api: The API in which it can be done without; ``""`` for all.
    """

    what: str
    words: re.Pattern[str]
    make: Callable[[Body], bool]
    api: str = ""


def refuses_tools(message: str) -> bool:
    """Whether a refusal is about tools in general."""
    return _TOOLS.search(message) is not None


_TOOLS: Final = re.compile(r"\btools?\b|function.?call|tool[_-]choice", re.IGNORECASE)


def _words(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


def _field(*names: str) -> Concession:
    def make(body: Body) -> bool:
        had = body.keys() & {*names}
        for name in had:
            del body[name]
        return bool(had)

    return Concession(f"`{names[0]}`", _words(*map(re.escape, names)), make)


def _tool_field(name: str) -> Concession:
    def make(body: Body) -> bool:
        tools = cast("list[Body]", body.get("tools") or [])
        had = [tool.pop(name, None) is not None for tool in tools]
        had += [
            tool["function"].pop(name, None) is not None for tool in tools if "function" in tool
        ]
        return any(had)

    return Concession(f"`{name}` of tools", _words(re.escape(name)), make)


def _renamed(old: str, new: str) -> Concession:
    def make(body: Body) -> bool:
        if old not in body or new in body:
            return False
        body[new] = body.pop(old)
        return True

    return Concession(f"`{old}`, but `{new}`", _words(rf"\b{old}\b"), make, "chat")


_LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_TOO_MANY: Final = _words("max_tokens", "max_(?:completion|output)_tokens", "context length")
_CONTEXT: Final = _words(
    r"context length is (?P<context>\d+).*?(?P<prompt>\d+) in the (?:messages|prompt)"
)
_NUMBER: Final = re.compile(r"\b\d{2,7}\b")


def _fewer_tokens(text: str, body: Body) -> Concession | None:
    """Ask for no more tokens than a refusal names, where it says that they are too many."""
    name = next((name for name in _LIMITS if isinstance(body.get(name), int)), "")
    if not name or not _TOO_MANY.search(text):
        return None
    if (found := _CONTEXT.search(text)) is not None:
        most = int(found["context"]) - int(found["prompt"])
    else:
        most = max((n for n in map(int, _NUMBER.findall(text)) if n < body[name]), default=0)
    if not 0 < most < body[name]:
        return None

    def make(body: Body) -> bool:
        body[name] = min(body[name], most)
        return True

    return Concession(f"more than {most:,} tokens to write", _TOO_MANY, make)


def _without_developer(body: Body) -> bool:
    roles = [each for each in _turns(body) if each.get("role") == "developer"]
    for each in roles:
        each["role"] = "system"
    return bool(roles)


def _without_system(body: Body) -> bool:
    """Put the instructions in front of the first message of the user."""
    turns = _turns(body)
    said = [body.pop(name) for name in ("system", "instructions") if body.get(name)]
    first = [each for each in turns if each.get("role") in ("system", "developer")]
    said += [_text(each["content"]) for each in first]
    if not said:
        return False
    kept = [each for each in turns if each not in first]
    user = next((each for each in kept if each.get("role") == "user"), None)
    text = "\n\n".join(said)
    if user is None:
        kept.insert(0, {"role": "user", "content": text})
    elif isinstance(user["content"], str):
        user["content"] = f"{text}\n\n{user['content']}"
    else:
        part = cast("list[Body]", user["content"])[0]
        user["content"] = [
            {**part, "text": f"{text}\n\n{part.get('text', '')}"},
            *user["content"][1:],
        ]
    body["messages" if "messages" in body else "input"] = kept
    return True


def _without_stream(body: Body) -> bool:
    """Ask for the answer in one piece."""
    body.pop("stream_options", None)
    return body.pop("stream", None) is not None


def _turns(body: Body) -> list[Body]:
    turns = body.get("messages", body.get("input"))
    return cast("list[Body]", turns) if isinstance(turns, list) else []


def _text(content: str | list[Body]) -> str:
    return (
        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    )


CONCESSIONS: Final = (
    Concession(
        "the role `developer`",
        _words("developer", r"unknown role|invalid role"),
        _without_developer,
    ),
    Concession(
        "system messages",
        _words(
            r"system (?:role|message|prompt|instruction)|role.{0,20}system",
            r"\bsystem\b.{0,30}support",
            r"only user.{0,40}assistant|roles? must alternate|developer instruction",
        ),
        _without_system,
    ),
    _renamed("max_tokens", "max_completion_tokens"),
    _renamed("max_completion_tokens", "max_tokens"),
    _field("stream_options", "include_usage", "include_obfuscation"),
    Concession(
        "streams", _words(r"\bto stream\b", r"['\"`]stream['\"`]", "streaming"), _without_stream
    ),
    _field("temperature"),
    _field("parallel_tool_calls"),
    _tool_field("eager_input_streaming"),
    _tool_field("strict"),
    _field("tool_choice"),
    _field("reasoning_effort", "reasoning"),
    _field("output_config", "effort"),
    _field("reasoning", "effort"),
    _field("cache_control"),
    _field("max_output_tokens"),
    _field("metadata"),
    _field("store"),
)


MAX_CONCESSIONS: Final = 2 * len(CONCESSIONS)


class Concessions:
    """The fields that a server has refused in this session, and that are left out."""

    def __init__(self) -> None:
        self._made: list[Concession] = []

    @property
    def remark(self) -> str:
        """The omitted fields, as the end of a sentence about the server, or ``""``."""
        if not self._made:
            return ""
        *others, last = (each.what for each in self._made)
        return f"takes no {', no '.join(others)}{' and no ' if others else ''}{last}"

    def apply(self, body: Body) -> Body:
        """Leave out of a body what the server refuses."""
        for each in self._made:
            each.make(body)
        return body

    def concede(self, refusal: Refusal, body: Body, api: str) -> bool:
        """Leave out what a refusal of this body is about; whether there was something."""
        if refusal.status not in _STATUSES:
            return False
        text = refusal.body.decode("utf-8", "replace")
        fewer = _fewer_tokens(text, body) if len(self._made) < MAX_CONCESSIONS else None
        if fewer is not None:
            self._made.append(fewer)
            return True
        for each in CONCESSIONS:
            # On a copy: the body is made anew.
            if (
                each.api in ("", api)
                and each not in self._made
                and each.words.search(text)
                and each.make(copy.deepcopy(body))
            ):
                self._made.append(each)
                return True
        return False

    def withdraw(self, count: int) -> None:
        """Take concessions back that did not help: only the first ``count`` stand."""
        del self._made[count:]

    def __len__(self) -> int:
        return len(self._made)
