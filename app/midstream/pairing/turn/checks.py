"""Checks of an answer: whether every file still parses, and which ruff findings are new."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from midstream import processes
from midstream.code.syntax import has_syntax, is_python
from midstream.codebase.references import ReferencesError, UseLeft, listed, renames, uses_left
from midstream.codebase.syntax_check import breaks, where_broken
from midstream.edits.documents import join_lines
from midstream.edits.proposal import FileProposal
from midstream.edits.stand_ins import is_whole
from midstream.guard.ruff import BROKEN, MAX_ANSWER, RuffUnavailableError, items, ruff_program
from midstream.pairing.slices import pause
from midstream.pairing.status import (
    ExternalHunksAdded,
    FileChangedOnDisk,
    FilesTouched,
    FileWritten,
    HunkDecided,
    SessionEvent,
    TurnFinished,
)
from midstream.workspace.copies import remove_stale
from midstream.workspace.paths import make_private, state_dir

if TYPE_CHECKING:
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.files.put_backs import Writers
    from midstream.pairing.status import SessionStatus, Spawn
    from midstream.workspace.files import Workspace

MAX_LINES: Final = 5_000
"""Longer files are not checked: the end of the answer would wait for it."""
_RUFF_S: Final = 10.0
"""How long a process of ruff may take for one text."""
_FURTHER_S: Final = 0.1
"""How much longer for each further text; one of ``MAX_LINES`` takes some 0.05 s."""
_SCRATCH: Final = "checks-"
_UNREADABLE: Final = "E902"
"""Ruff's code for a file that it cannot read."""
_UNDEFINED: Final = re.compile(r"Undefined name `(\w+)`")
"""Ruff's message for F821, which has the name nowhere else."""

Lines = Mapping[str, Sequence[str]]
"""Lines of files by path."""


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One finding of ruff that was not there before.

    Attributes:
        line: 1-based line.
        code: Rule code, such as ``F821``.
        message: What is wrong.
        path: The file, ``""`` where only one is checked.
    """

    line: int
    code: str
    message: str
    path: str = ""

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}line {self.line}: {self.code} {self.message}"

    @property
    def undefined(self) -> str:
        """The name that nothing defines, if that is the finding."""
        found = _UNDEFINED.match(self.message) if self.code == "F821" else None
        return "" if found is None else found[1]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of the checks for one version of the files.

    Attributes:
        broken: Where it does not parse, ``""`` if it does (or nothing reads its language).
        introduced: What ruff finds that it did not find before.
        tests: Whether the test command succeeded, ``None`` where it did not run.
        changed: Lines that differ from before.
        misplaced: Edits that did not match the file.
        unread: Why ruff has not looked at it, ``""`` if it has.
    """

    broken: str = ""
    introduced: tuple[LintFinding, ...] = ()
    tests: bool | None = None
    changed: int = 0
    misplaced: int = 0
    unread: str = ""

    @classmethod
    def together(cls, verdicts: Mapping[str, Verdict], misplaced: int = 0) -> Verdict:
        """The verdict on several files at once, by path; of a single one its own."""
        several = len(verdicts) > 1
        broken = [
            f"{path}: {verdict.broken}" if several else verdict.broken
            for path, verdict in verdicts.items()
            if verdict.broken
        ]
        introduced = tuple(
            replace(finding, path=path) if several else finding
            for path, verdict in verdicts.items()
            for finding in verdict.introduced
        )
        changed = sum(verdict.changed for verdict in verdicts.values())
        unread = next((verdict.unread for verdict in verdicts.values() if verdict.unread), "")
        return cls("; ".join(broken), introduced, None, changed, misplaced, unread)

    @property
    def wrong(self) -> bool:
        """Whether an error was found."""
        found = self.broken or self.introduced or self.misplaced
        return bool(found) or self.tests is False

    @property
    def clean(self) -> bool:
        """Whether all of it was looked at and nothing is wrong with it."""
        return not self.wrong and not self.unread

    @property
    def rank(self) -> tuple[bool, bool, int, bool, int, bool]:
        """Sort key, the best first; of equals the one that was written first wins."""
        broken, failed, unread = bool(self.broken), self.tests is False, bool(self.unread)
        nothing = self.changed == 0
        return (broken, failed, self.misplaced, unread, len(self.introduced), nothing)

    @property
    def words(self) -> str:
        """The verdict in words, for the user."""
        if self.broken:
            return f"does not parse ({self.broken})"
        parts: list[str] = []
        if self.introduced:
            parts.append("; ".join(map(str, self.introduced[:3])))
        if self.misplaced:
            many = "s" * (self.misplaced != 1)
            parts.append(f"{self.misplaced} edit{many} that did not match")
        if self.tests is not None:
            parts.append("tests pass" if self.tests else "tests fail")
        if self.unread:
            parts.append("not checked by ruff")
        if not self.changed:
            parts.append("changes nothing")
        return ", ".join(parts) or "no findings"

    @property
    def correction(self) -> str:
        """The instruction that has the model fix this."""
        what = self.broken or "; ".join(map(str, self.introduced[:3]))
        return f"The result must not have this error: {what}."

    @property
    def undefined(self) -> tuple[LintFinding, ...]:
        """The findings about names that nothing defines any more."""
        return tuple(finding for finding in self.introduced if finding.undefined)


