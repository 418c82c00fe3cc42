"""String-built SQL in all shapes is found, and the mended versions are left alone."""

from __future__ import annotations

from midstream.guard.findings import Level
from midstream.guard.scanner import Scanner
from midstream.guard.stream import StreamScan
from tests.helpers.labelled_queries import Pair, other_pairs, python_pairs


async def halts(scanner: Scanner, text: str, path: str) -> bool:
    return any(f.level is Level.HALT for f in await scanner.scan(text.split("\n"), path))


async def missed_and_false(scanner: Scanner, pairs: list[Pair]) -> tuple[list[str], list[str]]:
    missed = [pair.name for pair in pairs if not await halts(scanner, pair.bad, pair.path)]
    false = [pair.name for pair in pairs if await halts(scanner, pair.good, pair.path)]
    return missed, false


async def test_python_pairs(scanner: Scanner) -> None:
    pairs = python_pairs()
    assert len(pairs) >= 150
    missed, false = await missed_and_false(scanner, pairs)
    assert len(missed) <= 0.02 * len(pairs), missed
    assert not false


async def test_pairs_in_other_languages(scanner: Scanner) -> None:
    pairs = other_pairs()
    missed, false = await missed_and_false(scanner, pairs)
    assert len(missed) <= 0.05 * len(pairs), missed
    assert not false


async def test_a_stream_finds_what_a_scan_finds(scanner: Scanner) -> None:
    for pair in [*python_pairs(rounds=1), *other_pairs(rounds=1)]:
        for text, bad in ((pair.bad, True), (pair.good, False)):
            lines = text.split("\n")
            stream = StreamScan(scanner, pair.path, [], [])
            found = [f for n in range(1, len(lines) + 1) for f in await stream.look(lines[:n])]
            assert any(f.level is Level.HALT for f in found) is bad, (pair.name, text)
