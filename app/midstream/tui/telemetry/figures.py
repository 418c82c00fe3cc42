"""The words and bars of the telemetry view: measured figures here, simulated ones there.

Wall-clock figures come from ``Measured``, wafer-clock figures from a simulation; no function
but ``pace_lines`` knows both, and every simulated figure says that it is simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.widget import Widget

from midstream.pairing.activity import Activity, activity_of, at_work
from midstream.pairing.models.simulating import pace_sentence, pacing_words
from midstream.pairing.status import WINDOW_S, Cost, marked, shown_dollars, shown_seconds
from midstream.tui.glyphs import Glyphs
from midstream.tui.themes import Palette
from midstream.tui.visible import visible

if TYPE_CHECKING:
    from midstream.pairing.models.simulating import Simulated
    from midstream.pairing.session import PairingSession
    from midstream.wafer.quantity import Band

TWO_COLUMNS: Final = 70
"""Cells from which on the measured figures stand in two columns."""
LABEL: Final = 14
"""Cells of the measured column's names."""
NAME: Final = 12
"""Cells of the simulated column's names."""

CAUSES: Final = (
    ("compute", "arithmetic"),
    ("hops", "wavelets on their way"),
    ("stages", "router turns of collectives"),
    ("streaming", "vectors through roots, links"),
    ("software", "kernel code in between"),
    ("handoff", "layer to layer"),
    ("links", "wafer to wafer"),
    ("host", "operators on the host"),
)
"""Where the time of a token goes, as the simulator names it."""


_TERMS: Final = (
    "A pass is one run of the model. Drafted tokens are guessed from the code; right ones stay."
)
"""What the names of the counts mean."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What the session has measured on the wall clock, read at one moment.

    Attributes:
        doing: What the session does.
        running: Whether an answer is under way.
        rate: Tokens per second over the last seconds.
        mean: Mean rate of the running or last answer.
        history: Rates of past quarter seconds.
        ttft_s: Seconds to the first text of the running or last answer.
        request_s: Seconds until the server had taken that request.
        tokens: Tokens of the running or last answer so far.
        estimated: Whether ``rate``, ``mean`` and ``tokens`` are estimates.
        session_estimated: Whether ``session_tokens`` has estimates in it.
        cost: What the server counted for the last answer; all unknown while it runs.
        pacing: The simulated machine the server imitates, or ``""``.
        limit: Tokens per second that the answer was limited to, ``None`` for no limit.
        wafers: The endpoint, if its model runs on real wafers, or ``""``.
    """

    model: str = ""
    doing: Activity = Activity.LOADING
    running: bool = False
    rate: float = 0.0
    mean: float | None = None
    history: tuple[float, ...] = ()
    ttft_s: float | None = None
    request_s: float | None = None
    tokens: int = 0
    session_tokens: int = 0
    estimated: bool = False
    session_estimated: bool = False
    cost: Cost = field(default_factory=Cost)
    total: Cost = field(default_factory=Cost)
    pacing: str = ""
    limit: float | None = None
    wafers: str = ""

    @classmethod
    def of(cls, session: PairingSession | None) -> Measured:
        """Read a session."""
        if session is None:
            return cls()
        meter = session.status.meter
        return cls(
            session.server.model_name,
            activity_of(session),
            running := at_work(session),
            meter.tokens_per_second if running else 0.0,
            meter.turn_rate,
            meter.samples,
            meter.ttft_s,
            meter.request_s,
            meter.turn_tokens,
            meter.output_tokens,
            meter.estimated,
            meter.output_estimated,
            meter.cost,
            meter.total,
            pacing_words(session.server.model_info.pacing, meter.cost),
            meter.limit,
            session.server.place if session.server.on_wafers else "",
        )

    @property
    def by_server(self) -> float | None:
        """Mean rate of the last answer by the server's own count and clock."""
        cost = self.cost
        return cost.output_tokens / cost.decode_s if cost.output_tokens and cost.decode_s else None

    @property
    def overall(self) -> float | None:
        """Mean rate of the last answer, by the server where it tells."""
        return self.mean if self.by_server is None else self.by_server

    @property
    def rate_estimated(self) -> bool:
        """Whether ``rate`` and ``overall`` are estimates."""
        return self.estimated and self.by_server is None

    @property
    def limited(self) -> str:
        """The limit on the measured rate, ``""`` for none."""
        if self.pacing or self.limit is None:
            return self.pacing
        return f"a pace of {self.limit:g} tok/s"

    @property
    def context(self) -> int:
        """Tokens the model has in its cache now, as far as they have been counted."""
        return self.cost.input_tokens + max(self.tokens, self.cost.output_tokens)