async def look(path: str, before: Sequence[str], after: Sequence[str]) -> Verdict:
    """What the checks say about a new version of a file."""
    return (await look_at_each({path: before}, {path: after}))[path]


async def look_at_each(before: Lines, after: Lines) -> dict[str, Verdict]:
    """What the checks say about new versions of several files, by path."""
    verdicts: dict[str, Verdict] = {}
    linted: dict[str, tuple[str, str]] = {}
    for path, lines in after.items():
        changed = sum(a != b for a, b in zip(before[path], lines, strict=False))
        verdict = Verdict(changed=changed + abs(len(before[path]) - len(lines)))
        if has_syntax(path):
            if verdicts:
                await pause()
            old, new = ("".join(f"{x}\n" for x in text) for text in (before[path], lines))
            if await where_broken(path, new):
                verdict = replace(verdict, broken=await breaks(path, old, new))
            elif is_python(path):
                linted[path] = old, new
        verdicts[path] = verdict
    if linted:
        for path, found in (await asyncio.to_thread(_introduced, linted)).items():
            if isinstance(found, RuffUnavailableError):
                verdicts[path] = replace(verdicts[path], unread=str(found).rstrip("."))
            else:
                verdicts[path] = replace(verdicts[path], introduced=found)
    return verdicts


def tell_unread(verdicts: Iterable[Verdict], status: SessionStatus) -> None:
    """Say that ruff has not looked at a text, once for each reason."""
    for verdict in verdicts:
        if verdict.unread:
            status.warn_once(f"{verdict.unread}, so names that nothing defines are not found.")


async def look_at(before: Lines, after: Lines, misplaced: int = 0) -> Verdict:
    """What the checks say about new versions of several files, by path."""
    return Verdict.together(await look_at_each(before, after), misplaced)


def _introduced(
    texts: Mapping[str, tuple[str, str]],
) -> dict[str, tuple[LintFinding, ...] | RuffUnavailableError]:
    """F and E9 findings of ruff in new versions of files that were not in the old ones (blocking).

    Args:
        texts: The old and the new version of each file.

    Returns:
        The findings by path; for a file that ruff has not looked at, why.
    """
    introduced: dict[str, tuple[LintFinding, ...] | RuffUnavailableError] = {}
    try:
        findings = _ruff([(path, text) for path, both in texts.items() for text in both])
    except RuffUnavailableError as error:
        if len(texts) == 1 or isinstance(error.__cause__, TimeoutError):
            return dict.fromkeys(texts, error)
        # Perhaps ruff fails on only one of them.
        for path, both in texts.items():
            introduced |= _introduced({path: both})
        return introduced
    for path, before, after in zip(texts, findings[::2], findings[1::2], strict=True):
        old = [(found.code, found.message) for found in before]
        new: list[LintFinding] = []
        for found in after:
            if (found.code, found.message) in old:
                old.remove((found.code, found.message))
            else:
                new.append(found)
        introduced[path] = tuple(new)
    return introduced


