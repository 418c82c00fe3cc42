"""Two semi-internal touches that widgets painted line by line need.

``Widget.virtual_size`` lays the whole screen out whenever it is assigned; a pane that grows sixty
times a second cannot pay for that, and its frame does not depend on its content.  And a widget that
overrides ``render_lines`` has to apply the app's line filters (``NO_COLOR`` and the like) itself;
the filter that gives the terminal's own colours fixed values is left out, because only themes
without it use such colours.
"""

from __future__ import annotations

from typing import cast

from textual.app import App
from textual.color import Color
from textual.filter import ANSIToTruecolor
from textual.geometry import Size
from textual.reactive import Reactive
from textual.strip import Strip
from textual.widget import Widget


def set_silently(widget: Widget, size: Size) -> None:
    """Set ``virtual_size`` without a layout."""
    widget.set_reactive(cast("Reactive[Size]", Widget.virtual_size), size)


def filtered(widget: Widget, strips: list[Strip], background: Color) -> list[Strip]:
    """Strips after the app's line filters."""
    app = cast("App[object]", widget.app)  # pyright: ignore[reportUnknownMemberType]
    for line_filter in app.get_line_filters():
        if isinstance(line_filter, ANSIToTruecolor):
            continue
        strips = [strip.apply_filter(line_filter, background) for strip in strips]
    return strips