class Lines:
    """Makes lines in the colours of a theme."""

    def __init__(self, palette: Palette, glyphs: Glyphs) -> None:
        self.palette = palette
        self.glyphs = glyphs

    def text(self, *pieces: tuple[str, str]) -> Text:
        """Pieces of text and the palette roles they are painted in; ``!`` makes bold."""
        line = Text(no_wrap=True, overflow="crop")
        for words, role in pieces:
            style = self.palette.style(role.rstrip("!"), bold=True if role.endswith("!") else None)
            line.append(words, style)
        return line

    def heading(self, title: str, about: str) -> Text:
        """A column's title."""
        return self.text((title, "accent!"), (f"  {about}", "muted"))

    def fact(
        self, name: str, value: str, about: str = "", role: str = "foreground", *, room: int = LABEL
    ) -> Text:
        """A name in ``room`` cells, a value, and a remark."""
        return self.text(
            (name.ljust(room), "muted"), (value, role), (f"  {about}" if about else "", "muted")
        )


def measured_lines(
    make: Lines, now: Measured, pace: list[Text], width: int, height: int
) -> list[Text]:
    """The wall-clock page: one column, or two where it is wider than high."""
    two = width >= TWO_COLUMNS
    column = width // 2 - 2 if two else width
    first = _first_text(make, now, column)
    counts = [*_counts(make, now, column), Text(), *fold(pace, column)]
    if now.cost.forwards:
        counts += [Text(), *fold([make.text((_TERMS, "muted"))], column)]
    beside = len(first) + 1 if two else len(first) + len(counts) + 2
    across = min(column, 60)
    head = fold([_rate(make, now)], across)
    rows = max(2, min(8, height - beside - 5 - len(head)))
    lines = [
        make.heading("Wall clock", "measured here"),
        Text(),
        *head,
        *_graph(make, now, across, rows),
        Text(),
        *first,
    ]
    if not two:
        return [*lines, Text(), *counts]
    counts = [Text(), Text(), *counts]
    length = max(len(lines), len(counts))
    lines += [Text()] * (length - len(lines))
    counts += [Text()] * (length - len(counts))
    joined: list[Text] = []
    for left, right in zip(lines, counts, strict=True):
        line = left.copy()
        line.truncate(column, pad=True)
        line.pad_right(4)
        joined.append(line.append_text(right))
    return joined


def _rate(make: Lines, now: Measured) -> Text:
    rate = now.rate if now.running else now.overall
    if rate is None:
        words = "no answer yet; its rate is drawn here"
        if now.ttft_s is not None:
            words = "the answer was too short for a rate"
        return make.text((words, "muted"))
    if now.running and now.ttft_s is None:
        return make.text(("waiting for the first token", "muted"))
    when = "  mean, first text to last" if now.by_server is None else "  mean of the last answer"
    if now.running:
        when = f"  over the last {WINDOW_S:.0f} s"
    shown = marked(f"{rate:,.0f}", estimated=now.rate_estimated)
    return make.text((shown, "foreground!"), (" tok/s", "foreground"), (when, "muted"))


def _graph(make: Lines, now: Measured, across: int, rows: int) -> list[Text]:
    peak = max(now.history[-across:], default=0.0)
    scale = "a column for each quarter second"
    if peak:
        highest = marked(f"{peak:,.0f}", estimated=now.estimated)
        scale = f"quarter seconds, peak {highest} tok/s"
    return [
        *(make.text((row, "accent")) for row in graph(now.history, across, rows, make.glyphs)),
        make.text((make.glyphs.rule * across, "border")),
        make.text((scale, "muted")),
    ]


def _first_text(make: Lines, now: Measured, width: int) -> list[Text]:
    if now.ttft_s is None:
        return [make.fact("first text", "-")]
    total = now.ttft_s
    lines = [make.fact("first text", f"{shown_seconds(total):>8}", "since Enter", "foreground!")]
    parts: list[tuple[str, float | None]] = [("sending", now.request_s)]
    prefill = now.cost.prefill_s
    parts.append(("reading", prefill))
    if now.request_s is not None and prefill is not None:
        rest = total - now.request_s - prefill
        # The client may see the request's acceptance late, while the prompt is read already.
        parts.append(("first token", rest if rest > 0 else None))
    room = max(4, width - LABEL - 14)
    for name, seconds in parts:
        if seconds is None:
            about = "later" if now.running else "not known"
            lines.append(make.fact(f"  {name}", f"{'-':>8}", about))
            continue
        lines.append(
            make.text(
                (f"  {name}".ljust(LABEL), "muted"),
                (f"{shown_seconds(seconds):>8}  ", "foreground"),
                (bar(seconds / total if total else 0.0, min(room, 16), make.glyphs), "accent"),
            )
        )
    return lines