def _ruff(texts: Sequence[tuple[str, str]]) -> list[list[LintFinding]]:
    """The findings in each of some texts with the paths of their files.

    One process reads all of them from a folder; where that cannot be written (the disk is full),
    each is given to a process of its own.

    Raises:
        RuffUnavailableError: It is not installed or does not work.
    """
    program = ruff_program()
    named = [(_name_for_ruff(path), text.encode("utf-8", "replace")) for path, text in texts]
    try:
        # Not the system's temporary folder, which can be the one that is open: without any other
        # that can be written, Python takes the working folder.
        place = make_private(state_dir())
        remove_stale(place, _SCRATCH)
        prefix = f"{_SCRATCH}{os.getpid()}-"
        with TemporaryDirectory(prefix=prefix, dir=place, ignore_cleanup_errors=True) as folder:
            for number, (name, data) in enumerate(named):
                file = Path(folder, str(number), name)
                file.parent.mkdir()
                file.write_bytes(data)
            names = [f"{number}/{name}" for number, (name, _) in enumerate(named)]
            answer = _ask_ruff(program, *names, cwd=Path(folder))
    except OSError:
        return [
            [found for _, found in _ask_ruff(program, "--stdin-filename", name, "-", stdin=data)]
            for name, data in named
        ]
    findings: dict[str, list[LintFinding]] = {name: [] for name in names}
    for file, found in answer:
        try:
            findings["/".join(file.parts[-2:])].append(found)
        except KeyError as error:
            raise RuffUnavailableError.of(error) from error
    return list(findings.values())


def _name_for_ruff(path: str) -> str:
    """A plain name with which ruff judges a file as it would with its own.

    Its answer cannot repeat every name.  The suffix counts, and that ``__init__`` is a package.
    """
    stem, _, suffix = path.rpartition("/")[2].rpartition(".")
    return f"{stem if stem == '__init__' else 'module'}.{suffix}"


def _ask_ruff(
    program: str, *arguments: str, stdin: bytes = b"", cwd: Path | None = None
) -> list[tuple[Path, LintFinding]]:
    """What one process of ruff finds, with the files.

    Raises:
        RuffUnavailableError: It does not work.
    """
    options = ["--isolated", "--no-cache", "--select", "F,E9", "--output-format", "json"]
    command = [program, "check", *options, *arguments]
    try:
        most = _RUFF_S + _FURTHER_S * len(arguments)
        done = processes.run(command, cwd=cwd, stdin=stdin, timeout=most, limit=MAX_ANSWER)
        if done.code not in (0, 1):  # Nothing found, something found.
            raise EOFError(f"exit code {done.code}")
        found = [
            (Path(f["filename"]), LintFinding(int(f["location"]["row"]), f["code"], f["message"]))
            for f in items(json.loads(done.output))
        ]
        if bool(found) != done.code or any(each.code == _UNREADABLE for _, each in found):
            raise ValueError("it has read something else")
    except BROKEN as error:
        raise RuffUnavailableError.of(error) from error
    return found


async def uses_left_in(
    workspace: Workspace,
    path: str,
    before: Sequence[str],
    after: Sequence[str],
    absent: set[tuple[str, str]] | None = None,
) -> tuple[UseLeft, ...]:
    """Where a workspace still uses names that a change of one file renames or deletes.

    Args:
        workspace: The folder.
        path: The file.
        before: Its lines before the change.
        after: Its lines with it.
        absent: See ``uses_left``.

    Raises:
        ReferencesError: The search fails.
    """
    files = await asyncio.to_thread(workspace.files)
    return await uses_left(
        workspace.root,
        files,
        {path: before},
        {path: after},
        outside=workspace.files_outside,
        absent=absent,
    )


