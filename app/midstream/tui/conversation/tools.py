"""Uses of tools in a conversation, a line each: its state, its title, what is asked about it.

An agent may use dozens of tools a second.  A widget for each would be laid out, and painted, for
milliseconds; here those that follow each other are the lines of one widget, and only lines that
have changed are painted anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from rich.text import Text
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.strip import Strip

from midstream.pairing.chat.entries import QuestionState, ToolUse
from midstream.pairing.review.agent_edits import changed_lines, files_of
from midstream.tui.conversation.messages import MAX_QUESTION_LENGTH
from midstream.tui.eager import EAGER
from midstream.tui.glyphs import UNICODE, Glyphs
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.line_api import Painted, filtered, painted

if TYPE_CHECKING:
    from midstream.agents.messages import AgentToolCall

MAX_TITLE_LENGTH: Final = 400
"""Characters of the title of a call."""
MAX_DIFF_LINES: Final = 12
"""Lines of an edit that are shown before it is written; the whole of it is in the code after."""
MAX_OUTPUT_LINES: Final = 200
"""Lines of a tool's output that are shown when it is unfolded."""
MIN_NOTICE_WIDTH: Final = 80
"""Columns of a screen whose notice line has room for a question of one or two lines."""
_STATUS_MARKS: Final = {
    "pending": ("·", "muted"),
    "in_progress": ("›", "accent"),
    "completed": ("✓", "success"),
    "failed": ("!", "error"),
    "nothing": ("–", "muted"),
}
_ASCII_MARKS: Final = {"·": ".", "›": ">", "✓": "+", "!": "!", "–": "-"}
_ANSWERS: Final = {
    QuestionState.ALLOWED: ("allowed", "success"),
    QuestionState.REJECTED: ("rejected", "warning"),
    QuestionState.CANCELLED: ("cancelled", "muted"),
}


def status_mark(status: str, glyphs: Glyphs) -> tuple[str, str]:
    """The sign for the state of a tool or of a step, and the role of its colour."""
    mark, role = _STATUS_MARKS.get(status, ("·", "muted"))
    return (mark if glyphs is UNICODE else _ASCII_MARKS[mark]), role


@dataclass(eq=False, slots=True)
class ToolLine:
    """One use of a tool: its state, its title, and its edit while a question about it is open.

    Attributes:
        use: The use.
        unfolded: Whether its output is shown.
    """

    use: ToolUse
    unfolded: bool = False

    @property
    def asked(self) -> bool:
        """Whether a question about it is open."""
        return self.use.question is QuestionState.OPEN

    @property
    def state(self) -> tuple[object, ...]:
        """The state that its rows depend on."""
        return self.use.call, self.use.question, self.unfolded

    @property
    def leads(self) -> bool:
        """Whether it leads to a file; what failed tells why instead, if it does."""
        call = self.use.call
        return bool(files_of(self.use)) and not (call.status == "failed" and call.text)

    @property
    def opens(self) -> str:
        """What choosing it does, for the key bar; ``""`` for nothing."""
        if self.leads:
            return "go to it"
        if self.use.call.text and not self.asked:
            return "fold" if self.unfolded else "unfold"
        return ""


