"""An answer as Markdown that grows at its end.

Textual makes the last block anew with each piece that comes, and a list is one block: twenty items
are eighty widgets, for each word.  Here a list keeps its items as it grows, and only the last of
them is read again.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.containers import HorizontalGroup, VerticalGroup
from textual.widget import Widget
from textual.widgets._markdown import (
    Markdown,
    MarkdownBlock,
    MarkdownBullet,
    MarkdownFence,
    MarkdownListItem,
    MarkdownParagraph,
)

# pyright: reportPrivateUsage=false, reportUnknownMemberType=false


class _GrowingList(MarkdownBlock):
    """A list whose items are rows of it; both kinds of lists are one.

    Attributes:
        last_line: The line of the answer in which the last item begins.
    """

    # Nothing of the styles of Textual's lists: of several bases, CSS follows the first.
    DEFAULT_CSS = """
    _GrowingList { margin: 0 0 1 0; }
    _GrowingList _GrowingList { margin: 0; }
    """
    last_line = 0

    def compose(self) -> ComposeResult:
        yield from self._rows(self._taken(self), 0)

    async def _update_from_block(self, block: MarkdownBlock) -> None:
        """Take over what has been read from the last item on (called by Textual)."""
        if type(block) is type(self):
            assert isinstance(block, _GrowingList)
            await self.grow(block, len(self.children) - 1)
            return
        # It only looked like an item, and is something else, such as a rule.
        await self.children[-1].remove()
        if not self.children:
            await self.remove()
        await self._markdown.mount(block)

    async def grow(self, block: _GrowingList, first: int) -> None:
        """Take over a list that has been read from item ``first`` on.

        Of the items that were there, only the last one may have changed.
        """
        items, last = self._taken(block), len(self.children) - 1
        fresh = items[last - first + 1 :]
        if last < first or last - first >= len(items):
            await self.remove_children()
            fresh, last = items, first - 1
        else:
            await _update_row(self.children[last], items[last - first])
        if fresh:
            await self.mount_all(self._rows(fresh, last + 1))

    def _taken(self, block: MarkdownBlock) -> list[MarkdownListItem]:
        """The items that were read for a list, which are this list's from now on."""
        items = [item for item in block._blocks if isinstance(item, MarkdownListItem)]
        block._blocks.clear()
        if items and items[-1]._token.map and block._token.map:
            begins = items[-1]._token.map[0] - block._token.map[0]
            self.last_line = block.source_range[0] + begins
        return items

    def _rows(self, items: Sequence[MarkdownListItem], first: int) -> list[HorizontalGroup]:
        """Rows of new items, of which the first has a number."""
        rows: list[HorizontalGroup] = []
        for item, symbol in zip(items, self._symbols(items, first), strict=True):
            bullet = MarkdownBullet()
            bullet.symbol = symbol
            rows.append(HorizontalGroup(bullet, VerticalGroup(*item._blocks)))
        return rows

    def _symbols(self, items: Sequence[MarkdownListItem], first: int) -> list[str]:
        """The text before new items."""
        return [item.bullet for item in items]


class _Bullets(_GrowingList):
    pass


class _Numbers(_GrowingList):
    _begin = 1
    _width = 0

    def _symbols(self, items: Sequence[MarkdownListItem], first: int) -> list[str]:
        if not first and items and items[0].bullet.isdecimal():
            self._begin = int(items[0].bullet)
        begin = self._begin + first
        width = len(str(begin + len(items) - 1))
        if width > self._width:
            self._width = width
            for number, row in enumerate(self.children[:first], self._begin):
                bullet = row.query_one(MarkdownBullet)
                bullet.symbol = self._symbol(number)
                bullet.refresh(layout=True)
        return [self._symbol(number) for number in range(begin, begin + len(items))]

    def _symbol(self, number: int) -> str:
        return f" {number:>{self._width}}. "


class GrowingAnswer(Markdown):
    """Markdown in which a list may grow item by item."""

    BLOCKS = {  # noqa: RUF012 - as Textual declares it
        **Markdown.BLOCKS,
        "bullet_list_open": _Bullets,
        "ordered_list_open": _Numbers,
    }

    def append(self, markdown: str) -> AwaitComplete:
        """Append to the text; the next piece is read together with the last item of a list."""
        appended = super().append(markdown)

        async def append_and_mark() -> None:
            await appended
            last = self.children[-1] if self.children else None
            if isinstance(last, _GrowingList):
                self._last_parsed_line = last.last_line

        return AwaitComplete(append_and_mark())


async def _update_row(row: Widget, item: MarkdownListItem) -> None:
    """Bring an item up to date, of whose blocks only the last one may have changed."""
    body, blocks = row.children[1], item._blocks
    last = len(body.children) - 1
    if last >= len(blocks):  # It only looked like blocks of their own, and belongs together.
        await body.remove_children()
        last = -1
    elif last >= 0:
        former, block = body.children[last], blocks[last]
        if isinstance(former, _GrowingList) and type(block) is type(former):
            await former.grow(block, 0)
        elif isinstance(former, MarkdownParagraph | MarkdownFence) and type(block) is type(former):
            await former._update_from_block(block)
        else:
            await former.remove()
            last -= 1
    if fresh := blocks[last + 1 :]:
        await body.mount_all(fresh)