async def newly_broken(proposal: FileProposal) -> str:
    """Say where a file stops parsing if all open hunks are accepted.

    Returns:
        ``"line 12: invalid syntax"``, or ``""`` where nothing is wrong, it was wrong before, or the
        file is not checked.
    """
    lines = proposal.base.lines
    if len(lines) > MAX_LINES:
        return ""
    after = proposal.proposed_region(0, len(lines))
    return await breaks(proposal.path, join_lines(lines), after)


class UndefinedNames:
    """Reports names that are no longer defined, here or where other files use them.

    Looks at a file when its last open hunk was decided and neither the model nor another program
    writes any more: an agent often completes a rename in its next edit.  A rename with one
    accepted and one rejected hunk, or one that was stopped, leaves code that does not run.  That is
    the user's decision: it is never fixed here.  The uses that a renaming leaves unchanged are
    reported before it is decided, since another action changes them as well.
    """

    def __init__(
        self, files: OpenFiles, status: SessionStatus, writers: Writers, spawn: Spawn
    ) -> None:
        self._files = files
        self._status = status
        self._writers = writers
        self._spawn = spawn
        self._due: set[str] = set()
        self._ahead: dict[str, asyncio.Task[None]] = {}
        """Searches before a decision, by file; each takes a process and a second or more."""
        self._looking = asyncio.Lock()
        """One file at a time: each search reads every file of the folder."""
        self._absent: set[tuple[str, str]] = set()
        """What was found in no file, since the last write."""
        self._undefined_reported: dict[str, tuple[str, ...]] = {}
        self._uses_reported: dict[str, tuple[str, ...]] = {}

    def hear(self, event: SessionEvent) -> None:
        """Look at the file of a decision as soon as the decisions taken with it are known too."""
        if isinstance(event, (FileWritten, FilesTouched, FileChangedOnDisk)):
            self._absent = set()  # A running search fills the former set.
        if isinstance(event, (HunkDecided, ExternalHunksAdded)):
            path = event.path
        elif isinstance(event, TurnFinished) and event.turn.hunks:
            path = event.turn.path
            self._end_ahead(path)
            if not event.turn.background:
                self._ahead[path] = self._spawn(self._tell_uses_ahead(path))
        else:
            return
        if path not in self._due:
            self._due.add(path)
            self._spawn(self._look(path))

    def _end_ahead(self, path: str) -> None:
        if ahead := self._ahead.pop(path, None):
            ahead.cancel()

    async def _look(self, path: str) -> None:
        await asyncio.sleep(0)
        await self._writers.quiet()
        async with self._files.lock:
            # The notice of the decision comes first; otherwise it would hide the findings.
            pass
        async with self._looking:
            self._due.discard(path)
            await self._tell(path)

    async def _tell(self, path: str) -> None:
        """Tell what is missing in a file, or elsewhere because of it, if nothing in it waits."""
        proposal = self._files.get(path)
        if proposal is None or self._is_open(proposal):
            return
        self._end_ahead(path)
        if is_whole(proposal.composed()):
            return
        # If one half was rejected on purpose, the uses that it would have changed are no news.
        rejected = self._rejected(path)
        if rejected and await self._tell_undefined(path, proposal, rejected):
            return
        if not await self._tell_uses_left(path, proposal):
            await self._tell_undefined(path, proposal)

    async def _tell_undefined(
        self, path: str, proposal: FileProposal, rejected: Sequence[str] = ()
    ) -> bool:
        """Tell which names nothing in the file defines any more.

        Only this finds parameters and local names, as when the model was stopped in a renaming.

        Args:
            path: The file.
            proposal: Its proposal.
            rejected: Lines of rejected hunks; if there are any, only names in them are reported.

        Returns:
            Whether there are any, told now or before.
        """
        before, after = self._before(proposal), proposal.composed().lines
        verdict = await look(path, before, after)
        tell_unread([verdict], self._status)
        found = verdict.undefined
        names = tuple(dict.fromkeys(each.undefined for each in found))
        if rejected:
            names = tuple(name for name in names if _occurs(name, rejected))
            found = [each for each in found if each.undefined in names]
        if not self._is_as(after, proposal):
            return bool(names)
        told, self._undefined_reported[path] = self._undefined_reported.get(path, ()), names
        if not names or names == told:
            return bool(names)
        them = " and ".join(f"`{name}`" for name in names[:2])
        gone = f"{them} ({path}, line {found[0].line}) {'is' if len(names) == 1 else 'are'} "
        # A name that the file had before has lost its definition, another one never had any here.
        gone += "no longer defined" if _occurs(names[0], before) else "not defined"
        if rejected:
            self._status.warn(
                f"{gone}: only part of the change was accepted. Undo a decision, or ask for the "
                "rest."
            )
        elif set(names) <= {each.old for each in renames(before, after, path)}:
            self._status.warn(f"{gone}. Change it where it is still used.", "hunk.elsewhere")
        else:
            self._status.warn(f"{gone}. Undo a decision, or ask for the rest.")
        return True

    async def _tell_uses_ahead(self, path: str) -> None:
        """Tell where names are used that a renaming leaves, before it is decided."""
        proposal = self._files.get(path)
        if proposal is None or not self._is_open(proposal) or is_whole(proposal.base):
            return
        before = proposal.base.lines
        if len(before) > MAX_LINES or not has_syntax(path):
            return
        after = proposal.proposed_region(0, len(before)).splitlines()
        try:
            left = await uses_left_in(self._files.workspace, path, before, after)
        except ReferencesError:
            return  # The check after the decision reports it.
        others = [use for use in left if use.certain and use.new]
        if others and self._is_open(proposal):
            self._status.inform(
                f"Not in this change: {listed(others)}. Change these as well.", "hunk.elsewhere"
            )

    async def _tell_uses_left(self, path: str, proposal: FileProposal) -> bool:
        """Tell where names are still used that the accepted hunks rename or delete.

        Returns:
            Whether there are any, told now or before.
        """
        before, after = self._before(proposal), proposal.composed().lines
        if before == after or not has_syntax(path):
            return False
        try:
            left = await uses_left_in(self._files.workspace, path, before, after, self._absent)
        except ReferencesError as error:
            self._status.warn(str(error))
            return False
        names = tuple(dict.fromkeys(use.name for use in left))
        if not self._is_as(after, proposal):
            return bool(names)
        told, self._uses_reported[path] = self._uses_reported.get(path, ()), names
        if names and names != told:
            # A name that was deleted has no new name to put there.
            action = "hunk.elsewhere" if all(use.new for use in left) else ""
            sure = any(use.certain for use in left)
            advice = "Change these as well" if sure else "Look there, and change it if it does"
            self._status.warn(f"{listed(left)}. {advice}.", action)
        return bool(names)

    def _before(self, proposal: FileProposal) -> Sequence[str]:
        """A file without what was accepted, which is on disk already where others wrote it."""
        hunks = self._files.hunks.for_path(proposal.path)
        before = proposal.reviewed(without={h.id for h in hunks if h.state == "accepted"})
        return () if is_whole(before) else before.lines

    def _is_open(self, proposal: FileProposal) -> bool:
        """Whether hunks of a file wait for a decision or for their agent, or more may come."""
        hunks = self._files.hunks
        waits = hunks.undecided(proposal.path)
        proposed = any(hunk.call for hunk in hunks.for_path(proposal.path))
        return bool(waits) or proposed or not all(segment.finished for segment in proposal.segments)

    def _is_as(self, lines: Sequence[str], proposal: FileProposal) -> bool:
        """Whether a file still is as it was looked at, and nothing in it is open."""
        return lines == proposal.composed().lines and not self._is_open(proposal)

    def _rejected(self, path: str) -> list[str]:
        """The lines of the rejected hunks of a file; none unless others are in it."""
        hunks = self._files.hunks.for_path(path)
        if all(hunk.state != "accepted" for hunk in hunks):
            return []
        rejected = (hunk for hunk in hunks if hunk.state == "rejected")
        return [line for hunk in rejected for line in (*hunk.old, *hunk.new)]


def _occurs(name: str, lines: Iterable[str]) -> bool:
    """Whether a name stands in one of some lines."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    return any(map(word.search, lines))