class ToolLines(Painted):
    """Uses of tools that follow each other.

    Attributes:
        lines: A line for each.

    Args:
        uses: The uses, to which more may be added.
        palette: The colours.
        glyphs: The signs that the terminal has.
        root: Folder of the session, which paths are shown relative to.
    """

    virtual_size = Reactive(Size(0, 0))  # Textual's has the screen laid out again when it changes.
    DEFAULT_CSS = """
    ToolLines { height: auto; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    @dataclass
    class Opened(Message):
        """A line was clicked."""

        line: ToolLine

    def __init__(
        self, uses: Sequence[ToolUse], palette: Palette, glyphs: Glyphs, root: Path
    ) -> None:
        super().__init__(palette, glyphs)
        self._uses = uses
        self._root = root
        self._marked: ToolLine | None = None
        self._rows: dict[ToolLine, tuple[object, list[Text]]] = {}
        """The rows of each line, and what they were made from."""
        self._strips: dict[int, tuple[Text, tuple[bool, int], Strip]] = {}
        """The painted strips by row, each with its text, its mark and its width."""
        self.lines = [ToolLine(use) for use in uses]
        self._states = [line.state for line in self.lines]

    def update(self) -> None:
        """Show what the uses are like now."""
        self.lines += map(ToolLine, self._uses[len(self.lines) :])
        states = [line.state for line in self.lines]
        if states != self._states:
            self._states = states
            width, height = self.size
            self.refresh(layout=len(self._shown(width)) != height)

    def set_palette(self, palette: Palette) -> None:
        self._rows.clear()
        super().set_palette(palette)

    def mark(self, line: ToolLine | None) -> None:
        """Show the cursor on a line, or nowhere."""
        self._marked = line
        self.refresh()

    def region_of(self, line: ToolLine) -> Region:
        """Where a line is, within what the widget's container has."""
        shown = [each for _, each in self._shown(self.size.width)]
        place = Region(0, shown.index(line), self.size.width, shown.count(line))
        return place.translate(self.virtual_region.offset)

    def on_click(self, event: events.Click) -> None:
        shown = self._shown(self.size.width)
        if event.y < len(shown):
            self.post_message(self.Opened(shown[event.y][1]))

    # Painting

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._shown(width))

    def render(self) -> Text:
        """All rows, as Textual shows and copies them while some are selected."""
        return Text("\n").join([row for row, _ in self._shown(self.size.width)])

    def render_lines(self, crop: Region) -> list[Strip]:
        if not EAGER or self.text_selection is not None:
            return super().render_lines(crop)
        shown, width = self._shown(self.size.width), self.outer_size.width
        blank = Strip.blank(width, self._palette.ground("background"))
        strips = [
            self._strip(y, *shown[y], width) if y < len(shown) else blank for y in crop.line_range
        ]
        if crop.x or crop.width != width:
            return [strip.crop(crop.x, crop.right) for strip in strips]
        return strips

    def _shown(self, width: int) -> list[tuple[Text, ToolLine]]:
        """All rows, each with the line that it belongs to."""
        return [(row, line) for line in self.lines for row in self._rows_of(line, width)]

    def _rows_of(self, line: ToolLine, width: int) -> list[Text]:
        made_from = line.state, width
        known = self._rows.get(line)
        if known is None or known[0] != made_from:
            text = self._text(line)
            whole = line.asked or line.unfolded
            console = self.app.console  # pyright: ignore[reportUnknownMemberType]
            rows = list(text.wrap(console, width)) if whole and width else [text]
            known = self._rows[line] = made_from, rows
        return known[1]

    def _strip(self, y: int, row: Text, line: ToolLine, width: int) -> Strip:
        """A row as it is painted."""
        marked = line is self._marked
        known = self._strips.get(y)
        if known is None or known[0] is not row or known[1] != (marked, width):
            ground = self._palette.ground("cursor" if marked else "background")
            pad = Strip([Segment(" ", ground)], 1)
            text = row.copy()
            text.truncate(width - 2, overflow="ellipsis")
            middle = painted(self, text, width - 2, self._palette.style("foreground") + ground, y)
            whole = Strip.join([pad, middle, pad])
            (strip,) = filtered(self, [whole], self._palette.colors["background"])
            known = self._strips[y] = row, (marked, width), strip
        return known[2]

    # Text

    def _text(self, line: ToolLine) -> Text:
        """The lines of a use: its title, and below it the question about it, or its output."""
        use, call, style = line.use, line.use.call, self._palette.style
        mark, role = ("?", "accent") if line.asked else status_mark(call.status, self._glyphs)
        text = Text(f"{mark} ", style(role))
        if use.question in _ANSWERS:  # before the title, which may be longer than the pane is wide
            words, role = _ANSWERS[use.question]
            text.append(f"{words}  ", style(role))
        title = call.title or call.kind or "a tool"
        if not line.asked:
            title = title[:MAX_TITLE_LENGTH]
        elif (
            self.screen.size.width >= MIN_NOTICE_WIDTH
            and len(visible(title)) <= MAX_QUESTION_LENGTH
        ):
            title = "asked below"  # The notice line has all of it, beside the answers.
        text.append(visible(title), style("foreground"))
        if line.asked:
            self._add_edits(text, call)
        elif line.unfolded:
            lines = _output(call.text)
            for said in lines[:MAX_OUTPUT_LINES]:
                text.append(f"\n  {visible(said)}", style("muted"))
            if (more := len(lines) - MAX_OUTPUT_LINES) > 0:
                text.append(f"\n  … {more} more lines", style("muted"))
        return text

    def _add_edits(self, text: Text, call: AgentToolCall) -> None:
        """Show what a call would change, or else the first line of what it says."""
        style, left = self._palette.style, MAX_DIFF_LINES
        for diff in call.diffs:
            path = diff.path.removeprefix(f"{self._root}/")
            text.append(f"\n  {visible(path)}", style("muted"))
            changed = changed_lines(diff.old or "", diff.new)
            for sign, words in changed.lines[: max(left, 0)]:
                side = "deleted" if sign == "-" else "added"
                colour = style(f"{side}_sign") + self._palette.ground(side)
                text.append("\n  ").append(f"{sign} {visible(words)}", colour)
            if (more := len(changed.lines) - max(left, 0)) > 0 or not changed.whole:
                count = f"{more} more" if changed.whole else "many more"
                text.append(f"\n  … {count} lines", style("muted"))
            left -= len(changed.lines)
        if not call.diffs and call.text:
            text.append(f"\n  {visible(call.text.splitlines()[0])}", style("muted"))


def _output(text: str) -> list[str]:
    """The lines of what a tool has put out, without the marks of a block of code around them."""
    return [line for line in text.strip().splitlines() if not line.startswith("```")]
