"""Where an instruction applies: the file that it means, and the lines of it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from midstream.code.languages import is_test, spelled
from midstream.code.outline import outline
from midstream.edits.documents import NO_FILE
from midstream.edits.hunk_store import HunkStore
from midstream.edits.proposal import FileProposal
from midstream.errors import UserError
from midstream.pairing.request.additions import Addition, find_addition, without_tests
from midstream.pairing.request.go_methods import find_go_method
from midstream.pairing.request.mentions import (
    AtPath,
    Mentions,
    NeedsConsentError,
    find_at_paths,
    find_mentions,
    with_at_paths,
    without_mentions,
)
from midstream.pairing.request.new_code import (
    FileAddition,
    NewCode,
    find_new_code,
    place_in_file,
)
from midstream.pairing.request.prompts import language_of
from midstream.pairing.request.question import Question
from midstream.pairing.request.several import FirstOfSeveral, first_of_several
from midstream.pairing.request.subject import Subject, find_subject
from midstream.pairing.request.target import (
    Candidate,
    Target,
    TargetUnclearError,
    check_changed,
    find_target,
    is_only_there,
    not_renamed,
    search_workspace,
)
from midstream.pairing.request.tests_home import home_of_tests
from midstream.responses.model_info import REGION_FORMATS
from midstream.workspace.errors import MissingFileError

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from midstream.edits.documents import SourceText
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.models.server import ServerLink
    from midstream.responses.model_info import ModelInfo


@dataclass(frozen=True, slots=True)
class Scope:
    """Where an instruction applies.

    Attributes:
        proposal: The file.
        base: Its base text when the scope was found.
        model: What was known about the model then.
        target: The lines that are meant; the whole file where the model finds them.
        by_region: Whether the model rewrites just these lines.
        said: The instruction, with files that it names in words named with ``@``.
        mentioned: Files and folders named with ``@``.
        addition: Where a class gets a method or a file new definitions, if that is all.
        subject: The code that new tests are for.
        asked: The part of the instruction that is carried out, ``""`` for all of it.
        later: The rest, in words.
        then: The instruction for the rest, ``""`` where that is known only afterwards.
    """

    proposal: FileProposal
    base: SourceText
    model: ModelInfo
    target: Target
    by_region: bool
    said: str
    mentioned: tuple[AtPath, ...]
    addition: Addition | FileAddition | None = None
    subject: Subject | None = None
    asked: str = ""
    later: str = ""
    then: str = ""

    @property
    def place(self) -> str:
        """The lines, for display."""
        if isinstance(self.addition, FileAddition):
            return "new code"
        words = f"{self.target.symbol}, " if self.target.symbol else ""
        return f"{words}lines {self.target.start + 1}-{self.target.stop}"


class WrongLanguageError(UserError):
    """The model is not made for the language of the file."""

    code = "wrong-language"


class ScopeFinder:
    """Finds the file and the lines that instructions mean.

    Args:
        files: The open files.
        server: Says what the model can do.
        allowed: See ``RequestBuilder``; it may grow.
    """

    def __init__(self, files: OpenFiles, server: ServerLink, allowed: AbstractSet[str]) -> None:
        self._files = files
        self._server = server
        self._allowed = allowed

    async def find_path(self, question: Question, last: str | None) -> str:
        """The file that a question is about.

        Args:
            question: It may name the file with ``@``.
            last: The file of the turn before.

        Raises:
            UserError: None is named, or several are.
        """
        if (home := await self._home(question)) is not None:
            return home[0]
        said = await self.with_at_paths(question)
        named = await self.mentioned(said)
        mentioned = [each for each in named if not each.folder]
        first = mentioned[0] if mentioned and question.selection is None else None
        if first is not None and await self._aims_at(first, question.path, said):
            return first.path
        if question.path is not None:
            return question.path
        try:
            return await asyncio.to_thread(search_workspace, self._files.workspace, question.text)
        except TargetUnclearError:
            if last is None or not self._finds_places(self._server.model_info):
                raise
            return last

    async def _home(self, question: Question) -> tuple[str, NewCode] | None:
        """The file that an instruction adds definitions to, which may not exist yet, and these."""
        model = self._server.model_info
        new = find_new_code(without_tests(question.text)[0])
        by_region = model.is_chat and model.edit_format in REGION_FORMATS
        if new is None or not by_region or question.known is not None or question.background:
            return None
        if new.file:
            path = await asyncio.to_thread(self._named_file, new.file)
        else:
            path = await self._home_of_tests(new, question)
        if path is None or (question.selection is not None and path == question.path):
            return None
        return path, new

    async def _home_of_tests(self, new: NewCode, question: Question) -> str | None:
        """The file that gets tests, by the code that they are for."""
        subject = await self._subject(new, question, "")
        path = question.path if subject is None else subject.path
        if path is None or (subject is None and not is_test(path)):
            return None
        return await asyncio.to_thread(self._test_file, path)

    def _test_file(self, path: str) -> str | None:
        return home_of_tests(path, [*self._files.workspace.files(), *self._files])

    def _named_file(self, name: str) -> str | None:
        """The file that a name means, or that it is for; ``None`` if it is the name of several."""
        workspace = self._files.workspace
        path = workspace.relative(name)
        if path in self._files or (workspace.root / path).is_file():
            return path
        files = dict.fromkeys([*workspace.files(), *self._files])  # Some are only proposed.
        named = [each for each in files if each.endswith(f"/{name}")]
        return (named or [path])[0] if len(named) < 2 else None

    async def _aims_at(self, mentioned: AtPath, path: str | None, said: str) -> bool:
        """Whether the first file with ``@`` is the one to change, and not one to read as well."""
        if path is None:
            return True
        if mentioned.aside:
            return False
        model = self._server.model_info
        if mentioned.symbol or not self._finds_places(model):
            return True
        if model.edit_format != "auto":
            return False
        # Such a model is shown one file: that of the code that is named.
        here = self._files.get(path)
        lines = () if here is None else here.composed().lines
        return await asyncio.to_thread(
            is_only_there,
            self._files.workspace,
            find_mentions(without_mentions(said)),
            mentioned.path,
            outline(lines, path),
        )

    async def locate(self, path: str, question: Question, seen: Scope | None = None) -> Scope:
        """The file as it is on disk and the lines that are meant; the caller holds the files' lock.

        Args:
            path: The file.
            question: The instruction.
            seen: What was found before; it stands if neither the file nor the model has changed.

        Raises:
            UserError: The file cannot be read, or the instruction fits no place or several.
        """
        home = await self._home(question)
        proposal = await self._proposal(path, new=home is not None and home[0] == path)
        base, model = proposal.base, self._server.model_info
        check_language(proposal.path, base, model)
        if seen is not None and seen.base is base and seen.model == model:
            return seen
        await self.check_consent(proposal.path)
        if home is not None and home[0] == proposal.path:
            scope = await self._for_new_code(question, home[1], proposal)
            if scope is not None:
                return scope
        wanted = model.edit_format if question.known is None else question.known_format
        parts = None
        if wanted in REGION_FORMATS and question.selection is None and question.known is None:
            outlined = await asyncio.to_thread(outline, base.lines, proposal.path)
            parts = first_of_several(question.text, outlined)
        if parts is not None:
            question = replace(question, text=parts.asked)
        said = await self.with_at_paths(question)
        mentioned = await self.mentioned(said)
        mentions = find_mentions(without_mentions(said))
        renamed = mentions.renamed
        here = [each for each in mentioned if each.path == proposal.path]
        elsewhere = question.path is not None and proposal.path != question.path
        longest = model.max_region_lines if wanted in REGION_FORMATS else None
        if question.known is not None and wanted != "region":  # It names its places itself.
            target = Target(0, len(base.lines), "", "the code names the place")
            return Scope(proposal, base, model, target, by_region=False, said=said, mentioned=())
        if mentions.changed and question.selection is None and not self._finds_places(model):
            await self._check_changed(mentions, proposal)
        try:
            target = await asyncio.to_thread(
                find_target,
                base,
                instruction=without_mentions(said),
                cursor=None if elsewhere else question.cursor,
                selection=question.selection or (here[0].lines if here and elsewhere else None),
                max_lines=None if question.known is not None else longest,
                path=proposal.path,
                symbol=here[0].symbol if here else "",
            )
        except TargetUnclearError as unclear:
            if not self._finds_places(model):
                better = await self._find(unclear.missing, proposal.path)
                if better is None and renamed and unclear.missing == renamed:
                    better = await self._not_renamed(renamed, proposal, proposal.path)
                raise (better or unclear) from None
            if wanted == "auto":  # It is shown this file only.
                if (better := await self._find(unclear.missing, proposal.path)) is not None:
                    raise better from None
                wanted = "search-replace"
            target = Target(0, len(base.lines), "", "the model chooses where")
        by_region, addition = wanted in REGION_FORMATS, None
        if target.undefined and by_region:
            await self._check_undefined(target, proposal, mentions, wanted)
        # A class that was asked about, or marked as a whole, is a place as well.
        if by_region and model.is_chat and (question.selection is None or target.symbol):
            outlined = await asyncio.to_thread(outline, base.lines, proposal.path)
            asked = without_tests(without_mentions(said))[0]
            if (apart := find_go_method(asked, outlined, target, proposal.path)) is not None:
                addition, subject = apart
                target = replace(target, start=0, stop=len(base.lines))
                scope = Scope(
                    proposal, base, model, target, True, said, mentioned, addition, subject
                )
                return _without_others(scope, parts) if parts else _without_tests(scope, question)
            found = find_addition(asked, outlined, target, proposal.path)
            if found is not None and not has_undecided(proposal, base, found[0]):
                target, addition = found
        scope = Scope(proposal, base, model, target, by_region, said, mentioned, addition)
        if parts is not None and by_region:
            return _without_others(scope, parts)
        has_tests = is_test(proposal.path) or not (by_region and model.is_chat)
        return scope if has_tests else _without_tests(scope, question)

    async def _proposal(self, path: str, *, new: bool) -> FileProposal:
        """The file as it is on disk; one that is to be made is not opened before it is written."""
        try:
            return await self._files.refreshed(path)
        except MissingFileError:
            if not new:
                raise
            return FileProposal(path, NO_FILE, HunkStore())

    async def _for_new_code(
        self, question: Question, new: NewCode, proposal: FileProposal
    ) -> Scope | None:
        """The scope of an instruction that adds to a file; ``None`` if it is there already."""
        path, base, model = proposal.path, proposal.base, self._server.model_info
        if new.name and outline(base.lines, path).named(new.name):
            return None
        said = await self.with_at_paths(question) if not base.missing else question.text
        mentioned = await self.mentioned(said) if not base.missing else ()
        subject = await self._subject(new, question, path) if new.tests else None
        if subject is not None:
            await self.check_consent(subject.path)
        addition = place_in_file(base.lines, path, () if subject is None else subject.names, new)
        others = tuple(each for each in mentioned if each.path != path)
        target = Target(0, len(base.lines), "", "what is new goes there")
        scope = Scope(proposal, base, model, target, True, said, others, addition, subject)
        return _without_tests(scope, question)

    async def _subject(self, new: NewCode, question: Question, home: str) -> Subject | None:
        """The code that tests for the file ``home`` are about, if it can be told."""
        here = ""
        if question.path not in (None, home):
            proposal = await self._files.refreshed(question.path)
            here = proposal.proposed_region(0, len(proposal.base.lines))
        return await asyncio.to_thread(
            find_subject, self._files.workspace, new.about, home, question, here
        )

    async def check_consent(self, path: str) -> None:
        """Raise ``NeedsConsentError`` if a file may not leave this machine unasked."""
        from midstream.guard.secrets import holds_secrets

        if self._server.local or path in self._allowed:
            return
        if await asyncio.to_thread(self._files.workspace.ignores, path):
            raise NeedsConsentError((path,))
        if holds_secrets(path):
            raise NeedsConsentError((), (path,))

    async def _check_changed(self, mentions: Mentions, proposal: FileProposal) -> None:
        """Raise TargetUnclearError if the code that is to be changed is not in the file."""
        proposed = proposal.proposed_region(0, len(proposal.base.lines)).split("\n")
        try:
            await asyncio.to_thread(check_changed, mentions, proposed, proposal.path)
        except TargetUnclearError as unclear:
            raise (await self._find(unclear.missing, proposal.path) or unclear) from None

    async def _check_undefined(
        self, target: Target, proposal: FileProposal, mentions: Mentions, wanted: str
    ) -> None:
        """Raise TargetUnclearError if the lines that were found lack what is meant."""
        name, lines = target.undefined, proposal.base.lines
        word = re.compile(rf"\b{re.escape(name.rpartition('.')[2])}\b")
        absent = name == mentions.renamed and not any(
            map(word.search, lines[target.start : target.stop])
        )
        if absent and word.search(proposal.proposed_region(target.start, target.stop)):
            return  # An undecided hunk brings it.
        sure = name == mentions.renamed or any(each.name == name for each in mentions.sure)
        if not (absent and outline(lines, proposal.path).named(name)) and (
            other := await self._find(name, proposal.path, sure=sure)
        ):
            raise other
        if absent and wanted == "region":
            place = f"`{target.symbol}`" if target.symbol else f"line {target.start + 1}"
            raise await self._not_renamed(name, proposal, place)

    async def _not_renamed(
        self, name: str, proposal: FileProposal, place: str
    ) -> TargetUnclearError:
        workspace, path, lines = self._files.workspace, proposal.path, proposal.base.lines
        return await asyncio.to_thread(not_renamed, workspace, name, path, lines, place)

    async def _find(self, name: str, here: str, *, sure: bool = True) -> TargetUnclearError | None:
        """The question about a name that is not defined in the file ``here``, if another has it.

        Args:
            name: The name.
            here: The file.
            sure: Whether it is a name; a plain word may mean a function or class, no variable.
        """
        if not name:
            return None
        asked = f"`{name}`" if sure else f"in {name}"
        try:
            path = await asyncio.to_thread(search_workspace, self._files.workspace, asked)
        except TargetUnclearError as several:
            last = name.rpartition(".")[2]
            alike = [each for each in several.candidates if each.name.rpartition(".")[2] == last]
            # A single one was only the nearest: a variable that a plain word does not mean.
            found = () if several.missing or len(alike) == 1 else tuple(alike)
        else:
            found = (Candidate(path, name),)
        if not found:
            return None
        places = " and ".join(dict.fromkeys(candidate.path for candidate in found[:3]))
        said = f"`{name}` is not defined in {here} but in {places}"
        return TargetUnclearError(
            f"{said}; ask for it there.", found, question=f"{said}; go there?"
        )

    async def mentioned(self, text: str) -> tuple[AtPath, ...]:
        if "@" not in text:
            return ()
        return await asyncio.to_thread(
            find_at_paths, text, self._files.workspace, frozenset(self._allowed)
        )

    async def with_at_paths(self, question: Question) -> str:
        """The instruction, with files that it names in words named with ``@``."""
        return await asyncio.to_thread(with_at_paths, question.text, self._files.workspace.files)

    def _finds_places(self, model: ModelInfo) -> bool:
        known = self._server.reached or not self._server.own
        return known and model.finds_places


def _without_others(scope: Scope, parts: FirstOfSeveral) -> Scope:
    """The scope of the first of several definitions; the others are left to another instruction."""
    return replace(scope, asked=parts.asked, later=parts.rest, then=parts.later)


def _without_tests(scope: Scope, question: Question) -> Scope:
    """The scope without tests, which are left to another instruction."""
    asked, later = without_tests(question.text)
    return replace(scope, asked=asked, later=later) if later else scope


def has_undecided(proposal: FileProposal, base: SourceText, target: Target) -> bool:
    """Whether undecided hunks change a place, which a method written beside them would lose."""
    shown = proposal.proposed_region(*proposal.cover(target.start, target.stop))
    return shown != base.text(target.start, target.stop)


def check_language(path: str, text: SourceText, model: ModelInfo) -> None:
    """Refuse a file in a language which the model does not know.

    Raises:
        WrongLanguageError: The model names its languages and this file's is not among them.
    """
    language = language_of(path, text.lines[0] if text.lines else "")
    if model.languages and language not in model.languages:
        what = f"is {language}" if language else "is not in a language it knows"
        raise WrongLanguageError(
            f"This model edits {spelled(model.languages)} only, and {path} {what}",
            "choose another model with --model or --endpoint",
        )
