"""A picker for files, actions, models and themes: type a few letters, choose a row.

Every letter narrows the list down, in every picker; arrows and keys with Ctrl move through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import cast

from msgspec.structs import replace
from rich.cells import cell_len
from rich.text import Text
from textual import events, on
from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from midstream.tui.eager import EagerScreen
from midstream.tui.fuzzy import fuzzy_score, has_words, matched_letters
from midstream.tui.services import AppServices
from midstream.tui.themes import Palette
from midstream.tui.widgets.close_mark import CloseMark
from midstream.tui.widgets.fields import LineField
from midstream.tui.widgets.line_api import Painted
from midstream.tui.widgets.row_list import ListRow, Piece, RowList

MAX_SHOWN = 500
"""Rows in the list; more are found by typing."""
SYNONYM = 60
"""Score of a row that is found by another word: behind exact parts of a text, before letters."""
_FOOTER = ("type to narrow down", "up down move", "enter take", "esc close")
_STEPS = {
    "down": 1,
    "up": -1,
    "ctrl+n": 1,
    "ctrl+p": -1,
    "ctrl+j": 1,
    "ctrl+k": -1,
    "tab": 1,
    "shift+tab": -1,
    "pagedown": 10,
    "pageup": -10,
}
"""Keys that move through the list, and by how many rows."""
WIDTH = 84
"""Cells of the box, if no row needs more; a narrow screen gives it less."""
FRAME = 5
"""Cells beside a row: the border, the cursor, the gap behind it and the edge."""
ROOMY = 32
"""Rows of the screen at which a sample has room below the list."""


class _Narrowing(LineField):
    """The field of a picker, which leaves the keys that move through the list to the picker."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key in _STEPS:
            event.prevent_default()


