"""Reports, comparisons and placements as text for a terminal.

Plain and narrow enough for 100 columns; every number is labelled as simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from midstream.wafer.baselines import Contender
from midstream.wafer.picture import LETTERS, View, filling, paint_grid
from midstream.wafer.plan import Placed, Plan
from midstream.wafer.quantity import compact
from midstream.wafer.report import Report
from midstream.wafer.validation import Validation, leave_one_out

_CAUSES = (
    ("compute", "arithmetic in the PEs"),
    ("hops", "wavelets travelling"),
    ("stages", "router-PE turns of collectives"),
    ("streaming", "vectors through roots and links"),
    ("software", "kernel software between them"),
    ("handoff", "layer to layer"),
    ("links", "wafer to wafer"),
    ("host", "operators on the host"),
)


def report_text(report: Report) -> str:
    """A report in full."""
    plan, step, options = report.plan, report.step, report.options
    total = sum(report.breakdown_us.values())
    step_us = f"{compact(step.off_wafer_us)} us off the wafer = {compact(step.seconds * 1e6)} us"
    full = f"{compact(report.joules_per_token_full)} J/token with all filled"
    cache = (
        f"              cache for {plan.kv.shift:,} tokens ({plan.kv.concat:,} without the shift)"
    )
    product = plan.workload.product
    each = "product" if product else "token"
    lines = [
        f"{plan.shape.name} on {plan.wafers} x {plan.hw.label}, {plan.kernels.name} kernels, "
        f"{plan.mode}, context {options.context:,}, batch {options.batch}",
        "all figures simulated; the band is what is not known, the mark what it rests on",
        "",
        f"{'product' if product else 'decode':<14}simulated {report.rate.text()}",
        *(f"              {note}" for note in report.notes),
        *([] if product else [f"first token   simulated {report.first_token.text()}"]),
        f"step          {compact(step.cycles)} cycles at {plan.hw.number('clock_ghz'):g} GHz + "
        f"{step_us} simulated",
        f"energy        {compact(report.joules_per_token)} J/token simulated at nameplate power, "
        f"{report.occupancy:.2%} of stages busy; {full}".replace("token", each),
        f"placement     {plan.fill:.0%} of the fullest PE, {plan.padding:.1%} padding, "
        f"{plan.colours} of {plan.hw.count('colours')} colours,",
        *([] if product else [cache]),
        f"SRAM          {report.sram_share:.2%} of the advertised bandwidth in use: one stream is "
        "bound by latency",
        "",
        "where a step goes (us, simulated)",
    ]
    for cause, meaning in _CAUSES:
        value = report.breakdown_us.get(cause, 0.0)
        if value > 0:
            share = value / total
            lines.append(
                f"  {cause:<10}{value:>9.1f} {share:>6.1%}  {'█' * round(30 * share):<30} {meaning}"
            )
    lines += ["", f"  {'operator':<34}{'layers':>7}{'cycles':>12}{'share':>8}  bound by"]
    for line in report.operators:
        name = line.name if len(line.name) <= 33 else "…" + line.name[-32:]
        cycles = f"{line.host_us:,.0f} us" if line.host_us else f"{line.cycles:,.0f}"
        lines.append(f"  {name:<34}{line.layers:>7}{cycles:>12}{line.share:>8.1%}  {line.bound_by}")
    lines += ["", *wrap(f"kernels: {plan.kernels.provenance}", 100)]
    return "\n".join(lines)


def comparison_text(model: str, contenders: Sequence[Contender]) -> str:
    """Machines side by side with bars."""
    top = max(c.rate.mid for c in contenders)
    lines = [f"{model}: one stream, all figures simulated", ""]
    for c in contenders:
        bar = "█" * max(1, round(28 * c.rate.mid / top))
        lines.append(f"{c.label:<33} {c.rate.text():<43} {bar}")
        each = "token" if c.rate.unit == "tok/s" else "product"
        energy = f"{compact(c.joules_per_token)} J/{each} at nameplate"
        first = f"first token {c.first_token.text()}"
        if c.rate.unit != "tok/s":
            first = f"one takes {c.first_token.scaled(1e6, 'us').text()}"
        detail = f"{first}, {energy}"
        lines.append(f"{'':<4}{detail}" + (f"; {', '.join(c.notes)}" if c.notes else ""))
    return "\n".join(lines)


def validation_text(result: Validation) -> str:
    """Rows and groups of a validation."""
    lines = [f"{'row':<58}{'published':>11}{'simulated':>11}{'error':>8}  band"]
    for item in result.checked:
        band = item.prediction.band
        inside = "in" if item.covered else "OUT"
        fitted = " (calibration)" if item.calibration else ""
        lines.append(
            f"{item.row.label[:57]:<58}{compact(item.row.published):>11}{compact(item.prediction.point):>11}"
            f"{item.error:>+8.1%}  {compact(band.low)}-{compact(band.high)} {item.row.unit} "
            f"{inside} {band.mark}{fitted}"
        )
        lines.extend(f"    {note}" for note in item.prediction.notes)
    lines += [
        "",
        f"{'group (held-out rows only)':<34}{'rows':>5}{'MAPE':>8}{'max':>8}{'in band':>9}"
        f"{'widest':>8}  gate",
    ]
    for group in result.groups:
        if not group.rows:
            held = f"only calibration rows ({group.calibration_rows})"
            lines.append(f"{group.name:<34}{0:>5}  {held}")
            continue
        verdict = "; ".join(group.failures) or ("ok" if group.gate else "none")
        lines.append(
            f"{group.name:<34}{group.rows:>5}{group.mape:>8.1%}{group.worst:>8.1%}{group.covered:>9.0%}"
            f"{group.widest:>7.2f}x  {verdict}"
        )
    lines += ["", "the fit itself, each calibration row left out in turn"]
    for left in leave_one_out():
        unsure = "" if left.identified else "  fewer rows than constants remain"
        lines.append(f"{left.stage:<34}{left.rows:>5}{left.mape:>8.1%}{left.worst:>8.1%}{unsure}")
    if result.problems:
        lines += ["", "left out"]
        lines.extend(f"  {problem.where}: {problem.reason}" for problem in result.problems)
    return "\n".join(lines)


_SHADES = " .:-=+*#%@"
_IDLE = (38, 40, 46)
_EMBEDDING = (112, 116, 128)
_HEAD = (222, 184, 96)
"""Red, green and blue of PEs without an item, of the embedding and of the output head."""


def wafer_text(
    plan: Plan,
    *,
    wafer: int = 0,
    columns: int = 64,
    view: View = "layers",
    context: int = 0,
    colour: bool = False,
) -> str:
    """Draw one wafer.

    Args:
        plan: The placement.
        wafer: Which wafer.
        columns: Width in characters.
        view: What the letters or colours show.
        context: Cached tokens, for the ``kv`` view.
        colour: Half blocks in 24-bit colour instead of letters.
    """
    width, height = fabric = plan.hw.fabric(halo=plan.kernels.halo)
    lines = max(1, round(columns * height / width / 2))
    grid = paint_grid(plan, wafer, fabric, columns, 2 * lines if colour else lines)
    if not colour:
        letters = [*(_letter(plan, item, view, context) for item in plan.items), "·"]
        return "\n".join("".join(letters[owner] for owner in row) for row in grid)
    colours = [*(_colour(plan, item, view, context) for item in plan.items), _IDLE]
    pairs = zip(grid[::2], grid[1::2], strict=True)
    return "\n".join(_half_blocks(colours, upper, lower) for upper, lower in pairs)


def _letter(plan: Plan, item: Placed, view: View, context: int) -> str:
    if view != "layers":
        share = filling(plan, item, view, context)
        return _SHADES[min(len(_SHADES) - 1, int(share * len(_SHADES)))]
    if item.layer is None:
        return "~" if item.name == "embedding" else "^"
    return LETTERS[item.layer % len(LETTERS)]


def _half_blocks(
    colours: Sequence[tuple[int, int, int]], upper: list[int], lower: list[int]
) -> str:
    parts: list[str] = []
    for top, bottom in zip(upper, lower, strict=True):
        (r, g, b), (s, t, u) = colours[top], colours[bottom]
        parts.append(f"\x1b[38;2;{r};{g};{b};48;2;{s};{t};{u}m▀")
    return "".join(parts) + "\x1b[0m"


def _colour(plan: Plan, item: Placed, view: View, context: int) -> tuple[int, int, int]:
    """The colour of an item: a ramp over layers, or one over the filling."""
    if view != "layers":
        return _blend((30, 58, 95), (240, 170, 70), filling(plan, item, view, context))
    if item.layer is None:
        return _EMBEDDING if item.name == "embedding" else _HEAD
    base = _blend((52, 92, 168), (74, 176, 128), item.layer / max(1, plan.shape.layers - 1))
    return _blend(base, (255, 255, 255), 0.10) if item.layer % 2 else base


def _blend(a: tuple[int, int, int], b: tuple[int, int, int], share: float) -> tuple[int, int, int]:
    return (
        round(a[0] + (b[0] - a[0]) * share),
        round(a[1] + (b[1] - a[1]) * share),
        round(a[2] + (b[2] - a[2]) * share),
    )


def legend(plan: Plan, view: View = "layers") -> str:
    """One line that explains the letters."""
    if view == "layers":
        return (
            "digits and letters: layers in order (repeating after 62); ~ embedding; ^ output head; "
            "· unused PEs"
        )
    what = "SRAM fill" if view == "fill" else "cache fill"
    room = plan.hw.count("sram_bytes") // 1024
    return f"{what} of {room} KB per PE, from '{_SHADES[0]}' (empty) to '{_SHADES[-1]}' (full)"
