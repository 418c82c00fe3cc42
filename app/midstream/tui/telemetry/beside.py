"""The simulated wafer beside the code: its map, a step, and what is measured here, while one works.

A narrow form of the full view (``pages/telemetry.py``), which puts it there and takes it away.
It asks for nothing while nothing streams and nothing is behind what covers it.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical

from midstream.errors import UserError
from midstream.pairing.simulating import Simulated, rounded_context, simulate_model
from midstream.tui.telemetry.figures import (
    FactLines,
    Lines,
    Measured,
    beside_lines,
    fold,
    machine_lines,
    step_lines,
)
from midstream.tui.telemetry.wafer_map import MapFacts, Sweep, WaferMap
from midstream.tui.themes import Palette

if TYPE_CHECKING:
    from midstream.tui.services import AppServices

FRAME_S: Final = 0.25
"""Seconds between two pictures while tokens pass."""
FACTS_EVERY: Final = 4
ASK_EVERY: Final = 20
"""Pictures between two simulations while the context grows."""
BESIDE_FROM: Final = 110
"""Columns from which there is room beside the code."""
MAP_ROWS: Final = 9
"""Lines that the map keeps; the comparison with GPUs gives way first."""


class WaferPane(Vertical):
    """Map and figures of one model.

    Args:
        program: The application.
        model: The model that is simulated: a preset or a model folder.
    """

    DEFAULT_CSS = """
    WaferPane { width: 42; height: 1fr; border-left: solid $ms-border; padding: 0 1;
        background: $ms-background; }
    WaferPane #beside-map { height: 1fr; }
    WaferPane #beside-facts { height: auto; margin: 1 0 0 0; }
    """

    def __init__(self, program: AppServices, model: str) -> None:
        super().__init__(id="beside")
        self.program = program
        self._palette = program.palette
        self._make = Lines(program.palette, program.glyphs)
        self._map = WaferMap(self._palette, program.glyphs, widget_id="beside-map")
        self._facts = FactLines("beside-facts")
        self.model = model
        self.simulated: Simulated | None = None
        self.trouble = ""
        self._sweep = Sweep()
        self._frames = 0
        self._streamed = False
        self._asked = 0

    def compose(self) -> ComposeResult:
        yield self._map
        yield self._facts

    def on_mount(self) -> None:
        self.set_interval(FRAME_S, self._tick)
        self._ask(Measured.of(self.program.session))

    def on_resize(self) -> None:
        self.call_after_refresh(self.show)

    def set_palette(self, palette: Palette) -> None:
        self._palette = palette
        self._make = Lines(palette, self._make.glyphs)
        self._map.set_palette(palette)
        self.show()

    def _tick(self) -> None:
        if not self._shown or not self.screen.is_current:
            return
        self.display = self.screen.size.width >= BESIDE_FROM
        now = Measured.of(self.program.session)
        if not now.running and not self._streamed:
            return
        self._frames += 1
        if self._frames % ASK_EVERY == 0 or not now.running:
            self._ask(now)
        if self._frames % FACTS_EVERY == 0 or now.running != self._streamed:
            self._show_facts(now)
        self._streamed = now.running
        self._show_map(now)

    @property
    def _shown(self) -> bool:
        """Whether its widgets are there; they go before it does."""
        return self.is_mounted and len(self.query("#beside-map, #beside-facts")) == 2

    def _ask(self, now: Measured) -> None:
        context = rounded_context(now.context)
        if context != self._asked:
            self._asked = context
            self.run_worker(self._simulate(context), exclusive=True)

    async def _simulate(self, context: int) -> None:
        try:
            found = await asyncio.to_thread(simulate_model, self.model, context)
        except UserError as error:
            self.simulated, self.trouble = None, str(error)
        else:
            self.simulated, self.trouble = found, ""
        self.show()

    def show(self) -> None:
        """Read and show everything."""
        if self._shown:
            now = Measured.of(self.program.session)
            self._show_facts(now)
            self._show_map(now)

    def _show_facts(self, now: Measured) -> None:
        facts, make, simulated = self._facts, self._make, self.simulated
        width = self.content_size.width
        if width <= 0:
            return
        if simulated is None:
            words, role = self.trouble or "simulating", "error" if self.trouble else "muted"
            facts.show(fold([make.text((words, role))], width))
            return
        lines = [*beside_lines(make, now, simulated), Text(), *step_lines(make, simulated, width)]
        machines = [Text(), *machine_lines(make, simulated, width)]
        if len(lines) + len(machines) + MAP_ROWS < self.content_size.height:
            lines += machines
        facts.show(fold(lines, width))

    def _show_map(self, now: Measured) -> None:
        simulated, session = self.simulated, self.program.session
        if simulated is None:
            return
        report = simulated.report
        facts = MapFacts(report.plan, "layers", report.options.context)
        if now.running and session is not None:
            working, passed = self._sweep.advance(simulated, session.status.meter)
            facts = replace(facts, working=working, passed=passed)
        self._map.show(facts)
