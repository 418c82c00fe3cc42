"""Downloading a published model on the models page: the catalogue, a question, the progress."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from textual.worker import Worker

from midstream.errors import UserError
from midstream.pairing.models.downloads import download_model, downloadable, what_it_takes
from midstream.tui.pages.page import PageScreen
from midstream.tui.pages.picker import PickerScreen
from midstream.tui.visible import visible
from midstream.tui.widgets.row_list import ListRow


class ModelDownloads:
    """The one download that the models page may have running.

    Attributes:
        words: How far it is, ``""`` for none.
    """

    def __init__(self, page: PageScreen, installed: Callable[[str], Awaitable[None]]) -> None:
        """Prepare.

        Args:
            page: The page; when it closes, the download ends, and what has come is kept.
            installed: Called with a model's name when it is there.
        """
        self.words = ""
        self._page = page
        self._installed = installed
        self._running: Worker[None] | None = None

    def choose(self) -> None:
        """Offer the catalogue; while a download runs, offer to stop it."""
        if self._running is not None:
            self._page.notices.ask(
                f"{self.words}. The download so far is kept.",
                ("stop the download", self._running.cancel),
                ("keep downloading", self._page.notices.clear),
            )
            return
        self._page.work.beside(self._offer, "download")

    async def _offer(self) -> None:
        page = self._page
        models = {model.name: model for model in await asyncio.to_thread(downloadable)}
        if not models:
            page.notices.say("info", "Every model of the catalogue is installed.")
            return
        rows = [
            ListRow(
                name,
                (
                    (f"{name:<20} ", "foreground"),
                    (f"{model.size / 1e6:>6,.0f} MB  ", "foreground"),
                    (f"{model.license}, {', '.join(model.languages)}", "muted"),
                ),
            )
            for name, model in models.items()
        ]

        def chosen(name: str | None) -> None:
            if name is not None:
                page.work.beside(partial(ask, name), "download")

        async def ask(name: str) -> None:
            page.notices.ask(
                visible(await asyncio.to_thread(what_it_takes, models[name])),
                ("download it", lambda: self._begin(name)),
                ("leave it", page.notices.clear),
            )

        picker = PickerScreen(page.services, "Download a model", rows)
        page.services.open_screen(picker, chosen)

    def _begin(self, name: str) -> None:
        self._running = self._page.work.beside(partial(self._download, name), "download")

    async def _download(self, name: str) -> None:
        page = self._page
        self._show(f"downloading {name}")
        try:
            fault = await download_model(
                name, lambda share: self._show(f"downloading {name}, {100 * share:.0f} %")
            )
        except UserError as error:
            self._ended()
            page.notices.say("warning", visible(str(error)))
        except asyncio.CancelledError:
            self._ended()
            said = f"The download of {name} has stopped; what has come is kept."
            page.notices.say("info", said)
            raise
        else:
            self._ended()
            await self._installed(name)
            if fault:
                page.notices.say(
                    "warning", visible(f"{name} is installed, but does not work: {fault}")
                )
            else:
                page.notices.say("info", f"{name} is installed and works.", outcome=True)

    def _show(self, words: str) -> None:
        if words != self.words:
            self.words = words
            self._page.show_all()

    def _ended(self) -> None:
        self._running = None
        self._show("")
