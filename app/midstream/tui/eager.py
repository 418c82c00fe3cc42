"""A screen that paints as soon as it is idle, instead of waiting for Textual's 60 Hz grid.

Textual paints on a fixed timer while anything keeps painting, so a key pressed during a stream
waits up to a whole frame.  Here a paint that is due happens at once when the last one is
``MIN_FRAME_S`` old, and otherwise on the timer as before.  When the terminal cannot take
the output fast enough, paints are postponed instead of blocking the event loop.  Typed text is
painted before anything else happens, and keys go before stream frames.

This module, ``compositor``, ``output``, ``widgets/line_api`` with ``widgets/diff_pane``, and
what ``widgets/composer`` keeps of its colours are all that touches semi-internal parts of Textual;
``MIDSTREAM_PLAIN_PAINT=1`` switches to the stock behaviour.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from time import perf_counter, thread_time
from typing import Any, Final, cast

from textual import events, messages
from textual.binding import Binding, BindingsMap
from textual.dom import DOMNode
from textual.geometry import Size
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget

from midstream.tui.compositor import SparingCompositor

MIN_FRAME_S: Final = 0.004
"""Seconds between two immediate paints; closer ones wait for the timer."""
RETRY_S: Final = 0.008
"""Seconds until the next look whether a terminal that lagged behind has caught up."""
_HOPS: Final = 5
"""Rounds of the loop that a key takes from the terminal to the field that has the focus."""
BACKLOG: Final = 2
"""Writes waiting for the terminal from which on it counts as lagging behind."""

EAGER: Final = os.environ.get("MIDSTREAM_PLAIN_PAINT", "") == ""


# pyright: reportPrivateUsage=false, reportUnknownMemberType=false


class EagerScreen(Screen[Any]):
    """A screen with leading-edge painting and an output governor."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=not EAGER)
    """The widget that has the focus.

    Textual paints the whole screen again when it changes; what shows the focus repaints itself.
    """
    _last_paint = 0.0
    _retry_armed = False
    _frame_made = False
    """The pending paint is a stream frame, not a response to input."""
    paint_s = 0.0
    """Processor time of the last paint."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._chains: dict[DOMNode | None, tuple[object, list[tuple[DOMNode, BindingsMap]]]] = {}
        super().__init__(*args, **options)
        if EAGER:
            self._compositor = SparingCompositor()

    def keeps(self, event: events.Key | events.Paste) -> bool:
        """Whether the screen keeps a key or pasted text for later; asked before anything else."""
        return False

    @property
    def terminal_size(self) -> Size:
        """The size that the screen will have, which is known before its first layout."""
        return self.app.size

    @property
    def _binding_chain(self) -> list[tuple[DOMNode, BindingsMap]]:
        """The bindings that hold now, kept by focus: applying the keymap costs more than a key."""
        if not EAGER:
            return super()._binding_chain
        focused = self.focused
        nodes: list[DOMNode] = (
            [self, self.app] if focused is None else list(focused.ancestors_with_self)
        )
        made_from = (
            self.app._keymap,
            focused is not None and focused.loading,
            [(node, len(node._bindings.key_to_bindings)) for node in nodes],
        )
        known = self._chains.get(focused)
        if known is None or known[0] != made_from:
            if len(self._chains) > 8:
                self._chains.clear()
            known = self._chains[focused] = (made_from, super()._binding_chain)
        return known[1]

    def bound_to(self, widget: Widget, key: str) -> Binding | None:
        """The binding of a key on a widget itself, the user's own keys included."""
        for node, bindings in self._binding_chain:
            if node is widget:
                return next(iter(bindings.key_to_bindings.get(key, ())), None)
        return None

    async def _on_layout(self, message: messages.Layout) -> None:
        # Textual measures a widget again only if it has counted a change since, and it does not
        # count a second change before the widget is idle; our own layout may come between the two.
        message.widget._layout_updates += 1

    async def _on_idle(self, event: events.Idle) -> None:
        if not EAGER:
            return
        event.prevent_default()
        if not self.app._batch_count and self.is_current and self._paint_is_due():
            if self._frame_made:
                self._frame_made = False
                await self.let_keys_pass()
            if perf_counter() - self._last_paint < MIN_FRAME_S:
                self._update_timer.resume()
            else:
                self._on_timer_update()
            return
        await self._invoke_and_clear_callbacks()

    async def let_keys_pass(self) -> None:
        """Handle a key that has arrived before doing something slow."""
        # Only our own driver knows (see ``tui.output``).
        is_coming: Callable[[], bool] | None = getattr(self.app._driver, "key_is_coming", None)
        if is_coming is None or is_coming():
            await let_keys_pass()

    def paint_at_once(self, widget: Widget) -> None:
        """Paint what has changed on a widget, unless that needs a layout or something else was
        painted just now.
        """
        ready = widget._repaint_required and not (self._layout_required or self._scroll_required)
        if EAGER and ready and perf_counter() - self._last_paint >= MIN_FRAME_S:
            widget._repaint_required = False
            # Other changes come with the next frame; they may fill a page.
            others, self._dirty_widgets = self._dirty_widgets, {widget}
            self._on_timer_update()
            if others:
                self._dirty_widgets |= others
                self.check_idle()

    def _paint_is_due(self) -> bool:
        return bool(
            self._layout_required
            or self._scroll_required
            or self._repaint_required
            or self._recompose_required
            or self._dirty_widgets
        )

    def _on_timer_update(self) -> None:
        if EAGER:
            now = perf_counter()
            if self.output_backlog > BACKLOG:
                # A frame painted now would only wait in the queue; it is painted when it can be
                # sent.
                self._update_timer.pause()
                if not self._retry_armed:
                    self._retry_armed = True
                    self.set_timer(RETRY_S, self._retry)
                return
            self._last_paint = now
        began = thread_time()
        super()._on_timer_update()
        self.paint_s = thread_time() - began

    def _compositor_refresh(self) -> None:
        above = self.app.screen
        if EAGER and above is not self and above.styles.background.a == 1:
            # Textual would paint the screen above again, which hides all of this one; when this one
            # is seen again, it is painted whole.
            self._compositor._dirty_regions.clear()
            self._dirty_widgets.clear()
            return
        super()._compositor_refresh()

    def _retry(self) -> None:
        self._retry_armed = False
        self._update_timer.resume()

    @property
    def output_backlog(self) -> int:
        """Writes that wait for the terminal; 0 where the driver has no queue."""
        writer = getattr(self.app._driver, "_writer_thread", None)
        return 0 if writer is None else writer._queue.qsize()


