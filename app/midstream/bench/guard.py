"""``midstream bench guard``: the guard's speed and its false alarms.

Latency, false halts and prefix repair are measured on the standard library of the interpreter that
runs this; secrets on credentials made here by the formats that their issuers document.  None of it
is a published collection of vulnerable code; ``--labelled`` runs one that lies in a folder.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import os
import random
import re
import string
import sys
import sysconfig
import tempfile
import time
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final
from unittest import mock

from midstream.arguments import CommandParser
from midstream.bench.figures import Figure, at_least, at_most, percentile, print_figures
from midstream.errors import UsageError
from midstream.guard.findings import Finding, Level
from midstream.guard.prefix import complete_prefix
from midstream.guard.scanner import Scanner
from midstream.guard.secrets import find_secrets
from midstream.guard.stream import StreamScan
from midstream.processes import resident_bytes

_MARK: Final = re.compile(r"(?:#|//)\s*(?P<mark>ruleid|ok)\s*:")
_COMMENT: Final = re.compile(r"^\s*(?:#|//|$)")
_MAX_STATEMENT_LINES: Final = 12
"""Lines after a mark in which its finding may lie, unless a blank line or a mark comes first."""
_RECALL: Final = {"secret-": 90.0}
_MIN_RECALL: Final = 88.0
"""Least share of bad samples that are halted, in percent: by rule, and for all other rules."""
_MAX_FALSE_HALTS: Final = 5.0
"""Largest share of good samples that are halted, in percent."""


class Half(StrEnum):
    """The part of a labelled collection that is used.

    It is split in two by the hash of the sample's name (of its text, for lines), so that rules are
    mended on the one half and measured on the other.
    """

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

    It holds any of: ``bad`` and ``good``, files that are samples each (a vulnerable and a fixed
    version, say); ``bad-lines`` and ``good-lines``, files whose lines are samples; ``marked``,
    source whose comments ``ruleid:`` and ``ok:`` say what the statement on the next line is.

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
    least = max([_RECALL.get(rule, 0) for rule in rules], default=0) or _MIN_RECALL
    figures: list[Figure] = []
    for bad, name in ((True, "halted of what is labelled bad"), (False, "... labelled good")):
        verdicts = [halted for sample, halted in judged if sample.bad is bad]
        if verdicts:
            share = 100 * sum(verdicts) / len(verdicts)
            met = share >= least if bad else share <= _MAX_FALSE_HALTS
            target = f">= {least:.0f}" if bad else f"<= {_MAX_FALSE_HALTS:.0f}"
            figures.append(Figure(f"{name}, {half} ({len(verdicts)})", share, "%", target, met))
    return figures


def samples_in(folder: Path) -> Iterator[Sample]:
    """Yield the samples of a folder, in the order of their names."""
    for kind in ("bad", "good"):
        for path, name, lines in _sample_files(folder / kind):
            yield Sample(name, path, lines, kind == "bad")
        for path, _, lines in _sample_files(folder / f"{kind}-lines"):
            for line in dict.fromkeys(lines):
                if line.strip():
                    yield Sample(line, path, (line,), kind == "bad")
    for path, name, lines in _sample_files(folder / "marked"):
        yield from _marked(path, name, lines)


def _sample_files(folder: Path) -> Iterator[tuple[str, str, tuple[str, ...]]]:
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
        while stop < min(following[0], first + _MAX_STATEMENT_LINES) and lines[stop].strip():
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


TOKENS_PER_S: Final = 5_000
"""Rate of the stream."""
TOKENS_PER_LINE: Final = 8
"""Mean of Python source (measured on the standard library)."""
_FRAME_S: Final = 0.02
"""Time between two frames of the screen; text comes four times in it."""
_BEAT_S: Final = 0.002
"""Time between two beats, whose lateness is measured."""


@dataclass(frozen=True, slots=True)
class _Load:
    seconds: float
    own_cpu_s: float
    child_cpu_s: float
    child_bytes: int
    held_p99_ms: float


async def load_figures(
    scanner: Scanner, above: Sequence[str], region: Sequence[str]
) -> list[Figure]:
    """Stream ``region`` below ``above`` and compare with the same stream unguarded."""
    bare = await _stream(None, above, region)
    watched = await _stream(scanner, above, region)
    own = 100 * (watched.own_cpu_s / watched.seconds - bare.own_cpu_s / bare.seconds)
    child = 100 * watched.child_cpu_s / watched.seconds
    held = watched.held_p99_ms - bare.held_p99_ms
    memory = watched.child_bytes / 2**20
    at = f"at {TOKENS_PER_S:,} tokens/s"
    return [
        at_most(f"CPU of the screen's process {at}", own, "% core", 5),
        at_most(f"CPU of the ruff child {at}", child, "% core", 20),
        at_most("event loop held longer than unguarded, p99", held, "ms", 2),
        at_most("memory of the ruff child", memory, "MiB", 64),
    ]


async def _stream(scanner: Scanner | None, above: Sequence[str], region: Sequence[str]) -> _Load:
    written: list[str] = []
    news = asyncio.Event()
    over = False
    late: list[float] = []

    async def look(scan: StreamScan) -> None:
        while not over or scan.seen < len(written):
            await news.wait()
            news.clear()
            await scan.look(list(written))

    async def beat() -> None:
        while not over:
            due = time.perf_counter() + _BEAT_S
            await asyncio.sleep(_BEAT_S)
            late.append(1000 * (time.perf_counter() - due))

    tasks = [asyncio.create_task(beat())]
    if scanner is not None:
        scan = StreamScan(scanner, "m.py", above, [])
        await scan.look([])
        tasks.append(asyncio.create_task(look(scan)))
    pid = None if scanner is None else scanner.ruff.pid
    child, own, begun = _cpu_s(pid), time.process_time(), time.perf_counter()
    rate = TOKENS_PER_S / TOKENS_PER_LINE
    while len(written) < len(region):
        await asyncio.sleep(_FRAME_S / 4)
        due = min(len(region), int((time.perf_counter() - begun) * rate))
        if due > len(written):
            written.extend(region[len(written) : due])
            news.set()
    over = True
    news.set()
    await asyncio.gather(*tasks)
    seconds = time.perf_counter() - begun
    return _Load(
        seconds,
        time.process_time() - own,
        _cpu_s(pid) - child,
        0 if pid is None else resident_bytes(pid),
        percentile(late, 99),
    )


def _cpu_s(pid: int | None) -> float:
    """CPU time of a process so far; 0.0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


