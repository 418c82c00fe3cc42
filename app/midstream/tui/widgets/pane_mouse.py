"""The mouse in a pane: a click moves the cursor, a drag marks lines.

Only turns events into moves of the cursor and the mark; what is marked is the pane's business.
"""

from __future__ import annotations

from textual import events

from midstream.tui.widgets.pane_window import PaneWindow


class PaneMouse(PaneWindow):
    """Clicks and drags.

    Attributes:
        cursor: The row of the cursor.
        mark: The row where marking began, while lines are marked.
    """

    cursor: int
    mark: int | None
    _pressed: int | None = None
    """The row where the button went down, while it is held."""
    _dragged: int | None = None
    """The mark that a drag has made; the next press takes it away."""

    def go_to(self, row: int, *, centre: bool = False, detach: bool = True) -> None:
        """Put the cursor on a row."""
        raise NotImplementedError

    def choose(self) -> None:
        """The row under the cursor was double-clicked."""
        raise NotImplementedError

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A drag may begin."""
        row = self.row_at(event.y)
        self._pressed = row if event.button == 1 and row < self.row_count else None
        if self._pressed is not None and self.mark is not None and self.mark == self._dragged:
            self.mark = None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Mark lines from where the button went down; beyond the window, it scrolls."""
        if self._pressed is None or not self.row_count:
            return
        if event.button != 1:
            self._pressed = None  # It was let go of outside.
            return
        row = min(self.row_at(max(0, event.y)) + min(0, event.y), self.row_count - 1)
        if row == self.cursor or (self.mark is None and row == self._pressed):
            return
        if self.mark is None:
            self.mark = self._dragged = self._pressed
            self.capture_mouse()
        self.go_to(max(0, row))

    def on_mouse_up(self) -> None:
        """The drag has ended."""
        if self._pressed is not None:
            self._pressed = None
            self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the clicked row; with Shift, mark up to it."""
        row = self.row_at(event.y)
        if not 0 <= row < self.row_count:
            return
        if event.shift and self.mark is None:
            self.mark = self.cursor
        self.go_to(row)
        if event.chain == 2:
            self.choose()