def _counts(make: Lines, now: Measured, width: int) -> list[Text]:
    answer, total = now.cost, now.total
    lines = [make.text((f"{'tokens':<{LABEL}}{'answer':>8}{'session':>11}", "muted"))]

    def row(name: str, one: str, all_: str, about: str = "") -> None:
        lines.append(
            make.text(
                (name.ljust(LABEL), "muted"),
                (f"{one:>8}{all_:>11}", "foreground"),
                (f"  {about}" if about else "", "muted"),
            )
        )

    unstated = now.tokens and not (answer.input_tokens or now.running)
    about = "not stated" if unstated and width >= LABEL + 31 else ""
    row("in", _known(answer.input_tokens or None), _known(total.input_tokens or None), about)
    row("  cached", _known(answer.cached_share, ".0%"), _known(total.cached_share, ".0%"))
    out = _known(answer.output_tokens or now.tokens)
    everything = marked(_known(now.session_tokens), estimated=now.session_estimated)
    row("out", marked(out, estimated=now.estimated and not answer.output_tokens), everything)
    row("passes", _known(answer.forwards), _known(total.forwards))
    each = (_known(cost.tokens_per_forward, ".1f") for cost in (answer, total))
    row("  tokens each", *each)
    row("drafted", _known(answer.drafted), _known(total.drafted))
    row("  right", _known(answer.accepted_share, ".0%"), _known(total.accepted_share, ".0%"))
    row("writing", _ms(answer.decode_s), _ms(total.decode_s))
    priced = total.dollars is not None or not total.output_tokens
    about = "" if priced or width < LABEL + 36 else "no price is set"
    row("cost", shown_dollars(answer.dollars), shown_dollars(total.dollars), about)
    return lines


def pace_lines(
    make: Lines, now: Measured, simulated: Simulated | None, same_model: bool
) -> list[Text]:
    """The one place where both clocks are compared: how far apart they are."""
    lines = [make.heading("Pace", "one clock against the other")]
    if limited := now.limited:  # such a rate says nothing about this machine
        limit_note = make.text(("the measured rate is limited to that", "muted"))
        return [*lines, make.text((limited, "warning")), limit_note]
    if simulated is None or now.overall is None:
        return [*lines, make.text(("shown once an answer has a rate", "muted"))]
    report = simulated.report
    if now.wafers:
        return [*lines, *_wafer_lines(make, now, now.overall, report.rate, same_model)]
    sentence = pace_sentence(report.rate.mid, now.overall)
    verdict, _, rest = sentence.partition(" (")
    lines.append(make.text((marked(verdict, estimated=now.rate_estimated), "foreground!")))
    lines.append(make.text((rest.rstrip(")"), "muted")))
    if not same_model:
        here, there = visible(now.model), report.plan.shape.name
        lines.append(make.text((f"{here} here, {there} there", "warning")))
    return lines


def _wafer_lines(
    make: Lines, now: Measured, measured: float, rate: Band, same_model: bool
) -> list[Text]:
    """A real wafer beside the simulated one."""
    # By the server: without the network, and with what it reasoned.
    where = "measured here" if now.by_server is None else "measured by the server"
    band = f"simulated, {_compact(rate.low)} to {_compact(rate.high)}"
    lines = [
        make.fact(
            "real",
            marked(f"{measured:,.0f} tok/s", estimated=now.rate_estimated),
            where,
            "foreground!",
        ),
        make.fact("", "", visible(now.wafers)),
        make.fact("wafer", f"{rate.mid:,.0f} tok/s", band, "foreground!"),
    ]
    if same_model:
        share = rate.mid / measured if measured else 0.0
        lines.append(make.text((f"the simulation is at {share:.0%} of the real rate", "muted")))
    else:
        lines.append(make.text(("another model is simulated: press m", "warning")))
    return lines


