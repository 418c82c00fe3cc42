"""Tools: which must be called, how they are described to a chat model, how its text becomes calls.

A chat model calls a function as Qwen and Hermes models learnt it, a JSON object between
``<tool_call>`` and ``</tool_call>``, on lines of their own or on one; a custom tool with its bare
input between ``<tool_call name="NAME">`` and ``</tool_call>``; and the tool ``apply_patch`` by
writing a patch. Running a tool is the client's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import msgspec

from midstream.serving.requests import RequestError

APPLY_PATCH: Final = "apply_patch"
"""The custom tool that takes a patch."""
_PATCH_BEGIN, _PATCH_END = "*** Begin Patch", "*** End Patch"
_TAG, _TAG_END = "<tool_call", "</tool_call>"
_OPENING = re.compile(r'<tool_call(?: name="(?P<name>[^"\n]{1,128})")?>\s*$')
_FUNCTION = re.compile(r"<tool_call>[ \t]*(?:\{|$)")
"""A line that may hold all of a function call."""
_BETWEEN_CALLS = re.compile(rf"{_TAG_END}\s*<tool_call>")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_MAX_ARGUMENTS = 1_000_000
"""Characters of a function call that are held back to be read as a whole."""

_object_decoder = msgspec.json.Decoder(dict[str, Any])

Choice = str | dict[str, Any] | None
"""``tool_choice``."""


@dataclass(frozen=True, slots=True)
class TextStep:
    """Text of a message."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call begins."""

    name: str
    custom: bool


