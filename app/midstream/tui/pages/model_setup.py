"""Setting up a larger model on the models page: whatever the user already has is one key away.

A key found in the environment, an engine on this machine, a download, or a pasted address. A key
is checked before it is kept, and what will be sent where is said before a model is taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from midstream.errors import UnavailableError, UserError
from midstream.pairing.models.choosing import ModelChoice, listed_choice, of_folder
from midstream.pairing.models.disclosures import what_is_sent
from midstream.pairing.models.setup import (
    hosted_apis,
    keep_key,
    keys_found,
    models_at,
    named,
    pasted,
)
from midstream.responses.catalogue import KeyRefusedError, ListedModel, NoListError
from midstream.responses.profiles import Profile
from midstream.tui.notices import Choice
from midstream.tui.pages.picker import PickerScreen
from midstream.tui.visible import visible
from midstream.tui.widgets.key_bar import KeyHint
from midstream.tui.widgets.row_list import ListRow

if TYPE_CHECKING:
    from midstream.tui.pages.page import PageScreen

_MAX_KEYS: Final = 5
"""How many keys are offered, so that the other ways have a number too."""

Take = Callable[[ModelChoice, str], Awaitable[None]]


class ModelSetup:
    """One way at a time to an endpoint that was not used before.

    Args:
        page: The page that asks.
        find_engines: Asks this machine for its engines; returns their models.
        download: Offers the published models.
        take: Uses and keeps a model; gets a sentence about its key.
        add: Keeps an endpoint whose models are not known yet, without using it.
    """

    def __init__(
        self,
        page: PageScreen,
        *,
        find_engines: Callable[[], Awaitable[Sequence[ModelChoice]]],
        download: Callable[[], None],
        take: Take,
        add: Callable[[Profile], Awaitable[None]],
    ) -> None:
        self._page = page
        self._find_engines = find_engines
        self._download = download
        self._take = take
        self._add = add
        self._given: Callable[[str], None] = lambda _: None

    def begin(self) -> None:
        """Ask which way."""
        ways: list[Choice] = [
            (f"{profile.key_env} for {_host(profile)}", lambda one=profile: self._try(one))
            for profile in keys_found(self._page.services.settings)[:_MAX_KEYS]
        ]
        ways += [
            ("a hosted API and its key", self._hosted),
            ("an engine on this machine", self._engines),
            ("download a model", self._download),
            ("paste an address or a folder", self._paste),
        ]
        self._page.notices.ask("Set up a larger model with:", *ways)

    def complete(self, profile: Profile) -> None:
        """Ask for what a configured endpoint lacks: its key, its model, or both."""
        if not profile.name:
            profile = named(profile, self._page.services.settings)
        if profile.has_key() is False:
            self._ask_key(profile, f"{profile.key_env} is not set; type the key.")
        else:
            self._try(profile)

    def give(self, text: str) -> None:
        """Take what was typed into the page's field."""
        self._page.leave_entry()
        if text.strip():
            self._given(text.strip())

    # the ways

    def _engines(self) -> None:
        async def work() -> None:
            choices = {choice.id: choice for choice in await self._find_engines()}
            if not choices:
                return
            rows = [
                ListRow(
                    choice.id,
                    ((f"{visible(choice.name)} ", "foreground"), (choice.endpoint, "muted")),
                )
                for choice in choices.values()
            ]

            def chosen(choice_id: str | None) -> None:
                if choice_id is not None:
                    self._run(lambda: self._take(choices[choice_id], ""))

            self._pick("Engines on this machine", rows, "", chosen)

        self._run(work)

    def _hosted(self) -> None:
        profiles = {each.name: each for each in hosted_apis(self._page.services.settings)}
        rows = [
            ListRow(
                name,
                ((f"{name:<12}", "foreground"), (_host(each), "muted")),
                ((f"  {each.key_env}", "muted"),),
            )
            for name, each in profiles.items()
        ]

        def chosen(name: str | None) -> None:
            if name is None:
                return
            profile = profiles[name]
            if profile.has_key():
                self._try(profile)
            else:
                self._ask_key(profile)

        self._page.notices.clear()
        self._pick("Hosted APIs", rows, "", chosen)

    def _paste(self) -> None:
        async def take(text: str) -> None:
            try:
                if (folder := await asyncio.to_thread(of_folder, text)) is not None:
                    await self._take(folder, "")
                    return
                profile = pasted(text, self._page.services.settings)
            except UserError as error:
                self._page.notices.say("warning", visible(str(error)))
                return
            if profile.dialect.hosted and not profile.has_key():
                self._ask_key(profile)
            else:
                self._try(profile)

        self._ask(
            "Address",
            "https://HOST/v1, a host, or the path of a model folder",
            lambda text: self._run(lambda: take(text)),
        )

    def _ask_key(self, profile: Profile, why: str = "") -> None:
        self._ask(
            f"Key for {_host(profile)}",
            "it is checked, and not shown",
            lambda key: self._try(profile, key),
            secret=True,
        )
        if why:
            self._page.notices.say("warning", visible(why))

    def _try(self, profile: Profile, key: str = "") -> None:
        """Ask an endpoint for its models; a key that it refuses is asked for again."""
        page = self._page

        async def work() -> None:
            nameless = "" if profile.model else f"{profile.name} has no model yet"
            words = f"{nameless}; asking" if nameless else "Asking"
            page.notices.say("info", f"{words} {_host(profile)} for its models.")
            own = profile
            if not key and profile.has_key() is False:
                # It may need none: the conventional variable is only where a key would be.
                own = replace(profile, key_env=None)
            try:
                models = await asyncio.to_thread(models_at, own, key)
            except KeyRefusedError as error:
                sent = bool(key or own.has_key())
                self._ask_key(profile, f"{error.problem}; type {'another' if sent else 'it'}.")
                return
            except NoListError as error:
                if not own.model:
                    page.notices.say(
                        "info", f"{error.problem}: it lists no models; type the name of one."
                    )
                    self._ask("Model", "as the server calls it", lambda name: called(own, name))
                    return
                models = ()
            except UnavailableError as error:
                if not key:
                    said = [visible(str(error)), nameless and f"{nameless}."]
                    page.notices.say("warning", " ".join(filter(None, said)))
                    return
                page.notices.ask(
                    f"{visible(str(error))} The key is not checked.",
                    ("keep it unchecked", lambda: self._run(lambda: self._keep_later(own, key))),
                    ("try again", lambda: self._try(profile, key)),
                    ("forget it", page.notices.clear),
                )
                return
            if own.model:
                same = ListedModel(own.model, own.context, own.price)
                await self._keep(own, same, key)
            elif models:
                self._choose(own, models, key)
            else:
                page.notices.say("warning", f"{_host(profile)} has no model that writes text.")

        def called(own: Profile, name: str) -> None:
            self._choose(own, (ListedModel(name),), key)

        self._run(work)

    def _choose(self, profile: Profile, models: Sequence[ListedModel], key: str) -> None:
        """Offer an endpoint's models; taking one keeps the endpoint, and its key if one came."""
        listed = {model.id: model for model in models}

        def chosen(name: str | None) -> None:
            if name is not None:
                self._run(lambda: self._keep(profile, listed[name], key))

        rows = [ListRow(name, ((visible(name), "foreground"),)) for name in listed]
        self._page.notices.clear()
        note = "" if profile.loopback else what_is_sent(profile.url)
        self._pick(f"Models of {_host(profile)}", rows, note, chosen)

    async def _keep(self, profile: Profile, model: ListedModel, key: str) -> None:
        """Use a model from now on, and keep its key if one was typed."""
        said = ""
        if key:
            profile, said = await asyncio.to_thread(keep_key, profile, key)
        await self._take(listed_choice(profile, model, group=profile.name), said)

    async def _keep_later(self, profile: Profile, key: str) -> None:
        """Keep an endpoint and its key, although the key could not be checked."""
        profile, said = await asyncio.to_thread(keep_key, profile, key)
        await self._add(profile)
        choose = self._page.services.key_for(self._page.CHOOSE)
        self._page.notices.say(
            "warning",
            f"{said} It is not checked yet: {choose} on {profile.name} asks for its models.",
        )

    # asking

    def _pick(
        self, title: str, rows: Sequence[ListRow], note: str, chosen: Callable[[str | None], None]
    ) -> None:
        services = self._page.services
        services.open_screen(PickerScreen(services, title, rows, note=note), chosen)

    def _ask(
        self, label: str, placeholder: str, given: Callable[[str], None], *, secret: bool = False
    ) -> None:
        self._given = given
        self._page.notices.clear()
        hints = (KeyHint("enter", "next"),)
        self._page.entry.open("", label=label, placeholder=placeholder, hints=hints, secret=secret)
        self._page.show_keys()

    def _run(self, work: Callable[[], Awaitable[object]]) -> None:
        self._page.work.run(work)


def _host(profile: Profile) -> str:
    return urlsplit(profile.url).hostname or profile.url
