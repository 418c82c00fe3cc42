"""What stands where the code will be, before a file is open: what this is and the three things to do first."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text
from textual.widget import Widget

from midstream.tui.themes import Palette
from midstream.tui.visible import visible


class Welcome(Widget):
    """A few lines in the middle."""

    DEFAULT_CSS = """
    Welcome { height: 1fr; width: 1fr; background: $ms-background; align: center middle; content-align: center middle; }
    """

    def __init__(self, palette: Palette, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._palette = palette
        self._place = ""
        self._keys: tuple[tuple[str, str], ...] = ()
        self._note = ""

    def set_palette(self, palette: Palette) -> None:
        """Draw with other colours."""
        self._palette = palette
        self.refresh()

    def show(self, place: str, keys: tuple[tuple[str, str], ...], note: str = "") -> None:
        """Show where we are, keys with what they do, and a sentence below."""
        state = (place, keys, note)
        if state != (self._place, self._keys, self._note):
            self._place, self._keys, self._note = state
            self.refresh()

    def render(self) -> Text:
        """The lines, padded to one width so that they line up."""
        palette = self._palette
        muted = palette.style("muted")
        width = max((cell_len(words) for _, words in self._keys), default=0) + 7
        text = Text(no_wrap=True, overflow="ellipsis", justify="center")
        text.append("Midstream\n", palette.style("accent", bold=True))
        text.append(visible(self._place) + "\n\n", muted)
        for key, words in self._keys:
            text.append(f"{key:>5}  ", palette.style("foreground", bold=True))
            text.append(words.ljust(width - 7) + "\n", muted)
        if self._note:
            text.append("\n" + self._note, muted)
        return text
