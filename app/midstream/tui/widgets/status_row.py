"""The status row: the state of the model and of the repository, on one line.

The row is read in passing while an answer streams, so each fact keeps its place: figures have slots
of a fixed width, empty ones included, and what comes and goes stands where nothing else moves.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct
from rich.cells import cell_len
from rich.text import Text

from midstream.pairing.activity import WORDLESS, Activity
from midstream.pairing.status import marked, shown_dollars, shown_seconds
from midstream.tui.glyphs import Glyphs, sparkline
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.line_api import TextLine, calling

_LIGHTS: Final = {
    Activity.CONNECTING: "warning",
    Activity.LOADING: "warning",
    Activity.READY: "success",
    Activity.STOPPING: "warning",
    Activity.OFFLINE: "error",
    Activity.YOU: "warning",
}
"""Roles of the light; the accent where something is at work."""
_WORDLESS_S: Final = 2
"""Seconds after which they are shown."""
_SPARK_CELLS: Final = 12
"""Width of the rate's sparkline."""
_STATE_CELLS: Final = 9
"""The slot of the activity; only connecting is longer, and nothing stands behind that yet."""
_CANDIDATE_CELLS: Final = len("candidate 1 of 4")
"""The state's slot while candidates may be written."""
_DIRTY_CELLS: Final = len("99 changed")
_GAP: Final = 3
"""Cells between two facts."""
_WORDS: Final = re.compile(r"\S+| (?=\S)")
_GUARD_ROLES: Final = {"guarded": "success"}
_IDLE: Final = "scanning nothing"
"""States of the guard before anything has streamed into the file; they are not worth a place
here."""
_IDLE_WORDS: Final = " " * len("guarded")
"""Shown for it, so that the first answer moves nothing."""


class StatusFacts(Struct, frozen=True):
    """The facts that the row shows, read from the session at one moment.

    Attributes:
        rate: Tokens per second of the running answer, ``None`` while there is none.
        history: Past rates for the sparkline.
        tokens: Tokens of the running or last turn.
        estimated: Whether ``rate`` and ``tokens`` are estimates.
        waited_s: Seconds that there has been nothing to see.
        reading: How far the model is with reading the prompt, ``""`` while it is not at that.
        pacing: The simulated machine whose rate is imitated, or ``""``.
        effort: Empty unless the user chose one.
        trying: The candidate being written, and of how many.
        begun: What git is in the middle of, such as a merge.
        dirty: Changed files in the working tree.
        watching: How files are watched, empty while unknown.
        reviewing: What other programs write waits for decisions.
        range: The range of commits that is looked at, ``""`` for files of the user.
        waiting_agent: The agent that waits for a decision before it writes, ``""`` if none does.
        guard: What the guard does for the open file, and why if it does nothing.
    """

    model: str = ""
    doing: Activity = Activity.LOADING
    rate: float | None = None
    history: tuple[float, ...] = ()
    ttft_s: float | None = None
    tokens: int = 0
    estimated: bool = False
    waited_s: float = 0.0
    reading: str = ""
    pacing: str = ""
    effort: str = ""
    trying: tuple[int, int] | None = None
    queued: int = 0
    continuous: bool = False
    dollars: float | None = None
    branch: str = ""
    begun: str = ""
    dirty: int = 0
    watching: str = ""
    reviewing: bool = False
    range: str = ""
    waiting_agent: str = ""
    guard: str = ""


class _Piece(Struct, frozen=True):
    """A fact of the row; of those on the right, the one of the lowest rank gives way first."""

    text: Text
    rank: int = 0


