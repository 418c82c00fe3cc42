"""The edit request as text: the session sends it, and servers of this project parse it.

Edit models get tagged blocks: ``<instruction>``, ``<before>``, ``<region …>``, ``<after>``.  A tag
whose name occurs in the content gets a numbered suffix, so that the request can always be parsed.

Chat models get what people paste into a chat window: the code in a fence, without the indentation
that all of it has, and the instruction behind it.  Small models do with that what they fail to do
with tags and with the lines around the region; and the code is read while the instruction is typed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from midstream.edits.indent import Dedented

_NAMES = ("instruction", "before", "region", "after")
_OPENING = re.compile(r"<(instruction|before|region|after)(-\d+)?((?: [a-z]+=\"[^\"\n]*\")*)>\n")
_ATTRIBUTE = re.compile(r" ([a-z]+)=\"([^\"\n]*)\"")
_MORE = re.compile(
    r"^(?:(?:yes|good|oh|ok|okay),?\s+)?"
    r"(?:keep that,?\s+but also|while you(?: are|'re) at it|one more thing|and also|and please|"
    r"also|and|in addition|additionally|plus|besides)\b[,:]?\s*",
    re.IGNORECASE,
)
_TOO = re.compile(r"\s*,?\s*\b(?:too|as well)\s*[.!]?$", re.IGNORECASE)
_ESCAPES = (("&", "&amp;"), ('"', "&quot;"), ("\n", "&#10;"))

_HOW: Final = (
    "Carry the instruction out and answer with the complete edited code in one code block. Keep "
    "everything that it does not ask for unchanged."
)
_NEW_CODE: Final = "Answer with only the new code for {path}, in one short code block."
_NEW_METHOD: Final = "Answer with the new method alone, in one code block. Do not repeat the class."
_STOPPED: Final = "You were stopped because there is a further instruction for the same code."
_AGAIN: Final = (
    "Begin anew: carry it out together with what it leaves of the earlier ones, and answer with "
    "the complete edited code in one code block."
)
_NEW_AGAIN: Final = (
    "Begin anew: carry it out together with what it leaves of the earlier ones, and answer with "
    "the new code alone, in one code block."
)
_CHAT: Final = re.compile(
    r"^Edit the following [^\n]+ according to the instruction\.\n\n"
    r"### Code\n(?P<fence>`{3,})(?P<language>[^`\n]*)\n",
    re.MULTILINE,
)
_TICKS: Final = re.compile(r"`{3,}")
_PROSE: Final = ("markdown", "rst", "text")
_WRITTEN: Final = {
    "bash": "Bash",
    "cpp": "C++",
    "csharp": "C#",
    "css": "CSS",
    "html": "HTML",
    "javascript": "JavaScript",
    "json": "JSON",
    "php": "PHP",
    "sql": "SQL",
    "toml": "TOML",
    "typescript": "TypeScript",
    "yaml": "YAML",
}
"""Names of languages that are not written with a first capital alone."""


@dataclass(frozen=True, slots=True)
class RegionRequest:
    r"""A request to rewrite one region of a file.

    Attributes:
        instruction: What to do, in words.
        region: The region's lines, each ``"\n"`` terminated (``""`` for an insertion point).
        path: The file's name, relative to the project.
        language: Name of the programming language.
        before: Lines before the region, each terminated.
        after: Lines after the region.
    """

    instruction: str
    region: str
    path: str = ""
    language: str = ""
    before: str = ""
    after: str = ""


def render_request(request: RegionRequest) -> str:
    """The request as text; ``parse_request`` is its inverse (up to a missing last newline)."""
    contents = (request.instruction, request.before, request.region, request.after)
    attributes = {"path": request.path, "language": request.language}
    parts: list[str] = []
    for name, content in zip(_NAMES, contents, strict=True):
        if not content and name in ("before", "after"):
            continue
        if name == "instruction" or (content and not content.endswith("\n")):
            content += "\n"
        extra = "".join(
            f' {key}="{_escape(value)}"'
            for key, value in attributes.items()
            if value and name == "region"
        )
        tag = name + _suffix(name, contents)
        parts.append(f"<{tag}{extra}>\n{content}</{tag}>\n")
    return "".join(parts)


def parse_request(text: str) -> RegionRequest | None:
    """Read a request back; None if the text has no region block.

    What a chat model is sent has the region without its indentation, and no path.
    """
    blocks = _blocks(text)
    if blocks is None or "region" not in blocks:
        return _parse_chat_request(text)
    region, extra = blocks["region"]
    attributes = {key: _unescape(value) for key, value in _ATTRIBUTE.findall(extra)}
    return RegionRequest(
        instruction=blocks.get("instruction", ("\n", ""))[0].removesuffix("\n"),
        region=region,
        path=attributes.get("path", ""),
        language=attributes.get("language", ""),
        before=blocks.get("before", ("", ""))[0],
        after=blocks.get("after", ("", ""))[0],
    )


def render_follow_up(instruction: str) -> str:
    """A redirect: a new instruction for the rewrite that was stopped."""
    tag = "instruction" + _suffix("instruction", (instruction,))
    return f"<{tag}>\n{instruction}\n</{tag}>\n"


def parse_follow_up(text: str) -> str | None:
    """Read a redirect back; None if the text is anything but one instruction block."""
    opening, ending = f"{_STOPPED}\n\n### Instruction\n", f"\n\n{_AGAIN}"
    if text.startswith(opening) and text.endswith(ending):
        return text[len(opening) : -len(ending)]
    blocks = _blocks(text)
    if blocks is None or set(blocks) != {"instruction"}:
        return None
    return blocks["instruction"][0].removesuffix("\n")


def render_chat_request(request: RegionRequest, known: str = "") -> str:
    """The request for a chat model, see the module.

    Args:
        request: The request; what is around the region is left out.
        known: What else the model is given, in front of it.
    """
    written = _WRITTEN.get(request.language, request.language.capitalize())
    what = f"{written} code" if request.language not in _PROSE else "text"
    opening = f"Edit the following {what.strip()} according to the instruction.\n\n"
    return _with_code(request, known, opening, _HOW)


def render_chat_addition(request: RegionRequest, known: str = "") -> str:
    """As ``render_chat_request``, for a method that a class gets: the answer is only that.

    Asked to "edit" the class, a model of 0.5B parameters writes all of it again.
    """
    return _with_code(request, known, "", _NEW_METHOD)


def render_chat_new_code(instruction: str, path: str, has: str, known: str = "") -> str:
    """The request for new definitions in a file, to a chat model.

    A model of 1.5B parameters repeats what it is shown of the file, so it is only told about it.

    Args:
        instruction: What to add.
        path: The file.
        has: What is said about it.
        known: What else the model is given, in front of it.
    """
    how = _NEW_CODE.format(path=path)
    return f"{known}### Instruction\n{instruction}\n\n{has} {how}"


def _with_code(request: RegionRequest, known: str, opening: str, how: str) -> str:
    known = f"{known}\n" if known else ""
    return (
        f"{known}{opening}### Code\n{code_block(request)}\n"
        f"### Instruction\n{request.instruction}\n\n{how}"
    )


def code_block(request: RegionRequest) -> str:
    """The region as ``render_chat_request`` fences it, which is how an answer mostly begins."""
    code = Dedented.of(request.region).text
    longest = max((len(found) for found in _TICKS.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    end = "" if code.endswith("\n") or not code else "\n"
    return f"{fence}{request.language}\n{code}{end}{fence}\n"


def _parse_chat_request(text: str) -> RegionRequest | None:
    opening = _CHAT.search(text)
    if opening is None or not text.endswith(f"\n\n{_HOW}"):
        return None
    start = opening.end()
    marks = re.compile(rf"^{opening['fence']}\n\n### Instruction\n", re.MULTILINE)
    closing = marks.search(text, start)
    if closing is None:
        return None
    instruction = text[closing.end() : -len(_HOW) - 2]
    return RegionRequest(instruction, text[start : closing.start()], language=opening["language"])


def render_chat_follow_up(instruction: str, *, adds: bool = False) -> str:
    """A redirect for a chat model, which begins anew its rewrite or what it ``adds``."""
    how = _NEW_AGAIN if adds else _AGAIN
    return f"{_STOPPED}\n\n### Instruction\n{instruction}\n\n{how}"


def _blocks(text: str) -> dict[str, tuple[str, str]] | None:
    """Content and attributes of each block; None if the text is not a sequence of blocks."""
    blocks: dict[str, tuple[str, str]] = {}
    at = 0
    while text[at:].strip():
        opening = _OPENING.match(text, at)
        if opening is None:
            return None
        name, suffix, extra = opening[1], opening[2] or "", opening[3]
        start = opening.end()
        closing = f"</{name}{suffix}>"
        stop = start if text.startswith(closing, start) else text.find(f"\n{closing}", start) + 1
        if name in blocks or (stop == 0 and not text.startswith(closing, start)):
            return None
        blocks[name] = (text[start:stop], extra)
        at = stop + len(closing)
        at += len(text[at:]) - len(text[at:].lstrip("\n"))
    return blocks


def _suffix(name: str, contents: tuple[str, ...]) -> str:
    """``""``, or the first of ``-2``, ``-3``, … that no content has after the tag's name."""
    used = {
        match[1] or ""
        for content in contents
        for match in re.finditer(rf"</?{name}(-\d+)?(?![\w-])", content)
    }
    suffix, number = "", 1
    while suffix in used:
        number += 1
        suffix = f"-{number}"
    return suffix


@dataclass(frozen=True, slots=True)
class Carried:
    """The input of an edit model for an instruction and its redirects.

    Attributes:
        instruction: One instruction.
        left_out: Those that are still meant and not in it, oldest first.
    """

    instruction: str
    left_out: tuple[str, ...] = ()


def carried(said: Sequence[str]) -> Carried:
    """Return what is carried of an instruction and its redirects, oldest first, at least one.

    A redirect that asks for more ("also", "too") adds to what was said before it; any other takes
    its place. The models are trained on two instructions at most: of more that are still meant they
    are given the original and the newest.
    """
    meant = [said[0]]
    for newest in said[1:]:
        more = _TOO.sub("", _MORE.sub("", newest))
        meant = [*meant, more] if more and more != newest else [newest]
    if len(meant) == 1:
        return Carried(meant[0])
    return Carried(f"{meant[0].rstrip(' .!')} and {meant[-1]}", tuple(meant[1:-1]))


def _escape(value: str) -> str:
    for plain, escaped in _ESCAPES:
        value = value.replace(plain, escaped)
    return value


def _unescape(value: str) -> str:
    for plain, escaped in reversed(_ESCAPES):
        value = value.replace(escaped, plain)
    return value
