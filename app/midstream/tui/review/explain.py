"""Pages that explain: what the model receives, a hunk, and why something was refused or failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from midstream.edits.hunks import HunkState
from midstream.pairing.status import Turn, TurnStatus
from midstream.tui.pages.sheet import HalfReadingScreen, Paragraph, ReadingScreen
from midstream.tui.review.about import who_and_why, why_marked
from midstream.tui.review.aim import Aim
from midstream.tui.review.controller import Controller, Shared

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk
    from midstream.pairing.session import PairingSession

FIRST_ROWS: Final = 4
"""Rows of a hunk that stay in view above the sheet."""


class Explain(Controller):
    """Opens them."""

    def __init__(self, shared: Shared, aim: Aim) -> None:
        super().__init__(shared)
        self._aim = aim

    def sent(self) -> None:
        """What was sent so far, and what would be with the text being written."""
        session = self._state.session

        async def look() -> None:
            from midstream.tui.pages.sent import SentScreen

            draft = await self._aim.rehearsed()
            if draft is None and not session.sent:
                self._notices.say(
                    "info", "Nothing has been sent yet; write a text to see what would be sent."
                )
            else:
                self._services.open_screen(SentScreen(self._services, session.sent, draft))

        self._work.run(look)

    def why(self) -> None:
        """What is known of the hunk under the cursor, and what was refused or failed so far."""
        session, hunk = self._state.session, self._pane.hunk
        failures = list(self._failures(session))
        if hunk is not None:
            self._tell_about(hunk, session, failures)
        elif failures:
            self._read("Why", failures)
        else:
            self._notices.say(
                "info", "No hunk is under the cursor, and nothing was refused or failed."
            )

    def _tell_about(
        self, hunk: Hunk, session: PairingSession, failures: Sequence[Paragraph]
    ) -> None:
        """Show what is known of a hunk, and then what is found about it."""
        services = self._services
        about = list(self._about(hunk, session))
        sheet = HalfReadingScreen(services.palette, services.glyphs, "Why", [*about, *failures])
        sheet.set_class(not self._make_room(hunk), "-high")

        async def look() -> None:
            from midstream.tui.review.look_up import look_up

            async for found in look_up(hunk, session):
                sheet.show([*about, *found, *failures])

        services.open_screen(sheet, lambda _: search.cancel())
        search = self._work.beside(look, "about", exclusive=True)

    def _about(self, hunk: Hunk, session: PairingSession) -> Iterator[Paragraph]:
        if said := why_marked(hunk, session):
            key = self._services.key_for
            lines = [(said, "warning")]
            if hunk.state is HunkState.HELD:
                does = "lets you keep it" if hunk.external else "releases it"
                lines.append((f"{key('hunk.release')} {does}, with a reason.", "muted"))
                lines.append(
                    (f"{key('guard.file')} switches the guard off for this file.", "muted")
                )
            yield Paragraph("This hunk", tuple(lines))
        if lines := [(line, "foreground") for line in who_and_why(hunk, session)]:
            yield Paragraph("Written by", tuple(lines))

    def _make_room(self, hunk: Hunk) -> bool:
        """Have the first lines of a hunk above a sheet at the lower edge; whether that can be."""
        pane, rows = self._pane, self._state.view.rows_of(hunk.id)
        if rows is None:
            return True
        room = pane.screen.size.height * HalfReadingScreen.FREE // 100 - pane.region.y
        lowest = room - min(FIRST_ROWS, rows[1] - rows[0])
        if not 0 <= pane.lines_above(rows[0]) <= lowest:
            pane.detach()
            pane.scroll_to_place(pane.walk((rows[0], 0), -1))
        return pane.lines_above(rows[0]) <= lowest  # else it is at the end of the file

    def _failures(self, session: PairingSession) -> Iterator[Paragraph]:
        for turn in reversed(session.turns):
            if turn.failures:
                yield _failures_of(turn, session.turns)
        if self._notices.said:
            told = tuple((text, "foreground") for text in reversed(self._notices.said))
            yield Paragraph("Recent messages, newest first", told)

    def _read(self, title: str, paragraphs: Sequence[Paragraph]) -> None:
        services = self._services
        page = ReadingScreen(services.palette, services.glyphs, title, paragraphs)
        services.open_screen(page)


def _failures_of(turn: Turn, turns: Sequence[Turn]) -> Paragraph:
    lines: list[tuple[str, str]] = []
    for number, failure in enumerate(turn.failures, 1):
        sentence, _, rest = failure.partition("\n")
        lines.append((f"{number}  {sentence}", "foreground"))
        lines += [(f"   {line}", "muted") for line in rest.split("\n") if rest]
    after = next((later for later in turns if later.redirected_from == turn.id), None)
    if after is not None and after.correction:
        if after.status is TurnStatus.DONE and not after.failures:
            lines.append(("The model was asked again and its edits matched.", "success"))
        else:
            lines.append(("The model was asked again; see above.", "muted"))
    return Paragraph(f"{turn.path}: {turn.instruction}", tuple(lines))
