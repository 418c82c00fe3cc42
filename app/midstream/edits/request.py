"""The edit request as text: the session sends it, the built-in engine parses it, chat models read
it.

It consists of tagged blocks: ``<instruction>``, ``<before>``, ``<region …>``, ``<after>``.  A tag
whose name occurs in the content gets a numbered suffix, so that the request can always be parsed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

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
    """Read a request back; None if the text has no region block."""
    blocks = _blocks(text)
    if blocks is None or "region" not in blocks:
        return None
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
    blocks = _blocks(text)
    if blocks is None or set(blocks) != {"instruction"}:
        return None
    return blocks["instruction"][0].removesuffix("\n")


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