_REGION: Final = 60
"""Lines of a region that is rewritten."""
_FILE_LINES: Final = 3_000
"""Lines above the long region."""
_STREAMED: Final = 1_250
"""Lines of the long region, which streams in."""
_MIN_FILES: Final = 10  # fewer may hold none that is long enough to stream


def run(argv: Sequence[str]) -> int:
    """Measure and print; 1 if a target is missed.

    Raises:
        UsageError: An option is out of its range.
    """
    options = _options().parse_args(list(argv))
    if options.files < _MIN_FILES or options.regions < 1:
        raise UsageError(f"--files must be {_MIN_FILES} or more, and --regions 1 or more.")
    if options.all:
        options.files = sys.maxsize
    if options.labelled is not None:
        figures = labelled_figures(
            options.labelled, half=options.half, rules=options.rule, missed=options.missed
        )
    else:
        figures = asyncio.run(_measure(options.files, options.regions))
    return print_figures(figures, as_json=options.json)


def _options() -> argparse.ArgumentParser:
    parser = CommandParser(prog="midstream bench guard", description=__doc__)
    parser.add_argument(
        "--files", type=int, default=150, help="files of the library and of packages"
    )
    parser.add_argument("--all", action="store_true", help="all of them, and all packages")
    parser.add_argument("--regions", type=int, default=12, help="regions that are streamed")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    labelled = parser.add_argument_group("a labelled collection")
    labelled.add_argument(
        "--labelled",
        type=Path,
        metavar="FOLDER",
        help="only this: recall on FOLDER/bad, false alarms on FOLDER/good; or bad-lines and "
        "good-lines, whose lines are samples; or marked, with ruleid: and ok: comments",
    )
    labelled.add_argument("--half", type=Half, choices=list(Half), default=Half.ALL)
    labelled.add_argument(
        "--rule", action="append", default=[], metavar="NAME", help="only rules that begin so"
    )
    labelled.add_argument(
        "--missed", action="store_true", help="name what is judged wrongly in the tune half"
    )
    return parser


