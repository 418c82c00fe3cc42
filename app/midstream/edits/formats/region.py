"""Region rewrite: the reply is the new text of the one region that the request marked.

The text may come bare, inside a Markdown fence, between ``<region>`` tags, or as the one text of a
JSON object; other words of a chat model are prose.  Models that were trained for this write
bare text and need no sniffing.

Bare text of a chat model has no mark at its end, so it counts as complete only where it ends with
the line with which the region did.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from enum import Enum
from typing import Final, cast

from midstream.edits.events import (
    FileOp,
    FileSectionClosed,
    FileSectionOpened,
    HunkClosed,
    HunkOpened,
)
from midstream.edits.formats import FormatSpec, Sniff, register
from midstream.edits.indent import indent_of
from midstream.edits.parsing import (
    MARKDOWN_FENCE,
    LineParser,
    OpenFence,
    Wait,
    file_name,
    is_remark,
)

_HUNK = 0
"""The number of a region's only hunk."""
_TAG = re.compile(r"\s*<(region(?:-\d+)?)(?:\s[^>]*)?>(.*)$")
_ESCAPED: Final = re.compile(r"\s*&lt;region(?:-\d+)?(?:\s.*?)?&gt;")
_WRAPPING: Final = re.compile(
    r"\s*<((?:(?:final|updated|new|edited|modified)_?)?"
    r"(?:answer|response|output|result|code|source|solution|file|content|text))>(\s*)$",
    re.IGNORECASE,
)
"""Tags that models invent around the rewrite."""
_ECHO: Final = re.compile(r"\s*<((?:instruction|before|after)(?:-\d+)?)>\s*$")
"""A block of the request that a model repeats."""
_OBJECT: Final = re.compile(r'\s*\{\s*(?:"\w+"\s*(?::.*)?)?$')
_OBJECT_FENCE: Final = re.compile(r"\s*json\b", re.IGNORECASE)
_TEXT_FIELD: Final = re.compile(r'\s*\{\s*"\w+"\s*:\s*"')
_TEXT_NAMES: Final = re.compile(
    r"(?:final|updated|new|edited|modified|file)?_?"
    r"(?:region|code|content|text|answer|result|output|replacement|source|file)",
    re.IGNORECASE,
)
"""Names of the field that holds the text, in an object in its place."""
_PROSE_FENCE: Final = re.compile(r"\s*(?:markdown|mdx?|rst|te?xt|plain\w*)\b", re.IGNORECASE)
_MAX_LEAD_IN: Final = 2
"""Lines before a fence in which a model talks about a region of prose, at most."""
ENDLESS: Final = "the reply is in no code block, and does not end as the code did"


class _RegionMode(Enum):
    SNIFF = "sniff"
    ECHO = "echo"
    OBJECT = "object"
    BARE = "bare"
    FENCE = "fence"
    TAG = "tag"
    DONE = "done"


_BY_LINE: Final = (_RegionMode.SNIFF, _RegionMode.ECHO, _RegionMode.OBJECT)


