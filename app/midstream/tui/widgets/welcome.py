"""What stands where the code will be, before a file is open: what to do first."""

from __future__ import annotations

from rich.text import Text

from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.line_api import Painted


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
        if self._note:
            lines += [Text(), Text(self._note, muted)]
        width = min(self.size.width, max(line.cell_len for line in lines[:-1]))
        left = " " * max(0, (self.size.width - width) // 2)
        return Text("\n").join(Text(left).append_text(line) for line in lines)
