"""The composer: where an instruction is written, under a line that says what it will be about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static, TextArea

from midstream.tui.glyphs import Glyphs
from midstream.tui.keymap import Place, bindings
from midstream.tui.themes import Palette
from midstream.tui.visible import visible

TALLEST = 8
"""Rows the text may take."""


class ComposerTitle(Widget):
    """The line above the text: what Enter does, and with which lines."""

    DEFAULT_CSS = """
    ComposerTitle { height: 1; background: $ms-background; }
    """

    def __init__(self, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__()
        self.verb: str = "Instruct"
        self.target: str = ""
        self.detail: str = ""
        self.active: bool = False
        self._palette = palette
        self._glyphs = glyphs

    def set_palette(self, palette: Palette, glyphs: Glyphs) -> None:
        """Draw with other colours or characters."""
        self._palette, self._glyphs = palette, glyphs
        self.refresh()

    def show(self, verb: str, target: str, detail: str, *, active: bool) -> None:
        """Show what Enter will do."""
        if (verb, target, detail, active) != (self.verb, self.target, self.detail, self.active):
            self.verb, self.target, self.detail, self.active = verb, target, detail, active
            self.refresh()

    def render(self) -> Text:
        """A rule with words on it."""
        palette, rule = self._palette, self._glyphs.rule
        line_style = palette.style("accent" if self.active else "border")
        muted = palette.style("muted")
        text = Text(no_wrap=True, overflow="crop")
        text.append(rule * 2 + " ", line_style)
        text.append(self.verb, palette.style("accent" if self.active else "foreground", bold=True))
        if self.target:
            text.append(f" {self._glyphs.separator} ", muted)
            text.append(visible(self.target), palette.style("foreground"))
        detail = visible(self.detail)
        if detail and cell_len(text.plain) + cell_len(detail) + 6 <= self.size.width:
            text.append(f"  {detail}", muted)
        text.append(" ", muted)
        text.append(rule * max(0, self.size.width - cell_len(text.plain)), line_style)
        return text


class ComposerText(TextArea):
    """The text field: Enter sends, Ctrl+J breaks the line, Up in the first line recalls."""

    BINDINGS: ClassVar = bindings(Place.COMPOSER)
    DEFAULT_CSS = f"""
    ComposerText {{ height: auto; max-height: {TALLEST}; min-height: 1; width: 1fr; padding: 0;
    border: none;
        background: $ms-background; color: $ms-foreground; scrollbar-size-vertical: 1; }}
    ComposerText:focus {{ border: none; }}
    ComposerText .text-area--cursor-line {{ background: $ms-background; }}
    ComposerText .text-area--placeholder {{ color: $ms-muted; }}
    ComposerText .text-area--cursor {{ background: $ms-accent; color: $ms-background; }}
    """

    @dataclass
    class Typed(Message):
        """The text changed."""

        text: str

    async def _on_key(self, event: events.Key) -> None:
        """Leave bound keys to their actions; the text area would insert Enter itself."""
        bound = self._bindings.key_to_bindings.get(event.key)
        if not bound or event.is_printable:
            return
        event.prevent_default()
        if bound[0].id == "composer.newline":
            # At once: in a burst of keys the break must not come after the text that follows it.
            event.stop()
            self.insert("\n")

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Say that the text changed."""
        event.stop()
        self.post_message(self.Typed(self.text))


class Composer(Vertical):
    """Title line, prompt and text field."""

    DEFAULT_CSS = """
    Composer { height: auto; background: $ms-background; }
    Composer Horizontal { height: auto; }
    Composer .prompt { width: 3; height: 1; padding: 0 0 0 1; color: $ms-muted; }
    Composer:focus-within .prompt { color: $ms-accent; }
    """

    def __init__(self, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__()
        self.title = ComposerTitle(palette, glyphs)
        self.field = ComposerText(compact=True, highlight_cursor_line=False)
        self.field.cursor_blink = False
        self._prompt = Static(glyphs.prompt, classes="prompt", markup=False)
        self.history: list[str] = []
        self._recalled = 0
        self._draft = ""

    def compose(self) -> ComposeResult:
        """The widgets."""
        yield self.title
        with Horizontal():
            yield self._prompt
            yield self.field

    def set_palette(self, palette: Palette, glyphs: Glyphs) -> None:
        """Draw with other colours or characters."""
        self.title.set_palette(palette, glyphs)
        self._prompt.update(glyphs.prompt)

    @property
    def text(self) -> str:
        """What is written."""
        return self.field.text

    def put(self, text: str) -> None:
        """Replace the text and put the cursor at its end."""
        self.field.text = text
        self.field.move_cursor(self.field.document.end)

    def take(self) -> str:
        """Empty the field and remember what was in it."""
        text = self.field.text.strip()
        if text and (not self.history or self.history[-1] != text):
            self.history.append(text)
        self._recalled = 0
        self.field.text = ""
        return text

    def give_back(self, text: str) -> None:
        """Put back a text that could not be sent, in front of what was typed since."""
        rest = self.field.text.strip()
        self.put(f"{text}\n{rest}" if rest and rest != text else text)

    def recall(self, step: int) -> bool:
        """Show an earlier (1) or later (-1) instruction; says whether there was one."""
        wanted = self._recalled + step
        if not 0 <= wanted <= len(self.history):
            return False
        if self._recalled == 0:
            self._draft = self.field.text
        self._recalled = wanted
        self.put(self._draft if wanted == 0 else self.history[-wanted])
        return True
