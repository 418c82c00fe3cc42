"""The composer: where an instruction is written, under a line that names its target.

``@`` offers files and definitions; a long pasted block is shown as a chip and sent whole.  It sends
nothing itself: keys are the screen's, which asks here first whether a list is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.css.scalar import ScalarOffset
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widgets import Static, TextArea
from textual.widgets.text_area import Edit, EditResult

from midstream.actions import Place
from midstream.tui.eager import EAGER, paint_now
from midstream.tui.glyphs import Glyphs
from midstream.tui.keymap import bindings
from midstream.tui.mentions import (
    MORE_FILES,
    MentionChoice,
    MentionQuery,
    MentionSource,
    typed_at,
)
from midstream.tui.pastes import Pastes
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.fields import TextField
from midstream.tui.widgets.line_api import Painted
from midstream.tui.widgets.row_list import ListRow, RowList

LIST_ROWS = 8
"""Rows of the list of completions; more are scrolled."""
MAX_WIDTH = 72
MIN_WIDTH = 30
"""Cells of that list, at most and at least."""
MIN_PATH = 12
"""Cells of a path below which a long name gives way to it."""


class Completions(RowList, can_focus=False):
    """Candidates, one to a row; hidden while there are none."""

    DEFAULT_CSS = """
    Completions {
        overlay: screen; display: none; height: auto; width: 40; scrollbar-size: 0 0;
        background: $ms-raised;
    }
    Completions.-shown { display: block; }
    """

    def __init__(self, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(palette, glyphs, ground="raised", keep_right=True)
        self.candidates: Sequence[MentionChoice] = ()
        self._note = ""

    @property
    def is_shown(self) -> bool:
        """Whether there is something to choose."""
        return bool(self.candidates)

    @property
    def chosen(self) -> MentionChoice | None:
        """The candidate under the cursor."""
        value = self.value
        # The rows stay where the list is hidden.
        return None if value is None or not self.candidates else self.candidates[int(value)]

    def offer(
        self, candidates: Sequence[MentionChoice], column: int, room: int, note: str = ""
    ) -> None:
        """Show candidates above the line below which this widget stands.

        Args:
            candidates: The best first.
            column: Where the mention begins, in cells from the left.
            room: Cells there are for the list.
            note: What is not among them yet; without candidates or a note, the list is hidden.
        """
        if (candidates, note) == (self.candidates, self._note):
            return
        chosen = self.chosen
        self.candidates, self._note = candidates, note
        self.set_class(bool(candidates or note), "-shown")
        if not (candidates or note):
            return
        widest = min(room, MAX_WIDTH)
        rows = [
            _row(str(number), candidate, widest - 4, self._glyphs.ellipsis)
            for number, candidate in enumerate(candidates)
        ]
        if note:
            rows.append(ListRow(None, ((f" {note}", "muted"),)))
        # More of the same list must not take away what the user is about to choose.
        again = candidates.index(chosen) if chosen in candidates else 0
        self.show(rows, select=str(again))
        height = min(LIST_ROWS, len(rows))
        width = max(_width(row) for row in rows) + 4
        width = min(room, max(MIN_WIDTH, min(MAX_WIDTH, width)))
        self.styles.height, self.styles.width = height, width
        self.styles.offset = ScalarOffset.from_offset((max(0, min(column, room - width)), -height))
        self.scroll_to(y=max(0, again - height + 1), animate=False, force=True)


def _row(value: str, candidate: MentionChoice, room: int, ellipsis: str) -> ListRow:
    path = visible(candidate.path)
    folder, slash, name = path.removesuffix("/").rpartition("/")
    name += "/" * path.endswith("/")
    left = ((f" {folder}{slash}", "muted"), (name, "foreground!"))
    if candidate.symbol:
        outer, dot, last = visible(candidate.symbol).rpartition(".")
        left = ((f" {outer}{dot}", "muted"), (last, "foreground!"))
    # Which file a definition is in shows in the end of its path.
    about = visible(candidate.about)
    kind, comma, where = about.partition(", ")
    left_room = room - sum(len(text) for text, _ in left) - len(kind + comma) - 2
    if comma and len(where) > left_room:
        about = f"{kind}{comma}{ellipsis}{where[-max(left_room - 1, MIN_PATH) :]}"
    return ListRow(value, left, ((f"  {about}", "muted"),))


def _width(row: ListRow) -> int:
    return sum(len(text) for text, _ in (*row.left, *row.right))


MAX_HEIGHT = 8
"""Rows the text may take."""
HINT = "what should change?  @ names a file or a function"
"""Shown in the empty field that has the keys."""
ASK_HINT = "a question about the code  @ names a file or a function"
"""Shown there instead where nothing can be changed."""
REDIRECT_HINT = "what should it do instead?"
"""Shown there instead while the model writes."""
PROMPT = 3
"""Cells before the text."""


class ComposerTitle(Painted):
    """The line above the text: what Enter does, and with which lines."""

    DEFAULT_CSS = """
    ComposerTitle { height: 1; background: $ms-background; }
    """

    def __init__(self, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(palette, glyphs)
        self.verb: str = "Instruct"
        self.target: str = ""
        self.detail: str = ""
        self.active: bool = False
        self.along: str = ""
        self.note: str = ""

    def show(self, verb: str, target: str, detail: str, *, active: bool) -> None:
        """Show what Enter will do."""
        if (verb, target, detail, active) != (self.verb, self.target, self.detail, self.active):
            self.verb, self.target, self.detail, self.active = verb, target, detail, active
            self.refresh()

    def show_along(self, along: str, note: str) -> None:
        """Show the context that is sent with the text, on the right, and a remark on it."""
        if (along, note) != (self.along, self.note):
            self.along, self.note = along, note
            self.refresh()

    def render(self) -> Text:
        palette, rule = self._palette, self._glyphs.rule
        line_style = palette.style("accent" if self.active else "border")
        muted = palette.style("muted")
        text = Text(no_wrap=True, overflow="crop")
        text.append(rule * 2 + " ", line_style)
        verb = visible(self.verb)  # an agent names itself
        text.append(verb, palette.style("accent" if self.active else "foreground", bold=True))
        width = self.size.width
        if self.target:
            text.append(f" {self._glyphs.separator} ", muted)
            target = visible(self.target)
            # Which lines of a file are meant is worth more than its folders, and than its name.
            name = target.rpartition("/")[2]
            for shorter in (name, name.partition("  ")[2]):
                if shorter and cell_len(text.plain) + cell_len(target) + 4 > width:
                    target = shorter
            text.append(target, palette.style("foreground"))
        along = self._along(width - cell_len(text.plain) - 6)
        detail = visible(self.detail)
        room = width - along.cell_len - 2 * bool(along.plain)
        if detail and cell_len(text.plain) + cell_len(detail) + 6 <= room:
            text.append(f"  {detail}", muted)
        text.append(" ", muted)
        text.append(rule * max(0, room - cell_len(text.plain)), line_style)
        if along.plain:
            text.append(" ").append_text(along).append(" ")
        return text

    def _along(self, room: int) -> Text:
        """The summary of the context, cut to the available width."""
        palette = self._palette
        words = visible(self.along)
        note = f" ({self.note})" if self.note else ""
        line = Text(no_wrap=True)
        if cell_len(words) + cell_len(note) > room:
            words = words.partition(":")[0]
        if words and cell_len(words) + cell_len(note) <= room:
            line.append(words, palette.style("foreground" if self.active else "muted"))
            line.append(note, palette.style("warning" if ";" in note else "muted"))
        return line


class ComposerText(TextField):
    """The text field: Enter sends, Ctrl+J breaks the line, Up in the first line recalls."""

    BINDINGS: ClassVar = bindings(Place.COMPOSER)
    DEFAULT_CSS = f"""
    ComposerText {{ height: auto; max-height: {MAX_HEIGHT}; min-height: 1; width: 1fr; padding: 0;
    border: none;
        background: $ms-background; color: $ms-muted; scrollbar-size-vertical: 1; }}
    ComposerText:focus {{ border: none; color: $ms-foreground; }}
    ComposerText .text-area--cursor-line {{ background: $ms-background; }}
    """

    @dataclass
    class TextChanged(Message):
        """The text changed; chips are written out."""

        text: str

    class CaretMoved(Message):
        """The text or the cursor changed."""

        def can_replace(self, message: Message) -> bool:
            """Once is enough where both have changed."""
            return isinstance(message, ComposerText.CaretMoved)

    class Later(Message):
        """Down was pressed in the last line."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(compact=True, highlight_cursor_line=False, placeholder=HINT)
        self.cursor_blink = False
        self.pastes = Pastes()
        self.palette = palette
        self._spaced = False
        """Whether the last character is a space that a completion put there."""
        self._styled: object = None
        """The colours that were made from the stylesheet, while it has not changed."""

    def edit(self, edit: Edit) -> EditResult:
        """Change the text; what was typed is on screen before anything else happens."""
        height = self.wrapped_document.height
        result = super().edit(edit)
        if self.is_mounted and self.wrapped_document.height == height:
            paint_now(self)
        return result

    def notify_style_update(self) -> None:
        """The stylesheet gives other colours now."""
        self._styled = None
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines; to make the colours takes longer than the lines, so they are kept."""
        theme = self._theme
        if EAGER and theme is self._styled:
            return super(TextArea, self).render_lines(crop)
        self._styled = theme
        return super().render_lines(crop)

    async def _on_key(self, event: events.Key) -> None:
        """A space that a completion put there goes where a mark follows; a chip is one thing."""
        if event.is_printable:
            self._leave_chip()
            if self._spaced and event.character and event.character in ":.,;)":
                self.action_delete_left()
        self._spaced = False

    async def _on_paste(self, event: events.Paste) -> None:
        """A long block becomes a chip."""
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        short = self.pastes.shorten(text)
        if short != text:
            event.stop()
            event.prevent_default()
            self._leave_chip()
            self.replace(short, *self.selection)

    def complete(self, typed: MentionQuery, text: str) -> None:
        """Put a mention in place of what was typed of it."""
        row, column = self.cursor_location
        follows = self.document[row][column : column + 1]
        self._spaced = not follows.strip()
        self.replace(text + ("" if follows else " "), (row, typed.start), (row, column))
        if follows:
            self._spaced = False

    def expand_chip(self) -> bool:
        """Write out the chip at the cursor, or else all; says whether there was one."""
        row, column = self.cursor_location
        span = self.pastes.chip_at(self.document[row], column)
        block = None if span is None else self.pastes.block(self.document[row][slice(*span)])
        if span is not None and block is not None:
            self.replace(block, (row, span[0]), (row, span[1]))
            return True
        whole = self.pastes.expand(self.text)
        if whole == self.text:
            return False
        self.text = whole
        self.move_cursor(self.document.end)
        return True

    def _leave_chip(self) -> None:
        """What is typed inside a chip goes behind it: a chip is one thing."""
        row, column = self.cursor_location
        span = self.pastes.chip_at(self.document[row], column)
        if span is not None and column < span[1] and self.selection.is_empty:
            self.move_cursor((row, span[1]))

    def action_delete_left(self) -> None:
        if not self._delete_chip(left=True):
            super().action_delete_left()

    def action_delete_right(self) -> None:
        if not self._delete_chip(left=False):
            super().action_delete_right()

    def action_cursor_down(self, select: bool = False) -> None:
        """Next line; below the last one are a list and later instructions."""
        if self.cursor_at_last_line and not select:
            self.post_message(self.Later())
        else:
            super().action_cursor_down(select)

    def _delete_chip(self, left: bool) -> bool:
        if not self.selection.is_empty:
            return False
        row, column = self.cursor_location
        span = self.pastes.chip_at(self.document[row], column if left else column + 1)
        if span is None:
            return False
        self.delete((row, span[0]), (row, span[1]))
        return True

    def get_line(self, line_index: int) -> Text:
        """A line with its chips marked."""
        line = super().get_line(line_index)
        for start, stop in self.pastes.chips(line.plain):
            line.stylize(self.palette.style("accent", "raised"), start, stop)
        return line

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self.post_message(self.TextChanged(self.pastes.expand(self.text)))
        self.post_message(self.CaretMoved())

    def on_text_area_selection_changed(self, event: TextArea.SelectionChanged) -> None:
        event.stop()
        self.post_message(self.CaretMoved())


class Composer(Vertical):
    """Title line, prompt and text field."""

    DEFAULT_CSS = """
    Composer { height: auto; background: $ms-background; }
    Composer Horizontal { height: auto; }
    Composer .prompt { width: 3; height: 1; padding: 0 0 0 1; color: $ms-muted; }
    Composer:focus-within .prompt { color: $ms-accent; }
    """

    class Listed(Message):
        """The list of candidates was opened or closed."""

    def __init__(self, palette: Palette, glyphs: Glyphs, *, widget_id: str | None = None) -> None:
        super().__init__(id=widget_id)
        self.title = ComposerTitle(palette, glyphs)
        self.list = Completions(palette, glyphs)
        self.field = ComposerText(palette)
        self._prompt = Static(glyphs.prompt, classes="prompt", markup=False)
        self.history: list[str] = []
        self.mentions: MentionSource | None = None
        """What ``@`` can name."""
        self._recalled = 0
        self._draft = ""
        self._closed_at: tuple[int, int] | None = None
        """Start of the mention whose list was closed."""

    def compose(self) -> ComposeResult:
        yield self.list
        yield self.title
        with Horizontal():
            yield self._prompt
            yield self.field

    def set_palette(self, palette: Palette) -> None:
        self.title.set_palette(palette)
        self.list.set_palette(palette)
        self.field.palette = palette

    @property
    def text(self) -> str:
        """The text, with the pasted blocks in place of their chips."""
        return self.field.pastes.expand(self.field.text)

    @property
    def pasted(self) -> list[str]:
        """The pasted blocks whose chips are in the text."""
        return self.field.pastes.used(self.field.text)

    def put_draft(self, text: str, pasted: Iterable[str]) -> None:
        """Put back what was written in an earlier session, and what was pasted into it.

        It is selected, so that what is typed at the start as always takes its place.
        """
        for block in pasted:
            self.field.pastes.shorten(block)
        self.put(text)
        self.field.select_all()

    def put(self, text: str) -> None:
        """Replace the text and put the cursor at its end; pasted blocks are chips again."""
        self.field.text = self.field.pastes.collapse(text)
        self.to_end()

    def to_end(self) -> None:
        """Put the cursor behind the text, which is selected no longer."""
        self.field.move_cursor(self.field.document.end)

    def put_chip(self, chip: str, block: str) -> None:
        """Begin the text with a chip that stands for a block."""
        self.field.pastes.name(chip, block)
        self.put(f"{chip} ")

    def take(self) -> str:
        """Empty the field and remember what was in it."""
        text = self.text.strip()
        if text and (not self.history or self.history[-1] != text):
            self.history.append(text)
        self._recalled = 0
        self.field.text = ""
        return text

    def give_back(self, text: str) -> None:
        """Put back a text that could not be sent, in front of what was typed since.

        It is selected where it is alone, so that other text takes its place.
        """
        rest = self.text.strip()
        alone = rest in ("", text)
        self.put(text if alone else f"{text}\n{rest}")
        if alone:
            self.field.select_all()

    def recall(self, step: int) -> bool:
        """Show an earlier (1) or later (-1) instruction; says whether there was one."""
        wanted = self._recalled + step
        if not 0 <= wanted <= len(self.history):
            return False
        if self._recalled == 0:
            self._draft = self.field.text
        self._recalled = wanted
        self.put(self._draft if wanted == 0 else self.history[-wanted])
        return True

    @on(ComposerText.Later)
    def _later(self) -> None:
        if not self.move(1) and not (self._recalled and self.recall(-1)):
            self.field.action_cursor_line_end()

    # mentions

    @on(ComposerText.CaretMoved)
    def _offer(self, event: ComposerText.CaretMoved) -> None:
        event.stop()
        self.offer()

    def offer(self) -> None:
        """Offer what fits the mention being typed; also called when more is known."""
        typed = self._typed()
        if typed is None:
            self._closed_at = None
            self._hide()
            return
        here = (self.field.cursor_location[0], typed.start)
        if here == self._closed_at:
            return
        self._closed_at = None
        self._show(typed)
        self.run_worker(partial(self._prepare, typed.query), group="mentions", exclusive=True)

    async def _prepare(self, query: str) -> None:
        more = self.mentions is not None and await self.mentions.prepare(query)
        typed = self._typed()
        if more and typed is not None and self._closed_at is None:
            self._show(typed)

    def _typed(self) -> MentionQuery | None:
        row, column = self.field.cursor_location
        if not self.field.has_focus or not self.field.selection.is_empty:
            return None
        return typed_at(self.field.document[row], column)

    def _show(self, typed: MentionQuery) -> None:
        row = self.field.cursor_location[0]
        column = PROMPT + cell_len(self.field.document[row][: typed.start])
        found, note = list[MentionChoice](), MORE_FILES
        if self.mentions is not None:
            found = self.mentions.candidates(typed.query)
            note = self.mentions.missing(typed.query)
        if any(candidate.text == f"@{typed.query}" for candidate in found[:1]):
            found, note = [], ""  # There is nothing left to complete.
        was = self.list.is_shown
        self.list.offer(found, column, self.size.width, note)
        if was != self.list.is_shown:
            self.post_message(self.Listed())

    def _hide(self) -> None:
        was = self.list.is_shown
        self.list.offer((), 0, 0)
        if was:
            self.post_message(self.Listed())
        if self.mentions is not None:
            self.mentions.forget()

    @property
    def choosing(self) -> bool:
        """Whether a list of candidates is open."""
        return self.list.is_shown

    def complete(self) -> bool:
        """Take the candidate under the list's cursor; says whether a list was open."""
        chosen, typed = self.list.chosen, self._typed()
        if not self.choosing or chosen is None or typed is None:
            return False
        self._hide()
        self.field.complete(typed, chosen.text)
        return True

    def close_list(self) -> bool:
        """Close the list for this mention; says whether one was open."""
        typed = self._typed()
        if not self.choosing:
            return False
        if typed is not None:
            self._closed_at = (self.field.cursor_location[0], typed.start)
        self._hide()
        return True

    def move(self, step: int) -> bool:
        """Move the list's cursor; says whether a list is open."""
        if self.choosing:
            self.list.move(step)
        return self.choosing

    @on(RowList.Chosen)
    def _clicked(self, event: RowList.Chosen) -> None:
        event.stop()
        self.complete()