class RegionParser(LineParser):
    """Reads the rewrite of one region; there is one file and one hunk, with id 0."""

    def __init__(self, old: Sequence[str] = (), *, bare: bool = False) -> None:
        """Start a parser.

        Args:
            old: The lines of the region, which help to tell text from prose.
            bare: Whether the reply is the text and nothing else (the built-in model).
        """
        super().__init__()
        self._old = frozenset(line.strip() for line in old if line.strip())
        self._first_old = next(iter(old), "")
        self._fences = frozenset(line for line in old if MARKDOWN_FENCE.match(line))
        self._mode = _RegionMode.BARE if bare else _RegionMode.SNIFF
        self._prose_region = _prose_like_region(old)
        self._opened = False
        self._lines_seen = 0  # of content, while the first may still open an inner wrapper
        self._sniffed: list[str] = []
        self._fence = OpenFence("```")
        self._nests = False  # the text may have fences of its own, which look like its end
        self._maybe_closing: list[str] = []  # a fence that may be its end, and what follows
        self._closing = ""
        self._tail = ""
        self._object: list[str] = []
        self._escaped = False
        self._last = None if bare else _LastLine(old)

    def _line(self, line: str, *, ended: bool) -> None:
        end = "\n" if ended else ""
        if self._mode is _RegionMode.SNIFF and _ESCAPED.match(line):
            self._escaped = True
        if self._escaped:
            line = html.unescape(line)
        if self._mode is _RegionMode.SNIFF:
            self._sniff(line, end)
        elif self._mode is _RegionMode.ECHO:
            self._prose(line + end)
            if line.strip() == self._closing:
                self._mode = _RegionMode.SNIFF
        elif self._mode is _RegionMode.OBJECT:
            self._object.append(line + end)
            if self._closing and MARKDOWN_FENCE.match(line):
                self._object.pop()
                self._end_of_object()
        elif self._mode is _RegionMode.BARE:
            self._content(line + end)
        elif self._mode is _RegionMode.FENCE:
            self._fence_line(line, end)
        elif self._mode is _RegionMode.TAG:
            self._tag_line(line, end)
        else:
            self._behind(line, end)

    @property
    def _is_bare(self) -> bool:
        """Whether nothing surrounds the text."""
        return self._mode is _RegionMode.BARE

    @property
    def _is_closed(self) -> bool:
        """Whether the end of the text has come."""
        return self._mode is _RegionMode.DONE

    def _behind(self, line: str, end: str) -> None:
        """Take a line behind the text."""
        self._prose(line + end)

    def _start(self, start: str) -> str | Wait:
        if self._escaped or self._mode in _BY_LINE:
            return Wait.LINE
        if self._mode is _RegionMode.FENCE:
            return self._fence_start(start)
        if self._mode is _RegionMode.TAG:
            stripped = start.lstrip()
            if self._lines_seen == 0 and (not stripped or stripped[0] in "`~<"):
                return Wait.LINE if stripped else Wait.MORE
            return Wait.MORE if self._closing.startswith(stripped) else start
        return start

    def _passed(self, text: str, *, ended: bool) -> None:
        if self._mode is _RegionMode.TAG:
            self._tag_text(text, ended=ended)
        elif self._mode is _RegionMode.DONE:
            self._behind(text, "\n" if ended else "")
        else:
            self._content(text + ("\n" if ended else ""))

    def _end(self) -> None:
        if self._mode is _RegionMode.SNIFF:
            self._end_of_sniffing()
        elif self._mode is _RegionMode.OBJECT:
            self._end_of_object(ended=not self._closing)
        elif self._mode is _RegionMode.BARE:
            self._end_of_bare()
        elif self._mode is _RegionMode.FENCE:
            self._end_of_fence()
        elif self._mode is _RegionMode.TAG:
            if self._tail:
                self._content(self._tail)
            self._cut(f"the reply ended before {self._closing}")
        if self._opened and self._mode is not _RegionMode.DONE:
            self._close()

    # Before the text

    def _sniff(self, line: str, end: str) -> None:
        fence, tag = MARKDOWN_FENCE.match(line), _TAG.match(line)
        if tag is None and not self._first_old.lstrip().startswith("<"):
            tag = _WRAPPING.match(line)
        if tag is not None or (fence is not None and self._wraps(line, fence)):
            self._prose("".join(self._sniffed))
            self._sniffed.clear()
            if tag is not None:
                self._open_tag(tag, end)
            elif fence is not None:
                self._open_fence(fence)
            return
        if (echo := _ECHO.match(line)) is not None and line.strip() not in self._old:
            self._mode, self._closing = _RegionMode.ECHO, f"</{echo[1]}>"
            self._prose(line + end)
            return
        if not line.strip() or (fence is None and self._may_lead_in(line)):
            self._sniffed.append(line + end)
            return
        self._begin_bare(line + end)

    def _wraps(self, line: str, fence: re.Match[str]) -> bool:
        """Whether a fence holds the region, and is not one of its own."""
        if line in self._fences:
            return False
        if not self._prose_region or not any(self._talks(text) for text in self._sniffed):
            return True
        # The text before it is talk, or the beginning of the region, which is prose as well.
        return _PROSE_FENCE.match(fence[2]) is not None or file_name(line) is not None

    def _may_lead_in(self, line: str) -> bool:
        """Whether a line may talk about the text, or name its file, and not be part of it."""
        if line.strip() in self._old:
            return False
        if self._prose_region and len(list(filter(self._talks, self._sniffed))) >= _MAX_LEAD_IN:
            return False
        return is_remark(line) or (not line[0].isspace() and file_name(line) is not None)

    def _talks(self, line: str) -> bool:
        return bool(line.strip()) and (is_remark(line) or file_name(line) is None)

    def _begin_bare(self, text: str) -> None:
        """Begin with text that nothing surrounds, from this line on."""
        kept = "".join(self._sniffed)
        talks = any(self._talks(line) for line in self._sniffed) and not self._prose_region
        self._sniffed.clear()
        if talks or (not kept.strip() and self._first_old.strip()):
            self._prose(kept)
            kept = ""
        if not kept and _OBJECT.match(text) and not self._is_object():
            self._mode, self._closing = _RegionMode.OBJECT, ""
            self._object.append(text)
            return
        self._mode = _RegionMode.BARE
        self._content(kept + text)

    def _is_object(self) -> bool:
        """Whether the region itself is an object, or inside of one."""
        return not self._old or self._first_old.lstrip()[:1] in tuple('{["')

    def _end_of_sniffing(self) -> None:
        text = "".join(self._sniffed)
        if not text.strip():
            self._prose(text)
            return
        if self._old and not self._prose_region:
            self._prose(text)
            self._problem("the reply has no rewritten text, only prose", fatal=True)
            return
        self._mode = _RegionMode.BARE
        self._content(text)
        self._end_of_bare()

    def _end_of_bare(self) -> None:
        if self._last is not None and self._opened and not self._last.came:
            self._cut(ENDLESS)

    # The text in an object

    def _end_of_object(self, *, ended: bool = True) -> None:
        """Take the text out of an object; ``ended`` with its fence, if it is in one."""
        text, cut = "".join(self._object), "" if ended else "the reply ended inside its code fence"
        try:
            found = _text_in(json.loads(text, strict=False))
        except (ValueError, RecursionError):
            found = None
            if _TEXT_FIELD.match(text):
                cut = cut or "the reply ended inside its JSON"
        self._mode = _RegionMode.BARE
        self._content(text if found is None else f"{found.removesuffix(chr(10))}\n")
        if cut:
            self._cut(cut)
        elif found is None and not self._closing:
            self._end_of_bare()
        self._close()

    # The text in a fence

    def _open_fence(self, fence: re.Match[str]) -> None:
        self._lines_seen = 0
        if _OBJECT_FENCE.match(fence[2]) and not self._is_object():
            self._mode, self._closing = _RegionMode.OBJECT, fence[1]
            return
        self._mode = _RegionMode.FENCE
        self._fence = OpenFence(fence[1])
        self._nests = bool(_PROSE_FENCE.match(fence[2]) or self._fences)
        self._open()

    def _fence_start(self, start: str) -> str | Wait:
        stripped = start.lstrip(" ")
        if self._maybe_closing or (self._lines_seen == 0 and not stripped):
            return Wait.LINE if self._maybe_closing else Wait.MORE
        if self._lines_seen == 0 and stripped.startswith("<"):
            return Wait.LINE
        return self._fence.start(start)

    def _fence_line(self, line: str, end: str) -> None:
        if self._lines_seen == 0 and not self._maybe_closing and (tag := _TAG.match(line)):
            self._open_tag(tag, end)
            return
        fence = MARKDOWN_FENCE.match(line)
        if self._maybe_closing:
            self._maybe_closing.append(line + end)
            if fence is None:
                return
            lines = self._maybe_closing.copy()
            self._maybe_closing.clear()
            if fence[2].strip():  # Another block: this one had ended.
                self._close()
                self._prose("".join(lines[1:]))
            else:  # Both fences are in the text.
                self._content("".join(lines))
            return
        if fence and not self._fence.passes(fence) and self._fence.closed_by(fence):
            if self._nests:
                self._maybe_closing.append(line + end)
            else:
                self._close()
            return
        self._content(line + end)

    def _end_of_fence(self) -> None:
        if not self._maybe_closing:
            self._cut("the reply ended inside its code fence")
            return
        after = "".join(self._maybe_closing[1:])
        if after.strip() and self._last is not None and not self._last.came:
            self._cut("it cannot be told where the reply's code block ends")
        self._maybe_closing.clear()
        self._close()
        self._prose(after)

    # The text in a tag

    def _open_tag(self, tag: re.Match[str], end: str) -> None:
        self._mode = _RegionMode.TAG
        self._closing = f"</{tag[1]}>"
        self._lines_seen = 0
        self._open()
        if tag[2].strip():
            self._tag_line(tag[2], end)

    def _tag_line(self, line: str, end: str) -> None:
        if self._lines_seen == 0:
            fence = MARKDOWN_FENCE.match(line)
            if fence and line not in self._fences:
                self._open_fence(fence)
                return
            if (tag := _TAG.match(line)) is not None:
                self._open_tag(tag, end)
                return
        text, closing, rest = line.partition(self._closing)
        if not closing:
            self._content(line + end)
            return
        if text.strip():
            self._content(text)
        self._close()
        self._prose(rest + end)

    def _tag_text(self, text: str, *, ended: bool) -> None:
        text = self._tail + text
        self._tail = ""
        content, closing, rest = text.partition(self._closing)
        if closing:
            self._content(content)
            self._close()
            self._prose(rest + ("\n" if ended else ""))
        elif ended:
            self._content(text + "\n")
        else:
            length = _overlap(text, self._closing)
            self._tail = text[len(text) - length :]
            self._content(text[: len(text) - length])

    def _open(self) -> None:
        if not self._opened:
            self._opened = True
            self._events += (FileSectionOpened(FileOp.REGION, ""), HunkOpened(self._begin_hunk()))

    def _close(self) -> None:
        self._open()
        self._mode = _RegionMode.DONE
        self._finish_text()

    def _finish_text(self) -> None:
        """The end of the text has come."""
        self._events += (HunkClosed(_HUNK), FileSectionClosed(""))

    def _content(self, text: str) -> None:
        if text:
            self._open()
            self._lines_seen += 1
            if self._last is not None:
                self._last.feed(text)
            self._new(text)