async def _measure(count: int, regions: int) -> list[Figure]:
    rng = random.Random(9)
    files = _library(rng, count)
    scanner = Scanner()
    figures: list[Figure] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the library's own old syntax
            figures += await _latency(scanner, files, rng, regions)
            figures += await load_figures(scanner, *_long_region(files, rng))
            figures += await _overrun()
            figures += await _false_halts(scanner, files, rng, regions * 3)
            figures.append(await _whole(scanner, _packages(rng, count), "installed packages"))
            figures.append(_prefixes(files, rng))
        figures.append(_secrets(rng))
        if scanner.problem:
            figures.append(Figure(f"ruff: {scanner.problem}", 1, "", "0", met=False))
    finally:
        await scanner.close()
    return figures


def _library(rng: random.Random, count: int) -> list[list[str]]:
    """Files of the standard library that parse, tests left out (they hold bad text on purpose)."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    return _files(folder, {"site-packages", "test", "tests", "idle_test", "lib2to3"}, rng, count)


def _packages(rng: random.Random, count: int) -> list[list[str]]:
    """The same of the packages that are installed."""
    return _files(Path(sysconfig.get_paths()["purelib"]), {"test", "tests"}, rng, count)


def _files(folder: Path, without: set[str], rng: random.Random, count: int) -> list[list[str]]:
    paths = [
        path
        for path in sorted(folder.rglob("*.py"))
        if not without & set(path.relative_to(folder).parts)
    ]
    rng.shuffle(paths)
    files: list[list[str]] = []
    for path in paths:
        if len(files) == count:
            break
        try:
            text = path.read_text("utf-8")
            ast.parse(text)
        except (OSError, ValueError, SyntaxError):
            continue
        files.append(text.split("\n"))
    return files


def _long_region(files: Sequence[list[str]], rng: random.Random) -> tuple[list[str], list[str]]:
    long = [lines for lines in files if len(lines) > 100]
    parts: list[list[str]] = []
    for size in (_FILE_LINES, _STREAMED):
        part: list[str] = []
        while len(part) < size:
            part += rng.choice(long)
        parts.append(part[:size])
    return parts[0], parts[1]


async def _latency(
    scanner: Scanner, files: Sequence[list[str]], rng: random.Random, regions: int
) -> list[Figure]:
    long = [lines for lines in files if len(lines) > 400]
    waits: list[float] = []
    for _ in range(regions):
        lines: list[str] = []
        while len(lines) < _FILE_LINES:
            lines += rng.choice(long)
        heads = [n for n, line in enumerate(lines) if line.lstrip().startswith("def ")]
        start = rng.choice([n for n in heads if n < len(lines) - _REGION])
        region = lines[start : start + _REGION]
        scan = StreamScan(scanner, "m.py", lines[:start], region, lines[start + _REGION :])
        await scan.look([])
        for number in range(1, _REGION + 1):
            begin = time.perf_counter()
            verdicts = scan.verdicts
            await scan.look(region[:number])
            if scan.verdicts == verdicts:
                continue  # A statement is unfinished: there was nothing to ask.
            waits.append(1000 * (time.perf_counter() - begin))
    return [
        at_most("line to verdict p50, 3,000-line files", percentile(waits, 50), "ms", 5),
        at_most("line to verdict p95, 3,000-line files", percentile(waits, 95), "ms", 10),
    ]


async def _overrun() -> list[Figure]:
    """Tokens of a served stream of 1,000 tokens a second that came after the bad line."""
    worst = float(max([await _one_overrun() for _ in range(5)]))
    return [at_most("tokens past the statement at 1,000/s, worst", worst, "tokens", 15)]


async def _one_overrun() -> int:
    from midstream.pairing.request.question import Question
    from midstream.pairing.session import PairingSession
    from midstream.serving.replay import count_tokens
    from midstream.settings import Settings

    head = 'def find(db, name):\n    rows = db.execute("select * from t where name = " + name)\n'
    rest = "".join(f"    step_{n} = rows[{n}].value + {n}\n" for n in range(50))
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, MIDSTREAM_STATE_DIR=folder),
    ):
        root, script = Path(folder) / "work", Path(folder) / "script.json"
        root.mkdir()
        (root / "m.py").write_text("def find(db, name):\n    return None\n")
        answers = [
            {"match": "must not", "text": "    return None\n"},
            {"match": "", "text": head + rest, "rate": 1_000},
        ]
        script.write_text(json.dumps(answers))
        async with await PairingSession.open(
            root, settings=Settings(journal=False), replay=script, watch=False
        ) as session:
            turn = await session.turns.instruct(Question("use the database", "m.py", 0))
            await session.turns.finished()
            return max(0, turn.tokens - count_tokens(head))


async def _false_halts(
    scanner: Scanner, files: Sequence[list[str]], rng: random.Random, regions: int
) -> list[Figure]:
    lines = halts = 0
    for _ in range(regions):
        file = rng.choice([f for f in files if len(f) > 2 * _REGION])
        start = rng.randrange(0, len(file) - _REGION)
        scan = StreamScan(scanner, "m.py", file[:start], [])
        region = file[start : start + _REGION]
        for number in range(1, _REGION + 1):
            found = await scan.look(region[:number])
            halts += sum(finding.level is Level.HALT for finding in found)
        lines += _REGION
    streamed = 1000 * halts / max(1, lines)
    return [
        await _whole(scanner, files, "standard library"),
        at_most("false halts, streams", streamed, "/kline", 0.1),
    ]


async def _whole(scanner: Scanner, files: Sequence[list[str]], what: str) -> Figure:
    lines = halts = 0
    for file in files:
        found = await scanner.scan(file, "m.py")
        halts += sum(finding.level is Level.HALT for finding in found)
        lines += len(file)
    rate = 1000 * halts / max(1, lines)
    return at_most(f"false halts, {what}, {lines:,} lines", rate, "/kline", 0.1)


def _prefixes(files: Sequence[list[str]], rng: random.Random) -> Figure:
    tried = parsed = 0
    while tried < 400:
        file = rng.choice(files)
        text = complete_prefix(file[: rng.randint(1, len(file))])
        if text is None:
            continue
        tried += 1
        try:
            ast.parse(text)
            parsed += 1
        except (SyntaxError, ValueError):
            pass
    rate = 100 * parsed / tried
    return Figure("random line prefixes that parse after repair", rate, "%", "100", rate == 100)


_LETTERS: Final = string.ascii_letters + string.digits
_HEX: Final = "0123456789abcdef"
_UPPER: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_FORMATS: Final = (
    ("AKIA", _UPPER, 16, ""),
    ("ghp_", _LETTERS, 36, ""),
    ("github_pat_", _LETTERS, 82, ""),
    ("glpat-", _LETTERS, 20, ""),
    ("sk-proj-", _LETTERS, 60, ""),
    ("sk-ant-api03-", _LETTERS, 93, ""),
    ("hf_", string.ascii_letters, 34, ""),
    ("AIza", _LETTERS, 35, ""),
    ("xoxb-123456789012-", _LETTERS, 24, ""),
    ("sk_live_", _LETTERS, 24, ""),
    ("npm_", _LETTERS, 36, ""),
    ("dop_v1_", _HEX, 64, ""),
    ("shpat_", _HEX, 32, ""),
    ("key-", _HEX, 32, ""),
    ("", _HEX, 32, "-us12"),
    ("dapi", _HEX, 32, ""),
    ("glsa_", _LETTERS, 32, "_0a1b2c3d"),
    ("lin_api_", _LETTERS, 40, ""),
    ("hvs.", _LETTERS, 24, ""),
    ("AccountKey=", _LETTERS, 86, "=="),
)
_FRAMES: Final = ('client = Client("{}")', "  value: '{}'", "export TOKEN={}", "fetch(url, `{}`)")
_NAMED: Final = ('password = "{}"', 'API_KEY: "{}",', "db_passwd='{}'", 'config["secret"] = "{}"')


def _secrets(rng: random.Random) -> Figure:
    lines: list[str] = []
    for prefix, alphabet, size, end in _FORMATS:
        for frame in _FRAMES:
            body = "".join(rng.choices(alphabet, k=size))
            lines.append(frame.format(f"{prefix}{body}{end}"))
    for frame in _NAMED:
        for size in (10, 14, 20, 28, 36):
            lines.append(frame.format("".join(rng.choices(_LETTERS + "!#%&+", k=size))))
    lines.append("-----BEGIN RSA PRIVATE " + "KEY-----")
    lines.append("url = 'postgres://app:" + "".join(rng.choices(_LETTERS, k=14)) + "@db/app'")
    found = sum(any(True for _ in find_secrets(line)) for line in lines)
    recall = 100 * found / len(lines)
    return at_least(f"secrets found of {len(lines)} synthetic lines", recall, "%", 90)
