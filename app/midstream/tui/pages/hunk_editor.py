"""The editor for the new lines of one hunk."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from midstream.tui.eager import EagerScreen
from midstream.tui.widgets.fields import TextField


class _Words(Static):
    """The row that says how to save; a click on it saves."""

    def on_click(self, event: events.Click) -> None:
        event.stop()
        screen = self.screen
        if isinstance(screen, HunkEditor):
            screen.action_save()


class HunkEditor(EagerScreen, ModalScreen[tuple[bool, str]]):
    """Dismisses with whether to save, and the text as it was left.

    Args:
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
    HunkEditor TextArea .text-area--cursor { background: $ms-accent; color: $ms-background; }
    HunkEditor .words { color: $ms-muted; height: 1; margin-top: 1; }
    HunkEditor:ansi { background: transparent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "Save", priority=True, show=False),
        Binding("escape", "leave", "Leave", priority=True, show=False),
        Binding("ctrl+c", "leave", "Leave", priority=True, show=False),
    ]

    def __init__(self, title: str, text: str, gone: str, *, resumed: bool) -> None:
        super().__init__()
        self._title = title
        self._gone = gone
        self._resumed = resumed
        self.field = TextField(
            text,
            compact=True,
            soft_wrap=False,
            tab_behavior="indent",
            highlight_cursor_line=False,
        )
        self.field.cursor_blink = False

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = self._title
        with box:
            if self._gone:
                yield Static(self._gone, classes="gone", markup=False)
            yield self.field
            kept = "as you left it   " if self._resumed else ""
            yield _Words(
                f"{kept}ctrl+s saves the hunk, undecided   esc leaves, the text is kept",
                classes="words",
                markup=False,
            )

    def on_mount(self) -> None:
        self.field.focus()
        self.field.move_cursor((0, len(self.field.document.get_line(0))))

    def action_save(self) -> None:
        self.dismiss((True, self.field.text))

    def action_leave(self) -> None:
        """Close without saving; the caller keeps the text."""
        self.dismiss((False, self.field.text))
