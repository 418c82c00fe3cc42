"""What kinds of change the hunks of files are, found in a child process.

Parsing holds the GIL, 10 us a line, so that only little is read in the process of the screen.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from midstream import processes
from midstream.codebase.syntax_check import AT_ONCE
from midstream.edits.kinds import ChangedBlock, HunkFacts, facts_of

WORKERS: Final = 2
"""Processes that read at the same time."""
_LINE_LIMIT: Final = 1 << 26
"""Bytes of one line that the child process may print."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file with hunks.

    Attributes:
        path: Its path.
        lines: Its text before all of them.
        blocks: The hunks, by position.
    """

    path: str
    lines: tuple[str, ...]
    blocks: tuple[ChangedBlock, ...]

    @property
    def size(self) -> int:
        """Characters that have to be read."""
        return sum(map(len, self.lines)) + sum(len(x) for b in self.blocks for x in b.new)


def facts_in(file: ChangedFile) -> list[HunkFacts]:
    """What the hunks of a file are; just their lines, if it cannot be read."""
    try:
        return facts_of(file.path, file.lines, file.blocks)
    except Exception:  # one strange file must not hide the hunks of the others
        return plain_facts(file)


def plain_facts(file: ChangedFile) -> list[HunkFacts]:
    """The hunks of a file without their kinds."""
    return [
        HunkFacts(id=block.id, path=file.path, old=block.old, new=block.new)
        for block in file.blocks
    ]


async def find_facts(files: Sequence[ChangedFile]) -> AsyncGenerator[list[HunkFacts]]:
    """What the hunks of files are, a file at a time and in any order.

    A file that cannot be sent to a process has no facts, nor have those that it has not read when
    it dies.
    """
    if sum(file.size for file in files) <= AT_ONCE:
        for file in files:
            yield facts_in(file)
        return
    found: asyncio.Queue[list[HunkFacts] | None] = asyncio.Queue()
    many = min(WORKERS, len(files))
    shares = (_ask_child(files[share::many], found) for share in range(many))
    asking = [asyncio.create_task(share) for share in shares]
    try:
        while many:
            facts = await found.get()
            if facts is None:
                many -= 1
            else:
                yield facts
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


async def _ask_child(
    files: Sequence[ChangedFile], found: asyncio.Queue[list[HunkFacts] | None]
) -> None:
    """Have a process read files; ``None`` follows the facts of the last one."""
    try:
        process, requests, answers = await processes.start_answering(
            "midstream.codebase.kinds_child", limit=_LINE_LIMIT
        )
        ended = False
        try:
            with contextlib.suppress(ConnectionError):
                requests.write(msgspec.json.encode([*_requests(files)]))
                await requests.drain()
                requests.close()
            decoder = msgspec.json.Decoder(list[HunkFacts])
            while line := await answers.readline():
                found.put_nowait(decoder.decode(line))
            ended = True
        finally:
            await processes.end(process, kill=not ended)
    finally:
        found.put_nowait(None)


def _requests(files: Sequence[ChangedFile]) -> Iterator[msgspec.Raw]:
    for file in files:
        with contextlib.suppress(UnicodeEncodeError):
            yield msgspec.Raw(msgspec.json.encode(file))
