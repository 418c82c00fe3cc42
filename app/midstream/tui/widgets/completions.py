"""The list of what a mention can become, above the composer and never over what is typed."""

from __future__ import annotations

from collections.abc import Sequence

from textual.css.scalar import ScalarOffset

from midstream.tui.glyphs import Glyphs
from midstream.tui.mentions import Candidate
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.row_list import ListRow, RowList

TALLEST = 8
"""Rows."""
WIDEST = 72
NARROWEST = 30


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
        super().__init__(palette, glyphs, ground="raised")
        self.candidates: Sequence[Candidate] = ()

    @property
    def is_shown(self) -> bool:
        """Whether there is something to choose."""
        return bool(self.candidates)

    @property
    def chosen(self) -> Candidate | None:
        """The candidate under the cursor."""
        value = self.value
        # The rows stay where the list is hidden.
        return None if value is None or not self.candidates else self.candidates[int(value)]

    def offer(self, candidates: Sequence[Candidate], column: int, room: int) -> None:
        """Show candidates above the line below which this widget stands.

        Args:
            candidates: The best first; none hides the list.
            column: Where the mention begins, in cells from the left.
            room: Cells there are for the list.
        """
        if candidates == self.candidates:
            return
        self.candidates = candidates
        self.set_class(bool(candidates), "-shown")
        if not candidates:
            return
        rows = [_row(str(number), candidate) for number, candidate in enumerate(candidates)]
        self.show(rows, select="0")
        height = min(TALLEST, len(rows))
        width = max(_width(row) for row in rows) + 4
        width = min(room, max(NARROWEST, min(WIDEST, width)))
        self.styles.height, self.styles.width = height, width
        self.styles.offset = ScalarOffset.from_offset((max(0, min(column, room - width)), -height))
        self.scroll_to(y=0, animate=False, force=True)


def _row(value: str, candidate: Candidate) -> ListRow:
    folder, slash, name = visible(candidate.path).rpartition("/")
    left = ((folder + slash, "muted"), (name, "foreground!"))
    if candidate.symbol:
        outer, dot, last = visible(candidate.symbol).rpartition(".")
        left = ((outer + dot, "muted"), (last, "foreground!"))
    return ListRow(value, left, ((f"  {visible(candidate.about)}", "muted"),))


def _width(row: ListRow) -> int:
    return sum(len(text) for text, _ in (*row.left, *row.right))
