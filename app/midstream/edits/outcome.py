"""The outcome of a reply: per hunk, per file, and as a message for the model that wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from midstream.counting import counted
from midstream.edits.events import Problem
from midstream.edits.matching import MatchLevel


class HunkStatus(StrEnum):
    """The outcome of a hunk."""

    APPLIED = "applied"
    PROPOSED = "proposed"
    """Only similar lines were found: a person has to decide; nothing was changed."""
    FAILED = "failed"
    DROPPED = "dropped"
    """It would have applied, but another hunk failed and the reply is one transaction."""


class FailureReason(StrEnum):
    """Why a hunk failed."""

    NOT_FOUND = "not-found"
    AMBIGUOUS = "ambiguous"
    ALREADY_APPLIED = "already-applied"
    FUZZY = "fuzzy"
    SYNTAX = "syntax"
    ELIDED = "elided"
    """Code was left out ("... existing code ...") and it is unclear where the rest belongs."""
    MALFORMED = "malformed"
    NO_FILE = "no-file"
    NOT_TEXT = "not-text"
    NOT_EMPTY = "not-empty"
    EXISTS = "exists"
    """The file to make, or to move to, is there already."""
    UNREVIEWED = "unreviewed"
    """The lines have undecided changes by other programs."""


@dataclass(frozen=True, slots=True)
class Nearby:
    """A place that the quoted lines may have meant.

    Attributes:
        start: First line of ``text``, 0-based.
        text: The file's lines there and three around them, without numbers.
        similarity: In [0, 1]; 1.0 for one of several exact places.
        scope: The definitions that enclose it.
    """

    start: int
    text: str
    similarity: float = 1.0
    scope: str = ""


@dataclass(frozen=True, slots=True)
class HunkError:
    """Why a hunk did not apply.

    Attributes:
        reason: The kind of failure.
        message: One sentence for people and models.
        line: First line of the file that differs in the most similar place, 0-based, or None.
        expected: The quoted line there.
        found: The file's line there.
        places: Up to three nearest places, or all that fit equally well.
    """

    reason: FailureReason
    message: str
    line: int | None = None
    expected: str | None = None
    found: str | None = None
    places: tuple[Nearby, ...] = ()


def unreviewed(count: int, path: str, start: int, stop: int, symbol: str = "") -> str:
    """The message of ``FailureReason.UNREVIEWED``.

    Args:
        count: How many changes of other programs wait there.
        path: The file.
        start: First line, 0-based.
        stop: Line after the last.
        symbol: What the lines define, if they are a definition.
    """
    lines = f"line {start + 1}" if stop - start < 2 else f"lines {start + 1}-{stop}"
    wait = "waits" if count == 1 else "wait"
    changes = counted(count, "change")
    return f"{changes} of other programs in {symbol or lines} of {path} {wait} for you"


@dataclass(frozen=True, slots=True)
class HunkOutcome:
    """The outcome of one hunk.

    Attributes:
        number: Its number in the reply, 0-based.
        path: Its file.
        status: Whether it applied.
        level: How leniently it matched, or None where nothing had to be found.
        start: First line that it replaces, in the file or, where it quotes earlier hunks, in the
            text with those applied.
        stop: Line after the last.
        added: Number of lines that it adds.
        deleted: Number of lines that it deletes.
        error: Why it did not apply.
    """

    number: int
    path: str
    status: HunkStatus
    level: MatchLevel | None = None
    start: int | None = None
    stop: int | None = None
    added: int = 0
    deleted: int = 0
    error: HunkError | None = None

    @classmethod
    def failed(cls, number: int, path: str, error: HunkError) -> HunkOutcome:
        """The outcome of a hunk without a place; of one that almost fits, a proposal."""
        fuzzy = error.reason is FailureReason.FUZZY
        status = HunkStatus.PROPOSED if fuzzy else HunkStatus.FAILED
        return cls(number, path, status, error=error)


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """The outcome for one file section of a reply.

    Attributes:
        path: Its name before.
        op: ``update``, ``add``, ``write``, ``delete`` or ``region``.
        new_path: Where it moves to, or None.
        digest: First 12 hexadecimal digits of the SHA-256 of its present bytes, ``""`` if none.
        error: Why nothing could be done with it.
    """

    path: str
    op: str
    new_path: str | None = None
    digest: str = ""
    error: HunkError | None = None


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What a reply would do; the edits package writes nothing.

    Attributes:
        ok: Whether everything applied.
        format: The format that the reply was read as.
        changes: New bytes of each file that changes, None for a file to delete.  Empty if something
            failed, unless partial application was asked for.
        hunks: One outcome for each hunk.
        files: One outcome for each file section.
        problems: What the parser complained about.
        executable: Files that become executable (True) or cease to be (False).
    """

    ok: bool
    format: str
    changes: Mapping[str, bytes | None]
    hunks: tuple[HunkOutcome, ...] = ()
    files: tuple[FileOutcome, ...] = ()
    problems: tuple[Problem, ...] = field(default=())
    executable: Mapping[str, bool] = field(default_factory=dict[str, bool])

    def to_json(self) -> dict[str, Any]:
        """The result as JSON values, with 1-based line numbers."""
        return {
            "ok": self.ok,
            "format": self.format,
            "changed": sorted(self.changes),
            "executable": dict(self.executable),
            "hunks": [_hunk_json(hunk) for hunk in self.hunks],
            "files": [
                {
                    "path": file.path,
                    "op": file.op,
                    "new_path": file.new_path,
                    "digest": file.digest,
                    "error": None if file.error is None else _error_json(file.error),
                }
                for file in self.files
            ],
            "problems": [
                {"message": p.message, "line": p.line + 1, "hunk": p.hunk, "fatal": p.fatal}
                for p in self.problems
            ],
        }

    def message(self) -> str:
        """The message for the model: which hunks failed and why, and what not to send again."""
        if self.ok:
            return "All edits were applied."
        parts: list[str] = []
        if not (self.hunks or self.files or self.problems):
            parts.append("The reply has no edit in it.")
        for problem in self.problems:
            if problem.hunk is None:
                parts.append(f"Line {problem.line + 1} of the reply: {problem.message}.")
        shown = {id(hunk.error) for hunk in self.hunks}
        parts += (
            f"{file.path}: {file.error.message}" if file.path else file.error.message
            for file in self.files
            if file.error and id(file.error) not in shown
        )
        digests = {file.path: file.digest for file in self.files}
        for hunk in self.hunks:
            if hunk.error is not None:
                parts.append(_hunk_message(hunk, hunk.error, digests.get(hunk.path, "")))
        applied = [hunk for hunk in self.hunks if hunk.status is HunkStatus.APPLIED]
        dropped = [hunk for hunk in self.hunks if hunk.status is HunkStatus.DROPPED]
        if applied:
            parts.append(f"{_numbers(applied)} applied; do not send {_them(applied)} again.")
        if dropped:
            parts.append(
                f"{_numbers(dropped)} would apply, but nothing was changed because of the failures."
            )
        failed = [hunk for hunk in self.hunks if hunk.error is not None]
        if failed:
            again = " and the ones that would apply" if dropped else ""
            parts.append(
                f"Send only {_numbers(failed).lower().removesuffix(' was').removesuffix(' were')}"
                f"{again} again, corrected, with short context copied exactly from the file."
            )
        return "\n\n".join(parts)


