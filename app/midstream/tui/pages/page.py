"""The base of the pages: a full screen with a title row, a list, a notice line and keys.

A page opens over the review screen and closes with Escape.  It asks the session or the settings to
change things; it writes nothing itself.  Commit, sessions, settings and models are pages.
"""

from __future__ import annotations

import textwrap
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll
from textual.geometry import Size
from textual.message import Message
from textual.widgets import Input, Static, TextArea

from midstream.actions import BY_ID, Place, actions_on
from midstream.tui.eager import EagerScreen
from midstream.tui.glyphs import Glyphs
from midstream.tui.notices import NoticeLine, Notices, ScreenWork
from midstream.tui.pages.help import HelpScreen, page_topics
from midstream.tui.services import AppServices
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.close_mark import CloseMark
from midstream.tui.widgets.fields import EntryRow
from midstream.tui.widgets.key_bar import KeyBar, KeyHint, answer_hints
from midstream.tui.widgets.line_api import Painted
from midstream.tui.widgets.row_list import ListRow, RowList
from midstream.words import in_review

MIN_FACT_WIDTH: Final = 10
"""Width in cells below which a fact in the title row is left out."""

CLOSE_CELLS: Final = 4
"""Cells of the title row that the cross takes."""

_INDENT: Final = 2
"""Cells before a value below its name."""


class TitleRow(Painted):
    """The first row: what this page is, and the facts of it."""

    DEFAULT_CSS = """
    TitleRow { height: 1; background: $ms-panel; color: $ms-muted; }
    """

    def __init__(self, palette: Palette, glyphs: Glyphs, title: str) -> None:
        super().__init__(palette, glyphs)
        self.title = title
        self.facts: tuple[tuple[str, str], ...] = ()

    def show(self, *facts: tuple[str, str]) -> None:
        """Show these facts: text and palette role each."""
        self.facts = tuple((text, role) for text, role in facts if text)
        self.refresh()

    def render(self) -> Text:
        line = Text(" ", no_wrap=True, overflow="crop")
        line.append(self.title, self._palette.style("accent", bold=True))
        separator = f"  {self._glyphs.separator}  "
        for text, role in self.facts:
            room = self.size.width - line.cell_len - len(separator) - CLOSE_CELLS
            words = visible(text)
            if cell_len(words) > room:
                if room < MIN_FACT_WIDTH:
                    break
                words = fitted(words, room, self._glyphs)
            line.append(separator, self._palette.style("muted"))
            line.append(words, self._palette.style(role))
        return line


class Detail(VerticalScroll):
    """Details of the row under the cursor, beside or below the list."""

    class Resized(Message):
        """There is another amount of room."""

    def __init__(self, content_id: str) -> None:
        super().__init__(classes="detail", can_focus=False)
        self.content = Static("", id=content_id, markup=False)

    def compose(self) -> ComposeResult:
        yield self.content

    def on_resize(self) -> None:
        self.post_message(self.Resized())

    @property
    def columns(self) -> int:
        """Cells that a line may take."""
        return max(20, self.scrollable_content_region.width)

    def show(self, text: Text, title: str = "") -> None:
        """Show a text under a title, the name of the row under the cursor."""
        self.border_title = Text(f" {visible(title)} " if title else "")
        self.content.update(text)

    def rewind(self) -> None:
        self.scroll_home(animate=False)


