"""An edit model behind a client that has the files and the tools for them, such as Codex.

Such a client asks in words, and expects calls of its tools. The next step follows from the
conversation alone:

1. Words that name a file: the client's shell is called to print it, with its length.
2. The printed file: the model rewrites it (of a long one, the definition that the words name), and
   the rewrite becomes a call of ``apply_patch``. A rewrite that the model is not sure of is shown
   instead, and applied if the answer is ``apply it``.
3. What the tool says about the patch becomes the answer.

Codex 0.169 offers its tools in three ways, by the model's name: ``exec_command`` alone (which takes
``apply_patch`` as a command), with the custom tool ``apply_patch``, or both behind the custom tool
``exec``, which runs JavaScript.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from midstream.code.languages import spelled
from midstream.code.lexing import language_of
from midstream.edits.request import RegionRequest, parse_request, render_request
from midstream.engine.types import Message, Usage
from midstream.responses.model_info import ModelInfo
from midstream.serving.forced_calls import ForcedCall
from midstream.serving.rewrites import NoPatchError, fenced_request, rewrite_patch
from midstream.serving.tools import APPLY_PATCH, OfferedTools

_FILE = re.compile(
    r"(?<![\w/.@-])@?(?:\./)*(?P<path>(?:(?<!:)/)?[\w.@+-]*[\w@+](?:/[\w.@+-]+)*\.[A-Za-z]\w*)"
)
"""A file as people name it: also ``./app.py``, ``@app.py``, and with its whole path."""
_WORD = re.compile(r"[^\W\d]\w*")
_PRINTED = re.compile(
    r"^\*\*\* File, (?P<size>\d+) bytes\n(?P<text>.*)\n\*\*\* End of file$",
    re.DOTALL | re.MULTILINE,
)
_CONSENT = re.compile(
    r"\s*(?:(?:yes|ok|okay|please)\b[,.]?\s*)*(?:apply (?:it|this|that))\s*[.!]?\s*"
)
_SHOWN = re.compile(
    r"^```diff\n(?P<patch>\*\*\* Begin Patch\n.*^\*\*\* End Patch\n)```$", re.M | re.S
)
_MAX_WHOLE_LINES: Final = 60
"""Lines of a file up to which all of it is rewritten; of a longer one, a named definition."""
_MAX_REPORT_LENGTH: Final = 400
"""Characters of a tool's result that are repeated."""


@dataclass(frozen=True, slots=True)
class ClientStep:
    """The next step in the work of an edit model with its client's tools.

    Attributes:
        call: The call that everything written belongs to; None for a message.
        said: What is written without asking the model; "" to ask it.
        asked: What it is asked; None where it is not.
    """

    call: ForcedCall | None = None
    said: str = ""
    asked: RegionRequest | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation that the model is given."""
        return () if self.asked is None else (Message("user", render_request(self.asked)),)

    def objection(self, answer: str, usage: Usage, threshold: float) -> str:
        """What to say instead of calling the tool; "" for nothing.

        Clients apply a patch without a person having seen it.

        Args:
            answer: The model's rewrite.
            usage: What it says of its own answer.
            threshold: The probability of being right that the client's call needs.
        """
        if self.asked is None:
            return ""
        try:
            patch = rewrite_patch(self.asked, answer)
        except NoPatchError as error:
            return str(error)
        if usage.confidence is None or usage.confidence >= threshold:
            return ""
        return (
            f"I am not sure of this change ({usage.confidence:.0%} likely to be right), so I have "
            f"not applied it:\n\n```diff\n{patch}```\n\nSay `apply it` to have it applied as it "
            "is, or put the request in other words."
        )


@dataclass(frozen=True, slots=True)
class _ClientTools:
    """How the client's tools are called."""

    shell: str
    shell_custom: bool
    command: Callable[[str], str]
    patcher: str
    patcher_custom: bool
    patch: Callable[[str], str]


def client_step(
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
    use: OfferedTools,
    model: ModelInfo,
) -> ClientStep | None:
    """The next step; None where this is no work with a client's tools."""
    found = None if use.required else _find_tools(tools, use)
    at = max((n for n, message in enumerate(messages) if message.role == "user"), default=-1)
    if found is None or at < 0:
        return None
    instruction, since = messages[at].text, messages[at + 1 :]
    if parse_request(instruction) is not None or fenced_request(instruction) is not None:
        return None
    if since and since[-1].role != "tool":
        return None
    if not since and _CONSENT.fullmatch(instruction.lower()) and (shown := _shown(messages[:at])):
        return ClientStep(_patch_call(found), found.patch(shown))
    path = _named_file(messages[: at + 1])
    if path is None:
        return ClientStep(
            said="Name the file to change, such as: in src/app.py, rename total to amount. This "
            "model makes small changes in one file and answers no questions; use a chat model for "
            "anything else."
        )
    language = language_of(path).lower()
    if model.languages and language not in model.languages:
        known = spelled(model.languages)
        return ClientStep(
            said=f"This model edits {known} only, and {path} is something else; use a chat model."
        )
    look = found.command(_look(path))
    calls = [message.text for message in since if message.role == "assistant"]
    if not calls:
        return ClientStep(ForcedCall(found.shell, found.shell_custom), look)
    if len(calls) > 1 or calls[0] != look:
        return ClientStep(said=_report(since[-1].text))
    return _rewrite(instruction, path, language, since[-1].text, found, model)


