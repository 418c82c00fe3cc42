"""The telemetry view over real sessions: what was measured, what is simulated, never mixed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from textual.geometry import Region

from midstream.engine.types import TextModel
from midstream.pairing.models.simulating import (
    PRESETS,
    SimulationError,
    pace_sentence,
    pacing_words,
    preset_of,
    simulate_model,
)
from midstream.pairing.status import Cost, shown_seconds
from midstream.resources import themes_dir
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import TokenUsage
from midstream.responses.model_info import Pacing
from midstream.serving.app import create_app
from midstream.serving.pace import PacedModel
from midstream.serving.replay import ReplayModel
from midstream.serving.running import serve
from midstream.settings import Settings
from midstream.tui.app import MidstreamApp
from midstream.tui.glyphs import ASCII, UNICODE
from midstream.tui.pages.help import HelpScreen
from midstream.tui.telemetry.figures import (
    FactLines,
    Lines,
    Measured,
    band_bar,
    bar,
    beside_lines,
    graph,
    measured_lines,
    pace_lines,
)
from midstream.tui.telemetry.page import TelemetryScreen, WaferPane, first_model
from midstream.tui.telemetry.wafer_map import (
    Sweep,
    WaferMap,
    arrange,
    number_places,
    used_window,
)
from midstream.tui.themes import load_themes
from midstream.tui.widgets.key_bar import KeyBar
from midstream.tui.widgets.line_api import filtered
from midstream.tui.widgets.status_row import StatusRow
from midstream.wafer.imitations import imitation
from midstream.wafer.picture import filling, paint_grid
from tests.helpers.folders import write_folder
from tests.helpers.stage import CODE, Stage, on_stage

SIMULATED = ("figures", "step", "machines")


class Replayed:
    """An app on a folder, with a replayed model; ``view`` is the open telemetry view."""

    def __init__(self, app: MidstreamApp) -> None:
        self.app = app

    @property
    def view(self) -> TelemetryScreen:
        assert isinstance(self.app.screen, TelemetryScreen)
        return self.app.screen

    @property
    def map(self) -> WaferMap:
        return self.view.query_one(WaferMap)

    @property
    def hints(self) -> list[str]:
        return [f"{h.key} {h.words}" for h in self.view.query_one(KeyBar).hints]

    def words(self, name: str) -> str:
        return self.view.query_one(f"#{name}", FactLines).plain

    async def until(self, condition: object, what: str) -> None:
        deadline = asyncio.get_running_loop().time() + 15
        while not condition():  # type: ignore[operator]
            assert asyncio.get_running_loop().time() < deadline, f"waited in vain: {what}"
            await asyncio.sleep(0.02)

    async def press(self, *keys: str) -> None:
        await self.app._press_keys(list(keys))

    async def instruct(self) -> None:
        review = self.app.review
        review.panes.pane.go_to(8)
        review.panes.composer.put("rename total to found")
        review.steer.send()
        await self.until(lambda: self.app.session.turns.last is not None, "turn")  # type: ignore[union-attr]

    async def ended(self) -> None:
        session = self.app.session
        assert session is not None
        await self.until(lambda: session.turns.last and not session.turns.last.running, "end")
        await self.until(lambda: session.status.meter.cost.forwards, "cost")

    async def simulated(self, model: str) -> None:
        def shown() -> bool:
            found = self.view.simulation.result
            return found is not None and found.report.plan.shape.name == model

        await self.until(shown, model)
        await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def replayed(
    project: Path,
    size: tuple[int, int] = (160, 48),
    *,
    rate: float = 0.0,
    pacing: str = "off",
    **settings: object,
) -> AsyncIterator[Replayed]:
    answer = CODE[CODE.index("def count") : CODE.index("\n\ndef double")]
    model: TextModel = ReplayModel(answer.replace("total", "found"), rate=rate, delay=0.03)
    if (imitated := imitation(pacing)) is not None:
        model = PacedModel(model, imitated)
    async with serve(create_app({model.name: model}, token="secret")) as server:
        endpoint = Endpoint(f"ws://127.0.0.1:{server.port}/v1", "secret", model.name, "local")
        options = Settings(journal=False, **settings)  # type: ignore[arg-type]
        app = MidstreamApp(project, options, endpoint=endpoint, open_file="pkg/things.py")
        async with app.run_test(size=size):
            stage = Replayed(app)
            await stage.until(lambda: app.session and app.session.status.state == "ready", "ready")
            await stage.until(lambda: app.review.state.path, "file")
            app.review.set_focus(app.review.panes.pane)
            yield stage


async def opened(stage: Replayed, key: str = "W") -> None:
    await stage.press(key)
    await stage.until(lambda: isinstance(stage.app.screen, TelemetryScreen), "view")
    await stage.until(lambda: stage.view.simulation.result is not None, "simulation")
    await asyncio.sleep(0.1)


async def test_one_key_opens_and_escape_closes(project: Path) -> None:
    async with replayed(project) as stage:
        await opened(stage)
        assert stage.words("wall").startswith("Wall clock  measured here")
        assert "no answer yet" in stage.words("wall")
        assert stage.words("figures").startswith("Wafer clock  simulated")
        await stage.press("escape")
        assert stage.app.screen is stage.app.review
        stage.app.review.set_focus(stage.app.review.panes.composer.field)
        await opened(stage, "f2")


@pytest.mark.parametrize("key", ["question_mark", "f1"])
async def test_its_keys_are_told_as_on_every_page(project: Path, key: str) -> None:
    async with replayed(project, (80, 24)) as stage:
        await opened(stage)
        bar = stage.view.query_one(KeyBar)
        assert bar.render().plain.rstrip().endswith("esc back   ? keys")
        await stage.press(key)
        assert isinstance(stage.app.screen, HelpScreen)
        await stage.press("escape")
        assert isinstance(stage.app.screen, TelemetryScreen)
        await stage.press("W")
        assert not isinstance(stage.app.screen, TelemetryScreen)


async def test_everything_follows_a_change_of_theme(project: Path) -> None:
    async with replayed(project, theme="midnight") as stage:
        await opened(stage)

        def inks() -> tuple[set[str], set[str], set[str]]:
            strips = stage.map.render_lines(Region(0, 0, *stage.map.size))
            cells = {str(part.style) for strip in strips for part in strip}
            lines = stage.view.query_one("#figures", FactLines).lines
            words = {str(span.style) for line in lines for span in line.spans}
            keys = stage.view.query_one(KeyBar).render()
            return cells, words, {str(span.style) for span in keys.spans}

        before = inks()
        stage.app.use_theme("paper")
        await stage.until(lambda: stage.app.theme == "midstream-paper", "theme")
        await asyncio.sleep(0.2)
        for old, new in zip(before, inks(), strict=True):
            assert new
            assert not old & new - {"none"}


async def test_measured_figures_are_those_of_the_server(project: Path) -> None:
    async with replayed(project, rate=100) as stage:
        await stage.instruct()
        await stage.ended()
        await opened(stage)
        meter = stage.app.session.status.meter  # type: ignore[union-attr]
        cost = meter.cost
        assert cost.output_tokens == cost.forwards == meter.turn_tokens > 20
        assert cost.prefill_s is not None
        assert cost.prefill_s >= 0.03
        assert meter.request_s is not None
        assert meter.ttft_s is not None
        assert meter.request_s < meter.ttft_s
        rows = [row.split() for row in stage.words("wall").splitlines()]
        assert ["in", f"{cost.input_tokens:,}", f"{cost.input_tokens:,}"] in rows
        assert ["passes", str(cost.forwards), str(cost.forwards)] in rows
        assert ["tokens", "each", "1.0", "1.0"] in rows
        assert ["reading", *shown_seconds(cost.prefill_s).split()] in [row[:3] for row in rows]
        assert cost.decode_s is not None
        rate = cost.output_tokens / cost.decode_s
        assert f"{rate:,.0f} tok/s  mean of the last answer" in stage.words("wall")
        assert "slower than the wafer" in stage.words("wall")
        assert "replay here, " in stage.words("wall")
        assert meter.total == cost


async def test_every_simulated_page_says_so_and_has_bands_and_marks(project: Path) -> None:
    async with replayed(project) as stage:
        await opened(stage)
        await stage.press("m")
        await stage.simulated("llama3.1-8b")
        report = stage.view.simulation.result.report  # type: ignore[union-attr]
        for name in SIMULATED:
            assert "simulated" in stage.words(name), name
        assert f"{report.rate.mid:,.0f} tok/s  simulated" in stage.words("figures")
        assert f"{report.rate.low:,.0f} to {report.rate.high:,.0f}, assumed" in stage.words(
            "figures"
        )
        assert "compute" in stage.words("step")
        assert "software" in stage.words("step")
        assert "calibrated" in stage.words("machines")
        assert stage.words("machines").count("J/token") == 5
        assert "measured" not in "".join(stage.words(name) for name in SIMULATED)


async def test_models_contexts_and_map_views_change_by_key(project: Path) -> None:
    async with replayed(project) as stage:
        await opened(stage)
        assert any(hint.startswith("m ") for hint in stage.hints)
        await stage.press("m")
        await stage.press("m")
        await stage.simulated("llama3.3-70b")
        assert "m llama3.3-70b" in stage.hints
        assert "4 wafers" in stage.map.text()
        assert "wafer 4  layers 61-79" in stage.map.text()
        await stage.press("M")
        await stage.simulated("llama3.1-8b")
        for words in ("4,096 tokens", "32,768 tokens", "131,072 tokens", "64 tokens"):
            await stage.press("c")
            await stage.until(lambda words=words: words in stage.words("figures"), words)
        for view in ("fill", "kv", "layers"):
            await stage.press("v")
            assert stage.map.facts is not None
            assert stage.map.facts.view == view
            assert f"v map: {view}" in stage.hints


async def test_a_small_model_is_enlarged_and_says_so(project: Path, tmp_path: Path) -> None:
    write_folder(tmp_path / "small", prompt="chat")
    async with replayed(project, model=tmp_path / "small") as stage:
        await opened(stage)
        name = Path(stage.view.model).name
        assert "enlarged: " in stage.map.text()
        assert "z whole wafer" in stage.hints
        await stage.press("z")
        assert "enlarged" not in stage.map.text()
        assert f"m {name}" in stage.hints


async def test_activity_moves_only_with_tokens_and_timers_rest_when_idle(project: Path) -> None:
    async with replayed(project, rate=12) as stage:
        await opened(stage)
        ticker = stage.view._ticker
        assert ticker is not None
        assert not ticker._active.is_set()
        assert stage.map.facts is not None
        assert stage.map.facts.working is None
        await stage.instruct()
        seen: set[int] = set()

        def moved() -> bool:
            facts = stage.map.facts
            if facts is not None and facts.working is not None:
                seen.add(facts.working)
            return len(seen) >= 3

        await stage.until(moved, "activity")
        assert ticker._active.is_set()
        assert "ctrl+c stop" in stage.hints
        await stage.press("ctrl+c")
        session = stage.app.session
        assert session is not None
        await stage.until(lambda: session.status.state == "ready", "stopped")
        assert session.turns.last is not None
        assert session.turns.last.status == "stopped"
        await stage.until(lambda: not ticker._active.is_set(), "rest")
        await stage.until(
            lambda: stage.map.facts is not None and stage.map.facts.working is None, "no activity"
        )


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_activity_repaints_only_its_lines_and_leaves_no_trace(
    project: Path, ascii_only: bool
) -> None:
    async with replayed(project, ascii=ascii_only) as stage:
        await opened(stage)
        await stage.press("m", "m")
        await stage.simulated("llama3.3-70b")
        map_, still = stage.map, stage.map.facts
        assert still is not None
        await stage.until(lambda: map_._strips, "painted")
        resting = list(map_._strips)
        painted: list[int] = []
        line = map_._line
        map_._line = lambda brush, y, width: (painted.append(y), line(brush, y, width))[1]  # type: ignore[method-assign]
        for working, passed in ((3, ()), (9, (3, 4)), (None, (79, 80)), (81, ())):
            painted.clear()
            map_.show(replace(still, working=working, passed=frozenset(passed)))
            assert 0 < len(painted) < len(resting) * 0.8
            partly = [(strip.text, list(strip)) for strip in map_._strips]
            whole = filtered(map_, map_._paint(*map_.size), map_._palette.colors["background"])
            assert partly == [(strip.text, list(strip)) for strip in whole]
        map_.show(still)
        assert [list(strip) for strip in map_._strips] == [list(strip) for strip in resting]


async def test_the_wafer_stays_beside_the_code_while_one_works(project: Path) -> None:
    async with replayed(project, rate=12) as stage:
        await opened(stage)
        await stage.press("m")
        await stage.simulated("llama3.1-8b")
        assert "b beside the code" in stage.hints
        await stage.press("b")
        review = stage.app.review
        await stage.until(lambda: stage.app.screen is review, "back at the code")
        pane = review.query_one(WaferPane)
        facts, map_ = pane.query_one(FactLines), pane.query_one(WaferMap)
        await stage.until(lambda: "llama3.1-8b" in facts.plain and map_.facts, "simulated")
        for words in ("simulated", "assumed", "J/token", "busy", "software", "8 x H100 SXM"):
            assert words in facts.plain, words
        assert max(line.cell_len for line in facts.lines) <= pane.content_size.width
        assert review.panes.pane.size.width > 60
        await stage.instruct()
        seen: set[int] = set()

        def moved() -> bool:
            if map_.facts is not None and map_.facts.working is not None:
                seen.add(map_.facts.working)
            return len(seen) >= 2

        await stage.until(moved, "activity")
        await stage.until(lambda: "slower than" in facts.plain, "both clocks")
        assert "tok/s  measured" in facts.plain
        await stage.press("ctrl+c")
        await stage.until(lambda: map_.facts and map_.facts.working is None, "rest")
        await opened(stage)
        assert "b not beside the code" in stage.hints
        await stage.press("b")
        await stage.until(lambda: not review.query(WaferPane), "gone")


@pytest.mark.system
async def test_coming_and_going_while_it_streams_is_no_defect(project: Path) -> None:
    async with replayed(project, rate=12) as stage:
        await stage.instruct()
        for _ in range(6):
            await stage.press("W")
            await stage.until(lambda: isinstance(stage.app.screen, TelemetryScreen), "full view")
            screen = stage.app.screen
            assert isinstance(screen, TelemetryScreen)
            await stage.press("b")
            screen.show_all()
            screen._tick()
            await stage.until(lambda: stage.app.screen is stage.app.review, "code")
            screen.show_all()
        assert stage.app.return_code in (None, 0)


async def test_there_is_no_room_beside_the_code_of_a_small_terminal(project: Path) -> None:
    async with replayed(project, (100, 30)) as stage:
        await opened(stage)
        assert not any(hint.startswith("b ") for hint in stage.hints)
        await stage.press("b")
        assert isinstance(stage.app.screen, TelemetryScreen)
        assert not stage.app.review.query(WaferPane)


async def test_the_covered_code_view_paints_nothing(project: Path) -> None:
    async with replayed(project) as stage:
        await opened(stage)
        view, seen = stage.view, list[object]()
        await asyncio.sleep(0.3)
        refresh = view.refresh
        view.refresh = lambda *regions, **more: (seen.append(regions), refresh(*regions, **more))[1]  # type: ignore[method-assign]
        stage.app.review.panes.pane.refresh()
        await asyncio.sleep(0.3)
        assert seen == []
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is stage.app.review, "back")


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_a_small_terminal_shows_one_page_at_a_time(project: Path, ascii_only: bool) -> None:
    async with replayed(project, (80, 24), ascii=ascii_only) as stage:
        await opened(stage)
        shown = {"wall": "Wall clock", "figures": "Wafer clock", "step": "A token"}
        for here in shown:
            for name, title in shown.items():
                widget = stage.view.query_one(f"#{name}", FactLines)
                assert (widget.size.width > 0) == (name == here), (here, name)
                if name == here:
                    assert title in widget.plain
                    assert max(line.cell_len for line in widget.lines) <= widget.content_size.width
                    assert len(widget.lines) <= widget.content_size.height
                    assert widget.plain.isascii() or not ascii_only
            if here == "figures":
                assert stage.map.text().isascii() == ascii_only or not ascii_only
                assert "layers" in stage.map.text()
            await stage.press("tab")
            await asyncio.sleep(0.2)


async def test_a_model_that_cannot_be_simulated_is_a_sentence(project: Path) -> None:
    async with on_stage(project, settings=Settings(journal=False, model=Path("/nowhere"))) as stage:
        await _view_of(stage)
        view = stage.app.screen
        assert isinstance(view, TelemetryScreen)
        await stage.until(lambda: view.simulation.trouble, "sentence")
        await stage.pilot.pause(0.1)
        assert "There is no model at '/nowhere'" in " ".join(
            view.query_one("#figures", FactLines).plain.split()
        )
        await stage.press("m")
        await stage.until(lambda: view.simulation.result is not None, "the next one")


async def _view_of(stage: Stage) -> None:
    await stage.press("f2")
    await stage.until(lambda: isinstance(stage.app.screen, TelemetryScreen), "view")


# without a screen


def test_costs_know_only_what_was_told() -> None:
    usage = TokenUsage(input_tokens=200, cached_tokens=50, output_tokens=90)
    told = {
        "midstream.prefill_ms": "12.5",
        "midstream.decode_ms": "80",
        "midstream.forwards": "30",
        "midstream.drafted_tokens": "100",
        "midstream.accepted_tokens": "60",
    }
    cost = Cost.of(usage, told)
    assert cost == Cost(200, 50, 90, 0.0125, 0.08, 30, 100, 60)
    assert (cost.cached_share, cost.accepted_share, cost.tokens_per_forward) == (0.25, 0.6, 3.0)
    other = Cost.of(usage, {"midstream.forwards": "many"})
    assert other.forwards is None
    assert other.accepted_share is None
    both = cost + other
    assert both.input_tokens == 400
    assert both.forwards == 30
    assert Cost().cached_share is None


@pytest.mark.parametrize("model", PRESETS)
def test_presets_are_placed_without_overlap_and_all_is_on_the_map(model: str) -> None:
    simulated = simulate_model(model, 4096)
    plan = simulated.report.plan
    window = used_window(plan, enlarge=False)
    seen: set[int] = set()
    for wafer in range(plan.wafers):
        grid = paint_grid(plan, wafer, window, 80, 80)
        assert {len(row) for row in grid} == {80}
        assert len(grid) == 80
        seen |= {owner for row in grid for owner in row if owner >= 0}
        for line, places in number_places(plan, wafer, window, 80, 40).items():
            for x, text, index in places:
                owners = {grid[2 * line + half][x + n] for half in (0, 1) for n in range(len(text))}
                assert owners == {index}
    assert seen == set(range(len(plan.items)))


def test_the_cache_fills_with_the_context() -> None:
    plan = simulate_model("llama3.1-8b", 4096).report.plan
    layer = next(item for item in plan.items if item.layer == 3)
    shares = [filling(plan, layer, "kv", context) for context in (64, 4096, 65536, 10_000_000)]
    assert shares == sorted(shares)
    assert shares[0] < 0.001
    assert shares[-1] == 1.0
    assert filling(plan, layer, "fill", 64) == filling(plan, layer, "fill", 65536)


@pytest.mark.parametrize("count", [1, 2, 4, 16, 31])
@pytest.mark.parametrize("room", [(34, 19), (64, 30), (120, 60)])
def test_wafers_fit_into_the_room(count: int, room: tuple[int, int]) -> None:
    per_row, wide, high = arrange(count, *room, 1)
    lines = -(-count // per_row)
    assert per_row * wide + (per_row - 1) * 2 <= room[0]
    assert lines * (high + 1) <= room[1]
    assert wide == 2 * high


def test_a_sweep_passes_every_stage_in_order_and_stands_still_without_tokens() -> None:
    simulated = simulate_model("llama3.1-8b", 4096)
    meter = SimpleNamespace(output_tokens=0, turn_rate=1000.0)
    sweep = Sweep()
    first = sweep.advance(simulated, meter)  # type: ignore[arg-type]
    assert sweep.tokens_per_sweep == 1024
    assert sweep.advance(simulated, meter) == (first[0], frozenset())  # type: ignore[arg-type]
    order: list[int] = []
    for _ in range(1023):
        meter.output_tokens += 1
        working, _ = sweep.advance(simulated, meter)  # type: ignore[arg-type]
        if working is not None and (not order or order[-1] != working):
            order.append(working)
    assert order == sorted(order)
    assert set(simulated.stage_items) - set(order) <= {simulated.stage_items[0]}


def test_pace_names_who_is_slower_and_says_simulated() -> None:
    assert pace_sentence(1000.0, 100.0).startswith("10.0x slower than the wafer")
    assert pace_sentence(1000.0, 2000.0).startswith("2.0x faster than the wafer")
    assert pace_sentence(1000.0, 1000.0) == "at wafer speed (1,000 tok/s simulated)"


def test_a_real_wafer_stands_beside_the_simulated_one() -> None:
    simulated = simulate_model("gpt-oss-120b", 1024)
    rate = simulated.report.rate.mid
    counted = Cost(output_tokens=1_000, decode_s=0.5)
    lines = Lines(load_themes(themes_dir())[0]["daylight"], UNICODE)

    def told(same_model: bool, cost: Cost = counted) -> str:
        now = Measured(mean=900.0, wafers="cerebras", cost=cost)
        return "\n".join(line.plain for line in pace_lines(lines, now, simulated, same_model))

    assert "2,000 tok/s  measured by the server" in told(True)
    assert f"{rate:,.0f} tok/s  simulated, " in told(True)
    assert f"the simulation is at {rate / 2_000:.0%} of the real rate" in told(True)
    assert "another model is simulated" in told(False)
    assert "900 tok/s  measured here" in told(True, Cost(output_tokens=1_000))


def test_a_rate_that_a_pace_limits_is_compared_with_nothing() -> None:
    simulated = simulate_model("gpt-oss-120b", 1024)
    lines = Lines(load_themes(themes_dir())[0]["daylight"], UNICODE)

    def told(**measured: object) -> str:
        now = Measured(mean=19.0, rate=19.0, running=True, **measured)  # type: ignore[arg-type]
        shown = [*pace_lines(lines, now, simulated, True), *beside_lines(lines, now, simulated)]
        return "\n".join(line.plain for line in shown)

    assert "slower than the wafer" in told()
    assert "~19 tok/s  measured" in told(estimated=True)
    assert "slower than the wafer" not in told(limit=20.0)
    assert told(limit=20.0).count("a pace of 20 tok/s") == 2


def test_a_figure_of_the_model_server_is_told_from_an_estimate() -> None:
    lines = Lines(load_themes(themes_dir())[0]["daylight"], UNICODE)

    def told(**measured: object) -> str:
        now = Measured(mean=9.0, tokens=81, **measured)  # type: ignore[arg-type]
        return "\n".join(line.plain for line in measured_lines(lines, now, [], 100, 30))

    unstated = told(estimated=True, session_tokens=81, session_estimated=True)
    assert "~9 tok/s" in unstated
    assert "in                   -          -  not stated" in unstated
    assert "out                ~81        ~81" in unstated
    cost = Cost(input_tokens=7, output_tokens=80)
    stated = told(estimated=True, session_tokens=80, cost=cost, total=cost)
    assert "in                   7          7" in stated
    assert "out                 80         80" in stated
    assert "pass" not in stated.replace("passes", ""), "no term is explained that has no figure"
    assert "A pass is" in told(cost=Cost(output_tokens=80, forwards=9))


@pytest.mark.parametrize(("name", "preset"), [
    ("gpt-oss-120b", "gpt-oss-120b"), ("llama-3.3-70b", "llama3.3-70b"), ("my-own-4m", None),
    ("openai/gpt-oss-120b", "gpt-oss-120b"), ("qwen-3-coder-480b", "qwen3-coder-480b"),
])  # fmt: skip
def test_a_hosted_model_is_found_among_the_presets(name: str, preset: str | None) -> None:
    assert preset_of(name) == preset
    first = first_model(Settings(endpoint_url="https://api.cerebras.ai/v1", endpoint_model=name))
    assert first == (preset or "")


def test_a_paced_server_is_named_with_whether_it_keeps_up() -> None:
    pacing = Pacing("gpu", "llama3.3-70b", "8 x NVIDIA H100 SXM", 74.7)
    assert pacing_words(None, Cost()) == ""
    what = "llama3.3-70b on 8 x H100 SXM, 75 tok/s simulated"
    assert pacing_words(pacing, Cost()) == f"paced as {what}"
    assert pacing_words(pacing, Cost(due_s=2.0, passed_s=2.02)) == f"as fast as {what}"
    assert pacing_words(pacing, Cost(due_s=2.0, passed_s=6.2)) == f"3.1x slower than {what}"
    pacing = replace(pacing, mode="replay")
    assert pacing_words(pacing, Cost()) == f"whole, then replayed as {what}"
    assert pacing_words(pacing, Cost(due_s=2.0, passed_s=2.02)) == f"replayed as {what}"


async def test_a_paced_answer_says_on_screen_what_it_imitates(project: Path) -> None:
    async with replayed(project, pacing="gpu:llama3.1-8b") as stage:
        row = stage.app.review.query_one(StatusRow)
        await stage.until(lambda: "paced as llama3.1-8b on 8 x H100" in row.render().plain, "pace")
        await stage.instruct()
        await stage.ended()
        words = "llama3.1-8b on 8 x H100 SXM"
        await stage.until(lambda: stage.app.session.status.meter.cost.due_s, "due")  # type: ignore[union-attr]
        await stage.until(lambda: f"as fast as {words}" in row.render().plain
                          or f"slower than {words}" in row.render().plain, "verdict")  # fmt: skip
        assert "tok/s simulated" in row.render().plain
        await opened(stage)
        assert words in " ".join(stage.words("wall").split())
        assert "slower than the wafer" not in stage.words("wall"), (
            "a held-back rate is not compared"
        )


def test_an_unknown_model_is_an_error_with_a_sentence() -> None:
    with pytest.raises(SimulationError, match="neither a preset nor a file"):
        simulate_model("no-such-model", 64)


def test_bars_show_something_for_everything_that_is() -> None:
    assert bar(0.0, 10, UNICODE) == ""
    assert bar(0.001, 10, UNICODE) == "▏"
    assert bar(0.5, 10, UNICODE) == "█████"
    assert bar(0.5, 10, ASCII) == "#####"
    assert band_bar(0.2, 0.6, 10, ASCII) == ("##", "----")
    lines = graph([0.0, 5.0, 10.0], 4, 2, UNICODE)
    assert lines == ["   █", "  ██"]
    assert graph([], 3, 2, UNICODE) == ["   ", "   "]
