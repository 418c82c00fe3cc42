"""Code in an answer of a conversation, and the edits that it stands for.

A block that is a patch already is taken as it is.  A block of code replaces the functions, classes
and methods that it defines; new ones go after the last of those.  A block that names a file which
does not exist becomes that file.  Where none of this gives a place, the model is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from midstream.code.outline import Definition, outline
from midstream.edits.elision import elides, is_elision, merge

if TYPE_CHECKING:
    from markdown_it.token import Token

_COMMANDS: Final = frozenset({"bash", "console", "output", "pycon", "sh", "shell", "text", "txt"})
"""Languages of blocks that are shown and are no part of a file, unless they name one."""
_PATH: Final = r"[\w.@+-]+(?:/[\w.@+-]+)*\.\w+|(?:[\w.@+-]+/)+[\w.@+-]+"
_INFO: Final = re.compile(
    rf"^(?P<language>[\w+#-]*?)[\s:]*(?:(?:title|path|file)=)?[\"']?(?P<path>{_PATH})?[\"']?$"
)
_NAMED_BY_COMMENT: Final = re.compile(
    rf"^\s*(?:#|//|--|/\*|<!--)\s*(?P<path>{_PATH})\s*(?:\*/|-->)?\s*$"
)
_PATCH: Final = re.compile(
    r"^(?:<{3,} SEARCH|-{3,} SEARCH|\*\*\* Begin Patch|--- \S.*\n\+\+\+ \S|@@ )", re.MULTILINE
)
_BARE_PATCH: Final = re.compile(
    r"^<{3,} SEARCH$.*^={3,}$.*^>{3,} REPLACE$|^\*\*\* Begin Patch$.*^\*\*\* End Patch$",
    re.MULTILINE | re.DOTALL,
)
_MARKER: Final = re.compile(r"^(?:<{3,9}|={3,}|>{3,9}|-{3,}|\+{3,})(?: \w+)?\s*$", re.MULTILINE)
"""Lines that would end a part of a SEARCH/REPLACE block."""


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A fenced block.

    Attributes:
        language: The language that the fence names, ``""`` for none.
        path: The file that it names, ``""`` if it names none.
        text: Its lines.
    """

    language: str
    path: str
    text: str

    @property
    def is_patch(self) -> bool:
        """Whether it is written in a format for edits."""
        return _PATCH.search(self.text) is not None

    @property
    def title(self) -> str:
        """The label that distinguishes it from other blocks: its file, or its first line."""
        first = next((line.strip() for line in self.text.splitlines() if line.strip()), "")
        return f"{self.path}: {first}" if self.path else first


def code_blocks(markdown: str) -> list[CodeBlock]:
    """The blocks of an answer that may be parts of files, in order."""
    from markdown_it import MarkdownIt

    found: list[CodeBlock] = []
    for token in _fences(MarkdownIt("commonmark").parse(markdown)):
        info = _INFO.match(token.info.strip())
        language, path = (info["language"], info["path"] or "") if info else ("", "")
        text = token.content
        first, _, rest = text.partition("\n")
        if not path and (named := _NAMED_BY_COMMENT.match(first)):
            path, text = named["path"], rest
        block = CodeBlock(language.lower(), path, text)
        if text.strip() and (path or block.is_patch or block.language not in _COMMANDS):
            found.append(block)
    if not found and _BARE_PATCH.search(markdown):
        found.append(CodeBlock("", "", markdown))  # Models forget the fence around a patch.
    return found


def _fences(tokens: Sequence[Token]) -> Iterator[Token]:
    return (token for token in tokens if token.type == "fence")


def as_new_file(block: CodeBlock) -> str | None:
    """A block as a file of its own, in SEARCH/REPLACE form; ``None`` if that cannot say it."""
    return _edits(block.path, [("", block.text)])


def as_edits(block: CodeBlock, lines: Sequence[str], path: str) -> str | None:
    """The edits that a block of code stands for in a file, in SEARCH/REPLACE form.

    Args:
        block: Code, not a patch.
        lines: The file's lines.
        path: The file's path.

    Returns:
        The edits; ``None`` if the block does not say by itself where it goes: it defines nothing
        that the file has, holds other statements as well, or the file has a name several times.
    """
    new = block.text.splitlines()
    tops = _outermost(outline(new, path).definitions)
    if not tops or _others(new, tops):
        return None
    placed = _Placed(new, lines, path)
    if not all(placed.put(definition) for definition in tops):
        return None
    edits = [(old, text) for old, text in placed.edits if old != text]
    return _edits(path, edits) if edits else None