@dataclass(frozen=True, slots=True)
class CallInput:
    """Input of the call that began."""

    text: str


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The call is whole."""


Step = TextStep | CallStart | CallInput | CallEnd


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """Which tools a request offers, and what it says about calling them.

    Attributes:
        offered: Their types ("function" or "custom"), by name.
        required: Whether one of them has to be called.
        named: The tool that must be called; "" if the model may choose.
        namespaces: The namespaces of those that are in one, by name.
    """

    offered: Mapping[str, str]
    required: bool = False
    named: str = ""
    namespaces: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def forced(self) -> str:
        """The only tool that can be called where one has to be, "" otherwise."""
        return next(iter(self.offered)) if self.required and len(self.offered) == 1 else ""


def read_tools(tools: Sequence[Mapping[str, Any]], choice: Choice) -> OfferedTools:
    """Read ``tools`` and ``tool_choice``.

    Tools of other types than "function" and "custom" are run by the company that hosts a model.
    They are left out, because clients offer them to every server.

    Raises:
        RequestError: ``tool_choice`` is not valid, or asks for a tool that is not there.
    """
    offered: dict[str, str] = {}
    spaces: dict[str, str] = {}
    for tool in tools:
        name, kind, space = tool.get("name"), tool.get("type"), tool.get("namespace")
        if isinstance(name, str) and name and kind in ("function", "custom"):
            offered[name] = kind
            if isinstance(space, str) and space:
                spaces[name] = space
    mode = "auto" if choice is None else choice
    if isinstance(mode, dict):
        if mode.get("type") != "allowed_tools":
            name = _named(mode, offered)
            return OfferedTools({name: offered[name]}, required=True, named=name, namespaces=spaces)
        allowed: Any = mode.get("tools")
        if not isinstance(allowed, list):
            raise RequestError("tool_choice.tools must be a list.", param="tool_choice")
        names = {_named(tool, offered) for tool in cast("list[Any]", allowed)}
        offered = {name: kind for name, kind in offered.items() if name in names}
        mode = mode.get("mode", "auto")
    if mode == "none":
        return OfferedTools({})
    if mode not in ("auto", "required"):
        raise RequestError(
            'tool_choice must be "auto", "none", "required", or name a tool.', param="tool_choice"
        )
    if mode == "required" and not offered:
        raise RequestError(
            "tool_choice wants a call, but the request has no function and no custom tool.",
            param="tool_choice",
        )
    return OfferedTools(offered, required=mode == "required", namespaces=spaces)


def _named(choice: Any, offered: Mapping[str, str]) -> str:
    """The name of the tool that an entry of ``tool_choice`` means.

    Raises:
        RequestError: It is none of the offered ones.
    """
    fields = cast("dict[str, Any]", choice) if isinstance(choice, dict) else {}
    name, kind = fields.get("name"), fields.get("type")
    if not isinstance(name, str) or offered.get(name) != kind:
        known = ", ".join(offered) or "none"
        raise RequestError(
            f"tool_choice wants the tool {name or kind!r}, which the request does not offer as a "
            f"function or custom tool; offered: {known}.",
            param="tool_choice",
        )
    return name


def tool_instructions(tools: Sequence[Mapping[str, Any]], use: OfferedTools) -> str:
    """System text that tells a chat model how to call the tools; "" if there are none."""
    offered = use.offered
    if not offered:
        return ""
    functions: list[str] = []
    customs: list[str] = []
    for tool in tools:
        name, about = tool.get("name"), tool.get("description") or ""
        if offered.get(name or "") == "function":
            signature = {"name": name, "description": about, "parameters": tool.get("parameters")}
            functions.append(
                msgspec.json.encode({"type": "function", "function": signature}).decode()
            )
        elif name == APPLY_PATCH:
            customs.append(
                f"{name}: {about}\nCall it by writing the patch on lines of its own, from the line "
                f"{_PATCH_BEGIN} to the line {_PATCH_END}."
            )
        elif offered.get(name or "") == "custom":
            customs.append(
                f'{name}: {about}\nCall it with the line <tool_call name="{name}">, then its '
                f"input, then the line {_TAG_END}."
            )
    parts = ["# Tools", "You may call tools to help with the request."]
    if functions:
        parts += ["<tools>", *functions, "</tools>"]
        parts.append(
            "Call a function with the line <tool_call>, then a line "
            '{"name": NAME, "arguments": OBJECT}, then the line </tool_call>.'
        )
    parts += customs
    if use.required:
        parts.append(f"Call {use.named or 'one of them'} now.")
    return "\n".join(parts)


class CallSplitter:
    """Cuts a model's text into messages and tool calls while it arrives.

    Text is passed on at once, except for what could still become the line that begins or ends a
    call. A call of a tool that is not on offer stays text.

    Args:
        tools: Types of the tools on offer, by name.
    """

    def __init__(self, tools: Mapping[str, str]) -> None:
        self._tools = tools
        self._begins = (_PATCH_BEGIN, _TAG) if tools.get(APPLY_PATCH) == "custom" else (_TAG,)
        self._line = ""
        self._inside = ""
        """The line that ends the call which is being written, "" outside of calls."""
        self._passing = False
        self._function: list[str] | None = None
        self._characters = 0

    def feed(self, text: str) -> list[Step]:
        steps: list[Step] = []
        for part in _LINES.findall(text):
            if self._passing:
                self._pass(part, steps)
                self._passing = not part.endswith("\n")
                continue
            self._line += part
            if part.endswith("\n"):
                line, self._line = self._line, ""
                self._take(line, steps)
            elif not self._may_mark(self._line):
                line, self._line = self._line, ""
                self._passing = True
                self._pass(line, steps)
        return steps

    def finish(self) -> list[Step]:
        """The items that the end of the text completes; a call without its last line is
        incomplete.
        """
        steps: list[Step] = []
        line, self._line = self._line, ""
        if line:
            self._take(line, steps)
        if self._function is not None:
            steps.append(TextStep("".join(self._function)))
            self._function, self._inside = None, ""
        return steps

    def _may_mark(self, line: str) -> bool:
        if self._function is not None:
            return self._characters + len(line) <= _MAX_ARGUMENTS
        if self._inside:
            return self._inside.startswith(line.rstrip()) or line.rstrip() == self._inside
        for begin in self._begins:
            if begin.startswith(line) or (begin == _TAG and _may_open(line)):
                return True
            if begin == _PATCH_BEGIN and line.rstrip() == begin:
                return True
        return False

    def _take(self, line: str, steps: list[Step]) -> None:
        bare = line.rstrip()
        if self._function is not None:
            self._pass(line, steps)
            if bare.endswith(_TAG_END):
                steps += self._called()
            return
        if self._inside:
            if bare == self._inside:
                if self._inside == _PATCH_END:
                    steps.append(CallInput(line))
                steps.append(CallEnd())
                self._inside = ""
            else:
                self._pass(line, steps)
            return
        opening = _OPENING.match(line)
        if _PATCH_BEGIN in self._begins and bare == _PATCH_BEGIN:
            self._inside = _PATCH_END
            steps += [CallStart(APPLY_PATCH, True), CallInput(line)]
        elif _FUNCTION.match(bare):
            self._inside, self._function, self._characters = _TAG_END, [], 0
            self._take(line, steps)
        elif opening is not None and self._tools.get(opening["name"]) == "custom":
            self._inside = _TAG_END
            steps.append(CallStart(opening["name"], True))
        else:
            self._pass(line, steps)

    def _pass(self, text: str, steps: list[Step]) -> None:
        if self._function is not None:
            self._function.append(text)
            self._characters += len(text)
            if self._characters > _MAX_ARGUMENTS:
                steps.append(TextStep("".join(self._function)))
                self._function, self._inside = None, ""
        else:
            steps.append(CallInput(text) if self._inside else TextStep(text))

    def _called(self) -> Iterator[Step]:
        """The calls in the text that was held back, or that text if it holds none."""
        text = "".join(self._function or ())
        self._function, self._inside = None, ""
        inside = text.strip().removeprefix("<tool_call>").removesuffix(_TAG_END)
        calls = [read_call(body) for body in _BETWEEN_CALLS.split(inside)]
        if any(call is None or call.name not in self._tools for call in calls):
            yield TextStep(text)
            return
        for call in calls:
            if call is not None:
                kind = self._tools[call.name]
                yield CallStart(call.name, kind == "custom")
                yield CallInput(call.input_of(kind))
                yield CallEnd()


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as a model wrote it."""

    name: str
    arguments: str | dict[str, Any]

    def input_of(self, kind: str) -> str:
        """Its input for a tool of a kind: JSON for a function, text for a custom tool."""
        arguments = self.arguments
        if isinstance(arguments, str):
            return arguments
        text = arguments.get("input") if kind == "custom" else None
        return text if isinstance(text, str) else msgspec.json.encode(arguments).decode()


def read_call(text: str) -> WrittenCall | None:
    """The call in a JSON object; ``None`` if it is none.

    Models name the arguments as their training did: ``arguments``, or ``parameters`` (Llama).
    """
    try:
        fields = _object_decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    # In the form in which a client would send it.
    if isinstance(inner := fields.get("function"), dict):
        fields = cast("dict[str, Any]", inner)
    name = fields.get("name", fields.get("function"))
    given = [fields[key] for key in ("arguments", "parameters") if fields.get(key) is not None]
    arguments: Any = given[0] if given else dict[str, Any]()
    if not isinstance(name, str) or not isinstance(arguments, str | dict):
        return None
    return WrittenCall(name, cast("str | dict[str, Any]", arguments))


def _may_open(line: str) -> bool:
    """Whether an unfinished line can still become an opening tag, or a call on one line."""
    if _FUNCTION.match(line):
        return len(line) <= _MAX_ARGUMENTS
    return (
        line.startswith(_TAG)
        and (len(line) < len(_TAG) + 160)
        and (_OPENING.match(line) is not None or ">" not in line)
    )