def figure_lines(make: Lines, simulated: Simulated, context: str) -> list[Text]:
    """The wafer-clock column; ``context`` says where the simulated context comes from."""
    report = simulated.report
    plan, step = report.plan, report.step

    def fact(name: str, value: str, about: str = "simulated") -> Text:
        return make.fact(name, value, about, room=NAME)

    cache = report.options.context / plan.kv.shift if plan.kv.shift else 1.0
    full = _compact(report.joules_per_token_full)
    lines = [
        make.heading("Wafer clock", "simulated"),
        make.text((visible(plan.shape.name), "foreground!")),
        make.text((f"on {plan.wafers} x {plan.hw.label}", "muted")),
        make.text((f"{plan.kernels.name} kernels, {plan.weight_bits}-bit weights", "muted")),
        Text(),
        *_band_lines(make, "decode", report.rate),
        *_band_lines(make, "first token", report.first_token.scaled(1000.0, "ms")),
        fact("step", f"{_compact(step.seconds * 1e6)} us"),
        _second(make, f"{step.cycles:,.0f} cycles at {plan.hw.number('clock_ghz'):g} GHz"),
        fact("stages busy", f"{report.occupancy:.2%}"),
        fact("energy", f"{_compact(report.joules_per_token)} J/token"),
        _second(make, f"{full} with all stages busy"),
        _second(make, "nameplate power, assumed"),
        Text(),
        fact("context", f"{report.options.context:,} tokens", context),
        fact("cache", f"{cache:.1%}", f"of {plan.kv.shift:,} tokens"),
        fact("SRAM", f"{plan.fill:.1%}", "simulated, fullest PE"),
        fact("bandwidth", f"{report.sram_share:.2%}", "simulated, of the SRAM"),
        fact("colours", f"{plan.colours} of {plan.hw.count('colours')}"),
    ]
    if report.notes:
        lines.append(Text())
        lines += [make.text((note, "muted")) for note in report.notes]
    return lines


def beside_lines(make: Lines, now: Measured, simulated: Simulated) -> list[Text]:
    """Both clocks in a few lines, for the narrow view beside the code."""
    report = simulated.report
    plan, rate = report.plan, report.rate
    here = now.rate if now.running else now.overall
    lines = [
        make.heading("Wafer clock", "simulated"),
        make.text(
            (visible(plan.shape.name), "foreground!"),
            (f"  {plan.wafers} x {plan.hw.name}", "muted"),
        ),
        make.text(
            (f"{_compact(rate.mid)} tok/s", "foreground!"),
            (f"  {_compact(rate.low)} to {_compact(rate.high)}, {rate.mark}", "muted"),
        ),
        make.text(
            (f"{_compact(report.joules_per_token)} J/token", "foreground"),
            (f"  nameplate, {report.occupancy:.1%} busy", "muted"),
        ),
    ]
    if limited := now.limited:
        lines.append(make.text((limited, "warning")))
    elif here is not None:
        sentence = pace_sentence(rate.mid, here).partition(" (")[0]
        shown = marked(f"{here:,.0f} tok/s", estimated=now.rate_estimated)
        lines.append(make.text((shown, "foreground!"), (f"  measured, {sentence}", "muted")))
    return lines


def _band_lines(make: Lines, name: str, band: Band) -> list[Text]:
    value = f"{_compact(band.mid)} {band.unit}"
    return [
        make.fact(name, value, "simulated", "foreground!", room=NAME),
        _second(make, f"{_compact(band.low)} to {_compact(band.high)}, {band.mark}"),
    ]


def _second(make: Lines, words: str) -> Text:
    """A line that belongs to the fact above it."""
    return make.text((" " * NAME + words, "muted"))


def step_lines(make: Lines, simulated: Simulated, width: int) -> list[Text]:
    """Where the simulated time of a step goes, which is a token's where nothing is drafted."""
    report = simulated.report
    total = sum(report.breakdown_us.values())
    title, tokens = "A token", ""
    if report.tokens_per_step != 1.0:
        title, tokens = "A step", f" for {report.tokens_per_step:.2f} tokens"
    about = f"simulated {total:,.0f} us{tokens}, {report.rate.mark}"
    lines = [make.heading(title, about)]
    wordy = width >= 76
    room = max(6, min(28, width - (62 if wordy else 28)))
    for cause, meaning in CAUSES:
        value = report.breakdown_us.get(cause, 0.0)
        if value <= 0:
            continue
        drawn = bar(value / total, room, make.glyphs)
        lines.append(
            make.text(
                (f"{cause:<10}", "muted"),
                (f"{_compact(value):>6} us {value / total:>6.1%}  ", "foreground"),
                (drawn.ljust(room), "accent"),
                (f"  {meaning}" if wordy else "", "muted"),
            )
        )
    return lines


