"""The telemetry view: measured rates on the left, those of a simulated wafer on the right.

It watches a running session and changes nothing but which simulation is shown; stopping the model
works as everywhere.  Simulations run in a thread, one at a time, and only while the view is open.
Nothing is painted and no timer runs while the session is idle.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.dom import DOMNode
from textual.message import Message
from textual.timer import Timer

from midstream.errors import UserError
from midstream.pairing.activity import at_work
from midstream.pairing.models.simulating import (
    PRESETS,
    Simulated,
    preset_of,
    rounded_context,
    simulate_model,
)
from midstream.resources import default_model, find_model
from midstream.tui.eager import EagerScreen
from midstream.tui.pages.help import HelpScreen, Topic
from midstream.tui.services import AppServices
from midstream.tui.telemetry.figures import (
    FactLines,
    Lines,
    Measured,
    beside_lines,
    figure_lines,
    fold,
    machine_lines,
    measured_lines,
    pace_lines,
    step_lines,
)
from midstream.tui.telemetry.wafer_map import (
    MapFacts,
    Sweep,
    WaferMap,
    used_window,
)
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.close_mark import CloseMark
from midstream.tui.widgets.key_bar import KeyBar, KeyHint
from midstream.tui.widgets.line_api import Painted
from midstream.wafer.picture import VIEWS, View

if TYPE_CHECKING:
    from midstream.pairing.session import PairingSession
    from midstream.pairing.status import SessionEvent
    from midstream.settings import Settings


FRAME_S: Final = 0.25
"""Seconds between two pictures of the activity while tokens pass: a view one looks at now and then
may cost little."""
FACTS_EVERY: Final = 4
"""Pictures between two readings of the figures."""
ASK_EVERY: Final = 20
"""Pictures between two simulations while the context grows."""
BESIDE_FROM: Final = 110
"""Columns from which there is room beside the code."""
MAP_ROWS: Final = 9
"""Lines that the map beside the code keeps; the comparison with GPUs gives way first."""
WIDE: Final = (140, 36)
MEDIUM: Final = (118, 28)
"""Columns and rows from which the page is laid out so; the small layout needs none."""
CONTEXTS: Final = (None, 4_096, 32_768, 131_072)
"""Contexts to simulate; ``None`` is the session's own."""
PAGES: Final = {"small": ("wall", "wafer", "token"), "medium": ("wafer", "token"), "wide": ("",)}
"""The parts that are shown one at a time, by the size of the screen."""
PARTS: Final = 7
"""Widgets that show something: five blocks of lines, the map, the keys."""
_PAGE_WORDS: Final = {"wall": "wall clock", "wafer": "wafer", "token": "token and GPUs"}


class LiveSimulation:
    """The simulation on view: made in a thread, one at a time; its token moves with the session's.

    Args:
        host: The widget that shows it, whose worker it is.
        changed: Called when there is another result, or an error.
    """

    def __init__(self, host: DOMNode, changed: Callable[[], None]) -> None:
        self.result: Simulated | None = None
        self.trouble = ""
        self._host = host
        self._changed = changed
        self._asked: tuple[str, int] | None = None
        self._sweep = Sweep()

    def ask(self, model: str, context: int) -> None:
        """Simulate a model with ``context`` tokens in the cache, unless that was asked for last."""
        if self._asked != (model, context):
            self._asked = model, context
            work = partial(self._simulate, model, context)
            self._host.run_worker(work, group="simulate", exclusive=True)

    async def _simulate(self, model: str, context: int) -> None:
        try:
            self.result, self.trouble = await asyncio.to_thread(simulate_model, model, context), ""
        except UserError as error:
            self.result, self.trouble = None, str(error)
        self._changed()

    @property
    def waiting(self) -> tuple[str, str]:
        """What to show in place of a result: words and their palette role."""
        return (self.trouble, "error") if self.trouble else ("simulating", "muted")

    def map_facts(
        self, session: PairingSession | None, view: View = "layers", *, enlarge: bool = True
    ) -> MapFacts | None:
        """What the map shows; while the session's model writes, its token moves on."""
        if self.result is None:
            return None
        report = self.result.report
        facts = MapFacts(report.plan, view, report.options.context, enlarge)
        if session is None or not at_work(session):
            return facts
        working, passed = self._sweep.advance(self.result, session.status.meter)
        return replace(facts, working=working, passed=passed)


@dataclass(frozen=True, slots=True)
class ViewKey:
    """A key of this view: its keys in Textual's names, what it calls, its words in the key bar and
    its sentence in the help.
    """

    keys: str
    call: str
    words: str
    help: str


