"""The commands of plain mode: each calls the session and reports the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from inspect import isawaitable
from operator import attrgetter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from midstream.actions import HunkCommand, Reason
from midstream.counting import counted
from midstream.editor import edit_text, editor_command
from midstream.edits.hunks import Hunk, HunkState
from midstream.errors import UsageError, UserError
from midstream.pairing.checks.run import UnconfirmedCommandError
from midstream.pairing.request.question import Question
from midstream.pairing.status import SessionState
from midstream.plain import lines
from midstream.plain.conversing import RELATED_S, Conversing
from midstream.plain.model_commands import ModelCommands
from midstream.plain.words import Said, help_lines, lines_of, numbers_of, place_of

if TYPE_CHECKING:
    from midstream.pairing.checks.findings import Finding
    from midstream.pairing.request.target import Candidate
    from midstream.pairing.session import PairingSession

_RUNNING = (SessionState.WAITING, SessionState.STREAMING)
MAX_FILES = 200


class PlainCommands:
    """Carries out the commands.

    Args:
        session: The session.
        say: Prints one line.
        terminal: Whether a user types the lines, so that an editor can take the terminal.
    """

    def __init__(
        self, session: PairingSession, say: Callable[[str], None], *, terminal: bool = False
    ) -> None:
        self._terminal = terminal
        self._typed: tuple[int, list[str]] | None = None
        """The hunk whose new lines are being typed, and those lines."""
        self._session = session
        self._say = say
        self._ids: list[int] = []
        """Hunk ids; a hunk's number is its place here, from 1."""
        self._path: str | None = None
        self._lines: tuple[int, int] | None = None
        self._choices: tuple[Candidate, ...] = ()
        """Places that the last instruction could have meant."""
        self._asked = ""
        """That instruction."""
        self._unsent: tuple[str, ...] = ()
        """Files the user was asked about."""
        model = ModelCommands(session, say)
        self.conversing = conversing = Conversing(session, say, terminal=terminal)
        self._handlers: dict[str, Callable[[str], Awaitable[None]]] = {
            "accept": self._accept,
            "reject": self._reject,
            "edit": self._edit,
            "hunks": self._hunks,
            "show": self._show,
            "diff": self._diff,
            "undo": self._undo,
            "redo": self._redo,
            "commit": self._commit,
            "stop": self._stop,
            "redirect": self._redirect,
            "queue": self._queue,
            "open": self._open,
            "files": self._files,
            "allow": self._allow,
            "do": self._do,
            "help": self._help,
            "model": model.model,
            "effort": model.effort,
            "sent": model.sent,
            "failures": model.failures,
            "continuous": model.continuous,
            "review": model.review,
            "putback": model.put_back,
            "tell": model.tell,
            "check": self._check,
            "places": self._places,
            "mend": self._mend,
            "new": conversing.renew,
            "look": conversing.look,
            "take": self._take,
            "plan": self._plan,
            "next": self._next,
        }

    def is_file(self, name: str) -> bool:
        """Whether a name is a file's."""
        try:
            return (self._session.root / self._session.workspace.relative(name)).is_file()
        except (UserError, ValueError):
            return False

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

    async def do(self, said: Said) -> None:
        """Do what a line asks for.

        Raises:
            UserError: It cannot be done; the sentence says why.
        """
        if self._choices and said.word.name == "do" and said.rest.isdigit():
            await self._choose(int(said.rest))
            return
        word = said.word
        if (handler := self._handlers.get(word.name)) is not None:
            await handler(said.rest)
        elif word.hunks is not None:
            await self._apply(word.hunks, said.rest)

    def wonder(self, error: UserError, said: Said) -> tuple[str, ...]:
        """Remember what an error asks, for the next line to answer; the answers there are."""
        from midstream.pairing.request.mentions import NeedsConsentError
        from midstream.pairing.request.target import TargetUnclearError

        self._choices, self._unsent = (), ()
        if said.word.name == "do":
            self._asked = said.rest
        if isinstance(error, TargetUnclearError):
            self._choices = error.candidates[:9]
        elif isinstance(error, NeedsConsentError):
            self._unsent = error.paths
        return tuple(candidate.label for candidate in self._choices)

    # hunks and their numbers

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

    # words

    async def _apply(self, command: HunkCommand, rest: str) -> None:
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

    async def _accept(self, rest: str) -> None:
        if await self._decide_lines(rest, "", accept=True):
            return
        meant = self._meant(rest)
        flagged = [h for h in meant if self._session.turns.doubts(h)] if rest == "all" else []
        meant = [hunk for hunk in meant if hunk not in flagged]
        if len(meant) == 1:
            await self._session.decisions.accept(meant[0].id)
        elif meant:  # In one step, which one undo takes back.
            await self._session.decisions.accept_all({hunk.id for hunk in meant})
        done = [h for h in meant if h.state is HunkState.ACCEPTED]
        self._decided("Accepted", [str(self.number(hunk.id)) for hunk in done])
        if flagged:
            numbers = ", ".join(str(self.number(hunk.id)) for hunk in flagged)
            self._say(f"Flagged, so each is accepted by its number only: {numbers}.")

    async def _reject(self, rest: str) -> None:
        number, _, why = rest.partition(" ")
        if await self._decide_lines(number, why.strip(), accept=False):
            return
        done: list[str] = []
        everything = number == "all"
        for hunk in self._session.hunks.waiting() if everything else self._meant(number):
            if await self._session.decisions.reject(hunk.id, why.strip()):
                done.append(str(self.number(hunk.id)))
        self._decided("Rejected", done)

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
            verb = "Accepted" if accept else "Rejected"
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

    async def _edit(self, rest: str) -> None:
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

    def _decided(self, verb: str, done: list[str]) -> None:
        waiting = counted(len(self._session.hunks.waiting()), "hunk")
        if done:
            self._say(f"{verb} {', '.join(done)}; {waiting} to decide.")
        else:
            self._say(f"Nothing was {verb.lower()}; {waiting} to decide.")

    async def _undo(self, _: str) -> None:
        await self._travel(self._session.decisions.undo, "Nothing to undo.")

    async def _redo(self, _: str) -> None:
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

    async def _hunks(self, _: str) -> None:
        waiting = self._session.hunks.waiting()
        for hunk in waiting:
            self._say(lines.headline(self.number(hunk.id), hunk))
        if not waiting:
            self._say("No undecided hunks.")

    async def _show(self, rest: str) -> None:
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

    async def _diff(self, _: str) -> None:
        waiting = False
        for proposal in self._session.files.values():
            for line in lines.patch(proposal, self._session.hunks):
                waiting = True
                self._say(line)
        if not waiting:
            self._say("No undecided hunks.")

    async def _commit(self, rest: str) -> None:
        """Commit the accepted changes of this and earlier sessions, with what is staged."""
        commit = self._session.commit
        changes = await commit.look()
        if changes.trouble:
            raise UserError(changes.trouble)
        if not changes.stageable and not changes.staged:
            raise UsageError("Nothing that was accepted is left to commit.")
        message = rest.strip('"') or commit.message(self._session.turns)
        if not message:
            raise UsageError('Say what changed: commit "MESSAGE".')
        if changes.stageable:
            await commit.stage(*changes.stageable)
        try:
            done = await commit.commit(message)
        except UserError as error:
            for line in str(getattr(error, "output", "")).splitlines():
                self._say(line)
            raise
        where = f" on {changes.branch}" if changes.branch else ""
        self._say(f"Committed {done[:8]}{where}: {message.splitlines()[0]}")

    async def _files(self, _: str) -> None:
        files = await asyncio.to_thread(self._session.workspace.files)
        for path in files[:MAX_FILES]:
            self._say(path)
        if len(files) > MAX_FILES:
            self._say(f"and {len(files) - MAX_FILES:,} more.")

    async def _open(self, rest: str) -> None:
        name, span = place_of(rest)
        proposal = await self._session.files.open(name)
        self._path, self._lines = proposal.path, span
        length = counted(len(proposal.base.lines), "line")
        where = "" if span is None else f", lines {span[0] + 1} to {span[1]}"
        self._say(f"The next instruction is about {proposal.path}{where or f', {length}'}.")

    async def _stop(self, _: str) -> None:
        if self._session.status.state in _RUNNING:
            await self._session.turns.stop()
        elif self._session.chat.busy:
            await self._session.chat.stop()
        else:
            self._say("Nothing is running.")

    async def _redirect(self, rest: str) -> None:
        await self._session.turns.redirect(rest)

    async def _queue(self, rest: str) -> None:
        self._session.turns.queue(rest)
        self._say(f"{counted(len(self._session.turns.queued), 'instruction')} in the queue.")

    async def _allow(self, _: str) -> None:
        if not self._unsent:
            raise UsageError("There is no file to allow.")
        self._session.turns.allow(*self._unsent)
        self._unsent = ()
        await self._do(self._asked)

    async def _do(self, rest: str) -> None:
        from midstream.pairing.request.kinds import question_of

        if question := question_of(rest):
            await self.conversing.ask(Question(question, self._path, None, self._lines))
        else:
            await self._instruct(rest, self._lines)

    async def _plan(self, rest: str) -> None:
        if wish := await self.conversing.plan(rest):
            await self.conversing.ask(Question(wish, self._path, None, self._lines), plan=True)

    async def _next(self, _: str) -> None:
        step = self._session.chat.steps.next
        if not step:
            raise UsageError(
                "No step of the plan is left to carry out; plan TEXT makes a new plan."
            )
        self._say(f"Next: {step}")
        self._asked = step
        await self._instruct(step, self._lines)

    async def _take(self, rest: str) -> None:
        await self.conversing.take(rest, self._path)

    async def _instruct(self, text: str, selection: tuple[int, int] | None) -> None:
        turns = self._session.turns
        running = self._session.status.state in _RUNNING
        question = Question(text, self._path, None, selection)
        send = turns.redirect_or_instruct if running else turns.instruct
        server = self._session.server
        told = not running and server.model_name and server.model_info.is_chat
        if told:
            await turns.look_around(question, seconds=RELATED_S)
        turn = await send(question)
        if told:
            self._say(f"Sending {turns.context.budget}.")
        if turn.redirected_from is None:
            self._choices = ()
            self._path, self._lines = turn.path, None

    async def _choose(self, number: int) -> None:
        """Send the last instruction again, for one of the places it may mean."""
        if not 1 <= number <= len(self._choices):
            raise UsageError(f"Type a number from 1 to {len(self._choices)} or a new instruction.")
        candidate = self._choices[number - 1]
        path = candidate.path or self._path or ""
        proposal = await self._session.files.open(path)
        lines = candidate.locate(proposal.composed().lines, proposal.path)
        if lines is None:
            raise UsageError(
                f"There is no {candidate.name} in {path}; open the lines and ask again."
            )
        self._path = proposal.path
        await self._instruct(self._asked, lines)

    async def _check(self, rest: str) -> None:
        """Run the project's tests, or stop them."""
        check, words = self._session.check, rest.split()
        if rest == "stop":
            if not check.running:
                raise UsageError("No test command is running.")
            await check.stop()
            return
        try:
            await check.start(confirmed="yes" in words, proposed="proposed" in words)
        except UnconfirmedCommandError as error:
            confirming = " ".join(["check", *words, "yes"])
            raise UsageError(f"{error.problem}; {confirming} runs it here.") from None
        if check.running:
            self._say(f"{check.title} is running; check stop ends it.")

    async def _places(self, rest: str) -> None:
        """List the places that the tests found, or show what was printed about one."""
        check = self._session.check
        if rest:
            finding = self._finding(rest)
            for line in (finding.place, finding.message, *check.around(finding)):
                self._say(line)
            return
        self._say(f"{check.title or 'The tests'}: {check.summary}.")
        for number, finding in enumerate(check.findings, 1):
            self._say(f"{number}  {finding.place}: {finding.message}")

    async def _mend(self, rest: str) -> None:
        """Ask the model to fix what failed at a place."""
        session, finding = self._session, self._finding(rest)
        text = session.mending(finding)
        turn = await session.turns.instruct(Question(text, finding.path, finding.line))
        self._path, self._lines = turn.path, None

    def _finding(self, number: str) -> Finding:
        """The place with a number.

        Raises:
            UsageError: There is none.
        """
        findings = self._session.check.findings
        if not 1 <= int(number) <= len(findings):
            raise UsageError(f"There is no place {number}; places lists them.")
        return findings[int(number) - 1]

    async def _help(self, _: str) -> None:
        self._say("Type an instruction for the model, or a command:")
        for line in help_lines():
            self._say(line)
        self._say("While the model writes, an instruction redirects it; Ctrl+C stops it.")
