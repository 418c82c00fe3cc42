"""One calm line above the composer: an error, a question with numbered answers, a fact."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text
from textual.message import Message

from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.line_api import Painted

_ROLES = {"info": "muted", "warning": "warning", "error": "error", "question": "accent"}
_MARKS = {"info": " ", "warning": "!", "error": "!", "question": "?"}


class NoticeLine(Painted):
    """Shows a sentence, and answers below it when it is a question; takes no room when empty."""

    DEFAULT_CSS = """
    NoticeLine { height: auto; max-height: 6; display: none; background: $ms-panel; padding: 0 1; }
    NoticeLine.-shown { display: block; }
    """

    class Dismissed(Message):
        """The line was clicked away."""

    def __init__(self, palette: Palette, *, widget_id: str | None = None) -> None:
        super().__init__(palette, widget_id=widget_id)
        self.level = "info"
        self.text = ""
        self.choices: tuple[str, ...] = ()

    @property
    def is_shown(self) -> bool:
        """Whether there is something to read."""
        return bool(self.text)

    def show(self, level: str, text: str, choices: tuple[str, ...] = ()) -> None:
        """Show a sentence, with answers that number keys choose."""
        self.level, self.text, self.choices = level, text, choices[:9]
        self.set_class(bool(text), "-shown")
        self.refresh(layout=True)

    def clear(self) -> None:
        """Show nothing."""
        if self.text:
            self.show("info", "")

    def render(self) -> Text:
        style = self._palette.style(_ROLES[self.level])
        mark = _MARKS[self.level]
        line = Text(no_wrap=False, overflow="fold")
        if mark.strip():
            line.append(f"{mark} ", self._palette.style(_ROLES[self.level], bold=True))
        line.append(visible(self.text), style)
        used = 0
        for number, choice in enumerate(self.choices, 1):
            piece = f"{number} {visible(choice)}"
            if number == 1 or used + cell_len(piece) + 3 > self.size.width - 4:
                line.append("\n  ")
                used = 0
            else:
                line.append("   ")
            line.append(f"{number}", self._palette.style("accent", bold=True))
            line.append(f" {visible(choice)}", self._palette.style("foreground"))
            used += cell_len(piece) + 3
        return line

    def on_click(self) -> None:
        if not self.choices:
            self.post_message(self.Dismissed())
