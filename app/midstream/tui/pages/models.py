"""The models page: installed folders, endpoints and their models, prices, and switching.

``pairing.models.choosing`` says which models there are and what choosing one means. Endpoints are
asked for their lists only on request; their last answer is shown at once.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on

from midstream.actions import Place
from midstream.agents.catalogue import KnownAgent, known_agents
from midstream.pairing.models.choosing import (
    ModelChoice,
    advice,
    chosen_id,
    keep_choice,
    keep_endpoint,
    model_choices,
    with_choice,
)
from midstream.pairing.models.disclosures import is_unconfigured, note_disclosed
from midstream.pairing.models.lists import Lists, ask_everybody, found_engines, kept_lists
from midstream.pairing.models.setup import hosted_apis, is_typed, keys_found
from midstream.pairing.trial.kept import KeptTrial, kept_trials, trial_key
from midstream.tui.keymap import page_bindings
from midstream.tui.pages.model_downloads import ModelDownloads
from midstream.tui.pages.model_setup import ModelSetup
from midstream.tui.pages.page import PageScreen, fitted
from midstream.tui.services import AppServices
from midstream.tui.visible import visible
from midstream.tui.widgets.fields import EntryRow
from midstream.tui.widgets.row_list import ListRow, Piece

if TYPE_CHECKING:
    from midstream.pairing.session import PairingSession
    from midstream.responses.profiles import Profile

_AGENT = "agent "
"""Begins the ids of agents in the list."""
NAMED_APIS = 2
"""Hosted APIs that are named while none is set up."""
_EDITS = {
    "region": "rewrite",
    "v4a": "patch",
    "search-replace": "replace",
    "auto": "",
}
"""Names of edit formats on this page; other formats appear under their own names."""
_NARROW_LIST = 66
"""Width of the list in columns below which only the details name the edit format."""


class ModelsScreen(PageScreen):
    """Choose the model."""

    PAGE = Place.MODELS
    TITLE_WORDS = "Models"
    CHOOSE = "models.use"
    BINDINGS: ClassVar = page_bindings(Place.MODELS)

    def __init__(self, services: AppServices, session: PairingSession) -> None:
        super().__init__(services)
        self.session = session
        self.choices: list[ModelChoice] = []
        self.trials: dict[str, KeptTrial] = {}
        self.read = False
        self.asking = False
        self.downloads = ModelDownloads(self, self._installed)
        self.setup = ModelSetup(
            self,
            find_engines=self._engines,
            download=self.downloads.choose,
            take=self._take,
            add=self._add,
        )

    def on_mount(self) -> None:
        super().on_mount()
        self.work.run(self._read)

    async def _read(self) -> None:
        self.trials = await asyncio.to_thread(kept_trials)
        await self._find(await asyncio.to_thread(kept_lists))
        self.list.show(self.list.rows, select=self.used)
        self.show_all()
        if is_unconfigured(self.services.settings) and not self.services.given_endpoint:
            self.setup.begin()

    async def _find(self, lists: Lists) -> None:
        settings = self.services.settings
        self.choices = await asyncio.to_thread(model_choices, settings, os.environ, lists)
        self.read = True
        self.show_all()

    @property
    def used(self) -> str:
        """The id of the model in use."""
        return chosen_id(self.services.settings)

    @property
    def choice(self) -> ModelChoice | None:
        """The model under the cursor."""
        value = self.list.value
        return next((choice for choice in self.choices if choice.id == value), None)

    @property
    def agent(self) -> KnownAgent | None:
        """The coding agent under the cursor."""
        value = self.list.value or ""
        return next((a for a in known_agents() if value == _AGENT + a.name), None)

    @property
    def working_with(self) -> str:
        """Title of the coding agent that is in use instead of a model, or ``""``."""
        return self.session.agent.title

    @property
    def current(self) -> ModelChoice | None:
        """The model in use."""
        return next((choice for choice in self.choices if choice.id == self.used), None)

    # showing

    def show_all(self) -> None:
        if not self.is_mounted:
            return
        current = self.current
        given = self.services.given_endpoint
        name = (
            f"{self.session.server.model_name} at {given}"
            if given
            else current.name
            if current
            else ""
        )
        name = self.working_with or name
        in_use = f"{name} in use" if name else "" if self.read else "looking"
        if current is not None and name == current.name and current.lacking:
            in_use = f"{current.endpoint} is not set up yet"
        self.title_row.show(
            (in_use, "foreground"),
            ("asking the endpoints" if self.asking else "", "muted"),
            (self.downloads.words, "muted"),
            (f"{self.effort} effort" if name and self.effort != "auto" else "", "muted"),
        )
        wide = self.list.size.width >= _NARROW_LIST
        rows: list[ListRow] = []
        for here, heading in ((True, "On this machine"), (False, "Endpoints")):
            group = [choice for choice in self.choices if choice.here is here]
            if rows:
                rows.append(ListRow(None, ()))
                rows.append(ListRow(None, ((f" {heading}", "muted!"),)))
            else:
                rows.append(self._heading(heading, wide))
            above = ""
            for choice in group:
                if choice.group != above:
                    above = choice.group
                    rows.append(ListRow(None, ((f" {visible(above)}", "muted"),)))
                rows.append(self._row(choice, wide))
        if self.read and not any(not choice.here for choice in self.choices):
            key = self.services.key_for("models.new")
            settings = self.services.settings
            if found := keys_found(settings):
                variables = " and ".join(filter(None, (each.key_env for each in found)))
                words = f"   none yet; {variables} {'is' if len(found) == 1 else 'are'} set: {key}"
            else:
                apis = hosted_apis(settings)[:NAMED_APIS]
                words = f"   none yet: {', '.join(each.name for each in apis)} ...; {key}"
            words += " sets one up"
            rows.append(ListRow(None, ((words, "muted"),)))
        rows += [ListRow(None, ()), ListRow(None, ((" Coding agents", "muted!"),))]
        rows += map(self._agent_row, known_agents())
        self.list.show(rows)
        self.show_detail()
        self.show_keys()

    def _agent_row(self, agent: KnownAgent) -> ListRow:
        used = agent.title == self.working_with
        mark = self.glyphs.light if used else " "
        left: tuple[Piece, ...] = (
            (f" {mark} ", "accent"),
            (fitted(agent.title, 22, self.glyphs), "foreground!" if used else "foreground"),
        )
        right = () if agent.installed else (("  not installed", "warning"),)
        return ListRow(_AGENT + agent.name, left, right)

    def _heading(self, words: str, wide: bool) -> ListRow:
        return ListRow(
            None,
            (
                (fitted(f" {words}", 38, self.glyphs), "muted!"),
                (f"{'context':>9}  {'$ in / out':>12}", "muted"),
                ("  edits" if wide else "", "muted"),
            ),
        )

    def _row(self, choice: ModelChoice, wide: bool) -> ListRow:
        used = choice.id == self.used and not (self.services.given_endpoint or self.working_with)
        mark = self.glyphs.light if used else " "
        left: list[Piece] = [
            (f" {mark} ", "accent"),
            (fitted(choice.name, 22, self.glyphs), "foreground!" if used else "foreground"),
            (" " + fitted("" if choice.here else choice.endpoint, 12, self.glyphs), "muted"),
            (f"{_count(choice.context):>9}", "foreground" if choice.context else "muted"),
            (f"  {_price(choice):>12}", "foreground" if choice.price else "muted"),
        ]
        if wide:
            left.append((f"  {_edits(choice)}", "muted"))
        state: Piece = ("  no key", "warning") if choice.key == "missing" else ("", "muted")
        return ListRow(choice.id, tuple(left), (state,) if state[0] else ())

    def show_detail(self) -> None:
        choice, palette = self.choice, self.palette
        text = Text(no_wrap=False, overflow="fold")
        if choice is not None:
            plain = palette.style("foreground")
            if choice.title:
                text.append(f"{visible(choice.title)}\n\n", plain)
            self.tell_facts(text, self._facts(choice), 10)
            waiting = sorted({hunk.path for hunk in self.session.hunks})
            if words := advice(self.services.shown_path, waiting, here=choice.here):
                text.append(f"\n{visible(words)}\n", palette.style("accent"))
        elif (agent := self.agent) is not None:
            self.detail.show(self._about_agent(agent), agent.title)
            return
        self.detail.show(text, "" if choice is None else choice.name)

    def _about_agent(self, agent: KnownAgent) -> Text:
        text = Text(no_wrap=False, overflow="fold")
        text.append(
            "Works on this folder on its own, with a conversation beside the code; you decide "
            "what it writes hunk by hunk.\n\n",
            self.palette.style("foreground"),
        )
        facts: list[tuple[str, str] | tuple[str, str, str]] = [("runs", " ".join(agent.command))]
        if not agent.installed:
            facts.append(("install", agent.install, "warning"))
        facts.append(("log in", f"{agent.login}, in a separate terminal"))
        self.tell_facts(text, facts, 10, commands=("runs", "install"))
        return text

    def _facts(self, choice: ModelChoice) -> list[tuple[str, str] | tuple[str, str, str]]:
        kind = "" if choice.kind == choice.endpoint else f", {choice.kind}"
        facts: list[tuple[str, str] | tuple[str, str, str]] = [
            ("server", "built-in" if choice.here else f"{choice.endpoint}{kind}"),
            ("folder" if choice.here else "address", choice.address),
        ]
        if choice.size:
            facts.append(("size", f"{choice.size / 1e6:,.0f} MB"))
        if trial := self.trials.get(_trial_key(choice)):
            facts.append(("tried", str(trial)))
        if choice.languages:
            facts.append(("languages", ", ".join(choice.languages)))
        facts += [
            ("context", f"{choice.context:,} tokens" if choice.context else "unknown"),
            ("price", _price_words(choice)),
            ("edits as", _edits(choice) or "the server says"),
            ("effort", _effort_words(choice)),
            ("key", _key_words(choice), "warning" if choice.key == "missing" else "foreground"),
        ]
        return facts

    def hidden_hints(self) -> frozenset[str]:
        hidden: set[str] = set()
        if self.choice is None:
            hidden |= {"models.keep", "models.effort"}
            if self.agent is None:
                hidden.add("models.use")
        if self.asking:
            hidden.add("models.ask")
        return frozenset(hidden)

    def hint_words(self) -> dict[str, str]:
        choice = self.choice
        if choice is None or not choice.lacking:
            return {}
        return {"models.use": "type its key" if choice.key == "missing" else "its models"}

    # doing

    @property
    def effort(self) -> str:
        """The effort of the session."""
        return self.session.turns.effort

    def action_ask(self) -> None:
        if self.asking:
            return
        self.asking = True
        self.show_all()
        self.work.beside(self._ask, "ask")

    async def _ask(self, *, here: bool = False) -> Lists:
        try:
            asked = await asyncio.to_thread(ask_everybody, self.services.settings, here=here)
        finally:
            self.asking = False
        chosen = self.list.value
        await self._find(asked.lists)
        self.list.show(self.list.rows, select=chosen)
        self.show_all()
        said = asked.words
        if not asked.found and (here or not asked.troubles):
            key = self.services.key_for("models.new")
            said += f" Start one and press {key} again, or give its address there."
        level = "info" if asked.found and not asked.troubles else "warning"
        self.notices.say(level, visible(said))
        return asked.lists

    async def _engines(self) -> list[ModelChoice]:
        """Ask the engines on this machine; their models."""
        self.asking = True
        self.show_all()
        lists = await self._ask(here=True)
        found = {profile.url for profile, _ in found_engines(self.services.settings, lists)}
        return [choice for choice in self.choices if choice.address in found]

    def action_effort(self) -> None:
        current = self.current
        if current is None:
            return
        levels = current.efforts or ("auto",)
        here = levels.index(self.effort) if self.effort in levels else -1
        self.session.turns.effort = levels[(here + 1) % len(levels)]
        self.show_all()
        self.notices.say("info", f"Effort {self.effort} from the next instruction on.")

    def action_get(self) -> None:
        self.downloads.choose()

    async def _installed(self, name: str) -> None:
        await self._find(await asyncio.to_thread(kept_lists))
        found = (c.id for c in self.choices if c.here and c.name == name)
        self.list.show(self.list.rows, select=next(found, None))
        self.show_all()

    def action_new(self) -> None:
        self.setup.begin()

    @on(EntryRow.Given)
    def _given(self, event: EntryRow.Given) -> None:
        event.stop()
        self.setup.give(event.text)

    @on(EntryRow.Left)
    def _left(self, event: EntryRow.Left) -> None:
        event.stop()
        self.leave_entry()

    def action_use(self) -> None:
        self._use(keep=False)

    def action_keep(self) -> None:
        choice, settings = self.choice, self.services.settings
        if choice is None:
            return
        url = settings.endpoint_url
        if url is not None and (choice.profile is None or choice.profile.name):
            self.notices.ask(
                f"Your file names the address {url} as endpoint.url; keeping {choice.name} takes "
                "that out.",
                ("keep the model", lambda: self._use(keep=True)),
                ("leave the file", self.notices.clear),
            )
        else:
            self._use(keep=True)

    def _use(self, *, keep: bool) -> None:
        choice = self.choice
        if (agent := self.agent) is not None and not keep:
            self._start(agent)
        if choice is None:
            return
        if choice.profile is not None and choice.lacking:
            self.setup.complete(choice.profile)
            return
        again = choice.id == self.used and not (self.services.given_endpoint or self.working_with)
        if again and not keep:
            self.notices.say("info", f"{choice.name} is already in use.")
            return

        self.work.run(lambda: self._switch(choice, keep=keep, again=again))

    def _start(self, agent: KnownAgent) -> None:
        """Have an agent take the model's place."""
        if agent.title == self.working_with:
            self.notices.say("info", f"{agent.title} is already in use.")
        elif not agent.installed:
            self.notices.say(
                "warning", f"{agent.title} is not installed; `{agent.install}` installs it."
            )
        else:
            self.session.agent.launch(agent)
            self.dismiss(None)
            self.services.say(
                "info",
                f"{agent.title} is starting; your messages go to it, and what it writes waits "
                f"for your decisions.",
            )

    async def _take(self, choice: ModelChoice, said: str) -> None:
        """Use and keep a model that was just set up; the page has said what is sent there."""
        profile = choice.profile
        if profile is not None and not profile.loopback:
            await asyncio.to_thread(note_disclosed, profile.url)
        await self._switch(choice, keep=True, said=said)

    async def _add(self, profile: Profile) -> None:
        """Keep an endpoint and list it; it is not used yet."""
        settings = self.services.settings
        await asyncio.to_thread(keep_endpoint, profile)
        self.services.apply(replace(settings, endpoints=(*settings.endpoints, profile)))
        await self._find(await asyncio.to_thread(kept_lists))
        self.list.show(self.list.rows, select=f"endpoint:{profile.name}")
        self.show_all()

    async def _switch(
        self, choice: ModelChoice, *, keep: bool, again: bool = False, said: str = ""
    ) -> None:
        if not self.is_current:  # Keys that were pressed together have left the page.
            return
        if keep:
            await asyncio.to_thread(keep_choice, choice)
        await self.session.agent.end()
        self.services.use_model(with_choice(self.services.settings, choice))
        if again:
            self.dismiss(None)
            self.services.say("info", f"{choice.name} is written to your settings.")
            return
        how = "on this machine" if choice.here else f"at {choice.endpoint}"
        kept = " is written to your settings and" if keep else ""
        running = ""
        if self.services.running:
            running = "; the current answer continues with the previous model"
        self.dismiss(None)
        words = (
            f"{choice.name}{kept} answers from the next instruction on, {how}; files, decisions "
            f"and the conversation stay{running}.",
            said,
        )
        self.services.say("info", " ".join(filter(None, words)))