KEYS: Final = (
    ViewKey("tab", "page(1)", "page", "Next page, where not everything fits at once"),
    ViewKey("m", "model(1)", "model", "Simulate the next model"),
    ViewKey("M", "model(-1)", "model before", "Simulate the previous model"),
    ViewKey("c", "context", "context", "Change the simulated context length"),
    ViewKey("v", "view", "map", "Change what the map's colours show"),
    ViewKey("z", "enlarge", "enlarge", "Enlarge the used part of the wafer, or show all of it"),
    ViewKey("b", "beside", "beside the code", "Show the simulated wafer beside the code"),
    ViewKey("shift+tab", "page(-1)", "page before", "Page before"),
    ViewKey("ctrl+c", "stop", "stop", "Stop the model"),
    ViewKey("ctrl+l", "repaint", "repaint", "Repaint the screen"),
    ViewKey("escape,q,W,f2", "close", "back", "Back to the code"),
    ViewKey("question_mark,f1", "help", "keys", "Show the keys of this page"),
)


class TelemetryScreen(EagerScreen):
    """Full screen; dismissed with Escape.

    Args:
        services: The application.
        session: The session that is open.
        model: What is simulated first: the path of a model folder, or a preset; ``""`` begins with
            the first preset.
    """

    CSS_PATH = "telemetry.tcss"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar = [Binding(k.keys, k.call, k.words, show=False, priority=True) for k in KEYS]

    @dataclass
    class SessionChanged(Message):
        """The session has told something."""

    def __init__(self, services: AppServices, session: PairingSession, model: str = "") -> None:
        super().__init__(id="telemetry")
        self.services = services
        self.session = session
        self._palette = services.palette
        self._make = Lines(services.palette, services.glyphs)
        others = tuple(preset for preset in PRESETS if preset != model)
        self.models: tuple[str, ...] = (*((model,) if model else ()), *others)
        self.model = self.models[0]
        self.fixed_context: int | None = None
        self.map_view: View = "layers"
        self.enlarge = True
        self.page = 0
        self.room = "wide"
        self.simulation = LiveSimulation(self, self.show_all)
        self._frames = 0
        self._told_streaming = False
        self._ticker: Timer | None = None
        self._unsubscribe = lambda: None

    def compose(self) -> ComposeResult:
        yield FactLines("head")
        yield CloseMark(self._palette, self._make.glyphs)
        with Horizontal(id="body"):
            yield FactLines("wall")
            with Vertical(id="right"):
                with Horizontal(id="wafer"):
                    yield WaferMap(self._palette, self._make.glyphs, widget_id="map")
                    yield FactLines("figures")
                with Horizontal(id="token"):
                    yield FactLines("step")
                    yield FactLines("machines")
        yield KeyBar(self._palette, widget_id="hints")

    def on_mount(self) -> None:
        self._ticker = self.set_interval(FRAME_S, self._tick, pause=True)
        self._unsubscribe = self.session.status.subscribe(self._hear)
        self._set_pace()
        self.show_all()

    def set_palette(self, palette: Palette) -> None:
        self._palette = palette
        self._make = Lines(palette, self._make.glyphs)
        self.query_one(WaferMap).set_palette(palette)
        self.query_one(KeyBar).set_palette(palette)
        self.query_one(CloseMark).set_palette(palette)
        self.show_all()

    def on_unmount(self) -> None:
        self._unsubscribe()

    def _hear(self, event: SessionEvent) -> None:
        del event  # whatever it was, everything is read again
        self.post_message(self.SessionChanged())

    def on_telemetry_screen_session_changed(self) -> None:
        """React to what the session told; while it runs, figures come with the pictures."""
        self._set_pace()
        if self._ticker is None or not self._told_streaming or not self._streams:
            self.show_all()
        self._told_streaming = self._streams

    def _set_pace(self) -> None:
        if self._ticker is None:
            return
        if self._streams:
            self._ticker.resume()
        else:
            self._ticker.pause()

    @property
    def _streams(self) -> bool:
        return at_work(self.session)

    @property
    def _shown(self) -> bool:
        """Whether all its widgets are there: they come after the screen, and go before it."""
        parts = (*self.query(FactLines), *self.query(WaferMap), *self.query(KeyBar))
        return self.is_mounted and len(parts) == PARTS

    def _tick(self) -> None:
        if self.output_backlog > 2 or not self._shown:
            return
        self._frames += 1
        if self._frames % FACTS_EVERY == 0:
            self._show_measured(Measured.of(self.session))
        if self._frames % ASK_EVERY == 0:
            self._ask()
        self._show_map()

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        self.room = "small"
        for room, least in (("medium", MEDIUM), ("wide", WIDE)):
            if width >= least[0] and height >= least[1]:
                self.room = room
        for room in PAGES:
            self.set_class(room == self.room, f"-{room}")
        self._choose_page()
        self.call_after_refresh(self.show_all)

    def _choose_page(self) -> None:
        pages = PAGES[self.room]
        self.page %= len(pages)
        shown = pages[self.page]
        self.query_one("#wall").display = self.room != "small" or shown == "wall"
        self.query_one("#right").display = self.room != "small" or shown != "wall"
        for name in ("wafer", "token"):
            self.query_one(f"#{name}").display = self.room == "wide" or shown == name

    # simulating

    @property
    def context(self) -> int:
        """The context that is to be simulated."""
        if self.fixed_context is not None:
            return self.fixed_context
        return rounded_context(Measured.of(self.session).context)

    def _ask(self) -> None:
        self.simulation.ask(self.model, self.context)

    # showing

    def show_all(self) -> None:
        if not self._shown:
            return
        now = Measured.of(self.session)
        self._ask()
        self._show_measured(now)
        self._show_simulated()
        self._show_map()
        self._show_hints(now)

    def _lines(self, name: str) -> FactLines:
        return self.query_one(f"#{name}", FactLines)

    def _show_measured(self, now: Measured) -> None:
        wall, make = self._lines("wall"), self._make
        width, height = wall.content_size
        if wall.display and width:
            same = Path(self.model).name == now.model or self.model == preset_of(now.model)
            pace = pace_lines(make, now, self.simulation.result, same)
            wall.show(measured_lines(make, now, pace, width, height))
        self._show_head(now)

    def _show_head(self, now: Measured) -> None:
        make = self._make
        pieces = [
            (" Rates and wafer", "accent!"),
            (f"   {make.glyphs.light} {now.doing}", "accent" if now.running else "muted"),
            (f"   {visible(now.model)}", "foreground"),
        ]
        if self.room != "wide":
            pieces.append(("   ", "muted"))
            for number, name in enumerate(PAGES[self.room]):
                here = number == self.page
                pieces.append((f" {_PAGE_WORDS[name]} ", "foreground!" if here else "muted"))
        self._lines("head").show([make.text(*pieces)])

    def _show_simulated(self) -> None:
        make, simulated = self._make, self.simulation.result
        figures, step, machines = (self._lines(n) for n in ("figures", "step", "machines"))
        if simulated is None:
            heading = make.heading("Wafer clock", "simulated")
            width = max(20, figures.content_size.width)
            figures.show([heading, *fold([make.text(self.simulation.waiting)], width)])
            step.show([])
            machines.show([])
            return
        own = "chosen" if self.fixed_context is not None else "of this session"
        width, height = figures.content_size
        if width:
            lines = fold(figure_lines(make, simulated, own), width)
            if len(lines) > height:
                lines = [line for line in lines if line.plain]
            figures.show(lines)
        if (width := step.content_size.width) > 0:
            step.show(step_lines(make, simulated, width))
        if (width := machines.content_size.width) > 0:
            machines.show(machine_lines(make, simulated, width))

    def _show_map(self) -> None:
        facts = self.simulation.map_facts(self.session, self.map_view, enlarge=self.enlarge)
        self.query_one(WaferMap).show(facts)

    def _show_hints(self, now: Measured) -> None:
        words = {
            "model(1)": Path(self.model).name,
            "context": f"context: {self._short_context()}",
            "view": f"map: {self.map_view}",
            "enlarge": "whole wafer" if self.enlarge else "enlarge",
        }
        hidden = {"model(-1)", "page(-1)", "repaint"}
        if not now.running:
            hidden.add("stop")
        if self.room == "wide":
            hidden.add("page(1)")
        if self.services.shows_wafer:
            words["beside"] = "not beside the code"
        elif self.size.width < BESIDE_FROM:
            hidden.add("beside")
        if self.simulation.result is None or not self._can_enlarge(self.simulation.result):
            hidden.add("enlarge")
        hints = [
            KeyHint(_shown(key), words.get(key.call, key.words), key.call)
            for key in KEYS
            if key.call not in hidden
        ]
        self.query_one(KeyBar).show(tuple(hints))

    def _short_context(self) -> str:
        return "session" if self.fixed_context is None else f"{self.fixed_context // 1024}k"

    @staticmethod
    def _can_enlarge(simulated: Simulated) -> bool:
        plan = simulated.report.plan
        return used_window(plan, enlarge=True) != used_window(plan, enlarge=False)

    # actions

    def action_model(self, step: int) -> None:
        here = self.models.index(self.model)
        self.model = self.models[(here + step) % len(self.models)]
        self.show_all()

    def action_context(self) -> None:
        here = CONTEXTS.index(self.fixed_context)
        self.fixed_context = CONTEXTS[(here + 1) % len(CONTEXTS)]
        self.show_all()

    def action_view(self) -> None:
        self.map_view = VIEWS[(VIEWS.index(self.map_view) + 1) % len(VIEWS)]
        self.show_all()

    def action_enlarge(self) -> None:
        self.enlarge = not self.enlarge
        self.show_all()

    def action_beside(self) -> None:
        if self.services.shows_wafer:
            self.services.show_wafer(None)
        elif self.size.width >= BESIDE_FROM:
            self.services.show_wafer(self.model)
        else:
            return
        self.dismiss(None)

    def action_page(self, step: int) -> None:
        self.page = (self.page + step) % len(PAGES[self.room])
        self._choose_page()
        self.call_after_refresh(self.show_all)

    def action_stop(self) -> None:
        """Stop the model; when nothing runs there is nothing to stop here."""
        if self._streams:
            self.services.stop_model()

    def action_repaint(self) -> None:
        self.services.repaint()

    def action_help(self) -> None:
        keys = tuple((_shown(key), key.help, "") for key in KEYS)
        topics = (Topic("Rates and wafer", keys),)
        self.services.open_screen(HelpScreen(self._palette, self._make.glyphs, topics))

    def action_close(self) -> None:
        self.dismiss(None)

    @on(Painted.Pressed)
    async def _pressed_hint(self, event: Painted.Pressed) -> None:
        await self.run_action(f"screen.{event.call}")


