"""Commands of plain mode about the model and its surroundings: choice, effort, what was sent.

Each reports its result.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from getpass import getpass
from typing import TYPE_CHECKING, Final

from midstream.counting import counted
from midstream.errors import UsageError
from midstream.guard.secrets import mask_text
from midstream.pairing.guard import switch_in_words
from midstream.pairing.models.choosing import (
    ModelChoice,
    chosen_id,
    efforts_of,
    model_choices,
    with_choice,
)
from midstream.pairing.models.disclosures import note_disclosed, what_is_sent
from midstream.pairing.models.lists import kept_lists
from midstream.pairing.models.setup import keep_key, models_at, named
from midstream.pairing.review.feedback import NOTHING_TO_TELL
from midstream.responses.catalogue import NoListError
from midstream.workspace.paths import shown

if TYPE_CHECKING:
    from midstream.pairing.session import PairingSession

_STATE: Final = {True: "on", False: "off"}


class ModelCommands:
    """Carries them out.

    Args:
        session: The session.
        say: Prints one line.
        terminal: Whether a user types the lines, and can type a key.
    """

    def __init__(
        self, session: PairingSession, say: Callable[[str], None], *, terminal: bool = False
    ) -> None:
        self._session = session
        self._say = say
        self._terminal = terminal

    async def model(self, rest: str) -> None:
        """List the models, or use one from the next instruction on.

        Raises:
            UserError: There is no such model, or its key is missing or refused.
        """
        settings = self._session.server.settings
        lists = await asyncio.to_thread(kept_lists)
        choices = await asyncio.to_thread(model_choices, settings, lists=lists)
        if not rest:
            used = chosen_id(settings)
            for choice in choices:
                self._say(_told(choice, used=choice.id == used))
            self._say("model NAME uses one from the next instruction on.")
            return
        choice = _named(choices, rest)
        if choice.key == "missing":
            choice = await self._with_key(choice)
        self._session.use_model(with_choice(settings, choice))
        self._say(f"{choice.name} answers from the next instruction on.")
        profile = choice.profile
        if profile is not None and not profile.loopback:
            await asyncio.to_thread(note_disclosed, profile.url)
            self._say(what_is_sent(profile.url))

    async def _with_key(self, choice: ModelChoice) -> ModelChoice:
        """A model with the key that is typed for its endpoint, which is checked before it is kept.

        Raises:
            UsageError: There is no terminal to type it at, or nothing was typed.
            UnavailableError: The endpoint refuses it, or does not answer.
        """
        profile, missing = choice.profile, f"{choice.key_name} is not set"
        if profile is None or not self._terminal:
            raise UsageError(
                f"{missing}, and {choice.endpoint} needs its key from there; export it before you "
                "start, or choose the model at a terminal, which asks for the key."
            )
        if not profile.name:
            profile = named(profile, self._session.server.settings)
        self._say(f"{missing}; type the key of {choice.endpoint}. It is checked, and not shown.")
        key = (await asyncio.to_thread(getpass, "Key, or Enter to leave it: ")).strip()
        if not key:
            raise UsageError("No key was typed; the model stays as it is.")
        with contextlib.suppress(NoListError):  # then the first answer shows whether it is good
            await asyncio.to_thread(models_at, profile, key)
        profile, said = await asyncio.to_thread(keep_key, profile, key)
        self._say(said)
        return replace(choice, profile=profile, key="set")

    async def effort(self, rest: str) -> None:
        """Show or set the effort per answer.

        Raises:
            UsageError: The model has no such level.
        """
        turns, levels = self._session.turns, efforts_of(self._session.server.profile)
        if rest and rest not in levels:
            raise UsageError(f"There is no effort {rest} here; there are {', '.join(levels)}.")
        if rest:
            turns.effort = rest
            self._say(f"Effort {rest} from the next instruction on.")
        else:
            self._say(f"Effort {turns.effort}; there are {', '.join(levels)}.")

    async def sent(self, rest: str) -> None:
        """Show the pieces of the last request and what was left out; ``sent text``: every word."""
        sent = next(iter(self._session.sent), None)
        if sent is None:
            self._say("Nothing has been sent yet.")
            return
        self._say(f"{sent.kind.capitalize()} to {sent.recipient}: {sent.said}")
        for part in sent.parts:
            if rest != "text":
                facts = ", ".join(filter(None, (f"~{part.tokens:,} tokens", part.facts)))
                self._say(f"{'  ' * part.inside}{part.name}: {facts}")
            elif not part.inside:
                self._say(f"{part.name}:")
                for line in mask_text(part.text).split("\n"):
                    self._say(f"  {line}")
        self._say(f"Together ~{sent.tokens:,} tokens, estimated from its length.")
        for each in sent.context.left_out:
            self._say(f"Left out: {each}")

    async def failures(self, _: str) -> None:
        """Show the edits of this session that did not match their file, and why."""
        turns = [turn for turn in self._session.turns if turn.failures]
        if not turns:
            self._say("Every edit of this session matched its file.")
        for turn in reversed(turns):
            self._say(f"{shown(turn.path)}: {turn.instruction}")
            for number, failure in enumerate(turn.failures, 1):
                first, *rest = failure.split("\n")
                self._say(f"{number}  {first}")
                for line in filter(None, rest):
                    self._say(f"   {line}")

    async def guard(self, rest: str) -> None:
        """Switch the guard off for a file until the session ends, or on again."""
        session = self._session
        proposal = await session.files.open(rest)
        self._say(switch_in_words(session.guard, session.files, proposal.path))

    async def continuous(self, rest: str) -> None:
        """Ask for follow-on edits whenever a change is saved, or stop that."""
        background = self._session.background
        on = not background.continuous if not rest else rest == "on"
        await background.set_continuous(on=on)
        self._say(
            "From now on, saving a change asks for follow-on edits."
            if on
            else "Continuous mode is off."
        )

    async def review(self, rest: str) -> None:
        """Have what other programs write wait for decisions, or stop that."""
        review = self._session.review
        if review.aside and rest != "off":
            self._say(await review.look())
            return
        on = not review.on if not rest else rest == "on"
        if on == review.on:
            self._say(f"The review of what other programs write is {_STATE[on]} already.")
        elif on:
            await review.switch_on(since_commit=False)
            self._say("Changes by other programs now wait for your decision.")
        else:
            review.switch_off()
            self._say("New changes by other programs are no longer reviewed.")

    async def put_back(self, _: str) -> None:
        """Put back at once what waits until another program has stopped writing."""
        session = self._session
        if not session.hunks.postponed():
            self._say("No hunk is waiting to be put back.")
        elif count := await session.decisions.put_backs.apply():
            self._say(f"{counted(count, 'hunk')} put back; undo takes it back.")

    async def tell(self, _: str) -> None:
        """Print the message for the agent about what was put back, or let its hooks tell it."""
        feedback = self._session.feedback
        if not feedback.waiting:
            self._say(NOTHING_TO_TELL)
        elif self._session.gate.heard:
            feedback.approve()
            self._say("The agent will be told with its next edit, or when it wants to stop.")
        else:
            for line in feedback.tell().splitlines():
                self._say(line)


def _told(choice: ModelChoice, *, used: bool) -> str:
    """One model as a line."""
    facts = [
        "on this machine" if choice.here else choice.endpoint,
        f"{choice.context:,} tokens" if choice.context else "",
        f"{choice.key_name} is not set" if choice.key == "missing" else "",
        "in use" if used else "",
    ]
    return f"{choice.name}: {', '.join(filter(None, facts))}"


def _named(choices: list[ModelChoice], name: str) -> ModelChoice:
    """The model that a name means.

    Raises:
        UsageError: None or several have it.
    """
    exact = [c for c in choices if name in (c.name, c.endpoint, f"{c.endpoint}/{c.name}")]
    found = exact or [c for c in choices if c.name.startswith(name)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"There is no model {name}; model lists them.")
    among = ", ".join(f"{choice.endpoint}/{choice.name}" for choice in found)
    raise UsageError(f"{name} may be one of {among}; name one of these.")
