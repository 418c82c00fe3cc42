"""The scrolling part of a help screen: arrows and the keys that page through code move it."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget


class KeySheet(VerticalScroll, can_focus=True):
    """A list of keys to read; the border around it says how to read on and how to close."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", show=False),
        Binding("k", "scroll_up", show=False),
        Binding("space,ctrl+d", "page_down", show=False),
        Binding("b,ctrl+u", "page_up", show=False),
        Binding("g", "scroll_home", show=False),
        Binding("G", "scroll_end", show=False),
    ]

    def on_resize(self) -> None:
        """Look whether there is more than fits, when that is known."""
        self.call_after_refresh(self._say_how_to_go_on)

    def _say_how_to_go_on(self) -> None:
        if isinstance(box := self.parent, Widget):
            more = self.max_scroll_y > 0
            box.border_subtitle = "j and k scroll, esc closes" if more else "esc closes"