class StatusRow(TextLine):
    """One row of facts; the least important ones give way when it is narrow."""

    DEFAULT_CSS = """
    StatusRow { height: 1; background: $ms-panel; color: $ms-foreground; }
    """
    GROUND = "panel"

    def __init__(self, palette: Palette, glyphs: Glyphs, *, widget_id: str | None = None) -> None:
        super().__init__(palette, glyphs, widget_id=widget_id)
        self.facts = StatusFacts()

    def show(self, facts: StatusFacts) -> None:
        if facts != self.facts:
            self.facts = facts
            self.refresh()

    def render(self) -> Text:
        """The row as text: pieces from the left, pieces from the right, space between."""
        left, right = self._left(), self._right()
        room = self.size.width - 2
        told = self.facts.guard not in ("", _IDLE, *_GUARD_ROLES)
        if told and _width(left) + _width(right) + 2 > room:
            # A sentence of the guard moves the row anyhow; else figures keep their places.
            left, right = _packed(left), _packed(right, _GAP)
        # When it is narrow, the current wait outlasts constant facts.
        kept = len(left) if self.facts.doing in WORDLESS else 2
        while len(left) > kept and _width(left) + _width(right) + 2 > room:
            left.pop()
        fitting = _fitting(right, room - 2 - _width(left))
        if told and not any(self.facts.guard in piece.text.plain for piece in fitting):
            right = _packed(self._right(brief=True), _GAP)
            fitting = _fitting(right, room - 2 - _width(left))
        right = fitting
        line = Text(" ", no_wrap=True, overflow="crop")
        for piece in left:
            line.append_text(piece.text)
        gap = room - _width(left) - _width(right)
        line.append(" " * max(0, gap))
        for piece in right:
            line.append_text(piece.text)
        return line

    def _left(self) -> list[_Piece]:
        facts, palette, glyphs = self.facts, self._palette, self._glyphs
        muted = palette.style("muted")
        light = palette.style(_LIGHTS.get(facts.doing, "accent"))
        doing = facts.doing.value
        if facts.trying is not None:  # in place of waiting, so that no width leaves it out
            doing = "candidate {} of {}".format(*facts.trying)
        doing = doing.ljust(_CANDIDATE_CELLS if facts.effort else _STATE_CELLS)
        mark = glyphs.activities.get(facts.doing, glyphs.light)
        pieces = [Text.assemble((f"{mark} ", light), (doing, light))]
        pieces.append(
            Text(
                f"  {visible(facts.model) or 'model server'}",
                calling(palette.style("foreground", bold=True), "show.models"),
            )
        )
        if facts.effort:
            pieces.append(Text(f"  {facts.effort} effort", calling(muted, "steer.effort")))
        rate = "" if facts.rate is None else f"{self._figure(facts.rate)} tok/s"
        if facts.doing in WORDLESS:
            waited = f"{facts.waited_s:.0f} s" if facts.waited_s >= _WORDLESS_S else ""
            pieces.append(Text(f"   {facts.reading or waited}", palette.style("accent")))
            return [_Piece(text) for text in pieces]
        if facts.pacing:  # the own rate, in own tokens, would be mistaken for the imitated one
            pieces.append(Text(f"   {visible(facts.pacing)}", palette.style("warning")))
        else:
            pieces.append(Text(f"   {rate:<12}", palette.style("accent")))
        first = "" if facts.ttft_s is None else f"first {shown_seconds(facts.ttft_s):>6}"
        tokens = ""
        if facts.tokens:
            tokens = f"{self._figure(facts.tokens)} token{'s' * (facts.tokens > 1)}"
        pieces += [Text(f"   {first:<12}", muted), Text(f"   {tokens:<13}", muted)]
        if facts.dollars is not None:
            pieces.append(Text(f"   {shown_dollars(facts.dollars):>7}", muted))
        writing = facts.doing is Activity.WRITING
        bars = sparkline(list(facts.history), glyphs, _SPARK_CELLS) if writing else ""
        pieces.append(Text(f"   {bars:<{_SPARK_CELLS}}", palette.style("accent")))
        return [_Piece(text) for text in pieces]

    def _figure(self, figure: float) -> str:
        return f"{marked(f'{figure:,.0f}', estimated=self.facts.estimated):>6}"

    def _right(self, *, brief: bool = False) -> list[_Piece]:
        """The pieces on the right; ``brief``: without the guard's reason."""
        facts, palette = self.facts, self._palette
        pieces: list[_Piece] = []
        if facts.queued:
            pieces.append(_Piece(Text(f"{facts.queued} queued   ", palette.style("warning")), 4))
        if facts.continuous:
            style = calling(palette.style("accent"), "steer.continuous")
            pieces.append(_Piece(Text("continuous   ", style), 4))
        if facts.guard == _IDLE:
            pieces.append(_Piece(Text(f"{_IDLE_WORDS}   "), -1))
        elif facts.guard:
            role = _GUARD_ROLES.get(facts.guard, "warning")
            words = visible(facts.guard.partition(":")[0] if brief else facts.guard)
            text = Text(f"{words}   ", palette.style(role))
            pieces.append(_Piece(text, 1 if facts.guard in _GUARD_ROLES else 3))
        if facts.range:
            words = f"{visible(facts.range)}, read-only"
            pieces.append(_Piece(Text(f"{words}   ", palette.style("warning")), 3))
            return pieces
        if facts.watching:
            native = facts.watching == "native"
            why = facts.watching.removeprefix("off: ")
            off = "" if why == facts.watching else f"not watching: {why}"
            seen = "reviewing" if facts.reviewing else "watching"
            if facts.waiting_agent:
                seen = f"{facts.waiting_agent} waits for you"
            words = seen if native else off or facts.watching
            role = "muted" if native else "warning"
            text = Text(f"{visible(words)}   ", palette.style(role))
            pieces.append(_Piece(text, 0 if native else 3))
        if facts.branch:
            branch = Text(visible(facts.branch), palette.style("foreground"))
            if facts.begun:
                branch.append(f" {facts.begun}", palette.style("warning"))
            dirty = f"{facts.dirty} changed" if facts.dirty else ""
            role = "warning" if dirty else "muted"
            state = dirty or "clean"
            branch.append(f" {self._glyphs.separator} ", palette.style(role))
            pieces.append(_Piece(branch, 2))
            style = palette.style(role)
            if dirty:
                style = calling(style, "show.commit")
            pieces.append(_Piece(Text(state, style), 3 if dirty else 2))
            pieces.append(_Piece(Text(" " * max(0, _DIRTY_CELLS - len(state))), -1))
        return pieces


def _packed(pieces: list[_Piece], behind: int = 0) -> list[_Piece]:
    """Pieces without the room that keeps their places for longer figures, and for missing ones.

    Args:
        pieces: The pieces.
        behind: Cells that part one from the next; 0 where they begin with such cells.
    """
    packed: list[_Piece] = []
    for piece in pieces:
        words = piece.text.plain
        before = len(words) - len(words.lstrip())
        after = len(words) - len(words.rstrip())
        text = Text(" " * min(before, _GAP))
        for match in _WORDS.finditer(words, before, len(words) - after):
            text.append_text(piece.text[match.start() : match.end()])
        text.append(" " * min(after, behind))
        if words.strip():
            packed.append(_Piece(text, piece.rank))
    return packed


def _fitting(pieces: list[_Piece], room: int) -> list[_Piece]:
    """The pieces of the highest ranks for which there is room, in their order."""
    chosen: set[int] = set()
    for at in sorted(range(len(pieces)), key=lambda at: (pieces[at].rank, at), reverse=True):
        if (left := room - _width([pieces[at]])) >= 0:
            chosen.add(at)
            room = left
    return [piece for at, piece in enumerate(pieces) if at in chosen]


def _width(pieces: list[_Piece]) -> int:
    return sum(cell_len(piece.text.plain) for piece in pieces)
