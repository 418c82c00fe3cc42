"""The bottom row: the keys that work here and now, also clickable."""

from __future__ import annotations

from msgspec import Struct
from rich.cells import cell_len
from rich.text import Text
from textual import events

from midstream.tui.themes import Palette
from midstream.tui.widgets.line_api import Painted


class KeyHint(Struct, frozen=True):
    """One key and what it does.

    Attributes:
        key: As shown to the user.
        words: What it does, in one or two words; empty where the next key has words for both.
        call: What a click does: a controller's method, the Textual action of a page, or the number
            of an answer (see ``Notices.hear``); ``""`` where a click cannot stand for the key.
    """

    key: str
    words: str
    call: str = ""


def answer_hints(count: int) -> list[KeyHint]:
    """Hints of the keys that answer a question, where its own line has the words of the answers.

    Args:
        count: How many answers it has; a click calls the number of one.
    """
    return [
        KeyHint(str(number), "choose" if number == count else "", str(number))
        for number in range(1, count + 1)
    ]


class KeyBar(Painted):
    """Shows as many hints as fit; the last one (help) always stays, as the way back before it."""

    DEFAULT_CSS = """
    KeyBar { height: 1; background: $ms-panel; color: $ms-muted; }
    """

    def __init__(self, palette: Palette, *, widget_id: str | None = None) -> None:
        super().__init__(palette, widget_id=widget_id)
        self.hints: tuple[KeyHint, ...] = ()
        self._covered = False
        self._ranges: list[tuple[int, int, str]] = []

    def show(self, hints: tuple[KeyHint, ...]) -> None:
        if hints != self.hints:
            self.hints = hints
            self.refresh()

    def cover(self, covered: bool, /) -> None:
        """Show no keys while a box over the screen has them, which says its own."""
        self._covered = covered
        self.refresh()

    def render(self) -> Text:
        key_style = self._palette.style("foreground", bold=True)
        muted = self._palette.style("muted")
        line = Text(" ", no_wrap=True, overflow="crop")
        self._ranges = []
        if self._covered:
            return line
        for hint in self._fitting():
            start = cell_len(line.plain)
            line.append(hint.key, key_style)
            if hint.words:
                line.append(f" {hint.words}", muted)
            self._ranges.append((start, cell_len(line.plain), hint.call))
            line.append("   " if hint.words else " ")
        return line

    def _fitting(self) -> list[KeyHint]:
        if not self.hints:
            return []
        kept = 2 if [hint.call for hint in self.hints[-2:]] == ["close", "help"] else 1
        others, last = self.hints[:-kept], self.hints[-kept:]
        room = self.size.width - 1 - sum(map(_width, last)) - 3 * (kept - 1)
        chosen: list[KeyHint] = []
        for hint in others:
            room -= _width(hint) + 3
            if room < 0:
                break
            chosen.append(hint)
        return [*chosen, *last]

    def on_click(self, event: events.Click) -> None:
        for start, stop, call in self._ranges:
            if call and start <= event.x < stop:
                self.post_message(self.Pressed(call))


def _width(hint: KeyHint) -> int:
    return cell_len(hint.key) + 1 + cell_len(hint.words)
