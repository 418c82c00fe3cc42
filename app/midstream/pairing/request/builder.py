"""From an instruction to a request: its context, its edit format and its words.

Knows files, the model's abilities and the wording of requests; sends nothing and runs no turn.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from midstream.code.ai_comments import without_comments
from midstream.code.outline import outline
from midstream.codebase.related import FileLines, Related, RelatedCode
from midstream.edits.hunks import HunkState
from midstream.edits.proposal import Overlay
from midstream.errors import UserError
from midstream.pairing.request.additions import Addition
from midstream.pairing.request.context import (
    DEFAULT_LIMIT,
    FIRST_WORDS_S,
    QUESTION_S,
    Context,
    LeftOut,
    Part,
    decisions,
    estimate,
    fit,
    limit_of,
)
from midstream.pairing.request.mentions import (
    AtWord,
    find_at_words,
    without_files,
    without_mentions,
)
from midstream.pairing.request.new_code import (
    FileAddition,
    place_in_file,
)
from midstream.pairing.request.prompts import (
    LINES_AFTER,
    LINES_BEFORE,
    block_prompt,
    chat_addition_message,
    chat_region_message,
    region_message,
    with_rejections,
)
from midstream.pairing.request.question import Question
from midstream.pairing.request.renaming import as_proposed
from midstream.pairing.request.scope import Scope, ScopeFinder, has_undecided
from midstream.pairing.request.sources import Wanted, gather
from midstream.pairing.request.target import (
    Target,
    TargetUnclearError,
    find_target,
)
from midstream.responses.conversation import ToolCall, ToolOutput

if TYPE_CHECKING:
    from midstream.edits.documents import SourceText
    from midstream.guard.correction import CorrectionRequest
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.models.server import ServerLink
    from midstream.responses.conversation import Entry

_TAKE_OUT: Final = "This was asked in a comment that ends in AI!; take that comment out as well."
RELATED_SHARE: Final = 1 / 6
"""Share of the budget that related code may take."""
FRAME_TOKENS: Final = 90
"""Tokens of a request beyond code and instruction, including the start of the answer."""
MAX_LINES: Final = 200
"""Lines of a place without a name whose related code is looked for."""
_SOUGHT: Final = "still being searched for; an instruction sent now goes without it"
_REPORTED_LAST: Final = "The result is reported with the last call."


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages of a request.

    Attributes:
        system: System text.
        messages: Pairs of role and text, tool calls and their outputs; the last is the user's or an
            output.
        instructions: The instruction and its redirects so far, oldest first.
        correction: What the last message asks for, if the guard wrote it.
        must_change: Whether the answer may not leave the region as it is.
        adds: Whether the answer is only what is added to the region.
    """

    system: str
    messages: Sequence[Entry]
    instructions: tuple[str, ...] = ()
    correction: CorrectionRequest | None = None
    must_change: bool = False
    adds: bool = False

    @property
    def instruction(self) -> str:
        """The instruction in the last message."""
        return self.instructions[-1] if self.instructions else ""

    @property
    def opening(self) -> Conversation:
        """The messages before the model's first."""
        messages = list(takewhile(_not_written, self.messages))
        return Conversation(self.system, messages, self.instructions[:1])

    def without_end(self, characters: int) -> Conversation:
        """The conversation without the last characters that the model wrote."""
        messages = list(self.messages)
        for number, entry in reversed(list(enumerate(messages))):
            if isinstance(entry, tuple) and entry[0] == "assistant":
                left = max(0, len(entry[1]) - characters)
                characters -= len(entry[1]) - left
                messages[number] = (entry[0], entry[1][:left])
        return replace(self, messages=[entry for entry in messages if entry != ("assistant", "")])

    def followed(
        self, kept: str, instruction: str, correction: CorrectionRequest | None = None
    ) -> Conversation:
        """The conversation after the model wrote ``kept`` and was told ``instruction``."""
        from midstream.edits.request import render_follow_up

        messages: list[Entry] = list(self.messages)
        if kept:
            messages.append(("assistant", kept))
        messages.append(("user", render_follow_up(instruction)))
        instructions = (*self.instructions, instruction)
        return Conversation(self.system, messages, instructions, correction)

    def restarted(self, written: str, instruction: str) -> Conversation:
        """The conversation after a part of an answer that a chat model is to begin anew."""
        from midstream.edits.request import render_chat_follow_up

        again = self.answered_with(written, render_chat_follow_up(instruction, adds=self.adds))
        return replace(again, instructions=(*self.instructions, instruction))

    def answered_with(self, written: str, message: str) -> Conversation:
        """The conversation after an answer that is to be given again, as a message says."""
        messages: list[Entry] = list(self.messages)
        if written:
            messages.append(("assistant", written))
        messages.append(("user", message))
        return Conversation(self.system, messages, self.instructions, adds=self.adds)

    def answered(self, written: Sequence[Entry], output: str) -> Conversation:
        """The conversation after the model called a tool, with the result of the last call."""
        calls = [entry.call_id for entry in written if isinstance(entry, ToolCall)]
        outputs = [ToolOutput(call_id, _REPORTED_LAST) for call_id in calls[:-1]]
        return Conversation(
            self.system, [*self.messages, *written, *outputs, ToolOutput(calls[-1], output)]
        )


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent.

    Attributes:
        conversation: System text and messages.
        edit_format: The format that was asked for.
        region: Base lines to rewrite, ``None`` where the model names the places.
        tools: Tools that the model may call.
        target: The lines to rewrite as they are sent.
        addition: Where the answer is added to the region, if it is only what is new.
    """

    conversation: Conversation
    edit_format: str
    region: tuple[int, int] | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    target: Part | None = None
    addition: Addition | FileAddition | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """What a model wrote in an answer with edits.

    Attributes:
        text: Its text as it came.
        output: The same as conversation entries, tool calls included.
        hunk_ids: The hunks that it made.
    """

    text: str
    output: tuple[Entry, ...]
    hunk_ids: tuple[int, ...]

    def masked(self) -> Written:
        """The same with credentials masked."""
        from midstream.guard.secrets import mask_text

        output = tuple(
            ToolCall(entry.call_id, entry.name, mask_text(entry.input))
            if isinstance(entry, ToolCall)
            else entry
            for entry in self.output
        )
        return Written(mask_text(self.text), output, self.hunk_ids)


class AlreadyThereError(UserError):
    """The code to be added exists already; an edit model takes such a request for its reverse."""

    code = "already-there"


class RequestBuilder:
    """Gathers what goes along with an instruction and words the request.

    Attributes:
        scopes: Finds the place that an instruction means.
        allowed: Files that git ignores or that credentials are kept in, which the user lets go out.
        failure: Returns what the last failed test run said, ``""`` if none failed.
        conversation: Says what was asked and answered in words before, ``""`` if nothing was.
        related: Finds code that belongs to places; ``None`` where none goes along.
        project_instructions: Whether what the folder says to models goes along.
    """

    def __init__(
        self,
        files: OpenFiles,
        server: ServerLink,
        *,
        allowed: set[str],
        failure: Callable[[], str],
        conversation: Callable[[], str],
        related_code: bool,
    ) -> None:
        self.allowed = allowed
        self.failure = failure
        self.conversation = conversation
        self.related = RelatedCode(files.workspace) if related_code else None
        self.project_instructions = True
        self._files = files
        self._server = server
        self.scopes = ScopeFinder(files, server, allowed)
        self._decisions_sent: set[int] = set()

    # What goes along

    async def context(self, scope: Scope, question: Question, *, look: bool = False) -> Context:
        """The context that would be sent with an instruction.

        Args:
            scope: Where it applies.
            question: The instruction.
            look: Whether to begin to look for related code that is not known yet.
        """
        proposal, target, model = scope.proposal, scope.target, scope.model
        if not model.is_chat:
            name = f"{proposal.path} lines {target.start + 1}-{target.stop}"
            text = proposal.proposed_region(target.start, target.stop)
            part = Part(name, "file", text, first=target.start + 1)
            named = [f"{each.path}/" for each in scope.mentioned if each.folder]
            named += sorted(find_at_words(scope.said))
            left_out = tuple(LeftOut(name, "this model is given the lines only") for name in named)
            return Context((part,), model.context_length or DEFAULT_LIMIT, left_out)

        text, subject = None, scope.subject
        line = target.start if question.cursor is None else question.cursor
        if isinstance(scope.addition, FileAddition) and model.reading_rate is None:
            # Small models repeat what they see of a file; larger ones, which read fast, make use of
            # it.
            text, line = Overlay(proposal).source.text(), scope.addition.line
            subject = None if subject is None or subject.path == proposal.path else subject
        elif not scope.by_region:
            text = Overlay(proposal).source.text()
        wanted = Wanted(
            path=proposal.path,
            text=text,
            line=line,
            selection=question.selection if scope.addition is None else None,
            mentioned=scope.mentioned,
            words=(words := find_at_words(scope.said)),
            error=self.failure() if AtWord.ERROR in words else "",
            allowed=frozenset(self.allowed),
            hunks=() if scope.by_region else tuple(self._files.hunks),
            conversation=self.conversation(),
            instructions=self.project_instructions,
            subject=subject,
            shown=(start := max(0, target.start - LINES_BEFORE), stop := target.stop + LINES_AFTER),
        )
        quick = None
        if isinstance(scope.addition, FileAddition):
            quick = self._quick(question.text + ", ".join(scope.addition.names))
        elif scope.by_region:
            base = scope.base
            above = base.text(start, target.start)
            below = base.text(target.stop, min(stop, len(base.lines)))
            wanted = replace(wanted, around=(above, below))
            region = proposal.proposed_region(target.start, target.stop)
            quick = self._quick(region + question.text)
        place = self._place(proposal.path, scope.base, target, question.cursor)
        limit = limit_of(model.context_length)
        return await self._gathered(wanted, limit, place, look=look, quick=quick)

    def _quick(self, asked: str, seconds: float = FIRST_WORDS_S) -> int | None:
        """Tokens of context that the model reads in a time; ``None`` for no limit."""
        rate = self._server.model_info.reading_rate
        if rate is None:
            return None
        return max(0, int(rate * seconds) - estimate(asked) - FRAME_TOKENS)

    async def _gathered(
        self,
        wanted: Wanted,
        limit: int,
        place: FileLines | None,
        *,
        look: bool,
        quick: int | None = None,
        seconds: float = FIRST_WORDS_S,
    ) -> Context:
        related: Related | None = None
        sought = False
        if place is not None and self.related is not None:
            if look:
                self.related.look(place)
            related, sought = self.related.of(place), self.related.is_sought(place)
        room = limit if quick is None else min(limit, quick)
        wanted = replace(wanted, related=related, most_related=int(room * RELATED_SHARE))
        parts, refused = await asyncio.to_thread(gather, self._files.workspace, wanted)
        if sought:
            refused.append(LeftOut("related code", _SOUGHT))
        return fit(parts, limit, refused, quick, seconds)

    def _place(
        self, path: str, base: SourceText, target: Target, cursor: int | None
    ) -> FileLines | None:
        """The place whose related code goes along: a definition, or not too many lines."""
        start, stop, symbol = target.start, target.stop, target.symbol
        if not symbol:
            line = start if cursor is None or not start <= cursor < stop else cursor
            around = [d for d in outline(base.lines, path).definitions if d.contains(line)]
            if around and (around[-1].start <= start or stop - start > MAX_LINES):
                symbol = around[-1].name
            if around and stop - start > MAX_LINES:
                start, stop = around[-1].start, around[-1].stop
        if start >= stop or (not symbol and stop - start > MAX_LINES):
            return None
        return FileLines(path, "".join(f"{line}\n" for line in base.lines), start, stop, symbol)

    async def question_context(
        self, question: Question, limit: int, *, look: bool = False
    ) -> Context:
        """The context that would be sent with a question.

        Args:
            question: Its file is what the user looks at; without one the question is about the
                project.
            limit: Tokens for all.
            look: Whether to begin to look for related code that is not known yet.

        Raises:
            NeedsConsentError: A file that would be sent may hold secrets.
            UnknownFileError: A name with ``@`` is not a file.
            UserError: The file cannot be read.
        """
        said = await self.scopes.with_at_paths(question)
        mentioned = await self.scopes.mentioned(said)
        path, text, place = "", None, None
        if question.path is not None:
            async with self._files.lock:
                proposal = await self._files.refreshed(question.path)
                path, text, base = proposal.path, Overlay(proposal).source.text(), proposal.base
            await self.scopes.check_consent(path)
            place = await asyncio.to_thread(self._asked_about, path, base, question)
        words = find_at_words(said)
        line = question.cursor or 0
        if place is not None and not place.start <= line < place.stop:
            line = place.start  # The function that the question names.
        wanted = Wanted(
            path=path,
            text=text,
            line=line,
            selection=question.selection,
            change=question.change,
            mentioned=mentioned,
            words=words,
            error=self.failure() if AtWord.ERROR in words else "",
            allowed=frozenset(self.allowed),
            hunks=tuple(self._files.hunks),
            instructions=self.project_instructions,
        )
        quick = self._quick(said, QUESTION_S)
        return await self._gathered(
            wanted, limit, place, look=look, quick=quick, seconds=QUESTION_S
        )

    async def look_around(self, question: Question) -> None:
        """Begin to look for what belongs to the place in a file that a question is about."""
        if question.path is None or self.related is None:
            return
        async with self._files.lock:
            proposal = await self._files.refreshed(question.path)
        place = await asyncio.to_thread(self._asked_about, proposal.path, proposal.base, question)
        if place is not None:
            self.related.look(place)

    def _asked_about(self, path: str, base: SourceText, question: Question) -> FileLines | None:
        """The lines that a question is about, ``None`` for none."""
        try:
            target = find_target(
                base,
                instruction=without_mentions(question.text),
                cursor=question.cursor,
                selection=question.selection,
                max_lines=None,
                path=path,
            )
        except TargetUnclearError:
            if question.cursor is None:
                return None
            target = Target(question.cursor, question.cursor + 1, "", "at the cursor")
        return self._place(path, base, target, question.cursor)

    # The first request of a conversation

    def request(self, scope: Scope, question: Question, context: Context) -> Request:
        """The request for a question.

        Raises:
            TargetUnclearError: With its undecided hunks the region is too long for the model.
            AlreadyThereError: An edit model is asked to add what the code has.
        """
        ask = self._region_request if scope.by_region else self._block_request
        return ask(scope, question, context)

    def _region_request(self, scope: Scope, question: Question, context: Context) -> Request:
        proposal, base, model = scope.proposal, scope.base, scope.model
        start, stop = proposal.cover(scope.target.start, scope.target.stop)
        region = proposal.proposed_region(start, stop)
        if question.consume:
            kept = without_comments(region.split("\n")[:-1], proposal.path)
            region = "".join(f"{line}\n" for line in kept)
        longest = None if question.known is not None else model.max_region_lines
        if longest is not None and (lines := region.count("\n")) > longest:
            raise TargetUnclearError(
                f"With its undecided hunks this part of {proposal.path} has {lines} lines and the "
                f"model takes {longest} at a time; decide them first or name a smaller part."
            )
        if model.is_edit_model and not question.background:
            _check_absent(scope.asked or question.text, region)
        told = without_files(scope.said) if model.is_edit_model else scope.asked or question.text
        asked = as_proposed(question.asked or told, base.lines[start:stop], region.split("\n")[:-1])
        asked = self.with_rejections(asked, proposal.path, (start, stop))
        addition = scope.addition
        if isinstance(addition, FileAddition):
            addition = place_in_file(
                region.split("\n")[:-1],
                proposal.path,
                addition.known,
                addition.new,
                owner=addition.owner,
            )
            message = chat_addition_message(proposal.path, asked, context, addition, scope.subject)
            conversation = Conversation("", [("user", message)], (asked,), adds=True)
            return Request(conversation, "region", (start, stop), addition=addition)
        if addition is not None and has_undecided(proposal, base, scope.target):
            addition = None  # It has come since.
        if addition is not None and self._quick(region + asked) == 0:
            region = addition.outlined
        adds = addition is not None
        if addition is not None and addition.declared:
            region = f"{addition.declared}\n{region}"
        if model.is_chat:
            message = chat_region_message(proposal.path, base, region, asked, context, adds=adds)
        else:
            message = region_message(proposal.path, base, start, stop, region, asked)
        conversation = Conversation("", [("user", message)], (asked,), adds=adds)
        name = f"{proposal.path} lines {start + 1}-{stop}"
        target = Part(name, "file", region, first=start + 1, why="to change")
        return Request(conversation, "region", (start, stop), target=target, addition=addition)

    def _block_request(self, scope: Scope, question: Question, context: Context) -> Request:
        known = question.known is not None
        edit_format = question.known_format if known else scope.model.edit_format
        if edit_format == "auto":
            edit_format = "search-replace"
        asked = question.asked or question.text
        if question.consume:
            asked = f"{asked}\n{_TAKE_OUT}"
        # A selection goes along as a part of its own.
        named = scope.target.symbol if question.cursor is not None else ""
        place = f"{named} in {scope.proposal.path}" if named and not question.selection else ""
        tool = self._server.takes_patch_tool
        prompt = block_prompt(asked, context, edit_format, place=place, tool=tool)
        self._decisions_sent.update(hunk.id for hunk in self._files.hunks if hunk.decided)
        conversation = Conversation(prompt.system, [("user", prompt.message)])
        return Request(conversation, edit_format, None, prompt.tools)

    # What is said later on

    def start_conversation(self) -> None:
        """Forget which decisions earlier conversations were told of."""
        self._decisions_sent.clear()

    @contextlib.contextmanager
    def rehearsal(self) -> Generator[None]:
        """Word a request that is not sent: the decisions in it still count as not told."""
        told = set(self._decisions_sent)
        try:
            yield
        finally:
            self._decisions_sent = told

    def with_rejections(self, text: str, path: str, region: tuple[int, int] | None = None) -> str:
        """The instruction, with the rejected hunks that this conversation was not told of yet.

        Args:
            text: The instruction.
            path: The file that it is about.
            region: The lines that it may change: small models copy what they read about others.
        """
        rejected = [
            hunk
            for hunk in self._files.hunks
            if hunk.path == path
            and hunk.state is HunkState.REJECTED
            and hunk.id not in self._decisions_sent
            # A hunk that was only superseded says nothing about the user's wishes.
            and (hunk.note or not hunk.displaced)
            and (region is None or (hunk.start <= region[1] and region[0] <= hunk.stop))
        ]
        self._decisions_sent.update(hunk.id for hunk in rejected)
        return with_rejections(text, rejected, self._server.model_info)

    def left_out(self, instructions: Sequence[str]) -> str:
        """Which of these a redirected model is not given, as a sentence; ``""`` if it has all."""
        from midstream.edits.request import carried

        if not self._server.model_info.is_edit_model:
            return ""
        left_out = carried(instructions).left_out
        if not left_out:
            return ""
        quoted = " and ".join(f'"{each}"' for each in left_out)
        return (
            f"{self._server.name_or_the_model} takes two instructions at a time, the first and the "
            f"newest: {quoted} {'is' if len(left_out) == 1 else 'are'} left out from here on; ask "
            "for that again when the answer has ended."
        )

    def after_edits(
        self, said: str, path: str, conversation: Conversation, written: Written
    ) -> Conversation:
        """A conversation after an answer in which the model named the places.

        Where it called a tool, the message is the result of that call.

        Args:
            said: The message.
            path: The file that the instruction is about.
            conversation: What the model was told before.
            written: What it wrote then.
        """
        if not any(isinstance(entry, ToolCall) for entry in written.output):
            return conversation.followed(written.text, self.with_rejections(said, path))
        output = self._with_decisions(said, written.hunk_ids)
        return conversation.answered(written.output, output)

    def _with_decisions(self, text: str, hunk_ids: Sequence[int]) -> str:
        """What a tool says about edits, with what the user has decided about them by now."""
        decided = [hunk for hunk in map(self._files.hunks.get, hunk_ids) if hunk.decided]
        if not decided:
            return f"{text}\n\nThe person who reads along has not decided about any edit yet."
        self._decisions_sent.update(hunk.id for hunk in decided)
        return f"{text}\n\nDecided by the person who reads along:\n{decisions(decided).text}"


def _not_written(entry: Entry) -> bool:
    return isinstance(entry, tuple) and entry[0] != "assistant"


def _check_absent(asked: str, region: str) -> None:
    from midstream.edits.present import already_there

    if had := already_there(asked, region):
        raise AlreadyThereError(f"{had} already; say what should change about it.")