def _rewrite(
    instruction: str,
    path: str,
    language: str,
    printed: str,
    tools: _ClientTools,
    model: ModelInfo,
) -> ClientStep:
    found = _PRINTED.search(printed.replace("\r\n", "\n") if "\r\n*** End" in printed else printed)
    if found is None:
        return ClientStep(said=f"{path} could not be read. {_report(printed)}")
    text, size = found["text"], int(found["size"])
    if len(text.encode()) != size or "\r" in text:
        return ClientStep(
            said=f"{path} did not arrive as it is on disk ({size:,} bytes): it is too long for the "
            "tool, is not UTF-8, or has CRLF line endings. Edit it with midstream itself."
        )
    request = _region(instruction, path, language, text, model.max_region_lines)
    if request is None:
        return ClientStep(
            said=f"{path} is too long for this model as a whole; name the function or class to "
            f"change (up to {model.max_region_lines} lines)."
        )
    call = _patch_call(tools)
    made = ForcedCall(
        call.name, call.custom, lambda answer: tools.patch(rewrite_patch(request, answer))
    )
    return ClientStep(made, asked=request)


def _region(
    instruction: str, path: str, language: str, text: str, most: int | None
) -> RegionRequest | None:
    """The part of a file to rewrite: all of it, or the definition that an instruction names."""
    lines = text.splitlines(keepends=True)
    start, stop = 0, len(lines)
    if len(lines) > _MAX_WHOLE_LINES:
        start, stop = _named_definition(instruction, text) or (0, len(lines))
    if most is not None and stop - start > most:
        return None
    before, region, after = (
        "".join(part) for part in (lines[:start], lines[start:stop], lines[stop:])
    )
    # The folders in front of a name are noise to the model.
    asked = instruction.replace(path, PurePosixPath(path).name)
    return RegionRequest(asked, region, path, language, before, after)


def _named_definition(instruction: str, text: str) -> tuple[int, int] | None:
    """The lines ``[start, stop)`` of the definition whose name comes first in an instruction."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    places: dict[str, tuple[int, int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            places.setdefault(node.name, (first - 1, node.end_lineno or node.lineno))
    return next((places[word] for word in _WORD.findall(instruction) if word in places), None)


def _named_file(messages: Sequence[Message]) -> str | None:
    """The file that the newest words name; earlier words count where the newest name none."""
    for message in reversed(messages):
        # A client's words about itself come in tags, or under a heading.
        if message.role != "user" or message.text.lstrip().startswith(("<", "#")):
            continue
        for word in _FILE.findall(message.text):
            if language_of(word):
                return word
    return None


def _look(path: str) -> str:
    """The command that prints a file with its length and an end, so that a cut is noticed."""
    name = shlex.quote(path)
    return (
        f"printf '*** File, %d bytes\\n' \"$(wc -c < {name})\" && cat {name} && "
        "printf '\\n*** End of file\\n'"
    )


def _report(result: str) -> str:
    """A tool's result as a sentence; Codex puts facts in front of it, up to a line ``Output:``."""
    _, _, after = result.rpartition("Output:\n")
    words = after.split()
    return f"The tool answered: {' '.join(words)[:_MAX_REPORT_LENGTH] or 'nothing'}"


def _shown(messages: Sequence[Message]) -> str | None:
    """The patch that was shown last and not applied."""
    said = next((m.text for m in reversed(messages) if m.role == "assistant"), "")
    found = _SHOWN.search(said)
    return None if found is None else found["patch"]


def _patch_call(tools: _ClientTools) -> ForcedCall:
    return ForcedCall(tools.patcher, tools.patcher_custom)


def _find_tools(tools: Sequence[Mapping[str, Any]], use: OfferedTools) -> _ClientTools | None:
    """The client's tools for reading and for patching; None if it has none that are known."""
    offered = use.offered
    runs = next((tool for tool in tools if tool.get("name") == "exec"), None)
    if offered.get("exec") == "custom" and "tools.exec_command" in str(
        (runs or {}).get("description")
    ):
        return _ClientTools("exec", True, _command_script, "exec", True, _patch_script)
    shell = next((name for name in _SHELLS if offered.get(name) == "function"), None)
    if shell is None:
        return None
    run = _SHELLS[shell]
    kind = offered.get(APPLY_PATCH)
    if kind is None:
        return _ClientTools(shell, False, run, shell, False, lambda patch: run(_here(patch)))
    custom = kind == "custom"
    return _ClientTools(shell, False, run, APPLY_PATCH, custom, _as_is if custom else _as_object)


_SHELLS: Final[Mapping[str, Callable[[str], str]]] = {
    "exec_command": lambda command: json.dumps({"cmd": command}),
    "shell_command": lambda command: json.dumps({"command": command}),
    "shell": lambda command: json.dumps({"command": ["bash", "-lc", command]}),
}
"""The input of the functions that run a command, by name: of Codex now, and of earlier versions."""


def _command_script(command: str) -> str:
    given = json.dumps({"cmd": command})
    return f"const done = await tools.exec_command({given});\ntext(done.output);\n"


def _patch_script(patch: str) -> str:
    return f"await tools.apply_patch({json.dumps(patch)});\ntext('Success.');\n"


def _here(patch: str) -> str:
    """The command that applies a patch, all of whose lines begin otherwise than its last one."""
    return f"apply_patch <<'END_OF_PATCH'\n{patch}END_OF_PATCH\n"


def _as_is(patch: str) -> str:
    return patch


def _as_object(patch: str) -> str:
    return json.dumps({"input": patch})
