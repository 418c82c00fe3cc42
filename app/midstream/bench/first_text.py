"""Time to first text of a chat, for ``midstream bench engine``: after a long context that is
processed from scratch, that is cached from the previous turn, and with the question read ahead
while it is typed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from midstream.bench import wire
from midstream.bench.progress import BenchProgress
from midstream.engine.model import OnnxModel
from midstream.engine.types import GenerateRequest, Message

REPEAT = 5
"""Times that each case is measured, except the cold one."""
ROOM = 256
"""Tokens of the context that are left for what is asked and answered."""
COLD, CACHED, BEGUN, AHEAD = (
    "nothing cached",
    "the turn before cached",
    "read ahead but for a word",
    "read ahead",
)
ANSWER = "It counts the rows and adds up what they hold. " * 3


@dataclass(frozen=True, slots=True)
class FirstText:
    """The first text of an answer, from Enter on.

    Attributes:
        tokens: Of the prompt.
        read: Tokens of it that were not in the cache.
        wall_ms: Until it was there, the median.
        cpu_ms: Processor time of all threads, the median.
    """

    tokens: int
    read: int
    wall_ms: float
    cpu_ms: float


def first_texts(
    model: OnnxModel, contexts: Sequence[int], progress: BenchProgress
) -> dict[str, FirstText]:
    """Measure a chat model behind contexts of about these many tokens, as far as they fit."""
    found: dict[str, FirstText] = {}
    with progress.stoppable():
        for size in contexts:
            if size + ROOM > model.decoder.context_length:
                continue
            for kind in (COLD, CACHED, BEGUN, AHEAD):
                repeat = 1 if kind == COLD else REPEAT
                taken = [_first(model, size, kind, n) for n in progress.over(range(repeat))]
                found[f"{kind}, {size}"] = replace(
                    taken[0],
                    wall_ms=median(each.wall_ms for each in taken),
                    cpu_ms=median(each.cpu_ms for each in taken),
                )
    model.cache.clear()
    return found


def _first(model: OnnxModel, size: int, kind: str, number: int) -> FirstText:
    context = Message("user", _context(model, size))
    before = GenerateRequest((context,), max_output_tokens=1)

    def asked(question: str) -> GenerateRequest:
        messages = (context, Message("assistant", ANSWER), Message("user", question))
        return replace(before, messages=messages)

    # The number comes first, so that the one before helps little.
    question = f"{number} is the line that I mean; what is it for"
    request = before if kind == COLD else asked(question)
    if number == 0:
        model.cache.clear()
        if kind != COLD:
            _run(model, asked("Thank you."))
    if kind == AHEAD:
        _run(model, replace(request, generate=False))
    elif kind == BEGUN:
        _run(model, replace(asked(question.rpartition(" ")[0]), generate=False))
    cpu, began = time.process_time(), time.perf_counter()
    generation = model.start(request)
    pieces = iter(generation)
    next(pieces)
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    close: Callable[[], None] = getattr(pieces, "close")  # noqa: B009
    close()
    usage = generation.usage
    read = usage.input_tokens - usage.cached_tokens
    return FirstText(usage.input_tokens, read, 1000 * wall, 1000 * cpu)


def _run(model: OnnxModel, request: GenerateRequest) -> None:
    for _ in model.start(request):
        pass


def _context(model: OnnxModel, size: int) -> str:
    """Real code of about so many tokens."""
    code = Path(wire.__file__).read_text("utf-8")
    tokens = len(model.plan(GenerateRequest((Message("user", code),))).prompt_ids)
    letters = len(code) * size // tokens
    return (code * (1 + letters // len(code)))[:letters]
