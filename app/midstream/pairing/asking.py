"""From an instruction to a request: which lines are meant, what goes along, in which format.

Knows files, facts about the model and the words of requests; sends nothing and runs no turn.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from midstream.errors import UserError
from midstream.pairing import requests
from midstream.pairing.ai_comments import without_comments
from midstream.pairing.context import Context, Part, fit, limit_of
from midstream.pairing.generation import Conversation
from midstream.pairing.prompts import block_prompt, context_text
from midstream.pairing.renaming import Renaming, as_proposed, renamed_again
from midstream.pairing.scope.find import (
    Candidate,
    Target,
    TargetUnclearError,
    find_target,
    search_workspace,
)
from midstream.pairing.scope.mentions import (
    AtPath,
    NeedsConsentError,
    find_at_paths,
    without_mentions,
)
from midstream.pairing.sources import Wanted, decisions, gather

if TYPE_CHECKING:
    from midstream.edits.documents import SourceText
    from midstream.edits.hunks import HunkStore
    from midstream.edits.parsing import Parser
    from midstream.edits.proposal import FileProposal
    from midstream.pairing.answer import Answer
    from midstream.pairing.desk import Desk
    from midstream.pairing.link import Link
    from midstream.responses.model_info import ModelInfo
    from midstream.workspace.files import Workspace

_TAKE_OUT = "This was asked in a comment that ends in AI!; take that comment out as well."


@dataclass(frozen=True, slots=True)
class Question:
    """What a person says, and where.

    Attributes:
        text: The instruction.
        path: The file, ``None`` to find it.
        cursor: 0-based line of the cursor.
        selection: 0-based half-open range of lines.
        consume: Whether the AI comments of the region go away with the change.
        background: Whether the session asks by itself.
        words: Whether an answer in words is wanted and no change.
        known: What the lines will be, where that needs no model; ``None`` to ask it.
    """

    text: str
    path: str | None = None
    cursor: int | None = None
    selection: tuple[int, int] | None = None
    consume: bool = False
    background: bool = False
    words: bool = False
    known: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instruction applies.

    Attributes:
        proposal: The file.
        base: Its base text when the place was found.
        model: What was known about the model then.
        target: The lines that are meant; of a whole file where the model finds them.
        by_region: Whether the model rewrites just these lines.
        mentioned: Files named with ``@``.
    """

    proposal: FileProposal
    base: SourceText
    model: ModelInfo
    target: Target
    by_region: bool
    mentioned: tuple[AtPath, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent.

    Attributes:
        conversation: System text and messages.
        edit_format: The format that was asked for.
        context: What goes along.
        tools: Tools that the model may call.
    """

    conversation: Conversation
    edit_format: str
    context: Context
    tools: tuple[Mapping[str, Any], ...] = ()


class AlreadyThereError(UserError):
    """What is to be added is there already; an edit model takes such a request for its reverse."""

    code = "already-there"


class Asker:
    """Finds places and words requests.

    Attributes:
        allowed: Ignored files that the person lets go out.
    """

    def __init__(self, workspace: Workspace, hunks: HunkStore, desk: Desk, link: Link) -> None:
        self.allowed: set[str] = set()
        self._workspace = workspace
        self._hunks = hunks
        self._desk = desk
        self._link = link
        self._told: set[int] = set()

    async def find_path(self, question: Question, last: str | None) -> str:
        """The file that a question is about.

        Args:
            question: It may name the file with ``@``.
            last: The file of the turn before.

        Raises:
            UserError: None is named, or several are.
        """
        if question.path is not None:
            return question.path
        mentioned = await self._mentioned(question)
        if mentioned:
            return mentioned[0].path
        try:
            return await search_workspace(self._workspace, question.text)
        except TargetUnclearError:
            if last is None or not self._finds_places(self._link.model_info):
                raise
            return last

    async def locate(self, path: str, question: Question, seen: Place | None) -> Place:
        """The file as it is on disk and the lines that are meant; the caller holds the desk's lock.

        Args:
            path: The file.
            question: The instruction.
            seen: What was found before; it stands if neither the file nor the model has changed.

        Raises:
            UserError: The file cannot be read, or the instruction fits no place or several.
        """
        proposal = await self._desk.refreshed(path)
        base, model = proposal.base, self._link.model_info
        requests.check_language(proposal.path, base, model)
        if seen is not None and seen.base is base and seen.model == model:
            return seen
        mentioned = await self._mentioned(question)
        leaves = not self._link.local and proposal.path not in self.allowed
        if leaves and await asyncio.to_thread(self._workspace.ignores, proposal.path):
            raise NeedsConsentError((proposal.path,))
        wanted = model.edit_format
        try:
            target = await asyncio.to_thread(
                find_target,
                base,
                instruction=without_mentions(question.text),
                cursor=question.cursor,
                selection=question.selection,
                max_lines=model.max_region_lines if wanted in ("region", "auto") else None,
                path=proposal.path,
            )
        except TargetUnclearError as unclear:
            if not self._finds_places(model):
                raise (await self._find(unclear.missing, proposal.path) or unclear) from None
            wanted = "search-replace" if wanted == "auto" else wanted
            target = Target(0, len(base.lines), "", "the model finds the place")
        if target.undefined and not self._finds_places(model):
            elsewhere = await self._find(target.undefined, proposal.path)
            if elsewhere is not None:
                raise elsewhere
        return Place(proposal, base, model, target, wanted in ("region", "auto"), mentioned)

    async def _find(self, name: str, here: str) -> TargetUnclearError | None:
        """The question about a name that is not defined in the file ``here``, if another has it."""
        if not name:
            return None
        try:
            path = await search_workspace(self._workspace, f"`{name}`")
        except TargetUnclearError as several:
            found = () if several.missing else several.candidates
        else:
            found = (Candidate(path, name),)
        if not found:
            return None
        places = " and ".join(dict.fromkeys(candidate.path for candidate in found[:3]))
        said = f"`{name}` is not in {here} but in {places}"
        return TargetUnclearError(
            f"{said}; ask for it there.", found, question=f"{said}; go there?"
        )

    def begin(self) -> None:
        """A new conversation begins: what earlier ones were told does not count."""
        self._told.clear()

    @contextlib.contextmanager
    def rehearsed(self) -> Generator[None]:
        """Word a request that is not sent: what it would tell is still to be told."""
        told = set(self._told)
        try:
            yield
        finally:
            self._told = told

    async def context(self, place: Place, question: Question) -> Context:
        """What goes along with an instruction."""
        model = place.model
        if not model.is_chat:
            target = place.target
            name = f"{place.proposal.path} lines {target.start + 1}-{target.stop}"
            text = place.proposal.proposed_region(target.start, target.stop)
            return Context((Part(name, "file", text, first=target.start + 1),))
        from midstream.edits.proposal import Overlay

        proposal = place.proposal
        text = None if place.by_region else Overlay(proposal).source.text()
        wanted = Wanted(
            path=proposal.path,
            text=text,
            line=place.target.start if question.cursor is None else question.cursor,
            selection=question.selection,
            mentioned=place.mentioned,
            allowed=frozenset(self.allowed),
            hunks=() if place.by_region else tuple(self._hunks),
        )
        parts, refused = await asyncio.to_thread(gather, self._workspace, wanted)
        return fit(parts, limit_of(model.context_length), refused)

    def region_request(
        self, place: Place, question: Question, context: Context, start: int, stop: int
    ) -> Request:
        """The request for a rewrite of base lines ``[start, stop)``.

        Raises:
            TargetUnclearError: With its undecided hunks the region is too long for the model.
            AlreadyThereError: An edit model is asked to add what the code has.
        """
        proposal, base, model = place.proposal, place.base, place.model
        region = proposal.proposed_region(start, stop)
        if question.consume:
            kept = without_comments(region.split("\n")[:-1], proposal.path)
            region = "".join(f"{line}\n" for line in kept)
        longest = model.max_region_lines
        if longest is not None and (lines := region.count("\n")) > longest:
            raise TargetUnclearError(
                f"With its undecided hunks this part of {proposal.path} has {lines} lines and the "
                f"model takes {longest} at a time; decide them first or name a smaller part."
            )
        if model.is_edit_model and not question.background:
            _check_absent(question.text, region)
        asked = as_proposed(question.text, base.lines[start:stop], region.split("\n")[:-1])
        said = self.with_rejections(asked, proposal.path)
        message = requests.region_message(proposal.path, base, start, stop, region, said)
        messages = [("user", message)]
        if model.is_chat and context.parts:
            messages.insert(0, ("user", context_text(context)))
        conversation = Conversation(requests.REGION_INSTRUCTIONS if model.is_chat else "", messages)
        return Request(conversation, "region", context)

    def renamed_again(self, answer: Answer, said: str) -> Renaming | None:
        """The name that a live rewrite brings in, if ``said`` only asks for another one.

        ``None`` also where the person has turned a part of it down, which stays so, or has written
        lines of their own into it, which would be lost.
        """
        from midstream.edits.hunks import HunkState

        if answer.region is None or answer.before is None:
            return None
        hunks = map(self._hunks.get, answer.hunk_ids)
        if any(hunk.own or hunk.state is HunkState.REJECTED for hunk in hunks):
            return None
        before, kept = answer.before.split("\n")[:-1], answer.kept.split("\n")[:-1]
        return renamed_again(said, answer.asked, before, kept)

    def block_request(self, place: Place, question: Question, context: Context) -> Request:
        """The request for edits in a format in which the model names the places."""
        edit_format = place.model.edit_format
        if edit_format == "auto":
            edit_format = "search-replace"
        tool = self._link.takes_patch_tool
        asked = f"{question.text}\n{_TAKE_OUT}" if question.consume else question.text
        prompt = block_prompt(asked, context, edit_format, tool=tool)
        self._told.update(hunk.id for hunk in self._hunks if hunk.decided)
        conversation = Conversation(prompt.system, [("user", prompt.message)])
        return Request(conversation, edit_format, context, prompt.tools)

    def parser(self, edit_format: str, region: Sequence[str]) -> Parser:
        """The parser of an answer that was asked for in a format.

        Args:
            edit_format: The format.
            region: Lines of the region, if one is rewritten.
        """
        from midstream.edits.formats.region import RegionParser
        from midstream.edits.sniffing import PreferringParser, SniffingParser

        if edit_format != "region":
            return SniffingParser(edit_format)
        if self._link.model_info.is_edit_model:
            return RegionParser(region, bare=True)
        return PreferringParser("region", lambda: RegionParser(region))

    def with_rejections(self, text: str, path: str) -> str:
        """The instruction, with the rejected hunks that this conversation has not told yet."""
        from midstream.edits.hunks import HunkState

        rejected = [
            hunk
            for hunk in self._hunks
            if hunk.path == path
            and hunk.state is HunkState.REJECTED
            and hunk.id not in self._told
            and (hunk.note or not hunk.displaced)  # What was only put away is no wish.
        ]
        self._told.update(hunk.id for hunk in rejected)
        return requests.with_rejections(text, rejected, self._link.model_info)

    def with_decisions(self, text: str, hunk_ids: Sequence[int]) -> str:
        """What a tool says of edits, with what the person has decided about them by now."""
        decided = [hunk for hunk in map(self._hunks.get, hunk_ids) if hunk.decided]
        if not decided:
            return f"{text}\n\nThe person who reads along has not decided about any edit yet."
        self._told.update(hunk.id for hunk in decided)
        return f"{text}\n\nDecided by the person who reads along:\n{decisions(decided).text}"

    async def _mentioned(self, question: Question) -> tuple[AtPath, ...]:
        if "@" not in question.text:
            return ()
        return await asyncio.to_thread(
            find_at_paths, question.text, self._workspace, frozenset(self.allowed)
        )

    def _finds_places(self, model: ModelInfo) -> bool:
        """Whether the model can be left to find the lines itself."""
        known = self._link.reached or not self._link.own
        return known and model.finds_places


def _check_absent(asked: str, region: str) -> None:
    from midstream.edits.present import already_there

    if had := already_there(asked, region):
        raise AlreadyThereError(f"{had} already; say what should change about it.")
