"""What to do first: the welcome in place of the code, and example instructions to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten, wrap
from typing import Final

from rich.text import Text
from textual import events
from textual.message import Message

from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.line_api import Painted

NOTE_WIDTH: Final = 76
"""Cells after which the sentences below the keys wrap."""


class Welcome(Painted):
    """A few lines in the middle."""

    DEFAULT_CSS = """
    Welcome { height: 1fr; width: 1fr; background: $ms-background; content-align: left middle; }
    """

    def __init__(self, palette: Palette, *, widget_id: str | None = None) -> None:
        super().__init__(palette, widget_id=widget_id)
        self._place = ""
        self._keys: tuple[tuple[str, str], ...] = ()
        self._note = ""

    def show(self, place: str, keys: tuple[tuple[str, str], ...], note: str = "") -> None:
        """Show where we are, keys with what they do, and a sentence below."""
        if (place, keys, note) != (self._place, self._keys, self._note):
            self._place, self._keys, self._note = place, keys, note
            self.refresh()

    def render(self) -> Text:
        palette = self._palette
        muted = palette.style("muted")
        lines = [
            Text("Midstream", palette.style("accent", bold=True)),
            Text(visible(self._place), muted),
            Text(),
        ]
        for key, words in self._keys:
            lines.append(
                Text.assemble(
                    (f"{key:>5}  ", palette.style("foreground", bold=True)), (words, muted)
                )
            )
        width = min(self.size.width, max(line.cell_len for line in lines))
        if self._note:
            room = max(20, min(self.size.width - 2, NOTE_WIDTH))
            parts = [part for line in self._note.split("\n") for part in wrap(line, room)]
            lines += [Text(), *(Text(part, muted) for part in parts)]
            width = max(width, *map(len, parts))
        left = " " * max(0, (self.size.width - width) // 2)
        return Text("\n").join(Text(left).append_text(line) for line in lines)


@dataclass(frozen=True, slots=True)
class Example:
    """An instruction to try, and the file it is about."""

    title: str
    instruction: str
    path: str
    tried: bool = False


class Suggestions(Painted):
    """The examples, one to a row."""

    DEFAULT_CSS = """
    Suggestions { height: auto; display: none; background: $ms-panel; padding: 0 1; }
    Suggestions.-shown { display: block; }
    """

    @dataclass
    class ExampleChosen(Message):
        """An example was clicked."""

        number: int

    def __init__(self, palette: Palette, *, widget_id: str | None = None) -> None:
        super().__init__(palette, widget_id=widget_id)
        self.examples: tuple[Example, ...] = ()
        self.hint: str = ""
        self.compact: bool = False
        self._ranges: list[tuple[int, int]] = []

    def show(self, examples: Sequence[Example], *, hint: str, compact: bool) -> None:
        """Show these examples; none hides the widget."""
        if (tuple(examples), hint, compact) == (self.examples, self.hint, self.compact):
            return
        self.examples, self.hint, self.compact = tuple(examples), hint, compact
        self.set_class(bool(examples), "-shown")
        self.refresh(layout=True)

    def render(self) -> Text:
        palette = self._palette
        muted = palette.style("muted")
        room = self.size.width - 2
        text = Text(no_wrap=True, overflow="ellipsis")
        self._ranges = []
        if self.compact:
            text.append("Examples", palette.style("foreground", bold=True))
            for number, example in enumerate(self.examples, 1):
                piece = f"  {number} {visible(example.title)}"
                if text.cell_len + len(piece) > room:
                    break
                self._ranges.append((text.cell_len, text.cell_len + len(piece)))
                text.append(f"  {number}", palette.style("accent", bold=True))
                text.append(piece[3:], muted if example.tried else palette.style("foreground"))
            return text
        text.append("Try one of these", palette.style("foreground", bold=True))
        text.append(f"   {self.hint}", muted)
        width = max((len(example.title) for example in self.examples), default=0)
        for number, example in enumerate(self.examples, 1):
            text.append(f"\n {number}  ", palette.style("accent", bold=True))
            style = muted if example.tried else palette.style("foreground")
            text.append(visible(example.title).ljust(width + 3), style)
            words = visible(example.instruction)
            text.append(shorten(words, max(10, room - width - 7), placeholder=" ..."), muted)
        return text

    def on_click(self, event: events.Click) -> None:
        number = event.y
        if self.compact:
            hit = [
                n for n, (start, stop) in enumerate(self._ranges, 1) if start < event.x - 1 <= stop
            ]
            number = hit[0] if hit else 0
        if 1 <= number <= len(self.examples):
            self.post_message(self.ExampleChosen(number))