class PickerScreen(EagerScreen, ModalScreen[str | None]):
    """Dismisses with the value of the chosen row, or ``None``.

    Args:
        preview: Called with the value under the cursor whenever it changes.
        typed: Called with the typed text; may return one more row beside those that match.
        note: Advice below the list, to be read before a row is chosen.
        sample: What a preview changes, below the list where there is room; called with a width.
    """

    DEFAULT_CSS = """
    PickerScreen { align: center top; background: $ms-background 60%; }
    PickerScreen > Vertical {
        max-width: 94%; height: auto; max-height: 80%; margin-top: 2; padding: 0;
        background: $ms-panel; border: round $ms-border; border-title-color: $ms-accent;
        border-subtitle-color: $ms-muted; layers: base corner;
    }
    PickerScreen Input {
        border: none; height: 1; margin: 0 1 0 2; padding: 0; background: $ms-panel;
        color: $ms-foreground;
    }
    PickerScreen Input:focus { border: none; background-tint: $ms-panel 0%; }
    PickerScreen RowList { height: auto; max-height: 18; margin-top: 1; }
    PickerScreen .none { color: $ms-muted; padding: 0 1 0 2; margin-top: 1; display: none; }
    PickerScreen .note { color: $ms-muted; padding: 0 1 0 2; margin-top: 1; }
    PickerScreen .sample { height: auto; margin: 1 1 0 2; background: $ms-background; }
    PickerScreen.-empty .none { display: block; }
    PickerScreen.-empty RowList { display: none; }
    PickerScreen:ansi { background: transparent; }
    """

    def __init__(
        self,
        services: AppServices,
        title: str,
        rows: Sequence[ListRow],
        *,
        preview: Callable[[str], None] | None = None,
        typed: Callable[[str], ListRow | None] | None = None,
        select: str | None = None,
        note: str = "",
        sample: Callable[[int], Text] | None = None,
    ) -> None:
        super().__init__()
        self._note = note
        self._sample = sample
        self._shown_sample = Static(classes="sample", markup=False)
        self._rows = rows
        self._title = title
        self._preview = preview
        self._typed = typed
        self._select = select
        self._texts = ["".join(text for text, _ in row.left) for row in rows]
        self.list = RowList(services.palette, services.glyphs)
        self._services = services
        self._cross = CloseMark(services.palette, services.glyphs)
        self.list.can_focus = False
        self.field = _Narrowing(compact=True, select_on_focus=False, placeholder="part of a name")

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = self._title
        box.border_subtitle = f" {self._services.glyphs.separator} ".join(_FOOTER)
        with box:
            yield self._cross
            yield self.field
            yield self.list
            yield Static(classes="none", markup=False)
            if self._note:
                yield Static(self._note, classes="note", markup=False)
            if self._sample is not None and self._roomy:
                yield self._shown_sample

    @property
    def _roomy(self) -> bool:
        app = cast("App[object]", self.app)  # pyright: ignore[reportUnknownMemberType]
        return app.size.height >= ROOMY

    def on_mount(self) -> None:
        self._show(self._rows, self._select)
        widest = max((_width(row) for row in self._rows), default=0)
        self.query_one(Vertical).styles.width = max(WIDTH, widest + FRAME)
        height = max(1, min(18, len(self._rows)))
        # The text in place of an empty list takes its room, so the box keeps its size.
        self.list.styles.height = self.query_one(".none", Static).styles.height = height
        self.field.focus()
        self.call_after_refresh(self._show_sample)

    def _show(self, rows: Sequence[ListRow], select: str | None) -> None:
        """Show rows in the list, with a gap between the cursor and their text."""
        gap: Piece = (" ", "foreground")
        self.list.show(
            [replace(row, left=(gap, *row.left)) for row in rows[:MAX_SHOWN]], select=select
        )

    def _show_sample(self) -> None:
        if self._sample is not None and (width := self._shown_sample.content_size.width):
            self._shown_sample.update(self._sample(width))

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        event.stop()
        # A slash begins a search elsewhere; here it is no part of the search text.
        wanted = event.value.strip().lower().removeprefix("/")
        rows = self._rows
        if wanted:
            scored = [
                (score, index)
                for index, text in enumerate(self._texts)
                if (score := self._score(wanted, text, rows[index].also)) is not None
            ]
            scored.sort(key=lambda pair: self._rank(*pair))
            rows = [_marked(self._rows[index], wanted) for _, index in scored[:MAX_SHOWN]]
            own = None if self._typed is None else self._typed(event.value.strip())
            rows = rows if own is None else [own, *rows]
        first = bool(wanted) or self._select is None
        self._show(rows, rows[0].value if rows and first else self._select)
        self.query_one(".none", Static).update(
            f"Nothing here matches {event.value}; delete a letter."
        )
        self.set_class(not rows, "-empty")

    def _rank(self, score: float, index: int) -> tuple[bool, bool, float, int]:
        """Sorts what fits: words before scattered letters, then the rows that stand first."""
        return score < SYNONYM, self._rows[index].later, -score, index

    @staticmethod
    def _score(wanted: str, text: str, also: str) -> float | None:
        """How well a row fits; its other words count where they begin with what is typed."""
        score = fuzzy_score(wanted, text)
        if f" {wanted}" in f" {also}" or has_words(wanted, text, also):
            score = max(score or 0, SYNONYM)
        return score

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self.list.value is not None:
            self.dismiss(self.list.value)

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self.dismiss(event.value)

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted) -> None:
        event.stop()
        if self._preview is not None:
            self._preview(event.value)

    def set_palette(self, palette: Palette) -> None:
        self.list.set_palette(palette)
        self._cross.set_palette(palette)
        self._show_sample()

    @on(Painted.Pressed)
    def _crossed_out(self, event: Painted.Pressed) -> None:
        event.stop()
        self.dismiss(None)

    def on_click(self, event: events.Click) -> None:
        """A click beside the picker closes it."""
        if not self.query_one(Vertical).region.contains(event.screen_x, event.screen_y):
            self.dismiss(None)

    def on_key(self, event: events.Key) -> None:
        """Move through the list; a letter is text even if it came before the field had the keys."""
        if event.key in ("escape", "ctrl+c"):
            self.dismiss(None)
        elif event.key in _STEPS:
            self.list.move(_STEPS[event.key])
        elif event.is_printable and event.character and not self.field.has_focus:
            self.field.insert_text_at_cursor(event.character)
            self.field.focus()
        else:
            return
        event.stop()
        event.prevent_default()


def _width(row: ListRow) -> int:
    return sum(cell_len(text) for text, _ in (*row.left, *row.right))


def _marked(row: ListRow, wanted: str) -> ListRow:
    """A row whose matched letters stand out."""
    letters = set(matched_letters(wanted, "".join(text for text, _ in row.left)))
    left: list[Piece] = []
    at = 0
    for text, role in row.left:
        for hit, group in groupby(range(at, at + len(text)), letters.__contains__):
            places = list(group)
            part = text[places[0] - at : places[-1] + 1 - at]
            left.append((part, "accent!" if hit else role))
        at += len(text)
    return replace(row, left=tuple(left))