class _LastLine:
    """Tells whether a rewrite, in any chunking, has come to the line with which the region ended.

    Args:
        old: The region.
    """

    def __init__(self, old: Sequence[str]) -> None:
        lines = [line for line in old if line.strip()]
        self._wanted = _shape(lines[-1], lines[0]) if lines else None
        self._owed = sum(_shape(line, lines[0]) == self._wanted for line in lines)
        self._lines_owed = len(lines)
        self._first: str | None = None
        self._partial: list[str] = []
        self._is_last = False
        self._is_version = False

    def feed(self, text: str) -> None:
        """Take more of the rewrite."""
        first, *others = text.split("\n")
        self._partial.append(first)
        for start in others:
            self._take("".join(self._partial))
            self._partial = [start]

    @property
    def came(self) -> bool:
        """Whether the rewrite ends with that line, as often as the region had it.

        A rewrite with as many lines as the region may also end with a version of that line.
        """
        self._take("".join(self._partial))
        self._partial = []
        if self._is_last:
            return self._owed <= 0
        return self._is_version and self._lines_owed <= 0

    def _take(self, line: str) -> None:
        if not line.strip():
            return
        self._first = line if self._first is None else self._first
        shape = _shape(line, self._first)
        self._is_last = shape == self._wanted
        self._is_version = self._wanted is not None and _is_version(shape, self._wanted)
        self._owed -= self._is_last
        self._lines_owed -= 1


