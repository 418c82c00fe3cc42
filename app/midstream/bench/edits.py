"""``midstream bench edits``: speed of the parsers and the aligner, and quality of the diffs.

Speed is measured in processor time on synthetic replies fed in small pieces.  Diff quality
is measured on real changes: pairs of file versions from a local git history (this project's, or
any given with ``--repo``), each replayed line by line as a rewrite of the whole file.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from midstream.arguments import CommandParser
from midstream.bench.figures import Figure, at_least, at_most, percentile, print_figures
from midstream.edits.aligner import Aligner, LineChange, LineIndex
from midstream.edits.documents import SourceText
from midstream.edits.formats.region import RegionParser
from midstream.edits.formats.search_replace import SearchReplaceParser
from midstream.edits.formats.str_replace import JsonEditParser
from midstream.edits.formats.udiff import UnifiedDiffParser
from midstream.edits.formats.v4a import V4AParser
from midstream.edits.formats.whole import WholeFileParser
from midstream.edits.lcs import matching_pairs
from midstream.edits.parsing import ReplyParser
from midstream.errors import UsageError

_PIECE: Final = 32
"""Characters a piece: about eight tokens, one WebSocket frame at 1,000 tokens a second."""


def run(argv: Sequence[str]) -> int:
    """Measure and print; 1 if a target is missed.

    Raises:
        UsageError: The repository that was named has no changes to replay.
    """
    options = _options().parse_args(list(argv))
    pairs = list(_history(options.repo or Path(), options.pairs))
    if not pairs and options.repo is not None:
        raise UsageError(f"{options.repo} has no git history with changes; name a repository.")
    pairs = pairs or list(_synthetic(200))
    figures = [*_parsers(options.kilobytes), *_aligner(pairs)]
    figures += _large_file()
    code = print_figures(figures, as_json=options.json, pairs=len(pairs))
    if not options.json:
        print(f"{len(pairs)} changes replayed")
    return code


def _options() -> argparse.ArgumentParser:
    parser = CommandParser(prog="midstream bench edits", description=__doc__)
    parser.add_argument(
        "--repo", type=Path, metavar="FOLDER", help="git repository to take changes of"
    )
    parser.add_argument("--pairs", type=int, default=500, help="most changes to replay")
    parser.add_argument("--kilobytes", type=int, default=512, help="size of each synthetic reply")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser


def _lines(count: int) -> list[str]:
    rng = random.Random(5)
    return [f"    value_{n} = compute({rng.randint(0, 9)}, other[{n}])  # é" for n in range(count)]


def _replies(size: int) -> dict[str, tuple[Callable[[], ReplyParser], str]]:
    """A parser and a reply of about ``size`` characters for each format."""
    lines = _lines(max(8, size // 52))
    body = "".join(f"{line}\n" for line in lines)
    blocks = [lines[n : n + 8] for n in range(0, len(lines), 8)]

    def hunk(block: list[str], mark: str = "@@") -> str:
        half = len(block) // 2
        text = "".join(f" {line}\n" for line in block[:2])
        text += "".join(f"-{line}\n" for line in block[2:half])
        return f"{mark}\n{text}" + "".join(f"+{line}\n" for line in block[half:])

    def search(block: list[str]) -> str:
        half = len(block) // 2
        old = "".join(f"{line}\n" for line in block[:half])
        new = "".join(f"{line}\n" for line in block[half:])
        return f"a.py\n```python\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```\n\n"

    edits = [
        {"old_text": "\n".join(block[:4]), "new_text": "\n".join(block[4:])} for block in blocks
    ]
    patch = "".join(map(hunk, blocks))
    numbered = "".join(hunk(block, "@@ -1,4 +1,6 @@") for block in blocks)
    return {
        "region": (lambda: RegionParser(bare=True), body),
        "region in a fence": (RegionParser, f"```python\n{body}```\n"),
        "v4a": (
            V4AParser,
            f"*** Begin Patch\n*** Update File: a.py\n{patch}*** End Patch\n",
        ),
        "search-replace": (SearchReplaceParser, "".join(map(search, blocks))),
        "str-replace": (JsonEditParser, json.dumps({"path": "a.py", "edits": edits})),
        "udiff": (UnifiedDiffParser, f"--- a/a.py\n+++ b/a.py\n{numbered}"),
        "whole": (WholeFileParser, f"a.py\n```python\n{body}```\n"),
    }


def _parsers(kilobytes: int) -> Iterator[Figure]:
    small, large = _replies(kilobytes * 256), _replies(kilobytes * 1024)
    for name, (make, reply) in large.items():
        seconds = min(_parse(make, reply, _PIECE) for _ in range(3))
        rate = len(reply.encode()) / seconds / 1e6
        yield at_least(f"parser {name}", rate, "MB/s", 1)
        make_small, reply_small = small[name]
        quarter = min(_parse(make_small, reply_small, _PIECE) for _ in range(3))
        growth = (seconds / len(reply)) / (quarter / len(reply_small))
        yield at_most(f"parser {name}, cost a character at 4x the size", growth, "x", 1.5)


def _parse(make: Callable[[], ReplyParser], reply: str, piece: int) -> float:
    pieces = [reply[at : at + piece] for at in range(0, len(reply), piece)]
    parser = make()
    gc.collect()
    begin = time.process_time()
    for text in pieces:
        parser.feed(text)
    parser.finish()
    return time.process_time() - begin


def _history(repo: Path, limit: int) -> Iterator[tuple[list[str], list[str]]]:
    """Versions of files before and after the newest changes of a git history."""
    git = ["git", "-C", str(repo)]
    options = ("--no-merges", "--diff-filter=M", "--raw", "--no-abbrev", "--format=", "-n8000")
    log = subprocess.run([*git, "log", *options], capture_output=True, text=True, check=False)
    raw = (line.split() for line in log.stdout.splitlines() if line.startswith(":100"))
    changes = list(dict.fromkeys((fields[2], fields[3]) for fields in raw))
    if len(changes) > limit:
        changes = random.Random(1).sample(changes, limit)
    ids = "".join(f"{old}\n{new}\n" for old, new in changes)
    batch = subprocess.run(
        [*git, "cat-file", "--batch"], input=ids.encode(), capture_output=True, check=False
    )
    blobs = _blobs(batch.stdout)
    for old, new in zip(blobs, blobs, strict=False):
        try:
            before, after = SourceText.from_bytes(old).lines, SourceText.from_bytes(new).lines
        except ValueError:
            continue
        if before != after and len(before) <= 20_000:
            yield list(before), list(after)


def _blobs(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        stop = data.index(b"\n", at)
        header = data[at:stop].split()
        at = stop + 1
        if header[1] == b"missing":
            yield b"\0"
            continue
        size = int(header[2])
        yield data[at : at + size]
        at += size + 1


def _synthetic(count: int) -> Iterator[tuple[list[str], list[str]]]:
    """Changes for where there is no history: a few blocks of a file replaced."""
    rng = random.Random(2)
    for _ in range(count):
        before = _lines(rng.randint(50, 800))
        after = list(before)
        for number in range(rng.randint(1, 6)):
            at, size = rng.randint(0, len(after)), rng.randint(0, 6)
            after[at : at + size] = [
                f"    new_{number}_{k} = {k}" for k in range(rng.randint(0, 6))
            ]
        yield before, after


def _aligner(pairs: Sequence[tuple[list[str], list[str]]]) -> Iterator[Figure]:
    changed = best = lines = worse = 0
    seconds = 0.0
    lags: list[int] = []
    for old, new in pairs:
        size, lag, spent = _replay(old, new)
        optimum = len(old) + len(new) - 2 * len(matching_pairs(old, new))
        changed += size
        best += optimum
        worse += size > 1.25 * optimum
        lags += lag
        seconds += spent
        lines += len(old) + len(new)
    ratio = changed / max(1, best)
    yield at_most("diff size against the LCS optimum", ratio, "x", 1.05)
    share = 100 * worse / max(1, len(pairs))
    yield at_most("files over 1.25x the optimum", share, "%", 2)
    yield at_most("decision lag p95", percentile(lags, 95), "lines", 8)
    cost = 1e6 * seconds / max(1, lines)
    yield at_most("aligner", cost, "us/line", 5)


def _replay(old: list[str], new: list[str]) -> tuple[int, list[int], float]:
    begin = time.process_time()
    aligner = Aligner(old)
    steps = [aligner.push(line) for line in new]
    steps.append(aligner.finish())
    spent = time.process_time() - begin
    changed = 0
    lags: list[int] = []
    for number, ops in enumerate(steps):
        for op in ops:
            changed += op.change is not LineChange.CONTEXT
            if op.new >= 0:
                lags.append(min(number, len(new) - 1) - op.new)
    return changed, lags, spent


def _large_file() -> Iterator[Figure]:
    rng = random.Random(3)
    lines = [rng.choice(["", "}", "    return x", f"line {n}"]) for n in range(100_000)]
    gc.collect()
    begin = time.process_time()
    LineIndex(lines)
    spent = 1000 * (time.process_time() - begin)
    yield at_most("index of 100,000 lines", spent, "ms", 100)
    after = list(lines)
    after[50_000:50_010] = ["replaced"] * 5
    _, _, seconds = _replay(lines, after)
    cost = 1e6 * seconds / 200_000
    yield at_most("aligner on 100,000 lines", cost, "us/line", 5)
