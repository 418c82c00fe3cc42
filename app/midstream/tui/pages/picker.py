"""A picker for files, actions and themes: type a few letters, choose a row.

Letters are text while the field has the focus.  After a key that moves through the list, ``j`` and
``k`` move as well, as on the pages, and ``/`` goes back to the field; short lists begin there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import cast

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
SYNONYM = 60
"""Score of a row that is found by another word: behind exact parts of a text, before letters."""
ROOMY = 32
"""Rows of the screen at which a sample has room below the list."""


class PickerScreen(EagerScreen, ModalScreen[str | None]):
    """Dismisses with the value of the chosen row, or ``None``.

    Args:
        preview: Called with the value under the cursor whenever it changes.
        typed: Called with the typed text; may return one more row beside those that match.
        browse: Begin in the list, where all rows can be seen at once.
        note: Advice below the list, to be read before a row is chosen.
        sample: What a preview changes, below the list where there is room; called with a width.
    """

    DEFAULT_CSS = """
    PickerScreen { align: center top; background: $ms-background 60%; }
    PickerScreen > Vertical {
        width: 84; max-width: 94%; height: auto; max-height: 80%; margin-top: 2; padding: 0;
        background: $ms-panel; border: round $ms-border; border-title-color: $ms-accent;
        border-subtitle-color: $ms-muted; layers: base corner;
    }
    PickerScreen Input {
        border: none; height: 1; margin: 0 1; padding: 0; background: $ms-panel;
        color: $ms-foreground;
    }
    PickerScreen Input:focus { border: none; background-tint: $ms-panel 0%; }
    PickerScreen RowList { height: auto; max-height: 18; margin-top: 1; }
    PickerScreen .none { color: $ms-muted; padding: 0 1; margin-top: 1; display: none; }
    PickerScreen .note { color: $ms-muted; padding: 0 1; margin-top: 1; }
    PickerScreen .sample { height: auto; margin: 1 1 0 1; background: $ms-background; }
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
        browse: bool = False,
        note: str = "",
        sample: Callable[[int], Text] | None = None,
    ) -> None:
        super().__init__()
        self._browsing = browse
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

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = self._title
        with box:
            yield self._cross
            yield LineField(compact=True, select_on_focus=False)
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
        self.list.show(self._rows[:MAX_SHOWN], select=self._select)
        height = max(1, min(18, len(self._rows)))
        # What stands in for an empty list takes its room: the box keeps its size.
        self.list.styles.height = self.query_one(".none", Static).styles.height = height
        self._browse(self._browsing)
        self.call_after_refresh(self._show_sample)

    def _show_sample(self) -> None:
        if self._sample is not None and (width := self._shown_sample.content_size.width):
            self._shown_sample.update(self._sample(width))

    def _browse(self, browsing: bool) -> None:
        """Let letters move through the list, or be text again."""
        self._browsing = browsing
        field, box = self.query_one(Input), self.query_one(Vertical)
        if browsing:
            self.set_focus(None)
        else:
            field.focus()
        field.placeholder = f"{'press /' if browsing else 'type'} to narrow down"
        words = ("j k move", "/ narrow down") if browsing else ("up down move",)
        words = (*words, "enter take", "esc close")
        box.border_subtitle = f" {self._services.glyphs.separator} ".join(words)

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        event.stop()
        # Where the field has the keys at once, a slash that should give them to it is no letter.
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
        rows = rows[:MAX_SHOWN]
        first = bool(wanted) or self._select is None
        self.list.show(rows, select=rows[0].value if rows and first else self._select)
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
        self._take()

    def _take(self) -> None:
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
        """Move through the list, whatever has the keys."""
        steps = {
            "down": 1,
            "up": -1,
            "ctrl+n": 1,
            "ctrl+p": -1,
            "pagedown": 10,
            "pageup": -10,
            "tab": 1,
            "shift+tab": -1,
        }
        field = self.query_one(Input)
        if self._browsing:
            steps |= {"j": 1, "k": -1}
        if event.key in ("escape", "ctrl+c"):
            self.dismiss(None)
        elif event.key in steps:
            self._browse(True)
            self.list.move(steps[event.key])
        elif event.key == "enter" and self._browsing:
            self._take()
        elif event.key == "slash" and self._browsing:
            self._browse(False)
        elif event.is_printable and event.character and not field.has_focus:
            # Typed before the field was there, or while the list had the keys.
            self._browse(False)
            field.insert_text_at_cursor(event.character)
        elif event.key == "backspace" and self._browsing:
            self._browse(False)
            field.action_delete_left()
        else:
            return
        event.stop()
        event.prevent_default()


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