def _shape(line: str, first: str) -> tuple[str, int]:
    """A line without its indentation, and whether it has less than the first one, as much, more."""
    depth, outer = len(indent_of(line)), len(indent_of(first))
    return line.strip(), (depth > outer) - (depth < outer)


def _is_version(one: tuple[str, int], other: tuple[str, int]) -> bool:
    """Whether two shapes are as deep and begin with the same word."""
    return one[1] == other[1] and one[0].split()[0] == other[0].split()[0]


def _text_in(value: object) -> str | None:
    """The text that an object holds in place of it; ``None`` if there is no such text."""
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, object]", value)
    texts = {name: text for name, text in fields.items() if isinstance(text, str)}
    named = [text for name, text in texts.items() if _TEXT_NAMES.fullmatch(name)]
    long = [text for text in texts.values() if "\n" in text]
    return next((found[0] for found in (long, named) if len(found) == 1), None)


def _overlap(text: str, marker: str) -> int:
    for size in range(min(len(text), len(marker) - 1), 0, -1):
        if marker.startswith(text[-size:]):
            return size
    return 0


def _prose_like_region(old: Sequence[str]) -> bool:
    """Whether the region itself is prose, which sniffing would take for chatter."""
    lines = [line for line in old if line.strip()]
    return bool(lines) and 2 * sum(map(is_remark, lines)) > len(lines)


_MARKER = re.compile(r"\s*<region(?:-\d+)?(?:\s[^>]*)?>")

register(FormatSpec("region", RegionParser, sniff=Sniff(_MARKER.match)))
