"""Region rewrite: the reply is the new text of the one region that the request marked.

The text may come bare, inside a Markdown fence or between ``<region>`` tags; what a chat model says
around it is prose.  Models that were trained for this write bare text and need no sniffing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from enum import Enum

from midstream.edits.events import (
    FileOp,
    FileSectionClosed,
    FileSectionOpened,
    HunkClosed,
    HunkOpened,
)
from midstream.edits.formats import FormatSpec, Sniff, register
from midstream.edits.parsing import MARKDOWN_FENCE, LineParser, OpenFence, Wait, is_remark

_HUNK = 0
_TAG = re.compile(r"\s*<(region(?:-\d+)?)(?:\s[^>]*)?>(.*)$")


class _RegionMode(Enum):
    SNIFF = "sniff"
    BARE = "bare"
    FENCE = "fence"
    TAG = "tag"
    DONE = "done"


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
        self._owed = Counter(line for line in old if MARKDOWN_FENCE.match(line))
        self._mode = _RegionMode.BARE if bare else _RegionMode.SNIFF
        self._prose_region = _prose_like_region(old)
        self._opened = False
        self._lines_seen = 0  # of content, while the first may still open an inner wrapper
        self._sniffed: list[str] = []
        self._fence = OpenFence("```")
        self._maybe_closing: list[str] = []  # a fence that old text has too, and blanks after it
        self._closing = ""
        self._tail = ""

    def _line(self, line: str, *, ended: bool) -> None:
        end = "\n" if ended else ""
        if self._mode is _RegionMode.SNIFF:
            self._sniff(line, end)
        elif self._mode is _RegionMode.BARE:
            self._content(line + end)
        elif self._mode is _RegionMode.FENCE:
            self._fence_line(line, end)
        elif self._mode is _RegionMode.TAG:
            self._tag_line(line, end)
        else:
            self._prose(line + end)

    def _start(self, start: str) -> str | Wait:
        if self._mode is _RegionMode.SNIFF:
            return Wait.LINE
        if self._mode is _RegionMode.FENCE:
            return self._fence_start(start)
        if self._mode is _RegionMode.TAG:
            stripped = start.lstrip()
            if self._lines_seen == 0 and (not stripped or stripped[0] in "`~"):
                return Wait.LINE if stripped else Wait.MORE
            return Wait.MORE if self._closing.startswith(stripped) else start
        return start

    def _passed(self, text: str, *, ended: bool) -> None:
        if self._mode is _RegionMode.TAG:
            self._tag_text(text, ended=ended)
        elif self._mode is _RegionMode.DONE:
            self._prose(text + ("\n" if ended else ""))
        else:
            self._content(text + ("\n" if ended else ""))

    def _end(self) -> None:
        if self._mode is _RegionMode.SNIFF:
            self._end_of_sniffing()
        elif self._mode is _RegionMode.FENCE:
            if self._maybe_closing:
                self._maybe_closing.clear()  # it was the closing fence after all
            else:
                self._cut("the reply ended inside its code fence")
        elif self._mode is _RegionMode.TAG:
            if self._tail:
                self._content(self._tail)
            self._cut(f"the reply ended before {self._closing}")
        if self._opened and self._mode is not _RegionMode.DONE:
            self._close()

    def _sniff(self, line: str, end: str) -> None:
        fence, tag = MARKDOWN_FENCE.match(line), _TAG.match(line)
        if (fence and line not in self._owed) or tag:
            self._prose("".join(self._sniffed))
            self._sniffed.clear()
            if tag:
                self._open_tag(tag, end)
            elif fence:
                self._open_fence(fence[1])
            return
        text = line + end
        if not line.strip() or self._is_chatter(line):
            self._sniffed.append(text)
            return
        self._mode = _RegionMode.BARE
        kept = "".join(self._sniffed)
        self._sniffed.clear()
        if kept.strip() or self._first_old.strip():
            self._prose(kept)
        else:
            self._content(kept)
        self._content(text)

    def _is_chatter(self, line: str) -> bool:
        known = self._prose_region or line.strip() in self._old
        return not known and is_remark(line)

    def _end_of_sniffing(self) -> None:
        text = "".join(self._sniffed)
        if not text.strip():
            self._prose(text)
            return
        if self._old:
            self._prose(text)
            self._problem("the reply has no rewritten text, only prose", fatal=True)
            return
        self._content(text)

    def _open_fence(self, fence: str) -> None:
        self._mode = _RegionMode.FENCE
        self._fence = OpenFence(fence)
        self._lines_seen = 0
        self._open()

    def _open_tag(self, tag: re.Match[str], end: str) -> None:
        self._mode = _RegionMode.TAG
        self._closing = f"</{tag[1]}>"
        self._lines_seen = 0
        self._open()
        if tag[2].strip():
            self._tag_line(tag[2], end)

    def _fence_start(self, start: str) -> str | Wait:
        stripped = start.lstrip(" ")
        if self._maybe_closing or (self._lines_seen == 0 and not stripped):
            return Wait.LINE if self._maybe_closing else Wait.MORE
        if self._lines_seen == 0 and stripped.startswith("<"):
            return Wait.LINE
        return self._fence.start(start)

    def _fence_line(self, line: str, end: str) -> None:
        if self._lines_seen == 0 and (tag := _TAG.match(line)):
            self._open_tag(tag, end)
            return
        if self._maybe_closing:
            if not line.strip():
                self._maybe_closing.append(line + end)
                return
            kept = "".join(self._maybe_closing)
            self._maybe_closing.clear()
            self._content(kept)
        fence = MARKDOWN_FENCE.match(line)
        if fence and not self._fence.passes(fence):
            if self._owed[line] > 0:
                self._owed[line] -= 1
                self._maybe_closing.append(line + end)
                return
            if self._fence.closed_by(fence):
                self._close()
                return
        self._content(line + end)

    def _tag_line(self, line: str, end: str) -> None:
        fence = MARKDOWN_FENCE.match(line)
        if self._lines_seen == 0 and fence and line not in self._owed:
            self._open_fence(fence[1])
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
            held = _overlap(text, self._closing)
            self._tail = text[len(text) - held :]
            self._content(text[: len(text) - held])

    def _open(self) -> None:
        if not self._opened:
            self._opened = True
            self._events += (FileSectionOpened(FileOp.REGION, ""), HunkOpened(self._begin_hunk()))

    def _close(self) -> None:
        self._open()
        self._mode = _RegionMode.DONE
        self._events += (HunkClosed(_HUNK), FileSectionClosed(""))

    def _content(self, text: str) -> None:
        if text:
            self._open()
            self._lines_seen += 1
            self._new(text)


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
