"""Text fields that do what keys say in the order in which they come.

Textual's own fields insert a character at once, but a key such as Backspace goes up through all
widgets first: when keys come in a burst (a macro, a slow line), the text behind it overtakes it.
"""

from __future__ import annotations

from typing import cast

from textual import events
from textual.app import App
from textual.widget import Widget
from textual.widgets import Input, TextArea

from midstream.tui.eager import EagerScreen


class _InOrder:
    """A key of the field acts before the next one is looked at."""

    async def _on_key(self, event: events.Key) -> None:
        field = cast("Widget", self)
        screen = field.screen
        if event.is_printable or not isinstance(screen, EagerScreen):
            return
        bound = screen.bound_to(field, event.key)
        if bound is not None:
            event.prevent_default()
            app = cast("App[object]", field.app)  # pyright: ignore[reportUnknownMemberType]
            if await app.run_action(bound.action, field):
                event.stop()


class TextField(_InOrder, TextArea):
    """A field of several lines."""


class LineField(_InOrder, Input):
    """A field of one line."""