class _Placed:
    """Definitions of a block at those of a file.

    Attributes:
        edits: Old and new text of every place so far.
    """

    def __init__(self, new: Sequence[str], lines: Sequence[str], path: str) -> None:
        self.edits: list[tuple[str, str]] = []
        self._new = new
        self._lines = lines
        self._written = outline(new, path)
        self._there = outline(lines, path)
        self._last: Definition | None = None

    def put(self, definition: Definition) -> bool:
        """Find the place of a definition; whether it has one."""
        homes = self._there.named(definition.name)
        if len(homes) > 1:
            return False
        if not homes:
            return self._append(definition)
        (home,) = homes
        if definition.kind == "function" or self._is_whole(definition, home):
            return self._replace(definition, home)
        return self._is_frame(definition, home) and all(map(self.put, self._methods(definition)))

    def _replace(self, definition: Definition, home: Definition) -> bool:
        self._last = home
        old = self._lines[home.start : home.stop]
        new = _indented(self._new[definition.start : definition.stop], _indent(old))
        if elides(old, new, whole=False):
            left_out = merge(old, new)
            if left_out is None:
                return False
            new = list(old)
            for edit in reversed(left_out):
                new[edit.start : edit.stop] = edit.lines
        self.edits.append((_text(old), _text(new)))
        return True

    def _append(self, definition: Definition) -> bool:
        """Put a new definition after the one that was placed last."""
        if self._last is None:
            return False
        indent = _indent(self._lines[self._last.start : self._last.stop])
        new = _indented(self._new[definition.start : definition.stop], indent)
        before, after = self.edits[-1]
        gap = "\n" if indent else "\n\n"
        self.edits[-1] = before, f"{after}{gap}{_text(new)}"
        return True

    def _methods(self, definition: Definition) -> list[Definition]:
        return [each for each in self._written.outermost if definition.encloses(each)]

    def _is_whole(self, definition: Definition, home: Definition) -> bool:
        """Whether a class has every method that the file's class has."""
        had = {each.name for each in self._there.outermost if home.encloses(each)}
        return had <= {each.name for each in self._methods(definition)}

    def _is_frame(self, definition: Definition, home: Definition) -> bool:
        """Whether methods are the only news in a class."""
        had = {line.strip() for line in self._lines[home.start : home.stop]}
        own = _outside(self._new, [definition], self._methods(definition))
        return all(line in had or is_elision(line) for line in own)


def _outermost(definitions: Sequence[Definition]) -> list[Definition]:
    found: list[Definition] = []
    for definition in definitions:
        if not (found and found[-1].encloses(definition)):
            found.append(definition)
    return found


def _outside(
    lines: Sequence[str], within: Sequence[Definition], without: Sequence[Definition]
) -> list[str]:
    """Lines with text in some definitions and not in others, stripped."""
    numbers = {number for each in within for number in range(each.start, each.stop)}
    numbers -= {number for each in without for number in range(each.start, each.stop)}
    return [line for number in sorted(numbers) if (line := lines[number].strip())]


def _others(lines: Sequence[str], tops: Sequence[Definition]) -> bool:
    """Whether there is more than definitions, comments and blank lines."""
    whole = Definition("", "class", 0, len(lines))
    rest = _outside(lines, [whole], tops)
    return any(not line.startswith(("#", "//")) and not is_elision(line) for line in rest)


def _indent(lines: Sequence[str]) -> str:
    first = next((line for line in lines if line.strip()), "")
    return first[: len(first) - len(first.lstrip())]


def _indented(lines: Sequence[str], wanted: str) -> list[str]:
    """Lines with another indentation of the first, and of the others with it."""
    own = _indent(lines)
    return [wanted + line.removeprefix(own) if line.strip() else line.strip() for line in lines]


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _edits(path: str, edits: Sequence[tuple[str, str]]) -> str | None:
    if any(_MARKER.search(text) for edit in edits for text in edit):
        return None
    return "".join(
        f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n" for old, new in edits
    )