async def let_keys_pass() -> None:
    """Yield to the event loop until a key that has arrived is on screen."""
    for _ in range(_HOPS):
        await asyncio.sleep(0)


def paint_now(widget: Widget) -> None:
    """Paint a widget before the messages its change has caused are handled."""
    screen = cast("Screen[Any]", widget.screen)
    if isinstance(screen, EagerScreen):
        screen.paint_at_once(widget)


SHARE: Final = 0.055
"""Part of a core that frames may take."""
MAX_DELAY_S: Final = 0.1
"""Seconds between two frames at most, however expensive they are."""
_WEIGHT: Final = 0.2
"""Weight of the newest frame in the moving average of frame times."""


class FramePace:
    """Says when the next frame of a stream is due.

    Cheap frames come sixty times a second.  Where frames are expensive (a fast stream, a wide
    window, a slow machine) they come less often and each shows more, so that their share of a core
    stays the same and the event loop stays free for keys.
    """

    def __init__(self) -> None:
        self._cost = 0.0
        self._last = 0.0

    @property
    def gap(self) -> float:
        """Seconds between two frames."""
        return min(MAX_DELAY_S, self._cost / SHARE)

    def due(self, now: float, grid: float) -> bool:
        """Whether a frame is due; asked every ``grid`` seconds, the nearer time is taken."""
        if now - self._last < self.gap - grid / 2:
            return False
        self._last = now
        return True

    def took(self, seconds: float) -> None:
        """A frame was made and painted; the processor time that it took."""
        self._cost += _WEIGHT * (seconds - self._cost)
