"""How an answer is read as Markdown: with links to the files it names, and patches as code.

``src/app.py:12`` opens that line of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from midstream.pairing.chat.entries import PLACE, NamedPlace

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore

_PATCH_BEGINS: Final = re.compile(
    r"(?:<{3,9}|-{3,9}) SEARCH>?\s*$|(?P<patch>\*\*\* Begin Patch)\s*$"
)
_BLOCK_ENDS: Final = re.compile(r"(?:>{3,9}|\+{3,9}) REPLACE>?\s*$")
_PATCH_ENDS: Final = re.compile(r"\*\*\* End Patch\s*$")
_LINE: Final = re.compile(r"L?(\d{1,6})")


class _SharedParser(MarkdownIt):
    """A parser for several threads, of which one parses at a time.

    Its patterns for addresses are 200 kB of text: too much for each answer.
    """

    def __init__(self, config: str) -> None:
        super().__init__(config)
        self._lock = Lock()

    def parse(self, src: str, env: Any = None) -> list[Token]:
        with self._lock:
            return super().parse(src, env)


def parser(exists: Callable[[str], bool]) -> MarkdownIt:
    """A parser of Markdown that links the files it finds, and takes a bare patch for code.

    Any number of threads can use it.

    Args:
        exists: Whether there is a file with this path.
    """

    def link(state: StateCore) -> None:
        for token in state.tokens:
            if token.type == "inline" and token.children:
                token.children = _linked(token.children, exists)

    markdown = _SharedParser("gfm-like")
    # It takes every file in Python for an address in Paraguay.
    markdown.linkify.set({"fuzzy_link": False})  # pyright: ignore[reportOptionalMemberAccess, reportUnknownMemberType]
    markdown.core.ruler.push("places", link)
    # Before all others: they read its markers as quotes, headings and rules.
    markdown.block.ruler.before("table", "patch", _patch, {"alt": ["paragraph", "reference"]})
    return markdown


def _patch(state: StateBlock, start: int, stop: int, silent: bool) -> bool:
    """A block rule: a patch that stands in no fence, up to its end or that of the text."""

    def line(number: int) -> str:
        return state.src[state.bMarks[number] : state.eMarks[number]]

    begins = _PATCH_BEGINS.match(line(start)) if not state.level else None
    if begins is None:
        return False
    if silent:
        return True
    ends = _PATCH_ENDS if begins["patch"] else _BLOCK_ENDS
    last = next((n for n in range(start + 1, stop) if ends.match(line(n))), stop - 1)
    state.line = last + 1
    token = state.push("fence", "code", 0)
    token.markup, token.map = "```", [start, state.line]
    token.content = "".join(f"{line(number)}\n" for number in range(start, state.line))
    return True


def place_of(href: str) -> NamedPlace | None:
    """The file that a link leads to, ``None`` if it leads elsewhere."""
    link = urlsplit(href)
    path, fragment = unquote(link.path), link.fragment
    if link.scheme not in ("", "file"):
        path, _, fragment = href.rpartition(":")  # What looks like a scheme is a file: app.py:12
        if not fragment.isdecimal() or "/" in fragment or ":" in path:
            return None
    elif not fragment and (named := re.fullmatch(r"(.+?):(\d+)(?:[-:]\d+)?", path)):
        path, fragment = named[1], named[2]
    line = _LINE.match(fragment)
    return NamedPlace(path, max(0, int(line[1]) - 1) if line else None) if path else None


def _linked(tokens: list[Token], exists: Callable[[str], bool]) -> list[Token]:
    """Inline tokens, with links around the files in them."""
    found: list[Token] = []
    depth = 0
    for token in tokens:
        depth += token.nesting if token.type in ("link_open", "link_close") else 0
        if depth or token.type not in ("text", "code_inline"):
            found.append(token)
        elif token.type == "code_inline":
            whole = PLACE.fullmatch(token.content)
            if whole and exists(whole["path"]):
                found += (_open(whole), token, Token("link_close", "a", -1))
            else:
                found.append(token)
        else:
            found += _split(token, exists)
    return found


def _split(token: Token, exists: Callable[[str], bool]) -> list[Token]:
    parts: list[Token] = []
    end = 0
    for match in PLACE.finditer(token.content):
        if not exists(match["path"]):
            continue
        parts.append(_text(token.content[end : match.start()]))
        parts += (_open(match), _text(match[0]), Token("link_close", "a", -1))
        end = match.end()
    parts.append(_text(token.content[end:]))
    return [part for part in parts if part.type != "text" or part.content]


def _open(match: re.Match[str]) -> Token:
    line = f"#L{match['line']}" if match["line"] else ""
    return Token("link_open", "a", 1, attrs={"href": quote(match["path"]) + line})


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)
