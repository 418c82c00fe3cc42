"""``midstream bench guard --labelled FOLDER``: what the guard halts in a collection.

The folder holds any of: ``bad`` and ``good``, files that are samples each (a vulnerable and a fixed
version, say); ``bad-lines`` and ``good-lines``, files whose lines are samples; ``marked``, source
whose comments ``ruleid:`` and ``ok:`` say what the statement on the next line is.

A collection is split in two by the hash of the sample's name (of its text, for lines), so that
rules are mended on the one half and measured on the other; `--missed` names samples of the ``tune``
half only.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from midstream.bench.figures import Figure
from midstream.errors import UsageError
from midstream.guard.findings import Finding, Level
from midstream.guard.scanner import Scanner

_MARK: Final = re.compile(r"(?:#|//)\s*(?P<mark>ruleid|ok)\s*:")
_COMMENT: Final = re.compile(r"^\s*(?:#|//|$)")
_LONGEST_STATEMENT: Final = 12
"""Lines after a mark in which its finding may lie, unless a blank line or a mark comes first."""
_RECALL: Final = {"secret-": 90.0}
_LEAST_RECALL: Final = 88.0
_MOST_FALSE: Final = 5.0


class Half(StrEnum):
    """Which part of a collection is used."""

    TUNE = "tune"
    TEST = "test"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Sample:
    """A text, what it is called, and whether it should halt.

    Attributes:
        first: First line in which a halt counts.
        stop: The line after the last one.
    """

    name: str
    path: str
    lines: tuple[str, ...]
    bad: bool
    first: int = 0
    stop: int | None = None

    @property
    def half(self) -> Half:
        """The half it belongs to; a vulnerable and a fixed file of one name are in the same."""
        return Half.TUNE if zlib.crc32(self.name.encode()) % 2 else Half.TEST


def labelled_figures(
    folder: Path, *, half: Half, rules: Sequence[str], missed: bool
) -> list[Figure]:
    """Return recall and false alarms on a labelled folder.

    Args:
        folder: The collection.
        half: Which part of it.
        rules: Beginnings of the names of rules that count; none: every one.
        missed: Also print the samples of the tune half that are judged wrongly.

    Raises:
        UsageError: The folder holds no samples.
    """
    samples = [s for s in samples_in(folder) if half in (Half.ALL, s.half)]
    if not samples:
        raise UsageError(f"{folder} holds no samples; put files under bad and good, or see --help.")
    judged = asyncio.run(_judge(samples, tuple(rules)))
    if missed:
        for sample, halted in judged:
            if sample.half is Half.TUNE and halted is not sample.bad:
                print(f"{'missed' if sample.bad else 'false '} {sample.name}")
    least = max([_RECALL.get(rule, 0) for rule in rules], default=0) or _LEAST_RECALL
    figures: list[Figure] = []
    for bad, name in ((True, "halted of what is labelled bad"), (False, "... labelled good")):
        verdicts = [halted for sample, halted in judged if sample.bad is bad]
        if verdicts:
            share = 100 * sum(verdicts) / len(verdicts)
            met = share >= least if bad else share <= _MOST_FALSE
            target = f">= {least:.0f}" if bad else f"<= {_MOST_FALSE:.0f}"
            figures.append(Figure(f"{name}, {half} ({len(verdicts)})", share, "%", target, met))
    return figures


def samples_in(folder: Path) -> Iterator[Sample]:
    """Yield the samples of a folder, in the order of their names."""
    for kind in ("bad", "good"):
        for path, name, lines in _files(folder / kind):
            yield Sample(name, path, lines, kind == "bad")
        for path, _, lines in _files(folder / f"{kind}-lines"):
            for line in dict.fromkeys(lines):
                if line.strip():
                    yield Sample(line, path, (line,), kind == "bad")
    for path, name, lines in _files(folder / "marked"):
        yield from _marked(path, name, lines)


def _files(folder: Path) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            text = path.read_text("utf-8", "replace")
            yield path.name, path.relative_to(folder).as_posix(), tuple(text.splitlines())


def _marked(path: str, name: str, lines: tuple[str, ...]) -> Iterator[Sample]:
    marks = [(n, match["mark"]) for n, line in enumerate(lines) if (match := _MARK.search(line))]
    for (number, mark), following in zip(marks, [*marks[1:], (len(lines), "")], strict=True):
        first = number + 1
        while first < len(lines) and _COMMENT.match(lines[first]):
            first += 1
        stop = first + 1
        while stop < min(following[0], first + _LONGEST_STATEMENT) and lines[stop].strip():
            stop += 1
        yield Sample(f"{name}:{first + 1}", path, lines, mark == "ruleid", first, stop)


async def _judge(samples: Sequence[Sample], rules: tuple[str, ...]) -> list[tuple[Sample, bool]]:
    scanner = Scanner()
    scanned: dict[tuple[str, tuple[str, ...]], list[Finding]] = {}
    judged: list[tuple[Sample, bool]] = []
    try:
        for sample in samples:
            text = (sample.path, sample.lines)
            if text not in scanned:
                scanned = {text: await scanner.scan(sample.lines, sample.path, runs=True)}
            halted = any(
                finding.level is Level.HALT
                and (not rules or finding.rule.startswith(rules))
                and finding.stop > sample.first
                and (sample.stop is None or finding.line < sample.stop)
                for finding in scanned[text]
            )
            judged.append((sample, halted))
    finally:
        await scanner.close()
    return judged
