"""The welcome in place of the code, and example instructions to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten, wrap
from typing import Final

from msgspec import Struct
from rich.text import Text
from textual import events
from textual.message import Message

from midstream.tui.glyphs import Glyphs
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.line_api import Painted

NOTE_WIDTH: Final = 76
"""Cells after which the sentences below the keys wrap."""


MAX_ROWS: Final = 4
"""Rows of one part; there is a page for all of them."""


class Recent(Struct, frozen=True):
    """An earlier session: its journal, when, its first instruction, and hunks that still wait."""

    path: Path
    when: str
    asked: str
    undecided: int


class WelcomeRow(Struct, frozen=True):
    """A row that can be clicked.

    Attributes:
        pieces: Texts and the palette role of each.
        path: The file that a click opens, or ``""``.
        call: The screen action that a click calls instead.
    """

    pieces: tuple[tuple[str, str], ...]
    path: str = ""
    call: str = ""


class WelcomePart(Struct, frozen=True):
    """A heading with rows below it; ``key`` is the key that shows them all."""

    heading: str
    rows: tuple[WelcomeRow, ...]
    key: str = ""


class Welcome(Painted):
    """The welcome, in the middle of the screen: the folder, what can be done, what is waiting."""

    DEFAULT_CSS = """
    Welcome { height: 1fr; width: 1fr; background: $ms-background; }
    """

    @dataclass
    class PathChosen(Message):
        """A file was clicked."""

        path: str

    def __init__(self, palette: Palette, glyphs: Glyphs, *, widget_id: str | None = None) -> None:
        super().__init__(palette, glyphs, widget_id=widget_id)
        self._facts: tuple[
            str, tuple[tuple[str, str], ...], tuple[str, ...], tuple[WelcomePart, ...]
        ] = ("", (), (), ())
        self._shown: list[WelcomeRow | None] = []
        """What each line stands for."""

    def show(
        self,
        place: str,
        keys: tuple[tuple[str, str], ...],
        notes: tuple[str, ...] = (),
        parts: tuple[WelcomePart, ...] = (),
    ) -> None:
        """Show where we are, keys with what they do, sentences, and parts as far as they fit."""
        facts = place, keys, notes, tuple(part for part in parts if part.rows)
        if facts != self._facts:
            self._facts = facts
            self.refresh()

    def render(self) -> Text:
        palette, (place, keys, notes, parts) = self._palette, self._facts
        muted, bold = palette.style("muted"), palette.style("foreground", bold=True)
        room = max(20, min(self.size.width - 2, NOTE_WIDTH))
        lines = [Text("Midstream", palette.style("accent", bold=True)), Text(visible(place), muted)]
        keyed = [Text.assemble((f"{key:>5}  ", bold), (words, muted)) for key, words in keys]
        for note in notes:
            said = [Text(part, muted) for part in wrap(note, room)]
            if len(lines) + len(said) + 1 + len(keyed) > self.size.height:
                break  # Where there is little room, as beside a conversation, keys go first.
            lines += said
        lines += [Text(), *keyed]
        self._shown = [None] * len(lines)
        for part in parts:
            left = self.size.height - len(lines) - 2
            if left < 1:
                break
            heading = Text.assemble((part.heading, bold), (f"  {part.key}", muted))
            shown = part.rows[: min(left, MAX_ROWS)]
            if len(shown) < len(part.rows):
                heading.append(f"  {len(part.rows) - len(shown):,} more", muted)
            lines += [Text(), heading, *(self._row(row, room) for row in shown)]
            self._shown += [None, None, *shown]
        width = min(self.size.width, max(line.cell_len for line in lines))
        left = " " * max(0, (self.size.width - width) // 2)
        above = max(0, (self.size.height - len(lines)) // 2)
        self._shown = [*([None] * above), *self._shown]
        rows = [*([Text()] * above), *(Text(left).append_text(line) for line in lines)]
        return Text("\n", no_wrap=True, overflow="crop").join(rows)

    def _row(self, row: WelcomeRow, room: int) -> Text:
        line = Text("  ", no_wrap=True)
        for text, role in row.pieces:
            line.append(visible(text), self._palette.style(role))
        if line.cell_len > room:
            line.truncate(room - 1)
            line.append(self._glyphs.ellipsis, self._palette.style("muted"))
        return line

    def on_click(self, event: events.Click) -> None:
        row = self._shown[event.y] if 0 <= event.y < len(self._shown) else None
        if row is not None and row.path:
            self.post_message(self.PathChosen(row.path))
        elif row is not None:
            self.post_message(self.Pressed(row.call))


class IntroductionLine(Painted):
    """One sentence until it is dismissed; a click opens what it is about."""

    DEFAULT_CSS = """
    IntroductionLine {
        height: auto; max-height: 2; display: none; background: $ms-panel; padding: 0 1;
    }
    IntroductionLine.-shown { display: block; }
    """

    class Clicked(Message):
        """The line was clicked."""

    def __init__(self, palette: Palette, *, widget_id: str | None = None) -> None:
        super().__init__(palette, widget_id=widget_id)
        self.text = ""

    def show(self, text: str) -> None:
        """Show this sentence; none takes no room."""
        if text != self.text:
            self.text = text
            self.set_class(bool(text), "-shown")
            self.refresh(layout=True)

    def render(self) -> Text:
        return Text(visible(self.text), self._palette.style("muted"), overflow="fold")

    def on_click(self) -> None:
        self.post_message(self.Clicked())


class TourWords(Struct, frozen=True):
    """What the tour says.

    Attributes:
        place: Such as ``2 of 10``; ``""`` for the offer.
        pieces: The sentence in pieces, and whether each is a key.
        enter: What Enter does, for the key bar; ``""`` where the tour waits for something else.
        last: Whether that is to leave the tour, as Esc does.
    """

    place: str = ""
    pieces: tuple[tuple[str, bool], ...] = ()
    enter: str = ""
    last: bool = False

    @property
    def text(self) -> str:
        """The whole sentence."""
        return "".join(piece for piece, _ in self.pieces)


class TourLine(Painted):
    """A step of the tour, or the offer of it."""

    DEFAULT_CSS = """
    TourLine { height: auto; max-height: 3; display: none; background: $ms-panel; padding: 0 1; }
    TourLine.-shown { display: block; }
    """

    def __init__(self, palette: Palette, *, widget_id: str | None = None) -> None:
        super().__init__(palette, widget_id=widget_id)
        self.words = TourWords()

    def show(self, words: TourWords) -> None:
        """Show a sentence; none takes no room."""
        if words != self.words:
            self.words = words
            self.set_class(bool(words.pieces), "-shown")
            self.refresh(layout=True)

    def render(self) -> Text:
        line = Text(overflow="fold")
        if self.words.place:
            line.append(f"Tour, {self.words.place}   ", self._palette.style("accent", bold=True))
        for piece, is_key in self.words.pieces:
            role = "accent" if is_key else "foreground"
            line.append(piece, self._palette.style(role, bold=is_key))
        return line


class Example(Struct, frozen=True):
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
        room = max(10, self.size.width - width - 6)
        longest = max(
            (len(visible(f"{one.instruction}   {one.path}")) for one in self.examples), default=0
        )
        for number, example in enumerate(self.examples, 1):
            text.append(f"\n {number}  ", palette.style("accent", bold=True))
            style = muted if example.tried else palette.style("foreground")
            text.append(visible(example.title).ljust(width + 2), style)
            text.append(shorten(visible(example.instruction), room, placeholder=" ..."), muted)
            if longest <= room:
                text.append(f"   {visible(example.path)}", muted)
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
