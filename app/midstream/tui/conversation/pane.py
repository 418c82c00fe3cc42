"""The pane that shows a conversation: messages as Markdown, tools as lines, and open questions.

It shows what a ``ShownConversation`` has and decides nothing.  Entries only grow at their end, so a
look at them costs what is new.  Only the newest have widgets, as an answer may need hundreds; older
ones get theirs when the user scrolls up to them.  While more comes than anyone can read, its end is
shown as plain text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, TypeAlias

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.reactive import Reactive
from textual.widget import Widget
from textual.widgets import Markdown, Static

from midstream.counting import counted
from midstream.pairing.chat.entries import Entry, Speech
from midstream.pairing.chat.plan import steps_of
from midstream.tui.conversation.answer import GrowingAnswer
from midstream.tui.conversation.links import parser, place_of
from midstream.tui.conversation.messages import FilePicked, ToolPicked
from midstream.tui.conversation.pieces import (
    MAX_PIECE,
    PIECE_LENGTH,
    Piece,
    Pieces,
    SpeechPiece,
    ToolPiece,
    is_heavy,
    tail,
    weight,
)
from midstream.tui.conversation.tools import MAX_TITLE_LENGTH, ToolLine, ToolLines, status_mark
from midstream.tui.eager import let_keys_pass
from midstream.tui.glyphs import Glyphs
from midstream.tui.themes import Palette
from midstream.tui.visible import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from textual.widgets.markdown import MarkdownStream

    from midstream.agents.messages import AgentPlan, PlanStep

MAX_LINES: Final = 100
"""Lines of the newest pieces that have widgets, unless the user has scrolled up."""
MAX_WIDGETS: Final = 60
"""The same, in pieces: a widget takes a few milliseconds."""
MAX_AT_ONCE: Final = 60
"""Lines that get their widgets at once."""
MAX_WEIGHT: Final = 120
"""About how many widgets the newest pieces have within Markdown."""
WEIGHT_AT_ONCE: Final = 80
"""How many of them are made at once."""
PIECES_A_TURN: Final = 10
"""Pieces that are cut before a key has its turn: 1 to 2 ms of work."""
MAX_NEW: Final = 6_000
"""New characters since the last look that count as a flood,"""
MAX_NEW_WEIGHT: Final = 60
"""and the widgets that show them."""
FLOOD_LINES: Final = 60
"""Lines of a flood that are shown."""
FADES: Final = 0.6
"""Factor by which the recent load decays from look to look."""
MAX_LOAD: Final = 2.0
"""Limit on the recent load; 1.0 is a flood."""
PLAN_ROWS: Final = 8
"""Steps of a plan that are shown, those around the current one; below the code, as many as have
room."""
STEP_ROWS: Final = 3
"""Rows of one step beside the code."""
MAX_LINE: Final = MAX_PIECE * PIECE_LENGTH
"""Characters of a line that are shown."""
ROW: Final = 80
"""So many characters count as a line."""
_Shown: TypeAlias = Static | Markdown | ToolLines


class ShownConversation(Protocol):
    """The interface through which a conversation is shown."""

    @property
    def entries(self) -> Sequence[Entry]:
        """What was said and used, in the order in which it began."""
        ...

    @property
    def plan(self) -> AgentPlan | None:
        """What is planned, if anything is."""
        ...

    @property
    def busy(self) -> bool:
        """Whether a turn runs."""
        ...

    @property
    def asking(self) -> bool:
        """Whether it waits for an answer of the user."""
        ...

    @property
    def yes_or_no(self) -> bool:
        """Whether what it asks is answered by 1 for yes and 2 for no."""
        ...

    @property
    def version(self) -> str:
        """Version of the other side, ``""`` for none."""
        ...

    @property
    def facts(self) -> Sequence[str]:
        """Further facts about it, in a few words each."""
        ...


class _Said(VerticalScroll, can_focus=False):
    """The conversation, laid out once when it grows; Textual's containers are laid out twice."""

    virtual_size = Reactive(Size(0, 0))


