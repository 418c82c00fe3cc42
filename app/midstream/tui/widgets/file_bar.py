"""The row above the code: the file, the state of its hunks, and whether the view follows."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from midstream.counting import counted
from midstream.tui.glyphs import Glyphs
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.line_api import TextLine, calling
from midstream.words import in_review


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The facts that the row shows.

    Attributes:
        elsewhere: Undecided hunks in other files.
        writing_in: The file the model is writing in, or ``""``.
        reviewing: Other programs wrote the hunks, so they are kept or put back.
        new_rows: Rows that came since following ended.
        position: Words about the hunk under the cursor or the search.
    """

    path: str = ""
    language: str = ""
    lines: int = 0
    undecided: int = 0
    accepted: int = 0
    rejected: int = 0
    conflicts: int = 0
    held: int = 0
    reviewing: bool = False
    elsewhere: int = 0
    writing_in: str = ""
    following: bool = False
    new_rows: int = 0
    position: str = ""
    follow_key: str = "f"


class FileBar(TextLine):
    """One row of facts on the open file."""

    DEFAULT_CSS = """
    FileBar { height: 1; background: $ms-background; color: $ms-foreground; }
    """
    GROUND = "background"

    def __init__(self, palette: Palette, glyphs: Glyphs, *, widget_id: str | None = None) -> None:
        super().__init__(palette, glyphs, widget_id=widget_id)
        self.facts = FileFacts()

    def show(self, facts: FileFacts) -> None:
        if facts != self.facts:
            self.facts = facts
            self.refresh()

    def render(self) -> Text:
        facts, palette = self.facts, self._palette
        line = Text(" ", no_wrap=True, overflow="crop")
        if not facts.path:
            return line
        muted = palette.style("muted")
        right = self._right()
        folder, slash, name = visible(facts.path).rpartition("/")
        room = self.size.width - 2
        if facts.position and room > 50:
            right = [Text(f"{facts.position}   ", muted), *right]
        while len(right) > 1 and _width(right) + cell_len(name) + 4 > room:
            right.pop(0)
            right[0] = _without_joint(right[0], self._glyphs.separator)
        details = (
            f"  {facts.language} {self._glyphs.separator} {counted(facts.lines, 'line')}"
            if facts.language
            else ""
        )
        used = _width(right) + cell_len(name) + 2
        if used + cell_len(folder + slash) <= room:
            line.append(folder + slash, muted)
            used += cell_len(folder + slash)
        line.append(name, palette.style("foreground", bold=True))
        if used + cell_len(details) <= room:
            line.append(details, muted)
        gap = room + 1 - cell_len(line.plain) - _width(right)
        line.append(" " * max(1, gap))
        for piece in right:
            line.append_text(piece)
        return line

    def _right(self) -> list[Text]:
        facts, palette = self.facts, self._palette
        states = self._glyphs.separator
        pieces: list[Text] = []
        accepted, rejected = "accepted", "rejected"
        if facts.reviewing:
            accepted, rejected = in_review(accepted), in_review(rejected)
        counts = (
            (facts.conflicts, "in conflict", palette.style("warning")),
            (facts.held, "held back", palette.style("warning")),
            (facts.rejected, rejected, palette.style("error")),
            (facts.accepted, accepted, palette.style("success")),
            (
                facts.undecided,
                "to decide",
                calling(palette.style("accent"), "navigate.next_undecided"),
            ),
        )
        for number, words, style in counts:
            if number:
                joint = f" {states} " if pieces else ""
                pieces.append(
                    Text.assemble((joint, palette.style("muted")), (f"{number} {words}", style))
                )
        if facts.elsewhere:
            joint = f" {states} " if pieces else ""
            style = calling(palette.style("muted"), "navigate.other_file")
            pieces.append(Text(f"{joint}{facts.elsewhere} in other files", style))
        if facts.writing_in and facts.writing_in != facts.path:
            joint = "   " if pieces else ""
            name = visible(facts.writing_in).rpartition("/")[2]
            words = f"{joint}writing in {name} {states} {facts.follow_key}"
            pieces.append(Text(words, calling(palette.style("warning"), "follow.toggle")))
        elif facts.writing_in:
            joint = "   " if pieces else ""
            if facts.following:
                pieces.append(Text(f"{joint}following", palette.style("accent", bold=True)))
            else:
                many = counted(facts.new_rows, "new line")
                new = f" {states} {many}" if facts.new_rows else ""
                words = f"{joint}follow off{new} {states} {facts.follow_key}"
                pieces.append(Text(words, calling(palette.style("warning"), "follow.toggle")))
        return pieces


def _without_joint(piece: Text, separator: str) -> Text:
    """A piece without what joins it to the one before, which has given way."""
    lead = len(piece.plain) - len(piece.plain.lstrip(f" {separator}"))
    return piece[lead:]


def _width(pieces: list[Text]) -> int:
    return sum(cell_len(piece.plain) for piece in pieces)
