"""The cross in the corner of pages and sheets, which closes them with the mouse."""

from __future__ import annotations

from rich.text import Text
from textual import events

from midstream.tui.glyphs import Glyphs
from midstream.tui.themes import Palette
from midstream.tui.widgets.line_api import Painted


class CloseMark(Painted):
    """Asks its screen for the action ``close`` when it is clicked.

    What it is put on has the layers ``base`` and ``corner``, so that it takes no room.
    """

    DEFAULT_CSS = """
    CloseMark { layer: corner; dock: right; width: 3; height: 1; background: $ms-panel; }
    CloseMark:hover { background: $ms-selection; }
    """

    def __init__(self, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(palette, glyphs)

    def render(self) -> Text:
        return Text(f" {self._glyphs.close} ", self._palette.style("muted"), no_wrap=True)

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.post_message(self.Pressed("close"))
