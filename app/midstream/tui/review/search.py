"""Searching in the open file: the field, and where its text stands."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from midstream.tui.diff.intraline import Range
from midstream.tui.diff.rows import FOLDS
from midstream.tui.diff.view import FileView
from midstream.tui.widgets.fields import LineField
from midstream.tui.widgets.key_bar import KeyHint


class MatchFinder:
    """The rows of a view that hold a text; capitals count only if the text has some.

    Args:
        view: The rows.
        text: What to look for.
    """

    def __init__(self, view: FileView, text: str) -> None:
        self.text = text
        self.matches: dict[int, tuple[Range, ...]] = {}
        exact = text != text.lower()
        wanted = text if exact else text.lower()
        for y in range(view.size):
            row = view.row(y)
            if row is None or row.look in FOLDS:
                continue
            line = row.text if exact else row.text.lower()
            if wanted in line and len(line) == len(row.text):
                self.matches[y] = _ranges(line, wanted)
        self._rows = sorted(self.matches)

    def next(self, row: int, *, forward: bool) -> int | None:
        """The nearest row with a match after (or before) ``row``, around the end of the file."""
        if not self._rows:
            return None
        if forward:
            index = bisect_right(self._rows, row)
            return self._rows[index % len(self._rows)]
        return self._rows[bisect_left(self._rows, row) - 1]

    def place(self, row: int) -> tuple[int, int]:
        """Which match a row is, counted from 1, and how many there are."""
        return bisect_right(self._rows, row), len(self._rows)


def _ranges(line: str, wanted: str) -> tuple[Range, ...]:
    found: list[Range] = []
    at = line.find(wanted)
    while at >= 0:
        found.append((at, at + len(wanted)))
        at = line.find(wanted, at + len(wanted))
    return tuple(found)


class SearchBar(Horizontal):
    """One row with a text field; hidden while nobody searches."""

    HINTS = (KeyHint("enter", "keep the matches"), KeyHint("esc", "forget them"))
    """The keys that do something in the field."""
    DEFAULT_CSS = """
    SearchBar { height: 1; display: none; background: $ms-panel; }
    SearchBar.-shown { display: block; }
    SearchBar Static { width: 9; padding: 0 0 0 1; color: $ms-accent; }
    SearchBar Input {
        border: none; height: 1; padding: 0; background: $ms-panel; color: $ms-foreground;
    }
    SearchBar Input:focus { border: none; background-tint: $ms-panel 0%; }
    """

    @dataclass
    class Changed(Message):
        """The text changed."""

        text: str

    @dataclass
    class Closed(Message):
        """The field was left; ``keep`` says whether the matches stay marked."""

        keep: bool

    def compose(self) -> ComposeResult:
        """The widgets."""
        yield Static("Search", markup=False)
        yield LineField(compact=True, select_on_focus=True)

    def open(self, text: str) -> None:
        """Show the field."""
        self.add_class("-shown")
        field = self.query_one(Input)
        field.value = text
        self.screen.set_focus(field)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.has_class("-shown"):
            self.post_message(self.Changed(event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._close(keep=bool(event.value))

    def on_key(self, event: events.Key) -> None:
        """Escape leaves."""
        if event.key == "escape":
            event.stop()
            self._close(keep=False)

    def _close(self, *, keep: bool) -> None:
        self.remove_class("-shown")
        self.post_message(self.Closed(keep))