def _numbers(hunks: list[HunkOutcome]) -> str:
    numbers = ", ".join(str(hunk.number + 1) for hunk in hunks)
    return f"Hunks {numbers}" if len(hunks) > 1 else f"Hunk {numbers}"


def _them(hunks: list[HunkOutcome]) -> str:
    return "them" if len(hunks) > 1 else "it"


def _hunk_message(hunk: HunkOutcome, error: HunkError, digest: str) -> str:
    version = f" (version {digest})" if digest else ""
    place = f" of {hunk.path}{version}" if hunk.path else ""
    lines = [f"Hunk {hunk.number + 1}{place}: {error.message}"]
    if error.expected is not None and error.line is not None:
        lines.append(f"First difference, at line {error.line + 1} of the file:")
        lines.append(f"  expected: {error.expected}")
        lines.append(f"  found:    {error.found if error.found is not None else '(end of file)'}")
    for place in error.places:
        where = f" in {place.scope}" if place.scope else ""
        lines.append(f"Around line {place.start + 1}{where} the file has:")
        lines.append(place.text.rstrip("\n"))
    return "\n".join(lines)


def _hunk_json(hunk: HunkOutcome) -> dict[str, Any]:
    return {
        "hunk": hunk.number + 1,
        "path": hunk.path,
        "status": str(hunk.status),
        "match_level": None if hunk.level is None else int(hunk.level),
        "match": None if hunk.level is None else hunk.level.name.lower(),
        "start_line": None if hunk.start is None else hunk.start + 1,
        "stop_line": hunk.stop,
        "added": hunk.added,
        "deleted": hunk.deleted,
        "error": None if hunk.error is None else _error_json(hunk.error),
    }


def _error_json(error: HunkError) -> dict[str, Any]:
    return {
        "reason": str(error.reason),
        "message": error.message,
        "line": None if error.line is None else error.line + 1,
        "expected": error.expected,
        "found": error.found,
        "places": [
            {
                "line": place.start + 1,
                "text": place.text,
                "similarity": round(place.similarity, 3),
                "scope": place.scope,
            }
            for place in error.places
        ],
    }
