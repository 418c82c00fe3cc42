"""The way from the review screen to its pages: commit, sessions, settings, models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.tui.screens.asking import AskActions

if TYPE_CHECKING:
    from midstream.pairing.session import PairingSession


class PageActions(AskActions):
    """Actions that open a page, and staging, which needs none."""

    def _opened(self) -> PairingSession | None:
        """The session, or a sentence that there is none yet."""
        if self.session is None:
            self.say("info", "The session is still being opened; try again in a moment.")
        return self.session

    def action_stage(self) -> None:
        """Stage what was accepted in the open file."""
        session, path = self._opened(), self.path
        if session is None:
            return

        async def work() -> None:
            if session.committing.texts(path) is None:
                self.say("info", "Nothing was accepted in this file, so there is nothing to stage.")
                return
            await session.committing.stage(path)
            await session.refresh()
            key = self.program.key_for("commit")
            self.say("info", f"Staged what was accepted in {path}; {key} commits.")

        self.in_order(work)

    def action_commit(self) -> None:
        """Choose what to stage, write a message, commit."""
        if self._opened() is not None:
            from midstream.tui.screens.commit import CommitScreen

            self.program.push_screen(
                CommitScreen(self.program.palette, self.program.glyphs), self._committed
            )

    def _committed(self, sentence: str | None) -> None:
        if sentence:
            self.say("info", sentence)
        self.refresh_facts()

    def action_sessions(self) -> None:
        """Earlier sessions of this folder."""
        if self._opened() is not None:
            from midstream.tui.screens.sessions import SessionsScreen

            self.program.push_screen(SessionsScreen(self.program.palette, self.program.glyphs))

    def action_settings(self) -> None:
        """Every setting."""
        from midstream.tui.screens.settings import SettingsScreen

        self.program.push_screen(SettingsScreen(self.program.palette, self.program.glyphs))

    def action_models(self) -> None:
        """Choose the model."""
        if self._opened() is not None:
            from midstream.tui.screens.models import ModelsScreen

            self.program.push_screen(ModelsScreen(self.program.palette, self.program.glyphs))