class PageScreen(EagerScreen):
    """A page; subclasses compose the body and have one method per action of their table."""

    AUTO_FOCUS = ""
    WIDE: ClassVar = 110
    """Columns at which the list and the chosen item stand side by side."""
    PAGE: ClassVar[Place]
    TITLE_WORDS: ClassVar[str]
    DETAIL: ClassVar[str] = "about"
    """Id of the details."""
    CHOOSE: ClassVar[str]
    """Id of the action for the row under the cursor; a click on that row calls it, too."""

    def __init__(self, services: AppServices) -> None:
        super().__init__(id=self.PAGE.value)
        self.services = services
        self.palette = services.palette
        self.glyphs = services.glyphs
        self.title_row = TitleRow(self.palette, self.glyphs, self.TITLE_WORDS)
        self.list = RowList(
            self.palette,
            self.glyphs,
            ground="background",
            keep_right=True,
            selects=True,
            widget_id="list",
        )
        self.detail = Detail(self.DETAIL)
        self.entry = EntryRow()
        self.cross = CloseMark(self.palette, self.glyphs)
        self.key_bar = KeyBar(self.palette)
        self.notice = NoticeLine(self.palette)
        self.notices = Notices(self.notice, lambda: services.is_running, self.show_keys)
        self.work = ScreenWork(self, self.notices, services)

    def compose(self) -> ComposeResult:
        self._lay_out(self.terminal_size)  # before anything would be styled twice
        yield self.title_row
        yield self.cross
        yield from self.compose_body()
        yield self.entry
        yield self.notice
        yield self.key_bar

    def compose_body(self) -> ComposeResult:
        with Container(id="body"):
            yield self.list
            yield self.detail

    @abstractmethod
    def show_all(self) -> None:
        """Show everything as it is now; also called when the size has changed."""

    @abstractmethod
    def show_detail(self) -> None:
        """Show what the row under the cursor is about."""

    def show_rows(self, rows: Sequence[ListRow]) -> None:
        """Show these rows; without any, the details take the page and say why."""
        self.set_class(not rows, "-empty")
        self.list.show(rows)

    def on_mount(self) -> None:
        self.focus_first()
        self.show_keys()

    def focus_first(self) -> None:
        """Send the keys to where the page begins."""
        self.set_focus(self.list)

    def _lay_out(self, size: Size) -> None:
        wide = size.width >= self.WIDE
        self.set_class(wide, "-wide")
        self.set_class(not wide, "-narrow")
        self.set_class(size.height < 30, "-low")

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out(event.size)
        self.call_after_refresh(self.show_all)

    def set_palette(self, palette: Palette) -> None:
        self.palette = palette
        self.title_row.set_palette(palette)
        self.cross.set_palette(palette)
        self.notice.set_palette(palette)
        self.key_bar.set_palette(palette)
        self.list.set_palette(palette)
        self.show_all()

    # keys

    def on_screen_suspend(self) -> None:
        self.key_bar.cover(True)

    def on_screen_resume(self) -> None:
        self.key_bar.cover(False)

    @property
    def typing(self) -> bool:
        """Whether keys are text now."""
        return isinstance(self.focused, (TextArea, Input))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the list act only where keys are not text."""
        if action == "answer":
            return self.notices.asking and not self.typing
        if action != "page":
            return True
        return not self.typing or BY_ID[str(parameters[0])].typing

    async def action_page(self, action_id: str) -> None:
        if self.notices.asking and action_id == self.CHOOSE:
            close = self.services.key_for("page.close")
            self.notices.say("info", f"The number of an answer chooses it; {close} leaves it.")
            return
        await self.run_action(BY_ID[action_id].call)

    def action_move(self, rows: int) -> None:
        self.list.move(rows)

    @property
    def reviewing(self) -> bool:
        """Whether hunks are kept or put back, not accepted or rejected."""
        session = self.services.session
        return session is not None and session.only_reviews

    def worded(self, text: str) -> str:
        """A text about decisions in the words of a review, if there is one."""
        return in_review(text) if self.reviewing else text

    def hidden_hints(self) -> frozenset[str]:
        """Ids of actions that do nothing useful at the moment."""
        return frozenset()

    def hint_words(self) -> dict[str, str]:
        """Better words for some actions at the moment, by id."""
        return {}

    def leading_hints(self) -> Iterable[KeyHint]:
        """Keys that are named before those of the page's own actions."""
        return ()

    def show_keys(self) -> None:
        """Show the keys of the moment."""
        if not self.is_mounted:
            return
        if self.notices.is_alone:
            self.key_bar.show(self.notices.hints)
            return
        hints: list[KeyHint] = []
        words = self.hint_words()
        if self.notices.asking:
            hints = answer_hints(len(self.notices.choices))
        else:
            hints += self.entry.hints if self.entry.is_open else self.leading_hints()
            hidden, reviewing = self.hidden_hints(), self.reviewing
            for action in actions_on(self.PAGE):
                if not action.short or action.id in hidden or not self.services.keys[action.id]:
                    continue
                if self.typing != action.typing and action.id != "page.close":
                    continue
                if action.id in ("page.close", "page.help"):
                    continue
                key, short = self.services.key_for(action.id), words.get(action.id, action.short)
                hints.append(KeyHint(key, in_review(short) if reviewing else short, action.call))
        close = "leave it" if self.notices.asking else words.get("page.close", "back")
        hints.append(KeyHint(self.services.key_for("page.close"), close, "close"))
        if not self.typing and not self.notices.asking:
            hints.append(KeyHint(self.services.key_for("page.help"), "keys", "help"))
        self.key_bar.show(tuple(hints))

    def on_descendant_focus(self) -> None:
        self.show_keys()

    @on(Detail.Resized)
    def _resized(self) -> None:
        self.show_all()

    def tell_facts(
        self,
        text: Text,
        facts: Iterable[tuple[str, str] | tuple[str, str, str]],
        names: int,
        *,
        commands: Sequence[str] = (),
    ) -> None:
        """Append one fact a line: the name, padded to ``names`` cells, and its value.

        A third element of a fact is the palette role of its value.  The facts named in
        ``commands`` are there to be copied: one that fits only into a line of its own gets one.
        """
        columns = self.detail.columns
        for name, value, *role in facts:
            text.append(f"{name:<{names}} ", self.palette.style("muted"))
            words, indent = visible(value), names + 1
            if name in commands and columns - indent < cell_len(words) <= columns - _INDENT:
                text.append("\n" + " " * _INDENT)
                indent = _INDENT
            room = max(12, columns - indent)
            lines = textwrap.wrap(words, room, break_on_hyphens=False) or [""]
            style = self.palette.style(role[0] if role else "foreground")
            text.append(("\n" + " " * indent).join(lines) + "\n", style)

    @on(RowList.Highlighted)
    def _moved_in_list(self, event: RowList.Highlighted) -> None:
        event.stop()
        self.show_detail()
        self.detail.rewind()
        self.show_keys()

    @on(RowList.Chosen)
    async def _clicked_in_list(self, event: RowList.Chosen) -> None:
        event.stop()
        await self.action_page(self.CHOOSE)

    @on(Painted.Pressed)
    async def _pressed_hint(self, event: Painted.Pressed) -> None:
        event.stop()
        if self.notices.is_alone or event.call.isdecimal():
            self.notices.hear(event.call)
        else:
            await self.run_action(event.call)

    @on(NoticeLine.Dismissed)
    def _dismissed(self) -> None:
        self.notices.clear()

    def action_answer(self, number: int) -> None:
        self.notices.answer(number)

    def action_help(self) -> None:
        topics = page_topics(
            self.TITLE_WORDS, self.PAGE, self.services.keys, reviewing=self.reviewing
        )
        self.services.open_screen(HelpScreen(self.palette, self.glyphs, topics))

    def action_close(self) -> None:
        if self.notices.asking:
            self.notices.clear()
        elif self.entry.is_open:
            self.leave_entry()
        elif self.typing:
            self.set_focus(self.list)
        else:
            self.dismiss(None)

    def leave_entry(self) -> None:
        """Close the text field without taking anything."""
        self.entry.shut()
        self.set_focus(self.list)
        self.notices.clear()

    def action_scroll(self, rows: int) -> None:
        self.detail.scroll_relative(y=rows, animate=False)

    def action_repaint(self) -> None:
        self.services.repaint()


def fitted(text: str, width: int, glyphs: Glyphs) -> str:
    """``text`` in exactly ``width`` cells: cut with an ellipsis, or filled up."""
    text = visible(text, ascii_only=glyphs.ellipsis.isascii())
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    text = text[: 2 * width]  # a line may be very long
    while text and cell_len(text) > width - 1:
        text = text[:-1]
    return text + glyphs.ellipsis + " " * (width - 1 - cell_len(text))
