"""Commands of plain mode on hunks: read and decide them, by their numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from inspect import isawaitable
from operator import attrgetter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from midstream.actions import HunkCommand, Reason
from midstream.counting import counted
from midstream.editor import edit_text, editor_command
from midstream.edits.external import outcome
from midstream.edits.hunks import Hunk, HunkState
from midstream.errors import UsageError
from midstream.plain import lines
from midstream.plain.words import lines_of, numbers_of, place_of

if TYPE_CHECKING:
    from midstream.pairing.session import PairingSession


class HunkCommands:
    """Carries them out.

    Args:
        session: The session.
        say: Prints one line.
        terminal: Whether a user types the lines, so that an editor can take the terminal.
    """

    def __init__(
        self, session: PairingSession, say: Callable[[str], None], *, terminal: bool
    ) -> None:
        self._session = session
        self._say = say
        self._terminal = terminal
        self._typed: tuple[int, list[str]] | None = None
        """The hunk whose new lines are being typed, and those lines."""
        self._ids: list[int] = []
        """Hunk ids; a hunk's number is its place here, from 1."""

    def settled(self, hunk_id: int) -> Iterator[str]:
        """A hunk has settled: its lines."""
        hunk = self._session.hunks.get(hunk_id)
        if hunk.live:
            yield from lines.hunk_lines(self.number(hunk_id), hunk)

    def left_over(self, path: str) -> Iterator[str]:
        """Hunks of a file that wait and were not told yet."""
        for hunk in self._session.hunks.undecided(path):
            if hunk.id not in self._ids:
                yield from self.settled(hunk.id)

    def number(self, hunk_id: int) -> int:
        """The number of a hunk, from now on."""
        if hunk_id not in self._ids:
            self._ids.append(hunk_id)
        return self._ids.index(hunk_id) + 1

    def _hunk(self, number: int) -> Hunk:
        if not 1 <= number <= len(self._ids):
            raise UsageError(f"There is no hunk {number}; hunks lists the undecided ones.")
        return self._session.hunks.get(self._ids[number - 1])

    def _meant(self, rest: str) -> list[Hunk]:
        """The hunks a command names; without a number, the only undecided one."""
        waiting = self._session.hunks.undecided()
        if rest == "all":
            return waiting
        if rest:
            return [self._hunk(number) for number in numbers_of(rest)]
        if len(waiting) != 1:
            raise UsageError(f"{counted(len(waiting), 'hunk')} to decide; name one, or all.")
        return waiting

    async def apply(self, command: HunkCommand, rest: str) -> None:
        """Carry out an action on hunks that needs nothing special here."""
        number, why = rest, ""
        if command.reason is not Reason.NONE:
            number, _, why = rest.partition(" ")
        method = attrgetter(command.method)(self._session)
        for hunk in self._meant(number):
            result = method(hunk.id, why.strip()) if why else method(hunk.id)
            if isawaitable(result):
                await result
            self._say(f"{lines.headline(self.number(hunk.id), hunk)}.")

    async def accept(self, rest: str) -> None:
        """Accept hunks, or lines of one."""
        if await self._decide_lines(rest, "", accept=True):
            return
        meant = self._meant(rest)
        flagged = [h for h in meant if self._session.reason(h)] if rest == "all" else []
        meant = [hunk for hunk in meant if hunk not in flagged]
        if len(meant) == 1:
            await self._session.decisions.accept(meant[0].id)
        elif meant:  # In one step, so one undo takes it back.
            await self._session.decisions.accept_all({hunk.id for hunk in meant})
        done = [h for h in meant if h.state is HunkState.ACCEPTED]
        self._decided(done, accept=True)
        if flagged:
            numbers = ", ".join(str(self.number(hunk.id)) for hunk in flagged)
            self._say(f"Flagged, so each is accepted by its number only: {numbers}.")

    async def reject(self, rest: str) -> None:
        """Reject hunks, or lines of one."""
        number, _, why = rest.partition(" ")
        if await self._decide_lines(number, why.strip(), accept=False):
            return
        done: list[Hunk] = []
        everything = number == "all"
        for hunk in self._session.hunks.waiting() if everything else self._meant(number):
            if await self._session.decisions.reject(hunk.id, why.strip()):
                done.append(hunk)
        self._decided(done, accept=False)

    async def _decide_lines(self, rest: str, why: str, *, accept: bool) -> bool:
        """Decide some lines of a hunk, if the command names lines; returns whether it does."""
        asked = lines_of(rest)
        if asked is None:
            return False
        number, first, last = asked
        hunk = self._open_hunk(number)
        size = hunk.deleted + hunk.added
        if not 1 <= first <= last <= size:
            raise UsageError(f"Hunk {number} has lines 1 to {size}; show {number} numbers them.")
        path = hunk.path
        if await self._session.decisions.decide_lines(hunk.id, first - 1, last, accept, why):
            which = f"line {first}" if first == last else f"lines {first} to {last}"
            verb = outcome([hunk], accept=accept).capitalize()
            waiting = counted(len(self._session.hunks.waiting()), "hunk")
            self._say(f"{verb} {which} of hunk {number}; {waiting} to decide.")
            for line in self.left_over(path):
                self._say(line)
        return True

    def _open_hunk(self, number: int) -> Hunk:
        hunk = self._hunk(number)
        if hunk.state is not HunkState.SETTLED:
            raise UsageError(f"{lines.headline(number, hunk)}; only undecided ones can change.")
        return hunk

    @property
    def takes_text(self) -> bool:
        """Whether the next line is text of a hunk, whatever it says."""
        return self._typed is not None

    async def take_text(self, line: str) -> None:
        """Take a line of a hunk's new text; a single dot ends it.

        Raises:
            UserError: The text cannot be given to the hunk.
        """
        if self._typed is None:
            return
        number, text = self._typed
        if line != ".":
            text.append("." if line == ".." else line)
            return
        self._typed = None
        await self._change(number, text)

    async def edit(self, rest: str) -> None:
        """Edit the new lines of a hunk."""
        meant = self._meant(rest)
        if len(meant) != 1:
            raise UsageError("Edit one hunk at a time; name its number.")
        number = self.number(meant[0].id)
        hunk = self._open_hunk(number)
        command = editor_command() if self._terminal else None
        if command is None:
            self._typed = (number, [])
            self._say(
                f"Type the new lines of hunk {number}, then a single dot; for a line with one dot, "
                "type two."
            )
            return
        name = f"hunk{PurePosixPath(hunk.path).suffix}"
        before = "".join(f"{line}\n" for line in hunk.new)
        text = await asyncio.to_thread(edit_text, command, before, name)
        if text is None:
            self._say(f"The editor failed; hunk {number} stays as it is.")
        else:
            await self._change(number, text.splitlines())

    async def _change(self, number: int, text: list[str]) -> None:
        hunk = self._open_hunk(number)
        if tuple(text) == hunk.new:
            self._say(f"Hunk {number} stays as it is.")
        elif await self._session.decisions.edit(hunk.id, text):
            for line in lines.hunk_lines(number, self._hunk(number)):
                self._say(line)

    def _decided(self, done: Sequence[Hunk], *, accept: bool) -> None:
        waiting = counted(len(self._session.hunks.waiting()), "hunk")
        verb = outcome(done, accept=accept)
        if done:
            numbers = ", ".join(str(self.number(hunk.id)) for hunk in done)
            self._say(f"{verb.capitalize()} {numbers}; {waiting} to decide.")
        else:
            self._say(f"Nothing was {verb}; {waiting} to decide.")

    async def undo(self, _: str) -> None:
        """Undo the last decision."""
        await self._travel(self._session.decisions.undo, "Nothing to undo.")

    async def redo(self, _: str) -> None:
        """Redo the decision that was undone."""
        await self._travel(self._session.decisions.redo, "Nothing to redo.")

    async def _travel(self, move: Callable[[], Awaitable[tuple[int, ...]]], nothing: str) -> None:
        told = len(self._session.status.notices)
        ids = await move()
        for hunk_id in ids:
            hunk = self._session.hunks.get(hunk_id)
            if hunk.state is not HunkState.SUPERSEDED:
                self._say(f"{lines.headline(self.number(hunk_id), hunk)}.")
        if not ids and len(self._session.status.notices) == told:
            self._say(nothing)

    async def hunks(self, _: str) -> None:
        """List the undecided hunks."""
        waiting = self._session.hunks.waiting()
        for hunk in waiting:
            why = "" if hunk.note else self._session.reason(hunk)
            flag = f", flagged: {why}" if why else ""
            self._say(f"{lines.headline(self.number(hunk.id), hunk)}{flag}")
        if not waiting:
            self._say("No undecided hunks.")

    async def show(self, rest: str) -> None:
        """Print hunks, or lines of a file."""
        if rest.isdigit() or not rest:
            for hunk in self._meant(rest) if rest else self._session.hunks.undecided():
                for line in lines.numbered_hunk_lines(self.number(hunk.id), hunk):
                    self._say(line)
            return
        name, span = place_of(rest)
        text = (await self._session.files.open(name)).composed().lines
        start, stop = span or (0, len(text))
        for line in lines.numbered(text[start:stop], start):
            self._say(line)

    async def diff(self, _: str) -> None:
        """Print the undecided hunks as a patch."""
        waiting = False
        for proposal in self._session.files.values():
            for line in lines.patch(proposal, self._session.hunks):
                waiting = True
                self._say(line)
        if not waiting:
            self._say("No undecided hunks.")
