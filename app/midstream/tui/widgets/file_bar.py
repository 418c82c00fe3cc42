"""The row above the code: the file, the state of its hunks, and whether the view follows."""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import Struct
from rich.cells import cell_len
from rich.text import Text

from midstream.counting import counted
from midstream.tui.glyphs import Glyphs
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.line_api import TextLine, calling


class FileFacts(Struct, frozen=True):
    """The facts that the row shows.

    Attributes:
        covered: Cells on the left that the file list lies over.
        size: How many lines there are, or that there is no file.
        elsewhere: Undecided hunks in other files.
        writing_in: The file the model is writing in, or ``""``.
        reviewing: Other programs wrote the hunks, so they are kept or put back.
        new_rows: Rows that came since following ended.
        position: Words about the hunk under the cursor or the search.
    """

    covered: int = 0
    path: str = ""
    language: str = ""
    size: str = ""
    undecided: int = 0
    accepted: int = 0
    kept: int = 0
    rejected: int = 0
    put_back: int = 0
    conflicts: int = 0
    held: int = 0
    elsewhere: int = 0
    writing_in: str = ""
    following: bool = False
    new_rows: int = 0
    position: str = ""
    follow_key: str = "f"


_GAP: Final = "   "
"""The separator between counts and other facts."""


class _BarFact(NamedTuple):
    """A fact on the right of the row; where room is short, the one of the lowest rank gives way.

    Attributes:
        text: Its words.
        rank: Its importance: what waits for the user stays, what is decided goes.
        is_count: Whether it is a number of hunks.
    """

    text: Text
    rank: int
    is_count: bool = False


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
        line = Text(" " * (facts.covered + 1), no_wrap=True, overflow="crop")
        if not facts.path:
            return line
        muted = palette.style("muted")
        facts_right = self._right()
        folder, slash, name = visible(facts.path).rpartition("/")
        room = self.size.width - facts.covered - 2
        if facts.position and room > 50:
            facts_right.insert(0, _BarFact(Text(f"{facts.position}{_GAP}", muted), 0))
        right = self._joined(facts_right)
        while len(facts_right) > 1 and right.cell_len + cell_len(name) + 4 > room:
            facts_right.remove(min(facts_right, key=lambda fact: fact.rank))
            right = self._joined(facts_right)
        details = (
            f"  {facts.language} {self._glyphs.separator} {facts.size}" if facts.language else ""
        )
        used = right.cell_len + cell_len(name) + 2
        if used + cell_len(folder + slash) <= room:
            line.append(folder + slash, muted)
            used += cell_len(folder + slash)
        shown = Text(name, palette.style("foreground", bold=True))
        if cell_len(name) > (most := max(1, room - right.cell_len - 2)):
            shown.truncate(most - 1, overflow="crop")
            shown.append(self._glyphs.ellipsis)
        line.append_text(shown)
        if used + cell_len(details) <= room:
            line.append(details, muted)
        gap = self.size.width - 1 - line.cell_len - right.cell_len
        line.append(" " * max(1, gap))
        return line.append_text(right)

    def _joined(self, facts: list[_BarFact]) -> Text:
        """The facts in one line."""
        line = Text()
        before: _BarFact | None = None
        for fact in facts:
            if before is not None and before.is_count and fact.is_count:
                line.append(f" {self._glyphs.separator} ", self._palette.style("muted"))
            line.append_text(fact.text)
            before = fact
        return line

    def _right(self) -> list[_BarFact]:
        facts, palette = self.facts, self._palette
        separator = self._glyphs.separator
        waiting = calling(palette.style("accent"), "navigate.next_undecided")
        others = calling(palette.style("muted"), "navigate.other_file")
        counts = (
            (facts.conflicts, "in conflict", palette.style("warning"), 5),
            (facts.held, "held back", palette.style("warning"), 5),
            (facts.rejected, "rejected", palette.style("error"), 1),
            (facts.put_back, "put back", palette.style("error"), 1),
            (facts.accepted, "accepted", palette.style("success"), 1),
            (facts.kept, "kept", palette.style("success"), 1),
            (facts.undecided, "to decide", waiting, 6),
            (facts.elsewhere, "in other files", others, 3),
        )
        pieces = [
            _BarFact(Text(f"{number:,} {words}", style), rank, is_count=True)
            for number, words, style, rank in counts
            if number
        ]
        if not facts.writing_in:
            return pieces
        style = calling(palette.style("warning"), "follow.toggle")
        if facts.writing_in != facts.path:
            name = visible(facts.writing_in).rpartition("/")[2]
            words = f"writing in {name} {separator} {facts.follow_key} follows"
        elif facts.following:
            words, style = "following", palette.style("accent", bold=True)
        else:
            many = counted(facts.new_rows, "new line")
            new = f" {separator} {many}" if facts.new_rows else ""
            words = f"not following{new} {separator} {facts.follow_key} follows"
        return [*pieces, _BarFact(Text(f"{_GAP if pieces else ''}{words}", style), 4)]
