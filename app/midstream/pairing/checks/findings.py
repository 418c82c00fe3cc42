"""Extracts failed places from the output of test runners, linters and compilers.

Lines are read one at a time while they are printed. Formats are those of pytest, unittest and plain
tracebacks, ruff, mypy, pyright, tsc, go and cargo, and others' ``path:line:column: message``.
Nothing here touches a file: which of the paths belong to the folder is asked of the caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

MAX_FINDINGS: Final = 500
"""Findings of one run that are kept."""
MAX_CHARACTERS: Final = 2_000
"""Length of a line; longer ones are cut before they are read."""
MAX_FRAMES: Final = 200
"""Frames of a traceback that are kept."""

Inside = Callable[[str], str | None]
"""The name of a file in the folder for a path as it is printed; None for any other path."""


@dataclass(frozen=True, slots=True)
class FailedPlace:
    """A place that failed.

    Attributes:
        path: The file, relative to the folder.
        line: 0-based line; None where the output does not say.
        message: What is wrong, in one line.
        test: Name of the test that failed there, "" if none is named.
        seen: Lines of output after which it was known.
    """

    path: str
    line: int | None
    message: str
    test: str = ""
    seen: int = 0

    @property
    def place(self) -> str:
        """The place as people write it."""
        return self.path if self.line is None else f"{self.path}:{self.line + 1}"


_ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()*+][\x20-~]|[@-Z\\^_])"
)

_PATH: Final = r"(?P<path>[^\s:(][^:(\n]*)"
_WHERE: Final = r":(?P<line>\d{1,7})(?::(?P<column>\d+))?"
_DIAGNOSTICS: Final = tuple(
    map(
        re.compile,
        (
            # tsc
            r"(?P<path>[^\s(][^(]*)\((?P<line>\d{1,7}),\d+\): error (?P<message>.+)",
            # pyright, tsc --pretty
            rf"\s*{_PATH}{_WHERE} - error:? (?P<message>.+)",
            # mypy, gcc, clang
            rf"{_PATH}{_WHERE}: (?:fatal )?error: (?P<message>.+)",
            # ruff --output-format concise, flake8, go vet and go build, shellcheck -f gcc
            rf"{_PATH}:(?P<line>\d{{1,7}}):\d+:? (?!note:|warning:)(?P<message>\S.*)",
            # go test
            r"\s+(?P<path>[\w./-]+\.go):(?P<line>\d{1,7}): (?P<message>.+)",
        ),
    )
)
_POINTER: Final = re.compile(rf"\s*--> {_PATH}{_WHERE}\s*")
"""ruff and rustc: the place stands below the message."""
_HEADLINE: Final = re.compile(
    r"(?P<kind>error|warning)(?:\[\w+\])?: (?P<message>.+)|(?P<code>[A-Z]+\d+ .+)"
)
_PANIC: Final = re.compile(rf"thread '(?P<test>[^']+)'.* panicked at {_PATH}{_WHERE}:?")
_GO_TEST: Final = re.compile(r"\s*--- FAIL: (?P<test>\S+)")
_FRAME: Final = re.compile(r'\s*File "(?P<path>[^"]+)", line (?P<line>\d{1,7})')
_RAISED: Final = re.compile(
    r"(?P<message>(?:[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Failure|Failed|Warning)\b"
    r"|assert ).*)"
)

# Of pytest.
_HEADER: Final = re.compile(r"_{3,} (?P<test>\S.*?) _{3,}")
_RULE: Final = re.compile(r"={3,}.*={3,}")
_PHASE: Final = re.compile(r"ERROR (?:at (?:setup|teardown) of|collecting) ")
_SAID: Final = re.compile(r"E +(?P<message>\S.*)")
_PLACE: Final = re.compile(rf"{_PATH}:(?P<line>\d{{1,7}})(?:: ?(?P<message>.*))?")
_SUMMARY: Final = re.compile(
    r"(?:FAILED|ERROR) (?P<path>[^\s:]+)(?:::(?P<test>\S+))?(?: - (?P<message>.+))?"
)


def plain(line: str) -> str:
    """A line of output without colours and other escape sequences."""
    return _ESCAPES.sub("", line[:MAX_CHARACTERS]).rstrip("\r\n")


class FindingReader:
    """Reads output line by line.

    Attributes:
        findings: What was found so far, in order.
        lines: How many lines were read.
    """

    def __init__(self, inside: Inside) -> None:
        self.findings: list[FailedPlace] = []
        self.lines = 0
        self._inside = inside
        self._known: set[tuple[str, int | None, str]] = set()
        self._headline = ""
        self._panic: FailedPlace | None = None
        self._test = ""
        self._section: str | None = None
        self._said = ""
        self._tested: set[str] = set()
        self._frames: list[tuple[str, int]] = []

    def read(self, line: str) -> None:
        """Take one line, with or without its line end."""
        self.lines += 1
        text = plain(line)
        if self._end_panic(text.strip()):
            return
        for rule in (self._pytest, self._tests, self._traceback, self._diagnostic):
            if rule(text):
                return

    def finish(self) -> None:
        """Note what was not complete at the end of the output."""
        self._end_section()
        self._end_panic("")

    def _pytest(self, text: str) -> bool:
        """pytest: a section for every failed test, then a summary."""
        if found := _HEADER.fullmatch(text):
            self._end_section()
            self._section = _PHASE.sub("", found["test"])
        elif _RULE.fullmatch(text):
            self._end_section()
        elif found := _SUMMARY.fullmatch(text):
            self._end_section()
            self._summary(found["path"], found["test"] or "", found["message"] or "failed")
        elif self._section is None:
            return self._bare_place(text)
        elif found := _SAID.match(text):
            self._said = self._said or found["message"]
        elif found := _PLACE.fullmatch(text) or _FRAME.match(text):
            self._frame(found["path"], int(found["line"]))
        elif (found := _RAISED.fullmatch(text)) and self._frames:
            self._said = self._said or found["message"]
        return True

    def _bare_place(self, text: str) -> bool:
        """Places without sections, as of --tb=line."""
        found = _PLACE.fullmatch(text)
        if found is None or not _RAISED.fullmatch(found["message"] or ""):
            return False
        self._add(found["path"], _line(found), found["message"], "", outside=True)
        return True

    def _summary(self, path: str, test: str, message: str) -> None:
        """A line of the summary: note it unless there was a section about it."""
        name = self._inside(path)
        test = test.replace("::", ".")
        told = any(
            each.path == name and each.message == message and not each.test
            for each in self.findings
        )
        if name is not None and not told and (test or path) not in self._tested:
            self._add(name, None, message, test)

    def _end_section(self) -> None:
        if self._section is not None and self._frames:
            self._tested.add(self._section)
            test = "" if self._section == self._frames[-1][0] else self._section
            self._add(*self._frames[-1], self._said or "failed", test)
        if self._section is not None:
            self._frames.clear()
        self._section, self._said = None, ""

    def _tests(self, text: str) -> bool:
        """Tests of Go, and panics of Rust."""
        if found := _PANIC.match(text):
            path = self._inside(found["path"])
            if path is not None:
                self._panic = FailedPlace(path, _line(found), "panicked", found["test"])
        elif found := _GO_TEST.match(text):
            self._test = found["test"]
        else:
            return False
        return True

    def _end_panic(self, message: str) -> bool:
        """Note a panic whose place is known; returns whether there was one."""
        panic, self._panic = self._panic, None
        if panic is not None:
            self._add(panic.path, panic.line, message or panic.message, panic.test)
        return panic is not None

    def _traceback(self, text: str) -> bool:
        """Tracebacks of Python; the place is the last frame in the folder."""
        if found := _FRAME.match(text):
            self._frame(found["path"], int(found["line"]))
            return True
        if self._frames and (found := _RAISED.fullmatch(text)):
            self._add(*self._frames[-1], found["message"], "")
            self._frames.clear()
            return True
        return False

    def _diagnostic(self, text: str) -> bool:
        """Linters and compilers."""
        if found := _POINTER.fullmatch(text):
            if self._headline:
                self._add(found["path"], _line(found), self._headline, "", outside=True)
            self._headline = ""
            return True
        if found := _HEADLINE.fullmatch(text):
            told = found["message"] or found["code"]
            self._headline = "" if found["kind"] == "warning" else told
            return True
        for rule in _DIAGNOSTICS:
            if found := rule.fullmatch(text):
                test = self._test if found["path"].endswith(".go") else ""
                self._add(found["path"], _line(found), found["message"], test, outside=True)
                return True
        return False

    def _frame(self, path: str, line: int) -> None:
        name = self._inside(path)
        if name is not None and line > 0 and len(self._frames) < MAX_FRAMES:
            self._frames.append((name, line - 1))

    def _add(
        self, path: str, line: int | None, message: str, test: str, *, outside: bool = False
    ) -> None:
        """Note a finding; ``outside`` says that the path is as it was printed."""
        name = self._inside(path) if outside else path
        key = (name or "", line, message)
        if name is None or key in self._known or len(self.findings) >= MAX_FINDINGS:
            return
        self._known.add(key)
        self.findings.append(
            FailedPlace(name, line, " ".join(message.strip().splitlines()), test, self.lines)
        )


def _line(found: re.Match[str]) -> int | None:
    number = int(found["line"])
    return number - 1 if number > 0 else None
