"""The characters the screen draws with: one set for Unicode terminals, one for ASCII."""

from __future__ import annotations

from msgspec import Struct

from midstream.edits.hunks import HunkState
from midstream.pairing.activity import Activity


class Glyphs(Struct, frozen=True):
    """One set of characters; every one is a single cell wide.

    Attributes:
        light: State light of the status row.
        activities: Other marks in its place, by what the session does.
        bar: Hunk bar beside changed rows.
        rejected: Bar beside the rows of a rejected hunk.
        scope: Bar beside the rows an instruction would get.
        cursor: Mark of the cursor row.
        pending: Sign of a row that is not decided yet.
        writing: Sign of the row that is being written.
        fold: Mark of a folded block.
        folded: Mark of a folder whose content is not shown.
        unfolded: Mark of one whose content is shown.
        wrapped: Mark of a row that goes on from the one above.
        prompt: Mark before the composer's text.
        ellipsis: Cut-off text.
        separator: Between facts on one line.
        close: Closes what it stands on.
        rule: Horizontal line.
        side: Vertical line.
        spark: Eight or fewer levels, lowest first.
        states: First-row mark by hunk state.
    """

    light: str
    bar: str
    rejected: str
    scope: str
    cursor: str
    pending: str
    writing: str
    fold: str
    folded: str
    unfolded: str
    wrapped: str
    prompt: str
    ellipsis: str
    separator: str
    close: str
    rule: str
    side: str
    up: str
    down: str
    spark: str
    states: dict[HunkState, str]
    activities: dict[Activity, str]


UNICODE = Glyphs(
    light="●",
    bar="▎",
    rejected="┊",
    scope="▏",
    cursor="▸",
    pending="~",
    writing="▌",
    fold="⋯",
    folded="▹",
    unfolded="▿",
    wrapped="↳",
    prompt="❯",
    ellipsis="…",
    separator="·",
    close="×",
    rule="─",
    side="│",
    up="↑",
    down="↓",
    spark="▁▂▃▄▅▆▇█",
    states={
        HunkState.STREAMING: "▎",
        HunkState.SETTLED: "▌",
        HunkState.ACCEPTED: "✓",
        HunkState.REJECTED: "✗",
        HunkState.CONFLICT: "!",
        HunkState.HELD: "⚑",
        HunkState.SUPERSEDED: "↷",
    },
    activities={
        Activity.CONNECTING: "○",
        Activity.LOADING: "○",
        Activity.OFFLINE: "○",
        Activity.SENDING: "○",
        Activity.READING: "◔",
        Activity.THINKING: "◑",
        Activity.YOU: "?",
        Activity.AGENT: "◆",
        Activity.HOOKS: "◇",
        Activity.CHECKS: "◇",
    },
)

ASCII = Glyphs(
    light="*",
    bar="|",
    rejected=".",
    scope=":",
    cursor=">",
    pending="~",
    writing="_",
    fold="=",
    folded="+",
    unfolded="-",
    wrapped="+",
    prompt=">",
    ellipsis="~",
    separator="-",
    close="x",
    rule="-",
    side="|",
    up="^",
    down="v",
    spark=".:-=+*#@",
    states={
        HunkState.STREAMING: "|",
        HunkState.SETTLED: "|",
        HunkState.ACCEPTED: "y",
        HunkState.REJECTED: "n",
        HunkState.CONFLICT: "!",
        HunkState.HELD: "X",
        HunkState.SUPERSEDED: "s",
    },
    activities={Activity.OFFLINE: "-", Activity.YOU: "?"},
)


def sparkline(values: list[float], glyphs: Glyphs, width: int) -> str:
    """The last ``width`` values as bars, scaled to the largest of them."""
    shown = values[-width:]
    peak = max(shown, default=0.0)
    if peak <= 0 or len(shown) < 3:
        return ""
    top = len(glyphs.spark) - 1
    return "".join(glyphs.spark[round(value / peak * top)] for value in shown)
