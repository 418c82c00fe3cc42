"""The pure part of ``midstream apply``: from a model's reply and the files to new bytes.

One reply is one transaction: if a hunk fails, nothing changes unless partial application is asked
for.  The caller reads and writes the files and keeps them inside a root.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import PurePosixPath

from midstream.code.syntax import is_python, syntax_error
from midstream.edits.documents import NotTextError, SourceText, UnencodableError
from midstream.edits.elision import elided, elides, merge, placeholder
from midstream.edits.events import Event, FileOp, Problem
from midstream.edits.formats import format_spec
from midstream.edits.lcs import line_edits
from midstream.edits.locate import Located, Locator
from midstream.edits.matching import MatchLevel
from midstream.edits.outcome import (
    ApplyResult,
    FailureReason,
    FileOutcome,
    HunkError,
    HunkOutcome,
    HunkStatus,
)
from midstream.edits.reply import ReplyFile, ReplyHunk, Side, collect, normalise
from midstream.edits.sniffing import sniff

Read = Callable[[str], bytes | None]
"""Gives a file's bytes by the path that the reply names, None if there is no such file."""

Find = Callable[[str], Sequence[str]]
"""Gives the files whose paths end in the name that the reply gives, if no such file exists."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")
_MARK = "\ufeff"
"""The byte order mark, as a character."""
_PROSE = frozenset({".md", ".markdown", ".rst", ".txt", ".adoc", ""})
_ELSEWHERE = re.compile(r"(?:[A-Za-z]:|~)[/\\]")


def apply_reply(
    reply: str,
    read: Read,
    format: str = "auto",  # noqa: A002 - the name that the command line uses
    file: str | None = None,
    partial: bool = False,
    find: Find | None = None,
) -> ApplyResult:
    """Compute what a reply does to files.

    Args:
        reply: The model's whole reply.
        read: Gives the present bytes of a file.
        format: The name of the reply's format, or ``auto``.
        file: The file for replies that name none, or only its last part.
        partial: Apply what matches even if something does not.
        find: Finds files by the last parts of their paths, since models leave out the first ones.
            Only quoted lines are ever replaced in a file that was found like this.

    Returns:
        The outcome of every hunk and the new bytes of every file that changes.

    Raises:
        ValueError: There is no such format.
    """
    reply = reply.removeprefix("\ufeff")  # of a reply that was saved to a file
    if _COLOUR.search(reply) and (plain := _COLOUR.sub("", reply)) and sniff(reply) is None:
        reply = plain  # a diff that was copied from a terminal, colours and all
    if format == "auto":
        # A reply without any marker is read as fenced files, but never as the bare text of one.
        spec = format_spec(sniff(reply) or "whole")
        parser = spec.parser()
    else:
        spec = format_spec(format)
        parser = (spec.bare_parser or spec.parser)()
    events = [*parser.feed(reply), *parser.finish()]
    return apply_events(events, read, spec.name, file, partial, find)


def apply_events(
    events: Iterable[Event],
    read: Read,
    edit_format: str,
    file: str | None = None,
    partial: bool = False,
    find: Find | None = None,
) -> ApplyResult:
    """As ``apply_reply``, for events of a stream or of ``operation_events``."""
    files, problems = collect(events)
    run = _Application(read, file, edit_format, find)
    named = [section for section in files if section.path and not section.mentioned]
    for section in files:
        # In a reply that names files, a block without a name is an example.
        if section.op is not FileOp.WRITE or section in named or run.is_meant(section, bool(named)):
            run.section(section)
    return run.result(tuple(problems), partial=partial)


class _Application:
    """One application; later sections see the files as earlier ones left them."""

    def __init__(self, read: Read, file: str | None, edit_format: str, find: Find | None) -> None:
        self._read = read
        self._find = find
        self._file = file
        self._format = edit_format
        self._policy = format_spec(edit_format).policy
        self._before: dict[str, bytes | None] = {}
        self._now: dict[str, bytes | None] = {}
        self._done_paths: set[str] = set()
        self._hunks: list[HunkOutcome] = []
        self._files: list[FileOutcome] = []
        self._executable: dict[str, bool] = {}

    def result(self, problems: tuple[Problem, ...], *, partial: bool) -> ApplyResult:
        fine = all(hunk.status is HunkStatus.APPLIED for hunk in self._hunks)
        ok = fine and not problems and bool(self._files) and not any(f.error for f in self._files)
        keep = ok or (partial and not any(problem.fatal for problem in problems))
        changes = {p: now for p, now in self._now.items() if now != self._before[p]} if keep else {}
        hunks = tuple(hunk if keep else _dropped(hunk) for hunk in self._hunks)
        executable = self._executable if keep else {}
        files = tuple(self._files)
        return ApplyResult(ok, self._format, changes, hunks, files, problems, executable)

    def is_meant(self, section: ReplyFile, others_named: bool) -> bool:
        """Whether a block without a name of its own is meant to be applied."""
        if section.mentioned and self._bytes(section.path) is None:
            section.path = ""
        path = section.path or self._file
        return path not in self._done_paths and not (others_named and not section.path)

    def section(self, section: ReplyFile) -> None:
        if section.new_path and not _is_foreign(section.new_path):
            section.new_path = section.new_path.replace("\\", "/")
        path = self._resolve(section)
        try:
            if path is None:
                sentence = "The edit names no file; name it in the line above, or give --file."
                raise _SectionRefusedError(FailureReason.NO_FILE, sentence)
            self._change(section, path)
        except _SectionRefusedError as refused:
            where, error = path or section.path, HunkError(refused.reason, str(refused))
            self._files.append(FileOutcome(where, str(section.op), section.new_path, error=error))
            for hunk in section.hunks:
                self._hunks.append(HunkOutcome(hunk.id, where, HunkStatus.FAILED, error=error))

    def _change(self, section: ReplyFile, path: str) -> None:
        if any(map(_is_foreign, (path, section.new_path or ""))) and self._bytes(path) is None:
            sentence = f"{path} is not below this folder; give the file's path inside it."
            raise _SectionRefusedError(FailureReason.NO_FILE, sentence)
        data = self._bytes(path)
        try:
            source = None if data is None else SourceText.from_bytes(data)
        except NotTextError as error:
            sentence = f"{path} is not a text file: {error}."
            raise _SectionRefusedError(FailureReason.NOT_TEXT, sentence) from error
        target = section.new_path if section.new_path != path else None
        if target and self._bytes(target) is not None:
            verb = "copied" if section.copied else "moved"
            sentence = f"{path} cannot be {verb} to {target}, which exists; delete that first."
            raise _SectionRefusedError(FailureReason.EXISTS, sentence)
        source = self._take_mark(section, source)
        if section.op is FileOp.DELETE:
            self._delete(section, path, source)
        elif section.op is FileOp.UPDATE:
            self._update(section, path, source)
        else:
            self._write(section, path, source)

    @staticmethod
    def _take_mark(section: ReplyFile, source: SourceText | None) -> SourceText | None:
        """Take the byte order mark from lines that have it; the file with or without, as they say.

        A text has its mark apart from its first line.
        """
        marked: set[Side] = set()
        for hunk in section.hunks:
            for number, part in enumerate(hunk.parts):
                if part.text.startswith(_MARK):
                    hunk.parts[number] = part._replace(text=part.text.removeprefix(_MARK))
                    marked.add(part.side)
        if source is None or not marked or Side.CONTEXT in marked:
            return source
        return replace(source, bom=Side.NEW in marked)

    def _delete(self, section: ReplyFile, path: str, source: SourceText | None) -> None:
        if source is None:
            sentence = f"{path} does not exist, so it cannot be deleted."
            raise _SectionRefusedError(FailureReason.NO_FILE, sentence)
        quoted = [line for hunk in section.hunks for line in hunk.old]
        if quoted and quoted != list(source.lines):
            sentence = f"{path} does not have the lines that the diff deletes."
            raise _SectionRefusedError(FailureReason.NOT_FOUND, sentence)
        self._done(section, path, None)
        self._applied(section, path)

    def _write(self, section: ReplyFile, path: str, source: SourceText | None) -> None:
        broken = [hunk for hunk in section.hunks if hunk.problem or not hunk.closed]
        if broken:
            self._hunks += (HunkOutcome.failed(h.id, path, _malformed(h)) for h in section.hunks)
            self._done(section, path, self._bytes(path))
            return
        if section.op is FileOp.ADD and source is not None and source.lines:
            sentence = (
                f"{path} exists already, so it is not made anew; edit it, or delete it first."
            )
            raise _SectionRefusedError(FailureReason.EXISTS, sentence)
        text = "".join(hunk.new_text for hunk in section.hunks)
        mark = text.startswith(_MARK)
        text = text.removeprefix(_MARK)
        exact = any(hunk.characters for hunk in section.hunks)
        if text and not exact and not text.endswith("\n"):
            text += "\n"
        new = replace(SourceText.from_text(text), bom=mark)
        if source is None and not _is_prose(path) and placeholder((), new.lines) is not None:
            raise _SectionRefusedError(
                FailureReason.ELIDED, f"Code was left out of the new file {path}."
            )
        if section.final_newline is not None:
            new = new.with_final_newline(section.final_newline)
        if source is not None and elides(source.lines, new.lines, whole=True):
            edits = merge(source.lines, new.lines, path)
            merged = None if edits is None else source.replace(edits)
            if merged is None or (is_python(path) and _breaks(source, merged)):
                raise _SectionRefusedError(FailureReason.ELIDED, elided(path))
            new = merged
        if source is not None and source.lines:
            final = new.final_newline
            same_end = section.op is not FileOp.ADD and not exact
            new = source.replace(line_edits(source.lines, new.lines))
            new = new if same_end else new.with_final_newline(final)
        self._store(section, path, new)
        self._applied(section, path)

    def _update(self, section: ReplyFile, path: str, source: SourceText | None) -> None:
        if source is None:
            creates = section.hunks and not any(hunk.old for hunk in section.hunks)
            if not creates or not self._policy.creates_files:
                sentence = f"{path} does not exist{self._others(path)}."
                raise _SectionRefusedError(FailureReason.NO_FILE, sentence)
            source = SourceText((), ())
        outcomes, result = self._apply_hunks(section, path, source, set())
        lenient = {
            o.number for o in outcomes if o.level is not None and o.level >= MatchLevel.INDENTATION
        }
        if lenient and is_python(path) and _breaks(source, result):
            outcomes, result = self._apply_hunks(section, path, source, lenient)
        self._store(section, path, result)
        self._hunks += outcomes

    def _apply_hunks(
        self, section: ReplyFile, path: str, source: SourceText, excluded: set[int]
    ) -> tuple[list[HunkOutcome], SourceText]:
        policy = self._policy
        newline = source.newline if policy.one_newline else None
        locator = Locator(source, path, newline=newline, sequential=policy.sequential)
        outcomes: list[HunkOutcome] = []
        if policy.whole_sides:
            for hunk in section.hunks:
                normalise(hunk)
        for position, hunk in enumerate(section.hunks):
            if hunk.problem or not hunk.closed:
                located = _malformed(hunk)
            elif hunk.id in excluded:
                message = f"With guessed indentation it would break the syntax of {path}."
                located = HunkError(FailureReason.SYNTAX, message)
            else:
                located = locator.locate(hunk, section.hunks[position + 1 :])
            if isinstance(located, Located):
                outcomes.append(_outcome(hunk, path, located))
                locator.take(located)
            else:
                outcomes.append(HunkOutcome.failed(hunk.id, path, located))
        result = locator.result()
        if policy.terminates_last_line and result.lines and result.lines != source.lines:
            # All lines of a patch are terminated, the last one included.
            touched = source.final_newline or result.lines[-1:] != source.lines[-1:]
            result = result.with_final_newline(touched)
        if section.final_newline is not None:
            result = result.with_final_newline(section.final_newline)
        return outcomes, result

    def _resolve(self, section: ReplyFile) -> str | None:
        path = section.path.removeprefix("./")
        if "\\" in path and self._bytes(path) is None:
            path = path.replace("\\", "/")
        bogus = path.removeprefix("path/to/")  # as in many prompts' examples
        if bogus != path and self._bytes(path) is None:
            path = bogus
        if not path or section.op is FileOp.REGION:
            return self._file or path or None
        if self._bytes(path) is not None or section.op in (FileOp.ADD, FileOp.WRITE):
            same = self._file and PurePosixPath(self._file).name == path
            return self._file if same and section.op is FileOp.WRITE else path
        stripped = path[2:] if path[:2] in ("a/", "b/") else None
        if stripped and self._bytes(stripped) is not None:
            return stripped
        if self._file and PurePosixPath(self._file).name == PurePosixPath(path).name:
            return self._file
        if section.op is FileOp.UPDATE and any(hunk.old for hunk in section.hunks):
            found = self._find(path) if self._find else ()
            return found[0] if len(found) == 1 else path
        return path

    def _others(self, path: str) -> str:
        found = self._find(path) if self._find else ()
        return f"; meant may be {' or '.join(found[:3])}" if found else ""

    def _bytes(self, path: str) -> bytes | None:
        if path not in self._now:
            self._before[path] = self._now[path] = self._read(path)
        return self._now[path]

    def _store(self, section: ReplyFile, path: str, source: SourceText) -> None:
        if section.newline is not None and not self._bytes(path):
            source = source.with_newline(section.newline)
        try:
            data = source.to_bytes()
        except UnencodableError as error:
            raise _SectionRefusedError(FailureReason.NOT_TEXT, f"In {path} {error}.") from error
        self._done(section, path, data)

    def _done(self, section: ReplyFile, path: str, data: bytes | None) -> None:
        before = self._before.get(path)
        digest = "" if before is None else sha256(before).hexdigest()[:12]
        self._files.append(FileOutcome(path, str(section.op), section.new_path, digest))
        self._done_paths.add(path)
        new_file = self._before.get(path) is None
        if section.executable is not None and (section.executable or not new_file):
            self._executable[section.new_path or path] = section.executable
        if section.new_path and section.new_path != path:
            self._bytes(section.new_path)
            self._now[section.new_path] = data
            if section.copied:
                return
            data = None
        self._now[path] = data

    def _applied(self, section: ReplyFile, path: str) -> None:
        self._hunks += (
            HunkOutcome(hunk.id, path, HunkStatus.APPLIED, added=len(hunk.new))
            for hunk in section.hunks
        )


class _SectionRefusedError(Exception):
    """A section of the reply cannot be applied; the text says why."""

    def __init__(self, reason: FailureReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def _is_foreign(path: str) -> bool:
    """Whether a path starts at a drive or home, or has control characters."""
    return bool(_ELSEWHERE.match(path)) or any(ord(c) < 32 or ord(c) == 127 for c in path)


def _is_prose(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in _PROSE


def _malformed(hunk: ReplyHunk) -> HunkError:
    message = hunk.problem or "the reply ends inside this hunk"
    return HunkError(FailureReason.MALFORMED, f"{message[0].upper()}{message[1:]}.")


def _outcome(hunk: ReplyHunk, path: str, located: Located) -> HunkOutcome:
    return HunkOutcome(
        hunk.id,
        path,
        HunkStatus.APPLIED,
        located.level,
        located.start,
        located.stop,
        added=sum(len(edit.lines) for edit in located.edits),
        deleted=sum(edit.stop - edit.start for edit in located.edits),
    )


def _dropped(hunk: HunkOutcome) -> HunkOutcome:
    applied = hunk.status is HunkStatus.APPLIED
    return replace(hunk, status=HunkStatus.DROPPED) if applied else hunk


def _breaks(before: SourceText, after: SourceText) -> bool:
    return bool(syntax_error(after.text())) and not syntax_error(before.text())
