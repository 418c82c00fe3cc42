"""The editor for the new lines of one hunk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from midstream.code.lexing import LineLexer, Span
from midstream.errors import UserError
from midstream.tui.eager import EagerScreen
from midstream.tui.services import AppServices
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.fields import TextField
from midstream.tui.widgets.key_bar import KeyBar, KeyHint
from midstream.tui.widgets.line_api import Painted


class CodeField(TextField):
    """A field whose text has the colours of a language.

    Args:
        text: What to begin with.
        path: The file that the text belongs to; its language is that of the colours.
        palette: The colours.
    """

    def __init__(self, text: str, path: str, palette: Palette) -> None:
        self._path = path
        self._palette = palette
        self._lexed: tuple[str, LineLexer] | None = None
        super().__init__(
            text,
            compact=True,
            soft_wrap=False,
            tab_behavior="indent",
            highlight_cursor_line=False,
        )
        self.cursor_blink = False

    def set_palette(self, palette: Palette) -> None:
        self._palette = palette
        self.notify_style_update()  # which forgets the lines in the former colours

    def get_line(self, line_index: int) -> Text:
        """One line in its colours; Textual's place for styling lines."""
        line = super().get_line(line_index)
        if self._lexed is None or self._lexed[0] != self.text:
            self._lexed = self.text, LineLexer(self._path, self.text.split("\n"))
        lexer = self._lexed[1]
        lexer.advance(line_index + 1)
        return styled(line, lexer.spans(line_index), self._palette)


def styled(line: Text, spans: Sequence[Span], palette: Palette) -> Text:
    """A line with the colours of its tokens."""
    for start, stop, kind in spans:
        line.stylize(palette.token_styles[kind.rstrip("+-!?")], start, stop)
    return line


class HunkEditor(EagerScreen, ModalScreen[tuple[bool, str]]):
    """Dismisses with whether to save, and the text as it was left.

    Args:
        services: The program.
        path: The file.
        title: The words on the border.
        text: The new lines, or what they have become here before.
        gone: The lines that they replace, shown above.
        resumed: Whether the text was left here before.
    """

    DEFAULT_CSS = """
    HunkEditor { align: center middle; background: $ms-background 60%; }
    HunkEditor > Vertical {
        width: 100; max-width: 96%; height: auto; max-height: 90%; padding: 0 1;
        background: $ms-panel; border: round $ms-border; border-title-color: $ms-accent;
        border-subtitle-color: $ms-muted;
    }
    HunkEditor .gone {
        background: $ms-deleted; color: $ms-foreground; height: auto; max-height: 8;
    }
    HunkEditor TextArea {
        height: auto; min-height: 3; max-height: 20; padding: 0 0 0 2; border: none;
        background: $ms-panel; color: $ms-foreground; scrollbar-size-vertical: 1;
    }
    HunkEditor TextArea:focus { border: none; }
    HunkEditor TextArea .text-area--cursor-line { background: $ms-panel; }
    HunkEditor .words { color: $ms-muted; height: 1; margin-top: 1; display: none; }
    HunkEditor.-said .words { display: block; }
    HunkEditor KeyBar { dock: bottom; }
    HunkEditor:ansi { background: transparent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "Save", priority=True, show=False),
        Binding("ctrl+g", "outside", "Editor", priority=True, show=False),
        Binding("escape", "leave", "Leave", priority=True, show=False),
        Binding("ctrl+c", "leave", "Leave", priority=True, show=False),
    ]

    def __init__(
        self,
        services: AppServices,
        path: str,
        title: str,
        text: str,
        gone: Sequence[str],
        *,
        resumed: bool,
    ) -> None:
        super().__init__()
        self._services = services
        self._path = path
        self._title = title
        self._gone = gone
        self._outside = False
        """Whether an editor has the text."""
        self._shown_gone = Static(classes="gone", markup=False)
        self._words = Static("as you left it" if resumed else "", classes="words", markup=False)
        self.set_class(resumed, "-said")
        self.field = CodeField(text, path, services.palette)
        self._keys = KeyBar(services.palette)

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = self._title
        with box:
            if self._gone:
                self._shown_gone.update(self._gone_text())
                yield self._shown_gone
            yield self.field
            yield self._words
        # In place of the review's keys, which do nothing here.
        yield self._keys

    def _gone_text(self) -> Text:
        lexer = LineLexer(self._path, self._gone)
        lexer.advance(len(self._gone))
        lines: list[Text] = []
        for number, line in enumerate(self._gone):
            spans = lexer.spans(number) if visible(line) == line else ()
            text = styled(Text(visible(line)), spans, self._services.palette)
            lines.append(Text("- ").append_text(text))
        return Text("\n").join(lines)

    def set_palette(self, palette: Palette) -> None:
        self.field.set_palette(palette)
        self._keys.set_palette(palette)
        self._shown_gone.update(self._gone_text())

    def on_mount(self) -> None:
        self.field.focus()
        self._keys.show(
            (
                KeyHint("ctrl+s", "save, undecided", "save"),
                KeyHint("ctrl+g", "editor", "outside"),
                KeyHint("esc", "leave, keep the text", "leave"),
            )
        )
        self.field.move_cursor((0, len(self.field.document.get_line(0))))

    def action_save(self) -> None:
        self.dismiss((True, self.field.text))

    def action_leave(self) -> None:
        """Close without saving; the caller keeps the text."""
        self.dismiss((False, self.field.text))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys typed before an editor has taken the terminal do nothing."""
        return not self._outside

    def action_outside(self) -> None:
        """Continue in the user's own editor."""
        self._outside = True
        self.run_worker(self._edit_outside())

    async def _edit_outside(self) -> None:
        name = f"hunk{PurePosixPath(self._path).suffix}"
        text = self.field.text
        try:
            edited = await self._services.edit_outside(f"{text}\n" if text else "", name)
            self.field.text = edited.removesuffix("\n")
        except UserError as error:
            self._words.update(str(error))
            self.add_class("-said")
        finally:
            self._outside = False

    @on(Painted.Pressed)
    async def _pressed(self, event: Painted.Pressed) -> None:
        event.stop()
        await self.run_action(event.call)
