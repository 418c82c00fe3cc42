"""Which rows of a pane are in its window where a row may take several lines of the screen.

A place is a row and the lines of it that lie above; the window begins at one.  Heights are asked
for around the window only, so that a wrapped file of 100,000 lines costs a page and not the file.
It moves the window and knows neither what is shown nor who asks.
"""

from __future__ import annotations

from typing import Final

from textual.geometry import Size
from textual.scroll_view import ScrollView

from midstream.tui.widgets.line_api import Staying, set_silently

MARGIN: Final = 3
"""Lines kept visible above and below the cursor."""

Place = tuple[int, int]
"""A row, and how many of its lines lie above."""


class PaneWindow(Staying, ScrollView):
    """Geometry of a pane whose rows may be wrapped."""

    wrap = False
    """Whether rows can take several lines."""
    skip = 0
    """Lines of the first row that are scrolled out."""

    @property
    def row_count(self) -> int:
        """Rows there are."""
        raise NotImplementedError

    def row_height(self, y: int) -> int:
        """Lines that a row takes."""
        raise NotImplementedError

    @property
    def height(self) -> int:
        """Visible lines."""
        return max(1, self.size.height)

    @property
    def top(self) -> int:
        """The first visible row."""
        return round(self.scroll_y)

    @property
    def bottom(self) -> int:
        """The row after the last one of which something is visible."""
        if not self.wrap:
            return self.top + self.height
        return self.walk((self.top, self.skip), self.height - 1)[0] + 1

    def row_at(self, line: int) -> int:
        """The row at a line of the window; beyond the last row where nothing is shown."""
        if not self.wrap:
            return self.top + line
        lines = self.lines_between(self.top, self.row_count, line + self.skip)
        if line >= lines - self.skip:
            return self.row_count
        return self.walk((self.top, self.skip), line)[0]

    def lines_above(self, row: int) -> int:
        """Lines between the top of the window and a row; negative where the row is above it."""
        if not self.wrap:
            return row - self.top
        if row < self.top:
            return -self.lines_between(row, self.top, self.height) - self.skip
        return self.lines_between(self.top, row, 2 * self.height) - self.skip

    def lines_between(self, first: int, stop: int, most: int) -> int:
        """Lines that the rows ``[first, stop)`` take, counted until they are more than ``most``."""
        if not self.wrap:
            return stop - first
        lines = 0
        for y in range(first, stop):
            lines += self.row_height(y)
            if lines > most:
                break
        return lines

    def walk(self, place: Place, lines: int) -> Place:
        """The place some lines below another (above, if negative), within the file."""
        y, part = place
        last = max(0, self.row_count - 1)
        if not self.wrap:
            return max(0, min(y + lines, last)), 0
        part += lines
        while part < 0 and y > 0:
            y -= 1
            part += self.row_height(y)
        if part < 0:
            return 0, 0
        while part >= (height := self.row_height(y)):
            if y >= last:
                return last, height - 1
            part -= height
            y += 1
        return y, part

    def shows(self, first: int, stop: int) -> bool:
        """Whether rows are in the window."""
        return self.top <= first and stop <= self.bottom

    def show_rows(self, first: int, stop: int) -> None:
        """Bring rows into the window, moving no further than needed; the cursor stays."""
        height = self.height
        long = self.lines_between(first, stop, height) > height - 2 * MARGIN
        if long or self.lines_above(first) < MARGIN:
            self.scroll_to_place(self.walk((first, 0), -MARGIN))
        elif self.lines_above(stop) + MARGIN > height:
            end = self.walk((stop, 0), MARGIN - 1) if self.wrap else (stop + MARGIN - 1, 0)
            self.scroll_to_place(self._so_that_last(end))

    def reveal(self, row: int, *, centre: bool = False) -> None:
        """Bring a row into the window with some lines around it."""
        height = self.height
        margin = min(MARGIN, (height - 1) // 2)
        above, size = self.lines_above(row), self.row_height(row)
        if size > height - 2 * margin:
            margin = 0
            if size > height and -size < above < height:
                return  # It cannot be shown as a whole, and some of it is.
        inside = margin <= above and above + size <= height - margin
        if centre and not inside:
            self.scroll_to_place(self.walk((row, 0), -(height // 3)))
        elif above < margin:
            self.scroll_to_place(self.walk((row, 0), -margin))
        elif above + size > height - margin:
            end = (row + margin, 0)
            if self.wrap:
                end = self.walk((row, size - 1), margin)
            self.scroll_to_place(self._so_that_last(end))

    def scroll_to_row(self, row: int) -> None:
        """Make a row the first visible one, as far as the file allows."""
        self.scroll_to_place((row, 0))

    def scroll_lines(self, lines: int) -> None:
        """Move the window down, or up."""
        if self.wrap:
            self.scroll_to_place(self.walk((self.top, self.skip), lines))
        else:
            self.scroll_to_row(self.top + lines)

    def scroll_to_place(self, place: Place) -> None:
        """Begin the window at a place, as far as the file allows."""
        y, part = max(0, place[0]), max(0, place[1])
        if self.wrap:
            y, part = min((y, part), self._so_that_last((max(0, self.row_count - 1), 1 << 30)))
        else:
            y, part = min(y, self.max_scroll_y), 0
        if part != self.skip:
            self.skip = part
            self.refresh()
        self.scroll_to(y=y, animate=False, force=True)

    def _so_that_last(self, place: Place) -> Place:
        """Where the window begins when it ends with a place."""
        if not self.wrap:
            return place[0] - self.height + 1, 0
        y = min(place[0], max(0, self.row_count - 1))
        part = min(place[1], self.row_height(y) - 1)
        return self.walk((y, part), 1 - self.height)

    def fit_size(self) -> None:
        """Let the window reach the last row; a wrapped one may begin with it while it grows."""
        rows = self.row_count
        if self.wrap:
            rows += self.height - 1
        size = Size(self.size.width, rows)
        if size != self.virtual_size:
            set_silently(self, size)
