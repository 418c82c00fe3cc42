"""Comments on a hunk: a chip in the composer stands for the hunk, the sentence is the person's.

Sending is ``steering``'s, which asks here which lines such a comment is about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.tui.screens.deciding import DecideActions
from midstream.tui.visible import visible

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk


class CommentActions(DecideActions):
    """Tells the model about the hunk under the cursor."""

    _commented: dict[str, int] | None = None
    """Hunks by the chips that stood for them."""

    def action_comment(self) -> None:
        """Write to the model about the hunk under the cursor."""
        hunk, view = self.hunk, self.view
        if hunk is None or view is None:
            self.say("info", "Put the cursor on a hunk first.")
            return
        self._in_sight(hunk)
        self.set_focus(self.composer.field)
        if not self.talks:
            # An edit model would take the place for a part of the change.
            self.say(
                "info",
                "Say all of what should change: this model reads the lines marked on the left and "
                "your sentence, nothing else.",
            )
        elif not self.composer.text.strip():
            line = f"{view.to_written(hunk.start) + 1:,}"
            chip = f"[hunk at line {line}]"
            self._commented = {**(self._commented or {}), chip: hunk.id}
            words = visible(hunk.headline)
            self.composer.put_chip(chip, f"About the hunk at line {line} (`{words}`):")

    @property
    def commented(self) -> tuple[Hunk, str] | None:
        """The hunk that the text is about, and how it is called there."""
        session = self.session
        text = self.composer.field.text
        found = ((chip, i) for chip, i in (self._commented or {}).items() if chip in text)
        chip, hunk_id = next(found, ("", 0))
        if session is None or not chip:
            return None
        hunk = session.hunks.get(hunk_id)
        live = hunk.live and hunk.path == self.path
        return (hunk, chip.strip("[]")) if live else None

    @property
    def talks(self) -> bool:
        """Whether the model is a chat model, to which more is sent than the lines."""
        raise NotImplementedError
