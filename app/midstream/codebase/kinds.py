"""What kinds of change the hunks of files are, found in a child process.

Parsing holds the GIL, 10 us a line, so that only little is read in the process of the screen.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Final

import msgspec

from midstream import processes
from midstream.codebase.syntax_check import AT_ONCE
from midstream.edits.kinds import ChangedFile, Evidence, HunkFacts, TokenChange, facts_in

WORKERS: Final = 2
"""Processes that read at the same time."""
_AHEAD: Final = 3
"""Files that a process has been sent and has not answered: it need not wait for the next one."""
_LINE_LIMIT: Final = 1 << 26
"""Bytes of one line that the child process may print."""


class HunkAnswer(msgspec.Struct, array_like=True):
    """A process's answer about a hunk whose lines the caller knows."""

    kinds: tuple[Evidence, ...]
    changes: tuple[TokenChange, ...]
    partial: bool
    bound: bool


async def find_facts(files: Sequence[ChangedFile]) -> AsyncGenerator[list[HunkFacts]]:
    """What the hunks of files are, a file at a time and in any order.

    A file that cannot be sent to a process has no facts, and neither has one that a process had not
    read when it died.
    """
    if sum(file.size for file in files) <= AT_ONCE:
        for file in files:
            yield await asyncio.to_thread(facts_in, file)  # Many hunks take longer.
        return
    found: asyncio.Queue[list[HunkFacts] | None] = asyncio.Queue()
    waiting = iter(files)
    many = min(WORKERS, len(files))
    asking = [asyncio.create_task(_ask_child(waiting, found)) for _ in range(many)]
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
    waiting: Iterator[ChangedFile], found: asyncio.Queue[list[HunkFacts] | None]
) -> None:
    """Have a process read files that wait; ``None`` follows the facts of the last one."""
    try:
        process, requests, answers = await processes.start_answering(
            "midstream.codebase.kinds_child", limit=_LINE_LIMIT
        )
        ended = False
        decoder = msgspec.json.Decoder(list[HunkAnswer])
        asked: deque[ChangedFile] = deque()
        try:
            with contextlib.suppress(ConnectionError):
                _ask(requests, waiting, asked)
                while asked and (line := await answers.readline()):
                    file = asked.popleft()
                    _ask(requests, waiting, asked)
                    found.put_nowait(_facts(file, decoder.decode(line)))
                requests.close()
            ended = not asked
        finally:
            await processes.end(process, kill=not ended)
    finally:
        found.put_nowait(None)


def _ask(
    requests: asyncio.StreamWriter, waiting: Iterator[ChangedFile], asked: deque[ChangedFile]
) -> None:
    """Send files, until the process has enough to do."""
    while len(asked) < _AHEAD and (file := next(waiting, None)) is not None:
        with contextlib.suppress(UnicodeEncodeError):
            requests.write(msgspec.json.encode(file) + b"\n")
            asked.append(file)


def _facts(file: ChangedFile, answers: Sequence[HunkAnswer]) -> list[HunkFacts]:
    return [
        HunkFacts(
            id=block.id,
            path=file.path,
            old=block.old,
            new=block.new,
            kinds=answer.kinds,
            changes=answer.changes,
            partial=answer.partial,
            bound=answer.bound,
        )
        for block, answer in zip(file.blocks, answers, strict=True)
    ]