def _count(tokens: int | None) -> str:
    if tokens is None:
        return "?"
    return f"{tokens / 1000:,.0f}k" if tokens >= 10_000 else f"{tokens:,}"


def _edits(choice: ModelChoice) -> str:
    """How the model writes edits."""
    return _EDITS.get(choice.edit_format or "", choice.edit_format or "")


def _price(choice: ModelChoice) -> str:
    price = choice.price
    if price is None:
        return "?"
    return f"{price.input:g} / {price.output:g}" if price.input or price.output else "free"


def _trial_key(choice: ModelChoice) -> str:
    if choice.profile is None:
        return trial_key(choice.address, "")
    return trial_key(choice.profile.url, choice.profile.model)


def _price_words(choice: ModelChoice) -> str:
    price = choice.price
    if price is None:
        return "unknown"
    if not (price.input or price.output):
        return "free, it runs here"
    cached = f", {price.cached:g} for what is cached" if price.cached != price.input else ""
    return f"${price.input:g} in, ${price.output:g} out per million tokens{cached}"


def _effort_words(choice: ModelChoice) -> str:
    profile = choice.profile
    if profile is not None and not profile.dialect.midstream and not profile.efforts:
        return "unknown; try any level"
    return ", ".join(choice.efforts)


def _key_words(choice: ModelChoice) -> str:
    if choice.profile is not None and is_typed(choice.profile.key_env):
        return "typed, not saved; forgotten when you quit"
    return {
        "set": f"{choice.key_name} is set",
        "missing": f"{choice.key_name} is not set",
        "keyring": f"in the keyring, {choice.key_name}",
    }.get(choice.key, "none needed")