class WaferPane(Vertical):
    """The simulated wafer beside the code while one works: its map, a step, what is measured here.

    The telemetry view puts it there and takes it away.  It is idle while nothing streams and while
    another page covers it.
    """

    DEFAULT_CSS = """
    WaferPane { width: 42; height: 1fr; border-left: solid $ms-border; padding: 0 1;
        background: $ms-background; }
    WaferPane #beside-map { height: 1fr; }
    WaferPane #beside-facts { height: auto; margin: 1 0 0 0; }
    """

    def __init__(self, services: AppServices, model: str) -> None:
        super().__init__(id="beside")
        self.services = services
        self._palette = services.palette
        self._make = Lines(services.palette, services.glyphs)
        self._map = WaferMap(self._palette, services.glyphs, widget_id="beside-map")
        self._facts = FactLines("beside-facts")
        self.model = model
        self.simulation = LiveSimulation(self, self.show)
        self._frames = 0
        self._streamed = False

    def compose(self) -> ComposeResult:
        yield self._map
        yield self._facts

    def on_mount(self) -> None:
        self.set_interval(FRAME_S, self._tick)
        self._ask(Measured.of(self.services.session))

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
        now = Measured.of(self.services.session)
        if not now.running and not self._streamed:
            return
        self._frames += 1
        if self._frames % ASK_EVERY == 0 or not now.running:
            self._ask(now)
        if self._frames % FACTS_EVERY == 0 or now.running != self._streamed:
            self._show_facts(now)
        self._streamed = now.running
        self._show_map()

    @property
    def _shown(self) -> bool:
        """Whether its widgets are there; they go before it does."""
        return self.is_mounted and len(self.query("#beside-map, #beside-facts")) == 2

    def _ask(self, now: Measured) -> None:
        self.simulation.ask(self.model, rounded_context(now.context))

    def show(self) -> None:
        """Read and show everything."""
        if self._shown:
            now = Measured.of(self.services.session)
            self._show_facts(now)
            self._show_map()

    def _show_facts(self, now: Measured) -> None:
        facts, make, simulated = self._facts, self._make, self.simulation.result
        width = self.content_size.width
        if width <= 0:
            return
        if simulated is None:
            facts.show(fold([make.text(self.simulation.waiting)], width))
            return
        lines = [*beside_lines(make, now, simulated), Text(), *step_lines(make, simulated, width)]
        machines = [Text(), *machine_lines(make, simulated, width)]
        if len(lines) + len(machines) + MAP_ROWS < self.content_size.height:
            lines += machines
        facts.show(fold(lines, width))

    def _show_map(self) -> None:
        if (facts := self.simulation.map_facts(self.services.session)) is not None:
            self._map.show(facts)


def first_model(settings: Settings) -> str:
    """The model to simulate first: the folder of the built-in server's, or the preset of an
    endpoint's; ``""`` where it has none.
    """
    if settings.profile is not None:
        return preset_of(settings.profile.model) or ""
    with contextlib.suppress(UserError):
        chosen = settings.model
        return str(default_model() if chosen is None else find_model(chosen))
    return ""


def _shown(key: ViewKey) -> str:
    first = key.keys.split(",")[0]
    return {"escape": "esc", "question_mark": "?"}.get(first, first)