def machine_lines(make: Lines, simulated: Simulated, width: int) -> list[Text]:
    """The wafers against GPUs: one bar for each, solid up to the lower end of its band."""
    contenders = simulated.contenders
    top = max(c.rate.high for c in contenders)
    lines = [make.heading("Against GPUs", "simulated tok/s of one stream")]
    one_line = width >= 74
    room = max(8, min(30, width - (62 if one_line else 25)))
    for number, contender in enumerate(contenders):
        rate = contender.rate
        solid, light = band_bar(rate.low / top, rate.high / top, room, make.glyphs)
        role = "accent" if number == 0 else "muted"
        name = contender.label.replace("NVIDIA ", "").replace("Cerebras ", "")
        band = f"{_compact(rate.low)}-{_compact(rate.high)} {rate.mark}"
        energy = f"{_compact(contender.joules_per_token)} J/token"
        lines.append(
            make.text(
                (f"{name[:17]:<17}", "foreground" if number == 0 else "muted"),
                (f"{_compact(rate.mid):>6}  ", "foreground!" if number == 0 else "foreground"),
                (solid + light.ljust(room - len(solid)), role),
                (f"  {band:<22}{energy:>12}" if one_line else "", "muted"),
            )
        )
        if not one_line:
            words = f"{band}, {energy}"
            indent = max(1, min(17, width - len(words)))
            lines.append(make.text((f"{'':<{indent}}{words}", "muted")))
    return lines


def _compact(value: float) -> str:
    from midstream.wafer.quantity import compact

    return compact(value)


def _known(value: float | None, form: str = ",") -> str:
    return "-" if value is None else format(value, form)


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value * 1000:,.0f} ms"


def fold(lines: Sequence[Text], width: int) -> list[Text]:
    """The lines, cut into several where they are wider than ``width``."""
    folded: list[Text] = []
    for line in lines:
        if line.cell_len <= width:
            folded.append(line)
            continue
        words = line.plain.split(" ")
        part = ""
        for word in words:
            if part and len(part) + 1 + len(word) > width:
                folded.append(Text(part, line.spans[0].style if line.spans else ""))
                part = word
            else:
                part = f"{part} {word}" if part else word
        folded.append(Text(part, line.spans[0].style if line.spans else ""))
    return folded


class FactLines(Widget):
    """Shows prepared lines; repaints only when they differ."""

    DEFAULT_CSS = """
    FactLines { height: 1fr; width: 1fr; background: $ms-background; color: $ms-foreground;
        text-wrap: nowrap; text-overflow: clip; }
    """

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self.lines: tuple[Text, ...] = ()

    def show(self, lines: Sequence[Text]) -> None:
        if self.lines != (made := tuple(lines)):
            grown = len(made) != len(self.lines)
            self.lines = made
            self.refresh(layout=grown and self.styles.is_auto_height)

    @property
    def plain(self) -> str:
        """The lines without style."""
        return "\n".join(line.plain.rstrip() for line in self.lines)

    def render(self) -> Text:
        return Text("\n").join(self.lines)


_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_FULL, _LIGHT = "█", "░"
_ASCII_FULL, _ASCII_LIGHT = "#", "-"


def bar(share: float, width: int, glyphs: Glyphs) -> str:
    """A bar as long as ``share`` (0 to 1) of ``width`` cells; something small is never nothing."""
    share = min(1.0, max(0.0, share))
    if share == 0.0 or width < 1:
        return ""
    if _plain(glyphs):
        return _ASCII_FULL * max(1, round(share * width))
    full, eighths = divmod(max(1, round(share * width * 8)), 8)
    return _FULL * full + (_EIGHTHS[eighths] if eighths else "")


def band_bar(low: float, high: float, width: int, glyphs: Glyphs) -> tuple[str, str]:
    """A bar for an interval of shares: the certain part up to ``low``, the rest up to ``high``."""
    full, light = (_ASCII_FULL, _ASCII_LIGHT) if _plain(glyphs) else (_FULL, _LIGHT)
    certain = max(1, round(min(1.0, low) * width))
    return full * certain, light * max(0, round(min(1.0, high) * width) - certain)


def graph(values: Sequence[float], width: int, height: int, glyphs: Glyphs) -> list[str]:
    """The last ``width`` values as columns over ``height`` lines, scaled to the largest of all.

    Returns:
        Lines from the top; all blank where there is nothing to show.
    """
    shown = list(values)[-width:]
    peak = max(shown, default=0.0)
    if peak <= 0:
        return [" " * width] * height
    levels = len(glyphs.spark)
    filled = [max(int(v > 0), round(v / peak * height * levels)) for v in shown]
    lines: list[str] = []
    for row in range(height - 1, -1, -1):
        cells = (min(levels, amount - row * levels) for amount in filled)
        line = "".join(glyphs.spark[n - 1] if n > 0 else " " for n in cells)
        lines.append(line.rjust(width))
    return lines


def _plain(glyphs: Glyphs) -> bool:
    return glyphs.spark.isascii()