class ConversationPane(Widget, can_focus=True):
    """The conversation of a session; follows its end unless scrolled up.

    With the focus it has a cursor, which goes from tool to tool.
    """

    FOCUS_ON_CLICK: ClassVar[bool] = False  # who selects words while writing goes on writing
    DEFAULT_CSS = """
    ConversationPane {
        width: 2fr; min-width: 36; height: 1fr; layout: vertical;
        border-left: solid $ms-border; background: $ms-background;
    }
    ConversationPane.-below {
        width: 1fr; height: 70%; min-height: 4; border-left: none; border-top: solid $ms-border;
    }
    MidstreamApp.-ascii ConversationPane { border-left: ascii $ms-border; }
    ConversationPane #said {
        height: 1fr; background: $ms-background; scrollbar-size-vertical: 1;
    }
    ConversationPane #about, ConversationPane #plan {
        padding: 0 1; background: $ms-panel; text-wrap: nowrap; text-overflow: ellipsis;
    }
    ConversationPane #about { height: auto; max-height: 2; }
    ConversationPane #earlier { padding: 0 1; height: 1; color: $ms-muted; display: none; }
    ConversationPane #plan { height: auto; }
    ConversationPane .user {
        height: auto; margin: 1 0 0 0; padding: 0 1; background: $ms-raised;
    }
    ConversationPane .thought {
        height: auto; max-height: 2; padding: 0 1; color: $ms-muted;
    }
    ConversationPane Markdown, ConversationPane .plain {
        height: auto; margin: 1 0 0 0; padding: 0 1;
        color: $ms-foreground; background: $ms-background;
    }
    ConversationPane .continued { margin: 0; }
    ConversationPane #flood { height: 1fr; padding: 0 1; display: none; }
    """

    def __init__(self, palette: Palette, glyphs: Glyphs, root: Path) -> None:
        super().__init__(id="conversation")
        self._root = root
        self._palette = palette
        self._glyphs = glyphs
        self._about = Static(id="about")
        self._earlier = Static(id="earlier")
        self._said = _Said(id="said")
        self._flood = Static(id="flood", markup=False)
        self._plan = Static(id="plan")
        self._shown: ShownConversation | None = None
        self._title = ""
        self._pieces = Pieces()
        self._first = 0
        """The first piece that has a widget; all after it have one, but for a flood."""
        self._widgets: list[_Shown] = []
        self._cursor: ToolLine | None = None
        self._lengths: list[int] = []
        self._stream: MarkdownStream | None = None
        self._seen = (0, 0)
        """How many pieces there were at the last look, and how long the last one was."""
        self._load = 0.0
        """The recent load; 1.0 is a flood."""

    def on_mount(self) -> None:
        self.watch(self._said, "virtual_size", self._keep_end)
        self.watch(self._said, "scroll_y", self._scrolled, init=False)

    def _keep_end(self) -> None:
        """Stay at the end from now on, until the user scrolls away from it."""
        # A widget that is anchored earlier stands at the bottom of the pane, with nothing above it.
        if not self._said.is_anchored and self._said.virtual_size.height > self._said.size.height:
            self._said.anchor()

    def compose(self) -> ComposeResult:
        yield self._about
        yield self._earlier
        yield self._said
        yield self._flood
        yield self._plan

    def set_palette(self, palette: Palette) -> None:
        """Draw with other colours."""
        self._palette = palette
        self._about.update(self._about_text(self._title, self._shown))
        if self._shown is not None:
            self._show_plan(self._shown)
            for widget in self._widgets:
                if isinstance(widget, ToolLines):
                    widget.set_palette(palette)

    def place(self, *, below: bool, with_code: bool) -> None:
        """Stand beside what is in the centre, the code or the welcome, or below it."""
        self.set_class(below, "-below")
        self.set_class(with_code, "-with-code")
        if self._shown is not None:
            self._about.update(self._about_text(self._title, self._shown))
            self._show_plan(self._shown)

    async def show(self, title: str, conversation: ShownConversation | None) -> bool:
        """Show what there is now.

        Returns:
            Whether more has come since the last time than can be followed.

        Args:
            title: Who is spoken with, also while an agent is being started.
            conversation: What was said, ``None`` before there is anything.
        """
        if conversation is not self._shown:
            await self._forget()
            self._shown = conversation
        self._title = title
        silent = conversation is None or not (conversation.entries or conversation.plan)
        self.set_class(silent, "-silent")
        _tell(self._about, self._about_text(title, conversation))
        if conversation is None:
            self._plan.display = False
            return False
        if not self._pieces.continues(conversation.entries):
            await self._forget()
        for number, _ in enumerate(self._pieces.follow(conversation.entries), 1):
            if number % PIECES_A_TURN == 0:
                await let_keys_pass()
        self._show_plan(conversation)
        if self._is_flooded():
            self._show_flood()
            return True
        if self._flood.display:
            self._set_flooded(on=False)
            self._flood.update("")
        pieces = self._pieces.all
        shown = self._first + len(self._widgets)
        if len(pieces) - shown > MAX_WIDGETS:
            await self._drop_all()  # what has passed by gets its widgets when it is looked for
            shown = 0
        for number in range(self._first, shown):
            await self._update(number, pieces[number])
        if new := pieces[shown:]:
            await self._add(new)
        return False

    def _is_flooded(self) -> bool:
        """Whether more has come lately than can be read."""
        pieces = self._pieces.all
        count, length = self._seen
        chars, widgets, load = -length, -weight(""), 0.0
        for piece in pieces[max(count - 1, 0) :]:
            widgets += 1
            if isinstance(piece, SpeechPiece):
                widgets += weight(piece.text[max(-chars, 0) :])
            chars += piece.length
            load = max(chars / MAX_NEW, widgets / MAX_NEW_WEIGHT)
            if load > MAX_LOAD:
                break
        self._seen = len(pieces), pieces[-1].length if pieces else 0
        if count:  # what was there before the first look, as of a session resumed, is no flood
            self._load = min(FADES * self._load + load, MAX_LOAD)
        return self._load > 1

    def _show_flood(self) -> None:
        """Show the end of it as plain text, unless the user reads what came before."""
        if self._said.display and self._widgets and not self._said.is_vertical_scroll_end:
            return
        lines = tail(self._pieces.all, FLOOD_LINES, 4 * self.size.width)
        rows = max(self._flood.size.height, 1)
        self._flood.update(Text("\n".join(map(visible, lines[-rows:])), no_wrap=True))
        self._set_flooded(on=True)

    def _set_flooded(self, *, on: bool) -> None:
        """Switch between the messages and the end of a flood."""
        # A class would have the styles of all messages looked up again, which takes 0.1 s and more.
        self._said.display, self._flood.display = not on, on

    def scroll(self, rows: int) -> None:
        """Scroll by a number of rows; at the beginning, show earlier messages."""
        if rows < 0 and self._said.scroll_y <= 0:
            self._scrolled(0)
        self._said.scroll_relative(y=rows, animate=False)

    def _scrolled(self, y: float) -> None:
        if self._first and y <= 0 and self._said.virtual_size.height > self._said.size.height:
            self.call_later(self._show_earlier)

    @property
    def cursor(self) -> ToolLine | None:
        """The tool under the cursor."""
        return self._cursor

    def move(self, step: int) -> None:
        """Move the cursor by a number of tools; without tools, scroll by rows."""
        tools = [line for widget in self._tools for line in widget.lines]
        if not tools:
            self.scroll(step)
            return
        here = tools.index(self._cursor) if self._cursor in tools else len(tools) - 1
        if here + step < 0:
            self.scroll(step)
        self._aim(tools[min(max(here + step, 0), len(tools) - 1)])

    @property
    def _tools(self) -> list[ToolLines]:
        return [widget for widget in self._widgets if isinstance(widget, ToolLines)]

    def choose(self) -> None:
        """Go to what the tool under the cursor is about, or unfold or fold its output."""
        if self._cursor is not None:
            self._open(self._cursor)

    def on_resize(self) -> None:
        """There is room for more steps of the plan, or for fewer."""
        if self._shown is not None:
            self._show_plan(self._shown)

    def on_focus(self) -> None:
        self.move(0)

    def on_blur(self) -> None:
        for widget in self._tools:
            widget.mark(None)

    def on_tool_lines_opened(self, event: ToolLines.Opened) -> None:
        event.stop()
        self._open(event.line)

    def _open(self, line: ToolLine) -> None:
        if line.leads:
            self.post_message(ToolPicked(line.use))
        elif line.opens:
            line.unfolded = not line.unfolded
            for widget in self._tools:
                widget.update()

    def _aim(self, line: ToolLine) -> None:
        self._cursor = line
        for widget in self._tools:
            if line in widget.lines:
                widget.mark(line)
                self._said.scroll_to_region(widget.region_of(line), animate=False)
            else:
                widget.mark(None)

    async def _forget(self) -> None:
        await self._drop_all()
        self._pieces = Pieces()
        self._seen, self._load = (0, 0), 0.0

    async def _drop_all(self) -> None:
        self._cursor = None
        await self._end_stream()
        await self._said.remove_children()
        self._first = 0
        self._widgets.clear()
        self._lengths.clear()
        self._tell_earlier()

    async def _update(self, number: int, piece: Piece) -> None:
        """Bring what is shown of a piece up to date."""
        at = number - self._first
        if at < 0:  # it has lost its widget meanwhile
            return
        widget = self._widgets[at]
        if isinstance(widget, ToolLines):
            widget.update()
        elif isinstance(piece, SpeechPiece) and piece.length != (length := self._lengths[at]):
            self._lengths[at] = piece.length
            text = piece.text
            longer = piece.length > length
            if isinstance(widget, Static):
                widget.update(_words(piece))
            elif is_heavy(text):
                await self._make_plain(at, piece)
            elif longer and self._stream is not None and at == len(self._widgets) - 1:
                await self._stream.write(_inert(text[length:]))
            else:
                await widget.update(_inert(text))

    async def _make_plain(self, at: int, piece: SpeechPiece) -> None:
        """Show a piece as plain text from now on."""
        if at == len(self._widgets) - 1:
            await self._end_stream()
        former, widget = self._widgets[at], self._widget(piece)
        self._widgets[at] = widget
        await self._said.mount(widget, after=former)
        await former.remove()

    async def _add(self, pieces: Sequence[Piece]) -> None:
        """Append pieces in one mount, since each mount lays out the whole conversation.

        If nothing is shown yet, only the newest are appended.
        """
        await self._end_stream()
        at_end = self._said.is_vertical_scroll_end
        if not self._widgets:
            self._first = len(pieces) - _newest(pieces, MAX_AT_ONCE, WEIGHT_AT_ONCE)
            pieces = pieces[self._first :]
        first = self._first + len(self._widgets)
        *former, newest = pieces
        last = self._widget(newest, streamed=True)
        added = [*map(self._widget, former), last]
        self._widgets += added
        self._lengths += [*(piece.length for piece in former), 0]
        await self._said.mount_all(added)
        if isinstance(last, Markdown):
            self._stream = Markdown.get_stream(last)
        for number, piece in enumerate(pieces, first):
            await self._update(number, piece)
        if at_end:
            await self._drop_earlier()
        self._tell_earlier()

    async def _drop_earlier(self) -> None:
        """Take the widgets of the oldest pieces away, as long as there are too many lines."""
        shown = self._pieces.all[self._first : self._first + len(self._widgets)]
        if gone := len(shown) - _newest(shown, MAX_LINES, MAX_WEIGHT):
            dropped, self._widgets = self._widgets[:gone], self._widgets[gone:]
            del self._lengths[:gone]
            self._first += gone
            if any(isinstance(w, ToolLines) and self._cursor in w.lines for w in dropped):
                self._cursor = None
            await self._said.remove_children(dropped)

    async def _show_earlier(self) -> None:
        """Give the pieces before the first that is shown their widgets, as many as fit at once."""
        if not self._first or not self._widgets:
            return
        earlier = self._pieces.all[: self._first]
        pieces = earlier[len(earlier) - _newest(earlier, MAX_AT_ONCE, WEIGHT_AT_ONCE) :]
        former, added = self._widgets[0], [self._widget(piece) for piece in pieces]
        self._first -= len(added)
        self._widgets[:0] = added
        self._lengths[:0] = [piece.length for piece in pieces]
        await self._said.mount_all(added, before=former)
        self._tell_earlier()
        self._said.scroll_to_widget(former, animate=False, top=True)

    def _tell_earlier(self) -> None:
        self._earlier.display = self._first > 0
        number = self._pieces.owners[self._first] if self._first else 0
        told = f"{counted(max(number, 1), 'earlier message')}: scroll up"
        _tell(self._earlier, told if self._first else "")

    def _widget(self, piece: Piece, *, streamed: bool = False) -> _Shown:
        """The widget that shows a piece; the text of a streamed one is still to be written."""
        if isinstance(piece, ToolPiece):
            return ToolLines(piece.uses, self._palette, self._glyphs, self._root)
        continued = " continued" if piece.start else ""
        if piece.role != "agent":
            return Static(_words(piece), classes=piece.role, markup=False)
        text = piece.text
        if is_heavy(text):
            return Static(_words(piece), classes=f"plain{continued}", markup=False)
        # A stream begins with no text: Textual 8.2 appends to the last line of what a widget
        # was made with, not to its last block, and the earlier items of a list would go.
        shown = GrowingAnswer(
            "" if streamed else _inert(text),
            open_links=False,
            parser_factory=lambda: self._parser,
        )
        shown.set_class(bool(continued), "continued")
        return shown

    @cached_property
    def _parser(self) -> MarkdownIt:
        return parser(self._is_file)

    def _is_file(self, path: str) -> bool:
        return (self._root / path).is_file()

    async def _end_stream(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            await stream.stop()

    async def on_unmount(self) -> None:
        await self._end_stream()

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        """Open a file of the folder here, and a page of the web in the browser; nothing else."""
        event.stop()
        if event.href.startswith(("http://", "https://")):
            self.app.open_url(event.href)  # pyright: ignore[reportUnknownMemberType]
        elif (place := place_of(event.href)) is not None:
            self.post_message(FilePicked(place.path, place.line))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll(-3)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll(3)

    # Text

    def _about_text(self, title: str, conversation: ShownConversation | None) -> Text:
        style = self._palette.style
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(visible(title), style("foreground", bold=True))
        if conversation is None:
            line.append("  starting", style("warning"))
            return line
        version = conversation.version
        line.append(f" {visible(version)}" if version else "", style("muted"))
        if conversation.asking:
            line.append("  waits for your answer", style("accent", bold=True))
            line.append(": 1 yes, 2 no" if conversation.yes_or_no else "", style("accent"))
        elif conversation.busy:
            line.append("  working", style("accent"))
        facts = "  ".join(visible(fact) for fact in conversation.facts)
        # Beside the code they have a line of their own; below it, the width suffices.
        apart = "  " if self.has_class("-below") else "\n"
        line.append(f"{apart}{facts}" if facts else "", style("muted"))
        return line

    def _show_plan(self, conversation: ShownConversation) -> None:
        plan, below = conversation.plan, self.has_class("-below")
        crowded = below and conversation.asking  # A question needs the room.
        if plan is None or crowded or _is_last_said(plan, conversation.entries):
            self._plan.display = False
            return
        text = Text(no_wrap=True, overflow="ellipsis")
        steps, room = plan.steps, PLAN_ROWS
        columns = max(self.size.width - 4, 20)
        if below:
            room = min(max(self.size.height // 2, 1), PLAN_ROWS)
        first = _current(steps)
        if room > 1:  # The step before the current one tells whether it has come to anything.
            first = max(0, min(first - 1, len(steps) - room))
        self._plan.display = bool(steps)
        for number, step in enumerate(steps[first : first + room]):
            mark, role = status_mark(step.status, self._glyphs)
            text.append("\n" if number else "")
            text.append(f"{mark} ", self._palette.style(role))
            done = "muted" if step.status == "completed" else "foreground"
            # The marks of code are for Markdown, which this row is not.
            words = visible(step.text[:MAX_TITLE_LENGTH].replace("`", ""))
            if not below:  # It is narrow there, and high enough.
                words = "\n  ".join(wrap(words, columns, max_lines=STEP_ROWS, placeholder=" …"))
            text.append(words, self._palette.style(done))
        _tell(self._plan, text)


def _is_last_said(plan: AgentPlan, entries: Sequence[Entry]) -> bool:
    """Whether a plan that has not begun is the answer that stands right above it."""
    last = entries[-1] if entries else None
    if not isinstance(last, Speech) or len(last.text) > PIECE_LENGTH:
        return False
    said = [(f"{number}. {text}", "pending") for number, text in enumerate(steps_of(last.text), 1)]
    return said == [(step.text, step.status) for step in plan.steps]


def _current(steps: Sequence[PlanStep]) -> int:
    """Which step of a plan is worked on or comes next; after the end, the last one."""
    for status in ("in_progress", "pending"):
        for number, step in enumerate(steps):
            if step.status == status:
                return number
    return max(len(steps) - 1, 0)


def _tell(line: Static, text: Text | str) -> None:
    """Show a text unless it is shown; each update of a widget lays the whole screen out."""
    if line.content != text:
        line.update(text)


def _newest(pieces: Sequence[Piece], most_lines: int, most_weight: int) -> int:
    """How many of the newest pieces have widgets: as many as fit, and one at least."""
    lines = widgets = 0
    for count, piece in enumerate(reversed(pieces)):
        widgets += 1
        if isinstance(piece, SpeechPiece):
            lines += 1 + max(piece.text.count("\n"), piece.length // ROW)
            widgets += weight(piece.text)
        else:
            lines += len(piece.uses)
        if lines > most_lines or widgets > most_weight or count == MAX_WIDGETS:
            return max(count, 1)
    return len(pieces)


def _words(piece: SpeechPiece) -> str:
    """The pieces shown as plain text; the user's words and the agent's thoughts always are."""
    text = piece.text if piece.role != "thought" else piece.text[:MAX_TITLE_LENGTH]
    return ("› " if piece.role == "user" else "") + _inert(text)


def _inert(text: str) -> str:
    """A text of several lines without anything that a terminal would obey."""
    return "\n".join(map(_shown_line, text.split("\n")))


def _shown_line(line: str) -> str:
    more = len(line) - MAX_LINE
    return visible(f"{line[:MAX_LINE]}… {more:,} more characters" if more > 0 else line)
